"""Simulated experiments: in how many of 100 a plan shows a difference that is there, and where it ends.

Each has pre-trainings, taggers and a test sample drawn anew from the spread, and is judged by the arithmetic of a real
one: the same standard error, degrees of freedom, bounds and futility.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from core.results import BoolArray, FloatArray, IntArray
from core.stats import sequential
from core.stats.bootstrap import seeds_part, two_sided
from core.stats.sequential import Look
from core.stats.spread import Spread

EXPERIMENTS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Ended experiments, arrays `(d,)`: what was shown (1, -1, 0), after how many replicates; the difference with its
    standard error and degrees of freedom there."""

    sign: FloatArray
    replicates: IntArray
    delta: FloatArray
    se: FloatArray
    dof: FloatArray

    def covers(self, effect: float, level: float = 0.95) -> BoolArray:
        """`(d,)` whether the interval holds the truth."""
        from scipy.special import stdtrit

        held: BoolArray = np.abs(self.delta - effect) <= self.se * stdtrit(self.dof, (1 + level) / 2)
        return held


def simulate(
    spread: Spread,
    looks: Sequence[int],
    effect: float,
    *,
    planned: float,
    experiments: int = EXPERIMENTS,
    seed: int = 0,
) -> Simulated:
    """Experiments on two arms that differ by `effect`. looks: replicates at each, at least 2. planned: the effect that
    an end for futility goes by."""
    at, rng = tuple(looks), np.random.default_rng(seed)
    m = spread.n_sentences
    f1 = rng.normal(size=(2, at[-1], experiments)) * spread.each
    # What this sample of test sentences does to the difference, the same at every look, and how large it is taken for.
    sample = effect + rng.normal(size=experiments) * spread.sentences
    fixed = spread.sentences**2 * rng.chisquare(max(m - 1, 1), size=experiments) / max(m - 1, 1)
    ended = Simulated(
        sign=np.zeros(experiments),
        replicates=np.zeros(experiments, dtype=np.int64),
        **{name: np.zeros(experiments) for name in ("delta", "se", "dof")},
    )
    going = np.ones(experiments, dtype=bool)
    for number, n in enumerate(at):
        noise, both = f1[:, :n].var(axis=1, ddof=1) / n, np.full(experiments, 2 * spread.both**2 / n)
        delta = sample + f1[0, :n].mean(axis=0) - f1[1, :n].mean(axis=0)
        seeds, dof = seeds_part(noise, both, fixed + both, (n, n), m)
        se = np.sqrt(seeds + fixed + both)
        look = Look(delta=delta, p=two_sided(delta, se, dof), falling=seeds + both, fixed=fixed)
        signs = sequential.shown(look, at, number)
        stops = going & ((signs != 0) | sequential.futile(look, at, number, planned) | (n == at[-1]))
        for name, values in (("sign", signs), ("delta", delta), ("se", se), ("dof", dof)):
            getattr(ended, name)[stops] = values[stops]
        ended.replicates[stops] = n
        going &= ~stops
    return ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Chances that a plan shows `effect`, from 0 to 1, and the share of its replicates that it makes on average."""

    effect: float
    chance: float
    share: float


@cache  # a form asks again whenever anything is typed
def power(spread: Spread, looks: tuple[int, ...], effect: float) -> Power:
    """The chance of a plan whose arms differ by `effect`; none with a single replicate, which knows no spread."""
    if looks[-1] < 2:
        return Power(effect=effect, chance=0.0, share=1.0)
    ended = simulate(spread, looks, effect, planned=effect)
    return Power(
        effect=effect,
        chance=float((ended.sign > 0).mean()),
        share=float(ended.replicates.mean()) / looks[-1],
    )
