"""Multipliers: random text at three sizes, nested labels drawn anew by replicate, and what they come to in words."""

import json
from collections import Counter
from dataclasses import replace
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.artifacts import evaluations
from core.artifacts.evaluations import FinetuneResult
from core.artifacts.multipliers import Multipliers
from core.artifacts.result import read
from core.artifacts.scores import SelectResult
from core.errors import ConfigError
from core.facade import deliver, experiments, reports, results, runs
from core.recipes.base import Job
from core.recipes.experiment import multipliers as asked_for
from core.recipes.experiment.config import ExperimentConfig
from core.recipes.finetune import FinetuneConfig
from core.results import Evaluation
from core.runs.store import Run, RunStore, is_run_id
from core.stats.multipliers import Worth
from core.stats.verdict import Answer
from core.text.sentence import Prediction
from tests.finished import ARM_ROW, fine_tuned, pretrained
from tests.homes import Homes
from tests.pages.test_pages import opened, texts
from tests.recipes.test_experiment import OPTIONS, fill
from tests.untrained import without_training

ASKED = OPTIONS | {
    "repeat": "pipeline",
    "arms": ("none", "ngram-perplexity"),
    "budgets": ("8",),
    "seeds": (1, 2, 3, 4),
    "multipliers": True,
}
POINTS = 6.0  # of F1, that twice the text brings, or twice the labels


def tuned(config: FinetuneConfig, job: Job) -> FinetuneResult:
    """Stand in for a training: selection is worth twice the text, and reading at all four times the labels."""
    (seed,), f1 = config.seeds, 60 + POINTS * np.log2(len(job.corpus(config.train)) / 24)
    if is_run_id(config.init):
        chosen = job.corpus(RunStore(job.home).get(config.init).manifest.config["corpora"][-1])
        f1 += POINTS * (np.log2(chosen.n_tokens / 100) + ("ngram" in chosen.name))
    else:
        f1 -= POINTS
    gold = np.full((len(job.corpus(config.test[0])), 1), 500, dtype=np.int32)
    luck, none = np.random.default_rng([seed, round(1000 * f1)]), Prediction(entities=(), confidence=())
    scores = {}
    for split in ("dev", "test"):
        right = luck.binomial(500, f1 / 100, size=gold.shape).astype(np.int32)
        table = Evaluation(types=("PARTY",), tp=right, predicted=gold, gold=gold)
        evaluations.write(job.context.run, evaluations.file_suffix(split, seed), table, [none] * len(gold))
        scores[split] = (table.f1(),)
    return fine_tuned(scores["test"], dev=scores["dev"])


def multiplied(home: Path) -> dict[str, str]:
    """Finish an experiment in which nothing is trained."""
    fill(home)
    with without_training(pretrain=lambda config, job: pretrained(), finetune=tuned):
        return {"experiment": runs.execute("experiment", ASKED).id}


@pytest.fixture
def finished(homes: Homes, home: Path) -> Run:
    return runs.get(homes.copy(multiplied, home)["experiment"])


def test_random_reads_two_and_four_times_the_tokens_of_the_selection(finished: Run) -> None:
    board = results.board(finished.id)
    rows = {(row.arm, row.budget): row for row in board.leaderboard}
    assert set(rows) == {("none", ""), ("ngram-perplexity", "8"), *(("random", n) for n in ("8", "16", "32"))}
    assert {rows["random", n].verdict for n in ("8", "16", "32")} == {"control"}
    read_by = {named: row.select_run for named, row in rows.items() if row.select_run}
    tokens = {named: read(runs.get(run), SelectResult).tokens for named, run in read_by.items()}
    for times, budget in ((1, "8"), (2, "16"), (4, "32")):
        most = times * tokens["ngram-perplexity", "8"]
        assert 0.8 * most < tokens["random", budget] <= most
    # Each replicate draws its own nested labels, which all arms share.
    draws = Counter((point.arm, point.budget, point.train_sentences, point.draw) for point in board.curve)
    arms = (("none", ""), ("random", "8"), ("ngram-perplexity", "8"))
    assert draws == Counter((arm, budget, n, draw) for arm, budget in arms for n in (6, 12) for draw in range(4))
    trained = {(p.train_sentences, p.draw, runs.get(p.finetune_run).manifest.config["train"]) for p in board.curve}
    assert len(trained) == len({train for _, _, train in trained}) == 8
    assert {len(point.micro_f1) for point in board.curve} == {1}


def test_what_it_is_worth_is_on_page_report_table_and_in_json(finished: Run) -> None:
    told = results.board(finished.id).multipliers
    assert told is not None
    assert told.text is not None
    assert told.labels is not None
    assert told.labels_none is not None
    assert (told.labels.size, told.labels.most, told.labels.replicates) == (6, 4, 4)
    assert told.text.hi is not None
    assert told.text.hi < 3.5
    times = [told.text.most, told.text.times, told.labels.times, told.labels_none.times]
    assert times == pytest.approx([4, 2, 2, 4], rel=0.2)
    assert json.loads(json.dumps(finished.result()))["multipliers"]["text"]["replicates"] == 4
    assert told.words in deliver.board_markdown(finished.id)
    assert told.words in unescape(reports.report(finished.id).decode())
    assert told.words in unescape(texts(opened("pages/6_Results.py")))


def test_a_plan_says_what_it_costs_and_counts_what_is_finished(finished: Run) -> None:
    assert experiments.cost(ASKED).seconds == 0
    longer = ASKED | {"seeds": (1, 2, 3, 4, 5)}
    left = Counter((step.kind, step.line) for step in experiments.cost(longer).steps if not step.finished)
    assert left["pretrain", "random 32"] == left["finetune", "random 32"] == 1
    assert left["finetune", "none"] == left["finetune", "random 8"] == left["finetune", "ngram-perplexity 8"] == 3
    plain = experiments.cost(longer | {"multipliers": False})
    assert 0 < plain.seconds < experiments.cost(longer).seconds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"repeat": "tagger"}, "give repeat pipeline and two seeds"),
        ({"seeds": (1,)}, "give repeat pipeline and two seeds"),
        ({"arms": ("none", "tapt")}, "name a strategy as the claim"),
        ({"budgets": ("30%",)}, "give a budget of 25% at most"),
    ],
)
def test_what_cannot_tell_it_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ExperimentConfig.parse({**ASKED, **options})


@pytest.mark.parametrize(
    ("helped", "chose", "surely"),
    [
        ("yes", "yes", (True, True, True)),
        ("yes", "no evidence", (False, False, True)),
        ("no evidence", "no evidence", (False, False, False)),
        ("no evidence", "yes", (True, True, False)),
    ],
)
def test_none_of_it_is_surer_than_the_claim(
    helped: Answer, chose: Answer, surely: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = ExperimentConfig.parse(ASKED)
    lines: Any = [SimpleNamespace(cell=cell) for cell in config.cells]
    for name, value in (("worth", ONE), ("_tested", []), ("_tokens", 1.0)):
        monkeypatch.setattr(asked_for, name, lambda *_, value=value: value)
    assert config.claimed
    row = replace(ARM_ROW, arm=config.claimed.arm.name, budget="8", helped=helped, chose=chose)
    worths = asked_for.multipliers(config, lines, [row], (6, 12, 24))
    assert worths
    assert tuple(one and one.lo == ONE.lo for one in (worths.text, worths.labels, worths.labels_none)) == surely
    assert ("(95% interval 8 to 55)" in worths.words.partition("Reading and")[0]) == surely[1]


ONE = Worth(size=25, times=2.1, lo=1.3, hi=3.2, most=4, replicates=6)


OPEN, ALL, NONE = (
    replace(ONE, lo=None, hi=None),
    replace(ONE, lo=4, hi=None, times=4),
    replace(ONE, lo=None, hi=1, times=1),
)


@pytest.mark.parametrize(
    ("text", "labels", "words"),
    [
        (
            ONE,
            ONE,
            "reading about 2.1 times as much at random (95% interval 1.3 to 3.2), and 28 more labelled sentences ",
        ),
        (replace(ONE, lo=None), None, "(95% interval less than 1 to 3.2)."),
        (replace(ONE, hi=None), replace(ONE, hi=None), "(95% interval 8 to more than 75)"),
        (OPEN, None, "an amount of random text that 6 replicates cannot tell"),
        (ALL, None, "more than 4 times as much at random (beyond what was run)"),
        (NONE, None, "less than 1 times as much random text: it did not help"),
        (replace(ONE, lo=None, times=1), None, "reading less than 1 times as much at random (95%"),
        (None, NONE, "worth no more labelled sentences than 25 (less than 0)"),
        (None, ALL, "more than 75 more labelled sentences than 25 (beyond what was run)"),
        (None, OPEN, "a number of more labelled sentences than 25 that 6 replicates cannot"),
        (None, None, "was not measured: it takes two replicates"),
    ],
)
def test_the_words(text: Worth | None, labels: Worth | None, words: str) -> None:
    assert words in Multipliers(arm="knn", budget="10%", text=text, labels=labels, labels_none=None).words
