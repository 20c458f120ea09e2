"""The queue of sentences to label: its order, what it leaves out, its files, and its command."""

import json
import random
import shutil
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from core.corpora.hygiene import FLAGS
from core.errors import CorpusError
from core.importing import view as corpora
from core.labelling import queue, tasks
from core.labelling import view as labelling
from core.labelling.queue import centres, standardised, unlabelled, without_repeats
from core.models.taggers import load_tagger, new_tagger
from core.projects import runs
from core.projects.home import library, store
from core.selection.result import Scored
from core.text.sentence import Entity, Prediction, Sentence, sentence_id
from core.training import saved_models as models
from tests.conftest import Command, Seal, sentence
from tests.homes import Names
from tests.training.test_finetune import labelled


def predicted(*spans: tuple[int, int]) -> Prediction:
    entities = tuple(Entity(start=start, end=end, type="X") for start, end in spans)
    return Prediction(entities=entities, confidence=(0.5,) * len(entities))


def test_doubt_is_one_minus_the_probability_of_the_best_tags_per_token() -> None:
    """Compare with the sum over all tag sequences."""
    torch.manual_seed(0)
    tagger = new_tagger("tiny", ["A"], precision="fp32", constrained=False).eval()
    rows = [sentence("Acme Ltd pays"), sentence("Rent")]
    empty = replace(rows[0], tokens=(), text="")
    with torch.inference_mode():
        features = tagger.features(rows)
        emissions = tagger.emissions(features, (2, 3)).double().numpy()
    begin, follow, end = (
        weights.detach().double().numpy()
        for weights in (tagger.crf.start_transitions, tagger.crf.transitions, tagger.crf.end_transitions)
    )
    best = tagger.tag(rows)
    for row, doubt in zip(range(2), tagger.doubts([*rows, empty])[:2], strict=True):
        n = len(rows[row].tokens)
        totals = {
            path: begin[path[0]]
            + sum(emissions[row, i, tag] for i, tag in enumerate(path))
            + sum(follow[a, b] for a, b in pairwise(path))
            + end[path[-1]]
            for path in product(range(len(tagger.tags)), repeat=n)
        }
        chosen = tuple(tagger.tags.index(tag) for tag in best[row].best)
        share = np.exp(totals[chosen]) / np.exp([*totals.values()]).sum()
        assert doubt == pytest.approx(1 - share ** (1 / n), rel=1e-4)
    assert tagger.doubts([empty]) == [0.0]


def test_each_main_entity_is_queued_once_and_sentences_without_one_stay() -> None:
    rows = [sentence(text) for text in ("Acme Ltd pays Bo", "acme LTD owes", "Bo pays", "It rains", "So what")]
    found = [predicted((0, 2), (3, 4)), predicted((0, 2)), predicted((0, 1)), predicted(), predicted()]
    assert without_repeats([1, 0, 2, 3, 4], rows, found) == [1, 2, 3, 4]


def test_centres_are_one_row_per_cluster_best_score_first() -> None:
    corners = np.eye(4, dtype=np.float32)
    rows = corners[[0, 0, 1, 2, 1, 3, 0]]
    assert centres(rows, 4, seed=0) == [0, 2, 3, 5]
    assert centres(rows, 6, seed=0) == [0, 2, 3, 5, 1, 4]
    assert centres(corners[:2], 5, seed=0) == [0, 1]
    assert len({*centres(rows, 4, seed=20261129113000)}) == 4  # a date and time, which scikit-learn refuses
    nearly = np.vstack([rows, rows]).astype(np.float16)
    nearly[7:, 1] = np.nextafter(nearly[7:, 1], np.float16(2))  # differs by rounding errors
    assert sorted(centres(nearly, 8, seed=0))[:4] == [0, 1, 2, 3]
    assert len({*centres(nearly, 8, seed=0)}) == 8
    assert standardised(np.ones(3)).tolist() == [0.0] * 3
    assert standardised(np.array([1.0, 3.0])).tolist() == [-1.0, 1.0]


@pytest.fixture
def roles(seal: Seal) -> dict[str, Any]:
    clauses = [f"The tenant number {i} pays the rent to landlord {i} ." for i in range(30)]
    films = [f"This film number {i} has a charming soundtrack ." for i in range(60)]
    labelled = [sentence(f"The tenant pays Corp{i} .", [(3, 4, "ORG")]) for i in range(20)]
    return {
        "task": seal(clauses[:12], "task").fingerprint,
        "domain": seal([*clauses[12:], *films, *[s.text for s in labelled[:3]]], "domain").fingerprint,
        "train": seal(labelled[:12], "train", labelled=True).fingerprint,
        "dev": seal(labelled[12:], "dev", labelled=True).fingerprint,
    }


def test_queue_has_similar_sentences_once_and_none_that_is_labelled(roles: dict[str, Any]) -> None:
    options = {**roles, "encoder": "tiny", "n": 6, "holdout": (roles["dev"],)}
    run = runs.execute("queue", options)
    rows = [each.row for each in queue.read(run)]
    assert 0 < len(rows) == len(set(rows)) <= 6
    domain = list(next(library().find(roles["domain"]).batches()))
    known = {s.text for split in ("train", "dev") for s in next(library().find(roles[split]).batches())}
    assert not {domain[row].text for row in rows} & known
    assert all(each.uncertainty == 0 and not each.entities for each in queue.read(run))
    assert [*queue.read(runs.execute("queue", options))] == [*queue.read(run)]
    (run.artifacts / queue.FILE).write_text('{"row": 1}\n')
    with pytest.raises(CorpusError, match="its queue cannot be read"):
        list(queue.read(run))


def test_without_a_tagger_the_names_of_lists_are_suggested(roles: dict[str, Any], seal: Seal) -> None:
    rows = [sentence("landlord 7 pays", [(0, 2, "PARTY")]), sentence("rent", [(0, 1, "SUM")])]
    names = seal(rows, "names", labelled=True).fingerprint
    corpora.set_role("train", names)
    options = {**roles, "encoder": "tiny", "n": 6, "names": labelling.queue_options(6)["names"]}
    assert options["names"] == (names,)
    tasks = labelling.to_label(runs.execute("queue", options).id)
    found = {(" ".join(t.sentence.tokens[e.start : e.end]), e.type) for t in tasks for e in t.sentence.entities or ()}
    assert found <= {("rent", "SUM"), ("landlord 7", "PARTY")}
    assert ("rent", "SUM") in found
    assert all(each.queued.uncertainty == 0 for each in tasks)


def test_copies_of_training_sentences_are_replaced_by_the_next_best_rows(seal: Seal) -> None:
    texts = [
        "The tenant pays the rent .",
        "It rains in Oslo today .",
        "A film without any music .",
        "Acme Ltd sells seed potatoes .",
        "Who wrote this long letter ?",
        "Nobody answers the phone .",
    ]
    domain = seal(texts, "domain")
    train = seal([sentence(texts[i].upper(), []) for i in (4, 0, 1)], "train", labelled=True)
    rows = np.array([4, 0, 5, 1, 3])
    assert unlabelled(rows, 2, domain, [train]).tolist() == [5, 3]
    assert unlabelled(rows, 1, domain, [train]).tolist() == [5]
    assert unlabelled(rows, 9, domain, []).tolist() == rows.tolist()
    assert unlabelled(rows[:2], 2, domain, [train]).tolist() == []


def test_a_tagger_adds_its_uncertainty_and_its_entities_as_suggestions(
    trained: Names, seal: Seal, tmp_path: Path, command: Command
) -> None:
    others = [replace(each, entities=None) for each in labelled(60, 9)]
    task, domain = seal(others[:12], "task"), seal(others[12:], "domain")
    corpora.set_role("task", task.fingerprint)
    corpora.set_role("domain", domain.fingerprint)
    path = tmp_path / "to-label.jsonl"
    words = [
        "label",
        "next",
        "--task",
        "task",
        "--domain",
        "domain",
        "--n",
        "5",
        "--encoder",
        "tiny",
        "--model",
        trained["tagger"],
        "--output",
        str(path),
    ]
    code, printed, stderr = command(*words, "--tool", "prodigy", "--json")
    assert code == 0, stderr
    run_id = json.loads(printed)["run"]
    queued = list(queue.read(store().get(run_id)))
    rows = next(domain.batches())
    tagger = load_tagger(models.folder(store().get(trained["tagger"])))
    doubts, found = tagger.doubts(rows), tagger.predict(rows)
    for each in queued:
        assert each.uncertainty == pytest.approx(doubts[each.row], abs=1e-4)
        assert each.entities == found[each.row].entities
    score, audit = (
        next(run for run in runs.listed(kind) if run.manifest.parent == run_id) for kind in ("score", "audit")
    )
    scored = Scored.read(score, audit, library())
    pool = scored.eligible(FLAGS)
    relevance = standardised(scored.scores.values[pool]) + standardised(doubts[pool])
    assert queued[0].row == pool[int(relevance.argmax())]
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [line["meta"]["id"] for line in lines] == [each.id for each in queued]
    assert sum(len(line["spans"]) for line in lines) == sum(len(each.entities) for each in queued) > 0
    code, printed, _ = command(*words, "--no-suggestions")
    assert code == 0
    assert [json.loads(line)["label"] for line in path.read_text("utf-8").splitlines()] == [[]] * len(queued)
    assert rows[queued[0].row].text in printed


def test_a_changed_tagger_in_the_same_folder_makes_a_new_queue(trained: Names, seal: Seal, tmp_path: Path) -> None:
    others = [replace(each, entities=None) for each in labelled(30, 9)]
    folder = tmp_path / "tagger"
    shutil.copytree(models.folder(store().get(trained["tagger"])), folder)
    asked = {
        "task": seal(others[:6], "task").fingerprint,
        "domain": seal(others[6:], "domain").fingerprint,
        "encoder": "tiny",
        "n": 3,
        "model": str(folder),
    }
    first = runs.execute("queue", asked)
    assert runs.execute("queue", asked).id == first.id
    path = next(folder.glob("*.safetensors"))
    weights = load_file(path)
    save_file({name: torch.zeros_like(each) for name, each in weights.items()}, path, metadata={"format": "pt"})
    again = runs.execute("queue", asked)
    assert again.id != first.id
    assert {each.uncertainty for each in queue.read(again)} != {each.uncertainty for each in queue.read(first)}


def test_tasks_of_every_tool_have_text_id_and_suggested_spans(tmp_path: Path) -> None:
    one = Sentence(
        id=sentence_id("Acme Ltd. pays €5"),
        tokens=("Acme", "Ltd", ".", "pays", "€", "5"),
        text="Acme Ltd. pays €5",
        entities=(Entity(start=0, end=3, type="ORG"), Entity(start=4, end=6, type="SUM")),
        file="a.pdf",
        page=2,
    )
    spans = dict[str, list[tuple[int, int, str]]]()
    for tool in ("doccano", "prodigy", "label-studio"):
        path = tmp_path / "new folder" / tool
        assert tasks.write([one, replace(one, entities=())], path, tool) == 2
        text = path.read_text("utf-8")
        first, second = json.loads(text) if tool == "label-studio" else map(json.loads, text.splitlines())
        assert one.id in json.dumps(first)
        assert "a.pdf" in json.dumps(second)
        if tool == "doccano":
            spans[tool] = [tuple(span) for span in first["label"]]
        elif tool == "prodigy":
            spans[tool] = [(span["start"], span["end"], span["label"]) for span in first["spans"]]
        else:
            values = [each["value"] for each in first["predictions"][0]["result"]]
            assert [value["text"] for value in values] == ["Acme Ltd.", "€5"]
            spans[tool] = [(value["start"], value["end"], *value["labels"]) for value in values]
            assert second["predictions"] == []
    assert all(found == [(0, 9, "ORG"), (15, 17, "SUM")] for found in spans.values())
    with pytest.raises(CorpusError, match="tokens are not in its text"):
        tasks.write([replace(one, text="other")], tmp_path / "x", "doccano")


@pytest.mark.parametrize("tool", tasks.ENDINGS)
def test_labels_survive_the_way_to_a_tool_and_back(home: Path, tool: str, tmp_path: Path) -> None:
    """60 sentences with letters outside the Basic Multilingual Plane, which tools count as one or as two."""
    rng, words = random.Random(7), ["Acme", "Ltd.", "😀", "Änne", "€5", "𝒜𝓃𝓃", "pays", "नमस्ते", "O'Neil"]
    written = []
    for n in range(60):
        tokens = (*rng.choices(words, k=9), str(n))
        cuts = sorted(rng.sample(range(len(tokens) + 1), 4))
        found = tuple(
            Entity(start=start, end=end, type=rng.choice(["ORG", "PER"]))
            for start, end in (cuts[:2], cuts[2:])
            if n % 5  # every fifth sentence has no entity
        )
        text = " ".join(tokens)
        written.append(Sentence(id=sentence_id(text), tokens=tokens, text=text, entities=found))
    path = tmp_path / f"labelled{tasks.ENDINGS[tool]}"
    tasks.write(written, path, tool, labelled=True)
    added = runs.execute("add", {"path": str(path)}).result()["corpus"]
    read = [sentence for batch in library().find(added).batches() for sentence in batch]
    assert len(read) == len(written)
    for old, new in zip(written, read, strict=True):
        assert "".join(new.text.split()) == "".join(old.text.split())
        assert [("".join(new.tokens[e.start : e.end]), e.type) for e in new.entities or ()] == [
            ("".join(old.tokens[e.start : e.end]), e.type) for e in old.entities or ()
        ]
