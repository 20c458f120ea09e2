"""The pages Corpora and Selection: import, roles, checks, what is selected and how it leaves; and what tests share."""

import logging
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.testing.v1 import AppTest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, InputError
from core.experiment import deliver
from core.importing import uploads
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.project_list import shared_home
from core.projects import runs
from core.projects.home import store
from core.runs.events import EventLog
from core.runs.lock import Worker
from core.selection import STRATEGIES, insights
from core.selection import view as selections
from core.text.sentence import Entity, Sentence, sentence_id
from pages.ui import frame
from pages.ui.widgets import entity_html, plain
from tests.conftest import Seal
from tests.finished import as_running
from tests.pages.drawing import (
    CORPORA,
    NASTY,
    SELECTION,
    add,
    audit,
    codes,
    dropped,
    keys,
    opened,
    opened_on,
    press,
    select,
    texts,
)


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
    return select()


def test_corpora_shows_numbers_types_duplicates_and_leaks_and_no_text_as_markup(
    trio: dict[str, Corpus], seal: Seal, home: Path
) -> None:
    line = "The tenant shall pay the rent on the first day of every month ."
    fresh = ["The court dismissed every one of the late appeals .", "Seven barrels of oil went missing at sea ."]
    entity = Entity(start=0, end=2, type="<b>PER</b>")
    labelled = Sentence(id=sentence_id(NASTY), tokens=tuple(NASTY.split()), text=NASTY, entities=(entity,))
    hostile = Library(home).seal([labelled], name="<script>alert(1)</script>", origin={"file": NASTY}, labelled=True)
    for role, corpus in (
        ("train", hostile),
        ("domain", seal([line, line, *fresh], "copies")),
        ("test", seal([fresh[0]], "held-out")),
    ):
        corpora.set_role(role, corpus.fingerprint)
    roles = corpora.roles()
    for role in ("task", "domain"):
        audit(roles[role], roles["test"])
    app = opened(CORPORA)
    metrics = [(metric.label, metric.value) for metric in app.metric]
    assert ("Sentences", "4") in metrics
    assert ("Entities", "1") in metrics
    assert len(app.get("vega_lite_chart")) == 4  # three of lengths, one of types
    said = texts(app)
    assert '<td class="w-number">1</td><td>exact duplicates</td>' in said
    assert re.search(r'<td class="w-number">1</td><td>[^<]*leak', said)
    assert "&lt;img" in said
    for raw in ("<img", "<script", "<b>PER"):
        assert raw not in said
    assert "<b>" not in entity_html(labelled, ["<b>PER</b>"])


def test_a_role_is_given_and_a_corpus_removed_after_saying_what_used_it(
    chosen: str, trio: dict[str, Corpus], seal: Seal
) -> None:
    other = seal(["Another corpus says this ."], "other")
    app = opened(CORPORA)
    app.selectbox(key=f"corpora.pick.task.{trio['task'].fingerprint}").select(other.fingerprint)
    app.selectbox(key="corpora.doomed").select(trio["domain"].fingerprint).run()
    assert corpora.roles()["task"] == other.fingerprint
    assert corpora.roles()["domain"] == trio["domain"].fingerprint
    assert "Used by 1 selection" in texts(app)
    assert "Corpora made from it stay: 1." in texts(app)
    press(app, "corpora.remove")
    assert "my-domain" not in [corpus.name for corpus in corpora.listed()]


def test_a_corpus_that_a_running_run_needs_is_not_removed(trio: dict[str, Corpus]) -> None:
    recipe = KINDS["finetune"]
    marks = {"train": trio["train"].fingerprint, "dev": trio["train"].fingerprint}
    with as_running(register(recipe, recipe.config.parse({"init": "minilm", **marks}), store())) as run:
        run.lock.path.write_bytes(Worker(pid=4711, created=0.0, run=run.id, account="anna", host="ward3").to_json())
        app = opened(CORPORA, {"corpora.doomed": trio["train"].fingerprint})
        assert "corpora.remove" not in keys(app)
        [link] = [found.proto for found in app.main.get("page_link")]
        assert (link.page, link.query_string) == ("Training", f"run={run.id}")
        assert "anna&#44; process 4711 on ward3" in texts(app)  # another account's run


def test_corpora_lists_own_corpora_first_and_the_newest_of_those_that_winnow_made(
    home: Path, trio: dict[str, Corpus]
) -> None:
    library, source = Library(home), trio["domain"]
    long = f"<b>{'x' * 80}</b> without held-out sentences"
    for number in range(21):
        name = long if number == 20 else f"choice-{number:02}"
        library.subset(source, np.array([number]), name=name, origin={"from": source.fingerprint})
    app = opened(CORPORA)
    options = app.selectbox(key="corpora.doomed").options
    assert {option.split()[0] for option in options[:3]} == {"my-task", "my-domain", "my-labels"}
    [cut] = [option.split(" (")[0] for option in options if option.startswith("<b>")]
    assert "…" in cut
    assert cut.endswith("without held-out sentences")
    assert len(cut) <= 60

    def listed() -> int:
        [table] = [html.proto.body for html in app.get("html") if "<caption>All corpora" in html.proto.body]
        assert f'<td title="{escape(long)}">' in table
        return str(table).count("<td>choice-")

    assert listed() == 19
    app.toggle(key="corpora.all").set_value(True).run()
    assert listed() == 20


def test_an_upload_is_on_disk_at_once_and_no_longer_in_memory(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = []
    add_file = MemoryUploadedFileManager.add_file

    def watched(self: MemoryUploadedFileManager, session_id: str, file: Any) -> None:
        stores.append(self.file_storage)
        add_file(self, session_id, file)

    monkeypatch.setattr(MemoryUploadedFileManager, "add_file", watched)
    app = opened(CORPORA)
    app.file_uploader[0].upload("contract " * 20 + ".txt", b"The first deed is signed .\nThe second is not .\n").run()
    assert [path.suffix for path in home.glob("uploads/*/*")] == [".txt"]
    assert [list(store.values()) for store in stores] == [[{}]]
    assert app.text_input[0].value == ("contract " * 9)[:79].rstrip() + "…"
    assert "The second is not ." in texts(app)
    with pytest.raises(ConfigError, match=r"^name: .* 80 characters"):
        runs.start("add", {"path": "deeds.txt", "name": "x" * 81})


def test_a_file_that_is_no_text_is_refused_and_the_next_one_is_taken(trio: dict[str, Corpus], home: Path) -> None:
    app = opened(CORPORA)
    app.file_uploader[0].upload("memo.docx", b"%PDF-1.7").run()
    assert ["memo&#46;docx" in error.value for error in app.error] == [True]
    assert not list(home.glob("uploads/*"))
    assert "All corpora" in texts(app)
    app.file_uploader[0].upload("vertrag.csv", "Nr;Text\n1;Der Käufer zahlt.\n".encode("latin-1")).run()
    assert "byte 0xe4 is not UTF" in app.error[0].value
    app.selectbox(key="corpora.encoding").select("cp1252").run()
    assert not app.error
    assert "Der Käufer zahlt." in texts(app)


def test_a_label_scheme_is_asked_for_if_the_tags_leave_a_doubt(home: Path) -> None:
    app = dropped(**{"mixed.conll": b"Ada B-PER\nLovelace L-PER\n\nBob E-PER\nleft O\n\n"})
    assert plain("Line 4: BIOES tags") in app.warning[0].value
    rows = "w0 B-PER\nw1 O\nw2 I-LOC\nw3 O\n\n"
    app = dropped(**{"tags.conll": (rows * 3).encode()})
    assert next(box for box in app.selectbox if box.label == "Label scheme").value is None
    press(app, "corpora.submit")
    assert len(app.error) == 1
    assert not runs.listed("add")
    app = dropped(**{"none.conll": b"Ada O\nsleeps O\n\nBob O\nleft O\n\n"})
    assert next(box for box in app.selectbox if box.label == "Label scheme").options[0].startswith("no entities")


def test_a_path_is_typed_or_chosen_step_by_step_only_below_the_allowed_folders(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "texts"
    (root / "deeds").mkdir(parents=True)
    (root / "deeds" / "old.txt").write_text("The first deed is signed .\n", encoding="utf-8")
    (root / ".secret.txt").write_text("no", encoding="utf-8")
    (root / "away").symlink_to("/etc")
    for part in ("train", "dev"):
        (root / f"{part}.conll").write_text("Ada B-PER\nsues O\n\n", encoding="utf-8")
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(root))
    app = opened(CORPORA, {"corpora.source": "A path on this machine"})
    assert plain(str(root)) in texts(app)

    def steps(*entries: str) -> list[str]:
        for entry in entries:
            next(box for box in app.selectbox if "choose" in box.label).select(entry).run()
        return list(next(box for box in app.selectbox if "choose" in box.label).options)

    assert steps(str(root)) == ["deeds/", "dev.conll", "train.conll"]
    assert steps("deeds/") == ["..", "old.txt"]
    steps("old.txt")
    assert "The first deed is signed ." in texts(app)

    def typed(path: str) -> None:
        app.text_input[0].set_value(path)
        press(app, "corpora.look")

    typed("/etc/hostname")
    assert ["allowed" in error.value for error in app.error] == [True]
    typed(str(root))
    press(app, "corpora.one")  # not what is proposed file by file
    assert plain("several parts (dev, train)") in app.error[0].value
    app.selectbox(key="corpora.part").select("dev").run()
    assert not app.error
    assert "Ada sues" in texts(app)


def test_a_text_imported_twice_is_one_corpus_which_may_take_the_second_name(home: Path, tmp_path: Path) -> None:
    added = {}
    for name, text in (
        ("first", "合同自双方签字之日起生效。\n"),
        ("second", "合同自双方签字之日起生效。\n"),
        ("other", "A .\n"),
    ):
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
        added[name] = add(tmp_path / f"{name}.txt", name=name)
    assert [run.result()["unspaced"] for run in added.values()] == [1, 1, 0]
    app = opened_on(CORPORA, added["second"].id)
    assert "**first**" in app.info[0].value
    assert any("writes no blanks" in caption.value for caption in app.caption)
    press(app, "corpora.rename")
    assert corpora.find(added["first"].result()["corpus"]).name == "second"
    assert "corpora.rename" not in keys(app)


def test_a_press_is_not_lost_to_a_rerun_that_overtakes_it() -> None:
    def script() -> None:
        import streamlit as st

        from pages.ui.widgets import forget_presses, pressed

        if st.session_state.pop("overtake", False):
            st.rerun()  # as a field's does, before the button is drawn
        if st.session_state.get("wrong"):
            st.error("A field is wrong.")
        elif pressed("Go", "go"):
            st.session_state["started"] = st.session_state.get("started", 0) + 1
        forget_presses("")

    app = AppTest.from_function(script, default_timeout=300).run()
    app.session_state["overtake"] = True
    press(app, "go")
    app.run()
    assert app.session_state["started"] == 1
    app.session_state["wrong"] = True
    press(app, "go")
    app.session_state["wrong"] = False
    app.run()
    assert app.session_state["started"] == 1  # what an error stopped does not begin by itself


def test_a_forms_press_is_not_lost_to_a_rerun_or_to_the_end_of_a_fragment_before_it() -> None:
    def script() -> None:
        import streamlit as st

        from pages.ui.frame import guard
        from pages.ui.widgets import pressed, submitted

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
    press(app, "second.send")
    app.run()
    assert app.session_state["sent"] == ["Mary"]


@pytest.mark.parametrize("token", ["../../etc", "0123456789ab", "..", "%2e%2e"])
def test_an_upload_token_from_the_address_is_no_path(token: str, home: Path) -> None:
    with pytest.raises(InputError, match="no longer exists"):
        uploads.spooled(token)


def test_a_selection_is_shown_moved_compared_and_exported_without_a_new_run(
    chosen: str, trio: dict[str, Corpus], home: Path
) -> None:
    other = select("length-matched-random")
    selections.edit(other, "add", selections.chosen(chosen).rows[:2])
    found = insights.overlap(chosen, other)
    ours, theirs = ({int(row) for row in selections.chosen(run).rows} for run in (chosen, other))
    assert (found.both, found.only_a, found.only_b) == tuple(map(len, (ours & theirs, ours - theirs, theirs - ours)))
    assert {row["row"] for row in found.only_in_a} <= ours - theirs
    assert {row["row"] for row in found.only_in_b} <= theirs - ours
    before = [run.id for run in runs.listed()]
    app = opened_on(SELECTION, chosen, {"selection.command": True})
    assert app.metric[0].value == "12"
    assert "--strategy random" in codes(app)[-1]
    app.selectbox(key="selection.other").select(other).run()
    assert f"{found.both:,} of {len(ours):,}" in texts(app)
    app.slider[0].set_value(33.3)
    app.segmented_control(key="selection.format").set_value("folder").run()
    assert app.metric[0].value == "20"
    written = deliver.exports() / f"choice-{chosen[-4:]}-33.3pct"
    written.write_text("a file in the place of the folder")
    press(app, "selection.export")
    assert "cannot be written" in app.error[0].value
    assert len(app.get("vega_lite_chart")) == 2  # the page below stays
    written.unlink()
    press(app, "selection.export")
    assert not app.error
    assert (written / "selected.parquet").exists()
    assert (written / "README.md").exists()
    assert str(written) in [code.value for code in app.code]
    assert [run.id for run in runs.listed()] == before


def test_options_of_every_strategy_make_a_form() -> None:
    def forms() -> None:
        from core.selection import STRATEGIES  # this function runs as a script of its own
        from pages.ui.widgets import config_form

        for name, strategy in STRATEGIES.items():
            config_form(strategy.Options, list(strategy.Options.model_fields), f"selection.{name}")

    app = AppTest.from_function(forms, default_timeout=300).run()
    for name, strategy in STRATEGIES.items():
        assert all(app.get_by_key(f"selection.{name}.{option}") for option in strategy.Options.model_fields), name


@pytest.mark.usefixtures("expert")
def test_an_expert_picks_a_strategy_with_its_options_and_the_samples_corpora(home: Path) -> None:
    app = opened("home.py")
    press(app, "home.sample.legal")
    roles = corpora.roles()
    assert set(roles) == {"task", "domain", "train", "dev", "test"}
    app = opened(SELECTION, {"selection.strategy": "ngram-perplexity"})
    assert all(app.selectbox(key=f"selection.{role}.{roles[role]}").value == roles[role] for role in roles)
    assert app.get_by_key("selection.ngram-perplexity.order")
    app.text_input(key="selection.budget").set_value("lots")
    press(app, "selection.start")
    assert "budget" in app.error[0].value
    assert not runs.listed("select")


def test_a_selection_that_failed_says_why_and_can_be_resumed(trio: dict[str, Corpus]) -> None:
    recipe = KINDS["select"]
    config = {"task": trio["task"].fingerprint, "domain": trio["domain"].fingerprint, "strategy": "random"}
    run = register(recipe, recipe.config.parse(config), store())
    with EventLog(run.events_file) as log:
        log.append("started", {"pid": 2**22 + 1, "created": 0.0})
    app = opened(SELECTION)
    assert "ended without an error message" in texts(app)
    with EventLog(run.events_file) as log:
        log.append("failed", {"error": NASTY})
    app.run()
    assert "selection.run.resume" in keys(app)
    assert "<img" not in texts(app)
    assert plain(NASTY) in app.error[0].value


def test_a_bug_becomes_a_neutral_card_and_a_log(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setattr(frame, "logger", logging.getLogger("winnow.pages.test"))
    monkeypatch.setattr(corpora, "listed", lambda: 1 / 0)
    app = opened(CORPORA)
    assert len(app.error) == 1
    assert "ZeroDivisionError" not in texts(app)
    assert "ZeroDivisionError" in (shared_home(home) / "app.log").read_text(encoding="utf-8")


def test_plain_text_has_nothing_left_to_parse() -> None:
    told = plain(NASTY + " :smile: www.evil.example https://evil.example a -> b\n# heading")
    assert not set(told) & set("<>[]()*_`$:#!@~|\\\n") - set("#")
    assert all(told[i - 1] == "&" for i, sign in enumerate(told) if sign == "#")
    assert "www." not in told.replace("&#46;", ".")
