"""`vectors-import`: word vectors of elsewhere are read from a file (Dai et al. 2019, Table 5)."""

from functools import partial
from pathlib import Path

import numpy as np
from pydantic import field_validator

from core.config import Config, option
from core.corpora.word_vectors import read_vectors
from core.encoders import vectors
from core.encoders.vectors import ImportResult
from core.errors import ConfigError
from core.importing.add import LONGEST_NAME, proposed_name
from core.kind import Job, Kind
from core.paths import user_path
from core.reporter import Reporter
from core.runs.store import RunStore, is_run_id
from core.shown import in_utf8, shown


class AddVectorsConfig(Config):
    """Options: the file to read, and the name of its vectors."""

    path: str = option(..., "A text file of word vectors (word2vec, GloVe, fastText's .vec), perhaps packed as .gz.")
    name: str = option("", "What --imported-vectors calls them; the file's name if left out.", max_length=LONGEST_NAME)
    most_words: int = option(
        200_000, "The file's first so many, the most frequent ones; 0: all. Taggers keep them all.", unit="words", ge=0
    )

    @field_validator("path")
    @classmethod
    def _named_in_utf8(cls, path: str) -> str:
        if not in_utf8(path):
            raise ValueError("its name is not written in UTF-8; rename the file")
        return path

    @field_validator("name")
    @classmethod
    def _no_run_id(cls, name: str) -> str:
        if is_run_id(name) or "," in name:
            raise ValueError("is written as a run's id or with a comma; choose another name")
        return name


def run(config: AddVectorsConfig, job: Job) -> ImportResult:
    """Artifacts: `words.txt`, one a line, in the file's order; `vectors.npy` `(n, d)` float32."""
    path = user_path(config.path)
    name = shown(config.name) or proposed_name(path).replace(",", " ")
    if others := [run_id for run_id, other in vectors.imports(RunStore(job.home)).items() if other.name == name]:
        raise ConfigError(f"name: {name} is what {others[0]} is called; choose another name, or remove that run.")
    job.context.stage(f"reading {shown(path.name)}")
    draft = job.context.run.chunks / "rows.f32"
    try:
        result = _read(config, job, path, draft, name)
    finally:
        draft.unlink(missing_ok=True)
    if result.again or result.unusable:
        job.context.note(
            f"{result.again:,} lines repeat a word, of which the first counts; {result.unusable:,} were left out: "
            "their words have blanks, are empty or far too long."
        )
    return result


def _read(config: AddVectorsConfig, job: Job, path: Path, draft: Path, name: str) -> ImportResult:
    size = path.stat().st_size if path.is_file() else 0  # reading says what is wrong with any other
    with draft.open("wb") as rows:
        tick = partial(_progress, job.context, size)
        table = read_vectors(path, rows, most_words=config.most_words, tick=tick)
    shape = (len(table.words), table.dimension)
    vectors.write_words(job.context.run, table.words, np.memmap(draft, np.float32, "r", shape=shape))
    return ImportResult(
        name=name,
        words=len(table.words),
        dimension=table.dimension,
        again=table.again,
        unusable=table.unusable,
        whole=table.whole,
    )


def _progress(report: Reporter, size: int, done: int) -> None:
    report.check()
    report.progress(done // 1000, max(size // 1000, 1), "KB")


KIND = Kind(
    "vectors-import",
    AddVectorsConfig,
    run,
    ImportResult,
    title=lambda run: f"Read word vectors {run.config['name'] or run.config['path'].rsplit('/', 1)[-1]}",
    outcome=lambda result, _: result.says,
    page="Training",
    command=("vectors", "add"),
    positional=("path",),
    reuse=False,
)
