"""`finetune`, `evaluate` and `predict` as runs: what they leave, what is read again, what is refused."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pytest
import torch

from core.cli.main import run_main
from core.errors import Cancelled, ConfigError, CorpusError
from core.facade import removals, runs, training
from core.models.tagger import Tags, prediction_of
from core.models.taggers import EncoderTagger, new_tagger
from core.recipes.finetune import FinetuneConfig
from core.results import Evaluation
from core.runs import Run
from core.training.finetune import Epochs
from tests.conftest import Seal, sentence
from tests.training.test_finetune import labelled

FAST = {
    "init": "tiny",
    "epochs": 2,
    "learning_rate": 3e-3,
    "head_learning_rate": 3e-2,
    "batch_size": 8,
    "precision": "fp32",
}


Typed = Callable[..., tuple[int, str, str]]  # words -> exit code, stdout, stderr


class Corpora(TypedDict):
    train: str
    dev: str
    test: tuple[str]


@pytest.fixture
def corpora(seal: Seal) -> Corpora:
    train, dev, test = (seal(labelled(n, seed), f"l{seed}", labelled=True) for n, seed in ((24, 1), (12, 2), (12, 3)))
    return {"train": train.fingerprint, "dev": dev.fingerprint, "test": (test.fingerprint,)}


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """`typed("finetune", ...)` -> (exit code, stdout, stderr), in this process."""

    def call(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["core", *map(str, words)])
        return (run_main(), *capsys.readouterr())

    return call


def notes(run: Run) -> list[str]:
    return [event.data["text"] for event in run.events()[0] if event.kind == "note"]


def test_two_seeds_leave_a_tagger_tables_and_a_card(corpora: Corpora) -> None:
    run = runs.execute("finetune", {**FAST, **corpora, "seeds": (1, 2)})
    result = run.result()
    assert len(result["dev"]["micro_f1"]) == len(result["test"]["micro_f1"]) == len(result["seconds"]) == 2
    assert result["tests"] == [result["test"]]
    assert result["test"]["mean"] == pytest.approx(np.mean(result["test"]["micro_f1"]))
    assert set(result["test"]["by_type"]) == {"LOC", "PER"}
    for seed, dev_f1, test_f1 in zip((1, 2), result["dev"]["micro_f1"], result["test"]["micro_f1"], strict=True):
        assert Evaluation.load(run.artifacts / f"evaluation-dev-{seed}.npz").f1() == dev_f1  # in full
        table = Evaluation.load(run.artifacts / f"evaluation-test-{seed}.npz")
        assert table.f1() == test_f1
        lines = (run.artifacts / f"predictions-test-{seed}.jsonl").read_text().splitlines()
        assert [len(json.loads(line)["entities"]) for line in lines] == table.predicted.sum(1).tolist()
    card = (run.artifacts / "model" / "README.md").read_text()
    for part in (corpora["train"], corpora["test"][0], "argmax", "viterbi", f"{result['test']['micro_f1'][0]:.2f}"):
        assert part in card
    assert not list(run.checkpoints.iterdir())

    kept = int(np.argmax(result["dev"]["micro_f1"]))
    model = {"model": run.id, "test": corpora["test"][0]}
    again = runs.execute("evaluate", model).result()
    assert again["test"]["micro_f1"] == [pytest.approx(result["test"]["micro_f1"][kept], abs=0.5)]
    assert runs.execute("finetune", {**FAST, **corpora, "seeds": (1, 2)}).id == run.id


def test_a_seed_that_is_done_is_not_done_again(corpora: Corpora, monkeypatch: pytest.MonkeyPatch) -> None:
    from core.training import finetune as training

    options = {**FAST, **corpora, "seeds": (1, 2)}
    whole = runs.execute("finetune", options).result()
    removals.remove_run(runs.listed("finetune")[0].id)

    real, seeds = training.finetune, list[int]()

    def killed_at_the_second(*args: Any, seed: int, **kw: Any) -> Epochs:
        seeds.append(seed)
        if seeds == [1, 2]:
            raise KeyboardInterrupt
        return real(*args, seed=seed, **kw)

    monkeypatch.setattr(training, "finetune", killed_at_the_second)
    with pytest.raises((KeyboardInterrupt, Cancelled)):
        runs.execute("finetune", options)
    resumed = runs.execute("finetune", options).result()
    assert seeds == [1, 2, 2]
    assert resumed["test"] == whole["test"]
    assert resumed["best_epoch"] == whole["best_epoch"]


def test_stop_keeps_the_best_so_far(corpora: Corpora) -> None:
    def stop(event: runs.Event) -> None:
        if event.kind == "metric" and event.data["name"] == "dev_f1@1":
            runs.cancel(runs.listed("finetune")[0].id)

    with pytest.raises(Cancelled):
        runs.execute("finetune", {**FAST, **corpora, "epochs": 500, "seeds": (1,)}, stop)
    (run,) = runs.listed("finetune")
    assert run.state().state == "cancelled"
    assert any("is kept in" in note for note in notes(run))
    from core.models.taggers import load_tagger

    assert load_tagger(run.artifacts / "model").types == ("LOC", "PER")


def test_a_type_that_train_lacks_counts_as_missed_and_is_named(corpora: Corpora, seal: Seal) -> None:
    odd = seal([sentence("Px Zy", [(0, 1, "PER"), (1, 2, "ODD")])] * 3, "odd", labelled=True).fingerprint
    run = runs.execute("finetune", {**FAST, **corpora, "test": (odd, corpora["test"][0]), "seeds": (1,)})
    assert any(note.startswith("ODD:") for note in notes(run))
    table = Evaluation.load(run.artifacts / "evaluation-test-1.npz")
    assert table.types == ("LOC", "ODD", "PER")
    assert table.gold.sum(0).tolist() == [0, 3, 3]
    assert run.result()["tests"][0]["by_type"]["ODD"] == 0
    assert (run.artifacts / "evaluation-test1-1.npz").exists()


def test_wrong_input_is_one_sentence(corpora: Corpora, seal: Seal) -> None:
    plain = seal(["a b", "c d"], "plain").fingerprint
    empty = seal([sentence("a b", [])], "empty", labelled=True).fingerprint
    with pytest.raises(CorpusError, match="not labelled"):
        runs.execute("finetune", {**FAST, **corpora, "dev": plain})
    with pytest.raises(CorpusError, match="nothing to learn"):
        runs.execute("finetune", {**FAST, **corpora, "train": empty})
    for seeds in ((), (1, 1), (-1,)):
        with pytest.raises(ConfigError, match="seeds"):
            runs.execute("finetune", {**FAST, **corpora, "seeds": seeds})
    with pytest.raises(ConfigError, match="no finished model"):
        runs.execute("finetune", {**FAST, **corpora, "init": runs.listed("finetune")[0].id})


def test_from_the_command_line(typed: Typed, tmp_path: Path, corpora: Corpora) -> None:
    output = tmp_path / "tagger"
    words = ["--init", "tiny", "--train", corpora["train"], "--dev", corpora["dev"], "--test", corpora["test"][0]]
    code, out, err = typed("finetune", *words, "--seed", 3, "--epochs", 1, "--output", output, "--json")
    assert code == 0, err
    assert len(json.loads(out)["test"]["micro_f1"]) == 1
    raw = tmp_path / "raw.txt"
    raw.write_text("Px meets La\n\nax bx\n", encoding="utf-8")
    for name in ("p.jsonl", "p.conll"):
        code, out, err = typed("predict", "--model", output, raw, "--output", tmp_path / name, "--json")
        assert code == 0, err
        assert json.loads(out)["sentences"] == 2
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["tokens"] for row in rows] == [["Px", "meets", "La"], ["ax", "bx"]]
    tokens = [line.split("\t")[0] for line in (tmp_path / "p.conll").read_text(encoding="utf-8").splitlines()]
    assert tokens == ["Px", "meets", "La", "", "ax", "bx", ""]
    code, _, err = typed("predict", "--model", output, raw, "--output", tmp_path / "p.csv", "--json")
    assert (code, "neither" in err) == (2, True)
    code, out, _ = typed("evaluate", "--model", output, "--test", corpora["test"][0], "--json")
    assert code == 0
    assert set(json.loads(out)["test"]["decodings"]) == {"viterbi", "argmax", "cited_scorer", "constrained"}


@pytest.mark.parametrize(
    ("options", "within_bioes"),
    [
        ({}, True),
        ({"preset": "custom"}, True),
        ({"preset": "paper"}, False),
        ({"constrained": False}, False),
        ({"preset": "paper", "constrained": True}, True),
    ],
)
def test_all_but_the_preset_paper_trains_and_decodes_within_bioes(
    options: dict[str, object], within_bioes: bool
) -> None:
    given = FinetuneConfig.parse({"train": "a", "dev": "b", **options})
    assert given.within_bioes is within_bioes


def ill_formed(path: Path) -> EncoderTagger:
    """A tagger that knows little: half of its tag sequences are none that BIOES allows."""
    torch.manual_seed(5)
    tagger = new_tagger("tiny", ["LOC", "PER"], precision="fp32")
    tagger.write(path)
    return tagger


def test_a_tagger_decodes_within_bioes_unless_it_is_told_otherwise(
    tmp_path: Path, corpora: Corpora, typed: Typed
) -> None:
    tagger = ill_formed(tmp_path / "tagger")
    gold = labelled(12, 3)
    tags = tagger.tag(gold)
    assert all(one.best == one.viterbi for one in tags)  # as it was made; and yet:
    n = {name: sum(len(prediction_of(getattr(one, name)).entities) for one in tags) for name in Tags._fields}
    assert n["constrained"] > n["viterbi"]
    words = ["--model", tmp_path / "tagger", "--json"]
    for flag, decoding in ((), "constrained"), (("--no-constrained",), "viterbi"), (("--constrained",), "constrained"):
        code, out, err = typed("predict", *words, corpora["test"][0], "--output", tmp_path / "p.jsonl", *flag)
        assert (code, json.loads(out)["entities"]) == (0, n[decoding]), err
        code, out, err = typed("evaluate", *words, "--test", corpora["test"][0], *flag)
        test = json.loads(out)["test"]
        assert test["micro_f1"] == test["decodings"][decoding]
    assert len({run.id for run in runs.listed("tag")}) == 2
    assert "--no-constrained" in " ".join(
        runs.command("predict", run.manifest.config) for run in runs.listed("predict")
    )


def test_what_a_seed_reports_is_as_it_was_trained(corpora: Corpora) -> None:
    for options, decoding in (({}, "constrained"), ({"constrained": False}, "viterbi")):
        run = runs.execute("finetune", {**FAST, **corpora, **options, "seeds": (1,), "epochs": 1})
        for split in ("dev", "test"):
            result = run.result()[split]
            assert set(result["decodings"]) == {"viterbi", "argmax", "cited_scorer", "constrained"}
            assert result["micro_f1"] == result["decodings"][decoding]
        assert f"The headline is {decoding}" in (run.artifacts / "model" / "README.md").read_text()
        (command,) = [text for text in training.loading(run.id).values() if text.startswith("python -m core predict")]
        assert command.endswith("--no-constrained") == (decoding == "viterbi")


def test_torchrun_is_told_that_only_pretraining_shares_its_work(
    typed: Typed, corpora: Corpora, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    code, out, err = typed("finetune", "--train", corpora["train"], "--dev", corpora["dev"], "--init", "tiny", "--json")
    assert (code, out) == (2, "")
    assert "without torchrun" in err
    assert not runs.listed("finetune")
