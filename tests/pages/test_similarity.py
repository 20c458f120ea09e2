"""`2_Similarity` without a browser: empty, a table, guessing, a pasted table, wrong input, hostile names."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core.corpora.library import Library
from core.facade import corpora, runs, similarity, survey
from core.facade.shown import duration
from core.recipes.parts.study import SimilarityConfig
from pages.ui.widgets import plain
from tests.conftest import Seal
from tests.measures.test_contracts import FRUIT, METAL, chained
from tests.pages.test_pages import NASTY, commands_on, opened, texts

PAGE = "pages/2_Similarity.py"


def lines(words: list[str], n: int, seed: int) -> list[str]:
    return [" ".join(sentence) for sentence in chained(words, n, seed)]


@pytest.fixture
def compared(seal: Seal) -> str:
    """A finished comparison of two sources, one of them badly named."""
    task = seal(lines(FRUIT, 40, 1), "my-task")
    sources = seal(lines(FRUIT, 200, 2), "orchard"), seal(lines(METAL, 200, 3), NASTY)
    marks = [source.fingerprint for source in sources]
    config = {
        "target": (task.fingerprint,),
        "source": marks,
        "draws": 2,
        "sizes": 1,
        "parts": 4,
        "skipgram_epochs": 1,
        "min_source_tokens": 1_000,
    }
    return runs.execute("similarity", config).id


def button(app: AppTest, label: str) -> AppTest:
    next(each for each in app.button if each.label == label).click()
    return app.run()


def well(app: AppTest) -> AppTest:
    assert not app.exception
    assert not app.error
    return app


def test_an_empty_page_offers_the_samples_and_takes_a_table() -> None:
    labels = [each.label for each in well(opened(PAGE)).button]
    assert "Open the legal sample" in labels
    assert "Put in Table 3 of Dai et al. 2019" in labels


def test_the_form_starts_from_the_roles_and_starts_a_run(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    task, near, far = (seal(lines(FRUIT, 30, n), name) for n, name in enumerate(("task", "near", "far")))
    corpora.set_role("task", task.fingerprint)
    asked: dict[str, Any] = {}

    def start(kind: str, options: dict[str, Any]) -> str:
        asked.update(options)
        return runs.execute(kind, {**options, "sizes": 0, "draws": 1, "measure": ("tvc",), "min_source_tokens": 1}).id

    monkeypatch.setattr(runs, "start", start)
    app = button(well(opened(PAGE)), "Compare")
    well(app)
    assert asked["target"] == [task.fingerprint]
    assert set(asked["source"]) == {near.fingerprint, far.fingerprint}
    assert SimilarityConfig.parse(asked).cap_tokens == "equal"


def test_how_long_the_last_one_took_is_said(compared: str) -> None:
    said = texts(well(opened(PAGE)))
    assert plain("The latest one here, Compare") in said
    assert plain(f"took {duration(runs.state(compared).seconds)}.") in said


def test_before_the_first_one_it_is_said_why_no_time_is_known(seal: Seal) -> None:
    seal(lines(FRUIT, 40, 1), "my-task")
    assert plain("nothing like it was finished on this machine yet") in texts(well(opened(PAGE)))


def test_a_single_source_is_said_to_be_one_and_how_to_add_another(compared: str) -> None:
    config = dict(runs.get(compared).manifest.config)
    runs.execute("similarity", {**config, "source": config["source"][:1], "measure": ("tvc",)})
    said = well(opened(PAGE)).info[0].value
    assert plain("orchard is the only source, and one source cannot be compared") in said
    assert "Pick a second under **What to compare**, **Sources**" in said


def test_the_result_stands_there_and_a_guess_is_a_choice(compared: str) -> None:
    app = well(opened(PAGE))
    assert "orchard is closest to my&#45;task" in app.success[0].value
    app = well(button(app, "Guess first"))
    assert not app.success
    assert "orchard is closest" not in texts(app)
    picker = next(each for each in app.multiselect if each.label == "Closest first")
    assert set(picker.options) == {"orchard", NASTY}
    picker.set_value([NASTY, "orchard"])
    app = well(button(app, "Show the numbers"))
    shown = texts(app)
    assert "so do 0 of 4 measures" in shown
    assert "perplexity 0 of 1" in shown
    assert similarity.guess(compared, "my-task") == [NASTY, "orchard"]
    assert "Guess first" not in [each.label for each in app.button]


def test_people_answer_one_after_another_before_the_numbers(compared: str) -> None:
    app = well(button(well(opened(PAGE)), "Ask people first"))
    assert "orchard is closest" not in texts(app)
    for person, rating in (("ab", 5), ("cd", 4)):
        next(each for each in app.text_input if each.label.startswith("Who answers")).set_value(person)
        app.radio[0].set_value(rating)
        app = well(button(app, "Keep the answer"))
        assert "The next person can answer" in app.success[0].value
    sources = [each for each in app.selectbox if each.label.startswith(("This source", "is closer"))]
    assert sources[0].value != sources[1].value
    sources[1].set_value(sources[0].value)
    app = well(button(app, "Keep the answer"))
    assert "pick another one" in app.warning[0].value
    app = well(button(app, "Show the numbers"))
    assert "orchard is closest" in app.success[0].value
    shown = texts(app)
    assert plain("2 of 2 agree, 0 disagree; below 6 answers") in shown
    (opinion,) = survey.opinions_of(compared, "my-task")
    assert opinion.counts == [0, 0, 0, 1, 1]


def test_a_finished_comparison_shows_the_table(compared: str) -> None:
    app = well(opened(PAGE))
    shown = texts(app)
    assert "orchard is closest to my&#45;task" in app.success[0].value
    assert "other text of my&#45;task and of the sources" in app.success[0].value
    assert "Could a lead be chance?" in [each.label for each in app.expander]
    assert "lower is closer" in shown
    assert "higher is closer" in shown
    assert shown.count("<small>closest</small>") >= 3
    assert shown.index(">orchard</th>") < shown.index(
        ">&lt;img"
    )  # the closest first, in whatever order they were named
    assert "You put" not in shown
    assert "nan" not in shown.lower().replace("finance", "")


def test_what_winnow_made_is_no_source_by_default(seal: Seal, home: Path) -> None:
    task, domain = seal(lines(FRUIT, 30, 1), "task"), seal(lines(FRUIT, 60, 2), "domain")
    library = Library(home)
    for name, corpus in (("task without held-out sentences", task), ("S_C domain", domain)):
        library.subset(corpus, np.arange(20), name=name, origin={"from": corpus.fingerprint})
    corpora.set_role("task", task.fingerprint)
    picker = next(each for each in well(opened(PAGE)).multiselect if each.label.startswith("Sources: "))
    assert picker.value == [domain.fingerprint]


def test_a_source_that_is_too_small_stands_in_the_table_by_name(seal: Seal) -> None:
    task, near, crumb = (seal(lines(FRUIT, n, n), name) for n, name in ((30, "task"), (200, "near"), (9, "x" * 300)))
    options = {"target": (task.fingerprint,), "source": (near.fingerprint, crumb.fingerprint), "measure": ("tvc",)}
    runs.execute("similarity", {**options, "draws": 1, "sizes": 1, "min_source_tokens": 1_000})
    assert "too small to compare" in texts(well(opened(PAGE)))


def test_a_hostile_name_stays_a_name(compared: str) -> None:
    app = well(opened(PAGE))
    shown = [each.value for kind in ("markdown", "caption", "warning", "success") for each in getattr(app, kind)]
    marked = " ".join([*shown, *(each.proto.body for each in app.get("html"))])
    assert "<img" not in marked
    assert "&lt;img" in marked


def test_the_command_is_shown(compared: str) -> None:
    shown = commands_on(well(opened(PAGE)))
    (command,) = [text for text in shown if text.startswith("python -m core similarity ")]
    assert "--target my-task --source orchard --source" in command
    assert "--draws 2 --sizes 1" in command


def test_a_pair_without_a_number_says_why(seal: Seal) -> None:
    task, near = seal(lines(FRUIT, 30, 1), "task"), seal(lines(FRUIT, 30, 2), "near")
    other = seal([f"слово номер {i} за словом" for i in range(60)], "other")
    marks = [near.fingerprint, other.fingerprint]
    runs.execute(
        "similarity", {"target": (task.fingerprint,), "source": marks, "draws": 1, "sizes": 0, "min_source_tokens": 1}
    )
    app = well(opened(PAGE))
    told = texts(app)
    assert "not measured" in told
    assert any("shares no word" in warning.value for warning in app.warning)
    assert ">nan" not in told


def test_table_4_comes_out_of_table_3() -> None:
    app = well(button(opened(PAGE), "Put in Table 3 of Dai et al. 2019"))
    told = texts(app)
    for r in ("-0.618", "-0.748", "0.667", "0.739"):
        assert r in told
    assert "**48 of 60**" in told  # all four are in the table, and TVC speaks for TVcC
    assert "Fleiss&#39; kappa" in told or "Fleiss' kappa **0.733**" in told
    assert "6 of 6" in told
    assert plain("foretold for 15 of 23 sources (chance 11.7, p = 0.12)") in told
    assert "+3.42 [+3.02, +3.82]" in told


def test_what_the_measures_predict_is_said_in_plain_words_and_experts_tables_are_folded() -> None:
    app = well(button(opened(PAGE), "Put in Table 3 of Dai et al. 2019"))
    told = texts(app)
    for word in ("Target vocabulary covered (TVC)", "Perplexity (PPL)", "Points lost on average"):
        assert word in told
    assert any("Word vector variance goes with the score most closely" in each.value for each in app.success)
    assert "Score &#40;F1&#41;&#44; LM" in told
    folded = "Correlation of the measures with the change of the score, "
    for name in ("LM F1", "vectors F1"):
        assert told.index(f"Points lost by following each measure, {name}") < told.index(folded + name)
    opened_ones = [each for each in app.expander if "correlation" in each.label]
    assert len(opened_ones) == 2
    assert not any(each.proto.expanded for each in opened_ones)


def test_the_matrix_says_a_measures_word_and_its_symbol_in_grey(compared: str) -> None:
    app = well(opened(PAGE))
    shown = texts(app)
    for word, symbol in (("Perplexity", "PPL"), ("Word vector variance", "WVV"), ("Content words covered", "TVcC")):
        assert f'{word} <small class="w-symbol">{symbol}</small>' in shown
    assert "TVC and TVcC counting as one" in app.success[0].value


def test_a_bad_table_is_a_card_that_says_the_line() -> None:
    app = opened(PAGE)
    app.text_area[0].set_value("target,source,ppl\na,x,close\na,y,2")
    app = button(app, "Correlate")
    assert not app.exception
    assert "line 2" in app.error[0].value
