"""Fill in the form of an experiment with the options of another one."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.experiment import view
from core.experiment.arms import ENCODER
from core.experiment.config import ExperimentConfig
from core.importing import view as corpora
from core.projects import preferences
from core.shown_command import pairs, quoted
from pages.ui.training.experiment import NUMBERS, SAME, TYPED
from pages.ui.training.variants import arm_names, fill_in

KEY = "training.experiment"
NAMES = {  # {option: end of its field's key}, for options whose key does not end in their name
    "encoder": "init",
    "cross_train": "labels",
    "cross_dev": "choices",
    "type_map": "map",
    "difficulty_encoder": "judge",
}
TYPED_IN = ("budgets", "seeds", "looks", "type_map", "train_sizes", "cap_tokens")  # lists typed into a text field

ROLES = ("task", "domain", "train", "dev", "test")  # Their widget keys contain the corpus in use.

# options with a field that only experts see
RARE = (
    *("axis", "holdout", "fixed", "transductive", "draw_seed", "difficulty_encoder"),
    *("train_sizes", "draws", "cap_tokens", "transfer_epochs", "allow_download"),
)


def fill(options: Mapping[str, Any]) -> None:
    """Set every field of the form to these options, so that no earlier entry remains.

    If an option with an expert's field differs from its default, turn on expert mode. Variants and options of stages
    without a field are put into the text fields for variants and options.
    """
    config, state = ExperimentConfig.parse(dict(options)), st.session_state
    fields = ExperimentConfig.model_fields
    if any(getattr(config, name) != fields[name].default for name in RARE):
        preferences.set_expert(True)
    for role in ROLES:
        state[f"{KEY}.{role}.{corpora.roles().get(role)}"] = getattr(config, role) or None
    for name in fields:
        if name not in (*ROLES, *view.STAGES, "arms", "imports", "weights", "edition"):
            state[_key(name, config)] = _value(name, getattr(config, name))
    known = arm_names(dict(config))
    first_typed = next((i for i, name in enumerate(config.arms) if name not in known), len(config.arms))
    # From the first unknown variant on, all variants are put into the text field, so that their order is kept.
    fill_in(config.arms[:first_typed])
    _fill_stages(config, config.arms[first_typed:])


def _key(name: str, config: ExperimentConfig) -> str:
    swapped = ".cross" if name == "seeds" and config.cross else ""
    return f"{KEY}{swapped}.{NAMES.get(name, name)}"


def _value(name: str, value: Any) -> Any:
    """Return the value of an option in the form that its field takes."""
    if name in TYPED_IN:
        return ", ".join(map(str, value))
    if name == "axis":
        return [each.removeprefix(ENCODER) for each in value]
    if name in ("assisting", "gazetteer", "cross_train", "cross_dev"):
        return value or None
    return list(value) if isinstance(value, tuple) else value


def _fill_stages(config: ExperimentConfig, arms: tuple[str, ...]) -> None:
    """Fill in the options of stages. arms: variants that the form does not offer, which go into its text field."""
    st.session_state[SAME] = False  # These options say how the selection is made.
    stages = {stage: dict(getattr(config, stage)) for stage in view.STAGES}
    for stage, name in NUMBERS:
        st.session_state[f"{KEY}.{stage}.{name}"] = stages[stage].pop(name, None)
    st.session_state[f"{KEY}.network"] = stages["finetune"].pop("network", "")
    lines = [f"{stage}.{pair}" for stage, own in stages.items() for pair in pairs(own)]
    st.session_state[TYPED] = (arms, lines)
    st.session_state[f"{KEY}.typed.arms"] = ", ".join(map(quoted, arms))
    st.session_state[f"{KEY}.typed"] = "\n".join(lines)
