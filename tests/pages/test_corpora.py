"""The page Corpora: import, roles, checks, the list of corpora, division, and removal."""

import json
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, InputError
from core.importing import uploads
from core.importing import view as corpora
from core.kind import register
from core.kinds import KINDS
from core.projects import runs
from core.projects.home import store
from core.runs.lock import Worker
from core.text.sentence import Entity, Sentence, sentence_id
from pages.ui.widgets import entity_html, plain
from tests.conftest import Seal
from tests.finished import as_running
from tests.importing.test_intake import unlike
from tests.pages.drawing import CORPORA, NASTY, add, audit, dropped, keys, opened, opened_on, press, select, texts

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu")
LABELS = ("train", "dev", "test")


@pytest.fixture
def trio(seal: Seal) -> dict[str, Corpus]:
    """Make a task corpus, a domain corpus and a training set, and give them their roles."""
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
    page_text = texts(app)
    assert '<td class="w-number">1</td><td>exact duplicates</td>' in page_text
    assert re.search(r'<td class="w-number">1</td><td>[^<]*leak', page_text)
    assert "&lt;img" in page_text
    for raw in ("<img", "<script", "<b>PER"):
        assert raw not in page_text
    assert "<b>" not in entity_html(labelled, ["<b>PER</b>"])


def test_role_is_given_and_a_corpus_is_removed_after_its_uses_are_listed(trio: dict[str, Corpus], seal: Seal) -> None:
    select()
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


def test_corpus_that_a_running_run_needs_cannot_be_removed(trio: dict[str, Corpus]) -> None:
    recipe = KINDS["finetune"]
    marks = {"train": trio["train"].fingerprint, "dev": trio["train"].fingerprint}
    with as_running(register(recipe, recipe.config.parse({"init": "minilm", **marks}), store())) as run:
        run.lock.path.write_bytes(Worker(pid=4711, created=0.0, run=run.id, account="anna", host="ward3").to_json())
        app = opened(CORPORA, {"corpora.doomed": trio["train"].fingerprint})
        assert "corpora.remove" not in keys(app)
        [link] = [found.proto for found in app.main.get("page_link")]
        assert (link.page, link.query_string) == ("Training", f"run={run.id}")
        assert "anna&#44; process 4711 on ward3" in texts(app)  # another account's run


def test_corpora_lists_the_users_corpora_first_and_the_newest_derived_ones(home: Path, trio: dict[str, Corpus]) -> None:
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


def test_corpora_lists_a_labelled_corpus_without_an_entity_as_labelled(home: Path, seal: Seal) -> None:
    bare = Sentence(id=sentence_id("It rains"), tokens=("It", "rains"), text="It rains", entities=())
    seal([bare], "bare", labelled=True)
    [table] = [html.proto.body for html in opened(CORPORA).get("html") if "<caption>All corpora" in html.proto.body]
    assert "no entity" in table


def test_upload_is_moved_from_memory_to_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_import_refuses_a_file_that_is_no_text_and_takes_the_next_one(trio: dict[str, Corpus], home: Path) -> None:
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


def test_import_asks_for_the_label_scheme_of_ambiguous_tags(home: Path) -> None:
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


def test_import_by_path_reads_only_below_the_allowed_folders(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "texts"
    (root / "deeds").mkdir(parents=True)
    (root / "deeds" / "old.txt").write_text("The first deed is signed .\n", encoding="utf-8")
    (root / ".secret.txt").write_text("no", encoding="utf-8")
    (root / "away").symlink_to("/etc")
    for part in ("train", "dev"):
        (root / f"{part}.conll").write_text("Ada B-PER\nsues O\n\n", encoding="utf-8")
    add(root / "dev.conll")  # with a corpus, the page also draws the sections below the import
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
    press(app, "corpora.one")  # one corpus instead of a proposal per file
    assert plain("several sets (dev, train)") in app.error[0].value
    app.selectbox(key="corpora.part").select("dev").run()
    assert not app.error
    assert "Ada sues" in texts(app)


def test_text_imported_twice_is_one_corpus_that_can_take_the_second_name(home: Path, tmp_path: Path) -> None:
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
    assert any("without spaces between words" in caption.value for caption in app.caption)
    press(app, "corpora.rename")
    assert corpora.find(added["first"].result()["corpus"]).name == "second"
    assert "corpora.rename" not in keys(app)


@pytest.mark.parametrize("token", ["../../etc", "0123456789ab", "..", "%2e%2e"])
def test_upload_token_from_the_address_is_never_a_path(token: str, home: Path) -> None:
    with pytest.raises(InputError, match="no longer exists"):
        uploads.spooled(token)


@pytest.mark.usefixtures("at_once")
def test_corpus_is_divided_by_the_values_of_a_column(home: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "ward": "abc"[i % 3]} for i, text in enumerate(unlike(12))]
    file = tmp_path / "notes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    notes = str(add(file, group_column="ward").result()["corpus"])
    app = opened("pages/1_Corpora.py", {"corpora.split.corpus": notes, f"corpora.split.by.{notes}": "column"})
    app.multiselect(key="corpora.split.values").select("b")
    press(app, "corpora.split.start")
    press(app, "corpora.split.roles")
    task = corpora.find(corpora.roles()["task"])
    assert {s.group for s in next(task.batches())} == {"b"}
    assert corpora.find(corpora.roles()["domain"]).name == "notes-domain"


def test_a_part_of_a_corpus_is_made_on_the_page_and_becomes_the_domain_corpus(home: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "<i>year": str(2019 + i % 3)} for i, text in enumerate(unlike(12))]
    file = tmp_path / "notes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    notes = str(add(file).result()["corpus"])
    app = opened("pages/1_Corpora.py", {"corpora.filter.corpus": notes})
    press(app, "corpora.filter.start")
    assert "Choose a value first." in [each.value for each in app.warning]
    app.multiselect(key=f"corpora.filter.{notes}.<i>year").select("2020")
    press(app, "corpora.filter.start")
    assert f"{plain('notes, 2020')}: 4 sentences." in [each.value for each in app.success]
    press(app, "corpora.filter.domain")
    assert {dict(s.columns)["<i>year"] for s in next(corpora.find(corpora.roles()["domain"]).batches())} == {"2020"}
    assert "<i>" not in texts(app)
    press(app, "corpora.filter.task")
    assert corpora.roles()["task"] == corpora.roles()["domain"]


def test_the_command_of_a_part_is_shown_unless_the_part_was_imported_before(home: Path, tmp_path: Path) -> None:
    rows = [{"text": text, "year": str(2019 + i % 3)} for i, text in enumerate(unlike(12))]
    for name, kept in (("notes", rows), ("old", rows[::3])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, kept)), encoding="utf-8")
    notes = str(add(tmp_path / "notes.jsonl").result()["corpus"])
    add(tmp_path / "old.jsonl")
    app = opened("pages/1_Corpora.py", {"corpora.filter.corpus": notes, "corpora.filter.command": True})
    for year, command in (("2020", ["python -m core corpus filter notes --where year=2020"]), ("2019", [])):
        app.multiselect(key=f"corpora.filter.{notes}.year").set_value([year])
        press(app, "corpora.filter.start")
        assert [code.value for code in app.code if "filter" in code.value] == command


def test_the_report_of_a_removed_corpus_leaves_the_rest_of_the_page(seal: Seal, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("One two three .\nFour five six .\n")
    run = add(tmp_path / "notes.txt")
    seal(["Seven eight nine ."], "other")
    corpora.remove("notes")
    app = opened_on(CORPORA, run.id)
    assert not app.error
    assert "The corpus notes was removed." in texts(app)
    assert "Another corpus has the name" not in texts(app)
    assert "All corpora" in texts(app)


def test_the_roles_of_a_division_are_given_and_undone_together(seal: Seal) -> None:
    for name in ("old", "new"):
        whole = seal([Sentence(id=sentence_id(t), tokens=(*t.split(),), text=t, entities=()) for t in
                      (f"{name} {word} sentence {i} ." for i, word in enumerate(WORDS))], name, labelled=True)  # fmt: skip
        runs.execute("split", {"corpus": whole.fingerprint, "by": "sentence"})
        app = opened(CORPORA)
        app.button(key="corpora.split.roles").click().run()
        assert {corpora.find(mark).name for mark in corpora.roles().values()} == {f"{name}-{r}" for r in LABELS}
    app.button(key="corpora.undo").click().run()
    assert {corpora.find(mark).name for mark in corpora.roles().values()} == {f"old-{role}" for role in LABELS}
    corpora.remove("new-test")
    app = opened(CORPORA)
    app.button(key="corpora.split.roles").click().run()
    assert not app.error
    assert {corpora.find(mark).name for mark in corpora.roles().values()} == {"new-train", "new-dev", "old-test"}


def test_only_the_domain_corpus_sends_readers_to_explore_for_duplicates(seal: Seal) -> None:
    lines = [f"The tenant of house number {i} shall pay the rent on the first day of month {i} ." for i in range(30)]
    held = [lines[0].replace("shall", "must")]
    pile = [*lines, *held, *(f"{text} " for text in held)]
    made = {"task": seal(pile, "task"), "domain": seal([*pile, "A sentence more ."], "domain")}
    made["test"] = seal(held, "test", labelled=True)
    explore = ("Explore shows them and the words that differ", "Selection and Explore count them only as leaks")
    for role in ("task", "domain", "test"):
        corpora.set_role(role, made[role].fingerprint)
    audit(made["task"].fingerprint, made["test"].fingerprint)
    shown = texts(opened(CORPORA))
    assert "Of the near duplicates" in shown
    assert "Of the leaks" in shown
    assert [words for words in explore if words in shown] == []
    audit(made["domain"].fingerprint, made["test"].fingerprint)
    shown = texts(opened(CORPORA))
    assert [shown.count(words) for words in explore] == [1, 1]
