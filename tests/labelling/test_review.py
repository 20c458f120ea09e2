"""The review of labels: its four checks, the order of the list, and the corrected corpus."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch

from core.bias.result import Mention, unsupported
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError, Unfinished
from core.importing import view as corpora
from core.labelling import queue, view
from core.labelling.review import Finding, copies, disagreements, drifting, ordered, unlearnable
from core.models.taggers import new_tagger
from core.projects import runs
from core.projects.home import library, store
from core.tagging import view as taggers
from core.text.schemes import encode
from core.text.sentence import Entity, Prediction, Sentence
from core.training import saved_models as models
from tests.conftest import Command, Seal, sentence
from tests.finished_bias import contracts, measured
from tests.finished_bias import mention as measured_mention
from tests.labelling.test_answers import sent

ORG, PER = Entity(start=0, end=2, type="ORG"), Entity(start=3, end=4, type="PER")
ACME = sentence("Acme Ltd pays Bo today .", [(0, 2, "ORG"), (3, 4, "PER")])


def found(*entities: tuple[int, int, str, float]) -> Prediction:
    return Prediction(
        entities=tuple(Entity(start=start, end=end, type=type) for start, end, type, _ in entities),
        confidence=tuple(sure for *_, sure in entities),
    )


def test_belief_in_a_label_equals_the_sum_over_its_tag_sequences() -> None:
    torch.manual_seed(0)
    tagger = new_tagger("tiny", ["A"], precision="fp32", constrained=False).eval()
    row = sentence("Acme Ltd pays", [(0, 2, "A")])
    unknown = sentence("Rent falls", [(0, 1, "A"), (1, 2, "B")])
    with torch.inference_mode():
        emissions = tagger.emissions(tagger.features([row]), (1, 3)).double().numpy()[0]
    begin, follow, end = (
        weights.detach().double().numpy()
        for weights in (tagger.crf.start_transitions, tagger.crf.transitions, tagger.crf.end_transitions)
    )
    label = tuple(tagger.tags.index(tag) for tag in encode(row.entities or (), 3, "bioes")[:2])
    total = inside = 0.0
    for path in product(range(len(tagger.tags)), repeat=3):
        points = begin[path[0]] + sum(emissions[i, tag] for i, tag in enumerate(path)) + end[path[-1]]
        weight = math.exp(points + follow[path[0], path[1]] + follow[path[1], path[2]])
        total += weight
        inside += weight if path[:2] == label else 0.0
    [[belief], [known, none]] = tagger.beliefs([row, unknown])
    assert belief == pytest.approx(inside / total, rel=1e-5)
    tagger.crf.temperature = 3.0
    assert tagger.beliefs([row])[0][0] != pytest.approx(belief, rel=1e-3)
    tagger.crf.temperature = 1.0
    assert 0 < known < 1
    assert math.isnan(none)
    assert tagger.beliefs([replace(row, tokens=(), text="", entities=())]) == [()]


@pytest.mark.parametrize(
    ("predicted", "beliefs", "expected"),
    [
        (found((0, 2, "ORG", 0.9)), (0.9, 0.6), []),
        (found((0, 2, "PER", 0.9)), (0.05, 0.6), [(0, 2, 0.95, "finds PER “Acme Ltd”")]),
        (found((0, 1, "ORG", 0.8)), (0.2, 0.6), [(0, 2, 0.8, "finds ORG “Acme”")]),
        (found(), (0.1, 0.4), [(0, 2, 0.9, "finds no entity here"), (3, 4, 0.6, "PER “Bo”")]),
        (found((4, 5, "DATE", 0.7), (0, 2, "ORG", 0.9)), (0.9, 0.9), [(4, 5, 0.7, "“today” has no label")]),
        (found((4, 5, "DATE", 0.4)), (0.9, 0.9), []),  # the confidence is too low
        (found((0, 2, "ORG", 0.45)), (0.45, 0.9), [(0, 2, 0.55, "is unsure of the label (45%)")]),
        (found((0, 2, "PER", 0.9)), (math.nan, 0.9), []),  # the tagger does not know the label's type
    ],
)
def test_a_tagger_disagrees_where_it_doubts_a_label_or_is_sure_of_another(
    predicted: Prediction, beliefs: Sequence[float], expected: list[tuple[int, int, float, str]]
) -> None:
    findings = disagreements(7, ACME, predicted, beliefs)
    assert [(one.row, one.start, one.end) for one in findings] == [(7, start, end) for start, end, *_ in expected]
    assert [one.strength for one in findings] == pytest.approx([strength for *_, strength, _ in expected])
    assert all(words in one.why for one, (*_, words) in zip(findings, expected, strict=True))


def test_copies_with_other_labels_are_found_at_the_labels_that_differ() -> None:
    other = replace(ACME, entities=(ORG,))
    [first, second, third] = copies([ACME, other, sentence("It rains ."), ACME])
    assert [one.row for one in (first, second, third)] == [0, 1, 3]
    assert {(one.start, one.end, one.strength) for one in (first, second, third)} == {(3, 4, 1.0)}
    assert first.why == "“Bo” is PER in 2 of 3 copies of this sentence."
    assert copies([ACME, ACME, replace(other, id="another")]) == []


def test_frequent_names_of_another_type_in_other_corpora_are_found(seal: Seal) -> None:
    rows = [sentence("Rome wins", [(0, 1, "ORG")]), sentence("Oslo wins", [(0, 1, "ORG")]), ACME]
    theirs = [sentence(f"In Rome {i}", [(1, 2, "place")]) for i in range(3)] + [
        sentence("Rome FC", [(0, 1, "ORG")]),
        sentence("In Oslo", [(1, 2, "place")]),
        sentence("Acme Ltd", [(0, 2, "ORG")]),
        # Bo is PER here, a type that the other corpus lacks.
        *[sentence(f"Bo {i}", [(0, 1, "place")]) for i in range(4)],
    ]
    theirs += [sentence(f"Oslo {kind}", [(0, 1, kind)]) for kind in ("ORG", "ORG", "place")]  # a tie of ORG and LOC
    other = seal(theirs, "news", labelled=True)
    rows.append(sentence("Paris", [(0, 1, "LOC")]))
    [rome] = drifting(rows, other, {"place": "LOC"})
    assert (rome.row, rome.start, rome.end, rome.strength) == (0, 0, 1, 0.75)
    assert rome.why == "“Rome” is ORG here, but LOC 3 of 4 times in news."
    assert drifting(rows, other, {"place": ""}) == []
    with pytest.raises(CorpusError, match="has no type of this corpus"):
        drifting([sentence("Paris", [(0, 1, "LOC")])], other, {})
    with pytest.raises(CorpusError, match="has no labelled entity"):
        drifting(rows, seal(["It rains ."], "plain"), {})


def mention(name: float, context: float, kind: str = "ORG") -> Mention:
    return measured_mention(0, ACME, replace(ORG, type=kind), (name, context))


def test_labels_without_information_are_found_and_rare_types_have_no_strength() -> None:
    """A view without information has 0 bits up to rounding; one view that contradicts the label is enough."""
    values = [(-3.0, 2e-16), (1.0, -9.0), (-0.2, -0.1), (2e-16, -2e-16), (-1.0, -2.0)]
    mentions = [mention(*each) for each in values]
    assert unsupported(mentions).tolist() == [0, 2, 4]
    assert [one.strength for one in unlearnable([ACME], mentions)] == [0.0] * 3
    many = unlearnable([ACME], [*mentions, *[mention(1, 1)] * 20])
    assert [one.strength for one in many] == pytest.approx([0.0, 1 - 2**-0.1, 0.5])
    assert unlearnable([], mentions) == []


def test_reasons_of_one_mention_add_up_and_each_sentence_is_listed_once() -> None:
    def one(row: int, start: int, strength: float, why: str) -> Finding:
        return Finding(row=row, start=start, end=start + 2, strength=strength, why=why)

    taggers = [one(3, 0, 0.9, "a"), one(1, 4, 0.6, "b"), one(3, 4, 0.9, "d"), one(1, 4, 0.1, "b")]
    listed = ordered([taggers, [one(1, 5, 0.6, "c")]])
    assert [(row, why) for row, _, why in listed] == [(1, ("b", "c")), (3, ("a", "d"))]
    assert [strength for _, strength, _ in listed] == pytest.approx([1.2, 0.9])


def test_each_sentence_is_checked_by_the_tagger_that_did_not_train_on_it(
    home: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = contracts(home, 24)
    dev = contracts(home, 6, "dev labels").fingerprint
    checked = dict[str, set[str]]()

    class Recorder:
        def __init__(self, folder: str) -> None:
            self.asked = checked.setdefault(folder, set())

        def predict(self, sentences: Sequence[Sentence], report: object) -> list[Prediction]:
            self.asked.update(each.id for each in sentences)
            return [found()] * len(sentences)

        def beliefs(self, sentences: Sequence[Sentence], report: object) -> list[tuple[float, ...]]:
            return [(0.1,) * len(each.entities or ()) for each in sentences]

    monkeypatch.setattr("core.models.taggers.load_tagger", lambda folder: Recorder(str(folder)))
    run = runs.execute("review", {"corpus": made.fingerprint, "dev": dev, "init": "tiny", "folds": 3})
    trained = {str(models.folder(each)): each.manifest.inputs["train"] for each in runs.listed("finetune")}
    assert checked.keys() == trained.keys()
    for folder, asked in checked.items():
        assert asked
        assert not asked & {f"{number:016x}" for number in library().find(trained[folder]).ids().tolist()}
    assert set.union(*checked.values()) == {each.id for each in next(made.batches())}
    assert run.result()["suspicious"] == 24
    assert taggers.here() == {}  # each lacks a part of the labels


@pytest.fixture
def reviewed(seal: Seal) -> str:
    """Review a training set with two contradictory copies; return the run."""
    rows = [sentence(f"The tenant pays Corp{i} .", [(3, 4, "ORG")]) for i in range(10)]
    wrong = [replace(rows[0], entities=()), replace(rows[1], entities=(Entity(start=1, end=2, type="ORG"),))]
    train = seal([*rows, *wrong], "train", labelled=True)
    corpora.set_role("train", train.fingerprint)
    return runs.execute("review", {"corpus": train.fingerprint}).id


def test_a_review_lists_sentences_with_their_labels_and_corrects_all_copies(reviewed: str) -> None:
    tasks = view.to_label(reviewed)
    assert len(tasks) == 2
    assert all("copies of this sentence" in task.queued.why[0] for task in tasks)
    assert tasks[0].sentence.entities == (Entity(start=3, end=4, type="ORG"),)
    assert view.types(reviewed) == ["ORG"]
    assert store().get(reviewed).result()["reasons"] == {"copies": 6}
    with pytest.raises(ConfigError, match="No label was changed"):
        view.corrected(reviewed)
    view.answer(reviewed, [sent(0, 0, (3, 4, "ORG")), sent(1, 1, (3, 4, "FIRM"))])
    made = view.corrected(reviewed)
    rows = next(made.batches())
    before = next(library().find(view.corpus_of_run(reviewed)).batches())
    assert [row.tokens for row in rows] == [row.tokens for row in before]
    assert [row.entities for row in rows[2:10]] == [row.entities for row in before[2:10]]
    assert rows[0].entities == rows[10].entities == (Entity(start=3, end=4, type="ORG"),)
    assert rows[1].entities == rows[11].entities == (Entity(start=3, end=4, type="FIRM"),)
    assert made.name == "train, 3 sentences corrected"
    assert view.roles_of_reviewed(reviewed) == ["train"]
    corpora.set_role("train", made.fingerprint)
    assert view.roles_of_reviewed(reviewed) == ["train"]
    assert view.is_labelled_here(made.fingerprint)
    for make in (view.training_set, view.measuring_sets):
        with pytest.raises(ConfigError, match="its sentences"):
            make(reviewed)


def test_taggers_that_never_saw_a_sentence_and_a_measurement_add_their_reasons(home: Path, seal: Seal) -> None:
    made: Corpus = contracts(home)
    corpora.set_role("dev", contracts(home, 12, "dev labels").fingerprint)
    difficulty = measured(home, made).id
    options = view.review_options(made.fingerprint)
    assert options["difficulty"] == difficulty
    run = runs.execute("review", {**options, "init": "tiny", "folds": 2})
    result = run.result()
    assert result["reasons"]["pvi"] == 6
    assert {child.manifest.inputs["train"] for child in runs.listed("finetune")} == {
        corpus.fingerprint for corpus in library().list() if corpus.origin.get("folds") == 2
    }
    queued = list(queue.read(run))
    assert len(queued) == result["sentences"] == len({each.id for each in queued})
    assert sum("neither the name nor its context" in " ".join(each.why) for each in queued) <= 6
    assert any("never saw this sentence" in why for each in queued for why in each.why)
    other = seal([ACME], "other", labelled=True).fingerprint
    with pytest.raises(ConfigError, match="dev: is the corpus to review"):
        runs.execute("review", {"corpus": other, "dev": other})
    few = runs.execute("review", {"corpus": other, "dev": str(options["dev"]), "init": "tiny"})
    assert "too few labelled sentences to train taggers" in few.state().notes[-1]
    assert few.result()["reasons"] == {"copies": 0}
    with pytest.raises(ConfigError, match="measured another corpus"):
        runs.execute("review", {"corpus": other, "difficulty": difficulty})
    with pytest.raises(Unfinished, match="is not a finished difficulty run"):
        runs.execute("review", {"corpus": other, "difficulty": run.id})
    with pytest.raises(CorpusError, match="has no labelled entity"):
        runs.execute("review", {"corpus": seal(["It rains ."], "plain").fingerprint})


def test_the_command_prints_the_reasons_and_seals_the_corrected_corpus(reviewed: str, command: Command) -> None:
    code, printed, stderr = command("label", "review", "--corpus", "train")
    assert code == 0, stderr
    assert "“Corp0” is ORG in 1 of 2 copies of this sentence." in printed
    view.answer(reviewed, [sent(0, 0)])
    code, printed, stderr = command("label", "seal", reviewed)
    assert code == 0, stderr
    assert printed.startswith("train, 1 sentence corrected")
