"""Every regular expression of the project on 50 KB of what it likes least: below a second."""

import ast
import importlib
import re
import time
from collections import deque
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from core.corpora.split import split

ROOT = Path(__file__).resolve().parents[1]
N = 50_000
LETTERS = ["a", "1", " ", "\n", ".", ",", '"', "[", ":", ";", "+", "。"]
SPITE = {f"{a}{b}": (a + b) * (N // 2) for a, b in product(LETTERS, LETTERS)}
SPITE |= {f"{a}... {end!r}": a * N + end for a in LETTERS for end in ("!", "x")}


WINDOW = 40  # characters: the splitter shows these no more of a text than the word before a full stop
WINDOWED = {"core.corpora.split._WORD", "core.corpora.split._INITIALS", "core.corpora.split._ENUMERATION"}


def expressions() -> dict[str, re.Pattern[str]]:
    """{where: expression}: those that modules hold, and those written out where they are used."""
    found = {}
    for file in sorted(file for room in ("core", "pages/ui") for file in (ROOT / room).rglob("*.py")):
        module = ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for name, value in vars(importlib.import_module(module)).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                found[f"{module}.{name}"] = value
    for file in sorted(file for folder in ("core", "pages") for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=used), args=[ast.Constant(value=str(text)), *_]
                ) if used != "compile":
                    found[f"{file.relative_to(ROOT)}:{node.lineno} {used}"] = re.compile(text)
    return found


EXPRESSIONS = expressions()


def quick(work: Callable[[str], object], text: str) -> bool:
    """Below a second on 50 KB; what is slow on a tenth of it already is not tried on all."""
    for part in (text[: N // 10], text):
        began = time.process_time()
        work(part)
        if time.process_time() - began > len(part) / N:
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
