"""Strategies by name. An entry here is all that the page, the command line and the contract test need."""

from collections.abc import Mapping

from core.config import Config
from core.errors import ConfigError
from core.selection.adapted import CosineMlm, CosineMlmNer
from core.selection.base import Strategy, StrategyFactory
from core.selection.baselines import LengthMatchedRandom, Random
from core.selection.classifier import DomainClassifier
from core.selection.cosine import CosinePretrained
from core.selection.gazetteer import Gazetteer
from core.selection.neighbours import Neighbours
from core.selection.perplexity import NgramPerplexity
from core.selection.predictions import NerSelected
from core.selection.pseudo import PseudoPerplexity

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
    factory: StrategyFactory = STRATEGIES[name]  # every entry takes (options, seed)
    return factory(checked, seed)


def strategy_options(name: str, options: Mapping[str, object]) -> Config:
    """A strategy's own options, checked. Errors: ConfigError for an unknown name or option."""
    if name not in STRATEGIES:
        raise ConfigError(f"strategy: {name!r} is not known; choose one of {', '.join(STRATEGIES)}.")
    return STRATEGIES[name].Options.parse(dict(options))
