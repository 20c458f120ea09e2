"""Every page in its states, without a browser: empty, with a sample, with a run, with an error."""

import ast
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import facade
from core.corpora.corpus import Corpus, Library
from core.runs.events import EventLog
from core.text.sentence import Entity, Sentence, sentence_id
from pages.ui import frame
from pages.ui.widgets import duration, entity_html, plain, size

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("app.py", "pages/1_Corpora.py", "pages/3_Selection.py")
NASTY = "<img src=x onerror=alert(1)> [x](http://evil.example) :red[loud] $x^2$ `code` **bold** a@b.example"


def opened(page: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    if page == "app.py":
        return app.run()
    return app.run().switch_page(page).run()


def texts(app: AppTest) -> str:
    """All that a page says, in one string."""
    kinds = ("title", "subheader", "caption", "markdown", "info", "warning", "error", "text")
    shown = [element.value for kind in kinds for element in getattr(app, kind)]
    return " ".join([*shown, *(element.proto.body for element in app.get("html"))])


@pytest.fixture
def trio(seal: Callable[..., Corpus]) -> dict[str, Corpus]:
    """T_C, D_C and L_C with parts given, no sample needed."""
    words = ["court", "contract", "goal", "league", "buyer", "seller", "clause", "match"]
    rng = np.random.default_rng(0)
    made = {
        "task": seal([f"The {a} signs the {b} today ." for a in words[:3] for b in words[:4]], "my-task"),
        "domain": seal([f"In {i} the {' '.join(rng.choice(words, 5))} ended ." for i in range(60)], "my-domain"),
        "train": seal(
            [
                Sentence(
                    id=sentence_id("Ada sues"),
                    tokens=("Ada", "sues"),
                    text="Ada sues",
                    entities=(Entity(start=0, end=1, type="PER"),),
                )
            ],
            "my-labels",
            labelled=True,
        ),
    }
    for role, corpus in made.items():
        facade.set_role(role, corpus.fingerprint)
    return made


@pytest.fixture
def chosen(trio: dict[str, Corpus]) -> str:
    """A finished selection, by a strategy that needs no encoder."""
    config = {
        "task": trio["task"].fingerprint,
        "domain": trio["domain"].fingerprint,
        "strategy": "random",
        "budget": "20%",
    }
    return facade.execute("select", config).id


@pytest.mark.parametrize("page", PAGES)
def test_an_empty_page_offers_the_samples(page: str) -> None:
    app = opened(page)
    assert not app.exception
    assert not app.error
    assert "Open the legal sample" in [button.label for button in app.button]


@pytest.mark.parametrize("page", PAGES)
def test_only_pages_that_exist_are_linked(page: str) -> None:
    links = [link.proto.page for link in opened(page).sidebar.get("page_link")]
    on_disk = [path.stem.split("_", 1)[1] for path in sorted((ROOT / "pages").glob("*.py"))]
    assert sorted(link for link in links if link) == sorted(on_disk)


def test_the_sample_opens_in_one_click_with_its_parts(home: Path) -> None:
    app = opened("app.py")
    app.button(key="home.sample.legal").click().run()
    assert not app.exception
    assert set(facade.roles()) == {"task", "domain", "train", "dev", "test"}
    app.switch_page("pages/3_Selection.py").run()
    picked = {box.label: box.value for box in app.selectbox}
    assert picked["T_C, your task's text"] == facade.roles()["task"]
    assert picked["D_C, to select from"] == facade.roles()["domain"]


def test_corpora_shows_numbers_types_and_samples(trio: dict[str, Corpus]) -> None:
    app = opened("pages/1_Corpora.py")
    assert not app.exception
    metrics = [(metric.label, metric.value) for metric in app.metric]
    assert ("Sentences", "60") in metrics
    assert ("Entities", "1") in metrics
    assert len(app.get("plotly_chart")) == 4  # three of lengths, one of types
    assert 'class="w-entity"' in texts(app)
    assert "not checked yet" in texts(app)


def test_a_check_shows_duplicates_and_leaks_in_numbers(trio: dict[str, Corpus], seal: Callable[..., Corpus]) -> None:
    line = "The tenant shall pay the rent on the first day of every month ."
    fresh = [
        "The court dismissed every one of the late appeals .",
        "Seven barrels of oil went missing at sea last week .",
    ]
    domain, test = seal([line, line, *fresh], "copies"), seal([fresh[0]], "held-out")
    facade.set_role("domain", domain.fingerprint)
    facade.set_role("test", test.fingerprint)
    for role in ("task", "domain"):
        facade.execute("audit", {"corpus": facade.roles()[role], "held_out": [test.fingerprint]})
    said = texts(opened("pages/1_Corpora.py"))
    assert '<td class="w-number">1</td><td>exact duplicates</td>' in said
    assert '<td class="w-number">1</td><td>leaks of dev or test</td>' in said
    assert "not checked yet" not in said


def test_a_role_is_given_and_taken(trio: dict[str, Corpus], seal: Callable[..., Corpus]) -> None:
    other = seal(["Another corpus says this ."], "other")
    app = opened("pages/1_Corpora.py")
    app.selectbox(key=f"corpora.pick.task.{trio['task'].fingerprint}").select(other.fingerprint).run()
    assert not app.exception
    assert facade.roles()["task"] == other.fingerprint
    assert facade.roles()["domain"] == trio["domain"].fingerprint


def test_a_corpus_is_removed(trio: dict[str, Corpus]) -> None:
    app = opened("pages/1_Corpora.py")
    app.selectbox(key="corpora.doomed").select(trio["train"].fingerprint).run()
    app.button(key="corpora.remove").click().run()
    assert not app.exception
    assert "my-labels" not in [corpus.name for corpus in facade.corpora()]


def test_an_upload_is_on_disk_at_once_and_looked_at(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("deeds.txt", b"The first deed is signed .\nThe second deed is not .\n").run()
    assert not app.exception
    assert [path.name for path in home.glob("uploads/*/*")] == ["deeds.txt"]
    assert app.text_input[0].value == "deeds"
    assert "The second deed is not ." in texts(app)


@pytest.mark.parametrize(
    ("tags", "asked"), [(("B-PER", "I-PER", "O", "B-LOC"), False), (("I-PER", "I-PER", "O", "I-LOC"), True)]
)
def test_a_scheme_is_proposed_and_asked_for_where_tags_leave_a_doubt(tags: tuple[str, ...], asked: bool) -> None:
    rows = "".join(f"w{i} {tag}\n" for i, tag in enumerate(tags)) + "\n"
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("tags.conll", (rows * 3).encode()).run()
    assert not app.exception
    box = next(box for box in app.selectbox if box.label == "Label scheme")
    assert (box.value is None) == asked
    if asked:
        next(b for b in app.button if b.label == "Import").click().run()
        assert "Choose the label scheme first" in texts(app)
        assert not facade.runs("add")


def test_a_path_outside_the_allowed_folders_becomes_a_card(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.segmented_control(key="corpora.source").set_value("A path on this machine").run()
    app.text_input[0].set_value("/etc/hostname").run()
    assert not app.exception
    assert len(app.error) == 1
    assert "allowed" in app.error[0].value
    assert "Traceback" not in texts(app)


@pytest.mark.parametrize("token", ["../../etc", "0123456789ab", "..", "%2e%2e"])
def test_an_upload_token_from_the_address_is_no_path(token: str, home: Path) -> None:
    with pytest.raises(facade.InputError, match="no longer here"):
        facade.spooled(token)


def test_a_selection_shows_what_it_chose(chosen: str) -> None:
    app = opened("pages/3_Selection.py")
    assert not app.exception
    assert not app.error
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Selected"] == "12"
    assert len(app.get("plotly_chart")) == 2
    assert {chart.proto.alt for chart in app.get("plotly_chart")} > {"Sentence lengths of S_C, D_C and T_C compared"}
    assert "python -m core select" in app.code[-1].value
    assert "--strategy random" in app.code[-1].value


def test_the_slider_chooses_anew_without_a_new_run(chosen: str) -> None:
    app = opened("pages/3_Selection.py")
    before = [run.id for run in facade.runs()]
    app.slider[0].set_value(50.0).run()
    assert not app.exception
    assert {metric.label: metric.value for metric in app.metric}["Selected"] == "30"
    assert [run.id for run in facade.runs()] == before


def test_a_second_selection_is_compared(chosen: str, trio: dict[str, Corpus]) -> None:
    config = {"task": trio["task"].fingerprint, "domain": trio["domain"].fingerprint, "budget": "20%"}
    other = facade.execute("select", {**config, "strategy": "length-matched-random"}).id
    found = facade.overlap(chosen, other, "20%", ())
    ours, theirs = ({int(row) for row in facade.choose(run, "20%").rows} for run in (chosen, other))
    assert found.shared == len(ours & theirs)
    assert {row["row"] for row in found.only_ours} <= ours - theirs
    app = opened("pages/3_Selection.py")
    app.selectbox(key="selection.other").select(chosen).run()
    assert not app.exception
    assert f"{found.shared:,} of 12" in texts(app)


def test_export_goes_to_the_folder_that_the_page_names(chosen: str, home: Path) -> None:
    app = opened("pages/3_Selection.py")
    app.segmented_control(key="selection.format").set_value("folder").run()
    app.button(key="selection.export").click().run()
    assert not app.exception
    written = next((home / "exports").iterdir())
    assert (written / "README.md").exists()
    assert str(written) in [code.value for code in app.code]


def test_options_of_every_strategy_make_a_form(trio: dict[str, Corpus]) -> None:
    app = opened("pages/3_Selection.py")
    for name, strategy in facade.STRATEGIES.items():
        app.selectbox(key="selection.strategy").select(name).run()
        assert not app.exception
        assert strategy.summary in texts(app)
        for option in strategy.Options.model_fields:
            assert app.get_by_key(f"selection.{name}.{option}")


def test_a_wrong_budget_becomes_a_card(trio: dict[str, Corpus]) -> None:
    app = opened("pages/3_Selection.py")
    app.text_input(key="selection.budget").set_value("lots")
    next(button for button in app.button if button.label == "Score and select").click().run()
    assert not app.exception
    assert "budget" in app.error[0].value
    assert not facade.runs("select")


def test_home_lists_runs_and_their_ends_in_words(chosen: str, trio: dict[str, Corpus]) -> None:
    app = opened("app.py")
    said = texts(app)
    assert plain("Select 20% of my-domain by random") in said
    assert "1 finished" in said


def test_a_dead_run_is_told_and_can_be_resumed(trio: dict[str, Corpus]) -> None:
    dead = left_behind(trio, ending=None)
    app = opened("pages/3_Selection.py")
    assert not app.exception
    assert "without a word" in texts(app)
    assert app.button(key="selection.run.resume")
    assert dead in [run.id for run in facade.runs("select")]


def test_a_failed_run_says_why_letter_by_letter(trio: dict[str, Corpus]) -> None:
    left_behind(trio, ending=("failed", {"error": NASTY}))
    app = opened("pages/3_Selection.py")
    assert plain(NASTY) in app.error[0].value
    assert "<img" not in texts(app)


def left_behind(trio: dict[str, Corpus], ending: tuple[str, dict[str, str]] | None) -> str:
    """A run that began and whose worker is gone."""
    from core.facade.home import store
    from core.recipes.base import register

    recipe = facade.RECIPES["select"]
    config = {"task": trio["task"].fingerprint, "domain": trio["domain"].fingerprint, "strategy": "random"}
    run = register(recipe, recipe.config.parse(config), store())
    with EventLog(run.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
        if ending:
            log.append(*ending)  # type: ignore[arg-type]
    return run.id


def test_a_bug_becomes_a_neutral_card_and_a_log(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(frame, "logger", frame.logging.getLogger("winnow.pages.test"))
    monkeypatch.setattr(facade, "corpora", lambda: 1 / 0)
    app = opened("pages/1_Corpora.py")
    assert not app.exception
    assert "Details are in the log" in app.error[0].value
    assert "ZeroDivisionError" not in texts(app)
    assert "ZeroDivisionError" in (home / "app.log").read_text(encoding="utf-8")


def test_text_of_a_corpus_is_shown_letter_by_letter(seal: Callable[..., Corpus], home: Path) -> None:
    entity = Entity(start=0, end=2, type="<b>PER</b>")
    labelled = Sentence(id=sentence_id(NASTY), tokens=tuple(NASTY.split()), text=NASTY, entities=(entity,))
    corpus = Library(home).seal([labelled], name="<script>alert(1)</script>", origin={"file": NASTY}, labelled=True)
    facade.set_role("train", corpus.fingerprint)
    said = texts(opened("pages/1_Corpora.py"))
    for raw in ("<img", "<script", "<b>PER"):
        assert raw not in said
    assert "&lt;img" in said
    assert "<b>" not in entity_html(labelled, ["<b>PER</b>"])


def test_plain_text_has_nothing_left_to_parse() -> None:
    told = plain(NASTY + " :smile: www.evil.example https://evil.example a -> b\n# heading")
    assert not set(told) & set("<>[]()*_`$:#!@~|\\\n") - set("#")
    assert all(told[i - 1] == "&" for i, sign in enumerate(told) if sign == "#")
    assert "www." not in told.replace("&#46;", ".")


def test_quantities_read_as_people_say_them() -> None:
    assert [size(n) for n in (10, 1_500, 2_000_000, 3e12)] == ["10 bytes", "2 KB", "2 MB", "3.0 TB"]
    assert [duration(s) for s in (0.2, 60, 600, 7200)] == ["1 s", "60 s", "10 min", "2.0 h"]


def test_the_app_never_loads_torch(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('app.py', default_timeout=60).run()\n"
        "app.button(key='home.sample.legal').click().run()\n"
        "for page in ('pages/1_Corpora.py', 'pages/3_Selection.py'):\n"
        "    app.switch_page(page).run()\n    assert not app.exception\n"
        "print(sorted({'torch', 'transformers', 'sklearn'} & set(sys.modules)))"
    )
    environment = {**os.environ, "WINNOW_HOME": str(tmp_path / "other")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize("file", [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))], ids=lambda path: path.name)
def test_pages_stay_small(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 250
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 25, f"{file.name}: {node.name} is longer than 25 lines"
    assert "unsafe_allow" not in source
