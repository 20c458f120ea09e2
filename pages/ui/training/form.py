"""The form of a training, and the steps, time, memory and disk space that it will take."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.cards import hindrance
from core.experiment import find_out, results
from core.experiment import view as experiments
from core.experiment.foresight import Foresight
from core.experiment.next_step import deciding_options
from core.importing import view as corpora
from core.kinds import KINDS
from core.processes import cores
from core.projects import machine, preferences, runs
from core.projects.titles import selection_titles
from core.selection import choices
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.shown import duration
from core.tagging import view as training
from pages.ui.project import page_link
from pages.ui.runs.links import AGAIN, WHAT
from pages.ui.runs.panel import time_machine
from pages.ui.training import experiment
from pages.ui.training.fill import fill
from pages.ui.training.parts import FIRST_EPOCHS, PRESETS, seed_list, settings, several, splits, start_from
from pages.ui.widgets import config_form, corpus_labels, corpus_picker, listed, plain, size, table

LONG = 3600.0  # seconds without a GPU above which the form recommends another preset

GB = 1e9
FEW = 3  # number of seeds below which the form warns


def show(kind: str, options: Mapping[str, Any], on: str = "") -> None:
    """Draw the box above the button Start: expected steps, time, memory and disk space.

    kind: kind of run. on: place where an experiment is to compute, a value of the option `--on`.
    """
    with st.container(border=True, key="training-preflight"):
        st.markdown("**Before you start**")
        seconds = _experiment(options, on) if kind == "experiment" else _single(kind, options)
        if reason := hindrance():
            st.warning(plain(reason), icon=":material/memory:")
        elif machine.device() == "cpu":
            _processor(seconds, str(options.get("preset")))
        if seconds is None:
            _time_it(kind, options)
        if kind == "experiment":
            _foresight(options)
            if alike := prevalence.before(options):
                st.caption(plain(alike))


def _foresight(options: Mapping[str, Any]) -> None:
    """Show the smallest gain that the experiment can detect, as a warning if it has few seeds, and larger plans."""
    foresight = experiments.foresight(options)
    if foresight.seeds < FEW:
        st.warning(plain(foresight.summary()), icon=":material/casino:")
    else:
        st.caption(plain(foresight.summary()))
    if foresight.seeds > 1 and foresight.claim and foresight.plans:
        _chances(foresight)


def _chances(foresight: Foresight) -> None:
    """Show in how many of 100 cases this plan, and larger ones, detect the planned gain."""
    rows = [
        {
            "plan": f"{'' if i else 'this one: '}{plan.in_words()}",
            "found": f"{100 * plan.chance:.0f} of 100 cases",
            "time": plan.takes,
        }
        for i, plan in enumerate(foresight.plans)
    ]
    if foresight.cannot:
        rows[0]["found"] = f"never, {foresight.cannot}"
    names = {"plan": "Plan", "found": f"Detects {foresight.wanted} in", "time": "Time"}
    if not any(row["time"] for row in rows):
        del names["time"]
    table(rows, names, "What larger plans would detect")


def _single(kind: str, options: Mapping[str, Any]) -> float | None:
    estimate = training.preflight(kind, options)
    if estimate.problem:
        st.error(plain(estimate.problem), icon=":material/error:")
    with st.container(horizontal=True):
        st.metric("Steps, at most", f"{estimate.steps:,}", width="content")
        _numbers(estimate.seconds, estimate.memory_gb, estimate.disk_gb, "" if estimate.measured else "at least ")
    if estimate.seconds is not None:
        longest = ""
        if estimate.most is not None and estimate.most > estimate.seconds:
            longest = f" At most {duration(estimate.most)}, if no training stops early."
        st.caption(plain(f"Time: {estimate.basis}{longest}"))
    return estimate.seconds


def _experiment(options: Mapping[str, Any], on: str) -> float | None:
    cost = experiments.cost_if_known(options, on)
    if cost is None:
        return None
    done = sum(step.finished for step in cost.steps)
    with st.container(horizontal=True):
        st.metric("Runs to make", f"{len(cost.steps) - done:,}", width="content")
        _numbers(cost.wall, cost.memory_gb, cost.disk_gb, "", cost.processes)
    if done:
        st.caption(f"{done:,} of {len(cost.steps):,} runs are finished already and are not made again.")
    cards = (
        f" {cost.at_once} runs at once, one per GPU; {duration(cost.seconds)} of GPU time in total."
        if cost.at_once > 1
        else ""
    )
    words = (f"Time: {cost.basis}{cards}" if cost.basis else "", cost.shared_words, cost.person_words)
    st.caption(plain(" ".join(filter(None, words))))
    with st.expander("Run by run", icon=":material/table:"):
        rows = [
            f"| {step.kind} | {plain(f'{step.line} {step.what}')} "
            f"| {'finished' if step.finished else duration(step.seconds)} |"
            for step in cost.steps
        ]
        st.markdown("\n".join(["| Run | Variant | Time |", "| :-- | :-- | --: |", *rows]))
    return cost.wall


def _numbers(seconds: float | None, memory: float | None, disk: float | None, least: str, n: int = 1) -> None:
    """Show the expected time in seconds, and memory and disk space in GB. Warn if less memory or space is free.

    least: words before the memory if it is a lower bound, else "". n: number of processes that share this memory.
    """
    st.metric("Time, about", "not known yet" if seconds is None else duration(seconds), width="content")
    free, _ = machine.memory()
    of = "GPU memory" if machine.device() == "gpu" else "memory"
    if memory is not None:
        st.metric(
            f"{of.capitalize()}, {least or 'about '}".rstrip(", "),
            size(memory * GB),
            width="content",
            help=f"{size(free)} are free now.",
        )
    if disk:
        st.metric("Disk, at most", size(disk * GB), width="content", help=f"{size(machine.disk()[0])} are free now.")
    if memory is not None and (short := machine.shortage(memory, n)):
        st.warning(
            f"{short} Close other programs, or raise gradient accumulation under Custom.", icon=":material/memory:"
        )
    if disk is not None and disk * GB > machine.disk()[0]:
        st.warning(
            f"Only {size(machine.disk()[0])} of disk space are free; free more first.", icon=":material/hard_drive:"
        )


def _processor(seconds: float | None, preset: str) -> None:
    """Show the expected time without a GPU, and recommend another preset if it is long. seconds: None if unknown."""
    text = f"No GPU here: this trains on {cores()} processor cores"
    text += "." if seconds is None else f", in about {duration(seconds)}."
    if preset == "paper" and (seconds is None or seconds > LONG):
        text += " The published settings are made for a GPU; Quick compares selections just as well in far less time."
    st.info(text, icon=":material/developer_board:")


def _time_it(kind: str, options: Mapping[str, Any]) -> None:
    """Draw the button that times this machine for an estimate, or a note if there is no text to time it on."""
    asked = _calibration(kind, options)
    if asked is None:
        st.caption("An estimate appears after the first steps. The next run of this kind has one from the start.")
    else:
        time_machine(asked, "training")


def _calibration(kind: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    if kind == "experiment":
        wanted = experiments.calibrations(options)
        return next((one for one in wanted if runs.finished("calibrate", one) is None), None)
    roles, encoder = corpora.roles(), training.root_encoder(options["init"])
    if not {"task", "train"} <= roles.keys():
        return None
    network = {name: options[name] for name in ("network", "hidden") if options.get(name)}
    texts = {"task": roles["task"], "train": roles["train"], "domain": roles.get("domain", "")}
    return {"encoder": encoder, **network, **texts}


def fewer_labels(options: Mapping[str, object], key: str) -> dict[str, object]:
    """If an experiment would take hours, offer to train on fewer labels. Return the options, changed or not."""
    offer, whole = experiments.shorter(options), experiments.cost_if_known(options)
    if offer is None or whole is None:
        return dict(options)
    times = {0: f"all of your labels: {duration(whole.seconds)}"}
    times[offer.labels] = f"{offer.labels:,} of your labels: {duration(offer.seconds)}"
    chosen = st.segmented_control(
        "This takes hours. Train on",
        list(times),
        format_func=times.__getitem__,
        default=0,
        required=True,
        key=key,
        help="Fewer labels train faster. The sentences are drawn at random, the same ones for every variant.",
    )
    return experiments.on_fewer_labels(options, chosen) if chosen else dict(options)


def not_estimated(options: Mapping[str, object]) -> None:
    """Show which estimates of a score with more labels are impossible, and why."""
    for words in experiments.not_estimated(options):
        st.info(plain(words))


CHOICE, ARRIVED, ADRIFT = "training.selection", "training.arrived", ":material/link_off:"
HELD = "Dev and test sets. Their sentences and near duplicates are left out, because they would make the test too easy."


def options(kind: str) -> dict[str, Any] | None:
    """Draw the form of a kind of training run and return its options; None while a corpus is missing."""
    if kind == "experiment":
        _latest_settings()
    return {"pretrain": _pretrain, "finetune": _finetune, "experiment": experiment.options}[kind]()


def _latest_settings() -> None:
    """Offer to fill in the settings of the newest finished experiment on these corpora, to use its runs again."""
    finished = runs.of_corpora_in_use(runs.own("experiment", state="succeeded"))
    usable = (run for run in finished if not (results.removed_inputs(run.id) or results.allowed_by_another(run.id)))
    if latest := next(usable, None):
        st.button(
            "Fill in the settings of the latest experiment",
            key="training.experiment.latest",
            icon=":material/history:",
            on_click=fill,
            args=(latest.manifest.config,),
            help="Its runs are used again if their options stay the same, and if this processor computes in the same "
            "precision as theirs did. Runs of Winnow 0.4 are computed again.",
        )


def _pretrain() -> dict[str, Any] | None:
    left, right = st.columns(2)
    with left:
        text = _text()
    with right:
        init = start_from("pretrain")
        judged_by = corpora.judged_by()
        # The key contains these corpora, so that a new dev or test set is left out too.
        key = f"training.pretrain.holdout.{'.'.join(judged_by)}"
        holdout = several("Never read", key, HELD, labelled=True, at_first=judged_by)
    if not text:
        st.info("Pick the text to pre-train on: the task corpus, a selection from the page Selection, or both.")
        return None
    own = ("corpora", "init", "holdout")
    return {"corpora": text, "init": init, "holdout": holdout, **settings("pretrain", own)}


def _text() -> tuple[str, ...]:
    """Ask for the text to pre-train on, whole corpora and a selection, and return fingerprints.

    A selection is stored as a corpus, with its hand edits.
    """
    roles, here = corpora.roles(), corpus_labels(corpora.listed())
    whole = st.multiselect(
        "Text to pre-train on",
        list(here),
        [roles["task"]] if "task" in roles else [],
        here.__getitem__,
        # The key contains the task corpus, so that a new one resets the field.
        key=f"training.corpora.{roles.get('task')}",
        placeholder="pick corpora",
        help="The task corpus alone, or the task corpus and a selection. An experiment shows which helps more.",
    )
    now = find_out.choice_now()
    known = {choice.id: choice for choice in (*([now] if now else []), *choices.listed())}
    names = selection_titles(known.values())
    if not names:
        page_link("pages/3_Selection.py", label="Make a selection to train on as well", icon=":material/filter_alt:")
        return tuple(whole)
    listed = ["", *names]
    at_first = listed.index(now.id) if now and now.id in names else 0
    picked = st.selectbox("Selection", listed, at_first, lambda name: names.get(name, "none"), key=CHOICE)
    if not picked:
        return tuple(whole)
    return tuple(dict.fromkeys((*whole, selections.seal(picked).fingerprint)))


def follow_address() -> bool:
    """Fill in the form for a selection or an experiment in the URL, or choose the form that the URL names.

    Do this only once per visit of the page with this URL. Return True if it was done.
    """
    if again := str(st.query_params.get(AGAIN, "")):
        return _follow_experiment(again)
    if st.query_params.get(WHAT) == "experiment" and "training.kind" not in st.session_state:
        st.session_state["training.kind"] = "experiment"
        return True
    named = str(st.query_params.get("choice", ""))
    # The field exists if the user has not left the page meanwhile.
    if not named or (st.session_state.get(ARRIVED) == named and "training.kind" in st.session_state):
        return False
    st.session_state[ARRIVED] = named
    if named not in [choice.id for choice in choices.listed()]:
        st.warning(
            "The selection in this address does not exist: it was removed, or the address is wrong.", icon=ADRIFT
        )
        return False
    choices.take_up(named)
    st.session_state["training.kind"], st.session_state[CHOICE] = "pretrain", named
    return True


def _follow_experiment(run_id: str) -> bool:
    """Fill in a larger experiment that would decide the question that the experiment `run_id` left open.

    Return True if the form was filled in.
    """
    if "training.kind" in st.session_state:  # The field exists, so the user has not just come to this page.
        return False
    known = run_id in [run.id for run in runs.listed("experiment", state="succeeded")]
    if known and results.allowed_by_another(run_id):
        st.warning(
            "The experiment in this address may send sentences to another computer. Only the sender of its project "
            "file allowed that. Plan a new experiment below to allow it yourself.",
            icon=ADRIFT,
        )
        return False
    if not known or not (options := deciding_options(run_id)):
        st.warning(
            "The experiment in this address cannot be repeated, because it or one of its corpora was removed.",
            icon=ADRIFT,
        )
        return False
    st.session_state["training.kind"] = "experiment"
    fill(options)
    return True


def _finetune() -> dict[str, Any] | None:
    picked = splits("finetune", ("train", "dev", "test"))
    left, right = st.columns(2)
    with left:
        init = start_from("finetune")
    with right:
        seeds = seed_list("finetune", "1")
    aside = "For example robustness sets. Each is used only once, after training."
    further = several("Further test sets", "training.finetune.also_test", aside, labelled=True)
    if not (picked["train"] and picked["dev"]):
        st.info("Pick a training set, and a dev set, which decides when training stops.")
        return None
    own = (
        *("train", "dev", "test", "init", "seeds", "dev_every"),
        *("first", "first_epochs", "type_map", "unlabelled", "distant"),
    )
    test = tuple(dict.fromkeys(filter(None, (picked["test"], *further))))
    begun = {"init": init, "seeds": seeds, **_first(), **_unlabelled()}
    if preferences.expert():
        labels = {"dev_every": "Also score the dev set every"}
        begun |= config_form(KINDS["finetune"].config, ("dev_every",), "training.finetune", labels)
    return {**picked, "test": test, **begun, **settings("finetune", own, tuple(PRESETS))}


def _unlabelled() -> dict[str, Any]:
    """Ask for unlabelled sentences and lists of names to learn from too. Return the options, {} if none are picked."""
    with st.expander("Sentences without labels too", icon=":material/auto_awesome:"):
        st.caption(
            "A first tagger labels these sentences. A second tagger also learns from the names of which the first is "
            "sure. The second tagger is used only if its dev F1 is higher. If you give lists of names, a tagger first "
            "learns from their matches."
        )
        left, right = st.columns(2)
        with left:
            text = corpus_picker("Sentences, such as a selection", "training.finetune.unlabelled", None)
        with right:
            lists = several(
                "Lists of names", "training.finetune.distant", "imported as labelled corpora", labelled=True
            )
    return {"unlabelled": text, "distant": lists} if text else {}


def _first() -> dict[str, Any]:
    """Ask for another labelled corpus to train on first. Return the options, {} if none is picked."""
    with st.expander("Labels of another corpus first", icon=":material/step_into:"):
        st.caption(
            "The tagger trains on the other corpus, then on your training set. It keeps what it has learnt about types "
            "with the same name. Sentences that are also in your dev or test sets are left out."
        )
        left, middle, right = st.columns(3)
        here = (corpus for corpus in corpora.listed() if corpus.labelled)
        with left:
            first = corpus_picker("Corpus to train on first", "training.finetune.first", None, here)
        with middle:
            prefix, labels = "training.finetune", {"first_epochs": FIRST_EPOCHS}
            options = config_form(KINDS["finetune"].config, ("first_epochs",), prefix, labels)
        maps = right.text_input(
            "Types by another name",
            key="training.finetune.type_map",
            placeholder="PER=person",
            help="Needed if a type has another name in that corpus than in your training set.",
        )
    return {"first": first, **options, "type_map": listed(maps)} if first else {}
