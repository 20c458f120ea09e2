"""Events of a Trainer: curves, progress, cancelling with a checkpoint, and resuming."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer import rotate_checkpoints

from core.errors import Cancelled
from core.training import events
from core.training.events import Durable, EventCallback, last_checkpoint, listen
from core.training.finetune import Finetuning
from core.training.pretrain import Pretraining
from tests.reporters import Recorder

EXAMPLES = [{"x": torch.randn(3), "labels": torch.randn(())} for _ in range(40)]


class Line(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.linear(x).squeeze(-1) - labels).pow(2).mean()}


class Listener(Recorder):
    """Remember metrics and progress; cancel at check number `stop_at`."""

    def __init__(self, stop_at: int = 0) -> None:
        super().__init__()
        self.checks, self.stop_at = 0, stop_at

    def check(self) -> None:
        self.checks += 1
        if self.checks == self.stop_at:
            raise Cancelled("stop")

    def steps(self, name: str) -> list[int | None]:
        return [step for found, _, step in self.metrics if found == name]


def train(folder: Path, report: Listener, resume: Path | None = None, **kw: Any) -> Trainer:
    torch.manual_seed(0)
    arguments = TrainingArguments(
        output_dir=str(folder),
        logging_strategy="no",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        num_train_epochs=2,
        per_device_train_batch_size=8,
        learning_rate=0.1,
    )
    trainer = Trainer(Line(), arguments, train_dataset=EXAMPLES)
    listen(trainer, EventCallback(report, **kw))
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return trainer


def weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def test_first_and_last_step_are_logged_and_nothing_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report, saved = Listener(), list[Mapping[str, Any]]()
    train(tmp_path, report, seed=3)
    assert report.steps("loss@3") == report.steps("learning_rate@3") == [1, 10]
    assert (report.progressed[0], report.progressed[-1]) == ((0, 10, "steps"), (10, 10, "steps"))
    assert "gpu_memory_gb@3" not in {name for name, *_ in report.metrics}
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(events, "LOG_SECONDS", 0.0)
    often = Listener()
    train(tmp_path, often, saved=saved.append, checkpoint_seconds=0.0)
    assert often.steps("loss") == [data["step"] for data in saved] == list(range(1, 11))


def test_log_has_real_tokens_per_second_and_dev_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 0.0, 0.0, 10.0, 10.0])
    monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda: next(now)))
    report, dev = Listener(), Listener()
    callback = EventCallback(report)
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    state, control = TrainerState(max_steps=5), TrainerControl()
    callback.on_train_begin(arguments, state, control)
    state.num_input_tokens_seen = 600
    callback.on_log(arguments, state, control, {"loss": 1.0, "learning_rate": 0.1, "grad_norm": 3.0})
    found = {name: value for name, value, _ in report.metrics}
    assert found == {"loss": 1.0, "learning_rate": 0.1, "grad_norm": 3.0, "tokens_per_second": 60.0}
    monkeypatch.undo()
    logs = {"dev_f1": 50.0, "dev_f1/PER": 40.0, "dev_runtime": 1.0, "dev_steps_per_second": 2.0, "eval_loss": 1.0}
    EventCallback(dev, seed=1).on_log(arguments, TrainerState(global_step=4), None, logs)
    assert dev.metrics == [("dev_f1@1", 50.0, 4), ("dev_f1/PER@1", 40.0, 4)]


def test_cancelled_training_saves_a_checkpoint_and_resumes_exactly(tmp_path: Path) -> None:
    saved: list[Mapping[str, Any]] = []
    report, run = Listener(stop_at=7), tmp_path / "run"
    with pytest.raises(Cancelled):
        train(run, report, saved=saved.append)
    assert saved == [{"name": "checkpoint-7", "step": 7}]
    assert report.steps("loss")[-1] == report.progressed[-1][0] == 7
    for step, state in ((8, '{"epoch": 1'), (9, None)):  # incomplete checkpoints are ignored
        (run / f"checkpoint-{step}").mkdir()
        (run / f"checkpoint-{step}" / "model.safetensors").write_bytes(b"")
        if state is not None:
            (run / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    found = last_checkpoint(run)
    assert found == run / "checkpoint-7"
    again = Listener()
    resumed = train(run, again, resume=found)
    assert again.progressed[0] == (7, 10, "steps")
    assert last_checkpoint(tmp_path) is None
    assert torch.equal(weights(resumed), weights(train(tmp_path / "calm", Listener())))


def test_processes_agree_on_stopping_every_eight_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agreement makes each process wait for its GPU. A request to stop takes effect only once all know of it."""
    agreed, step = list[int](), 0
    monkeypatch.setattr(torch.distributed, "broadcast", lambda shared, source: agreed.append(step))
    arguments = SimpleNamespace(world_size=2, process_index=1, device=torch.device("cpu"))
    report = Listener(stop_at=2)
    callback, state, control = EventCallback(report), TrainerState(max_steps=20), TrainerControl()
    callback._logged = float("inf")
    stopping = list[int]()
    for step in range(1, 21):
        state.global_step = step
        callback.on_step_end(arguments, state, control)
        stopping += [step] if control.should_training_stop else []
    assert agreed == [1, 9, 17]
    assert stopping[0] == 9


def test_newest_checkpoint_survives_a_clock_set_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older, newer = tmp_path / "checkpoint-9", tmp_path / "checkpoint-10"
    for folder in (older, newer):
        folder.mkdir()
    os.utime(older, (time.time() + 3600,) * 2)
    monkeypatch.setattr(Trainer, "_save_rng_state", lambda self, folder: None)
    trainer = object.__new__(Durable)
    trainer.args = SimpleNamespace(should_save=True)
    trainer._save_rng_state(str(newer))
    rotate_checkpoints(output_dir=str(tmp_path), save_total_limit=1, use_mtime=True)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-10"]


def test_checkpoint_is_synced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut truncates a file that was never synced."""
    synced, sync = set[int](), os.fsync

    def watched(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(Trainer, "_save_rng_state", lambda self, folder: (Path(folder) / "rng_state.pth").touch())
    weights = tmp_path / "optimizer.pt"
    weights.write_bytes(b"state")
    trainer = object.__new__(Durable)
    trainer.args = SimpleNamespace(should_save=True)
    trainer._save_rng_state(str(tmp_path))
    assert {weights.stat().st_ino, (tmp_path / "rng_state.pth").stat().st_ino} <= synced
    assert issubclass(Finetuning, Durable)
    assert issubclass(Pretraining, Durable)
