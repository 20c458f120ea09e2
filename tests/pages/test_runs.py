"""The page Runs: the table's filters, a run's name, tags and note, what sets several apart, their curves, removal."""

from html import unescape
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Corpus
from core.facade import commands, labels, removals, runs
from core.runs.store import Run
from pages.ui.widgets import plain, size
from tests import finished
from tests.finished import finish
from tests.pages.test_pages import commands_on, opened, texts

PAGE = "pages/10_Runs.py"


@pytest.fixture
def corpora(home: Path) -> dict[str, Corpus]:
    return finished.corpora(home)


@pytest.fixture
def three(home: Path, corpora: dict[str, Corpus]) -> list[Run]:
    """Two trainings and a selection, the newest last."""
    select = {"task": corpora["task"].fingerprint, "domain": corpora["domain"].fingerprint, "strategy": "random"}
    trainings = [finished.tuned(home, corpora, "tiny", 0.6, epochs=n, preset="custom") for n in (3, 4)]
    return [*trainings, runs.execute("select", {**select, "budget": "20"})]


def shown(app: AppTest) -> list[str]:
    """Ids in the table, from above."""
    return list(app.dataframe[0].value["run"]) if app.dataframe else []


def test_all_runs_stand_in_a_table_newest_first_with_what_came_out(home: Path, three: list[Run]) -> None:
    app = opened(PAGE)
    assert not app.exception
    assert shown(app) == [run.id for run in reversed(three)]
    table = app.dataframe[0].value
    assert list(table["state"]) == ["Finished"] * 3
    assert table["result"][0].startswith("Selection: ")
    assert table["size"][0] == pytest.approx(labels.size(three[2]) / 1e6)


def test_a_search_and_filters_leave_what_fits(home: Path, three: list[Run]) -> None:
    labels.change(three[0].id, name="the <b>first</b> one", tags=["march", "tiny"], note="Remember the buyer.")
    labels.change(three[1].id, tags=["march"])
    app = opened(PAGE)
    for query, fitting in (("FIRST", [0]), ("buyer remember", [0]), ("march", [1, 0]), (three[2].id[-4:], [2])):
        app.text_input(key="runs.query").set_value(query).run()
        assert shown(app) == [three[i].id for i in fitting], query
    app.text_input(key="runs.query").set_value("").run()
    app.multiselect(key="runs.kinds").set_value(["finetune"]).run()
    assert len(shown(app)) == 2
    app.multiselect(key="runs.tags").set_value(["march", "tiny"]).run()
    assert shown(app) == [three[0].id]
    states = app.multiselect(key="runs.states")
    assert states.options == ["Finished"]  # as the table says it
    states.set_value(["Finished"]).run()
    assert shown(app) == [three[0].id]


def test_pinned_is_first_and_archived_only_where_asked_for(home: Path, three: list[Run]) -> None:
    labels.change(three[0].id, pinned=True)
    labels.change(three[2].id, archived=True)
    app = opened(PAGE)
    assert shown(app) == [three[0].id, three[1].id]
    app.button_group(key="runs.more").set_value(["archived"]).run()
    assert shown(app) == [three[0].id, three[2].id, three[1].id]
    assert "Finished, archived" in list(app.dataframe[0].value["state"])


def test_parts_and_small_runs_only_where_asked_for(home: Path, corpora: dict[str, Corpus]) -> None:
    small = finish(home, "add", {"path": "/x.txt"}, lambda context: finished.imported(corpora["task"]))
    app = opened(PAGE)
    assert shown(app) == []
    app.button_group(key="runs.more").set_value(["small"]).run()
    assert shown(app) == [small.id]


def test_a_run_is_named_and_its_name_stands_wherever_it_is_listed(home: Path, three: list[Run]) -> None:
    app = opened(PAGE)
    app.multiselect(key="runs.picked").set_value([three[0].id]).run()
    app.text_input(key=f"runs.name.{three[0].id}").set_value("a <b>bold</b> try")
    app.multiselect(key=f"runs.tags.{three[0].id}").set_value(["march"])
    app.text_area(key=f"runs.note.{three[0].id}").set_value("It learnt.\nTwice.")
    app.button(key="runs.keep").click().run()
    assert not app.exception
    label = labels.label_of(three[0].id)
    assert (label.name, label.tags, label.note) == ("a <b>bold</b> try", ("march",), "It learnt.\nTwice.")
    assert "<b>bold" not in texts(app)
    assert plain("a <b>bold</b> try") in texts(opened("home.py"))


def test_a_run_has_the_command_that_begins_it_where_there_is_one(home: Path, three: list[Run]) -> None:
    app = opened(PAGE)
    app.multiselect(key="runs.picked").set_value([three[2].id]).run()
    begins, labelling = commands_on(app)
    assert begins.startswith("python -m core select ")  # with the precision of this machine
    assert begins.endswith(" --task 'my task' --domain 'my domain' --strategy random --budget 20")
    assert labelling == f"python -m core runs label {three[2].id} --name NAME --tag TAG --note TEXT"
    embed = finish(home, "embed", {"corpus": three[2].manifest.config["domain"], "encoder": "tiny"}, lambda context: {})
    assert commands.command_of(embed) is None


def test_pin_and_archive_act_on_all_that_are_picked(home: Path, three: list[Run]) -> None:
    app = opened(PAGE)
    app.multiselect(key="runs.picked").set_value([run.id for run in three[:2]]).run()
    app.button(key="runs.pin").click().run()
    assert [labels.label_of(run.id).pinned for run in three] == [True, True, False]
    app.button(key="runs.pin").click().run()
    assert not any(labels.label_of(run.id).pinned for run in three)
    app.button(key="runs.archive").click().run()
    assert shown(app) == [three[2].id]


def test_several_are_told_apart_and_their_curves_drawn_in_one_chart(home: Path, three: list[Run]) -> None:
    app = opened(PAGE)
    app.multiselect(key="runs.picked").set_value([run.id for run in three[:2]]).run()
    assert not app.exception
    said = texts(app)
    assert "What sets them apart" in said
    assert "<td>epochs</td><td>3</td><td>4</td>" in said
    assert "<td>preset</td>" not in said  # custom in both
    assert len(app.get("vega_lite_chart")) == 1
    assert f"runs diff {three[0].id} {three[1].id}" in unescape(" ".join(commands_on(app)))


def test_a_removal_says_what_it_frees_and_what_needs_the_run(
    home: Path, corpora: dict[str, Corpus], three: list[Run]
) -> None:
    options = {"selection": three[2].id, "task": corpora["task"].fingerprint, "domain": corpora["domain"].fingerprint}
    finish(home, "map", options, lambda context: {})
    app = opened(PAGE)
    app.multiselect(key="runs.picked").set_value([three[2].id]).run()
    freed, parts = removals.removal_alone(three[2].id)[1], removals.removal_alone(three[2].id)[0]
    assert three[2] in parts
    assert freed >= labels.size(three[2])
    assert app.button(key="runs.remove").label == f"Remove it, free {size(freed)}"
    assert "1 made from it cannot be run again without it" in texts(app)
    assert f"free {size(removals.bytes_of(removals.removal(three[2].id)))}" in app.button(key="runs.remove.all").label
    app.button(key="runs.remove.all").click().run()
    assert not app.exception
    assert shown(app) == [three[1].id, three[0].id]
