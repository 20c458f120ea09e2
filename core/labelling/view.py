"""Queries of the page Label and of its commands: queues, answers, and the labelled corpora made of them."""

import json
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from core.corpora import readers
from core.corpora.corpus import Corpus
from core.corpora.formats.ledger import ReadReport
from core.corpora.readers import ReadOptions
from core.errors import ConfigError, Unfinished
from core.files import read_object, write_atomic
from core.importing.view import lists_of_names, roles
from core.labelling import answers, queue, suggest, tasks
from core.labelling.answers import Agreement, Answer, Answers, Progress
from core.labelling.draw import is_dev
from core.labelling.queue import Queued
from core.labelling.review import ReviewConfig
from core.paths import home
from core.project_list import LABELLING_FILE
from core.projects import runs
from core.projects.audit import exporting
from core.projects.home import kept_per_home, library, store
from core.projects.titles import outcome, run_titles
from core.runs import journal, result
from core.runs.run import Run
from core.shown import count
from core.stats.bootstrap import Difference, compare, interval
from core.stats.power_law import Step, next_step
from core.tagging import evaluations
from core.tagging import view as taggers
from core.tagging.evaluations import FinetuneResult
from core.tagging.result import complete_config
from core.text.cut import learn, over_tokens, recut
from core.text.sentence import Entity, Prediction, Sentence

KINDS = answers.KINDS
# Maximum number of characters of the user's notes on what to label.
LONGEST_GUIDELINES = 20_000
# Numbers of additional labelled sentences for which the gain in F1 is estimated.
NEXT = (25, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A sentence to label. The entities of `sentence` are suggestions, or the current labels in a review."""

    queued: Queued
    sentence: Sentence


def corpus_of(run: Run) -> str:
    """Return the fingerprint of the corpus from which a run took its sentences."""
    return run.manifest.inputs[{"queue": "domain", "draw": "task", "review": "corpus"}[run.manifest.kind]]


def corpus_of_run(run_id: str) -> str:
    """Return the fingerprint of the corpus from which the run `run_id` took its sentences."""
    return corpus_of(store().get(run_id))


def to_label(run_id: str) -> list[Task]:
    """Return the sentences to label of a finished run, in order.

    Errors: RunError; those of `purpose`; Unfinished; CorpusError if the corpus was removed.
    """
    run = store().get(run_id)
    purpose(run_id)
    if run.state().state != "succeeded":
        raise Unfinished(f"{run_id}: has not finished, so it has no sentences yet; wait until it ends, or resume it.")
    queued = list(queue.read(run))
    corpus = library().find(corpus_of(run))
    sentences = corpus.take(np.array([each.row for each in queued], dtype=np.int64))
    return [
        Task(queued=each, sentence=replace(sentence, entities=each.entities))
        for each, sentence in zip(queued, sentences, strict=True)
    ]


@exporting
def export(run_id: str, path: Path, tool: str, *, suggestions: bool = True) -> int:
    """Write the sentences of a run for a labelling tool, and return their number.

    tool: key of `tasks.ENDINGS`. suggestions: True to write the suggestions too; a `draw` run has none. Errors: those
    of `to_label`; ConfigError if two types would be equal in files for brat; PathError.
    """
    if tool == "brat":
        tasks.check_brat_types(types(run_id))
    sentences = (task.sentence for task in to_label(run_id))
    return tasks.write((s if suggestions else replace(s, entities=()) for s in sentences), path, tool)


@exporting
def export_labelled(run_id: str, path: Path, tool: str) -> int:
    """Write the labelled sentences of a run for a labelling tool, and return their number.

    tool: key of `tasks.ENDINGS`. Errors: ConfigError if no sentence is labelled, or if two types
    would be equal in files for brat.
    """
    rows = labelled(run_id)
    if not rows:
        raise ConfigError("No sentence is labelled yet; label some first.")
    if tool == "brat":
        tasks.check_brat_types(types(run_id))
    return tasks.write(rows, path, tool, labelled=True)


def is_text_here(run_id: str) -> bool:
    """Return True if the corpus from which a run took its sentences still exists."""
    return library().holds(corpus_of_run(run_id))


def purpose(run_id: str) -> str:
    """Return the purpose of a run's sentences: `queue` (training), `draw` (dev and test) or `review` (corrections).

    Errors: ConfigError for a run of another kind.
    """
    kind = store().get(run_id).manifest.kind
    if kind not in KINDS:
        raise ConfigError(f"{run_id}: has no sentences to label; give a run of `label next`, `draw` or `review`.")
    return kind


def answer(run_id: str, given: Sequence[Mapping[str, object]]) -> None:
    """Store answers that a browser sent. Answers that are stored already are ignored.

    Each answer has action, place, entities, seconds, client and number (`answers.Answer`). Errors: ConfigError if one
    of the answers is not valid. Then none is stored.
    """
    run = store().get(run_id)
    lengths = [len(task.sentence.tokens) for task in to_label(run_id)]
    known = types(run_id)
    checked = [answers.checked(each, lengths, known) for each in given]
    with journal.changing(home()):
        answers.add(run.path, checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLabels:
    """Counts of sentences in the file of a labelling tool. A sentence that several annotators labelled counts once.

    labelled: sentences of the queue that have labels in the file. changed: labelled sentences that the same annotator
    had answered differently before. suggested: labelled sentences whose labels equal the suggestions. unknown:
    sentences whose text is not in the queue. unread: rows and annotations that could not be read, each as "line 3:
    ..."; the stored answer about such a sentence does not change. annotators: their names, if the file names several.
    unnamed: name of the only annotator in the file if the labels were stored without a name, else "".
    """

    labelled: int
    changed: int
    suggested: int
    unknown: int
    unread: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    unnamed: str = ""


@dataclass(slots=True, kw_only=True)
class _Imported:
    """Sentences found so far in the file of a labelling tool.

    labelled, changed, suggested: positions in the queue, see `ImportedLabels`. unknown: ids of the texts that are not
    in the queue. unread: messages about rows and annotations that could not be read.
    """

    labelled: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    suggested: set[int] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    unread: dict[str, None] = field(default_factory=dict)  # a dict, used as a set that keeps the order of the file


def import_labels(run_id: str, path: Path, annotator: str = "") -> ImportedLabels:
    """Store the labels in a file of a labelling tool as answers about a queue, and return counts of the sentences.

    Sentences are found in the queue by the id of their text. If no sentence has this id, blanks are ignored, because a
    CoNLL file does not show where the text had blanks. annotator: name to store with labels that have no annotator in
    the file. If the file names several annotators, the answers of each are stored under their name. If the file has
    other tokens for a text, its labels are mapped to the tokens of the queue. A second import of the same file changes
    nothing. Errors: ReadError, PathError; OptionsError if the user must first choose how to read the file; ConfigError
    for an annotator's name that is not allowed.
    """
    names = readers.annotators(path)
    several, found = len(names) > 1, _Imported()
    for name in (annotator, *(names if several else ())):
        answers.check_annotator(name)
    for name in names if several else ():
        _import(run_id, path, ReadOptions(annotator=name, alone=True), name, found)
    _import(run_id, path, ReadOptions(alone=several), annotator, found)
    return ImportedLabels(
        labelled=len(found.labelled),
        changed=len(found.changed),
        suggested=len(found.suggested),
        unknown=len(found.unknown),
        unread=tuple(found.unread),
        annotators=names if several else (),
        unnamed=names[0] if len(names) == 1 and not annotator else "",
    )


def _import(run_id: str, path: Path, options: ReadOptions, annotator: str, found: _Imported) -> None:
    """Store the labels of one annotator as answers, and add the sentences to `found`."""
    run, sentences = store().get(run_id), to_label(run_id)
    places = {task.sentence.id: place for place, task in enumerate(sentences)}
    alike = _without_blanks(sentences)
    suggestions = [tuple(sorted(task.sentence.entities or ())) for task in sentences]
    known, new, report = types(run_id), dict[int, tuple[Entity, ...]](), ReadReport()
    # Files for brat have underscores for the blanks of a type.
    spelt = {tasks.brat_type(name): name for name in known} | {name: name for name in known}
    for row in readers.read(path, options, report=report):
        if row.entities is None:
            continue
        if (place := places.get(row.id, alike.get("".join(row.text.split())))) is None:
            found.unknown.add(row.id)
        else:
            found_here = _recut(row, sentences[place].sentence).entities or ()
            new[place] = tuple(replace(each, type=spelt.get(each.type, each.type)) for each in found_here)
    unread = [problem for problem in report.problems if problem.kind in ("rejected", "span")]
    found.unread |= {f"line {one.line}: {one.reason}" if one.line else one.reason: None for one in unread}
    before = answered(run_id).of(annotator).latest
    same = {p for p, answer in before.items() if answer.action == "label" and answer.entities == new.get(p)}
    client = uuid.uuid4().hex
    given = [
        Answer(action="label", place=place, entities=new[place], client=client, number=place, annotator=annotator)
        for place in sorted(new.keys() - same)
    ]
    with journal.changing(home()):
        answers.add(run.path, given)
    found.labelled |= new.keys()
    found.changed |= before.keys() & new.keys() - same
    found.suggested |= {place for place in new if suggestions[place] and new[place] == suggestions[place]}


def _without_blanks(sentences: Sequence[Task]) -> dict[str, int]:
    """Return {text without blanks: position in the queue}, without texts of several sentences."""
    found = defaultdict[str, list[int]](list)
    for place, task in enumerate(sentences):
        found["".join(task.sentence.text.split())].append(place)
    return {text: places[0] for text, places in found.items() if len(places) == 1}


def reopen_flagged(run_id: str, annotator: str) -> None:
    """Delete the flags of one annotator, so that the flagged sentences are shown again."""
    client = uuid.uuid4().hex
    with journal.changing(home()):
        flagged = [p for p, answer in answered(run_id).of(annotator).latest.items() if answer.action == "flag"]
        reopened = [
            Answer(action="reopen", place=place, client=client, number=place, annotator=annotator) for place in flagged
        ]
        answers.add(store().get(run_id).path, reopened)


def answered(run_id: str) -> Answers:
    """Return all answers about the sentences of a run."""
    return answers.read(store().get(run_id).path)


def progress(run_id: str, annotator: str = "") -> Progress:
    """Return how many sentences of a run one annotator has answered, by action."""
    run = store().get(run_id)
    return answers.progress(answers.read(run.path).of(annotator), [each.entities for each in queue.read(run)])


def agreement(run_id: str, a: str, b: str) -> list[Agreement]:
    """Return the agreement of two annotators of a run on all types together, then on each type."""
    labels = answered(run_id).by_annotator
    lengths = [len(task.sentence.tokens) for task in to_label(run_id)]
    return answers.agreement(labels.get(a, {}), labels.get(b, {}), lengths)


def settle(run_id: str, place: int, annotator: str) -> None:
    """Settle a difference: store the labels of `annotator` as the final ones. place: position of the sentence.

    Errors: ConfigError if this annotator has not labelled the sentence.
    """
    labels = answered(run_id).by_annotator.get(annotator, {})
    if place not in labels:
        raise ConfigError(f"{annotator or 'This annotator'} has not labelled sentence {place + 1}; reload the page.")
    chosen = Answer(
        action="label", place=place, entities=labels[place], client=uuid.uuid4().hex, annotator=answers.SETTLED
    )
    with journal.changing(home()):
        answers.add(store().get(run_id).path, [chosen])


def types(run_id: str) -> list[str]:
    """Return the types from which the user chooses when labelling.

    They come from the labelled corpora in use, the suggestions, the answers, and types that the user added
    (`add_type`).
    """
    run, held = store().get(run_id), roles()
    here = {entity.type for each in queue.read(run) for entity in each.entities}
    marks = {held[role] for role in ("train", "dev", "test") if role in held}
    marks |= {corpus_of(run)} if run.manifest.kind == "review" else set()
    for mark in marks:
        here |= set(library().recall(mark).types)
    given = [entity.type for answer in answered(run_id).history for entity in answer.entities]
    # New types come last, so that the keyboard shortcuts of earlier types do not change.
    return list(dict.fromkeys([*sorted(here), *_stored()["types"], *given]))


def add_type(name: str) -> None:
    """Store a new type that no corpus has yet. Errors: ConfigError for a name that is not allowed."""
    answers.check_type(name)
    with journal.changing(home()):
        stored = _stored()
        _store({**stored, "types": list(dict.fromkeys([*stored["types"], name]))})


def guidelines() -> str:
    """Return the user's notes on what to label; "" if there are none."""
    return str(_stored().get("guidelines", ""))


def keep_guidelines(text: str) -> None:
    """Store the user's notes on what to label."""
    with journal.changing(home()):
        _store({**_stored(), "guidelines": text[:LONGEST_GUIDELINES]})


def _stored() -> dict[str, Any]:
    """Return the content of `labelling.json`, {"types": [...], "guidelines": "..."}; no types if it cannot be read."""
    found = read_object(home() / LABELLING_FILE) or {}
    named = found.get("types")
    return {**found, "types": [name for name in named if isinstance(name, str)] if isinstance(named, list) else []}


def _store(values: Mapping[str, object]) -> None:
    """Write `labelling.json`.

    Errors: ConfigError if the existing file is damaged, because writing would destroy the user's notes.
    """
    if (file := home() / LABELLING_FILE).exists() and read_object(file) is None:
        raise ConfigError(f"{file}: cannot be read, so nothing was changed; restore it from a copy, or delete it.")
    home().mkdir(parents=True, exist_ok=True)
    write_atomic(home() / LABELLING_FILE, json.dumps(values, ensure_ascii=False, indent=1).encode())


def labelled(run_id: str) -> list[Sentence]:
    """Return the labelled sentences of a run in the order of the queue. Their entities are the final labels."""
    return list(_labelled(run_id, answered(run_id)).values())


def _labelled(run_id: str, given: Answers) -> dict[int, Sentence]:
    """Return {position in the queue: sentence with its final labels}. given: the answers, which others may add to."""
    done = given.labelled
    return {
        place: replace(task.sentence, entities=done[place])
        for place, task in enumerate(to_label(run_id))
        if place in done
    }


def training_set(run_id: str) -> Corpus:
    """Store a new corpus of the training set in use and the labelled sentences of a queue.

    If the training set contains a sentence that was labelled or flagged in this queue, the new answer replaces the old
    labels. New sentences are cut into tokens as in the training set. Errors: ConfigError if nothing was labelled, or if
    the run is no `queue` run, because sentences of other runs were not selected for training.
    """
    given = answered(run_id)
    new = list(_labelled(run_id, given).values())
    if purpose(run_id) != "queue":
        raise ConfigError(
            f"{run_id}: its sentences were not selected for training; queue other sentences with `label next`."
        )
    if not new:
        raise ConfigError("No sentence is labelled yet; label some first.")
    base = roles().get("train")
    if base is None:
        name, origin = f"{count(len(new), 'sentence')} labelled", {"run": run_id}
        return library().seal(new, name=name, origin=origin, labelled=True)
    train, queued = library().find(base), to_label(run_id)
    # Labels that this queue gave before are replaced or withdrawn. Labels of other queues stay, even if this queue has
    # the same sentence.
    judged = {answer.place for answer in given.history if answer.action in ("label", "flag")}
    replaced = {queued[place].sentence.id for place in judged}
    rows = list(chain.from_iterable(train.batches()))
    old = [sentence for sentence in rows if sentence.id not in replaced]
    raw = library().find(corpus_of(store().get(run_id))).tokens == "words"
    if old and raw and (cut := learn(sentence.tokens for sentence in old)):
        new = [_recut(sentence, recut(sentence, cut)) for sentence in new]
    base_name, before = _labelled_name(train.name)
    n = before + len(old) - len(rows) + len(new)
    name, origin = f"{base_name} and {n:,} labelled", {"run": run_id, "from": base}
    return library().seal([*old, *new], name=name, origin=origin, labelled=True)


def _labelled_name(name: str) -> tuple[str, int]:
    """Return a corpus's name without its count of labels, and the count: ("train", 12) for "train and 12 labelled".

    For any other name, the count is 0.
    """
    base, _, rest = name.rpartition(" and ")
    number = rest.removesuffix(" labelled").replace(",", "")
    return (base, int(number)) if base and rest.endswith(" labelled") and number.isdecimal() else (name, 0)


def _recut(old: Sentence, new: Sentence) -> Sentence:
    """Return `new` with the entities of `old`. Both have the same text, but may have different tokens."""
    entities: tuple[Entity, ...] = tuple(sorted(old.entities or ()))
    moved = over_tokens(Prediction(entities=entities, confidence=(1.0,) * len(entities)), old.tokens, new.tokens)
    return replace(new, entities=moved.entities)


def measuring_sets(run_id: str) -> tuple[Corpus, Corpus]:
    """Store the labelled sentences of a `draw` run as a dev set (a quarter of them) and a test set (all others).

    Sentences that were skipped or flagged, or on which annotators differ, are in neither set. If more are labelled
    later, each sentence stays in its set. Errors: ConfigError if fewer than four are labelled, or one set is empty.
    ConfigError if the run is no `draw` run, because only random sentences give unbiased scores.
    """
    rows = _labelled(run_id, answered(run_id)).items()
    if purpose(run_id) != "draw":
        raise ConfigError(f"{run_id}: its sentences are not a random sample; draw random sentences with `label draw`.")
    if len(rows) < 4:
        raise ConfigError(f"{count(len(rows), 'sentence')} labelled; label at least four for a dev and a test set.")
    name, origin = library().find(corpus_of(store().get(run_id))).name, {"run": run_id}
    parts = {
        "dev": [row for place, row in rows if is_dev(place)],
        "test": [row for place, row in rows if not is_dev(place)],
    }
    if not all(parts.values()):
        raise ConfigError("The dev set or the test set has no sentence yet; label more sentences.")
    dev, test = (
        library().seal(part, name=f"{name}, {len(part):,} labelled for {role}", origin=origin, labelled=True)
        for role, part in parts.items()
    )
    return dev, test


def corrected(run_id: str) -> Corpus:
    """Store the reviewed corpus with the corrected labels, as a new corpus. All copies of a sentence are corrected.

    Errors: ConfigError if no label was changed, or if the run is no `review` run.
    """
    if purpose(run_id) != "review":
        raise ConfigError(f"{run_id}: is not a review of labels; start one with `label review`.")
    right = {sentence.id: sentence for sentence in labelled(run_id)}
    old = library().find(corpus_of_run(run_id))
    rows = list(chain.from_iterable(old.batches()))
    new = [_recut(right[row.id], row) if row.id in right else row for row in rows]
    changed = sum(set(a.entities or ()) != set(b.entities or ()) for a, b in zip(rows, new, strict=True))
    if not changed:
        raise ConfigError("No label was changed, so there is nothing to correct; change a label first.")
    name = f"{old.name}, {count(changed, 'sentence')} corrected"
    return library().seal(new, name=name, origin={"run": run_id, "from": old.fingerprint}, labelled=True)


def roles_of_reviewed(run_id: str) -> list[str]:
    """Return the roles that the reviewed corpus has, or that an earlier correction by the same review has."""
    marks = {corpus_of_run(run_id), *(corpus.fingerprint for corpus in _corrections(run_id))}
    return [role for role, mark in roles().items() if mark in marks]


def _corrections(run_id: str) -> list[Corpus]:
    return [corpus for corpus in library().list() if corpus.labelled and corpus.origin.get("run") == run_id]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Mean test F1 of taggers before and after corrections, in percent, and the difference with its 95% interval."""

    before: float
    after: float
    difference: Difference


def effect_of_corrections(run_id: str) -> Effect | None:
    """Compare taggers trained on the reviewed corpus with taggers trained on the corrected one.

    All compared taggers have the settings of the latest tagger, and were tested on the test set in use. Return None if
    either corpus has no such tagger.
    """
    points = {point.corpus: point for point in curve()}
    before = points.get(corpus_of_run(run_id))
    after = next((points[c.fingerprint] for c in _corrections(run_id) if c.fingerprint in points), None)
    if before is None or after is None:
        return None
    new, old = (evaluations.read(store().get(point.run), 0) for point in (after, before))
    return Effect(before=before.mean, after=after.mean, difference=compare(new, old, same_seeds=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggester:
    """A source of suggestions besides the tagger. about: sentence on the source's result.

    options: options of a queue that uses the source. host: computer to which the source would send the queued
    sentences, "" for this computer. warning: sentence about this host.
    """

    name: str
    options: Mapping[str, object]
    about: str = ""
    host: str = ""
    warning: str = ""


def suggesters() -> list[Suggester]:
    """Return the imported lists of names and the runs that can make suggestions; in both groups, the newest first."""
    found = [
        Suggester(name=f"Names of {corpus.name}", options={"names": (corpus.fingerprint,)})
        for corpus in lists_of_names()
    ]
    able = [run for run in runs.listed(*suggest.SOURCES, state="succeeded") if not run.brought_file.exists()]
    names = run_titles(able)
    for run in able:
        server = suggest.server_of(run, str(run.manifest.config.get("allow_host", "")))
        host, warning = (server.host, server.warning) if server and not server.here else ("", "")
        options = {"suggest": run.id}
        about = outcome(run)
        found.append(Suggester(name=names[run.id], options=options, about=about, host=host, warning=warning))
    return found


def suggester_of(run_id: str) -> str:
    """Return the name of a run as a source of suggestions; "" if its predictions cannot be suggested."""
    return next((each.name for each in suggesters() if each.options.get("suggest") == run_id), "")


def queue_options(n: int, suggester: Suggester | None = None) -> dict[str, object]:
    """Return the options to queue `n` sentences: the corpora in use, and the latest tagger whose model still exists.

    suggester: source of the suggestions. If it is None, the tagger makes them. Without a tagger, names of the training
    set are suggested.
    """
    held = roles()
    options: dict[str, object] = {name: held[name] for name in ("task", "domain", "train", "dev") if name in held}
    if "test" in held:
        options["holdout"] = (held["test"],)
    # Taggers that an experiment or a review trained are excluded.
    own = {run.id for run in runs.own("finetune", state="succeeded")}
    if tagger := next((run_id for run_id in taggers.here() if run_id in own), None):
        options["model"] = tagger
    elif suggester is None and "train" in held and library().find(held["train"]).types:
        options["names"] = (held["train"],)
    return {**options, **(suggester.options if suggester else {}), "n": n}


def draw_options(n: int) -> dict[str, object]:
    """Return the options to draw `n` sentences of the task corpus for a dev and a test set."""
    held = roles()
    known = tuple(held[role] for role in ("train", "dev", "test") if role in held)
    return {"task": held.get("task", ""), "known": known, "n": n}


def review_options(corpus: str, against: str = "") -> dict[str, object]:
    """Return the options to review a labelled corpus. against: another labelled corpus to compare with, "" for none.

    The taggers choose their best epoch on the dev set in use. If the project has finished `difficulty` runs on this
    corpus, the review uses the newest one.
    """
    dev = roles().get("dev", "")
    measured = [
        run.id for run in runs.listed("difficulty", state="succeeded") if run.manifest.inputs["train"] == corpus
    ]
    options: dict[str, object] = {"corpus": corpus, "dev": dev if dev != corpus else ""}
    options |= {"difficulty": measured[0]} if measured else {}
    return {**options, **({"against": against} if against else {})}


def review_seconds(options: Mapping[str, object]) -> float | None:
    """Estimate the time that the taggers of a review take, in seconds. options: those of `review_options`.

    Return None if the review trains no taggers, or if no speed was measured yet.
    """
    if not options["dev"]:
        return None
    given = {"init": "minilm", "train": options["corpus"], "dev": options["dev"], "seeds": (1,)}
    one = taggers.preflight("finetune", given).seconds
    return None if one is None else one * ReviewConfig.model_fields["folds"].default


def is_labelled_here(train: str) -> bool:
    """Return True if the training set was made from labels that were given or corrected on the page Label.

    train: name or fingerprint of the training set.
    """
    made_by = library().find(train).origin.get("run")
    return any(run.id == made_by for run in store().list(*KINDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Test F1 of the taggers on one training set, in percent; one value per seed.

    corpus, run: fingerprint of the training set, and id of the run that trained the taggers. sentences: size of the
    training set. interval: 95% interval of the mean, over seeds and test sentences; for one seed, over test sentences.
    """

    corpus: str
    run: str
    name: str
    sentences: int
    f1: Sequence[float]
    mean: float
    interval: tuple[float, float]


def curve() -> list[Point]:
    """Return test F1 for each training set, the smallest first.

    Only taggers with the settings of the latest one, tested on the test set in use, are included.
    """
    trained = [
        run
        for run in runs.own("finetune", state="succeeded")
        if run.manifest.config["test"] and run.manifest.config["test"][0] == roles().get("test")
    ]
    if not trained:
        return []
    settings = _settings(trained[0])
    points: dict[str, Point] = {}
    for run in trained:
        mark = run.manifest.inputs["train"]
        scored, corpus = result.read(run, FinetuneResult).tests[0], library().recall(mark)
        if mark in points or _settings(run) != settings or not corpus.n_sentences:
            continue
        points[mark] = Point(
            corpus=mark,
            run=run.id,
            name=corpus.name,
            sentences=corpus.n_sentences,
            f1=scored.micro_f1,
            mean=scored.mean,
            interval=_interval(run.id),
        )
    return sorted(points.values(), key=lambda point: point.sentences)


# Cached, because a page calls this again after every answer.
@kept_per_home(256)
def _interval(run_id: str) -> tuple[float, float]:
    return interval(evaluations.read(store().get(run_id)))


def next_labels(points: Sequence[Point]) -> dict[int, Step]:
    """Return the expected gain in F1 from more labelled sentences, {number of sentences: gain}. The numbers are `NEXT`.

    Return {} if `points` has training sets of fewer than three sizes. The gain is extrapolated by a power law
    (SOURCES.md, Power laws); it is not evidence.
    """
    # Of several points with the same size, the newest comes first. Reverse them, because the dict keeps the last one.
    sizes = {point.sentences: point.f1 for point in reversed(points)}
    if len(sizes) < 3:
        return {}
    return {n: next_step(sizes, max(sizes) + n) for n in NEXT}


def _settings(run: Run) -> dict[str, object]:
    """Return the options of a tagger's run, without its training set."""
    return {name: value for name, value in complete_config(run).items() if name != "train"}


def retraining(train: str) -> dict[str, object] | None:
    """Return the options to train the project's latest tagger on another training set; None if there is no tagger."""
    latest = next((run for run in runs.own("finetune", state="succeeded")), None)
    return None if latest is None else {**latest.manifest.config, "train": train}
