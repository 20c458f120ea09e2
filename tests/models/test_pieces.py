"""Words to pieces: every word once, long sentences in windows with context, nothing lost."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from core.models import hub
from core.models.pieces import Pieces, _spans

WORDS = st.lists(st.text(alphabet="abcXYZ.'é\u200b 猫", min_size=1, max_size=40), max_size=60)


@pytest.fixture(scope="module")
def tiny() -> PreTrainedTokenizerBase:
    return hub.load_tokenizer("tiny")


@given(words=WORDS, max_length=st.integers(4, 40))
@settings(max_examples=60, deadline=None)
def test_every_word_is_taken_once_from_a_window_that_holds_its_first_piece(
    tiny: PreTrainedTokenizerBase, words: list[str], max_length: int
) -> None:
    pieces = Pieces(tiny, max_length)
    found = pieces.of(words)
    windows = pieces.windows(words)
    taken = []
    for window in windows:
        assert len(window.ids) <= max_length
        assert window.ids[0] == tiny.cls_token_id
        assert window.ids[-1] == tiny.sep_token_id
        for i, place in enumerate(window.first):
            word = window.start + i
            assert window.ids[place : place + len(found[word])] == found[word]
            taken.append(word)
    assert taken == list(range(len(words)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=80), st.integers(12, 30))
def test_a_word_inside_has_context_on_both_sides(sizes: list[int], room: int) -> None:
    """Where two windows meet, a word is taken from the one that shows more of what surrounds it."""
    ends = [0]
    for size in sizes:
        ends.append(ends[-1] + size)
    spans = _spans(ends, room)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(sizes)
    for (b0, e0), (b1, e1) in pairwise(spans):
        assert b0 <= b1 <= e0 < e1
        assert ends[e1] - ends[b1] <= room
        assert b1 < e0 or sizes[e0 - 1] > room // 4 or ends[e0 + 1] - ends[e0 - 1] > room


def test_a_long_word_keeps_its_first_pieces_and_one_without_pieces_is_unknown(tiny: PreTrainedTokenizerBase) -> None:
    pieces = Pieces(tiny, 10)
    long, short = pieces.of(["x" * 50, "y"])
    assert len(long) == 8
    assert long == pieces.of(["x" * 8])[0]
    windows = pieces.windows(["y", "x" * 50, "y"])
    assert [window.start for window in windows] == [0, 1, 2]
    assert short == pieces.of(["y"])[0]
    assert pieces.of(["\u200b", "\x00", "猫"]) == [(tiny.unk_token_id,)] * 3
    assert pieces.windows([]) == []
    # Windows of 20 words share 5: at least 2 of them are between a word and an edge inside the sentence.
    for window in Pieces(tiny, 22).windows(["a"] * 100):
        for i, place in enumerate(window.first):
            word = window.start + i
            assert place - 1 >= min(2, word)
            assert len(window.ids) - 2 - place >= min(2, 99 - word)


def test_the_pieces_are_those_of_the_whole_sentence() -> None:
    """Word by word as all at once, for the bundled WordPiece."""
    tokenizer = hub.load_tokenizer("minilm")
    words = ["The", "McDonald's", "case", ",", "re-opened", "in", "Zürich", "(", "2019", ")", "."]
    whole = tokenizer(words, is_split_into_words=True)
    (window,) = Pieces(tokenizer, 128).windows(words)
    assert list(window.ids) == whole["input_ids"]
    assert [whole.word_ids()[place] for place in window.first] == list(range(len(words)))
