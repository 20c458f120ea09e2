"""`dictionary`: look up names from lists in test sets, and score the matches. Nothing is trained.

The result shows how well lists of names work without labels (SOURCES.md, Dictionary). Artifacts: as for `evaluate`, one
split per test set.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from core.config import Config, option
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError
from core.kind import About, Job, Kind
from core.shown import count
from core.tagging.evaluations import OverSeeds, labelled, name_of_test_set, score_found
from core.text.names import Dictionary, Key, commoner_outside, count_names
from core.text.sentence import Sentence


class DictionaryConfig(Config):
    """Options: the lists of names, the test sets, and how to leave out common names."""

    names: tuple[str, ...] = option(
        (), "Labelled corpora whose names are looked up: imported lists of names, or a training set.", corpus=True
    )
    test: tuple[str, ...] = option(..., "Test sets: labelled sentences.", corpus=True, min_length=1)
    inside: str = option(
        "", "Text of the domain, such as T_C. Give it with `outside` to leave out common names.", corpus=True
    )
    outside: str = option(
        "",
        "Text of other domains. Names that occur there more often per token than in `inside` are left out.",
        corpus=True,
    )
    case_sensitive: bool = option(False, "Match case: 'lead' in a text then does not match 'Lead' in a list.")


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionaryResult:
    """Result of a `dictionary` run.

    names: number of different names. ambiguous: number of names with several types; the most frequent type is used.
    common: number of names that were left out because they are more common outside of the domain. tests: scores on each
    test set. seconds: time to look the names up in all test sets.
    """

    names: int
    ambiguous: int
    common: int
    tests: Sequence[OverSeeds]
    seconds: float


def run(config: DictionaryConfig, job: Job) -> DictionaryResult:
    """Read the names, look them up in the test sets, and return the scores of the matches."""
    dictionary, ambiguous, common = dictionary_of(config, job)
    job.context.stage("looking the names up")
    tests, seconds = [], 0.0
    for number, mark in enumerate(config.test):
        gold, began = labelled(job.corpus(mark)), time.monotonic()
        found = [dictionary.predict(sentence) for sentence in gold]
        seconds += time.monotonic() - began
        tests.append(score_found(job.context.run, gold, found, name_of_test_set(number)))
    return DictionaryResult(
        names=len(dictionary.types) + len(common),
        ambiguous=ambiguous,
        common=len(common),
        tests=tests,
        seconds=round(seconds, 2),
    )


def dictionary_of(config: DictionaryConfig, job: Job) -> tuple[Dictionary, int, set[Key]]:
    """Return the names to look up, the number of names with several types, and the names left out as too common.

    Errors: ConfigError for options that do not fit together; CorpusError if there is no name.
    """
    if not config.names:
        raise ConfigError("names: no list is given; give a labelled corpus, or a file of names.")
    if bool(config.inside) != bool(config.outside):
        raise ConfigError("inside, outside: common names are found by comparing the two texts; give both or none.")
    job.context.stage("reading the names")
    types, ambiguous = resolved([job.corpus(mark) for mark in config.names], case_sensitive=config.case_sensitive)
    dictionary, common = Dictionary(types, case_sensitive=config.case_sensitive), set[Key]()
    if config.outside:
        job.context.stage("looking for common names")
        inside, outside = (_sentences(job.corpus(mark)) for mark in (config.inside, config.outside))
        common = commoner_outside(dictionary, inside, outside)
        kept = {key: type for key, type in types.items() if key not in common}
        dictionary = Dictionary(kept, case_sensitive=config.case_sensitive)
    return dictionary, ambiguous, common


def resolved(corpora: Sequence[Corpus], *, case_sensitive: bool = False) -> tuple[dict[Key, str], int]:
    """Return {words of a name: its most frequent type}, and the number of names with several types.

    If two types are equally frequent, the type that was read first is used. Errors: CorpusError if there is no name.
    """
    counts = count_names(chain.from_iterable(map(_sentences, corpora)), case_sensitive=case_sensitive)
    if not counts:
        names = ", ".join(corpus.name for corpus in corpora)
        raise CorpusError(f"{names}: no labelled entity, so there is no name to look up; give a list of names.")
    types = {key: own.most_common(1)[0][0] for key, own in counts.items()}
    return types, sum(len(own) > 1 for own in counts.values())


def _sentences(corpus: Corpus) -> chain[Sentence]:
    return chain.from_iterable(corpus.batches())


def _outcome(result: DictionaryResult, _: About) -> str:
    names = count(result.names - result.common, "name")
    return f"Score (F1) {result.tests[0].mean:.1f} with a dictionary of {names}, without training"


KIND = Kind(
    "dictionary",
    DictionaryConfig,
    run,
    DictionaryResult,
    title=lambda run: f"Look the names of {run.corpora(run.config['names'])} up in {run.corpora(run.config['test'])}",
    outcome=_outcome,
    page="Training",
    opens=True,
    here=True,
)
