"""Exports that are one object or one document per file: which tool wrote them, and those that are refused by name."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.corpora.formats.annotated import whole_text
from core.corpora.formats.folders import TAGTOG
from core.corpora.formats.jsons import as_row
from core.corpora.formats.ledger import Ledger, ReadOptions, Record
from core.corpora.formats.webanno import is_webanno
from core.errors import ReadError

MAX_OBJECT = 64 << 20  # bytes of a file that is one JSON object
_START = 8_000  # characters of a file that patterns look at
_PUBTATOR = re.compile(r"\w{1,100}\|t\|.*\n\w{1,100}\|a\|")
_ROOT = re.compile(r"(?:<\?.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>\[]*(?:\[[^\]]*\])?[^>]*>\s*)*<([\w:.-]+)", re.DOTALL)
_PYTHON = re.compile(
    r"""(?:\w{1,50} {0,9}= {0,9})?\[?\s{0,50}\(\s{0,50}["'].{0,500}?["']\s{0,50},\s{0,50}\{\s{0,50}["']entities["']""",
    re.DOTALL,
)
_XML = {"GateDocument": "gate", "collection": "bioc"}
_CONVERT = "export it from its tool as JSONL with character offsets, brat, WebAnno TSV 3 or CoNLL"
_RASA = "is YAML, as Rasa writes it, which is not read; convert it to JSON (rasa data convert nlu -f json)."
_ENDINGS = {
    ".spacy": "is a DocBin of spaCy, which is binary; write each Doc.to_json() as a line of JSON, or convert to CoNLL.",
    ".xmi": "is UIMA CAS XMI; export the documents as WebAnno TSV 3.3 (INCEpTION, WebAnno) instead.",
    ".ttl": f"is RDF, such as NIF, which is not read; {_CONVERT}.",
    ".yml": _RASA,
    ".yaml": _RASA,
}


def refuse_by_ending(path: Path) -> None:
    """Errors: ReadError for a tool's file that is known by the end of its name and is not read."""
    if reason := _ENDINGS.get(path.suffix.lower()):
        raise ReadError(path.name, None, reason)


def tool_of(path: Path, head: str, options: ReadOptions) -> str:
    """The format of an export that is one document or object, "" for a file of rows.

    head: the first block of its text. Errors: ReadError for a tool's export that is not read, with what to do.
    """
    # Short: the patterns go back and forth over what they match.
    start = head.lstrip()[:_START]
    if is_webanno(start):
        return "webanno"
    if _PUBTATOR.match(start):
        return "pubtator"
    if start.startswith(("@prefix", "@base", "<http")) and "nif" in start:
        raise ReadError(path.name, 1, f"is NIF, which is RDF and not read; {_CONVERT}.")
    if _PYTHON.match(start):
        raise ReadError(
            path.name,
            1,
            "is Python source, as spaCy's tutorials show it; save the list with json.dump as a .json file.",
        )
    if start.startswith("<") and path.suffix.lower() in (".xml", ".bioc", ".gate", ".xmi"):
        return _of_xml(path, start)
    if start.startswith("{"):
        content = single_object(path, head, options)
        return "" if content is None else _of_object(path, content)
    return ""


def _of_xml(path: Path, start: str) -> str:
    root = found[1] if (found := _ROOT.match(start)) else ""
    if root in _XML:
        return _XML[root]
    if root == "xmi:XMI" or "uima" in start:
        raise ReadError(path.name, 1, "is UIMA CAS XMI; export the documents as WebAnno TSV 3.3 instead.")
    raise ReadError(path.name, 1, f"is XML (<{root}>) of a kind that is not read (GATE and BioC are); {_CONVERT}.")


def single_object(path: Path, head: str, options: ReadOptions) -> Mapping[str, Any] | None:
    """The JSON object that a file is, None if it is lines of objects or none."""
    first, _, rest = head.strip().partition("\n")
    if rest.strip() and _is_json(first):
        return None
    try:
        content = json.loads(whole_text(path, Ledger(options), MAX_OBJECT) or "null")
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _of_object(path: Path, content: Mapping[str, Any]) -> str:
    """The tool that wrote an object that holds many rows, "" if it is itself a row."""
    if "%FEATURE_STRUCTURES" in content or "%TYPES" in content:
        raise ReadError(path.name, 1, "is UIMA CAS JSON; export the documents as WebAnno TSV 3.3 instead.")
    if "annotatable" in content and "entities" in content:
        raise ReadError(path.name, 1, TAGTOG)
    return next((tool for tool, rows in _ROWS_OF.items() if rows(content) is not None), "")


def _listed(content: Mapping[str, Any], *names: str) -> list[Any] | None:
    """The list under some names, one within the other; None if there is none."""
    value: Any = content
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, list) else None


def _lighttag(content: Mapping[str, Any]) -> list[Any] | None:
    rows = _listed(content, "examples")
    return rows if rows and any(isinstance(row, dict) and "content" in row for row in rows) else None


def _ner_annotator(content: Mapping[str, Any]) -> list[Any] | None:
    rows = _listed(content, "annotations")
    return rows if rows and any(isinstance(row, list) for row in rows) else None


def _spacy_document(content: Mapping[str, Any]) -> list[Any] | None:
    return [content] if _listed(content, "paragraphs") is not None else None


_ROWS_OF: dict[str, Callable[[Mapping[str, Any]], list[Any] | None]] = {
    "rasa": lambda content: _listed(content, "rasa_nlu_data", "common_examples"),
    "lighttag": _lighttag,
    "bioc": lambda content: _listed(content, "documents") or _listed(content, "PubTator3"),
    "spacy": lambda content: _ner_annotator(content) or _spacy_document(content),
}


def object_rows(path: Path, tool: str, ledger: Ledger) -> Iterator[Record]:
    """The rows within an object. Their line is that on which it begins."""
    content = json.loads(whole_text(path, ledger, MAX_OBJECT) or "{}")
    for row in _ROWS_OF[tool](content) or ():
        if (record := as_row(row)) is not None:
            yield 1, record
        else:
            ledger.skip(1, "a text without an answer" if row is None else "no row of texts and annotations")
