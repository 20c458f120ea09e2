"""Draw random sentences of T_C to label first, as a file for a labelling tool."""

import json

import numpy as np

from core.audit_log import noted
from core.importing.view import find
from core.stats.draws import uniform
from core.text.words import fold

# number of sentences to label: a third for training, a sixth for the dev set, half for the test set
MOST = 300
# number of sentences drawn per requested sentence, so that duplicates can be skipped
_MANY = 10


def to_label(task: str, most: int = MOST) -> bytes:
    """Return random sentences of a corpus as JSON lines with `text`, `file` and `page`.

    Sentences that differ only in case and punctuation count once. The draw is random, so that an F1 measured on these
    sentences estimates the F1 on the whole corpus. Doccano, Label Studio and Prodigy read the format. Errors:
    CorpusError.
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
