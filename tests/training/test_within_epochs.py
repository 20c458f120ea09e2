"""Dev F1 within an epoch: the same training, exact resuming, and its share of the time."""

from pathlib import Path

import pytest
from safetensors.torch import load_file
from transformers import TrainerState

from core.errors import Cancelled
from core.models.tagger import Tagger
from core.reporter import Checkpoint, Reporter, Silent
from core.training import finetune as training
from core.training.events import Saved
from core.training.finetune import Epochs, Watch, finetune, score
from tests.training.test_finetune import DEV, SETTINGS, TRAIN, TYPES, Killed, Listener, largest_difference, make

WITHIN = "dev_f1_within@1"


def train(
    folder: Path, report: Reporter, dev_every: int = 2, saved: Saved | None = None, watch: Watch | None = None
) -> tuple[Epochs, Tagger]:
    """Train for four epochs of three steps, with a checkpoint after every step."""
    tagger = make()
    epochs = finetune(
        tagger,
        TRAIN,
        DEV,
        SETTINGS,
        seed=1,
        folder=folder,
        report=report,
        types=TYPES,
        dev_every=dev_every,
        saved=saved,
        watch=watch,
        checkpoint_seconds=0.0,
    )
    return epochs, tagger


@pytest.fixture(autouse=True)
def at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate however long it takes, because steps of this small tagger are as short as an evaluation."""
    monkeypatch.setattr(training, "WITHIN", float("inf"))


@pytest.fixture
def without(tmp_path: Path) -> tuple[Epochs, Tagger]:
    """A training without evaluations within epochs."""
    return train(tmp_path / "without", Silent(), dev_every=0)


def test_evaluations_within_epochs_do_not_change_the_training(tmp_path: Path, without: tuple[Epochs, Tagger]) -> None:
    listener = Listener()
    watched: list[float] = []
    epochs, tagger = train(tmp_path / "within", listener, watch=lambda epoch, *_: watched.append(epoch))
    assert watched == [2 / 3, 1, 4 / 3, 2, 8 / 3, 3, 10 / 3, 4]
    assert set(listener.curve(WITHIN)) == {2, 4, 8, 10}  # the epochs end at 3, 6, 9 and 12
    assert set(listener.curve("dev_f1_within/PER@1")) == {2, 4, 8, 10}
    assert set(listener.curve("dev_f1@1")) == {3, 6, 9, 12}
    assert (epochs.dev_f1, epochs.best) == (without[0].dev_f1, without[0].best)
    assert largest_difference(tagger, without[1]) == 0.0
    state = TrainerState.load_from_json(str(tmp_path / "within" / "checkpoint-12" / "trainer_state.json"))
    assert not any("within" in name for log in state.log_history for name in log)


def test_score_within_an_epoch_is_that_of_the_weights_at_this_step(tmp_path: Path) -> None:
    listener, scores = Listener(), dict[int | None, float]()

    def saved(checkpoint: Checkpoint) -> None:
        stored = make(seed=99)
        stored.load_state_dict(load_file(tmp_path / checkpoint["name"] / "model.safetensors"))
        scores[checkpoint["step"]] = score(stored, DEV, TYPES, Silent()).f1()

    train(tmp_path, listener, saved=saved)
    assert listener.curve(WITHIN) == {step: scores[step] for step in (2, 4, 8, 10)}
    assert len(set(scores.values())) > 4


@pytest.mark.parametrize("after", [1, 2, 4])
@pytest.mark.parametrize("error", [Killed(), Cancelled("stop")], ids=["killed", "cancelled"])
def test_training_stopped_in_such_an_evaluation_resumes_exactly(
    tmp_path: Path, without: tuple[Epochs, Tagger], after: int, error: BaseException
) -> None:
    """Steps 2 and 4 end with an evaluation within the epoch, in which the run is stopped; step 1 does not."""
    with pytest.raises(type(error)):
        train(tmp_path / "run", Listener(after, error))
    listener = Listener()
    epochs, tagger = train(tmp_path / "run", listener)
    assert (epochs.dev_f1, epochs.best) == (without[0].dev_f1, without[0].best)
    assert largest_difference(tagger, without[1]) == 0.0
    assert {8, 10} <= set(listener.curve(WITHIN))


def test_evaluations_within_epochs_take_a_tenth_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first evaluation, none follows until the training has taken ten times as long."""
    monkeypatch.undo()
    monkeypatch.setattr(training, "WITHIN", 0.0)
    listener = Listener()
    train(tmp_path, listener)
    assert set(listener.curve(WITHIN)) == {2}
