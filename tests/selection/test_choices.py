"""Saved selections of a project: names, budgets, hand edits, trainings, damage, removal, and the commands."""

import io
import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.cli.main import run_main
from core.config import Budget
from core.corpora.hygiene import FLAGS
from core.errors import ConfigError, CorpusError, RunError
from core.explore import view as maps
from core.importing import view as corpora
from core.projects import labels, runs
from core.projects import view as projects
from core.projects.home import store
from core.projects.view import unreadable
from core.results import Scores, Selection
from core.selection import choices, insights
from core.selection import view as selections
from core.selection.choice import EDITS, append_edit, edits_spoilt, read_edits
from core.shown_command import command as shown_command
from tests import finished
from tests.conftest import Seal, sealer
from tests.homes import Homes, Names, done

Json = Callable[..., Any]


def chosen(home: Path) -> Names:
    """Import T_C and D_C with their roles; select 10 of 60 sentences."""
    lines = {
        "task": [f"The tenant of house {i} shall pay ." for i in range(9)],
        "domain": [f"House number {i} has {i % 7} rooms and a garden of {i * i} feet ." for i in range(60)],
    }
    for role, texts in lines.items():
        corpora.set_role(role, sealer(home)(texts, f"my {role}").fingerprint)
    return {"select": at_random("10")}


def at_random(budget: str, **options: str) -> str:
    """Select at random from the corpora in use."""
    return done("select", {**corpora.roles(), "strategy": "random", "budget": budget, "keep": FLAGS, **options})


@pytest.fixture
def select(homes: Homes, home: Path) -> str:
    """Copy the home of `chosen`; return its selection."""
    return homes.copy(chosen, home)["select"]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Json:
    """Type a command with --json: `command("choice", "list")` -> printed result, or the error message."""

    def call(*words: object) -> Any:
        monkeypatch.setattr(sys, "argv", ["core", *map(str, words), "--json"])
        code = run_main()
        out, err = capsys.readouterr()
        assert code in (0, 2), err
        return err if code else json.loads(out)

    return call


def rows(choice_id: str) -> list[int]:
    return [int(row) for row in selections.chosen(choice_id).rows]


def trained(home: Path, choice_id: str) -> str:
    """Store a finished pre-training on a selection; return its id."""
    options = {"corpora": (selections.seal(choice_id).fingerprint,), "init": "tiny"}
    return finished.finish(home, "pretrain", options, finished.constant(finished.pretrained())).id


def test_saved_selection_is_independent_of_its_original(select: str) -> None:
    selections.keep_budget(select, "20%")
    selections.edit(select, "remove", np.array(rows(select)[:2]))
    selections.edit(select, "add", np.array([int(selections.scored(select).order[-1])]))
    before = rows(select)
    kept = choices.keep(select)
    assert kept.id.startswith(f"{select}.")
    assert (kept.run, kept.budget, kept.name) == (select, "20%", "20% by random")
    assert rows(kept.id) == before
    selections.undo(select)
    selections.keep_budget(select, "5")
    assert rows(kept.id) == before != rows(select)
    assert selections.edits(select).history != selections.edits(kept.id).history
    selections.undo(kept.id)  # copied hand edits can be undone
    assert len(rows(kept.id)) == len(before) - 1
    selections.keep_budget(kept.id, "10")  # stored although it equals the budget of the run
    selections.keep_budget(select, "30%")
    assert selections.kept_budget(kept.id) == "10"


def test_selection_is_found_by_id_and_by_name(select: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = choices.keep(select, "  Leases   only ")
    assert kept.name == "Leases only"
    assert [each.id for each in choices.listed()] == [kept.id, select]
    assert kept.mark == f"{select[-4:]}-{kept.id[-4:]}"
    assert selections.at(select).mark == select[-4:]
    assert maps.of(kept.id) is None
    assert maps.options(kept.id)["selection"] == select
    with monkeypatch.context() as patch:
        patch.setattr(maps, "finished", lambda selection=None: [runs.get(select)] if selection == select else [])
        assert (maps.of(select), maps.of(kept.id)) == (select, f"{select}@{kept.id}")
    for reference in (kept.id, "leases only", "LEASES ONLY"):
        assert choices.find(reference).id == kept.id
    assert choices.find(select).id == choices.find("10 sentences by random").id == select
    with pytest.raises(ConfigError, match="'nothing': does not exist; `choice list`"):
        choices.find("nothing")
    for gone in (f"{select}.0000", f"{select}.../x", f"{select}.", "20200101-000000-select-dead"):
        with pytest.raises(RunError, match="list` shows"):
            choices.find(gone)
    first, second = (choices.keep(select) for _ in range(2))
    assert (first.name, second.name) == ("10 sentences by random", "10 sentences by random 2")
    for name in ("", "x" * 61, "leases ONLY", " "):
        with pytest.raises(ConfigError, match=r"characters; give|give a different one"):
            choices.rename(select, name)
    assert selections.at(select).name == ""
    for name in ("Mine", "mine"):  # a selection may keep its own name
        assert choices.rename(select, name).name == name
    with pytest.raises(RunError, match="is not from a `select` run"):
        choices.find(selections.result(select).score_run)


def test_current_selection_is_the_last_resumed_or_newest(select: str, seal: Seal) -> None:
    kept = choices.keep(select, "Leases")
    now = choices.current()
    assert now is not None
    assert now.id == select  # saving a copy does not make it current
    choices.take_up(kept.id)
    assert [each.id for each in choices.in_use()] == [kept.id, select]
    choices.take_up(select)
    assert [each.id for each in choices.in_use()] == [select, kept.id]
    choices.take_up(kept.id)
    newer = at_random("7")
    made = choices.current()
    assert made is not None
    assert made.id == newer
    corpora.set_role("domain", seal(["Another matter ."], "other").fingerprint)
    assert choices.current() is None


def test_comparison_includes_hand_edits(select: str, seal: Seal) -> None:
    kept = choices.keep(select)
    selections.keep_budget(kept.id, "15")
    worst = int(selections.scored(select).order[-1])
    selections.edit(kept.id, "remove", np.array(rows(select)[:1]))
    selections.edit(select, "add", np.array([worst]))
    a, b = set(rows(select)), set(rows(kept.id))
    found = insights.overlap(select, kept.id, 100)
    assert (found.both, found.only_a, found.only_b) == (len(a & b), len(a - b), len(b - a)) == (9, 2, 5)
    assert {row["row"] for row in found.only_in_a} == a - b
    assert {row["row"] for row in found.only_in_b} == b - a
    assert [each.id for each in choices.comparable(kept.id)] == [select]
    other = seal([f"Something else {i} ." for i in range(20)], "other").fingerprint
    with pytest.raises(CorpusError, match="come from different corpora"):
        insights.overlap(select, at_random("3", domain=other))


def test_training_keeps_its_sentences_and_detects_later_changes(select: str, home: Path) -> None:
    kept = choices.keep(select, "Leases")
    selections.edit(kept.id, "remove", np.array(rows(kept.id)[:3]))
    run = trained(home, kept.id)
    assert [(each.run, each.sentences, each.same) for each in choices.read_by(kept.id)] == [(run, 7, True)]
    assert choices.read_by(select) == []
    selections.undo(kept.id)
    assert [(each.run, each.sentences, each.same) for each in choices.read_by(kept.id)] == [(run, 7, False)]
    selections.edit(select, "remove", np.array(rows(select)[:3]))  # now both have the same sentences
    assert [each.same for each in choices.read_by(select)] == [True]
    [corpus] = runs.get(run).manifest.inputs.values()
    assert len(corpora.find(corpus)) == 7
    choices.remove(kept.id)
    assert len(corpora.find(corpus)) == 7
    selections.undo(select)
    first = trained(home, select)  # on the corpus that the run sealed
    selections.keep_budget(select, "12")
    assert [(each.run, each.same) for each in choices.read_by(select) if each.run == first] == [(first, False)]


def test_saved_selection_is_removable_and_removed_with_its_run(select: str, home: Path) -> None:
    kept = choices.keep(select, "Leases")
    with pytest.raises(ConfigError, match="first of its run"):
        choices.remove(select)
    choices.remove(kept.id)
    assert [each.id for each in choices.listed()] == [select]
    with pytest.raises(RunError, match="does not exist"):
        choices.remove(kept.id)
    with pytest.raises(RunError, match="does not exist"):
        selections.chosen(kept.id)
    again = choices.keep(select, "Leases")
    store().remove(select)
    assert choices.listed() == []
    assert again.id not in str([*home.rglob("*")])


def test_exported_project_contains_its_selections(select: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    selections.edit(select, "add", np.array([50]))
    kept = choices.keep(select, "Zoë's leases")
    choices.take_up(kept.id)
    before = [(each.id, each.name, each.budget, rows(each.id)) for each in choices.in_use()]
    projects.export(projects.current(), tmp_path / "one.zip")
    monkeypatch.setenv("WINNOW_HOME", str(tmp_path / "elsewhere"))
    projects.bring_in(io.BytesIO((tmp_path / "one.zip").read_bytes()), "one.zip")
    assert [(each.id, each.name, each.budget, rows(each.id)) for each in choices.in_use()] == before
    assert choices.keep(kept.id).name == "10 sentences by random"


@pytest.mark.parametrize("file", ["choice.json", "budget.json"])
def test_damaged_selection_is_named_and_others_stay_listed(file: str, select: str, command: Json) -> None:
    sound = choices.keep(select, "Sound")
    for damaged in (b"", b"{", b"\xff", b"[1]", b'{"name": 3}', b'"lots"', b"null", None):
        kept = choices.keep(select, "Damaged")
        path = kept.folder / file
        path.unlink() if damaged is None else path.write_bytes(damaged)
        assert {each.id for each in choices.listed()} == {sound.id, select}
        assert path in unreadable()
        for ask in (selections.kept_budget, selections.chosen, selections.edits, choices.find):
            with pytest.raises(RunError, match=rf"selection {kept.id}: .*{file} cannot be read; restore it from a"):
                ask(kept.id)
        assert command("choice", "remove", kept.id) == {"removed": kept.id}
        assert unreadable() == []


def test_a_renamed_domain_corpus_gives_its_new_name_to_files_and_corpora(select: str) -> None:
    assert selections.file_name(select).startswith("my_domain-")
    corpora.rename("my domain", "leases")
    assert selections.file_name(select).startswith("leases-")
    selections.edit(select, "add", np.array([50]))
    assert selections.seal(select).name.startswith("selection leases ")


def test_damaged_name_edits_or_note_are_named_and_the_selection_stays(select: str) -> None:
    run, kept = runs.get(select), choices.keep(select)
    about = run.path / "choice.json"
    for damaged in (b"", b"[]", b'{"name": "x", "created": 1e400, "taken": true}'):
        about.write_bytes(damaged)
        assert {each.id for each in choices.listed()} == {select, kept.id}
        assert about in unreadable()
    choices.take_up(select)  # already current
    choices.rename(select, "Mine")
    assert unreadable() == []
    labels.change(select, note="with leases")
    for folder in (run.path, kept.folder):
        selections.edit(select if folder == run.path else kept.id, "add", np.array([50, 51]))
        log = folder / "edits.jsonl"
        log.write_bytes(log.read_bytes().replace(b'"add"', b'"a\0d"'))
    (run.path / "label.json").write_text('{"note": "with lea')
    assert unreadable() == [run.path / "edits.jsonl", kept.folder / "edits.jsonl", run.path / "label.json"]
    assert {each.id for each in choices.listed()} == {select, kept.id}
    labels.change(select, note="again")
    assert unreadable() == [run.path / "edits.jsonl", kept.folder / "edits.jsonl"]


def test_choice_commands_list_edit_compare_export_and_remove(
    select: str, command: Json, tmp_path: Path, home: Path
) -> None:
    kept = command("choice", "keep", "--name", "Leases")
    assert (kept["name"], kept["run"], kept["budget"]) == ("Leases", select, "10")
    assert kept["hand_edits"] == {"added": 0, "removed": 0}
    listed = command("choice", "list")["choices"]
    assert [(row["choice"], row["current"]) for row in listed] == [(kept["choice"], False), (select, True)]
    assert command("choice", "take", "leases")["choice"] == kept["choice"]
    assert command("choice", "set", "--budget", "25%")["budget"] == "25%"  # of the current selection
    run = trained(home, kept["choice"])
    shown = command("choice", "show")
    assert (shown["selected"], shown["of"], shown["name"]) == (15, 60, "Leases")
    assert shown["read_by"] == [{"run": run, "sentences": 15, "same": True}]
    assert command("choice", "rename", "Leases", "Rents")["name"] == "Rents"
    found = command("choice", "compare", "Rents", select, "--most", 2)
    assert (found["both"], found["only_a"], found["only_b"]) == (10, 5, 0)
    domain = selections.scored(select).domain
    extra = [sentence.id for sentence in domain.take(rows(kept["choice"])[10:12])]
    assert [row["id"] for row in found["only_in_a"]] == extra
    output = tmp_path / "S_C.txt"
    assert command("export", "Rents", "--output", output)["choice"] == kept["choice"]
    assert len(output.read_text().splitlines()) == 15
    assert "first of its run" in command("choice", "remove", select)
    assert command("choice", "remove", "Rents") == {"removed": kept["choice"]}
    assert "'Rents': does not exist" in command("choice", "remove", "Rents")
    dotted = command("choice", "keep", "--name", "20.2% by classifier")["choice"]
    assert command("choice", "remove", "20.2% by classifier") == {"removed": dotted}
    assert "'Rents': does not exist" in command("choice", "show", "Rents")
    corpora.set_role("domain", None)
    store().remove(select)
    assert "there is none from the corpora in use" in command("choice", "show")


def test_select_command_writes_the_sentences_that_it_counts(
    select: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    selections.edit(select, "remove", np.array(rows(select)[:3]))
    words = shlex.split(shown_command("select", runs.get(select).manifest.config))[3:]
    monkeypatch.setattr(sys, "argv", ["core", *words, "--output", str(tmp_path / "S_C.txt"), "--json"])
    assert run_main() == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["selected"] == len((tmp_path / "S_C.txt").read_text().splitlines()) == 10
    assert f"(0 added and 3 removed by hand); `export {select}` writes them" in err


def test_pretrain_command_accepts_a_selection_by_name(
    select: str, command: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = choices.keep(select, "Leases")
    selections.edit(kept.id, "add", np.array([int(selections.scored(select).order[-1])]))
    started: dict[str, Any] = {}
    monkeypatch.setattr(
        runs, "execute", lambda kind, options, listener, **_: started.update(options) or runs.get(select)
    )
    command("pretrain", "--corpus", "my task", "--choice", "leases", "--init", "tiny")
    task, chosen = started["corpora"]
    assert (task, chosen) == (corpora.roles()["task"], selections.seal(kept.id).fingerprint)
    assert corpora.find(chosen).origin["choice"] == kept.id


ACTION = st.tuples(st.sampled_from(["add", "remove", "undo"]), st.sets(st.integers(0, 9), min_size=1, max_size=4))


@settings(max_examples=30)
@given(st.lists(ACTION, max_size=12))
def test_edit_history_equals_actions_that_were_not_undone(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, set[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    assert str(read_edits(folder)) == "no hand edits"
    stack: list[tuple[str, set[int]]] = []
    for action, rows in actions:
        append_edit(folder, action, np.array(sorted(rows)))  # type: ignore[arg-type]
        if action != "undo":
            stack.append((action, rows))
        elif stack:
            stack.pop()
    state: dict[int, str] = {}
    for action, rows in stack:
        state |= dict.fromkeys(rows, action)
    found = read_edits(folder)
    assert found.added.tolist() == sorted(row for row, action in state.items() if action == "add")
    assert found.removed.tolist() == sorted(row for row, action in state.items() if action == "remove")
    assert [edit.action for edit in found.history] == [action for action, _ in stack]


def test_incomplete_or_forged_lines_are_skipped(tmp_path: Path) -> None:
    append_edit(tmp_path, "add", np.array([1]))
    whole = (tmp_path / EDITS).read_bytes()
    append_edit(tmp_path, "add", np.array([2, 3, 4]))
    (tmp_path / EDITS).write_bytes((tmp_path / EDITS).read_bytes()[:-5])  # killed while writing
    assert read_edits(tmp_path).added.tolist() == [1]
    append_edit(tmp_path, "remove", np.array([7]))
    found = read_edits(tmp_path)
    assert (found.added.tolist(), found.removed.tolist()) == ([1], [7])
    assert (tmp_path / EDITS).read_bytes().startswith(whole)
    (tmp_path / EDITS).write_bytes(whole + b'{"action": "explode", "rows": [1]}\n[]\n\xff\n')
    assert read_edits(tmp_path).added.tolist() == [1]
    deep, endless = b'{"a":' * 50_000, b'{"action": "add", "rows": [%s], "time": 1}' % (b"9" * 30)
    (tmp_path / EDITS).write_bytes(b"\n".join([deep, endless, whole]))
    assert read_edits(tmp_path).added.tolist() == [1]


@pytest.mark.parametrize("spoilt", [b"[]", b"\xff", b'{"action": "add", "rows": [-1], "time": 1}', b"\0" * 40])
def test_damaged_line_is_distinguished_from_an_incomplete_one(spoilt: bytes, tmp_path: Path) -> None:
    append_edit(tmp_path, "add", np.array([1]))
    whole = (tmp_path / EDITS).read_bytes()
    (tmp_path / EDITS).write_bytes(whole + whole[:-9] + b"\n" + whole + whole[:-4])  # two writers were killed
    assert not edits_spoilt(tmp_path)
    (tmp_path / EDITS).write_bytes(whole + spoilt + b"\n")
    assert edits_spoilt(tmp_path)
    assert read_edits(tmp_path).added.tolist() == [1]


def test_edit_of_a_row_outside_the_corpus_is_refused(tmp_path: Path) -> None:
    scores = Scores(name="s", unit="u", prefer="high", values=np.array([5.0, 4, 3]), corpus="c")
    chosen = Selection(corpus="c", rows=np.array([0]), scores=scores.values[:1], budget=Budget.parse("1"), dropped={})
    append_edit(tmp_path, "add", np.array([2, 3]))
    with pytest.raises(RunError, match="adds row 3, but the domain corpus has only 3 rows; restore it"):
        read_edits(tmp_path).apply(chosen, scores)


@pytest.mark.parametrize("prefer", ["high", "low"])
def test_edits_apply_in_score_order(tmp_path: Path, prefer: str) -> None:
    scores = Scores(name="s", unit="u", prefer=prefer, values=np.array([5.0, 4, 3, np.nan, 1, 0]), corpus="c")  # type: ignore[arg-type]
    rows = np.array([0, 1, 2])
    chosen = Selection(corpus="c", rows=rows, scores=scores.values[rows], budget=Budget.parse("3"), dropped={"leak": 2})
    append_edit(tmp_path, "add", np.array([1, 3, 4, 5]))
    append_edit(tmp_path, "remove", np.array([0]))
    found = read_edits(tmp_path).apply(chosen, scores)
    behind = [4, 5, 3] if prefer == "high" else [5, 4, 3]  # best first, NaN last
    assert found.rows.tolist() == [1, 2, *behind]
    np.testing.assert_array_equal(found.scores, scores.values[found.rows])
    assert found.dropped == {"leak": 2, "removed_by_hand": 1}
