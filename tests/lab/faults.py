"""Apply single-line faults to `core` and `pages`, one at a time, and report which of them the tests catch.

    python -m tests.lab.faults [--seed N] [--count 40] [--only PACKAGE ...] [--full] [--processes 2] [--to FILE]
        [--list]

Each fault is written into a temporary copy of the tree; the working tree stays as it is. The tests of the touched package
(tests/lab/touched.py) run in that copy until the first failure: first the test files that import the faulty module, then
the folders of its package, then their tests marked `browser` or `alone`. With --full, tests marked `full` run too.
A fault counts as caught if a test fails that passes again without the fault. A test that has no result after
`HANGS` seconds is ended: the fault is caught, and the line says "hangs". A fault for which the tests exceed `LIMIT`
seconds without such a hang is "out of time" and counts as survived.

Each fault appends a JSON line to FILE (build/faults.jsonl), so that the same command continues after an interruption.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.lab.durations import VARIABLE
from tests.lab.touched import ROOT, TESTS, existing, importing, package

KINDS = ("lock", "escape", "comparison", "condition", "argument", "off by one")
RARE = {"lock": 10, "escape": 10}  # at most one of so many faults is of this kind, because few lines allow it
HANGS = 300.0  # seconds without a finished test
LIMIT = 1800.0  # seconds for all tests of one fault

# Faults that do not change behaviour: path, the faulty line without its indentation, and the reason.
EQUAL: dict[tuple[str, str], str] = {
    (
        "core/models/bilstm.py",
        "together = self.assisting_types is None and len(self.towers) != 1  # one pass is faster than two",
    ): "Taggers with two towers always have assisting types; with one, two passes give the loss of one, only slower.",
}


@dataclass(frozen=True)
class Fault:
    """One changed line. `start` and `end` are byte offsets in the line; `new` replaces what lies between."""

    kind: str
    path: str
    line: int
    start: int
    end: int
    new: str
    before: str
    after: str


# Where faults may be


def faults(source: str, path: str) -> list[Fault]:
    """Return every candidate in a file. Some do not compile; see `fits`."""
    lines = source.split("\n")
    found: dict[tuple[int, str], Fault] = {}
    for kind, line, start, end, new in _edits(ast.parse(source), lines):
        before = lines[line - 1]
        raw = before.encode()
        after = (raw[:start] + new.encode() + raw[end:]).decode()
        if after != before and (path, after.strip()) not in EQUAL:
            found.setdefault((line, after), Fault(kind, path, line, start, end, new, before.strip(), after.strip()))
    return sorted(found.values(), key=lambda fault: (fault.line, fault.start, fault.new))


def fits(fault: Fault, source: str) -> bool:
    """Return True if the faulty source compiles to another syntax tree."""
    try:
        return ast.dump(ast.parse(_faulty(fault, source.encode()))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def _faulty(fault: Fault, source: bytes) -> bytes:
    lines = source.split(b"\n")
    line = lines[fault.line - 1]
    lines[fault.line - 1] = line[: fault.start] + fault.new.encode() + line[fault.end :]
    return b"\n".join(lines)


Edit = tuple[str, int, int, int, str]  # kind, line, start, end, new
STYLE = {"width", "height", "size", "gap", "opacity", "margin", "columns", "hole", "line_width", "font_size"}


def _edits(tree: ast.AST, lines: list[str]) -> Iterator[Edit]:
    for node in _behaviour(tree):
        for kind, find in _FINDERS.items():
            for line, start, end, new in find(node, lines):
                yield kind, line, start, end, new
    yield from _escapes_in_strings(tree, lines)


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that decide what a program does: no annotation, decorator, `__repr__`, type checking or style."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name == "__repr__":
            return
        inner: list[ast.AST] = [*node.args.defaults, *(each for each in node.args.kw_defaults if each), *node.body]
    elif isinstance(node, ast.ClassDef):
        inner = [*node.body]
    elif isinstance(node, ast.AnnAssign):
        inner = [node.value] if node.value else []
    elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        inner = [*node.orelse]
    elif isinstance(node, ast.JoinedStr | ast.Assert):
        return  # Python 3.11 gives no positions inside of an f-string; assertions are checks themselves
    elif isinstance(node, ast.keyword) and node.arg in STYLE:
        return
    else:
        inner = list(ast.iter_child_nodes(node))
    yield node
    for each in inner:
        yield from _behaviour(each)


Place = tuple[int, int, int, str]  # line, start, end, new


def _one_line(node: Any) -> bool:
    return bool(node.lineno == node.end_lineno)


def _text(node: Any, lines: list[str]) -> str:
    return str(lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset], "utf-8")


def _replace(node: Any, new: str) -> Place:
    return node.lineno, node.col_offset, node.end_col_offset, new


_OPPOSITE = {
    "<": ("<=", ">"),
    "<=": ("<", ">="),
    ">": (">=", "<"),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
    "in": ("not in",),
    "not in": ("in",),
    "is": ("is not",),
    "is not": ("is",),
}
_OPERATOR = re.compile(r"<=|>=|==|!=|<|>|\bnot\s+in\b|\bis\s+not\b|\bin\b|\bis\b")


def _comparisons(node: ast.AST, lines: list[str]) -> Iterator[Place]:
    if isinstance(node, ast.Compare) and _one_line(node):
        for left, right in pairwise([node.left, *node.comparators]):
            start, end = left.end_col_offset or 0, right.col_offset
            between = lines[node.lineno - 1].encode()[start:end].decode()
            if match := _OPERATOR.search(between):
                at = start + len(between[: match.start()].encode())
                for new in _OPPOSITE[" ".join(match[0].split())]:
                    yield node.lineno, at, at + len(match[0]), new


_LEAVES = ast.Raise | ast.Return | ast.Continue | ast.Break


def _conditions(node: ast.AST, lines: list[str]) -> Iterator[Place]:
    if isinstance(node, ast.BoolOp):
        for first, second in pairwise(node.values):
            if first.lineno == second.end_lineno:
                yield first.lineno, first.end_col_offset or 0, second.end_col_offset or 0, ""
                yield first.lineno, first.col_offset, second.col_offset, ""
    if isinstance(node, ast.comprehension) and node.ifs and _one_line(node.ifs[-1]):
        before = node.iter if len(node.ifs) == 1 else node.ifs[-2]
        if before.end_lineno == node.ifs[-1].lineno:
            yield node.ifs[-1].lineno, before.end_col_offset or 0, node.ifs[-1].end_col_offset or 0, ""
        else:
            yield _replace(node.ifs[-1], "True")
    if isinstance(node, ast.If) and _one_line(node.test) and not node.orelse and isinstance(node.body[0], _LEAVES):
        yield _replace(node.test, "False")


_ANY_ORDER = {"isinstance", "issubclass", "getattr", "setattr", "hasattr", "min", "max", "zip", "cast", "print", "gcd"}


def _arguments(node: ast.AST, lines: list[str]) -> Iterator[Place]:
    if isinstance(node, ast.Call) and _name(node.func) not in _ANY_ORDER:
        for first, second in pairwise(node.args):
            if first.lineno == second.end_lineno and not isinstance(first, ast.Starred | ast.Constant):
                one, other = _text(first, lines), _text(second, lines)
                if not isinstance(second, ast.Starred | ast.Constant) and one != other:
                    between = lines[first.lineno - 1].encode()[first.end_col_offset : second.col_offset].decode()
                    yield first.lineno, first.col_offset, second.end_col_offset or 0, other + between + one


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _int(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _off_by_one(node: ast.AST, lines: list[str]) -> Iterator[Place]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and _int(node.right):
        right: Any = node.right
        yield _replace(right, str(right.value - 1))
    elif isinstance(node, ast.Compare):
        for each in node.comparators:
            if _int(each):
                yield _replace(each, str(each.value + 1))  # type: ignore[attr-defined]
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        for bound in (node.slice.lower, node.slice.upper):
            if bound is not None and _one_line(bound):
                text = _text(bound, lines)
                yield _replace(bound, str(int(text) + 1) if text.lstrip("-").isdigit() else f"({text}) + 1")
    elif isinstance(node, ast.Subscript) and _one_line(node.slice):
        text = _text(node.slice, lines)
        if text.lstrip("-").isdigit():
            yield _replace(node.slice, str(int(text) + (1 if int(text) >= 0 else -1)))
    elif isinstance(node, ast.Call) and _name(node.func) == "range" and _one_line(node):
        last = node.args[min(1, len(node.args) - 1)]
        yield _replace(last, f"({_text(last, lines)}) - 1")
    elif isinstance(node, ast.Call) and _name(node.func) == "enumerate" and len(node.args) == 2 and _int(node.args[1]):
        yield _replace(node.args[1], str(node.args[1].value + 1))  # type: ignore[attr-defined]


_LOCKED = re.compile(r"\blocked\(|\b_?lock\b|\b_guard\b|\b_held\(")


def _locks(node: ast.AST, lines: list[str]) -> Iterator[Place]:
    if isinstance(node, ast.With):
        for item in node.items:
            expression = item.context_expr
            if _one_line(expression) and item.optional_vars is None and _LOCKED.search(_text(expression, lines)):
                yield _replace(expression, '__import__("contextlib").nullcontext()')
    if isinstance(node, ast.Expr) and _one_line(node) and _text(node, lines).startswith("fcntl.flock("):
        yield _replace(node, "None")


_ESCAPES = {"escape", "plain"}


def _escapes(node: ast.AST, lines: list[str]) -> Iterator[Place]:
    if isinstance(node, ast.Call) and _name(node.func) in _ESCAPES and len(node.args) == 1 and not node.keywords:
        argument = node.args[0]
        owner = getattr(getattr(node.func, "value", None), "id", "html")
        if _one_line(node) and owner == "html":
            yield _replace(node, f"str({_text(argument, lines)})")


_CALL = re.compile(r"(?:\bhtml\.)?(?<![\w.])(?:escape|plain)(?=\()")


def _escapes_in_strings(tree: ast.AST, lines: list[str]) -> Iterator[Edit]:
    """Yield escapes inside of f-strings, where Python 3.11 gives no positions: found by their text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                for match in _CALL.finditer(lines[number - 1]):
                    start = len(lines[number - 1][: match.start()].encode())
                    yield "escape", number, start, start + len(match[0]), "str"


_FINDERS: dict[str, Callable[[ast.AST, list[str]], Iterator[Place]]] = {
    "lock": _locks,
    "escape": _escapes,
    "comparison": _comparisons,
    "condition": _conditions,
    "argument": _arguments,
    "off by one": _off_by_one,
}


# Which faults are drawn


def candidates(root: Path) -> dict[str, dict[str, list[Fault]]]:
    """Return all candidates by package and kind."""
    found: dict[str, dict[str, list[Fault]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted([*(root / "core").rglob("*.py"), *(root / "pages").rglob("*.py")]):
        name = path.relative_to(root).as_posix()
        for fault in faults(path.read_text(encoding="utf-8"), name):
            found[package(name)][fault.kind].append(fault)
    return found


def drawn(found: dict[str, dict[str, list[Fault]]], seed: int, count: int, root: Path = ROOT) -> list[Fault]:
    """Draw `count` faults: one per package, then by the number of candidates; kinds in turn as far as a package has them."""
    rng = random.Random(seed)
    sizes = {name: sum(map(len, kinds.values())) for name, kinds in sorted(found.items())}
    slots = list(sizes)
    rng.shuffle(slots)
    slots = slots[:count]
    if count > len(slots):
        slots += rng.choices(list(sizes), weights=list(sizes.values()), k=count - len(slots))
    pools = {(name, kind): found[name].get(kind, []) for name in sizes for kind in KINDS}
    left = {key: rng.sample(pool, len(pool)) for key, pool in pools.items()}
    chosen: dict[tuple[str, int], Fault] = {}
    used: Counter[str] = Counter()
    while slots:
        before = len(slots)
        for kind in KINDS:
            fitting = sorted({name for name in slots if left[name, kind]})
            if not fitting or used[kind] >= -(-count // RARE.get(kind, 1)):
                continue
            name = rng.choice(fitting)
            while left[name, kind]:
                fault = left[name, kind].pop()
                if (fault.path, fault.line) not in chosen and fits(fault, (root / fault.path).read_text("utf-8")):
                    chosen[fault.path, fault.line] = fault
                    slots.remove(name)
                    used[kind] += 1
                    break
        if len(slots) == before:
            break
    return list(chosen.values())


# Running the tests


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """Copy the tree that git knows, or would add, into a temporary folder, and link the shared data beside it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    with tempfile.TemporaryDirectory(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT") or None) as folder:
        tree = Path(folder) / "winnow"
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, tree / name)
        (Path(folder) / "temporary").mkdir()
        for link, target in ((tree / ".venv", root / ".venv"), (Path(folder) / "shared", root.parent / "shared")):
            if target.exists():
                link.symlink_to(target)
        yield tree


@contextmanager
def applied(fault: Fault, tree: Path) -> Iterator[None]:
    """Write a fault into a tree, and the original line back at the end."""
    path = tree / fault.path
    original = path.read_bytes()
    path.write_bytes(_faulty(fault, original))
    try:
        yield
    finally:
        path.write_bytes(original)


@dataclass(frozen=True)
class Outcome:
    """How the tests of one fault ended. said: "caught", "hangs", "survived" or "out of time"; by: the test that failed."""

    said: str
    by: str
    seconds: float

    @property
    def caught(self) -> bool:
        return self.said in ("caught", "hangs")


def tried(fault: Fault, tree: Path, full: bool, processes: int = 1) -> Outcome:
    """Run the tests of the touched package with the fault in place."""
    began = time.monotonic()
    unreliable: list[str] = []
    for words in plan(fault.path, tree, full, processes):
        while True:
            with applied(fault, tree):
                said, by = _tests(words, tree, unreliable, began + LIMIT)
            if said != "caught" or not by or _passes(by, tree):
                break
            unreliable.append(by)  # it fails without the fault too, so it proves nothing
        if said != "survived":
            return Outcome(said, by, time.monotonic() - began)
    return Outcome("survived", "", time.monotonic() - began)


def plan(path: str, tree: Path, full: bool, processes: int = 1) -> Iterator[list[str]]:
    """Yield the words of each call of pytest for a fault in `path`: likely catchers first."""
    split = ["-n", str(processes), "--dist", "worksteal"] if processes > 1 else []
    left_out = "" if full else " and not full"
    close = importing(path, tree)
    whole = existing(TESTS[package(path)], tree)
    quiet = [name for name in whole if name != "tests/browser"]
    if close:
        yield [*close, *split, "-m", f"not browser and not alone{left_out}"]
    if quiet:
        yield [*quiet, *(f"--deselect={name}" for name in close), *split, "-m", f"not browser and not alone{left_out}"]
    yield [*dict.fromkeys([*close, *whole]), "-m", f"(browser or alone){left_out}"]


def _environment(tree: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",  # a fault and the original may have equal size and time
        "PYTEST_DEBUG_TEMPROOT": str(tree.parent / "temporary"),
        VARIABLE: str(tree.parent / "durations"),
    }


def _tests(words: Sequence[str], tree: Path, unreliable: list[str], until: float) -> tuple[str, str]:
    """Run pytest until the first failure; return how it ended and the test that failed."""
    shutil.rmtree(tree.parent / "durations", ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.lab.durations",
    ]
    command += [*words, *(f"--deselect={name}" for name in unreliable)]
    log = tree.parent / "log.txt"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, cwd=tree, env=_environment(tree), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        began = time.monotonic()
        try:
            while not _ended(process, within=0.2):
                files = list((tree.parent / "durations").glob("*.jsonl"))
                quiet = time.time() - max((file.stat().st_mtime for file in files), default=0.0)
                if min(quiet, time.monotonic() - began) > HANGS:
                    return "hangs", ""
                if time.monotonic() > until:
                    return "out of time", ""
        finally:
            _end(process)
    said = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode in (0, 5):  # 5: no test has these marks
        return "survived", ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+?\.py(?:::\S+(?:\[.*?\])?)?)(?: - |$)", said, re.MULTILINE)
    if not failed and process.returncode not in (1, 2) and "Error while loading conftest" not in said:
        raise RuntimeError(f"pytest ended with {process.returncode}:\n{said[-3000:]}")
    return "caught", failed[1] if failed else ""


def _ended(process: "subprocess.Popen[bytes]", within: float) -> bool:
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _passes(test: str, tree: Path) -> bool:
    """Return True if a test passes without the fault."""
    command = [sys.executable, "-m", "pytest", "--no-header", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=tree, env=_environment(tree), capture_output=True, check=False)
    return done.returncode == 0


# The command


def _key(line: dict[str, Any]) -> tuple[object, ...]:
    return tuple(line[name] for name in ("path", "line", "before", "after", "full"))


def report(lines: Sequence[dict[str, Any]]) -> str:
    """Return how many faults were caught, by kind, and the list of survivors."""
    rows = [f"{sum(line['caught'] for line in lines)} of {len(lines)} faults caught"]
    for kind in KINDS:
        some = [line["caught"] for line in lines if line["kind"] == kind]
        rows += [f"  {kind}: {sum(some)} of {len(some)}"] if some else []
    rows += [
        f"{line['said']}: {line['path']}:{line['line']}\n  - {line['before']}\n  + {line['after']}"
        for line in lines
        if not line["caught"]
    ]
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.faults", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", nargs="+", choices=sorted(TESTS), help="packages that faults are drawn from")
    parser.add_argument("--full", action="store_true", help="run tests marked `full` too")
    parser.add_argument("--processes", type=int, default=1, help="pytest processes for tests not marked `alone`")
    parser.add_argument("--list", action="store_true", help="print the faults without running a test")
    parser.add_argument(
        "--to", type=Path, default=ROOT / "build" / "faults.jsonl", help="file that results are added to"
    )
    asked = parser.parse_args()
    found = candidates(ROOT)
    if asked.only:
        found = {name: found[name] for name in asked.only}
    chosen = drawn(found, asked.seed, asked.count)
    if asked.list:
        for fault in chosen:
            print(f"{fault.kind}: {fault.path}:{fault.line}\n  - {fault.before}\n  + {fault.after}")
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the copy is removed and pytest ended
    asked.to.parent.mkdir(parents=True, exist_ok=True)
    stored = [json.loads(line) for line in asked.to.read_text("utf-8").splitlines()] if asked.to.exists() else []
    known = {_key(line): line for line in stored}
    lines = []
    with copied(ROOT) as tree:
        for fault in chosen:
            fields = {name: value for name, value in asdict(fault).items() if name not in ("start", "end", "new")}
            line: dict[str, Any] = {**fields, "full": asked.full}
            if _key(line) in known:
                line = known[_key(line)]
            else:
                outcome = tried(fault, tree, asked.full, asked.processes)
                line |= {"caught": outcome.caught, **asdict(outcome), "seconds": round(outcome.seconds, 1)}
                with asked.to.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
            lines.append(line)
            print(
                f"{line['said']:11} {line['seconds']:7.1f} s  {line['path']}:{line['line']} {line['kind']}", flush=True
            )
    print(report(lines))


if __name__ == "__main__":
    main()
