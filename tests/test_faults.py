"""tests.lab.faults: the faults that it draws, and the tree that it leaves alone."""

import subprocess
from pathlib import Path

from tests.lab.faults import KINDS, applied, candidates, copied, drawn, faults, fits
from tests.lab.touched import ROOT, TESTS, changed, package, quick

SNIPPET = '''\
"""A docstring with a < b."""
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    bound = 1 + 1
def shown(rows: list[int], limit: "int < 3") -> str:
    with locked(path):
        if not rows or len(rows) > limit:
            return plain(rows[0])
    return f"<b>{escape(name)}</b>" + joined(rows, limit)
class Shown:
    def __repr__(self) -> str:
        return self.name[:3]
'''


def test_each_kind_of_fault_applies_to_a_snippet_and_leaves_types_and_docstrings_alone() -> None:
    found = [fault for fault in faults(SNIPPET, "core/shown.py") if fits(fault, SNIPPET)]
    assert {(fault.kind, fault.after) for fault in found} == {
        ("lock", 'with __import__("contextlib").nullcontext():'),
        ("comparison", "if not rows or len(rows) >= limit:"),
        ("comparison", "if not rows or len(rows) < limit:"),
        ("condition", "if not rows:"),
        ("condition", "if len(rows) > limit:"),
        ("condition", "if False:"),
        ("escape", "return str(rows[0])"),
        ("off by one", "return plain(rows[1])"),
        ("escape", 'return f"<b>{str(name)}</b>" + joined(rows, limit)'),
        ("argument", 'return f"<b>{escape(name)}</b>" + joined(limit, rows)'),
    }


def test_the_same_seed_draws_the_same_faults_from_every_package() -> None:
    found = candidates(ROOT)
    first, again, other = (drawn(found, seed, 40) for seed in (0, 0, 1))
    assert first == again != other
    assert {package(fault.path) for fault in first} == TESTS.keys()
    assert {fault.kind for fault in first} == set(KINDS)
    assert len({(fault.path, fault.line) for fault in first}) == 40


def test_a_fault_is_written_into_a_copy_and_taken_back() -> None:
    (fault,) = drawn({"core": {"condition": faults((ROOT / "core/door.py").read_text(), "core/door.py")}}, 0, 1)
    original = (ROOT / fault.path).read_bytes()
    with copied(ROOT) as tree:
        with applied(fault, tree):
            lines = (tree / fault.path).read_text().split("\n")
            assert lines[fault.line - 1].strip() == fault.after
            assert (ROOT / fault.path).read_bytes() == original
        assert (tree / fault.path).read_bytes() == original


def test_quick_runs_the_unit_tests_of_what_differs_from_the_last_commit(tmp_path: Path) -> None:
    for name in ("core/text/words.py", "core/cli/main.py", "tests/text/test_words.py", "tests/stats/test_draws.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "core"], ["commit", "-qm", "One"]):
        subprocess.run([*git, *words], cwd=tmp_path, check=True)
    (tmp_path / "core/text/words.py").write_text("changed = True\n", encoding="utf-8")
    assert changed(tmp_path) == ["core/text/words.py", "tests/stats/test_draws.py", "tests/text/test_words.py"]
    assert quick(["core/text/words.py"], tmp_path) == ["tests/text"]
    assert quick(["core/cli/main.py", "tests/stats/test_draws.py"], tmp_path) == ["tests/stats/test_draws.py"]
    assert quick([], tmp_path) == quick(["README.md"], tmp_path) == ["tests/text"]


def test_every_package_of_the_program_has_tests() -> None:
    files = [path.relative_to(ROOT).as_posix() for room in ("core", "pages") for path in (ROOT / room).rglob("*.py")]
    assert {package(name) for name in files} == TESTS.keys()
