"""A tagger reads raw text as its training sentences were cut, and tells what it finds over the corpus's own tokens."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.corpora.library import Library
from core.models.taggers import load_tagger
from core.projects import runs
from core.tagging import spans
from core.text.sentence import Entity, Prediction, Sentence
from tests.conftest import sentence

LABELS = ["The U.S.-based firm did n't pay .", "A U.K.-based bank ( since 1996-08-22 ) is n't Moody 's ."]
RAW = "The U.S.-based bank didn't pay."
CUT = ("The", "U.S.-based", "bank", "did", "n't", "pay", ".")


def treebank(text: str) -> Sentence:
    return replace(sentence(text, [(1, 2, "X")]), tokens=tuple(text.split()))


@pytest.mark.parametrize("network", ["encoder", "bilstm"])
def test_raw_text_alone_is_cut_as_the_training_sentences_were(
    home: Path, monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    library = Library(home)
    train = library.seal(map(treebank, LABELS * 3), name="train", origin={}, labelled=True).fingerprint
    given = {"init": "tiny", "epochs": 1, "batch_size": 4, "precision": "fp32", "seeds": (1,)}
    size = {"hidden": 4} if network == "bilstm" else {}
    trained = runs.execute("finetune", {**given, "network": network, **size, "train": train, "dev": train})
    tagger = load_tagger(trained.artifacts / "model")
    assert tagger.cut is not None
    assert tagger.cut(RAW) == CUT
    seen: list[tuple[str, ...]] = []

    def second_word(self: Any, sentences: Sequence[Sentence], report: Any = None) -> list[Prediction]:
        """Find it in every sentence."""
        seen.extend(one.tokens for one in sentences)
        return [Prediction(entities=(Entity(start=1, end=2, type="X"),), confidence=(0.5,)) for _ in sentences]

    monkeypatch.setattr(type(tagger), "predict", second_word)
    came_cut = replace(sentence(RAW), tokens=tuple(RAW.split()))
    corpora = [
        library.seal([sentence(RAW)], name="raw", origin={}),
        library.seal([came_cut], name="cut", origin={}, tokens="blanks"),
        library.seal([replace(came_cut, entities=())], name="labels", origin={}, labelled=True),
    ]
    for corpus in corpora:
        run = runs.execute("tag", {"corpus": corpus.fingerprint, "model": str(trained.artifacts / "model")})
        (entity,) = spans.read(run).entities(0)
        (own,) = (one.tokens for one in corpus.take([0]))
        assert "".join(own[entity.start : entity.end]) == "U.S.-based"
    assert seen == [CUT, came_cut.tokens, came_cut.tokens]
