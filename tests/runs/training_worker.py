"""The worker that tests of a training's life spawn: the usual one, but for a checkpoint ten times a second."""

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
