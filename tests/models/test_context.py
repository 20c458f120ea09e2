"""Taggers that read neighbouring sentences: what is read, where words stand then, and that nothing is tagged in it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerBase

from core.models import hub
from core.models.pieces import Pieces
from core.models.taggers import EncoderTagger, load_tagger, new_tagger
from core.text.neighbours import InContext, in_context
from core.text.sentence import Sentence
from tests.conftest import sentence

WORDS = st.lists(st.text(alphabet="abcX'é 猫", min_size=1, max_size=12), max_size=30)


@pytest.fixture(scope="module")
def tiny() -> PreTrainedTokenizerBase:
    return hub.load_tokenizer("tiny")


def within(words: Sequence[str], before: Sequence[str] = (), after: Sequence[str] = ()) -> InContext:
    own = sentence("")
    return InContext(id=own.id, tokens=tuple(words), text="", doc="d", before=tuple(before), after=tuple(after))


@given(words=WORDS, before=WORDS, after=WORDS, context=st.integers(0, 40), max_length=st.integers(6, 60))
@settings(max_examples=80, deadline=None)
def test_neighbours_surround_the_words_and_every_word_is_at_its_place(
    tiny: PreTrainedTokenizerBase, words: list[str], before: list[str], after: list[str], context: int, max_length: int
) -> None:
    pieces = Pieces(tiny, max_length)
    left, right = pieces.around(within(words, before, after), context)
    own = pieces.of(words)
    windows = pieces.windows(words, (left, right))
    assert all(len(window.ids) <= max_length for window in windows)
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


@torch.no_grad()
def emissions(tagger: EncoderTagger, rows: Sequence[Sentence]) -> torch.Tensor:
    return tagger.emissions(tagger.features(rows), (len(rows), max(len(row.tokens) for row in rows)))


def test_neighbours_change_emissions_only_with_context_and_only_own_words_are_tagged(tmp_path: Path) -> None:
    texts = ("Bob met Ann .", "She lives in Rome .", "x " * 80, "Nobody came .", "")
    rows = [replace(within(one.tokens), id=one.id, text=one.text) for one in map(sentence, texts)]
    document = in_context(rows, 6)
    torch.manual_seed(0)
    tagger = new_tagger("tiny", ["PER"], precision="fp32", max_length=64, context=6).eval()
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
    assert (again.context, again.crf.temperature) == (6, 2.5)
    assert again.predict(document) == together
    first, alone = document[:1], [sentence("Bob met Ann .")]
    other = [within(first[0].tokens, (), ("Something", "else", "entirely", "here", "now", "."))]
    assert emissions(tagger, first).shape == emissions(tagger, alone).shape
    assert not torch.allclose(emissions(tagger, first), emissions(tagger, alone), atol=1e-5)
    assert not torch.allclose(emissions(tagger, first), emissions(tagger, other), atol=1e-5)
    assert tagger.size(first[0]) == tagger.size(alone[0]) + 6
    tagger.context = 0
    assert torch.equal(emissions(tagger, first), emissions(tagger, alone))
    assert tagger.size(first[0]) == tagger.size(alone[0])
