"""The outcome of a run in one sentence, for every kind of run, and the steps that its events name."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from core.assisting.skl import SklResult
from core.bias.result import DifficultyResult, RebuildResult, RobustnessResult
from core.dictionary.dictionary import DictionaryResult
from core.encoders.fetch import FetchResult
from core.encoders.rank import RankResult
from core.encoders.vectors import EmbedResult, ImportResult
from core.experiment.result import ExperimentResult, StudyResult
from core.explore.result import MapResult
from core.importing.result import AddResult, AuditResult, IntakeResult, Part, SplitResult, Taken
from core.kind import as_json
from core.kinds import KINDS
from core.labelling.queue import QueueResult
from core.labelling.review import ReviewResult
from core.llm.llm import LlmResult
from core.projects import runs as facade_runs
from core.projects.titles import outcome
from core.runs.result import read
from core.runs.run import Run
from core.runs.store import RunStore
from core.runs.worker import execute
from core.selection import view as selections
from core.selection.prevalence import PrevalenceResult
from core.selection.result import ScoreResult, SelectResult
from core.similarity.result import SimilarityResult
from core.tagging.evaluations import EvaluateResult, FinetuneResult, OverSeeds
from core.tagging.predictions import PredictResult, TagResult
from core.training.saved_models import PretrainResult
from core.zero_shot.zero_shot import ZeroShotResult
from pages.ui.runs.links import PAGES
from tests.browser.prepared_home import prepare
from tests.finished import COMPARED, TIMED, corpora, fine_tuned, pretrained, study
from tests.homes import project_in
from tests.pages.test_ranking import RANK

WITHIN = {"cascade", "embed", "halves", "score", "vectors"}  # kinds that only other runs start; no list shows them
IN_PARTS = {
    "assist",
    "difficulty",
    "experiment",
    "finetune",
    "halves",
    "intake",
    "map",
    "rank",
    "split",
    "select",
    "similarity",
    "skl",
    "study",
}
LAID_BY_HAND = ("difficulty", "experiment", "finetune", "study")
LAID = {  # outcomes of real runs
    "audit": r"205 sentences checked: \d+ exact duplicate",
    "select": r"Selection: 40 of 205 sentences, \d+ tokens",
    "map": r"150 sentences laid out|245 sentences laid out",
    "similarity": r"orchard is closest to fruit",
    "difficulty": r"Information about the type: names \d\.\d\d bits, contexts -?\d\.\d\d \(mean of \d+ mentions\)",
    "rebuild": r"\d+ mentions? changed",
    "robustness": r"\d+ of \d+ mentions renamed",
    "skl": r"\d+ of \d+ shared entities drift \(SKL above 1\)",
    "finetune": r"Score \(F1\) \d+\.\d ± \d+\.\d over 3 seeds on my test",
    "experiment": r"^(Helped|No|No clear benefit)\b.*The difference to .*Next: ",
    "add": r"3 sentences, \d+ tokens",
    "study": r"Helped: the selection improves the tagger on these 3 tasks on average.*on these tasks is \+1\.0 points of 100",
}
SPLIT = (("train", 70), ("test", 1030))
MADE: Mapping[str, tuple[object, str]] = {  # results written by hand, because a real one needs a model
    "pretrain": (
        pretrained(before=1234.56, after=78.9),
        "Pseudo-perplexity of held-out text: 1,234.6 before, 78.9 after",
    ),
    "split": (
        SplitResult(
            parts=[Part(name=n, corpus="c", sentences=s, tokens=s, units=s, left_out=0, types={}) for n, s in SPLIT],
            units=100,
            copies=0,
            divided=0,
        ),
        "train 70, test 1,030 sentences",
    ),
    "intake": (
        IntakeResult(
            parts=[
                Taken(part="task", files=2, run="r"),
                Taken(part="domain", files=1, run="", problem="cannot be read"),
                Taken(part="source", files=1, run="s"),
                Taken(part="source", files=1, run="t"),
            ],
            roles=["task"],
            task_of_train=False,
        ),
        "3 of 4 corpora imported: task corpus, 2 further sources",
    ),
    "tag": (TagResult(entities=1200, sentences=3400, types=["LOC"]), "1,200 entities in 3,400 sentences"),
    "predict": (PredictResult(entities=1, sentences=2, types={"LOC": 1}), "1 entity in 2 sentences"),
    "queue": (
        QueueResult(sentences=25, of=1200, unit="cosine", types=()),
        "25 sentences to label, from the 1,200 most similar",
    ),
    "draw": (QueueResult(sentences=120, of=900, unit="", types=()), "120 sentences to label, drawn at random"),
    "review": (
        ReviewResult(sentences=50, of=1200, suspicious=61, reasons={"copies": 4}),
        "61 sentences of 1,200 with a suspicious label",
    ),
    "dictionary": (
        DictionaryResult(
            names=1200,
            ambiguous=3,
            common=0,
            tests=[OverSeeds(micro_f1=[70.04], mean=70.04, sd=None, by_type={}, decodings={})],
            seconds=1.0,
        ),
        "Score (F1) 70.0 with a dictionary of 1,200 names, without training",
    ),
    "llm": (
        LlmResult(
            sentences=1200,
            unanswered={"HTTP 500": 2, "no JSON list": 1},
            quotes=900,
            dropped={"overlapping": 1},
            tests=[OverSeeds(micro_f1=[61.26], mean=61.26, sd=None, by_type={}, decodings={})],
            seconds=1.0,
        ),
        "Score (F1) 61.3 with a language model, without training, 3 of 1,200 sentences without an answer",
    ),
    "evaluate": (
        EvaluateResult(
            model="m", test=OverSeeds(micro_f1=[71.25, 71.35], mean=71.3, sd=None, by_type={}, decodings={})
        ),
        "Score (F1) 71.3",
    ),
    "zero-shot": (
        ZeroShotResult(
            types={"PER": "person"},
            dropped=["MISC"],
            unknown=[],
            thresholds={"person": 0.5},
            chosen=[],
            tests=[OverSeeds(micro_f1=[54.04], mean=54.04, sd=None, by_type={}, decodings={})],
            seconds=1.0,
        ),
        "Score (F1) 54.0 with a ready model, without training",
    ),
    "vectors-import": (
        ImportResult(name="glove", words=200_000, dimension=100, again=0, unusable=3, whole=False),
        "200,000 words of 100 numbers (the first in the file)",
    ),
    "fetch": (FetchResult(encoder="mpnet", folder="/home/mpnet"), "The encoder mpnet is on this machine"),
    "prevalence": (
        PrevalenceResult(low=800, high=1090, about=950, task=500, domain=9000, quantiles=[]),
        "About 950 sentences of the domain corpus are like the task corpus (800 to 1,090)",
    ),
    "which-strategy": (
        COMPARED,
        "knn finds 71% of the hidden sentences, classifier (the default) 60%",
    ),
    "rank": (
        RankResult(train=1, dev=1, words=1, encoders=[RANK]),
        "tiny fits best: a linear probe on the mean of its layers reaches F1 31.2",
    ),
    "calibrate": (
        replace(TIMED, mlm=(0.1, 0.0005)),
        "A processor: about 2,000 pieces per second in pre-training",
    ),
}


KEPT: Mapping[str, type[object]] = {
    "add": AddResult,
    "audit": AuditResult,
    "difficulty": DifficultyResult,
    "embed": EmbedResult,
    "experiment": ExperimentResult,
    "finetune": FinetuneResult,
    "map": MapResult,
    "pretrain": PretrainResult,
    "rebuild": RebuildResult,
    "robustness": RobustnessResult,
    "score": ScoreResult,
    "select": SelectResult,
    "similarity": SimilarityResult,
    "skl": SklResult,
    "study": StudyResult,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Return {kind: a finished run}."""
    home = project_in(tmp_path_factory.mktemp("came-out"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINNOW_HOME", str(home))
        prepare(home)
        file = home / "deeds.txt"
        file.write_text("The first deed is signed .\nThe second deed is not .\nA third follows .\n")
        facade_runs.execute("add", {"path": str(file), "name": "deeds"})
        study(home, (0.8, 1.0, 1.2))
        return {run.manifest.kind: run for run in facade_runs.listed()}


def test_every_listed_kind_of_run_has_an_outcome() -> None:
    shown = {name for name, kind in KINDS.items() if kind.outcome and kind.title and kind.page in PAGES}
    assert shown | WITHIN == set(KINDS)
    assert {*LAID, *MADE, "assist"} == shown  # assist: tests/pages/test_assisting.py, on real trainings


@pytest.mark.parametrize("kind", sorted(LAID))
def test_outcome_of_a_real_run(kind: str, runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_HOME", str(runs[kind].path.parents[1]))
    assert re.search(LAID[kind], outcome(runs[kind])), outcome(runs[kind])


@pytest.mark.parametrize("kind", sorted(MADE))
def test_outcome_of_a_result_written_by_hand(kind: str, home: Path) -> None:
    result, line = MADE[kind]
    run = RunStore(home).create(kind, {"of": "the test"}, {}, seed=None, versions={}, key="k")
    execute(run, lambda context: as_json(result))
    assert outcome(run) == line


@pytest.mark.parametrize("kind", sorted(KEPT))
def test_result_is_read_without_loss(kind: str, runs: dict[str, Run]) -> None:
    result = read(runs[kind], KEPT[kind])
    assert json.loads(json.dumps(as_json(result))) == runs[kind].result()


def test_score_of_a_single_tagger_says_that_it_is_one_seed(home: Path) -> None:
    test = corpora(home)["test"]
    run = RunStore(home).create("finetune", {"test": [test.fingerprint]}, {}, seed=None, versions={}, key="k")
    execute(run, lambda context: as_json(fine_tuned((82.84,), dev=(82.9,))))
    assert outcome(run) == f"Score (F1) 82.8 on {test.name}, one seed"


def test_outcome_of_a_selection_follows_its_budget_and_hand_edits(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    select = runs["select"]
    monkeypatch.setenv("WINNOW_HOME", str(select.path.parents[1]))
    selections.keep_budget(select.id, "10.1%")
    now = selections.chosen(select.id)
    tokens = int(selections.scored(select.id).lengths[now.rows].sum())
    assert outcome(select) == f"Selection: 21 of 205 sentences, {tokens} tokens"
    selections.edit(select.id, "remove", now.rows[:3])
    assert "Selection: 18 of 205" in outcome(select)
    selections.undo(select.id)
    assert "Selection: 21 of 205" in outcome(select)
    selections.keep_budget(select.id, select.manifest.config["budget"])
    assert "Selection: 40 of 205" in outcome(select)


def test_unreadable_result_has_no_outcome_and_a_bug_in_an_outcome_is_raised(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunStore(home).create("tag", {"of": "the test"}, {}, seed=None, versions={}, key="k")
    execute(run, lambda context: {"entities": 3})
    assert outcome(run) == ""
    execute(
        run := RunStore(home).create("tag", {}, {}, seed=None, versions={}, key="k2"),
        lambda context: as_json(MADE["tag"][0]),
    )
    wrong = replace(KINDS["tag"], outcome=lambda result, about: dict[str, str]()["a name that was changed"])
    monkeypatch.setitem(KINDS, "tag", wrong)
    with pytest.raises(KeyError):
        outcome(run)


def test_runs_of_several_steps_store_the_current_step(runs: dict[str, Run]) -> None:
    real = {kind: run for kind, run in runs.items() if kind not in LAID_BY_HAND}
    with_parts = {kind for kind, run in real.items() if b'"kind": "part"' in run.events_file.read_bytes()}
    assert with_parts == IN_PARTS & set(real)
