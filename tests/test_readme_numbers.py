"""README's headline and tables, and the lines in RESULTS.md, against the committed counts of the experiments."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, stdev

import pytest

from core.experiment import find_out
from core.experiment.arms import DICTIONARY, NAMES, NONE
from core.stats.bootstrap import Difference
from tests.lab.benchmarks import bench_multipliers
from tests.lab.benchmarks.bench_layers import CORPORA
from tests.lab.benchmarks.headline import (
    AUGMENT,
    COPIED,
    NEWS,
    TESTS,
    Interval,
    LabelRow,
    Row,
    encoder,
    label_rows,
    line_f1,
    line_row,
    listed,
    multiplied,
    rebuilt,
    rows,
    sizes,
)

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
RESULTS = (Path(__file__).parent / "lab" / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
SHOWN = ("crossner-music", "crossner-literature", "crossner-ai")  # order in README's row about a larger encoder
TRANSFER = {"C100": "transfer:crossner-ai-train"}  # ground: line; elsewhere conll2003 is the other corpus


def shown(interval: Interval) -> str:
    return f"[{interval[0]:+.1f}, {interval[1]:+.1f}]"


def cells(row: Row | LabelRow) -> list[str]:
    """Return the figures that README shows for a row."""
    return [
        f"{row.f1:.1f} against {row.other:.1f}",
        f"{row.delta:+.1f} {shown(row.interval)}",
        f"{100 * row.power:.0f}",
    ]


def test_readme_table_shows_the_figures_of_the_committed_counts() -> None:
    computed, labels = rows(), label_rows()
    table = [line for line in README.splitlines() if line.startswith("|")]
    for question, key in (
        ("three domains together", ("crossner", "classifier", "random")),
        ("Did the selection beat the baseline (no continued", ("crossner", "classifier", "none")),
        ("Did random text help", ("crossner", "random", "none")),
        ("text on bc5cdr", ("bio-300", "classifier", "random")),
        ("and did it beat the baseline", ("bio-300", "classifier", "none")),
        ("with a larger encoder (MPNet)", ("crossner mpnet", "classifier", "random")),
    ):
        [line] = [line for line in table if question in line]
        assert all(figure in line for figure in cells(computed[key])), (line, cells(computed[key]))
    for question, pair in (
        ("text on conll2003", ("classifier", "random")),
        ("beat the baseline there", ("random", "none")),
    ):
        [line] = [line for line in table if question in line]
        assert all(figure in line for figure in cells(line_row(NEWS, *pair))), (line, cells(line_row(NEWS, *pair)))
    for question, other in (("beat 150 random ones", "random"), ("150 most similar sentences", "similarity")):
        [line] = [line for line in table if question in line]
        assert all(figure in line for figure in cells(labels["queue", other])), (line, cells(labels["queue", other]))
    main = computed["crossner", "classifier", "random"]
    assert main.adjusted
    assert main.new
    [looks], [new] = (
        [line for line in table if words in line] for words in ("allowing for the early end", "one new domain")
    )
    assert shown(main.adjusted) in looks
    assert shown(main.new) in new
    headline = README.partition("## Five minutes")[0]
    queue = labels["queue", "random"]
    assert f"**{queue.delta:.1f} points** [{queue.interval[0]:.1f}, {queue.interval[1]:.1f}]" in headline
    low, high = main.interval
    assert f"**{main.delta:.1f} points** [{low:.1f}, {high:.1f}], p = .{1000 * main.p:03.0f}" in headline
    assert f"between {main.new[0]:.1f} and {main.new[1]:+.1f}" in headline
    headline = " ".join(headline.split())
    bio, news = computed["bio-300", "classifier", "random"], line_row(NEWS, "classifier", "random")
    assert f"{bio.delta:+.1f} points {shown(bio.interval)} and {news.delta:+.1f} {shown(news.interval)}" in headline
    assert f"in {100 * computed['crossner mpnet', 'classifier', 'random'].power:.0f}% of cases" in headline
    assert f"gave {main.delta:.1f} points of F1 more" in find_out.MEASURED
    assert f"gave {queue.delta:.1f} points more" in find_out.MEASURED
    assert all(low <= 0 <= high for low, high in (bio.interval, news.interval))  # "we found no difference"
    gains = sorted(encoder(corpus, "mpnet").delta for corpus in CORPORA)
    assert f"{gains[0]:.1f}, {gains[1]:.1f}, and {gains[2]:.1f} points on three CrossNER domains" in headline


def test_results_show_the_counts_of_what_a_selection_replaces() -> None:
    lines = list(map(json.loads, bench_multipliers.LINES.read_text(encoding="utf-8").splitlines()))
    section = RESULTS.partition("`bench_multipliers`, planned on")[2].partition("\n**Not measured")[0]
    for start, arm in (
        ("no pre-training", "none"),
        ("random text, 2,000", "random 2000"),
        ("random text, 4,000", "random 4000"),
        ("random text, 8,000", "random 8000"),
        ("selected text", "classifier 2000"),
    ):
        for cell, size in zip(table_row(section, start)[1:], bench_multipliers.LABELS, strict=True):
            found = [line["arms"][name]["f1"] for line in lines if (name := f"{arm} {size}") in line["arms"]]
            assert cell == (f"{' '.join(f'{one:.1f}' for one in found)}, mean {f1(found)}" if found else "")
    row, (gained, text, labels, labels_none) = multiplied()
    section = " ".join(section.split())
    assert gain(gained) in section
    assert f"at the observed spread, in {100 * row.power:.0f}" in section
    assert f"worth {bench_multipliers.in_words(labels_none)} times as many labels without" in section
    assert f"they were worth {bench_multipliers.in_words(labels)} times as many" in section
    found = table_row(README, "Did 2,000 selected sentences replace")
    assert found[2:5] == cells(row)
    assert f"{bench_multipliers.in_words(text)} times the text" in found[1]
    assert f"{bench_multipliers.in_words(labels_none)} times the labels" in found[1]


def test_readme_and_results_show_the_size_of_each_replicate() -> None:
    found = sizes()
    bio, *three = (
        found[ground, corpus] for ground, corpus in (("bio-300", "bc5cdr"), *(("crossner", c) for c in SHOWN))
    )
    larger = [found["crossner mpnet", corpus].minutes for corpus in SHOWN]

    def spread(values: Sequence[int]) -> str:
        return f"{min(values)} to {max(values)}"

    labels = f"{spread([one.task for one in three])}; {spread([one.entities for one in three])}"
    for question, data in (
        ("Did the selection beat random text on bc5cdr?", f"{bio.task:,}; {bio.entities}; {bio.minutes}"),
        ("Did the selection beat random text (three", f"{labels}; {spread([one.minutes for one in three])}"),
        ("... with a larger encoder (MPNet)", f"{labels}; {spread(larger)}"),
    ):
        assert table_row(README, question)[5] == data
    section = RESULTS.partition("Size of a replicate")[2].partition("\n**")[0]
    for corpus in SHOWN:
        size, mpnet = found["crossner", corpus], found["crossner mpnet", corpus]
        wanted = [f"{size.task}", "100", f"{size.entities}", f"{size.minutes}", f"{mpnet.minutes}"]
        assert table_row(section, corpus)[1:] == wanted
    assert table_row(section, "bc5cdr")[1:5] == [f"{bio.task:,}", "300", f"{bio.entities}", f"{bio.minutes}"]


@pytest.mark.real
def test_readme_counts_the_entities_of_the_first_sentences_of_conll2003(real_data: Path) -> None:
    blocks = (real_data / "conll2003" / "train.conll").read_text(encoding="utf-8").split("\n\n")
    entities = "\n".join(blocks[:100]).count("\tB-")
    assert table_row(README, "Did the selection beat random text on conll2003?")[5].split("; ")[1] == str(entities)


def table_row(text: str, start: str) -> list[str]:
    """Return the cells of the only row in `text` whose first cell starts so."""
    [line] = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def f1(found: Sequence[float]) -> str:
    return f"{mean(found):.1f}"


def gain(found: Difference) -> str:
    return f"{found.delta:+.1f} {shown((found.lo, found.hi))}"


def test_readme_row_of_the_larger_encoder_shows_the_figures_of_the_committed_counts() -> None:
    found = [encoder(corpus, "mpnet") for corpus in SHOWN]
    assert table_row(README, "What did a larger encoder")[2:4] == [
        "; ".join(f"{f1(each.system)} against {f1(each.other)}" for each in found),
        "; ".join(map(gain, found)),
    ]


def test_readme_row_of_public_lists_shows_the_figures_of_the_committed_counts() -> None:
    alone, together = listed(DICTIONARY), listed(NAMES)
    row = table_row(README, "Did two public lists of names")
    assert row[2:4] == [
        f"{f1(alone.system)} against {f1(alone.other)}; lists and labels together {f1(together.system)}",
        gain(alone),
    ]


def test_readme_rows_of_exchanged_names_show_the_figures_of_the_committed_counts() -> None:
    plain, unseen = (rebuilt(test, AUGMENT, NONE) for test in TESTS[:2])
    control = rebuilt(TESTS[1], AUGMENT, COPIED).other
    row = table_row(README, "Did labels with exchanged names help on the original test set?")
    assert row[2:4] == [f"{f1(plain.system)} against {f1(plain.other)}", gain(plain)]
    row = table_row(README, "Did labels with exchanged names help on unseen names?")
    added = "(as many unchanged sentences added)"
    assert row[2:4] == [
        f"{f1(unseen.system)}; control {f1(control)} {added}; baseline {f1(unseen.other)}",
        f"{gain(unseen)} against the baseline",
    ]


@pytest.mark.parametrize(("arm", "name"), [(NONE, "none"), (NAMES, "none+dictionary"), (DICTIONARY, "dictionary (the")])
def test_results_show_the_counts_of_the_lists(arm: str, name: str) -> None:
    section = RESULTS.partition("**100 labels add nothing to these lists")[2].partition("\n## ")[0]
    row, found = table_row(section, f"{name} "), listed(DICTIONARY if arm == DICTIONARY else NAMES)
    f1s = found.other if arm == NONE else found.system
    assert row[2] == f1(f1s)
    if arm != DICTIONARY:
        assert row[1] == " ".join(f"{one:.1f}" for one in f1s)
    if arm != NONE:
        assert row[4] == gain(found)


@pytest.mark.parametrize("test", TESTS)
def test_results_show_the_counts_of_exchanged_names(test: str) -> None:
    section = RESULTS.partition("**Does rebuilding help?**")[2].partition("\nBefore (")[0]
    rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    name = test.removeprefix("ood/").replace("_", "-")
    baseline, copied, augmented = (row for row in rows if row[1] == name)
    copies, gains, over = (rebuilt(test, *pair) for pair in ((COPIED, NONE), (AUGMENT, NONE), (AUGMENT, COPIED)))
    for row, f1s in ((baseline, gains.other), (copied, copies.system), (augmented, gains.system)):
        assert row[2:4] == [" ".join(f"{one:.1f}" for one in f1s), f"{f1(f1s)} ± {stdev(f1s):.1f}"]
    assert copied[4] == gain(copies)
    assert augmented[4:6] == [gain(gains), gain(over)]


@pytest.mark.parametrize(
    ("ground", "task"),
    [
        ("crossner-ai", "crossner-ai |"),
        ("crossner-music", "crossner-music |"),
        ("C100", "conll2003 |"),
        ("B100", "bc5cdr |"),
    ],
)
def test_readme_table_of_lines_shows_the_mean_f1_of_the_committed_counts(ground: str, task: str) -> None:
    found = line_f1()
    section = README.partition("**How much do other methods bring?**")[2].partition("To run this")[0]
    transfer = TRANSFER.get(ground, "transfer:conll2003 3000")
    lines = ("none", "random", "classifier", transfer, "dictionary", "distant", "self-train")
    for cell, line in zip(table_row(section, task)[1:], lines, strict=True):
        expected = f"{mean(found[ground, line]):.1f}" if (ground, line) in found else ""
        assert cell.replace("*", "").partition(",")[0] == expected, line


@pytest.mark.parametrize(
    ("ground", "start"),
    [
        ("crossner-ai", "**On crossner-ai, "),
        ("crossner-music", "**On crossner-music, "),
        ("C100", "**On C100, "),
        (NEWS, "**On C100 again, "),
        ("B100", "**On B100, "),
    ],
)
def test_results_show_the_f1_of_each_line_and_replicate(ground: str, start: str) -> None:
    section = RESULTS.partition(start)[2].partition("**On ")[0].partition("\n## ")[0]
    for (of, line), f1s in line_f1().items():
        if of != ground or line == "self-train:random":  # named in the text only
            continue
        name = "dictionary (" if line == "dictionary" else line.removesuffix(" 3000")
        cells = table_row(section, name if name.startswith(("none", "transfer", "dictionary")) else f"{name}, ")
        if len(f1s) > 1:
            assert cells[1] == " ".join(f"{f1:.1f}" for f1 in f1s), line
        assert cells[2] == f"{mean(f1s):.1f}", line
