"""Files as a proposal sees them: a look at each, and those that are a row together.

Likeness of two texts is the Bhattacharyya coefficient of their content words' frequencies, the sum of sqrt(p q): 1 for
the same frequencies, 0 for no common word.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from pathlib import PurePosixPath

from core.corpora.formats.detect import suffix
from core.corpora.formats.folders import named_part
from core.corpora.formats.source import DOCUMENTS

LABELS = ("train", "dev", "test")
DIVIDE, SOURCE, UNUSED = "divide", "source", ""
PARTS = ("task", "domain", *LABELS, DIVIDE, SOURCE)
MOST_SINGLE = 8  # files of a kind in a folder that have a row each
# Whole words of a name; no \b, for which `_` and digits are letters: task_2 says task.
_HINTS = {
    "task": re.compile(r"(?:^|[^a-z])(?:task|target)(?:[^a-z]|$)"),
    "domain": re.compile(r"(?:^|[^a-z])(?:domain|unlabell?ed|background|pile|raw)(?:[^a-z]|$)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One file, from a look at its beginning.

    name: as the user knows it, folders with `/`. sentences: how many; exact: counted, else estimated. types: entities
    seen by type. words: content words seen, with counts. long: its rows are documents to be cut. problem: why it cannot
    be read, "" if it can.
    """

    name: str
    bytes: int
    format: str = ""
    labelled: bool = False
    sentences: int = 0
    exact: bool = False
    types: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)
    long: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Files that play one part. part: of `PARTS`, or `UNUSED`. seen: why, a sentence. long: as `Look` has it.

    Its fields are keys of `corpus propose --json`.
    """

    files: tuple[str, ...]
    name: str
    bytes: int
    sentences: int
    exact: bool
    labelled: bool
    part: str
    seen: str
    types: tuple[str, ...] = ()
    long: bool = False

    @property
    def possible_parts(self) -> tuple[str, ...]:
        """The parts that they could play."""
        if not self.sentences:  # it cannot be read
            return (UNUSED,)
        return (*PARTS, UNUSED) if self.labelled else ("task", "domain", SOURCE, UNUSED)


class Group:
    """Files of one row, and the part that they are given."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self.looks, self.files = looks, tuple(look.name for look in looks)
        self.sentences = sum(look.sentences for look in looks)
        self.words, self.types = Counter[str](), Counter[str]()
        for look in looks:
            self.words.update(look.words)
            self.types.update(look.types)
        self.part, self.seen = UNUSED, ""

    def give(self, part: str, seen: str) -> None:
        """Give them a part. seen: why, a sentence."""
        self.part, self.seen = part, seen

    @property
    def named(self) -> str:
        """The one of train, dev and test that all its names say, else ""."""
        names = {named_part(name) or "" for name in self.files}
        return names.pop() if len(names) == 1 else ""

    def hints(self, part: str) -> bool:
        """Whether its names say that it is the task's text, or the domain's."""
        return all(_HINTS[part].search(name.lower()) for name in self.files)

    def like(self, other: "Group") -> float:
        """The likeness of both, 0 to 1."""
        return likeness(self.words, other.words)

    def row(self) -> Row:
        """The row of a proposal, once they have their part."""
        long = any(look.long for look in self.looks)
        return Row(
            files=self.files,
            name=_row_name(self.looks),
            bytes=sum(look.bytes for look in self.looks),
            sentences=self.sentences,
            exact=all(look.exact for look in self.looks),
            labelled=self.looks[0].labelled,  # of one format, as `grouped` puts them together
            part=self.part,
            seen=self.seen + ("; its rows are long and are cut into sentences" if long else ""),
            types=tuple(sorted(self.types)),
            long=long,
        )


def likeness(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """The Bhattacharyya coefficient of two counts of words."""
    n, m = sum(one.values()), sum(other.values())
    return sum(sqrt(one[word] * other[word]) for word in one.keys() & other.keys()) / sqrt(n * m) if n and m else 0.0


def size(group: Group) -> int:
    """Sentences of a group, to sort and choose by."""
    return group.sentences


def grouped(looks: Sequence[Look]) -> list[list[Look]]:
    """Documents of a folder together, and whatever else it holds more than `MOST_SINGLE` of."""
    groups = defaultdict[tuple[str, ...], list[Look]](list)
    for look in looks:
        path = PurePosixPath(look.name)
        document = not look.labelled and path.suffix.lower() in DOCUMENTS
        kind = "document" if document else f"{look.format} {named_part(look.name) or ''} {' '.join(sorted(look.types))}"
        groups[str(path.parent), kind].append(look)
    return [
        part
        for (_, kind), files in groups.items()
        for part in ([files] if kind == "document" or len(files) > MOST_SINGLE else [[look] for look in files])
    ]


def apart(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Split file names into sources: the documents of a folder, over `MOST_SINGLE` files of a kind, or one file."""
    groups = defaultdict[tuple[str, str], list[str]](list)
    for name in names:
        path = PurePosixPath(name)
        kind = path.suffix.lower()
        groups[str(path.parent), "document" if kind in DOCUMENTS else kind].append(name)
    return [
        source
        for (_, kind), files in groups.items()
        for source in (
            [tuple(files)] if kind == "document" or len(files) > MOST_SINGLE else [(name,) for name in files]
        )
    ]


def _row_name(looks: Sequence[Look]) -> str:
    if len(looks) == 1:
        return looks[0].name
    folder = PurePosixPath(looks[0].name).parent
    endings = Counter(suffix(PurePosixPath(look.name)).removeprefix(".") for look in looks)
    kinds = ", ".join(ending.upper() for ending, _ in endings.most_common(4))
    return f"{len(looks):,} files ({kinds})" + ("" if str(folder) == "." else f" in {folder}")
