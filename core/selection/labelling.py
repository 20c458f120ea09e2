"""What to label next where there are no labels: sentences of T_C by chance, for a labelling tool to read."""

import json

import numpy as np

from core.importing.view import find
from core.projects.audit import noted
from core.stats.draws import uniform
from core.text.words import fold

MOST = 300  # sentences: a third to learn from, a sixth to choose by, half to test
_MANY = 10  # times as many are looked at, so that copies may be passed over


def to_label(task: str, most: int = MOST) -> bytes:
    """Draw sentences of a corpus, none twice but for case and marks, as JSON lines with `text`, `file` and `page`.

    By chance, since only then do scores on them speak of all the text. Doccano, Label Studio and Prodigy read it.
    Errors: CorpusError.
    """
    corpus = find(task)
    keys = uniform(np.arange(len(corpus), dtype=np.uint64), seed=0)
    rows = np.argsort(keys)[: _MANY * most]
    lines: dict[str, str] = {}
    with noted("export", corpora=[corpus.fingerprint]):
        for sentence in corpus.take(rows):
            place = {"file": sentence.file, "page": sentence.page}
            given = {"text": sentence.text, **{name: value for name, value in place.items() if value is not None}}
            lines.setdefault(fold(sentence.text), json.dumps(given, ensure_ascii=False))
    return "".join(f"{line}\n" for line in list(lines.values())[:most]).encode()
