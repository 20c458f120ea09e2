"""What an open browser tab keeps of each list that it was shown: streamlit forgets a field only with its tab."""

import gc
from collections.abc import Callable, Iterable

import pytest
import streamlit as st

from core.corpora.corpus import Corpus
from pages.ui.training.parts import several
from pages.ui.widgets import corpus_picker
from tests.conftest import Seal

Named = Callable[[str], str]


def held(by: Iterable[object], steps: int) -> list[object]:
    """All that is reached in so many steps, modules and classes left out."""
    found, at = list[object](), list(by)
    for _ in range(steps):
        at = [each for each in gc.get_referents(*at) if not isinstance(each, type) and not hasattr(each, "__file__")]
        at = [each for each in at if not (isinstance(each, dict) and "__name__" in each)]
        found += at
    return found


def test_fields_keep_names_and_no_corpora(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of runs that each make a corpus left 27,776 of them in an app's memory."""
    kept = list[Named]()

    def field(label: str, options: list[str], *more: object, format_func: Named, **others: object) -> str:
        kept.append(format_func)
        return " ".join(map(format_func, options))

    monkeypatch.setattr(st, "selectbox", field)
    monkeypatch.setattr(st, "multiselect", field)
    seal(["One sentence of it."], "contracts")
    assert str(corpus_picker("Corpus", "test.corpus", None)).startswith("contracts (1 ")
    assert "".join(several("Corpora", "test.corpora", "")).startswith("contracts (1 ")
    assert not [each for each in held(kept, 4) if isinstance(each, Corpus)]
