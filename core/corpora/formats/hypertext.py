"""Annotations of markup: their places are paths into a page (XPath), so they are found by their text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from html.parser import HTMLParser

from core.corpora.formats.offsets import Mark

# Elements that end a line of text.
_BLOCKS = frozenset(
    (
        "address",
        "article",
        "aside",
        "blockquote",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figcaption",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "table",
        "tr",
        "ul",
    )
)
_SILENT = frozenset({"script", "style", "head", "template"})
_NOWHERE = ((-1, -1),)  # a fragment of no text: it is lost


class _Text(HTMLParser):
    """The text of a page, a line for each block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._silent += tag in _SILENT
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        self._silent = max(self._silent - (tag in _SILENT), 0)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(re.sub(r"\s+", " ", data))

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.parts.append("\n")


def is_markup(items: Sequence[object]) -> bool:
    """Return True if annotations have their places in markup."""
    return any(isinstance(item, Mapping) and ("hypertextlabels" in item or "startOffset" in item) for item in items)


@lru_cache(maxsize=2)  # asked once per annotation of the same page
def rendered(markup: str) -> str:
    """The text of markup without its tags; text without tags as it is."""
    if "<" not in markup:
        return markup
    parser = _Text()
    parser.feed(markup)
    parser.close()
    lines = (line.strip(" ") for line in "".join(parser.parts).split("\n"))
    return "\n".join(filter(None, lines)).strip()


def by_text(item: object, kind: str, markup: str) -> Iterator[Mark]:
    """The mark of an annotation whose quoted text occurs once in the page; a mark of no place otherwise."""
    quote = item.get("text") if isinstance(item, Mapping) else None
    text = rendered(markup)
    sought = " ".join(quote.replace("\\n", " ").split()) if isinstance(quote, str) else ""
    plain, places = _even(text)
    start = plain.find(sought) if sought else -1
    if start >= 0 and plain.find(sought, start + 1) < 0:
        yield Mark(((places[start], places[start + len(sought) - 1] + 1),), kind, str(quote))
    else:
        yield Mark(_NOWHERE, kind)


@lru_cache(maxsize=2)
def _even(text: str) -> tuple[str, tuple[int, ...]]:
    """The text with one blank for each row of white space, and the place of each of its characters in `text`."""
    chars: list[str] = []
    places: list[int] = []
    for place, char in enumerate(text):
        even = " " if char.isspace() else char
        if even != " " or chars[-1:] != [" "]:
            chars.append(even)
            places.append(place)
    return "".join(chars), tuple(places)
