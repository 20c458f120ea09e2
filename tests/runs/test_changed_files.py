"""Files of finished runs that were changed or removed later are named together with their run."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from core import files
from core.bias.result import Mention, read_mentions, write_mentions
from core.errors import RunError
from core.files import SUMS, read_back
from core.models import hub
from core.models.bilstm import LAYOUTS, BiLstmTagger
from core.models.taggers import load_tagger
from core.models.word_features import build_vocabulary
from core.projects import runs
from core.results import FloatArray
from core.runs import Run, RunContext, RunStore, execute
from core.selection import result as scores
from core.selection import view as selections
from tests.conftest import sentence
from tests.homes import Names
from tests.pages.drawing import opened, opened_on

CHANGED = "differs from what run {} wrote; it was changed, or the disk is failing. Restore it from a copy, or remove"
NUMBERS = np.arange(20.0)


def finished(home: Path, write: Callable[[Path], object]) -> Run:
    """Finish a run whose work is to write its artifacts."""

    def work(context: RunContext) -> dict[str, object]:
        write(context.run.artifacts)
        return {}

    run = RunStore(home).create("some", {}, {}, versions={}, key="k")
    execute(run, work)
    return run


@pytest.fixture
def run(home: Path) -> Run:
    """Finish a run that writes an array of numbers."""
    return finished(home, lambda folder: np.save(folder / "numbers.npy", NUMBERS))


def numbers(run: Run) -> FloatArray:
    with read_back(file := run.artifacts / "numbers.npy"):
        array: FloatArray = np.load(file)
    return array


def change(file: Path) -> None:
    """Add a million to each number of an array. Write a new file, because prepared homes share theirs."""
    array = np.load(file) + 10**6
    file.unlink()
    np.save(file, array)


def test_changed_and_missing_files_of_a_selection_are_named_on_its_page_too(selected: Names) -> None:
    select = runs.get(selected["random"])
    result = selections.result(select.id)
    audit, scored = runs.get(result.audit_run), runs.get(result.score_run)
    cluster, score = audit.artifacts / "audit" / "cluster.npy", scored.artifacts / "scores.npy"
    data = cluster.read_bytes()
    cluster.unlink()
    with pytest.raises(RunError, match=r"cluster\.npy: is missing; restore it from a copy, or remove the run"):
        selections.scored(select.id)
    cluster.write_bytes(data)
    change(score)
    with pytest.raises(RunError, match=f"^{score}: {CHANGED.format(scored.id)}"):
        selections.scored(select.id)
    change(select.artifacts / "rows.npy")
    with pytest.raises(RunError, match=CHANGED.format(select.id)):
        scores.read_rows(select)
    file = select.result_file
    assert b'"selected": 60' in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(b'"selected": 60', b'"selected": 50'))
    with pytest.raises(RunError, match=f"^{file}: {CHANGED.format(select.id)}"):
        selections.result(select.id)
    assert not opened("home.py").exception
    app = opened_on("pages/3_Selection.py", select.id)
    assert not app.exception
    assert ["differs from what run" in error.value for error in app.error] == [True]


def an_encoder(folder: Path) -> None:
    hub.load_model("tiny").save_pretrained(folder)
    hub.load_tokenizer("tiny").save_pretrained(folder)


def a_recurrent_tagger(folder: Path) -> None:
    folder.mkdir()
    layout = replace(LAYOUTS["bilstm"], layers=1, hidden=4, word_size=4)
    BiLstmTagger(["PER"], "crf", layout, [build_vocabulary([sentence("Ada met Bob .")] * 2)]).write(folder)


@pytest.mark.parametrize(
    ("write", "loads"),
    [
        (an_encoder, [lambda folder: hub.load_model(str(folder)), lambda folder: hub.load_tokenizer(str(folder))]),
        (a_recurrent_tagger, [lambda folder: load_tagger(folder, device="cpu")]),
    ],
)
def test_a_changed_byte_of_a_model_is_found(
    write: Callable[[Path], None], loads: list[Callable[[Path], object]], home: Path
) -> None:
    run = finished(home, lambda folder: write(folder / "model"))
    folder = run.artifacts / "model"
    for load in loads:
        load(folder)
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 64
    file.write_bytes(data)
    for load in loads:
        with pytest.raises(RunError, match=f"^{file}: {CHANGED.format(run.id)}"):
            load(folder)


def test_a_renamed_column_is_found(home: Path) -> None:
    pvi = {"pvi_entity": 1.0, "pvi_context": 0.5, "ceim": 0.5}
    row = Mention(row=0, sentence="x", start=0, end=1, type="PER", surface="a", bin="high", fold=0, **pvi)
    run = finished(home, lambda folder: write_mentions([row], folder / "mentions.parquet"))
    file = run.artifacts / "mentions.parquet"
    table = pq.read_table(file)
    pq.write_table(table.rename_columns([{"ceim": "other"}.get(name, name) for name in table.column_names]), file)
    with pytest.raises(RunError, match=f"^{file}: {CHANGED.format(run.id)}"):
        read_mentions(file)


@pytest.mark.parametrize("sums", [None, b"", b"[]", b'{"numbers', b'{"other.npy": [1, 2]}'])
def test_without_readable_checksums_files_are_read_unchecked(run: Run, sums: bytes | None) -> None:
    """Runs of older versions have no checksums."""
    change(run.artifacts / "numbers.npy")
    (run.path / SUMS).unlink() if sums is None else (run.path / SUMS).write_bytes(sums)
    assert numbers(run)[1] == 10**6 + 1
    run.events_file.write_bytes(re.sub(rb'{"size": \d+, "crc": \d+}', b"{}", run.events_file.read_bytes()))
    run.result_file.write_bytes(run.result_file.read_bytes() + b" ")
    assert RunStore(run.home).get(run.id).result() == {}


def test_a_resumed_run_may_write_other_numbers(run: Run) -> None:
    """The run was killed after it wrote its checksums and before its last event."""
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


def test_a_checksum_is_computed_once_and_again_after_a_change(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
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
