"""Ready models and language models as lines of an experiment: options, scores, refusals, consent, cost, and the report."""

import json
import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from core.corpora.library import Library
from core.errors import ConfigError, ModelError, PathError, ResourceError
from core.experiment import arms, results
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.experiment.reference import _zero_shot_seconds
from core.experiment.result import ArmRow
from core.experiment.words import of_experiment
from core.llm import asking
from core.llm.llm import LlmConfig
from core.paths import confine
from core.projects import runs
from core.projects.home import store
from core.runs.run import Run
from core.runs.where import Where
from core.tagging import calibrate
from tests.conftest import Seal, sentence
from tests.experiment.test_experiment import fill
from tests.experiment.test_replicates import CROSS, leaky
from tests.fake_llm import FakeLlm, entities, fails
from tests.fake_models import ready_model
from tests.finished import TIMED, html_report
from tests.untrained import without_training
from tests.zero_shot.test_zero_shot import NAMES, WORDS

Spans = list[tuple[int, int, str]]
TRAIN: list[tuple[str, Spans]] = [(f"Dan{n} lives in Ulm{n} now", [(0, 1, "person"), (3, 4, "LOC")]) for n in range(6)]
DEV: list[tuple[str, Spans]] = [
    ("Ada Lovelace sees Rome", [(0, 2, "person"), (3, 4, "LOC")]),
    ("Bo sees Latin", []),
    ("Cy sees Oslo", [(0, 1, "person")]),
]
TEST: list[tuple[str, Spans]] = [
    ("Ada Lovelace goes Rome", [(0, 2, "person"), (3, 4, "LOC")]),
    ("Bo goes Latin", []),
    ("Cy goes Oslo", [(0, 1, "person")]),
    ("goes Rome", []),
]
HEAR = {"Ada Lovelace goes Rome": entities(("Ada Lovelace", "person")), "Cy goes Oslo": entities(("Cy", "person"))}
ZERO_SHOT, LLM = 200 * 3 / (3 + 4), 200 * 2 / (3 + 2)  # right, of labelled and found ones


def hear(text: str) -> str:
    """Answer with the persons of a test sentence."""
    return HEAR.get(text, "[]")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "BACKOFF", 0.0)
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)


@pytest.fixture(scope="module")
def ner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ready_model(tmp_path_factory.mktemp("ready") / "ner", NAMES, WORDS)


@pytest.fixture
def folder(ner: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ner, tmp_path / "ner"))


@pytest.fixture
def server() -> Iterator[FakeLlm]:
    server = FakeLlm(hear)
    yield server
    server.__exit__()


@pytest.fixture
def options(seal: Seal, folder: Path, server: FakeLlm) -> dict[str, Any]:
    """Return an experiment with a line of each kind. Its map of types also has one for other corpora."""
    for name, rows in {"train": TRAIN, "dev": DEV, "test": TEST}.items():
        seal([sentence(text, spans) for text, spans in rows], name, labelled=True)
    return {
        **{name: name for name in ("train", "dev", "test")},
        "arms": ("none", f"zero-shot:{folder}", f"llm:tiny:1b@{server.address}"),
        "type_map": ("B-PER=person", "GPE=LOC", "misc="),
        "llm": {"examples": 2},
        "encoder": "tiny",
        "seeds": (1, 2),
        "repeat": "tagger",
    }


def executed(options: dict[str, Any]) -> Run:
    return runs.execute("experiment", options, run_anyway=True)


def rows_of(run: Run) -> dict[str, ArmRow]:
    return {row.arm.partition(":")[0]: row for row in results.board(run.id).leaderboard}


def trained() -> list[str]:
    """Return the kinds of the runs that an experiment made besides the timing of this machine."""
    return [run.manifest.kind for run in runs.listed() if run.manifest.kind not in ("experiment", "calibrate")]


def test_both_are_lines_with_one_score(options: dict[str, Any], server: FakeLlm, folder: Path, untrained: None) -> None:
    run = executed(options)
    rows = rows_of(run)
    assert rows["zero-shot"].mean == pytest.approx(ZERO_SHOT)
    assert rows["llm"].mean == pytest.approx(LLM)
    assert rows["zero-shot"].about == (
        "The ready model ner, without training, for LOC and person; minimum confidence chosen on the dev set."
    )
    assert (
        rows["llm"].about == "The language model tiny:1b, asked about each sentence after 2 examples, without training."
    )
    assert [row.sd for row in (rows["zero-shot"], rows["llm"])] == [None, None]
    ready, asked = (runs.get(rows[kind].finetune_run).manifest for kind in ("zero-shot", "llm"))
    assert (ready.parent, asked.parent) == (run.id, run.id)
    marks = {name: Library(store().home).find(name).fingerprint for name in ("train", "dev", "test")}
    assert (ready.config["model"], ready.config["dev"], ready.config["test"]) == (
        str(folder),
        marks["dev"],
        [marks["test"]],
    )
    assert (asked.config["model"], asked.config["train"], asked.config["examples"]) == ("tiny:1b", marks["train"], 2)
    found = runs.get(rows["zero-shot"].finetune_run).result()
    # On dev, persons are found at .72 (right), .7 times the next word's probability to end one (right) and .6 (wrong).
    assert found["thresholds"] == {"LOC": 0.0, "person": pytest.approx(0.7 * (1 - 0.01 / 6), abs=1e-5)}
    assert list(server.sentences) == [text for text, _ in TEST]
    assert all(body["messages"][0]["content"].count("lives in Ulm") == 2 for _, body, _ in server.asked)
    words = of_experiment(results.board(run.id)).what
    assert f"the ready model ner scores {ZERO_SHOT:.1f} of 100" in words
    assert f"the language model tiny:1b scores {LLM:.1f} of 100" in words
    assert results.beside(run.id) == []


def test_runs_that_were_started_alone_are_listed_beside(
    options: dict[str, Any], server: FakeLlm, folder: Path, untrained: None
) -> None:
    run = executed({**options, "arms": ("none",)})
    runs.execute("zero-shot", {"model": str(folder), "test": ("test",), "type_map": ("PER=person",)})
    runs.execute("llm", {"model": "tiny:1b", "address": server.address, "train": "train", "test": ("test",)})
    beside = results.beside(run.id)
    assert [line.about for line in beside] == [
        "The language model tiny:1b, asked about each sentence after 5 examples, without training.",
        "The ready model ner, without training, for LOC and person; minimum confidence of 0.5.",
    ]
    assert [line.f1 for line in beside] == pytest.approx([LLM, 200 * 3 / (3 + 5)])  # Bo is found too
    report = html_report(run.id)
    assert all(line.about in report for line in beside)
    assert report.count("no data left it.") == 2  # the server is on this computer


def test_a_server_that_is_off_is_refused_before_any_other_step_and_asked_on_resume(
    options: dict[str, Any], server: FakeLlm, untrained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected = socket.socket.connect
    off = socket.socket()  # bound but not listening, so a connection is refused
    off.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{off.getsockname()[1]}/v1"
    given = {**options, "arms": ("none", f"llm:tiny:1b@{address}")}
    with pytest.raises(ResourceError, match=f"{address}: nothing answers there; start the server"):
        executed(given)
    assert trained() == []
    [run] = runs.listed("experiment")
    assert run.state().state == "failed"
    here = ("127.0.0.1", int(server.address.rpartition(":")[2].removesuffix("/v1")))
    monkeypatch.setattr(socket.socket, "connect", lambda self, _: connected(self, here))
    runs.go_on(run.id)
    off.close()
    assert rows_of(run)["llm"].mean == pytest.approx(LLM)


def test_a_finished_line_needs_neither_its_server_nor_its_answers_again(
    options: dict[str, Any], server: FakeLlm, untrained: None
) -> None:
    retried = {**options, "llm": {"retries": 0, "max_tokens": 99}}
    server.faults = dict.fromkeys(range(2, 10), fails(500))
    with pytest.raises(ModelError, match="got no usable answer"):
        executed({**retried, "also_test": ("train",)})
    [run] = runs.listed("experiment")
    assert "finetune" not in trained()  # all lines that may fail come first
    before = len(server.asked)
    server.faults = {}
    runs.go_on(run.id)
    again = list(server.sentences)[before:]
    assert not {*again} & {text for text, _ in TEST[:2]}
    assert {*server.sentences} == {text for text, _ in (*TEST, *TRAIN)}
    server.__exit__()
    more = executed({**retried, "also_test": ("train",), "seeds": (1, 2, 3)})
    assert rows_of(more)["llm"].finetunes == rows_of(run)["llm"].finetunes


def test_a_folder_that_cannot_be_used_is_refused_before_the_experiment_exists(
    options: dict[str, Any], folder: Path, untrained: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = {**options, "arms": ("none", "zero-shot:/nowhere/model")}
    with pytest.raises(ModelError, match=r"/nowhere/model: is not a folder. Download a token classifier"):
        executed(gone)
    confine()
    monkeypatch.setenv("WINNOW_DATA_DIRS", "")
    monkeypatch.setenv("HOME", str(folder.parent / "elsewhere"))
    with pytest.raises(PathError, match="outside the allowed folders"):
        executed(options)
    assert runs.listed("experiment") == []


def test_a_model_without_a_type_of_yours_is_refused_before_any_other_step(
    options: dict[str, Any], folder: Path, untrained: None
) -> None:
    with pytest.raises(ConfigError, match=r"no type of the model .* is mapped to one of yours \(LOC, person\)"):
        executed({**options, "type_map": ("LOC=",)})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "id2label": {"0": "O"}}))
    with pytest.raises(ModelError, match="names 1 labels"):
        executed(options)
    assert trained() == []


def test_a_changed_model_makes_a_new_experiment(options: dict[str, Any], folder: Path) -> None:
    def settled(*names: str) -> ExperimentConfig:
        return ExperimentConfig.parse({**options, "arms": ("none", *names)}).settled()

    before, without = settled(f"zero-shot:{folder}"), settled("dictionary")
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"][0] = 9.0
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert settled(f"zero-shot:{folder}").weights != before.weights
    assert settled("dictionary") == without
    assert before.weights.startswith(f"{without.weights} ")


def test_names_have_one_spelling(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("zero-shot:models/ner", "zero-shot: ~/models/ner ", f"zero-shot:{tmp_path}/models/ner"):
        assert arms.find(name).name == f"zero-shot:{tmp_path}/models/ner"
    arm = arms.find("llm: a/b:8b @http://LOCALHOST/v1/")
    assert arm.name == "llm:a/b:8b@http://localhost:80/v1"
    assert arms.find(arm.name) == arm
    assert arm.summary == "The language model a/b:8b at http://localhost:80/v1, asked without training."
    for name in ("llm:qwen", "llm:@http://127.0.0.1/v1", "llm:http://127.0.0.1/v1"):
        with pytest.raises(
            ConfigError, match="llm needs a model and the address of its server; write for example llm:"
        ):
            arms.find(name)
    with pytest.raises(ConfigError, match="is not of the form") as raised:
        arms.find("llm:qwen@http://user:pa55word@127.0.0.1/v1")
    assert "pa55word" not in str(raised.value)


GIVEN = {"train": "a", "dev": "b", "test": "c"}


def test_another_host_needs_an_option_with_its_name() -> None:
    def parsed(*names: str, **llm: str) -> ExperimentConfig:
        return ExperimentConfig.parse({**GIVEN, "arms": ("none", *(f"llm:{name}" for name in names)), "llm": llm})

    here, there = "a@http://127.0.0.1:1/v1", "b@http://gpu-box:1/v1"
    with pytest.raises(ConfigError, match=r"llm:b@.*gpu-box is not this computer, .* allow it with allow_host=gpu-box"):
        parsed(here, there)
    with pytest.raises(ConfigError, match="allow_host: differs from gpu-box"):
        parsed(there, allow_host="127.0.0.1")
    both = parsed(here, there, allow_host="GPU-BOX")
    assert both.hosts == ["gpu-box"]
    first, second = both.references.values()
    assert isinstance(first, LlmConfig)
    assert isinstance(second, LlmConfig)
    assert (first.allow_host, second.settled().allow_host) == ("", "gpu-box")
    assert parsed(here, allow_host="gpu-box").hosts == []
    with pytest.raises(ConfigError, match=r"llm:kimi:cloud@.*would send all sentences for kimi:cloud to ollama"):
        parsed("kimi:cloud@http://127.0.0.1:11434/v1")
    with pytest.raises(ConfigError, match=r"llm\.address: is not an option here"):
        parsed(here, address="http://127.0.0.1/v1")
    with pytest.raises(ConfigError, match="dev: is also a test set"):
        ExperimentConfig.parse({**GIVEN, "also_test": ("b",), "arms": ("none", "zero-shot:/m")})


@pytest.fixture
def elsewhere(server: FakeLlm, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let the server be on the host `gpu-box`. Return what pages show as recipients during each request."""
    seen, real = list[list[str]](), socket.create_connection

    def answer(text: str) -> str:
        seen.append(runs.recipients())
        return hear(text)

    def connect(address: tuple[str, int], *rest: Any) -> socket.socket:
        assert address[0] == "gpu-box"
        return real(("127.0.0.1", address[1]), *rest)

    server.answer = answer
    monkeypatch.setattr(socket, "create_connection", connect)
    server.address = server.address.replace("127.0.0.1", "gpu-box")
    return seen


def test_the_report_names_the_host_that_got_sentences(
    options: dict[str, Any],
    server: FakeLlm,
    elsewhere: list[list[str]],
    untrained: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = executed({**options, "arms": ("none", "dictionary")})
    there = {**options, "arms": ("none", "dictionary", f"llm:tiny:1b@{server.address}")}
    allowed = {**there, "llm": {"allow_host": "gpu-box"}}
    with pytest.raises(ConfigError, match="allow it with allow_host=gpu-box"):
        executed(there)
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    with pytest.raises(ConfigError, match=r"allow_host: .*stay offline"):
        executed(allowed)
    monkeypatch.delenv("WINNOW_OFFLINE")
    assert server.asked == []
    run = executed(allowed)
    assert elsewhere == [["gpu-box"]] * len(TEST)
    assert any("Sentences leave this computer: they go to gpu-box" in note for note in run.state().notes)
    assert "The language model tiny:1b at gpu-box, asked" in rows_of(run)["llm"].about
    report = html_report(run.id)
    assert "no data left it" not in report
    assert report.count("sentences were sent to gpu-box.") == 2
    # The first experiment sent nothing, but its report also shows the score of the second one's line.
    assert html_report(local.id).count("sentences were sent to gpu-box.") == 2
    store().remove(rows_of(run)["llm"].finetune_run)
    assert html_report(run.id).count("sentences were sent to gpu-box.") == 2
    on_local = html_report(local.id)
    assert on_local.count("no data left it.") == 2
    # Also true for a project that was imported from another machine, such as a finished sample.
    assert "of computing on one machine; no data left it." in on_local
    Where(on="ray:head:6379").keep(local.path)
    assert html_report(local.id).count("sentences were sent to ray:head:6379.") == 2
    Where().keep(local.path)  # resumed on this machine
    assert html_report(local.id).count("sentences were sent to ray:head:6379.") == 2


def test_each_half_has_its_own_examples_and_thresholds(home: Path, server: FakeLlm, untrained: None) -> None:
    leaky(home, fill(home))
    model = ready_model(home / "ready", ("O", "B-PARTY"), {"Harlow": {"B-PARTY": 0.9}})
    lines = (f"zero-shot:{model}", f"llm:tiny:1b@{server.address}")
    rows = rows_of(executed({**CROSS, "arms": ("none", *lines)}))
    trained = [runs.get(one).manifest.config for one in rows["none"].finetunes]
    ready, asked = ([runs.get(one).manifest.config for one in rows[kind].finetunes] for kind in ("zero-shot", "llm"))
    assert [one["test"] for one in ready] == [one["test"] for one in asked] == [one["test"] for one in trained]
    assert [one["dev"] for one in ready] == [one["dev"] for one in trained]
    assert [one["train"] for one in asked] == [one["train"] for one in trained]
    assert (len(rows["zero-shot"].micro_f1), len(rows["llm"].micro_f1)) == (2, 2)


def test_cost_follows_the_size_of_the_model_and_the_pace_of_the_last_answers(
    options: dict[str, Any], server: FakeLlm, folder: Path
) -> None:
    with without_training():
        for timing in experiments.calibrations(options):
            runs.execute("calibrate", timing)
        first = experiments.cost(options)
        ready, asked = (next(s for s in first.steps if s.kind == kind).seconds for kind in ("zero-shot", "llm"))
        assert asked == pytest.approx(1 + 2.0 * len(TEST))
        assert "No run here has used tiny:1b yet, so this is assumed: 2.0 seconds per sentence." in first.basis
        file = folder / "model.safetensors"
        size, tokens = file.stat().st_size, sum(len(text.split()) for text, _ in (*DEV, *TEST))
        # One pass of 1.5 pieces per token at 0.0001 seconds, and a second to load, for 1,000 parameters of 4 bytes.
        assert ready == pytest.approx(1 + (1.0 + tokens * 1.5 * 0.0001) * size / 4 / 1000)
        server.seconds = 0.2
        known = runs.execute(
            "llm", {"model": "tiny:1b", "address": server.address, "train": "dev", "test": ("test",), "examples": 0}
        )
        each = known.result()["seconds"] / len(TEST)
        for at_once in (1, 2):
            planned = experiments.cost({**options, "llm": {"at_once": at_once}})
            [step] = [step for step in planned.steps if step.kind == "llm"]
            assert step.seconds == pytest.approx(1 + each * len(TEST) / at_once)
            assert f"From your last run with tiny:1b: {each:.1f} seconds per sentence." in planned.basis


def test_a_ready_model_is_costed_without_its_vocabulary(tmp_path: Path) -> None:
    """A word passes through 3,000 weights of the model and 1,000 of the encoder, whatever their vocabularies."""
    for name, words, rest in (("model", 100, 3000), ("encoder", 50, 1000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps({"vocab_size": words, "hidden_size": 10}))
        (tmp_path / name / "model.safetensors").write_bytes(bytes(4 * (10 * words + rest)))
    told: Any = SimpleNamespace(
        measured=replace(TIMED, parameters=1500),
        config=SimpleNamespace(encoder=str(tmp_path / "encoder")),
        corpora={"dev": SimpleNamespace(n_tokens=40_000)},
        tested_tokens=60_000,
    )
    one = 1.0 + 100_000 * 1.5 * 0.0001
    assert _zero_shot_seconds(str(tmp_path / "model"), told) == pytest.approx(3 * one)
    told.config.encoder = "tiny"  # it has no folder
    assert _zero_shot_seconds(str(tmp_path / "model"), told) == pytest.approx(4000 / 1500 * one)
