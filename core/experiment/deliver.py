"""Taking results away: tables, the one-page report, models; and trying a tagger on what somebody types."""

import csv
import io
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.corpora.writers import harmless as harmless
from core.errors import ConfigError, CorpusError, RunError
from core.experiment import result as leaderboard_files
from core.experiment import studies, tables
from core.experiment.results import board, tuned
from core.files import read_back
from core.projects.audit import exporting
from core.projects.home import home, library, store
from core.projects.removals import remove_run
from core.projects.runs import start
from core.tagging import predictions, rare_words
from core.text.sentence import Sentence, sentence_id
from core.text.words import clean, tokenize
from core.training import saved_models as models

if TYPE_CHECKING:
    import plotly.graph_objects as go

TRIAL = "sentences to try"  # the corpus of a try, gone again once that was shown


def exports() -> Path:
    """The folder for exports that are too large for a download."""
    folder = home() / "exports"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@exporting
def board_csv(run_id: str) -> bytes:
    """The leaderboard for a spreadsheet, with nothing in it that one would compute."""
    return _harmless(tables.as_csv(board(run_id)))


def _harmless(table: str) -> bytes:
    rows, out = csv.reader(io.StringIO(table)), io.StringIO()
    for row in rows:
        # A negative number begins as a formula does and is none.
        csv.writer(out, lineterminator="\n").writerow([cell if _is_number(cell) else harmless(cell) for cell in row])
    return out.getvalue().encode("utf-8-sig")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


@exporting
def board_markdown(run_id: str) -> str:
    """The leaderboard for people."""
    return tables.as_markdown(board(run_id))


@exporting
def study_csv(run_id: str) -> bytes:
    """A finished study for a spreadsheet, with nothing in it that one would compute."""
    return _harmless(tables.study_csv(studies.board(run_id)))


@exporting
def study_markdown(run_id: str) -> str:
    """The same for people."""
    return tables.study_markdown(studies.board(run_id))


def model_folder(run_id: str) -> Path:
    """The folder of a `finetune` run's model. Errors: ConfigError if it is gone."""
    run = store().get(run_id)
    if not models.is_here(run):
        raise ConfigError(f"{run_id}: its model is no longer here; run it again.")
    return models.folder(run)


def words_held(run_id: str) -> tuple[int, int]:
    """Words of its training text that a model's folder lists, and how many of them were seen once; (0, 0): none."""
    return rare_words.held(model_folder(run_id))


@exporting
def copy_model(run_id: str, target: Path, *, rare: bool = True) -> None:
    """Copy a model's folder. rare: with the words that its training text has only once.

    Errors: ConfigError if it is gone.
    """
    _copy_model(run_id, target, rare)


def _copy_model(run_id: str, target: Path, rare: bool) -> None:
    if rare:
        shutil.copytree(model_folder(run_id), target, dirs_exist_ok=True)
    else:
        rare_words.copy_without(model_folder(run_id), target)


@exporting
def export_model(run_id: str, *, rare: bool = True) -> Path:
    """A copy of the model among the exports, ready to be taken along. Errors: ConfigError if it is gone."""
    target = exports() / f"{run_id}-model{'' if rare else '-without-rare-words'}"
    draft = target.with_name(f".{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    _copy_model(run_id, draft, rare)
    shutil.rmtree(target, ignore_errors=True)
    draft.rename(target)
    return target


@exporting
def zip_model(run_id: str, *, rare: bool = True) -> bytes:
    """The model as one .zip. Errors: ConfigError if it is gone."""
    with TemporaryDirectory(prefix=f".{run_id}-", dir=exports()) as folder:
        _copy_model(run_id, Path(folder) / "model", rare)
        return Path(shutil.make_archive(str(Path(folder) / "packed"), "zip", Path(folder) / "model")).read_bytes()


@exporting
def figure_page(run_id: str, figure: "go.Figure") -> bytes:
    """A figure of a run as a page of HTML that needs no other file."""
    return bytes(figure.to_html(include_plotlyjs=True).encode())


@exporting
def take_bytes(run_id: str, path: Path) -> bytes:
    """A file of a run, as the browser downloads it. Errors: as of `read_back`."""
    with read_back(path):
        return path.read_bytes()


@exporting
def take(run_id: str, copies: Mapping[Path, str]) -> None:
    """Copy files and folders of a run to where somebody wants them. copies: {source: target}."""
    for source, target in copies.items():
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, target)


def try_sentences(model_run: str, text: str) -> str:
    """Begin a `predict` run of a tagger on `text`, a sentence a line; its id. Errors: ConfigError where it is empty."""
    lines = [line for line in map(clean, text.splitlines()) if line]
    if not lines:
        raise ConfigError("try: there is no sentence; type one.")
    sentences = [Sentence(id=sentence_id(line), tokens=tokenize(line), text=line, doc=TRIAL) for line in lines]
    corpus = library().seal(sentences, name=TRIAL, origin={"typed": True})
    return start("predict", {"model": model_run, "corpus": corpus.fingerprint})


def tagged_sentences(run_id: str) -> list[Sentence]:
    """The sentences of a finished `predict` run, tagged."""
    return predictions.read(store().get(run_id))


def forget_try(run_id: str) -> None:
    """Delete a try that has been shown or given up, and what was typed once no other try needs it.

    Nothing happens to one that is gone or at work, nor to what is here under another name too.
    """
    with suppress(RunError):
        typed = store().get(run_id).manifest.config["corpus"]
        name = library().recall(typed).origin.get("names", [TRIAL])
        if name == [TRIAL]:
            remove_run(run_id)
            if not any(run.manifest.inputs.get("corpus") == typed for run in store().list()):
                with suppress(CorpusError):
                    library().remove(typed)


def known_types(model_runs: Sequence[str]) -> list[str]:
    """The entity types of some finished `finetune` runs that were tested."""
    tests = [tuned(run_id).test for run_id in model_runs]
    return sorted({name for test in tests if test for name in test.by_type})


def predictions_file(run_id: str, suffix: str) -> Path:
    """The path of what a finished `predict` run tagged. suffix: `.jsonl` or `.conll`."""
    return predictions.file(store().get(run_id), suffix)


def board_lines(run_id: str) -> list[str]:
    """The leaderboard as the experiment left it for people, by line."""
    with read_back(path := leaderboard_files.file(store().get(run_id), "md")):
        return leaderboard_files.without_number(path.read_text(encoding="utf-8")).split("\n")
