"""Finished `difficulty` runs without training: bits follow a rule or are drawn at random."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.bias.difficulty import Trained, summary
from core.bias.result import DifficultyResult, Mention, bin_of, write_mentions
from core.bias.training_sentences import ordered
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.runs.context import RunContext
from core.runs.store import Run
from core.text.sentence import Entity, Sentence, sentence_id
from tests.bias.planted import TYPES as PLANTED
from tests.bias.planted import training
from tests.finished import NASTY, finish

TYPES = ("PARTY", "DATE", "<b>RARE</b>")


def contracts(home: Path, n: int = 60, name: str = "my labels") -> Corpus:
    """Seal n sentences with a PARTY and a DATE each; the first three also have a rare type, and one has markup."""

    def one(i: int) -> Sentence:
        tokens = (f"Acme{i % 7}", "pays", NASTY if i == 0 else f"sum{i}", "on", f"day{i % 5}", "in", f"Oslo{i}", ".")
        entities = [Entity(start=0, end=1, type="PARTY"), Entity(start=4, end=5, type="DATE")]
        entities += [Entity(start=6, end=7, type="<b>RARE</b>")] if i < 3 else []
        text = " ".join(tokens)
        made = Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=tuple(entities))
        return replace(made, file="labels.pdf", page=i + 1)

    return Library(home).seal(map(one, range(n)), name=name, origin={}, labelled=True)


def mention(row: int, sentence: Sentence, e: Entity, bits: tuple[float, float], fold: int = 0) -> Mention:
    """Return a measured mention. bits: PVI of name and context."""
    name, context = bits
    return Mention(
        row=row,
        sentence=sentence.id,
        start=e.start,
        end=e.end,
        type=e.type,
        surface=" ".join(sentence.tokens[e.start : e.end]),
        pvi_entity=name,
        pvi_context=context,
        ceim=name - context,
        bin=bin_of(name - context),
        fold=fold,
    )


def bits_of(row: int, kind: str) -> tuple[float, float]:
    """Return bits of (name, context): names reveal a DATE, contexts a PARTY; every tenth PARTY looks wrong."""
    if kind == "PARTY":
        return (-2.0 - row / 100, -1.0 - row / 100) if row % 10 == 0 else (0.2, 0.95 + row / 1000)
    return (0.9 + row / 100, 0.1) if kind == "DATE" else (0.3, 0.3)


def measured(
    home: Path,
    corpus: Corpus,
    rule: Callable[[int, str], tuple[float, float]] = bits_of,
    notes: Sequence[str] = (),
    folds: int = 5,
    **options: Any,
) -> Run:
    """Finish a run over all mentions of a corpus. rule: bits of (name, context) by row and type."""
    sentences: Sequence[Sentence] = list(next(corpus.batches()))

    def work(context: RunContext) -> DifficultyResult:
        found = [
            mention(row, sentence, e, rule(row, e.type), fold=row % folds)
            for row, sentence in enumerate(sentences)
            for e in sentence.entities or ()
        ]
        for step, loss in enumerate(np.linspace(2, 1, 5)):
            context.metric("loss/entity", float(loss), step)
        write_mentions(found, context.run.artifacts / "mentions.parquet")
        return summary(found, 100, 1, Trained(notes=notes, corpus=corpus.fingerprint, seconds=1.0))

    return finish(home, "difficulty", {"train": corpus.fingerprint, "encoder": "tiny", "folds": folds, **options}, work)


def measured_at_random(home: Path, corpus: Corpus, types: Sequence[str] = PLANTED, every: int = 1) -> Run:
    """Finish a run that measured every `every`-th mention of planted `sentences`, with bits drawn at random."""
    sentences: Sequence[Sentence] = list(next(corpus.batches()))
    drawn = training(len(sentences), types=types)

    def work(context: RunContext) -> DifficultyResult:
        found = [
            mention(row, sentences[row], e, (float(drawn.entity[m]), float(drawn.context[m])))
            for m, (row, e) in enumerate((row, e) for row, each in enumerate(sentences) for e in ordered(each))
        ][::every]
        write_mentions(found, context.run.artifacts / "mentions.parquet")
        return summary(found, 100, 1, Trained(corpus=corpus.fingerprint, seconds=1.0))

    return finish(home, "difficulty", {"train": corpus.fingerprint, "encoder": "tiny", "folds": 2}, work)
