"""The four steps of a project on the page Home (texts, selection, experiment, report) and their current states."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from core.bias import view as bias
from core.corpora.checks import DEV_ENTITIES
from core.errors import CorpusError, WinnowError
from core.experiment import find_out, results
from core.experiment.find_out import choice_now
from core.experiment.more_labels import SECONDS
from core.experiment.words import Word
from core.importing import view as corpora
from core.importing.result import ROLES
from core.projects import runs
from core.selection import choices, insights
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.selection.choice import Choice
from core.shown import count, listed, short
from core.terms import in_words, labels_in_words

Name = Literal["texts", "choice", "worth", "report"]
TITLES: Mapping[Name, str] = {
    "texts": "Your texts",
    "choice": "The selection",
    "worth": "Is it worth it?",
    "report": "The report",
}
LABELS = ("train", "dev", "test")
UNFINISHED = {"cancelled": "was stopped", "failed": "failed", "interrupted": "was interrupted"}
MEASURED = 100_000  # maximum number of sentences of D_C for a health check; with more, a page would take too long


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeStep:
    """A step of a project.

    known: one or two sentences about its current state. ready: True if the step has a result. open: True if the user
    can start the step now. run: id of the run or selection that `known` describes, "" for none. again: True if more
    replicates of the experiment could give a clear answer. saved: id of a saved selection from corpora that have no
    role now, "" for none. word: the experiment's verdict in one word, which is the first word of `known`; None without
    a verdict.
    """

    name: Name
    known: str
    ready: bool
    open: bool = True
    run: str = ""
    again: bool = False
    word: Word | None = None
    saved: str = ""

    @property
    def title(self) -> str:
        """Return the title of the step."""
        return TITLES[self.name]


TO_BEGIN = (
    f"To begin, label about 100 sentences for training, and {DEV_ENTITIES} entities each in the dev and the test set. "
    f"Labelling a sentence takes about {SECONDS:.0f} s."
)
FEW = 1000  # Home proposes to label more if the training set has fewer sentences than this


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherMeasurement:
    """A further measurement that the page Home offers. reason: why this project needs it now; "" for no reason."""

    name: Literal["label", "similarity", "bias", "assisting"]
    reason: str


def steps() -> list[HomeStep]:
    """Return the four steps in order."""
    worth = _worth()
    return [_texts(), _choice(), worth, _report(worth)]


def _texts() -> HomeStep:
    here = {role: len(corpora.find(mark)) for role, mark in corpora.roles().items() if _is_here(mark)}
    counts = [count(here["task"], "task sentence")] if "task" in here else []
    words = {"domain": "{:,} to select from", "train": "{:,} for training"}
    counts += [each.format(here[role]) for role, each in words.items() if role in here]
    counts += [f"{sum(here.get(role, 0) for role in ('dev', 'test')):,} for dev and test"] if "test" in here else []
    known = f"{', '.join(counts)}." if counts else _without_roles()
    if chosen := choice_now():
        leaks = _leaks(chosen.id)
        known += (
            f" {count(leaks, 'sentence')} of the domain corpus {'is' if leaks == 1 else 'are'} also in the dev or test"
            f" set, and {'is' if leaks == 1 else 'are'} left out."
            if leaks
            else ""
        )
    return HomeStep(name="texts", known=known, ready={"task", "domain"} <= here.keys())


def _without_roles() -> str:
    """Return the state of a project whose corpora have no role yet."""
    if runs.importing():
        return "An import is running."
    if waiting := corpora.listed():
        names = [short(corpus.name) for corpus in waiting[:3]]
        names += [f"{len(waiting) - 3:,} more"] if len(waiting) > 3 else []
        return f"Imported, but without a role: {listed(names)}. Give each a role on the page Corpora."
    return "No texts yet: import your own, or open a sample."


def _leaks(choice_id: str) -> int:
    """Return the number of test leaks that a selection leaves out.

    The leaks are counted again, because older versions found fewer. If the text was removed, return the stored number.
    """
    with suppress(WinnowError):
        return selections.chosen(choice_id).dropped.get("leak", 0)
    return selections.result(choice_id).dropped.get("leak", 0)


def _is_here(mark: str) -> bool:
    with suppress(CorpusError):
        return bool(corpora.find(mark))
    return False


def _choice() -> HomeStep:
    roles = corpora.roles()
    possible = {"task", "domain"} <= roles.keys()
    choice = choice_now()
    if choice is None:
        if at_work := [run for run in runs.of_corpora_in_use(runs.own("select")) if run.state().active]:
            return HomeStep(name="choice", known="The selection is running.", ready=False, run=at_work[0].id)
        saved, words = _saved()
        nothing = "No selection from the corpora in use yet." if saved else "Nothing selected yet."
        known = nothing if possible else "Needs a task corpus and a domain corpus."
        found = prevalence.counted(roles["task"], roles["domain"]) if possible else None
        known += f" {prevalence.in_words(found)}" if found else ""
        return HomeStep(name="choice", known=known + words, ready=False, open=possible, saved=saved)
    size, edits = selections.kept(choice.id), selections.edits(choice.id)
    called = f"{choice.name}: " if choice.name else ""
    share = size.selected / max(size.of, 1)
    known = f"{called}{size.selected:,} of {count(size.of, 'sentence')} ({share:.1%}), by {size.strategy}."
    by_hand = [f"{n:,} {word}" for n, word in ((len(edits.added), "added"), (len(edits.removed), "taken out")) if n]
    known += f" By hand: {', '.join(by_hand)}." if by_hand else ""
    return HomeStep(name="choice", known=known, ready=True, run=choice.id)


def _saved() -> tuple[str, str]:
    """Return the id of the newest saved selection, and a sentence about all saved selections; ("", "") if none.

    Called if no selection was made from the corpora that have a role now.
    """
    readable = list[tuple[Choice, str]]()
    for choice in choices.listed():
        with suppress(WinnowError):
            size, source = selections.kept(choice.id), selections.run_of(choice.id).manifest.inputs["domain"]
            name = results.corpus_name(source)
            readable.append((choice, f"{choices.title(choice)} ({count(size.selected, 'sentence')}), made from {name}"))
    if not readable:
        return "", ""
    latest, words = readable[0]
    more = f", and {len(readable) - 1:,} more" if len(readable) > 1 else ""
    return latest.id, f" Saved selections of corpora that are no longer in use: {words}{more}."


def health(choice_id: str) -> str:
    """Return a sentence with the first warning of a selection's health check, or a sentence that says there is none.

    Return "" if the domain corpus has more than `MEASURED` sentences, or if its text was removed. The first call takes
    about a second; the result is then cached.
    """
    with suppress(WinnowError):
        if selections.kept(choice_id).of <= MEASURED:
            warnings = insights.health(choice_id, labelled=corpora.roles().get("train")).warnings
            more = f" And {len(warnings) - 1} more." if len(warnings) > 1 else ""
            return f"Its health: {warnings[0]}{more}" if warnings else "Its health: no warnings."
    return ""


def is_asked_again(run_id: str) -> bool:
    """Return True if the page Home describes this experiment and offers to repeat it with more replicates."""
    step = _worth()
    return step.again and step.run == run_id


def _worth() -> HomeStep:
    """Return the step "worth" (the experiment). It describes the newest active or finished experiment or study.

    Without an experiment, `known` names what is missing to start one.
    """
    given = corpora.roles()
    asked = runs.of_corpora_in_use(runs.own("experiment", "study"))
    for run in asked:
        if run.state().active:
            return HomeStep(name="worth", known=f"The {run.manifest.kind} is running.", ready=False, run=run.id)
        with suppress(WinnowError):
            if run.state().state == "succeeded":
                again = {*LABELS, "task", "domain"} <= given.keys() and bool(find_out.again(run))
                found = results.finding(run.id)
                known = f"{found.what} {found.next}"
                return HomeStep(name="worth", known=known, word=found.word, ready=True, run=run.id, again=again)
    if missing := [role for role in LABELS if role not in given]:
        known = (
            f"Needs {labels_in_words(missing)}. {TO_BEGIN} Without labelled data, the selection is the last step"
            + ("; you can label sentences on the page Label." if "task" in given else ".")
        )
        return HomeStep(name="worth", known=known, ready=False, open=False)
    if not {"task", "domain"} <= given.keys():
        return HomeStep(name="worth", known="Needs a task corpus and a domain corpus too.", ready=False, open=False)
    if empty := without_entities():
        known = f"There are no entities in {in_words([f'the {ROLES[role].word}' for role in empty])}."
        return HomeStep(name="worth", known=known, ready=False, open=False)
    known = (
        "Not tested yet. Before an experiment starts, you see what it compares, its duration and what it can detect."
    )
    if asked and (how := UNFINISHED.get((state := asked[0].state()).state)):
        last, ways = asked[0].manifest.kind, "Resume it on the page Training, or start a new one."
        known = f"Not answered yet: the last {last} {how}. {ways if state.resumable else 'Start a new one.'}"
    return HomeStep(name="worth", known=known, ready=False)


def unlabelled() -> bool:
    """Return True if the project lacks a training, dev or test set."""
    return any(role not in corpora.roles() for role in LABELS)


def without_entities() -> list[str]:
    """Return the labelled roles (train, dev, test) whose corpus has no entity."""
    given = corpora.roles()
    marks = {role: given[role] for role in LABELS if role in given and _is_here(given[role])}
    return [role for role, mark in marks.items() if not sum(corpora.find(mark).types.values())]


def _report(worth: HomeStep) -> HomeStep:
    known = (
        "Two pages: one for decision-makers, one technical." if worth.ready else "Available once step 3 has finished."
    )
    return HomeStep(
        name="report", known=known, ready=worth.ready, open=worth.ready, run=worth.run if worth.ready else ""
    )


def further() -> Sequence[FurtherMeasurement]:
    """Return the further measurements that the page Home offers. Those with a reason come first."""
    rows = [
        FurtherMeasurement(name="label", reason=_labels_may_help_more()),
        FurtherMeasurement(name="similarity", reason=_many_sources()),
        FurtherMeasurement(name="bias", reason=_names_reveal_more()),
        FurtherMeasurement(name="assisting", reason=_few_labels()),
    ]
    return sorted(rows, key=lambda row: not row.reason)


def _labels_may_help_more() -> str:
    held = corpora.roles()
    if not {"task", "domain", "train"} <= held.keys() or not _is_here(held["train"]):
        return ""
    asked = runs.of_corpora_in_use(runs.own("experiment", state="succeeded"))
    few = len(corpora.find(held["train"])) < FEW
    return "Your training set is small: labelling more may help more than pre-training." if asked and few else ""


def _many_sources() -> str:
    task = corpora.roles().get("task")
    sources = [each for each in corpora.listed() if not (each.labelled or each.derived or each.fingerprint == task)]
    return f"You can select from {len(sources)} corpora: which is closest to your text?" if len(sources) > 1 else ""


def _names_reveal_more() -> str:
    for run in runs.of_corpora_in_use(runs.own("difficulty", state="succeeded"))[:1]:
        with suppress(WinnowError):
            bits = bias.difficulty_result(run.id).v_information
            if bits.entity > bits.context:
                return "Names reveal entity types better than contexts do."
    return ""


def _few_labels() -> str:
    mark = corpora.roles().get("train", "")
    few = mark and _is_here(mark) and len(corpora.find(mark)) < 200 and "train" not in without_entities()
    return "Your training set is small: sentences of another labelled corpus may help." if few else ""
