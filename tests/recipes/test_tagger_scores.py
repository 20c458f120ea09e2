"""What all seeds of a fine-tuning say together."""

from dataclasses import replace

from core.tagging.evaluations import SplitScores
from core.tagging.scores import over_seeds


def outcome(f1: float, scorer: str) -> SplitScores:
    decodings = {"viterbi": f1, "argmax": f1 - 1, scorer: f1 + 1}
    return SplitScores(micro_f1=f1, precision=f1, recall=f1, by_type={"PER": f1}, decodings=decodings)


def test_seeds_of_two_versions_go_together() -> None:
    """A fine-tuning that was killed, resumed after an update: the first seed's outcome names a scorer as it was."""
    found = over_seeds([outcome(50.0, "an older name"), outcome(60.0, "cited_scorer")])
    assert found.decodings == {"viterbi": [50.0, 60.0], "argmax": [49.0, 59.0], "cited_scorer": [51.0, 61.0]}
    assert (found.mean, found.by_type) == (55.0, {"PER": 55.0})


def test_a_decoding_that_only_later_outcomes_have_is_left_out() -> None:
    older = outcome(60.0, "cited_scorer")
    later = replace(older, decodings={**older.decodings, "constrained": 62.0})
    assert "constrained" not in over_seeds([older, later]).decodings
    assert over_seeds([later, later]).decodings["constrained"] == [62.0, 62.0]
