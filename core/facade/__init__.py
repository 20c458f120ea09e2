"""The only module that pages and the command line import: small functions, ids in, small values out.

Nothing here loads torch; what needs it happens in a run's own process.
"""

from core import plots as figures
from core.config import Budget, Config
from core.corpora.corpus import Corpus
from core.corpora.demo import SampleSet
from core.corpora.hygiene import FLAGS
from core.errors import Cancelled, ConfigError, CorpusError, InputError, WinnowError
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
from core.facade.machine import device, doctor
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
    with_corpora,
    work,
)
from core.facade.selections import check_output, choose, chosen, edits, export, exports, scored
from core.recipes import RECIPES
from core.recipes.chosen import Scored
from core.recipes.edits import Edits
from core.recipes.mapped import CLASSES, Hits, Mapped
from core.recipes.why import Why
from core.results import Selection
from core.runs.events import Event, RunState
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY, STRATEGIES
from core.selection.health import Health
from core.selection.parts import Part
from core.text.sentence import Entity, Sentence

__all__ = [
    "CLASSES", "DEFAULT_STRATEGY", "FLAGS", "RECIPES", "ROLES", "SIDES", "STRATEGIES", "Budget", "Cancelled",
    "Config", "ConfigError", "Corpus", "CorpusError", "Edits", "Entity", "Event", "Health", "Hits", "InputError",
    "Mapped", "Overlap", "Part", "Run", "RunState", "SampleSet", "Scored", "Selection", "Sentence", "Side", "Why",
    "WinnowError", "add_rows", "box", "cancel", "check_output", "choose", "chosen", "class_counts", "classes",
    "colour_values", "command", "comparable", "cores", "corpora", "corpus", "describe", "device", "discard", "disk",
    "doctor", "draw",
    "edits", "examples", "execute", "export", "export_points", "exports", "figures", "finished", "first_sentences",
    "go_on", "health", "health_without_diversity", "home", "hover", "import_path", "import_roots", "lasso",
    "length_warnings", "map_options", "mapped", "maps", "open_sample", "overlap", "overlap_curve", "page_of", "pairs",
    "preview", "remove_corpus", "remove_rows", "remove_run", "resume", "roles", "run", "runs", "samples",
    "score_bins", "scored", "seal_edited", "search", "set_role", "side_examples", "sides", "spool", "spooled",
    "start", "state", "stop", "telling_words", "token_lengths", "undo", "why", "with_corpora", "work",
]  # fmt: skip
