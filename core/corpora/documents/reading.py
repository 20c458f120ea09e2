"""Read one document. `core.isolated` calls `answer` in a separate process."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from core.corpora.documents.extract import MAX_DOCUMENT, Extract
from core.corpora.documents.markup import read_eml, read_html, read_rtf
from core.corpora.documents.office import read_docx, read_odt, read_xlsx
from core.corpora.documents.pdf import read_pdf
from core.corpora.documents.plain import read_txt
from core.errors import ReadError, WinnowError, memory_ran_out
from core.paths import opened

_READERS: Mapping[str, Callable[[BinaryIO, str], Extract]] = {
    "docx": read_docx,
    "odt": read_odt,
    "eml": read_eml,
    "rtf": read_rtf,
    "txt": read_txt,
}


def answer(path: str, format: str, encoding: str | None, most: int | None) -> Any:
    """Return the paragraphs of a document, or the rows of a workbook, as JSON values.

    most: number of pages or rows to read, None for all. Errors: OSError, WinnowError, and errors for lack of memory.
    Any other exception of a reader becomes a ReadError, so that one file never stops the import of a folder.
    """
    try:
        return _read(Path(path), format, encoding, most)
    except (WinnowError, OSError):
        raise
    except Exception as error:
        if memory_ran_out(error):
            raise
        # Only the class of the error is reported, because its message may quote the document.
        why = f"cannot be read as {format} (its reader failed: {type(error).__name__})"
        raise ReadError(Path(path).name, None, f"{why}; save it again, or save its text as UTF-8 .txt.") from error


def _read(file: Path, format: str, encoding: str | None, most: int | None) -> Any:
    with opened(file) as stream:
        if stream.seek(0, 2) > MAX_DOCUMENT:
            raise ReadError(file.name, None, f"is larger than {MAX_DOCUMENT >> 20} MB; divide it.")
        stream.seek(0)
        if format == "xlsx":
            return read_xlsx(stream, file.name, most)
        if format == "pdf":
            return read_pdf(stream, file.name, most).written()
        if format == "html":
            return read_html(stream, file.name, encoding).written()
        return _READERS[format](stream, file.name).written()
