"""The only module that pages and the command line import: small functions, ids in, small values out.

Nothing here loads torch; what needs it happens in a run's own process.
"""

from core import plots as figures
from core.artifacts.edits import Edits
from core.artifacts.evaluations import Beside
from core.artifacts.map import CLASSES, Hits, Mapped
from core.artifacts.removal import Removal
from core.artifacts.reviews import Reviews
from core.artifacts.scores import Scored
from core.artifacts.usage import Usage
from core.artifacts.why import Why
from core.config import Budget, Config
from core.corpora.corpus import Corpus
from core.corpora.hygiene import FLAGS
from core.corpora.writers import harmless
from core.errors import Cancelled, ConfigError, CorpusError, EncodingError, InputError, WinnowError, for_the_log
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
from core.facade.audit import audit_lines, note_look
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
    corpus_usage,
    describe,
    import_listing,
    import_path,
    import_roots,
    open_sample,
    preview,
    preview_soon,
    remove_corpus,
    rename_corpus,
    roles,
    samples,
    set_role,
    token_lengths,
)
from core.facade.deliver import (
    board_csv,
    board_markdown,
    copy_model,
    export_model,
    figure_page,
    forget_try,
    known_types,
    model_folder,
    report,
    take,
    take_bytes,
    tried,
    try_sentences,
    words_held,
    zip_model,
)
from core.facade.entities import entity_counts, entity_types, tag_runs, taggers, with_entities
from core.facade.experiments import (
    STAGES,
    calibration,
    demo_options,
    experiment_cost,
    foresight,
    read_plan,
    stage_options,
)
from core.facade.home import home
from core.facade.insights import (
    SIDES,
    Side,
    add_rows,
    flags_of,
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
    budget_in,
    comparable,
    cores,
    disk,
    examples,
    finished,
    first_sentences,
    length_warnings,
    overlap,
    score_bins,
    score_range,
    selection_command,
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
    keep_region,
    kept_region,
    lasso,
    map_config,
    map_of,
    map_options,
    mapped,
    maps,
    page_of,
    pairs,
    search,
    telling_words,
)
from core.facade.privacy import Check, privacy_checks
from core.facade.rebuilding import (
    Diff,
    add_names,
    edit_diffs,
    frontier,
    frontier_averages,
    rebuild_preview,
    splits_of,
)
from core.facade.removals import removal, remove_everything, remove_run, sweep
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
    removed_inputs,
    settings_apart,
    tagger_rows,
    type_scores,
    unfound_types,
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
    at_work,
    cancel,
    command,
    execute,
    fingerprint_of,
    go_on,
    of_corpora_in_use,
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
from core.facade.selections import (
    EXPORT_FORMATS,
    Remains,
    check_output,
    choose,
    chosen,
    edits,
    export,
    exports,
    keep_budget,
    kept_budget,
    remains,
    scored,
)
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
    difficulty_estimate,
    halved,
    left_behind,
    loading,
    preflight,
    root_encoder,
    selected_corpus,
    selections,
    trainings,
)
from core.facade.uploads import discard, spool, spooled, waiting
from core.recipes import RECIPES
from core.recipes.add import LONGEST_NAME, proposed_name
from core.recipes.experiment.arms import ARM_NAMES, ARM_SHAPES
from core.recipes.experiment.cost import Cost
from core.recipes.parts.preflight import Preflight
from core.recipes.parts.ranks import announce, rank
from core.results import Selection
from core.runs.events import Event, RunState
from core.runs.store import Run
from core.samples.sets import SampleSet
from core.selection import DEFAULT_STRATEGY, STRATEGIES
from core.selection.health import Health
from core.selection.parts import Part
from core.shown import shown, shown_json
from core.stats.mistakes import KINDS, Kind, Mistake
from core.text.sentence import Entity, Sentence

__all__ = [
    "ARM_NAMES", "ARM_SHAPES", "CLASSES", "DEFAULT_STRATEGY", "DRIFTS", "EXPORT_FORMATS", "FLAGS", "KINDS",
    "LONGEST_NAME", "MEASURES",
    "RECIPES", "ROLES", "SIDES", "STAGES", "STRATEGIES", "SWEEP", "TRAININGS", "Assisted", "Beside", "Budget",
    "Cancelled", "Check",
    "Config", "ConfigError", "Corpus", "CorpusError", "Cost", "Diff", "Edits",
    "EncodingError", "Entity", "Event", "Health", "Hits",
    "InputError", "Kept", "Kind", "Mapped", "Mark", "Measured", "Metric", "Mistake", "Overlap", "Part", "Preflight",
    "Remains", "Removal", "Reviews", "Run", "RunState", "SampleSet", "Scored", "Selection", "Sentence", "Side",
    "SimilarityRows", "TestedAlike", "Usage", "Why", "WinnowError", "add_names",
    "add_rows", "announce", "assist_in_words", "assisted", "at_work", "audit_lines", "beside", "best_value", "bin_rows",
    "board", "board_csv", "board_markdown", "box", "budget_advice", "budget_in",
    "calibration", "cancel", "card", "ceim_panels",
    "changed_sentences", "check_output", "check_similarity_output", "choose", "chosen", "class_counts", "classes",
    "colour_values", "command", "comparable", "copy_model", "cores", "corpora", "corpus", "corpus_name",
    "corpus_usage", "curves", "demo_options",
    "describe", "device", "difficulty_estimate",
    "discard", "disk", "doctor", "draw", "drawn_mentions", "drift_csv", "drift_table",
    "edit_diffs", "edits", "entity_counts", "entity_types", "example_table", "examples", "execute",
    "experiment_cost", "export", "export_corrected", "export_drift", "export_kept", "export_model",
    "export_points", "exports",
    "failed_seeds", "figure_page", "figures", "fingerprint_of", "finished", "first_sentences", "flags_of",
    "for_the_log", "foresight", "forget_try",
    "frontier", "frontier_averages", "frontier_points",
    "go_on", "guess", "guess_held", "halved", "harmless", "health", "health_without_diversity", "home", "hover",
    "import_listing", "import_path",
    "import_roots", "in_bar", "in_box", "judge_f1_file", "judge_f1_table", "judge_own", "keep_budget",
    "keep_region",
    "kept_below",
    "kept_budget",
    "kept_region",
    "known_types",
    "label_advice", "lasso", "left_behind",
    "length_warnings", "loading", "map_config", "map_of", "map_options", "mapped", "maps", "measure_title",
    "measured", "measured_runs", "memory", "mention_rows", "mentions_csv", "missing", "model_folder",
    "note_look", "novelty_scores", "of_corpora_in_use",
    "open_sample", "option_differences", "overlap", "overlap_curve", "own_f1", "page_of", "pairs",
    "preflight", "preview", "preview_soon", "privacy_checks",
    "proposed_name", "rank", "read_plan", "read_type_map", "rebuild_preview", "recommendation",
    "remains", "removal", "remove_corpus", "remove_everything", "remove_rows", "remove_run", "removed_inputs",
    "rename_corpus", "report",
    "resume", "review", "review_log", "reviews", "roles",
    "root_encoder", "run", "runs", "samples", "save_guess", "score_bins", "score_range",
    "scored", "seal_corrected", "seal_edited",
    "seal_kept", "search", "selected_corpus", "selection_command",
    "selections", "set_role",
    "settings_apart", "shown", "shown_json", "shown_sentences", "side_examples", "sides",
    "similarity_csv", "similarity_rows", "splits_of", "spool", "spooled", "stage_options", "standings", "start",
    "state", "stop",
    "suspicious", "sweep", "sweep_points", "sweeps", "tag_runs", "tagger_names", "tagger_rows", "taggers",
    "take", "take_bytes", "telling_words", "tested_alike", "token_lengths", "train_along", "trainings",
    "tried", "try_sentences", "type_rows",
    "type_scores", "types_apart", "undo", "undo_review",
    "unfound_types", "v_information", "waiting", "why", "with_corpora", "with_entities",
    "words_held", "work", "write_similarity", "zip_model",
]  # fmt: skip
