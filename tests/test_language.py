"""Names say what they hold, in the field's words: results, rows, runs, not what somebody found, told or made."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TELLING = {
    *("told", "found", "made", "said", "every", "lots", "mine", "theirs", "heard", "beside", "looking"),
    *("also", "spent", "apart", "anew", "luck", "spelt", "lent", "tried", "took", "came", "met", "soon"),
    *("nowhere", "onward", "onwards", "wherever", "beneath"),
}
OF_LIBRARIES = {"connection_made"}  # asyncio's
ON_DISK = {"made_by", "also", "also_test"}  # keys of a finished run's config and result, which is read again by them
# Words that say of a file when or how, and not what it holds.
STEMS = {"ahead", "changed", "compared", "doorstep", "hours", "kept", "mapped", "meetings", "planned", "remains"}
STEMS |= {"taken", "tested"}
FILES = [
    *(ROOT / name for name in ("app.py", "home.py")),
    *(file for room in ("pages", "core") for file in sorted((ROOT / room).rglob("*.py"))),
]
# Words that a docstring does not open with: what is returned has a noun, what is done has a verb.
PREPOSITIONS = {"As", "At", "Behind", "By", "For", "From", "In", "Of", "On", "Than", "Those", "To", "With", "Within"}
QUESTIONS = {"How", "What", "When", "Where", "Which", "Who", "Why"}


def given(source: str) -> Iterator[tuple[int, str]]:
    """Every name that a module gives: variables, parameters, attributes, functions, classes, imports under another."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name) | ast.alias(asname=str(name)):
                yield node.lineno, name


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = run(made)", ["found"]),
        ("def told(rows): pass", ["told", "rows"]),
        ("self.said = [mine for mine in rows]", ["said", "mine"]),
        ("from a import b as lots", ["lots"]),
        ('f"found {run.made}"', []),
    ],
)
def test_a_name_is_recognised_where_it_is_given(source: str, names: list[str]) -> None:
    assert sorted(name for _, name in given(source)) == sorted(names)


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_they_hold(file: Path) -> None:
    telling = [
        f"{file.name}:{line}: {name}"
        for line, name in given(file.read_text(encoding="utf-8"))
        if TELLING & set(name.lower().split("_")) and name not in OF_LIBRARIES | ON_DISK
    ]
    assert not telling, "call it by what it holds: rows, mentions, result, options"


def test_a_file_is_named_after_what_it_holds() -> None:
    telling = [str(file.relative_to(ROOT)) for file in FILES if file.stem in STEMS | TELLING]
    assert not telling, "a noun: tagger_scores, further_tests, durations"


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_docstring_opens_with_a_verb_or_with_the_noun_of_what_is_returned(file: Path) -> None:
    opening = [
        f"{file.name}:{node.lineno}: {text.splitlines()[0]}"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node))
        and text.split()[0] in PREPOSITIONS | QUESTIONS
    ]
    assert not opening, "say what it does (Read, Keep), or what it returns (Options of ..., The fingerprint of ...)"
