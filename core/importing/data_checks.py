"""Data check: choose the corpora to check before a run of each kind, and check them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache

from core.corpora import checks
from core.corpora.checks import Check
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError, WinnowError
from core.experiment import arms
from core.models.hub import BUNDLED
from core.models.vocabulary_fit import UNKNOWN_MOST, Coverage, coverage
from core.results import Role
from core.runs.store import is_run_id
from core.selection import DEFAULT_STRATEGY, STRATEGIES, involved, strategy_options
from core.selection.base import Strategy

# Proportions of a text's pieces that the vocabulary lacks. Above BARELY the check is amber; from HARDLY on it is red.
BARELY, HARDLY = UNKNOWN_MOST, 0.5
# Maximum number of pieces per character. Above it, the vocabulary cuts letters into bytes.
BYTES = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Corpora and options that a data check uses.

    corpora: {role, or name of a corpus without a role: corpus}. budgets: budgets that D_C must be large enough for.
    strategies: {name: minimum number of sentences of T_C}. encoder: "" if the run uses none. labels: True to check also
    the labels of corpora without a role.
    """

    corpora: Mapping[str, Corpus]
    budgets: Sequence[str] = ()
    encoder: str = ""
    strategies: Mapping[str, int] = field(default_factory=dict)
    labels: bool = False


def checked(subject: Subject) -> list[Check]:
    """Return the results of all checks for which the corpora are given."""
    corpora = subject.corpora
    task, domain, dev = corpora.get("task"), corpora.get("domain"), corpora.get("dev")
    labelled = {
        role: corpus
        for role, corpus in corpora.items()
        if role in checks.LABELS or (subject.labels and corpus.labelled)
    }
    found = [checks.task_size(task, subject.strategies)] if task else []
    found += [checks.task_in_domain(task, domain)] if task and domain else []
    found += [checks.budget_fits(subject.budgets, domain)] if domain and subject.budgets else []
    if labelled:
        found.append(checks.entities_present(labelled))
        if any(corpus.types for corpus in labelled.values()):
            found.append(checks.types_covered(labelled))
    # If the dev set has no entities, `entities_present` already gives a red item.
    found += [checks.dev_size(dev)] if dev and dev.types else []
    others = {role: corpora[role] for role in ("dev", "test") if role in corpora}
    found += [checks.train_in_others(corpora["train"], others)] if "train" in corpora and others else []
    if corpora:
        found += [encoder_fits(corpora, subject.encoder)] if subject.encoder else []
        found += [checks.upper_case(corpora), checks.garbled(corpora), checks.documents(corpora)]
    found += [checks.contradictory(labelled)] if labelled else []
    return found


def encoder_fits(corpora: Mapping[str, Corpus], encoder: str) -> Check:
    """Return the result of the check that an encoder's vocabulary covers the text of each corpus."""
    found = Check(
        name="encoder",
        level="green",
        sentence=f"The vocabulary of {encoder} covers the text.",
        cure="Choose another encoder",
        page="training",
        command="python -m core encoders list",
    )
    covers = {
        checks.ROLE_NAMES.get(role, role): _coverage_of(encoder, checks.sample(corpus))
        for role, corpus in corpora.items()
    }
    known = {name: one for name, one in covers.items() if one is not None}
    if not known:
        return replace(
            found, sentence=f"The vocabulary of {encoder} was not checked, because it has no tokenizer.json."
        )
    lost = [f"{one.unknown:.0%} in the {name}" for name, one in known.items() if one.unknown > BARELY]
    if lost:
        sentence = f"The vocabulary of {encoder} cannot represent all text. Unknown pieces: {checks.listed(lost)}."
        red = any(one.unknown >= HARDLY for one in known.values())
        return replace(found, level="red" if red else "amber", sentence=sentence)
    if cut := [name for name, one in known.items() if one.pieces > BYTES]:
        sentence = f"The vocabulary of {encoder} cuts the {checks.listed(cut)} into single bytes."
        return replace(found, level="amber", sentence=f"{sentence} The encoder was not trained on this script.")
    return found


@lru_cache(64)
def _coverage_of(encoder: str, texts: tuple[str, ...]) -> Coverage | None:
    return coverage(encoder, texts)


def subject(kind: str, options: Mapping[str, object], library: Library) -> Subject:
    """Return the corpora and options to check before a run of `kind`. Corpora that do not exist are left out."""
    match kind:
        case "select":
            return _selection(options, library)
        case "experiment":
            return _experiment(options, library)
        case "finetune":
            named = {role: options.get(role) for role in ("train", "dev")} | {"test": _first(options.get("test"))}
            return Subject(corpora=_corpora(named, library), encoder=_encoder(options))
        case "pretrain":
            found = (_find(reference, library) for reference in _all(options.get("corpora")))
            return Subject(corpora={called(corpus): corpus for corpus in found if corpus}, encoder=_encoder(options))
        case "similarity":
            return _comparison(options, library)
    return Subject(corpora={})


def _selection(options: Mapping[str, object], library: Library) -> Subject:
    name = str(options.get("strategy", DEFAULT_STRATEGY))
    own = options.get("options")
    given = own if isinstance(own, Mapping) else {}
    every = _involved(name, given)
    learns = any(Role.LABELLED in strategy.needs for strategy in every)
    embeds = any(strategy.models or strategy.reads in ("vectors", "both") for strategy in every)
    roles = ("task", "domain", *(("train", "dev") if learns else ()))
    corpora = _corpora({role: options.get(role) for role in roles}, library)
    if "train" in corpora and not corpora["train"].labelled:
        del corpora["train"]  # an unlabelled corpus in this role is a list of names, so it has no labels to check
    needs = {name: needed(name, given)}
    encoder = str(options.get("encoder", BUNDLED)) if embeds else ""
    budget = str(options.get("budget", "10%"))
    return Subject(corpora=corpora, budgets=(budget,), encoder=encoder, strategies=needs)


def _experiment(options: Mapping[str, object], library: Library) -> Subject:
    names = _all(options.get("arms", ("none", "random", DEFAULT_STRATEGY)))
    used = []
    for name in names:
        with suppress(ConfigError):
            used.append(arms.find(name))
    own = options.get("strategies")
    by_name = own if isinstance(own, Mapping) else {}
    needs = {arm.strategy: needed(arm.strategy, by_name.get(arm.strategy, {})) for arm in used if arm.strategy}
    text = [role for role in ("task", "domain") if any(role in arm.needs for arm in used)]
    corpora = _corpora({role: options.get(role) for role in (*text, *checks.LABELS)}, library)
    budgets = _all(options.get("budgets", ("10%",))) if any(arm.chooses for arm in used) else ()
    return Subject(corpora=corpora, budgets=budgets, encoder=str(options.get("encoder") or BUNDLED), strategies=needs)


def _comparison(options: Mapping[str, object], library: Library) -> Subject:
    """Return the corpora to check before a comparison of corpora. It needs no budget, strategy or encoder."""
    task = _corpora({"task": _first(options.get("target"))}, library)
    others = (_find(reference, library) for reference in _all(options.get("source")))
    return Subject(corpora={**task, **{called(corpus): corpus for corpus in others if corpus}})


def called(corpus: Corpus) -> str:
    """Return the name by which a `Subject` lists a corpus without a role, as it is read in a sentence: `the corpus X`.

    A corpus named like a role, for example after the file train.txt, must not be checked as if it had this role.
    """
    return f"corpus {corpus.name}"


def needed(strategy: str, options: Mapping[str, object]) -> int:
    """Return the minimum number of sentences of T_C that a strategy needs.

    For a strategy with folds it is the number of folds, otherwise 2. If the strategy does not use T_C, it is 0.
    """
    known = STRATEGIES.get(strategy)
    if known is None or not known.topical:
        return 0
    with suppress(WinnowError):
        others = [other.Options() for other in involved(strategy, options)[1:]]
        return max(2, *(int(getattr(own, "folds", 2)) for own in (strategy_options(strategy, options), *others)))
    return 2


def _involved(strategy: str, options: Mapping[str, object]) -> tuple[type[Strategy], ...]:
    """Return a strategy and all strategies whose ranks it combines; () for an unknown name or option."""
    with suppress(ConfigError):
        return involved(strategy, options)
    return ()


def _encoder(options: Mapping[str, object]) -> str:
    """Return the encoder from which the training starts.

    Return "" if it starts from a run's model, or if the network has no encoder.
    """
    if options.get("network", "encoder") not in ("encoder", "span"):
        return ""
    init = str(options.get("init") or BUNDLED)
    return "" if is_run_id(init) else init


def _corpora(named: Mapping[str, object], library: Library) -> dict[str, Corpus]:
    found = {role: _find(reference, library) for role, reference in named.items()}
    return {role: corpus for role, corpus in found.items() if corpus}


def _find(reference: object, library: Library) -> Corpus | None:
    with suppress(CorpusError):
        return library.find(str(reference)) if reference else None
    return None


def _all(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _first(value: object) -> str:
    return next(iter(_all(value)), "")


def red_items(kind: str, options: Mapping[str, object], library: Library) -> list[Check]:
    """Return the red items of a run's data check. options: all options of the run."""
    return [check for check in checked(subject(kind, options, library)) if check.level == "red"]
