"""A study on Results: answers, forest plots with their table, and links to the tasks' experiments."""

from typing import Any

import streamlit as st

from core.experiment import plot, results, words
from core.experiment.result import StudyResult
from core.projects import runs
from core.shown import duration
from pages.ui.finding import finding
from pages.ui.project import page_link
from pages.ui.widgets import chart, plain, table

RESULTS = "pages/6_Results.py"
HOW = (
    "Each row is a task with its difference and 95% interval; a single task is exploratory. **These, on average** is "
    "the mean over these tasks, which the planned test is about: its bound keeps the risk of a false claim at 5% over "
    "all looks. **Others like these** takes the tasks as a sample of their kind (random effects, Student's t with one "
    "degree of freedom fewer than tasks). Its interval is wide with fewer than five tasks, and its answer is given "
    "only if it holds on these tasks. If tasks agree by chance, its interval may be the narrower one."
)
COLUMNS = {"name": "Task", "test": "Test sentences", "f1": "Test score", "none": "none", "control": "Control"}


def study(run_id: str) -> None:
    """Show the result of a finished study."""
    result = results.study_board(run_id)
    finding(results.finding(run_id))
    for sentence in words.study_answer(result):
        st.markdown(plain(sentence))
    if result.planned:
        st.markdown(plain(result.planned.why))
    asked = words.asked(result)
    for of in asked:
        _forest(result, of)
    heads = {"name": COLUMNS["name"], **{str(of): f"{of.capitalize()} helped" for of in asked}, **COLUMNS}
    table(_lines(result), heads, "The claim on every task, on these on average, and on others like these", wrapped=())
    st.caption(HOW)
    _experiments(result)


def _forest(result: StudyResult, of: words.Asked) -> None:
    st.markdown(f"**{words.HEADINGS[of]}**")
    rows = "; ".join(f"{row.name} {row.points}" for row in words.forest_rows(result, of))
    name = f"Points of the score over {words.over(result, of)}, one row per task, then the means: {rows}"
    chart(plot.forest(result, of), f"results.forest.{of}", name)
    if lacking := words.question(result, of).lacking:
        st.info(plain(lacking), icon=":material/straighten:")


def _lines(result: StudyResult) -> list[dict[str, Any]]:
    """Return a line per task, then the means."""
    columns = {of: words.forest_rows(result, of) for of in words.asked(result)}
    f1s = [
        {
            "test": f"{task.sentences:,}",
            "f1": f"{task.f1:.2f}",
            "none": f"{task.none_f1:.2f}",
            "control": "" if task.control_f1 is None else f"{task.control_f1:.2f}",
        }
        for task in result.tasks
    ]
    means: list[dict[str, str]] = [dict.fromkeys(COLUMNS, "")] * (len(columns["reading"]) - len(f1s))
    lines: list[dict[str, Any]] = []
    for number, line in enumerate([*f1s, *means]):
        cells = {str(of): _cell(rows[number]) for of, rows in columns.items()}
        lines.append({**line, "name": columns["reading"][number].name, **cells})
    return lines


def _cell(row: words.ForestRow) -> str:
    return f"{row.answer}: {row.points}" if row.answer else row.points


def _experiments(result: StudyResult) -> None:
    """Link to the experiment of every task, which has its leaderboard."""
    st.markdown(f"**{duration(3600 * sum(result.hours.values()))} of computing** in all.")
    here = {run.id for run in runs.listed("experiment")}
    with st.container(horizontal=True):
        for task in (task for task in result.tasks if task.run in here):
            label = f"The experiment on {plain(task.name)}"
            page_link(RESULTS, label=label, icon=":material/leaderboard:", query={"run": task.run})
