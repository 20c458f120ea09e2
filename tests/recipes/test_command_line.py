"""The command line: what a user types, what comes back, and how wrong input is told."""

import errno
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core import facade
from core.__main__ import run_main
from tests.planted import contracts, kitchen

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`run("corpus", "list")` -> (exit code, stdout, stderr), in this process."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["core", *map(str, words)])
        code = run_main()
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def piles(tmp_path: Path) -> tuple[Path, Path]:
    """T_C and D_C as files: 40 contract sentences; 120 others of which 60 are contracts."""
    task, domain = tmp_path / "task.txt", tmp_path / "domain.txt"
    task.write_text("\n".join(contracts(40, seed=1)), encoding="utf-8")
    domain.write_text("\n".join([*contracts(60, seed=2), *kitchen(60)]), encoding="utf-8")
    return task, domain


def test_select_from_paths_to_a_file(run: Run, piles: tuple[Path, Path], tmp_path: Path) -> None:
    task, domain = piles
    output = tmp_path / "S_C.txt"
    code, out, _ = run(
        "select", "--task", task, "--domain", domain, "--strategy", "ngram-perplexity",
        "--budget", 20, "--output", output, "--json",
    )  # fmt: skip
    assert code == 0
    result = json.loads(out)
    assert result["strategy"] == "ngram-perplexity"
    assert (result["selected"], result["of"]) == (20, 120)
    assert result["output"] == str(output)
    chosen = output.read_text(encoding="utf-8").splitlines()
    assert len(chosen) == 20
    assert set(chosen) <= set(contracts(60, seed=2))


def test_a_second_select_is_the_first_one(run: Run, piles: tuple[Path, Path]) -> None:
    words = ("select", "--task", piles[0], "--domain", piles[1], "--strategy", "random", "--budget", "10%", "--json")
    first, second = (json.loads(run(*words)[1]) for _ in range(2))
    assert first == second


def test_another_budget_scores_nothing_again(run: Run, piles: tuple[Path, Path]) -> None:
    words = ("select", "--task", piles[0], "--domain", piles[1], "--strategy", "ngram-perplexity", "--json")
    small, large = (json.loads(run(*words, "--budget", budget)[1]) for budget in (10, 30))
    assert small["score_run"] == large["score_run"]
    assert small["run"] != large["run"]


def test_export_in_every_format(run: Run, piles: tuple[Path, Path], tmp_path: Path) -> None:
    done = run("select", "--task", piles[0], "--domain", piles[1], "--strategy", "random", "--budget", 7, "--json")
    run_id = json.loads(done[1])["run"]
    for name in ("s.txt", "s.jsonl", "s.parquet", "s.csv", "folder"):
        code, _, err = run("export", run_id, "--output", tmp_path / name)
        assert code == 0, err
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["rank"] for row in rows] == list(range(1, 8))
    assert set(rows[0]) == {"id", "text", "row", "score", "rank"}
    assert (tmp_path / "folder" / "README.md").exists()


def test_corpus_commands(run: Run, piles: tuple[Path, Path]) -> None:
    added = json.loads(run("corpus", "add", piles[1], "--name", "pile", "--json")[1])
    assert (added["name"], added["sentences"], added["rejected"]) == ("pile", 120, 0)
    shown = json.loads(run("corpus", "show", "pile", "--json")[1])
    assert shown["corpus"] == added["corpus"]
    assert [row["name"] for row in json.loads(run("corpus", "list", "--json")[1])["corpora"]] == ["pile"]
    assert run("corpus", "remove", "pile")[0] == 0
    assert run("corpus", "show", "pile")[0] == 2


def test_audit_finds_a_leak(run: Run, piles: tuple[Path, Path], tmp_path: Path) -> None:
    held = tmp_path / "test.conll"
    leaked = contracts(60, seed=2)[0].split()
    held.write_text("".join(f"{word}\tO\n" for word in leaked[:-1]) + ".\tO\n\nHarlow\tB-PARTY\n\n", encoding="utf-8")
    code, out, err = run("corpus", "audit", "--task", piles[0], "--domain", piles[1], "--labelled", held, "--json")
    assert code == 0, err
    assert json.loads(out)["flags"]["leak"] == 1


def test_help_is_made_from_the_configs(run: Run) -> None:
    code, out, _ = run("select", "--help")
    assert code == 0
    for words in ("--budget", "--strategy", "Longer sentences are cut.", "[pieces]"):
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
def test_a_bad_file_is_told_in_a_sentence_and_leaves_nothing(run: Run, tmp_path: Path, home: Path, name: str) -> None:
    content, says = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content())
    extra = ["--text-column", "text"] if name == "plain.csv" else []
    code, out, err = run("corpus", "add", path, *extra, "--json")
    assert code == 2
    assert out == ""
    sentence = err.strip().splitlines()[-1]
    assert says in sentence
    assert sentence.endswith(".")
    assert not list(home.glob("corpora/*"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--budget", "121"), "more than D_C holds"),
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
    run: Run, piles: tuple[Path, Path], words: tuple[str, ...], says: str
) -> None:
    strategy = () if "--strategy" in words else ("--strategy", "random")
    code, out, err = run("select", "--task", piles[0], "--domain", piles[1], *strategy, *words, "--json")
    assert (code, out) == (2, "")
    assert says in err.strip().splitlines()[-1]


def test_swapped_corpora_are_noticed(run: Run, piles: tuple[Path, Path]) -> None:
    code, _, err = run("select", "--task", piles[1], "--domain", piles[0], "--strategy", "random")
    assert code == 2
    assert "larger than D_C" in err


def test_the_worker_is_the_command_line(piles: tuple[Path, Path], home: Path) -> None:
    """A real process, with its exit codes."""
    done = subprocess.run(
        [sys.executable, "-m", "core", "--home", home, "corpus", "add", piles[0], "--json"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sentences"] == 40
    wrong = subprocess.run([sys.executable, "-m", "core", "nonsense"], cwd=ROOT, capture_output=True, check=False)
    assert wrong.returncode == 2


def test_a_line_of_200_mb_is_told_and_never_held(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "endless.txt"
    with path.open("wb") as file:
        for _ in range(200):
            file.write(b"word " * 200_000)
    code, out, err = run("corpus", "add", path, "--json")
    assert (code, out) == (2, "")
    assert "endless.txt line 1: a line of more than" in err


def test_a_full_disk_is_told_and_leaves_nothing(
    run: Run, piles: tuple[Path, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", full)
    code, out, err = run("corpus", "add", piles[1], "--json")
    assert (code, out) == (2, "")
    assert "is full; free some space there" in err
    assert not list((home / "corpora").iterdir())
    monkeypatch.undo()
    monkeypatch.setenv("WINNOW_HOME", str(home))
    assert run("corpus", "add", piles[1], "--json")[0] == 0


def test_cancelling_exits_130(run: Run, piles: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("core.selection.perplexity.NgramPerplexity.prepare", interrupted)
    words = ("select", "--task", piles[0], "--domain", piles[1], "--strategy", "ngram-perplexity", "--json")
    assert run(*words)[0] == 130
    monkeypatch.undo()


def test_samples_fill_an_empty_home_and_leave_any_other_alone(run: Run, piles: tuple[Path, Path]) -> None:
    assert run("samples")[0] == 0
    names = {row["name"] for row in json.loads(run("corpus", "list", "--json")[1])["corpora"]}
    assert {"legal-task", "legal-domain", "medical-test"} <= names
    roles = facade.roles()
    assert facade.corpus(roles["task"]).name == "legal-task"
    facade.set_role("task", json.loads(run("corpus", "add", piles[0], "--json")[1])["corpus"])
    run("samples")
    assert facade.corpus(facade.roles()["task"]).name == "task"
