"""What to train: the options of a pre-training, a fine-tuning, an experiment, as widgets; what they give goes to
`facade.start`. Nothing here stands in a form, since the pre-flight below follows every change."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from core import facade
from pages.ui.run_panel import encoder
from pages.ui.widgets import config_form, corpus_label, corpus_picker, listed, plain

BUNDLED = "minilm"
PRESETS = {"quick": "Quick", "paper": "Paper", "custom": "Custom"}
MEANING = {
    "quick": "Minutes on a laptop: for a first look, and for comparing what to select.",
    "paper": "The papers' settings: for numbers to report, best on a GPU.",
    "custom": "Every option is yours; what is left empty stays as usual.",
}
NETWORKS = {
    "": "as the arms need", "encoder": "encoder, CRF", "bilstm": "BiLSTM-CRF (S1)", "charcnn": "char-CNN BiLSTM (S4)",
}  # fmt: skip
ARMS = ("none", "random", facade.DEFAULT_STRATEGY)


def options(kind: str) -> dict[str, Any] | None:
    """What was asked for; None while a corpus is missing."""
    return {"pretrain": _pretrain, "finetune": _finetune, "experiment": _experiment}[kind]()


def _pretrain() -> dict[str, Any] | None:
    left, right = st.columns(2)
    with left:
        corpora = _text()
    with right:
        init = _init("pretrain")
    if not corpora:
        st.info("Pick the text to pre-train on: T_C, an S_C from the page Selection, or both.")
        return None
    return {"corpora": corpora, "init": init, **_preset("pretrain", ("corpora", "init"))}


def _text() -> tuple[str, ...]:
    """What the encoder reads: an S_C, hand edits counted, and whole corpora."""
    roles, here = facade.roles(), {corpus.fingerprint: corpus for corpus in facade.corpora()}
    whole = st.multiselect(
        "Text to pre-train on", list(here), [roles["task"]] if "task" in roles else [],
        lambda fingerprint: corpus_label(here[fingerprint]), key=f"training.corpora.{roles.get('task')}",
        placeholder="pick corpora", help="T_C alone is task-adaptive pre-training; T_C and S_C is what S0 proposes.",
    )  # fmt: skip
    names = {run.id: _selection(run) for run in facade.selections()}
    if not names:
        st.page_link("pages/3_Selection.py", label="Select an S_C to go with it", icon=":material/filter_alt:")
        return tuple(whole)
    picked = st.selectbox(
        "S_C, from a selection", [None, *names], 0, lambda name: names.get(name, "none"), key="training.selection"
    )
    if picked is None:
        return tuple(whole)
    return tuple(dict.fromkeys((*whole, facade.selected_corpus(picked).fingerprint)))


def _selection(run: facade.Run) -> str:
    config, edits = run.manifest.config, facade.edits(run.id)
    said = f"{config['budget']} by {config['strategy']}{f', {edits}' if edits else ''}"
    return f"{said} ({run.id[-4:]})"


def _init(kind: str) -> str:
    """What training starts from: the bundled encoder, a finished pre-training, or whatever is typed."""
    done = [run for run in facade.runs("pretrain") if facade.state(run.id).state == "succeeded"]
    names = {BUNDLED: "MiniLM, bundled: works offline"} | {run.id: encoder(run.id) for run in done}
    picked = st.selectbox(
        "Start from", list(names), 0, lambda name: names.get(name, name), key=f"training.{kind}.init",
        accept_new_options=True,
        help="Or type a folder, or a Hugging Face name that is on this machine, such as bert-base-cased.",
    )  # fmt: skip
    return picked if kind == "finetune" or picked not in {run.id for run in done} else str(facade.model_folder(picked))


def _preset(kind: str, own: Sequence[str], presets: Sequence[str] = tuple(PRESETS)) -> dict[str, Any]:
    """The preset; under `custom` every option that is not asked for elsewhere (`own`)."""
    preset = st.segmented_control(
        "Settings", presets, default="quick", format_func=PRESETS.__getitem__, required=True,
        key=f"training.{kind}.preset",
    )  # fmt: skip
    st.caption(MEANING[preset])
    if preset != "custom":
        return {"preset": preset}
    config = facade.RECIPES[kind].config
    names = [name for name in config.model_fields if name not in (*own, "preset") and not _elsewhere(config, name)]
    columns, found = st.columns(3), {}
    for i, name in enumerate(names):
        with columns[i % 3]:
            found |= _option(config, name, f"training.{kind}")
    return {"preset": preset, **found}


def _option(config: type[facade.Config], name: str, prefix: str) -> dict[str, Any]:
    """A field of the form: a picker for a further corpus, which may stay empty."""
    field = config.model_fields[name]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    if not extra.get("corpus"):
        return config_form(config, (name,), prefix)
    label = name.replace("_", " ").capitalize()
    return {name: corpus_picker(label, f"{prefix}.{name}", None, help=plain(field.description or "")) or ""}


def _elsewhere(config: type[facade.Config], name: str) -> bool:
    """What is hidden fills itself in; options of options have no field."""
    field = config.model_fields[name]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    return bool(extra.get("hidden")) or isinstance(field.default, dict)


def _splits(kind: str, names: Sequence[str]) -> dict[str, str]:
    """Who plays which part, prefilled with the parts given on the page Corpora."""
    labels = {
        "task": "T_C, your task's text", "domain": "D_C, to select from", "train": "L_C train",
        "dev": "L_C dev: every choice is made on it", "test": "L_C test: read once, at the end",
    }  # fmt: skip
    roles, picked = facade.roles(), {}
    for column, name in zip(st.columns(len(names)), names, strict=True):
        with column:
            key = f"training.{kind}.{name}.{roles.get(name)}"
            picked[name] = corpus_picker(labels[name], key, roles.get(name)) or ""
    return picked


def _seeds(kind: str, default: str) -> tuple[str, ...]:
    return listed(
        st.text_input("Seeds", default, key=f"training.{kind}.seeds", help="One training each: 1, 2, 3. 5 for a claim.")
    )


def _finetune() -> dict[str, Any] | None:
    picked = _splits("finetune", ("train", "dev", "test"))
    left, right = st.columns(2)
    with left:
        init = _init("finetune")
    with right:
        seeds = _seeds("finetune", "1")
    if not (picked["train"] and picked["dev"]):
        st.info("Pick labelled sentences to train on, and a dev split that says when to stop.")
        return None
    own = ("train", "dev", "test", "init", "seeds")
    test = (picked["test"],) if picked["test"] else ()
    return {**picked, "test": test, "init": init, "seeds": seeds, **_preset("finetune", own)}


def _experiment() -> dict[str, Any] | None:
    picked = _splits("experiment", ("task", "domain")) | _splits("experiment", ("train", "dev", "test"))
    if not (picked["train"] and picked["dev"] and picked["test"]):
        st.info("An experiment needs the three labelled splits; T_C and D_C are for arms that are pre-trained.")
        return None
    further = _further()
    options = {**picked, **further, **_lines(further, bool(picked["task"] and picked["domain"])),
               **_experiment_settings()}  # fmt: skip
    try:
        facade.calibration(options)
    except facade.ConfigError as error:
        st.info(plain(str(error)))
        return None
    return options


def _lines(further: Mapping[str, Any], unlabelled: bool) -> dict[str, Any]:
    """The lines of the leaderboard. unlabelled: there are a T_C and a D_C."""
    left, middle, right = st.columns((2, 1, 1))
    names = [*facade.ARM_NAMES, *_valued(further)]
    arms = left.multiselect(
        "What is compared", names, [name for name in ARMS if name in names] if unlabelled else [ARMS[0]],
        key="training.experiment.arms", accept_new_options=True,
        help="What no verdict can do without is added: none, and what a choice must beat. Type for others: "
        f"{', '.join(facade.ARM_SHAPES)}.",
    )  # fmt: skip
    budgets = listed(
        middle.text_input("Budgets", "10%", key="training.experiment.budgets", help="10%, 20% or 1000: sentences.")
    )
    with right:
        return {"arms": arms, "budgets": budgets, "seeds": _seeds("experiment", "1, 2, 3")}


def _further() -> dict[str, Any]:
    """What some arms read or borrow, and harder test sets."""
    with st.expander("Sources, borrowed labels, harder test sets", icon=":material/add_circle:"):
        left, right = st.columns(2)
        with left:
            sources = _several("Sources, for vectors:SOURCE and lm:SOURCE", "sources", "as much is read of each")
            also_test = _several("Further test sets", "also_test", "shown beside the test set, in no verdict")
        with right:
            assisting = corpus_picker("Assisting labelled corpus, for all and skl:THRESHOLD",
                                      "training.experiment.assisting", None) or ""  # fmt: skip
            network = st.selectbox(
                "Network", NETWORKS, 0, lambda name: NETWORKS[name], key="training.experiment.network",
                help="The same for every arm.",
            )  # fmt: skip
        maps = st.text_input(
            "Types by another name", key="training.experiment.map", help="PER=person, in the assisting corpus or yours"
        )
        rare = _rare()
    found = {"sources": sources, "also_test": also_test, "assisting": assisting, "type_map": listed(maps), **rare}
    return found | ({"finetune": {"network": network}} if network else {})


def _rare() -> dict[str, Any]:
    left, right = st.columns(2)
    cap = left.number_input("Tokens read of every source", 0, None, 0, key="training.experiment.cap",
                            help="0: as many as the smallest source has.")  # fmt: skip
    judge = right.text_input(
        "Encoder that judges names and contexts", key="training.experiment.judge",
        placeholder="the one that is trained",
        help="For arms that rebuild L_C, such as highc2low:20%: whether one encoder's PVI helps to train another.",
    )  # fmt: skip
    return {"cap_tokens": cap, "difficulty_encoder": judge.strip()}


def _several(label: str, name: str, told: str) -> tuple[str, ...]:
    here = {corpus.fingerprint: corpus for corpus in facade.corpora()}
    return tuple(
        st.multiselect(label, list(here), format_func=lambda fingerprint: corpus_label(here[fingerprint]),
                       key=f"training.experiment.{name}", placeholder="none", help=told)
    )  # fmt: skip


def _valued(further: Mapping[str, Any]) -> list[str]:
    """Arms with a value that go with what was picked; others can be typed."""
    values = {
        "SOURCE": [facade.corpus(source).name for source in further["sources"]],
        "THRESHOLD": ["1", "2", "4"] if further["assisting"] else [],
        "RATE": ["20%"],
    }
    shapes = (shape.split(":") for shape in facade.ARM_SHAPES)
    return [f"{head}:{value}" for head, kind in shapes for value in values[kind]]


def _experiment_settings() -> dict[str, Any]:
    """Of the stages; what else they know is said in a PLAN.yaml."""
    return {"encoder": _init("experiment"), **_preset("experiment", (), ("quick", "paper"))}
