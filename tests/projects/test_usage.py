"""Which runs need a corpus, and that no running run loses its corpus."""

import threading
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import CorpusError, RunError
from core.experiment import deliver
from core.experiment.ledger import earlier_analyses
from core.importing import view as facade_corpora
from core.kind import register
from core.kinds import KINDS
from core.projects import removals, runs
from core.projects.removals import runs_with_roles
from core.runs.context import RunContext
from core.runs.events import EventLog
from core.runs.store import Run, RunStore
from core.runs.worker import execute
from core.selection.result import SelectResult
from tests.conftest import Command, Seal
from tests.finished import SELECTED, as_running, corpora, experiment, finish


@pytest.fixture
def made(home: Path) -> dict[str, Corpus]:
    return corpora(home)


def unfinished(home: Path, kind: str, **options: object) -> Run:
    return register(KINDS[kind], KINDS[kind].config.parse(options), RunStore(home))


def chosen(home: Path, made: dict[str, Corpus], budget: str = "10%") -> Run:
    """Finish a selection with a child run `score` and a sealed S_C."""
    options = {"task": made["task"].fingerprint, "domain": made["domain"].fingerprint, "budget": budget}

    def work(context: RunContext) -> SelectResult:
        domain = {"domain": made["domain"].fingerprint}
        score = RunStore(home).create("score", domain, domain, versions={}, key=f"s{budget}", parent=context.run.id)
        execute(score, lambda context: {})
        origin = {"run": context.run.id, "from": made["domain"].fingerprint}
        rows = np.arange(int(budget.removesuffix("%")))
        sealed = Library(home).subset(made["domain"], rows, name=f"S_C {budget}", origin=origin)
        return replace(SELECTED, corpus=sealed.fingerprint, score_run=score.id)

    return finish(home, "select", {**options, "strategy": "random"}, work)


def test_usage_counts_a_run_and_its_children_once(home: Path, made: dict[str, Corpus]) -> None:
    runs = [chosen(home, made, budget) for budget in ("20%", "10%")]
    used = facade_corpora.needed_by("my domain")
    assert [run.id for run in used.ended] == [run.id for run in reversed(runs)]
    assert used.active == ()
    assert {corpus.name for corpus in used.derived} == {"S_C 10%", "S_C 20%"}
    assert used.in_words == "2 selections: they stay readable, but cannot be run again"
    assert facade_corpora.needed_by("my test").in_words == ""


def test_a_corpus_is_kept_while_a_running_run_needs_it(home: Path, made: dict[str, Corpus]) -> None:
    labels = {name: made[name].fingerprint for name in ("train", "dev")}
    with as_running(unfinished(home, "finetune", init="minilm", **labels)) as run:
        assert [active.id for active in facade_corpora.needed_by("my dev").active] == [run.id]
        with pytest.raises(CorpusError, match=run.id):
            facade_corpora.remove("my dev")
        facade_corpora.remove("my task")
        assert facade_corpora.roles()["dev"] == made["dev"].fingerprint
        facade_corpora.remove("my dev", force=True)
    assert {corpus.name for corpus in facade_corpora.listed()} == {"my train", "my test", "my domain"}
    assert "dev" not in facade_corpora.roles()


def test_queued_runs_and_child_runs_keep_a_corpus_and_its_selections(home: Path, made: dict[str, Corpus]) -> None:
    chosen(home, made)
    [child] = runs.listed("score")
    with as_running(child), pytest.raises(CorpusError, match=child.id):
        facade_corpora.remove("my domain")
    audit = unfinished(home, "audit", corpus=made["domain"].fingerprint)
    for name in ("my domain", "S_C 10%"):
        with pytest.raises(CorpusError, match=audit.id):
            facade_corpora.remove(name)
    facade_corpora.remove("my domain", force=True)
    with pytest.raises(CorpusError, match=made["domain"].fingerprint):
        runs.resume(audit.id)


def test_no_run_starts_while_its_corpus_is_removed(
    home: Path, made: dict[str, Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is requested after the removal has checked for users and before it deletes."""
    removing, going_on = threading.Event(), threading.Event()
    remove = Library.remove

    def slowly(library: Library, reference: str) -> None:
        removing.set()
        assert going_on.wait(30)
        remove(library, reference)

    monkeypatch.setattr(Library, "remove", slowly)
    remover = threading.Thread(target=facade_corpora.remove, args=("my domain",))
    remover.start()
    assert removing.wait(30)
    errors: list[Exception] = []

    def ask() -> None:
        try:
            unfinished(home, "audit", corpus=made["domain"].fingerprint)
        except CorpusError as error:
            errors.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    asker.join(0.2)
    assert asker.is_alive()  # waits for the removal
    going_on.set()
    for thread in (remover, asker):
        thread.join(30)
    assert len(errors) == 1
    assert not runs.listed("audit")


def test_the_command_refuses_to_remove_a_corpus_in_use_unless_forced(
    home: Path, made: dict[str, Corpus], command: Command
) -> None:
    def remove(*words: str) -> tuple[int, str]:
        code, _, stderr = command("corpus", "remove", *words)
        return code, stderr

    chosen(home, made)
    with as_running(unfinished(home, "finetune", init="minilm", train="my train", dev="my dev")) as run:
        code, stderr = remove("my train")
        assert code == 2
        assert f"my train: an active run needs it ({run.id})" in stderr
        code, stderr = remove("my train", "--force")
        assert (code, stderr) == (0, f"note: {run.id} is running and will fail without my train\n")
    code, stderr = remove("my domain")
    assert code == 0
    used, text = stderr.splitlines()
    assert used == "note: my domain was used by 1 selection: it stays readable, but cannot be run again"
    assert "keep some of its text" in text
    assert {corpus.name for corpus in facade_corpora.listed()} == {"my task", "my dev", "my test", "S_C 10%"}


def test_runs_are_filtered_by_the_corpora_of_their_roles(home: Path, made: dict[str, Corpus], seal: Seal) -> None:
    def of(**roles: str) -> list[str]:
        return [run.manifest.kind for run in runs_with_roles(runs.listed(), roles, Library(home))]

    select = chosen(home, made)
    sealed = select.result()["corpus"]
    finish(home, "pretrain", {"corpora": (sealed,), "init": "tiny"}, lambda context: {})
    other = seal(["Something else ."], "other").fingerprint
    parts = {name: made[name].fingerprint for name in ("task", "domain")}
    assert of(**parts) == ["pretrain", "score", "select"]  # S_C is derived from D_C
    assert of(task=parts["task"], domain=other) == []
    assert of(task=other, train=made["train"].fingerprint) == []
    assert of() == ["pretrain", "score", "select"]


def test_removing_everything_removes_corpora_runs_children_and_exports(home: Path, made: dict[str, Corpus]) -> None:
    select = chosen(home, made)
    finish(home, "pretrain", {"corpora": (select.result()["corpus"],), "init": "tiny"}, lambda context: {})
    finish(
        home,
        "map",
        {"selection": select.id, "task": made["task"].fingerprint, "domain": made["domain"].fingerprint},
        lambda context: {},
    )
    finish(home, "audit", {"corpus": made["train"].fingerprint}, lambda context: {})
    for name in (f"choice-{select.id[-4:]}-10pct.txt", "choice-zzzz-10pct.txt"):
        (deliver.exports() / name).write_text("text")
    goes = removals.removal("my task")
    assert goes.in_words == "2 corpora, 1 selection, 1 training, 1 map, 1 child run, 1 export"
    removals.remove_everything("my task")
    assert {corpus.name for corpus in facade_corpora.listed()} == {"my train", "my dev", "my test", "my domain"}
    assert [run.manifest.kind for run in runs.listed()] == ["audit"]
    assert [path.name for path in deliver.exports().iterdir()] == ["choice-zzzz-10pct.txt"]
    assert "task" not in facade_corpora.roles()


def test_nothing_is_removed_while_a_running_run_needs_a_part_of_it(home: Path, made: dict[str, Corpus]) -> None:
    select = chosen(home, made)
    options = {"corpora": (select.result()["corpus"],), "init": "tiny"}
    before = sorted([*home.glob("corpora/**/*"), *home.glob("runs/**/*")])
    for reference in ("my task", "my domain", "S_C 10%", select.id):
        with as_running(unfinished(home, "pretrain", **options)) as run:
            assert [each.id for each in removals.removal(reference).active] == [run.id]
            with pytest.raises(RunError, match=run.id):
                removals.remove_everything(reference)
        removals.remove_run(run.id)
    assert sorted([*home.glob("corpora/**/*"), *home.glob("runs/**/*")]) == before
    removals.remove_everything("my domain")


def test_a_running_run_that_reuses_a_result_prevents_its_removal(home: Path, made: dict[str, Corpus]) -> None:
    finished = finish(home, "audit", {"corpus": made["domain"].fingerprint}, lambda context: {})
    with as_running(unfinished(home, "add", path="x.txt")) as run:
        with EventLog(run.events_file) as log:
            RunContext(run, log).child(finished)
        with pytest.raises(RunError, match=run.id):
            removals.remove_everything(finished.id)


def test_a_child_is_removed_with_the_last_run_that_needs_it(home: Path, made: dict[str, Corpus]) -> None:
    first = chosen(home, made)
    part = runs.get(first.result()["score_run"])
    options = {"task": made["task"].fingerprint, "domain": made["domain"].fingerprint, "budget": "5%"}
    second = finish(
        home, "select", {**options, "strategy": "random"}, lambda context: replace(SELECTED, score_run=part.id)
    )
    removals.remove_run(first.id)
    assert runs.get(part.id).id == part.id

    def with_child(context: RunContext) -> dict[str, object]:
        context.child(part)
        return {}

    third = finish(home, "select", {**options, "strategy": "knn"}, with_child)
    removals.remove_everything(second.id)
    assert [run.id for run in runs.listed()] == [third.id, part.id]


def test_runs_that_other_runs_need_are_kept(home: Path, made: dict[str, Corpus]) -> None:
    first = chosen(home, made)  # on my task
    part = runs.get(first.result()["score_run"])  # reads my domain alone
    other = finish(home, "audit", {"corpus": made["domain"].fingerprint}, lambda context: {"score_run": part.id})
    removals.remove_everything("my task")
    assert {run.id for run in runs.listed()} == {other.id, part.id}
    removals.remove_everything(other.id)
    assert runs.listed() == []  # although the run that started the child was removed before


def test_a_later_experiment_on_the_same_test_set_is_kept(home: Path, made: dict[str, Corpus]) -> None:
    lines = [("none", "", 0), ("tapt", "", 20)]
    first, store = experiment(home, made, lines), RunStore(home)
    later = finish(
        home,
        "experiment",
        {**first.manifest.config, "seeds": (8, 9)},
        lambda context: {**first.result(), "earlier": [asdict(each) for each in earlier_analyses(first, store)]},
    )
    assert [each["run"] for each in later.result()["earlier"]] == [first.id]
    assert [run.id for run in removals.removal(first.id).runs] == [first.id]
    removals.remove_everything(first.id)
    assert [run.id for run in runs.listed("experiment")] == [later.id]
    assert later.id in [run.id for run in removals.removal(later.result()["leaderboard"][0]["finetune_run"]).runs]


def test_runs_of_a_removed_corpus_can_be_removed(home: Path, made: dict[str, Corpus]) -> None:
    chosen(home, made)
    facade_corpora.remove("my task")
    assert len(runs.listed()) == 2
    removals.remove_everything(made["task"].fingerprint)
    assert runs.listed() == []
    with pytest.raises(CorpusError):
        removals.removal(made["task"].fingerprint)
