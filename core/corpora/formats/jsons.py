"""Rows of named values from JSON lines and from a JSON array, one at a time."""

import codecs
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from core.corpora.formats.ledger import TOO_LONG, Ledger, Record, short
from core.corpora.formats.source import BLOCK_BYTES, MAX_RECORD, lines, open_stream
from core.errors import EncodingError, ReadError


def json_lines(path: Path, encoding: str, ledger: Ledger) -> Iterator[Record]:
    """One object a line."""
    with open_stream(path, encoding, ledger.tick) as stream:
        for line, raw, fits in lines(stream, MAX_RECORD):
            if not fits:
                ledger.reject(line, TOO_LONG.format(MAX_RECORD), raw.decode("utf-8", "replace"))
            elif not raw.isspace():
                try:
                    value = json.loads(raw.decode())
                except UnicodeDecodeError as error:
                    ledger.undecodable(line, error, raw)
                    continue
                except (ValueError, RecursionError) as error:
                    ledger.reject(line, f"not JSON ({short(error)})", raw.decode("utf-8", "replace"))
                    continue
                if (record := as_row(value)) is not None and not isinstance(value, str):
                    yield line, record
                else:
                    ledger.reject(line, "not a JSON object in braces", raw.decode("utf-8", "replace"))


def json_array(path: Path, encoding: str, ledger: Ledger) -> Iterator[Record]:
    """The objects of a JSON array, or of several in a row, read one by one; a text alone is an object's `text`.

    Errors: ReadError at the first broken object: an array has no lines to go on at.
    """
    with open_stream(path, encoding, ledger.tick) as stream:
        feed = _Feed(stream, path.name)
        if feed.next_mark() not in ("[", "{"):
            raise ReadError(path.name, 1, "expected a JSON array that begins with [, or one JSON object a line.")
        decoder = json.JSONDecoder()
        while (mark := feed.next_mark()) in ("[", "{"):
            if mark == "{":  # objects over several lines, one after the other
                line, value = feed.line, feed.take(decoder)
                if isinstance(value, dict):
                    yield line, value
                continue
            feed.at += 1
            yield from _objects(feed, path.name, ledger)
        if mark:
            raise ReadError(path.name, feed.line, "more text follows the JSON array's closing ]; export it again.")


def _objects(feed: "_Feed", name: str, ledger: Ledger) -> Iterator[Record]:
    """The objects up to an array's closing bracket, which is taken as well."""
    decoder = json.JSONDecoder()
    while (mark := feed.next_mark()) != "]":
        if mark == "":
            raise ReadError(name, feed.line, "the JSON array is cut off before its closing ]; copy it again.")
        if mark == ",":
            feed.at += 1
            continue
        line, value = feed.line, feed.take(decoder)
        if (record := as_row(value)) is not None:
            yield line, record
        elif value is None:
            ledger.skip(line, "a text without an answer")
        else:
            ledger.reject(line, "not a JSON object in braces", json.dumps(value))
    feed.at += 1


def as_row(value: object) -> Mapping[str, object] | None:
    """A JSON value as a row: an object, a text alone, or spaCy's pair of a text and its entities; None for others."""
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
        text, notes = value
        if notes is None or isinstance(notes, dict):
            return {"text": text, "ents": (notes or {}).get("entities")}
    return None


class _Feed:
    """A window on a JSON text that grows as far as the next value needs and no further."""

    def __init__(self, stream: IO[bytes], name: str) -> None:
        self._stream, self._name = stream, name
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.text, self.at, self.line = "", 0, 1

    def next_mark(self) -> str:
        """The next character that is not white space, "" at the end."""
        while True:
            start = self.at
            while self.at < len(self.text) and self.text[self.at].isspace():
                self.at += 1
            self.line += self.text.count("\n", start, self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more(BLOCK_BYTES):
                return ""

    def take(self, decoder: json.JSONDecoder) -> object:
        """The value that begins here. Errors: ReadError if it is broken or too long."""
        while True:
            try:
                value, end = decoder.raw_decode(self.text, self.at)
            except (ValueError, RecursionError) as error:
                left = len(self.text) - self.at
                # The window doubles before each new attempt: a value costs at most twice its length of parsing.
                if left > MAX_RECORD or not self._more(max(left, BLOCK_BYTES)):
                    raise ReadError(
                        self._name,
                        self.line,
                        f"not JSON, or an object of more than {MAX_RECORD:,} bytes ({short(error)}); export it again"
                        " as one JSON object a line.",
                    ) from error
                continue
            self.line += self.text.count("\n", self.at, end)
            self.at = end
            return value

    def _more(self, size: int) -> bool:
        raw = self._stream.read(size)
        try:
            new = self._decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = self.line + self.text.count("\n", self.at) + raw[: error.start].count(b"\n")
            raise EncodingError(
                self._name, line, "these bytes are not UTF-8; give its encoding, for example cp1252 or latin-1."
            ) from error
        self.text, self.at = self.text[self.at :] + new, 0
        return bool(raw)
