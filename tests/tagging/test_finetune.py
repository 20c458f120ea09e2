"""Runs of `finetune`, `evaluate`, and `predict`: results, leaks, resuming, decoding, context, torchrun, and commands."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypedDict

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from core import shown_command as commands
from core.errors import Cancelled, ConfigError, CorpusError, WinnowError
from core.experiment import deliver
from core.importing import view as imports
from core.models.tagger import Tags, prediction_of
from core.models.taggers import load_tagger, new_tagger
from core.projects import removals, runs
from core.projects.pack import OF_THE_PROCESS
from core.reporter import Silent
from core.results import Evaluation
from core.runs import Run
from core.runs.events import Event
from core.runs.store import RunStore
from core.tagging import evaluations, predict
from core.tagging import result as taggers
from core.tagging import view as training
from core.tagging.config import FinetuneConfig
from core.tagging.evaluations import TrainInTest
from core.tagging.finetune import Overlap, Seeds, Splits, _network, dealt
from core.tagging.network import Borrowed, sentence_weights
from core.tagging.predictions import read_spans
from core.text.sentence import Sentence
from core.training.finetune import Epochs
from core.training.on_device import _in_words, _SilentContext
from core.training.settings import TaggerSettings
from tests.conftest import ROOT, Command, Seal, sentence
from tests.homes import TAGGER, Names, executed, project_in
from tests.training.test_finetune import labelled

FAST = TAGGER


class Corpora(TypedDict):
    train: str
    dev: str
    test: tuple[str]


@pytest.fixture
def corpora(seal: Seal) -> Corpora:
    train, dev, test = (seal(labelled(n, seed), f"l{seed}", labelled=True) for n, seed in ((24, 1), (12, 2), (12, 3)))
    return {"train": train.fingerprint, "dev": dev.fingerprint, "test": (test.fingerprint,)}


def tuned(options: Mapping[str, object], listener: Callable[[Event], None] | None = None, **how: Any) -> Run:
    return runs.execute("finetune", {**FAST, **options}, listener, **how)


@pytest.fixture
def tagger(trained: Names) -> Run:
    """Return the run of the tagger with seeds 1 and 2."""
    return runs.get(trained["tagger"])


def test_two_seeds_write_a_tagger_tables_and_a_card(tagger: Run, trained: Names) -> None:
    run, result, config = tagger, tagger.result(), tagger.manifest.config
    assert len(result["dev"]["micro_f1"]) == len(result["test"]["micro_f1"]) == len(result["seconds"]) == 2
    assert result["tests"] == [result["test"]]
    assert result["test"]["mean"] == pytest.approx(np.mean(result["test"]["micro_f1"]))
    assert set(result["test"]["by_type"]) == {"LOC", "PER"}
    for seed, dev_f1, test_f1 in zip((1, 2), result["dev"]["micro_f1"], result["test"]["micro_f1"], strict=True):
        assert Evaluation.load(run.artifacts / f"evaluation-dev-{seed}.npz").f1() == dev_f1  # without rounding
        table = Evaluation.load(run.artifacts / f"evaluation-test-{seed}.npz")
        assert table.f1() == test_f1
        lines = (run.artifacts / f"predictions-test-{seed}.jsonl").read_text().splitlines()
        assert [len(json.loads(line)["entities"]) for line in lines] == table.predicted.sum(1).tolist()
    card = (run.artifacts / "model" / "README.md").read_text()
    for part in (config["train"], config["test"][0], "argmax", "viterbi", f"{result['test']['micro_f1'][0]:.2f}"):
        assert part in card
    assert not list(run.checkpoints.iterdir())
    kept = int(np.argmax(result["dev"]["micro_f1"]))
    for scores, best, epochs in zip(result["dev_epochs"], result["best_epoch"], result["epochs"], strict=True):
        assert len(scores) == epochs
        assert scores[best - 1] == max(scores)
    again = runs.get(trained["evaluate"]).result()
    assert again["test"]["micro_f1"] == [pytest.approx(result["test"]["micro_f1"][kept], abs=0.5)]
    assert tuned(config).id == run.id


def long(n: int, ends: str) -> Sentence:
    """Return a unique sentence of 14 words that begins with a person."""
    return sentence(f"P{n}x " + " ".join(f"w{n}{letter}" for letter in "abcdefghijkl") + f" {ends}", [(0, 1, "PER")])


def test_leaked_training_sentences_are_counted_and_excluded_f1_is_reported(seal: Seal) -> None:
    splits = {
        "train": [*(long(n, ".") for n in range(12)), long(20, "."), long(21, ".")],
        "dev": [long(20, "."), *(long(n, ".") for n in range(30, 36))],
        "test": [long(0, "."), long(1, "changed"), *(long(n, ".") for n in range(40, 46))],
    }
    sealed = {name: seal(rows, name, labelled=True).fingerprint for name, rows in splits.items()}
    further = [seal([long(n, "."), long(50, ".")], f"further {n}", labelled=True).fingerprint for n in (1, 5)]
    run = tuned({**sealed, "test": (sealed["test"], *further), "seeds": (1,)})
    result = run.result()
    assert result["train_in_test"] == {"exact": 2, "near": 1, "further": 1}
    words = (
        "3 training sentences are in the dev or test set too (2 word for word, 1 nearly). 1 more is in further test "
        "sets."
    )
    assert [note for note in runs.state(run.id).notes if note.startswith(words)]
    for split, held in (("dev", 1), ("test", 2)):
        table = Evaluation.load(run.artifacts / f"evaluation-{split}-1.npz")
        assert result[split]["unseen_f1"] == [table.of(np.arange(len(splits[split])) >= held).f1()]
    assert words in (run.artifacts / "model" / "README.md").read_text()
    apart = tuned({**sealed, "dev": sealed["train"], "test": (), "seeds": (1,), "epochs": 1}).result()
    assert apart["train_in_test"] == {"exact": 14, "near": 0, "further": 0}
    assert apart["dev"]["unseen_f1"] == []  # no unseen sentence is left


def test_finished_seed_is_not_trained_again(tagger: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.tagging import finetune as runner
    from core.training import finetune as training

    options, whole = tagger.manifest.config, tagger.result()
    removals.remove_run(tagger.id)
    monkeypatch.setattr(runner, "preflight", lambda *_: SimpleNamespace(seconds=6000.0))
    real, seeds = training.finetune, list[int]()

    def killed_at_the_second(*args: Any, seed: int, **kw: Any) -> Epochs:
        seeds.append(seed)
        if seeds == [1, 2]:
            raise KeyboardInterrupt
        return real(*args, seed=seed, **kw)

    monkeypatch.setattr(training, "finetune", killed_at_the_second)
    with pytest.raises((KeyboardInterrupt, Cancelled)):
        tuned(options)
    again = tuned(options)
    resumed = again.result()
    assert seeds == [1, 2, 2]
    assert resumed["test"] == whole["test"]
    left = [event.data["left"] for event in again.events()[0] if event.kind == "part"]
    assert (left[0], left[2]) == (6000, 3000)  # the estimate, at first of both seeds, then of the one that is left
    assert left[1] is not None
    assert left[1] < 3000  # corrected by the first seed, which took seconds
    assert resumed["best_epoch"] == whole["best_epoch"]


@pytest.mark.parametrize("lora", [0, 4])
def test_cancelled_training_keeps_the_best_tagger(corpora: Corpora, lora: int) -> None:
    def stop(event: Event) -> None:
        if event.kind == "metric" and event.data["name"] == "dev_f1@1":
            runs.cancel(runs.listed("finetune")[0].id)

    with pytest.raises(Cancelled):
        tuned({**corpora, "epochs": 500, "seeds": (1,), "lora": lora, "dev_every": 1}, stop)
    (run,) = runs.listed("finetune")
    assert "dev_f1_within@1" in runs.state(run.id).metrics
    assert run.state().state == "cancelled"
    assert any("is kept in" in note for note in runs.state(run.id).notes)
    assert load_tagger(run.artifacts / "model").types == ("LOC", "PER")
    assert not [name for name in load_file(run.artifacts / "model" / "model.safetensors") if "lora" in name]


def test_type_missing_in_train_counts_as_missed(corpora: Corpora, seal: Seal) -> None:
    odd = seal([sentence("Px Zy", [(0, 1, "PER"), (1, 2, "ODD")])] * 3, "odd", labelled=True).fingerprint
    run = tuned({**corpora, "test": (odd, corpora["test"][0]), "seeds": (1,), "epochs": 1})
    assert any(note.startswith("ODD:") for note in runs.state(run.id).notes)
    table = Evaluation.load(run.artifacts / "evaluation-test-1.npz")
    assert table.types == ("LOC", "ODD", "PER")
    assert table.gold.sum(0).tolist() == [0, 3, 3]
    assert run.result()["tests"][0]["by_type"]["ODD"] == 0
    assert (run.artifacts / "evaluation-test1-1.npz").exists()


def test_loading_gives_the_dev_score_of_the_seed_in_the_folder(tagger: Run) -> None:
    outcomes = {seed: evaluations.read_outcome(tagger, seed) for seed in (1, 2)}
    _, seed = taggers.kept_seed(tagger)
    kept, other = outcomes[seed], outcomes[3 - seed]
    assert kept
    assert other
    assert kept.dev.decodings["constrained"] != other.dev.decodings["constrained"]
    (whole,) = [what for what in training.loading(tagger.id) if what.startswith("On the command line")]
    assert whole.endswith(f"(score {kept.dev.decodings['constrained']:.1f} on the dev set)")


def test_wrong_input_raises_a_readable_error(corpora: Corpora, seal: Seal) -> None:
    plain = seal(["a b", "c d"], "plain").fingerprint
    empty = seal([sentence("a b", [])], "empty", labelled=True).fingerprint
    wrong: list[tuple[type[WinnowError], str, dict[str, object]]] = [
        (CorpusError, "not labelled", {"dev": plain}),
        (ConfigError, "The training set has no entity", {"train": empty}),
        (ConfigError, "seeds", {"seeds": ()}),
        (ConfigError, "seeds", {"seeds": (1, 1)}),
        (ConfigError, "seeds", {"seeds": (-1,)}),
        (ConfigError, r"seeds: .* from 0 to 4,294,967,295", {"seeds": (1, 20261129113000)}),
        (ConfigError, "charcnn reads one sentence at a time", {"network": "charcnn", "context": 8}),
        (ConfigError, "larger max_length", {"context": 64, "max_length": 128}),
    ]
    for error, words, options in wrong:
        with pytest.raises(error, match=words):
            tuned({**corpora, **options}, run_anyway=True)
    with pytest.raises(ConfigError, match="no finished model"):
        tuned({**corpora, "init": runs.listed("finetune")[0].id})


def test_run_whose_model_was_deleted_is_not_said_to_be_unfinished(tagger: Run) -> None:
    shutil.rmtree(tagger.artifacts / "model")
    train = tagger.manifest.config["train"]
    for work in (lambda: executed("evaluate", model=tagger.id, test=train), lambda: deliver.model_folder(tagger.id)):
        with pytest.raises(WinnowError, match=r"is no longer in the project; .* remove the run and start it again"):
            work()


def test_run_of_a_kind_without_a_model_is_not_said_to_have_lost_it(tagger: Run) -> None:
    options = {"test": tagger.manifest.config["train"]}
    tested = executed("evaluate", model=tagger.id, **options)
    with pytest.raises(ConfigError, match="is a run of the kind evaluate, which keeps no model"):
        executed("evaluate", model=tested.id, **options)


def test_finetune_evaluate_and_predict_commands_work(command: Command, tmp_path: Path, corpora: Corpora) -> None:
    output, test = tmp_path / "tagger", corpora["test"][0]
    words = ["--init", "tiny", "--train", corpora["train"], "--dev", corpora["dev"], "--test", test]
    code, out, err = command("finetune", *words, "--seed", 3, "--epochs", 1, "--output", output, "--json")
    assert code == 0, err
    assert len(json.loads(out)["test"]["micro_f1"]) == 1
    raw = tmp_path / "raw.txt"
    raw.write_text("Px meets La\n\nax bx\n", encoding="utf-8")
    for name in ("p.jsonl", "p.conll"):
        code, out, err = command("predict", "--model", output, raw, "--output", tmp_path / name, "--json")
        assert code == 0, err
        assert json.loads(out)["sentences"] == 2
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["tokens"] for row in rows] == [["Px", "meets", "La"], ["ax", "bx"]]
    tokens = [line.split("\t")[0] for line in (tmp_path / "p.conll").read_text(encoding="utf-8").splitlines()]
    assert tokens == ["Px", "meets", "La", "", "ax", "bx", ""]
    places = [(row["file"], row["line"], row["text"]) for row in rows]
    assert places == [("raw.txt", 1, "Px meets La"), ("raw.txt", 3, "ax bx")]
    assert [json.loads(line) for line in command("predict", "--model", output, raw)[1].splitlines()] == rows
    assert json.loads(command("predict", "--model", output, raw, "--json")[1])["predictions"] == rows
    damaged = tmp_path / "damaged.jsonl"
    damaged.write_text('{"text": "Px meets La"}\n{"text": 7}\n{"text": "ax bx"}\n', encoding="utf-8")
    code, out, err = command("predict", "--model", output, damaged)
    assert [json.loads(line)["line"] for line in out.splitlines()] == [1, 3]
    assert "note: 1 row of damaged.jsonl could not be read, so no entities were predicted there" in err
    code, _, err = command("predict", "--model", output, damaged, "--output", tmp_path / "d.conll")
    assert (code, "note: 1 row of damaged.jsonl could not be read" in err) == (0, True)
    code, _, err = command("predict", "--model", output, raw, "--output", tmp_path / "p.txt", "--json")
    assert (code, "'p.txt' must end in one of .jsonl, .csv, .conll" in err) == (2, True)


def test_a_corpus_is_predicted_and_not_a_file_of_its_name(
    command: Command, tmp_path: Path, corpora: Corpora, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw.txt").write_text("Px meets La\n\nax bx\n", encoding="utf-8")
    run = tuned({**corpora, "seeds": (1,), "epochs": 1})
    code, _, err = command("predict", "--model", run.id, "raw.txt", "--output", "p.jsonl")
    assert code == 0, err
    (name,) = (corpus.name for corpus in imports.listed() if corpus.n_sentences == 2)
    Path(name).write_bytes(b'{"text": 7}\n{"text": "other"}\n')
    code, out, err = command("predict", "--model", run.id, name)
    assert (code, "could not be read" in err) == (0, False)
    assert [json.loads(line)["line"] for line in out.splitlines()] == [1, 3]


@pytest.mark.parametrize("network", ["encoder", "charcnn"])
def test_only_the_paper_preset_starts_from_a_random_unconstrained_chain(network: str) -> None:
    """The papers used the random start of pytorch-crf, which hundreds of steps hardly change."""
    rows, types = labelled(12, 1), ("LOC", "PER")
    seen, borrowed = Overlap(train=TrainInTest(), seen=()), Borrowed(assisting=[])
    splits = Splits(
        train=rows, weights=[], borrowed=borrowed, dev=rows, tests=[], types=types, all_types=types, overlap=seen
    )
    no_job: Any = None  # not used for these options
    given = {"train": "a", "dev": "b", "init": "tiny", "network": network}
    for preset in ("quick", "custom", "paper"):
        config = FinetuneConfig.parse({**given, "preset": preset})
        chain = _network(config, no_job, splits, seed=1).crf
        assert [bool(scores.any()) for scores in chain.parameters()] == [preset == "paper"] * 3
        assert config.within_bioes is (preset != "paper")
        for constrained in (True, False):
            explicit = FinetuneConfig.parse({**given, "preset": preset, "constrained": constrained})
            assert explicit.within_bioes is constrained


def test_temperature_is_saved_and_the_card_says_if_none_was_fitted(tagger: Run) -> None:
    run, result = tagger, tagger.result()
    for split in ("dev", "test"):
        for seed, sure, macro in zip((1, 2), result[split]["calibration"], result[split]["macro_f1"], strict=True):
            table = Evaluation.load(run.artifacts / f"evaluation-{split}-{seed}.npz")
            assert sure["entities"] == table.predicted.sum()
            assert sure["right"] == pytest.approx(table.precision() / 100)
            rows = evaluations.read_abstaining(run, evaluations.file_suffix(split, seed))
            assert (rows[0].least, rows[0].entities) == (0.0, sure["entities"])
            assert rows[0].f1 == pytest.approx(table.f1(), rel=1e-4)
            assert [row.entities for row in rows] == sorted((row.entities for row in rows), reverse=True)
            assert macro == pytest.approx(np.mean([*table.by_type().values()]))
    dev, kept = result["dev"], int(np.argmax(result["dev"]["micro_f1"]))
    temperature = dev["calibration"][kept]["temperature"]
    assert load_tagger(run.artifacts / "model").crf.temperature == temperature
    card = (run.artifacts / "model" / "README.md").read_text()
    assert temperature == 1.0  # hardly any entity is wrong
    assert "No temperature was fitted, because fewer than 20 entities were right on dev" in card
    assert "that was fitted on dev" not in card
    assert f"{result['test']['calibration'][0]['after']:.3f}" in card
    low, high = result["test"]["intervals"]["PER"]
    assert 0 <= low <= result["test"]["by_type"]["PER"] <= high <= 100


def test_minimum_confidence_filters_predictions_as_reported(tagger: Run, command: Command, tmp_path: Path) -> None:
    words: list[object] = ["--model", tagger.id, "--json"]
    test = tagger.manifest.config["test"][0]
    code, out, err = command("evaluate", *words, "--test", test)
    assert code == 0, err
    curve = {row["least"]: row for row in json.loads(out)["abstaining"]}
    whole = curve[0.0]["entities"]
    least = next(value for value, row in curve.items() if 0 < row["entities"] < whole)
    for value in (0.0, least):
        flag: list[object] = ["--min-confidence", value] if value else []
        code, out, err = command("predict", *words, test, "--output", tmp_path / "p.jsonl", *flag)
        assert (code, json.loads(out)["entities"]) == (0, curve[value]["entities"]), err
        rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()]
        assert all(entity["confidence"] >= value - 1e-4 for row in rows for entity in row["entities"])
    assert len(runs.listed("tag")) == 1  # both predictions share one `tag` run
    code, out, _ = command("evaluate", "--model", tagger.id, "--test", test)
    assert code == 0
    for part in ("constrained", "cited_scorer", "argmax", "viterbi", "macro", "calibration error", "PER", "0.95"):
        assert part in out
    assert re.search(r"calibration error [\d.]+; no temperature was fitted$", out, re.MULTILINE)


def in_documents(n: int, seed: int) -> list[Sentence]:
    """Return sentences in documents of three."""
    return [replace(one, doc=f"d{i // 3}") for i, one in enumerate(labelled(n, seed))]


def test_tagger_with_context_uses_neighbouring_sentences(seal: Seal, command: Command, tmp_path: Path) -> None:
    train, dev, held = (
        seal(in_documents(n, seed), f"d{seed}", labelled=True).fingerprint for n, seed in ((24, 1), (12, 2), (12, 3))
    )
    run = tuned({"train": train, "dev": dev, "test": (held,), "seeds": (1,), "context": 8})
    assert not any(note.startswith("context") for note in runs.state(run.id).notes)
    assert load_tagger(run.artifacts / "model").context_pieces == 8
    card = (run.artifacts / "model" / "README.md").read_text()
    assert "8 pieces of the neighbouring sentences" in card
    assert "A pipeline reads each sentence alone" in card
    test = run.result()["test"]
    out = command("evaluate", "--model", run.id, "--test", held, "--json")[1]
    assert json.loads(out)["test"]["micro_f1"] == [pytest.approx(test["micro_f1"][0], abs=0.5)]
    code, out, err = command("predict", "--model", run.id, held, "--output", tmp_path / "p.jsonl", "--json")
    assert (code, json.loads(out)["entities"]) == (0, test["calibration"][0]["entities"]), err


def test_chunk_size_does_not_change_predictions_with_context(
    seal: Seal, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sentences in a chunk see neighbours outside the chunk."""
    torch.manual_seed(3)
    new_tagger("tiny", ["LOC", "PER"], precision="fp32", context_pieces=8).write(tmp_path / "tagger")
    corpus = seal(in_documents(30, 4), "whole").fingerprint
    found = []
    for size in (8192, 4):
        monkeypatch.setattr(predict, "CHUNK", size)
        run = executed("tag", corpus=corpus, model=str(tmp_path / "tagger"))
        found.append(read_spans(run).records.copy())
        removals.remove_run(run.id)
    assert len(found[0])
    for name in ("row", "start", "end", "type"):
        assert found[0][name].tolist() == found[1][name].tolist()
    assert np.allclose(found[0]["confidence"], found[1]["confidence"], atol=1e-4)


@pytest.mark.parametrize(("weights", "power"), [("none", 0.0), ("root", 0.5), ("inverse", 1.0)])
def test_class_weights_follow_the_rarity_of_types(weights: Literal["none", "root", "inverse"], power: float) -> None:
    rows = [sentence("P", [(0, 1, "PER")])] * 8 + [sentence("L", [(0, 1, "LOC")])] * 2 + [sentence("x", [])] * 2
    rows.append(sentence("P L", [(0, 1, "PER"), (1, 2, "LOC")]))
    config = TaggerSettings(class_weights=weights)
    counts = sentence_weights(config, rows)
    assert np.mean(counts) == pytest.approx(1)
    person, place, nothing, both = counts[0], counts[8], counts[10], counts[12]
    assert place / person == pytest.approx((9 / 3) ** power)
    assert both == pytest.approx((person + place) / 2)
    assert nothing / person == pytest.approx((9 / 6) ** power)


def test_tagger_decodes_within_bioes_by_default(tmp_path: Path, tagger: Run, command: Command) -> None:
    torch.manual_seed(5)
    poor = new_tagger("tiny", ["LOC", "PER"], precision="fp32")  # half of its tag sequences violate BIOES
    poor.write(tmp_path / "tagger")
    test = tagger.manifest.config["test"][0]
    tags = poor.tag(labelled(12, 3))
    assert all(one.best == one.viterbi for one in tags)
    n = {name: sum(len(prediction_of(getattr(one, name)).entities) for one in tags) for name in Tags._fields}
    assert n["constrained"] > n["viterbi"]
    words = ["--model", tmp_path / "tagger", "--json"]
    for flag, decoding in ((), "constrained"), (("--no-constrained",), "viterbi"), (("--constrained",), "constrained"):
        code, out, err = command("predict", *words, test, "--output", tmp_path / "p.jsonl", *flag)
        assert (code, json.loads(out)["entities"]) == (0, n[decoding]), err
        scores = json.loads(command("evaluate", *words, "--test", test, *flag)[1])["test"]
        assert scores["micro_f1"] == scores["decodings"][decoding]
    assert len({run.id for run in runs.listed("tag")}) == 2
    shown = [commands.command("predict", run.manifest.config) for run in runs.listed("predict")]
    assert "--no-constrained" in " ".join(shown)

    trained = {**tagger.manifest.config, "seeds": (1,), "epochs": 1, "constrained": False}
    for run, decoding in (tagger, "constrained"), (tuned(trained), "viterbi"):
        for split in ("dev", "test"):
            result = run.result()[split]
            assert set(result["decodings"]) == {"viterbi", "argmax", "cited_scorer", "constrained"}
            assert result["micro_f1"] == result["decodings"][decoding]
        card = " ".join((run.artifacts / "model" / "README.md").read_text().split())
        assert f"The main score is {decoding}" in card
        fitted_elsewhere = "decoding over all tag sequences" in card and "use `predict --no-constrained`" in card
        assert fitted_elsewhere == (decoding == "viterbi")
        (line,) = [text for text in training.loading(run.id).values() if text.startswith("python -m core predict")]
        assert ("--no-constrained" in line) == (decoding == "viterbi")


@pytest.mark.full
def test_torchrun_processes_train_a_seed_each_to_the_same_bytes(tagger: Run, home: Path, tmp_path: Path) -> None:
    config, other = tagger.manifest.config, project_in(tmp_path / "other")
    shutil.copytree(home / "corpora", other / "corpora")
    ended = under_torchrun("core", tmp_path / "other", config, "--test", config["test"][0], "--json")
    assert ended.returncode == 0, ended.stderr
    [run] = RunStore(other).list("finetune")
    assert json.loads(ended.stdout)["run"] == run.id
    assert not list(run.checkpoints.iterdir())
    one, many = ({k: v for k, v in r.result().items() if k not in ("seconds", "model")} for r in (tagger, run))
    assert many == one
    for file in ("model/model.safetensors", *(f"evaluation-test-{seed}.npz" for seed in (1, 2))):
        assert (run.artifacts / file).read_bytes() == (tagger.artifacts / file).read_bytes(), file
    stages = [event.data["name"] for event in run.events()[0] if event.kind == "stage"]
    assert [name for name in stages if name.startswith("training")] == ["training, seed 1"]


def under_torchrun(module: str, home: Path, config: Mapping[str, Any], *more: str) -> subprocess.CompletedProcess[str]:
    """Fine-tune seeds 1 and 2 in two processes."""
    words = ["-m", module, "--home", home, "finetune", "--train", config["train"], "--dev", config["dev"]]
    words += [word for name, value in FAST.items() for word in (f"--{name.replace('_', '-')}", value)]
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command = [*launcher, *map(str, words), "--seeds", "1,2", *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)


@pytest.mark.full
def test_run_fails_with_the_error_of_a_torchrun_process(corpora: Corpora, home: Path) -> None:
    assert under_torchrun("tests.tagging.failing_rank", home, corpora).returncode != 0
    [run] = RunStore(home).list("finetune")
    message = f"run {run.id}: another process of torchrun has failed: tiny: has no such layer; name another."
    assert (run.state().state, run.state().error) == ("failed", message)
    assert runs.go_on(run.id)["dev"]
    assert (run.state().state, run.rank_error_file.exists()) == ("succeeded", False)


def test_torchrun_processes_share_the_seeds(tagger: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Process 2 of 3 gets no seed; of equal taggers, the first seed in the list is kept."""
    run, best = tagger, max(tagger.result()["dev"]["micro_f1"])
    for name, value in {"RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    with dealt(run, (1,)) as seeds:
        assert "RANK" not in os.environ
        assert (seeds.place, seeds.of, seeds.own, seeds.left()) == (1, 3, (), [])
        [outcome] = seeds.wait(Silent())  # type: ignore[arg-type]
    assert outcome == evaluations.read_outcome(run, 1)
    assert os.environ["RANK"] == "1"
    with Seeds(run=run, numbers=(1, 2), place=0, of=2).settling():
        held = [path.relative_to(run.path) for path in run.path.rglob("*") if path.is_file() and "claims" in path.parts]
        assert [path.parts[0] for path in held] == ["claims"]
    assert "claims" in OF_THE_PROCESS  # not exported
    seeds = Seeds(run=run, numbers=(3, 1, 2, 4), place=1, of=2)
    assert seeds.own == (1, 4)
    assert list(seeds.finished()) == [1, 2]
    leads = [seeds.leads(seed, f1) for seed, f1 in ((3, best), (3, best - 0.01), (4, best), (4, best + 0.01))]
    assert leads == [True, False, False, True]
    assert _in_words(MemoryError()).startswith("memory ran out; choose smaller batches")
    assert "Ada Quill" not in _in_words(KeyError("Ada Quill"))  # an error may quote a sentence


def test_torchrun_process_ends_when_the_run_lock_is_released(
    tagger: Run, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(context: _SilentContext) -> None:
        context._checked -= 60
        context.check()

    check(_SilentContext(tagger))  # a finished run raises nothing
    half = RunStore(tagger.home).create("finetune", {}, {}, seed=1, versions={}, key="half", parent=None)
    context = _SilentContext(half)
    assert half.lock.acquire(half.id)
    check(context)
    half.lock.release()
    with pytest.raises(Cancelled, match="its first process has ended"):
        check(context)
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, out, err = command("evaluate", "--model", "nowhere", "--test", tagger.manifest.config["test"][0], "--json")
    assert (code, out) == (2, "")
    assert "torchrun, which can only be used for pretrain and finetune." in err
