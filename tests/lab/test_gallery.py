"""The gallery's texts are correct and keep their splits apart; its pages show what the runs computed."""

import re
from pathlib import Path
from random import Random

import pytest

from core.experiment import results
from core.paths import within
from core.projects import view as projects
from tests.lab.gallery import texts
from tests.lab.gallery.pages import FOLDER, Runs, index, page
from tests.lab.gallery.texts import TASKS, Task
from tests.samples.english import problems
from tests.samples.test_english import NAMES

GENERATED = {task.name: task for task in TASKS if not task.sample}
TYPES = {
    "news": {"PERSON", "ORG", "PLACE", "DATE"},
    "abstracts": {"SPECIES", "METHOD", "QUANTITY", "SITE"},
    "german": {"PARTEI", "BETRAG", "DATUM", "ORT"},
}


def _conll(file: Path) -> list[list[list[str]]]:
    blocks = file.read_text("utf-8").strip("\n").split("\n\n")
    return [[line.split("\t") for line in block.split("\n")] for block in blocks]


@pytest.mark.parametrize("name", ["news", "abstracts"])
def test_every_production_of_the_english_grammars_is_correct(name: str) -> None:
    task, seen = GENERATED[name], 0
    grammar = texts.grammar(task, Random(0))
    for topic in dict.fromkeys((*task.task, *task.inside)):
        for sentence in grammar.productions(topic, NAMES):
            assert not problems(sentence), sentence
            seen += 1
    assert seen > 1_500


@pytest.mark.parametrize("task", GENERATED.values(), ids=list(GENERATED))
def test_texts_are_the_same_for_a_seed_and_keep_the_test_set_apart(task: Task, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        texts.write(task, tmp_path / folder)
    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert files == ["dev.conll", "domain.txt", "task.txt", "test.conll", "train.conll"]
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files)
    split = {name: _conll(tmp_path / "one" / f"{name}.conll") for name in ("train", "dev", "test")}
    assert [len(sentences) for sentences in split.values()] == [25, 100, 200]
    for sentences in split.values():
        assert {tag[2:] for rows in sentences for _, tag in rows if tag != "O"} == TYPES[task.name]
    lines = {name: (tmp_path / "one" / f"{name}.txt").read_text("utf-8").splitlines() for name in ("task", "domain")}
    assert [len(each) for each in lines.values()] == [225, 1500]
    for line in (*lines["task"], *lines["domain"]):
        assert re.fullmatch(r"[\"A-ZÄÖÜ§].*[.?!\"]", line), line
        assert not re.search(r"\s[,.;:?]|,,|\s\s|[<>{}|\[\]]", line), line
    known = {"".join(line.split()) for each in lines.values() for line in each}
    words = {name: {"".join(token for token, _ in rows) for rows in sentences} for name, sentences in split.items()}
    assert not words["test"] & known
    assert words["train"] <= known
    assert words["dev"] <= known


def test_a_page_shows_the_commands_times_and_results_of_the_finished_sample(home: Path) -> None:
    with within(projects.open_finished_sample().slug):
        made = Runs.newest()
        text, sentences = page(TASKS[0], made)
        board, finding = results.board(made.experiment), results.finding(made.experiment)
    assert sentences == 7_100
    assert "python -m core experiment --task legal-task --domain legal-domain " in text
    assert all(part in text for part in finding.parts)
    for row in board.leaderboard:
        assert f"| {row.arm} | {row.sentences:,} | {row.mean:.1f} |" in text
    assert re.search(r"\| experiment \| \d+ min \|", text)


def test_gallery_in_the_documentation_links_its_pages_which_have_small_pictures() -> None:
    assert (FOLDER / "README.md").read_text("utf-8") == index()
    there = [task for task in TASKS if f"({task.name}.md)" in index()]
    assert there[0].name == "contracts"
    for task in there:
        pictures = re.findall(r"\]\(([\w-]+\.webp)\)", (FOLDER / f"{task.name}.md").read_text("utf-8"))
        assert len(pictures) == 2
        assert all(1_000 < (FOLDER / picture).stat().st_size <= 100_000 for picture in pictures)
