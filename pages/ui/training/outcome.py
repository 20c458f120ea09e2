"""Around a training: the queue, a restart with less memory, and the result."""

from collections.abc import Sequence
from statistics import mean

import streamlit as st

from core import terms
from core.experiment import results, words
from core.experiment.result import baseline_words
from core.projects import runs
from core.runs.events import RunState
from core.shown import count
from core.tagging import view as training
from core.tagging.evaluations import FinetuneResult, OverSeeds
from pages.ui.finding import finding
from pages.ui.frame import guard
from pages.ui.presses import pressed
from pages.ui.project import page_link
from pages.ui.results.pair import DECODINGS, MACRO, OF_TYPES, with_interval
from pages.ui.runs.links import attach
from pages.ui.runs.panel import POLL, headline, progress
from pages.ui.widgets import table

RESULTS = "pages/6_Results.py"


def queue(run_id: str, key: str) -> None:
    """Show other running and queued trainings; one at a time uses the device."""
    others = _others(run_id)
    if others:
        with st.container(border=True, key=f"{key}.queue"):
            st.markdown("**Also at work, or waiting: one training at a time has the machine**")
            st.fragment(run_every=POLL)(_queue)(run_id, others)


def _others(run_id: str) -> list[str]:
    """Return the queue, oldest first, which is usually the order of their turns."""
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
    """Offer to start the training again with less memory, if it failed for lack of memory or may have."""
    # A system that runs out of memory may kill a process before it can say so: it reads as interrupted.
    if not (state.out_of_memory or state.state == "interrupted"):
        return
    instead = training.halved(run_id)
    if instead is None:
        if state.out_of_memory:
            st.warning("One sentence at a time was too much; choose a smaller encoder, or a smaller max length.")
        return
    explanation = (
        "Half as many sentences at once, twice as often before each step: the same steps, about half the memory."
    )
    look = "primary" if state.out_of_memory else "secondary"
    label = "Start again with half the batch and accumulation"
    if pressed(label, f"{key}.smaller", type=look, icon=":material/splitscreen:", help=explanation):
        attach(runs.start(*instead), key)
        st.rerun()


def result(run_id: str) -> None:
    """Show the result: scores, the model's folder, and how to use it."""
    kind = runs.get(run_id).manifest.kind
    {"pretrain": _pretrained, "finetune": _finetuned, "experiment": _experiment, "study": _study}[kind](run_id)
    if kind != "pretrain":
        page_link(
            RESULTS,
            label="Everything about it on the page Results",
            icon=":material/leaderboard:",
            query={"run": run_id},
        )
    if kind in ("pretrain", "finetune"):
        _model(run_id, training.model(run_id))


def _pretrained(run_id: str) -> None:
    result = training.pretrained(run_id)
    perplexity = result.pseudo_perplexity
    with st.container(horizontal=True):
        st.metric("Sentences", f"{result.sentences:,}", width="content")
        st.metric("Pseudo-perplexity before", f"{perplexity.before:,.1f}", width="content")
        st.metric("after", f"{perplexity.after:,.1f}", width="content", help="On held-out text; lower is better.")
        st.metric("Tokens per second", f"{result.tokens_per_second:,.0f}", width="content")
    if result.head_fitted:
        st.info(
            "The encoder came without a vocabulary head, so one was fitted first, the encoder frozen. A loss that "
            "falls fast at the beginning is that head's, and says nothing of the text."
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
        st.metric("Best epoch", ", ".join(map(str, tuned.best_epoch)), width="content")
    if collapsed := results.collapsed_seeds(run_id):
        st.warning(
            f"Seed {', '.join(map(str, collapsed))} learnt nothing: its dev F1 is no better than chance. Train for "
            "more epochs, at a higher rate or on more sentences."
        )
    if tuned.overlap_words:
        st.warning(tuned.overlap_words)
    if tuned.ceiling_words:
        st.warning(tuned.ceiling_words)
    if test:
        _by_type(test)
        _decodings(test)
    _confidence(run_id, tuned)


def _by_type(test: OverSeeds) -> None:
    """Show F1 of every type with its interval, best first, and the macro F1."""
    types = sorted(test.by_type.items(), key=lambda pair: -pair[1])
    rows = [{"type": name, "f1": with_interval(f1, test.intervals.get(name))} for name, f1 in types]
    rows += [{"type": MACRO, "f1": f"{mean(test.macro_f1):.2f}"}] if test.macro_f1 else []
    with st.expander("Test score by type", icon=":material/table:"):
        table(rows, {"type": "Type", "f1": "Score (F1)"}, "Test score by type")
        st.caption(OF_TYPES)


def _decodings(test: OverSeeds) -> None:
    """Show the scores of the taggers with every decoding."""
    rows = [
        {"name": name, "how": DECODINGS.get(name, ""), "f1": ", ".join(f"{f1:.1f}" for f1 in f1s)}
        for name, f1s in test.decodings.items()
    ]
    if rows:
        with st.expander("Test score by decoding", icon=":material/alt_route:"):
            columns = {"name": "Decoding", "how": "What is taken", "f1": "Score (F1) of each seed"}
            table(rows, columns, "Test score by how tags are decoded")


KEPT = {
    "least": "At least",
    "entities": "Entities kept",
    "precision": "Precision (%)",
    "recall": "Recall (%)",
    "f1": "Score (F1)",
}


def _confidence(run_id: str, tuned: FinetuneResult) -> None:
    """Show how well confidences are calibrated, and what a minimum confidence costs."""
    rows = results.least_confidences(run_id)
    if not rows or not tuned.dev.calibration:
        return
    place, seed = results.kept_seed(run_id)
    with st.expander("How sure it is, and what a least confidence keeps", icon=":material/percent:"):
        for part, split in ((terms.DEV, tuned.dev), (terms.TEST, tuned.test)):
            for sure in split.calibration[place : place + 1] if split else ():
                st.markdown(
                    f"On {part.word} seed {seed}, which was kept, says {sure.confidence:.2f} on average where "
                    f"{sure.right:.2f} is right. Calibration error {sure.before:.3f} as it came, {sure.after:.3f} "
                    f"at the temperature {sure.temperature:.2f}, which was fitted on the {terms.DEV.word}."
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
            lines, KEPT, f"Precision and recall on the {terms.DEV.word} by least confidence, of the seed that was kept"
        )
        st.caption("`--min-confidence 0.8`, added to the command below, leaves out what is less sure than that.")


def _experiment(run_id: str) -> None:
    finding(results.finding(run_id))
    board = results.board(run_id).leaderboard
    rows = [
        {
            "arm": words.line_name(row),
            "mean": f"{row.mean:.1f}" + (f" ± {row.sd:.1f}" if row.sd is not None else ""),
            "delta": "" if row.verdict in ("baseline", "nothing learnt") else f"{row.delta:+z.1f}",
            "verdict": row.verdict,
            "why": row.why,
        }
        for row in board
    ]
    headings = {
        "arm": "Variant",
        "mean": "Test score (F1)",
        "delta": f"against {baseline_words(board)}",
    }
    headings |= {"verdict": "Verdict", "why": "Why"}
    table(rows, headings, "Leaderboard", wrapped=("why",))


def _study(run_id: str) -> None:
    finding(results.finding(run_id))


def _model(run_id: str, folder: str) -> None:
    st.markdown("**The model** lies in a folder:")
    st.code(folder, language=None, wrap_lines=True)
    with st.expander("How to load it", icon=":material/code:"):
        for what, code in training.loading(run_id).items():
            st.markdown(f"**{what}**")
            st.code(code, language="bash" if code.startswith("python") else "python", wrap_lines=True)
    if card := training.card(run_id):
        with st.expander("Model card", icon=":material/badge:"):
            st.code(card, language="markdown", wrap_lines=True)
