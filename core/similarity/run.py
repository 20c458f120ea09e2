"""`similarity`: how close every source is to every target by every measure, on equal samples, several draws.

home/runs/<run_id>/chunks/ppl-2-0-3.json    one comparison: measure, round, source, target; what is there is not redone
                          words-2.json      different tokens of all samples of a round
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from pydantic import TypeAdapter

from core.errors import CorpusError
from core.files import read_json, write_atomic
from core.kind import About, Job, Kind
from core.runs.context import RunContext
from core.runs.parts import Parts
from core.shown import count
from core.similarity.base import Measure, Sample
from core.similarity.measures import make_measure
from core.similarity.plan import Round, SimilarityConfig, Study
from core.similarity.result import SimilarityResult
from core.similarity.table import Cell, summarise


def run(config: SimilarityConfig, job: Job) -> SimilarityResult:
    """Nothing is kept but numbers."""
    study = Study(config, job)
    parts = _parts(study)
    for each in study.rounds:
        _measure(study, each, parts)
    reader = TypeAdapter(Cell)
    cells = {
        (name, each.number, i, j): reader.validate_json(study.path(name, each, i, j).read_bytes())
        for name, each, i, j in study.cells()
    }
    return summarise(study, cells)


def _parts(study: Study) -> Parts:
    """One for each round, source and measure, as large as the sample; measures differ, so one judges by a round."""
    sizes = [
        min(each.cap or party.n_tokens, party.n_tokens) // each.of for each in study.rounds for party in study.sources
    ]
    n = len(study.config.measure)
    return Parts(study.context, [size for size in sizes for _ in range(n)], judged=n * len(study.sources))


def _measure(study: Study, each: Round, parts: Parts) -> None:
    """Every comparison of a round that is not there yet: a source is learnt once, for all targets."""
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
                for j, cell in _compared(study.context, measure, source, wanted, aloud=each.kind == "draw"):
                    write_atomic(missing[j], json.dumps(asdict(cell), allow_nan=False).encode())


def _vocabulary_size(study: Study, each: Round, targets: Sequence[Sample]) -> int:
    """Different tokens of all samples of a round; 0 where no measure asks."""
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


def _compared(
    context: RunContext, measure: Measure, source: Sample, targets: Mapping[int, Sample], *, aloud: bool
) -> Iterator[tuple[int, Cell]]:
    """One cell a target; where a pair cannot be measured, the sentence that says why.

    aloud: notes are worth telling; that a small cap or part is small is not.
    """
    fit_report = PairReporter(context, source.name, aloud)
    learnt, problem = None, ""
    try:
        _some(source)
        learnt = measure.fit(source, fit_report)
    except CorpusError as error:
        problem = str(error)
    for j, target in targets.items():
        pair_report = PairReporter(context, f"{source.name} for {target.name}", aloud)
        comparison, why_not = None, problem
        try:
            _some(target)
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


def _some(sample: Sample) -> None:
    """Errors: CorpusError where a part of a short text holds no sentence."""
    if not sample.n_tokens:
        raise CorpusError(f"{sample.name}: has too few sentences for so many parts.")


class PairReporter:
    """A reporter for one comparison: passes everything on, notes under the name of what they are about."""

    def __init__(self, context: RunContext, about: str, aloud: bool) -> None:
        self._context, self._about, self._aloud = context, about, aloud
        self.stage, self.progress, self.metric, self.check = (
            context.stage,
            context.progress,
            context.metric,
            context.check,
        )
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        if self._aloud:
            self.notes.append(f"{self._about}: {text}")
            self._context.note(self.notes[-1])


def _title(run: About) -> str:
    return f"Compare {count(len(run.config['source']), 'source')} with {run.corpora(run.config['target'])}"


KIND = Kind(
    "similarity",
    SimilarityConfig,
    run,
    SimilarityResult,
    title=_title,
    outcome=lambda result, _: " ".join(result.recommendation.values()),
    page="Similarity",
    opens=True,
)
