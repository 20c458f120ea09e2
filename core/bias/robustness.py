"""`robustness`: a test set with other names, which shows if a tagger uses context (SOURCES.md, Robustness sets).

The sets follow TextFlint. Every mention is renamed and keeps its type. Assertions check that each new name has the
promised property. A slot is the place of one mention in the new set, with its type, its old name and its new name.

Report these sets together with the original test set (`frontier`), because they are synthetic and some slots are
ambiguous. A slot is ambiguous if its name has several types in the training sentences, or if its sentence has no
content word outside of names. `frontier` gives F1 with and without ambiguous slots (SOURCES.md, Never only an average).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from statistics import mean, stdev
from typing import Literal

from core.bias.result import EDITS, SLOTS, Edit, RobustnessResult, Slot, write_log, write_sentences
from core.bias.training_sentences import (
    Find,
    Known,
    Name,
    NameMaker,
    edits_of,
    folded,
    is_content_word,
    name_of,
    new_names,
    ordered,
    renamed,
    slip,
    surface,
)
from core.config import Config, option, unusual
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import ConfigError, CorpusError, Unfinished
from core.kind import Job, Kind
from core.runs.store import Run, RunStore
from core.shown import count
from core.stats import scoring
from core.tagging import predictions
from core.tagging.evaluations import labelled, read_predictions
from core.text.sentence import Entity, Sentence

Perturbation = Literal["oov", "cross-category", "typos"]
# (new name, its origin)
NewName = tuple[Name, str]
# Function that gets a name and its type, and returns the new name; None to keep the name.
ChooseName = Callable[[Name, str], NewName | None]
SURE = 0.8
# Maximum number of random draws until a new name is found.
TRIES = 50
# Kinds of runs whose predicted names may be used.
FINDERS = ("predict", "tag")


class RobustnessConfig(Config):
    """Options of a `robustness` run: the test set and its new names."""

    test: str = option(..., "The labelled test set to rename; it is not changed.", corpus=True)
    train: str = option(
        ...,
        "Training set: labelled sentences (L_C) that define which names are unseen or of another type.",
        corpus=True,
    )
    kind: Perturbation = option(
        ...,
        "oov: names that the training set lacks. cross-category: names of other types. typos: one typo per name.",
    )
    gazetteer: tuple[str, ...] = option(
        (),
        "oov: labelled corpora with names to use; names of the training set are skipped. Types without any names left"
        " get generated names.",
        corpus=True,
    )
    finds: str = option(
        "",
        "oov: finished predict or tag run on text of the domain. Its names are used before those of the gazetteer; "
        "names of the training set are skipped.",
    )
    least_sure: float = option(
        SURE,
        "oov: minimum mean confidence of the tagger. Names with a lower confidence are not used.",
        ge=0,
        le=1,
    )
    ambiguous: Literal["strict", "textflint"] = option(
        "strict",
        "cross-category: strict takes names that never have the slot's type in the training set. textflint takes names"
        " that have another type there, even if they also have the slot's type.",
    )
    seed: int = option(1, "Seed of all random draws.", ge=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Robust:
    """A robustness set: the renamed test sentences in their original order, with their edits and slots."""

    sentences: list[Sentence]
    edits: list[Edit]
    slots: list[Slot]

    def sources(self) -> dict[str, int]:
        """Return {origin of the new names: number of mentions}. Mentions that kept their name are not counted."""
        return dict(Counter(slot.source for slot in self.slots if slot.source))


def run(config: RobustnessConfig, job: Job) -> RobustnessResult:
    """Make a robustness set. Artifacts: see `core.bias.result`."""
    test, train = job.corpus(config.test), job.corpus(config.train)
    job.context.stage("reading the sentences")
    gold = labelled(test)
    known = Known.of(labelled(train))
    for corpus in (test, train):
        if not corpus.types:
            raise CorpusError(f"{corpus.name}: has no entity, so there is no name to change; give a labelled corpus.")
    if strange := sorted(set(test.types) - set(train.types)):
        job.context.note(f"{', '.join(strange)}: in the test set but not in the training set; no tagger can find them.")
    job.context.stage(f"renaming the mentions of {test.name}")
    robust = _robust(config, job, known, gold)
    corpus = _sealed(config, job, test, gold, robust)
    conll = write_sentences(job.context, robust.sentences)
    edits = write_log(job.context, EDITS, robust.edits)
    slots = write_log(job.context, SLOTS, robust.slots)
    return RobustnessResult(
        corpus=corpus.fingerprint,
        sentences=len(corpus),
        mentions=len(robust.slots),
        changed=len(robust.edits),
        ambiguous=sum(bool(slot.ambiguous) for slot in robust.slots),
        sources={**({"finds": 0} if config.finds else {}), "gazetteer": 0, "generated": 0, **robust.sources()},
        output=str(conll),
        edits=str(edits),
        slots=str(slots),
    )


def _robust(config: RobustnessConfig, job: Job, known: Known, gold: list[Sentence]) -> Robust:
    if config.kind == "cross-category":
        return cross_category(gold, known, strict=config.ambiguous == "strict", seed=config.seed)
    if config.kind == "typos":
        return misspelt(gold, known, config.seed)
    names: dict[str, list[Name]] = defaultdict(list)
    for reference in config.gazetteer:
        for sentence in chain.from_iterable(job.corpus(reference).batches()):
            for entity in sentence.entities or ():
                names[entity.type].append(name_of(sentence, entity))
    if unused := sorted(set(names) - {entity.type for sentence in gold for entity in sentence.entities or ()}):
        job.context.note(f"{', '.join(unused)}: in the gazetteer but not in the test set, so these names are not used.")
    by_type = new_names(_finds(config.finds, job), known, config.least_sure) if config.finds else {}
    if config.finds:
        counts = ", ".join(f"{len(new):,} {kind}" for kind, new in sorted(by_type.items())) or "none"
        job.context.note(f"Names that the tagger found and that {job.corpus(config.train).name} lacks: {counts}.")
    return unseen(gold, known, names, config.seed, by_type)


def _finds(reference: str, job: Job) -> Iterator[Find]:
    """Yield every entity that a finished `predict` or `tag` run found, as (name, type, confidence).

    Errors: RunError. Unfinished if the run is of another kind or has not finished.
    """
    run = RunStore(job.home).get(reference)
    if run.manifest.kind not in FINDERS or run.state().state != "succeeded":
        raise Unfinished(f"finds: {reference} is not a finished predict or tag run; tag a corpus of the domain first.")
    if run.manifest.kind == "predict":
        for line in predictions.lines(run):
            for named in line.entities:
                yield line.tokens[named.start : named.end], named.type, named.confidence
        return
    tagged, corpus = predictions.read_spans(run), job.corpus(run.manifest.inputs["corpus"])
    for row, sentence in enumerate(chain.from_iterable(corpus.batches())):
        confidences = tagged.part(row, row + 1).records["confidence"].tolist()
        for entity, confidence in zip(tagged.entities(row), confidences, strict=True):
            yield sentence.tokens[entity.start : entity.end], entity.type, confidence


def _sealed(config: RobustnessConfig, job: Job, test: Corpus, gold: list[Sentence], robust: Robust) -> Corpus:
    """Store the new set as a corpus and return it. If no name changed, return the test corpus."""
    if robust.sentences == gold:
        job.context.note(f"No name of {test.name} could be changed, so no new test set is made.")
        return test
    words: list[str] = [config.kind]
    if config.kind == "oov" and config.gazetteer:
        words.append(f"names of {' and '.join(job.corpus(reference).name for reference in config.gazetteer)}")
    if config.kind == "oov" and config.finds:
        words.append(f"finds of {config.finds[-4:]}")
    if config.kind == "cross-category" and config.ambiguous != "strict":
        words.append(config.ambiguous)
    train = job.corpus(config.train).fingerprint
    origin = {"run": job.context.run.id, "from": test.fingerprint, "kind": config.kind, "train": train}
    name = ", ".join([test.name, *words, *unusual(config, ("seed",))])
    return job.library.seal(iter(robust.sentences), name=name, origin=origin, labelled=True)


def unseen(
    test: Sequence[Sentence],
    known: Known,
    gazetteer: Mapping[str, Sequence[Name]],
    seed: int,
    finds: Mapping[str, Sequence[Name]] | None = None,
) -> Robust:
    """Return the test set with unseen names (OOV): no training sentence has the name or one of its content words.

    gazetteer, finds: {type: names}; only new names are used. Names that a tagger found (`finds`) are used first,
    because they come from the domain. Then come names of the gazetteer. A type that has neither gets generated names.
    """
    rng = Random(seed)
    lists = {
        source: {kind: [n for n in dict.fromkeys(names) if known.is_new(n)] for kind, names in by_type.items()}
        for source, by_type in (("finds", finds or {}), ("gazetteer", gazetteer))
    }
    all_names = [name for names in known.names.values() for name in names]
    makers: dict[str, NameMaker] = {}

    def choose_name(name: Name, kind: str) -> NewName:
        drawn = ((_other(by_type.get(kind, ()), name, rng), source) for source, by_type in lists.items())
        chosen = next(((other, source) for other, source in drawn if other), None)
        if chosen is None:
            # Training a Markov chain takes far longer than drawing a name from it. So train one per type, on demand.
            if kind not in makers:
                makers[kind] = NameMaker(known.names.get(kind) or all_names)
            chosen = makers[kind].make(known, rng), "generated"
        assert known.is_new(chosen[0])
        return chosen

    return _renamed(test, known, choose_name, "oov")


def cross_category(test: Sequence[Sentence], known: Known, *, strict: bool, seed: int) -> Robust:
    """Return the test set with names of other types.

    strict: if True, use names that never have the slot's type in the training sentences. If False, use names that have
    another type there, even if they also have the slot's type, as in TextFlint's lists. Errors: CorpusError if the
    training sentences have no such name.
    """
    rng = Random(seed)
    if len(known.names) < 2:
        raise CorpusError(
            f"cross-category: the training sentences have only the type {' '.join(known.names) or 'none'}, but names of"
            " another type are needed; give a training corpus with two types or more."
        )
    all_names = dict.fromkeys(name for names in known.names.values() for name in names)

    def fits(name: Name, kind: str) -> bool:
        types = known.kinds[folded(name)]
        return kind not in types if strict else bool(types - {kind})

    pools = {
        kind: [name for name in all_names if fits(name, kind)]
        for kind in sorted({entity.type for sentence in test for entity in ordered(sentence)})
    }

    def choose_name(name: Name, kind: str) -> NewName:
        chosen = _other(pools[kind], name, rng)
        if chosen is None:
            raise CorpusError(
                f"cross-category: every name of the training sentences also has the type {kind}; set ambiguous to"
                " textflint, or give a training corpus with names of more types."
            )
        assert fits(chosen, kind)
        return chosen, "train"

    return _renamed(test, known, choose_name, "cross-category")


def misspelt(test: Sequence[Sentence], known: Known, seed: int) -> Robust:
    """Return the test set with one typo per name. No entity of the training sentences has the misspelt name."""
    # Sorted, because the order of a set of strings differs between processes.
    rng, letters = Random(seed), "".join(sorted({letter for word in known.words for letter in word}))

    def choose_name(name: Name, kind: str) -> NewName | None:
        places = [place for place, word in enumerate(name) if is_content_word(word) and len(word) > 1]
        for _ in range(TRIES if places else 0):
            place = rng.choice(places)
            typo = (*name[:place], slip(name[place], rng, letters) or name[place], *name[place + 1 :])
            if folded(typo) != folded(name) and folded(typo) not in known.kinds:
                return typo, "typo"
        return None

    return _renamed(test, known, choose_name, "typos")


def _other(names: Sequence[Name], name: Name, rng: Random) -> Name | None:
    """Draw one of `names` that differs from `name` in more than case; None if all of them are equal to it."""
    # Draw until a name differs from `name`, so that all of them are equally likely. If no draw succeeds, take the first
    # name that differs.
    for _ in range(TRIES if names else 0):
        if folded(other := rng.choice(names)) != folded(name):
            return other
    return next((other for other in names if folded(other) != folded(name)), None)


def _renamed(test: Sequence[Sentence], known: Known, choose_name: ChooseName, kind: str) -> Robust:
    sentences, edits, slots = list[Sentence](), list[Edit](), list[Slot]()
    for row, sentence in enumerate(test):
        chosen = {
            place: choice
            for place, entity in enumerate(ordered(sentence))
            if (choice := choose_name(name_of(sentence, entity), entity.type))
        }
        new_sentence = renamed(sentence, {place: name for place, (name, _) in chosen.items()})
        edits += edits_of(sentence, new_sentence, chosen, row=row, copy_of=None, kind=kind)
        for place, (old, new) in enumerate(zip(ordered(sentence), ordered(new_sentence), strict=True)):
            assert old.type == new.type
            slots.append(
                Slot(
                    row=row,
                    start=new.start,
                    end=new.end,
                    type=new.type,
                    before=surface(name_of(sentence, old)),
                    after=surface(name_of(new_sentence, new)),
                    source=chosen[place][1] if place in chosen else "",
                    ambiguous=known.ambiguity(new_sentence, new),
                )
            )
        sentences.append(new_sentence)
    return Robust(sentences=sentences, edits=edits, slots=slots)


PLAIN = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierRow:
    """F1 of one run on one test set, in percent.

    test: fingerprint of the test set. kind: `test`, `oov`, `cross-category`, `typos`, or "" if unknown. mentions:
    number of mentions. ambiguous: number of ambiguous slots (see the module's docstring). micro_f1: F1 per seed.
    certain_f1: F1 per seed without ambiguous slots. mean, sd, certain_mean, certain_sd: over seeds; sd is None for one
    seed. known: fingerprint of the corpus whose names decide which slots are ambiguous.
    """

    run: str
    test: str
    name: str
    kind: str
    mentions: int
    ambiguous: int
    micro_f1: Sequence[float]
    certain_f1: Sequence[float]
    mean: float
    sd: float | None
    certain_mean: float
    certain_sd: float | None
    known: str


def frontier(runs: Sequence[Run], library: Library, train: str = "") -> list[FrontierRow]:
    """Return one row per run and test set, with the original test set first.

    runs: finished `finetune` runs with the same test sets in the same order. train: labelled corpus whose names decide
    which slots are ambiguous, the same for all runs; "" for the corpus that `known_train` returns. Errors: ConfigError
    if the test sets differ or a run is of another kind. CorpusError if there are no test sets, or a corpus or file is
    missing.
    """
    for run in runs:
        if run.manifest.kind != "finetune" or run.state().state != "succeeded":
            raise ConfigError(
                f"frontier: {run.id} is a {run.manifest.kind} run ({run.state().state}); give finished finetune runs."
            )
    tests = [tuple(run.manifest.config["test"]) for run in runs]
    if not tests or not tests[0]:
        raise CorpusError("frontier: no run was tested; fine-tune with the test set and the robustness sets as `test`.")
    if len(set(tests)) > 1:
        raise ConfigError("frontier: the runs have different test sets; compare runs with the same test sets.")
    by = library.find(train) if train else known_train(runs, library)
    known = Known.of(_all(by))
    corpora = [library.find(reference) for reference in tests[0]]
    splits = [_Split(corpus, known) for corpus in corpora]
    return [_row(run, i, split, by.fingerprint) for run in runs for i, split in enumerate(splits)]


def known_train(runs: Sequence[Run], library: Library) -> Corpus:
    """Return the corpus whose names decide which slots are ambiguous, independent of the order of `runs`.

    Candidates are the training sets that the robustness sets were made for. If there are none, candidates are the
    training sets of the runs; a sample or a rebuilt set is replaced by its original. Return the candidate with the most
    mentions. Errors: CorpusError if all candidates were removed.
    """
    here = {corpus.fingerprint: corpus for corpus in library.list()}
    tests = [here[test] for run in runs for test in run.manifest.config["test"] if test in here]
    against = [here[train] for test in tests if (train := test.origin.get("train")) in here]
    trains = [here[train] for run in runs if (train := run.manifest.config["train"]) in here]
    if not trains and not against:
        raise CorpusError("frontier: the training corpora of these runs were removed; give another one as `train`.")
    return max(against or (_base(train, here) for train in trains), key=_mentions)


def _base(corpus: Corpus, here: Mapping[str, Corpus]) -> Corpus:
    """Return the corpus that `corpus` was originally made from; stop at a corpus whose own source was removed."""
    # Origins are read from files. Stop at a cycle, so that a damaged file cannot cause an endless loop.
    seen = {corpus.fingerprint}
    while (source := here.get(corpus.parent)) and source.fingerprint not in seen:
        seen.add(source.fingerprint)
        corpus = source
    return corpus


def _mentions(corpus: Corpus) -> tuple[int, str]:
    # The fingerprint breaks ties, so that the order of the runs does not matter.
    return sum(corpus.types.values()), corpus.fingerprint


def averages(rows: Iterable[FrontierRow]) -> dict[str, float]:
    """Return {run: mean F1 over its test sets}, as in Ma et al. 2023.

    Show these means together with the rows, never alone.
    """
    f1_by_run: dict[str, list[float]] = {}
    for row in rows:
        f1_by_run.setdefault(row.run, []).append(row.mean)
    return {run: mean(values) for run, values in f1_by_run.items()}


class _Split:
    """A test set and its ambiguous slots."""

    def __init__(self, corpus: Corpus, known: Known) -> None:
        self.corpus = corpus
        self.gold = [set(sentence.entities or ()) for sentence in _all(corpus)]
        self.unsure = [
            {entity for entity in sentence.entities or () if known.ambiguity(sentence, entity)}
            for sentence in _all(corpus)
        ]

    def f1(self, predictions: Sequence[Iterable[Entity]], *, certain: bool) -> float:
        """Return micro F1 of one seed's predictions, percent. certain: leave out ambiguous slots."""
        if not certain:
            return scoring.count(self.gold, predictions).f1()
        # Drop ambiguous slots from the gold labels, and drop predictions that overlap an ambiguous slot.
        gold = [entities - unsure for entities, unsure in zip(self.gold, self.unsure, strict=True)]
        guess = [
            [e for e in entities if not any(e.start < o.end and o.start < e.end for o in unsure)]
            for unsure, entities in zip(self.unsure, predictions, strict=True)
        ]
        return scoring.count(gold, guess).f1()


def _row(run: Run, index: int, split: _Split, known: str) -> FrontierRow:
    by_seed = [read_predictions(run, seed, index) for seed in run.manifest.config["seeds"]]
    f1s, certain = ([split.f1(one, certain=sure) for one in by_seed] for sure in (False, True))
    return FrontierRow(
        run=run.id,
        test=split.corpus.fingerprint,
        name=split.corpus.name,
        kind=str(split.corpus.origin.get("kind", "")) if index else PLAIN,
        mentions=sum(map(len, split.gold)),
        ambiguous=sum(map(len, split.unsure)),
        micro_f1=f1s,
        certain_f1=certain,
        mean=mean(f1s),
        sd=_spread(f1s),
        certain_mean=mean(certain),
        certain_sd=_spread(certain),
        known=known,
    )


def _spread(f1s: Sequence[float]) -> float | None:
    return stdev(f1s) if len(f1s) > 1 else None


def _all(corpus: Corpus) -> Iterable[Sentence]:
    return chain.from_iterable(corpus.batches())


KIND = Kind(
    "robustness",
    RobustnessConfig,
    run,
    RobustnessResult,
    title=lambda run: f"Make a robustness set ({run.config['kind']}) from {run.corpus(run.config['test'])}",
    outcome=lambda result, _: f"{result.changed:,} of {count(result.mentions, 'mention')} renamed",
    page="Bias",
)
