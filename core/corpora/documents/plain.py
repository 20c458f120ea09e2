"""Read plain text. Each line is a paragraph, but lines that were wrapped at a fixed width are joined."""

from typing import BinaryIO

from core.corpora.documents.extract import MAX_CHARACTERS, Extract, Paragraph, sound
from core.corpora.formats.source import text_encoding
from core.errors import ReadError

# Minimum number of characters in a wrapped line. A shorter line without a full stop is probably a heading.
_WRAPPED = 50
_ENDS = (".", "!", "?", ":", ";")


def read_txt(stream: BinaryIO, name: str) -> Extract:
    """Return the paragraphs of a text file in UTF-8 or UTF-16, else in Windows-1252, the usual encoding of old files.

    Errors: ReadError for a binary file, and for a file that is too long.
    """
    data = stream.read()
    try:
        text = data.decode(text_encoding("utf-8", data[:4]))
    except UnicodeDecodeError:
        text = data.decode("cp1252", "replace")
    if "\0" in text:
        raise ReadError(name, None, "is not a text file; save its text as UTF-8 .txt.")
    if len(text) > MAX_CHARACTERS:
        raise ReadError(name, None, f"more than {MAX_CHARACTERS:,} characters of text; divide the file.")
    return Extract(paragraphs=paragraphs(text.removeprefix("\ufeff")))


def paragraphs(text: str) -> list[Paragraph]:
    """Return the paragraphs of a text.

    A line continues a paragraph if the line before it does not end a sentence. In addition, the line must begin with a
    lower-case letter, or the line before must have at least `_WRAPPED` characters.
    """
    kept, before = list[str](), ""
    for line in map(str.strip, sound(text).splitlines()):
        open_ = before and not before.endswith(_ENDS)
        if open_ and line and (line[0].islower() or len(before) >= _WRAPPED):
            kept[-1] += f" {line}"
        elif line:
            kept.append(line)
        before = line
    return [Paragraph(each) for each in kept]
