"""What finished taggers did on their test sentences, read from a `finetune` run's files into small tables.

"Run" here is always a finished `finetune` run; the test set is the first of its `test` corpora.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import mean
from typing import Any

from core.corpora.corpus import Library
from core.errors import CorpusError
from core.results import Evaluation, percent_f1
from core.runs.store import Run
from core.text.sentence import Entity, Sentence

Row = dict[str, Any]
FAILED = 0.5  # of the best seed's F1; a tagger below it did not learn (Dodge et al. 2020)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A test sentence as it is labelled and as two taggers read it."""

    sentence: Sentence
    a: tuple[Entity, ...]
    b: tuple[Entity, ...]

    @property
    def differs(self) -> bool:
        """Whether A and B disagree."""
        return set(self.a) != set(self.b)


def evaluations(run: Run) -> list[Evaluation]:
    """One a seed. Errors: CorpusError where the run tested nothing or its files are gone."""
    paths = [run.artifacts / f"evaluation-test-{seed}.npz" for seed in run.manifest.config["seeds"]]
    if not all(path.exists() for path in paths):
        raise CorpusError(f"run {run.id}: has no scores of a test set; fine-tune again with a test corpus.")
    return [Evaluation.load(path) for path in paths]


def predictions(run: Run, seed: int, index: int = 0) -> list[tuple[Entity, ...]]:
    """What the tagger of `seed` found, sentence by sentence of test `index`. Errors: CorpusError as `evaluations`."""
    path = run.artifacts / f"predictions-test{index or ''}-{seed}.jsonl"
    if not path.exists():
        raise CorpusError(f"run {run.id}: has no predictions under seed {seed}; fine-tune again with a test corpus.")
    with path.open(encoding="utf-8") as file:
        return [
            tuple(Entity(start=start, end=end, type=kind) for start, end, kind in json.loads(line)["entities"])
            for line in file
        ]


def by_type(a: Run, b: Run) -> list[Row]:
    """Table 4 of S0: `type, mentions, a, b, difference`, F1 in percent averaged over seeds, frequent types first."""
    ours, theirs = evaluations(a), evaluations(b)
    gold = dict(zip(ours[0].types, ours[0].gold.sum(axis=0).tolist(), strict=True))
    types = sorted(
        {name for one in (*ours, *theirs) for name in one.types}, key=lambda name: (-gold.get(name, 0), name)
    )

    def f1(arm: Sequence[Evaluation], name: str) -> float:
        return mean(one.by_type().get(name, 0.0) for one in arm)

    return [
        {"type": name, "mentions": gold.get(name, 0), "a": (x := f1(ours, name)), "b": (y := f1(theirs, name)),
         "difference": x - y}
        for name in types
    ]  # fmt: skip


def by_novelty(run: Run, library: Library) -> list[Row]:
    """`surfaces` (seen, unseen), `mentions`, `f1` averaged over seeds: spans by whether train has the same words, in
    any case, as an entity of any type (SPEC C5). Errors: CorpusError where a corpus or a file is gone."""
    known = {_surface(s, e) for s in _all(library, run.manifest.config["train"]) for e in s.entities or ()}
    gold = _tested_on(run, library)
    found = [predictions(run, seed) for seed in run.manifest.config["seeds"]]

    def row(name: str, wanted: Callable[[Sentence, Entity], bool]) -> Row:
        truth = [{e for e in s.entities or () if wanted(s, e)} for s in gold]
        scores = []
        for arm in found:
            guess = [{e for e in entities if wanted(s, e)} for s, entities in zip(gold, arm, strict=True)]
            right = sum(len(t & g) for t, g in zip(truth, guess, strict=True))
            scores.append(percent_f1(right, sum(map(len, guess)), sum(map(len, truth))))
        return {"surfaces": name, "mentions": sum(map(len, truth)), "f1": mean(scores)}

    return [
        row("seen", lambda sentence, entity: _surface(sentence, entity) in known),
        row("unseen", lambda sentence, entity: _surface(sentence, entity) not in known),
    ]


def side_by_side(a: Run, seed_a: int, b: Run, seed_b: int, library: Library) -> list[Beside]:
    """Every test sentence, in the corpus's order. Errors: CorpusError where the two were tested on different ones."""
    if _tests(a) != _tests(b):
        raise CorpusError(f"{a.id} and {b.id}: were tested on different corpora; compare runs of one test set.")
    read = zip(_tested_on(a, library), predictions(a, seed_a), predictions(b, seed_b), strict=True)
    return [Beside(sentence=sentence, a=ours, b=theirs) for sentence, ours, theirs in read]


def _tests(run: Run) -> str:
    tests = run.manifest.config["test"]
    return str(tests[0]) if tests else ""


def _tested_on(run: Run, library: Library) -> list[Sentence]:
    return list(_all(library, _tests(run)))


def _all(library: Library, reference: str) -> Iterable[Sentence]:
    return chain.from_iterable(library.find(reference).batches())


def _surface(sentence: Sentence, entity: Entity) -> str:
    return " ".join(sentence.tokens[max(entity.start, 0) : entity.end]).lower()


def failed_seeds(run: Run) -> list[int]:
    """Seeds whose tagger did not learn: under half the test F1 of the best one (SPEC C7). No mean leaves them out."""
    scores = run.result()["test"].get("micro_f1", [])
    return [seed for seed, f1 in zip(run.manifest.config["seeds"], scores, strict=False) if f1 < FAILED * max(scores)]


def config_differences(a: Run, b: Run) -> list[Row]:
    """`option, a, b` for every option in which two runs differ; corpora by fingerprint."""
    ours, theirs = a.manifest.config, b.manifest.config
    return [
        {"option": name, "a": ours.get(name), "b": theirs.get(name)}
        for name in dict.fromkeys((*ours, *theirs))
        if name != "weights" and ours.get(name) != theirs.get(name)
    ]


def missing(run: Run, library: Library) -> list[str]:
    """What a run was made from or has made that is no longer here, in words; it cannot be made again as it was."""
    gone = []
    for role, fingerprint in run.manifest.inputs.items():
        try:
            library.find(fingerprint)
        except CorpusError:
            gone.append(f"the corpus of {role.partition('.')[0]} ({fingerprint[:8]})")
    if run.manifest.kind == "finetune" and not (run.artifacts / "model" / "config.json").exists():
        gone.append("its model")
    return gone
