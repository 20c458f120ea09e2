"""Which part each of several files is: by labels, names, sizes and likeness of words. Pure: looks in, rows out."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import PurePosixPath

from core.corpora.formats.detect import suffix
from core.corpora.formats.folders import named_part
from core.corpora.formats.source import DOCUMENTS
from core.terms import labels_in_words, part_in_words

LABELS = ("train", "dev", "test")
DIVIDE, SOURCE, UNUSED = "divide", "source", ""
PARTS = ("task", "domain", *LABELS, DIVIDE, SOURCE)
MOST_SINGLE = 8  # files of a kind in a folder that have a row each
# Whole words of a name; no \b, for which `_` and digits are letters: task_2 says task.
_HINTS = {
    "task": re.compile(r"(?:^|[^a-z])(?:task|target)(?:[^a-z]|$)"),
    "domain": re.compile(r"(?:^|[^a-z])(?:domain|unlabell?ed|background|pile|raw)(?:[^a-z]|$)"),
}
CLEARLY = 1.2  # times as like the labelled text as the largest text is: it is the task's
ROUGHLY = 0.8  # the same for a text that is small besides
SMALL = 5  # times smaller than the largest


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A part for every file. ask: files of which some may be like the task, if nothing tells which.

    held: the roles that corpora of the project have already.
    """

    rows: tuple[Row, ...]
    ask: tuple[str, ...] = ()
    held: tuple[str, ...] = ()

    @property
    def task_of_train(self) -> bool:
        """Return True if T_C will be the text of L_C train, because neither the files nor the project have a T_C."""
        return task_of_train((*self.files(), *self.held))

    @property
    def joined(self) -> tuple[Row, ...]:
        """Rows that become one domain corpus; empty unless there are several."""
        rows = tuple(row for row in self.rows if row.part == "domain")
        return rows if len(rows) > 1 else ()

    def kept_apart(self) -> "Proposal":
        """Return the proposal with one domain corpus, the largest; the rows that would join it are sources."""
        largest = max(self.joined, key=lambda row: row.sentences, default=None)
        rows = [
            replace(row, part=SOURCE, seen="kept apart, to compare")
            if row in self.joined and row is not largest
            else row
            for row in self.rows
        ]
        return replace(self, rows=_in_order(rows))

    def files(self, parts: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...]]:
        """{part: its files}. parts: {a row's first file: its part} where that is another than proposed."""
        files = defaultdict[str, list[str]](list)
        for row in self.rows:
            if part := (parts or {}).get(row.files[0], row.part):
                files[part] += row.files
        return {part: tuple(files[part]) for part in PARTS if part in files}


def task_of_train(parts: Collection[str]) -> bool:
    """The same of the parts that are played."""
    return "task" not in parts and not {"train", DIVIDE}.isdisjoint(parts)


def remaining(given: Iterable[str]) -> tuple[str, ...]:
    """Parts that a labelled corpus is divided into where some are given already."""
    return tuple(part for part in LABELS if part not in set(given))


def propose(looks: Sequence[Look], like: Collection[str] = (), held: Mapping[str, str] | None = None) -> Proposal:
    """Propose a part for every file. like: names of the files that the user says are like the task.

    held: {role: name of the corpus that has it in the project}. A role that is filled stays filled.
    """
    held = held or {}
    usable = [look for look in looks if not look.problem]
    texts = [
        Group(looks) for looks in grouped([look for look in usable if not look.labelled and look.name not in like])
    ]
    labels = [Group(looks) for looks in grouped([look for look in usable if look.labelled])]
    chosen = [Group([look]) for look in usable if not look.labelled and look.name in like]
    primary = _label_parts(labels, max((group for group in texts), key=size, default=None))
    _text_parts(texts, primary, asked=bool(chosen))
    for group in chosen:
        group.give("task", "you say that it is like your task")
    broken = [_row_of_broken(look) for look in looks if look.problem]
    fresh = [_beside(group.row(), held) for group in (*labels, *texts)]
    rows = (*fresh, *(group.row() for group in chosen), *broken)
    ask = (
        ()
        if primary or chosen or "task" in held or any(row.part == "task" for row in rows)
        else tuple(name for group in texts if group.part for name in group.files)
    )
    return Proposal(rows=_in_order(rows), ask=ask, held=tuple(held))


def _beside(row: Row, held: Mapping[str, str]) -> Row:
    """Return the row with a part that replaces no corpus of the project."""
    needs = "train" if row.part == DIVIDE else row.part
    if needs in held:
        seen = f"a further source: {held[needs]} is the {part_in_words(needs)} of this project already"
        return replace(row, part=SOURCE, seen=seen)
    if row.part == DIVIDE and not held.keys().isdisjoint(LABELS):
        return replace(row, part="train", seen="labelled, and the project has other labels: what is learnt from")
    return row


def _label_parts(groups: Sequence[Group], largest: Group | None) -> Group | None:
    """Give the labelled ones their parts; all that will be learnt from, None where nothing is labelled."""
    if not groups:
        return None
    family, *others = _ranked(_families(groups), largest)
    for group in (group for other in others for group in other):
        types, own = _types(group), _types(family[0])
        group.give(UNUSED, f"labelled with {types}, not with {own}: another task's; page Assisting can borrow from it")
    by_name = defaultdict[str, list[Group]](list)
    for group in family:
        by_name[group.named].append(group)
    if len(family) == 1 or not by_name.keys() & {"train", ""}:  # nothing, or nothing else, to learn from
        _divide([max(family, key=size)], [])
    else:
        _named_parts(by_name)
    for group in family:
        if not group.seen:
            group.give(UNUSED, "labelled; all three parts are there already")
    return Group([look for group in family if group.part in ("train", DIVIDE) for look in group.looks])


def _named_parts(by_name: Mapping[str, Sequence[Group]]) -> None:
    """The parts of labelled files of which some have a name that says it."""
    given = [part for part in LABELS if by_name.get(part)]
    unnamed = by_name.get("", ())
    for part in given:
        for group in by_name[part]:
            group.give(part, f"labelled, its name says {part}")
    if "train" not in given:
        largest = max(unnamed, key=size)
        if given == ["dev", "test"]:
            largest.give("train", "labelled, and the other parts are there: what is learnt from")
        else:
            _divide([largest] if given else [group for group in unnamed if _alike(group, largest)], given)
    elif len(given) < len(LABELS):
        _divide(by_name["train"], given[1:])


def _divide(groups: Sequence[Group], given: Sequence[str]) -> None:
    """Have labelled ones divided, together, into what is missing."""
    parts = labels_in_words(remaining(given))
    together = ", together" if len(groups) > 1 else ""
    for group in groups:
        group.give(DIVIDE, f"labelled: divided{together} into {parts}, copies on one side alone")


def _families(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups whose types of entities are mostly the same; one without any goes with the largest."""
    families = list[list[Group]]()
    for group in sorted(groups, key=lambda group: (len(group.types), group.sentences), reverse=True):
        home = next((family for family in families if _share(group, family[0]) >= 0.5), None)
        if home is None:
            families.append([group])
        else:
            home.append(group)
    return families


def _share(group: Group, of: Group) -> float:
    """The share of its types of entities that another has."""
    return len(group.types.keys() & of.types.keys()) / len(group.types) if group.types else 1.0


def _alike(group: Group, other: Group) -> bool:
    return group.looks[0].format == other.looks[0].format


def _ranked(families: Sequence[Sequence[Group]], largest: Group | None) -> list[Sequence[Group]]:
    """The family that is the task's first: that of the most named parts, then the largest, unless another is twice as
    like the domain corpus."""

    def near(family: Sequence[Group]) -> float:
        return Group([look for group in family for look in group.looks]).like(largest) if largest else 0.0

    def named(family: Sequence[Group]) -> int:
        return len({group.named for group in family} - {""})

    ranked = sorted(families, key=lambda family: (named(family), sum(map(size, family))), reverse=True)
    rivals = [each for each in ranked[1:] if named(each) == named(ranked[0])]
    closest = max(rivals, key=near, default=ranked[0])
    if near(closest) >= 2 * near(ranked[0]) > 0:
        ranked.remove(closest)
        ranked.insert(0, closest)
    return ranked


def _types(group: Group) -> str:
    names = sorted(group.types)
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "") or "nothing"


def _text_parts(groups: Sequence[Group], labels: Group | None, *, asked: bool) -> None:
    """Give those without labels their parts: the domain corpus, and the task's text where something tells it."""
    rest = [group for group in groups if not _held_out(group)]
    for group in rest:
        if group.hints("task"):
            group.give("task", "without labels, its name says task")
    rest = [group for group in rest if not group.part]
    if not rest:
        return
    domain = max((group for group in rest if group.hints("domain")), default=None, key=size) or max(rest, key=size)
    why = "its name says so" if domain.hints("domain") else "the largest" if len(groups) > 1 else "the only one"
    domain.give("domain", f"without labels, {why}: the domain corpus to choose from")
    for group in (group for group in rest if group is not domain):
        if labels and (seen := _of_the_task(group, domain, labels)):
            group.give("task", seen)
        elif not labels and not asked and group.sentences * SMALL <= domain.sentences and not _has_task(groups):
            group.give("task", "few and small against the rest: task corpus, if it is like what you will label")
        else:
            group.give("domain", "without labels: joins the domain corpus")


def _has_task(groups: Iterable[Group]) -> bool:
    return any(group.part == "task" and group.hints("task") for group in groups)


def _held_out(group: Group) -> bool:
    """Leave out a text whose name says dev or test: nothing may be learnt from it."""
    if group.named not in ("dev", "test"):
        return False
    group.give(UNUSED, f"without labels, its name says {group.named}: nothing is learnt from that")
    return True


def _of_the_task(group: Group, domain: Group, labels: Group) -> str:
    """Reason that a text is the task's by its words, "" where it is not."""
    near, far = group.like(labels), domain.like(labels)
    small = group.sentences * SMALL <= domain.sentences
    if near and (near >= CLEARLY * far or (small and near >= ROUGHLY * far)):
        return "its words are those of your labelled sentences: task corpus"
    return ""


def _row_of_broken(look: Look) -> Row:
    group = Group([look])
    return replace(group.row(), sentences=0, seen=f"cannot be read: {look.problem}")


def _in_order(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Rows by part, what is not used last."""
    return tuple(sorted(rows, key=lambda row: PARTS.index(row.part) if row.part else len(PARTS)))
