"""Samples from plain sentences, and Dai et al. 2019, Table 3."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.similarity.base import Sample
from core.similarity.worth import Pasted, read_table

TABLE_3 = Path(__file__).resolve().parents[2] / "assets" / "dai2019-table3.csv"


def sample(sentences: Sequence[str | Sequence[str]], name: str = "sample", seed: int = 0) -> Sample:
    words = [sentence.split() if isinstance(sentence, str) else list(sentence) for sentence in sentences]
    kept = [sentence for sentence in words if sentence]
    return Sample(name=name, sentences=kept, n_tokens=sum(map(len, kept)), seed=seed, whole=True)


@pytest.fixture(scope="session")
def table_3() -> Pasted:
    return read_table(TABLE_3.read_text(encoding="utf-8"), "table 3")
