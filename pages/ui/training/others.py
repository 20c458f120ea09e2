"""Fields for reference variants of an experiment: a ready model, and a language model on a server."""

from pathlib import Path
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
    """Ask for a ready model and a language model.

    Return the names of their variants, and {"llm": options} if the language model's host needs consent.
    """
    left, right = st.columns(2)
    with left:
        folder = ready_model(KEY)
    with right:
        asked = language_model(KEY)
    names = [find(f"zero-shot:{folder}").name] if folder else []
    names += [find("llm:{model}@{address}".format(**asked)).name] if asked else []
    host = asked.get("allow_host") if asked else None
    return names, {"llm": {"allow_host": host}} if host else {}


def ready_model(key: str) -> str:
    """Ask for the folder of a ready model, and return it; "" for none. key: prefix of the widget keys."""
    folder = st.text_input(
        "Folder of a ready model",
        key=f"{key}.folder",
        placeholder=str(Path.home() / "models" / "bert-base-NER"),
        help=f"The model tags the test sets without training (variant zero-shot:FOLDER). {FETCH} If it has another "
        "name for one of your types, give both names under Types by another name.",
    ).strip()
    try:
        return str(folder_of(folder)) if folder else ""
    except WinnowError as error:
        st.info(plain(str(error)))
        return ""


def language_model(key: str) -> dict[str, Any] | None:
    """Ask for a language model and its server. Return the options of an `llm` run, or None.

    None means that no model is given, that the address is wrong, or that the user has not agreed to send text to
    another computer. key: prefix of the widget keys.
    """
    model = st.text_input(
        "Language model",
        key=f"{key}.model",
        placeholder="qwen3:8b",
        help="A model that you run with Ollama, vLLM or llama.cpp (variant llm:MODEL@ADDRESS). It tags the test sets "
        "without training; its prompt contains examples from the training set.",
    ).strip()
    usual = LlmConfig.model_fields["address"]
    address = st.text_input("Address of its server", usual.default, key=f"{key}.address", help=usual.description)
    if not model:
        return None
    try:
        server = parsed(address.strip())
    except WinnowError as error:
        st.info(plain(str(error)))
        return None
    asked = {"model": model, "address": server.address}
    if server.here:
        return asked
    agreed = st.checkbox(
        f"Allow it. {plain(server.warning)}",
        key=f"{key}.allow.{server.address}",
        help="Text leaves this computer: sentences of the training set and of all test sets. Pages and the report name "
        "the host.",
    )
    return {**asked, "allow_host": server.host} if agreed else None
