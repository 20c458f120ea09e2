"""What a `split` run made of a corpus: its parts, each sealed as a corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part. corpus: its fingerprint. units: documents, values or sentences with their copies that fell to it.
    left_out: its sentences that a smaller part has a copy of, which are not in it. types: entities a type."""

    name: str
    corpus: str
    sentences: int
    tokens: int
    units: int
    left_out: int
    types: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitResult:
    """Result of a `split` run.

    parts: in the order of their names. units: what was dealt out whole: documents, values of the column, or sentences,
    each with its copies. copies: sentences that have a copy, near ones too. divided: groups of copies that stood in
    several parts; what became of them says each part's `left_out`.
    """

    parts: Sequence[Part]
    units: int
    copies: int
    divided: int
