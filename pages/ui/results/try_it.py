"""A form to try one or two taggers on a sentence or a document, and the text with the entities that they find."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape

import streamlit as st

from core import charts
from core.corpora.documents.extract import Paragraph
from core.shown import count, listed
from core.tagging import trial, trial_exports
from core.tagging import view as taggers
from core.tagging.trial import Compared, Difference, Found, Text
from pages.ui.project import later, page_link
from pages.ui.results.pair import note_differences
from pages.ui.results.take import with_models
from pages.ui.runs.links import OPEN, TRAINING
from pages.ui.widgets import plain, submitted

TAB = "Try it"
TRIED = "results.try.tried"  # session key: the text and the entities found in it, which are stored nowhere else

MEGABYTES = 50  # size limit of a file

# The page warns if a type is not found in the text and the tagger's recall of the type on the test set is below this.
OFTEN = 0.5

LOW = 0.7  # confidence below which an entity is marked as uncertain

SHAPES = {"": "", "only here": " w-invented", "other type": " w-wrong-type", "other border": " w-wrong-border"}
EXPORTS: Mapping[str, tuple[str, str, Callable[..., bytes]]] = {
    "docx": (
        "Word with comments (.docx)",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        trial_exports.docx,
    ),
    "csv": ("Table (.csv)", "text/csv", trial_exports.csv),
    "json": ("Data (.json)", "application/json", trial_exports.json),
}
Tried = tuple[Text, Mapping[str, Found]]  # the text, and {`finetune` run: entities that its tagger found}


def query() -> dict[str, str]:
    """Return the URL parameters of a link to the tab "Try it" of the page Results."""
    return {OPEN: "try"}


def try_it(run_labels: Mapping[str, str]) -> None:
    """Draw the form, and the entities found in the last text.

    run_labels: {`finetune` run: name}, the taggers that the form lists first.
    """
    here = taggers.here()
    names = {run: here[run] for run in (*run_labels, *here) if run in here}
    if not names:
        _no_tagger(run_labels)
        return
    trial.ready()
    _form(names)
    tried: Tried | None = st.session_state.get(TRIED)
    if tried and all(run in names for run in tried[1]):
        _outcome(*tried, names)


def _no_tagger(run_labels: Mapping[str, str]) -> None:
    if run_labels:
        with_models(run_labels)
        return
    st.info("This project has no tagger yet. Train one to try it here.")
    page_link(TRAINING, label="Train a tagger", icon=":material/model_training:")


def _form(names: Mapping[str, str]) -> None:
    with st.form("results.try.form"):
        left, right = st.columns([3, 2])
        pasted = left.text_area(
            "A sentence, or several pages", key="results.try.text", height=200, max_chars=trial.MOST
        )
        file = right.file_uploader(
            "Or a PDF, Word or text file", trial.ENDINGS, key="results.try.file", max_upload_size=MEGABYTES
        )
        model = right.selectbox("Tagger", list(names), format_func=names.__getitem__, key="results.try.model")
        other = None
        if len(names) > 1:
            other = right.selectbox(
                "Compare with",
                list(names),
                None,
                names.__getitem__,
                key="results.try.other",
                placeholder="nothing",
                help="A second tagger for the same text, for example without pre-training.",
            )
        with st.container(horizontal=True, vertical_alignment="center"):
            sent = submitted("Find entities", "results.try.start", type="primary", icon=":material/search:")
            st.caption(
                "If you give a file, the text field is ignored. Your text is not stored in the project.",
                width="content",
            )
    if sent:
        st.session_state.pop(TRIED, None)
        with st.spinner("Finding entities", show_time=True):
            place = st.empty()
            # `read` and `find` call `place.empty` again and again. If the user has pressed something else meanwhile,
            # Streamlit stops the page in that call, and with it the reading or tagging.
            text = trial.read(file.name, file, place.empty) if file else trial.pasted(pasted)
            found = trial.find(list(dict.fromkeys(filter(None, (model, other)))), text, place.empty)
        st.session_state[TRIED] = text, found


def _outcome(text: Text, found: Mapping[str, Found], names: Mapping[str, str]) -> None:
    """Show the text with its entities, fields that filter them by type and confidence, and buttons to download them.

    found: {`finetune` run: entities}. names: {`finetune` run: name}.
    """
    if text.blank:
        st.warning(f"{count(len(text.blank), 'page')} without text (scanned?): recognise the text (OCR) first.")
    if text.left_out or text.cut:
        st.warning(
            f"The text was cut after {trial.MOST:,} characters"
            + (f"; {count(text.left_out, 'paragraph')} left out" if text.left_out else "")
            + ". To read all of it, import it on Corpora and use the command `predict`."
        )
    note_differences(names, list(found))
    types, least = _filters(found)
    sides = [trial.kept(side, types, least) for side in trial.compared(list(found.values()))]
    called = [names[run] for run in found]
    _summary(text, sides, called)
    if len(found) == 1:
        [(run, one)] = found.items()
        _not_found(run, one)
    all_types = sorted({type for each in found.values() for type in each.types})
    if len(sides) == 2:
        only = st.toggle("Only paragraphs in which A and B differ", key="results.try.differing")
        _beside(text, sides, all_types, called, differing=only)
    else:
        body = "".join(_paragraphs(text, sides[0], all_types, ""))
        st.html(f'<div class="w-document" role="region" tabindex="0" aria-label="The text">{body}</div>')
    if any(sides):
        _downloads(text, list(found), sides, names)


def _filters(found: Mapping[str, Found]) -> tuple[Sequence[str], float]:
    """Ask which types to show and from which confidence on. Return the types and the confidence, 0 to 1."""
    each_often = [Counter(span.type for span in each.spans) for each in found.values()]
    often = sum(each_often, Counter[str]())
    if not often:
        return (), 0.0
    left, right = st.columns([3, 1])
    known = [name for name, _ in often.most_common()]
    types = left.pills(
        "Types",
        known,
        selection_mode="multi",
        default=known,
        format_func=lambda name: f"{plain(name)} {' / '.join(f'{of[name]:,}' for of in each_often)}",
        key=f"results.try.types.{'.'.join(sorted(known))}",
    )
    least = right.slider("Minimum confidence", 0, 100, 0, 5, format="%d%%", key="results.try.least")
    return types, least / 100


def _summary(text: Text, sides: Sequence[Sequence[Compared]], names: Sequence[str]) -> None:
    where = f" in {plain(text.name)}" if text.name else ""
    if len(sides) == 1:
        found = count(len(sides[0]), "entity", "entities")
        low = sum(one.span.confidence < LOW for one in sides[0])
        unsure = f", {low:,} of them with a confidence below {LOW:.0%} (dashed, with the confidence)" if low else ""
        st.markdown(f"**{found}**{where}{unsure}. Point at an entity to see its confidence.")
        return
    only = [sum(one.difference == "only here" for one in side) for side in sides]
    counts = (
        ("only by A", only[0]),
        ("only by B", only[1]),
        ("with another type", _findings(sides, "other type")),
        ("with another border", _findings(sides, "other border")),
    )
    both = f"**{_findings(sides, ''):,} found by both**{where}"
    words = ", ".join([both, *(f"{n:,} {how}" for how, n in counts if n)])
    st.markdown(f"**A**: {plain(names[0])}. **B**: {plain(names[1])}.  \n{words}.")
    if any(one.difference for side in sides for one in side):
        st.caption("Differences are marked. Your text has no labels, so Winnow cannot know which tagger is right.")


def _findings(sides: Sequence[Sequence[Compared]], difference: Difference) -> int:
    """Return the number of findings of both taggers that differ in this way.

    An entity of A and its counterpart of B are one finding. The filters may have left out one of the two.
    """
    a, b = ([(one.span, one.other or one.span) for one in side if one.difference == difference] for side in sides)
    return len({*((mine.place, its.place) for mine, its in a), *((its.place, mine.place) for mine, its in b)})


def _not_found(run: str, found: Found) -> None:
    """List the types of which the tagger found no entity, and warn if it often misses them. run: its `finetune` run."""
    there = {span.type for span in found.spans}
    if not (absent := [type for type in found.types if type not in there]):
        return
    shares = taggers.shares_found(run)
    weak = [f"{type} in {100 * shares[type]:.0f} of 100 cases" for type in absent if shares.get(type, 1) < OFTEN]
    words = f"The tagger marked no {' and no '.join(absent)} in this text."
    if weak:
        st.warning(plain(f"{words} On its test set, this tagger finds {listed(weak)}."), icon=":material/search_off:")
    else:
        st.caption(plain(words))


def _downloads(text: Text, runs: Sequence[str], sides: Sequence[Sequence[Compared]], names: Mapping[str, str]) -> None:
    """Draw buttons that download the shown entities as files. runs: `finetune` run of each tagger."""
    called = {run: names[run] for run in runs}
    with st.container(horizontal=True):
        for suffix, (label, mime, write) in EXPORTS.items():
            st.download_button(
                label,
                later(partial(write, runs, text, sides, called)),
                file_name=f"{text.name.rsplit('.', 1)[0] or 'text'}-entities.{suffix}",
                mime=mime,
                icon=":material/download:",
                on_click="ignore",
                key=f"results.try.{suffix}",
            )


def _beside(
    text: Text,
    sides: Sequence[Sequence[Compared]],
    types: Sequence[str],
    names: Sequence[str],
    *,
    differing: bool,
) -> None:
    """Show each paragraph twice, with the entities of tagger A and of tagger B.

    sides: entities of A, and of B. differing: True to show only the paragraphs in which A and B differ.
    """
    wanted = {one.span.paragraph for side in sides for one in side if one.difference}
    columns = [_paragraphs(text, side, types, other) for side, other in zip(sides, "BA", strict=True)]
    rows = "".join(
        f"<tr><td>{a}</td><td>{b}</td></tr>"
        for number, (a, b) in enumerate(zip(*columns, strict=True))
        if not differing or number in wanted
    )
    name = "The text with the entities that each of two taggers found"
    heads = "".join(f'<th scope="col">{letter}: {escape(of)}</th>' for letter, of in zip("AB", names, strict=True))
    st.html(
        f'<div class="w-scroll w-document" tabindex="0" role="region" aria-label="{name}"><table class="w-table'
        f' w-beside"><caption>{name}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _paragraphs(text: Text, found: Sequence[Compared], types: Sequence[str], other: str) -> list[str]:
    """Return the paragraphs as HTML with one tagger's entities.

    types: all entity types, whose order sets the colours. other: letter of the other tagger, "" for none.
    """
    by_paragraph: dict[int, list[Compared]] = {}
    for one in found:
        by_paragraph.setdefault(one.span.paragraph, []).append(one)
    colours = [charts.css_colour(charts.ENTITY_COLOURS[i % len(charts.ENTITY_COLOURS)]) for i in range(len(types))]
    colour = dict(zip(types, colours, strict=True))
    return [
        f"<p>{_page(paragraph)}{_marked(paragraph.text, by_paragraph.get(number, ()), colour, other)}</p>"
        for number, paragraph in enumerate(text.paragraphs)
    ]


def _page(paragraph: Paragraph) -> str:
    page = paragraph.page(0)
    return f'<small class="w-place">page {page}</small> ' if page is not None else ""


def _marked(text: str, found: Sequence[Compared], colour: Mapping[str, str], other: str) -> str:
    parts, at = list[str](), 0
    for one in found:
        span = one.span
        parts += [escape(text[at : span.start]), _mark(text[span.start : span.end], one, colour[span.type], other)]
        at = span.end
    return "".join([*parts, escape(text[at:])])


def _mark(words: str, one: Compared, colour: str, other: str) -> str:
    """Return an entity as HTML, with its type and, if it applies, its low confidence or the other tagger's result.

    words: text of the entity. other: letter of the other tagger, "" for none.
    """
    span, low = one.span, one.span.confidence < LOW
    label = f"{span.type} {span.confidence:.0%}" if low else span.type
    if one.difference == "only here":
        label += f" · not {other}"
    elif one.difference == "other type" and one.other:
        label += f" · {other}: {one.other.type}"
    elif one.difference:
        label += f" · {one.difference}"
    shape = f"w-entity{SHAPES[one.difference]}{' w-unsure' * low}"
    title = escape(f"{span.type}, confidence {span.confidence:.0%}")
    return (
        f'<mark class="{shape}" style="--c:{colour}" title="{title}">{escape(words)}'
        f" <small>{escape(label)}</small></mark>"
    )
