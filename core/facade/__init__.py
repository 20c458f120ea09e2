"""The only module that pages and the command line import: small functions, ids in, small values out.

Nothing here loads torch; what needs it happens in a run's own process.
"""

from core import plots as figures
from core.config import Budget, Config
from core.corpora.corpus import Corpus
from core.corpora.demo import SampleSet
from core.corpora.hygiene import FLAGS
from core.errors import Cancelled, ConfigError, CorpusError, InputError, WinnowError
from core.facade.assisting import (
    DRIFTS,
    SWEEP,
    Assisted,
    Kept,
    Mark,
    assist_in_words,
    assisted,
    drift_csv,
    drift_table,
    export_drift,
    export_kept,
    kept_below,
    read_type_map,
    seal_kept,
    shown_sentences,
    sweep_points,
    sweeps,
    types_apart,
)
from core.facade.bias import (
    Measured,
    bin_rows,
    ceim_panels,
    drawn_mentions,
    in_bar,
    in_box,
    measured,
    measured_runs,
    mention_rows,
    mentions_csv,
    type_rows,
    v_information,
)
from core.facade.corpora import (
    ROLES,
    corpora,
    corpus,
    describe,
    import_path,
    import_roots,
    open_sample,
    preview,
    remove_corpus,
    roles,
    samples,
    set_role,
    spool,
    token_lengths,
)
from core.facade.deliver import (
    board_csv,
    board_markdown,
    export_model,
    model_folder,
    report,
    tried,
    try_sentences,
    zip_model,
)
from core.facade.entities import entity_counts, entity_types, tag_runs, taggers, with_entities
from core.facade.experiments import STAGES, calibration, demo_options, experiment_cost, read_plan, stage_options
from core.facade.home import home
from core.facade.insights import (
    SIDES,
    Side,
    add_rows,
    health,
    health_without_diversity,
    overlap_curve,
    remove_rows,
    seal_edited,
    side_examples,
    sides,
    undo,
    why,
)
from core.facade.looks import (
    Overlap,
    comparable,
    cores,
    discard,
    disk,
    examples,
    finished,
    first_sentences,
    length_warnings,
    overlap,
    score_bins,
    spooled,
)
from core.facade.machine import device, doctor, memory
from core.facade.maps import (
    box,
    class_counts,
    classes,
    colour_values,
    draw,
    export_points,
    hover,
    lasso,
    map_options,
    mapped,
    maps,
    page_of,
    pairs,
    search,
    telling_words,
)
from core.facade.rebuilding import Diff, add_names, edit_diffs, frontier, frontier_averages, rebuild_preview
from core.facade.results import (
    beside,
    board,
    budget_advice,
    corpus_name,
    failed_seeds,
    label_advice,
    missing,
    novelty_scores,
    option_differences,
    tagger_rows,
    type_scores,
)
from core.facade.reviews import (
    export_corrected,
    review,
    review_log,
    reviews,
    seal_corrected,
    suspicious,
    undo_review,
)
from core.facade.robust import (
    TestedAlike,
    changed_sentences,
    frontier_points,
    standings,
    tagger_names,
    tested_alike,
)
from core.facade.runs import (
    cancel,
    command,
    execute,
    go_on,
    remove_run,
    resume,
    run,
    runs,
    start,
    state,
    stop,
    train_along,
    with_corpora,
    work,
)
from core.facade.selections import check_output, choose, chosen, edits, export, exports, scored
from core.facade.similarity import (
    MEASURES,
    SimilarityRows,
    best_value,
    check_similarity_output,
    example_table,
    guess,
    guess_held,
    judge_f1_file,
    judge_f1_table,
    judge_own,
    measure_title,
    own_f1,
    recommendation,
    save_guess,
    similarity_csv,
    similarity_rows,
    write_similarity,
)
from core.facade.training import (
    TRAININGS,
    Metric,
    card,
    curves,
    halved,
    loading,
    preflight,
    root_encoder,
    selected_corpus,
    selections,
    trainings,
)
from core.recipes import RECIPES
from core.recipes.chosen import Scored
from core.recipes.edits import Edits
from core.recipes.experiment.arms import ARM_NAMES, ARM_SHAPES
from core.recipes.experiment.cost import Cost
from core.recipes.mapped import CLASSES, Hits, Mapped
from core.recipes.outcome import Beside
from core.recipes.preflight import Preflight
from core.recipes.ranks import announce, rank
from core.recipes.reviews import Reviews
from core.recipes.why import Why
from core.results import Selection
from core.runs.events import Event, RunState
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY, STRATEGIES
from core.selection.health import Health
from core.selection.parts import Part
from core.text.sentence import Entity, Sentence

__all__ = [
    "ARM_NAMES", "ARM_SHAPES", "CLASSES", "DEFAULT_STRATEGY", "DRIFTS", "FLAGS", "MEASURES", "RECIPES",
    "ROLES", "SIDES", "STAGES", "STRATEGIES", "SWEEP", "TRAININGS", "Assisted", "Beside", "Budget", "Cancelled",
    "Config", "ConfigError", "Corpus", "CorpusError", "Cost", "Diff", "Edits", "Entity", "Event", "Health", "Hits",
    "InputError", "Kept", "Mapped", "Mark", "Measured", "Metric", "Overlap", "Part", "Preflight", "Reviews", "Run",
    "RunState", "SampleSet", "Scored", "Selection", "Sentence", "Side", "SimilarityRows", "TestedAlike", "Why",
    "WinnowError", "add_names",
    "add_rows", "announce", "assist_in_words", "assisted", "beside", "best_value", "bin_rows",
    "board", "board_csv", "board_markdown", "box", "budget_advice", "calibration", "cancel", "card", "ceim_panels",
    "changed_sentences", "check_output", "check_similarity_output", "choose", "chosen", "class_counts", "classes",
    "colour_values", "command", "comparable", "cores", "corpora", "corpus", "corpus_name", "curves", "demo_options",
    "describe", "device", "discard", "disk", "doctor", "draw", "drawn_mentions", "drift_csv", "drift_table",
    "edit_diffs", "edits", "entity_counts", "entity_types", "example_table", "examples", "execute",
    "experiment_cost", "export", "export_corrected", "export_drift", "export_kept", "export_model",
    "export_points", "exports",
    "failed_seeds", "figures", "finished", "first_sentences", "frontier", "frontier_averages", "frontier_points",
    "go_on", "guess", "guess_held", "halved", "health", "health_without_diversity", "home", "hover", "import_path",
    "import_roots", "in_bar", "in_box", "judge_f1_file", "judge_f1_table", "judge_own", "kept_below",
    "label_advice", "lasso", "length_warnings", "loading", "map_options", "mapped", "maps", "measure_title",
    "measured", "measured_runs", "memory", "mention_rows", "mentions_csv", "missing", "model_folder",
    "novelty_scores", "open_sample", "option_differences", "overlap", "overlap_curve", "own_f1", "page_of", "pairs",
    "preflight", "preview", "rank", "read_plan", "read_type_map", "rebuild_preview", "recommendation",
    "remove_corpus", "remove_rows", "remove_run", "report", "resume", "review", "review_log", "reviews", "roles",
    "root_encoder", "run", "runs", "samples", "save_guess", "score_bins", "scored", "seal_corrected", "seal_edited",
    "seal_kept", "search", "selected_corpus", "selections", "set_role", "shown_sentences", "side_examples", "sides",
    "similarity_csv", "similarity_rows", "spool", "spooled", "stage_options", "standings", "start", "state", "stop",
    "suspicious", "sweep_points", "sweeps", "tag_runs", "tagger_names", "tagger_rows", "taggers", "telling_words",
    "tested_alike", "token_lengths", "train_along", "trainings", "tried", "try_sentences", "type_rows",
    "type_scores", "types_apart", "undo", "undo_review", "v_information", "why", "with_corpora", "with_entities",
    "work", "write_similarity", "zip_model",
]  # fmt: skip
