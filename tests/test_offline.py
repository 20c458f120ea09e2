"""With WINNOW_OFFLINE=1 no page offers a download, no run or command accepts one, and no error advises one."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import click
import pytest
from click.testing import CliRunner
from streamlit.testing.v1 import AppTest

from core.cli.main import main
from core.config import offline
from core.errors import ConfigError, ModelError
from core.importing import view as corpora
from core.kinds import KINDS
from core.models import hub
from core.projects import preferences, runs
from core.projects.home import store
from tests.conftest import ROOT, Seal, sentence
from tests.experiment.test_experiment import fill
from tests.pages.drawing import opened, texts

PAGES = ["home.py", *sorted(f"pages/{path.name}" for path in (ROOT / "pages").glob("*.py"))]
OFFERING = {"pages/3_Selection.py", "pages/5_Training.py", "pages/7_Bias.py"}


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


DOWNLOADING = {
    words: command
    for words, command in commands(main)
    if any("--allow-download" in parameter.opts for parameter in command.params)
}


@pytest.fixture
def kept_offline(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Turn on offline mode; return a list of the models that were fetched anyway."""
    fetched: list[str] = []

    def fetch(name: str, *, local_files_only: bool, **options: Any) -> str:
        if not local_files_only:
            fetched.append(name)
        raise OSError("not here")

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    return fetched


def test_offline_mode_refuses_every_download(kept_offline: list[str]) -> None:
    assert offline()
    for allowed in (True, False):
        with pytest.raises(ModelError, match="WINNOW_OFFLINE") as raised:
            hub.folder_of("somebody/some-bert", allow_download=allowed)
    assert "download" not in str(raised.value)  # the error must not advise a download
    assert not kept_offline


@pytest.fixture
def mark(seal: Seal) -> str:
    """Seal a labelled corpus of one sentence."""
    return seal([sentence("Ada sues .", [(0, 1, "PER")])], "mine", labelled=True).fingerprint


@pytest.mark.parametrize("begin", [runs.start, runs.execute])
def test_no_kind_of_run_accepts_a_download(begin: Callable[..., Any], kept_offline: list[str], mark: str) -> None:
    """An available encoder is refused too, because the option itself is not allowed."""
    taking = [kind for kind in KINDS if "allow_download" in KINDS[kind].config.model_fields]
    assert len(taking) > 5
    for kind, encoder in product(taking, ("minilm", "somebody/some-bert")):
        fields = KINDS[kind].config.model_fields
        needed = {
            name: ((mark,) if "tuple" in str(field.annotation) else mark)
            for name, field in fields.items()
            if field.is_required() or name in ("task", "domain")
        }
        named = {name: encoder for name in ("encoder", "init") if name in fields}
        with pytest.raises(ConfigError, match="stay offline"):
            begin(kind, {**needed, **named, "allow_download": True})
    splits = dict.fromkeys(("train", "dev", "test"), mark)
    for stage in ("select", "pretrain", "finetune"):
        with pytest.raises(ConfigError, match="stay offline"):
            begin("experiment", {**splits, "arms": ("none",), stage: {"allow_download": True}})
    assert not runs.listed()
    assert not kept_offline


@pytest.mark.parametrize("kind", ["pretrain", "experiment", "fetch"])
def test_no_earlier_run_is_resumed_with_a_download(kind: str, kept_offline: list[str], mark: str) -> None:
    """Both functions that resume a run refuse, for pages and for the command line."""
    options: dict[str, dict[str, Any]] = {
        "pretrain": {"corpora": (mark,), "init": "somebody/some-bert", "allow_download": True},
        "experiment": {"train": mark, "dev": mark, "test": mark, "pretrain": {"allow_download": True}},
        "fetch": {"encoder": "mpnet", "allow_download": True},
    }
    run = store().create(kind, options[kind], {}, versions={}, key=kind)
    for resume in (runs.resume, runs.go_on):
        with pytest.raises(ConfigError, match="stay offline"):
            resume(run.id)
    assert not runs.state(run.id).attempts
    assert not kept_offline


def test_no_command_accepts_a_download(kept_offline: list[str]) -> None:
    assert {words[-1] for words in DOWNLOADING} >= {"select", "pretrain", "finetune", "difficulty", "experiment"}
    for words, command in DOWNLOADING.items():
        needed = [option for each in command.params if each.required for option in (each.opts[0], "nothing")]
        done = CliRunner().invoke(main, [*words, *needed, "--allow-download"])
        assert isinstance(done.exception, ConfigError), done.output
        assert "WINNOW_OFFLINE" in str(done.exception)
    assert not kept_offline


def test_offline_mode_is_passed_to_the_download_library() -> None:
    code = "from core.models import hub; from huggingface_hub import constants; print(constants.HF_HUB_OFFLINE)"
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    for setting, printed in {"1": "True", "": "False"}.items():
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**environment, "WINNOW_OFFLINE": setting},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == printed


def states(app: AppTest) -> Iterator[AppTest]:
    """Yield the page with each form open: each choice of its segmented controls, and of those inside."""
    yield app
    seen = {group.key for group in app.segmented_control}
    for key in sorted(filter(None, seen)):
        for choice in range(len(app.segmented_control(key=key).proto.options)):
            group = app.segmented_control(key=key)
            yield group.set_value(group.options[choice]).run()
            for inner in [group for group in app.segmented_control if group.key not in seen]:
                assert inner.key
                for value in inner.options:
                    yield app.segmented_control(key=inner.key).set_value(value).run()


def offers(app: AppTest) -> bool:
    """Return True if a page offers to fetch a model in a field, a help text or its text."""
    assert not app.exception
    fields = [*app.toggle, *app.checkbox, *app.selectbox, *app.text_input, *app.multiselect, *app.button]
    page_text = " ".join([*(f"{field.label} {field.help}" for field in fields), texts(app)]).lower()
    return any(
        words in page_text for words in ("allow download", "allow_download", "allow-download", "fetch the encoder")
    )


@pytest.mark.parametrize(
    ("page", "setting"),
    [
        *((page, setting) for page in sorted(OFFERING) for setting in ("1", "")),
        *(pytest.param(page, "1", marks=pytest.mark.full) for page in PAGES if page not in OFFERING),
    ],
)
def test_pages_offer_downloads_only_without_offline_mode(
    page: str, setting: str, home: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role, corpus in fill(home).items():
        corpora.set_role(role, corpus.fingerprint)
    preferences.set_expert(True)  # shows every field
    monkeypatch.setenv("WINNOW_OFFLINE", setting)
    offered = [offers(app) for app in states(opened(page))]
    assert any(offered) == (setting == "")
