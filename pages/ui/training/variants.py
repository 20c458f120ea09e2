"""Fields for the variants of an experiment in groups, with the time, inputs and human work that each needs."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import ConfigError
from core.experiment import view
from core.experiment.arms import ARM_NAMES, ARM_SHAPES, CONTROLS, NONE, RANDOM, Arm, find
from core.experiment.reference import KINDS as REFERENCES
from core.importing import view as corpora
from core.selection import DEFAULT_STRATEGY, STRATEGIES
from core.shown import duration
from pages.ui.bias.rebuild import METHODS
from pages.ui.training.others import others
from pages.ui.widgets import plain, table

PLAIN = {
    "none": "No pre-training: the baseline of all others",
    "tapt": "The task corpus alone",
    "dapt": "All of the domain corpus",
    "tapt+dapt": "The task corpus and all of the domain corpus",
    "random-only": "As much random text of the domain corpus as the task corpus has",
    "random": "The task corpus and random sentences: the baseline of a selection",
    "length-matched-random": "The task corpus and random sentences of the same lengths",
    "states": "The encoder without further training; its states are the input of another network",
    "all": "Your labels and all sentences of the assisting corpus",
    "lpft": "Trains the last layer first, then the whole tagger",
    "none+dictionary": "No pre-training, but a tagger that sees which words are in lists of names",
    "self-train": "Also 2,000 selected sentences, with the labels of which a first tagger is sure",
    "self-train:random": "Like self-train, but with random sentences: the baseline of self-train",
    "distant": "First 2,000 selected sentences, labelled by lists of names, then your labels",
    "distant:random": "Like distant, but with random sentences: the baseline of distant",
    "span": "A type for every span of up to four words: the baseline of miner",
    "miner": "The span tagger, also trained to represent names of one type alike",
    "dataaug": f"Labels and copies of them: {METHODS['dataaug'][0][0].lower()}{METHODS['dataaug'][0][1:]}",
}
VALUED = {
    "vectors": "Word vectors of {}",
    "lm": "The states of an encoder that is pre-trained on {}",
    "transfer": "The labels of {} first, then your own",
    "labels": "An estimate with {} labelled sentences, from taggers on parts of the training set",
    "skl": "Also assisting sentences whose labels differ by less than {} nats",
    "base": "{} random labelled sentences",
    "base+low": "{0} random labelled sentences, and {0} with mentions whose context is more informative than the name",
    "base+near_zero": "{0} random labelled sentences, and {0} with mentions whose name and context are equally "
    "informative",
    "base+high": "{0} random labelled sentences, and {0} with mentions whose name is more informative than the context",
}

KEY = "training.experiment.arms"  # prefix of the widget keys

ORDER = "training.experiment.order"  # session key: picked variants of all groups, in the order of picking

TEXT, LABELS, READY, OTHER = "text", "labels", "ready", "other"
GROUPS = (TEXT, LABELS, READY, OTHER)
FOLDED = {
    TEXT: "More ways to select text",
    LABELS: "Other uses of the time: more labels, lists of names, other people's labels",
    READY: "No training: lists of names, ready models, language models",
    OTHER: "Other ways to train: rebuilt labels, word vectors, other networks",
}
ASKED = {
    TEXT: "What is compared",
    LABELS: "Also compare other uses of the time",
    READY: "Also compare without training",
    OTHER: "Also compare other ways to train",
}
ICONS = {
    TEXT: ":material/filter_alt:",
    LABELS: ":material/label:",
    READY: ":material/smart_toy:",
    OTHER: ":material/tune:",
}
FIRST = (NONE, RANDOM, DEFAULT_STRATEGY)  # variants that are listed first in their group

NEEDS = {  # {option that a variant needs: what the user gives}
    "task": "task corpus",
    "domain": "domain corpus",
    "sources": "another corpus (a source)",
    "words": "another corpus (a source), or word vectors",
    "assisting": "another labelled corpus (assisting)",
    "transfer": "another labelled corpus",
    "dictionary": "lists of names",
}
ELSE = "lists of names; without any, those of the training set are used"
OPTIONAL = {"dictionary": ELSE, "distant": ELSE}
# Variants that are offered only once their input is picked: {first part of the name: (group, label, input)}.
WAITING = {
    "transfer": (LABELS, "The labels of another corpus first, then your own", NEEDS["transfer"]),
    "skl": (LABELS, "Sentences of another labelled corpus whose labels agree with yours", NEEDS["assisting"]),
    "zero-shot": (READY, "A token classifier that others trained", "the folder of the model"),
    "llm": (READY, "A language model that you run", "the model and the address of its server"),
    "vectors": (OTHER, "Word vectors of another corpus", NEEDS["words"]),
    "lm": (OTHER, "The states of an encoder that is pre-trained on another corpus", NEEDS["sources"]),
}
COLUMNS = {"variant": "Variant", "time": "Time here", "needs": "Needs", "person": "Your time"}
WRAPPED = ("variant", "needs", "person")
MISSING = "not picked yet"
FURTHER = "Sources, borrowed labels, lists of names, harder test sets"  # heading of the fields for variants' inputs
ABOVE = (
    f"Pick these variants under “{ASKED[TEXT]}”. Each pre-trains on the task corpus and on the text that it selects."
)
BELOW = f"Pick missing inputs under “{FURTHER}”, or in the fields above."
UNTIMED = "not timed yet"
TIMES = (
    "“Time here” is the time on this machine, with the baselines that a variant adds, if no earlier run is reused. The "
    "box at the end counts only the remaining time."
)
TIMES_LATER = "The times appear once this machine has been timed. The button for this is in the box at the end."
TIMES_AFTER = "The times of the variants appear as soon as nothing is missing for the experiment."
BOTH = "Every verdict needs a variant without pre-training and a random baseline; both are added automatically."


def arm_label(name: str) -> str:
    """Return the label of a variant: a description and its name. An unknown name is returned unchanged."""
    head, _, value = name.partition(":")
    if name in PLAIN:
        words = PLAIN[name]
    elif name in STRATEGIES:
        words = "The task corpus and a selection from the domain corpus"
    elif value and head in VALUED:
        words = VALUED[head].format(value)
    elif head in REFERENCES:
        words = REFERENCES[head].summary(value).rstrip(".")
    elif value and head in METHODS:
        words = f"Labels rebuilt at {value}: {METHODS[head][0][0].lower()}{METHODS[head][0][1:]}"
    else:
        return name
    return f"{words} ({name})"


def arm_names(further: Mapping[str, Any], lines: Sequence[str] = ()) -> list[str]:
    """Return the names of the variants to offer. Some contain the name of a picked corpus or of word vectors.

    further: the options `sources`, `imported_vectors`, `transfer` and `assisting` of the experiment. lines: names of
    reference variants to offer, such as `zero-shot:FOLDER`.
    """
    values = {
        "SOURCE": [corpora.find(source).name for source in further["sources"]],
        "CORPUS": [corpora.find(corpus).name for corpus in further.get("transfer", ())],
        "THRESHOLD": ["1", "2", "4"] if further["assisting"] else [],
        "RATE": ["20%"],
        "SIZE": ["1000"],
        "+N": ["+25", "+50", "+100"],
    }
    shapes = (shape.split(":") for shape in ARM_SHAPES)
    named = [f"{head}:{value}" for head, kind in shapes for value in values.get(kind, ())]
    imported = [f"vectors:{name}" for name in further.get("imported_vectors", ())]
    return [*ARM_NAMES, *dict.fromkeys([*named, *imported, *lines])]


def group_of(arm: Arm) -> str:
    """Return the group of fields in which a variant is offered."""
    if arm.reference:
        return READY
    if arm.adapts or arm.name in (NONE, *CONTROLS):
        return TEXT
    return LABELS if arm.more or arm.names or arm.first or arm.assisting or arm.pseudo else OTHER


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Return {group: names of its variants}. In each group, the variants of `FIRST` are first."""
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name in sorted(names, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST)):
        found[group_of(find(name))].append(name)
    return found


def key_of(group: str) -> str:
    """Return the widget key of a group's field."""
    return KEY if group == TEXT else f"{KEY}.{group}"


def fill_in(names: Sequence[str]) -> None:
    """Set the fields of all groups to these variants, and open the groups that contain one."""
    for group, own in grouped(names).items():
        st.session_state[key_of(group)] = [name for name in names if name in own]
        st.session_state[f"{KEY}.open.{group}"] = bool(own) and group != TEXT
    st.session_state[ORDER] = list(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """The picked variants, and the containers in which `show` draws tables of what each variant needs.

    arms: the picked variants in the order of picking. offered: {group: variants to choose from}. options: options of
    the experiment set by the fields for ready models. places: {open group: container for its table}; the key "" is for
    the table of picked variants.
    """

    arms: Sequence[str]
    offered: Mapping[str, Sequence[str]]
    options: dict[str, Any]
    places: Mapping[str, DeltaGenerator]


def ask(further: Mapping[str, Any], at_first: Sequence[str]) -> Picked:
    """Draw the fields for the variants of each group, and return what is picked.

    further: see `arm_names`. at_first: variants that are picked by default.
    """
    if KEY not in st.session_state:
        st.session_state.pop(ORDER, None)
    top, boxes = st.container(), {group: _box(group) for group in GROUPS}
    with boxes[READY]:
        references, options = others()
    offered = grouped(arm_names(further, references))
    picked = []
    for group, names in offered.items():
        with top if group == TEXT else boxes[group]:
            picked += _field(group, names, at_first)
    arms = [name for name in st.session_state.get(ORDER, ()) if name in picked]
    st.session_state[ORDER] = arms = list(dict.fromkeys((*arms, *picked)))
    with top:
        places = {"": st.container()}
    for group, box in boxes.items():
        with box:
            places |= {group: st.container()} if box.open else {}
    return Picked(arms=arms, offered=offered, options=options, places=places)


def _box(group: str) -> Any:
    return st.expander(FOLDED[group], key=f"{KEY}.open.{group}", on_change="rerun", icon=ICONS[group])


def _field(group: str, names: Sequence[str], at_first: Sequence[str]) -> list[str]:
    picked: list[str] = st.multiselect(
        ASKED[group],
        names,
        [name for name in at_first if name in names],
        arm_label,
        key=key_of(group),
        placeholder="pick variants that pre-train on text" if group == TEXT else "none",
        help=BOTH if group == TEXT else None,
    )
    return picked


def look_names_up(names: Iterable[str]) -> bool:
    """Return True if one of these variants reads lists of names. Ignore unknown variants."""
    for name in names:
        with suppress(ConfigError):
            if "dictionary" in find(name).needs or name.partition(":")[0] in OPTIONAL:
                return True
    return False


def show(picked: Picked, given: Mapping[str, Any], *, wrong: str = "") -> None:
    """Show for each variant the time that it takes on this machine, its inputs, and the human work for it.

    given: options of the experiment. wrong: error in these options, "" for none. With an error, times are shown only
    for variants that have all inputs.
    """
    lacking = [name for name in picked.arms if _lacks(find(name), given)]
    arms = [name for name in picked.arms if name not in lacking] if wrong else given["arms"]
    given = {**given, "arms": tuple(arms)}
    own = view.seconds_by_arm(given) if arms else {}
    # `own` includes the baselines that are added. After an error, leave out typed variants, which may be unknown.
    chosen = list(dict.fromkeys((*own, *(picked.arms if wrong else arms))))
    rest = {group: [name for name in names if name not in chosen] for group, names in picked.offered.items()}
    rest = {group: rest[group] for group in picked.places if group}
    further = [name for names in rest.values() for name in names]
    seconds = view.seconds_by_arm(given, further) if own and further else own
    with picked.places[""]:
        table(
            [_row(name, seconds, given) for name in chosen],
            COLUMNS,
            "What each picked variant takes and needs",
            wrapped=WRAPPED,
        )
        if wrong:
            st.warning(plain(_missing(lacking[0], given) if lacking else wrong), icon=":material/error:")
        st.caption(TIMES if own else TIMES_AFTER if wrong else TIMES_LATER)
    for group, names in rest.items():
        heads = [name.partition(":")[0] for name in picked.offered[group]]
        rows = [_row(name, seconds, given) for name in names]
        rows += [_waiting(head) for head, (of, *_) in WAITING.items() if of == group and head not in heads]
        with picked.places[group]:
            table(rows, COLUMNS, f"{FOLDED[group]}: what each variant takes and needs", wrapped=WRAPPED)
            st.caption(ABOVE if group == TEXT else BELOW)


def _row(name: str, seconds: Mapping[str, float], given: Mapping[str, Any]) -> dict[str, str]:
    arm = find(name)
    unknown = "" if seconds else UNTIMED
    takes = duration(seconds[name]) if name in seconds else unknown
    return {
        "variant": _words(name),
        "time": takes,
        "needs": _needs(arm, given),
        "person": f"{duration(view.labelling_seconds(arm.more))} to label {arm.more:,} sentences"
        if arm.more
        else "none",
    }


def _words(name: str) -> str:
    """Return a description of a variant with its name. For a strategy, it says how the strategy selects."""
    if name in STRATEGIES and name not in PLAIN:
        return f"{STRATEGIES[name].summary.rstrip('.')} ({name})"
    label = arm_label(name)
    return label if label != name else f"{find(name).summary.rstrip('.')} ({name})"


def _lacks(arm: Arm, given: Mapping[str, Any]) -> list[str]:
    """Return the options that a variant needs but that the user has not picked yet."""
    have = {
        **given,
        "words": given["sources"] or given.get("imported_vectors"),
        "task": given["task"] or given.get("cross"),
    }
    return [name for name in arm.needs if not have.get(name)]


def _missing(name: str, given: Mapping[str, Any]) -> str:
    """Return a message that says which inputs a picked variant lacks, and what to do."""
    needs = " and ".join(NEEDS[option] for option in _lacks(find(name), given))
    return (
        f"This experiment cannot start yet. “{arm_label(name)}” needs {needs}: pick this under “{FURTHER}”, or leave"
        " the variant out."
    )


def _needs(arm: Arm, given: Mapping[str, Any]) -> str:
    """Return the inputs of a variant besides the labels as text, with a note on those that are not picked yet."""
    lacks = _lacks(arm, given)
    parts = [f"{NEEDS[name]} ({MISSING})" if name in lacks else NEEDS[name] for name in arm.needs]
    head = arm.name.partition(":")[0]
    parts += [OPTIONAL[head]] if head in OPTIONAL else []
    parts += ["a BiLSTM in all variants"] if "encoder" not in arm.networks else []
    return ", ".join(parts) or "your labels"


def _waiting(head: str) -> dict[str, str]:
    _, words, needs = WAITING[head]
    return {"variant": f"{words} ({head})", "time": "", "needs": f"{needs} ({MISSING})", "person": "none"}
