"""Propose a role for each of several files, by their labels, names, sizes and words. This module reads no files.

The similarity of two texts is the Bhattacharyya coefficient of the frequencies p and q of their content words: the sum
of sqrt(p q) over all words. It is 1 for equal frequencies, and 0 if the texts have no word in common.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from pathlib import PurePosixPath

from core.corpora.formats.detect import suffix
from core.corpora.formats.folders import named_part
from core.corpora.formats.source import DOCUMENTS
from core.terms import labels_in_words, role_in_words

LABELS = ("train", "dev", "test")
DIVIDE, SOURCE, UNUSED = "divide", "source", ""
FILE_ROLES = ("task", "domain", *LABELS, DIVIDE, SOURCE)
# Up to eight files of one kind in a folder have a row each; more files share a row.
MOST_SINGLE = 8
# Words in a file name that suggest a role. The pattern \btask\b would not match task_2, because `_` and digits count as
# letters there.
_HINTS = {
    "task": re.compile(r"(?:^|[^a-z])(?:task|target)(?:[^a-z]|$)"),
    "domain": re.compile(r"(?:^|[^a-z])(?:domain|unlabell?ed|background|pile|raw)(?:[^a-z]|$)"),
}
# A text is small if the domain corpus is at least five times larger.
SMALL = 5
# A text becomes the task corpus if its similarity to the labelled text is at least 1.2 times that of the domain corpus.
# For a small text, 0.8 times is enough.
CLEARLY = 1.2
ROUGHLY = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Findings from the beginning of a file.

    name: the file's name for the user, with folders. sentences: number of sentences, counted if `exact`, else
    estimated. types: {type: number of entities} in the part that was read. words: {content word: number of times} in
    this part. long: True if the rows are documents that must be split into sentences. problem: why the file cannot be
    read, "" if it can.
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
    """Row of a proposal: one or more files with a role. The fields are keys of `corpus propose --json`.

    part: the role, one of `FILE_ROLES` or `UNUSED`. seen: reason for the role, for the user. exact, long: see `Look`.
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
    def possible_roles(self) -> tuple[str, ...]:
        """Roles that the user can give to the files."""
        if not self.sentences:  # a file that cannot be read
            return (UNUSED,)
        return (*FILE_ROLES, UNUSED) if self.labelled else ("task", "domain", SOURCE, UNUSED)


class Group:
    """Files that share a row of the proposal, and the role that is proposed for them."""

    def __init__(self, looks: Sequence[Look]) -> None:
        self.looks, self.files = looks, tuple(look.name for look in looks)
        self.sentences = sum(look.sentences for look in looks)
        self.words, self.types = Counter[str](), Counter[str]()
        for look in looks:
            self.words.update(look.words)
            self.types.update(look.types)
        self.role, self.seen = UNUSED, ""

    def give(self, role: str, seen: str) -> None:
        """Set the role of the files. seen: reason for the role, in words."""
        self.role, self.seen = role, seen

    @property
    def named(self) -> str:
        """The word "train", "dev" or "test" if the names of all files contain it, else ""."""
        names = {named_part(name) or "" for name in self.files}
        return names.pop() if len(names) == 1 else ""

    def hints(self, role: str) -> bool:
        """Return True if the names of all files contain a word that suggests `role` ("task" or "domain")."""
        return all(_HINTS[role].search(name.lower()) for name in self.files)

    def like(self, other: "Group") -> float:
        """Return the similarity of the two groups' words, from 0 to 1."""
        return likeness(self.words, other.words)

    def row(self) -> Row:
        """Return the group as a row of the proposal."""
        long = any(look.long for look in self.looks)
        return Row(
            files=self.files,
            name=_row_name(self.looks),
            bytes=sum(look.bytes for look in self.looks),
            sentences=self.sentences,
            exact=all(look.exact for look in self.looks),
            labelled=self.looks[0].labelled,  # equal for all files of a group, see `grouped`
            part=self.role,
            seen=self.seen + ("; its long rows will be split into sentences" if long else ""),
            types=tuple(sorted(self.types)),
            long=long,
        )


def likeness(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Return the Bhattacharyya coefficient of the word counts of two texts, 0 to 1; 0 if a text has no words."""
    n, m = sum(one.values()), sum(other.values())
    return sum(sqrt(one[word] * other[word]) for word in one.keys() & other.keys()) / sqrt(n * m) if n and m else 0.0


def size(group: Group) -> int:
    """Return the number of sentences of a group, as a sort key."""
    return group.sentences


def grouped(looks: Sequence[Look]) -> list[list[Look]]:
    """Return groups of files. Within a folder, all documents are a group.

    More than `MOST_SINGLE` files of one kind in a folder are a group too. Every other file is a group of its own.
    """
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
    """Divide file names into sources.

    A source is all documents of a folder, more than `MOST_SINGLE` files of one kind in a folder, or a single file.
    """
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
    """The proposed roles of all files.

    ask: files among which the user must mark those that are similar to the task; () if this is not necessary. held:
    roles that corpora of the project already have.
    """

    rows: tuple[Row, ...]
    ask: tuple[str, ...] = ()
    held: tuple[str, ...] = ()

    @property
    def task_of_train(self) -> bool:
        """True if the training set's text will be used as T_C, because neither the files nor the project have a T_C."""
        return task_of_train((*self.files(), *self.held))

    @property
    def joined(self) -> tuple[Row, ...]:
        """Rows with the role "domain", whose files will be joined into one corpus; () if there are fewer than two."""
        rows = tuple(row for row in self.rows if row.part == "domain")
        return rows if len(rows) > 1 else ()

    def kept_apart(self) -> "Proposal":
        """Return the proposal with only the largest joined row as domain corpus. Other joined rows become sources."""
        largest = max(self.joined, key=lambda row: row.sentences, default=None)
        rows = [
            replace(row, part=SOURCE, seen="kept separate, to compare")
            if row in self.joined and row is not largest
            else row
            for row in self.rows
        ]
        return replace(self, rows=_in_order(rows))

    def files(self, roles: Mapping[str, str] | None = None) -> dict[str, tuple[str, ...]]:
        """Return {role: its files}. roles: {first file of a row: role} for rows whose role the user has changed."""
        files = defaultdict[str, list[str]](list)
        for row in self.rows:
            if role := (roles or {}).get(row.files[0], row.part):
                files[role] += row.files
        return {role: tuple(files[role]) for role in FILE_ROLES if role in files}


def task_of_train(roles: Collection[str]) -> bool:
    """Return True if the roles include a training set, or labelled data to divide, but no task corpus."""
    return "task" not in roles and not {"train", DIVIDE}.isdisjoint(roles)


def remaining(given: Iterable[str]) -> tuple[str, ...]:
    """Return the sets among train, dev and test that are missing. given: sets that exist."""
    return tuple(role for role in LABELS if role not in set(given))


def propose(looks: Sequence[Look], like: Collection[str] = (), held: Mapping[str, str] | None = None) -> Proposal:
    """Propose a role for every file. like: names of the files that the user marked as similar to the task.

    held: {role: name of the project's corpus with this role}. Corpora of the project keep their roles.
    """
    held = held or {}
    usable = [look for look in looks if not look.problem]
    texts = [
        Group(looks) for looks in grouped([look for look in usable if not look.labelled and look.name not in like])
    ]
    labels = [Group(looks) for looks in grouped([look for look in usable if look.labelled])]
    chosen = [Group([look]) for look in usable if not look.labelled and look.name in like]
    primary = _label_parts(labels, max((group for group in texts), key=size, default=None), trained="train" in held)
    _text_parts(texts, primary, asked=bool(chosen))
    for group in chosen:
        group.give("task", "you marked it as similar to your task")
    broken = [
        replace(Group([look]).row(), sentences=0, seen=f"cannot be read: {look.problem}")
        for look in looks
        if look.problem
    ]
    fresh = [_beside(group.row(), held) for group in (*labels, *texts)]
    rows = (*fresh, *(group.row() for group in chosen), *broken)
    ask = (
        ()
        if primary or chosen or "task" in held or any(row.part == "task" for row in rows)
        else tuple(name for group in texts if group.role for name in group.files)
    )
    return Proposal(rows=_in_order(rows), ask=ask, held=tuple(held))


def _beside(row: Row, held: Mapping[str, str]) -> Row:
    """Return the row, with another role if a corpus of the project has the proposed role.

    Files to divide become the training set if the project has a dev or test set. held: see `propose`.
    """
    needs = "train" if row.part == DIVIDE else row.part
    if needs in held:
        held_role = f"{held[needs]} is already the {role_in_words(needs)} of this project"
        seen = f"{held_role}, so this is proposed as a further source"
        return replace(row, part=SOURCE, seen=seen)
    if row.part == DIVIDE and not held.keys().isdisjoint(LABELS):
        seen = "labelled; proposed as the training set, because the project already has a dev or test set"
        return replace(row, part="train", seen=seen)
    return row


def _label_parts(groups: Sequence[Group], largest: Group | None, *, trained: bool) -> Group | None:
    """Propose a role for each group of labelled files: training, dev or test set, file to divide, or unused.

    Return the files to train on as one group, None if no file is labelled. largest: largest group without labels.
    trained: True if the project has a training set; files whose names suggest a dev or test set then become these.
    """
    if not groups:
        return None
    family, *others = _ranked(_families(groups), largest)
    for group in (group for other in others for group in other):
        types, own = _types(group), _types(family[0])
        another = f"labelled with {types}, not with {own}, so it belongs to another task"
        group.give(UNUSED, f"{another}; the page Assisting can use it")
    by_name = defaultdict[str, list[Group]](list)
    for group in family:
        by_name[group.named].append(group)
    if trained and by_name.keys() & {"dev", "test"}:
        _give_names({name: by_name[name] for name in ("dev", "test")})
    elif len(family) == 1 or not by_name.keys() & {"train", ""}:  # a single group, or all names suggest dev or test
        _divide([max(family, key=size)], [])
    else:
        _named_parts(by_name)
    for group in family:
        if not group.seen:
            group.give(UNUSED, "labelled, but other files are already the training, dev and test set")
    return Group([look for group in family if group.role in ("train", DIVIDE) for look in group.looks])


def _named_parts(by_name: Mapping[str, Sequence[Group]]) -> None:
    """Propose roles for labelled files if some names contain train, dev or test."""
    given = [role for role in LABELS if by_name.get(role)]
    unnamed = by_name.get("", ())
    _give_names({role: by_name[role] for role in given})
    if "train" not in given:
        largest = max(unnamed, key=size)
        if given == ["dev", "test"]:
            largest.give("train", "labelled; proposed as the training set, as other files are the dev and test set")
        else:
            alike = [group for group in unnamed if group.looks[0].format == largest.looks[0].format]
            _divide([largest] if given else alike, given)
    elif len(given) < len(LABELS):
        _divide(by_name["train"], given[1:])


def _give_names(by_name: Mapping[str, Sequence[Group]]) -> None:
    for role, groups in by_name.items():
        for group in groups:
            group.give(role, f"labelled, and the name suggests the {role_in_words(role)}")


def _divide(groups: Sequence[Group], given: Sequence[str]) -> None:
    """Propose to join labelled files and to divide them into the missing sets. given: sets that exist."""
    sets = labels_in_words(remaining(given))
    together = " together" if len(groups) > 1 else ""
    for group in groups:
        group.give(DIVIDE, f"labelled: will be divided{together} into {sets}; duplicates stay in one set")


def _families(groups: Sequence[Group]) -> list[list[Group]]:
    """Divide groups of labelled files into families that use the same entity types.

    A group joins a family if the family's first group has at least half of the types of the joining group. A group
    without types joins the family with the most types.
    """
    families = list[list[Group]]()
    for group in sorted(groups, key=lambda group: (len(group.types), group.sentences), reverse=True):
        # Find a family whose first group has at least half of this group's entity types.
        home = next(
            (each for each in families if len(group.types.keys() & each[0].types.keys()) >= 0.5 * len(group.types)),
            None,
        )
        if home is None:
            families.append([group])
        else:
            home.append(group)
    return families


def _ranked(families: Sequence[Sequence[Group]], largest: Group | None) -> list[Sequence[Group]]:
    """Sort the families so that the one that fits the task best comes first.

    Families are sorted by how many of the words train, dev and test occur in their files' names, then by size. The
    families with as many of these words as the first family are then compared with `largest`, the largest unlabelled
    text. The family that is most similar to it moves to the front if it is at least twice as similar as the first.
    """

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
    """Propose roles for unlabelled files: domain corpus, or task corpus if names, words or sizes suggest this role.

    labels: files to train on. asked: True if the user has chosen files that are similar to the task.
    """
    rest = [group for group in groups if not _held_out(group)]
    for group in rest:
        if group.hints("task"):
            group.give("task", "without labels, and the name suggests a task corpus")
    rest, named = [group for group in rest if not group.role], any(group.role == "task" for group in rest)
    if not rest:
        return
    domain = max((group for group in rest if group.hints("domain")), default=None, key=size) or max(rest, key=size)
    equal = sum(size(group) == size(domain) for group in rest) > 1
    rank = "one of the largest" if equal else "the largest" if len(groups) > 1 else "the only one"
    why = "its name suggests this" if domain.hints("domain") else f"it is {rank}"
    domain.give("domain", f"without labels; proposed as the domain corpus to select from, because {why}")
    for group in (group for group in rest if group is not domain):
        if labels and (seen := _of_the_task(group, domain, labels)):
            group.give("task", seen)
        elif not labels and not asked and group.sentences * SMALL <= domain.sentences and not named:
            smaller = "much smaller than the rest; proposed as the task corpus"
            group.give("task", f"{smaller}, if it is similar to the text that you will label")
        else:
            group.give("domain", "without labels, so it joins the domain corpus")


def _held_out(group: Group) -> bool:
    """Mark unlabelled files as unused if their names contain dev or test, because nothing may be trained on them.

    Return True for such files.
    """
    if group.named not in ("dev", "test"):
        return False
    group.give(
        UNUSED, f"without labels, and the name suggests the {role_in_words(group.named)}, so nothing is trained on it"
    )
    return True


def _of_the_task(group: Group, domain: Group, labels: Group) -> str:
    """Return the reason for the role "task" if a text and the labelled text have similar words, else ""."""
    near, far = group.like(labels), domain.like(labels)
    small = group.sentences * SMALL <= domain.sentences
    if near and (near >= CLEARLY * far or (small and near >= ROUGHLY * far)):
        return "proposed as the task corpus, because its words are similar to those of your labelled sentences"
    return ""


def _in_order(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Sort rows by role; unused rows come last."""
    return tuple(sorted(rows, key=lambda row: FILE_ROLES.index(row.part) if row.part else len(FILE_ROLES)))
