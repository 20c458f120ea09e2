"""Previews run in a separate process: the answers equal those of `sniff`, and the asking process stays small."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from core.corpora.readers import ReadOptions, sniff
from core.errors import EncodingError, PathError
from core.importing import view as corpora
from tests import hostile
from tests.conftest import ROOT

ASK = """
import json, resource, sys, time
from pathlib import Path
from core.importing import view as corpora
from core.errors import WinnowError

def memory():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3

before, answers = memory(), {}
for name in sys.argv[1:]:
    try:
        answers[name] = corpora.preview(Path(name)).rows[0][:20]
    except WinnowError as error:
        answers[name] = f"{type(error).__name__}: {error}"
largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
print(json.dumps({"answers": answers, "grown": memory() - before, "largest": largest}))
"""


def placed(folder: Path, make: Callable[[Path], Path]) -> Path:
    folder.mkdir()
    return make(folder)


FORGED = [partial(hostile.forged, value=value) for value in hostile.FORGED]
MESSAGES: dict[Callable[[Path], Path], str] = {
    hostile.yaml_aliases: "its tags are numbers without names",
    hostile.many_spans: "w0 w1",
    hostile.empty_lines: "empty lines in a row",
    hostile.dictionary_bomb: "a short one",
    hostile.page_bomb: "as a zip bomb does",
}


@pytest.mark.parametrize(
    "makers",
    [
        pytest.param([hostile.yaml_aliases, hostile.many_spans, hostile.dictionary_bomb, FORGED[0]], id="some"),
        pytest.param([hostile.empty_lines, hostile.page_bomb, *FORGED[1:]], id="others", marks=pytest.mark.full),
    ],
)
def test_hostile_files_are_refused_within_limits(makers: list[Callable[[Path], Path]], tmp_path: Path) -> None:
    """The preview stays within the limits of its process, and the asking process hardly grows. Sizes are in MB."""
    paths = [str(placed(tmp_path / str(i), make)) for i, make in enumerate(makers)]
    done = subprocess.run([sys.executable, "-c", ASK, *paths], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for make, answer in zip(makers, found["answers"].values(), strict=True):
        assert MESSAGES.get(make, "not a readable Parquet or Arrow file") in answer
    assert found["grown"] < 100
    assert found["largest"] < 1000


def test_a_preview_equals_sniff(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Ann B-PER\n. O\n\nBob I-PER\n\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("id,text\n1,one sentence here\n2,two\n", encoding="cp1252")
    (tmp_path / "c.txt").write_bytes(b"caf\xe9 .\nanother one .\n" + b"fine .\n" * 200)
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "x.txt").write_text("a b .", encoding="utf-8")
    for name, column in {"a.conll": None, "b.csv": "id", "c.txt": None, "f": None}.items():
        path = tmp_path / name
        assert corpora.preview(path, text_column=column) == sniff(path, ReadOptions(text_column=column))


def test_a_column_name_with_a_lone_surrogate_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "half.jsonl").write_text('{"text": "a sentence here", "\\ud800": 1}\n', encoding="utf-8")
    assert corpora.preview(tmp_path / "half.jsonl").columns == ("text", "?")


def test_preview_errors_equal_those_of_sniff(tmp_path: Path) -> None:
    with pytest.raises(PathError, match="there is no such file"):
        corpora.preview(tmp_path / "nothing.txt")
    (tmp_path / "a.txt").write_bytes("one .\n".encode("utf-16-le") * 30)
    with pytest.raises(EncodingError, match=r"^a\.txt line 1: a binary file, or text in UTF-16"):
        corpora.preview(tmp_path / "a.txt")
