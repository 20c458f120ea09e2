"""Runs of `similarity`: caps, draws, leads, warnings, poor text, resuming, and the commands."""

import csv
import json
import signal
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.corpora.library import Library
from core.errors import Cancelled, ConfigError, CorpusError
from core.projects import removals, runs
from core.runs.context import RunContext
from core.runs.run import Run
from core.similarity import view as similarity
from core.similarity.kind import SimilarityConfig, grouped
from core.similarity.measures import MEASURES
from core.similarity.result import closest_first, grid_of
from core.similarity.worth import Trained, own_outcomes
from tests.conftest import Command, Seal, sentence
from tests.homes import executed
from tests.planted import contracts, kitchen
from tests.similarity.test_measures import FRUIT, METAL, chained, shuffled

ROOT = Path(__file__).resolve().parents[2]
QUICK: dict[str, Any] = {
    "draws": 2,
    "sizes": 0,
    "parts": 0,
    "tagger": "built-in",
    "skipgram_epochs": 1,
    "min_source_tokens": 1,
}


def texts(sentences: list[list[str]]) -> list[str]:
    return [" ".join(words) for words in sentences]


@pytest.fixture
def piles(seal: Seal) -> dict[str, str]:
    """Seal two targets, each with a similar source."""
    made = {
        "fruit-task": seal(texts(chained(FRUIT, 60, 1)), "fruit-task"),
        "metal-task": seal(texts(chained(METAL, 60, 2)), "metal-task"),
        "fruit": seal(texts(chained(FRUIT, 400, 3)), "fruit"),
        "metal": seal(texts(chained([*METAL, *shuffled(FRUIT[:20], 4)], 300, 5)), "metal"),
    }
    return {name: corpus.fingerprint for name, corpus in made.items()}


def made(piles: dict[str, str], **options: Any) -> Run:
    corpora = {"target": (piles["fruit-task"],), "source": (piles["fruit"], piles["metal"])}
    return executed("similarity", {**corpora, **QUICK, **options})


def compared(piles: dict[str, str], **options: Any) -> dict[str, Any]:
    return made(piles, **options).result()


def rows(result: dict[str, Any], **wanted: str) -> list[dict[str, Any]]:
    return [row for row in result["measurements"] if all(row[key] == value for key, value in wanted.items())]


def test_sources_are_sorted_by_closeness_per_target(piles: dict[str, str]) -> None:
    """Sources are sorted by mean rank over all measures; a source without a value comes last."""
    targets, sources = (piles["fruit-task"], piles["metal-task"]), (piles["metal"], piles["fruit"])
    found = compared(piles, source=sources, target=targets, measure=("ppl", "tvc"))
    assert found["closest"] == {
        "fruit-task": {"ppl": "fruit", "tvc": "fruit"},
        "metal-task": {"ppl": "metal", "tvc": "metal"},
    }
    assert (found["agreement"]["items"], found["agreement"]["unanimous"]) == (2, 2)
    assert found["recommendation"]["metal-task"].startswith("metal is closest to metal-task by 2 of 2 measures")
    assert len(found["measurements"]) == 2 * 2 * 2
    run_id = runs.listed("similarity")[0].id
    for target, order in (("fruit-task", ["fruit", "metal"]), ("metal-task", ["metal", "fruit"])):
        assert list(dict.fromkeys(row.source for row in similarity.rows(run_id, target))) == order
    measured = similarity.rows(run_id, "fruit-task")
    missing = [replace(row, value=None, low=None, high=None) if row.source == "fruit" else row for row in measured]
    assert closest_first(missing)[0].source == "metal"


def test_sources_share_a_cap_and_the_size_curve_nests_in_the_first_draw(piles: dict[str, str]) -> None:
    found = compared(piles, measure=("tvc",), sizes=2)
    assert found["cap_tokens"] == 3000  # the smaller source has 3,000
    assert {row["sample_tokens"] for row in found["measurements"]} == {3000}
    assert not [warning for warning in found["warnings"] if "differ in size" in warning]
    assert any(warning.startswith("Every draw used the whole text of metal") for warning in found["warnings"])
    mine = [point for point in found["curve"] if point["source"] == "fruit"]
    assert [point["tokens"] for point in mine] == [180, 750, 3000]
    assert mine[-1]["value"] == rows(found, source="fruit")[0]["draws"][0]
    assert mine[0]["value"] <= mine[1]["value"] <= mine[2]["value"]  # TVC of nested samples can only grow
    first, other = (
        rows(compared(piles, measure=("ppl",), cap_tokens="1000", seed=seed), source="fruit")[0]["draws"]
        for seed in (3, 4)
    )
    assert len(set(first)) == 2
    assert first[1] == pytest.approx(other[0])  # draw i has seed + i


def test_leads_are_tested_on_parts_of_target_and_sources(piles: dict[str, str]) -> None:
    run = made(piles, measure=("ppl", "tvc"), draws=1, parts=4)
    found = run.result()
    leads = [(lead["measure"], lead["first"], lead["parts"], lead["holds"]) for lead in found["leads"]]
    assert leads == [("ppl", "fruit", 4, True), ("tvc", "fruit", 4, True)]
    words = "every lead is beyond chance, also on other text of fruit-task and of the sources (95%, 4 parts of each)."
    assert found["recommendation"]["fruit-task"].endswith(words)
    assert similarity.recommendation(run.id, "fruit-task") == found["recommendation"]["fruit-task"]
    assert {len(row["draws"]) for row in found["measurements"]} == {1}  # parts are not counted as draws
    assert {row["sample_tokens"] for row in found["measurements"]} == {3000}
    unjudged = compared(piles, measure=("ppl", "tvc"), draws=1)
    assert unjudged["measurements"] == found["measurements"]
    assert "the leads were not tested against chance." in unjudged["recommendation"]["fruit-task"]


def test_lead_that_may_be_chance_is_reported_as_such(piles: dict[str, str], seal: Seal) -> None:
    twins = [seal(texts(chained(FRUIT, 300, seed)), f"twin-{seed}").fingerprint for seed in (31, 32)]
    short = seal(texts(chained(FRUIT, 2, 41)), "short").fingerprint
    found = compared(piles, target=(piles["fruit-task"], short), source=twins, measure=("ppl",), parts=8)
    leads = {lead["target"]: lead for lead in found["leads"]}
    assert leads["fruit-task"]["holds"] is False
    assert "by perplexity the lead may be chance, so other text of fruit-task" in found["recommendation"]["fruit-task"]
    assert leads["short"]["p"] is None
    assert found["recommendation"]["short"].endswith("there is too little text to test the leads against chance.")
    assert not any("too few sentences" in warning for warning in found["warnings"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cap_tokens": "much"}, "cap_tokens: give a number of tokens, equal or none"),
        ({"cap_tokens": "0"}, "cap_tokens"),
        ({"measure": ("ppl", "bleu")}, "measure"),
        ({"source": ()}, "source: give at least one"),
        ({"together": ("a+b",)}, "together: give positions"),
        ({"draws": 0}, "draws"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        SimilarityConfig.parse({"target": ("a",), "source": ("b",), **options})
    for together in ("1+4",), ("0+1",), ("1+2", "2+3"):
        with pytest.raises(ConfigError, match="positions 1 to 3"):
            grouped([None, None, None], together)  # type: ignore[list-item]


def test_poor_sources_give_a_reason_instead_of_nan(piles: dict[str, str], seal: Seal) -> None:
    tiny = seal(["a few words"], "tiny")
    script = seal([f"слово номер {i} за словом" for i in range(40)], "script")
    blank_line = seal(["fruit1 fruit2 fruit3", sentence("")], "blank-line")
    sources = (piles["fruit"], tiny.fingerprint, script.fingerprint, blank_line.fingerprint)
    found = compared(piles, source=sources, cap_tokens="400")
    json.dumps(found, allow_nan=False)
    by_source = {row["source"]: row for row in rows(found, measure="wvv")}
    assert by_source["tiny"]["value"] is None
    assert "tiny: no word occurs 5 times" in by_source["tiny"]["problem"]
    assert any("no word occurs 5 times" in warning for warning in found["warnings"])
    assert rows(found, source="script", measure="tvc")[0]["value"] == 0
    assert rows(found, source="script", measure="ppl")[0]["columns"]["oov"] == 100
    assert any("contains no word of fruit-task" in note for note in found["notes"])
    assert any("too small to estimate the discounts" in note and note.startswith("tiny") for note in found["notes"])
    assert "fallback discounts" in rows(found, source="tiny", measure="ppl")[0]["convention"]
    assert found["closest"]["tvc"] == "fruit"
    blank = seal([sentence(" ")], "blank")
    with pytest.raises(CorpusError, match="blank: no sentence contains a token"):
        compared(piles, target=(blank.fingerprint,))
    assert compared(piles, source=(piles["fruit"], blank.fingerprint), measure=("tvc",))["too_small"] == {"blank": 0}


def test_source_equal_to_or_drawn_from_the_target_is_warned_about(piles: dict[str, str], home: Path) -> None:
    target = Library(home).find(piles["fruit-task"])
    part = Library(home).subset(target, np.arange(30), name="part", origin={"from": target.fingerprint})
    sources = (piles["fruit-task"], part.fingerprint, piles["metal"], piles["fruit"])
    found = compared(piles, source=sources, together=("3+4",), measure=("tvc",))
    for words in (
        "fruit-task contains text of a target, which makes it",
        "part was drawn from a target's own sentences",
    ):
        assert any(words in warning for warning in found["warnings"])
    assert found["sources"]["metal + fruit"] == [piles["metal"], piles["fruit"]]  # several corpora as one source
    assert set(found["sources"]) == {"fruit-task", "part", "metal + fruit"}


def test_stopped_run_resumes_to_the_same_result(piles: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"target": (piles["fruit-task"], piles["metal-task"])}
    undisturbed = made(piles, **options)
    calm = undisturbed.result()
    for row in rows(calm, target="fruit-task"):
        assert row["low"] <= row["value"] <= row["high"]
        assert f"{row['sample_tokens']:,} tokens of the source, 600 of the target, seed 0, 1" in row["convention"]
        assert row["prefer"] == MEASURES[row["measure"]].prefer
    json.dumps(calm, allow_nan=False)
    removals.remove_run(undisturbed.id)
    looks, check = 0, RunContext.check

    def stop_later(context: RunContext) -> None:
        nonlocal looks
        looks += 1
        if looks in (60, 90):
            raise Cancelled("stop")
        check(context)

    monkeypatch.setattr(RunContext, "check", stop_later)
    for _ in range(2):
        with pytest.raises(Cancelled):
            made(piles, **options)
    chunks = runs.listed("similarity")[0].chunks
    kept = {path: path.stat().st_mtime_ns for path in chunks.glob("*.json")}
    assert 0 < len(kept) < 2 * 2 * 2 * 4
    assert compared(piles, **options) == calm
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # no chunk was computed again


def test_killed_worker_resumes_to_the_same_digits(piles: dict[str, str]) -> None:
    config = {"target": (piles["fruit-task"],), "source": (piles["fruit"], piles["metal"]), **QUICK, "draws": 12}
    run_id = runs.start("similarity", config)
    deadline = time.monotonic() + 300
    chunks = runs.get(run_id).chunks
    while not list(chunks.glob("wvv-*.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    if worker := runs.get(run_id).worker():
        worker.signal(signal.SIGKILL)
        while runs.state(run_id).active and time.monotonic() < deadline:
            time.sleep(0.01)
    if runs.state(run_id).state != "succeeded":
        assert runs.state(run_id).state == "interrupted"
        runs.go_on(run_id)
    there, here = runs.get(run_id).result(), compared(piles)  # 12 draws in another process, 2 in this one
    for measure in ("ppl", "tvc", "wvv"):
        draws = rows(there, measure=measure, source="fruit")[0]["draws"]
        assert len(draws) == 12
        assert [*map(repr, draws[:2])] == [*map(repr, rows(here, measure=measure, source="fruit")[0]["draws"])]


def test_too_small_source_is_left_out_by_name_without_lowering_the_cap(piles: dict[str, str], seal: Seal) -> None:
    crumb = seal(texts(chained(FRUIT, 20, 8)), "crumb")
    sources = (piles["fruit"], crumb.fingerprint, piles["metal"])
    found = compared(piles, source=sources, measure=("tvc",), min_source_tokens=1_000)
    assert found["too_small"] == {"crumb": 200}
    assert found["cap_tokens"] == 3000
    assert "crumb is too small to compare (200 tokens, fewer than 1,000)" in found["warnings"][0]
    assert {row["source"] for row in found["measurements"]} == {"fruit", "metal"}
    assert SimilarityConfig.parse({"target": ("a",), "source": ("b",)}).min_source_tokens == 10_000
    with pytest.raises(CorpusError, match=r"none has 10,000 tokens.*crumb: 200.*min_source_tokens"):
        compared(piles, source=sources, min_source_tokens=10_000)
    for cap in ("none", "3500"):
        found = compared(piles, measure=("tvc",), cap_tokens=cap)
        assert len({row["sample_tokens"] for row in found["measurements"]}) == 2
        assert found["warnings"][0].startswith("The sources differ in size: fruit has")
    # A text in another script shares only digits, punctuation, and a few names: it moves no vector and is not close.
    script = [f"слово {i % 7} , за словом . fruit1 также , есть {i % 5} и еще слова ." for i in range(300)]
    pair = (piles["fruit"], seal(script, "script").fingerprint)
    found = compared(piles, source=pair, measure=("wvv",), cap_tokens="3000")
    there = {row["source"]: row for row in found["measurements"]}
    assert there["script"]["value"] is None
    assert "of its words have a vector of the source" in there["script"]["problem"]
    assert there["fruit"]["columns"]["covered"] == 1
    assert found["closest"] == {"wvv": "fruit"}


def test_survey_command_tests_answers_from_a_file(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("target,a,b,answer\n" + "t,a,b,5\n" * 7, encoding="utf-8")
    assert "7 of 7 agree, 0 disagree; people agree (W = 0, p = 0.016" in command("survey", path)[1]
    assert json.loads(command("survey", path, "--json")[1])["opinions"][0]["counts"] == [0, 0, 0, 0, 7]
    code, _, err = command("survey", tmp_path / "nowhere.csv")
    assert (code, "nowhere.csv: cannot be read" in err) == (2, True)


def test_finished_experiments_become_outcomes(piles: dict[str, str]) -> None:
    run_id = made(piles, measure=("ppl", "tvc")).id
    grid = grid_of(similarity.rows(run_id))

    def trained(**f1s: list[float]) -> list[Trained]:
        return [Trained(arm=arm.replace("_", ":"), source=None, f1=f1) for arm, f1 in f1s.items()]

    board = trained(
        none=[50.0, 52.0], vectors_fruit=[55.0, 57.0], vectors_metal=[53.0], lm_elsewhere=[90.0], tapt=[60.0]
    )
    (found,) = own_outcomes(grid, [("fruit-task", board)], {"fruit": "fruit", "metal": "metal"})
    assert (found.name, found.mean.tolist(), found.none.tolist()) == ("word vectors", [[56, 53]], [51])
    assert similarity.judge_own(run_id) is None  # there is no experiment
    with pytest.raises(ConfigError, match="no finished experiment has a variant vectors:SOURCE or lm:SOURCE"):
        similarity.judge_named(run_id)
    renamed = [*trained(none=[40.0]), Trained(arm="lm:old name", source="f00d", f1=[41.0])]
    other = trained(none=[0.0], tapt=[0.0])  # another network's baseline
    boards = [("fruit-task", board), ("fruit-task", renamed), ("fruit-task", other)]
    outcomes = {each.name: each for each in own_outcomes(grid, boards, {"fruit": "fruit", "f00d": "metal"})}
    assert outcomes["word vectors"].none.tolist() == [51]
    assert outcomes["language model"].none.tolist() == [40]
    assert outcomes["language model"].mean[0, 1] == 41


def test_taggers_that_experiments_share_count_once(piles: dict[str, str]) -> None:
    """The second experiment adds a replicate and a source; it uses the finished runs of the first one again."""
    grid = grid_of(similarity.rows(made(piles, measure=("ppl", "tvc")).id))
    first = [
        Trained(arm="none", source=None, f1=[50.0, 52.0], taggers=["n1", "n2"]),
        Trained(arm="lm:fruit", source=None, f1=[55.0, 57.0], taggers=["f1", "f2"]),
    ]
    second = [
        Trained(arm="none", source=None, f1=[50.0, 52.0, 60.0], taggers=["n1", "n2", "n3"]),
        Trained(arm="lm:fruit", source=None, f1=[55.0, 57.0, 59.0], taggers=["f1", "f2", "f3"]),
        Trained(arm="lm:metal", source=None, f1=[41.0, 43.0], taggers=["m1", "m2"]),
    ]
    boards = [("fruit-task", first), ("fruit-task", second)]
    (found,) = own_outcomes(grid, boards, {"fruit": "fruit", "metal": "metal"})
    assert (found.runs.tolist(), found.mean.tolist(), found.none.tolist()) == ([[3, 2]], [[57, 42]], [54])


def test_joined_sources_do_not_get_the_f1_of_one_of_them(
    piles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = (piles["fruit"], piles["metal"], piles["metal-task"])
    run_id = made(piles, source=sources, together=("1+3",), measure=("tvc",)).id
    monkeypatch.setattr(similarity, "own_outcomes", lambda grid, boards, names: [names])
    names: object = next(iter(similarity.own_f1(run_id)))
    assert names == {"metal": "metal", piles["metal"]: "metal"}


def test_similarity_command_prints_and_writes_the_table(command: Command, tmp_path: Path) -> None:
    paths = {name: tmp_path / f"{name}.txt" for name in ("task", "=law()", "food")}
    for path, lines in zip(paths.values(), (contracts(40, 1), contracts(150, 2), kitchen(150)), strict=True):
        path.write_text("\n".join(lines), encoding="utf-8")
    task, *sources = paths.values()
    words: list[object] = ["similarity", "--target", task, "--source", sources[0], "--source", sources[1]]
    words += ["--measure", "ppl", "--measure", "tvc", "--draws", "1", "--sizes", "0", "--min-source-tokens", "1000"]
    code, out, err = command(*words, "--json", "--output", tmp_path / "new" / "table.csv")
    assert code == 0, err
    found = json.loads(out)
    assert found["closest"] == {"ppl": "=law()", "tvc": "=law()"}
    assert set(found["agreement"]) >= {"fleiss_kappa", "randolph_kappa", "items"}
    keys = {"source", "measure", "value", "unit", "prefer", "convention", "sample_tokens"}
    assert keys <= set(found["measurements"][0])
    table = (tmp_path / "new" / "table.csv").read_text(encoding="utf-8-sig")
    assert table.startswith("target,source,measure,value")
    assert {row["source"] for row in csv.DictReader(StringIO(table))} == {"'=law()", "food"}  # not a formula
    out = command(*words)[1]
    assert "PPL (low)" in out
    assert "perplexity" in out.splitlines()[1]
    assert "=law() is closest to task by 2 of 2 measures" in out
    assert "*" in out.splitlines()[3]
    code, out, err = command(*words, "--output", "table.docx")
    assert (code, out, "table.docx" in err) == (2, "", True)


def test_predictiveness_command_correlates_a_table(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "table-3.csv"
    path.write_bytes(similarity.EXAMPLE.read_bytes())
    answer = json.loads(command("predictiveness", path, "--json")[1])
    lm = next(effect for effect in answer["effects"] if effect["name"] == "LM F1")
    printed = {"ppl": -0.618, "wvv": -0.747, "tvc": 0.666, "tvcc": 0.739}
    assert {m: row["runs"]["value"] for m, row in lm["correlations"].items()} == pytest.approx(printed, abs=1e-3)
    code, out, _ = command("predictiveness", path, "--measure", "ppl,wvv,tvc")
    assert code == 0
    assert "agree on 48 of 60 pairs of sources: Fleiss' kappa 0.7328, Randolph's 0.7333." in out
    assert "content words" not in out
    for words, says in (
        ((path, "--measure", "bleu"), "'bleu' is not in table-3.csv"),
        ((tmp_path / "no.csv",), "no.csv"),
    ):
        code, out, err = command("predictiveness", *words)
        assert (code, out, says in err) == (2, "", True)
