"""The five pages of Markdown hold: rooms that are there, links that lead somewhere, commands that exist."""

import re
from pathlib import Path

import click
import pytest

from core.cli.main import main
from core.selection import STRATEGIES

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = ("README.md", "CLUSTER.md", "core/README.md", "core/SOURCES.md", "tests/benchmarks/RESULTS.md")
UNLISTED = {"__pycache__"}


def _rooms() -> set[str]:
    """Folders that hold something of ours, below the tops that a reader meets."""
    folders = [ROOT / "core", ROOT / "pages", *(path for top in ("core", "pages") for path in (ROOT / top).rglob("*"))]
    there = {path for path in folders if path.is_dir() and not UNLISTED & set(path.parts)}
    return {f"{path.relative_to(ROOT)}/" for path in there if any(file.is_file() for file in path.iterdir())}


def test_the_list_of_rooms_is_that_of_the_folders() -> None:
    listed = re.findall(r"^\| `([\w/]+/)` \|", (ROOT / "core" / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert _rooms() - {"core/"} <= set(listed), "a room of core or pages is not in core/README.md"
    assert not [room for room in listed if not (ROOT / room).is_dir()], "core/README.md lists what is not there"
    assert len(listed) == len(set(listed))


def test_files_that_are_named_are_there() -> None:
    """Paths in back quotes, from the root or from `core/`."""
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for name in re.findall(r"`((?:core|pages|tests|assets|\w+)/[\w/]+\.(?:py|md|csv))`", text):
            assert any((ROOT / top / name).exists() for top in ("", "core")), f"{page} names {name}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"`[^`]+`", "", (ROOT / page).read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert links or page == "core/SOURCES.md"
    assert not [link for link in links if not ((ROOT / page).parent / link).exists()]


def test_pictures_are_small() -> None:
    pictures = re.findall(r"\]\((assets/[^)]+\.(?!md)\w+)\)", README)
    assert pictures
    for path in pictures:
        assert path.endswith(".webp"), path
        assert (ROOT / path).stat().st_size <= 100_000, path


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_benchmarks_that_are_named_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"python -m core\s+([a-z]+)(?: ([a-z]+))?", text)
    assert named or page != "README.md"
    for first, second in named:
        command = main.commands.get(first)
        assert command is not None, f"python -m core {first}"
        assert not isinstance(command, click.Group) or not second or second in command.commands, f"{first} {second}"
    for name in re.findall(r"tests\.benchmarks\.(\w+)", text):
        assert (ROOT / "tests" / "benchmarks" / f"{name}.py").exists(), name


def test_every_strategy_has_its_row() -> None:
    section = README.split("## What it selects by")[1].split("**Does it find")[0]
    named = {
        name
        for row in section.splitlines()
        for name in re.findall(r"`([a-z-]+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == set(STRATEGIES)
