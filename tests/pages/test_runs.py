"""The page Runs: filters of the table; name, tags and note of a run; comparison of runs; their curves; removal."""

from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core import shown_command as commands
from core.corpora.corpus import Corpus
from core.importing import view as corpora
from core.projects import labels, removals, runs
from core.runs.store import Run
from pages.ui.widgets import plain, size
from tests import finished
from tests.finished import finish
from tests.homes import Homes
from tests.pages.drawing import codes, opened, press, select, texts

PAGE = "pages/10_Runs.py"


def build_three(home: Path) -> dict[str, str]:
    """Make two trainings and a selection, the newest last. Return {number: run id}."""
    made = finished.corpora(home)
    trainings = [finished.tuned(home, made, "tiny", 0.6, epochs=n, preset="custom") for n in (3, 4)]
    return {str(i): run for i, run in enumerate([*(run.id for run in trainings), select(budget="20")])}


@pytest.fixture
def three(homes: Homes, home: Path) -> list[Run]:
    return [runs.get(run_id) for run_id in homes.copy(build_three, home).values()]


def shown(app: AppTest) -> list[str]:
    """Return the run ids in the table, from top to bottom."""
    return list(app.dataframe[0].value["run"]) if app.dataframe else []


def test_table_is_searched_and_filtered_and_shows_pinned_runs_first(home: Path, three: list[Run]) -> None:
    labels.change(three[0].id, name="the <b>first</b> one", tags=["march", "tiny"], note="Remember the buyer.")
    labels.change(three[1].id, tags=["march"])
    small = finish(home, "add", {"path": "/x.txt"}, lambda context: finished.imported(corpora_of(three)))
    app = opened(PAGE)
    assert shown(app) == [run.id for run in reversed(three)]
    table = app.dataframe[0].value
    assert list(table["state"]) == ["Finished"] * 3
    assert table["size"][0] == pytest.approx(labels.size(three[2]) / 1e6)
    assert "<b>first" not in texts(app)
    for query, fitting in (("FIRST", [0]), ("buyer remember", [0]), ("march", [1, 0]), (three[2].id[-4:], [2])):
        app.text_input(key="runs.query").set_value(query).run()
        assert shown(app) == [three[i].id for i in fitting], query
    app.text_input(key="runs.query").set_value("")
    app.multiselect(key="runs.kinds").set_value(["finetune"])
    app.multiselect(key="runs.states").set_value(["Finished"])
    app.multiselect(key="runs.tags").set_value(["march", "tiny"]).run()
    assert shown(app) == [three[0].id]
    labels.change(three[0].id, pinned=True)
    labels.change(three[2].id, archived=True)
    app = opened(PAGE)
    assert shown(app) == [three[0].id, three[1].id]
    app.button_group(key="runs.more").set_value(["archived", "small"]).run()
    assert shown(app) == [three[0].id, small.id, three[2].id, three[1].id]


def corpora_of(three: list[Run]) -> Corpus:
    return corpora.find(three[0].manifest.config["train"])


def test_name_of_a_run_is_shown_in_every_list(home: Path, three: list[Run]) -> None:
    app = opened(PAGE, {"runs.picked": [three[2].id], "runs.command": True})
    begins, labelling = codes(app)
    assert "core select " in begins
    assert begins.endswith(" --task 'my task' --domain 'my domain' --strategy random --budget 20")
    assert labelling == f"python -m core runs label {three[2].id} --name NAME --tag TAG --note TEXT"
    app.text_input(key=f"runs.name.{three[2].id}").set_value("a <b>bold</b> try")
    app.multiselect(key=f"runs.tags.{three[2].id}").set_value(["march"])
    app.text_area(key=f"runs.note.{three[2].id}").set_value("It learnt.\nTwice.")
    press(app, "runs.keep")
    label = labels.read(three[2])
    assert (label.name, label.tags, label.note) == ("a <b>bold</b> try", ("march",), "It learnt.\nTwice.")
    assert "<b>bold" not in texts(app)
    assert plain("a <b>bold</b> try") in texts(opened("home.py"))
    embed = finish(home, "embed", {"corpus": three[2].manifest.config["domain"], "encoder": "tiny"}, lambda context: {})
    assert commands.command_of(embed) is None


def test_keep_changes_only_what_was_typed_in_this_window(home: Path, three: list[Run]) -> None:
    run = three[2]
    labels.change(run.id, tags=["march", "tiny"])
    app = opened(PAGE, {"runs.picked": [run.id]})
    labels.change(run.id, name="named in another window", tags=["tiny", "april"])
    app.text_area(key=f"runs.note.{run.id}").set_value("A note.")
    app.multiselect(key=f"runs.tags.{run.id}").set_value(["march", "may"])
    press(app, "runs.keep")
    label = labels.read(run)
    assert (label.name, label.tags, label.note) == ("named in another window", ("april", "may"), "A note.")
    press(app, "runs.keep")
    assert labels.read(run) == label
    app.text_input(key=f"runs.name.{run.id}").set_value("named here")
    app.text_area(key=f"runs.note.{run.id}").set_value("")
    press(app, "runs.keep")
    assert (labels.read(run).name, labels.read(run).note) == ("named here", "")


def test_several_runs_are_compared_pinned_and_archived_together(home: Path, three: list[Run]) -> None:
    app = opened(PAGE, {"runs.picked": [run.id for run in three[:2]], "runs.diff.command": True})
    page_text = texts(app)
    assert "<td>epochs</td><td>3</td><td>4</td>" in page_text
    assert "<td>preset</td>" not in page_text  # equal in both, so not listed
    assert len(app.get("vega_lite_chart")) == 1
    assert f"runs diff {three[0].id} {three[1].id}" in unescape(" ".join(codes(app)))
    for pinned in (True, False):
        press(app, "runs.pin")
        assert [labels.read(run).pinned for run in three] == [pinned, pinned, False]
    press(app, "runs.archive")
    assert shown(app) == [three[2].id]
    names = ["first", "second", "third"]
    for run, name in zip(three, names, strict=True):
        labels.change(run.id, name=f"the {name} run")
    page_text = texts(opened("home.py"))
    assert [f"the {name} run" in page_text for name in names] == [False, False, True]


@pytest.mark.parametrize("name", ["_rows", "_look_again"])
def test_a_list_that_updates_itself_is_drawn_again_after_another_window_removed_a_run(
    home: Path, three: list[Run], name: str
) -> None:
    def script(name: str, ids: list[str]) -> None:
        import streamlit as st

        from pages.ui.runs import table

        if st.session_state.setdefault("again", False):
            st.write("drawn again")
        else:
            st.session_state["again"] = True
            getattr(table, name)(ids, *[False] * (name == "_rows"))

    ids = [run.id for run in reversed(three)]
    removals.remove_run(ids[0])
    app = AppTest.from_function(script, args=(name, ids), default_timeout=300).run()
    assert "drawn again" in texts(app)
    assert not app.error


def test_removal_states_the_freed_bytes_and_the_runs_that_need_it(home: Path, three: list[Run]) -> None:
    marks = {name: three[2].manifest.config[name] for name in ("task", "domain")}
    finish(home, "map", {"selection": three[2].id, **marks}, lambda context: {})
    app = opened(PAGE, {"runs.picked": [three[2].id]})
    parts, freed = removals.removal_alone(three[2].id)
    assert three[2] in parts
    assert freed >= labels.size(three[2])
    assert size(freed) in app.button(key="runs.remove").label
    assert size(removals.bytes_of(removals.removal(three[2].id))) in app.button(key="runs.remove.all").label
    press(app, "runs.remove.all")
    assert shown(app) == [three[1].id, three[0].id]
