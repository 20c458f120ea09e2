"""One damaged file in a home breaks no page and no list: the rest is shown, and the file is named."""

import json
import subprocess
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from core.bias.result import read_mentions
from core.corpora.corpus import Corpus
from core.corpora.hygiene import Audit
from core.errors import CorpusError, RunError
from core.importing import view as corpora
from core.project_list import shared_home
from core.projects import runs
from core.projects.home import kept_store
from core.projects.view import unreadable
from core.results import Evaluation
from core.runs.store import Run, RunStore
from tests.conftest import ROOT, Command, Seal
from tests.finished import SELECTED, finish
from tests.homes import Names
from tests.pages.drawing import opened, texts

PAGES = ("home.py", *(f"pages/{path.name}" for path in sorted((ROOT / "pages").glob("*.py"))))


@pytest.fixture
def sound(seal: Seal, home: Path) -> tuple[Corpus, Corpus, Run, Run]:
    """Make two corpora with roles and two finished runs."""
    task, domain = seal(["a sound sentence ."], "sound"), seal(["another sentence ."], "other")
    corpora.set_role("task", task.fingerprint)
    corpora.set_role("domain", domain.fingerprint)

    def select(seed: int) -> Run:
        options = {"task": task.fingerprint, "domain": domain.fingerprint, "seed": seed}
        return finish(home, "select", options, lambda context: SELECTED)

    return task, domain, select(1), select(2)


RUBBISH = {
    "empty": b"",
    "null": b"null",
    "a list": b"[]",
    "a number": b"3",
    "nothing in it": b"{}",
    "deep": b'{"a":' * 50_000,
    "zeros": bytes(4096),
    "no text": b"\xff\xfe{}",
    "half": b'{"run_id": "2026',
}
ABOUT: dict[str, dict[str, object]] = {
    "another's": {"fingerprint": "0" * 24},
    "a path": {"fingerprint": "../../elsewhere"},
    "no name": {"names": []},
    "numbers for names": {"names": [3]},
    "text for a name": {"names": "sound"},
    "text for a count": {"n_sentences": "many"},
    "types": {"types": {"PER": "few"}},
    "no origin": {"origin": None},
}
MANIFEST: dict[str, dict[str, object]] = {
    "null for options": {"config": None},
    "no options": {"config": {}},
    "a number for an input": {"inputs": {"task": 3}},
    "no kind": {"kind": None},
    "a number for a time": {"created": 3},
    "text for a time": {"created": "soon"},
    "before all time": {"created": "0001-01-01T00:00:00"},
    "after all time": {"created": "9999-12-31T23:59:59-23:59"},
    "another's": {"run_id": "20260101-000000-select-0000"},
    "a list for a parent": {"parent": []},
    "no key": {"key": None},
}
CHANGED: dict[str, dict[str, object]] = {
    "no pid": {"kind": "started", "data": {}},
    "null for a pid": {"kind": "started", "data": {"pid": None, "created": None}},
    "text for a time": {"kind": "started", "time": "soon", "data": {"pid": 1, "created": 1.0}},
    "no time": {"kind": "stage", "time": float("nan"), "data": {"name": "x"}},
    "the end of time": {"kind": "succeeded", "time": 1e300, "data": {}},
    "no data": {"kind": "stage", "data": None},
    "a list for data": {"kind": "stage", "data": []},
    "a number for a stage": {"kind": "stage", "data": {"name": 3}},
    "text for numbers": {"kind": "progress", "data": {"done": "few", "total": "many", "unit": "rows"}},
    "numbers without end": {"kind": "progress", "data": {"done": 10**400, "total": 10**401, "unit": "rows"}},
    "a number for a note": {"kind": "note", "data": {"text": 3}},
    "a list for a note": {"kind": "note", "data": {"text": ["x"]}},
    "text for a metric": {"kind": "metric", "data": {"name": "loss", "value": "low", "step": 1}},
    "a number for an error": {"kind": "failed", "data": {"error": 3}},
    "a number for a run": {"kind": "child", "data": {"run": 3}},
    "a part of nothing": {"kind": "part", "data": {"number": 1, "of": None, "name": "x"}},
}
EVENT = {
    "a torn word": b'{"seq": 3, "time": 2.0, "kind": "sta\n',
    "zeros": bytes(40) + b"\n",
    "zeros to the end": bytes(4096),
    "a list": b"[]\n",
    "deep": b'{"seq": ' * 50_000 + b"\n",
    **{name: json.dumps({"seq": 3, "time": 2.0, **event}).encode() + b"\n" for name, event in CHANGED.items()},
}
KINDS = [
    *(("about.json", name) for name in (*RUBBISH, *ABOUT)),
    *(("manifest.json", name) for name in (*RUBBISH, *MANIFEST)),
    *(("events.jsonl", name) for name in EVENT),
    *(("roles.json", name) for name in RUBBISH if name != "nothing in it"),
    *((name, "a folder") for name in ("about.json", "manifest.json", "events.jsonl", "roles.json")),
    ("about.json", "gone"),
]


def damage(file: Path, how: str) -> None:
    """Damage one file as a failing disk, another program or a newer version may."""
    match file.name, how:
        case _, "a folder":
            file.unlink()
            file.mkdir()
        case _, "gone":
            file.unlink()
        case "events.jsonl", _:
            first, *others = file.read_bytes().splitlines(keepends=True)
            at_the_end = not EVENT[how].endswith(b"\n")
            file.write_bytes(b"".join([first, *others, EVENT[how]] if at_the_end else [first, EVENT[how], *others]))
        case _ if how in RUBBISH:
            file.write_bytes(RUBBISH[how])
        case name, _:
            change = (ABOUT if name == "about.json" else MANIFEST)[how]
            file.write_text(json.dumps({**json.loads(file.read_text()), **change}))


@pytest.mark.parametrize(("name", "how"), KINDS, ids=[f"{name} {how}" for name, how in KINDS])
def test_a_damaged_file_is_named_and_the_rest_is_listed(
    name: str, how: str, sound: tuple[Corpus, Corpus, Run, Run], home: Path, command: Command
) -> None:
    corpus, other, damaged, whole = sound
    file = {"about.json": corpus.path, "roles.json": home}.get(name, damaged.path) / name
    damage(file, how)
    assert unreadable() == [file]
    shown = str(file.relative_to(home))
    for words, listed in ((("corpus", "list"), other.fingerprint), (("runs", "list"), whole.id)):
        code, out, stderr = command(*words)
        assert (code, listed in out, shown in stderr) == (0, True, True)
        assert (corpus.fingerprint in out) == (name != "about.json") or words[0] == "runs"
        if how == "a folder":
            code, out, stderr = command(*words, "--json")
            assert code == 0
            assert listed in json.dumps(json.loads(out))
    if name == "events.jsonl" and how != "a folder":  # the events around it still count
        assert RunStore(home).get(damaged.id).state().state == "succeeded"


@pytest.mark.parametrize(
    "name",
    [
        "manifest.json",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("about.json", "events.jsonl", "roles.json")),
    ],
)
def test_every_page_is_drawn_and_every_command_names_the_damaged_file(
    name: str, selected: Names, home: Path, command: Command
) -> None:
    corpus, other = (corpora.find(role) for role in ("task", "domain"))
    damaged, whole = (runs.get(selected[each]) for each in ("select", "random"))
    file = {"about.json": corpus.path, "roles.json": home}.get(name, damaged.path) / name
    damage(file, "zeros")
    kept_store.cache_clear()  # as after a restart, because handles remember what they read
    for page in PAGES:
        app = opened(page)
        assert not app.exception
        assert not app.error, page
        assert page not in ("home.py", "pages/1_Corpora.py") or str(file.relative_to(home)) in unescape(texts(app))
    commands_of = {
        "about.json": (("corpus", "show", corpus.fingerprint), ("corpus", "remove", corpus.fingerprint[:8])),
        "manifest.json": (("runs", "show", damaged.id), ("runs", "remove", damaged.id)),
    }
    for words in commands_of.get(name, ()):
        code, _, stderr = command(*words)
        assert code == 2
        assert f"{file} cannot be read" in stderr
    lasting: list[tuple[str, ...]] = [
        ("corpus", "show", other.fingerprint),
        ("corpus", "rename", "domain", "renamed"),
        ("runs", "show", whole.id),
        ("runs", "remove", whole.id),
        ("samples",),
        ("audit",),
        ("corpus", "remove", other.fingerprint, "--with-runs"),
    ]
    for typed in lasting:
        code, _, stderr = command(*typed)
        assert code == 0, stderr
        assert (str(file.relative_to(home)) in stderr) == (typed[0] in ("corpus", "runs"))
    # The readable parts of a run name its corpora, so it was removed too; roles were written again.
    assert unreadable() == ([file] if name in ("about.json", "manifest.json") else [])


@pytest.mark.parametrize("damaged", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1", b"half"])
def test_damaged_sentences_are_named_and_repaired_by_the_same_text(seal: Seal, damaged: bytes) -> None:
    before = seal(["a sound sentence ."], "mine")
    file = before.path / "sentences.parquet"
    file.write_bytes(file.read_bytes()[:-40] if damaged == b"half" else damaged)
    for read in (lambda: list(before.batches()), lambda: before.take([0]), before.lengths, before.ids):
        with pytest.raises(CorpusError, match=r"mine: .*sentences\.parquet cannot be read; add the same text again"):
            read()
    assert [each.text for each in seal(["a sound sentence ."], "again").take([0])] == ["a sound sentence ."]
    for path in (file, before.path / "about.json"):
        path.write_bytes(b"{}")
    again = seal(["a sound sentence ."], "again")
    assert again.fingerprint == before.fingerprint
    assert [each.text for each in again.take([0])] == ["a sound sentence ."]
    assert unreadable() == []


def test_a_forged_footer_with_a_million_columns_takes_no_memory(seal: Seal) -> None:
    """The Thrift footer announces 999,999 columns and has none; memory for them would be 190 MB."""
    file = seal(["a sound sentence ."], "mine").path / "sentences.parquet"
    footer = b"\x15\x02\x19\xfc\xbf\x84\x3d"
    file.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    script = f"""if True:
        from pathlib import Path
        from core.corpora.corpus import opened
        from core.errors import CorpusError
        def peak():
            return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
        before = peak()
        try:
            with opened(Path({str(file)!r}), "mine"):
                raise AssertionError
        except CorpusError:
            print(peak() - before)"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(done.stdout) < 60_000  # KB


@pytest.mark.parametrize("load", [Evaluation.load, read_mentions, lambda file: Audit.load(file.parent)])
@pytest.mark.parametrize("damaged", [b"", b"\x93NUMPY\x01\x00v\x00{", b"PAR1"])
def test_a_damaged_file_of_a_run_is_a_clear_error(
    load: Callable[[Path], object], damaged: bytes, tmp_path: Path
) -> None:
    for name in ("audit.json", "mask.npy", "cluster.npy"):
        (tmp_path / name).write_bytes(damaged)
    with pytest.raises(
        RunError, match=r"cannot be read \(\w+\), .*; remove the run that wrote it, and start that run again"
    ):
        load(tmp_path / "mask.npy")


def test_damaged_lines_of_the_audit_log_are_counted_and_the_rest_listed(
    sound: tuple[Corpus, Corpus, Run, Run], home: Path, command: Command
) -> None:
    command("corpus", "remove", "other")
    log = shared_home(home) / "audit.jsonl"
    lines = [
        b"\x00\x00",
        b"[]",
        b'{"time": 3}',
        b'{"time": "2026-01-01", "runs": 3}',
        b'{"time": "2026", "corpora": nu',
    ]
    log.write_bytes(b"\n".join([*lines, log.read_bytes()]))
    code, out, stderr = command("audit")
    assert code == 0
    assert sound[1].fingerprint in out
    assert f"{log}: 5 of its lines cannot be read" in stderr
