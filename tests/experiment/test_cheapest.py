"""The cheapest way to the next point: named only if the intervals show it."""

from math import inf
from pathlib import Path

import numpy as np
import pytest

from core.experiment import cheapest, results, tables
from core.experiment.cheapest import LEAST, LEVEL, Way, by_machine, by_person, found, winner
from core.experiment.cli import run_experiment
from core.experiment.result import Cheapest
from core.projects import runs
from core.stats.bootstrap import compare
from core.stats.pooled import Estimate
from tests.experiment.test_experiment import OPTIONS, fill
from tests.stats.test_verdict import World


def way(name: str, gain: float, half: float, seconds: float, person: float = 0.0) -> Way:
    estimate = Estimate(delta=gain, falling=half**2 / 4, fixed=0.0, dof=100.0)
    lo, hi = gain - half, gain + half
    return Way(name=name, lo=lo, hi=hi, seconds=seconds, person_seconds=person, estimate=estimate)


def test_the_line_with_the_lowest_cost_per_point_is_named_if_intervals_separate() -> None:
    quick, slow = way("quick", 4, 1, 100), way("slow", 6, 1, 1000)
    # At worst quick costs 100 / 3 s per point; at best slow costs 1000 / 7.
    assert quick.worst(by_machine) == pytest.approx(100 / 3)
    assert slow.best(by_machine) == pytest.approx(1000 / 7)
    assert winner([slow, quick]) is quick
    assert winner([slow, way("also quick", 4, 1, 110), quick]) is None
    assert winner([way("wide", 4, 4.1, 1), slow]) is None  # the gain of the quickest is not shown
    assert winner([way("loss", -4, 1, 1), quick]) is quick
    assert (way("loss", -4, 1, 1).best(by_machine), way("open", 1, 2, 1).worst(by_machine)) == (inf, inf)
    assert winner([]) is None


def test_the_sentence_names_a_winner_or_what_would_decide() -> None:
    quick, slow = way("quick", 4, 1, LEAST), way("slow", 6, 1, 1000)
    said = found([quick, slow], ["more labels", "a list of names"])
    assert (said.line, said.lines, said.times) == ("quick", ["quick"], 0)
    assert said.words == (
        "The cheapest way to gain the next point of F1 is quick (+4.0 points [+3.0, +5.0] in less than a minute of "
        "machine time), because every other variant here costs more per point, even at the upper end of its interval. "
        "No variant here takes any of your time. Not compared here: more labels and a list of names."
    )
    tie = found([way("a", 4, 1, 100), way("b", 4, 1, 150), way("c", 0, 1, 100)])
    # Separate if 100 / (4 - h) < 150 / (4 + h), so if h < 0.8; half widths shrink with the root of the replicates.
    assert (tie.lines, tie.times) == ([], 2)
    assert "Shown to gain: a (+4.0 points [+3.0, +5.0] in 2 min of machine time) and b (" in tie.words
    yours = "No variant here takes any of your time."
    assert tie.words.endswith(
        f"At these gains, about 2 times as many replicates would be enough to find the cheapest variant. {yours}"
    )
    never = found([way("a", 4, 1, 100), way("b", 4, 1, 100)])
    assert never.times == 0
    assert never.words.endswith(
        f"At these gains, even 16 times as many replicates would not be enough to find the cheapest variant. {yours}"
    )
    unknown = "The cheapest way to gain the next point of F1 is unknown"
    only = f"{unknown}, because the only variant besides none is not shown to gain."
    assert found([way("a", 0, 1, 100)]).words == only
    both = found([way("a", 0, 1, 100), way("b", 0, 1, 100)])
    assert both.words == (
        f"{unknown}. Comparing 2 variants at once needs more evidence than comparing a single one, and no variant has "
        "enough."
    )
    # Its interval is above 0 if half of its width, 2, is below 1: with more than 4 times as many replicates.
    open_ = found([way("a", 1, 2, 100)])
    assert open_.times == 5
    assert open_.words.endswith(
        f"{only} At these gains, about 5 times as many replicates would be enough to find the cheapest variant."
    )


def test_a_persons_minutes_are_counted_and_never_added_to_those_of_the_machine() -> None:
    names, labels = way("names", 4, 1, LEAST), way("labels", 12, 1, LEAST, person=3000)
    # Machine, per point: labels at most 60 / 11, names at least 60 / 5. Person: names nothing, labels 3000 / 13.
    assert winner([names, labels]) is labels
    assert winner([names, labels], by_person) is names
    said = found([names, labels])
    assert (said.line, said.by_machine, said.by_person, said.times) == ("", "labels", "names", 0)
    assert said.lines == ["labels", "names"]
    assert said.words == (
        "In machine time, the cheapest way to gain the next point of F1 is labels (+12.0 points [+11.0, +13.0] in less "
        "than a minute of machine time and 50 min of your time). In your own time, the cheapest way to gain the next "
        "point of F1 is names (+4.0 points [+3.0, +5.0] in less than a minute of machine time and none of your time). "
        "Only you can decide how much machine time a minute of your work is worth."
    )
    # Names gain enough: the cheapest for the machine, and nothing is no more than nothing for a person.
    said = found([way("names", 12, 1, LEAST), way("labels", 4, 1, LEAST, person=3000), way("idle", 0, 1, LEAST)])
    assert said.line == "names"
    assert said.words.endswith("even at the upper end of its interval, and none costs less of your time.")
    # A line that may gain for nothing keeps labels from being the cheapest for a person.
    said = found([way("idle", 0, 1, LEAST), labels])
    assert (said.line, said.lines, said.times) == ("", ["labels"], 0)
    assert said.words.endswith(
        "It is not known which variant takes the least of your own time. These variants take none of your time and may "
        "gain: idle."
    )
    # If nothing else can gain, the work is the cheapest in both.
    assert found([way("loss", -4, 1, LEAST), labels]).line == "labels"
    # The machine is open; for a person it is not.
    said = found([names, way("labels", 4, 1, LEAST, person=3000)])
    assert (said.line, said.lines) == ("", ["names"])
    assert said.words.startswith("In your own time, the cheapest way to gain the next point of F1 is names (")
    assert (
        "It is not known which variant takes the least machine time. At these gains, even 16 times as many"
        in said.words
    )


@pytest.mark.parametrize("person", [0.0, 1800.0])
def test_equal_lines_are_named_in_at_most_5_percent(person: float) -> None:
    """Four variants with the same gain and costs, compared with one baseline on the same test sentences."""
    rng, lines, named, experiments = np.random.default_rng(3), 4, 0, 300
    for _ in range(experiments):
        ways = simulated(rng, gain=0.4, costs=[(600.0, person)] * lines)
        named += bool(found(ways).lines)
    assert named / experiments <= 0.05


def test_lines_that_gain_nothing_are_named_in_at_most_5_percent() -> None:
    """The costs differ, and half of the lines ask for a person's work."""
    rng, named, experiments = np.random.default_rng(5), 0, 300
    for _ in range(experiments):
        ways = simulated(rng, gain=0.0, costs=[(60.0, 0.0), (60.0, 3600.0), (600.0, 0.0), (3600.0, 1800.0)])
        named += bool(found(ways).lines)
    assert named / experiments <= 0.05


def test_equal_gains_name_the_right_line_of_each_kind_of_minutes() -> None:
    """Another line is named in at most 5%. The first is cheaper for the machine, the second for a person."""
    rng, experiments, wrong, right = np.random.default_rng(6), 300, 0, 0
    for _ in range(experiments):
        said = found(simulated(rng, gain=0.5, costs=[(60.0, 3600.0), (3600.0, 0.0)], sentences=300))
        wrong += bool(said.line) or said.by_machine == "1" or said.by_person == "0"
        right += (said.by_machine, said.by_person) == ("0", "1")
    assert wrong / experiments <= 0.05
    assert right / experiments > 0.5


def simulated(
    rng: np.random.Generator, *, gain: float, costs: list[tuple[float, float]], sentences: int = 100
) -> list[Way]:
    """Return lines with the same gain, compared with one baseline. costs: seconds of the machine and of a person."""
    level = 1 - (1 - LEVEL) / len(costs)
    world = World(rng, sentences, seed=0.1, sentence=0.5, both=0.2)
    none = world.arm(0.1, 3)
    gaps = [compare(world.arm(0.1 + gain, 3), none, draws=200) for _ in costs]
    return [
        cheapest._way(str(i), gap, machine, level, person)
        for i, (gap, (machine, person)) in enumerate(zip(gaps, costs, strict=True))
    ]


def test_a_far_cheaper_line_is_named_often() -> None:
    rng, named, experiments = np.random.default_rng(4), 0, 100
    for _ in range(experiments):
        world = World(rng, 300, seed=0.05, sentence=0.5, both=0.2)
        none = world.arm(0.1, 3)
        costs = {"cheap": 60.0, "dear": 3600.0}
        ways = [
            cheapest._way(name, compare(world.arm(0.6, 3), none, draws=200), cost, 0.975)
            for name, cost in costs.items()
        ]
        first = winner(ways)
        named += first is not None and first.name == "cheap"
    assert named / experiments > 0.8


def test_an_experiment_says_which_way_is_cheapest(home: Path, untrained: None) -> None:
    fill(home)
    run = runs.execute("experiment", {**OPTIONS, "arms": ("none", "random", "classifier", "dictionary")})
    board = results.board(run.id)
    assert board.cheapest
    assert board.cheapest.words in tables.as_markdown(board)
    assert board.cheapest.words.endswith(
        " Not compared here: more labels, labels of another corpus, a ready model, a language model and another encoder."
    )
    alone = results.board(runs.execute("experiment", {**OPTIONS, "arms": ("none",)}).id)
    assert alone.cheapest is None


def test_the_command_line_prints_the_command_that_would_decide(
    home: Path, untrained: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(home)
    open_ = Cheapest(line="", words="Which way is the cheapest is not known.", times=2)
    monkeypatch.setattr("core.experiment.kind.cheapest", lambda board, store: open_)
    run_experiment({**OPTIONS, "arms": ("none", "dictionary")})
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Decide it with 4 replicates")]
    command = line.partition(": ")[2]
    assert command.startswith("python -m core experiment --task task --domain domain --train train --dev dev")
    assert [f"--seed {seed}" in command for seed in (1, 2, 3, 4, 5)] == [True] * 4 + [False]
