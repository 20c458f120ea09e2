"""Sheets of an Excel workbook, row by row, with nothing computed."""

import warnings
from datetime import date, datetime, time
from itertools import islice
from typing import Any, BinaryIO, TypedDict

from defusedxml import DefusedXmlException

from core.corpora.documents.extract import MAX_CHARACTERS, sound
from core.corpora.documents.office import ATTACK, MACROS, MAX_XML
from core.corpora.documents.zipped import opened_zip
from core.errors import ReadError

MAX_CELLS = 5_000_000
_COLUMNS = 1_000


class Workbook(TypedDict):
    """sheets: of each its name and the rows that hold anything: their numbers from 1, their cells."""

    sheets: list[tuple[str, list[tuple[int, list[str | None]]]]]
    remarks: list[str]


def read_xlsx(file: BinaryIO, name: str, most: int | None = None) -> Workbook:
    """The cells of a workbook. most: rows of a sheet, all if left out. Errors: ReadError."""
    from openpyxl import load_workbook

    with opened_zip(file, name, MAX_XML, ".xml") as archive:
        names = archive.namelist()
        if "xl/workbook.xml" not in names:
            raise ReadError(name, None, "is a zip archive but no Excel workbook; name it by what it is.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Cells as their program computed them last; no link to another file is followed.
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = [(sheet.title, _rows(sheet, name, most)) for sheet in book.worksheets]
    except ReadError:
        raise
    except Exception as error:  # whatever a reader of thousands of tags stumbles over: of zips, XML, types, dates
        if _forbidden(error):
            raise ReadError(name, None, ATTACK) from error
        raise ReadError(name, None, "is damaged or was cut off; copy it again, or save it anew.") from error
    macros = [MACROS] if any(part.endswith("vbaProject.bin") for part in names) else []
    return {"sheets": sheets, "remarks": macros}


def _forbidden(error: BaseException | None) -> bool:
    """Whether XML was refused for what it declares, which openpyxl wraps in an error of its own."""
    return error is not None and (isinstance(error, DefusedXmlException) or _forbidden(error.__context__))


def _rows(sheet: Any, name: str, most: int | None) -> list[tuple[int, list[str | None]]]:
    rows, cells, room = list[tuple[int, list[str | None]]](), 0, MAX_CHARACTERS
    for number, values in enumerate(islice(sheet.iter_rows(values_only=True), most), 1):
        row = [_text(value) for value in values[:_COLUMNS]]
        while row and row[-1] is None:
            row.pop()
        cells += len(row)
        room -= sum(len(cell or "") for cell in row)
        if cells > MAX_CELLS or room < 0:
            raise ReadError(
                name,
                None,
                f"a sheet of more than {MAX_CELLS:,} cells or {MAX_CHARACTERS:,} characters; save it as .csv.",
            )
        if row:
            rows.append((number, row))
    return rows


def _text(value: object) -> str | None:
    """A cell as a table's text has it; None for an empty one."""
    if value is None:
        return None
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return sound(str(value)) or None
