"""A similarity study's plan: its options, the parties, the draws and caps, and which comparisons that makes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self, get_args

from pydantic import field_validator

from core.config import option
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError
from core.kind import Job
from core.similarity.base import Sample, draw
from core.similarity.grid import FEWEST
from core.similarity.measures import MeasureName, PplOptions, TvccOptions
from core.similarity.parts_of_speech import settle
from core.similarity.wvv import WvvOptions
from core.text.words import Tokens

MOST = 1_000_000  # tokens that `equal` takes of every source at most: five sources by five targets in ten minutes
SHRINK = 4  # each cap of the size curve is this many times smaller than the one before


class SimilarityConfig(PplOptions, WvvOptions, TvccOptions):
    """Options: sources, targets, and how much text."""

    target: tuple[str, ...] = option(..., "Task corpus (T_C); repeat for several.", corpus=True)
    source: tuple[str, ...] = option(..., "A candidate to pre-train on; repeat for several.", corpus=True)
    together: tuple[str, ...] = option((), "Sources that count as one, by their places: 1+2 are the first two.")
    measure: tuple[MeasureName, ...] = option(get_args(MeasureName), "Which measures; repeat for several.")
    cap_tokens: str = option(
        "equal",
        f"Tokens drawn from every source: a number, equal (as many as the smallest has, at most {MOST:,}) or none.",
    )
    min_source_tokens: int = option(
        10_000,
        "A source with fewer tokens is too small to compare: it is left out by name and does not shrink the others.",
        unit="tokens",
        ge=1,
    )
    target_tokens: int = option(
        100_000,
        "Tokens drawn from every target at most: word vector variance (WVV) grows with them.",
        unit="tokens",
        ge=1,
    )
    draws: int = option(3, "Samples drawn from every source; the spread over them is shown.", ge=1, le=20)
    sizes: int = option(2, f"Smaller caps of the size curve, each 1/{SHRINK} of the one before; one draw.", ge=0, le=6)
    parts: int = option(
        8,
        "Parts that the task corpus (T_C) and every source are cut into and compared by, to tell leads from chance; 0: "
        f"leads are not judged, nor with fewer than {FEWEST}.",
        ge=0,
        le=50,
    )
    tokens: Tokens = option("words", "words: runs of letters and single marks; blanks: what blanks separate.")
    lowercase: bool = option(False, "Compare words in lower case.")
    seed: int = option(0, "Seed of the first draw; the next ones count on.", ge=0, le=2**31)

    def settled(self) -> Self:
        """These options with the tagger that is here, since values by two taggers do not compare."""
        return self.model_copy(update={"tagger": settle(self.tagger)}) if "tvcc" in self.measure else self

    @field_validator("target", "source", "measure")
    @classmethod
    def _some(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if not names:
            raise ValueError("give at least one")
        return tuple(dict.fromkeys(names))

    @field_validator("cap_tokens")
    @classmethod
    def _cap(cls, text: str) -> str:
        plain = text.strip().lower().replace("_", "").replace(",", "")
        if plain not in ("equal", "none") and not re.fullmatch(r"[1-9]\d*", plain):
            raise ValueError("give a number of tokens, equal or none")
        return plain

    @field_validator("together")
    @classmethod
    def _together(cls, groups: tuple[str, ...]) -> tuple[str, ...]:
        if not all(re.fullmatch(r"\d+(\+\d+)+", group.replace(" ", "")) for group in groups):
            raise ValueError("give places joined by a plus, for example 1+2")
        return tuple(group.replace(" ", "") for group in groups)


@dataclass(frozen=True, slots=True)
class Party:
    """A source or target: its name in the table and the corpora that make it up."""

    name: str
    corpora: Sequence[Corpus]

    @property
    def n_tokens(self) -> int:
        return sum(corpus.n_tokens for corpus in self.corpora)


@dataclass(frozen=True, slots=True)
class Round:
    """All pairs measured once.

    cap: tokens a source, None for all. kind: of a draw, a point of the size curve, or part `part` of `of` of the first
    draw and of the target.
    """

    number: int
    seed: int
    cap: int | None
    kind: Literal["draw", "curve", "part"]
    title: str
    part: int = 0
    of: int = 1


class Study:
    """A run's plan, and what of it is done."""

    def __init__(self, config: SimilarityConfig, job: Job) -> None:
        self.config, self.context = config, job.context
        self.targets = parties([[job.corpus(reference)] for reference in config.target])
        groups = parties(grouped([job.corpus(reference) for reference in config.source], config.together))
        self.sources = [party for party in groups if party.n_tokens >= config.min_source_tokens]
        self.too_small = [party for party in groups if party.n_tokens < config.min_source_tokens]
        if not self.sources:
            raise CorpusError(
                f"source: none has {config.min_source_tokens:,} tokens, the least that a comparison takes "
                f"({', '.join(f'{party.name}: {party.n_tokens:,}' for party in groups)}); give larger ones, or lower "
                "min_source_tokens."
            )

    @cached_property
    def cap(self) -> int | None:
        """Tokens of every source at most; None: all that there are."""
        if self.config.cap_tokens == "equal":
            return min(MOST, *(source.n_tokens for source in self.sources), MOST)
        return None if self.config.cap_tokens == "none" else int(self.config.cap_tokens)

    @cached_property
    def rounds(self) -> list[Round]:
        """The draws, then the smaller caps of the first one, then its parts."""
        n, seed = self.config.draws, self.config.seed
        rounds = [Round(i, seed + i, self.cap, "draw", f"draw {i + 1} of {n}") for i in range(n)]
        largest = self.cap or max(source.n_tokens for source in self.sources)
        for power in range(1, self.config.sizes + 1):
            if cap := largest // SHRINK**power:
                rounds.append(Round(len(rounds), seed, cap, "curve", f"at {cap:,} tokens"))
        of = self.config.parts if len(self.sources) > 1 else 0
        for part in range(of):
            rounds.append(Round(len(rounds), seed, self.cap, "part", f"part {part + 1} of {of}", part, of))
        return rounds

    def of_kind(self, kind: Literal["draw", "curve", "part"]) -> list[Round]:
        """The rounds that are draws, points of the size curve, or parts."""
        return [each for each in self.rounds if each.kind == kind]

    def cells(self) -> Iterator[tuple[str, Round, int, int]]:
        """(measure, round, source, target), in the order they are made."""
        for each in self.rounds:
            for i in range(len(self.sources)):
                for name in self.config.measure:
                    for j in range(len(self.targets)):
                        yield name, each, i, j

    def path(self, name: str, each: Round, i: int, j: int) -> Path:
        return self.context.run.chunks / f"{name}-{each.number}-{i}-{j}.json"

    def sample(self, party: Party, cap: int | None, each: Round) -> Sample:
        """Sample that a round reads of a source or target."""
        return draw(
            party.corpora,
            name=party.name,
            cap=cap,
            seed=each.seed,
            tokens=self.config.tokens,
            lowercase=self.config.lowercase,
            report=self.context,
            part=(each.part, each.of) if each.kind == "part" else None,
        )


def grouped(corpora: Sequence[Corpus], together: Sequence[str]) -> list[list[Corpus]]:
    """Sources, those that count as one in one list, at the place of its first. Errors: ConfigError."""
    groups = [[int(place) - 1 for place in group.split("+")] for group in together]
    named = [place for group in groups for place in group]
    if len(named) != len(set(named)) or not all(0 <= place < len(corpora) for place in named):
        raise ConfigError(f"together: name each of the places 1 to {len(corpora)} of the sources once at most.")
    alone = [[place] for place in range(len(corpora)) if place not in named]
    return [[corpora[place] for place in group] for group in sorted([*groups, *alone], key=min)]


def parties(groups: Sequence[Sequence[Corpus]]) -> list[Party]:
    """Named as their corpora are, with a piece of the fingerprint where two would have one name."""
    names = [" + ".join(corpus.name for corpus in group) for group in groups]
    return [
        Party(name if names.count(name) == 1 else f"{name} ({group[0].fingerprint[:6]})", group)
        for name, group in zip(names, groups, strict=True)
    ]
