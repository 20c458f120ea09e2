"""Read exports with several annotators: find who labelled which texts, measure agreement, choose the labels to keep."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import combinations
from pathlib import PurePosixPath

from core.corpora.formats.source import stem
from core.text.words import clean

# Fragments and type of each annotation of a text.
Labels = frozenset[tuple[tuple[tuple[int, int], ...], str]]
# Two files are taken for the work of two annotators if they share at least half of the smaller file's texts.
_SHARED = 0.5
# Usual names of a column with annotators. "user" is not one of them, because in web data it names a text's author.
_COLUMNS = frozenset(
    {"annotator", "annotator_id", "annotatorid", "annotator_name", "annotated_by", "worker", "worker_id", "workerid"}
    | {"coder", "coder_id", "rater", "rater_id", "labeler", "labeller"}
)
_CURATED = ("curation", "curation_user", "consensus", "adjudicated")


def is_annotator(column: str) -> bool:
    """Return True if a column of this name usually contains the annotator of each row."""
    return column.strip().lower().replace(" ", "_") in _COLUMNS


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Agreement of several annotators.

    annotators: {name: number of texts}. shared: number of texts that several annotators labelled. equal: number of
    these texts on which all annotators agree. f1: span F1 over all pairs of annotators on the shared texts, 0 to 1.
    taken: name of the annotator whose labels are kept if annotators differ; "" if no annotator is chosen, or if they
    never differ.
    """

    annotators: Mapping[str, int] = field(default_factory=dict)
    shared: int = 0
    equal: int = 0
    f1: float = 0.0
    taken: str = ""

    @property
    def in_words(self) -> str:
        """Two sentences for the user: the number of texts per annotator, and the agreement."""
        people = ", ".join(f"{name} ({n:,})" for name, n in list(self.annotators.items())[:8])
        more = f" and {len(self.annotators) - 8} more" if len(self.annotators) > 8 else ""
        return (
            f"{len(self.annotators)} annotators labelled these texts: {people}{more}. They agree on {self.equal:,} of"
            f" the {self.shared:,} texts that several of them labelled (span F1 {self.f1:.2f})."
        )


class Panel:
    """Records all annotations in a first pass over an export, then chooses the labels to keep in a second pass.

    A text with one annotator is kept. A text on which all annotators agree is kept once. If annotators differ, the
    labels of the chosen annotator are kept. If this annotator did not label the text, the text is left out.
    chosen: name of the annotator whose labels are kept. If None, an annotator with a name in `_CURATED` (such as
    "curation") is chosen, if there is one. alone: True to keep no labels of other annotators; if `chosen` is None, only
    labels without a known annotator are kept. `hearing` is True during the first pass.
    """

    def __init__(self, chosen: str | None, *, alone: bool = False) -> None:
        self.chosen, self.alone, self.hearing = chosen or "", alone, True
        self._heard: dict[bytes, dict[str, Labels]] = {}
        self._by_file: dict[bytes, dict[str, Labels]] = {}
        self._names: dict[str, str] = {}
        self.people = Counter[str]()  # number of texts per annotator, known after the first pass

    def takes(self, text: str, labels: Labels, who: str | None, file: str) -> bool:
        """Return True if an annotator's labels of a text are kept. During the first pass, record them and return False.

        who: name of the annotator, None if unknown. file: name of the file, with folders.
        """
        key = blake2b(clean(text).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        if self.hearing:
            heard = self._by_file if who is None else self._heard
            heard.setdefault(key, {})[file if who is None else who] = labels
            return False
        name = who if who is not None else self._names.get(file)
        if self.alone:
            return (name or "") == self.chosen
        if name is None:  # labels without a known annotator are always kept
            return True
        votes = self._heard.get(key, {})
        if self.chosen in votes:
            return name == self.chosen
        return len(set(votes.values())) <= 1 and name == next(iter(votes), name)

    def settle(self) -> Agreement | None:
        """End the first pass and return the agreement; None if no text has several annotators."""
        self.hearing = False
        if not self._heard:
            names = self._names = annotators_of(self._by_file)
            for key, by_file in self._by_file.items():
                self._heard[key] = {names[file]: labels for file, labels in by_file.items() if file in names}
        self._by_file = {}
        self.people = Counter(name for votes in self._heard.values() for name in votes)
        shared = [votes for votes in self._heard.values() if len(votes) > 1]
        if not shared:
            return None
        equal = sum(len(set(votes.values())) == 1 for votes in shared)
        if not self.chosen and not self.alone and equal < len(shared):
            self.chosen = next((name for name in self.people if name.lower() in _CURATED), "")
        taken = self.chosen if equal < len(shared) else ""
        return Agreement(
            annotators=dict(sorted(self.people.items())), shared=len(shared), equal=equal, f1=_f1(shared), taken=taken
        )


def _f1(shared: Iterable[Mapping[str, Labels]]) -> float:
    """Return the span F1 over all pairs of annotators of each text, 0 to 1; 1.0 if there is no span.

    shared: {annotator: labels} of each text.
    """
    common = total = 0
    for votes in shared:
        for one, other in combinations(votes.values(), 2):
            common += 2 * len(one & other)
            total += len(one) + len(other)
    return round(common / total, 4) if total else 1.0


def annotators_of(by_file: Mapping[bytes, Mapping[str, Labels]]) -> dict[str, str]:
    """Return {file: annotator} for files that share texts; {} if no two files share enough texts.

    An annotator is named after the file, or after its folder if two files that share texts have the same name. A file
    or folder with a name in `_CURATED` (such as "curation") is always named after this word.
    by_file: {hash of a text: {file: labels}}.
    """
    sizes = Counter(file for votes in by_file.values() for file in votes)
    both = Counter(pair for votes in by_file.values() for pair in combinations(sorted(votes), 2))
    pairs = [pair for pair, n in both.items() if n >= _SHARED * min(map(sizes.__getitem__, pair))]
    related = {file for pair in pairs for file in pair}
    if not related:
        return {}
    stems = {file: stem(PurePosixPath(file).name) for file in related}
    folders = {file: PurePosixPath(file).parent.name for file in related}
    same_names = any(stems[one] == stems[other] for one, other in pairs)
    curated = {file: next((p for p in PurePosixPath(file).parts if p.lower() in _CURATED), "") for file in related}
    return {file: curated[file] or (folders[file] if same_names else stems[file]) for file in related}
