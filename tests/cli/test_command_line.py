"""The command line: imports, selections and exports, and clear errors for wrong input."""

import errno
import gzip
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.cli.terminal import echo, progress
from core.corpora.corpus import Corpus
from core.errors import InputError, ResourceError
from core.importing import view as corpora
from core.importing.add import proposed_name
from core.importing.result import AddResult, AuditResult
from core.projects import runs
from core.projects.home import store
from core.runs import worker
from core.runs.context import RunContext
from core.runs.events import Data, Event, EventKind
from core.runs.result import read as read_result
from core.tagging import estimate
from tests.conftest import Command, Seal, sentence
from tests.homes import done
from tests.planted import contracts, kitchen


@pytest.fixture
def piles(tmp_path: Path) -> tuple[Path, Path]:
    """Write T_C of 40 contracts, and D_C of 60 contracts and 60 recipes."""
    task, domain = tmp_path / "task.txt", tmp_path / "domain.txt"
    task.write_text("\n".join(contracts(40, seed=1)), encoding="utf-8")
    domain.write_text("\n".join([*contracts(60, seed=2), *kitchen(60)]), encoding="utf-8")
    return task, domain


def test_a_repeated_import_keeps_its_name_and_names_are_unique(command: Command, piles: tuple[Path, Path]) -> None:
    def answer(*words: object) -> Any:
        return json.loads(command("corpus", *words, "--json")[1])

    task, domain = piles
    assert answer("add", task, "--name", "first")["was_here"] is False
    code, out, stderr = command("corpus", "add", task, "--name", "second", "--json")
    assert code == 0
    assert "This text is already imported as first; that corpus is used." in stderr
    result = json.loads(out)
    assert (result["name"], result["asked_name"], result["was_here"]) == ("first", "second", True)
    code, out, stderr = command("corpus", "add", domain, "--name", "first", "--json")
    added = json.loads(out)
    assert (added["name"], added["sentences"], added["rejected"]) == ("first (2)", 120, 0)
    assert "Another corpus has the name first, so this one is named first (2)." in stderr
    code, _, stderr = command("corpus", "rename", "first (2)", "first")
    assert code != 0
    assert "another corpus is called 'first' already" in stderr
    assert command("corpus", "rename", "first (2)", " ")[0] != 0
    assert answer("rename", "first (2)", "pile")["name"] == "pile"
    assert answer("show", "pile")["corpus"] == added["corpus"]
    assert {row["name"] for row in answer("list")["corpora"]} == {"first", "pile"}
    assert command("corpus", "remove", "pile")[0] == 0
    assert command("corpus", "show", "pile")[0] == 2


def test_an_import_reports_its_stages_and_its_progress_in_bytes(home: Path, tmp_path: Path) -> None:
    """Progress of a large file starts with its first block."""
    large, tagged = tmp_path / "large.txt", tmp_path / "tagged.conll"
    large.write_text("".join(f"The clerk number {n} signs the deed of the house today .\n" for n in range(200_000)))
    tagged.write_text("\n".join(f"Ada{n} B-PER\nsigns O\n" for n in range(600)))
    for path, unit, parts in (
        (large, "MB", ["reading large.txt and storing it"]),
        (tagged, "KB", ["checking the label scheme of tagged.conll", "reading tagged.conll and storing it"]),
    ):
        events: list[Event] = []
        runs.execute("add", {"path": str(path)}, events.append)
        assert [event.data["name"] for event in events if event.kind == "stage"] == parts
        counted = [event.data for event in events if event.kind == "progress"]
        assert {data["unit"] for data in counted} == {unit}
        size = path.stat().st_size // {"MB": 1_000_000, "KB": 1_000}[unit]
        assert {data["total"] for data in counted} == {size}
        assert counted[0]["done"] == (0 if unit == "MB" else size)  # a block has 0.26 MB
        assert counted[-1]["done"] == size


def test_a_selection_reuses_runs_and_scores_and_exports_every_format(
    command: Command, piles: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ("select", "--task", piles[0], "--domain", piles[1], "--strategy", "ngram-perplexity", "--json", "--budget")
    small, large, again = (json.loads(command(*words, budget)[1]) for budget in (7, 30, 7))
    assert small == again
    assert small["score_run"] == large["score_run"]
    assert small["run"] != large["run"]
    assert (small["strategy"], small["selected"], small["of"]) == ("ngram-perplexity", 7, 120)
    for name in ("s.txt", "s.jsonl", "s.parquet", "s.csv", "folder"):
        code, _, err = command("export", small["run"], "--output", tmp_path / name)
        assert code == 0, err
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["rank"] for row in rows] == list(range(1, 8))
    assert {row["text"] for row in rows} <= set(contracts(60, seed=2))
    assert set(rows[0]) == {"id", "text", "row", "score", "rank"}
    assert (tmp_path / "folder" / "README.md").exists()


def test_a_readme_that_an_export_did_not_write_is_never_replaced(
    command: Command, piles: tuple[Path, Path], tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "README.md").write_text("# My notes\n")
    task, domain = piles
    to = ("--output", folder)
    words = ("select", "--task", task, "--domain", domain, "--strategy", "random", "--budget", "5", *to)
    trained = (("finetune", "--train", task, "--dev", task, *to), ("pretrain", "--corpus", task, *to))
    for typed in (words, *trained):
        code, _, said = command(*typed)
        assert (code, "has a README.md, which would be replaced" in said) == (2, True), said
    assert runs.listed() == [], "refused before the first run"
    assert [(file.name, file.read_text()) for file in folder.iterdir()] == [("README.md", "# My notes\n")]
    (folder / "README.md").unlink()
    assert [command(*words)[0] for _ in range(2)] == [0, 0]  # an earlier export may be replaced
    (folder / "README.md").write_text("# My notes\n")
    assert command("export", runs.listed("select")[0].id, "--output", folder)[0] == 2
    assert (folder / "README.md").read_text() == "# My notes\n"


def test_an_unknown_option_of_a_strategy_is_named_with_those_that_it_has(command: Command, seal: Seal) -> None:
    seal(contracts(40, seed=1), "task")
    seal(kitchen(60), "domain")
    for strategy, option, says in (
        ("knn", "seed=3", "seed: is not an option of the strategy knn; choose among neighbours"),
        ("random", "seed=3", "seed: is not an option of the strategy random; it has none."),
    ):
        words = ("--task", "task", "--domain", "domain", "--strategy", strategy, "--option", option)
        code, _, said = command("select", *words)
        assert (code, says in said) == (2, True), said


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_document_group_and_further_columns_survive_selection_and_export(
    command: Command, home: Path, tmp_path: Path, ending: str
) -> None:
    texts = contracts(40, seed=7)
    lines = [f'"{text}",d{n % 5},deed {n % 3},{2000 + n}' for n, text in enumerate(texts)]
    (tmp_path / "pile.csv").write_text("\n".join(["text,doc,kind,year", *lines]), encoding="utf-8")
    (tmp_path / "task.txt").write_text("\n".join(contracts(30, seed=8)), encoding="utf-8")
    add = ("corpus", "add", "--group-column")
    assert command(*add, "kind", tmp_path / "pile.csv", "--name", "pile")[0] == 0
    assert command("corpus", "add", tmp_path / "task.txt", "--name", "task")[0] == 0
    code, out, err = command(
        "select", "--task", "task", "--domain", "pile", "--strategy", "random", "--budget", 12, "--json"
    )
    assert code == 0, err
    file, all_of_it = tmp_path / f"chosen.{ending}", tmp_path / f"all.{ending}"
    assert command("export", json.loads(out)["run"], "--output", file)[0] == 0
    assert command("corpus", "export", "pile", "--output", all_of_it)[0] == 0
    for name, exported in (("again", file), ("whole", all_of_it)):
        assert command(*add, "group", exported, "--name", name)[0] == 0

    def kept(name: str) -> dict[str, tuple[str | None, str | None, str]]:
        sentences = (sentence for batch in corpora.find(name).batches() for sentence in batch)
        return {each.id: (each.doc, each.group, dict(each.columns)["year"]) for each in sentences}

    whole, again = kept("pile"), kept("again")
    assert (len(again), kept("whole")) == (12, whole)
    assert again == {id: whole[id] for id in again}
    assert all(group and group.startswith("deed ") for _, group, _ in again.values())


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "conll"])
def test_labels_survive_an_export_of_a_corpus(command: Command, home: Path, tmp_path: Path, ending: str) -> None:
    labelled = "Alpha\tB-ORG\nBank\tI-ORG\npays\tO\n.\tO\n\nThe\tO\nLender\tO\nleft\tO\n.\tO\n\n"
    (tmp_path / "labels.conll").write_text(labelled, encoding="utf-8")
    assert command("corpus", "add", tmp_path / "labels.conll", "--name", "labels")[0] == 0
    file = tmp_path / f"out.{ending}"
    assert command("corpus", "export", "labels", "--output", file)[0] == 0
    assert command("corpus", "add", file, "--name", "again")[0] == 0
    once, again = ([s for batch in corpora.find(name).batches() for s in batch] for name in ("labels", "again"))
    assert [(s.tokens, s.entities) for s in again] == [(s.tokens, s.entities) for s in once]
    code, _, err = command("corpus", "export", "labels", "--output", tmp_path / "out.csv")
    assert code == 2
    assert "cannot hold labels; give it the extension .jsonl, .parquet or .conll" in err
    code, _, err = command("corpus", "export", "labels", "--output", tmp_path / "out.docx")
    assert (code, "'out.docx' names no format; give it the extension .jsonl, .parquet or .conll." in err) == (2, True)


@pytest.mark.parametrize(
    ("name", "format", "wrote"),
    [
        ("S_C-20.2pct", "", "S_C-20.2pct/selected.parquet"),
        ("S_C-threshold-2.83", "", "S_C-threshold-2.83/selected.parquet"),
        ("S_C.v2", "folder", "S_C.v2/selected.parquet"),
        ("there.v2", "", "there.v2/selected.parquet"),
        ("S_C-20.2pct.JSONL", "", "S_C-20.2pct.JSONL"),
        ("S_C-20.2pct", "txt", "S_C-20.2pct"),
        ("S_C.txt", "folder", "S_C.txt/selected.parquet"),
    ],
)
def test_an_output_may_have_any_name(
    command: Command, piles: tuple[Path, Path], tmp_path: Path, name: str, format: str, wrote: str
) -> None:
    (tmp_path / "there.v2").mkdir()
    words = ("--output", tmp_path / name, *(("--format", format) if format else ()))
    select = ("select", "--task", piles[0], "--domain", piles[1], "--strategy", "random", "--budget", "20.2%")
    code, out, err = command(*select, *words, "--json")
    assert code == 0, err
    first = (tmp_path / wrote).read_bytes()
    (tmp_path / wrote).unlink()
    code, _, err = command("export", json.loads(out)["run"], *words)
    assert code == 0, err
    assert (tmp_path / wrote).read_bytes() == first


def test_audit_finds_a_leak(command: Command, piles: tuple[Path, Path], tmp_path: Path) -> None:
    held = tmp_path / "test.conll"
    leaked = contracts(60, seed=2)[0].split()
    held.write_text("".join(f"{word}\tO\n" for word in leaked[:-1]) + ".\tO\n\nHarlow\tB-PARTY\n\n", encoding="utf-8")
    code, out, err = command("corpus", "audit", "--task", piles[0], "--domain", piles[1], "--labelled", held, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["flags"]["leak"] == 1
    for part in ("", "task_"):
        assert read_result(runs.get(found[f"{part}run"]), AuditResult).flags == found[f"{part}flags"]


def test_split_prints_the_names_of_the_new_corpora(command: Command, piles: tuple[Path, Path]) -> None:
    code, out, err = command("corpus", "split", piles[0], "--by", "sentence", "--shares", "1,1")
    assert code == 0, err
    assert [line.split()[1] for line in out.splitlines()[:2]] == ["task-train", "task-test"]


def test_a_run_of_another_kind_is_refused_before_work(command: Command, piles: tuple[Path, Path]) -> None:
    imported = json.loads(command("corpus", "add", piles[0], "--json")[1])["run"]
    for words, says in (
        (("map", "--selection", imported), "is not from a `select` run"),
        (("predictiveness", imported), "give a finished similarity run"),
        (("label", "next", "--task", piles[0], "--domain", piles[1], "--model", imported), "keeps no model"),
        (("label", "next", "--task", piles[0], "--domain", piles[1], "--model", "none"), "neither a tagger's folder"),
    ):
        code, _, err = command(*words)
        assert (code, says in err) == (2, True), err
    assert not runs.listed("score", "audit")
    assert estimate.root(imported, store()) == imported, (
        "a training that starts from it can be estimated, and refuses it"
    )


BAD_FILES: dict[str, tuple[Callable[[], bytes], str]] = {  # {name: (content, words of the error)}
    "empty.txt": (lambda: b"", "empty.txt"),
    "binary.txt": (lambda: bytes(range(256)) * 40, "binary.txt"),
    "latin.txt": (lambda: "Müller klagt gegen Weiß\n".encode("latin-1") * 30, "latin.txt line 1"),
    "bomb.txt.gz": (lambda: gzip.compress(bytes(200_000_000), 1), "bomb.txt.gz"),
    "endless.txt": (lambda: b"word " * 40_000_000, "endless.txt line 1: a line of more than"),
    "plain.csv": (lambda: b"id,words\n1,hello\n", "text"),
    "mixed.conll": (lambda: b"Ann\tB-PER\nLee\tI-PER\n\nBob\tS-PER\nRay\tU-PER\n\n", "mixed.conll"),
    "bare.conll": (lambda: b"Ann\tB-PER\n\nBob\tPER\n\n", "bare.conll line 3"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_a_clear_error_and_leaves_nothing(
    command: Command, tmp_path: Path, home: Path, name: str
) -> None:
    content, says = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content())
    extra = ["--text-column", "text"] if name == "plain.csv" else []
    code, out, err = command("corpus", "add", path, *extra, "--json")
    assert code == 2
    assert out == ""
    sentence = err.strip().splitlines()[-1]
    assert says in sentence
    assert sentence.endswith(".")
    assert not list(home.glob("corpora/*"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--budget", "121"), "asks for 121 sentences, but the domain corpus (D_C) has 120"),
        (("--budget", "some"), "not understood"),
        (("--strategy", "magic"), "choose one of"),
        (("--option", "magic=1"), "magic"),
        (("--option", "magic"), "NAME=VALUE"),
        (("--keep", "typos"), "not a flag"),
        (("--strategy", "gazetteer"), "--train"),
        (("--output", "S_C.docx"), "S_C.docx"),
        (("--output", "S_C.doc"), "--format folder"),
        (("--holdout", "nowhere"), "no corpus of this name"),
        (("--encoder", "/nowhere/at/all", "--strategy", "knn"), "/nowhere/at/all"),
    ],
)
def test_a_wrong_argument_is_a_clear_error(
    command: Command, piles: tuple[Path, Path], words: tuple[str, ...], says: str
) -> None:
    strategy = () if "--strategy" in words else ("--strategy", "random")
    code, out, err = command("select", "--task", piles[0], "--domain", piles[1], *strategy, *words, "--json")
    assert (code, out) == (2, "")
    assert says in err.strip().splitlines()[-1]
    assert "--output" not in words or not runs.listed()
    code, _, err = command("select", "--task", piles[1], "--domain", piles[0], "--strategy", "random")
    assert (code, "larger than the domain corpus" in err) == (2, True)


def test_a_name_that_is_too_long_for_a_file_is_a_clear_error(command: Command) -> None:
    for word in ("add", "propose"):
        code, _, err = command("corpus", word, "x" * 300)
        assert code == 2
        assert "xx...: the name is too long for a file or folder." in err


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(
    command: Command, piles: tuple[Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    code, out, err = command("corpus", "add", piles[1], "--json")
    assert (code, out) == (2, "")
    assert "is full; free some space there" in err
    assert not list((home / "corpora").iterdir())
    monkeypatch.undo()
    monkeypatch.setenv("WINNOW_HOME", str(home))
    assert command("corpus", "add", piles[1], "--json")[0] == 0


def test_cancelling_exits_130(command: Command, piles: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("core.selection.strategies.perplexity.NgramPerplexity.prepare", interrupted)
    words = ("select", "--task", piles[0], "--domain", piles[1], "--strategy", "ngram-perplexity", "--json")
    assert command(*words)[0] == 130
    monkeypatch.undo()


def test_a_closed_pipe_cancels_a_run_and_a_closed_terminal_does_not(
    command: Command, piles: tuple[Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(number: int) -> Callable[..., None]:
        def write(*_: object, **__: object) -> None:
            raise OSError(number, "")

        return write

    monkeypatch.setattr("sys.stdout", sys.stdout)  # `run_main` replaces them
    monkeypatch.setattr("sys.stderr", sys.stderr)
    for number, code, state in ((errno.EPIPE, 130, "cancelled"), (errno.EIO, 0, "succeeded")):
        monkeypatch.setattr("click.echo", fails(number))
        assert command("corpus", "add", piles[0])[0] == code
        assert store().list("add")[0].state().state == state
    monkeypatch.setattr("click.echo", fails(errno.ENOSPC))
    with pytest.raises(ResourceError, match="stdout: its disk is full"):
        echo("a result")


def test_samples_fill_only_empty_roles(command: Command, piles: tuple[Path, Path]) -> None:
    assert command("samples")[0] == 0
    names = {row["name"] for row in json.loads(command("corpus", "list", "--json")[1])["corpora"]}
    assert {"legal-task", "legal-domain", "medical-test"} <= names
    roles = corpora.roles()
    assert corpora.find(roles["task"]).name == "legal-task"
    corpora.set_role("task", json.loads(command("corpus", "add", piles[0], "--json")[1])["corpus"])
    command("samples")
    assert corpora.find(corpora.roles()["task"]).name == "task"


CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
FORGED = "FORGED LINE"
EVIL = f"a\x1b]52;c;ZXZpbA==\x07b\x9b2Jc\x1b[2K\x1b[1A\rd\n{FORGED}\u202ee"  # set the clipboard, clear the screen, move up, start a line


@pytest.fixture
def hostile(seal: Seal) -> Corpus:
    """Make a labelled corpus with a hostile name and type, as an older version without this check sealed it."""
    made = seal([sentence("Ada sues", [(0, 1, f"T{EVIL}")]), sentence("Bob pays")], "named later", labelled=False)
    labelled = seal([sentence("Ada sues", [(0, 1, f"T{EVIL}")])], "labels", labelled=True)
    for corpus in (made, labelled):
        about = json.loads((corpus.path / "about.json").read_text(encoding="utf-8"))
        name = f"{corpus.name}{EVIL}"
        (corpus.path / "about.json").write_text(json.dumps({**about, "names": [name]}), encoding="utf-8")
    return corpora.find(labelled.fingerprint)


def a_run(state: str) -> str:
    """Execute a run whose stage, note and result contain control characters; return its id."""
    made = store().create("audit", {"note": EVIL}, {}, seed=None, versions={}, key=state)

    def work(context: RunContext) -> dict[str, object]:
        context.stage(f"reading {EVIL}")
        context.note(f"a note of {EVIL}")
        if state == "failed":
            raise InputError(f"{EVIL}: is wrong.")
        return {"types": {EVIL: 3}, "name": EVIL, "notes": [EVIL]}

    try:
        worker.execute(made, work)
    except InputError:
        assert state == "failed"
    return made.id


def safe(printed: str) -> None:
    """Refuse control characters. A carriage return may start a line, to overwrite the progress."""
    for line in printed.split("\n"):
        assert not CONTROL.search(line.removeprefix("\r")), repr(line)
        assert not line.removeprefix("\r").startswith(FORGED)


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_no_command_prints_control_characters_of_a_name(
    command: Command, hostile: Corpus, tmp_path: Path, as_json: tuple[str, ...]
) -> None:
    file = tmp_path / f"f{EVIL}.conll".replace("/", "")
    file.write_text(f"Ada\tB-T{EVIL.split(maxsplit=1)[0]}\nsues\tO\n\n", encoding="utf-8")
    done, failed = a_run("done"), a_run("failed")
    outputs, name = [], hostile.fingerprint
    source = corpora.listed()[0].fingerprint
    compared = ("similarity", "--target", name, "--source", source, "--measure=tvc", "--min-source-tokens=1")
    for words, expected in (
        (("corpus", "list"), 0),
        (("corpus", "show", hostile.fingerprint), 0),
        (("runs", "list"), 0),
        (("runs", "show", done), 0),
        (("runs", "show", failed), 0),
        (("corpus", "add", file), 0),
        (("corpus", "add", f"{file}x"), 2),
        (("corpus", "show", EVIL), 2),
        (("corpus", f"--{EVIL}"), 2),
        (("corpus", "audit", "--task", hostile.fingerprint, "--domain", hostile.fingerprint), 0),
        (compared, 0),
        (("doctor",), 0),
        (("corpus", "remove", hostile.fingerprint), 0),
    ):
        code, out, err = command(*words, *as_json)
        assert code == expected, (words, err)
        outputs.append(out)
        safe(out)
        safe(err)
    if as_json:
        names = {row["name"] for row in json.loads(outputs[0])["corpora"]}
        assert f"labels{EVIL}" in names  # JSON keeps the name unchanged
        assert json.loads(outputs[3])["result"]["name"] == EVIL


def test_names_are_sealed_without_control_characters(seal: Seal, tmp_path: Path) -> None:
    assert not CONTROL.search(seal(["A sentence ."], f"another {EVIL}").name)
    file = tmp_path / f"{EVIL.replace('/', '')}.txt"
    file.write_text("Another sentence .\n")
    named = read_result(runs.get(done("add", path=str(file))), AddResult).name
    assert not CONTROL.search(named)
    assert named.startswith(proposed_name(file))  # with a number if the name is taken


def test_a_terminal_shows_all_progress_on_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "81")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    steps: list[tuple[EventKind, Data]] = [
        ("part", {"number": 2, "of": 3, "name": "scores", "whole": 0.15}),
        ("stage", {"name": "embedding contracts"}),
        ("progress", {"done": 250_000, "total": 1_000_000, "unit": "sentences", "whole": 0.4}),
        ("note", {"text": "Two files are left out."}),
        ("stage", {"name": "embedding " + "contracts " * 9}),
        ("progress", {"done": 7, "total": None, "unit": "sentences"}),
        ("succeeded", {}),
    ]
    screens = []
    for seq, (kind, data) in enumerate(steps):
        progress(Event(seq=seq, time=0.0, kind=kind, data=data))
        screens.append(capsys.readouterr().err)
    assert [screen.count("\n") for screen in screens] == [0, 0, 0, 1, 0, 0, 0]
    assert {len(screen) for screen in (*screens[:3], *screens[4:6])} == {81}
    assert screens[0].strip() == "[#---------] 15% [2 of 3] scores"
    assert screens[2].strip() == "[####------] 40% [2 of 3] scores: embedding cont… 250,000 of 1,000,000 sentences"
    assert screens[4].startswith("\r[####------] 40% [2 of 3] scores: embedding contracts")
    assert screens[5].strip().endswith("… 7 sentences")
    assert screens[6] == f"\r{' ' * 80}\r"


def test_a_command_with_imports_has_one_bar_that_never_falls(
    command: Command, piles: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    code, _, err = command("select", "--task", piles[0], "--domain", piles[1], "--strategy", "random", "--budget", 7)
    assert code == 0
    shown = [int(percent) for percent in re.findall(r"\] (\d+)% ", err)]
    assert shown == sorted(shown)
    at = {
        name: int(re.findall(rf"\] (\d+)% [^\r]*{name}", err)[-1]) for name in ("reading task", "duplicates", "scores")
    }
    assert 0 < at["reading task"] < 10 <= at["duplicates"] < 30 < at["scores"] < shown[-1] < 100
    _, _, err = command("corpus", "add", piles[0])
    assert "] 0% " in err  # each command has its own bar
