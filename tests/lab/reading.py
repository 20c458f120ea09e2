"""Print a seeded sample of the project's English, to be read by somebody who does not know the code.

    python -m tests.lab.reading --seed 7

The sample: 100 docstrings and 75 comments of `core`, `pages`, `home.py` and `app.py`, each with its file, line and the
line of code that it belongs to; 100 strings of six words or more that users see; and all sentences of the README. Mark
each text that has to be read twice. The goal is at most 5 in 100 of each kind.
"""

import argparse
import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SIZES = {"docstring": 100, "comment": 75, "string": 100}
LEAST = 6  # words of a string


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to read. code: the line of code that it describes or stands in."""

    kind: str
    place: str
    code: str
    words: str


def files() -> list[Path]:
    """Return the source files whose English is read."""
    folders = [path for top in ("core", "pages") for path in (ROOT / top).rglob("*.py")]
    return sorted([*folders, ROOT / "home.py", ROOT / "app.py"])


def texts(path: Path) -> Iterator[Text]:
    """Yield the docstrings, the comments (those on neighbouring lines of their own as one) and the long strings of a file."""
    source = path.read_text(encoding="utf-8")
    rows, tree, docs = source.splitlines(), ast.parse(source), set[int]()
    name = str(path.relative_to(ROOT))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            words := ast.get_docstring(node)
        ):
            first = node.body[0]
            docs |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
            line = getattr(node, "lineno", 1)
            code = "" if isinstance(node, ast.Module) else rows[line - 1].strip()
            yield Text(kind="docstring", place=f"{name}:{line}", code=code, words=words)
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr | ast.Constant) and node.lineno not in docs and id(node) not in inner:
            words = _string(node)
            if len(words.split()) >= LEAST:
                code = rows[node.lineno - 1].strip()
                yield Text(kind="string", place=f"{name}:{node.lineno}", code=code, words=words)
    yield from _comments(name, source, rows)


def _string(node: ast.JoinedStr | ast.Constant) -> str:
    """Return the text of a string; values of an f-string are shown as their source in braces."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    parts = (
        f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else part.value
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )
    return "".join(map(str, parts))


def _comments(name: str, source: str, rows: list[str]) -> Iterator[Text]:
    block: list[tuple[int, str]] = []

    def joined() -> Iterator[Text]:
        if block:
            line = block[0][0]
            own = rows[line - 1].split("#")[0].strip()
            code = own or next((row.strip() for row in rows[block[-1][0] :] if row.strip()), "")
            yield Text(kind="comment", place=f"{name}:{line}", code=code, words=" ".join(words for _, words in block))

    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or re.match(r"#\s*(type:|noqa|fmt:|!)", token.string):
            continue
        trailing = bool(rows[token.start[0] - 1][: token.start[1]].strip())  # a comment after code is a text of its own
        if block and (trailing or token.start[0] != block[-1][0] + 1):
            yield from joined()
            block = []
        block.append((token.start[0], token.string.lstrip("# ")))
    yield from joined()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    every = [text for path in files() for text in texts(path)]
    rng = random.Random(given.seed)
    for kind, size in SIZES.items():
        found = [text for text in every if text.kind == kind]
        print(f"# {size} of {len(found):,} {kind}s, seed {given.seed}\n")
        for number, text in enumerate(rng.sample(found, size), 1):
            print(
                f"{kind[0].upper()}{number} {text.place}  {text.code}\n    " + text.words.replace("\n", "\n    ") + "\n"
            )
    print("# README\n")
    print((ROOT / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
