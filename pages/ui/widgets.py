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

_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")  # all of ASCII's punctuation
_LINKED = re.compile(r"[:@]|www(?=\.)", re.IGNORECASE)  # how emoji names, bare links and addresses are recognised
TINY = 1e-9
_JOINER = "\u2060"


def plain(text: str) -> str:
    """Escape a user's text for a place that reads Markdown.

    Numeric references keep it from being parsed. An invisible word joiner hides patterns that are searched for after
    parsing (`:name:`, `http://`, `www.`, `a@b.c`).
    """
    broken = _LINKED.sub(lambda m: m[0] + _JOINER, " ".join(text.split()))
    return _MARKUP.sub(lambda m: f"&#{ord(m[0])};", broken)


def readable(escaped: str) -> str:
    """Undo `plain`, for a place that does not read Markdown, such as the choices of a field."""
    return unescape(escaped).replace(_JOINER, "")


def entity_html(sentence: Sentence, types: Sequence[str]) -> str:
    """Return a sentence as HTML, its entities named and underlined in the colour of their type."""
    colours = [*map(charts.css_colour, charts.ENTITY_COLOURS)]
    words = [escape(token) for token in sentence.tokens]
    for entity in sentence.entities or ():
        colour = colours[types.index(entity.type) % len(colours)] if entity.type in types else colours[-1]
        words[entity.start] = f'<mark class="w-entity" style="--c:{colour}">' + words[entity.start]
        words[entity.end - 1] += f" <small>{escape(entity.type)}</small></mark>"
    return " ".join(words) if sentence.entities else escape(sentence.text)


def sentence_list(sentences: Sequence[Sentence], types: Sequence[str], name: str) -> None:
    """Draw sentences as a list. name: its name for assistive technology."""
    rows = "".join(f"<li>{entity_html(each, types)}{place_html(each.place)}</li>" for each in sentences)
    st.html(f'<ol class="w-sentences" aria-label="{escape(name)}">{rows}</ol>')


def place_html(place: str) -> str:
    """Return file and page of a sentence in small letters; "" if they are not known."""
    return f' <small class="w-place">{escape(place)}</small>' if place else ""


def with_place(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the columns of a table, with file and page if a sentence has them."""
    return {**columns, "place": "File and page"} if any(row["place"] for row in rows) else columns


def table(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, str],
    name: str,
    *,
    wrapped: Collection[str] | None = None,
    names: Collection[str] = (),
) -> None:
    """Draw a small table. columns: {key: heading}. name: its caption for assistive technology.

    wrapped: columns whose text may wrap; None: all columns; other columns widen the table. names: columns of names;
    long names are cut, and shown in full on hover.
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
    """Draw a figure in the theme's colours. name: its name for assistive technology.

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
    """Let the user pick a corpus, of all or of `among`; None if none is picked."""
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
    """Return {fingerprint: label} for a field's `format_func`.

    Streamlit keeps a field's function while the browser tab is open; corpora held that way filled the memory.
    """
    return {corpus.fingerprint: corpus_label(corpus) for corpus in known}


def corpus_label(corpus: Corpus) -> str:
    """Return the label of a corpus in a list of choices, which shows plain text."""
    origin = ", made by Winnow" if corpus.derived else ""
    return f"{short(corpus.name)} ({count(len(corpus), 'sentence')}{origin})"


def config_form(
    config: type[Config], names: Sequence[str], prefix: str, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Draw a widget per option in `names`, and return their values by name. labels: {option: label}."""
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
    """Parse `name=value` pairs, separated by commas. The config refuses an item without `=`."""
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
    """Ask for a number. A fraction shows as 0.0001, and steps by a tenth of its default's magnitude."""
    low, high = _bounds(field, kind)
    if kind is int:
        return st.number_input(label, low, high, field.default, **common)  # type: ignore[no-any-return]
    # 0 has no magnitude.
    step = 10.0 ** (floor(log10(abs(field.default))) - 1) if field.default else 0.1
    typed = st.number_input(label, low, high, field.default, step, format="%g", **common)
    return float(f"{typed:.12g}")  # 0.1 and 0.01 are 0.11, not 0.11000000000000001


def _optional(label: str, field: Any, common: dict[str, Any]) -> Any:
    """Ask for an optional value; None if the field is empty.

    A fraction is entered as text, for example 2e-5, and the config parses it.
    """
    if bool in get_args(field.annotation):
        answers = {"as usual": None, "yes": True, "no": False}
        return answers[st.selectbox(label, list(answers), **common)]
    if int in get_args(field.annotation):
        low, high = _bounds(field, int)
        return st.number_input(label, low, high, None, placeholder="as usual", **common)
    return st.text_input(label, "", placeholder="as usual", **common).strip() or None


def listed(text: str) -> tuple[str, ...]:
    """Split the text of a field at commas and spaces."""
    return tuple(text.replace(",", " ").split())


def _bounds(field: Any, kind: Callable[[Any], Any]) -> tuple[Any, Any]:
    limits = {
        name: getattr(bound, name)
        for bound in field.metadata
        for name in ("ge", "gt", "le", "lt")
        if hasattr(bound, name)
    }
    least = 1 if kind is int else TINY  # an exclusive bound is not itself allowed
    low = limits.get("ge", limits["gt"] + least if "gt" in limits else None)
    high = limits.get("le", limits["lt"] - least if "lt" in limits else None)
    return (None if low is None else kind(low)), (None if high is None else kind(high))


def budget_words(budget: str) -> str:
    """Return a budget in words (`Budget.in_words`)."""
    return Budget.parse(budget).in_words


def same_command(key: str, *commands: str) -> None:
    """Offer the commands that do what the page does. key: key of the expander.

    They are drawn when it is opened, because highlighting loads 1.5 MB of script.
    """
    with st.expander("The same on the command line", icon=":material/terminal:", key=key, on_change="rerun") as more:
        if more.open:
            command_lines(*commands)


def command_lines(*commands: str) -> None:
    """Draw commands, each with a button that copies it."""
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
    """Draw columns with `st.dataframe`. A cell that a spreadsheet would compute gets a quote in front."""
    guarded = {name: [writers.harmless(value) for value in values] for name, values in columns.items()}
    return st.dataframe(guarded, **options)


_PRESSES = "pressed"  # keys of buttons that were pressed and not yet drawn


def pressed(label: str, key: str, **kwargs: Any) -> bool:
    """Draw a button and return True once per press. kwargs: passed to `st.button`."""
    presses = _presses()
    st.button(label, key=key, on_click=presses.add, args=(key,), **kwargs)
    return _take(presses, key, disabled=kwargs.get("disabled", False))


def submitted(label: str, key: str, **kwargs: Any) -> bool:
    """Draw the button of a form and return True once per press. kwargs: passed to `st.form_submit_button`."""
    presses = _presses()
    st.form_submit_button(label, key=key, on_click=presses.add, args=(key,), **kwargs)
    return _take(presses, key, disabled=kwargs.get("disabled", False))


def forget_presses(prefix: str) -> None:
    """Forget presses of buttons that were not drawn, as after an error, so that they do not act later.

    Call it at the end of a page and of a fragment, which also runs alone. prefix: start of the buttons' keys; ""
    forgets all.
    """
    presses = _presses()
    presses.difference_update([key for key in presses if key.startswith(prefix)])


def _presses() -> set[str]:
    """Return this visit's set of keys of pressed buttons. Change it in place: a replacement may be interrupted."""
    presses: set[str] = st.session_state.setdefault(_PRESSES, set())
    return presses


def _take(presses: set[str], key: str, *, disabled: bool) -> bool:
    """Remove a button's press from `presses`, and return True if it may act."""
    there = key in presses
    presses.discard(key)
    # If a rerun has disabled the button since, forget its press.
    return there and not disabled


WORD_TINTS: Mapping[Word, str] = {
    "Helped": "green",
    "No": "red",
    "No clear benefit": "gray",
    "Can't tell yet": "orange",
    "No result": "gray",
}


def finding(verdict: Finding) -> None:
    """Show a verdict: its word in colour, the result, what to do next, and a collapsed section on its certainty."""
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
    """Show how sure a verdict is, in a collapsed section; show nothing if that is not known."""
    if verdict.sure:
        with st.expander("How sure this is", icon=":material/straighten:"):
            st.markdown(plain(verdict.sure))
