"""Every kind of run by name."""

from collections.abc import Mapping

from core.recipes import add, audit, embed, map, score, select, skl
from core.recipes.base import Recipe

RECIPES: Mapping[str, Recipe] = {
    recipe.kind: recipe
    for recipe in (
        Recipe("add", add.AddConfig, add.run, reuse=False),
        Recipe("audit", audit.AuditConfig, audit.run),
        Recipe("embed", embed.EmbedConfig, embed.run),
        Recipe("map", map.MapConfig, map.run),
        Recipe("score", score.ScoreConfig, score.run),
        Recipe("select", select.SelectConfig, select.run),
        Recipe("skl", skl.SklConfig, skl.run),
    )
}
