"""Fields of the forms on Training: corpora by role, encoder, word vectors, seeds, and the settings of a preset."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, get_origin

import streamlit as st

from core.config import Config
from core.encoders import view as encoders
from core.experiment import deliver
from core.importing import view as corpora
from core.importing.result import ROLES
from core.kinds import KINDS
from core.paths import allowed_path, allowed_roots
from core.projects import preferences, runs
from core.projects.titles import encoder, run_titles
from core.tagging import view as training
from core.tagging.config import IMPORTED
from pages.ui.frame import guard
from pages.ui.runs.panel import run_panel
from pages.ui.terms import term_picker
from pages.ui.widgets import config_form, corpus_labels, corpus_picker, listed, plain, submitted, table

VECTORS_RUN = "training.vectors.run"
HELP = "A text file of word2vec, GloVe or fastText (.vec), plain or as .gz. It is not copied, so it may be large."


def vectors_import() -> None:
    """Draw a table of the imported word vectors, the form that imports some, and the progress of the latest import."""
    with st.expander("External word vectors (GloVe, word2vec, fastText)", icon=":material/match_word:"):
        if here := list(training.imported_vectors().values()):
            names = {"name": "Name", "words": "Words", "dimension": "Dimensions"}
            rows = [{key: getattr(one, key) for key in names} for one in here]
            table(rows, names, "Word vectors that are here", names=("name",))
        with guard():
            _form()
        begun = next(iter(runs.own("vectors-import")), None)
        if begun and runs.state(begun.id).state != "succeeded":
            run_panel(begun.id, VECTORS_RUN)


def _form() -> None:
    with st.form("training.vectors.form", border=False):
        path = st.text_input("File", key="training.vectors.path", placeholder="/home/me/glove.6B.100d.txt", help=HELP)
        left, right = st.columns(2)
        config = KINDS["vectors-import"].config
        with left:
            options = config_form(config, ("name",), "training.vectors")
        with right:
            options |= config_form(config, ("most_words",), "training.vectors", {"most_words": "Read only the first"})
        sent = submitted("Read the vectors", "training.vectors.start", icon=":material/download:")
    st.caption(
        "Used by the variants vectors:NAME of an experiment with a BiLSTM, and by Fine-tune under Custom with the "
        f"network bilstm or charcnn. Files must be in {', '.join(plain(str(root)) for root in allowed_roots())}."
    )
    if sent and not path.strip():
        st.info("Give the path of the file.")
    elif sent:
        runs.start("vectors-import", {**options, "path": str(allowed_path(path.strip(), allowed_roots()))})
        st.rerun()


def picked(name: str, label: str, key: str, why: str) -> str:
    """Ask for one of the imported word vectors, and return its name; "" for none.

    name: name of the option. key: prefix of the widget key. why: help text.
    """
    names = ["", *(one.name for one in training.imported_vectors().values())]
    return str(st.selectbox(label, names, format_func=lambda name: name or "none", key=f"{key}.{name}", help=why))


def several_picked(key: str) -> tuple[str, ...]:
    """Ask for any number of the imported word vectors, and return their names. Draw nothing if there are none."""
    names = [one.name for one in training.imported_vectors().values()]
    if not names:
        return ()
    why = "Each adds a variant vectors:NAME. All variants then use word vectors with as many dimensions as these."
    return tuple(st.multiselect("External word vectors", names, key=key, placeholder="none", help=why))


BUNDLED, BUNDLED_SAYS = "minilm", "MiniLM, bundled: works offline; English, uncased"
PRESETS = {"quick": "Quick", "paper": "Paper", "paper-bias": "Paper on bias", "custom": "Custom"}
USUAL = ("quick", "paper", "custom")
MEANING = {
    "quick": "Few epochs: for a first look, and to compare selections.",
    "paper": "The settings of the published experiments: for numbers to report, best on a GPU.",
    "paper-bias": "The settings of Ma et al. 2023 for rebuilt labels: softmax, the last epoch (paper-bias).",
}
AND_BIAS = " If variants rebuild the labels and none is pre-trained, taggers train as in Ma et al. 2023 (paper-bias)."
FIRST_EPOCHS = "Epochs on the corpus to train on first"
CUSTOM = "You set every option. Empty fields keep the default."


def splits(kind: str, names: Sequence[str]) -> dict[str, str]:
    """Ask for the corpora of some roles, and return {role: fingerprint}, "" for none.

    The default is the roles set on the page Corpora. kind: kind of run, part of the widget keys.
    """
    roles, picked = corpora.roles(), {}
    for column, name in zip(st.columns(len(names)), names, strict=True):
        with column:
            # The key contains the corpus in use, so that the field is reset if the role changes on another page.
            key = f"training.{kind}.{name}.{roles.get(name)}"
            picked[name] = term_picker(ROLES[name], key, roles.get(name)) or ""
    return picked


def start_from(kind: str) -> str:
    """Ask for the encoder to start from: the bundled one, a finished pre-training, or a typed name. Return it."""
    names = _encoders()
    picked = st.selectbox(
        "Start from",
        list(names),
        0,
        lambda name: names.get(name, name),
        key=f"training.{kind}.init",
        accept_new_options=True,
        help="You can also type a folder, or the Hugging Face name of an encoder on this machine, such as "
        "bert-base-cased.",
    )
    return picked if kind == "finetune" else _as_encoder(picked)


def encoder_axis(kind: str) -> tuple[str, ...]:
    """Ask for further encoders with which every variant is run too. Return them as `encoder:NAME`."""
    names = _encoders()
    picked = st.multiselect(
        "Also run every variant with these encoders",
        list(names),
        format_func=lambda name: names.get(name, name),
        key=f"training.{kind}.axis",
        accept_new_options=True,
        placeholder="none: one encoder for all",
        help="Each has its own rows in the leaderboard, with the same selection and labelled data. You can also type a "
        "folder. Each further encoder trains every variant again.",
    )
    return tuple(f"encoder:{_as_encoder(name)}" for name in picked)


def _encoders() -> dict[str, str]:
    """Return {encoder: label} of the bundled encoder, finished `pretrain` runs, and downloaded encoders."""
    done = run_titles(runs.listed("pretrain", state="succeeded"), lambda run: encoder(run.id))
    return {BUNDLED: BUNDLED_SAYS} | done | {e.name: e.says for e in encoders.offered() if e.here}


def _as_encoder(name: str) -> str:
    """Return the folder of the model if `name` is a `pretrain` run, else `name` itself."""
    done = {run.id for run in runs.listed("pretrain", state="succeeded")}
    return str(deliver.model_folder(name)) if name in done else name


def seed_list(kind: str, default: str) -> tuple[str, ...]:
    """Ask for seeds, and return them. kind: kind of run, part of the widget key. default: seeds as text."""
    return listed(
        st.text_input(
            "Seeds",
            default,
            key=f"training.{kind}.seeds",
            help="One tagger is trained per seed. Example: 1, 2, 3. Use 5 seeds for a claim.",
        )
    )


def several(
    label: str,
    key: str,
    why: str,
    *,
    labelled: bool = False,
    at_first: Sequence[str] = (),
    without: Collection[str] = (),
) -> tuple[str, ...]:
    """Ask for any number of corpora, and return their fingerprints.

    why: help text. labelled: True to offer only labelled corpora. at_first: the default. without: corpora not to offer,
    unless the field has them already because a repeated experiment filled the form.
    """
    without = set(without).difference(st.session_state.get(key, ()))
    offered = (corpus for corpus in corpora.listed() if corpus.labelled or not labelled)
    here = corpus_labels(corpus for corpus in offered if corpus.fingerprint not in without)
    return tuple(
        st.multiselect(
            label,
            list(here),
            [fingerprint for fingerprint in at_first if fingerprint in here],
            format_func=here.__getitem__,
            key=key,
            placeholder="none",
            help=why,
        )
    )


def worded(name: str, label: str, words: Mapping[str, str]) -> str:
    """Ask for the value of an experiment's option, and return it. words: {value: description}."""
    return str(st.selectbox(label, list(words), 0, words.__getitem__, key=f"training.experiment.{name}"))


def settings(kind: str, own: Sequence[str], presets: Sequence[str] = USUAL) -> dict[str, Any]:
    """Ask for the preset and, if it is `custom`, for all options that have no other field. Return these options.

    kind: kind of run. own: options that the form asks for elsewhere. presets: presets to offer.
    """
    meaning = MEANING | ({"paper": MEANING["paper"] + AND_BIAS} if kind == "experiment" else {})
    preset = preset_picker(f"training.{kind}.preset", meaning, presets)
    if preset != "custom":
        return {"preset": preset}
    config = KINDS[kind].config
    names = [name for name in config.model_fields if name not in (*own, "preset") and not _elsewhere(config, name)]
    columns = st.columns(3)
    options: dict[str, Any] = {}
    for i, name in enumerate(names):
        with columns[i % 3]:
            options |= _option(config, name, f"training.{kind}")
    return {"preset": preset, **options}


def preset_picker(key: str, meaning: Mapping[str, str], presets: Sequence[str] = USUAL) -> str:
    """Ask for the preset, and return it. Only experts can choose `custom`.

    meaning: {preset: description}, for all but `custom`.
    """
    if not preferences.expert():
        presets = [name for name in presets if name != "custom"]
        # Forget `custom`, because Streamlit raises an error for a value that is not among the choices.
        if st.session_state.get(key) == "custom":
            del st.session_state[key]
    preset: str = st.segmented_control(
        "Settings", presets, default="quick", format_func=PRESETS.__getitem__, required=True, key=key
    )
    st.caption(meaning.get(preset, CUSTOM))
    return preset


def use_custom(kind: str, values: Mapping[str, Any]) -> None:
    """Choose the preset Custom, fill in fields below it, and turn on expert mode. For the `on_click` of a button.

    kind: kind of run. values: {option: value}.
    """
    preferences.set_expert(True)
    for name, value in {"preset": "custom", **values}.items():
        st.session_state[f"training.{kind}.{name}"] = value


def _option(config: type[Config], name: str, prefix: str) -> dict[str, Any]:
    """Draw the field of an option, and return {option: value}. If the option names a corpus, the value may be ""."""
    field = config.model_fields[name]
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    label = name.replace("_", " ").capitalize()
    if name in IMPORTED:
        return {name: picked(name, label, prefix, plain(field.description or ""))}
    if not extra.get("corpus"):
        return config_form(config, (name,), prefix)
    key, about = f"{prefix}.{name}", plain(field.description or "")
    if get_origin(field.annotation) is tuple:
        return {name: several(label, key, about, labelled=True)}
    return {name: corpus_picker(label, key, None, help=about) or ""}


def _elsewhere(config: type[Config], name: str) -> bool:
    """Return True if the form must not show an option, because Winnow sets it."""
    extra = config.model_fields[name].json_schema_extra
    return isinstance(extra, dict) and bool(extra.get("hidden"))
