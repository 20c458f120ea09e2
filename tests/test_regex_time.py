"""Every regular expression of the project takes less than a second on 50 KB of hostile text."""

import ast
import importlib
import re
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import reduce
from itertools import product
from operator import or_

import pyarrow as pa
import pytest

from core.bias.rebuild import _named_as_part
from core.corpora.columns import matches
from core.corpora.corpus import Corpus
from core.corpora.split import split
from core.text.words import nfc
from tests.conftest import ROOT
from tests.lint.repository import Repository

N = 50_000
LETTERS = ["a", "1", " ", "\n", ".", ",", '"', "[", ":", ";", "+", "。"]
HOSTILE = {f"{a}{b}": (a + b) * (N // 2) for a, b in product(LETTERS, LETTERS)}
HOSTILE |= {
    f"{a}...{sign}{a}...{end!r}": a * (N // 2) + sign + a * (N // 2) + end
    for a in ("1", " ", "a")
    for sign in ("±", " ±  ", "-", "/")
    for end in ("x", "(")
}
HOSTILE |= {f"{a}... {end!r}": a * N + end for a in LETTERS for end in ("!", "x")}
HOSTILE |= {f"{a}{b}... x": a + b * N + "x" for a, b in product(LETTERS, LETTERS) if a != b}


FIFTH, REST = list(HOSTILE)[::5], [name for i, name in enumerate(HOSTILE) if i % 5]

WINDOW = 40  # characters: the splitter applies these to the word before a full stop only
WINDOWED = {"core.corpora.split._WORD", "core.corpora.split._INITIALS", "core.corpora.split._ENUMERATION"}
ANCHORED = {"match", "fullmatch"}
METHODS = {*ANCHORED, "compile", "findall", "finditer", "search", "split", "sub", "subn"}
SOURCES = Repository(ROOT).sources  # tests/lint forbids other names for `re`


def held() -> dict[str, re.Pattern[str]]:
    """Return {module and name: expression} of all expressions that modules define."""
    names = [source.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for source in SOURCES]
    return {
        f"{name}.{key}": value
        for name in names
        if name.startswith(("core", "pages.ui"))
        for key, value in vars(importlib.import_module(name)).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }


def searching() -> set[str]:
    """Return the names of expressions that search anywhere in a text, not only at its beginning."""
    anchored, loads = Counter[str](), Counter[str]()
    for node in (node for source in SOURCES for node in source.nodes):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in ANCHORED:
            anchored[node.value.id] += 1
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[node.id] += 1
        if isinstance(node, ast.ImportFrom):
            loads.update(alias.name for alias in node.names if alias.asname)
    return {name for name, n in loads.items() if n > anchored[name]}


def calls(in_functions: bool = False) -> dict[str, ast.Call]:
    """Return {place and name: call} of all calls of `re` with an expression. in_functions: only those in functions."""
    inside = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        f"{source.path}:{node.lineno}:{node.col_offset} {ast.unparse(node.func)}": node
        for source in SOURCES
        for top in source.tree.body
        if not in_functions or isinstance(top, inside)
        for node in ast.walk(top)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{name}" for name in METHODS}
    }


def written_out(call: ast.Call) -> re.Pattern[str] | None:
    """Return the compiled expression of a call with its flags, or None if it is built at run time."""
    match call.args[0]:
        case ast.Constant(value=str(text)):
            given = [ast.unparse(each) for each in (*call.args[1:], *(word.value for word in call.keywords))]
            flags = [getattr(re, name) for each in given for name in re.findall(r"\bre\.([A-Z]+)\b", each)]
            return re.compile(text, reduce(or_, flags, re.RegexFlag(0)))
    return None


def seconds(work: Callable[[str], object], text: str) -> float:
    began = time.thread_time()
    work(text)
    return time.thread_time() - began


def quick(work: Callable[[str], object], text: str) -> bool:
    """Return True if `work` takes less than a second on 50 KB.

    Both ends of a text matter, so shorter texts are cut from both. Short ones catch exponential and cubic time before
    it hangs. Cubic work that takes under a millisecond on 5,000 characters takes under a second on 50,000.
    """
    for n, limit in ((24, 0.05), (N // 100, 0.02), (N // 10, 0.1)):
        part = text[: n // 2] + text[-n // 2 :]
        took = seconds(work, part)
        if took > limit and seconds(work, part) > limit:  # the first measurement may include a garbage collection
            return False
    return took < 0.001 or seconds(work, text) < 1


@pytest.mark.parametrize("names", [FIFTH, pytest.param(REST, marks=pytest.mark.full)], ids=["fifth", "rest"])
def test_no_text_makes_a_regular_expression_slow(names: list[str]) -> None:
    known, found = held(), searching()
    spelt = {(pattern.pattern, pattern.flags) for pattern in known.values()}
    written = {where: pattern for where, call in calls().items() if (pattern := written_out(call))}
    expressions = known | {where: each for where, each in written.items() if (each.pattern, each.flags) not in spelt}
    assert len(expressions) > 100
    slow = dict[str, list[str]]()
    for where, pattern in expressions.items():
        name = where.rpartition(".")[2]
        anchored = name in ANCHORED or (where in known and name not in found)

        def work(text: str, where: str = where, pattern: re.Pattern[str] = pattern, anchored: bool = anchored) -> None:
            shown = text[:WINDOW] if where in WINDOWED else text
            if not anchored and where not in WINDOWED:
                deque(pattern.finditer(shown), maxlen=0)
            pattern.fullmatch(shown)
            pattern.match(shown)

        slow[where] = [name for name in names if not quick(work, HOSTILE[name])]
    assert {where: found for where, found in slow.items() if found} == {}


def test_a_slow_expression_is_found() -> None:
    """The expressions take quadratic, cubic and exponential time."""
    assert not any(quick(re.compile(pattern).search, HOSTILE["aa"]) for pattern in (r"a+x", r"a*a*x", r"(a+)+x"))


def test_no_text_makes_the_splitter_slow() -> None:
    assert [name for name, text in HOSTILE.items() if not quick(split, text)] == []


def corpus(name: str) -> Corpus:
    return Corpus(fingerprint="", name=name, n_sentences=0, n_tokens=0, labelled=True, path=ROOT)


def named_as_part(text: str) -> None:
    """Compare corpora whose names contain `train` many times, because an expression is built from such names."""
    trains = "train ".join(text[i : i + 20] for i in range(0, 400, 20))
    _named_as_part(corpus(trains), corpus(trains.replace("train ", "dev ") + "x"))
    _named_as_part(corpus("train " * 40), corpus(text))


def searched(text: str) -> None:
    """Search for a short and a long word, because each word of a query becomes an expression."""
    word = "".join(text[:50].split())
    for query in (word[:1], word):
        matches(pa.chunked_array([[text]]), query, "words")


# Functions that build an expression at run time, by file.
PUT_TOGETHER = {
    "core/text/words.py": lambda text: nfc("\u0301" * 1000 + text + "\u0301\u0316" * 1000),
    "core/bias/rebuild.py": named_as_part,
    "core/corpora/columns.py": searched,
}


@pytest.mark.full
def test_no_text_makes_an_expression_built_at_run_time_slow() -> None:
    made = {where.split(":")[0] for where, call in calls(in_functions=True).items() if not written_out(call)}
    arrow = {source.path for source in SOURCES if "_regex(" in source.text}
    assert made | arrow == PUT_TOGETHER.keys()
    slow = {
        where: [name for name, text in HOSTILE.items() if not quick(work, text)] for where, work in PUT_TOGETHER.items()
    }
    assert slow == {where: [] for where in PUT_TOGETHER}
