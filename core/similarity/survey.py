"""Test which of two sources people find closer to a target: Likert answers, Wilcoxon's signed-rank test.

In Dai et al. 2019, section 3, 30 people rated each source separately (SOURCES.md, What people think). Here, an answer
compares two sources, and the middle of the scale is neutral.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core.errors import PathError, ReadError

SCALE = ("strongly disagree", "disagree", "neither", "agree", "strongly agree")
MIDDLE = 3
FEWEST = 6  # minimum number of answers that are not neutral; with five equal answers, p is still .0625
_COLUMNS = ("target", "a", "b", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One person's answer to "`first` is closer to `target` than `second`". rating: 1 to 5, as in `SCALE`."""

    person: str
    target: str
    first: str
    second: str
    rating: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """Test of all answers about a target and two sources.

    counts: number of answers for each point of the scale. neutral: number of answers in the middle of the scale, which
    the test leaves out. w: the smaller of the two rank sums. p: exact two-sided p-value. w and p are None below
    `FEWEST` answers. sentence: the result in words.
    """

    target: str
    first: str
    second: str
    counts: Sequence[int]
    neutral: int
    w: float | None
    p: float | None
    sentence: str


def opinions_in(path: Path) -> list[Opinion]:
    """Read the answers in a .csv file, and return a significance test per question. Errors: PathError, ReadError."""
    try:
        return opinions(read_answers(path.read_text(encoding="utf-8-sig"), path.name))
    except OSError as error:
        raise PathError(f"{path}: cannot be read ({error.strerror or error}); check the path.") from error
    except UnicodeDecodeError as error:
        raise ReadError(path.name, None, "is not UTF-8 text; save it as UTF-8.") from error


def read_answers(text: str, name: str = "the table") -> list[Answer]:
    """Read a .csv with the columns target, a, b, answer (1 to 5, or in words) and optionally person.

    name: name of the file, for errors. Errors: ReadError, which names the line and says what to do.
    """
    lines = text.splitlines()
    # The separator is the sign that is most frequent in the header, because some spreadsheets write semicolons.
    rows = csv.DictReader(lines, delimiter=max(",;\t", key=(lines or [""])[0].count), skipinitialspace=True)
    rows.fieldnames = [column.strip("\ufeff ").lower() for column in rows.fieldnames or ()]
    if lacking := [column for column in _COLUMNS if column not in rows.fieldnames]:
        raise ReadError(name, 1, f"has no column {lacking[0]}; give target, a, b, answer and optionally person.")
    answers = []
    for row in rows:
        cells = {column: (row[column] or "").strip() for column in rows.fieldnames}
        if not (cells["target"] and cells["a"] and cells["b"]) or cells["a"] == cells["b"]:
            raise ReadError(name, rows.line_num, "lacks a target or two different sources; fill in target, a and b.")
        answers.append(
            Answer(
                person=cells.get("person") or f"line {rows.line_num}",
                target=cells["target"],
                first=cells["a"],
                second=cells["b"],
                rating=_rating(cells["answer"], name, rows.line_num),
            )
        )
    if not answers:
        raise ReadError(name, None, "contains no answer; give one per line below the header.")
    return answers


def _rating(text: str, name: str, line: int) -> int:
    if text.lower() in SCALE:
        return SCALE.index(text.lower()) + 1
    if text not in {"1", "2", "3", "4", "5"}:
        raise ReadError(name, line, f"the answer is {text[:30]!r}; write 1 ({SCALE[0]}) to 5 ({SCALE[-1]}).")
    return int(text)


def opinions(answers: Iterable[Answer]) -> list[Opinion]:
    """Return Wilcoxon's test for each question, that is, for each target with two sources.

    If one person answers a question twice, only the later answer counts.
    """
    ratings: dict[tuple[str, str, str], dict[str, int]] = {}
    for answer in answers:
        asked, rating = (answer.target, answer.first, answer.second), answer.rating
        turned = (answer.target, answer.second, answer.first)
        if turned in ratings:  # This question was answered before with the sources swapped.
            asked, rating = turned, 2 * MIDDLE - rating
        ratings.setdefault(asked, {})[answer.person] = rating
    return [_opinion(*asked, list(by_person.values())) for asked, by_person in ratings.items()]


def _opinion(target: str, first: str, second: str, ratings: Sequence[int]) -> Opinion:
    counts = Counter(ratings)
    steps = [rating - MIDDLE for rating in ratings if rating != MIDDLE]
    w, p = signed_ranks(steps) if len(steps) >= FEWEST else (None, None)
    agree, disagree = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    sentence = (
        f"{first} is closer to {target} than {second}: {agree} of {len(ratings)} agree, {disagree} disagree; "
        + _verdict(steps, w, p)
    )
    return Opinion(
        target=target,
        first=first,
        second=second,
        counts=[counts[point] for point in range(1, len(SCALE) + 1)],
        neutral=counts[MIDDLE],
        w=w,
        p=p,
        sentence=sentence,
    )


def _verdict(steps: Sequence[int], w: float | None, p: float | None) -> str:
    if w is None or p is None:
        return f"fewer than {FEWEST} people agree or disagree, too few for a test."
    test = f"W = {w:g}, p = {p:.2g} by Wilcoxon's signed-rank test" if p >= 1e-4 else f"W = {w:g}, p below 0.0001"
    if p > 0.05:
        return f"that may well be chance ({test})."
    positive = _ranks(steps)[np.array(steps) > 0].sum()
    return f"people {'agree' if positive > w else 'disagree'} ({test})."


def signed_ranks(steps: Sequence[int]) -> tuple[float, float]:
    """Return Wilcoxon's W, the smaller rank sum, and its exact two-sided p-value.

    steps: ratings minus the neutral rating, never 0. A scale of five points gives many ties, for which scipy's exact
    distribution does not hold. Under the null hypothesis both signs are equally likely, so each rank is added to the
    sum with probability 1/2.
    """
    ranks = _ranks(steps)
    distribution = np.ones(1)
    # Double the ranks, so that halves become integers.
    for rank in np.rint(2 * ranks).astype(int).tolist():
        longer = np.zeros(len(distribution) + rank)
        longer[: len(distribution)] += distribution / 2
        longer[rank:] += distribution / 2
        distribution = longer
    w = min(ranks[np.array(steps) > 0].sum(), ranks[np.array(steps) < 0].sum())
    return float(w), min(1.0, 2 * float(distribution[: round(2 * w) + 1].sum()))


def _ranks(steps: Sequence[int]) -> np.ndarray:
    from scipy.stats import rankdata  # Imported here because it takes a second to load.

    return np.asarray(rankdata(np.abs(steps)))
