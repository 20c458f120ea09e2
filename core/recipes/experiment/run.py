"""`experiment`: was it worth it? Arms x budgets x seeds, shared stages made once, a verdict each.

Every arm differs from `none` in one respect, as `arms` says: what its encoder or its word vectors have read, whose
labels it borrows, how its L_C was rebuilt. All else is alike: the seeds, the settings, and, where the arm does not say
otherwise, the encoder and L_C. The best epoch is chosen on dev; the test set is read once an arm, by its fine-tuning.
"""

from collections.abc import Iterator, Sequence

from core.artifacts.leaderboard import write
from core.recipes.base import Job, Result
from core.recipes.experiment import leaderboard
from core.recipes.experiment.arms import Cell
from core.recipes.experiment.clock import Clock
from core.recipes.experiment.config import ExperimentConfig
from core.recipes.experiment.cost import calibration_options, cost
from core.recipes.experiment.stages import Made, Stages
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
    write(job.context, {"csv": leaderboard.as_csv(result), "md": leaderboard.as_markdown(result)})
    return result


def _made(stages: Stages, cells: Sequence[Cell], pieces: float) -> Iterator[Made]:
    """Every choice of text and labels first, so that what cannot work fails early; then arm by arm the training."""
    sources = {cell: stages.named[cell.arm.source].fingerprint for cell in cells if stages.source(cell)}
    selects = {cell: stages.select(cell) for cell in cells}
    parts = stages.labels.sizes
    labels = {cell: {part: stages.labels.made(cell, *part) for part in parts} for cell in cells}
    amount = stages.amount(selects, pieces)
    for cell, select in selects.items():
        pretrain = stages.pretrain(cell, select, amount)
        tuned = {part: stages.finetune(cell, pretrain, labels[cell][part], *part) for part in parts}
        yield Made(
            cell=cell, select=select, pretrain=pretrain, tuned=tuned, labels=labels[cell][0, 0],
            source=sources.get(cell),
        )  # fmt: skip
