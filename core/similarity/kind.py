"""`similarity`: measure how close every source is to every target, on several random samples of equal size.

home/runs/<run_id>/chunks/ppl-2-0-3.json    one comparison, named by measure, round, source and target; a resumed run
                                            keeps the files that exist
                          words-2.json      number of distinct tokens in all samples of round 2
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self, get_args

import numpy as np
from pydantic import TypeAdapter, field_validator

from core.config import option
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError
from core.files import read_json, write_atomic
from core.kind import Job, Kind
from core.runs.context import Parts, RunContext
from core.shown import count, listed
from core.similarity.agreement import agreement
from core.similarity.base import Measure, Sample, draw
from core.similarity.grid import FEWEST, Grid, Lead, leads, number
from core.similarity.measures import MEASURES, MeasureName, PplOptions, TvccOptions, make_measure, title
from core.similarity.parts_of_speech import settle
from core.similarity.result import CurvePoint, SimilarityResult, SimilarityRow, advise, grid_of
from core.similarity.wvv import WvvOptions
from core.text.words import Tokens

# Maximum number of tokens per source for the cap `equal`. With it, five sources and five targets take ten minutes.
MOST = 1_000_000
# Each point of the size curve has this many times fewer tokens than the point before.
SHRINK = 4
# Samples whose sizes differ by at most this factor count as equal.
TOLERANCE = 1.05


class SimilarityConfig(PplOptions, WvvOptions, TvccOptions):
    """Options of a `similarity` run: sources, targets, and how much text to compare."""

    target: tuple[str, ...] = option(..., "Task corpus (T_C); repeat for several.", corpus=True)
    source: tuple[str, ...] = option(..., "Candidate corpus to pre-train on; repeat for several.", corpus=True)
    together: tuple[str, ...] = option((), "Sources that count as one, by position: 1+2 joins the first two.")
    measure: tuple[MeasureName, ...] = option(get_args(MeasureName), "Measure to compute; repeat for several.")
    cap_tokens: str = option(
        "equal",
        f"Tokens drawn per source: a number, equal (the size of the smallest source, at most {MOST:,}) or none (all).",
    )
    min_source_tokens: int = option(
        10_000,
        "A source with fewer tokens is too small to compare. It is left out, so that more text of the others is used.",
        unit="tokens",
        ge=1,
    )
    target_tokens: int = option(
        100_000,
        "Maximum number of tokens drawn from every target; word vector variance (WVV) grows with this number.",
        unit="tokens",
        ge=1,
    )
    draws: int = option(3, "Number of samples drawn from every source; their spread is shown.", ge=1, le=20)
    sizes: int = option(
        2, f"Further points of the size curve, each with 1/{SHRINK} of the tokens of the point before.", ge=0, le=6
    )
    parts: int = option(
        8,
        "Number of parts into which the task corpus (T_C) and every source are cut to test leads against chance. "
        f"Leads are not tested with fewer than {FEWEST}.",
        ge=0,
        le=50,
    )
    tokens: Tokens = option("words", "words: split into words and punctuation marks; blanks: split at blanks only.")
    lowercase: bool = option(False, "Compare words in lower case.")
    seed: int = option(0, "Seed of the first sample; later samples take the next numbers.", ge=0, le=2**31)

    def settled(self) -> Self:
        """Return these options with the tagger `auto` replaced by the name of the installed tagger.

        Values of different taggers are not comparable.
        """
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
            raise ValueError("give positions joined by a plus, for example 1+2")
        return tuple(group.replace(" ", "") for group in groups)


@dataclass(frozen=True, slots=True)
class Party:
    """A source or a target. name: its name in the table. corpora: the corpora that it consists of."""

    name: str
    corpora: Sequence[Corpus]

    @property
    def n_tokens(self) -> int:
        return sum(corpus.n_tokens for corpus in self.corpora)


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a run, in which every source is compared with every target.

    cap: maximum number of tokens per source; None: all. kind: `draw` (a random sample), `curve` (the first sample with
    fewer tokens), or `part` (one part of the first sample and of the target, to test leads). part, of: index of this
    part, and number of parts.
    """

    number: int
    seed: int
    cap: int | None
    kind: Literal["draw", "curve", "part"]
    title: str
    part: int = 0
    of: int = 1


class Study:
    """The plan of a run: its sources and targets, its rounds and their comparisons."""

    def __init__(self, config: SimilarityConfig, job: Job) -> None:
        self.config, self.context = config, job.context
        self.targets = parties([[job.corpus(reference)] for reference in config.target])
        groups = parties(grouped([job.corpus(reference) for reference in config.source], config.together))
        self.sources = [party for party in groups if party.n_tokens >= config.min_source_tokens]
        self.too_small = [party for party in groups if party.n_tokens < config.min_source_tokens]
        if not self.sources:
            raise CorpusError(
                f"source: none has {config.min_source_tokens:,} tokens, the minimum of a comparison "
                f"({', '.join(f'{party.name}: {party.n_tokens:,}' for party in groups)}); give larger sources or "
                "lower min_source_tokens."
            )

    @cached_property
    def cap(self) -> int | None:
        """Maximum number of tokens per source; None: all."""
        if self.config.cap_tokens == "equal":
            return min(MOST, *(source.n_tokens for source in self.sources))
        return None if self.config.cap_tokens == "none" else int(self.config.cap_tokens)

    @cached_property
    def rounds(self) -> list[Round]:
        """Rounds in order: random samples, smaller samples for the size curve, parts of a sample to test leads."""
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
        """Return the rounds of this kind, in order."""
        return [each for each in self.rounds if each.kind == kind]

    def cells(self) -> Iterator[tuple[str, Round, int, int]]:
        """Yield (measure, round, source, target) in the order of measurement."""
        for each in self.rounds:
            for i in range(len(self.sources)):
                for name in self.config.measure:
                    for j in range(len(self.targets)):
                        yield name, each, i, j

    def path(self, name: str, each: Round, i: int, j: int) -> Path:
        return self.context.run.chunks / f"{name}-{each.number}-{i}-{j}.json"

    def sample(self, party: Party, cap: int | None, each: Round) -> Sample:
        """Draw the sample of a source or target for a round. cap: maximum number of tokens; None: all."""
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
    """Return groups of corpora; each group counts as one source, at the position of its first corpus.

    together: positions of the corpora of a group, from 1, such as "1+2". Errors: ConfigError for an invalid position.
    """
    groups = [[int(place) - 1 for place in group.split("+")] for group in together]
    named = [place for group in groups for place in group]
    if len(named) != len(set(named)) or not all(0 <= place < len(corpora) for place in named):
        raise ConfigError(f"together: name each of the positions 1 to {len(corpora)} of the sources at most once.")
    alone = [[place] for place in range(len(corpora)) if place not in named]
    return [[corpora[place] for place in group] for group in sorted([*groups, *alone], key=min)]


def parties(groups: Sequence[Sequence[Corpus]]) -> list[Party]:
    """Name each group of corpora after its corpora; add a part of the fingerprint if two names would be equal."""
    names = [" + ".join(corpus.name for corpus in group) for group in groups]
    return [
        Party(name if names.count(name) == 1 else f"{name} ({group[0].fingerprint[:6]})", group)
        for name, group in zip(names, groups, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Result of one comparison in one round. `SimilarityRow` is the mean over several rounds.

    whole: True if all text of the source was used. problem: why there is no value, or "".
    """

    source_tokens: int
    target_tokens: int
    whole: bool
    value: float | None
    convention: str
    columns: Mapping[str, float | None]
    problem: str
    notes: Sequence[str]


Cells = Mapping[tuple[str, int, int, int], Cell]  # {(measure, round, source, target): result of the comparison}


def run(config: SimilarityConfig, job: Job) -> SimilarityResult:
    """Compare all sources with all targets in every round, and return the summary. No text is stored."""
    study = Study(config, job)
    sizes = [
        min(each.cap or party.n_tokens, party.n_tokens) // each.of for each in study.rounds for party in study.sources
    ]
    n = len(config.measure)
    # Progress has one part per round, source and measure, weighted by sample size. The remaining time is estimated only
    # after a whole round, which has every source and measure once.
    parts = Parts(study.context, [size for size in sizes for _ in range(n)], judged=n * len(study.sources))
    for each in study.rounds:
        _measure(study, each, parts)
    reader = TypeAdapter(Cell)
    cells = {
        (name, each.number, i, j): reader.validate_json(study.path(name, each, i, j).read_bytes())
        for name, each, i, j in study.cells()
    }
    return summarise(study, cells)


def _measure(study: Study, each: Round, parts: Parts) -> None:
    """Make and store the comparisons of a round that do not exist yet. A source is fitted once for all targets."""
    if all(study.path(*cell).exists() for cell in study.cells() if cell[1] is each):
        return
    targets = [study.sample(target, study.config.target_tokens, each) for target in study.targets]
    size = _vocabulary_size(study, each, targets)
    options = study.config.model_dump()
    measures = {
        name: make_measure(name, options, seed=each.seed, vocabulary_size=size) for name in study.config.measure
    }
    for i, party in enumerate(study.sources):
        if all(study.path(*cell).exists() for cell in study.cells() if cell[1] is each and cell[2] == i):
            continue
        source = study.sample(party, each.cap, each)
        for k, (name, measure) in enumerate(measures.items()):
            missing = {j: path for j in range(len(targets)) if not (path := study.path(name, each, i, j)).exists()}
            if missing:
                at = (study.rounds.index(each) * len(study.sources) + i) * len(measures) + k
                parts.next(at, each.title)
                study.context.stage(f"{measure.term.word} of {party.name}, {each.title}")
                wanted = {j: targets[j] for j in missing}
                for j, cell in _compare(study.context, measure, source, wanted, aloud=each.kind == "draw"):
                    write_atomic(missing[j], json.dumps(asdict(cell), allow_nan=False).encode())


def _vocabulary_size(study: Study, each: Round, targets: Sequence[Sample]) -> int:
    """Return the number of distinct tokens in all samples of a round; 0 if perplexity, which needs it, is not used."""
    if "ppl" not in study.config.measure:
        return 0
    path = study.context.run.chunks / f"words-{each.number}.json"
    if not path.exists():
        words = {word for target in targets for sentence in target.sentences for word in sentence}
        for party in study.sources:
            for sentence in study.sample(party, each.cap, each).sentences:
                words.update(sentence)
        write_atomic(path, json.dumps(len(words)).encode())
    return int(read_json(path))


def _compare(
    context: RunContext, measure: Measure, source: Sample, targets: Mapping[int, Sample], *, aloud: bool
) -> Iterator[tuple[int, Cell]]:
    """Yield (index of the target, comparison with the source) for each target.

    If a pair cannot be measured, its comparison has no value and states the problem. aloud: False to drop all notes,
    because rounds with fewer tokens or on parts would always cause notes on size.
    """
    fit_report = PairReporter(context, source.name, aloud)
    learnt, problem = None, ""
    try:
        _check_tokens(source)
        learnt = measure.fit(source, fit_report)
    except CorpusError as error:
        problem = str(error)
    for j, target in targets.items():
        pair_report = PairReporter(context, f"{source.name} for {target.name}", aloud)
        comparison, why_not = None, problem
        try:
            _check_tokens(target)
            comparison = None if problem else measure.compare(learnt, target, pair_report)
        except CorpusError as error:
            why_not = str(error)
        yield (
            j,
            Cell(
                source_tokens=source.n_tokens,
                target_tokens=target.n_tokens,
                whole=source.whole,
                value=comparison.value if comparison else None,
                convention=comparison.convention if comparison else "",
                columns=comparison.columns if comparison else {},
                problem=why_not,
                notes=[*fit_report.notes, *pair_report.notes],
            ),
        )


def _check_tokens(sample: Sample) -> None:
    """Raise CorpusError if a sample has no token, which happens for a part of a very short text."""
    if not sample.n_tokens:
        raise CorpusError(f"{sample.name}: has too few sentences for so many parts; set fewer parts.")


class PairReporter:
    """Reporter of one comparison. It forwards all reports to the run, and puts the pair's name before each note."""

    def __init__(self, context: RunContext, about: str, aloud: bool) -> None:
        self._context, self._about, self._aloud = context, about, aloud
        self.stage, self.progress = context.stage, context.progress
        self.metric, self.check = context.metric, context.check
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if self._aloud:
            self.notes.append(f"{self._about}: {text}")
            self._context.note(self.notes[-1])


def summarise(study: Study, cells: Cells) -> SimilarityResult:
    """Return the result of a run: table, agreement of the measures, recommendations and warnings."""
    rows = [
        _row(study, name, i, j, cells)
        for j in range(len(study.targets))
        for i in range(len(study.sources))
        for name in study.config.measure
    ]
    grid = grid_of(rows)
    closest = {target: grid.closest(at) for at, target in enumerate(grid.targets)}
    ahead = {target: _leads(study, cells, grid, at) for at, target in enumerate(grid.targets)}
    return SimilarityResult(
        targets={party.name: [corpus.fingerprint for corpus in party.corpora] for party in study.targets},
        sources={party.name: [corpus.fingerprint for corpus in party.corpora] for party in study.sources},
        too_small={party.name: party.n_tokens for party in study.too_small},
        measurements=rows,
        curve=_curve(study, cells),
        agreement=agreement(grid),
        closest=closest if len(closest) > 1 else closest[grid.targets[0]],
        recommendation={target: advise(grid, at, ahead[target]) for at, target in enumerate(grid.targets)},
        leads=[lead for of_target in ahead.values() for lead in of_target],
        warnings=_warnings(study, rows),
        notes=list(dict.fromkeys(note for cell in cells.values() for note in cell.notes)),
        cap_tokens=study.cap,
        draws=study.config.draws,
        seed=study.config.seed,
    )


def _row(study: Study, name: str, i: int, j: int, cells: Cells) -> SimilarityRow:
    """Return a row of the table: the mean over the random samples, and how it was computed.

    name: measure. i, j: index of the source and of the target.
    """
    measure, config = MEASURES[name], study.config
    by_draw = [cells[name, each.number, i, j] for each in study.of_kind("draw")]
    measured = [cell for cell in by_draw if cell.value is not None]
    values = [cell.value for cell in by_draw if cell.value is not None]
    columns = measure.columns if measured else ()
    first = measured[0] if measured else by_draw[0]
    seeds = ", ".join(str(each.seed) for each in study.of_kind("draw"))
    how = f"{first.source_tokens:,} tokens of the source, {first.target_tokens:,} of the target, seed {seeds}"
    case = "lower case" if config.lowercase else "case kept"
    rule = "words and marks" if config.tokens == "words" else "tokens between blanks"
    return SimilarityRow(
        target=study.targets[j].name,
        source=study.sources[i].name,
        measure=name,
        value=float(np.mean(values)) if values else None,
        unit=measure.unit,
        prefer=measure.prefer,
        convention="; ".join([*filter(None, [first.convention]), how, f"{rule}, {case}"]),
        sample_tokens=first.source_tokens,
        target_tokens=first.target_tokens,
        draws=values,
        low=min(values, default=None),
        high=max(values, default=None),
        columns={key: _mean(cell.columns[key] for cell in measured) for key in columns},
        whole=first.whole,
        problem=next((cell.problem for cell in by_draw if cell.problem), ""),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _leads(study: Study, cells: Cells, grid: Grid, target: int) -> list[Lead]:
    """Test the leads of one target. grid: table with the sources and measures in the order of `study`."""
    sources, names = range(len(study.sources)), study.config.measure
    values = [
        [[cells[name, each.number, i, target].value for name in names] for i in sources]
        for each in study.of_kind("part")
    ]
    # numpy turns None into NaN.
    by_part = np.array(values, dtype=float).reshape(len(values), len(sources), len(names))
    return leads(grid, target, by_part)


def _curve(study: Study, cells: Cells) -> list[CurvePoint]:
    """Return the size curve: values for smaller and smaller parts of the first sample, the smallest first."""
    rounds = [*reversed(study.of_kind("curve")), study.rounds[0]]
    points = [(each, cell) for each in rounds if len(rounds) > 1 for cell in study.cells() if cell[1] is each]
    return [
        CurvePoint(
            target=study.targets[j].name,
            source=study.sources[i].name,
            measure=name,
            tokens=cells[name, each.number, i, j].source_tokens,
            value=cells[name, each.number, i, j].value,
        )
        for each, (name, _, i, j) in points
    ]


def _warnings(study: Study, rows: Sequence[SimilarityRow]) -> list[str]:
    sizes = {row.source: row.sample_tokens for row in rows}
    small, large = min(sizes, key=sizes.__getitem__), max(sizes, key=sizes.__getitem__)
    warnings = [
        f"{party.name} is too small to compare ({party.n_tokens:,} tokens, fewer than "
        f"{study.config.min_source_tokens:,}); it was left out."
        for party in study.too_small
    ]
    if sizes[large] > TOLERANCE * sizes[small]:
        warnings.append(
            f"The sources differ in size: {large} has {sizes[large]:,} tokens, {small} has {sizes[small]:,}. More text "
            "by itself lowers perplexity and covers more vocabulary, so give them the same cap before you compare."
        )
    whole = [row.source for row in rows if row.whole]
    if study.config.draws > 1 and whole and len(set(whole)) < len(sizes):
        names = listed(list(dict.fromkeys(whole)))
        # Even for these sources perplexity varies a little, because other sources' samples change the vocabulary.
        warnings.append(
            f"Every draw used the whole text of {names}, so the ranges do not show how other text would vary."
        )
    both = [s.name for s in study.sources if any(c in t.corpora for t in study.targets for c in s.corpora)]
    if both:
        contain, it = ("contains", "it") if len(both) == 1 else ("contain", "them")
        warnings.append(f"{listed(both)} {contain} text of a target, which makes {it} closer to that target.")
    derived = [party.name for party in study.sources if _derived_from(party, study.targets)]
    if derived:
        was, it_is = ("was", "it is") if len(derived) == 1 else ("were", "they are")
        warnings.append(f"{listed(derived)} {was} drawn from a target's own sentences, so {it_is} necessarily close.")
    for target in study.targets:
        warnings += _ppl_readings([row for row in rows if row.target == target.name and row.measure == "ppl"])
    problems = dict.fromkeys(f"{title(row.measure)}: {row.problem}" for row in rows if row.problem)
    return [*warnings, *problems]


def _derived_from(source: Party, targets: Sequence[Party]) -> bool:
    """Return True if the source contains a corpus that Winnow drew from one of the targets."""
    marks = {corpus.fingerprint for target in targets for corpus in target.corpora}
    return any(corpus.origin.get("from") in marks for corpus in source.corpora)


def _ppl_readings(rows: Sequence[SimilarityRow]) -> list[str]:
    """Return a warning if two forms of perplexity disagree on the closest source, else [].

    The forms are the mean over sentences, and the perplexity of the target as one text. rows: PPL rows of one target.
    """
    whole = {row.source: corpus for row in rows if (corpus := row.columns.get("corpus")) is not None}
    mean = {row.source: row.value for row in rows if row.source in whole and row.value is not None}
    if not whole or (first := min(mean, key=mean.__getitem__)) == (other := min(whole, key=whole.__getitem__)):
        return []
    return [
        f"Perplexity of {rows[0].target}: the mean over sentences is lowest for {first}, but the target as one text "
        f"has the lowest value for {other} ({number(whole[other])} against {number(whole[first])}). Short sentences of "
        "unknown words dominate the mean, so look at the other values too."
    ]


KIND = Kind(
    "similarity",
    SimilarityConfig,
    run,
    SimilarityResult,
    title=lambda run: f"Compare {count(len(run.config['source']), 'source')} with {run.corpora(run.config['target'])}",
    outcome=lambda result, _: " ".join(result.recommendation.values()),
    page="Similarity",
    opens=True,
)
