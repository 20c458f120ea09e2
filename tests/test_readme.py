"""The README's tree names every file, and its commands exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_tree_names_every_file() -> None:
    files = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "core").rglob("*.py")]
    named = set(re.findall(r"^(\S+\.py) ", README, flags=re.MULTILINE))
    missing = [
        str(file.relative_to(ROOT))
        for file in files
        if file.stat().st_size and str(file.relative_to(ROOT)) not in named
    ]
    assert not missing


def test_pictures_and_benchmarks_exist() -> None:
    for path in re.findall(r"\]\((assets/[^)]+)\)", README):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"tests\.benchmarks\.(\w+)", README):
        assert (ROOT / "tests" / "benchmarks" / f"{name}.py").exists(), name
