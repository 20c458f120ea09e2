"""Strategies by name. To add one, write its file and list its class here. All pages and commands then offer it."""

from collections.abc import Mapping

from core.config import Config, fields_with
from core.errors import ConfigError
from core.selection.base import Strategy
from core.selection.strategies.baselines import LengthMatchedRandom, Random
from core.selection.strategies.classifier import DomainClassifier
from core.selection.strategies.cosine import CosineMlm, CosineMlmNer, CosinePretrained, Neighbours
from core.selection.strategies.dsir import Dsir
from core.selection.strategies.fuse import Fuse
from core.selection.strategies.gazetteer import Gazetteer
from core.selection.strategies.loss_drop import LossDrop
from core.selection.strategies.moore_lewis import MooreLewis
from core.selection.strategies.perplexity import NgramPerplexity, PseudoPerplexity
from core.selection.strategies.predictions import NerSelected

STRATEGIES: Mapping[str, type[Strategy]] = {
    strategy.name: strategy
    for strategy in (
        DomainClassifier,
        Neighbours,
        CosinePretrained,
        CosineMlm,
        CosineMlmNer,
        NerSelected,
        PseudoPerplexity,
        LossDrop,
        NgramPerplexity,
        MooreLewis,
        Dsir,
        Fuse,
        Gazetteer,
        LengthMatchedRandom,
        Random,
    )
}
DEFAULT_STRATEGY = DomainClassifier.name


def make_strategy(name: str, options: Mapping[str, object], seed: int) -> Strategy:
    """Return the strategy of this name, with checked options. Errors: ConfigError for an unknown name or option."""
    checked = strategy_options(name, options)
    return STRATEGIES[name](checked, seed)


def strategy_options(name: str, options: Mapping[str, object]) -> Config:
    """Check the options of a strategy and return them. Errors: ConfigError for an unknown name or option."""
    own = _known(name).Options
    may = [key for key in own.model_fields if key not in fields_with(own, "hidden")]
    if wrong := [key for key in options if key not in own.model_fields]:
        has = f"choose among {', '.join(may)}" if may else "it has none"
        raise ConfigError(f"{wrong[0]}: is not an option of the strategy {name}; {has}.")
    checked = own.parse(dict(options))
    for other in STRATEGIES[name].others(checked):
        if _known(other).others(_known(other).Options()):
            raise ConfigError(f"strategy {name}: {other} itself uses ranks of other strategies; give a different one.")
    return checked


def involved(name: str, options: Mapping[str, object]) -> tuple[type[Strategy], ...]:
    """Return the classes of a strategy and of the strategies whose ranks it uses. Errors: as in `strategy_options`."""
    others = STRATEGIES[name].others(strategy_options(name, options)) if name in STRATEGIES else ()
    return _known(name), *(STRATEGIES[other] for other in others)


def _known(name: str) -> type[Strategy]:
    if name not in STRATEGIES:
        raise ConfigError(f"strategy: {name!r} is not known; choose one of {', '.join(STRATEGIES)}.")
    return STRATEGIES[name]
