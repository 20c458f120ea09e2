"""Runs of `finetune` with other networks and options: layers, spans, BiLSTMs, word vectors, tokenisation, and the card."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

from core import shown_command as commands
from core.cli.main import main
from core.cli.options import given
from core.corpora.library import Library
from core.encoders import vectors
from core.errors import ConfigError, PathError, ReadError
from core.experiment import results
from core.kinds import KINDS
from core.models.bilstm import BiLstmTagger
from core.models.networks import ON_ENCODER
from core.models.taggers import load_tagger
from core.paths import home as home_of
from core.projects import removals, runs
from core.projects.titles import title
from core.runs import Run
from core.tagging import calibrate, evaluations
from core.tagging import view as training
from core.tagging.card import by_others
from core.tagging.config import FinetuneConfig
from core.tagging.estimate import Speed, _finetune
from core.tagging.predictions import read_spans
from core.text.sentence import Entity, Prediction, Sentence
from core.training import finetune as training_loop
from core.training.settings import Settings
from tests.assisting.test_assist import AWAY, HOME
from tests.conftest import Command, Seal, sentence
from tests.homes import done, executed
from tests.training.test_finetune import labelled

FAST = {"init": "tiny", "epochs": 3, "learning_rate": 3e-3, "head_learning_rate": 3e-2, "precision": "fp32"}


@pytest.fixture
def parts(seal: Seal) -> dict[str, Any]:
    """Seal a training and a dev set; one training sentence has a span of more than 4 words."""
    train, dev = (
        seal(labelled(n, seed) + LONG[:k], f"l{seed}", labelled=True).fingerprint
        for n, seed, k in ((30, 1, 1), (12, 2, 0))
    )
    return {"train": train, "dev": dev, "test": (dev,), "seeds": (1,)}


def tuned(parts: Mapping[str, object], **options: object) -> Run:
    return executed("finetune", {**FAST, **parts, **options})


def card_of(run: Run) -> str:
    """Return a tagger's card as one line."""
    return " ".join((run.artifacts / "model" / "README.md").read_text(encoding="utf-8").split())


def notes(run: Run) -> str:
    return " ".join(runs.state(run.id).notes)


def evaluated(run: Run, test: object) -> list[float]:
    f1s: list[float] = executed("evaluate", model=run.id, test=test).result()["test"]["micro_f1"]
    return f1s


def test_layer_mix_reports_its_score_without_the_mix(parts: dict[str, Any]) -> None:
    run = tuned(parts, layers="mix")
    outcome = evaluations.read_outcome(run, 1)
    assert outcome
    assert outcome.last_layer is not None
    assert 0 <= outcome.last_layer <= 100
    card = card_of(run)
    assert f"{outcome.dev.micro_f1:.2f} with the mix, {outcome.last_layer:.2f} with the pipeline" in card
    assert "| layers | mix |" in card
    assert "(`argmax` above, which also uses the mix of layers)" in card
    alone = next(what for what in training.loading(run.id) if what.startswith("With transformers"))
    assert f"and the mix of layers (score {outcome.last_layer:.1f} on" in alone
    assert evaluated(run, parts["dev"]) == [pytest.approx(outcome.dev.micro_f1)]
    run = tuned(parts, epochs=1, context=4)
    alone = next(what for what in training.loading(run.id) if what.startswith("With transformers"))
    assert alone.endswith("on the dev set, with neighbouring sentences, which a pipeline does not read)")
    assert "(`argmax` above, which also uses neighbouring sentences)" in card_of(run)
    assert "context: no training sentence names its document" in notes(run)


def test_single_layer_with_lora_is_saved_as_a_plain_folder(parts: dict[str, Any]) -> None:
    run = tuned(parts, layers="1", lora=4, checkpointing=True, stages="lpft")
    outcome, model, card = evaluations.read_outcome(run, 1), run.artifacts / "model", card_of(run)
    assert outcome
    assert outcome.last_layer is None
    assert json.loads((model / "config.json").read_text())["num_hidden_layers"] == 1
    assert "## Layers" not in card
    assert "| lora | 4 |" in card
    assert "| checkpointing | true |" in card
    assert "lora: saves memory for encoders of 100 million" in notes(run)
    assert {"head_loss@1", "loss@1"} <= {e.data["name"] for e in run.events()[0] if e.kind == "metric"}
    assert not [name for name in load_file(model / "model.safetensors") if "lora" in name]
    assert evaluated(run, parts["dev"]) == [pytest.approx(outcome.dev.micro_f1)]  # the written weights include B A


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"layers": "top"}, "layers: 'top' is not understood"),
        ({"layers": "mix", "network": "bilstm"}, "layers: mix needs an encoder, and bilstm has none"),
        ({"layers": "3"}, "layers: tiny has 2 layers and no layer 3"),
        ({"lora": "4", "network": "bilstm"}, "lora, checkpointing: need an encoder, and bilstm has none"),
        ({"lora": "4", "layers": "reinit:1"}, "lora: does not train the layers that reinit:1 resets"),
        ({"stages": "lpft", "network": "bilstm"}, "lpft freezes an encoder"),
        ({"beta": 0.1}, "beta, gamma: need the network span, but the network is encoder; choose span"),
        ({"network": "span", "layers": "mix"}, "layers: mix needs the network encoder"),
        (
            {"network": "span", "hidden": 9},
            "network: vectors, skipgram, states and hidden need the network bilstm or charcnn",
        ),
    ],
)
def test_options_that_do_not_fit_the_network_are_refused(
    parts: dict[str, Any], options: dict[str, object], words: str, command: Command
) -> None:
    with pytest.raises(ConfigError, match=words):
        tuned(parts, **options)
    given = {**FAST, "train": parts["train"], "dev": parts["dev"], **options}
    flags = [word for name, value in given.items() for word in (f"--{name}".replace("_", "-"), value)]
    code, _, err = command("finetune", *flags)
    assert (code, words in err) == (2, True)


LONG = [sentence("a b c d e f Px", [(0, 5, "LOC"), (6, 7, "PER")]), sentence("Lx and Lz met", [(0, 1, "LOC")])]
MINER = {"network": "span", "beta": 0.01, "gamma": 0.001}


def test_miner_trains_predicts_and_writes_a_card(parts: dict[str, Any]) -> None:
    run = tuned(parts, **MINER, lora=4, stages="lpft", context=4)
    result = results.tuned(run.id)
    assert result.test
    assert result.too_long
    assert result.too_long.longer == {"train": 1, "dev": 0, "test": 0}
    share = f"{1 / result.too_long.of['train']:.1%}"
    assert result.ceiling_words == f"{share} of the spans in train are longer than 4 words and cannot be found."
    assert result.ceiling_words in notes(run)
    card = card_of(run)
    for words in ("fine-tuned from `tiny`", "| beta | 0.01 |", "| gamma | 0.001 |", result.ceiling_words):
        assert words in card
    for words in ("import pipeline", "vocabulary.json", "CRF", "| head |", "| constrained |"):
        assert words not in card
    assert all(text.startswith("python -m core predict") for text in training.loading(run.id).values())
    assert title(run) == "Fine-tune tiny as MINER on l1, no further pre-training"
    assert evaluated(run, parts["dev"]) == list(result.test.micro_f1)
    done("predict", model=run.id, corpus=parts["dev"])
    (tagged,) = runs.listed("tag")
    assert (read_spans(tagged).records["end"] - read_spans(tagged).records["start"] <= 4).all()


def test_span_presets_equal_those_of_the_authors() -> None:
    given = {"train": "a", "dev": "b", "network": "span"}
    for preset in ("paper", "paper-bias"):
        settings = FinetuneConfig.parse({**given, "preset": preset}).training(9)
        assert (settings.epochs, settings.batch_size, settings.learning_rate) == (30, 32, 1e-5)
        assert settings.head_learning_rate == 1e-5
    assert FinetuneConfig.parse(given).training(9).chain_learning_rate is None


def test_estimate_includes_copied_sentences_of_miner(parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    speed = Speed(a=0.0, b=1.0, load=0.0, pieces=1.0)
    assert speed.of_network("span") == speed
    plain, miner = (
        _finetune(FinetuneConfig.parse({**parts, **own}), Library(home_of())).time(speed).most
        for own in ({"network": "span"}, MINER)
    )
    assert 1.5 * plain < miner < 2 * plain
    monkeypatch.setattr(calibrate, "SECONDS", 0.001)
    timed = {"encoder": "tiny", "task": parts["dev"], "train": parts["train"], "network": "span"}
    assert executed("calibrate", timed).result()["tagger"][1] > 0
    assert ON_ENCODER == ("encoder", "span")


@pytest.fixture
def base(seal: Seal) -> dict[str, object]:
    fingerprint = seal(HOME, "home", labelled=True).fingerprint
    return {"train": fingerprint, "dev": fingerprint, "test": (fingerprint,), "seeds": (1,), "hidden": 4, "epochs": 2}


def recurrent(base: Mapping[str, object], network: str = "charcnn", **options: object) -> Run:
    return executed("finetune", {**base, "network": network, **options})


def loaded(run: Run) -> BiLstmTagger:
    tagger = load_tagger(run.artifacts / "model", device="cpu")
    assert isinstance(tagger, BiLstmTagger)
    return tagger


def test_bilstm_with_vectors_and_states_reloads(base: dict[str, Any], seal: Seal) -> None:
    text = seal([sentence("Ada lives in Rome.")] * 9 + [sentence(f"Jordan won {i} .") for i in range(9)], "text")
    run = recurrent(base, "bilstm", vectors=text.fingerprint, states="tiny")
    learnt = vectors.read_words(next(r for r in runs.listed("vectors")))
    assert learnt.values.shape == (len(learnt.words), 100)
    assert {"Jordan", "Rome", "."} <= set(learnt.words)
    assert "Rome." not in learnt.words  # tokenised by our rule
    assert evaluated(run, base["train"]) == run.result()["test"]["micro_f1"]
    card = card_of(run)
    assert "(bilstm) trained from random weights" in card
    assert "transformers import pipeline" not in card
    assert run.manifest.config["weights"]  # hash of the encoder that gives the states
    with pytest.raises(ConfigError, match="bilstm or charcnn"):
        recurrent(base, "encoder", hidden=None, init="tiny", vectors=text.fingerprint)


def test_same_seed_gives_the_same_tagger(base: dict[str, object]) -> None:
    first = recurrent(base, epochs=3)
    result = first.result()
    removals.remove_run(first.id)
    second = recurrent(base, epochs=3).result()
    assert [second[name] for name in ("dev", "test", "best_epoch")] == [
        result[n] for n in ("dev", "test", "best_epoch")
    ]
    assert second["settings"]["learning_rate"] == 0.4


def test_charcnn_trains_by_sgd_with_a_falling_rate(base: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The expected rates are those of the last step of an epoch; its first step still has the rate of the epoch before."""
    f1s, taken = iter([30, 20, 20, 10]), list[tuple[type, float]]()
    step = training_loop.Finetuning.training_step

    def table(*given: object) -> SimpleNamespace:
        f1 = next(f1s)
        return SimpleNamespace(f1=lambda: f1, by_type=dict)

    def watched(trainer: training_loop.Finetuning, *given: Any) -> torch.Tensor:
        optimizer = trainer.optimizer.optimizer  # accelerate wraps the optimizer of torch
        taken.append((type(optimizer), optimizer.param_groups[0]["lr"]))
        return step(trainer, *given)

    monkeypatch.setattr(training_loop, "evaluate", table)
    monkeypatch.setattr(training_loop.Finetuning, "training_step", watched)
    recurrent(base, epochs=4, batch_size=2)
    assert {kind for kind, _ in taken} == {torch.optim.SGD}
    assert [rate for _, rate in taken][1::2] == pytest.approx([0.4, 0.4, 0.4 * 0.7, 0.4 * 0.7])
    rates: dict[str, Any] = {"learning_rate": 0.4, "head_learning_rate": 0.4, "decay": 0.7, "least_rate": 0.002}
    settings = Settings(epochs=9, batch_size=1, weight_decay=0.0, patience=9, min_epochs=1, **rates)
    assert settings.rate([10, 20, 15, 15, 14, 30]) == pytest.approx(0.4 * 0.7**2)
    falls = np.arange(20, 0, -1.0).tolist()
    assert settings.rate(falls[:15]) > settings.least_rate > settings.rate(falls[:16])


@pytest.mark.parametrize("share", ["all", "sub-word"])
def test_each_corpus_can_have_its_own_word_vectors(base: dict[str, object], seal: Seal, share: str) -> None:
    own, other = (
        seal([sentence(f"{names} und")] * 9, name) for names, name in (("Ada Rome", "own"), ("Lena Oslo", "other"))
    )
    theirs = seal([*AWAY, sentence("Oslo", [(0, 1, "GPE")])], "theirs", labelled=True)
    options = {**base, "assisting": theirs.fingerprint, "share": share}
    options |= {"vectors": own.fingerprint, "assisting_vectors": other.fingerprint, "skipgram": {"dimension": "4"}}
    run = recurrent(options, epochs=1)
    tagger = loaded(run)
    read = {learnt.manifest.config["corpus"]: vectors.read_words(learnt) for learnt in runs.listed("vectors")}
    for corpus, word, at in ((own, "und", 0), (other, "Lena", -1)):
        kept = tagger.get_buffer(f"towers.{at % len(tagger.towers)}.words.kept")
        kept = kept[tagger.vocabularies[at].further.index(word)]
        at_word = read[corpus.fingerprint]
        assert np.array_equal(kept.numpy(), at_word.values[at_word.words.index(word)])
    assert len(tagger.towers) == (1 if share == "all" else 2)
    assert tagger.types == ("LOC", "ORG", "PER")
    assert share == "all" or tagger.assisting_types == ("GPE", "LOC", "PER")
    assert "| assisting | theirs | 6 |" in card_of(run)
    typed = given({"skipgram": ("dimension=4", "window=2")}, KINDS["finetune"].config)
    assert typed == {"skipgram": {"dimension": "4", "window": "2"}}
    with pytest.raises(ConfigError, match="skipgram: 'wide' is not NAME=VALUE; write for example --skipgram window=2"):
        given({"skipgram": ("wide",)}, KINDS["finetune"].config)
    with pytest.raises(ConfigError, match="need assisting and vectors too"):
        recurrent(options, vectors="")
    with pytest.raises(ConfigError, match=r"skipgram\.width: is not an option here; choose among dimension, window"):
        recurrent(options, skipgram={"width": 3})


Import = Callable[..., str]
WORDS = sorted({token for one in HOME for token in one.tokens})


@pytest.fixture
def imported(home: Path, tmp_path: Path) -> Import:
    def make(name: str, *lines: str) -> str:
        path = tmp_path / f"{name}.vec"
        path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return done("vectors-import", path=str(path))

    return make


def test_imported_vectors_are_a_run_with_a_unique_name(imported: Import, tmp_path: Path) -> None:
    run = runs.get(imported("far", "3 2", "und 1 2", "und 3 4", "of late 5 6"))
    assert run.result() == {"name": "far", "words": 1, "dimension": 2, "again": 1, "unusable": 1, "whole": True}
    read = vectors.read_words(run)
    assert (read.words, read.values.tolist()) == (("und",), [[1.0, 2.0]])
    assert read.values.dtype == np.float32
    with pytest.raises(ConfigError, match=f"name: {run.id} has the name far already; choose another name"):
        imported("far", "und 1 2")
    listed = CliRunner().invoke(main, ["vectors", "list", "--json"])
    assert [one["run"] for one in json.loads(listed.stdout)["vectors"]] == [run.id]
    command = commands.command("vectors-import", run.manifest.config)
    assert command == f"python -m core vectors add {tmp_path / 'far.vec'}"


def test_refused_vector_file_leaves_no_run(imported: Import, tmp_path: Path) -> None:
    with pytest.raises(ReadError, match=r"^far.vec line 3: has 1 numbers, expected 2"):
        imported("far", "2 2", "und 1 2", "oder 1")
    with pytest.raises(PathError, match="cannot be opened"):
        done("vectors-import", path=str(tmp_path / "gone.vec"))
    for run in runs.listed("vectors-import"):
        assert run.state().permanent is (run.manifest.config["path"][-8:] == "/far.vec")
        assert not [*run.artifacts.iterdir(), *run.chunks.iterdir()]
    with pytest.raises(ConfigError, match="name: is a run's id or contains a comma"):
        done("vectors-import", path="x.vec", name="a,b")


def test_tagger_starts_from_imported_vectors_and_reports_coverage(imported: Import, seal: Seal) -> None:
    half = WORDS[: len(WORDS) // 2]
    own = imported("own", *(f"{word} {i} {-i} 0.5" for i, word in enumerate([*half, "nowhere"])))
    other = imported("other", f"{WORDS[-1]} 7 7 7", f"{half[0]} 8 8 8")
    train, theirs = (seal(rows, name, labelled=True).fingerprint for rows, name in ((HOME, "home"), (AWAY, "away")))
    base = {"train": train, "dev": train, "test": (train,), "seeds": (1,), "hidden": 4, "epochs": 1}
    given: dict[str, object] = {
        **base,
        "network": "charcnn",
        "imported_vectors": "own",
        "imported_assisting_vectors": "other",
    }
    run = recurrent(given, assisting=theirs)
    assert run.manifest.config["imported_vectors"] == own  # the config stores the run id, not the name
    tagger = load_tagger(run.artifacts / "model", device="cpu")
    assert isinstance(tagger, BiLstmTagger)
    assert tagger.layout.word_size == 3
    kept = tagger.get_buffer("towers.0.words.kept")[tagger.vocabularies[0].further.index("nowhere")]
    assert kept.tolist() == [len(half), -len(half), 0.5]

    covered = {*half, WORDS[-1]}
    tokens = [token for one in HOME for token in one.tokens]
    lower = {word for word in WORDS if word in covered or word.lower() in covered}
    share = sum(token in lower for token in tokens) / len(tokens)
    result = run.result()["with_vector"]
    assert (result["train"], result["tests"]) == (len(lower) / len(WORDS), [share])
    says = f"{len(lower) / len(WORDS):.1%} of the distinct words of the training set have a vector, and "
    notes = [event.data["text"] for event in run.events()[0] if event.kind == "note"]
    [note] = [note for note in notes if note.startswith(f"{says}{share:.1%} of the tokens of the test set.")]
    assert ("nearly all alike" in note) is (result["mean_cosine"] > vectors.ALIKE)

    wide = imported("wide", "und 1 2")
    for wrong, reason in (
        ({"imported_vectors": "gone"}, r"'gone' is not the name of imported word vectors \(imported: other, own"),
        ({"vectors": train}, "vectors, imported_vectors: a word can start from only one vector; choose one option"),
        ({"network": "encoder", "hidden": None, "init": "tiny"}, "need the network bilstm or charcnn"),
        ({"imported_vectors": ""}, "need assisting and vectors too"),
        ({"imported_assisting_vectors": wide}, "2 numbers per word, but vectors have 3"),
    ):
        with pytest.raises(ConfigError, match=reason):
            done("finetune", {**given, "assisting": theirs, **wrong})
    removals.remove_everything(other)
    assert run.id not in [one.id for one in runs.listed()]


def test_nearly_identical_vectors_give_a_warning(home: Path, seal: Seal) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 4))
    pairs = [rows[i] @ rows[j] / np.linalg.norm(rows[i]) / np.linalg.norm(rows[j]) for i in range(50) for j in range(i)]
    assert vectors.mean_cosine(rows) == pytest.approx(np.mean(pairs))
    assert vectors.mean_cosine(rows[:1]) == 0
    assert "mean cosine of two words 0.95" in vectors.alike_words(0.951)
    assert not vectors.alike_words(0.9)
    assert not vectors.alike_words(None)
    text = seal([" ".join(one.tokens) for one in HOME])  # too little text: vectors stay at their random start
    run = executed("vectors", corpus=text.fingerprint, min_count=1, dimension=2, skipgram_epochs=1)
    read = vectors.read_words(run)
    assert run.result()["mean_cosine"] == pytest.approx(vectors.mean_cosine(read.values))


LABELS = ["The U.S.-based firm did n't pay .", "A U.K.-based bank ( since 1996-08-22 ) is n't Moody 's ."]
RAW = "The U.S.-based bank didn't pay."
CUT = ("The", "U.S.-based", "bank", "did", "n't", "pay", ".")


def treebank(text: str) -> Sentence:
    return replace(sentence(text, [(1, 2, "X")]), tokens=tuple(text.split()))


@pytest.mark.parametrize("network", ["encoder", "bilstm"])
def test_raw_text_is_tokenised_like_the_training_set(home: Path, monkeypatch: pytest.MonkeyPatch, network: str) -> None:
    library = Library(home)
    train = library.seal(map(treebank, LABELS * 3), name="train", origin={}, labelled=True).fingerprint
    given = {"init": "tiny", "epochs": 1, "batch_size": 4, "precision": "fp32", "seeds": (1,)}
    size = {"hidden": 4} if network == "bilstm" else {}
    trained = recurrent(given, network, **size, train=train, dev=train)
    tagger = load_tagger(trained.artifacts / "model")
    assert tagger.cut is not None
    assert tagger.cut(RAW) == CUT
    seen: list[tuple[str, ...]] = []

    def second_word(self: Any, sentences: Sequence[Sentence], report: Any = None) -> list[Prediction]:
        """Predict an entity at the second word of every sentence."""
        seen.extend(one.tokens for one in sentences)
        return [Prediction(entities=(Entity(start=1, end=2, type="X"),), confidence=(0.5,)) for _ in sentences]

    monkeypatch.setattr(type(tagger), "predict", second_word)
    came_cut = replace(sentence(RAW), tokens=tuple(RAW.split()))
    corpora = [
        library.seal([sentence(RAW)], name="raw", origin={}),
        library.seal([came_cut], name="cut", origin={}, tokens="blanks"),
        library.seal([replace(came_cut, entities=())], name="labels", origin={}, labelled=True),
    ]
    for corpus in corpora:
        run = executed("tag", corpus=corpus.fingerprint, model=str(trained.artifacts / "model"))
        (entity,) = read_spans(run).entities(0)
        (own,) = (one.tokens for one in corpus.take([0]))
        assert "".join(own[entity.start : entity.end]) == "U.S.-based"
    assert seen == [CUT, came_cut.tokens, came_cut.tokens]


def scores(argmax: float, constrained: float) -> dict[str, float]:
    return {"viterbi": argmax, "argmax": argmax, "cited_scorer": argmax, "constrained": constrained}


def test_card_warns_if_other_software_scores_far_lower() -> None:
    words = by_others(scores(14.2, 59.3))
    assert "dev F1 is 14.2 with the pipeline above and 59.3 with `predict`" in words
    assert "--no-constrained" in words
    assert by_others(scores(58.0, 59.3)) == by_others(scores(57.0, 59.3), 58.1) == ""
    words = by_others(scores(58.0, 59.3), 31.5)
    assert (
        "dev F1 is 31.5 with the pipeline above and 59.3 with `predict`, because the pipeline leaves out the mix"
        in words
    )
    assert "--no-constrained" not in words
    words = by_others(scores(14.2, 59.3), 9.0)
    assert "dev F1 is 9.0 with the pipeline above" in words
    assert "--no-constrained" in words
    words = by_others(scores(14.2, 59.3), context=8)
    assert "dev F1 is 14.2 if each word is decoded alone and 59.3 with `predict`" in words
