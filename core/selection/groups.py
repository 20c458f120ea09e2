"""Count the sentences of a selection by document, file, group, or a further column of D_C."""

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from core.corpora.columns import column_names, kept_values
from core.errors import ConfigError
from core.projects.home import kept_per_home, library
from core.results import BoolArray, IntArray, Selection
from core.selection.view import scored


class Group(TypedDict):
    """Sentences with one value of a column. value: "" for sentences without a value.

    sentences, selected: number of these sentences in D_C and in S_C. of_group: share of the group that is selected.
    of_selection: share of S_C that is in the group. Both shares are percent.
    """

    value: str
    sentences: int
    selected: int
    of_group: float
    of_selection: float


def columns(choice_id: str) -> list[str]:
    """Return the names of the D_C columns by which a selection can be grouped."""
    return column_names(scored(choice_id).domain)


def groups(choice_id: str, chosen: Selection, column: str, most: int | None = None) -> list[Group]:
    """Return the groups of a column, in descending order of the number of selected sentences.

    chosen: the selection, with or without hand edits. most: number of groups to return; None for all of them.
    Errors: ConfigError for an unknown column.
    """
    names, numbers = _encoded(_domain(choice_id, column), column)
    sizes = np.bincount(numbers, minlength=len(names))
    inside = np.bincount(numbers[chosen.rows], minlength=len(names))
    order = np.lexsort((-sizes, -inside))[:most]  # ties stay in the order of the corpus
    return [
        {
            "value": names[i],
            "sentences": int(sizes[i]),
            "selected": int(inside[i]),
            "of_group": 100 * float(inside[i]) / max(int(sizes[i]), 1),
            "of_selection": 100 * float(inside[i]) / max(len(chosen.rows), 1),
        }
        for i in order.tolist()
        if sizes[i]
    ]


def members(choice_id: str, column: str, value: str) -> BoolArray:
    """Return a mask, `(n,)`, of the sentences of D_C with this value in the column; "" means without a value."""
    names, numbers = _encoded(_domain(choice_id, column), column)
    inside: BoolArray = numbers == names.index(value)
    return inside


def values_at(choice_id: str, rows: Sequence[int], column: str) -> list[str]:
    """Return the value of a column in each of `rows` of D_C; "" for a row without a value."""
    names, numbers = _encoded(_domain(choice_id, column), column)
    return [names[number] for number in numbers[np.asarray(rows, dtype=np.int64)].tolist()]


def _domain(choice_id: str, column: str) -> str:
    domain = scored(choice_id).domain
    if column not in (known := column_names(domain)):
        has = f"its columns are {', '.join(known)}" if known else "it has no column besides the text"
        raise ConfigError(f"by: {domain.name} has no column {column!r}; {has}.")
    return domain.fingerprint


@kept_per_home(4)
def _encoded(fingerprint: str, column: str) -> tuple[list[str], IntArray]:
    """Return a column's distinct values, and the index of each sentence's value, `(n,)`.

    The last value, "", is for rows without a value.
    """
    encoded = kept_values(library().find(fingerprint), column).combine_chunks().dictionary_encode()
    names = [str(name) for name in encoded.dictionary.to_pylist()]
    return [*names, ""], encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
