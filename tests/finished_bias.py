"""A finished `difficulty` run without the training behind it: what each mention tells follows a rule of its words."""

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
    """n sentences with a PARTY and a DATE each, the first three with a rare type too; markup among the words."""

    def one(i: int) -> Sentence:
        tokens = (f"Acme{i % 7}", "pays", NASTY if i == 0 else f"sum{i}", "on", f"day{i % 5}", "in", f"Oslo{i}", ".")
        entities = [Entity(start=0, end=1, type="PARTY"), Entity(start=4, end=5, type="DATE")]
        entities += [Entity(start=6, end=7, type="<b>RARE</b>")] if i < 3 else []
        text = " ".join(tokens)
        made = Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=tuple(entities))
        return replace(made, file="labels.pdf", page=i + 1)

    return Library(home).seal(map(one, range(n)), name=name, origin={}, labelled=True)


def bits_of(row: int, kind: str) -> tuple[float, float]:
    """(name, context): a DATE's name gives it away, a PARTY's context does; every tenth PARTY looks wrong."""
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
    """A finished run over all mentions of `corpus`. rule: (name, context) of a row and type."""
    sentences: Sequence[Sentence] = list(next(corpus.batches()))

    def work(context: RunContext) -> DifficultyResult:
        found = [
            Mention(
                row=row,
                sentence=sentence.id,
                start=e.start,
                end=e.end,
                type=e.type,
                fold=row % folds,
                surface=" ".join(sentence.tokens[e.start : e.end]),
                pvi_entity=(bits := rule(row, e.type))[0],
                pvi_context=bits[1],
                ceim=bits[0] - bits[1],
                bin=bin_of(bits[0] - bits[1]),
            )
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
            Mention(
                row=int(drawn.rows[m]),
                sentence=sentences[int(drawn.rows[m])].id,
                start=e.start,
                end=e.end,
                type=e.type,
                surface=" ".join(drawn.names[m]),
                pvi_entity=float(drawn.entity[m]),
                pvi_context=float(drawn.context[m]),
                ceim=float(drawn.entity[m] - drawn.context[m]),
                bin=bin_of(float(drawn.entity[m] - drawn.context[m])),
                fold=0,
            )
            for m, e in enumerate(e for sentence in sentences for e in ordered(sentence))
        ][::every]
        write_mentions(found, context.run.artifacts / "mentions.parquet")
        return summary(found, 100, 1, Trained(corpus=corpus.fingerprint, seconds=1.0))

    return finish(home, "difficulty", {"train": corpus.fingerprint, "encoder": "tiny", "folds": 2}, work)
