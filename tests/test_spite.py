"""Every regular expression of the project on 50 KB of what it likes least: below a second."""

import ast
import importlib
import re
import time
from collections import deque
from collections.abc import Callable
from functools import reduce
from itertools import product
from operator import or_
from pathlib import Path

import pyarrow as pa
import pytest

from core.artifacts.splits import _named_as_part
from core.corpora.columns import matches
from core.corpora.corpus import Corpus
from core.corpora.split import split
from core.text.words import nfc

ROOT = Path(__file__).resolve().parents[1]
N = 50_000
LETTERS = ["a", "1", " ", "\n", ".", ",", '"', "[", ":", ";", "+", "。"]
SPITE = {f"{a}{b}": (a + b) * (N // 2) for a, b in product(LETTERS, LETTERS)}
SPITE |= {
    f"{a}...{sign}{a}...{end!r}": a * (N // 2) + sign + a * (N // 2) + end
    for a in ("1", " ", "a")
    for sign in ("±", " ±  ", "-", "/")
    for end in ("x", "(")
}
SPITE |= {f"{a}... {end!r}": a * N + end for a in LETTERS for end in ("!", "x")}
SPITE |= {f"{a}{b}... x": a + b * N + "x" for a, b in product(LETTERS, LETTERS) if a != b}


WINDOW = 40  # characters: the splitter shows these no more of a text than the word before a full stop
WINDOWED = {"core.corpora.split._WORD", "core.corpora.split._INITIALS", "core.corpora.split._ENUMERATION"}
TAKE_A_PATTERN = {"compile", "findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn"}
FILES = [file for room in ("core", "pages") for file in sorted((ROOT / room).rglob("*.py"))]
FILES += [ROOT / "app.py", ROOT / "home.py"]


def held() -> dict[str, re.Pattern[str]]:
    """{module and name: expression} of those that modules hold."""
    modules = [file.relative_to(ROOT).with_suffix("").parts for file in FILES]
    names = [".".join(parts).removesuffix(".__init__") for parts in modules if parts[0] == "core" or "ui" in parts]
    return {
        f"{name}.{key}": value
        for name in names
        for key, value in vars(importlib.import_module(name)).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }


def calls(in_functions: bool = False) -> dict[str, ast.Call]:
    """{place and name: call} of every function of `re` that takes an expression; or of those in functions alone."""
    tops = [(file, top) for file in FILES for top in ast.parse(file.read_text(encoding="utf-8")).body]
    return {
        f"{file.relative_to(ROOT)}:{node.lineno}:{node.col_offset} {ast.unparse(node.func)}": node
        for file, top in tops
        if not in_functions or isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(top)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{name}" for name in TAKE_A_PATTERN}
    }


def written_out(call: ast.Call) -> re.Pattern[str] | None:
    """The expression of a call, flags and all, where it stands in the source; None where it is put together."""
    match call.args[0]:
        case ast.Constant(value=str(text)):
            given = [ast.unparse(each) for each in (*call.args[1:], *(word.value for word in call.keywords))]
            flags = [getattr(re, name) for each in given for name in re.findall(r"\bre\.([A-Z]+)\b", each)]
            return re.compile(text, reduce(or_, flags, re.RegexFlag(0)))
    return None


HELD = held()
EXPRESSIONS = HELD | {
    where: pattern
    for where, call in calls().items()
    if (pattern := written_out(call))
    and (pattern.pattern, pattern.flags) not in {(p.pattern, p.flags) for p in HELD.values()}
}


def quick(work: Callable[[str], object], text: str) -> bool:
    """Below a second on 50 KB; what is slow on a part of it already is not tried on all, where it would hang."""
    for part in (text[: N // 200] + text[-N // 200 :], text[: N // 20] + text[-N // 20 :], text):  # both ends matter
        began = time.process_time()
        work(part)
        if time.process_time() - began > max(len(part) / N, 0.1):
            return False
    return True


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_no_text_makes_it_slow(where: str) -> None:
    pattern = EXPRESSIONS[where]

    def work(text: str) -> None:
        shown = text[:WINDOW] if where in WINDOWED else text
        if not where.endswith(("match", *WINDOWED)):
            deque(pattern.finditer(shown), maxlen=0)
        pattern.fullmatch(shown)

    assert [name for name, text in SPITE.items() if not quick(work, text)] == []


def test_no_text_makes_the_splitter_slow() -> None:
    assert [name for name, text in SPITE.items() if not quick(split, text)] == []


def corpus(name: str) -> Corpus:
    return Corpus(fingerprint="", name=name, n_sentences=0, n_tokens=0, labelled=True, path=ROOT)


def named_as_part(text: str) -> None:
    """Corpora whose names are the text, the word that makes an expression of a name all over it."""
    trains = "train ".join(text[i : i + 20] for i in range(0, 400, 20))
    _named_as_part(corpus(trains), corpus(trains.replace("train ", "dev ") + "x"))
    _named_as_part(corpus("train " * 40), corpus(text))


def searched(text: str) -> None:
    """For a word of one letter and one of many: each word of a query is an expression of its own."""
    word = "".join(text[:50].split())
    for query in (word[:1], word):
        matches(pa.chunked_array([[text]]), query, "words")


# What uses an expression that is put together as it is needed, by where that is done.
PUT_TOGETHER = {
    "core/text/words.py": lambda text: nfc("\u0301" * 1000 + text + "\u0301\u0316" * 1000),
    "core/artifacts/splits.py": named_as_part,
    "core/corpora/columns.py": searched,
}


def test_no_text_makes_what_is_put_together_slow() -> None:
    made = {where.split(":")[0] for where, call in calls(in_functions=True).items() if not written_out(call)}
    arrow = {str(file.relative_to(ROOT)) for file in FILES if "_regex(" in file.read_text(encoding="utf-8")}
    assert made | arrow == PUT_TOGETHER.keys()
    slow = {
        where: [name for name, text in SPITE.items() if not quick(work, text)] for where, work in PUT_TOGETHER.items()
    }
    assert slow == {where: [] for where in PUT_TOGETHER}
