"""`experiment`: is pre-training worth it, and on what? Arms x budgets x seeds, shared stages made once, a verdict each.

Every arm starts from the same encoder, is pre-trained as `arms` says, and is fine-tuned on the same L_C with the same
seeds; the best epoch is chosen on dev, and the test set is read once an arm, by its fine-tuning run.
"""

from collections.abc import Iterator, Sequence

from core.files import write_atomic
from core.recipes import leaderboard
from core.recipes.arms import Cell
from core.recipes.base import Job, Result
from core.recipes.clock import Clock
from core.recipes.cost import calibration_options, cost
from core.recipes.experiment_config import ExperimentConfig
from core.recipes.stages import Made, Stages
from core.runs.store import RunStore


def run(config: ExperimentConfig, job: Job) -> Result:
    """Artifacts: `leaderboard.csv`, `leaderboard.md`."""
    cells = config.cells
    if added := [name for name in dict.fromkeys(cell.arm.name for cell in cells) if name not in config.arms]:
        job.context.note(f"Added {' and '.join(added)}: without them nobody can tell what an arm is worth.")
    measured = job.child("calibrate", **calibration_options(config)).result()
    steps = cost(config, measured, job.home, job.recipes).steps
    stages = Stages(config, job, Clock(steps, job.context).next)
    made = list(_made(stages, cells, measured["pieces"]["task"]))
    job.context.stage("comparing the arms")
    result = leaderboard.result(made, seed=config.draw_seed, store=RunStore(job.home), report=job.context)
    for suffix, text in (("csv", leaderboard.as_csv(result)), ("md", leaderboard.as_markdown(result))):
        path = job.context.run.artifacts / f"leaderboard.{suffix}"
        write_atomic(path, text.encode())
        job.context.artifact(path.name, path)
    return result


def _made(stages: Stages, cells: Sequence[Cell], pieces: float) -> Iterator[Made]:
    """Every selection first, so that what cannot work fails early; then arm by arm its encoder and its taggers."""
    selects = {cell: stages.select(cell) for cell in cells}
    amount = stages.amount(selects, pieces)
    for cell, select in selects.items():
        pretrain = stages.pretrain(cell, select, amount)
        tuned = {size: stages.finetune(cell, pretrain, *size) for size in stages.sizes}
        yield Made(cell=cell, select=select, pretrain=pretrain, tuned=tuned)
