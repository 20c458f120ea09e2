"""Suggestions of reference variants: what a dictionary, a ready model and a language model suggest, and never for draws."""

import json
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from signal import SIGKILL
from typing import Any

import numpy as np
import pytest

from core.errors import ConfigError, ModelError, ResourceError, RunError, WinnowError
from core.importing import view as corpora
from core.labelling import queue
from core.labelling import view as labelling
from core.llm import asking
from core.llm.client import KEY
from core.projects import removals, runs
from core.projects.home import store
from core.runs.run import Run
from core.text.sentence import Entity, Prediction
from core.zero_shot.labels import Labels
from tests import fake_llm
from tests.conftest import Command, Seal, sentence
from tests.fake_llm import FakeLlm, entities, fails
from tests.fake_models import ready_model
from tests.labelling.test_answers import sent
from tests.waiting import until

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
WORDS = {
    "Ada": {"B-PER": 0.9, "O": 0.1},
    "Lovelace": {"I-PER": 0.8, "O": 0.2},
    "Rome": {"B-LOC": 0.55, "O": 0.45},
    "Oslo": {"B-LOC": 0.65, "O": 0.35},
    "Latin": {"B-MISC": 0.9, "O": 0.1},
}
TAILS = (  # different enough not to be near duplicates
    "a narrow house with a green door and two gardens",
    "forty chairs from an old theatre by the river",
    "the mill behind our church before winter comes",
    "some boats although nobody wanted to sail again",
    "every field that her uncle once sold for nothing",
    "this piano because music helps patients to sleep",
    "tools which bakers left when their ovens broke",
    "one horse under a contract of seventeen pages",
    "windows without glass while it rains all day",
    "several lamps whose light is too weak for reading",
    "an empty barn where apples were kept last year",
    "what remains of a bridge after three long wars",
)
TEXTS = [f"Ada Lovelace rents in {('Rome', 'Oslo')[i % 2]} for a Latin fee {tail} ." for i, tail in enumerate(TAILS)]
Spans = list[tuple[str, str]]


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "BACKOFF", 0.0)
    monkeypatch.delenv(KEY, raising=False)


@pytest.fixture(scope="module")
def ner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ready_model(tmp_path_factory.mktemp("ready") / "ner", LABELS, WORDS)


@pytest.fixture
def marks(seal: Seal) -> dict[str, str]:
    train = [sentence("Bo Ek rents a flat in Rome .", [(0, 2, "person"), (6, 7, "LOC")])]
    test = [
        sentence(f"Ada Lovelace leaves {i} for ever in Rome .", [(0, 2, "person"), (7, 8, "LOC")]) for i in range(4)
    ]
    return {
        "task": seal(TEXTS[:3], "task").fingerprint,
        "domain": seal(TEXTS[3:], "domain").fingerprint,
        "train": seal(train, "train", labelled=True).fingerprint,
        "test": seal(test, "test", labelled=True).fingerprint,
        "names": seal([sentence("ada", [(0, 1, "person")])], "names", labelled=True).fingerprint,
    }


@pytest.fixture
def server() -> Iterator[FakeLlm]:
    """A model that finds the town, and quotes what is not in the sentence."""

    def answer(text: str) -> str:
        return entities(("Rome" if "Rome" in text else "Oslo", "loc"), ("Bo Ek", "person"))

    server = FakeLlm(answer)
    yield server
    server.__exit__()


def queued(marks: Mapping[str, str], **options: Any) -> Run:
    given = {name: marks[name] for name in ("task", "domain", "train")}
    return runs.execute("queue", {**given, "strategy": "random", "encoder": "tiny", "n": 4, **options})


def suggested(run: Run) -> dict[str, Spans]:
    """Return {sentence: its suggestions, each (text, type)}."""
    return {
        task.sentence.text: [
            (" ".join(task.sentence.tokens[e.start : e.end]), e.type) for e in task.sentence.entities or ()
        ]
        for task in labelling.to_label(run.id)
    }


def dictionary(marks: Mapping[str, str]) -> str:
    return runs.execute("dictionary", {"names": (marks["names"],), "test": (marks["test"],)}).id


def zero_shot_run(marks: Mapping[str, str], folder: Path) -> str:
    options = {"model": str(folder), "test": (marks["test"],), "type_map": ("PER=person",), "threshold": 0.6}
    return runs.execute("zero-shot", options).id


def asked(marks: Mapping[str, str], server: FakeLlm, **options: Any) -> str:
    given = {"model": "m", "train": marks["train"], "test": (marks["test"],), "examples": 1, "timeout": 20.0}
    return runs.execute("llm", {**given, "address": server.address, **options}).id


def town(text: str) -> str:
    return "Rome" if "Rome" in text else "Oslo"


def test_each_reference_line_suggests_what_it_finds_in_the_queue_without_a_tagger(
    marks: dict[str, str], ner: Path, server: FakeLlm
) -> None:
    plain = queued(marks)
    assert list(suggested(plain).values()) == [[]] * 4
    expected: dict[str, Callable[[str], Spans]] = {
        dictionary(marks): lambda text: [("Ada", "person")],
        # Types are mapped, MISC is dropped, and Rome is below the threshold.
        zero_shot_run(marks, ner): lambda text: [
            ("Ada Lovelace", "person"),
            *([("Oslo", "LOC")] if "Oslo" in text else []),
        ],
        asked(marks, server): lambda text: [(town(text), "LOC")],
    }
    before = len(server.asked)
    for reference, finds in expected.items():
        run = queued(marks, suggest=reference)
        found = suggested(run)
        assert list(found) == list(suggested(plain))  # suggestions do not change the order
        assert {town(text) for text in found} == {"Rome", "Oslo"}
        assert found == {text: finds(text) for text in found}, reference
        assert run.id != plain.id
        assert all(each.uncertainty == 0 for each in queue.read(run))
        assert labelling.answered(run.id).labelled == {}  # a suggestion is no label
        assert run.result()["types"] == sorted({type for spans in found.values() for _, type in spans})
    assert [text for text, _, _ in server.asked[before:]] == list(suggested(plain))
    assert queued(marks, suggest=next(iter(expected))).id != queued(marks, names=(marks["names"],)).id


def test_a_tagger_orders_the_queue_and_another_source_suggests(
    marks: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> Any:
        found = [Prediction(entities=(Entity(start=3, end=4, type="X"),), confidence=(0.9,))] * 9
        return found, np.arange(9.0), ("X",)

    monkeypatch.setattr(queue, "_ask", ask)
    monkeypatch.setattr(queue, "without_repeats", lambda order, *_: list(order))
    tagger = queued(marks, model="tiny")
    assert {spans[0][1] for spans in suggested(tagger).values()} == {"X"}
    for options in ({"suggest": dictionary(marks)}, {"names": (marks["names"],)}):
        run = queued(marks, model="tiny", **options)
        assert list(suggested(run)) == list(suggested(tagger))
        assert [each.uncertainty for each in queue.read(run)] == [each.uncertainty for each in queue.read(tagger)]
        assert set(map(tuple, suggested(run).values())) == {(("Ada", "person"),)}


def test_suggestions_are_written_for_tools_and_count_only_if_they_are_accepted(
    marks: dict[str, str], command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.jsonl"
    words = ["label", "next", "--task", "task", "--domain", "domain", "--strategy", "random", "--encoder", "tiny"]
    words += ["--n", "2", "--suggest", dictionary(marks), "--output", str(path)]
    code, printed, said = command(*words, "--json")
    assert code == 0, said
    run_id = json.loads(printed)["run"]
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [row["label"] for row in rows] == [[[0, 3, "person"]]] * 2
    assert "Ada (person)" in command(*words)[1]
    assert command(*words, "--no-suggestions")[0] == 0
    assert [json.loads(line)["label"] for line in path.read_text("utf-8").splitlines()] == [[]] * 2
    labelling.answer(run_id, [sent(0, 0, (0, 2, "person"))])
    made = labelling.training_set(run_id)
    assert (made.n_sentences, made.types) == (1, {"person": 1})


def test_dev_and_test_sentences_never_get_suggestions(marks: dict[str, str], command: Command, tmp_path: Path) -> None:
    reference = dictionary(marks)
    for option in ("suggest", "names", "model"):
        with pytest.raises(ConfigError, match=f"{option}: dev and test sentences are labelled without suggestions"):
            runs.execute("draw", {"task": marks["task"], option: reference})
    code, _, said = command("label", "draw", "--task", "task", "--suggest", reference)
    assert code == 2
    assert "accepted suggestions would make the scores too high" in said
    assert "--suggest" not in command("label", "draw", "--help")[1]
    assert runs.listed("draw") == []
    queue_id = queued(marks, suggest=reference).id
    labelling.answer(queue_id, [sent(number, number, (0, 1, "person")) for number in range(4)])
    with pytest.raises(ConfigError, match="not a random sample"):
        labelling.measuring_sets(queue_id)
    run_id = runs.execute("draw", {"task": marks["domain"], "n": 8}).id
    path = tmp_path / "drawn.jsonl"
    labelling.export(run_id, path, "doccano", suggestions=True)
    assert [json.loads(line)["label"] for line in path.read_text("utf-8").splitlines()] == [[]] * 8
    assert all(task.sentence.entities == () for task in labelling.to_label(run_id))


def test_a_source_must_be_a_finished_reference_line_of_this_project(
    marks: dict[str, str], server: FakeLlm, ner: Path, tmp_path: Path
) -> None:
    drawn = runs.execute("draw", {"task": marks["domain"], "n": 4}).id
    with pytest.raises(ConfigError, match="not a finished run of dictionary or zero-shot or llm"):
        queued(marks, suggest=drawn)
    with pytest.raises(RunError, match="There is no run"):
        queued(marks, suggest="20200101-000000-llm-0000")
    reference = dictionary(marks)
    with pytest.raises(ConfigError, match="only one of them"):
        queued(marks, suggest=reference, names=(marks["names"],))
    with pytest.raises(ConfigError, match="uses no language model"):
        queued(marks, suggest=reference, allow_host="gpu-box")
    with pytest.raises(ConfigError, match="without suggest"):
        queued(marks, allow_host="gpu-box")
    store().get(reference).brought_file.touch()
    with pytest.raises(ConfigError, match="came with an imported project"):
        queued(marks, suggest=reference)
    folder = Path(shutil.copytree(ner, tmp_path / "ner"))
    changed = zero_shot_run(marks, folder)
    (folder / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ModelError, match="was changed after the run"):
        queued(marks, suggest=changed)
    assert runs.listed("queue", state="succeeded") == []


def test_a_ready_model_that_connects_fails_the_queue(
    marks: dict[str, str], ner: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = zero_shot_run(marks, ner)
    real = Labels.entities

    def talks(self: Labels, probabilities: Any) -> Any:
        with socket.socket() as opened:
            opened.settimeout(1)
            opened.connect(("127.0.0.1", 9))
        return real(self, probabilities)

    monkeypatch.setattr(Labels, "entities", talks)
    with pytest.raises(WinnowError, match="tried to connect"):
        queued(marks, suggest=reference)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, server: FakeLlm) -> FakeLlm:
    """Let this computer pretend to be the host `gpu-box`."""
    real = socket.create_connection

    def connect(address: tuple[str, int], *rest: Any) -> socket.socket:
        assert address[0] == "gpu-box"
        return real(("127.0.0.1", address[1]), *rest)

    monkeypatch.setattr(socket, "create_connection", connect)
    server.address = server.address.replace("127.0.0.1", "gpu-box")
    return server


def test_sentences_of_the_queue_go_to_another_host_only_if_it_is_allowed_again(
    marks: dict[str, str], elsewhere: FakeLlm, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = asked(marks, elsewhere, allow_host="gpu-box")
    before, answer, seen = len(elsewhere.asked), elsewhere.answer, list[list[str]]()
    for wrong in ({}, {"allow_host": "other"}):
        with pytest.raises(ConfigError, match="allow_host"):
            queued(marks, suggest=reference, **wrong)
    assert len(elsewhere.asked) == before
    [one] = labelling.suggesters()
    assert (one.host, one.options) == ("gpu-box", {"suggest": reference})
    assert "they go to gpu-box, not encrypted" in one.warning

    def shown(text: str) -> str:
        seen.append(runs.recipients())  # what the app shows while the run works
        return answer(text)

    elsewhere.answer = shown
    run = queued(marks, suggest=reference, allow_host="GPU-box")
    assert seen == [["gpu-box"]] * 4
    notes = " ".join(str(event.data["text"]) for event in run.events()[0] if event.kind == "note")
    assert "Sentences leave this computer: they go to gpu-box" in notes
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    with pytest.raises(ConfigError, match="stay offline"):
        queued(marks, suggest=reference, allow_host="gpu-box", n=5)


def test_a_killed_queue_asks_the_model_only_for_the_rest(marks: dict[str, str], server: FakeLlm) -> None:
    reference = asked(marks, server)
    before, server.seconds = len(server.asked), 0.3
    given = {name: marks[name] for name in ("task", "domain", "train")}
    options = {**given, "strategy": "random", "encoder": "tiny", "n": 8, "suggest": reference}
    run = runs.get(runs.start("queue", options))
    until(lambda: len(server.asked) >= before + 4, "half of the sentences are asked")
    worker = run.worker()
    assert worker
    worker.signal(SIGKILL)
    until(lambda: not run.state().active)
    begun = list(server.sentences[before:])
    server.seconds = 0.0
    runs.go_on(run.id)
    again = set(begun) & set(server.sentences[before + len(begun) :])
    assert again <= {begun[-1]}  # the request that was under way
    found = suggested(run)
    assert found == {text: [(town(text), "LOC")] for text in found}
    asked_so_far = len(server.asked)
    removals.remove_run(reference)
    assert suggested(run) == found  # a finished queue does not need its source any more
    with pytest.raises(RunError):
        queued(marks, suggest=reference, n=8)
    assert len(server.asked) == asked_so_far


def test_sentences_without_a_usable_answer_have_no_suggestion(marks: dict[str, str], server: FakeLlm) -> None:
    reference = asked(marks, server, retries=0)
    server.faults = {len(server.asked): fails(500)}
    run = queued(marks, suggest=reference)
    assert sorted(map(len, suggested(run).values())) == [0, 1, 1, 1]
    notes = " ".join(str(event.data["text"]) for event in run.events()[0] if event.kind == "note")
    assert "1 of 4 sentences got no usable answer (HTTP 500: 1), and have no suggestion." in notes
    server.faults = {-1: fake_llm.fails(500)}
    with pytest.raises(ModelError, match="got no usable answer"):
        queued(marks, suggest=reference, n=9)
    server.__exit__()
    with pytest.raises(ResourceError, match="nothing answers there"):
        queued(marks, suggest=reference, n=9, seed=1)


def test_imported_lists_and_finished_lines_are_offered(marks: dict[str, str]) -> None:
    for role in ("task", "domain", "train"):
        corpora.set_role(role, marks[role])
    assert labelling.suggesters() == []
    assert labelling.queue_options(5)["names"] == (marks["train"],)
    reference = dictionary(marks)
    store().get(dictionary({**marks, "names": marks["train"]})).brought_file.touch()
    [one] = labelling.suggesters()
    assert one.name == "Look the names of names up in test"
    options = labelling.queue_options(5, one)
    assert (options["suggest"], options.get("names"), one.host) == (reference, None, "")
