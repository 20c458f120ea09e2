"""A study's answers in sentences, and its forest plot: a row a task, below them the two means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from core.charts import figure, labels, plain
from core.experiment.plot import arm_words
from core.experiment.result import Interval
from core.experiment.study_result import Question, StudyResult, nothing_learnt

Asked = Literal["choosing", "reading"]
Answer = Literal["yes", "no evidence", "worse"]
NOTHING = (
    "No tagger learnt anything, so nothing can be said: in no variant does the score rise above what chance gives. "
    "That is no evidence for or against any of them; the training has to work first."
)
FEW = 5  # tasks, below which what holds on others is known to a wide margin
THESE, OTHERS = "These, on average", "Others like these"
_DID: Mapping[Answer, str] = {"yes": "helped", "no evidence": "is not shown to help", "worse": "did harm"}
_HOLDS: Mapping[Answer, str] = {
    "yes": "It would on others like these too",
    "no evidence": "Whether it would on others like these is not shown",
    "worse": "It would do harm on others like these too",
}
_TASK, _LINE = "#0072B2", "#8F8F8F"
_COLOURS: Mapping[Answer, str] = {"yes": "#009E73", "no evidence": "#8F8F8F", "worse": "#D55E00"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForestRow:
    """A row of the plot. answer: of a mean; None for a task, which is exploratory."""

    name: str
    delta: float
    interval: Interval
    answer: Answer | None = None

    @property
    def known(self) -> bool:
        """False for [-100, 100]: one replicate says nothing of the spread."""
        return self.interval[1] - self.interval[0] < 200

    @property
    def points(self) -> str:
        """The difference and its interval in words."""
        low, high = self.interval
        return f"{self.delta:+z.2f} " + (f"[{low:+z.2f}, {high:+z.2f}]" if self.known else "(no interval)")


def asked(result: StudyResult) -> list[Asked]:
    """The questions that a study answers, the claim's first."""
    return ["choosing", "reading"] if result.choosing else ["reading"]


def question(result: StudyResult, of: Asked) -> Question:
    """One of them. Errors: AssertionError for one that is not asked."""
    answered = result.choosing if of == "choosing" else result.reading
    assert answered
    return answered


def forest_rows(result: StudyResult, of: Asked) -> list[ForestRow]:
    """A row a task, then the mean on these, then that on others, where there are several."""
    rows = []
    for task in result.tasks:
        gap, interval = task.reading, task.reading_interval
        if of == "choosing" and task.choosing and task.choosing_interval:
            gap, interval = task.choosing, task.choosing_interval
        rows.append(ForestRow(name=task.name, delta=gap.delta, interval=interval))
    asks = question(result, of)
    for name, mean in ((THESE, asks.these), (OTHERS, asks.others)):
        if mean:
            rows.append(ForestRow(name=name, delta=mean.delta, interval=mean.interval, answer=mean.answer))
    return rows


def over(result: StudyResult, of: Asked) -> str:
    """Name of what the claim is held against."""
    planned = result.planned.against if result.planned else "its control"  # results of older versions
    return "none" if of == "reading" else arm_words(result.control or planned)


def study_answer(result: StudyResult) -> list[str]:
    """A sentence or two for every question, the claim's first; that nothing was learnt, where that is so."""
    if nothing_learnt(result.tasks):
        return [NOTHING]
    idle = [task.name for task in result.tasks if not task.learnt]
    note = [f"No tagger learnt anything on {', '.join(idle)}, which counts all the same."] if idle else []
    return [*(_answered(result, of) for of in asked(result)), *note]


def _answered(result: StudyResult, of: Asked) -> str:
    asks, rows = question(result, of), forest_rows(result, of)
    n, named, answer = len(result.tasks), {row.name: row for row in rows if row.answer}, asks.these.answer
    assert answer  # something was learnt
    where = "on this task" if n == 1 else f"on these {n} tasks on average"
    these = f"{of.capitalize()} {_DID[answer]} {where}: {named[THESE].points} points of score over "
    if asks.others is None or not asks.others.answer:
        return f"{these}{over(result, of)}. One task says nothing of others like it."
    wide = f", which is wide as there are only {n} tasks" if n < FEW else ""
    return f"{these}{over(result, of)}. {_HOLDS[asks.others.answer]}: {named[OTHERS].points}{wide}."


def forest(result: StudyResult, of: Asked) -> go.Figure:
    """Differences with their intervals about zero. An interval that would dwarf the others is cut, with an arrow."""
    rows = forest_rows(result, of)
    names = list(labels([row.name for row in rows], 24).values())
    fig = figure(120 + 36 * len(rows), x=f"points of the score<br>over {plain(over(result, of))}", y="")
    fig.add_vline(x=0, line={"dash": "dash", "width": 1.5, "color": _LINE})
    fig.add_hline(y=len(rows) - len(result.tasks) - 0.5, line={"width": 1, "color": _LINE})
    low, high = _room(rows)
    for row, name in zip(rows, names, strict=True):
        _row(fig, row, name, low, high)
    fig.update_xaxes(range=[low, high])
    fig.update_yaxes(type="category", categoryorder="array", categoryarray=names[::-1], showgrid=True)
    return fig


def _room(rows: Sequence[ForestRow]) -> Interval:
    """The ends of the axis: 0, every task and the mean on these; of others as much again at most."""
    known = [row for row in rows if row.known]
    ends = [0.0, *(row.delta for row in rows), *(end for row in known if row.name != OTHERS for end in row.interval)]
    width = max(ends) - min(ends) or 1.0
    wide = [end for row in known for end in row.interval]
    low, high = min(ends), max(ends)
    return max(min(low, *wide, low), low - width / 2) - width / 20, min(
        max(high, *wide, high), high + width / 2
    ) + width / 20


def _row(fig: go.Figure, row: ForestRow, name: str, low: float, high: float) -> None:
    colour = _COLOURS[row.answer] if row.answer else _TASK
    if row.known:
        ends = [max(row.interval[0], low), min(row.interval[1], high)]
        cut = [
            symbol if end != own else "line-ns" for symbol, end, own in zip(_ARROWS, ends, row.interval, strict=True)
        ]
        fig.add_scatter(
            x=ends,
            y=[name, name],
            mode="lines+markers",
            line={"width": 3, "color": colour},
            marker={"symbol": cut, "size": 10, "color": colour, "line": {"width": 2, "color": colour}},
            hoverinfo="skip",
            showlegend=False,
            cliponaxis=False,
        )
    fig.add_scatter(
        x=[row.delta],
        y=[name],
        mode="markers",
        marker={"symbol": "diamond" if row.answer else "circle", "size": 14 if row.answer else 11, "color": colour},
        hovertemplate=f"%{{y}}: {row.points}<extra>{row.answer or 'exploratory'}</extra>",
        showlegend=False,
    )


_ARROWS = ("triangle-left", "triangle-right")
