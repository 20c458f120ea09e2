"""What a tagger's card says to whoever loads it without Winnow."""

from core.tagging.card import by_others


def scores(argmax: float, constrained: float) -> dict[str, float]:
    return {"viterbi": argmax, "argmax": argmax, "cited_scorer": argmax, "constrained": constrained}


def test_a_tagger_that_other_software_reads_far_worse_says_so() -> None:
    words = by_others(scores(14.2, 59.3))
    assert "on dev F1 is 14.2 by the pipeline above and 59.3 by `predict`" in words
    assert "--no-constrained" in words


def test_a_tagger_that_it_reads_as_well_says_nothing() -> None:
    assert by_others(scores(58.0, 59.3)) == ""


def test_a_mix_of_layers_is_judged_by_what_is_left_without_it() -> None:
    words = by_others(scores(58.0, 59.3), 31.5)
    assert "on dev F1 is 31.5 by the pipeline above and 59.3 by `predict`, as it leaves out the mix" in words
    assert "--no-constrained" not in words
    words = by_others(scores(14.2, 59.3), 9.0)
    assert "on dev F1 is 9.0 by the pipeline above" in words
    assert "--no-constrained" in words
    assert by_others(scores(57.0, 59.3), 58.1) == ""


def test_no_pipeline_is_given_a_score_of_reading_the_neighbours() -> None:
    words = by_others(scores(14.2, 59.3), context=8)
    assert "on dev F1 is 14.2 where every word is decoded by itself and 59.3 by `predict`" in words
