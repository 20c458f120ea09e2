"""The frame of every page: configuration, sidebar, heading, and error messages."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core import door, errors
from core.errors import CorpusError, WinnowError
from core.files import on_disk
from core.paths import confine, home, machine_home
from core.projects import audit, privacy, runs
from core.projects import view as projects
from core.projects.titles import title
from core.projects.view import unreadable
from core.terms import Term
from pages.ui import project
from pages.ui.project import page_link
from pages.ui.runs.links import link
from pages.ui.runs.words import brief, ending, share
from pages.ui.terms import expert_switch, glossary
from pages.ui.widgets import forget_presses, plain, same_command

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "assets"
PAGES = {
    "": (("home.py", "Home", ":material/home:"), ("pages/10_Runs.py", "Runs", ":material/table_rows:")),
    "Prepare": (("pages/1_Corpora.py", "Corpora", ":material/library_books:"),),
    "Analyse": (
        ("pages/2_Similarity.py", "Similarity", ":material/join_inner:"),
        ("pages/3_Selection.py", "Selection", ":material/filter_alt:"),
        ("pages/4_Explore.py", "Explore", ":material/scatter_plot:"),
        ("pages/11_Label.py", "Label", ":material/label:"),
        ("pages/7_Bias.py", "Bias", ":material/psychology_alt:"),
        ("pages/8_Assisting.py", "Assisting", ":material/balance:"),
    ),
    "Train": (("pages/5_Training.py", "Training", ":material/model_training:"),),
    "Deliver": (("pages/6_Results.py", "Results", ":material/leaderboard:"),),
    "Sources": (("pages/9_Papers.py", "Papers", ":material/menu_book:"),),
}
BUG = "This is a bug in Winnow"
STRIP_POLL, STRIP_MOST = 2.0, 3  # seconds between updates; largest number of runs listed
ABOUT = "**Winnow** finds the part of a large corpus that is worth pre-training on. Nothing leaves this machine."
PROMISE = (
    "Texts, labels, models and results stay in folders of this machine. There is no telemetry, and your browser loads "
    "fonts and scripts from this program only. An encoder is fetched only if you ask for it. Sentences leave this "
    "machine only if you name a cluster, or a language model on another computer, and allow it. While sentences leave "
    "this machine, the badge on every page names the cluster or computer that gets them."
)
VERDICTS = {"ok": ":material/check:", "look": ":material/visibility:", "bad": ":material/error:"}
_theme = st.components.v2.component("winnow_theme", js=(ASSETS / "theme.js").read_text(encoding="utf-8"))
_focus = st.components.v2.component("winnow_focus", js=(ASSETS / "focus.js").read_text(encoding="utf-8"))
_ended = st.components.v2.component(
    "winnow_ended",
    js=(ASSETS / "ended.js").read_text(encoding="utf-8"),
    css="button { font: inherit; font-size: .875rem; color: inherit; background: none; border: 1px solid currentColor;"
    " border-radius: .5rem; padding: .25rem .6rem; cursor: pointer; }",
)
logger = logging.getLogger("winnow.pages")


@contextmanager
def page(title: str, summary: str, words: Sequence[Term] = (), *, low: bool = False) -> Iterator[DeltaGenerator]:
    """Draw a page's frame, run the `with` block inside `guard`, and yield the container of the heading.

    The page must not call Streamlit before this. words: terms that the page's glossary lists first. low: True to show
    the summary as a tooltip of the title, which saves a line, so that a large figure fits the window.
    """
    confine()
    st.set_page_config(
        page_title=title if title == "Winnow" else f"{title} · Winnow",
        page_icon=str(ASSETS / "icon.svg"),
        layout="wide",
        # Streamlit shows its menu, which has the theme switch, only if the app gives an entry for it.
        menu_items={"About": ABOUT},
    )
    st.html(ASSETS / "style.css")
    project.begin(_menu)
    _sidebar()
    with guard(buttons=""):
        _door_stands_open()
        heading = st.container(
            horizontal=True, vertical_alignment="center" if low else "bottom", key="low-heading" if low else None
        )
        with heading:
            st.title(title, anchor=False, width="content", help=summary if low else None)
            st.fragment(_words)(words)
        if not low:
            st.caption(summary)
        yield heading


@contextmanager
def guard(buttons: str | None = None) -> Iterator[None]:
    """Show an error of the `with` block on the page. A `WinnowError` is shown with its message.

    Any other error is a bug, and its traceback is written to the log. Use this around every page and every fragment,
    because a fragment also runs alone. buttons: prefix of button keys; presses of these buttons that the block did not
    handle are forgotten.
    """
    try:
        with on_disk(home()):
            yield
    except WinnowError as error:
        st.error(plain(str(error)), title="This did not work", icon=":material/error:")
    except Exception as error:  # noqa: BLE001  shown as a bug, without its message
        st.error(plain(bug(error)), title=BUG, icon=":material/bug_report:")
    if buttons is not None:
        forget_presses(buttons)


def bug(error: BaseException) -> str:
    """Write the traceback of an unexpected error to the log, and return a message for the user."""
    _log_file()
    logger.error("a page failed\n%s", errors.for_the_log(error))
    log = machine_home() / "app.log"
    return f"Your data and your runs have not changed. Details are in the log, {log}. Reload the page to continue."


@contextmanager
def where_text_is_here() -> Iterator[None]:
    """If a corpus that the `with` block needs was removed, show a note instead, and draw the rest of the page."""
    try:
        yield
    except CorpusError as error:
        st.info(plain(str(error)), icon=":material/link_off:")


def spoilt_files() -> None:
    """Warn of files in the project's folder that cannot be read. The rest of the page is drawn without them."""
    if files := unreadable():
        names = ", ".join(str(file.relative_to(home())) for file in files[:5])
        more = f" and {len(files) - 5} more" if len(files) > 5 else ""
        st.warning(
            f"These files cannot be read, so their content is left out: {plain(names)}{more}. A full or failing "
            "disk may be the cause. Restore them from a copy, or delete their folders.",
            icon=":material/broken_image:",
        )


def _door_stands_open() -> None:
    if door.mode() == "open":
        st.warning(
            "Access is open (WINNOW_DOOR=open): every account of this machine can use this Winnow and read its data.",
            icon=":material/no_encryption:",
        )


def looked(*corpora: str) -> None:
    """Note in the audit log that sentences of these corpora were shown, once per visit. corpora: fingerprints."""
    seen = st.session_state.setdefault("frame.looked", set())
    audit.note_look([mark for mark in dict.fromkeys(corpora) if mark not in seen])
    seen.update(corpora)


def _sidebar() -> None:
    st.logo(str(ASSETS / "logo.svg"), size="large", icon_image=str(ASSETS / "icon.svg"))
    with st.sidebar:
        st.fragment(_projects)()  # The menu of projects, a button with the name of this project.
        _menu()
        expert_switch()
        st.space("small")
        _strip()
        local_badge()
        _theme(key="theme", height=1, on_theme_change=lambda: None)
        _focus(key="focus", height=1)


def _menu(of: str | None = None) -> None:
    """Draw the links to the pages of this project, or of the project with the slug `of`."""
    with st.sidebar:
        for group, pages in PAGES.items():
            if group:
                st.caption(group)
            for path, label, icon in pages:
                page_link(path, of=of, label=label, icon=icon, width="stretch")


def _words(own: Sequence[Term]) -> None:
    with guard():
        glossary(own)


def _projects() -> None:
    with guard("project."):
        project.menu()


def _strip() -> None:
    """Draw the list of running runs below the menu of every page. There, its changing height moves nothing else."""
    running = [run.id for run in runs.at_work()]
    with st.container(key="strip"):
        polled = running or project.elsewhere()
        st.fragment(run_every=STRIP_POLL if polled else None)(_at_work)(running)


def _at_work(since: Sequence[str]) -> None:
    """Draw the running runs, and those that have ended since the page was drawn.

    since: ids of the runs that were running when the page was drawn.
    """
    with guard():
        now = [run.id for run in runs.at_work()]
        shown, running = [*dict.fromkeys((*now, *since))], dict[str, str]()
        for run_id in shown[:STRIP_MOST]:
            with suppress(WinnowError):  # The user may have removed the run meanwhile.
                state = runs.state(run_id)
                link(runs.get(run_id), plain(title(runs.get(run_id))), "stretch")
                if run_id in now:
                    running[run_id] = title(runs.get(run_id))
                if state.active:
                    st.progress(share(state), text=brief(state))
                else:
                    st.caption(ending(runs.get(run_id), state))
        if line := project.elsewhere():
            st.caption(plain(line))
        _ended(key="ended", data={"project": projects.current().slug, "running": running}, height="content")
        if len(shown) > STRIP_MOST:
            page_link("home.py", label=f"{len(shown) - STRIP_MOST} more", icon=":material/more_horiz:")


def local_badge() -> None:
    """Show that nothing leaves this machine, or name the hosts that get sentences. A browser test checks the claim."""
    if away := runs.recipients():
        st.badge(
            f"Sentences go to {plain(', '.join(away))}",
            icon=":material/lan:",
            color="orange",
            help="A run computes on a cluster or asks a language model on another computer, because you asked for it. "
            "Everything else stays on this machine.",
        )
        return
    st.badge(
        "Nothing leaves this machine",
        icon=":material/lock:",
        color="green",
        help="Winnow sends nothing to other machines: no telemetry, and no requests for fonts. It fetches a model only "
        "if you ask for one.",
    )


def privacy_line() -> None:
    """Show `local_badge`, and a button that explains it."""
    with st.container(horizontal=True, vertical_alignment="center", key="privacy"):
        local_badge()
        opened = st.popover("What this means", type="tertiary", key="home.privacy", on_change="rerun")
    if opened.open:
        with opened:
            _privacy()


def _privacy() -> None:
    st.markdown(PROMISE)
    if hosts := runs.asked_hosts():
        st.warning(
            f"Runs of this project were allowed to send sentences to {plain(', '.join(hosts))}.", icon=":material/lan:"
        )
    checks = privacy.checks()
    bad, doubtful = ([check for check in checks if check.verdict == verdict] for verdict in ("bad", "look"))
    if bad:
        st.error("The settings of this machine break this promise; see the checks below.", icon=VERDICTS["bad"])
    if doubtful:
        need = f"{len(doubtful)} of {len(checks)} checks need{'s' * (len(doubtful) == 1)}"
        st.info(plain(f"{need} the judgement of the person who looks after this machine."), icon=VERDICTS["look"])
    with st.expander("Checks of this machine, for an administrator", expanded=bool(bad)):
        st.markdown("\n".join(f"- {VERDICTS[check.verdict]} {plain(check.says)}" for check in checks))
        same_command("home.privacy.command", "python -m core doctor --privacy")


def _log_file() -> None:
    if not logger.handlers:
        machine_home().mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(machine_home() / "app.log", encoding="utf-8", delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)
