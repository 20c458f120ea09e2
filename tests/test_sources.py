"""What the code rests on is cited as the field does, and every convention that is cited stands in core/SOURCES.md."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DIALECT = re.compile(
    r"\bSPEC\b|\bS[0-4]\b|\bs0_|\b(?:PERF|UX|DESIGN)\b"  # papers and documents by a number that nobody outside knows
    r"|(?<!SUM\()(?<![\w/.-])(?:[ACG](?:1\d|\d)|B[03-9])(?:\.\d+)?\b"  # and their sections; B1 and B2 are models
)
CITATION = "SOURCES.md, "


def _files() -> Iterator[Path]:
    for room in ("core", "pages", "tests"):
        yield from (file for end in ("py", "md") for file in sorted((ROOT / room).rglob(f"*.{end}")))
    yield from (ROOT / name for name in ("app.py", "home.py", "README.md", "Makefile"))


def _headings() -> set[str]:
    lines = (ROOT / "core" / "SOURCES.md").read_text(encoding="utf-8").splitlines()
    return {line.lstrip("# ") for line in lines if line.startswith("##")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(S0, 3.1)", ["S0"]),
        ("as SPEC has it", ["SPEC"]),
        ("is won (C14).", ["C14"]),
        ("B1 and B2 learn", []),
        ("see A2.1 and G9", ["A2.1", "G9"]),
        ("=SUM(A1)", []),
        ("UTF-8, T_C, S_C, 3A", []),
        ("PERF.md, UX 12", ["PERF", "UX"]),
    ],
)
def test_the_private_names_are_recognised(text: str, words: list[str]) -> None:
    assert DIALECT.findall(text) == words


def test_no_file_cites_what_is_not_in_the_repository() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match}"
        for file in _files()
        if file != Path(__file__)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in DIALECT.findall(line)
    ]
    assert not found, "cite the paper (Dai et al. 2019, 4.2) or a heading of core/SOURCES.md"


def test_every_convention_that_is_cited_stands_in_sources() -> None:
    headings, missing, n = _headings(), [], 0
    for file in _files():
        text = re.sub(r"\s+#?\s*", " ", file.read_text(encoding="utf-8"))
        for place in re.finditer(re.escape(CITATION), text):
            cited = text[place.end() : place.end() + 60]
            n += 1
            if file != Path(__file__) and not any(re.match(re.escape(name) + r"(?![\w-])", cited) for name in headings):
                missing.append(f"{file.relative_to(ROOT)}: {cited}")
    assert n > 50
    assert not missing
