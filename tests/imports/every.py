"""All shapes, in one list."""

from tests.imports.shape import Shape
from tests.imports.shapes import (
    argilla,
    brat,
    conll,
    doccano,
    documents,
    inception,
    label_studio,
    others,
    prodigy,
    spacy_pairs,
    tables,
)

FAMILIES = (conll, tables, spacy_pairs, brat, doccano, label_studio, prodigy, inception, argilla, others, documents)
SHAPES: tuple[Shape, ...] = tuple(shape for family in FAMILIES for shape in family.SHAPES)
