"""An experiment or a study on the page Results: verdicts, scores, cost, and expected gain of more text or labels."""

import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

from core import terms
from core.experiment import plot, results
from core.experiment import words as study_words
from core.experiment.next_step import next_steps
from core.experiment.result import ArmRow, FurtherTest, MoreLabels, StudyResult, baseline_words, nothing_learnt
from core.experiment.results import NextBudget
from core.experiment.tables import (
    ESTIMATE_HEADS,
    TAKES,
    TAKES_ONCE,
    answers,
    asked_first,
    control_words,
    dev_words,
    difference_words,
    estimate_cells,
    interval_words,
    rate_words,
    takes,
)
from core.experiment.words import VERDICT_MARKS, arm_words, line_name, overlap_in_short, reads, unfound_words
from core.labelling import view as labelling
from core.projects import runs
from core.projects.home_steps import is_asked_again
from core.shown import duration
from core.tagging.result import failed_seeds
from pages.ui.home_steps import ASKED, HOME
from pages.ui.project import page_link, switch_page
from pages.ui.runs.links import AGAIN, LABEL, SUGGEST, TRAINING
from pages.ui.widgets import answer, certainty, chart, finding, plain, pressed, table

ONCE = (
    "Each variant was tested once, after its training ended. The variants are sorted by dev F1. Choose a variant by "
    "its dev F1, never by its test F1."
)
HOW = (
    "Every variant (arm) gets two answers. **Helped**: yes, if the whole interval of its difference to `none` is above "
    "0. `none` is the tagger without what the variant adds; for a training set of fixed size, it is trained on a "
    "random set of that size. **Selection helped**: yes, if the interval of its difference to the random baseline is "
    "also above 0. The random baseline has as many tokens of random text, as many random assisting sentences, as many "
    "labels copied unchanged, or the encoder before it was trained on a source. Variants that use all of the domain "
    "corpus or word vectors select nothing. A variant improves if both answers are yes.\n\n"
    "The intervals come from a hierarchical bootstrap over seeds and test sentences, corrected for few seeds; all are "
    "at 95%. One test decides the claim. With interim analyses, its bound keeps the risk of a false claim at 5% over "
    "all of them (O'Brien and Fleming). The other variants are exploratory, and their verdicts use Holm's correction, "
    "so an interval above 0 may not be enough. A variant is not tested if it could change less than 80% of the labels "
    "that it should change.\n\n"
    "A quick experiment, which repeats only the tagger under every seed, cannot show whether the selection helped. Its "
    "intervals do not include the effect of another selection or another pre-training. To include it, make every seed "
    "a replicate of the whole pipeline. A reference variant, such as a dictionary, trains nothing, so it has one "
    "score. Its interval is over the seeds of `none` and the test sentences, and its verdict only describes the "
    "difference."
)

HARDLY = (
    "The advice comes from a power law through a few dev scores. It is an estimate, not evidence. “Hardly over” "
    "is followed by an upper bound, which the gain exceeds in at most one case of ten. The bound is known only if the "
    "whole pipeline was repeated, because it needs several pre-training runs with each number of sentences."
)


def leaderboard(run_id: str) -> None:
    """Show the result of an experiment: the verdict, the F1 of each seed, and the leaderboard.

    Source: Mahapatra et al. 2022, Tables 3 and 5.
    """
    board = results.board(run_id)
    rows = board.leaderboard
    _verdict(run_id)
    if nothing_learnt(rows):
        scores = [_line(row) for row in rows]
        table(scores, SCORES, "The scores of every variant; none of them is compared", wrapped=())
        _cost(run_id, rows)
        return
    if unfound := unfound_words(results.unfound_types(run_id)):
        st.warning(plain(unfound), icon=":material/search_off:")
    for words in filter(None, (overlap_in_short(board), board.ceiling_words)):
        st.warning(plain(words), icon=":material/warning:")
    st.caption(ONCE)
    if words := results.halves_note(rows):
        st.caption(plain(words))
    _failed(rows)
    means = "; ".join(f"{line_name(row)} {row.mean:.2f}" for row in rows)
    chart(plot.seed_dots(rows), "results.dots", f"Test score of every seed and variant; means: {means}")
    gaps = "; ".join(f"{line_name(row)} {interval_words(row)}" for row in rows[:30])
    chart(plot.differences(rows), "results.gaps", f"Score minus that of {baseline_words(rows)}: {gaps}")
    columns = COLUMNS | {"helped": asked_first(rows), "none": f"Against {baseline_words(rows)}"}
    lines = [_line(row) for row in rows]
    table(lines, columns, "Leaderboard: every variant's scores and verdict", wrapped=("arm", "none", "random"))
    for row in (row for row in rows if row.reference):
        st.caption(f"**{plain(line_name(row))}**: {plain(row.about)}")
    _takes(rows)
    _estimates(board.more_labels)
    _beside(run_id)
    with st.expander("Text read, and seeds won", icon=":material/view_column:"):
        table(lines, MORE, "Text that every variant read, and its seeds that beat the baseline")
    _further(rows)
    with st.expander("Why each verdict, and what would settle it", icon=":material/gavel:"):
        for words in filter(None, (*board.claim_words, board.overlap_words)):
            st.markdown(plain(words))
        verdicts = [
            {
                "arm": line_name(row),
                "verdict": VERDICT_MARKS[row.verdict].words,
                "why": row.why,
            }
            for row in rows
        ]
        table(verdicts, {"arm": "Variant", "verdict": "Verdict", "why": "Why"}, "Why each verdict", wrapped=("why",))
        st.markdown(HOW)
    _cost(run_id, rows)


def _takes(rows: Sequence[ArmRow]) -> None:
    """Show the time, labels and downloads that each variant needs.

    Show nothing for an experiment of an earlier version, which did not store these.
    """
    if any(row.seconds is not None for row in rows):
        lines = [{"arm": line_name(row), **takes(row)} for row in rows]
        table(lines, {"arm": "Variant", **TAKES}, "What each variant takes, once", wrapped=("arm", "downloads"))
        st.caption(plain(TAKES_ONCE))


def _estimates(lines: Sequence[MoreLabels]) -> None:
    """Show the estimated scores with more labels, and the basis of each estimate. Show nothing without estimates."""
    if lines:
        cells = [estimate_cells(line) for line in lines]
        about = "Estimates of the score with more labels, with 95% intervals"
        table(cells, ESTIMATE_HEADS, about, wrapped=("f1", "none"))
        for line in lines:
            st.caption(f"**{plain(line.arm)}**: {plain(line.words)}")


def _beside(run_id: str) -> None:
    """Show other runs on the same test set that train nothing, such as dictionaries."""
    if damaged := results.damaged_beside(run_id):
        st.warning(f"The scores of these runs on the same test set are damaged: {plain(', '.join(damaged))}.")
    if not (beside := results.beside(run_id)):
        return
    rows = [{"about": line.about, "f1": f"{line.f1:.2f}", "none": line.against_none} for line in beside]
    columns = {"about": "Without training", "f1": "Test score", "none": "Against none"}
    table(rows, columns, "Other runs without training on the same test set", wrapped=("about", "none"))
    st.caption("These runs are not part of the experiment or of its planned analysis.")


def _verdict(run_id: str) -> None:
    """Show the verdict: a word, a sentence, a chart of the difference with its interval, and what to do next."""
    verdict, rows = results.finding(run_id), results.board(run_id).leaderboard
    answer(verdict)
    row = study_words.main(results.board(run_id))
    if row and (figure := plot.glance(row, rows)):
        name = f"Difference of {line_name(row)} and its 95% interval: {interval_words(row)} {control_words(row)}"
        chart(figure, "results.glance", name.strip())
        if row.delta_random is not None and reads(row):
            st.caption("Above 0 is better. The comparison with random text shows whether the selection matters.")
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{plain(verdict.next)}**", width="stretch")
        if is_asked_again(run_id):
            seconds = results.seconds_to_settle(run_id)
            label = f"Make it surer ({duration(seconds)})" if seconds else "Make it surer"
            if pressed(label, "results.surer", type="primary", icon=":material/query_stats:"):
                switch_page(HOME, {ASKED: "out"})
    if verdict.explained:
        st.caption(plain(verdict.explained))
    if words := results.weakest_type(run_id):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(plain(words), width="content")
            page_link(LABEL, label="Label more sentences", icon=":material/label:", width="content")
    if way := results.board(run_id).cheapest:
        st.markdown(plain(way.words))
        _next(run_id)
    certainty(verdict)


def _next(run_id: str) -> None:
    """Draw buttons for the next step: use a variant that was named as the cheapest, or plan a larger experiment."""
    icons = {"tagger": "smart_toy", "label": "label", "suggest": "label", "experiment": "query_stats"}
    with st.container(horizontal=True):
        for number, step in enumerate(next_steps(run_id)):
            if pressed(plain(step.words), f"results.next.{number}", icon=f":material/{icons[step.goal]}:"):
                if step.goal == "experiment":
                    switch_page(TRAINING, {AGAIN: step.run})
                if step.goal == "suggest" and (name := labelling.suggester_of(step.run)):
                    st.session_state[SUGGEST] = name
                switch_page(*((TRAINING, {"run": step.run}) if step.goal == "tagger" else (LABEL,)))


COLUMNS = {
    "arm": "Variant",
    "helped": "Helped",
    "chose": "Selection helped",
    "f1": "Test score",
    "dev": terms.DECIDING.named,
    "none": "Against",
    "random": "Against control",
}
MORE = {
    "arm": "Variant",
    "sentences": "Sentences pre-trained on",
    "tokens": "Tokens pre-trained on",
    "seeds": "Seeds won, level, lost",
}
SCORES = {"arm": "Variant", "f1": "Test score", "dev": terms.DECIDING.named, "collapsed": "Seeds that learnt nothing"}


def _line(row: ArmRow) -> dict[str, Any]:
    helped, chose = answers(row)
    return {
        "arm": f"{line_name(row)}, {row.changed_words or row.drawn_words}".rstrip(", "),
        "sentences": row.sentences,
        "tokens": row.tokens,
        "f1": spread(row.mean, row.sd),
        "dev": dev_words(row),
        "none": interval_words(row),
        "random": control_words(row),
        "helped": f"{VERDICT_MARKS[row.verdict].sign} {helped}",
        "chose": chose,
        "collapsed": ", ".join(map(str, row.collapsed)),
        "seeds": "" if row.verdict == "baseline" else f"{row.wins}, {row.ties}, {row.losses}",
    }


def _further(rows: Sequence[ArmRow]) -> None:
    """Show the scores on all test sets side by side. A mean over the sets is left out, as it could hide a loss."""
    names = [test.test for test in rows[0].also]
    if not names:
        return
    st.subheader("Scores on the test set and on harder sets", anchor=False)
    columns = {"arm": "Variant", "0": "Test set", **{str(i): name for i, name in enumerate(names, 1)}}
    against, lines = baseline_words(rows), []
    for row in rows:
        tests: list[ArmRow | FurtherTest] = [row, *row.also]
        scores = [spread(test.mean, test.sd) for test in tests]
        if row.verdict != "baseline":
            scores = [f"{score} ({difference_words(test)})" for score, test in zip(scores, tests, strict=True)]
        lines.append({"arm": line_name(row), **{str(i): score for i, score in enumerate(scores)}})
    table(lines, columns, f"Score of every variant on each test set, and the difference to {against}", wrapped=())
    st.caption(
        f"Mean ± spread over seeds; the difference to {against}, with its 95% interval. Verdicts use only the test set."
    )


def spread(mean: float | None, sd: float | None) -> str:
    """Return a mean over seeds and its standard deviation as "81.20 ± 0.45"; "" if the mean is None."""
    return "" if mean is None else f"{mean:.2f}" + ("" if sd is None else f" ± {sd:.2f}")


def _failed(rows: Sequence[ArmRow]) -> None:
    """Warn of seeds that did not learn. The means include these seeds."""
    none_at_all = "; ".join(
        f"{plain(line_name(row))}: seed {', '.join(map(str, row.collapsed))}" for row in rows if row.collapsed
    )
    if none_at_all:
        st.warning(
            f"Some taggers learnt nothing (dev F1 no better than chance) and are still included: {none_at_all}. "
            "Train longer."
        )
    # Skip runs that were removed, because their seeds' scores are gone.
    here = {run.id for run in runs.listed("finetune")}
    failed = {
        line_name(row): [
            seed
            for run in row.finetunes
            if run in here
            for seed in failed_seeds(runs.get(run))
            if seed not in row.collapsed
        ]
        for row in rows
    }
    listed = [f"{plain(name)}: seed {', '.join(map(str, seeds))}" for name, seeds in failed.items() if seeds]
    if names := "; ".join(listed):
        st.warning(
            "Some seeds failed to learn (less than half the score of the variant's best seed). They are still "
            f"included: {names}."
        )


def _cost(run_id: str, rows: Sequence[ArmRow]) -> None:
    st.subheader("What it cost", anchor=False)
    hours = results.board(run_id).hours
    parts = ", ".join(f"{plain(kind)} {duration(3600 * value)}" for kind, value in hours.items())
    total = duration(3600 * sum(hours.values()))
    st.markdown(
        f"**{total} of computing** in all ({parts}). Work that variants share is counted for each of them below."
    )
    price = st.number_input(
        "What an hour of computing costs, in your currency",
        0.0,
        value=None,
        step=0.5,
        key="results.price",
        placeholder="nothing",
        help="For example the price of a rented machine. The table then shows the price of each variant.",
    )
    columns = {"arm": "Variant", "hours": "Time if run alone", "rate": "Points per further hour [interval]"}
    columns |= {"price": "Price, in your currency"} if price else {}
    table(
        [_bill(row, price or 0.0) for row in rows],
        columns,
        "Hours, and points of the score for each further hour, by variant",
        wrapped=(),
    )


def _bill(row: ArmRow, price: float) -> dict[str, Any]:
    return {
        "arm": line_name(row),
        "hours": duration(3600 * row.gpu_hours),
        "rate": rate_words(row),
        "price": f"{row.gpu_hours * price:,.2f}",
    }


def curves(run_id: str) -> None:
    """Show F1 by size of the selection and by number of labels, with tables and advice on the next step.

    Source: Mahapatra et al. 2022, Fig. 2 and 4.
    """
    board = results.board(run_id)
    if nothing_learnt(board.leaderboard):
        st.caption("No tagger learnt anything, so there is no curve to draw.")
        return
    _budgets(run_id, board.leaderboard)
    _further_curves(board.leaderboard)
    st.subheader("Score by labelled sentences", anchor=False)
    if not board.curve:
        st.caption(
            "Run an experiment with several sizes of the training set to see how the gain depends on the number of "
            "labels."
        )
        return
    alt = "Score by number of labelled training sentences, one line per variant; the table below has the numbers"
    chart(plot.label_curve(board.curve), "results.labels", alt)
    rows = [
        {
            "arm": line_name(point),
            "train_sentences": point.train_sentences,
            "draw": point.draw,
            "f1": ", ".join(f"{f1:.2f}" for f1 in point.micro_f1),
        }
        for point in board.curve
    ]
    columns = {"arm": "Variant", "train_sentences": "Labelled sentences", "draw": "Draw", "f1": "Score of each seed"}
    with st.expander("The numbers", icon=":material/table:"):
        table(rows, columns, "Score by labelled sentences")
    _labels(run_id)


def _further_curves(rows: Sequence[ArmRow]) -> None:
    """Show the curves of Ma et al. 2023, Fig. 4 and 5, and of Dai et al. 2019, Fig. 2, if there are any."""
    drawn = {
        (
            "Score by share of names whose context reveals their type, one panel per test set",
            "results.shares",
        ): plot.share_curve(rows),
        ("Score by tokens of the source, one line per variant", "results.sources"): plot.source_curve(rows),
    }
    for (alt, key), curve in drawn.items():
        if curve:
            st.subheader(alt.partition(",")[0], anchor=False)
            chart(curve, key, f"{alt}; the table on Leaderboard has the numbers")


def _budgets(run_id: str, rows: Sequence[ArmRow]) -> None:
    st.subheader("Score by sentences pre-trained on", anchor=False)
    alt = "Test score by sentences pre-trained on, one line per strategy; the table on Leaderboard has the numbers"
    chart(plot.budget_curve(rows), "results.budgets", alt)
    worth = st.number_input("Smallest useful gain, in points per hour", 0.0, value=0.1, step=0.1, key="results.worth")
    advice = results.budget_advice(run_id, worth)
    if not advice:
        st.caption("If an experiment has three or more budgets of one strategy, advice on larger budgets appears here.")
        return
    lines = [
        {
            "arm": arm_words(row.arm),
            "next": row.sentences,
            "gain": f"{row.gain:+z.2f}, "
            + ("bound unknown" if math.isinf(row.upper) else f"hardly over {row.upper:+z.2f}"),
            "hours": duration(3600 * row.hours),
            "advice": "not worth it" if row.stop else _go_on(row),
        }
        for row in advice
    ]
    columns = {
        "arm": "Strategy",
        "next": "Twice as many",
        "gain": "Gain in dev F1",
        "hours": "One pre-training takes",
        "advice": "Advice",
    }
    table(lines, columns, "Expected gain from twice as many sentences")
    st.caption(HARDLY)


def _go_on(row: NextBudget) -> str:
    return "unknown with one pre-training per size" if math.isinf(row.upper) else "may be worth it"


def _labels(run_id: str) -> None:
    """Show how many labelled sentences pre-training saves, and the wages that labelling them would cost."""
    advice = results.label_advice(run_id)
    if not advice:
        return
    st.subheader("Pre-train or annotate?", anchor=False)
    left, right = st.columns(2)
    minutes = left.number_input("Minutes to label a sentence", 0.0, value=2.0, key="results.minutes")
    wage = right.number_input("Wage per hour, in your currency", 0.0, value=40.0, key="results.wage")
    lines = [
        {
            "arm": line_name(row),
            "spared": _amount(row.spared),
            "range": _between(row.lo, row.hi),
            "worth": _amount(max(row.spared, 0) * minutes / 60 * wage),
        }
        for row in advice
    ]
    columns = {"arm": "Variant", "spared": "Labels it spares", "range": "In 80 of 100 draws", "worth": "Worth in wages"}
    table(lines, columns, "Labelled sentences that pre-training spares")


def _between(lo: float, hi: float) -> str:
    if math.isinf(hi):
        return "" if math.isinf(lo) else f"{_amount(lo)} or more"
    return f"{_amount(lo)} to {_amount(hi)}"


def _amount(value: float) -> str:
    return "more than can be estimated" if math.isinf(value) else f"{value:,.0f}"


RESULTS = "pages/6_Results.py"
STUDY_HOW = (
    "Each row is a task with its difference and 95% interval; a single task is exploratory. **These tasks, on "
    "average** is the mean over these tasks. The test of the claim is about this mean, and its bound keeps the risk of "
    "a false claim at 5% over all analyses. **Similar tasks** treats the tasks as a sample of their kind (random "
    "effects, Student's t with one degree of freedom fewer than tasks). Its interval is wide with fewer than five "
    "tasks, but may be the narrower one if tasks agree by chance. Its answer is given only if the claim holds on these "
    "tasks."
)
STUDY_COLUMNS = {"name": "Task", "test": "Test sentences", "f1": "Test score", "none": "none", "control": "Control"}


def study(run_id: str) -> None:
    """Show the result of a finished study, which combines one experiment per task."""
    result = results.study_board(run_id)
    finding(results.finding(run_id))
    for sentence in study_words.study_answer(result):
        st.markdown(plain(sentence))
    if result.planned:
        st.markdown(plain(result.planned.why))
    asked = study_words.asked(result)
    for of in asked:
        _forest(result, of)
    heads = {
        "name": STUDY_COLUMNS["name"],
        **{str(of): study_words.helped(result, of) for of in asked},
        **STUDY_COLUMNS,
    }
    table(_lines(result), heads, "The claim on every task, on these tasks on average, and on similar tasks", wrapped=())
    st.caption(STUDY_HOW)
    _experiments(result)


def _forest(result: StudyResult, of: study_words.Asked) -> None:
    st.markdown(f"**{plain(study_words.heading(result, of))}**")
    rows = "; ".join(f"{row.name} {row.points}" for row in study_words.forest_rows(result, of))
    name = (
        f"Difference of the score to {study_words.over(result, of)} in points, one row per task, then the means: {rows}"
    )
    chart(plot.forest(result, of), f"results.forest.{of}", name)
    if lacking := study_words.question(result, of).lacking:
        st.info(plain(lacking), icon=":material/straighten:")


def _lines(result: StudyResult) -> list[dict[str, Any]]:
    """Return the rows of the table: one per task, then the means."""
    columns = {of: study_words.forest_rows(result, of) for of in study_words.asked(result)}
    f1s = [
        {
            "test": f"{task.sentences:,}",
            "f1": f"{task.f1:.2f}",
            "none": f"{task.none_f1:.2f}",
            "control": "" if task.control_f1 is None else f"{task.control_f1:.2f}",
        }
        for task in result.tasks
    ]
    means: list[dict[str, str]] = [dict.fromkeys(STUDY_COLUMNS, "")] * (len(columns["reading"]) - len(f1s))
    lines: list[dict[str, Any]] = []
    for number, line in enumerate([*f1s, *means]):
        cells = {str(of): _cell(rows[number]) for of, rows in columns.items()}
        lines.append({**line, "name": columns["reading"][number].name, **cells})
    return lines


def _cell(row: study_words.ForestRow) -> str:
    return f"{row.answer}: {row.points}" if row.answer else row.points


def _experiments(result: StudyResult) -> None:
    """Show the hours of computing, and link to the experiment of each task."""
    st.markdown(f"**{duration(3600 * sum(result.hours.values()))} of computing** in all.")
    here = {run.id for run in runs.listed("experiment")}
    with st.container(horizontal=True):
        for task in (task for task in result.tasks if task.run in here):
            label = f"The experiment on {plain(task.name)}"
            page_link(RESULTS, label=label, icon=":material/leaderboard:", query={"run": task.run})
