"""`add`: a file or folder is read as a stream and sealed as a corpus."""

import shutil
from pathlib import Path
from typing import Literal

from core.config import Config, option
from core.corpora.readers import ReadOptions, ReadReport, read, sniff
from core.errors import PathError
from core.recipes.base import Job, Result


class AddConfig(Config):
    """What to read and how."""

    path: str = option(..., "A file, or a folder of files.")
    name: str = option("", "The corpus's name; the file's name if left out.")
    format: Literal[
        "auto", "txt", "jsonl", "csv", "tsv", "parquet", "conll", "doccano", "labelstudio", "prodigy", "brat", "hf"
    ] = option("auto", "The file's format; auto looks at its name and its beginning.")
    text_column: str = option("", "The column that holds the text (jsonl, csv, tsv, parquet); guessed if left out.")
    scheme: Literal["auto", "iob1", "iob2", "bioes", "bilou", "io"] = option(
        "auto", "The label scheme; auto takes the only one that fits and asks where several do."
    )
    split: bool = option(False, "Cut every row into sentences: for one document a row.")
    unit: Literal["line", "paragraph"] = option("line", "What a row of a .txt file is.")
    part: str = option("", "Which of train, dev and test to take from a labelled folder that holds several.")
    encoding: str = option("utf-8", "The file's encoding; utf-8 also takes UTF-16 that begins with its mark.")
    move: bool = option(False, "Delete the file once it is sealed (used for uploads, which are copies).")


def run(config: AddConfig, job: Job) -> Result:
    """Artifacts: `rejects.jsonl`, every row that could not be used, with its line and the reason."""
    path = Path(config.path)
    if not path.exists():
        raise PathError(f"{path}: there is no such file or folder; check the path.")
    name = config.name or path.name.removesuffix(".gz").removesuffix(".zst").rsplit(".", 1)[0]
    job.context.stage(f"reading {path.name}")
    options = ReadOptions(
        **config.model_dump(include={"format", "scheme", "split", "unit", "encoding"}),
        text_column=config.text_column or None,
        part=config.part or None,
    )
    report = ReadReport()
    rejects = job.context.run.artifacts / "rejects.jsonl"
    sentences = read(
        path,
        options,
        report=report,
        rejects=rejects,
        progress=lambda done, total: job.context.progress(done, total, "bytes"),
        check=job.context.check,
    )
    sealed = job.library.seal(
        sentences,
        name=name,
        origin={"file": path.name, "run": job.context.run.id},
        labelled=sniff(path, options).labelled,
        describe=report.as_dict,
    )
    if config.move:
        _forget(path, job.home)
    return {
        "corpus": sealed.fingerprint,
        "name": sealed.name,
        "sentences": sealed.n_sentences,
        "tokens": sealed.n_tokens,
        "types": dict(sealed.types),
        **report.as_dict(),
    }


def _forget(path: Path, home: Path) -> None:
    """Delete an upload's copy; nothing outside `home/uploads` is ever deleted."""
    uploads = (home / "uploads").resolve()
    if path.resolve().is_relative_to(uploads) and path.resolve() != uploads:
        shutil.rmtree(path.parent if path.parent.resolve() != uploads else path)
