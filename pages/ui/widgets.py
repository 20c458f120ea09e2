"""Parts that pages share: tables, charts, forms, buttons, verdicts.

User text never becomes markup: `plain` for places that read Markdown, `escape` for HTML.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from html import escape, unescape
from math import floor, log10
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import streamlit as st

from core import charts
from core.config import Budget, Config, offline
from core.corpora import writers
from core.corpora.corpus import Corpus
from core.experiment.words import Finding, Word
from core.importing import view as corpora
from core.shown import LONGEST, count, short
from core.text.sentence import Sentence

_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")  # all ASCII punctuation

# marks by which Streamlit finds emoji names, bare links and mail addresses
_LINKED = re.compile(r"[:@]|www(?=\.)", re.IGNORECASE)

TINY = 1e-9
_JOINER = "\u2060"


def plain(text: str) -> str:
    """Return a user's text escaped for a field that reads Markdown, so that it is shown unchanged.

    Punctuation becomes numeric character references. An invisible word joiner breaks patterns that Streamlit searches
    for after parsing (`:name:`, `http://`, `www.`, `a@b.c`).
    """
    broken = _LINKED.sub(lambda m: m[0] + _JOINER, " ".join(text.split()))
    return _MARKUP.sub(lambda m: f"&#{ord(m[0])};", broken)


def readable(escaped: str) -> str:
    """Return the text that `plain` escaped, for a field that does not read Markdown, such as a list of choices."""
    return unescape(escaped).replace(_JOINER, "")


def entity_html(sentence: Sentence, types: Sequence[str]) -> str:
    """Return a sentence as HTML. Each entity is underlined in the colour of its type and followed by the type."""
    colours = [*map(charts.css_colour, charts.ENTITY_COLOURS)]
    words = [escape(token) for token in sentence.tokens]
    for entity in sentence.entities or ():
        colour = colours[types.index(entity.type) % len(colours)] if entity.type in types else colours[-1]
        words[entity.start] = f'<mark class="w-entity" style="--c:{colour}">' + words[entity.start]
        words[entity.end - 1] += f" <small>{escape(entity.type)}</small></mark>"
    return " ".join(words) if sentence.entities else escape(sentence.text)


def sentence_list(sentences: Sequence[Sentence], types: Sequence[str], name: str) -> None:
    """Draw sentences as a numbered list. types: all entity types. name: the list's name for assistive technology."""
    rows = "".join(f"<li>{entity_html(each, types)}{place_html(each.place)}</li>" for each in sentences)
    st.html(f'<ol class="w-sentences" aria-label="{escape(name)}">{rows}</ol>')


def place_html(place: str) -> str:
    """Return file and page of a sentence as HTML in small letters; "" if they are not known."""
    return f' <small class="w-place">{escape(place)}</small>' if place else ""


def with_place(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the columns of a table of sentences. Add a column for file and page if a row has them."""
    return {**columns, "place": "File and page"} if any(row["place"] for row in rows) else columns


def table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    name: str,
    *,
    wrapped: Collection[str] | None = None,
    names: Collection[str] = (),
) -> None:
    """Draw a small table. columns: {key of a row: heading}. name: the caption.

    wrapped: columns whose text may wrap, None for all; the table is as wide as its other columns need. names: columns
    of names, in which long ones are shortened and shown in full on hover.
    """
    numbers = {key for key in columns if rows and type(rows[0][key]) in (int, float)}
    whole = set() if wrapped is None else set(columns) - set(wrapped)
    classes = {key: ' class="w-number"' if key in numbers else "" for key in columns}
    head = "".join(f'<th scope="col"{classes[key]}>{escape(heading)}</th>' for key, heading in columns.items())
    body = "".join(
        "<tr>" + "".join(_cell(row[key], key in whole, key in names) for key in columns) + "</tr>" for row in rows
    )
    st.html(
        f'<div class="w-scroll" tabindex="0" role="region" aria-label="{escape(name)}"><table class="w-table">'
        f"<caption>{escape(name)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Any, whole: bool, name: bool) -> str:
    if name and len(value) > LONGEST:
        return f'<td title="{escape(value)}">{escape(short(value))}</td>'
    if isinstance(value, bool):
        return f'<td class="{"w-in" if value else "w-out"}">{"selected" if value else "not selected"}</td>'
    if isinstance(value, int):
        return f'<td class="w-number">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="w-number">{value:z.4g}</td>'
    return f'<td class="w-whole">{escape(str(value))}</td>' if whole else f"<td>{escape(str(value))}</td>"


def chart(figure: Any, key: str, name: str, **options: Any) -> None:
    """Draw a Plotly figure in the colours of the user's theme. name: its description for assistive technology.

    options: passed to `st.plotly_chart`, such as `on_select` for clicks and boxes.
    """
    figure = charts.dressed(figure, dark=is_dark())
    st.plotly_chart(figure, key=key, config={"displayModeBar": False}, alt=name, **options)


def is_dark() -> bool:
    """Return True if the page has a dark background."""
    return bool(st.context.theme.type == "dark")


def corpus_picker(
    label: str, key: str, chosen: str | None, among: Iterable[Corpus] | None = None, **options: Any
) -> str | None:
    """Let the user pick a corpus, and return its fingerprint; None if none is picked.

    chosen: the default. among: corpora to offer, None for all. options: passed to `st.selectbox`.
    """
    names = corpus_labels(corpora.listed() if among is None else among)
    choices = list(names)
    return st.selectbox(
        label,
        choices,
        index=choices.index(chosen) if chosen in choices else None,
        format_func=names.__getitem__,
        key=key,
        placeholder="pick a corpus" if among is None else "pick a labelled corpus",
        **options,
    )


def corpus_labels(known: Iterable[Corpus]) -> dict[str, str]:
    """Return {fingerprint: label}, for the `format_func` of a field.

    Streamlit keeps this function in memory while the browser tab is open, so it must not refer to the corpora
    themselves.
    """
    return {corpus.fingerprint: corpus_label(corpus) for corpus in known}


def corpus_label(corpus: Corpus) -> str:
    """Return the label of a corpus in a list of choices, as plain text: its name and number of sentences."""
    origin = ", made by Winnow" if corpus.derived else ""
    return f"{short(corpus.name)} ({count(len(corpus), 'sentence')}{origin})"


def config_form(
    config: type[Config], names: Sequence[str], prefix: str, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Draw a field per option in `names`, and return {option: value}.

    prefix: prefix of the widget keys. labels: {option: label}, for options whose label is not their name.
    """
    names = [name for name in names if name != "allow_download" or not offline()]
    called = {name: name.replace("_", " ").capitalize() for name in names} | dict(labels or {})
    return {name: _field(called[name], config.model_fields[name], f"{prefix}.{name}") for name in names}


def _field(called: str, field: Any, key: str) -> Any:
    unit = (field.json_schema_extra or {}).get("unit")
    label = called + (f" ({unit})" if unit and not called.lower().endswith(unit) else "")
    kind = field.annotation
    common: dict[str, Any] = {"help": plain(field.description or ""), "key": key}
    if NoneType in get_args(kind):
        return _optional(label, field, common)
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return st.selectbox(label, choices, index=choices.index(field.default), **common)
    if kind is bool:
        return st.toggle(label, field.default, **common)
    if kind in (int, float):
        return _number(kind, label, field, common)
    if get_origin(kind) in (tuple, dict):
        return _several(label, field, common)
    return st.text_input(label, field.default, **common)


def _pairs(typed: str) -> dict[str, str]:
    """Parse `name=value` pairs that are separated by commas. A part without `=` becomes a name with the value ""."""
    parts = (part.partition("=") for part in typed.split(",") if part.strip())
    return {name.strip(): value.strip() for name, _, value in parts}


def _several(label: str, field: Any, common: dict[str, Any]) -> tuple[Any, ...] | dict[str, str]:
    if get_origin(field.annotation) is dict:
        return _pairs(st.text_input(label, "", placeholder="name=value, ...", **common))
    each = get_args(field.annotation)[0]
    if get_origin(each) is Literal:
        return tuple(st.multiselect(label, get_args(each), field.default, **common))
    return listed(st.text_input(label, ", ".join(map(str, field.default or ())), **common))


def _number(kind: Callable[[Any], Any], label: str, field: Any, common: dict[str, Any]) -> float:
    """Ask for a number, and return it. kind: int or float.

    A float is shown as 0.0001, not as 1e-4. Its step is a tenth of the power of ten below its default.
    """
    low, high = bounds(field, kind)
    if kind is int:
        return st.number_input(label, low, high, field.default, **common)  # type: ignore[no-any-return]
    # The step cannot be computed for a default of 0.
    step = 10.0 ** (floor(log10(abs(field.default))) - 1) if field.default else 0.1
    typed = st.number_input(label, low, high, field.default, step, format="%g", **common)
    return float(f"{typed:.12g}")  # Round, because a step from 0.1 by 0.01 gives 0.11000000000000001.


def _optional(label: str, field: Any, common: dict[str, Any]) -> Any:
    """Ask for the value of an option that may be None, and return it; None if the field is empty.

    A float is returned as the typed text, such as "2e-5", which the config parses.
    """
    if bool in get_args(field.annotation):
        answers = {"as usual": None, "yes": True, "no": False}
        return answers[st.selectbox(label, list(answers), **common)]
    if int in get_args(field.annotation):
        low, high = bounds(field, int)
        return st.number_input(label, low, high, None, placeholder="as usual", **common)
    return st.text_input(label, "", placeholder="as usual", **common).strip() or None


def listed(text: str) -> tuple[str, ...]:
    """Return the parts of a text that is split at commas and spaces."""
    return tuple(text.replace(",", " ").split())


def bounds(field: Any, kind: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return the lowest and the highest value of an option, None for no bound. field: its field in the config."""
    limits = {
        name: getattr(bound, name)
        for bound in field.metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(bound, name)
    }
    least = 1 if kind is int else TINY  # smallest allowed distance from an exclusive bound
    low = limits.get("ge", limits["gt"] + least if "gt" in limits else None)
    high = limits.get("le", limits["lt"] - least if "lt" in limits else None)
    return (None if low is None else kind(low)), (None if high is None else kind(high))


def budget_words(budget: str) -> str:
    """Return a budget in words (`Budget.in_words`)."""
    return Budget.parse(budget).in_words


def same_command(key: str, *commands: str) -> None:
    """Draw a collapsed section with the command lines for what the page does. key: key of the section.

    Its content is drawn only when it is opened, because highlighting a command loads 1.5 MB of JavaScript.
    """
    with st.expander("Do this on the command line", icon=":material/terminal:", key=key, on_change="rerun") as more:
        if more.open:
            command_lines(*commands)


def command_lines(*commands: str) -> None:
    """Draw command lines, each with a button that copies it."""
    for command in commands:
        st.code(command, language="bash", wrap_lines=True)


def size(n: float) -> str:
    """Return a number of bytes in words, such as "3.1 MB"."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if n < 1000:
            return f"{n:.0f} {unit}"
        n /= 1000
    return f"{n:.1f} TB"


def grid(columns: Mapping[str, Sequence[Any]], **options: Any) -> Any:
    """Draw columns with `st.dataframe`, and return its event. options: passed to `st.dataframe`.

    A cell that a spreadsheet would run as a formula gets a quote in front.
    """
    guarded = {name: [writers.harmless(value) for value in values] for name, values in columns.items()}
    return st.dataframe(guarded, **options)


_PRESSES = "pressed"  # session key: keys of buttons whose press has not been handled yet


def pressed(label: str, key: str, **kwargs: Any) -> bool:
    """Draw a button, and return True once per press. kwargs: passed to `st.button`."""
    presses = _presses()
    st.button(label, key=key, on_click=presses.add, args=(key,), **kwargs)
    return _take(presses, key, disabled=kwargs.get("disabled", False))


def submitted(label: str, key: str, **kwargs: Any) -> bool:
    """Draw the button of a form, and return True once per press. kwargs: passed to `st.form_submit_button`."""
    presses = _presses()
    st.form_submit_button(label, key=key, on_click=presses.add, args=(key,), **kwargs)
    return _take(presses, key, disabled=kwargs.get("disabled", False))


def forget_presses(prefix: str) -> None:
    """Forget presses of buttons that were not drawn, for example after an error, so that they do not act later.

    Call this at the end of each page, and of each fragment, because a fragment also runs alone. prefix: prefix of the
    buttons' keys; "" for all buttons.
    """
    presses = _presses()
    presses.difference_update([key for key in presses if key.startswith(prefix)])


def _presses() -> set[str]:
    """Return the session's set of keys of pressed buttons. Callers change this set in place.

    Streamlit may interrupt the page at any time, and a press must not be lost while a new set replaces the old one.
    """
    presses: set[str] = st.session_state.setdefault(_PRESSES, set())
    return presses


def _take(presses: set[str], key: str, *, disabled: bool) -> bool:
    """Remove a button's press from `presses`. Return True if the button was pressed and is not disabled."""
    there = key in presses
    presses.discard(key)
    # The press is also forgotten if the button has been disabled meanwhile.
    return there and not disabled


WORD_TINTS: Mapping[Word, str] = {
    "Helped": "green",
    "No": "red",
    "No clear benefit": "gray",
    "Can't tell yet": "orange",
    "No result": "gray",
}


def finding(verdict: Finding) -> None:
    """Show a verdict: its word in colour, the result, what to do next, and how certain it is."""
    answer(verdict)
    st.markdown(f"**{plain(verdict.next)}**")
    if verdict.explained:
        st.caption(plain(verdict.explained))
    certainty(verdict)


def answer(verdict: Finding) -> None:
    """Show the word of a verdict in colour, and its result in a sentence or two."""
    st.header(f":{WORD_TINTS[verdict.word]}[{plain(verdict.word)}]", anchor=False)
    st.markdown(f"##### {plain(verdict.sentence)}")


def certainty(verdict: Finding) -> None:
    """Show how certain a verdict is, in a collapsed section. Show nothing if this is not known."""
    if verdict.sure:
        with st.expander("How sure this is", icon=":material/straighten:"):
            st.markdown(plain(verdict.sure))
