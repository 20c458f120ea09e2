"""README's headline and table against the committed counts of the experiments."""

from pathlib import Path

from tests.lab.benchmarks.headline import Interval, LabelRow, Row, label_rows, rows

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


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
        ("on all five corpora", ("all", "classifier", "random")),
        ("three domains together", ("crossner", "classifier", "random")),
        ("no continued pre-training", ("crossner", "classifier", "none")),
        ("Did random text help", ("crossner", "random", "none")),
        ("text on bc5cdr", ("bio", "classifier", "random")),
        ("text on conll2003", ("news", "classifier", "random")),
    ):
        [line] = [line for line in table if question in line]
        assert all(figure in line for figure in cells(computed[key])), (line, cells(computed[key]))
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
    powers = [round(100 * computed[ground, "classifier", "random"].power) for ground in ("bio", "news")]
    assert f"in {powers[0]}% of cases on biomedical text and {powers[1]}% on news" in " ".join(headline.split())
