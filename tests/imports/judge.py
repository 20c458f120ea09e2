"""Compare what an import did with the right answer."""

import re
from collections import Counter
from collections.abc import Sequence

from core.text.sentence import Sentence
from tests.imports.run import Outcome, plain
from tests.imports.shape import Refused, Right


def problems(right: Right | Refused, outcome: Outcome) -> list[str]:
    """Return the differences from the right answer, in words; [] if there are none."""
    if isinstance(right, Refused):
        return _not_refused(right.patterns, outcome)
    if outcome.code != 0:
        return [f"exit code {outcome.code}: {outcome.said.strip()[-300:]}"]
    sentences = [each for corpus in outcome.added for batch in corpus.batches() for each in batch]
    return [
        *_count("sentences", right.sentences, len(sentences)),
        *_count("labelled", right.labelled, all(corpus.labelled for corpus in outcome.added)),
        *_mentions(right, sentences),
        *(
            f"there is no sentence {text!r}"
            for text in right.texts
            if plain(text) not in {plain(s.text) for s in sentences}
        ),
        *(f"{text!r} is in a sentence" for text in right.without if any(text in s.text for s in sentences)),
        *(f"the summary says nothing like /{p}/" for p in right.says if not re.search(p, outcome.said, re.IGNORECASE)),
    ]


def _count(what: str, expected: int, found: int) -> list[str]:
    return [] if expected == found else [f"{what}: {found}, expected {expected}"]


def _mentions(right: Right, sentences: Sequence[Sentence]) -> list[str]:
    found = Counter(
        (entity.type, plain("".join(each.tokens[entity.start : entity.end])))
        for each in sentences
        for entity in each.entities or ()
    )
    expected = Counter((kind, plain(text)) for kind, texts in right.mentions.items() for text in texts)
    missing, spurious = expected - found, found - expected
    return [
        *(f"missing {kind} {text!r} x{n}" for (kind, text), n in missing.items()),
        *(f"spurious {kind} {text!r} x{n}" for (kind, text), n in spurious.items()),
    ]


def _not_refused(patterns: Sequence[str], outcome: Outcome) -> list[str]:
    if outcome.code == 0:
        kinds = [(corpus.n_sentences, dict(corpus.types), corpus.labelled) for corpus in outcome.added]
        return [f"not refused: added {kinds}"]
    return [
        *_count("exit code", 2, outcome.code),
        *_count("corpora added by a refused import", 0, len(outcome.added)),
        *(
            f"the error says nothing like /{pattern}/: {outcome.said.strip()[-300:]}"
            for pattern in patterns
            if not re.search(pattern, outcome.said, re.IGNORECASE)
        ),
    ]
