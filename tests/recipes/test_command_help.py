"""What a user of the command line reads first: help, version, errors by option, and results without braces."""

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest

from core import __version__
from core.cli.examples import CORE
from core.cli.main import _own_first, main, run_main
from core.cli.terminal import in_words
from core.errors import ConfigError
from core.experiment.config import ExperimentConfig
from core.projects import runs
from tests import finished
from tests.conftest import ROOT, Command


def commands(command: click.Command = main, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command and group by its words."""
    yield name, command
    for below, child in command.commands.items() if isinstance(command, click.Group) else ():
        yield from commands(child, f"{name} {below}".strip())


def help_of(command: click.Command) -> str:
    return command.get_help(click.Context(command, info_name="core"))


def test_every_help_ends_with_an_example_that_can_be_typed() -> None:
    for name, shown in commands():
        [example] = re.findall(rf"Example:\n +{CORE} (.*)", help_of(shown))
        words = shlex.split(example)
        command: click.Command = main
        while words and isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        assert not isinstance(command, click.Group), name
        parser = command.make_parser(click.Context(command))
        values, rest, _ = parser.parse_args(list(words))  # NoSuchOption for a wrong one
        empty = [param.name for param in command.params if param.required and values.get(str(param.name)) in (None, ())]
        assert (empty, rest) == ([], []), name


def test_help_shows_types_and_defaults_as_people_write_them() -> None:
    everything = {name: help_of(command) for name, command in commands()}
    for name, text in everything.items():
        assert not re.search(r"default:\s+\(", text), name
        assert not re.search(r"\('|None\)\]", text), name
    finetune = re.sub(r"\s+", " ", everything["finetune"])
    assert re.search(r"--epochs INT\b", finetune)
    assert re.search(r"--learning-rate FLOAT\b", finetune)
    assert re.search(r"--seeds INT,\.\.\. .*?\[default: 1\b", finetune)
    assert "[default: none, random, classifier]" in re.sub(r"\s+", " ", everything["experiment"])


def test_the_version_is_printed(command: Command) -> None:
    code, out, _ = command("--version")
    assert (code, out.strip()) == (0, f"Winnow {__version__}")


def test_options_of_the_program_may_stand_behind_the_command(
    command: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, usual in (("WINNOW_DEVICE", "auto"), ("WINNOW_ON", "local")):
        monkeypatch.setenv(name, usual)
    (file := tmp_path / "a.txt").write_text("One sentence .\n", encoding="utf-8")
    assert command("corpus", "add", file)[0] == 0
    assert command("project", "new", "Loans")[0] == 0
    assert len(json.loads(command("corpus", "list", "--json")[1])["corpora"]) == 1
    before = json.loads(command("--project", "Loans", "--device", "cpu", "corpus", "list", "--json")[1])
    behind = json.loads(command("corpus", "list", "--json", "--project=Loans", "--device", "cpu")[1])
    assert before == behind == {"corpora": []}
    code, _, said = command("select", "--task", "t", "--domain", "d", "--on", "nowhere")
    assert code == 2
    assert "no such option" not in said.lower()
    assert "nowhere" in said
    assert _own_first(main, ["runs", "label", "r", "--note", "--on", "--on", "ray"])[:2] == ["--on", "ray"]
    assert _own_first(main, ["finetune", "--share", "all"]) == ["finetune", "--share", "all"]  # an option of its own


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "train is missing."),
        ({"train": "a", "dev": "b", "test": "c", "effect": "x"}, "effect must be a number, not 'x'."),
        ({"train": "a", "dev": "b", "test": "c", "seeds": ("one",)}, "seeds must be a whole number, not 'one'."),
        ({"train": "a", "dev": "b", "test": "c", "preset": "fast"}, "preset must be 'quick' or 'paper', not 'fast'."),
    ],
)
def test_an_option_is_refused_in_our_words(options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(words)}$") as caught:
        ExperimentConfig.parse(options)
    assert caught.value.option == words.split(maxsplit=1)[0]


def test_a_refused_option_is_named_by_its_flag(command: Command, home: Path) -> None:
    made = finished.corpora(home)
    code, _, said = command("experiment", "--train", made["train"].fingerprint, "--test", made["test"].fingerprint)
    assert (code, said.strip()) == (2, "--dev is missing.")
    parts = [word for part in ("train", "dev", "test") for word in (f"--{part}", made[part].fingerprint)]
    assert command("experiment", *parts, "--seeds", "one")[2].strip() == "--seed must be a whole number, not 'one'."


def test_runs_are_listed_and_shown_with_their_titles_and_without_braces(command: Command, home: Path) -> None:
    made = finished.corpora(home)
    tuned = finished.tuned(home, made, "tiny", 0.6)
    [line] = command("runs", "list")[1].splitlines()
    assert line.startswith(tuned.id)
    assert line.endswith("finished    Fine-tune tiny on my train")
    assert json.loads(command("runs", "list", "--json")[1])["runs"][0]["title"] == "Fine-tune tiny on my train"
    shown = command("runs", "show", tuned.id)[1]
    assert shown.startswith("Fine-tune tiny on my train\n")
    assert not re.search(r"[{}\[\]]|'", shown)
    assert max(map(len, shown.splitlines())) < 240
    assert json.loads(command("runs", "show", tuned.id, "--json")[1])["result"] == runs.get(tuned.id).result()
    compared = finished.experiment(home, made, finished.LINES[:2])
    assert "Next: " in command("runs", "show", compared.id)[1]


def test_an_import_says_what_came_in_and_what_was_left_out(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "loans.conll"
    file.write_text("Acme B-ORG\npays O\n\nBob B-PER\nx\n", encoding="utf-8")
    lines = command("corpus", "add", file)[1].splitlines()
    assert lines[0] == "loans: 1 sentence, 2 tokens, labelled"
    assert "entities     ORG 1" in lines
    assert "left out     1 row rejected" in lines
    assert any("loans.conll line 5: 1 column" in line for line in lines)
    assert len(lines) < 10
    assert {"corpus", "rejected", "problems"} <= json.loads(command("corpus", "add", file, "--json")[1]).keys()


def test_values_are_printed_without_braces() -> None:
    value = {"a": 1.23456, "b": ["x", "y"], "c": [{"d": 1}], "e": None, "f": True, "g": {}}
    assert in_words(value) == "a 1.235, b x, y, c 1 entry; --json shows them, e -, f yes, g -"


def test_the_console_script_is_the_same_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    script = EntryPoint(name="winnow", value=project["scripts"]["winnow"], group="console_scripts")
    assert script.load() is run_main
    assert project["requires-python"].startswith(">=3.11")
