"""Documents, years and other columns on Selection: only some are scored, and the selected sentences are grouped."""

import json
import random
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.library import Library
from core.experiment import deliver
from core.importing import view as corpora
from core.projects import removals, runs
from core.selection import choices, groups, insights
from core.selection import view as selections
from core.selection.insights import Which
from core.text.sentence import Sentence
from tests.conftest import Command, Seal, sentence
from tests.pages.drawing import NASTY, SELECTION, codes, opened, opened_on, press, select, texts


def row(i: int) -> Sentence:
    """Return sentence number `i` of 60: years 2019 to 2021 in turn, every tenth without one; two documents; a kind."""
    rng = random.Random(i)  # no two sentences are near duplicates
    line = sentence(" ".join("".join(rng.choices("aeiklmnorst", k=5)) for _ in range(8)) + " .")
    year = () if i % 10 == 0 else (("year", str(2019 + i % 3)),)
    kind = (("kind", "a" if i == 0 else "b"),)  # the only sentence of kind a has no year
    return replace(line, doc="Ulm" if i < 45 else NASTY, columns=(*kind, *year))


@pytest.fixture
def domain(seal: Seal) -> str:
    task = seal([f"The court reads contract {i} ." for i in range(12)], "my-task")
    domain = seal([row(i) for i in range(60)], "my-domain")
    for role, corpus in (("task", task), ("domain", domain)):
        corpora.set_role(role, corpus.fingerprint)
    return domain.fingerprint


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Run in this process what a page starts; return the options of these runs."""
    asked: list[Mapping[str, Any]] = []

    def start(kind: str, options: Mapping[str, Any], on: str = "", *, run_anyway: bool = False) -> str:
        asked.append(options)
        return runs.execute(kind, options, run_anyway=run_anyway).id

    monkeypatch.setattr(runs, "start", start)
    return asked


def narrowed(domain: str, **where: list[str]) -> AppTest:
    """Draw the form with a filter."""
    fields = {f"selection.part.{domain}.{name}": values for name, values in where.items()}
    form = {"selection.strategy": "random", "selection.budget": "50%", "selection.part": True}
    return opened(SELECTION, {**form, **fields})


def test_only_sentences_with_the_chosen_values_are_scored(
    domain: str, started: list[Mapping[str, Any]], command: Command
) -> None:
    app = narrowed(domain, year=["2020", "2021"], doc=["Ulm"])
    wanted = [row(i).text for i in range(45) if i % 3 and i % 10]
    assert len(wanted) == 27
    assert "27 sentences of 60 will be scored." in texts(app)
    press(app, "selection.start")
    [options] = started
    part = corpora.find(str(options["domain"]))
    assert [one.text for block in part.batches() for one in block] == wanted
    run = runs.listed("select")[0].id
    assert (selections.result(run).of, selections.result(run).selected) == (27, 14)
    shown = codes(opened_on(SELECTION, run, {"selection.command": True}))[-1]
    assert "--domain my-domain --where doc=Ulm --where year=2020 --where year=2021" in shown
    words = shlex.split(shown)[3:]
    code, out, problem = command(*words[: words.index("--output")], "--json")
    assert code == 0, problem
    assert json.loads(out)["run"] == run  # reused, because it has the same domain corpus


def test_filter_without_a_value_scores_everything_and_one_without_sentences_is_refused(
    domain: str, started: list[Mapping[str, Any]], seal: Seal
) -> None:
    press(narrowed(domain), "selection.start")
    assert started.pop()["domain"] == domain
    assert "5 sentences of 60 will be scored." in texts(narrowed(domain, year=["2019"], doc=[NASTY]))
    assert corpora.filter_values(corpora.find(domain))["doc"] == {"Ulm": 45, NASTY: 15}
    app = press(narrowed(domain, year=["2019", "2020", "2021"], doc=["Ulm", NASTY], kind=["a"]), "selection.start")
    assert "no sentence has these values" in app.error[0].value
    assert not started
    corpora.set_role("domain", seal([row(i).text for i in range(60)], "plain").fingerprint)
    for state in ({"selection.part": True}, {"selection.groups": True}):
        app = opened_on(SELECTION, select(), state)
        assert any("no column for this" in info.value for info in app.info)


def test_columns_with_too_many_values_are_named(domain: str, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "MOST_VALUES", 2)
    app = opened(SELECTION, {"selection.part": True})
    assert [field.label for field in app.multiselect if str(field.key).startswith("selection.part")] == [
        "Document",
        "kind",
    ]
    assert "Columns with more than 2 values are not listed: year." in texts(app)
    many = seal([replace(row(i), doc=f"lease {i}", columns=()) for i in range(60)], "many")
    corpora.set_role("domain", many.fingerprint)
    app = opened(SELECTION, {"selection.part": True})
    assert "Columns with more than 2 values are not listed: Document." in texts(app)
    assert "no column for this" not in texts(app)


def test_data_check_of_the_filtered_corpus_shows_after_a_refused_start(
    domain: str, started: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(years: list[str]) -> AppTest:
        form = {"selection.part": True, f"selection.part.{domain}.year": years, "selection.budget": "40"}
        return opened(SELECTION, {"selection.strategy": "random", **form})

    app = asked(["2020", "2021"])
    assert not app.error
    assert not app.button(key="selection.start").disabled  # the check of 60 sentences
    press(app, "selection.start")
    assert "data check" in app.error[0].value
    monkeypatch.setattr(Library, "subset", None)  # the filtered corpus is made once
    app = asked(["2021", "2020"])
    assert app.button(key="selection.start").disabled
    press(press(app, "selection.cure.budget"), "selection.start")
    assert started[-1]["domain"] == started[0]["domain"] != domain


def test_selected_sentences_are_counted_by_column(domain: str, command: Command) -> None:
    run = select(budget="20")
    chosen = selections.chosen(run)
    years = [dict(row(i).columns).get("year", "") for i in range(60)]
    inside = [years[i] for i in chosen.rows]
    found = groups.groups(run, chosen, "year")
    assert {group["value"]: (group["sentences"], group["selected"]) for group in found} == {
        value: (years.count(value), inside.count(value)) for value in ("2019", "2020", "2021", "")
    }
    counts = [group["selected"] for group in found]
    assert counts == sorted(counts, reverse=True)
    assert sum(group["of_selection"] for group in found) == pytest.approx(100)
    first = found[0]
    assert first["of_group"] == pytest.approx(100 * first["selected"] / first["sentences"])
    assert groups.groups(run, chosen, "year", 2) == found[:2]
    app = opened_on(SELECTION, run, {"selection.groups": True})
    assert list(app.selectbox(key="selection.group").options) == ["Document", "kind", "year"]
    app.selectbox(key="selection.group").set_value("year").run()
    page = texts(app)
    assert "<caption>Selected sentences by year</caption>" in page
    assert page.count("(none)") == 1 + sum(years[i] == "" for i in chosen.rows[:8])
    app.selectbox(key=f"selection.group.{run}.year").set_value("2020").run()
    best = [i for i in chosen.rows if years[i] == "2020"][:8]
    table = texts(app).rpartition("<caption>The closest")[2]
    assert [i for i in range(60) if row(i).text in table] == sorted(best)
    order, k = [i for i in selections.scored(run).order if years[i] == "2020"], inside.count("2020")
    expected: dict[Which, list[int]] = {
        "borderline": order[max(k - 4, 0) : k + 4],
        "rejected": order[max(len(order) - 8, k) :][::-1],
        "withheld": [],
    }
    for which, wanted in expected.items():
        shown = insights.examples(run, chosen, (), which, inside=groups.members(run, "year", "2020"))
        assert [one["row"] for one in shown] == wanted, which
        assert [one["selected"] for one in shown] == [one["row"] in chosen.rows for one in shown]
    app.selectbox(key="selection.group").set_value("doc").run()
    assert NASTY not in texts(app)
    code, out, _ = command("choice", "show", run, "--by", "year", "--json")
    assert (code, json.loads(out)["groups"]) == (0, found)
    lines = command("choice", "show", run, "--by", "year")[1].splitlines()
    assert f"2019 {inside.count('2019')} of {years.count('2019')}" in [" ".join(line.split()) for line in lines]
    code, _, problem = command("choice", "show", run, "--by", "court")
    assert code == 2
    assert "no column 'court'; its columns are doc, kind, year" in problem
    selections.edit(run, "remove", chosen.rows[:5])
    assert sum(group["selected"] for group in groups.groups(run, selections.chosen(run), "year")) == 15


def test_file_of_a_selection_is_named_by_its_words_and_removed_with_its_run(seal: Seal) -> None:
    """A year in a corpus's name must not look like the digits of another run."""
    texts_of = {"my-task": range(90, 99), "Contracts (2019) - 2020: ä/b": range(30)}
    for role, (name, rows) in zip(("task", "domain"), texts_of.items(), strict=True):
        corpora.set_role(role, seal([row(i).text for i in rows], name).fingerprint)
    run = select(budget="10%")
    assert selections.file_name(run) == f"Contracts_2019_2020_ä_b-random-{run[-4:]}-10pct"
    kept = choices.keep(run, "Leases: 2019-2020")
    assert selections.file_name(kept.id) == f"Leases_2019_2020-{run[-4:]}-{kept.id[-4:]}-10pct"
    files = [deliver.exports() / f"{selections.file_name(one)}.txt" for one in (run, kept.id)]
    for file in files:
        file.write_text("text")
    assert set(removals.removal(run).exports) == set(files)
    other = f"{run[:-4]}2019"
    assert removals._exports(deliver.exports(), [other]) == ()
