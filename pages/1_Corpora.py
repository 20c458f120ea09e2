"""The page Corpora: import corpora, set their roles, and see their labels, lengths, duplicates and test leaks."""

from collections.abc import Mapping

import streamlit as st

from core import terms
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.experiment import results
from core.importing import plot
from core.importing import view as corpora
from core.importing.result import ROLES, AuditResult
from core.projects import runs
from core.runs.result import read as read_result
from core.terms import Term
from pages.ui import checks as data_check
from pages.ui.corpora.imports import OPEN, RUN, importer
from pages.ui.corpora.parts import parts
from pages.ui.corpora.report import intake_outcome, report, size_ratios
from pages.ui.corpora.splits import splits
from pages.ui.empty import picture, sample_buttons
from pages.ui.frame import looked, page, spoilt_files
from pages.ui.removal import removal
from pages.ui.runs.links import CORPORA, attached
from pages.ui.runs.panel import run_panel, where
from pages.ui.terms import grey, term_picker
from pages.ui.widgets import corpus_picker, is_dark, plain, pressed, sentence_list, table

CARDS: tuple[tuple[Term, tuple[str, ...]], ...] = (
    (terms.TASK, ("task",)),
    (terms.DOMAIN, ("domain",)),
    (terms.LABELS, ("train", "dev", "test")),
)
FLAG_WORDS = {
    "exact_duplicate": "exact duplicates",
    "near_duplicate": "near duplicates",
    "leak": "also in the dev or test set (leaks)",
    "too_short": "too short",
    "too_long": "too long",
}
NEAR_WORDS = {  # words for one sentence and for several
    "edited": (
        "differs from another sentence in at most a tenth of its words or letters",
        "differ from another sentence in at most a tenth of their words or letters",
    ),
    "overlapping": (
        "shares most of its sequences of five words with another sentence",
        "share most of their sequences of five words with another sentence",
    ),
}
WORDS = (terms.TASK, terms.DOMAIN, terms.LABELS, terms.TRAIN, terms.DEV, terms.TEST, terms.LEAK, terms.TOKEN)

UNDO = "corpora.undo.drawn"  # session key: roles before and after the change that the button to undo it names

ALL = "corpora.all"  # session key of the switch that lists more than `FEW` corpora

# number of corpora made by Winnow that are listed at first, because a browser takes long to draw hundreds of rows
FEW = 20


def main() -> None:
    """Draw the page."""
    with page("Corpora", "Import corpora, give them roles, and check them for duplicates and test leaks.", WORDS):
        sealed = corpora.listed()
        spoilt_files()
        if not sealed and not runs.importing():
            st.info("There are no corpora yet. Open a sample in one click, or import a file of your own below.")
            sample_buttons("corpora", "pages/1_Corpora.py")
        wanted = not sealed or "upload" in st.query_params or OPEN in st.session_state
        with st.expander("Import a corpus", expanded=wanted, icon=":material/add:"):
            importer()
        _import_run()
        if not sealed:
            picture("corpora")
        else:
            with st.container():  # The check changes its height. The container keeps the elements below in place.
                _check()
            data_check.show(corpora.check_project(), "corpora", here=CORPORA)
            _undo()
            for term, roles in CARDS:
                _card(term, roles)
            size_ratios(None if st.session_state.get(ALL) else FEW)
            splits()
            parts()
            _library(sealed)


def _import_run() -> None:
    """Show the import run that the URL names, or else an import that is running."""
    run_id = attached(("add", "intake"), RUN)
    if run_id is None or not (st.query_params.get("run") == run_id or runs.state(run_id).active):
        return
    if run_panel(run_id, RUN).state == "succeeded":
        (intake_outcome if runs.get(run_id).manifest.kind == "intake" else report)(run_id)


def _audits(roles: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """Return {role: options of the `audit` run of its corpus}, for the task corpus and the domain corpus.

    roles: {role: fingerprint}. The option `held_out` lists the test set before the dev set, as selections do.
    """
    held_out = [roles[role] for role in ("test", "dev") if role in roles]
    return {role: {"corpus": roles[role], "held_out": held_out} for role in ("task", "domain") if role in roles}


def _check() -> None:
    audits = _audits(corpora.roles())
    done = {role: runs.finished("audit", options) for role, options in audits.items()}
    todo = [role for role, run in done.items() if run is None]
    if todo:
        on = where("corpora.check")
        if pressed("Check for duplicates and leaks", "corpora.check", type="primary", icon=":material/fact_check:"):
            for role in todo:
                runs.start("audit", audits[role], on)
            st.rerun()
    # Runs are listed newest first. If a corpus has several audits, only the newest is used.
    seen = set()
    for run in runs.listed("audit"):
        corpus = run.manifest.inputs["corpus"]
        if run.manifest.parent is None and corpus not in seen and corpus in [audits[role]["corpus"] for role in todo]:
            seen.add(corpus)
            if runs.state(run.id).state != "succeeded":
                run_panel(run.id, f"corpora.audit.{corpus[:12]}")


def _undo() -> None:
    """Draw the button that undoes the last change of roles, and list the roles that it would change."""
    former, now = corpora.former_roles(), corpora.roles()
    # Another tab may have changed roles since this tab drew the button. A press must not undo a change not shown here.
    drawn, st.session_state[UNDO] = st.session_state.get(UNDO), (former, now)
    # Roles were never changed, or no corpus had a role before the last change.
    if not former:
        return
    changes = [
        f"{ROLES[role].word}: {_called(former.get(role))} instead of {_called(now.get(role))}"
        for role in ROLES
        if former.get(role) != now.get(role)
    ]
    undone = pressed(
        "Undo the last change of roles", "corpora.undo", icon=":material/undo:", help=plain("; ".join(changes))
    )
    st.caption(f"Undo: {plain('; '.join(changes))}.")
    if undone:
        if drawn == (former, now):
            corpora.undo_roles()
        st.rerun()


def _called(mark: str | None) -> str:
    if mark is None:
        return "none"
    try:
        return results.corpus_name(mark)
    except CorpusError:
        return "a corpus that cannot be read"


def _card(term: Term, roles: tuple[str, ...]) -> None:
    with st.container(border=True, key=f"corpora.card.{term.symbol}"):
        held = corpora.roles()
        given = [role for role in roles if role in held]
        left, right = st.columns((2, 3), gap="large", vertical_alignment="bottom")
        with left:
            st.subheader(grey(term), anchor=False)
            st.caption(term.meaning)
        columns = [right] if len(roles) == 1 else st.columns(len(roles))
        for column, role in zip(columns, roles, strict=True):
            with column:
                _role(role, held.get(role))
        if not given:
            return
        role = given[0]
        if len(given) > 1:
            role = st.segmented_control(
                "Look at",
                given,
                default=given[0],
                format_func=lambda role: ROLES[role].title,
                required=True,
                key=f"corpora.look.{term.symbol}",
            )
        _inside(corpora.find(held[role]), term.symbol, role)


def _role(role: str, held: str | None) -> None:
    """Let the user pick the corpus of a role. held: fingerprint of the corpus that has the role now.

    The fields for T_C and D_C have no visible label, because the heading above the field already names the role.
    """
    # The key contains the corpus of the role, so that the field is reset if the role changes on another page.
    term, key = ROLES[role], f"corpora.pick.{role}.{held}"
    if role in ("task", "domain"):
        chosen = corpus_picker(term.title, key, held, label_visibility="collapsed")
    else:
        chosen = term_picker(term, key, held)
    if chosen != held:
        corpora.set_role(role, chosen)
        st.rerun()


def _inside(corpus: Corpus, name: str, role: str) -> None:
    types = list(corpus.types)
    left, right = st.columns(2, gap="large")
    with left:
        _numbers(corpus)
        _flags(role)
        if types:
            bars = plot.type_bars(corpus.types, dark=is_dark())
            st.vega_lite_chart(spec=bars, key=f"corpora.types.{role}", alt=f"Entities by type in {corpus.name}")
    with right:
        lengths = plot.length_histogram(corpora.length_counts(corpus), name, dark=is_dark())
        alt = f"Histogram of sentence lengths of {corpus.name}"
        st.vega_lite_chart(spec=lengths, key=f"corpora.lengths.{role}", alt=alt)
    st.markdown("**Examples**")
    looked(corpus.fingerprint)
    sentence_list(corpora.first_sentences(corpus), types, f"Sentences of {corpus.name}")


def _numbers(corpus: Corpus) -> None:
    with st.container(horizontal=True):
        st.metric("Sentences", f"{len(corpus):,}", width="content")
        st.metric("Tokens", f"{corpus.n_tokens:,}", width="content")
        if corpus.labelled:
            st.metric("Entities", f"{sum(corpus.types.values()):,}", width="content")
            density = corpora.density(corpus)["entities_per_sentence"]
            st.metric("Entities per sentence", f"{density:.2f}", width="content")


def _flags(role: str) -> None:
    """Show the number of flagged sentences in the corpus of a role, or that they were not checked yet."""
    options = _audits(corpora.roles()).get(role)
    if options is None:
        return
    run = runs.finished("audit", options)
    if run is None:
        st.caption("Duplicates and test leaks: not checked yet.")
        return
    result = read_result(run, AuditResult)
    rows = [{"n": n, "flag": FLAG_WORDS[flag]} for flag, n in result.flags.items()]
    table(rows, {"n": "Sentences", "flag": "Flagged as"}, "Flagged sentences")
    explored = role == "domain"  # Explore shows duplicates in the domain corpus only.
    if result.flags["near_duplicate"]:
        kinds = " and ".join(f"{n:,} {NEAR_WORDS[kind][n > 1]}" for kind, n in result.near_rules.items() if n)
        st.caption(
            f"Of the near duplicates, {kinds}.{' Explore shows them and the words that differ.' if explored else ''}"
        )
    if result.flags["leak"] and (twice := corpora.leaks_flagged_twice(run.id)):
        st.caption(
            f"Of the leaks, {twice:,} {'is a duplicate' if twice == 1 else 'are duplicates'} too."
            f"{' Selection and Explore count them only as leaks.' if explored else ''}"
        )
    if not options["held_out"]:
        st.caption("There is no dev or test set yet, so test leaks were not checked.")


def _library(sealed: list[Corpus]) -> None:
    """Draw the table of corpora, and below it the button that removes one. sealed: all corpora, see `corpora.listed`.

    Of the corpora that Winnow made, the table lists only the newest `FEW` unless the user asks for all.
    """
    st.subheader("All corpora", anchor=False)
    derived = sum(corpus.derived for corpus in sealed)
    if derived > FEW and not st.toggle(
        f"Show all {derived} corpora made by Winnow, not only the newest {FEW}", key=ALL
    ):
        sealed = sealed[: len(sealed) - derived + FEW]
    roles = corpora.roles()
    parts: dict[str, list[str]] = {}
    for role in (role for role in ROLES if role in roles):
        parts.setdefault(roles[role], []).append(ROLES[role].title)
    rows = [
        {
            "name": c.name,
            "n": len(c),
            "tokens": c.n_tokens,
            "labels": (", ".join(c.types) or "no entity") if c.labelled else "no",
            "part": ", ".join(parts.get(c.fingerprint, ())),
            "file": _from(c),
        }
        for c in sealed
    ]
    names = {"name": "Name", "n": "Sentences", "tokens": "Tokens", "labels": "Labels", "part": "Role", "file": "From"}
    table(rows, names, "All corpora", names=("name", "file"))
    removal()


def _from(corpus: Corpus) -> str:
    """Return the origin of a corpus: the user's file, or what Winnow made it from."""
    if not corpus.derived:
        return str(corpus.origin.get("file", ""))
    source = corpus.origin.get("from")
    return "typed" if source is None else f"made by Winnow from {results.corpus_name(str(source))}"


main()
