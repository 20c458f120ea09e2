"""What a tagger's card says to whoever loads it without Winnow."""

from core.recipes.parts.tagger_card import by_others


def scores(argmax: float, constrained: float) -> dict[str, float]:
    return {"viterbi": argmax, "argmax": argmax, "cited_scorer": argmax, "constrained": constrained}


def test_a_tagger_that_other_software_reads_far_worse_says_so() -> None:
    words = by_others(scores(14.2, 59.3))
    assert "on dev F1 is 14.2 by the pipeline above and 59.3 by `predict`" in words
    assert "--no-constrained" in words


def test_a_tagger_that_it_reads_as_well_says_nothing() -> None:
    assert by_others(scores(58.0, 59.3)) == ""
