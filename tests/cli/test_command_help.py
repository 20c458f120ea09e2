"""The command line on runs and results: help, refused options, labels, differences, errors, and ratios of sizes."""

import csv
import io
import json
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import numpy as np
import pytest

from core import __version__, audit_log
from core.cli.examples import CORE
from core.cli.main import _own_first, main, run_main
from core.cli.terminal import in_words
from core.corpora.library import Library
from core.errors import ConfigError
from core.experiment import results
from core.experiment.config import ExperimentConfig
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import labels, removals, run_comparison, runs
from core.runs.context import RunContext
from core.runs.events import EventLog
from core.runs.store import Run, RunStore
from core.stats import mistakes
from core.tagging import evaluations
from core.tagging import view as training
from tests import finished
from tests.conftest import ROOT, Command
from tests.experiment.test_experiment import fill
from tests.pages.drawing import opened, texts


def commands(command: click.Command = main, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Yield the words of every command and group, and the command."""
    yield name, command
    for below, child in command.commands.items() if isinstance(command, click.Group) else ():
        yield from commands(child, f"{name} {below}".strip())


def help_of(command: click.Command) -> str:
    return command.get_help(click.Context(command, info_name="core"))


def test_every_help_ends_with_a_valid_example() -> None:
    for name, shown in commands():
        [example] = re.findall(rf"Example:\n +{CORE} (.*)", help_of(shown))
        words = shlex.split(example)
        command: click.Command = main
        while words and isinstance(command, click.Group):
            command = command.commands[words.pop(0)]
        assert not isinstance(command, click.Group), name
        parser = command.make_parser(click.Context(command))
        values, rest, _ = parser.parse_args(list(words))  # raises NoSuchOption for an unknown option
        empty = [param.name for param in command.params if param.required and values.get(str(param.name)) in (None, ())]
        assert (empty, rest) == ([], []), name


def test_help_says_which_options_of_the_program_may_follow_a_command() -> None:
    for name, shown in commands():
        options = [word for option in ("--home", "--project", "--device", "--on") for word in (option, "value")]
        words = _own_first(main, [*name.split(), *options])
        moved = words[: words.index(name.split()[0])] if name else words
        said = re.search(r"(--home[^.]*) can be given before or after", " ".join(help_of(shown).split()))
        assert said
        assert re.findall("--[a-z]+", said[1]) == [word for word in moved if word.startswith("--")], name


def test_help_shows_types_and_defaults_without_python_syntax() -> None:
    everything = {name: help_of(command) for name, command in commands()}
    for name, text in everything.items():
        assert not re.search(r"default:\s+\(", text), name
        assert not re.search(r"\('|None\)\]", text), name
    finetune = re.sub(r"\s+", " ", everything["finetune"])
    assert re.search(r"--epochs INT\b", finetune)
    assert re.search(r"--learning-rate FLOAT\b", finetune)
    assert re.search(r"--seeds INT,\.\.\. .*?\[default: 1\b", finetune)
    assert "[default: none, random, classifier]" in re.sub(r"\s+", " ", everything["experiment"])


def test_program_options_may_follow_the_command(
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
    code, _, stderr = command("select", "--task", "t", "--domain", "d", "--on", "nowhere")
    assert code == 2
    assert "no such option" not in stderr.lower()
    assert "nowhere" in stderr
    assert _own_first(main, ["runs", "label", "r", "--note", "--on", "--on", "ray"])[:2] == ["--on", "ray"]
    assert _own_first(main, ["finetune", "--share", "all"]) == [
        "finetune",
        "--share",
        "all",
    ]  # the command has an option of this name


def test_a_refused_option_is_named_by_its_flag(command: Command, home: Path) -> None:
    for options, words in (
        ({}, "train is missing."),
        ({"effect": "x"}, "effect must be a number, not 'x'."),
        ({"seeds": ("one",)}, "seeds must be a whole number, not 'one'."),
        ({"preset": "fast"}, "preset must be 'quick' or 'paper', not 'fast'."),
    ):
        given = {"train": "a", "dev": "b", "test": "c"} if options else {}
        with pytest.raises(ConfigError, match=f"^{re.escape(words)}$") as caught:
            ExperimentConfig.parse({**given, **options})
        assert caught.value.option == words.split(maxsplit=1)[0]
    made = finished.corpora(home)
    code, _, stderr = command("experiment", "--train", made["train"].fingerprint, "--test", made["test"].fingerprint)
    assert (code, stderr.strip()) == (2, "--dev is missing.")
    parts = [word for part in ("train", "dev", "test") for word in (f"--{part}", made[part].fingerprint)]
    assert command("experiment", *parts, "--seeds", "one")[2].strip() == "--seed must be a whole number, not 'one'."


def test_runs_are_listed_and_shown_with_titles_and_without_braces(command: Command, home: Path) -> None:
    made = finished.corpora(home)
    tuned = finished.tuned(home, made, "tiny", 0.6)
    [line] = command("runs", "list")[1].splitlines()
    assert line.startswith(tuned.id)
    assert line.endswith("finished    Fine-tune tiny on my train, no further pre-training")
    assert (
        json.loads(command("runs", "list", "--json")[1])["runs"][0]["title"]
        == "Fine-tune tiny on my train, no further pre-training"
    )
    shown = command("runs", "show", tuned.id)[1]
    assert shown.startswith("Fine-tune tiny on my train, no further pre-training\n")
    assert not re.search(r"[{}\[\]]|'", shown)
    assert max(map(len, shown.splitlines())) < 240
    assert json.loads(command("runs", "show", tuned.id, "--json")[1])["result"] == runs.get(tuned.id).result()
    compared = finished.experiment(home, made, finished.LINES[:2])
    assert "Next: " in command("runs", "show", compared.id)[1]
    pooled = finished.study(home, [1.0, 2.0])
    assert all(part in command("runs", "show", pooled.id)[1] for part in results.finding(pooled.id).parts)
    value = {"a": 1.23456, "b": ["x", "y"], "c": [{"d": 1}], "e": None, "f": True, "g": {}}
    assert in_words(value) == "a 1.235, b x, y, c 1 entry; --json shows them, e -, f yes, g -"
    code, out, _ = command("--version")
    assert (code, out.strip()) == (0, f"Winnow {__version__}")


def test_an_import_reports_kept_and_rejected_rows(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "loans.conll"
    file.write_text("Acme B-ORG\npays O\n\nBob B-PER\nx\n", encoding="utf-8")
    lines = command("corpus", "add", file)[1].splitlines()
    assert lines[0] == "loans: 1 sentence, 2 tokens, labelled"
    assert "entities     ORG 1" in lines
    assert "left out     1 row rejected" in lines
    assert any("loans.conll line 5: 1 column" in line for line in lines)
    assert len(lines) < 10
    assert {"corpus", "rejected", "problems"} <= json.loads(command("corpus", "add", file, "--json")[1]).keys()


def test_the_console_script_is_the_same_command() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    script = EntryPoint(name="winnow", value=project["scripts"]["winnow"], group="console_scripts")
    assert script.load() is run_main
    assert project["requires-python"].startswith(">=3.11")


def run_words(command: Command, *words: object) -> str:
    code, out, err = command(*words)
    assert code == 0, err
    return out


def test_messages_name_options_and_a_port_is_in_range(home: Path, command: Command) -> None:
    with pytest.raises(ConfigError, match="options: no file has a role; give at least one file a role"):
        KINDS["intake"].config.parse({"path": "a.txt"})
    assert "localhost:65535/" in run_words(command, "key", "--port", "65535")
    assert command("key", "--port", "65536")[0] == 2


def test_runs_are_labelled_listed_by_label_and_keep_their_key(home: Path, command: Command, tmp_path: Path) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6)
    label = ("runs", "label", run.id)
    run_words(command, *label, "--name", "with crf", "--tag", "march,tiny", "--note", "best so far", "--pin")
    answer = json.loads(run_words(command, *label, "--untag", "tiny", "--json"))
    code, _, err = command(*label, "--tag", "x,march", "--untag", "march")
    assert (code, "tag 'march': --tag adds it and --untag removes it" in err) == (2, True)
    says = {"name": "with crf", "tags": ["march"], "note": "best so far", "pinned": True, "archived": False}
    assert answer == {"run": run.id, **says}
    assert "with crf  #march  pinned" in run_words(command, "runs", "list")
    assert finished.tuned(home, made, "tiny", 0.6).id == run.id
    one, two, three = (finished.tuned(home, made, "tiny", 0.6, epochs=n) for n in (3, 4, 5))
    labels.change(one.id, tags=["a", "b"])
    labels.change(two.id, tags=["a"])
    labels.change(three.id, tags=["a", "b"], archived=True)
    tagged = json.loads(run_words(command, "runs", "list", "--tag", "a", "--tag", "b", "--json"))["runs"]
    assert [row["run"] for row in tagged] == [one.id]
    everything = json.loads(run_words(command, "runs", "list", "--archived", "--json"))["runs"]
    assert {row["run"] for row in everything} == {run.id, one.id, two.id, three.id}
    run_words(command, "runs", "curves", one.id, two.id, "--output", tmp_path / "new" / "curves.csv")
    with (tmp_path / "new" / "curves.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["run"] for row in rows} == {one.id, two.id}
    points = sum(len(metric.steps) for each in (one, two) for metric in training.curves(each.id))
    assert len(rows) == points > 0
    assert {row["metric"] for row in rows} == {"dev_f1"}


def test_a_type_in_a_table_of_curves_is_no_formula(home: Path) -> None:
    run = finished.tuned(home, finished.corpora(home), "tiny", 0.6)
    with EventLog(run.events_file) as log:
        log.append("metric", {"name": "dev_f1/=1+1@1", "value": 50.0, "step": 9})
    [row] = [row for row in csv.DictReader(io.StringIO(run_comparison.curves_csv([run.id]))) if row["step"] == "9"]
    assert row["type"] == "'=1+1"


def test_differences_name_corpora_and_nested_options(home: Path, command: Command) -> None:
    made = finished.corpora(home)
    one = finished.tuned(home, made, "tiny", 0.6, epochs=3)
    two = finished.tuned(home, {**made, "train": made["dev"]}, "tiny", 0.6, epochs=4)
    answer = json.loads(run_words(command, "runs", "diff", one.id, two.id, "--json"))["differences"]
    assert answer["epochs"] == ["3", "4"]
    assert answer["train"] == ["my train", "my dev"]
    assert "learning rate" not in answer
    assert run_words(command, "runs", "diff", one.id, one.id).strip() == "Their options are equal."
    config = {name: value for name, value in one.manifest.config.items() if name != "context"}
    old = RunStore(home).create("finetune", config, one.manifest.inputs, versions={}, key="of an earlier version")
    assert run_words(command, "runs", "diff", one.id, old.id).strip() == "Their options are equal."
    experiment = finished.experiment(home, made, finished.LINES)
    options = {row.option: row.values for row in run_comparison.differences([one.id, experiment.id])}
    assert options["epochs"] == ("3", "")
    changed = {**runs.get(experiment.id).manifest.config, "finetune": {"epochs": 7}}
    nested = finished.finish(home, "experiment", changed, finished.constant({})).id
    options = {row.option: row.values for row in run_comparison.differences([experiment.id, nested])}
    assert options["finetune: epochs"][1] == "7"


def test_a_removal_frees_the_reported_bytes(home: Path, command: Command) -> None:
    made = finished.corpora(home)
    run = finished.tuned(home, made, "tiny", 0.6)

    def held() -> int:
        return sum(path.stat().st_size for path in (home / "runs").rglob("*") if path.is_file())

    (run.artifacts / "model" / "weights").write_bytes(b"x" * 50_000)
    labels.change(run.id, note="not long")
    before = held()
    answer = json.loads(run_words(command, "runs", "remove", run.id, "--json"))
    assert answer["freed"] == before - held() > 50_000
    goes = removals.removal(made["train"].fingerprint)
    sealed = sum(path.stat().st_size for path in made["train"].path.iterdir())
    assert removals.bytes_of(goes) == sealed + sum(map(labels.size, goes.runs))


@pytest.fixture
def tuned(home: Path) -> Run:
    return finished.tuned(home, finished.corpora(home), "tiny", 0.6)


def test_errors_are_counted_by_type_and_shown(tuned: Run, command: Command) -> None:
    answer = json.loads(run_words(command, "errors", tuned.id, "--seed", 2, "--show", 3, "--json"))
    readings = results.side_by_side(tuned.id, 2, tuned.id, 2)
    counts = Counter(one.kind for row in readings for one in row.wrong_a)
    assert [sum(row[kind] for row in answer["types"]) for kind in mistakes.KINDS] == [counts[k] for k in mistakes.KINDS]
    assert answer["wrong"] == sum(bool(row.wrong_a) for row in readings)
    assert len(answer["shown"]) == 3
    first = answer["shown"][0]["mistakes"][0]
    assert first["kind"] in mistakes.KINDS
    assert (first.get("labelled") or first["read"])["text"] in answer["shown"][0]["text"]


def test_only_requested_errors_are_shown_and_logged(tuned: Run, home: Path, command: Command) -> None:
    out = run_words(command, "errors", tuned.id, "--show", 0)
    assert "read as" in out.splitlines()[0]
    assert not [line for line in audit_log.lines() if line["action"] == "look"]
    readings = results.own_readings(tuned.id)
    wanted = [row for row in readings if any(one.kind == "wrong type" and "DATE" in one.types for one in row.wrong_a)]
    out = run_words(command, "errors", tuned.id, "--kind", "wrong type", "--type", "DATE", "--show", 1000)
    assert f"{len(wanted)} of 150 test sentences have such a mistake." in out
    assert "\n  wrong type: " in out
    assert "missed: " not in out
    assert "\nPARTY" not in out  # the table has only the requested type
    assert [line for line in audit_log.lines() if line["action"] == "look"]

    def work(context: RunContext) -> object:
        gold = [row.sentence for row in readings]
        evaluations.write_predictions(
            context.run, "test", finished.random_predictions(gold, -1, 1)
        )  # no entity is found
        return {}

    options = {"model": "minilm", "test": results.tested_on(tuned.id)[0]}
    run = finished.finish(home, "evaluate", options, work)
    answer = json.loads(run_words(command, "errors", run.id, "--show", 0, "--json"))
    assert (sum(row["missed"] for row in answer["types"]), answer["wrong"]) == (300, 150)


def test_errors_of_a_run_without_test_sentences_are_refused(tuned: Run, home: Path, command: Command) -> None:
    options = {"corpora": (results.tested_on(tuned.id)[0],), "init": "tiny"}
    other = finished.finish(home, "pretrain", options, finished.constant(finished.pretrained(3)))
    corpora = {name: tuned.manifest.config[name] for name in ("train", "dev")}
    untested = finished.finish(home, "finetune", {**corpora, "init": "tiny"}, lambda _: finished.TIMED)
    for words, says in (
        ((other.id,), "has no test sentences"),
        ((untested.id,), "has no test sentences"),
        ((tuned.id, "--kind", "missed,lost"), "kind: lost is unknown"),
        ((tuned.id, "--type", "DATE,Party"), "no entity is labelled or read as Party; choose from "),
        ((tuned.id, "--seed", 9), "choose one of 1, 2, 3"),
    ):
        code, _, err = command("errors", *words)
        assert (code, says in err) == (2, True)


def test_ratios_of_sizes_follow_the_papers(home: Path, command: Command) -> None:
    made = fill(home)
    for role in ("task", "domain", "train"):
        corpora.set_role(role, made[role].fingerprint)
    origin: dict[str, object] = {"from": made["domain"].fingerprint}
    by_run: dict[str, object] = {**origin, "run": "20260101-000000-select-abcd"}
    chosen = Library(home).subset(made["domain"], np.arange(12), name="S_C", origin=by_run)
    others: list[dict[str, object]] = [{**by_run, "part": "task"}, {**origin, "where": {"year": ["1999"]}}, origin]
    for n, other in enumerate(others, 20):
        Library(home).subset(made["domain"], np.arange(n), name=f"no selection {n}", origin=other)
    sizes = [(each.name, each.of) for each in corpora.ratios() if each.name == corpora.SELECTED]
    assert sizes == [("N_S/N_D", "S_C")], "parts, filtered corpora and corpora without leaks are no selections"
    ratios = {each.name: each.value for each in corpora.ratios()}
    assert ratios == {"N_T/N_D": 37 / 114, "N_L/N_T": 24 / 37, "N_L/N_D": 24 / 114, "N_S/N_D": 12 / 114}
    page = texts(opened("pages/1_Corpora.py"))
    for words in ("Task corpus to domain corpus (N_T/N_D)", "Selection to domain corpus (N_S/N_D)"):
        assert words in page
    shown = json.loads(run_words(command, "corpus", "show", "train", "--json"))
    assert shown["ratios"] == {"N_L/N_T train of task": 0.6486, "N_L/N_D train of domain": 0.2105}
    assert (shown["entities_per_sentence"], shown["tokens_per_sentence"]) == (
        1.0,
        round(made["train"].n_tokens / 24, 4),
    )
    assert shown["entities_per_100_tokens"] == round(100 * 24 / made["train"].n_tokens, 4)
    corpora.set_role("domain", None)
    [alone] = corpora.ratios(chosen)
    assert (alone.of, alone.to, alone.value) == ("S_C", "domain", 12 / 114)


def test_map_without_a_selection_says_what_is_missing(command: Command) -> None:
    code, _, stderr = command("map")
    assert (code, stderr) == (2, "--selection is missing.\n")
