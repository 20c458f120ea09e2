"""F1 with and without ambiguous slots, counted by hand."""

from pathlib import Path
from typing import Any

from core.bias.robustness import frontier
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.runs.context import RunContext
from core.tagging import evaluations
from core.tagging.evaluations import FinetuneResult
from core.text.sentence import Entity, Prediction
from tests.conftest import sentence
from tests.finished import fine_tuned, finish

PER, LOC = "PER", "LOC"
KNOWN = [("Paris sues Ada .", [(0, 1, PER), (2, 3, PER)]), ("She lives in Paris .", [(3, 4, LOC)])]
ASKED = [("Paris pays Bob .", [(0, 1, LOC), (2, 3, PER)]), ("Ada left Oslo today .", [(0, 1, PER), (2, 3, LOC)])]
SAID = {  # by seed; of the second sentence both say Ada rightly, not Oslo, and today wrongly
    1: [[(0, 2, PER), (2, 3, PER)], [(0, 1, PER), (3, 4, PER)]],
    2: [[(0, 1, LOC), (2, 3, PER)], [(0, 1, PER), (3, 4, PER)]],
}


def sealed(home: Path, name: str, rows: list[Any]) -> Corpus:
    return Library(home).seal([sentence(*row) for row in rows], name=name, origin={}, labelled=True)


def test_without_ambiguous_slots_neither_they_nor_what_is_said_over_them_counts(home: Path) -> None:
    """Paris is a person and a place in training, so its slot is left out: 1 of 4, right or wrong. Right are 2 of 4
    said and 4 there are (seed 1), 3 of 4 and 4 (seed 2); without Paris 2 of 3 and 3 by either."""
    train, test = sealed(home, "train", KNOWN), sealed(home, "test", ASKED)

    def work(context: RunContext) -> FinetuneResult:
        for seed, said in SAID.items():
            entities = [tuple(Entity(start=a, end=b, type=kind) for a, b, kind in row) for row in said]
            found = [Prediction(entities=row, confidence=(1.0,) * len(row)) for row in entities]
            evaluations.write_predictions(context.run, evaluations.file_suffix("test", seed), found)
        return fine_tuned([50.0, 75.0])

    options = {"init": "tiny", "seeds": tuple(SAID), "train": train.fingerprint, "dev": train.fingerprint}
    run = finish(home, "finetune", {**options, "test": (test.fingerprint,)}, work)
    (row,) = frontier([run], Library(home))
    assert (row.mentions, row.ambiguous) == (4, 1)
    assert row.micro_f1 == [50.0, 75.0]
    assert row.certain_f1 == [200 / 3, 200 / 3]
    assert (row.mean, row.certain_mean, row.certain_sd) == (62.5, 200 / 3, 0.0)
