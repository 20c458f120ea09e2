"""A map as a folder that Embedding Atlas opens: https://apple.github.io/embedding-atlas/tool.html.

Tested with embedding-atlas 0.26.0 (RESULTS.md). Columns with several values per sentence are lists, because Embedding
Atlas counts and filters by the items of a list. Columns without any value are left out, because each would be an empty
chart.
"""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from core.corpora.corpus import BLOCK
from core.experiment import deliver
from core.explore import regions
from core.explore.result import TABLE
from core.explore.view import classes, column_names, column_numbers, further_columns, get, kept_columns
from core.projects.audit import exporting
from core.results import IntArray
from core.selection.view import scored
from core.terms import plainly

HOW = "README.md"
_SCHEMA = pa.schema(
    [
        ("x", pa.float32()),
        ("y", pa.float32()),
        ("text", pa.string()),
        ("class", pa.string()),
        ("score", pa.float64()),
        ("topic", pa.string()),
        ("lassos", pa.list_(pa.string())),
        ("flags", pa.list_(pa.string())),
        ("tokens", pa.int32()),
        ("document", pa.string()),
        ("group", pa.string()),
        ("file", pa.string()),
        ("page", pa.int32()),
        ("corpus", pa.string()),
        ("row", pa.int64()),
        ("id", pa.string()),
    ]
)


@exporting
def export(map_run: str, folder: Path | None = None) -> Path:
    """Write a folder with a table of all points and a README.md on how to open it. Return the folder's path.

    The points' classes include the user's current edits of the selection.
    folder: folder to create; None overwrites the map's own folder in `exports`, which is deleted with the map's run.
    Errors: FileExistsError if `folder` exists.
    """
    if folder:
        return _write(map_run, folder)
    target = deliver.exports() / f"atlas-{map_run.replace('@', '-')}"
    with TemporaryDirectory(prefix=".atlas-", dir=deliver.exports()) as draft:
        _write(map_run, Path(draft) / "new")
        shutil.rmtree(target, ignore_errors=True)
        (Path(draft) / "new").rename(target)
    return target


def _write(map_run: str, folder: Path) -> Path:
    folder.mkdir(parents=True)
    schema = _schema(map_run)
    with pq.ParquetWriter(folder / TABLE, schema, compression="zstd") as writer:
        for block in _blocks(map_run, schema):
            writer.write_table(block)
    (folder / HOW).write_text(_how(map_run), encoding="utf-8")
    return folder


def command(folder: Path) -> str:
    """Return the command line that opens a folder in Embedding Atlas. It names the columns x and y of the positions."""
    return shlex.join(["embedding-atlas", str(folder / TABLE), "--x", "x", "--y", "y", "--text", "text"])


def _schema(map_run: str) -> pa.Schema:
    """Return the schema of the exported table: the columns that have values on this map."""
    kept = kept_columns(map_run)
    there = {"document": kept["doc"], **{name: kept[name] for name in ("file", "group", "page")}}
    there["lassos"] = bool(regions.named_regions(map_run))
    schema = pa.schema([field for field in _SCHEMA if there.get(field.name, True)])
    for name, number in further_columns(map_run).items():
        schema = schema.append(pa.field(_further(name), pa.float64() if number else pa.string()))
    return schema


def _further(name: str) -> str:
    """Return the name of an imported column in the export: `name (file)` if Winnow has its own column `name`."""
    return f"{name} (file)" if name in _SCHEMA.names else name


def _blocks(map_run: str, schema: pa.Schema) -> Iterator[pa.Table]:
    mapped, kinds = get(map_run), classes(map_run)
    scores, lassos = scored(mapped.selection), _lassos(map_run, kinds)
    for start in range(0, len(mapped), BLOCK):
        points = np.arange(start, min(start + BLOCK, len(mapped)))
        rows = mapped.table(points, kinds, scores)
        columns: dict[str, object] = {name: [row[name] for row in rows] for name in ("text", "tokens", "file")}
        columns |= {name: [row[name] for row in rows] for name in ("page", "row", "id")}
        columns |= {
            "class": [plainly(row["class"]) for row in rows],
            "corpus": [plainly(row["corpus"]) for row in rows],
        }
        columns |= {axis: mapped.xy[i][points] for i, axis in enumerate("xy")}
        columns["score"] = pa.array([row["score"] for row in rows], from_pandas=True)
        columns["flags"] = [[flag.replace("_", " ") for flag in row["flags"]] or None for row in rows]
        columns["topic"] = [mapped.clusters[topic].name for topic in mapped.cluster[points].tolist()]
        columns["document"], columns["group"] = (mapped.stored_at(points, name) for name in ("doc", "group"))
        columns["lassos"] = [[name for name, inside in lassos if inside[point]] or None for point in points]
        for name, number in further_columns(map_run).items():
            values = column_numbers if number else column_names
            columns[_further(name)] = values(map_run, points, name)
        yield pa.table({field.name: columns[field.name] for field in schema}, schema=schema)


def _lassos(map_run: str, kinds: IntArray) -> list[tuple[str, list[bool]]]:
    """Return each lasso's name, which may not be unique, and a mask of its points, `(n,)`."""
    lassos = []
    for token, name in regions.named_regions(map_run).items():
        points = regions.region_points(map_run, regions.region_of(map_run, token), kinds)
        lassos.append((name, np.isin(np.arange(len(kinds)), points).tolist()))
    return lassos


def _how(map_run: str) -> str:
    return (
        f"# Map of a Winnow selection\n\n{TABLE}: {len(get(map_run)):,} sentences, one per row, with position (x, y), "
        "class, score, topic, lassos, flags and source. It contains their text, so protect it like the corpora.\n\n"
        "To open it in Embedding Atlas (`pip install embedding-atlas`), run in this folder:\n\n"
        f"    {command(Path())}\n\nThe positions are in the file, so Embedding Atlas downloads no model and computes "
        "nothing. Tested with version 0.26.0. The map needs a browser with WebGPU.\n"
    )
