"""`cos-mlm` and `cos-mlm-ner`: `cos-pretrained` with encoders pre-trained on T_C (Mahapatra et al. 2022, 3.1)."""

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from core.config import Config, option
from core.results import FloatArray, Index, Role, Rows
from core.selection.base import AdaptedOptions, Model
from core.selection.strategies.cosine import CosineOptions, CosinePretrained


class CosineMlmOptions(CosineOptions, AdaptedOptions):
    """Options of `cos-mlm`."""


class CosineMlm(CosinePretrained):
    """`cos-pretrained` with e(x) from B1, the encoder after masked language modelling on T_C."""

    name: ClassVar[str] = "cos-mlm"
    in_short: ClassVar[str] = "the same, after reading your text"
    models: ClassVar[frozenset[Model]] = frozenset({"mlm"})
    summary: ClassVar[str] = (
        "Continues the encoder's pre-training on the task corpus first, then compares embeddings with it."
    )
    trust: ClassVar[str] = (
        "The second strategy of Mahapatra et al. (2022); little changes where the task corpus has only a few "
        "hundred sentences."
    )
    Options: ClassVar[type[Config]] = CosineMlmOptions


class CosineMlmNerOptions(CosineMlmOptions):
    """Options of `cos-mlm-ner`."""

    halves: Literal["unit", "raw"] = option(
        "unit",
        "How the two embeddings are joined: each scaled to length 1 first, so that both weigh the same (unit), or "
        "as they are (raw), where the longer one rules.",
    )


class CosineMlmNer(CosineMlm):
    """`cos-pretrained` with e(x) = [e_B1(x); e_B2(x)], where B2 is B1 after training as a tagger on L_C."""

    name: ClassVar[str] = "cos-mlm-ner"
    in_short: ClassVar[str] = "the same, after learning your labels too"
    needs: ClassVar[frozenset[Role]] = frozenset({Role.LABELLED})
    models: ClassVar[frozenset[Model]] = frozenset({"mlm", "ner"})
    summary: ClassVar[str] = (
        "Joins the embeddings of an encoder trained on the task corpus and of a tagger trained on the labels."
    )
    trust: ClassVar[str] = (
        "The third strategy of Mahapatra et al. (2022); it also asks whether a sentence looks as your labelled ones do."
    )
    Options: ClassVar[type[Config]] = CosineMlmNerOptions


class Joined:
    """Several embeddings of one corpus, concatenated; rows are computed on access.

    norms: `(n,)`, as in `Source`. If all halves are equal, cosines are those of one half's unit vectors.
    """

    def __init__(self, halves: Sequence[tuple[Rows, FloatArray]], *, raw: bool = False) -> None:
        """halves: `(vectors (n, d_i), norms (n,))`. raw: join them without scaling each to length 1."""
        # unit: 1 for each half of a sentence, 0 for an empty one, which must stay a row of zeros.
        lengths = np.stack([norms if raw else (norms > 0).astype(np.float32) for _, norms in halves])
        self.norms: FloatArray = np.sqrt((lengths**2).sum(axis=0))
        self._vectors = [vectors for vectors, _ in halves]
        self._scales = lengths / np.maximum(self.norms, np.finfo(np.float32).tiny)

    def __len__(self) -> int:
        return len(self.norms)

    def __getitem__(self, rows: Index, /) -> FloatArray:
        """Return float32 rows `(m, d_1 + d_2 + ...)` of length 1; 0 for an empty sentence."""
        parts = [
            np.asarray(vectors[rows], dtype=np.float32) * scale[rows][..., None]
            for vectors, scale in zip(self._vectors, self._scales, strict=True)
        ]
        return np.concatenate(parts, axis=-1)
