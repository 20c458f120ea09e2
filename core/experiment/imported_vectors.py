"""Imported word vectors of an experiment's arms: their runs, and the length of vectors that all arms' words have."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from core.encoders.vectors import find_import
from core.errors import ConfigError
from core.kind import Options
from core.paths import home
from core.runs.store import RunStore

if TYPE_CHECKING:
    from core.experiment.config import ExperimentConfig


def settled_words(config: "ExperimentConfig") -> Options:
    """Options with the runs of imports, and the length of their vectors, which all arms' words have.

    Errors: ConfigError for a name that no import has, and where two lengths are asked for.
    """
    if not config.imported_vectors:
        return {}
    named = [find_import("imported_vectors", name, RunStore(home())) for name in config.imported_vectors]
    given = {"dimension of vectors": config.vectors["dimension"]} if "dimension" in config.vectors else {}
    lengths = {**given, **{imported.name: imported.dimension for _, imported in named}}
    if len(set(lengths.values())) > 1:
        says = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ConfigError(
            f"imported_vectors: the words of all variants are as long as one another, and these are not ({says}); "
            "leave one out."
        )
    vectors = {**config.vectors, "dimension": named[0][1].dimension}
    return {"imports": tuple(run_id for run_id, _ in named), "vectors": vectors}


def imported(config: "ExperimentConfig") -> Mapping[str, str]:
    """{name: run} of imported word vectors, as arms name them."""
    return dict(zip(config.imported_vectors, config.imports, strict=False))
