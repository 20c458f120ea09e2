"""Runs of `pretrain`: held-out sentences, balance, steps, the saved folder, two processes, and the command."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer

from core.cli.main import run_main
from core.corpora.corpus import Corpus
from core.errors import ConfigError, CorpusError
from core.importing import view as corpora
from core.models.mlm import MaskedLM
from core.pretraining.pretrain import Draw, PretrainConfig
from core.projects import runs
from core.runs.run import Run
from core.training.mlm_settings import MlmSettings
from tests.conftest import Seal
from tests.fork_server import ForkServer
from tests.homes import executed, project_in

ROOT = Path(__file__).resolve().parents[2]
RNG = np.random.default_rng(0)
TEXTS = [" ".join("".join(RNG.choice(list("abcdefg"), 3)) for _ in range(RNG.integers(2, 9))) for _ in range(120)]
LEAKS = [text for text in TEXTS if len(text.split()) > 4][:5]  # long enough to have no near duplicate


def run(*corpora: Corpus, **options: Any) -> Run:
    given = {"corpora": tuple(c.fingerprint for c in corpora), "init": "tiny", "batch_size": 16, "epochs": 2}
    return executed("pretrain", given, **options)


def notes(made: Run) -> str:
    return " ".join(runs.state(made.id).notes)


def test_pretrained_folder_loads_in_transformers_and_has_a_card(seal: Seal) -> None:
    made = run(seal(TEXTS[:40], "T"), seal(TEXTS[40:], "S"))
    result = made.result()
    assert result["sentences"] == 120 - 2 - 4  # 5% of each are held out
    assert result["epochs"] == len(result["dev_loss"]) == len(result["dev_loss_general"]) == 2
    assert result["head_fitted"]
    assert result["tokens_per_second"] > 0
    assert set(result["pseudo_perplexity"]) == {"before", "after"}
    text = notes(made)
    assert "no vocabulary head" in text
    assert "38 of T and 76 of the others" in text
    for loaded, missing in (AutoModelForMaskedLM, set()), (AutoModel, {"pooler.dense.weight", "pooler.dense.bias"}):
        _, info = loaded.from_pretrained(result["model"], output_loading_info=True)
        assert set(info["missing_keys"]) <= missing
    assert AutoTokenizer.from_pretrained(result["model"])
    card = (Path(result["model"]) / "README.md").read_text()
    for part in (*made.manifest.inputs.values(), "a head was fitted first", "- seed: 1", "pseudo-perplexity"):
        assert part in card
    assert "holdout" not in card  # options that were not given are not listed
    metrics = runs.state(made.id).metrics
    assert {"loss", "learning_rate", "grad_norm", "dev_loss_task", "dev_loss_general", "tokens_per_second"} <= set(
        metrics
    )


def test_held_out_sentences_are_not_trained_on(seal: Seal) -> None:
    made = run(seal(TEXTS, "all"), holdout=(seal(LEAKS, "test").fingerprint,), max_steps=1, seed=0)
    assert "- seed: 0" in (Path(made.result()["model"]) / "README.md").read_text()
    assert made.result()["sentences"] == 115 - 6  # 5% of the rest are held out for the dev loss
    assert "5 sentences of all are in held-out data" in notes(made)
    light: dict[str, Any] = {"lora": 4, "checkpointing": True}
    held = seal(TEXTS[30:50], "H").fingerprint
    made = run(seal(TEXTS[:40], "T"), heldout_task=held, max_steps=1, max_length=16, **light)
    assert "forgetting is not measured" in notes(made)
    assert made.result()["sentences"] == 30  # split into more rows
    rows = sum(-(-3 * len(text.split()) // 14) for text in TEXTS[:30])
    assert f"Each epoch reads {rows} rows" in notes(made)
    assert made.result()["epochs"] == round(1 / -(-rows // 16), 2)
    card = (Path(made.result()["model"]) / "README.md").read_text()
    assert "- lora: 4\n- checkpointing: True" in card
    assert "lora: saves memory for encoders of 100 million parameters or more" in notes(made)
    models = (MaskedLM.load(name, device="cpu").model for name in ("tiny", made.result()["model"]))
    assert torch.equal(*(model.get_input_embeddings().weight for model in models))  # only LoRA matrices are trained
    with pytest.raises(CorpusError, match="1 sentence, expected at least 2"):
        run(seal(TEXTS[:1], "lonely"))
    with pytest.raises(ConfigError, match="seed"):  # numpy refuses it, and without this check only after minutes
        run(seal(TEXTS, "all"), seed=2**32)


def test_sentences_of_packed_rows_are_counted(seal: Seal) -> None:
    task, selected = seal(TEXTS[:40], "T"), seal(TEXTS[40:], "S")
    made = run(task, selected, packed=True, max_steps=1)
    assert "rows: 2 of T and 3 of the others" in notes(made)
    assert made.result()["sentences"] == 120 - 2 - 4
    assert "114 sentences per epoch" in (Path(made.result()["model"]) / "README.md").read_text()
    made = run(task, selected, packed=True, max_steps=1, balance="upsample_TC")
    assert made.result()["sentences"] == round(38 * 3 / 2) + 76


@pytest.mark.parametrize(
    ("balance", "task", "others"), [("none", 5, 17), ("upsample_TC", 17, 17), ("downsample_SC", 5, 5)]
)
def test_balance_repeats_or_drops_rows_per_corpus(balance: Any, task: int, others: int) -> None:
    draw = Draw(5, 17, balance, seed=1)
    epochs = [draw(epoch) for epoch in range(3)]
    for rows in epochs:
        assert ((rows < 5).sum(), (rows >= 5).sum()) == (task, others)
        counts = np.bincount(rows, minlength=22)
        assert counts[:5].max() - counts[:5].min() <= 1
        assert counts[5:].max() == 1
    assert (balance == "none") == np.array_equal(epochs[0], epochs[1])
    assert (draw(1) == epochs[1]).all()


def test_steps_follow_epochs_up_to_a_limit() -> None:
    """One epoch has 2,000 batches of 64; `quick` stops earlier unless the number of pieces is given."""
    steps = {
        MlmSettings.quick(): 1500,
        MlmSettings(max_pieces=10**9): 8000,
        MlmSettings(max_steps=9000): 9000,
        MlmSettings.paper(): 10_000,
        MlmSettings(preset="custom", epochs=2, batch_size=32): 8000,
    }
    for settings, n in steps.items():
        assert settings.steps(128_000) == n
    assert MlmSettings.quick().steps(65) == 8
    for preset, epochs, rate in ("paper", 5, 5e-5), ("quick", 4, 1e-4):
        found = PretrainConfig.parse({"corpora": ("x",), "init": "tiny", "preset": preset}).settled()
        assert isinstance(found, PretrainConfig)
        assert (found.epochs, found.learning_rate) == (epochs, rate)
    given = PretrainConfig(corpora=("x",), init="tiny", epochs=2).settled()
    assert given.epochs == 2
    assert MlmSettings(preset="custom").filled() == MlmSettings.paper().model_copy(update={"preset": "custom"})


@pytest.mark.full
def test_two_processes_train_like_one(tmp_path: Path, fork_server: ForkServer) -> None:
    """Without dropout, the command gives the same curve under torchrun."""
    lm = MaskedLM.load("tiny", device="cpu")
    lm.model.config.hidden_dropout_prob = lm.model.config.attention_probs_dropout_prob = 0.0
    lm.save(tmp_path / "init", "")
    (tmp_path / "T.txt").write_text("\n".join(TEXTS))
    (tmp_path / "L.conll").write_text("\n".join(f"{word} O" for word in LEAKS[0].split()) + "\n")
    found = []
    for i, launcher in enumerate(([], ["-m", "torch.distributed.run", "--nproc-per-node", "2"])):
        given = {"corpus": "T.txt", "holdout": "L.conll", "init": "init"}
        words = [sys.executable, *launcher, "-m", "core", "--home", str(tmp_path / f"home{i}"), "pretrain", "--json"]
        words += [word for name, file in given.items() for word in (f"--{name}", str(tmp_path / file))]
        words += ["--batch-size", "16", "--epochs", "1", "--learning-rate", "0.001", "--precision", "fp32"]
        with (tmp_path / "out").open("wb") as out, (tmp_path / "said").open("wb") as said:
            begin = subprocess.Popen if launcher else fork_server.begin
            assert begin(words, cwd=ROOT, stdout=out, stderr=said).wait(300) == 0, (tmp_path / "said").read_text()
        found.append(json.loads((tmp_path / "out").read_text()))
        assert len(list((project_in(tmp_path / f"home{i}") / "runs").glob("*-pretrain-*"))) == 1
    one, two = found
    assert two["steps"] == one["steps"] == 8
    assert two["dev_loss"] == pytest.approx(one["dev_loss"], rel=1e-6)
    assert two["pseudo_perplexity"]["after"] == pytest.approx(one["pseudo_perplexity"]["after"], rel=1e-3)
    assert one["sentences"] == two["sentences"] == 120 - 1 - 6
    assert not one["head_fitted"]


@pytest.mark.parametrize("typed", ["", "none", "other"])
def test_pretrain_command_holds_out_dev_and_test_sets_by_default(
    seal: Seal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    text, judges, other = seal(TEXTS[:40], "T"), seal(TEXTS[40:60], "judges"), seal(TEXTS[60:], "other")
    for role in ("dev", "test"):
        corpora.set_role(role, judges.fingerprint)
    started = list[dict[str, object]]()

    def execute(kind: str, options: dict[str, object], follow: object, **others: object) -> Run:
        started.append({"kind": kind, **options})
        raise CorpusError("enough")

    monkeypatch.setattr(runs, "execute", execute)
    words = ["core", "pretrain", "--corpus", "T", "--init", "tiny", *(["--holdout", typed] if typed else [])]
    monkeypatch.setattr(sys, "argv", words)
    assert run_main() == 2
    read = {"": (judges.fingerprint,) * 2, "none": None, "other": (other.fingerprint,)}[typed]
    assert [(options["corpora"], options.get("holdout")) for options in started] == [((text.fingerprint,), read)]
    message = (
        "Sentences of judges and judges (dev and test sets) are not used for training; --holdout none uses them too."
    )
    assert (message in capsys.readouterr().err) == (not typed)
