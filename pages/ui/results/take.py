"""A table of all `finetune` runs, the options in which two of them differ, and exports of reports and models."""

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

import streamlit as st

from core import shown_command as commands
from core import terms
from core.experiment import deliver, results
from core.experiment.report.parts import Cover
from core.projects import runs
from core.projects import view as projects
from core.shown import duration
from core.tagging import view as taggers
from pages.ui.frame import guard
from pages.ui.project import later
from pages.ui.results.board import spread
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import pressed, same_command, size, table

REPORTS: Mapping[deliver.Format, tuple[str, str]] = {
    "pdf": ("Report (.pdf)", "application/pdf"),
    "docx": ("Report (.docx)", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    "html": ("Report (.html)", "text/html"),
}
NO_MODELS = (
    "The models of these taggers are not in this project: they were deleted, or left out of the project file. The "
    "scores are complete."
)
COPIED = "results.take.copied"  # session key: {(run, rare words are included): folder of the last copy}
FIELD = 200  # width of a field in pixels; four fields fit side by side

ZIP_LIMIT = 200_000_000  # bytes; larger files are not offered as a download
COLUMNS = {
    "name": "Training",
    "state": "State",
    "seeds": "Seeds",
    "dev": f"Best {terms.DECIDING.word}",
    "epoch": "At epoch",
    "f1": "Test score",
}


def trainings() -> None:
    """Show a table of all `finetune` runs, including those of experiments, and compare the options of two."""
    rows = results.tagger_rows()
    if not rows:
        st.info("No tagger has been trained yet.")
        return
    called = taggers.names([row.run for row in rows])
    lines = [
        {
            "name": called[row.run],
            "state": "finished" if row.state == "succeeded" else row.state,
            "seeds": row.seeds,
            "dev": spread(row.dev_f1, row.dev_sd),
            "epoch": ", ".join(map(str, row.best_epoch)),
            "f1": spread(row.f1, row.sd),
        }
        for row in rows
    ]
    table(lines, COLUMNS, "Every fine-tuning run, newest first", wrapped=("name",))
    st.caption("Means over seeds ± spread. The leaderboard of an experiment has the gain of each variant.")
    if len(rows) > 1:
        _differences(called)


def _differences(names: Mapping[str, str]) -> None:
    st.subheader("Compare the options of two trainings", anchor=False)
    left, right = st.columns(2)
    ids, label = list(names), names.__getitem__
    # The keys contain the newest run, so that a new training is preselected.
    a = left.selectbox("First", ids, 0, label, key=f"results.apart.a.{ids[0]}")
    b = right.selectbox("Second", ids, 1, label, key=f"results.apart.b.{ids[0]}")
    rows = results.option_differences(a, b)
    if rows:
        table(
            [asdict(row) for row in rows],
            {"option": "Option", "a": "First", "b": "Second"},
            "Options in which the two differ",
        )
    else:
        st.caption("Their options are equal.")


def take_away(run_id: str | None, run_labels: Mapping[str, str]) -> None:
    """Draw the download buttons for the report, the tables and the models.

    run_id: a finished experiment; None for none. run_labels: {`finetune` run: name}, the taggers to offer.
    """
    if run_id is not None:
        report(run_id)
    if run_labels:
        st.subheader("A tagger", anchor=False)
        st.caption("An ordinary Hugging Face folder with a model card. It loads anywhere, without Winnow's code.")
        if here := with_models(run_labels):
            _model(here)


def with_models(run_labels: Mapping[str, str]) -> Mapping[str, str]:
    """Return the taggers of `run_labels` whose model is in this project.

    If none has its model here, offer to train one tagger again, and return it once it is trained.
    """
    known = taggers.here()
    here = {run: name for run, name in run_labels.items() if run in known}
    return here or _train_again(run_labels)


def _train_again(run_labels: Mapping[str, str]) -> Mapping[str, str]:
    """Offer to train one of these taggers again with one seed, and show the progress.

    Return {run: name} of the new tagger once it is trained, {} before.
    """
    wanted = taggers.retraining(run_labels)
    if wanted and wanted.run in taggers.here():
        return {wanted.run: wanted.name}
    st.info(NO_MODELS, icon=":material/link_off:")
    if wanted is None:
        st.caption("To use a tagger, start the experiment again on the page Training.")
    elif wanted.run:
        if run_panel(wanted.run, "results.again").state == "succeeded":
            st.rerun()
    else:
        time = f", about {duration(wanted.seconds)}" if wanted.seconds else ""
        if pressed(
            f"Train one tagger now{time}", "results.again.start", type="primary", icon=":material/model_training:"
        ):
            runs.start("finetune", wanted.options)
            st.rerun()
    return {}


def report(run_id: str) -> None:
    """Draw the fields of the report's cover, and download buttons for the report and tables of an experiment or study.

    run_id: the finished experiment or study.
    """
    st.subheader("The report and the table", anchor=False)
    st.caption(
        "The first page is for decision-makers: the question, the result, how sure it is, what to do, and the cost. "
        "The second page is technical."
    )
    with st.container(horizontal=True):
        typed = {
            name: st.text_input(
                name.capitalize(), text, key=f"results.report.{name}", max_chars=deliver.LONGEST, width=FIELD
            )
            for name, text in asdict(deliver.last_cover()).items()
        }
    deliver.keep_cover(cover := Cover(**typed))
    examples = False
    manifest = runs.get(run_id).manifest
    if manifest.kind == "experiment":
        examples = st.toggle("With three sentences of the test text", key="results.report.examples")
    with st.container(horizontal=True):
        for suffix, (label, mime) in REPORTS.items():
            _file(
                label,
                partial(deliver.report, run_id, suffix, cover, examples=examples),
                f"{projects.current().slug}-report.{suffix}",
                mime,
                "primary" if suffix == "pdf" else "secondary",
            )
    with st.container(horizontal=True):
        _file("Table (.csv)", lambda: deliver.board_csv(run_id), f"{run_id}.csv", "text/csv")
        _file("Table (.md)", lambda: deliver.board_markdown(run_id).encode(), f"{run_id}.md", "text/markdown")
    same_command("results.command", commands.command(manifest.kind, manifest.config))


def _file(label: str, data: Any, name: str, mime: str, kind: Any = "secondary") -> None:
    st.download_button(
        label,
        later(data),
        file_name=name,
        mime=mime,
        type=kind,
        icon=":material/download:",
        on_click="ignore",
        key=f"results.take.{name.rsplit('.', 1)[-1]}",
    )


def _model(run_labels: Mapping[str, str]) -> None:
    run_id = st.selectbox("Tagger", list(run_labels), format_func=run_labels.__getitem__, key="results.take.model")
    folder = deliver.model_folder(run_id)
    big = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    rare = _rare_words(run_id)
    with st.container(horizontal=True):
        if pressed(f"Copy the folder ({size(big)})", "results.take.copy", icon=":material/folder_copy:"):
            with guard():  # An error is shown here, and the rest of the page is still drawn.
                st.session_state[COPIED] = {(run_id, rare): str(deliver.export_model(run_id, rare=rare))}
        if big <= ZIP_LIMIT:
            _file("Model (.zip)", lambda: deliver.zip_model(run_id, rare=rare), f"{run_id}.zip", "application/zip")
    if copied := st.session_state.get(COPIED, {}).get((run_id, rare)):
        st.code(copied, language=None, wrap_lines=True)


def _rare_words(run_id: str) -> bool:
    """Return True to export the tagger with the words that it saw only once.

    If the tagger has such a list of words, warn the user, who can leave these words out.
    """
    words, once = deliver.words_held(run_id)
    if not words:
        return True
    st.warning(
        f"This tagger lists the {words:,} words of its training text, {once:,} of them seen only once, such as names."
        " Everyone who gets the tagger can read this list.",
        icon=":material/visibility:",
    )
    return not st.toggle(
        f"Leave out the {once:,} words seen once (the tagger then treats them as unknown)", key="results.take.rare"
    )
