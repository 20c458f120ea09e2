"""Pieces of texts and words: windows, context of neighbouring sentences, and even parts."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from core.models import hub
from core.models.pieces import Pieces, _spans, even_parts, windows
from core.models.taggers import EncoderTagger, load_tagger, new_tagger
from core.text.sentence import InContext, Sentence, in_context
from tests.conftest import sentence

WORDS = st.lists(st.text(alphabet="abcXYZ.'é\u200b 猫", min_size=1, max_size=20), max_size=40)


@pytest.fixture(scope="module")
def tiny() -> PreTrainedTokenizerBase:
    return hub.load_tokenizer("tiny")


def within(words: Sequence[str], before: Sequence[str] = (), after: Sequence[str] = ()) -> InContext:
    own = sentence("")
    return InContext(id=own.id, tokens=tuple(words), text="", doc="d", before=tuple(before), after=tuple(after))


@given(words=WORDS, before=WORDS, after=WORDS, context=st.integers(0, 40), max_length=st.integers(4, 60))
@settings(max_examples=80, deadline=None)
def test_neighbouring_words_surround_the_sentence_in_windows(
    tiny: PreTrainedTokenizerBase, words: list[str], before: list[str], after: list[str], context: int, max_length: int
) -> None:
    pieces = Pieces(tiny, max_length)
    left, right = pieces.around(within(words, before, after), context)
    own = pieces.of(words)
    windows = pieces.windows(words, (left, right))
    for window in windows:
        assert len(window.ids) <= max_length
        assert (window.ids[0], window.ids[-1]) == (tiny.cls_token_id, tiny.sep_token_id)
    at = [(window, place, window.start + i) for window in windows for i, place in enumerate(window.first)]
    assert all(window.ids[place : place + len(own[word])] == own[word] for window, place, word in at)
    assert [word for *_, word in at] == list(range(len(words)))
    flat = [piece for ids in own for piece in ids]
    if left or right:
        (window,) = windows
        assert list(window.ids) == list(pieces.wrapped((*left, *flat, *right)))
    most = min(context, max(pieces.room - len(flat), 0) // 2) if words else 0
    ahead = [piece for ids in pieces.of(before) for piece in ids]
    behind = [piece for ids in pieces.of(after) for piece in ids]
    assert left == tuple(ahead[max(len(ahead) - most, 0) :])
    assert right == tuple(behind[:most])


@given(st.lists(st.integers(1, 9), min_size=1, max_size=80), st.integers(12, 30))
def test_words_at_window_edges_have_context_on_both_sides(sizes: list[int], room: int) -> None:
    """In the overlap of two windows, a word is taken from the window that shows more of its context."""
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


def test_long_word_keeps_its_first_pieces(tiny: PreTrainedTokenizerBase) -> None:
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


def test_pieces_word_by_word_equal_the_whole_sentence() -> None:
    """Checked with the bundled WordPiece tokenizer."""
    tokenizer = hub.load_tokenizer("minilm")
    words = ["The", "McDonald's", "case", ",", "re-opened", "in", "Zürich", "(", "2019", ")", "."]
    whole = tokenizer(words, is_split_into_words=True)
    (window,) = Pieces(tokenizer, 128).windows(words)
    assert list(window.ids) == whole["input_ids"]
    assert [whole.word_ids()[place] for place in window.first] == list(range(len(words)))


@torch.no_grad()
def emissions(tagger: EncoderTagger, rows: Sequence[Sentence]) -> torch.Tensor:
    return tagger.emissions(tagger.features(rows), (len(rows), max(len(row.tokens) for row in rows)))


def test_neighbouring_sentences_change_emissions_only_with_context(tmp_path: Path) -> None:
    texts = ("Bob met Ann .", "She lives in Rome .", "x " * 80, "Nobody came .", "")
    rows = [replace(within(one.tokens), id=one.id, text=one.text) for one in map(sentence, texts)]
    document = in_context(rows, 6)
    torch.manual_seed(0)
    tagger = new_tagger("tiny", ["PER"], precision="fp32", max_length=64, context_pieces=6).eval()
    tagger.crf.temperature = 2.5
    assert [len(tags.best) for tags in tagger.tag(document)] == [len(one.tokens) for one in document]
    together = tagger.predict(document)
    for one, found in zip(document, together, strict=True):
        (own,) = tagger.predict([one])
        assert own.entities == found.entities
        assert own.confidence == pytest.approx(found.confidence, abs=1e-4)
        assert all(entity.end <= len(one.tokens) for entity in own.entities)
    tagger.write(tmp_path / "tagger")
    again = load_tagger(tmp_path / "tagger", precision="fp32")
    assert (again.context_pieces, again.crf.temperature) == (6, 2.5)
    assert again.predict(document) == together
    first, alone = document[:1], [sentence("Bob met Ann .")]
    other = [within(first[0].tokens, (), ("Something", "else", "entirely", "here", "now", "."))]
    assert emissions(tagger, first).shape == emissions(tagger, alone).shape
    assert not torch.allclose(emissions(tagger, first), emissions(tagger, alone), atol=1e-5)
    assert not torch.allclose(emissions(tagger, first), emissions(tagger, other), atol=1e-5)
    assert tagger.size(first[0]) == tagger.size(alone[0]) + 6
    tagger.context_pieces = 0
    assert torch.equal(emissions(tagger, first), emissions(tagger, alone))
    assert tagger.size(first[0]) == tagger.size(alone[0])


@given(st.integers(0, 2), st.integers(0, 2), st.integers(1, 12), st.integers(1, 60))
def test_windows_count_every_piece_once_and_are_full(before: int, behind: int, room: int, more: int) -> None:
    special = [1] * before + [0] * (room + more) + [1] * behind
    n, most = len(special), before + room + behind
    parts = windows(special, most)
    assert [part.places[i] for part in parts for i in part.new] == list(range(before, n - behind))
    assert list(parts[0].places) == [*range(before + room), *range(n - behind, n)]  # equals truncation
    assert len(parts) == -(-(room + more) // room)
    for part in parts:
        assert len(part.places) == most
        assert [special[place] for place in part.places] == special[:before] + [0] * room + special[n - behind :]


@given(st.integers(0, 2), st.integers(0, 2), st.integers(1, 12), st.integers(1, 60))
def test_even_parts_hold_every_piece_once(before: int, behind: int, room: int, n: int) -> None:
    special = [1] * before + [0] * n + [1] * behind
    parts = even_parts(special, before + room + behind)
    ends = [*range(before), *range(before + n, len(special))]
    assert all([*part[:before], *part[len(part) - behind :]] == ends for part in parts)
    inner = [part[before : len(part) - behind] for part in parts]
    assert [place for part in inner for place in part] == list(range(before, before + n))
    assert len(parts) == -(-n // room)
    assert max(map(len, inner)) - min(map(len, inner)) <= 1
