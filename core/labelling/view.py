"""Queries of commands about a queue of sentences to label."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from core.labelling import queue, tasks
from core.labelling.queue import Queued
from core.projects.audit import exporting
from core.projects.home import library, store
from core.text.sentence import Sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A sentence to label. sentence: its `entities` are what the tagger finds, as suggestions."""

    queued: Queued
    sentence: Sentence


def to_label(run_id: str) -> list[Task]:
    """Return the sentences of a finished `queue` run, in order. Errors: RunError, CorpusError if text is gone."""
    run = store().get(run_id)
    queued = list(queue.read(run))
    domain = library().find(run.manifest.inputs["domain"])
    sentences = domain.take(np.array([each.row for each in queued], dtype=np.int64))
    return [
        Task(queued=each, sentence=replace(sentence, entities=each.entities))
        for each, sentence in zip(queued, sentences, strict=True)
    ]


@exporting
def export(run_id: str, path: Path, tool: str, *, suggestions: bool = True) -> int:
    """Write the sentences of a queue for a labelling tool, and return their number.

    suggestions: True to write what the tagger finds. Errors: as for `to_label`; PathError.
    """
    sentences = (task.sentence for task in to_label(run_id))
    return tasks.write((s if suggestions else replace(s, entities=()) for s in sentences), path, tool)
