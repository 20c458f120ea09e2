"""Every page in its states, without a browser: empty, with a sample, with a run, with an error."""

import logging
import os
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.facade import corpora, deliver, insights, runs, selections, uploads
from core.facade.errors import ConfigError, InputError
from core.facade.home import home, store
from core.facade.shown import duration
from core.recipes.base import register
from core.runs.data import Data
from core.runs.events import EventLog, Kind
from core.text.sentence import Entity, Sentence, sentence_id
from pages.ui import frame
from pages.ui.widgets import entity_html, plain, size
from tests import documents
from tests.conftest import Seal
from tests.finished import at_work

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("home.py", "pages/1_Corpora.py", "pages/3_Selection.py")
NASTY = "<img src=x onerror=alert(1)> [x](http://evil.example) :red[loud] $x^2$ `code` **bold** a@b.example"


def opened(page: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300)
    if page == "home.py":
        return app.run()
    return app.run().switch_page(page).run()


def opened_on(page: str, run_id: str) -> AppTest:
    """A page whose address names a run."""
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300).run().switch_page(page)
    app.query_params["run"] = run_id
    return app.run()


def commands_on(app: AppTest) -> list[str]:
    """Commands of a page, each opened first, and all else that stands there to be copied."""
    for more in app.expander:
        if more.label == "The same on the command line":
            app.session_state[more.proto.id.split("-", 2)[-1]] = True
    return [code.value for code in app.run().code]


def texts(app: AppTest) -> str:
    """All that a page says, in one string."""
    kinds = ("title", "subheader", "caption", "markdown", "info", "warning", "error", "text")
    shown = [element.value for kind in kinds for element in getattr(app, kind)]
    return " ".join([*shown, *(element.proto.body for element in app.get("html"))])


@pytest.fixture
def trio(seal: Seal) -> dict[str, Corpus]:
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
        corpora.set_role(role, corpus.fingerprint)
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
    return runs.execute("select", config).id


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
    app = opened("home.py")
    app.button(key="home.sample.legal").click().run()
    assert not app.exception
    assert set(corpora.roles()) == {"task", "domain", "train", "dev", "test"}
    app.switch_page("pages/3_Selection.py").run()
    picked = {box.label: box.value for box in app.selectbox}
    assert picked["Task text"] == corpora.roles()["task"]
    assert picked["Big corpus"] == corpora.roles()["domain"]


def test_corpora_shows_numbers_types_and_samples(trio: dict[str, Corpus]) -> None:
    app = opened("pages/1_Corpora.py")
    assert not app.exception
    metrics = [(metric.label, metric.value) for metric in app.metric]
    assert ("Sentences", "60") in metrics
    assert ("Entities", "1") in metrics
    assert len(app.get("vega_lite_chart")) == 4  # three of lengths, one of types
    assert 'class="w-entity"' in texts(app)
    assert "not looked for yet" in texts(app)


def test_a_check_shows_duplicates_and_leaks_in_numbers(trio: dict[str, Corpus], seal: Seal) -> None:
    line = "The tenant shall pay the rent on the first day of every month ."
    fresh = [
        "The court dismissed every one of the late appeals .",
        "Seven barrels of oil went missing at sea last week .",
    ]
    domain, test = seal([line, line, *fresh], "copies"), seal([fresh[0]], "held-out")
    corpora.set_role("domain", domain.fingerprint)
    corpora.set_role("test", test.fingerprint)
    for role in ("task", "domain"):
        runs.execute("audit", {"corpus": corpora.roles()[role], "held_out": [test.fingerprint]})
    said = texts(opened("pages/1_Corpora.py"))
    assert '<td class="w-number">1</td><td>exact duplicates</td>' in said
    assert '<td class="w-number">1</td><td>also among the labels to decide by or to test on (leaks)</td>' in said
    assert "not looked for yet" not in said


def test_a_role_is_given_and_taken(trio: dict[str, Corpus], seal: Seal) -> None:
    other = seal(["Another corpus says this ."], "other")
    app = opened("pages/1_Corpora.py")
    app.selectbox(key=f"corpora.pick.task.{trio['task'].fingerprint}").select(other.fingerprint).run()
    assert not app.exception
    assert corpora.roles()["task"] == other.fingerprint
    assert corpora.roles()["domain"] == trio["domain"].fingerprint


def test_a_corpus_is_removed(trio: dict[str, Corpus]) -> None:
    app = opened("pages/1_Corpora.py")
    app.selectbox(key="corpora.doomed").select(trio["train"].fingerprint).run()
    app.button(key="corpora.remove").click().run()
    assert not app.exception
    assert "my-labels" not in [corpus.name for corpus in corpora.listed()]


def test_a_corpus_that_a_run_at_work_needs_is_not_removed(trio: dict[str, Corpus]) -> None:
    recipe = runs.RECIPES["finetune"]
    marks = {"train": trio["train"].fingerprint, "dev": trio["train"].fingerprint}
    with at_work(register(recipe, recipe.config.parse({"init": "minilm", **marks}), store())) as run:
        app = opened("pages/1_Corpora.py")
        app.selectbox(key="corpora.doomed").select(trio["train"].fingerprint).run()
        assert not app.exception
        assert "corpora.remove" not in [button.key for button in app.button]
        assert "a run at work may need it" in texts(app)
        [link] = [found.proto for found in app.main.get("page_link")]
        assert (link.label, link.page, link.query_string) == (
            plain("Fine-tune minilm on my-labels"),
            "Training",
            f"run={run.id}",
        )


def test_what_winnow_made_stands_behind_the_users_own_and_is_marked(trio: dict[str, Corpus], chosen: str) -> None:
    long = Library(home()).subset(
        trio["domain"],
        np.arange(3),
        name=f"<b>{'x' * 80}</b> without held-out sentences",
        origin={"from": trio["domain"].fingerprint},
    )
    app = opened("pages/1_Corpora.py")
    options = app.selectbox(key="corpora.doomed").options
    own, made = options[:3], options[3:]
    assert {option.split()[0] for option in own} == {"my-task", "my-domain", "my-labels"}
    assert len(made) == 2
    assert all(option.endswith("sentences, made by Winnow)") for option in made)
    cut = next(option for option in made if option.startswith("<b>"))
    assert "…" in cut
    assert cut.split(" (")[0].endswith("without held-out sentences")
    assert len(cut.split(" (")[0]) <= 60
    said = texts(app)
    assert f'<td title="{escape(long.name)}">' in said
    assert "made by Winnow of my-domain" in said


def test_what_used_a_corpus_is_said_before_it_is_removed(trio: dict[str, Corpus], chosen: str) -> None:
    app = opened("pages/1_Corpora.py")
    app.selectbox(key="corpora.doomed").select(trio["domain"].fingerprint).run()
    assert "Used by 1 selection: it stays readable, but cannot be run again." in texts(app)
    assert "Corpora made from it stay: 1." in texts(app)
    app.button(key="corpora.remove").click().run()
    assert not app.exception
    assert "my-domain" not in [corpus.name for corpus in corpora.listed()]


def test_an_upload_is_on_disk_at_once_and_looked_at(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("deeds.txt", b"The first deed is signed .\nThe second deed is not .\n").run()
    assert not app.exception
    assert [path.name for path in home.glob("uploads/*/*")] == ["deeds.txt"]
    assert app.text_input[0].value == "deeds"
    assert "The second deed is not ." in texts(app)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("memo.docx", b"%PDF-1.7", "is not what the end of its name says but a PDF; name it by what it is"),
        ("fees.ods", b"PK\x03\x04 sheet", "not a text file but a spreadsheet; save it as .xlsx or .csv"),
        ("old.doc", b"\xd0\xcf\x11\xe0", "not a text file but an old Office file; save it as .docx or .xlsx"),
        ("memo.txt", b"%PDF-1.7", "not a text file but a PDF; end its name in .pdf"),
    ],
)
def test_a_file_that_is_no_text_is_refused_in_words_and_hides_nothing(
    trio: dict[str, Corpus], home: Path, name: str, content: bytes, words: str
) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload(name, content).run()
    assert not app.exception
    assert [plain(f"{name}: {words}") in error.value for error in app.error] == [True]
    assert not list(home.glob("uploads/*"))
    assert "All corpora" in texts(app)
    app.file_uploader[0].upload("deeds.txt", b"The first deed is signed .\n").run()  # the next one is taken
    assert not app.error
    assert app.text_input[0].value == "deeds"


def test_several_files_at_once_may_be_one_corpus(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("a.odt", documents.odt(["The first deed is signed."]))
    app.file_uploader[0].upload("b.txt", b"The second deed is not .\n").run()
    assert not app.exception
    assert sorted(path.name for path in home.glob("uploads/*/*")) == ["a.odt", "b.txt"]
    app.button(key="corpora.one").click().run()
    assert app.text_input[0].value == "a and 1 more"
    said = texts(app)
    assert "2 files" in said
    assert "The first deed is signed." in said
    assert "Documents are cut into sentences" in said


def test_the_server_lets_go_of_an_upload(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = []
    add_file = MemoryUploadedFileManager.add_file

    def watched(self: MemoryUploadedFileManager, session_id: str, file: Any) -> None:
        stores.append(self.file_storage)
        add_file(self, session_id, file)

    monkeypatch.setattr(MemoryUploadedFileManager, "add_file", watched)
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("deeds.txt", b"The first deed is signed .\n").run()
    assert [list(store.values()) for store in stores] == [[{}]]


def test_a_wrong_encoding_names_the_field_that_mends_it(trio: dict[str, Corpus]) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("vertrag.csv", "Nr;Text\n1;Der Käufer zahlt.\n".encode("latin-1")).run()
    assert "byte 0xe4 is not UTF" in app.error[0].value
    assert "Choose its encoding in **Encoding**, above" in app.error[0].value
    assert "All corpora" in texts(app)
    app.selectbox(key="corpora.encoding").select("cp1252").run()
    assert not app.error
    assert "Der Käufer zahlt." in texts(app)


def test_first_rows_that_would_not_be_taken_say_their_line(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("latin.txt", "A line.\nUn café.\n".encode("latin-1")).run()
    assert plain("latin.txt line 2: byte 0xe9 is not UTF-8.") in app.warning[0].value
    assert "Choose its encoding in **Encoding**, above" in app.warning[0].value


def test_mixed_tags_say_their_line(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("mixed.conll", b"Ada B-PER\nLovelace L-PER\n\nBob E-PER\nleft O\n\n").run()
    assert not app.exception
    assert plain("Line 4: BIOES tags (E-, S-) and BILOU tags (L-, U-) are mixed; mend it") in app.warning[0].value
    assert "First rows" not in texts(app)


@pytest.mark.parametrize(
    ("tags", "asked"), [(("B-PER", "I-PER", "O", "B-LOC"), False), (("B-PER", "O", "I-LOC", "O"), True)]
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
        assert not runs.listed("add")


def test_a_path_outside_the_allowed_folders_becomes_a_card(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.segmented_control(key="corpora.source").set_value("A path on this machine").run()
    app.text_input[0].set_value("/etc/hostname")
    app.button(key="corpora.look").click().run()
    assert not app.exception
    assert len(app.error) == 1
    assert "allowed" in app.error[0].value
    assert "Traceback" not in texts(app)


def test_a_path_is_chosen_step_by_step_in_the_allowed_folders(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "texts"
    (root / "deeds").mkdir(parents=True)
    (root / "deeds" / "old.txt").write_text("The first deed is signed .\n", encoding="utf-8")
    (root / ".secret.txt").write_text("no", encoding="utf-8")
    (root / "away").symlink_to("/etc")
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(root))
    app = opened("pages/1_Corpora.py")
    app.segmented_control(key="corpora.source").set_value("A path on this machine").run()
    assert plain(str(root)) in texts(app)
    assert "WINNOW_DATA_DIRS" in texts(app)

    def step(entry: str) -> list[str]:
        box = next(box for box in app.selectbox if "choose" in box.label)
        assert entry in box.options
        box.select(entry).run()
        assert not app.exception
        return list(next(box for box in app.selectbox if "choose" in box.label).options)

    assert step(str(root)) == ["deeds/"]
    assert step("deeds/") == ["..", "old.txt"]
    step("old.txt")
    assert "The first deed is signed ." in texts(app)
    assert not [box for box in app.selectbox if box.label.startswith("Part")]


def test_the_part_of_a_folder_is_asked_for_a_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(tmp_path))
    for part in ("train", "dev"):
        (tmp_path / f"{part}.conll").write_text("Ada B-PER\nsues O\n\n", encoding="utf-8")
    app = opened("pages/1_Corpora.py")
    app.segmented_control(key="corpora.source").set_value("A path on this machine").run()
    app.text_input[0].set_value(str(tmp_path))
    app.button(key="corpora.look").click().run()
    app.button(key="corpora.one").click().run()  # not what is proposed file by file
    assert plain("the folder holds several parts (dev, train)") in app.error[0].value
    next(box for box in app.selectbox if box.label.startswith("Part")).select("dev").run()
    assert not app.error
    assert "Ada sues" in texts(app)


def test_an_import_says_where_letters_are_counted(home: Path, tmp_path: Path) -> None:
    texts_by_name = {"zh": "合同自双方签字之日起生效。\nPlain words here .\n", "en": "Plain words here .\n"}
    for name, text in texts_by_name.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        run = runs.execute("add", {"path": str(tmp_path / f"{name}.txt")})
        assert run.result()["unspaced"] == (name == "zh")
        app = opened("pages/1_Corpora.py")
        app.query_params["run"] = run.id
        app.run()
        assert not app.exception
        assert ("1 sentence is in a script that writes no blanks" in texts(app)) == (name == "zh")


def test_an_import_of_what_is_here_says_under_which_name_and_offers_the_other(home: Path, tmp_path: Path) -> None:
    for name, text in (("first", "A clause .\n"), ("second", "A clause .\n"), ("other", "Another .\n")):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    one = runs.execute("add", {"path": str(tmp_path / "first.txt")}).result()["corpus"]
    again = runs.execute("add", {"path": str(tmp_path / "second.txt")})
    app = opened_on("pages/1_Corpora.py", again.id)
    assert not app.exception
    assert [info.value for info in app.info] == ["This text is here already as **first**; opened that one."]
    assert corpora.find(one).name == "first"
    app.button(key="corpora.rename").click().run()
    assert [info.value for info in app.info] == ["This text is here already as **second**; opened that one."]
    assert corpora.find(one).name == "second"
    assert "corpora.rename" not in [button.key for button in app.button]
    taken = runs.execute("add", {"path": str(tmp_path / "other.txt"), "name": "first"})
    app = opened_on("pages/1_Corpora.py", taken.id)
    assert "Another corpus is called **first**, so this one is called **first &#40;2&#41;**." in app.info[0].value


def test_a_press_is_not_lost_to_a_rerun_that_overtakes_it() -> None:
    def script() -> None:
        import streamlit as st

        from pages.ui.presses import forget_presses, pressed

        if st.session_state.pop("overtake", False):
            st.rerun()  # as a field's does, before the button is drawn
        if st.session_state.get("wrong"):
            st.error("A field is wrong.")
        elif pressed("Go", "go"):
            st.session_state["started"] = st.session_state.get("started", 0) + 1
        forget_presses("")

    app = AppTest.from_function(script, default_timeout=300).run()
    app.session_state["overtake"] = True
    app.button(key="go").click().run()
    assert app.session_state["started"] == 1
    app.run()
    assert app.session_state["started"] == 1
    app.session_state["wrong"] = True
    app.button(key="go").click().run()
    app.session_state["wrong"] = False
    app.run()
    assert app.session_state["started"] == 1  # what an error stopped does not begin by itself


def test_a_forms_press_is_not_lost_either_nor_to_the_end_of_a_fragment_before_it() -> None:
    """A fragment at its own end forgets no press but its own."""

    def script() -> None:
        import streamlit as st

        from pages.ui.frame import guard
        from pages.ui.presses import pressed, submitted

        @st.fragment
        def first() -> None:
            with guard(buttons="first."):
                pressed("First", "first.go")

        first()
        if st.session_state.pop("overtake", False):
            st.rerun()
        with st.form("asked"):
            typed = st.text_input("Name", key="name")
            sent = submitted("Send", "second.send")
        if sent:
            st.session_state["sent"] = [*st.session_state.get("sent", []), typed]

    app = AppTest.from_function(script, default_timeout=300).run()
    app.session_state["overtake"] = True
    app.text_input(key="name").input("Mary")
    app.button(key="second.send").click().run()
    assert app.session_state["sent"] == ["Mary"]
    app.run()
    assert app.session_state["sent"] == ["Mary"]


def test_a_name_has_a_limit(home: Path) -> None:
    app = opened("pages/1_Corpora.py")
    app.file_uploader[0].upload("contract " * 20 + ".txt", b"The first deed is signed .\n").run()
    assert not app.exception
    assert app.text_input[0].value == ("contract " * 9)[:79].rstrip() + "…"
    with pytest.raises(ConfigError, match=r"^name: .* 80 characters"):
        runs.start("add", {"path": "deeds.txt", "name": "x" * 81})


@pytest.mark.parametrize("token", ["../../etc", "0123456789ab", "..", "%2e%2e"])
def test_an_upload_token_from_the_address_is_no_path(token: str, home: Path) -> None:
    with pytest.raises(InputError, match="no longer here"):
        uploads.spooled(token)


def test_a_selection_shows_what_it_chose(chosen: str) -> None:
    app = opened("pages/3_Selection.py")
    assert not app.exception
    assert not app.error
    metrics = {metric.label: metric.value for metric in app.metric}
    assert metrics["Selected"] == "12"
    assert len(app.get("vega_lite_chart")) == 2
    assert {chart.proto.alt for chart in app.get("vega_lite_chart")} > {
        "Sentence lengths of the choice, the big corpus and the task text compared"
    }
    [*_, command] = commands_on(app)
    assert "python -m core select" in command
    assert "--strategy random" in command


def test_the_slider_chooses_anew_without_a_new_run(chosen: str) -> None:
    app = opened("pages/3_Selection.py")
    before = [run.id for run in runs.listed()]
    app.slider[0].set_value(50.0).run()
    assert not app.exception
    assert {metric.label: metric.value for metric in app.metric}["Selected"] == "30"
    assert [run.id for run in runs.listed()] == before


def test_a_second_selection_is_compared(chosen: str, trio: dict[str, Corpus]) -> None:
    config = {"task": trio["task"].fingerprint, "domain": trio["domain"].fingerprint, "budget": "20%"}
    other = runs.execute("select", {**config, "strategy": "length-matched-random"}).id
    selections.edit(other, "add", selections.chosen(chosen).rows[:2])
    found = insights.overlap(other, chosen)
    ours, theirs = ({int(row) for row in selections.chosen(run).rows} for run in (other, chosen))
    assert (found.both, found.only_a, found.only_b) == tuple(map(len, (ours & theirs, ours - theirs, theirs - ours)))
    assert {row["row"] for row in found.only_in_a} <= ours - theirs
    assert {row["row"] for row in found.only_in_b} <= theirs - ours
    app = opened("pages/3_Selection.py")
    app.selectbox(key="selection.other").select(chosen).run()
    assert not app.exception
    assert f"{found.both:,} of {len(ours):,}" in texts(app)


def test_export_goes_to_the_folder_that_the_page_names(chosen: str, home: Path) -> None:
    app = opened("pages/3_Selection.py")
    app.segmented_control(key="selection.format").set_value("folder").run()
    app.button(key="selection.export").click().run()
    assert not app.exception
    written = next((home / "exports").iterdir())
    assert (written / "README.md").exists()
    assert str(written) in [code.value for code in app.code]


@pytest.mark.parametrize("share", [20.2, 33.3])
def test_a_folder_is_exported_for_a_budget_with_a_decimal(chosen: str, home: Path, share: float) -> None:
    app = opened("pages/3_Selection.py")
    app.slider[0].set_value(share).run()
    app.segmented_control(key="selection.format").set_value("folder").run()
    app.button(key="selection.export").click().run()
    assert not app.exception
    assert not app.error
    written = home / "exports" / f"choice-{chosen[-4:]}-{share}pct"
    assert (written / "selected.parquet").exists()
    assert len(app.get("vega_lite_chart")) == 2


def test_an_export_that_fails_says_so_at_its_button_and_leaves_the_page_whole(chosen: str) -> None:
    (deliver.exports() / f"choice-{chosen[-4:]}-20pct").write_text("a file where the folder should be")
    app = opened("pages/3_Selection.py")
    app.segmented_control(key="selection.format").set_value("folder").run()
    app.button(key="selection.export").click().run()
    assert not app.exception
    assert "cannot be written" in app.error[0].value
    assert "Written to:" not in texts(app)
    assert len(app.get("vega_lite_chart")) == 2
    assert "python -m core select" in commands_on(app)[-1]


@pytest.mark.usefixtures("expert")
def test_options_of_every_strategy_make_a_form(trio: dict[str, Corpus]) -> None:
    app = opened("pages/3_Selection.py")
    for name, strategy in selections.STRATEGIES.items():
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
    assert not runs.listed("select")


def test_home_lists_runs_and_their_ends_in_words(chosen: str, trio: dict[str, Corpus]) -> None:
    app = opened("home.py")
    said = texts(app)
    assert plain("Select 20% of my-domain by random") in said
    assert plain("12 of 60 sentences (20.0%), by random.") in said


def test_a_dead_run_is_told_and_can_be_resumed(trio: dict[str, Corpus]) -> None:
    dead = left_behind(trio, ending=None)
    app = opened("pages/3_Selection.py")
    assert not app.exception
    assert "without a word" in texts(app)
    assert app.button(key="selection.run.resume")
    assert dead in [run.id for run in runs.listed("select")]


def test_a_failed_run_says_why_letter_by_letter(trio: dict[str, Corpus]) -> None:
    left_behind(trio, ending=("failed", {"error": NASTY}))
    app = opened("pages/3_Selection.py")
    assert plain(NASTY) in app.error[0].value
    assert "<img" not in texts(app)


def left_behind(trio: dict[str, Corpus], ending: tuple[Kind, Data] | None) -> str:
    """A run that began and whose worker is gone."""
    recipe = runs.RECIPES["select"]
    config = {"task": trio["task"].fingerprint, "domain": trio["domain"].fingerprint, "strategy": "random"}
    run = register(recipe, recipe.config.parse(config), store())
    with EventLog(run.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
        if ending:
            log.append(*ending)
    return run.id


def test_a_bug_becomes_a_neutral_card_and_a_log(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(frame, "logger", logging.getLogger("winnow.pages.test"))
    monkeypatch.setattr(corpora, "listed", lambda: 1 / 0)
    app = opened("pages/1_Corpora.py")
    assert not app.exception
    assert "Details are in the log" in app.error[0].value
    assert "ZeroDivisionError" not in texts(app)
    assert "ZeroDivisionError" in (home / "app.log").read_text(encoding="utf-8")


def test_text_of_a_corpus_is_shown_letter_by_letter(seal: Seal, home: Path) -> None:
    entity = Entity(start=0, end=2, type="<b>PER</b>")
    labelled = Sentence(id=sentence_id(NASTY), tokens=tuple(NASTY.split()), text=NASTY, entities=(entity,))
    corpus = Library(home).seal([labelled], name="<script>alert(1)</script>", origin={"file": NASTY}, labelled=True)
    corpora.set_role("train", corpus.fingerprint)
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


def test_a_strategy_and_each_corpus_say_what_they_are(seal: Seal) -> None:
    seal(["Only a sentence ."], "lonely")
    app = opened("pages/3_Selection.py")
    choices = app.selectbox(key="selection.strategy").options
    assert len(choices) == len(selections.STRATEGIES)
    assert all("(" in choice and "papers" not in choice and "ours" not in choice.split() for choice in choices)
    titles = [term.title for term in corpora.ROLES.values()]
    told = {field.value: field.help for field in app.markdown if field.value.startswith(":small[")}
    assert [name.removeprefix(":small[").split(" :gray[")[0] for name in told] == titles
    assert all(len(words.split()) > 5 for words in told.values())


def test_no_field_says_its_unit_twice() -> None:
    def fields() -> None:
        from core.facade import runs
        from pages.ui.widgets import config_form

        config_form(runs.RECIPES["vectors"].config, ("cap_tokens",), "a")
        config_form(runs.RECIPES["finetune"].config, ("dev_sentences", "max_length"), "b")

    labels = [field.label for field in AppTest.from_function(fields, default_timeout=300).run().number_input]
    assert labels == ["Cap tokens", "Dev sentences", "Max length (pieces)"]


def test_quantities_read_as_people_say_them() -> None:
    assert [size(n) for n in (10, 1_500, 2_000_000, 3e12)] == ["10 bytes", "2 KB", "2 MB", "3.0 TB"]
    assert [duration(s) for s in (0.2, 60, 600, 7200)] == ["1 s", "60 s", "10 min", "2.0 h"]


def test_the_app_never_loads_torch(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('home.py', default_timeout=300).run()\n"
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
