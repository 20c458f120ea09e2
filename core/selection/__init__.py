"""Strategies by name. A strategy's file and its line here are all that page and command line need."""

from collections.abc import Mapping

from core.config import Config
from core.errors import ConfigError
from core.selection.base import Strategy
from core.selection.strategies.baselines import LengthMatchedRandom, Random
from core.selection.strategies.classifier import DomainClassifier
from core.selection.strategies.cosine import CosineMlm, CosineMlmNer, CosinePretrained, Neighbours
from core.selection.strategies.gazetteer import Gazetteer
from core.selection.strategies.perplexity import NgramPerplexity
from core.selection.strategies.predictions import NerSelected
from core.selection.strategies.pseudo import PseudoPerplexity

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
        NgramPerplexity,
        Gazetteer,
        LengthMatchedRandom,
        Random,
    )
}
DEFAULT_STRATEGY = DomainClassifier.name


def make_strategy(name: str, options: Mapping[str, object], seed: int) -> Strategy:
    """A strategy by name with its options checked. Errors: ConfigError for an unknown name or option."""
    checked = strategy_options(name, options)
    return STRATEGIES[name](checked, seed)


def strategy_options(name: str, options: Mapping[str, object]) -> Config:
    """A strategy's own options, checked. Errors: ConfigError for an unknown name or option."""
    if name not in STRATEGIES:
        raise ConfigError(f"strategy: {name!r} is not known; choose one of {', '.join(STRATEGIES)}.")
    return STRATEGIES[name].Options.parse(dict(options))
