"""Rebuilt training sets and robustness sets: what there is to draw from, and what was changed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from core.bias import rebuild
from core.bias.rebuild import Preview as Preview
from core.bias.result import Diff as Diff
from core.bias.result import Mention, diffs, logs, mentions_file, read_edits, read_mentions, read_slots, sentences_file
from core.bias.result import RebuildResult as RebuildResult
from core.bias.result import RobustnessResult as RobustnessResult
from core.bias.robustness import FINDERS
from core.bias.training_sentences import Training, measures
from core.corpora.name_list import read_names
from core.importing import splits
from core.importing.view import roles
from core.projects.home import kept_per_home, library, store
from core.projects.titles import run_titles
from core.runs.result import read
from core.tagging.scores import labelled


def preview(options: Mapping[str, object]) -> Preview:
    """Preview, before anything runs, of a rebuild's pools and changes. options: of `rebuild`, `difficulty` among them.

    Errors: ConfigError, CorpusError, RunError.
    """
    config = rebuild.RebuildConfig.parse(options)
    training = _training(config.train, config.difficulty, config.holdout)
    return rebuild.preview(config, library().find(config.train), _mentions(config.difficulty), training, store())


def splits_of(train: str) -> tuple[list[str], str]:
    """The dev and test splits that go with a training corpus, and how that is known; see `artifacts.splits`."""
    return splits.of(library().find(train), roles(), library(), store())


@kept_per_home(4)
def _mentions(run_id: str) -> Sequence[Mention]:
    return read_mentions(mentions_file(store().get(run_id)))


@kept_per_home(2)
def _training(train: str, run_id: str, holdout: tuple[str, ...]) -> Training:
    """The sentences and their measurement; kept, since every touch of the form previews anew."""
    corpus, holdouts = library().find(train), [library().find(name) for name in holdout]
    sentences = labelled(corpus)
    closed = rebuild.held_out(corpus, sentences, holdouts, note=lambda _: None)
    return Training.of(sentences, measures(_mentions(run_id)), closed)


def rebuild_result(run_id: str) -> RebuildResult:
    """A finished `rebuild` run's result. Errors: RunError."""
    return read(store().get(run_id), RebuildResult)


def robustness_result(run_id: str) -> RobustnessResult:
    """A finished `robustness` run's result. Errors: RunError."""
    return read(store().get(run_id), RobustnessResult)


def new_set(run_id: str) -> str:
    """The fingerprint of what a finished `rebuild` or `robustness` run made."""
    rebuilt = store().get(run_id).manifest.kind == "rebuild"
    return rebuild_result(run_id).corpus if rebuilt else robustness_result(run_id).corpus


def changed(run_id: str, start: int = 0, n: int = 20) -> list[Diff]:
    """Changed sentences of a finished `rebuild` or `robustness` run, before and after, `n` from the `start`-th on."""
    run = store().get(run_id)
    inputs = run.manifest.inputs
    before = library().find(inputs["train" if run.manifest.kind == "rebuild" else "test"])
    after = library().find(new_set(run_id))
    return diffs(read_edits(run), before, after, start, n, slots=read_slots(run))


def add_names(path: Path) -> str:
    """A list of names, `NAME<tab>TYPE` a line, sealed as a labelled corpus; its fingerprint, for `gazetteer`.

    Errors: PathError, ReadError.
    """
    names, origin = read_names(path), {"file": path.name, "format": "names"}
    return library().seal(iter(names), name=path.stem, origin=origin, labelled=True).fingerprint


def finders() -> dict[str, str]:
    """Name finished runs whose finds may give a robustness set its names, newest first: {run id: what it tagged}."""
    names = {corpus.fingerprint: corpus.name for corpus in library().list()}
    done = sorted(store().list(*FINDERS, state="succeeded"), key=lambda run: run.id, reverse=True)
    here = [run for run in done if run.manifest.inputs["corpus"] in names]
    return run_titles(here, lambda run: names[run.manifest.inputs["corpus"]])


def set_file(run_id: str) -> Path:
    """The sentences that a finished `rebuild` or `robustness` run made, as CoNLL."""
    return sentences_file(store().get(run_id))


def log_files(run_id: str) -> dict[str, Path]:
    """{`edits`, `slots`: JSON lines} of a finished `rebuild` or `robustness` run, those that it has."""
    return logs(store().get(run_id))
