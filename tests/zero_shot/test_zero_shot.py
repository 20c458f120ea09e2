"""The kind `zero-shot`: known predictions, windows, thresholds, its command, hostile folders, and no connection."""

import json
import math
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForTokenClassification, AutoTokenizer, BertConfig, BertForTokenClassification

from core.errors import ConfigError, ModelError, PathError, WinnowError
from core.models import hub
from core.models.taggers import new_tagger
from core.paths import confine
from core.projects import runs
from core.tagging import evaluations
from core.text.sentence import Entity, Prediction
from core.zero_shot import ready
from core.zero_shot.folders import folder_of, label_names
from core.zero_shot.labels import Labels
from tests.conftest import Command, Seal, sentence
from tests.fake_models import ready_model

NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-MISC", "I-MISC")
WORDS = {
    "Ada": {"B-PER": 0.9, "O": 0.1},
    "Bo": {"B-PER": 0.6, "O": 0.4},
    "Cy": {"B-PER": 0.7, "O": 0.3},
    "Lovelace": {"I-PER": 0.8, "O": 0.2},
    "Rome": {"B-LOC": 0.55, "O": 0.45},
    "Oslo": {"B-LOC": 0.3, "O": 0.7},
    "Latin": {"B-MISC": 0.9, "O": 0.1},
    "goes": {"O": 1.0 - 1e-6},
    "##mant": {"B-LOC": 0.99},
}


@pytest.fixture(scope="module")
def ner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ready_model(tmp_path_factory.mktemp("ready") / "ner", NAMES, WORDS)


@pytest.fixture
def folder(ner: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(ner, tmp_path / "ner"))


def loaded(folder: Path, most: int = 512) -> ready.ReadyTagger:
    labels = Labels.read("m", label_names("m", folder_of(str(folder))))
    return ready.load(str(folder), labels, max_length=most, device=torch.device("cpu"))


def predicted(folder: Path, texts: Sequence[str], most: int = 512) -> list[Prediction]:
    return loaded(folder, most).predict([sentence(text) for text in texts])


def test_predictions_are_those_of_the_first_pieces(ner: Path) -> None:
    ada, split, rome, none = predicted(ner, ["Ada Lovelace goes", "Adamant goes Bo", "goes Rome Oslo", ""])
    assert ada.entities == (Entity(start=0, end=2, type="PER"),)
    assert ada.confidence == pytest.approx([0.9 * 0.8], abs=1e-5)  # (.9 + 0) * .8 * (1 - 0)
    assert split.entities == (Entity(start=0, end=1, type="PER"), Entity(start=2, end=3, type="PER"))
    assert split.confidence == pytest.approx([0.9, 0.6], abs=1e-5)
    assert rome.entities == (Entity(start=1, end=2, type="LOC"),)
    assert rome.confidence == pytest.approx([0.55], abs=1e-5)
    assert none.entities == ()


def random_model(folder: Path, seed: int) -> Path:
    """Save a token classifier with random weights, whose predictions depend on all words."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=193,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=64,
        initializer_range=0.6,
        id2label=dict(enumerate(NAMES)),
        label2id={name: i for i, name in enumerate(NAMES)},
    )
    BertForTokenClassification(config).save_pretrained(folder)
    tokenizer = hub.tiny_tokenizer()
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder)
    return folder


def by_transformers(folder: Path, text: str) -> list[tuple[int, int, str, float]]:
    """Tag a text by transformers alone, and group the tags of first pieces without any code of `core`."""
    tokenizer, words = AutoTokenizer.from_pretrained(folder), text.split()
    coded = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        model = AutoModelForTokenClassification.from_pretrained(folder).eval()
        scores = model(**coded).logits[0].double().softmax(-1)
    places = coded.word_ids()
    first = [scores[places.index(word)].tolist() for word in range(len(words))]
    tags = [NAMES[max(range(len(NAMES)), key=row.__getitem__)] for row in first]
    found, start = list[tuple[int, int, str, float]](), 0
    while start < len(tags):
        if tags[start] == "O":
            start += 1
            continue
        type, end = tags[start][2:], start + 1
        while end < len(tags) and tags[end] == f"I-{type}":
            end += 1
        b, i = NAMES.index(f"B-{type}"), NAMES.index(f"I-{type}")
        before = first[start - 1][b] + first[start - 1][i] if start else 0.0
        after = first[end][i] if end < len(first) else 0.0
        sure = (first[start][b] + first[start][i] * (1 - before)) * math.prod(
            first[k][i] for k in range(start + 1, end)
        )
        found.append((start, end, type, sure * (1 - after)))
        start = end
    return found


@pytest.mark.parametrize("seed", [4, 7])  # with these, one or several words per entity, and words outside
def test_predictions_are_those_of_transformers(seed: int, tmp_path: Path) -> None:
    texts = ["Ada saw Bo in Rome", "x", "He went to Oslo by ship and saw it", "ab cd ef gh", "one two"]
    made = predicted(random_model(tmp_path / "random", seed), texts)
    assert sum(len(each.entities) for each in made) > 5
    for text, each in zip(texts, made, strict=True):
        expected = by_transformers(tmp_path / "random", text)
        assert [(e.start, e.end, e.type) for e in each.entities] == [row[:3] for row in expected]
        assert each.confidence == pytest.approx([row[3] for row in expected], abs=1e-5)


@pytest.mark.parametrize("most", [16, 17, 23])
def test_long_sentences_are_read_in_windows_and_entities_cross_them(ner: Path, most: int) -> None:
    words = ["Adamant", "Lovelace", "Lovelace", "goes", "Rome"] * 40
    [whole] = predicted(ready_model(ner.parent / "long", NAMES, WORDS, positions=512), [" ".join(words)])
    tagger, read = loaded(ner, most), list[int]()
    tagger.model.register_forward_pre_hook(
        lambda _, __, given: read.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    [parts] = tagger.predict([sentence(" ".join(words))])
    assert most - 2 < max(read) <= most  # the longest word has two pieces
    expected = [each for i in range(40) for each in ((5 * i, 5 * i + 3, "PER"), (5 * i + 4, 5 * i + 5, "LOC"))]
    assert [(e.start, e.end, e.type) for e in parts.entities] == expected
    assert parts == whole


def test_our_own_tagger_is_a_ready_model_too(tmp_path: Path) -> None:
    torch.manual_seed(1)
    new_tagger("tiny", ["LOC", "PER"], head="softmax", device="cpu").write(tmp_path / "own")
    tagger = loaded(tmp_path / "own")
    assert tagger.labels.types == ["LOC", "PER"]
    assert len(tagger.labels.column) == 9
    assert len(tagger.labels.tags) == 5
    tagger.predict([sentence("Ada went to Rome")])


GOLD: tuple[tuple[str, list[tuple[int, int, str]]], ...] = (
    ("Ada Lovelace goes Rome", [(0, 2, "person"), (3, 4, "LOC")]),
    ("Bo goes Latin", []),
    ("Cy goes Oslo", [(0, 1, "person")]),
    ("goes Rome", []),
)


def test_thresholds_are_chosen_on_dev_and_types_are_mapped(ner: Path, seal: Seal, home: Path) -> None:
    rows = [sentence(text, spans) for text, spans in GOLD]
    test = seal(rows, "test", labelled=True).fingerprint
    other = seal([sentence("Ada goes Adamant", [(0, 1, "person"), (2, 3, "date")])], "other", labelled=True)
    dev = seal([*rows[:3], sentence("goes goes")], "dev", labelled=True).fingerprint
    given = {"model": str(ner), "test": (test, other.fingerprint), "type_map": ("B-PER=person", "misc=")}
    run = runs.execute("zero-shot", given | {"dev": dev})
    result = run.result()
    assert result["types"] == {"LOC": "LOC", "PER": "person"}
    assert result["dropped"] == ["MISC"]
    assert result["unknown"] == ["date"]
    # Persons on dev, by confidence: Ada Lovelace .72 right, Cy .7 right, Bo .6 wrong. Rome, the only place, is right.
    assert result["thresholds"] == {"LOC": 0.0, "person": pytest.approx(0.7, abs=1e-4)}
    assert result["chosen"] == ["LOC", "person"]
    found = evaluations.read_predictions(run, None)
    assert [[(e.start, e.end, e.type) for e in each] for each in found] == [
        [(0, 2, "person"), (3, 4, "LOC")],
        [],
        [(0, 1, "person")],
        [(1, 2, "LOC")],
    ]
    # On test 3 of 3 entities are found, with one wrong; on the other set 2 persons, one of them right, and no date.
    assert [one["mean"] for one in result["tests"]] == pytest.approx([200 * 3 / (4 + 3), 200 * 1 / (2 + 2)])
    assert evaluations.read_table(run, "test1").f1() == pytest.approx(50.0)
    notes = run.state().notes
    assert any("MISC" in text and "--type-map" in text for text in notes)
    assert any("does not find: date" in text for text in notes)
    assert runs.execute("zero-shot", given | {"dev": dev}).id == run.id
    assert runs.execute("zero-shot", given | {"dev": dev, "max_length": 20}).result()["tests"] == result["tests"]


def test_types_without_a_dev_set_have_the_given_threshold(ner: Path, seal: Seal, home: Path) -> None:
    rows = [sentence(text, spans) for text, spans in GOLD]
    test = seal(rows, "test", labelled=True).fingerprint
    given: dict[str, Any] = {"model": str(ner), "test": (test,), "type_map": ("PER=person",)}
    run = runs.execute("zero-shot", given)
    assert (run.result()["thresholds"], run.result()["chosen"]) == ({"LOC": 0.5, "person": 0.5}, [])
    assert sum(map(len, evaluations.read_predictions(run, None))) == 5
    assert any("no dev set" in text for text in run.state().notes)
    assert (
        sum(map(len, evaluations.read_predictions(runs.execute("zero-shot", given | {"threshold": 0.65}), None))) == 2
    )
    dev = seal([sentence("Ada goes", [(0, 1, "person")])], "dev", labelled=True).fingerprint
    run = runs.execute("zero-shot", given | {"dev": dev, "threshold": 0.56})
    assert run.result()["thresholds"] == {"LOC": 0.56, "person": 0.0}
    assert any("Types that the dev set lacks: LOC" in text for text in run.state().notes)
    with pytest.raises(ConfigError, match="dev: is also a test set"):
        runs.execute("zero-shot", given | {"dev": test})


def test_a_changed_model_makes_a_new_run(folder: Path, seal: Seal) -> None:
    test = seal([sentence("Ada goes", [(0, 1, "PER")])], "test", labelled=True).fingerprint
    given = {"model": str(folder), "test": (test,)}
    run = runs.execute("zero-shot", given)
    assert run.result()["tests"][0]["mean"] == 100.0
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"][0] = 9.0  # everything is outside
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    changed = runs.execute("zero-shot", given)
    assert changed.id != run.id
    assert changed.result()["tests"][0]["mean"] == 0.0


def test_the_command_prints_scores_and_where_thresholds_come_from(ner: Path, seal: Seal, command: Command) -> None:
    seal([sentence(text, spans) for text, spans in GOLD], "test", labelled=True)
    words = ["zero-shot", "--model", ner, "--test", "test", "--type-map", "PER=person"]
    code, printed, said = command(*words)
    assert code == 0, said
    assert "person, from the model's PER; minimum confidence 0.5, not chosen on a dev set" in printed
    assert "test: score (F1) 75.00" in printed  # 3 right of 5 found and 3 labelled
    assert "MISC" in said
    code, printed, said = command(*words, "--json")
    assert json.loads(printed)["thresholds"] == {"LOC": 0.5, "person": 0.5}
    code, _, said = command("zero-shot", "--model", "dslim/bert-base-NER", "--test", "test")
    assert code == 2
    assert "dslim/bert-base-NER: is not a folder. Download" in said
    assert "does not fetch" in " ".join(command("zero-shot", "--help")[1].split())


def changed(name: str, **values: object) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        stored = json.loads((folder / name).read_text()) if (folder / name).exists() else {}
        kept = {key: value for key, value in {**stored, **values}.items() if value is not None}
        (folder / name).write_text(json.dumps(kept))

    return spoil


def tensors(**values: Any) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        for name, change in values.items():
            key = name.replace("__", ".")
            weights[key] = change(weights[key])
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return spoil


def replaced(name: str, data: bytes) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return spoil


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cos\nsystem\n.")


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def nothing_for_a_word(folder: Path) -> None:
    stored = json.loads((folder / "tokenizer.json").read_text())
    stored["normalizer"] = {"type": "Replace", "pattern": {"Regex": "."}, "content": ""}
    (folder / "tokenizer.json").write_text(json.dumps(stored))


SPOILT: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pickle": (pickled, "its only weights are a pickle .*save_pretrained"),
    "no weights": (without_weights, r"contains no \.safetensors file"),
    "a GLiNER folder": (changed("gliner_config.json", model_name="x"), "is a GLiNER model"),
    "an adapter": (changed("adapter_config.json", base_model_name_or_path="evil/model"), "contains an adapter"),
    "no names": (changed("config.json", id2label=None, label2id=None), "no id2label"),
    "a list of names": (changed("config.json", id2label=list(NAMES)), "no id2label"),
    "a gap in the names": (changed("config.json", id2label={"0": "O", "2": "B-PER"}), "no id2label"),
    "numbers for names": (changed("config.json", id2label={"0": 1, "1": 2}), "no id2label"),
    "fewer names": (changed("config.json", id2label={"0": "O", "1": "B-PER"}), "cannot be loaded|outputs"),
    "more outputs": (
        changed("config.json", num_labels=7, id2label={"0": "O", "1": "B-PER"}),
        "cannot be loaded|outputs",
    ),
    "a language model": (changed("config.json", architectures=["BertForMaskedLM"]), "is not a token classifier"),
    "no classifier": (
        lambda folder: save_file(
            {k: v for k, v in load_file(folder / "model.safetensors").items() if "classifier" not in k},
            folder / "model.safetensors",
            metadata={"format": "pt"},
        ),
        "weights are not in its file",
    ),
    "broken JSON": (replaced("config.json", b'{"id2label": '), "not a valid file"),
    "deep JSON": (replaced("config.json", b'{"a":' * 50_000), "not a valid file"),
    "a broken tokenizer": (replaced("tokenizer.json", b"[1, 2"), "tokenizer cannot be read"),
    "a tokenizer with more entries": (
        changed("added_tokens.json", **{"[NEW]": 50_000_000}),
        "its tokenizer has 50,000,001 entries",
    ),
    "a vocabulary of a billion": (changed("config.json", vocab_size=10**9), "cannot be loaded"),
    "a window of two pieces": (changed("tokenizer_config.json", model_max_length=2), "too few for a word"),
    "a tokenizer without pieces": (nothing_for_a_word, "gives no piece for a word"),
    "scores that are no numbers": (tensors(classifier__bias=lambda bias: bias * math.nan), "not numbers"),
    "an unknown architecture": (
        changed("config.json", model_type="evil", auto_map={"AutoConfig": "evil.Config"}),
        "cannot be loaded",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_damaged_and_hostile_folders_are_refused(
    name: str, folder: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil, why = SPOILT[name]
    spoil(folder)
    unpickled: list[object] = []
    monkeypatch.setattr(torch, "load", lambda *args, **kwargs: unpickled.append(args))
    test = seal([sentence("Ada goes", [(0, 1, "PER")])], "test", labelled=True).fingerprint
    with pytest.raises(ModelError, match=why) as raised:
        runs.execute("zero-shot", {"model": str(folder), "test": (test,)})
    assert len(str(raised.value)) < 900
    assert not unpickled


def test_code_in_a_folder_is_never_run(folder: Path, tmp_path: Path) -> None:
    evil = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).touch()\nclass Model: ...\n"
    for name in ("evil.py", "modeling_evil.py", "tokenization_evil.py", "__init__.py"):
        (folder / name).write_text(evil)
    changed(
        "config.json",
        auto_map={"AutoConfig": "evil.Model", "AutoModelForTokenClassification": "modeling_evil.Model"},
        custom_pipelines={"token-classification": {"impl": "evil.Model"}},
    )(folder)
    changed("tokenizer_config.json", auto_map={"AutoTokenizer": ["tokenization_evil.Model", None]})(folder)
    [prediction] = predicted(folder, ["Ada goes"])
    assert prediction.entities == (Entity(start=0, end=1, type="PER"),)
    assert not (tmp_path / "ran").exists()


def test_a_page_opens_folders_in_allowed_places_only(folder: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    test = seal([sentence("Ada goes", [(0, 1, "PER")])], "test", labelled=True).fingerprint
    confine()
    monkeypatch.setenv("WINNOW_DATA_DIRS", "")
    monkeypatch.setenv("HOME", str(folder.parent / "elsewhere"))
    for outside in (folder, folder.parent, folder.parent / "none"):  # the error does not show what is there
        with pytest.raises(PathError, match="outside the allowed folders"):
            runs.execute("zero-shot", {"model": str(outside), "test": (test,)})
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(folder.parent))
    assert runs.execute("zero-shot", {"model": str(folder), "test": (test,)}).result()["tests"][0]["mean"] == 100.0
    hidden = folder.parent / ".hidden.json"
    (folder / "config.json").rename(hidden)
    (folder / "config.json").symlink_to(hidden)
    with pytest.raises(PathError):
        runs.execute("zero-shot", {"model": str(folder), "test": (test,)})


@pytest.mark.parametrize("while_", ["loading", "predicting"])
def test_a_connection_fails_the_run_even_if_the_library_handles_it(
    while_: str, folder: Path, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def talks(usual: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", 9), timeout=1)
            return usual(*args, **options)

        return call

    if while_ == "loading":
        usual = AutoModelForTokenClassification.from_pretrained
        monkeypatch.setattr(AutoModelForTokenClassification, "from_pretrained", talks(usual))
    else:
        monkeypatch.setattr(BertForTokenClassification, "forward", talks(BertForTokenClassification.forward))
    test = seal([sentence("Ada goes", [(0, 1, "PER")])], "test", labelled=True).fingerprint
    with pytest.raises(WinnowError, match="tried to connect"):
        runs.execute("zero-shot", {"model": str(folder), "test": (test,)})
