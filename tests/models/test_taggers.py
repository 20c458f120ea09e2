"""Taggers: predictions in batches, losses, windows, and folders that transformers loads."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from core.errors import Cancelled, ModelError
from core.models import hub
from core.models.crf import Head, bioes_tags
from core.models.tagger import IGNORED, prediction_of
from core.models.taggers import EncoderTagger, load_tagger, new_tagger
from core.tagging.predict import PredictConfig
from core.text.schemes import decode
from core.text.sentence import Entity, Sentence
from tests.conftest import sentence
from tests.reporters import Canceller

TAGS = bioes_tags(["A"])  # O B I E S


@pytest.fixture(autouse=True)
def no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def tagger() -> EncoderTagger:
    torch.manual_seed(1)
    return new_tagger("tiny", ["LOC", "PER"], max_length=32, precision="fp32").eval()


PER = sentence("Bob met Ann in Rome", [(0, 1, "PER"), (2, 3, "PER"), (4, 5, "LOC")])
ODD = [sentence(""), sentence("x" * 300 + " y"), sentence("\u200b a \u200d"), sentence("a b c " * 60), PER]


def test_every_sentence_gets_the_same_prediction_in_any_batch(tagger: EncoderTagger) -> None:
    predictions, tags = tagger.predict(ODD), tagger.tag(ODD)
    assert [len(each.viterbi) for each in tags] == [len(s.tokens) for s in ODD]
    assert predictions[0].entities == ()
    for one, found, tagged in zip(ODD, predictions, tags, strict=True):
        assert found.entities == prediction_of(tagged.viterbi).entities
        assert len(found.confidence) == len(found.entities)
        assert all(0 < sure <= 1 for sure in found.confidence)
        (alone,) = tagger.predict([one])
        assert alone.entities == found.entities
        assert alone.confidence == pytest.approx(found.confidence, abs=1e-4)
    assert tagger.predict([]) == []
    with pytest.raises(Cancelled):
        tagger.predict([PER], Canceller())


@pytest.mark.parametrize("head", ["crf", "softmax"])
def test_every_parameter_is_in_one_learning_rate_group(head: Head) -> None:
    tagger = new_tagger("tiny", ["LOC", "PER"], precision="fp32", head=head)
    chain = [] if head == "softmax" else [id(p) for p in tagger.crf.parameters()]
    layer = [id(p) for p in tagger.last_layer.parameters()]
    for rate, expected in ((None, [layer + chain]), (0.3, [layer, chain] if chain else [layer])):
        body, *groups = tagger.parameter_groups(0.1, 0.2, rate)
        assert [[id(p) for p in group["params"]] for group in groups] == [
            [id(p) for p in tagger.parameters() if id(p) in wanted] for wanted in expected
        ]
        assert [group["lr"] for group in (body, *groups)] == [0.1, 0.2, 0.3][: 1 + len(expected)]
        everyone = [id(p) for group in (body, *groups) for p in group["params"]]
        assert sorted(everyone) == sorted(id(p) for p in tagger.parameters() if p.requires_grad)


def test_one_pass_gives_the_results_of_separate_calls(tagger: EncoderTagger) -> None:
    heats = (1.0, 0.5, 3.0)
    tags, columns = tagger.read(heats, ODD)
    assert tags == tagger.tag(ODD)
    assert columns == tagger.predict_at(heats, ODD)
    assert columns[0] == tagger.predict(ODD)
    assert [each.entities for each in columns[2]] == [each.entities for each in columns[0]]
    sure = [sum(sum(each.confidence) for each in column) for column in columns]
    assert sure[1] > sure[0] > sure[2]  # a higher temperature lowers confidence


def test_loss_is_the_mean_over_the_words_of_the_step(tagger: EncoderTagger) -> None:
    batch = tagger.batch([PER, ODD[2]])
    assert (batch["labels"] == IGNORED).sum() == 2
    loss = tagger(**batch)["loss"]
    one, other = (tagger(**tagger.batch([s]), num_items_in_batch=8)["loss"] for s in (PER, ODD[2]))
    assert float(loss) == pytest.approx(float(one + other), rel=1e-4)
    half = tagger(**tagger.batch([PER, ODD[2]], [1.0, 0.5]))["loss"]
    assert float(half) == pytest.approx(float(one + other / 2), rel=1e-4)


class Planted(nn.Module):
    """Return emissions with the right answer: `b` begins, `i` continues, `e` ends an A; everything else is O."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> None:
        super().__init__()
        self.config, self.classifier, self.seen = model.config, nn.Linear(1, 1), 0
        letters = {letter: tokenizer.convert_tokens_to_ids(letter) for letter in "bie"}
        self.answer = torch.zeros(model.config.vocab_size, dtype=torch.long)
        for letter, tag in zip("bie", (1, 2, 3), strict=True):
            self.answer[letters[letter]] = tag

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        self.seen = max(self.seen, input_ids.shape[1])
        logits = torch.nn.functional.one_hot(self.answer[input_ids], len(TAGS)) * 10.0
        return SimpleNamespace(logits=logits)


def test_entity_across_a_window_edge_is_found() -> None:
    tagger = new_tagger("tiny", ["A"], max_length=32, precision="fp32")
    planted = Planted(tagger.tokenizer, tagger.model)
    tagger.model = planted
    for before in range(20, 32):
        text = "o " * before + "b i i i i e " + "o " * 40
        (prediction,) = tagger.predict([sentence(text)])
        assert prediction.entities == (Entity(start=before, end=before + 6, type="A"),)
        assert planted.seen <= 32
        assert prediction.confidence[0] > 0.9


@pytest.fixture(scope="module")
def folder(tagger: EncoderTagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tagger")
    tagger.write(path)
    return path


FRESH = """
import json, sys, warnings
warnings.simplefilter("error")
from transformers import AutoModelForTokenClassification, pipeline
text, *folders = sys.argv[1:]
AutoModelForTokenClassification.from_pretrained(folders[0])
ways = [[f, s, pipeline("token-classification", model=f, aggregation_strategy=s)(text)]
        for f, s in ((folders[0], "simple"), (folders[0], "first"), (folders[1], "first"))]
print(json.dumps([[[g["start"], g["end"], g["entity_group"]] for g in groups] for _, _, groups in ways]))
"""


def test_transformers_pipeline_finds_the_same_entities(tagger: EncoderTagger, folder: Path, tmp_path: Path) -> None:
    mix = new_tagger("tiny", ["LOC", "PER"], layers="mix", max_length=32, precision="fp32").eval()
    mix.write(tmp_path / "mix")
    assert mix.mix
    one = sentence("b c d e a f g z x y k l m n a b")  # one piece per word, so that `simple` groups like Winnow
    command: list[str | Path] = [sys.executable, "-c", FRESH, one.text, folder, tmp_path / "mix"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr
    with mix.mix.off():
        expected = [found(each, one) for each in (tagger, tagger, mix)]
    assert all(expected)  # a random tagger finds something
    assert json.loads(done.stdout.splitlines()[-1]) == expected


def found(tagger: EncoderTagger, one: Sentence) -> list[list[object]]:
    """Return entities of the most likely tag per word, as [first letter, end, type]; every word has one letter."""
    (tags,) = tagger.tag([one])
    as_iob2 = [tag.replace("E-", "I-", 1).replace("S-", "B-", 1) for tag in tags.argmax]
    return [[2 * e.start, 2 * e.end - 1, e.type] for e in decode(as_iob2, "iob2")[0]]


def test_folder_without_a_chain_is_refused(folder: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    hub.load_model("tiny").save_pretrained(tmp_path)
    hub.load_tokenizer("tiny").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"is not a tagger made by Winnow.*run finetune first"):
        load_tagger(tmp_path)
    with pytest.raises(ModelError, match="is not a tagger made by Winnow"):
        load_tagger(Path(hub.BUNDLED))
    with pytest.raises(ModelError, match="is neither a tagger's folder nor the id of a run"):
        PredictConfig(corpus="texts", model=str(tmp_path / "missing")).settled()
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    weights = load_file(folder / "model.safetensors")
    save_file({k: v for k, v in weights.items() if "crf" not in k}, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match="no CRF transitions"):
        load_tagger(tmp_path)
