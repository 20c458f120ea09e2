"""One tagger, or two side by side, on typed sentences."""

from collections.abc import Mapping, Sequence

import streamlit as st

from core.experiment import deliver
from core.projects import runs
from core.shown import count
from core.text.sentence import Sentence
from pages.ui.presses import submitted
from pages.ui.results.pair import note_differences
from pages.ui.results.take import with_models
from pages.ui.runs.panel import run_panel
from pages.ui.widgets import entity_html, plain, sentence_list

TRIES = "results.try.runs"  # {`finetune` run: `predict` run}, in the order of the form
READ = "results.try.read"  # {`finetune` run: tagged sentences}, kept in memory only


def try_it(run_labels: Mapping[str, str]) -> None:
    """Tag typed sentences in separate runs, because no page loads a model."""
    if not (run_labels := with_models(run_labels)):
        return
    with st.form("results.try.form"):
        left, right = st.columns(2)
        model = left.selectbox("Tagger", list(run_labels), format_func=run_labels.__getitem__, key="results.try.model")
        other = right.selectbox(
            "Beside it",
            list(run_labels),
            None,
            run_labels.__getitem__,
            key="results.try.other",
            placeholder="no second tagger",
        )
        text = st.text_area("Sentences, one per line", key="results.try.text", max_chars=20_000)
        st.caption("What you type is deleted from this machine's disk as soon as it has been shown.")
        sent = submitted("Find entities", "results.try.start", type="primary", icon=":material/search:")
    if sent:
        _forget()
        models = dict.fromkeys(one for one in (model, other) if one)
        st.session_state[TRIES] = {one: deliver.try_sentences(one, text) for one in models}
    if tries := st.session_state.get(TRIES, {}):
        _outcome(tries, run_labels)


def _forget() -> None:
    """Delete the runs and sentences of the previous trial."""
    for run_id in st.session_state.get(TRIES, {}).values():
        deliver.forget_try(run_id)
    st.session_state[READ] = {}


def _outcome(tries: Mapping[str, str], run_labels: Mapping[str, str]) -> None:
    """Show the panel of each running trial and the sentences of finished ones, then delete these from disk."""
    read: dict[str, list[Sentence]] = st.session_state.setdefault(READ, {})
    for number, (column, (model, run_id)) in enumerate(zip(st.columns(len(tries)), tries.items(), strict=True)):
        with column:
            if model not in read and runs.state(run_id).state == "succeeded":
                read[model] = deliver.tagged_sentences(run_id)
            if model not in read and run_panel(run_id, f"results.try.{number}").state == "succeeded":
                st.rerun()
    _shown({model: read[model] for model in tries if model in read}, run_labels, deliver.known_types(list(tries)))
    for model in read:
        deliver.forget_try(tries[model])


def _shown(read: Mapping[str, Sequence[Sentence]], run_labels: Mapping[str, str], types: Sequence[str]) -> None:
    if len(read) == 2:
        note_differences(run_labels, list(read))
        _two_readings([run_labels.get(model, model) for model in read], list(read.values()), types)
        return
    for sentences in read.values():
        sentence_list(sentences, types, "What you typed, with the entities that were found")
        if not any(sentence.entities for sentence in sentences):
            st.caption("The tagger found no entity.")


def _two_readings(names: Sequence[str], read: Sequence[Sequence[Sentence]], types: Sequence[str]) -> None:
    """Show the predictions of two taggers, one sentence per row."""
    pairs = list(zip(*read, strict=True))
    same = sum(a == b for a, b in pairs)
    st.markdown(f"**A**: {plain(names[0])}. **B**: {plain(names[1])}.")
    st.caption(f"A and B agree on {same:,} of {count(len(pairs), 'sentence')}.")
    head = "".join(f'<th scope="col">{name}</th>' for name in ("A", "B", "Same"))
    body = "".join(
        f"<tr><td>{entity_html(a, types)}</td><td>{entity_html(b, types)}</td><td>{'yes' if a == b else 'no'}</td></tr>"
        for a, b in pairs
    )
    name = "What you typed, with the entities that each of two taggers found"
    st.html(
        f'<div class="w-scroll" tabindex="0" role="region" aria-label="{name}"><table class="w-table w-beside">'
        f"<caption>{name}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
