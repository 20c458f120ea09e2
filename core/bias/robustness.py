"""`robustness`: a test set under other names, to see whether a tagger reads contexts. Its figures are to be
shown beside those of the plain test set (`frontier`): such sets are synthetic, and some slots cannot be answered."""

from collections import defaultdict
from itertools import chain
from typing import Literal

from core.bias.finds import new_names
from core.bias.names import Known
from core.bias.result import EDITS, SLOTS, RobustnessResult, write_log, write_sentences
from core.bias.robustness_sets import Robust, cross_category, misspelt, unseen
from core.bias.tagger_finds import finds
from core.bias.training_sentences import Name, name_of
from core.config import Config, option, unusual
from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.kind import Job, Kind
from core.shown import count
from core.tagging.scores import labelled
from core.text.sentence import Sentence

Perturbation = Literal["oov", "cross-category", "typos"]
SURE = 0.8


class RobustnessConfig(Config):
    """Options: the test set, and what its mentions are to be called."""

    test: str = option(..., "The labelled test split that is renamed; it stays as it is.", corpus=True)
    train: str = option(
        ...,
        "Training set: labelled sentences (L_C) that define which names are unseen or of another type.",
        corpus=True,
    )
    kind: Perturbation = option(
        ..., "oov: names of the type that train does not hold. cross-category: names of other types. typos: one slip."
    )
    gazetteer: tuple[str, ...] = option(
        (),
        "oov: labelled corpora whose names are taken, where train lacks them; of types without any they are generated.",
        corpus=True,
    )
    finds: str = option(
        "",
        "oov: a finished predict or tag run on text of the domain: names that it found and train lacks come before "
        "those of the gazetteer.",
    )
    least_sure: float = option(SURE, "oov: of the finds those that the tagger is on average so sure of.", ge=0, le=1)
    ambiguous: Literal["strict", "textflint"] = option(
        "strict", "cross-category: names that train never has under the slot's type, or (textflint) may have there too."
    )
    seed: int = option(1, "What is drawn at random.", ge=0)


def run(config: RobustnessConfig, job: Job) -> RobustnessResult:
    """Artifacts: see `artifacts.rebuilt`."""
    test, train = job.corpus(config.test), job.corpus(config.train)
    job.context.stage("reading the sentences")
    gold = labelled(test)
    known = Known.of(labelled(train))
    for corpus in (test, train):
        if not corpus.types:
            raise CorpusError(f"{corpus.name}: holds no entity, so there is no name to change; give a labelled corpus.")
    if strange := sorted(set(test.types) - set(train.types)):
        job.context.note(
            f"{', '.join(strange)}: in the test but not in the training sentences; no tagger can find them."
        )
    job.context.stage(f"renaming the mentions of {test.name}")
    renamed = _rename(config, job, known, gold)
    corpus = _sealed(config, job, test, gold, renamed)
    conll = write_sentences(job.context, renamed.sentences)
    log = write_log(job.context, EDITS, renamed.edits)
    slots = write_log(job.context, SLOTS, renamed.slots)
    sources = renamed.sources()
    return RobustnessResult(
        corpus=corpus.fingerprint,
        sentences=len(corpus),
        mentions=len(renamed.slots),
        changed=len(renamed.edits),
        ambiguous=sum(bool(slot.ambiguous) for slot in renamed.slots),
        sources={**dict.fromkeys(("finds",) * bool(config.finds), 0), "gazetteer": 0, "generated": 0, **sources},
        output=str(conll),
        edits=str(log),
        slots=str(slots),
    )


def _sealed(config: RobustnessConfig, job: Job, test: Corpus, gold: list[Sentence], renamed: Robust) -> Corpus:
    """The new set as a corpus; the test corpus itself where no name could be changed, which keeps its name."""
    if renamed.sentences == gold:
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
    return job.library.seal(iter(renamed.sentences), name=name, origin=origin, labelled=True)


def _rename(config: RobustnessConfig, job: Job, known: Known, gold: list[Sentence]) -> Robust:
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
        job.context.note(f"{', '.join(unused)}: in the gazetteer but not in the test, so these names are not used.")
    by_type = new_names(finds(config.finds, job), known, config.least_sure) if config.finds else {}
    if config.finds:
        counts = ", ".join(f"{len(new):,} {kind}" for kind, new in sorted(by_type.items())) or "none"
        job.context.note(f"Names that the tagger found and {job.corpus(config.train).name} lacks: {counts}.")
    return unseen(gold, known, names, config.seed, by_type)


KIND = Kind(
    "robustness",
    RobustnessConfig,
    run,
    RobustnessResult,
    title=lambda run: f"Make {run.config['kind']} of {run.corpus(run.config['test'])}",
    outcome=lambda result, _: f"{result.changed:,} of {count(result.mentions, 'mention')} renamed",
    page="Bias",
)
