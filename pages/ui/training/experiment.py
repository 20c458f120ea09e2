"""The form of an experiment: its variants, what it can detect, and its options."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core import terms
from core.errors import ConfigError
from core.experiment import find_out, view
from core.experiment.arms import ARM_SHAPES, COPIES_HELP, NONE, find
from core.experiment.words import EXPLAINED
from core.importing import view as corpora
from core.kinds import KINDS
from core.projects import preferences
from core.shown_command import quoted, split_items, unquoted
from pages.ui.runs.links import AGAIN
from pages.ui.training import variants
from pages.ui.training.parts import (
    FIRST_EPOCHS,
    encoder_axis,
    seed_list,
    settings,
    several,
    several_picked,
    splits,
    start_from,
    worded,
)
from pages.ui.training.variants import FURTHER, arm_label
from pages.ui.widgets import bounds, config_form, corpus_picker, listed, plain

REPEAT = {
    "pipeline": "a replicate: selection, pre-training and tagger again. It can show that each of the first two helped",
    "tagger": "only a tagger: a quick look. It can show that pre-training helped, but not that the selection helped",
}
BUDGETS = "training.experiment.budgets"  # key of the field for the sizes of selections

SAME = "training.experiment.same"  # key of the checkbox "same options as your selection"

HOW = ("strategies", "select")  # options on how a selection is made, apart from its strategy and size


def _design(arms: Sequence[str], by_choice: Mapping[str, Any], *, swapped: bool) -> dict[str, Any]:
    """Ask for sizes of selections, seeds and the planned analysis, and return these options with the variants.

    arms: picked variants. by_choice: result of `find_out.choice_options`, whose sizes are the default. swapped: True if
    halves of the labels are swapped between replicates.
    """
    left, right = st.columns(2)
    # Set the default here and not in the field, because a button also sets this value.
    st.session_state.setdefault(BUDGETS, ", ".join(by_choice["budgets"]))
    budgets = left.text_input(
        "Size of each selection",
        key=BUDGETS,
        help="A share of the domain corpus (10%) or a number of sentences (1000). Several sizes, separated by commas, "
        "are separate variants.",
    )
    with right:
        # Swapping needs an even number of seeds, so its field has a key and a default of its own.
        seeds = seed_list("experiment.cross", "1, 2, 3, 4") if swapped else seed_list("experiment", "1, 2, 3")
    left, right = st.columns([2, 1])
    with left:
        repeat = "pipeline" if swapped else worded("repeat", "Every seed makes", REPEAT)
    with right:
        taggers = _taggers()
    st.caption(plain(EXPLAINED["replicate" if repeat == "pipeline" else "tagger"]))
    rest = {"budgets": listed(budgets), "seeds": seeds, "repeat": repeat, **_multipliers(repeat), **taggers}
    typed, _ = st.session_state.get(TYPED, ((), []))
    planned = _planned([name for name in (*arms, *typed) if find(name).judged], repeat)
    return {"arms": list(arms), **rest, **planned}


def _taggers() -> dict[str, Any]:
    taggers = st.number_input(
        "Taggers for every seed",
        1,
        16,
        1,
        key="training.experiment.taggers",
        help="Number of taggers trained per seed; their errors are pooled. If a pre-training takes several "
        "times as long as a tagger, 4 taggers give the same interval in about half of the time.",
    )
    return {"taggers": taggers} if taggers > 1 else {}


def _as_chosen(by_choice: Mapping[str, Any], arms: Sequence[str]) -> dict[str, Any]:
    """If a variant uses the strategy of the project's selection, offer that selection's other options and return them.

    by_choice: result of `find_out.choice_options`. arms: variants. Return {} if no variant uses the strategy, if the
    selection has only default options, or if the user does not want them.
    """
    *_, strategy = by_choice["arms"]
    same = {stage: by_choice[stage] for stage in HOW if stage in by_choice} if strategy in arms else {}
    if not same:
        return {}
    # Set the default here and not in the field, because a filled-in form sets this value as well.
    st.session_state.setdefault(SAME, True)
    return same if st.checkbox(f"{plain(strategy)}: select with the same options as your selection", key=SAME) else {}


def _multipliers(repeat: str) -> dict[str, Any]:
    """Ask whether to measure how much random text, or how many labels, a selection is worth. Return this option.

    repeat: value of the option `repeat`. Only "pipeline" allows this measurement.
    """
    asked = st.checkbox(
        "Measure how much random text, or how many labels, a selection is worth",
        key="training.experiment.multipliers",
        disabled=repeat != "pipeline",
        help="Estimates how many times as much random text, or how many more labelled sentences, would give the same "
        "score as the selection. For this, the experiment adds variants with 2 and 4 times as many random sentences, "
        "and with a quarter and half of the labels. The times below include these variants.",
    )
    return {"multipliers": True} if asked and repeat == "pipeline" else {}


def _planned(arms: list[str], repeat: str) -> dict[str, Any]:
    """Ask for the planned analysis: its claim, the difference to detect, and interim analyses. Return these options."""
    left, middle, right = st.columns(3)
    claim = left.selectbox(
        "The claim is about",
        ["", *arms],
        format_func=lambda name: arm_label(name) if name else "the first strategy",
        key="training.experiment.claim",
        help="The claim is chosen before the start, so its test needs no correction for the other variants. The other "
        "variants are exploratory.",
    )
    effect = middle.number_input(
        "Difference to detect, in points of the score",
        bounds(KINDS["experiment"].config.model_fields["effect"], float)[0],
        value=1.0,
        step=0.1,
        format="%g",
        key="training.experiment.effect",
        help="The chances below, and the rule for an early end, assume a difference of this size.",
    )
    looks = right.text_input(
        "Numbers of replicates after which the experiment may end",
        key="training.experiment.looks",
        placeholder="such as 2, 4, 6",
        disabled=repeat != "pipeline",
        help="The last number is the number of seeds. The experiment ends at an earlier number if the claim is "
        "decided, or can hardly be decided any more.",
    )
    return {"claim": claim, "effect": effect, "looks": listed(looks) if repeat == "pipeline" else []}


NETWORKS = {
    "": "the network that the variants need",
    "encoder": "encoder with a CRF",
    "span": "encoder that gives a type to every span of up to four words",
    "bilstm": "BiLSTM with a CRF",
    "charcnn": "BiLSTM with a CRF that also reads the letters of each word",
}
TYPED = "training.experiment.written"  # session key: typed variants and options, kept while their fields are hidden
FIXED = {
    "none": "the same number of epochs, so that more text means more training",
    "steps": "as many training steps as the variant with the most text",
    "tokens": "as much text as the variant with the most text",
}
TRANSDUCTIVE = {
    "none": "are not used for pre-training",
    "dev": f"are used for pre-training, without labels, if they are in the {terms.DEV.word}",
    "all": "are used for pre-training, without labels",
}
NUMBERS = {
    ("pretrain", "epochs"): "Pre-training: epochs",
    ("finetune", "epochs"): "Fine-tuning: epochs, at most",
    ("pretrain", "batch_size"): "Pre-training: sentences a step",
    ("finetune", "batch_size"): "Fine-tuning: sentences a step",
}


def options() -> dict[str, Any] | None:
    """Draw the form and return the options. If a corpus is missing or an entry is wrong, say so and return None."""
    if AGAIN in st.query_params:
        st.caption(
            "An earlier experiment did not show which variant is the cheapest. This form has enough "
            "replicates to decide this. Finished runs of the earlier experiment are reused."
        )
    picked = splits("experiment", ("task", "domain")) | splits("experiment", ("train", "dev", "test"))
    if not (picked["train"] and picked["dev"] and picked["test"]):
        st.info(
            "An experiment needs a training set, a dev set and a test set. Only variants that are pre-trained need a "
            "task corpus or a domain corpus."
        )
        return None
    cross = _cross(picked)
    place = st.container()
    by_choice: dict[str, Any] = find_out.choice_options()
    # Draw these fields first, because their values add variants to choose from. The variants are drawn in `place`.
    further = _further()
    unlabelled = bool((picked["task"] or cross) and picked["domain"])
    with place:
        compared = variants.ask(further, by_choice["arms"] if unlabelled else [NONE])
    lines = _design(compared.arms, by_choice, swapped=bool(cross))
    encoder = {"encoder": start_from("experiment"), **settings("experiment", (), ("quick", "paper"))}
    stages = _numbers(further)
    rare = _rare(further)
    arms, typed = _advanced()
    stages |= _as_chosen(by_choice, (*lines["arms"], *arms))
    asked = {**picked, **cross, **further, **lines, **encoder, **rare}
    if not variants.look_names_up((*lines["arms"], *arms)):
        # Drop lists of names that no variant reads, because the experiment would refuse to start with them.
        asked.pop("dictionary", None)
    try:
        asked["arms"] = (*lines["arms"], *arms)
        asked |= view.stage_options(typed, stages | compared.options)
        # Parse the options now, so that the user sees an error before Start.
        view.calibrations(asked)
    except ConfigError as error:
        variants.show(compared, asked, wrong=str(error))
        return None
    variants.show(compared, asked)
    return asked


def _cross(picked: dict[str, str]) -> dict[str, Any]:
    """Ask whether to swap halves of L_C, and for their sizes. Return these options, {} if halves are not swapped.

    picked: {role: fingerprint}. If halves are swapped, T_C is removed, because the text of each half is its own T_C.
    """
    if not st.checkbox(
        "Swap halves of the labelled sentences",
        key="training.experiment.cross",
        help="All labelled sentences are joined, and divided into two new halves for each pair of replicates. One "
        "replicate trains on the first half, with its text as the task corpus, and is tested on the second half. The "
        "other replicate does the reverse. The intervals then include the effect of other labels. The number of seeds "
        "must be even.",
    ):
        return {}
    picked["task"] = ""
    st.caption("The text of each half is its task corpus. A corpus picked as task corpus above is not used.")
    left, right = st.columns(2)
    train = left.number_input(
        "Labelled sentences per half for training",
        1,
        None,
        None,
        placeholder="as many as train has",
        key="training.experiment.labels",
    )
    dev = right.number_input(
        "Further labelled sentences per half, as dev set",
        1,
        None,
        None,
        placeholder="50% of the training sentences",
        key="training.experiment.choices",
    )
    return {"cross": True, "cross_train": train or 0, "cross_dev": dev or 0}


def _further() -> dict[str, Any]:
    """Ask for text and labels that only some variants use, and for robustness test sets. Return these options."""
    with st.expander(FURTHER, icon=":material/add_circle:"):
        left, right = st.columns(2)
        with left:
            sources = several(
                "Sources: corpora to train word vectors or a language model on",
                "training.experiment.sources",
                "The same number of tokens is read from each source.",
            )
            imported = several_picked("training.experiment.imported_vectors")
            aside = "Shown next to the test set; they do not change the verdict."
            also_test = several("Further test sets", "training.experiment.also_test", aside, labelled=True)
            dictionary = several(
                "Lists of names for the variants dictionary, none+dictionary and distant",
                "training.experiment.dictionary",
                "You can import a text or CSV file with names on the page Corpora. Corpora in use are not offered.",
                labelled=True,
                without=corpora.roles().values(),
            )
        with right:
            borrow, key = "Labelled corpus to borrow sentences from (assisting)", "training.experiment.assisting"
            assisting = corpus_picker(borrow, key, None) or ""
            transfer = several(
                "Labelled corpora to train on first (transfer)",
                "training.experiment.transfer",
                "Each adds a variant transfer:CORPUS, which trains on this corpus and then on your own labels.",
                labelled=True,
            )
            network = _network()
            names = corpus_picker("List of names for the variant gazetteer", "training.experiment.gazetteer", None)
        maps = st.text_input(
            "Types by another name",
            key="training.experiment.map",
            placeholder="PER=person",
            help="Needed if a type has another name in a ready model, or in a corpus to borrow labels from, than in "
            "your corpus.",
        )
    options = {"sources": sources, "also_test": also_test, "assisting": assisting, "type_map": listed(maps)}
    options |= {"gazetteer": names} if names else {}
    options |= {"dictionary": dictionary} if dictionary else {}
    options |= {"transfer": transfer} if transfer else {}
    options |= {"imported_vectors": imported} if imported else {}
    return options | ({"finetune": {"network": network}} if network else {})


def _network() -> str:
    return st.selectbox(
        "Network",
        list(NETWORKS),
        format_func=NETWORKS.__getitem__,
        key="training.experiment.network",
        help="The same for every variant.",
    )


def _numbers(further: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for epochs and batch sizes, and return {stage: options}. An empty field keeps the default.

    further: result of `_further`. If it has options of these stages, the returned options contain them too.
    """
    numbers = {stage: dict(further.get(stage, {})) for stage, _ in NUMBERS}
    for column, ((stage, name), label) in zip(st.columns(len(NUMBERS)), NUMBERS.items(), strict=True):
        # With narrower bounds, the form could not be filled in with the options of an experiment of the command line.
        low, high = bounds(KINDS[stage].config.model_fields[name], int)
        value = column.number_input(
            label,
            low,
            high,
            None,
            placeholder="as usual",
            key=f"training.experiment.{stage}.{name}",
        )
        if value is not None:
            numbers[stage][name] = value
    return {stage: own for stage, own in numbers.items() if own}


def _rare(further: Mapping[str, Any]) -> dict[str, Any]:
    """Ask experts for options that are seldom changed, and return them. further: result of `_further`."""
    config, key = KINDS["experiment"].config, "training.experiment"
    rare: dict[str, Any] = {}
    if not preferences.expert():
        return rare
    with st.expander("Further options", icon=":material/tune:"):
        left, right = st.columns(2)
        with left:
            rare["axis"] = encoder_axis("experiment")
            rare["holdout"] = several(
                "Further held-out splits", f"{key}.holdout", "None of their sentences is used for training."
            )
            rare["fixed"] = worded("fixed", "Every pre-trained variant reads", FIXED)
            rare |= config_form(config, ("draw_seed",), key, {"draw_seed": "Seed of selection and pre-training"})
        with right:
            rare["transductive"] = worded(
                "transductive", "Dev or test sentences that also occur in the task corpus", TRANSDUCTIVE
            )
            rare["difficulty_encoder"] = st.text_input(
                "Encoder that judges names and contexts",
                key=f"{key}.judge",
                placeholder="the one that is trained",
                help="For variants that rebuild the labels.",
            ).strip()
            rare |= _sizes() | _cap(bool(further["sources"]))
            if further.get("transfer"):
                rare |= config_form(config, ("transfer_epochs",), key, {"transfer_epochs": FIRST_EPOCHS})
        download = {"allow_download": "Fetch the encoder from the internet if it is not on this machine"}
        rare |= config_form(config, list(download), key, download)
    return rare


def _sizes() -> dict[str, Any]:
    """Ask for smaller sizes of the training set, and how often to draw each. Return these options."""
    sizes = listed(
        st.text_input(
            "Train on fewer labelled sentences too",
            key="training.experiment.train_sizes",
            placeholder="such as 50, 100",
            help="Shows how the gain depends on the number of labels: every variant is trained once for each size.",
        )
    )
    if not sizes:
        return {}
    draws = st.number_input(
        "Random parts of each size",
        1,
        None,
        3,
        key="training.experiment.draws",
        help="The score depends more on which sentences are labelled than on the seed.",
    )
    return {"train_sizes": sizes, "draws": draws}


def _cap(sources: bool) -> dict[str, Any]:
    """Ask how many tokens of each source to read. Return this option. sources: True if a source is picked."""
    if not sources:
        return {}
    caps = st.text_input(
        "Tokens read from every source",
        key="training.experiment.cap_tokens",
        placeholder="as many as the smallest source has",
        help="Several numbers, separated by commas (100000, 300000), train every variant of a source once for each.",
    )
    return {"cap_tokens": listed(caps)}


def _advanced() -> tuple[tuple[str, ...], list[str]]:
    """Ask experts for variants and options of stages that have no other field, typed as on the command line.

    Return both. Outside expert mode, return what was typed before, and show it as text.
    """
    arms, stages = st.session_state.get(TYPED, ((), []))
    if not preferences.expert():
        if lines := [*map(arm_label, arms), *stages]:
            st.caption(f"Also used, as typed in expert mode: {plain('; '.join(lines))}.")
        return arms, stages
    arms_key, key = "training.experiment.typed.arms", "training.experiment.typed"
    # Restore the values, because Streamlit forgets those of fields that were not drawn.
    st.session_state.setdefault(arms_key, ", ".join(map(quoted, arms)))
    st.session_state.setdefault(key, "\n".join(stages))
    with st.expander("Type variants and options", icon=":material/terminal:"):
        typed_arms = st.text_input(
            "Further variants",
            key=arms_key,
            placeholder="highc2low:30%, skl:3",
            help=f"A name with a value: {', '.join(ARM_SHAPES)}. {COPIES_HELP}",
        )
        typed = st.text_area(
            "Options of single stages, one per line",
            key=key,
            placeholder="pretrain.learning_rate=5e-5\nstrategies.knn.neighbours=10",
            help=f"STAGE.NAME=VALUE, where a stage is one of {', '.join(view.STAGES)}.",
        )
    written = (tuple(map(unquoted, split_items(typed_arms))) if typed_arms.strip(" ,") else (), typed.splitlines())
    st.session_state[TYPED] = written
    return written
