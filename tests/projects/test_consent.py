"""Unfinished runs of an imported project ask for consent before they are resumed."""

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from core.cli.main import main
from core.errors import ConfigError
from core.experiment import find_out, next_step, results
from core.experiment.result import Cheapest, ExperimentResult
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.paths import within
from core.project_list import Project
from core.projects import runs
from core.projects import view as projects
from core.projects.home import store
from core.runs.events import EventLog
from core.runs.run import BROUGHT
from core.runs.store import Run
from tests import finished
from tests.conftest import ROOT, Seal
from tests.pages.drawing import TRAINING, keys, opened, texts

Options = Mapping[str, Any]


def unfinished(kind: str, options: Options, **changes: object) -> Run:
    """Make an interrupted run. changes: options in the manifest that differ from those of its key."""
    config = KINDS[kind].config.parse(options)
    whole = register(KINDS[kind], config, store(), run_anyway=True)
    order = whole.manifest
    changed = {**order.config, **changes}
    if changes:
        store().remove(whole.id)
        whole = store().create(kind, changed, order.inputs, versions=order.versions, key=order.key)
    with EventLog(whole.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
    return whole


def imported_copy() -> Project:
    """Export the current project and import it under another name."""
    data = projects.export_bytes(projects.current())
    return projects.bring_in(io.BytesIO(data), "given.zip", "Brought")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.txt"
    file.write_text("One clause is here .\n", encoding="utf-8")
    return file


def test_paths_and_downloads_of_imported_runs_are_named_and_refused(home: Path, secret: Path) -> None:
    add = unfinished("add", {"path": str(secret)})
    fetch = unfinished("fetch", {"encoder": "mpnet", "allow_download": True})
    with within(imported_copy().slug):
        for run, message in ((add, f"add: path: {secret}"), (fetch, "fetch: encoder: mpnet")):
            for resume in (runs.resume, runs.go_on):
                with pytest.raises(ConfigError, match=f"was imported with a project.*{message}"):
                    resume(run.id)
            assert runs.state(run.id).attempts == 1
        assert not corpora.listed()


def test_the_option_agree_resumes_an_imported_run(home: Path, secret: Path) -> None:
    run = unfinished("add", {"path": str(secret)})
    words = ["--project", imported_copy().name, "runs", "resume", run.id]
    refused = CliRunner().invoke(main, words)
    assert isinstance(refused.exception, ConfigError)
    assert f"runs resume {run.id} --agree" in str(refused.exception)
    done = CliRunner().invoke(main, [*words, "--agree"])
    assert done.exit_code == 0, done.output
    with within(projects.find("Brought").slug):
        assert [len(corpus) for corpus in corpora.listed()] == [1]
        assert runs.brought_options(run.id) is None


def test_a_forged_run_with_the_same_key_is_not_reused(home: Path, secret: Path) -> None:
    """A forged manifest may combine the key of a harmless run with other options."""
    wanted = {"path": str(secret)}
    forged = unfinished("add", wanted, path="/etc/hostname")
    with within(imported_copy().slug):
        run = runs.execute("add", wanted)
        assert run.id != forged.id
        assert run.manifest.config["path"] == str(secret)


def test_consent_does_not_travel_in_an_archive(home: Path, secret: Path) -> None:
    """A run counts as imported after every import, even if its project was exported again."""
    run = unfinished("add", {"path": str(secret)})
    with within(imported_copy().slug):
        assert (store().get(run.id).path / BROUGHT).exists()
        again = projects.bring_in(io.BytesIO(projects.export_bytes(projects.current())), "again.zip", "Again")
    with within(again.slug):
        assert runs.brought_options(run.id) == {"path": str(secret)}


@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_no_new_run_with_the_options_of_an_imported_one_downloads(home: Path, seal: Seal, state: str) -> None:
    """Pages offer such runs: a map of a selection, a selection with diversity, a training with smaller batches."""
    task, domain = (seal([f"A clause of {name} ."], name).fingerprint for name in ("task", "domain"))
    options = {"task": task, "domain": domain, "strategy": "knn", "encoder": "tiny"}
    run = unfinished(
        "select", options, encoder="evil/model", allow_download=True, strategies={"ner": {"allow_download": "yes"}}
    )
    if state == "finished":
        with EventLog(run.events_file) as log:
            log.append("succeeded", {})
    with within(imported_copy().slug):
        config = store().get(run.id).manifest.config
        assert (config["encoder"], config["allow_download"], config["strategies"]) == (
            "evil/model",
            False,
            {"ner": {"allow_download": False}},
        )


def test_the_page_asks_before_it_resumes_an_imported_run(home: Path, seal: Seal) -> None:
    task, domain = (seal([f"A clause of {name} ."], name).fingerprint for name in ("task", "domain"))
    options = {"task": task, "domain": domain, "strategy": "knn", "encoder": "evil/![i](http://x/y)"}
    run = unfinished("select", options | {"encoder": "tiny"}, encoder=options["encoder"], allow_download=True)
    slug = imported_copy().slug
    with within(slug):
        app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run().switch_page("pages/3_Selection.py")
        app.query_params |= {"project": slug, "run": run.id}
        app.run()
        assert not app.exception
        button = next(each for each in app.button if each.label == "Resume")
        assert button.disabled
        assert "This run came in a project file" in texts(app)
        assert "![i]" not in texts(app)
        next(each for each in app.checkbox if each.label.startswith("I have checked")).check().run()
        assert not next(each for each in app.button if each.label == "Resume").disabled
        assert runs.state(run.id).attempts == 1


def test_no_imported_experiment_that_sends_sentences_elsewhere_is_offered_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fills_in(**query: str) -> bool:
        app = opened(TRAINING, {"training.kind": "experiment"}, **query)
        return "training.experiment.latest" in keys(app)

    monkeypatch.setattr(find_out, "repetitions_to_settle", lambda run_id: 9)
    made = finished.corpora(home)
    host = {"llm": {"allow_host": "gpu-box"}}
    result = ExperimentResult(leaderboard=[finished.ARM_ROW], curve=(), hours={})
    arms = ("none", "knn", "llm:qwen3@http://gpu-box:1/v1")
    marks = {role: corpus.fingerprint for role, corpus in made.items()}
    run = finished.finish(
        home, "experiment", {**marks, "arms": arms, "encoder": "tiny", **host}, finished.constant(result)
    )
    for role, mark in marks.items():
        corpora.set_role(role, mark)
    open_question = replace(results.board(run.id), cheapest=Cheapest(line="", words="", times=2))
    monkeypatch.setattr(results, "board", lambda run_id: open_question)
    # Here the user has agreed.
    assert find_out.again(run)["llm"] == next_step.deciding_options(run.id)["llm"] == host["llm"]
    assert fills_in()
    copy = imported_copy().slug
    with within(copy):
        assert find_out.again(store().get(run.id)) == next_step.deciding_options(run.id) == {}
    assert not fills_in(project=copy)
    assert "Only the sender of its project file allowed that." in texts(opened(TRAINING, project=copy, again=run.id))
