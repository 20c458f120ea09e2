"""Real labelled sets import as they did in November 2026: the same sentences, tokens, scheme and entities per type."""

import json
from collections import Counter
from pathlib import Path

import pytest

from core.corpora.readers import ReadOptions, ReadReport, read

# Counted with the readers of commit bba4eeb; sentences, tokens and entities agree with the table in DATA.md.
BEFORE = json.loads(Path(__file__).with_name("real_sets.json").read_text(encoding="utf-8"))
FEW = 1_000  # sentences; `make test` reads the sets below that
NAMES = [
    name if counts["sentences"] < FEW else pytest.param(name, marks=pytest.mark.full) for name, counts in BEFORE.items()
]


@pytest.mark.real
@pytest.mark.parametrize("name", NAMES)
def test_a_labelled_set_imports_as_before(name: str, real_data: Path) -> None:
    report, types, sentences, tokens = ReadReport(), Counter[str](), 0, 0
    for sentence in read(real_data / name, ReadOptions(), report=report):
        sentences += 1
        tokens += len(sentence.tokens)
        types.update(entity.type for entity in sentence.entities or ())
    found = {"sentences": sentences, "tokens": tokens, "scheme": report.scheme, "types": dict(types)}
    assert found == BEFORE[name]
    assert (report.rejected, report.repaired, report.rejected_spans) == (0, 0, 0)
