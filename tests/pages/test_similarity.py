"""`2_Similarity` without a browser: empty, guessing, a table, a pasted table, wrong input, hostile names."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from core import facade
from core.corpora.corpus import Corpus
from tests.measures.test_contracts import FRUIT, METAL, chained
from tests.pages.test_pages import NASTY, opened, texts

PAGE = "pages/2_Similarity.py"
Seal = Callable[..., Corpus]


def lines(words: list[str], n: int, seed: int) -> list[str]:
    return [" ".join(sentence) for sentence in chained(words, n, seed)]


@pytest.fixture
def compared(seal: Seal) -> str:
    """A finished comparison of two sources, one of them badly named."""
    task = seal(lines(FRUIT, 40, 1), "my-task")
    sources = seal(lines(FRUIT, 200, 2), "orchard"), seal(lines(METAL, 200, 3), NASTY)
    marks = [source.fingerprint for source in sources]
    config = {"target": (task.fingerprint,), "source": marks, "draws": 2, "sizes": 1, "skipgram_epochs": 1}
    return facade.execute("similarity", config).id


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
    facade.set_role("task", task.fingerprint)
    asked: dict[str, object] = {}

    def start(kind: str, options: dict[str, object]) -> str:
        asked.update(options)
        return facade.execute(kind, {**options, "sizes": 0, "draws": 1, "measure": ("tvc",)}).id

    monkeypatch.setattr(facade, "start", start)
    app = button(well(opened(PAGE)), "Compare")
    well(app)
    assert asked["target"] == [task.fingerprint]
    assert set(asked["source"]) == {near.fingerprint, far.fingerprint}
    assert facade.RECIPES["similarity"].config.parse(asked).cap_tokens == "equal"


def test_numbers_come_after_the_guess(compared: str) -> None:
    app = well(opened(PAGE))
    assert not app.success
    assert "orchard is closest" not in texts(app)
    picker = next(each for each in app.multiselect if each.label == "Closest first")
    picker.set_value([picker.options[1], picker.options[0]])
    app = well(button(app.run(), "Show the numbers"))
    told = texts(app)
    assert "so do 0 of 4 measures" in told
    assert "PPL 0 of 1" in told
    assert facade.guess(compared, "my-task") == [picker.options[1], picker.options[0]]


def test_a_skipped_guess_shows_the_table(compared: str) -> None:
    app = well(button(opened(PAGE), "Skip"))
    told = texts(app)
    assert "orchard is closest to my&#45;task" in app.success[0].value
    assert "lower is closer" in told
    assert "higher is closer" in told
    assert told.count("<small>closest</small>") >= 3
    assert "You put" not in told
    assert "nan" not in told.lower().replace("finance", "")
    assert well(opened(PAGE)).success  # a reload does not ask again


def test_a_hostile_name_stays_a_name(compared: str) -> None:
    app = well(button(opened(PAGE), "Skip"))
    shown = [each.value for kind in ("markdown", "caption", "warning", "success") for each in getattr(app, kind)]
    marked = " ".join([*shown, *(each.proto.body for each in app.get("html"))])
    assert "<img" not in marked
    assert "&lt;img" in marked


def test_the_command_is_shown(compared: str) -> None:
    shown = [each.value for each in well(button(opened(PAGE), "Skip")).code]
    (command,) = [text for text in shown if text.startswith("python -m core similarity ")]
    assert "--target my-task --source orchard --source" in command
    assert "--draws 2 --sizes 1" in command


def test_a_pair_without_a_number_says_why(seal: Seal) -> None:
    task, near = seal(lines(FRUIT, 30, 1), "task"), seal(lines(FRUIT, 30, 2), "near")
    other = seal([f"слово номер {i} за словом" for i in range(60)], "other")
    marks = [near.fingerprint, other.fingerprint]
    facade.execute("similarity", {"target": (task.fingerprint,), "source": marks, "draws": 1, "sizes": 0})
    app = well(button(opened(PAGE), "Skip"))
    told = texts(app)
    assert "not measured" in told
    assert any("shares no word" in warning.value for warning in app.warning)
    assert ">nan" not in told


def test_table_4_comes_out_of_table_3() -> None:
    app = well(button(opened(PAGE), "Put in Table 3 of Dai et al. 2019"))
    told = texts(app)
    for r in ("-0.618", "-0.748", "0.667", "0.739"):
        assert r in told
    assert "**48 of 60**" not in told  # that is without TVcC; all four are in the table
    assert "Fleiss&#39; kappa" in told or "Fleiss' kappa **0.743**" in told
    assert "6 of 6" in told


def test_a_bad_table_is_a_card_that_says_the_line() -> None:
    app = opened(PAGE)
    app.text_area[0].set_value("target,source,ppl\na,x,close\na,y,2")
    app = button(app, "Correlate")
    assert not app.exception
    assert "line 2" in app.error[0].value
