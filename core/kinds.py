"""All kinds of run: {name: kind}."""

from collections.abc import Mapping

from core.assisting import assist, skl
from core.bias import difficulty, rebuild, robustness
from core.dictionary import dictionary
from core.encoders import embed, fetch, rank
from core.experiment import kind as experiment
from core.experiment import study
from core.explore import map
from core.importing import add, add_vectors, audit, intake, split
from core.kind import Kind
from core.labelling import draw, queue, review
from core.llm import llm
from core.pretraining import pretrain
from core.selection import cascade, prevalence, score, select, which_strategy
from core.similarity import kind as similarity
from core.similarity import wvv
from core.tagging import calibrate, finetune, predict
from core.zero_shot import zero_shot

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        add.KIND,
        assist.KIND,
        audit.KIND,
        calibrate.KIND,
        cascade.KIND,
        dictionary.KIND,
        difficulty.KIND,
        draw.KIND,
        embed.KIND,
        predict.EVALUATE,
        experiment.KIND,
        fetch.KIND,
        finetune.KIND,
        experiment.HALVES,
        intake.KIND,
        llm.KIND,
        map.KIND,
        predict.PREDICT,
        pretrain.KIND,
        prevalence.KIND,
        queue.KIND,
        rank.KIND,
        rebuild.KIND,
        review.KIND,
        robustness.KIND,
        score.KIND,
        select.KIND,
        similarity.KIND,
        skl.KIND,
        split.KIND,
        study.KIND,
        predict.TAG,
        wvv.KIND,
        add_vectors.KIND,
        which_strategy.KIND,
        zero_shot.KIND,
    )
}
