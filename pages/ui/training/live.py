"""A training run on the page: its live curves, the queue, a restart with less memory, and its result."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from statistics import mean

import streamlit as st

from core import terms
from core.errors import CorpusError
from core.experiment import results, words
from core.experiment.result import baseline_words, nothing_learnt
from core.importing import view as corpora
from core.projects import runs
from core.projects.titles import run_titles
from core.runs.events import RunState
from core.runs.result import read
from core.runs.run import Run
from core.shown import count, duration
from core.stats.calibration import FEWEST
from core.tagging import plot
from core.tagging import result as taggers
from core.tagging import view as training
from core.tagging.evaluations import FinetuneResult, OverSeeds
from core.tagging.view import Metric
from core.training.saved_models import PretrainResult
from core.training.settings import ROUNDS, WEIGHTS
from pages.ui.frame import guard
from pages.ui.project import page_link
from pages.ui.results.pair import DECODINGS, MACRO, OF_TYPES, with_interval
from pages.ui.runs.links import attach
from pages.ui.runs.panel import headline, progress
from pages.ui.widgets import entity_html, finding, is_dark, plain, pressed, table

POLL = 2.0  # seconds between updates
OVERALL = "all types"
HELD_OUT = {"dev_loss_task": "held-out sentences of the task corpus", "dev_loss_general": "held-out general text"}
SMALL = {
    "learning_rate": "Learning rate",
    "grad_norm": "Gradient norm, before clipping",
    "tokens_per_second": "Tokens per second",
    "gpu_memory_gb": "GPU memory, most taken (GB)",
    "gpu_used_gb": "GPU memory in use (GB)",
    "gpu_busy": "GPU busy (%)",
}
SIDE_BY_SIDE = 3  # small charts in a row

STAGES = {  # {stage of a tagger's training: description}; "" is the main stage
    "": "",
    "head": "the head alone",
    "first": "on the first corpus",
    "distant": "on the names of lists",
    **{f"student{number}": f"on pseudo-labels, {number}" for number in range(1, len(WEIGHTS) + ROUNDS)},
}
LOSSES = {f"{stage}_loss".lstrip("_"): words or "training" for stage, words in STAGES.items()}
SCORES = {f"{stage}_dev_f1".lstrip("_"): words for stage, words in STAGES.items()}
CURVES = {
    **SMALL,
    **HELD_OUT,
    "loss": "Training loss",
    "dev_f1": terms.DECIDING.named,
    f"dev_f1{training.WITHIN}": f"{terms.DECIDING.named}, within epochs",
}


def live(run_id: str, state: RunState) -> None:
    """Draw the curves of a training run. They are updated in a fragment that does not contain the fields above them."""
    trainings = training.trainings(run_id)
    config = runs.get(run_id).manifest.config
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = _which(run_id, trainings, state.active) if config.get("arms") else None
        kind = _training(run_id, shown).manifest.kind
        types = _types(run_id, config.get("train")) if kind == "finetune" else []
        over = st.segmented_control(
            "Axis", [plot.STEPS, plot.EPOCHS], default=plot.STEPS, required=True, key=f"training.axis.{run_id}"
        )
    every = POLL if state.active else None
    if config.get("arms"):
        st.fragment(run_every=every)(_every_tagger)(run_id)
    st.fragment(run_every=every)(_curves)(run_id, shown, types, kind, over)


def _training(run_id: str, shown: str | None) -> Run:
    """Return the run whose curves to draw: `shown`, else the latest training within `run_id`, else `run_id` itself."""
    return runs.get(shown) if shown else (training.trainings(run_id) or [runs.get(run_id)])[-1]


def _which(run_id: str, trainings: Sequence[Run], active: bool) -> str | None:
    """Ask which training of an experiment to show, and return its id.

    Return None, the default, for the running training, or for the last one if the experiment has ended.
    """
    names = run_titles(trainings)
    latest = "the running one" if active else "the last one"
    return st.selectbox(
        "Training", [None, *names], format_func=lambda name: names.get(name, latest), key=f"training.part.{run_id}"
    )


def _types(run_id: str, train: str | None) -> list[str]:
    """Ask for entity types whose F1 to draw beside F1 over all types. Return them. Default: the two most frequent.

    train: fingerprint of the training set.
    """
    if not train:
        return []
    try:
        counted = corpora.find(train).types
    except CorpusError:
        return []
    types = sorted(counted, key=lambda name: -counted[name])
    return st.multiselect(
        "Score of", types, types[:2], key=f"training.types.{run_id}", placeholder="all types together"
    )


def _every_tagger(run_id: str) -> None:
    """Draw the dev F1 of all taggers that an experiment has trained so far in one chart."""
    with guard():
        scores = training.tagger_curves(run_id)
        if len(scores) < 2:
            return
        drawn = [plot.Line(name=each.variant, part=each.tagger, steps=each.epochs, values=each.f1) for each in scores]
        heading = f"{terms.DECIDING.named} of all {len(scores)} taggers so far"
        st.markdown(f"**{heading}**")
        figure = plot.curves(drawn, y=terms.DECIDING.named, x=plot.EPOCHS, height=220, dark=is_dark())
        best = "; ".join(f"{each.variant} {each.f1[each.epochs % 1 == 0].max():.1f}" for each in scores)
        st.altair_chart(figure, key="training.chart.taggers", alt=f"{heading}, over epochs; best scores: {best}")


def _curves(run_id: str, shown: str | None, types: Sequence[str], kind: str, over: str) -> None:
    with guard():
        run = _training(run_id, shown)
        # If the experiment now trains another kind of model, rerun the page: only taggers have the field for types.
        if run.manifest.kind != kind:
            st.rerun(scope="app")
        trainings = training.trainings(run_id)
        if not trainings:
            st.caption("Curves show here as soon as a model is trained.")
            return
        metrics = training.curves(run.id)
        if not metrics:
            st.caption("The first points appear after the first steps.")
            return
        if run.id != run_id:
            st.text(run_titles(trainings)[run.id])
        _numbers(metrics, runs.state(run_id))
        _charts(metrics, types, over)
        _watched(run.id)
        _table(metrics)


def _numbers(metrics: Sequence[Metric], state: RunState) -> None:
    last = {metric.name: metric.values[-1] for metric in metrics if not metric.type}
    with st.container(horizontal=True, key="training-numbers"):
        if "loss" in last:
            st.metric("Loss", f"{last['loss']:.3g}", width="content")
        if scores := [metric for metric in metrics if metric.name == "dev_f1" and not metric.type]:
            best = max(scores, key=lambda metric: metric.values.max())
            at = int(best.steps[best.values.argmax()])
            of = f", seed {best.seed}" if len(scores) > 1 else ""
            st.metric(
                f"Best {terms.DECIDING.word}",
                f"{best.values.max():.1f}",
                width="content",
                help=f"At step {at:,}{of}.",
            )
        if "tokens_per_second" in last:
            st.metric("Tokens per second", f"{last['tokens_per_second']:,.0f}", width="content")
        if "gpu_memory_gb" in last:
            st.metric("GPU memory", f"{last['gpu_memory_gb']:.1f} GB", width="content")
        if "gpu_busy" in last:
            st.metric("GPU busy", f"{last['gpu_busy']:.0f}%", width="content")
        if state.active and not state.cancelling:
            if (left := state.left(time.time())) is not None:
                st.metric("Left in all, about", duration(left), width="content")
            if state.eta is not None:
                st.metric("Left in this stage", duration(state.eta), width="content")


def _charts(metrics: Sequence[Metric], types: Sequence[str], over: str) -> None:
    metrics = training.joined(_in_epochs(metrics) if over == plot.EPOCHS else metrics)
    left, right = st.columns(2)
    with left:
        _chart(metrics, LOSSES, "Training loss", over=over)
    with right:
        if any(metric.name in SCORES for metric in metrics):
            types_drawn = {"": OVERALL, **{name: name for name in types}}
            _chart(metrics, SCORES, terms.DECIDING.named, types_drawn, over=over)
        else:
            _chart(metrics, HELD_OUT, "Held-out loss", over=over)
    small = [(name, heading) for name, heading in SMALL.items() if any(metric.name == name for metric in metrics)]
    if small:
        with st.expander("Learning rate, gradient norm and speed", icon=":material/speed:"):
            for start in range(0, len(small), SIDE_BY_SIDE):
                row = small[start : start + SIDE_BY_SIDE]
                for column, (name, heading) in zip(st.columns(SIDE_BY_SIDE), row, strict=False):
                    with column:
                        _chart(metrics, {name: heading}, heading, height=130, over=over)


def _in_epochs(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the curves with steps converted to epochs. Leave out curves of stages that have not finished an epoch."""
    ends: dict[tuple[str, int | None], int] = {}
    for metric in metrics:
        if metric.name in (*SCORES, *HELD_OUT) and metric.steps.max() > 0:
            ends.setdefault(_stage(metric), int(metric.steps[metric.steps > 0][0]))
    known = [metric for metric in metrics if _stage(metric) in ends]
    return [replace(metric, steps=metric.steps / ends[_stage(metric)]) for metric in known]


def _stage(metric: Metric) -> tuple[str, int | None]:
    """Return the stage and the seed of a curve. Each stage counts its steps from 0."""
    head = metric.name.partition("_")[0]
    return (head if head in STAGES else "", metric.seed)


def _chart(
    metrics: Sequence[Metric],
    names: Mapping[str, str],
    heading: str,
    types: Mapping[str, str] | None = None,
    *,
    over: str,
    height: int = 260,
) -> None:
    """Draw one chart of some metrics.

    names: {metric to draw: label of its line}. types: {entity type to draw: label of its line}, for metrics by type.
    over: the axis, steps or epochs. height: pixels.
    """
    wanted = list(types or {"": ""})
    drawn = [metric for metric in metrics if metric.name in names and metric.type in wanted]
    drawn.sort(key=lambda metric: wanted.index(metric.type))
    labels = [", ".join(filter(None, ((types or {}).get(each.type), names[each.name]))) for each in drawn]
    lines = [_line(metric, label, metrics[-1].seed) for metric, label in zip(drawn, labels, strict=True)]
    st.markdown(f"**{heading}**")
    if not lines:
        st.caption("No point yet: this is measured at the end of each epoch.")
        return
    dots = height > 200 and "loss" not in names
    figure = plot.curves(lines, y=heading, x=over, height=height, dots=dots, dark=is_dark())
    # All trainings have the same key, so that the browser updates the chart instead of drawing a new one.
    st.altair_chart(figure, key=f"training.chart.{heading}", alt=f"{heading} over {over}; a table is below")


def _line(metric: Metric, name: str, seed: int | None) -> plot.Line:
    """Return the line of a metric in a chart. seed: the seed in training; lines of other seeds are pale."""
    part = "" if metric.seed is None else f"seed {metric.seed}"
    return plot.Line(name=name, part=part, steps=metric.steps, values=metric.values, pale=metric.seed != seed)


def _watched(run_id: str) -> None:
    """Draw some dev sentences with the entities that the tagger found at its latest evaluation, and the gold labels."""
    now = training.watched_epoch(run_id)
    if now is None or not now.sentences:
        return
    types = sorted({entity.type for each in now.sentences for entity in each.gold.entities or ()})
    items = []
    for each in now.sentences:
        right = set(each.gold.entities or ()) == set(each.found.entities or ())
        labelled = "" if right else f"<br><small>labelled: {entity_html(each.gold, types)}</small>"
        items.append(f"<li>{'✓ ' * right}{entity_html(each.found, types)}{labelled}</li>")
    name = f"What the tagger finds in the {terms.DEV.word} after epoch {round(now.epoch, 1):g}"
    st.markdown(f"**{name}**")
    st.html(f'<ol class="w-sentences" aria-label="{escape(name)}">{"".join(items)}</ol>')


def _table(metrics: Sequence[Metric]) -> None:
    """Show the number of points in the charts, and a table with the last, lowest and highest value of each curve."""
    n = sum(len(metric.steps) for metric in metrics)
    step = max(int(metric.steps[-1]) for metric in metrics if metric.seed == metrics[-1].seed)
    words = [f"Step {step:,}", f"{count(n, 'point')}; the chart draws at most {plot.MOST:,}"]
    if metrics[0].seed != metrics[-1].seed:
        words.append(f"seed {metrics[-1].seed} in full colour, earlier seeds pale")
    st.caption(" · ".join(words))
    with st.expander("In numbers", icon=":material/table:"):
        rows = [
            {
                "curve": CURVES.get(metric.name, metric.name.replace("_", " ")),
                "type": metric.type or "all",
                "seed": "" if metric.seed is None else str(metric.seed),
                "points": len(metric.steps),
                "step": int(metric.steps[-1]),
                "last": float(metric.values[-1]),
                "lowest": float(metric.values.min()),
                "highest": float(metric.values.max()),
            }
            for metric in metrics
        ]
        headings = {name: name.capitalize() for name in rows[0]} | {"step": "Last step", "last": "Last value"}
        table(rows, headings, "Every curve in numbers")


RESULTS = "pages/6_Results.py"


def queue(run_id: str, key: str) -> None:
    """Show the other training runs that are running or waiting. Only one at a time uses the machine."""
    others = _others(run_id)
    if others:
        with st.container(border=True, key=f"{key}.queue"):
            st.markdown("**Also running or waiting. Only one training at a time uses the machine.**")
            st.fragment(run_every=POLL)(_queue)(run_id, others)


def _others(run_id: str) -> list[str]:
    """Return the ids of other training runs that are running or waiting, oldest first.

    They usually run in this order.
    """
    trainings = runs.own(*training.TRAININGS)
    return [run.id for run in reversed(trainings) if run.id != run_id and runs.state(run.id).active]


def _queue(run_id: str, others: Sequence[str]) -> None:
    with guard():
        if _others(run_id) != others:
            st.rerun(scope="app")
        for other in others:
            state = runs.state(other)
            with st.container(horizontal=True, horizontal_alignment="distribute"):
                headline(other, state)
                page_link("pages/5_Training.py", label="Show", query={"run": other})
            progress(state)


def smaller(run_id: str, state: RunState, key: str) -> None:
    """If a training may have failed for lack of memory, draw the button that starts it again with smaller batches.

    Draw nothing for an experiment that only another person allowed to send sentences to another computer.
    """
    # A system that runs out of memory may kill the process without a message. The run is then interrupted.
    if not (state.out_of_memory or state.state == "interrupted") or results.allowed_by_another(run_id):
        return
    instead = training.halved(run_id)
    if instead is None:
        if state.out_of_memory:
            st.warning(
                "One sentence at a time needs too much memory; choose a smaller encoder or a smaller max length."
            )
        return
    explanation = (
        "Halves the batch size, and accumulates gradients over twice as many batches. The steps stay the same, but "
        "need less memory."
    )
    look = "primary" if state.out_of_memory else "secondary"
    label = "Start again with half the batch size and gradient accumulation"
    if pressed(label, f"{key}.smaller", type=look, icon=":material/splitscreen:", help=explanation):
        attach(runs.start(*instead), key)
        st.rerun()


def result(run_id: str) -> None:
    """Show the result of a finished training run: scores, the model's folder, and how to use the model."""
    kind = runs.get(run_id).manifest.kind
    {"pretrain": _pretrained, "finetune": _finetuned, "experiment": _experiment, "study": _study}[kind](run_id)
    if kind != "pretrain":
        page_link(
            RESULTS,
            label="Full result on the page Results",
            icon=":material/leaderboard:",
            query={"run": run_id},
        )
    if kind in ("pretrain", "finetune"):
        _model(run_id)


def _pretrained(run_id: str) -> None:
    result = read(runs.get(run_id), PretrainResult)
    perplexity = result.pseudo_perplexity
    with st.container(horizontal=True):
        st.metric("Sentences", f"{result.sentences:,}", width="content")
        st.metric("Pseudo-perplexity before", f"{perplexity.before:,.1f}", width="content")
        st.metric("after", f"{perplexity.after:,.1f}", width="content", help="On held-out text; lower is better.")
        st.metric("Tokens per second", f"{result.tokens_per_second:,.0f}", width="content")
    if result.head_fitted:
        st.info(
            "The encoder came without a vocabulary head, so a head was trained first, with the encoder frozen. If the "
            "loss falls fast at first, only the head is learning."
        )


def _finetuned(run_id: str) -> None:
    tuned = results.tuned(run_id)
    test, dev = tuned.test, tuned.dev.micro_f1
    with st.container(horizontal=True):
        if test:
            of = "one seed" if test.sd is None else f"± {test.sd:.1f} over {count(len(test.micro_f1), 'seed')}"
            st.metric("Test score (F1)", f"{test.mean:.1f}", of, delta_color="off", delta_arrow="off", width="content")
        if test and test.macro_f1:
            st.metric("Macro, all types alike", f"{mean(test.macro_f1):.1f}", width="content")
        st.metric(f"{terms.DECIDING.named}, best seed", f"{max(dev):.1f}", width="content")
        st.metric("Kept epoch", ", ".join(map(str, tuned.best_epoch)), width="content")
    if collapsed := taggers.collapsed_seeds(runs.get(run_id)):
        st.warning(
            f"Seed {', '.join(map(str, collapsed))} learnt nothing: its dev F1 is no better than chance. Train for "
            "more epochs, at a higher rate or on more sentences."
        )
    if tuned.overlap_words:
        st.warning(plain(tuned.overlap_words))
    if tuned.ceiling_words:
        st.warning(plain(tuned.ceiling_words))
    if test:
        _by_type(test)
        _decodings(test)
    _confidence(run_id, tuned)


def _by_type(test: OverSeeds) -> None:
    """Show the test F1 of each entity type with its interval, the best type first, and the macro F1."""
    types = sorted(test.by_type.items(), key=lambda pair: -pair[1])
    rows = [{"type": name, "f1": with_interval(f1, test.intervals.get(name))} for name, f1 in types]
    rows += [{"type": MACRO, "f1": f"{mean(test.macro_f1):.2f}"}] if test.macro_f1 else []
    with st.expander("Test score by type", icon=":material/table:"):
        table(rows, {"type": "Type", "f1": "Score (F1)"}, "Test score by type")
        st.caption(OF_TYPES)


def _decodings(test: OverSeeds) -> None:
    """Show the test F1 of each seed by decoding."""
    rows = [
        {"name": name, "how": DECODINGS.get(name, ""), "f1": ", ".join(f"{f1:.1f}" for f1 in f1s)}
        for name, f1s in test.decodings.items()
    ]
    if rows:
        with st.expander("Test score by decoding", icon=":material/alt_route:"):
            columns = {"name": "Decoding", "how": "Tags that are used", "f1": "Score (F1) of each seed"}
            table(rows, columns, "Test score by how tags are decoded")


KEPT = {
    "least": "At least",
    "entities": "Entities kept",
    "precision": "Precision (%)",
    "recall": "Recall (%)",
    "f1": "Score (F1)",
}


def _confidence(run_id: str, tuned: FinetuneResult) -> None:
    """Show how well confidences are calibrated, and precision and recall by minimum confidence."""
    rows = results.least_confidences(run_id)
    if not rows or not tuned.dev.calibration:
        return
    place, seed = taggers.kept_seed(runs.get(run_id))
    with st.expander("Confidence of the tagger, and the effect of a minimum confidence", icon=":material/percent:"):
        for part, split in ((terms.DEV, tuned.dev), (terms.TEST, tuned.test)):
            for sure in split.calibration[place : place + 1] if split else ():
                st.markdown(
                    f"On the {part.word}, seed {seed}, which was kept, has a mean confidence of {sure.confidence:.2f}, "
                    f"and {sure.right:.2f} of its entities are right. The calibration error is {sure.before:.3f}"
                    + (
                        f" before and {sure.after:.3f} after the temperature {sure.temperature:.2f}, which was fitted "
                        f"on the {terms.DEV.word}."
                        if sure.fitted
                        else f". No temperature was fitted, because fewer than {FEWEST} entities were right on the "
                        f"{terms.DEV.word}, or fewer than {FEWEST} were wrong."
                    )
                )
        lines = [
            {
                "least": f"{row.least:.2f}",
                "entities": f"{row.entities:,}",
                "precision": f"{row.precision:.1f}",
                "recall": f"{row.recall:.1f}",
                "f1": f"{row.f1:.1f}",
            }
            for row in rows
        ]
        table(
            lines,
            KEPT,
            f"Precision and recall on the {terms.DEV.word} by minimum confidence, of the seed that was kept",
        )
        if training.has_model(run_id):
            st.caption(
                "`--min-confidence 0.8`, added to the command below, leaves out entities with a lower confidence."
            )


def _experiment(run_id: str) -> None:
    finding(results.finding(run_id))
    board = results.board(run_id).leaderboard
    rows = [
        {
            "arm": words.line_name(row),
            "mean": f"{row.mean:.1f}" + (f" ± {row.sd:.1f}" if row.sd is not None else ""),
            "delta": "" if row.verdict in ("baseline", "nothing learnt") else f"{row.delta:+z.1f}",
            "verdict": row.verdict,
        }
        for row in board
    ]
    headings = {
        "arm": "Variant",
        "mean": "Test score (F1)",
        **({} if nothing_learnt(board) else {"delta": f"against {baseline_words(board)}"}),
        "verdict": "Verdict",
    }
    table(rows, headings, "Leaderboard")


def _study(run_id: str) -> None:
    finding(results.finding(run_id))


NO_MODEL = "The model is not in this project: it was deleted, or left out of the project file. The scores are complete."


def _model(run_id: str) -> None:
    if not training.has_model(run_id):
        st.info(NO_MODEL, icon=":material/link_off:")
        return
    st.markdown("**The model** is in this folder:")
    st.code(training.model(run_id), language=None, wrap_lines=True)
    with st.expander("How to load it", icon=":material/code:"):
        for what, code in training.loading(run_id).items():
            st.markdown(f"**{what}**")
            st.code(code, language="bash" if code.startswith("python") else "python", wrap_lines=True)
    if card := training.card(run_id):
        with st.expander("Model card", icon=":material/badge:"):
            st.code(card, language="markdown", wrap_lines=True)
