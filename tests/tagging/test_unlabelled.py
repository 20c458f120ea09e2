"""`finetune --unlabelled`: self-training and distant supervision of a run. Held-out text, errors, key, cost, resuming."""

from typing import Any

import pytest

from core.corpora.library import Library
from core.errors import Cancelled, ConfigError, CorpusError
from core.kind import plan
from core.kinds import KINDS
from core.models.taggers import load_tagger
from core.paths import home as home_of
from core.runs import Run
from core.runs.store import RunStore
from core.tagging import evaluations
from core.tagging.config import FinetuneConfig
from core.tagging.estimate import Speed, _finetune
from core.text.sentence import Sentence
from core.training import finetune as training
from core.training import pseudo
from core.training.rows import laid_out
from tests.conftest import Seal, sentence
from tests.homes import executed
from tests.tagging.test_first_corpus import FAST, HELD_OUT, LEAK, stopped_at
from tests.training.test_finetune import Killed, labelled


def plain(n: int) -> list[Sentence]:
    return [Sentence(id=row.id, tokens=row.tokens, text=row.text) for row in [*labelled(n, 9), HELD_OUT]]


@pytest.fixture
def parts(seal: Seal) -> dict[str, Any]:
    names = [sentence("Pxx", [(0, 1, "PER")]), sentence("Lyy", [(0, 1, "LOC")]), sentence("c", [(0, 1, "VERB")])]
    labels = {"train": labelled(30, 1), "dev": [*labelled(12, 2), HELD_OUT], "names": names, "verbs": names[2:]}
    marks = {name: seal(rows, name, labelled=True).fingerprint for name, rows in labels.items()}
    text = seal(plain(24), "text", labelled=False).fingerprint
    data = {"train": marks["train"], "dev": marks["dev"], "unlabelled": text, "seeds": (1,), **FAST}
    return {"data": data, "names": (marks["names"],), "verbs": (marks["verbs"],)}


def test_held_out_sentences_get_no_pseudo_labels(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    read, real = list[Sentence](), pseudo.self_train

    def spy(*rest: Any, **options: Any) -> object:
        read.extend(options["unlabelled"])
        return real(*rest, **options)

    monkeypatch.setattr(pseudo, "self_train", spy)
    run = executed("finetune", parts["data"])
    assert len(read) == 24
    assert LEAK not in {row.text for row in read}
    assert "pseudo-labels" in " ".join(run.state().notes)
    assert "| unlabelled | text |" in (run.artifacts / "model" / "README.md").read_text(encoding="utf-8")


def test_students_learn_with_the_class_weights_of_their_teacher(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, real = list[list[float]](), laid_out

    def spy(train: Any, weights: Any, *rest: Any) -> object:
        read.append(weights)
        return real(train, weights, *rest)

    monkeypatch.setattr(training, "laid_out", spy)
    executed("finetune", {**parts["data"], "class_weights": "inverse"})
    teacher, *students = read
    assert len(set(teacher)) > 1
    assert students
    assert all(each == teacher for each in students)


def test_names_of_lists_are_learnt_first(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    types, real = set[str](), pseudo.train_distant

    def spy(stages: Any, known: Any, dictionary: Any, *rest: Any, **options: Any) -> object:
        types.update(dictionary.types.values())
        return real(stages, known, dictionary, *rest, **options)

    monkeypatch.setattr(pseudo, "train_distant", spy)
    run = executed("finetune", {**parts["data"], "distant": parts["names"]})
    assert types == {"LOC", "PER"}  # the training set has no VERB
    assert "with the names alone" in " ".join(run.state().notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "memm"}, "unlabelled: needs the network encoder with the head crf or softmax"),
        ({"network": "bilstm"}, "unlabelled: needs the network encoder"),
        ({"first": "train"}, "unlabelled: cannot be combined with assisting or first"),
        ({"stages": "lpft"}, "unlabelled: cannot be combined with stages lpft"),
        ({"distant": "dev"}, "is also the dev or test set"),
        ({"distant": "names", "unlabelled": ""}, "distant: names are looked up in unlabelled sentences"),
    ],
)
def test_options_that_exclude_each_other(parts: dict[str, Any], options: dict[str, Any], message: str) -> None:
    marks = {**parts["data"], "names": parts["names"][0]}
    given = {name: marks.get(value, value) for name, value in options.items()}
    given |= {"distant": (given["distant"],)} if "distant" in given else {}
    with pytest.raises(ConfigError, match=message):
        executed("finetune", {**parts["data"], **given})


def test_lists_without_a_type_of_the_training_set_are_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(CorpusError, match=r"verbs: no name has a type of the training set \(LOC and PER\)"):
        executed("finetune", {**parts["data"], "distant": parts["verbs"]})


def test_key_and_cost_count_the_text_and_the_lists(parts: dict[str, Any]) -> None:
    def config(**options: object) -> FinetuneConfig:
        return FinetuneConfig.parse({**parts["data"], **options})

    ways = (config(), config(unlabelled=""), config(distant=parts["names"]))
    assert len({plan(KINDS["finetune"], way, home_of()).key for way in ways}) == 3
    speed = Speed(a=0.1, b=1e-3, load=1.0, pieces=1.3)
    students, alone, distant = (_finetune(way, Library(home_of())).time(speed).expected for way in ways)
    assert min(students, distant) > alone


def test_run_resumes_with_the_same_predictions(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def found(run: Run) -> str:
        return (run.artifacts / "predictions-dev-1.jsonl").read_text(encoding="utf-8")

    calm, options, real = (
        executed("finetune", parts["data"]),
        {**parts["data"], "seeds": (1, 2)},
        evaluations.write_outcome,
    )

    def die(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(evaluations, "write_outcome", die)  # after all stages of the first seed
    with pytest.raises(Killed):
        executed("finetune", options)
    monkeypatch.setattr(evaluations, "write_outcome", real)
    assert found(executed("finetune", options)) == found(calm)


def test_a_run_that_is_stopped_in_a_student_keeps_the_teacher(
    parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise Cancelled("stop")

    monkeypatch.setattr(pseudo.Stages, "train", stop)
    with pytest.raises(Cancelled):
        executed("finetune", parts["data"])
    [run] = RunStore(home_of()).list("finetune")
    assert (run.artifacts / "model" / "model.safetensors").exists()
    assert "seed 1, is kept in" in " ".join(run.state().notes)


@pytest.mark.parametrize("metric", ["distant_dev_f1@1", "student1_loss@1", "loss@1"])
def test_distant_supervision_that_is_stopped_keeps_its_best_tagger(parts: dict[str, Any], metric: str) -> None:
    """Stop after an epoch on the names, in a student, and on the training set before its first epoch ends."""
    kept = stopped_at(metric, {**parts["data"], "distant": parts["names"]})
    notes = " ".join(kept.state().notes)
    assert "the tagger of the first training, on text, with the types LOC and PER, seed 1, is kept in" in notes
    assert load_tagger(kept.artifacts / "model").types == ("LOC", "PER")
