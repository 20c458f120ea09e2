"""The data check: one list of green, amber and red items, for a project, a run that is about to start, one corpus."""

from collections.abc import Mapping, Sequence

from core.config import Config, option
from core.corpora.checks import LEVELS as LEVELS
from core.corpora.checks import Check as Check
from core.corpora.checks import Level as Level
from core.corpora.checks import worst as worst
from core.errors import ConfigError, MissingCorpus
from core.importing.data_checks import DEFAULT_ENCODER, Subject, checked, needed, subject
from core.importing.view import roles
from core.projects.home import library
from core.selection import DEFAULT_STRATEGY, STRATEGIES

ROLES = ("task", "domain", "train", "dev", "test")


class CheckConfig(Config):
    """Options: what is checked. A corpus that is not given is the project's."""

    task: str = option("", "Task corpus (T_C).", corpus=True)
    domain: str = option("", "Domain corpus (D_C).", corpus=True)
    train: str = option("", "Training set: labelled sentences that a tagger is trained on.", corpus=True)
    dev: str = option("", "Dev set: labelled sentences that decide when training stops.", corpus=True)
    test: str = option("", "Test set: labelled sentences for the final score.", corpus=True)
    budget: str = option("", "Budget to check against the domain corpus: 1000, 50000tokens or 20%.")
    strategy: str = option(DEFAULT_STRATEGY, "Strategy that the size of the task corpus is checked for.")
    encoder: str = option(DEFAULT_ENCODER, "Encoder whose vocabulary is compared with the text.")


def of_project(options: Mapping[str, object] | None = None) -> Sequence[Check]:
    """Check the corpora of the project. options: of `CheckConfig`, in place of the project's. Errors: ConfigError,
    CorpusError."""
    asked = CheckConfig.parse(dict(options or {}))
    if asked.strategy not in STRATEGIES:
        raise ConfigError(f"strategy: {asked.strategy!r} is unknown; choose among {', '.join(STRATEGIES)}.")
    given = {**roles(), **{role: mark for role in ROLES if (mark := getattr(asked, role))}}
    return checked(
        Subject(
            parts={role: library().find(given[role]) for role in ROLES if role in given},
            budgets=(asked.budget,) if asked.budget else (),
            encoder=asked.encoder,
            strategies={asked.strategy: needed(asked.strategy, {})},
        )
    )


def of_run(kind: str, options: Mapping[str, object]) -> Sequence[Check]:
    """Check what a run of `kind` with these options would read; a corpus that is not chosen yet is left out."""
    return checked(subject(kind, options, library()))


def of_corpus(reference: str) -> Sequence[Check]:
    """Check one corpus by itself, in the part that it plays; no items if it was removed.

    Contradictory labels are left out: the report of an import counts them itself.
    """
    try:
        corpus = library().find(reference)
    except MissingCorpus:
        return ()
    role = next((role for role, mark in roles().items() if mark == corpus.fingerprint), corpus.name)
    found = checked(Subject(parts={role: corpus}, encoder=DEFAULT_ENCODER, labels=True))
    return [one for one in found if one.name != "contradictions"]
