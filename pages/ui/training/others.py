"""Fields for reference lines of an experiment: a ready model, and a language model on a server."""

from typing import Any

import streamlit as st

from core.errors import WinnowError
from core.experiment.arms import find
from core.llm.addresses import parsed
from core.llm.llm import LlmConfig
from core.zero_shot.folders import FETCH, folder_of
from pages.ui.widgets import plain

KEY = "training.experiment"


def others() -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Ask for a ready model and a language model; return the names of their variants, and options of `llm`."""
    with st.expander("Models of others: a ready model, a language model", icon=":material/smart_toy:"):
        left, right = st.columns(2)
        with left:
            ready = _ready_model()
        with right:
            asked, options = _language_model()
        names = [*ready, *asked]
        if names:
            st.caption("Add it under What is compared.")
    return names, options


def _ready_model() -> list[str]:
    """Ask for a ready model; return the name of its variant, [] without one."""
    folder = st.text_input(
        "Folder of a ready model",
        key=f"{KEY}.folder",
        placeholder="/home/me/models/bert-base-NER",
        help=f"It tags the test sets without training (variant zero-shot:FOLDER). {FETCH} If it has another name for a "
        "type of yours, give both under Types by another name.",
    ).strip()
    try:
        return [find(f"zero-shot:{folder_of(folder)}").name] if folder else []
    except WinnowError as error:
        st.info(plain(str(error)))
        return []


def _language_model() -> tuple[list[str], dict[str, dict[str, Any]]]:
    """Ask for a language model and its server; return the name of its variant, [] without one, and options of `llm`."""
    model = st.text_input(
        "Language model",
        key=f"{KEY}.model",
        placeholder="qwen3:8b",
        help="A model that you run with Ollama, vLLM or llama.cpp (variant llm:MODEL@ADDRESS). It tags the test sets "
        "without training, after examples from the training set.",
    ).strip()
    usual = LlmConfig.model_fields["address"]
    address = st.text_input("Address of its server", usual.default, key=f"{KEY}.address", help=usual.description)
    if not model:
        return [], {}
    try:
        name, server = find(f"llm:{model}@{address.strip()}").name, parsed(address.strip())
    except WinnowError as error:
        st.info(plain(str(error)))
        return [], {}
    if server.here:
        return [name], {}
    agreed = st.checkbox(
        f"Allow it. {plain(server.warning)}",
        key=f"{KEY}.allow.{server.address}",
        help="Text leaves this computer: sentences of the training set and of all test sets. Pages and the report name "
        "the host.",
    )
    return ([name], {"llm": {"allow_host": server.host}}) if agreed else ([], {})
