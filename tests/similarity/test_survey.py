"""The survey: Wilcoxon's test against enumeration and scipy, and valid and invalid tables of answers."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata, wilcoxon

from core.errors import ReadError
from core.similarity.survey import Answer, opinions, read_answers, signed_ranks


@pytest.mark.parametrize("steps", [[1, 1, 2, 2, 2, -1, 1], [-2, -2, -1, -1, -1, -2], [1, -1, 2, -2, 1, -1, 2, 2]])
def test_wilcoxon_p_equals_enumeration_of_signs_and_scipy(steps: list[int]) -> None:
    ranks = rankdata(np.abs(steps))
    sums = [float(ranks @ np.array(signs)) for signs in product((0, 1), repeat=len(steps))]
    low = min(float(ranks[np.array(steps) > 0].sum()), float(ranks[np.array(steps) < 0].sum()))
    w, p = signed_ranks(steps)
    assert w == low
    assert p == pytest.approx(min(1, np.mean([min(s, ranks.sum() - s) <= low for s in sums])))
    untied = [1, -2, 3, 4, 5, -6, 7, 8, 9]
    theirs = wilcoxon(untied, method="exact")
    assert signed_ranks(untied) == pytest.approx((theirs.statistic, theirs.pvalue))


def answers(*ratings: int) -> list[Answer]:
    return [Answer(person=str(i), target="t", first="a", second="b", rating=r) for i, r in enumerate(ratings)]


def test_opinion_sentence_states_agreement_and_p() -> None:
    (agree,) = opinions(answers(5, 4, 5, 4, 4, 5, 3, 3))
    assert (agree.counts, agree.neutral, agree.w, agree.p) == ([0, 0, 2, 3, 3], 2, 0, 2 / 2**6)
    assert agree.sentence == (
        "a is closer to t than b: 6 of 8 agree, 0 disagree; people agree (W = 0, p = 0.031 by Wilcoxon's signed-rank test)."
    )
    (against,) = opinions(answers(1, 2, 1, 2, 2, 1))
    assert "people disagree" in against.sentence
    (level,) = opinions(answers(1, 5, 2, 4, 1, 5))
    assert "that may well be chance" in level.sentence
    (few,) = opinions(answers(5, 5, 5, 5, 5, 3, 3))
    assert (few.w, few.p) == (None, None)
    assert "fewer than 6 people agree or disagree, too few for a test" in few.sentence


def test_last_answer_per_person_counts_in_either_order_of_sources() -> None:
    again = Answer(person="0", target="t", first="b", second="a", rating=5)
    (one,) = opinions([*answers(5, 4), again])
    assert (one.first, one.counts) == ("a", [1, 0, 0, 1, 0])
    other = Answer(person="0", target="u", first="a", second="b", rating=5)
    assert [each.target for each in opinions([again, other])] == ["t", "u"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no column target"),
        ("target,a,b\nt,a,b", "has no column answer"),
        ("target,a,b,answer", "contains no answer"),
        ("target,a,b,answer\nt,a,b,6", "line 2: the answer is '6'; write 1"),
        ("target,a,b,answer\nt,a,b,4\nt,a,a,4", "line 3: lacks a target or two different sources"),
        ("target,a,b,answer\nt,a", "line 2: lacks a target"),
    ],
)
def test_wrong_answer_table_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ReadError, match=says):
        read_answers(text)
    read = read_answers("person;Target;A;B;answer\nx;t;a;b;Agree\n;t;a;b;1\n")
    right = [Answer(person=p, target="t", first="a", second="b", rating=r) for p, r in (("x", 4), ("line 3", 1))]
    assert read == right
