"""A survey: what people think of two sources before they see the numbers, kept beside the comparisons of these."""

from pathlib import Path

from core.errors import PathError, ReadError
from core.projects.home import store
from core.runs.result import read
from core.similarity import answers as answer_files
from core.similarity.answers import Kept
from core.similarity.result import SimilarityResult
from core.similarity.survey import SCALE as SCALE
from core.similarity.survey import Answer as Answer
from core.similarity.survey import Opinion as Opinion
from core.similarity.survey import opinions, read_answers


def keep_answer(run_id: str, answer: Answer) -> None:
    """Keep an answer beside a `similarity` run. It stands for these corpora, so other comparisons of them have it too.

    An answer without a person is another person's.
    """
    compared = read(store().get(run_id), SimilarityResult)
    kept = answer_files.read_answers(store().get(run_id))
    person = answer.person.strip() or f"person {len(kept) + 1} of {run_id[-4:]}"
    new = Kept(
        person=person,
        target=compared.targets[answer.target],
        first=compared.sources[answer.first],
        second=compared.sources[answer.second],
        rating=answer.rating,
    )
    answer_files.write_answers(store().get(run_id), [*kept, new])


def opinions_of(run_id: str, target: str) -> list[Opinion]:
    """Opinions of people on this run's sources for one of its targets, in whatever comparison they were asked."""
    compared = read(store().get(run_id), SimilarityResult)
    marks = list(compared.targets[target])
    names = {tuple(sorted(own)): name for name, own in compared.sources.items()}
    runs = sorted(store().list("similarity"), key=lambda run: run.id)
    answers = [
        Answer(person=one.person, target=target, first=first, second=second, rating=one.rating)
        for run in runs
        for one in answer_files.read_answers(run)
        if sorted(one.target) == sorted(marks)
        and (first := names.get(tuple(sorted(one.first))))
        and (second := names.get(tuple(sorted(one.second))))
    ]
    return opinions(answers)


def opinions_in(path: Path) -> list[Opinion]:
    """Opinions of people in a .csv. Errors: PathError, ReadError."""
    try:
        return opinions(read_answers(path.read_text(encoding="utf-8-sig"), path.name))
    except OSError as error:
        raise PathError(f"{path}: cannot be read ({error.strerror or error}); check the path.") from error
    except UnicodeDecodeError as error:
        raise ReadError(path.name, None, "is not UTF-8 text; save it as UTF-8.") from error
