"""The editor with which the user labels entities in the browser, and the progress of the queue."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any

import streamlit as st

from core import charts
from core.errors import ConfigError, WinnowError
from core.files import on_disk
from core.labelling import view as labelling
from core.labelling.answers import READ_IN, Progress
from core.paths import home
from core.shown import count, duration
from core.text.sentence import Entity
from core.text.words import token_places
from pages.ui.frame import ASSETS, looked
from pages.ui.widgets import plain

REFUSED = "label.refused"  # session key: why the last answer or change was not stored

HANDLED = "label.handled"  # session key: {browser tab: number of its last answer that was refused}

_editor = st.components.v2.component(
    "winnow_label",
    js=(ASSETS / "label.js").read_text(encoding="utf-8"),
    css=(ASSETS / "label.css").read_text(encoding="utf-8"),
)


def editor(run_id: str, annotator: str) -> None:
    """Draw the progress and the editor. The browser sends each answer, which reruns the page and is then stored.

    The editor is not a fragment, because a restarted server does not know the fragments of an open page.
    run_id: the run whose sentences are labelled. annotator: name of the person who labels, "" for none.
    """
    key = f"label.editor.{run_id}.{annotator}"
    sentences = labelling.to_label(run_id)
    looked(labelling.corpus_of_run(run_id))
    if refused := st.session_state.pop(REFUSED, ""):
        st.error(plain(refused), icon=":material/error:")
    done = labelling.progress(run_id, annotator)
    _progress(done, labelling.purpose(run_id))
    everyones, types = labelling.answered(run_id), labelling.types(run_id)
    answers = everyones.of(annotator)
    # Entities that the annotator marked last, also before a flag, a skip or an undo.
    marked = {one.place: one.entities for one in answers.history if one.action == "label" or one.entities}
    if not types:
        st.info("Add a type first, such as PARTY.", icon=":material/label:")
    colours = charts.ENTITY_COLOURS
    sent = _editor(
        key=key,
        data={
            "run": run_id,
            "annotator": annotator,
            "tasks": [_task(task, marked.get(place)) for place, task in enumerate(sentences)],
            "types": [
                {"name": name, "colour": charts.css_colour(colours[i % len(colours)])} for i, name in enumerate(types)
            ],
            "answers": {
                str(place): {"action": one.action, "entities": [[e.start, e.end, e.type] for e in one.entities]}
                for place, one in answers.latest.items()
            },
            "order": [one.place for one in answers.history if one.action != "reopen"],
            "stored": _handled(run_id),
        },
        on_outbox_change=partial(_received, run_id, key),
    )
    # Also store here, because after a restart of the server Streamlit skips the callback for the first message.
    if _store(run_id, sent.get("outbox")):
        st.rerun()
    st.caption(
        "Keys: 1 to 9 set the type · ← → go to another word · ↑ ↓ go to another entity · Shift + ← → move the end of "
        "an entity, Shift + ↑ ↓ its start · Backspace removes it · Enter accepts the sentence · S skips it · F flags "
        "it · U undoes the last action. You can also use the mouse."
    )
    if done.flagged:
        st.button(
            f"Show {done.flagged:,} flagged again",
            key="label.flagged",
            icon=":material/flag:",
            on_click=reported,
            args=(labelling.reopen_flagged, run_id, annotator),
        )
    if done.unread:  # The warning is below the editor, so that the editor does not move.
        st.warning(
            f"{count(done.unread, 'sentence')} accepted as suggested in less than {READ_IN:g} seconds, too fast to "
            "read. Wrong suggestions that are accepted become wrong labels.",
            icon=":material/speed:",
        )


def reported(change: Callable[..., None], *values: object) -> None:
    """Call `change` in a callback, where an error would replace the page. The editor shows the error instead."""
    try:
        with on_disk(home()):
            change(*values)
    except WinnowError as error:
        st.session_state[REFUSED] = str(error)


def _task(task: labelling.Task, marked: Sequence[Entity] | None = None) -> dict[str, Any]:
    """Return a sentence as the editor needs it. marked: entities to show instead of the suggestions."""
    sentence = task.sentence
    entities = (sentence.entities or ()) if marked is None else marked
    return {
        "text": sentence.text,
        "place": sentence.place,
        "places": _in_javascript(sentence.text, token_places(sentence.text, sentence.tokens)),
        "spans": [[entity.start, entity.end, entity.type] for entity in entities],
        "why": list(task.queued.why),
    }


def _in_javascript(text: str, places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return places in a text as JavaScript counts them: a character above U+FFFF, such as an emoji, counts twice."""
    before = list(accumulate((1 + (char > "\uffff") for char in text), initial=0))
    return [(before[start], before[end]) for start, end in places]


def _handled(run_id: str) -> dict[str, int]:
    """Return {browser tab: number of its last answer that was stored or refused}."""
    stored, refused = labelling.answered(run_id).stored(), st.session_state.get(HANDLED, {})
    return {client: max(stored.get(client, -1), refused.get(client, -1)) for client in {**stored, **refused}}


def _received(run_id: str, key: str) -> None:
    # An error in a callback would replace the page. `editor` tries again and shows the error.
    with suppress(WinnowError), on_disk(home()):
        _store(run_id, st.session_state[key].get("outbox"))


def _store(run_id: str, outbox: Any) -> int:
    """Store those of the browser's answers that are new, and return their number.

    If an answer cannot be stored, the user sees the error once, and the browser does not send the answer again.
    """
    stored = _handled(run_id)
    new = [one for one in (outbox or {}).get("answers") or [] if one["number"] > stored.get(one["client"], -1)]
    for one in new:
        try:
            labelling.answer(run_id, [one])
        except ConfigError as error:
            st.session_state[REFUSED] = str(error)
            st.session_state.setdefault(HANDLED, {})[one["client"]] = one["number"]
    return len(new)


def _progress(done: Progress, purpose: str) -> None:
    parts = [f"{done.labelled:,} of {done.of:,} {'checked' if purpose == 'review' else 'labelled'}"]
    parts += [f"{n:,} {what}" for n, what in ((done.skipped, "skipped"), (done.flagged, "flagged")) if n]
    parts += [duration(done.seconds)] if done.seconds >= 1 else []
    st.progress((done.of - done.left) / max(done.of, 1), text=" · ".join(parts))
    types = ", ".join(f"{plain(name)} {n:,}" for name, n in done.types.items())
    if types or purpose != "review":
        st.caption(types or "No entity yet.")
