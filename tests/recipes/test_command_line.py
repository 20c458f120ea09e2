"""The command line: what a user types, what comes back, and how wrong input is told."""

import errno
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.importing import view as corpora
from core.projects import runs
from core.runs.events import Event
from tests.conftest import Command
from tests.planted import contracts, kitchen

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def piles(tmp_path: Path) -> tuple[Path, Path]:
    """T_C and D_C as files: 40 contract sentences; 120 others of which 60 are contracts."""
    task, domain = tmp_path / "task.txt", tmp_path / "domain.txt"
    task.write_text("\n".join(contracts(40, seed=1)), encoding="utf-8")
    domain.write_text("\n".join([*contracts(60, seed=2), *kitchen(60)]), encoding="utf-8")
    return task, domain


def test_the_same_text_again_says_so_and_keeps_its_name_until_it_is_renamed(
    command: Command, piles: tuple[Path, Path]
) -> None:
    task, domain = piles
    assert json.loads(command("corpus", "add", task, "--name", "first", "--json")[1])["was_here"] is False
    code, out, said = command("corpus", "add", task, "--name", "second", "--json")
    assert code == 0
    assert "This text is here already as first; opened that one." in said
    result = json.loads(out)
    assert (result["name"], result["asked_name"], result["was_here"]) == ("first", "second", True)
    code, out, said = command("corpus", "add", domain, "--name", "first", "--json")
    assert json.loads(out)["name"] == "first (2)"
    assert "Another corpus is called first, so this one is called first (2)." in said
    code, _, said = command("corpus", "rename", "first (2)", "first")
    assert code != 0
    assert "another corpus is called 'first' already" in said
    assert command("corpus", "rename", "first (2)", " ")[0] != 0
    assert json.loads(command("corpus", "rename", "first (2)", "pile", "--json")[1])["name"] == "pile"
    assert json.loads(command("corpus", "show", "pile", "--json")[1])["sentences"] == 120


def test_an_import_tells_its_part_and_its_progress_in_the_units_of_people(home: Path, tmp_path: Path) -> None:
    """From the first block on: whoever waits for a large file sees it move."""
    large, tagged = tmp_path / "large.txt", tmp_path / "tagged.conll"
    large.write_text("".join(f"The clerk number {n} signs the deed of the house today .\n" for n in range(200_000)))
    tagged.write_text("\n".join(f"Ada{n} B-PER\nsigns O\n" for n in range(600)))
    for path, unit, parts in (
        (large, "MB", ["reading large.txt and sealing it"]),
        (tagged, "KB", ["checking the label scheme of tagged.conll", "reading tagged.conll and sealing it"]),
    ):
        events: list[Event] = []
        runs.execute("add", {"path": str(path)}, events.append)
        assert [event.data["name"] for event in events if event.kind == "stage"] == parts
        told = [event.data for event in events if event.kind == "progress"]
        assert {data["unit"] for data in told} == {unit}
        size = path.stat().st_size // {"MB": 1_000_000, "KB": 1_000}[unit]
        assert {data["total"] for data in told} == {size}
        assert told[0]["done"] == (0 if unit == "MB" else size)  # a block is 0.26 MB
        assert told[-1]["done"] == size


def test_select_from_paths_to_a_file(command: Command, piles: tuple[Path, Path], tmp_path: Path) -> None:
    task, domain = piles
    output = tmp_path / "S_C.txt"
    given = ("--task", task, "--domain", domain, "--strategy", "ngram-perplexity", "--budget", 20)
    code, out, _ = command("select", *given, "--output", output, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["strategy"] == "ngram-perplexity"
    assert (result["selected"], result["of"]) == (20, 120)
    assert result["output"] == str(output)
    chosen = output.read_text(encoding="utf-8").splitlines()
    assert len(chosen) == 20
    assert set(chosen) <= set(contracts(60, seed=2))


def test_a_selection_is_made_once_scored_once_for_all_budgets_and_exported_in_every_format(
    command: Command, piles: tuple[Path, Path], tmp_path: Path
) -> None:
    words = ("select", "--task", piles[0], "--domain", piles[1], "--strategy", "ngram-perplexity", "--json", "--budget")
    small, large, again = (json.loads(command(*words, budget)[1]) for budget in (7, 30, 7))
    assert small == again
    assert small["score_run"] == large["score_run"]
    assert small["run"] != large["run"]
    for name in ("s.txt", "s.jsonl", "s.parquet", "s.csv", "folder"):
        code, _, err = command("export", small["run"], "--output", tmp_path / name)
        assert code == 0, err
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["rank"] for row in rows] == list(range(1, 8))
    assert set(rows[0]) == {"id", "text", "row", "score", "rank"}
    assert (tmp_path / "folder" / "README.md").exists()


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_document_group_and_further_columns_survive_import_selection_export_and_import(
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
    assert "cannot hold labels; end it in .jsonl, .parquet or .conll" in err


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
def test_an_output_may_be_called_anything(
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


def test_an_unknown_ending_is_refused_before_the_work(
    command: Command, piles: tuple[Path, Path], tmp_path: Path
) -> None:
    output = ("--output", tmp_path / "S_C.doc")
    code, _, err = command("select", "--task", piles[0], "--domain", piles[1], "--strategy", "random", *output)
    assert code == 2
    assert "--format folder" in err
    assert not runs.listed()


def test_corpus_commands(command: Command, piles: tuple[Path, Path]) -> None:
    added = json.loads(command("corpus", "add", piles[1], "--name", "pile", "--json")[1])
    assert (added["name"], added["sentences"], added["rejected"]) == ("pile", 120, 0)
    shown = json.loads(command("corpus", "show", "pile", "--json")[1])
    assert shown["corpus"] == added["corpus"]
    assert [row["name"] for row in json.loads(command("corpus", "list", "--json")[1])["corpora"]] == ["pile"]
    assert command("corpus", "remove", "pile")[0] == 0
    assert command("corpus", "show", "pile")[0] == 2


def test_audit_finds_a_leak(command: Command, piles: tuple[Path, Path], tmp_path: Path) -> None:
    held = tmp_path / "test.conll"
    leaked = contracts(60, seed=2)[0].split()
    held.write_text("".join(f"{word}\tO\n" for word in leaked[:-1]) + ".\tO\n\nHarlow\tB-PARTY\n\n", encoding="utf-8")
    code, out, err = command("corpus", "audit", "--task", piles[0], "--domain", piles[1], "--labelled", held, "--json")
    assert code == 0, err
    assert json.loads(out)["flags"]["leak"] == 1


def test_help_is_made_from_the_configs(command: Command) -> None:
    code, out, _ = command("select", "--help")
    assert code == 0
    for words in ("--budget", "--strategy", "Longer sentences are read in windows.", "[pieces]"):
        assert words in out


BAD_FILES: dict[str, tuple[Callable[[], bytes], str]] = {  # {name: (content, what the sentence must say)}
    "empty.txt": (lambda: b"", "empty.txt"),
    "binary.txt": (lambda: bytes(range(256)) * 40, "binary.txt"),
    "latin.txt": (lambda: "Müller klagt gegen Weiß\n".encode("latin-1") * 30, "latin.txt line 1"),
    "bomb.txt.gz": (lambda: gzip.compress(bytes(200_000_000), 1), "bomb.txt.gz"),
    "plain.csv": (lambda: b"id,words\n1,hello\n", "text"),
    "mixed.conll": (lambda: b"Ann\tB-PER\nLee\tI-PER\n\nBob\tS-PER\nRay\tU-PER\n\n", "mixed.conll"),
    "bare.conll": (lambda: b"Ann\tB-PER\n\nBob\tPER\n\n", "bare.conll line 3"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_told_in_a_sentence_and_leaves_nothing(
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
        (("--budget", "121"), "asks for 121 sentences, but the domain corpus (D_C) holds 120"),
        (("--budget", "some"), "not understood"),
        (("--strategy", "magic"), "choose one of"),
        (("--option", "magic=1"), "magic"),
        (("--option", "magic"), "NAME=VALUE"),
        (("--keep", "typos"), "no flag"),
        (("--strategy", "gazetteer"), "--train"),
        (("--output", "S_C.docx"), "S_C.docx"),
        (("--holdout", "nowhere"), "no corpus of this name"),
        (("--encoder", "/nowhere/at/all", "--strategy", "knn"), "/nowhere/at/all"),
    ],
)
def test_a_wrong_argument_is_told_in_a_sentence(
    command: Command, piles: tuple[Path, Path], words: tuple[str, ...], says: str
) -> None:
    strategy = () if "--strategy" in words else ("--strategy", "random")
    code, out, err = command("select", "--task", piles[0], "--domain", piles[1], *strategy, *words, "--json")
    assert (code, out) == (2, "")
    assert says in err.strip().splitlines()[-1]


def test_swapped_corpora_are_noticed(command: Command, piles: tuple[Path, Path]) -> None:
    code, _, err = command("select", "--task", piles[1], "--domain", piles[0], "--strategy", "random")
    assert code == 2
    assert "larger than the domain corpus" in err


def test_the_worker_is_the_command_line(piles: tuple[Path, Path], home: Path) -> None:
    """A real process, with its exit codes."""
    done = subprocess.run(
        [sys.executable, "-m", "core", "--home", home, "corpus", "add", piles[0], "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sentences"] == 40
    wrong = subprocess.run([sys.executable, "-m", "core", "nonsense"], cwd=ROOT, capture_output=True, check=False)
    assert wrong.returncode == 2


def test_a_line_of_200_mb_is_told_and_never_held(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "endless.txt"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(b"word " * 200_000)
    code, out, err = command("corpus", "add", path, "--json")
    assert (code, out) == (2, "")
    assert "endless.txt line 1: a line of more than" in err


def test_a_full_disk_is_told_and_leaves_nothing(
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


def test_samples_fill_an_empty_home_and_leave_any_other_alone(command: Command, piles: tuple[Path, Path]) -> None:
    assert command("samples")[0] == 0
    names = {row["name"] for row in json.loads(command("corpus", "list", "--json")[1])["corpora"]}
    assert {"legal-task", "legal-domain", "medical-test"} <= names
    roles = corpora.roles()
    assert corpora.find(roles["task"]).name == "legal-task"
    corpora.set_role("task", json.loads(command("corpus", "add", piles[0], "--json")[1])["corpus"])
    command("samples")
    assert corpora.find(corpora.roles()["task"]).name == "task"
