"""What a finished run left is held against what it was then: a file that was changed since is named, and its run."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from core import files
from core.artifacts import scores
from core.difficulty import mentions
from core.difficulty.mentions import Mention
from core.errors import RunError
from core.facade import runs, selections, similarity
from core.files import SUMS, read_back
from core.models import hub
from core.models.bilstm import LAYOUTS, BiLstmTagger
from core.models.taggers import load_tagger
from core.models.word_features import build_vocabulary
from core.results import FloatArray
from core.runs import Run, RunContext, RunStore, execute
from tests.conftest import Seal, sentence
from tests.pages.test_pages import opened, opened_on, texts
from tests.planted import contracts, kitchen
from tests.test_spoilt import PAGES

CHANGED = "is not what run {} left there: it was changed since, or the disk fails; bring it back from a copy, or remove"
NUMBERS = np.arange(20.0)


@pytest.fixture
def selected(seal: Seal) -> Run:
    """A real selection."""
    task, domain = seal(contracts(20, seed=1), "mine"), seal([*contracts(40, seed=2), *kitchen(20)], "other")
    options = {"task": task.fingerprint, "domain": domain.fingerprint, "strategy": "random", "budget": "5"}
    return runs.execute("select", options)


@pytest.fixture
def run(home: Path) -> Run:
    """A finished run that left an array of numbers."""
    run = RunStore(home).create("some", {}, {}, versions={}, key="k")
    execute(run, left)
    return run


def left(context: RunContext) -> dict[str, object]:
    np.save(context.run.artifacts / "numbers.npy", NUMBERS)
    return {}


def numbers(run: Run) -> FloatArray:
    with read_back(file := run.artifacts / "numbers.npy"):
        array: FloatArray = np.load(file)
    return array


def test_a_number_that_was_changed_in_a_sound_array_is_told(selected: Run) -> None:
    scored = runs.get(selections.result(selected.id).score_run)
    file = scored.artifacts / "scores.npy"
    np.save(file, np.load(file) + 1)
    with pytest.raises(RunError, match=f"^{file}: {CHANGED.format(scored.id)}"):
        selections.scored(selected.id)


def test_rows_that_are_nowhere_are_told_before_a_sentence_is_asked_for(selected: Run) -> None:
    file = selected.artifacts / "rows.npy"
    np.save(file, np.load(file) + 10**6)
    with pytest.raises(RunError, match=CHANGED.format(selected.id)):
        scores.read_rows(selected)


def test_a_number_that_was_changed_in_a_sound_result_is_told(selected: Run) -> None:
    """The page shows a sentence instead of another number."""
    file = selected.result_file
    spoilt = file.read_bytes().replace(b'"selected": 5', b'"selected": 4')
    assert spoilt != file.read_bytes()
    file.write_bytes(spoilt)
    with pytest.raises(RunError, match=f"^{file}: {CHANGED.format(selected.id)}"):
        selections.result(selected.id)
    assert not opened("home.py").exception
    app = opened_on("pages/3_Selection.py", selected.id)
    assert not app.exception
    assert ["is not what run" in error.value for error in app.error] == [True]


def test_a_result_of_an_older_version_is_read_as_it_is(selected: Run) -> None:
    log = selected.events_file
    log.write_bytes(re.sub(rb'{"size": \d+, "crc": \d+}', b"{}", log.read_bytes()))
    selected.result_file.write_bytes(selected.result_file.read_bytes() + b" ")
    assert RunStore(selected.home).get(selected.id).result()["selected"] == 5


def an_encoder(folder: Path) -> None:
    hub.load_model("tiny").save_pretrained(folder)
    hub.load_tokenizer("tiny").save_pretrained(folder)


def a_recurrent_tagger(folder: Path) -> None:
    layout = replace(LAYOUTS["bilstm"], layers=1, hidden=4, word_size=4)
    BiLstmTagger(["PER"], "crf", layout, [build_vocabulary([sentence("Ada met Bob .")] * 2)]).write(folder)


@pytest.mark.parametrize(
    ("write", "load"),
    [
        (an_encoder, lambda folder: hub.load_model(str(folder))),
        (an_encoder, lambda folder: hub.load_tokenizer(str(folder))),
        (a_recurrent_tagger, lambda folder: load_tagger(folder, device="cpu")),
    ],
)
def test_a_byte_that_was_changed_in_a_model_is_told(
    write: Callable[[Path], None], load: Callable[[Path], object], home: Path
) -> None:
    def work(context: RunContext) -> dict[str, object]:
        (folder := context.run.artifacts / "model").mkdir()
        write(folder)
        return {}

    run = RunStore(home).create("some", {}, {}, versions={}, key="k")
    execute(run, work)
    folder = run.artifacts / "model"
    load(folder)
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 64
    file.write_bytes(data)
    with pytest.raises(RunError, match=f"^{file}: {CHANGED.format(run.id)}"):
        load(folder)


@pytest.mark.full
def test_every_page_is_drawn_beside_it(selected: Run) -> None:
    scored = runs.get(selections.result(selected.id).score_run)
    for file in (scored.artifacts / "order.npy", scored.artifacts / "scores.npy"):
        np.save(file, np.load(file) + 10**6)
    said = []
    for page in PAGES:
        app = opened(page)
        assert not app.exception, page
        said.append(texts(app) + " ".join(error.value for error in app.error))
    assert any("is not what run" in each for each in said)


def test_a_column_that_bears_another_name_is_told(home: Path) -> None:
    pvi = {"pvi_entity": 1.0, "pvi_context": 0.5, "ceim": 0.5}
    row = Mention(row=0, sentence="x", start=0, end=1, type="PER", surface="a", bin="high", fold=0, **pvi)

    def tell(context: RunContext) -> dict[str, object]:
        mentions.write([row], context.run.artifacts / "mentions.parquet")
        return {}

    run = RunStore(home).create("some", {}, {}, versions={}, key="k")
    execute(run, tell)
    file = run.artifacts / "mentions.parquet"
    table = pq.read_table(file)
    pq.write_table(table.rename_columns([{"ceim": "other"}.get(name, name) for name in table.column_names]), file)
    with pytest.raises(RunError, match=f"^{file}: {CHANGED.format(run.id)}"):
        mentions.read(file)


def test_a_file_that_is_gone_is_told(selected: Run) -> None:
    audit = runs.get(selections.result(selected.id).audit_run)
    (audit.artifacts / "audit" / "cluster.npy").unlink()
    with pytest.raises(RunError, match=r"cluster\.npy: is gone; bring it back from a copy, or remove its run"):
        selections.scored(selected.id)


@pytest.mark.parametrize("spoilt", ["x", [], {"t": "ab"}, {"t": [1]}, None])
def test_a_guess_that_is_spoilt_was_never_made(run: Run, spoilt: object) -> None:
    (run.path / "guess.json").write_text(json.dumps({"t": ["a", "b"]}))
    assert similarity.guess(run.id, "t") == ["a", "b"]
    (run.path / "guess.json").write_text(json.dumps(spoilt))
    assert similarity.guess(run.id, "t") is None


def test_what_a_run_of_an_older_version_left_is_read_as_it_is(run: Run) -> None:
    np.save(run.artifacts / "numbers.npy", NUMBERS + 1)
    (run.path / SUMS).unlink()
    assert numbers(run)[0] == 1


@pytest.mark.parametrize("spoilt", [b"", b"[]", b'{"numbers', b'{"other.npy": [1, 2]}'])
def test_sums_that_are_spoilt_themselves_refuse_nothing(run: Run, spoilt: bytes) -> None:
    (run.path / SUMS).write_bytes(spoilt)
    assert numbers(run)[1] == 1


def test_a_run_that_is_made_again_is_not_held_against_what_it_was_before(run: Run) -> None:
    """Killed between its sums and its last word, and resumed with other numbers."""
    lines = run.events_file.read_bytes().splitlines(keepends=True)
    run.events_file.write_bytes(b"".join(lines[:-1]))
    again = RunStore(run.home).get(run.id)
    seen = []

    def other(context: RunContext) -> dict[str, object]:
        np.save(context.run.artifacts / "numbers.npy", NUMBERS + 5)
        seen.append(numbers(again)[0])
        return {}

    execute(again, other)
    assert [*seen, numbers(again)[0]] == [5, 5]


def test_a_file_is_summed_once_and_again_when_it_was_touched(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    summed, sum_of = list[Path](), files._sum_of

    def watched(file: Path) -> int:
        summed.append(file)
        return sum_of(file)

    monkeypatch.setattr(files, "_sum_of", watched)
    for _ in range(3):
        numbers(run)
    assert summed == [run.artifacts / "numbers.npy"]
    (run.artifacts / "numbers.npy").touch()
    numbers(run)
    assert len(summed) == 2
