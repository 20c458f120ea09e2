"""Every command takes lists with commas or by repetition, `--json`, and a corpus by its name or its file."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from core import shown_command as commands
from core.bias import view as bias
from core.cli.main import main, run_main
from core.cli.options import CORPUS, several_pairs
from core.config import fields_with
from core.corpora.library import Library
from core.errors import Cancelled, RunError
from core.experiment import cli as experiment_cli
from core.experiment import view as experiments
from core.importing import view as corpora
from core.kind import as_json
from core.kinds import KINDS
from core.paths import home as home_of
from core.projects import removals, runs
from core.runs.events import EventLog
from core.runs.store import RunStore
from core.samples.sets import sample_sets
from core.tagging import view as training
from tests.conftest import Command, Seal, sentence
from tests.finished import fine_tuned


def walked(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Yield ("corpus add", the command) for each command that is not hidden."""
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from walked(part, (*path, name))
    elif not command.hidden:
        yield " ".join(path), command


COMMANDS = dict(walked(main))
NAMED = {**KINDS, **{" ".join(kind.words): kind for kind in KINDS.values()}}
CONFIGS = {
    name: (NAMED.get(name) or NAMED[name.split()[-1]]).config
    for name in COMMANDS
    if {name, name.split()[-1]} & {*NAMED}
}
BESIDE = {  # options for corpora that are not in the command's config
    "corpus show": {"reference"},
    "corpus audit": {"task", "domain", "labelled"},
    "corpus filter": {"corpus"},
    "predict": {"input"},
    "frontier": {"train"},
    "audit": set(),
    "check": {"task", "domain", "train", "dev", "test"},
}


def takes_several(param: click.Parameter) -> bool:
    return param.multiple or param.nargs == -1


def test_every_command_has_json_and_lists_required_options_first() -> None:
    for name, command in COMMANDS.items():
        assert "--json" in {flag for param in command.params for flag in param.opts}, name
        corpus_names = {param.name for param in command.params if param.type is CORPUS}
        config = None if name in BESIDE else CONFIGS.get(name)
        fields = (
            {*fields_with(config, "corpus")} - {*fields_with(config, "hidden")} if config else BESIDE.get(name, set())
        )
        assert corpus_names == fields, name
    for name in CONFIGS:
        required = [param.required for param in COMMANDS[name].params if isinstance(param, click.Option)]
        assert all(required[: sum(required)]), name
    shown = {what.partition(" ")[0] for what in SHOWN}
    # `tests/explore/test_map.py` tests the command of a map, which needs a finished selection.
    assert {*shown, "map"} == {name for name, kind in KINDS.items() if kind.command is not None}


def test_list_options_take_commas_and_repetition(home: Path) -> None:
    for name, command in COMMANDS.items():
        params = {param.name: param for param in command.params}
        config = CONFIGS.get(name)
        for key, field in config.model_fields.items() if config else ():
            if key in params and isinstance(field.default, tuple | dict):
                assert takes_several(params[key]), (name, key)
        with click.Context(command) as context:
            for param in filter(takes_several, params.values()):
                pairs = param.callback is several_pairs
                one, other = ("k=1,5", "n=2") if pairs else ("1", "2")  # the value of an option may be a list
                for typed in ((f"{one},{other}",), (f"{one}, {other},",), (one, other)):
                    assert param.process_value(context, typed) == (one, other), (name, param.name)
                assert param.process_value(context, ("",)) == (
                    "",
                )  # refused by the config, not replaced by the default


def test_a_list_may_be_longer_than_a_path(home: Path, seal: Seal, command: Command) -> None:
    names = [f"a corpus with the number {n}" for n in range(20)]
    marks = [seal([f"Sentence {n} ."], name).fingerprint for n, name in enumerate(names)]
    [source] = [param for param in COMMANDS["similarity"].params if param.name == "source"]
    with click.Context(COMMANDS["similarity"]) as context:
        for each in (names, marks):
            assert source.process_value(context, (",".join(each),)) == tuple(each)
    code, _, err = command("similarity", "--target", names[0], "--source", "x" * 300)
    assert (code, "no corpus of this name or fingerprint" in err) == (2, True)


def test_quotes_that_belong_to_a_name_are_kept(home: Path, seal: Seal) -> None:
    for n, name in enumerate(('"Acme"', "Acme", 'Bo, "the" Ann')):
        seal([f"Sentence {n} ."], name)
    [source] = [param for param in COMMANDS["similarity"].params if param.name == "source"]
    with click.Context(COMMANDS["similarity"]) as context:
        for typed in (('"Acme"', "Acme", 'Bo, "the" Ann'), ('"Acme",Acme', 'Bo, "the" Ann')):
            assert source.process_value(context, typed) == ('"Acme"', "Acme", 'Bo, "the" Ann')


SHOWN: dict[str, dict[str, Any]] = {  # unusual options of each kind whose command a page shows
    "add": {"path": "/data/a.txt", "others": ("/data/b c.txt",), "split": True},
    "assist": {"primary": "a", "assisting": "b", "dev": "c", "test": "d", "seeds": (1, 2)},
    "dictionary": {"names": ("a", "b"), "test": ("c",), "inside": "d", "outside": "a"},
    "difficulty": {"train": "a", "seed": 7},
    "draw": {"task": "a", "known": ("b", "c"), "n": 40},
    "evaluate": {"model": "20261124-120000-finetune-0000", "test": "a"},
    "experiment": {
        **{"task": "a", "domain": "b", "train": "c", "dev": "d", "test": "a"},
        **{"arms": ("none", "random", "knn"), "budgets": ("10%", "1"), "seeds": (1, 2, 4, 3), "looks": (2, 4)},
        **{"claim": "knn", "multipliers": True, "repeat": "pipeline", "effect": 2.5},
        **{"strategies": {"knn": {"neighbours": 3}}, "select": {"keep": ["near_duplicate", "too_short"]}},
        **{"pretrain": {"epochs": 2}, "finetune": {"epochs": 3, "learning_rate": 5e-5}},
    },
    "fetch": {"encoder": "mpnet", "allow_download": True},
    "finetune": {"train": "a", "dev": "b", "test": ("c", "d"), "seeds": (4,), "preset": "custom", "epochs": 3},
    "intake": {"path": "folder", "others": ("b c.txt",), "train": ("a.conll",), "domain": ("x, y.txt", "b c.txt")},
    "llm": {
        "model": "qwen3:8b",
        "train": "a",
        "test": ("b", "c"),
        "examples": 8,
        "guidelines": "a, b=c",
        "timeout": 9.5,
    },
    "predict": {"model": "20261124-120000-finetune-0000", "corpus": "a"},
    "pretrain": {"corpora": ("a", "b"), "epochs": 2},
    "prevalence": {"task": "a", "domain": "b"},
    "queue": {
        "task": "a",
        "domain": "b",
        "n": 50,
        "model": "20261124-120000-finetune-0000",
        "suggest": "20261124-120000-llm-0000",
        "allow_host": "gpu-box",
    },
    "rank": {"train": "a", "dev": "b", "encoders": ("minilm", "tiny")},
    "rebuild": {"train": "a", "difficulty": "20261124-120000-difficulty-0000", "method": "random2low", "rate": 0.3},
    "review": {"corpus": "a", "dev": "b", "against": "c", "type_map": ("GPE=LOC",)},
    "robustness": {"test": "a", "train": "b", "kind": "typos"},
    "select": {"task": "a", "domain": "b", "strategy": "knn", "options": {"neighbours": 5}, "cascade": False},
    "select fuse": {
        **{"task": "a", "domain": "b", "strategy": "fuse", "keep": ("near_duplicate", "too_short")},
        "options": {"of": ["classifier", "knn"], "constant": 30},
    },
    "similarity": {"target": ("a",), "source": ("b", "c"), "measure": ("tvc", "ppl"), "seed": 3},
    "skl": {"primary": "a", "assisting": "b", "type_map": ("GPE=LOC", "ORG=")},
    "split": {"corpus": "a", "by": "document"},
    "study": {
        **{"train": ("a", "c"), "dev": ("b", "b"), "test": ("d", "a"), "domain": ("b",)},
        **{"task": ("a", "c"), "names": ("one", "two"), "arms": ("none", "random", "knn"), "claim": "knn"},
        "seeds": (1, 2),
        # Values as typed: `settled` parses them.
        **{"strategies": {"knn": {"neighbours": "3"}}, "finetune": {"epochs": "3"}},
    },
    "vectors-import": {"path": "/data/glove.txt", "name": "glove"},
    "which-strategy": {"task": "a", "domain": "b", "holdout": ("c", "d"), "strategies": ("knn",), "draws": 5},
    "zero-shot": {
        "model": "/models/ner",
        "test": ("a", "b"),
        "dev": "c",
        "type_map": ("PER=person",),
        "threshold": 0.3,
    },
}


@pytest.mark.parametrize("what", SHOWN)
def test_a_shown_command_starts_the_same_run(
    what: str, home: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kind = what.partition(" ")[0]
    monkeypatch.chdir(tmp_path)
    for name in ("folder/a.conll", "folder/x, y.txt", "b c.txt"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("Acme O\n" * 3, encoding="utf-8")

    class Begun(Exception):
        """Carry the run that would have started."""

    def begin(kind: str, options: dict[str, object], listener: object = None, **others: object) -> None:
        raise Begun(kind, KINDS[kind].config.parse(dict(options)))

    marks = {name: seal([f"A sentence of {name} ."], name).fingerprint for name in "abcd"}
    recipe = KINDS[kind].config
    held = {*fields_with(recipe, "corpus")}

    def marked(name: str, value: Any) -> Any:
        if name not in held:
            return value
        return marks[value] if isinstance(value, str) else tuple(marks[each] for each in value)

    config = recipe.parse({name: marked(name, value) for name, value in SHOWN[what].items()})
    if kind == "intake":  # The command makes paths absolute.
        config = config.model_copy(update={"path": str(tmp_path / "folder"), "others": (str(tmp_path / "b c.txt"),)})
    monkeypatch.setattr(runs, "execute", begin)
    # Experiments check their data and time the machine first.
    monkeypatch.setattr(experiment_cli, "_prepare", lambda kind, options, **_: begin(kind, options))
    words = shlex.split(commands.command(kind, config.model_dump()))
    assert words[:3] == ["python", "-m", "core"]
    with pytest.raises(Begun) as caught:
        main(words[3:], standalone_mode=False)
    assert caught.value.args == (kind, config)


@pytest.mark.parametrize("network", ["encoder", "bilstm"])
def test_the_shown_command_of_a_finished_tagger_tags_with_it(
    network: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, Any]] = []

    def begin(kind: str, options: dict[str, object], listener: object = None, **others: object) -> None:
        started.append((kind, KINDS[kind].config.parse(dict(options))))
        raise Cancelled("what would have been started")

    monkeypatch.setenv("WINNOW_HOME", str(tmp_path / "Jane Roe's home"))
    text = Library(home_of()).seal([sentence("A sentence .")], name="TEXT.txt", origin={}).fingerprint
    config = {"train": text, "dev": text, "seeds": (1,), "network": network, "constrained": False, "weights": "0"}
    run = RunStore(home_of()).create("finetune", config, {}, seed=None, versions={}, key="k", parent=None)
    run.result_file.write_text(json.dumps(as_json(fine_tuned([60.0], dev=[61.5], model=""))))
    with EventLog(run.events_file) as events:
        events.append("succeeded", {})
    shown = [text for text in training.loading(run.id).values() if text.startswith("python -m core")]
    monkeypatch.setattr(runs, "execute", begin)
    for words in map(shlex.split, shown):
        with pytest.raises(Cancelled):
            main(words[3:], standalone_mode=False)
    [(kind, parsed)] = started
    folder = str(run.artifacts / "model")
    assert (kind, parsed.model, parsed.corpus, parsed.constrained) == ("predict", folder, text, False)


def test_runs_that_no_command_can_repeat_show_none(home: Path) -> None:
    store = RunStore(home)
    upload, other, foreign = (
        store.create(kind, config, {}, seed=None, versions={}, key=kind)
        for kind, config in (
            ("add", {"path": "/uploads/a.pdf", "move": True}),  # the uploaded copy is deleted
            ("split", {"corpus": "a", "of_another_version": 1}),
            ("dream", {}),
        )
    )
    assert [commands.command_of(run) for run in (upload, other, foreign)] == [None] * 3


def test_a_run_of_a_kind_of_a_later_version_is_shown_and_refused_in_one_sentence(home: Path, command: Command) -> None:
    run = RunStore(home).create("dream", {"depth": 1}, {}, versions={"winnow": "99.0"}, key="k")
    with EventLog(run.events_file) as events:
        events.append("failed", {"error": "no sleep."})
    code, out, _ = command("runs", "show", run.id)
    assert (code, out.splitlines()[0]) == (0, "dream")
    assert "depth  1" in out
    refused = (
        f"run {run.id}: this version of Winnow has no runs of the kind dream; use the version that started it (99.0).\n"
    )
    assert command("runs", "resume", run.id) == (2, "", refused)
    with pytest.raises(RunError, match="kind dream"):
        runs.resume(run.id)


OTHERS = {
    "output": "tagged.jsonl",
    "budget": "10",
    "kind": "oov",
    "method": "dataaug",
    "where": "a=b",
}  # other options take any value


@pytest.mark.parametrize("by", ["file", "name"])
@pytest.mark.parametrize("name", [n for n, c in COMMANDS.items() if any(p.type is CORPUS for p in c.params)])
def test_a_corpus_is_given_by_its_file_or_its_name(
    name: str, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name has a comma. The run gets the fingerprint of each corpus."""
    words, wanted = name.split(), []
    for i, param in enumerate(COMMANDS[name].params):
        if param.type is CORPUS:
            path = tmp_path / f"part {i}, labelled.conll"
            path.write_text(f"Harlow\tB-PARTY\npays\tO\n{i}\tO\n\n" * 3, encoding="utf-8")
            value = str(path)
            if by == "name":
                added = runs.execute("add", {"path": value, "name": path.stem}).result()
                value = path.stem
            else:
                added = {"corpus": ""}
            wanted.append((path, added["corpus"]))
        elif param.required:
            value = OTHERS.get(str(param.name), "x")
        else:
            continue
        words += [value] if isinstance(param, click.Argument) else [param.opts[-1], value]
    calls: list[Any] = []

    def instead(*given: Any, **kw: Any) -> Any:
        if given[0] == "add":  # imports a file that an option names
            return execute(*given, **kw)
        calls.append([given, kw])
        if given[0] == "audit":  # for D_C, then for T_C
            return SimpleNamespace(id="")
        raise Cancelled("Nothing is to be done here.")

    execute = runs.execute
    monkeypatch.setattr(runs, "execute", instead)
    monkeypatch.setattr("core.importing.cli.read_result", lambda run, result: SimpleNamespace(flags={}, near_rules={}))
    monkeypatch.setattr(bias, "frontier", instead)
    monkeypatch.setattr(experiments, "calibrations", instead)
    monkeypatch.setattr(runs, "refuse_red", lambda kind, options, **others: ())
    monkeypatch.setattr(corpora, "check_project", instead)
    monkeypatch.setattr(corpora, "filtered", instead)
    monkeypatch.setattr(sys, "argv", ["core", *words])
    code = run_main()
    out, err = capsys.readouterr()
    assert code in (0, 130), err
    reached = json.dumps(calls, default=str) + out
    for path, fingerprint in wanted:
        assert str(path) not in reached
        assert (fingerprint or corpora.find(path.stem).fingerprint) in reached, path.name


def test_commands_without_a_result_report_their_action_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["core", *words, "--json"])
        assert run_main() == 0
        return json.loads(capsys.readouterr().out)

    assert [row["name"] for row in run("samples")["samples"]] == [s.name for s in reversed(sample_sets())]
    assert not corpora.former_roles()
    assert run("samples") == {"samples": []}
    made = run("select", "--task", "legal-task", "--domain", "legal-domain", "--strategy", "random", "--budget", "9")
    output = str(tmp_path / "S_C.txt")
    written = {"run": made["run"], "choice": made["run"], "output": output}
    assert run("export", made["run"], "--output", output) == written
    assert run("runs", "cancel", made["run"]) == {"run": made["run"], "state": "succeeded"}
    monkeypatch.setattr(sys, "argv", ["core", "runs", "cancel", made["run"]])
    assert (run_main(), capsys.readouterr().out) == (0, "finished\n")
    _, freed = removals.removal_alone(made["run"])
    assert freed > 0
    assert run("runs", "remove", made["run"]) == {"removed": made["run"], "freed": freed}
    gone = corpora.find("legal-dev").fingerprint
    assert run("corpus", "remove", "legal-dev") == {"removed": gone}
