"""Every kind of run by name."""

from collections.abc import Mapping

from core.assisting import assist
from core.assisting import score as skl
from core.bias import difficulty, rebuild, robustness
from core.encoders import embed, fetch, rank
from core.experiment import split_halves as halves
from core.experiment.config import ExperimentConfig
from core.experiment.run import help_along
from core.experiment.run import run as experiment
from core.experiment.study_config import StudyConfig
from core.experiment.study_run import run as study
from core.explore import map
from core.importing import add, add_vectors, audit, intake, split
from core.importing.data_checks import red_items
from core.kind import Recipe
from core.pretraining import pretrain
from core.selection import prevalence, score, select
from core.similarity import run as similarity
from core.similarity import word_vectors
from core.similarity.plan import SimilarityConfig
from core.tagging import calibrate, finetune, predict, tag

RECIPES: Mapping[str, Recipe] = {
    recipe.kind: recipe
    for recipe in (
        Recipe("add", add.AddConfig, add.run, reuse=False),
        Recipe("assist", assist.AssistConfig, assist.run),
        Recipe("audit", audit.AuditConfig, audit.run, helped=audit.help_along),
        Recipe("calibrate", calibrate.CalibrateConfig, calibrate.run),
        Recipe("difficulty", difficulty.DifficultyConfig, difficulty.run, here=True),
        Recipe("embed", embed.EmbedConfig, embed.run, helped=embed.run),
        Recipe("evaluate", predict.EvaluateConfig, predict.evaluate, here=True),
        Recipe("experiment", ExperimentConfig, experiment, helped=help_along, red_items=red_items),
        Recipe("fetch", fetch.FetchConfig, fetch.run, reuse=False),
        Recipe("finetune", finetune.FinetuneConfig, finetune.run, here=True, red_items=red_items),
        Recipe("halves", halves.HalvesConfig, halves.run),
        Recipe("intake", intake.IntakeConfig, intake.run, reuse=False),
        Recipe("map", map.MapConfig, map.run),
        Recipe("predict", predict.PredictConfig, predict.predict),
        Recipe("pretrain", pretrain.PretrainConfig, pretrain.run, here=True, red_items=red_items),
        Recipe("prevalence", prevalence.PrevalenceConfig, prevalence.run),
        Recipe("rank", rank.RankConfig, rank.run, here=True),
        Recipe("rebuild", rebuild.RebuildConfig, rebuild.run),
        Recipe("robustness", robustness.RobustnessConfig, robustness.run),
        Recipe("score", score.ScoreConfig, score.run, helped=score.run),
        Recipe("select", select.SelectConfig, select.run, red_items=red_items),
        Recipe("similarity", SimilarityConfig, similarity.run),
        Recipe("skl", skl.SklConfig, skl.run),
        Recipe("split", split.SplitConfig, split.run),
        Recipe("study", StudyConfig, study, red_items=red_items),
        Recipe("tag", tag.TagConfig, tag.run, helped=tag.run),
        Recipe("vectors", word_vectors.VectorsConfig, word_vectors.run),
        Recipe("vectors-import", add_vectors.AddVectorsConfig, add_vectors.run, reuse=False),
    )
}
