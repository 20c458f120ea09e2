"""Text with tags between its words, a sentence per line.

`Mara/PERSON pays/O`, `Mara|NNP|I-PER pays|VBZ|O`, `<PERSON>Mara</PERSON> pays`
"""

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from itertools import islice
from pathlib import Path

from core.corpora.formats.ledger import TOO_LONG, Ledger, Record
from core.corpora.formats.source import MAX_TEXT, lines, open_stream

_LINES = 50  # that a guess looks at
_SHARE = 0.95  # of a line's words that carry a tag
_MARK = re.compile(r"<([A-Z][A-Z_-]+)(?:\s+TYPE=\"([^\"<>]+)\")?>([^<>]+)</\1>")  # <PERSON>, <ENAMEX TYPE="PERSON">
_ANY_MARK = re.compile(r"</?[A-Za-z][^<>]*>")
_HTML = frozenset(
    {"BODY", "CODE", "DIV", "EM", "FONT", "HEAD", "HTML", "LI", "PRE", "SPAN", "STRONG", "TABLE", "TITLE"}
)


def looks_inline(head: str) -> bool:
    """Return True if the first lines hold words with tags, or names in upper-case marks and no other marks."""
    first = [line for line in head.split("\n")[:-1] or [head] if line.strip()][:_LINES]
    return bool(first) and (bool(separator(first)) or _marked(first))


def separator(first: list[str]) -> str:
    """`|`, `/` or `_` if it parts each word from its tag in these lines; "" otherwise.

    A tag is what most words share: O, or a dozen of others. Fractions and addresses have no O.
    """
    for mark in "|/_":
        words = [word for line in first for word in line.split()]
        tags = Counter(word.rpartition(mark)[2] for word in words if word.rpartition(mark)[0])
        if sum(tags.values()) >= _SHARE * len(words) and tags["O"] >= 0.2 * len(words) and len(tags) > 1:
            return mark
    return ""


def _marked(first: list[str]) -> bool:
    """Return True if every mark of these lines is one of a mention, and there are some."""
    text = "\n".join(first)
    mentions = _MARK.findall(text)
    kinds = {kind for kind, _, _ in mentions}
    return bool(mentions) and not kinds & _HTML and not _ANY_MARK.search(_MARK.sub("", text))


def inline_rows(path: Path, encoding: str, ledger: Ledger) -> Iterator[Record]:
    """A row per line: tokens and their tags, or a text and its spans."""
    with open_stream(path, encoding) as stream:
        whole = (raw.decode("utf-8", "replace") for _, raw, _ in lines(stream))
        head = list(islice((line for line in whole if line.strip()), _LINES))
    mark = separator(head)
    with open_stream(path, encoding, ledger.tick) as stream:
        for line, raw, fits in lines(stream):
            if not fits:
                ledger.reject(line, TOO_LONG.format(MAX_TEXT), raw.decode("utf-8", "replace"))
                continue
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                ledger.undecodable(line, error, raw)
                continue
            if text.strip():
                yield line, _tagged(text, mark) if mark else _spans(text.strip())


def _tagged(text: str, mark: str) -> dict[str, object]:
    """Tokens and tags of a line; a word without a tag has an empty one, which is refused as a tag."""
    words = [word.split(mark) if mark == "|" else word.rsplit(mark, 1) for word in text.split()]
    return {"tokens": [word[0] for word in words], "ner_tags": [word[-1] if len(word) > 1 else "" for word in words]}


def _spans(text: str) -> dict[str, object]:
    """The text without its marks, and a span for each."""
    plain, spans, at = "", list[list[object]](), 0
    for found in _MARK.finditer(text):
        plain += unescape(text[at : found.start()])
        mention = unescape(found[3])
        spans.append([len(plain), len(plain) + len(mention), found[2] or found[1]])
        plain, at = plain + mention, found.end()
    return {"text": plain + unescape(text[at:]), "label": spans}
