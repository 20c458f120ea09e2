"""The usual worker with ten checkpoints per second, for tests that kill trainings."""

from core.training.events import EventCallback
from core.training.finetune import finetune
from core.work import main as work


def main() -> int:
    for trains in (EventCallback.__init__, finetune):
        assert trains.__kwdefaults__
        trains.__kwdefaults__["checkpoint_seconds"] = 0.1
    return work()


if __name__ == "__main__":
    raise SystemExit(main())
