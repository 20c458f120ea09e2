"""Annotated XML: GATE's documents and BioC's collections. Entities are not declared, nothing is fetched."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from core.corpora.formats.annotated import from_marks, whole_text
from core.corpora.formats.ledger import Ledger
from core.corpora.formats.offsets import Mark
from core.corpora.formats.tool_rows import read_bioc
from core.errors import ReadError
from core.text.sentence import Sentence

MAX_XML = 32 << 20  # bytes
_SERVICE = frozenset(
    ("Token", "SpaceToken", "DEFAULT_TOKEN", "Sentence", "Split", "Lookup", "paragraph", "VG", "NounChunk", "Temp")
)
_MARKUP, _KEY = "Original markups", "Key"


def parsed(path: Path, ledger: Ledger) -> Element | None:
    """The root of an XML file; None, and a rejected row, if it is too long. Errors: ReadError."""
    text = whole_text(path, ledger, MAX_XML)
    if text is None:
        return None
    try:
        root: Element = fromstring(text.encode())
    except DefusedXmlException as error:
        raise ReadError(path.name, 1, "declares entities, as an attack by XML does; export it again.") from error
    except ParseError as error:
        raise ReadError(path.name, error.position[0], "is not well-formed XML; export it again.") from error
    except (ValueError, LookupError, RecursionError) as error:
        raise ReadError(path.name, 1, "is not XML that can be read; export it again as UTF-8.") from error
    return root


def read_gate(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """A document of GATE, cut into sentences; each set of annotations that has a name is an annotator's."""
    root = parsed(path, ledger)
    body = None if root is None else root.find("TextWithNodes")
    if root is None or body is None:
        if root is not None:
            raise ReadError(path.name, 1, "has no TextWithNodes; save it in GATE as GATE XML.")
        return
    text, nodes = _with_nodes(body)
    sets = dict(_sets(root, nodes))
    named = {name: marks for name, marks in sets.items() if name}
    chosen = {_KEY: named[_KEY]} if _KEY in named else named or {"": sets.get("", [])}
    for name, marks in chosen.items():
        who = name if len(chosen) > 1 else None
        yield from from_marks(text, marks, None, ledger, who=who, by_line=True, cut_too=True)


def _with_nodes(body: Element) -> tuple[str, dict[str, int]]:
    """The text, and the character that each node stands before."""
    text, nodes = body.text or "", dict[str, int]()
    for node in body:
        nodes[node.get("id", "")] = len(text)
        text += node.tail or ""
    return text, nodes


def _sets(root: Element, nodes: dict[str, int]) -> Iterator[tuple[str, list[Mark]]]:
    """(name, annotations) of each set that holds more than tokens, sentences and markup."""
    for each in root.iter("AnnotationSet"):
        name = each.get("Name", "")
        if name == _MARKUP:
            continue
        found = [item for item in each.iter("Annotation") if item.get("Type", "") not in _SERVICE]
        places = [
            (nodes.get(item.get("StartNode", ""), -1), nodes.get(item.get("EndNode", ""), -1), item.get("Type", ""))
            for item in found
        ]
        if places or name in ("", _KEY):
            yield name, [Mark(((start, end),), kind) for start, end, kind in places]


def read_bioc_xml(path: Path, ledger: Ledger) -> Iterator[Sentence]:
    """A collection of BioC: the same as its JSON."""
    root = parsed(path, ledger)
    if root is not None:
        yield from read_bioc(((1, _as_json(document)) for document in root.iter("document")), ledger)


def _as_json(element: Element) -> dict[str, Any]:
    """A BioC element as its JSON has it."""
    value: dict[str, Any] = {
        "id": element.findtext("id", element.get("id", "")),
        "infons": {each.get("key", ""): each.text or "" for each in element.findall("infon")},
        "offset": element.findtext("offset", "0"),
        "text": element.findtext("text"),
        "locations": [dict(each.attrib) for each in element.findall("location")],
    }
    for name in ("passage", "sentence", "annotation"):
        value[f"{name}s"] = [_as_json(each) for each in element.findall(name)]
    return value
