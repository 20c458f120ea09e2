"""Every button of every page, by its key, and the walk of `test_buttons_browser.py` that presses it.

Tests of `tests/pages` and other browser tests press the buttons of `ELSEWHERE`.

To add a button, add its key here and press it in its walk. `*` replaces the computed part of a key.
"""

from fnmatch import fnmatchcase

BY_WALK = {
    "samples": "*.sample.* *.latest",
    "corpora": """
        corpora.look corpora.discard corpora.submit corpora.use corpora.one corpora.rejects corpora.rename
        corpora.check corpora.undo corpora.split.start corpora.split.roles corpora.removal corpora.remove
        corpora.remove.all corpora.waiting.* corpora.forget.*
    """,
    "words": "frame.words home.privacy",
    "project": """
        project.menu project.new project.rename project.archive project.unarchive project.export
        project.import home.finished.*
    """,
    "road": "home.find home.find.start home.find.away home.label",
    "runs_table": "runs.keep runs.pin runs.archive runs.removal runs.remove runs.remove.all",
    "similarity": """
        similarity.csv similarity.html similarity.judge similarity.example similarity.start
    """,
    "selection": "selection.download selection.export selection.map selection.start *.cure.*",
    "explore": """
        explore.add explore.add-flagged explore.undo explore.remove explore.seal explore.export.* explore.next
        explore.previous explore.clear explore.options explore.hits explore.naming explore.name explore.atlas
        explore.one.* explore.drop.* explore.close
    """,
    "training": "training.rank training.start training.fetch training.vectors.start *.smaller *.cancel *.resume",
    "ranking": "training.layers.*",
    "bias": "*.csv",
    "bias_runs": "bias.rebuilt.* bias.rebuild.start bias.robust.* bias.robust.start bias.start",
    "assisting": "assisting.download assisting.seal assisting.drift.csv assisting.sweep.start assisting.start",
}
ELSEWHERE = """
    home.report.pdf home.find.stronger home.find.again selection.again selection.count selection.counted selection.which.start selection.which.use *.choice.aside *.choice.keep *.choice.more *.choice.rename
    *.choice.remove explore.choose explore.tag.start explore.make *.time results.take.* results.take.copy
    results.try.start results.try.* results.again.start results.surer results.next.*
    corpora.filter.start corpora.filter.*
    training.experiment.latest training.untrained.label label.start label.review.start label.seal label.again label.tools label.tool.* label.type.add label.back.start label.settle.*.* label.flagged
"""
BUTTONS = {
    **{key: walk for walk, keys in BY_WALK.items() for key in keys.split()},
    **dict.fromkeys(ELSEWHERE.split(), ""),
}


def registered(key: str) -> str:
    """Return the entry of `BUTTONS` that a button's key matches; the most specific one. Errors: KeyError."""
    fitting = [pattern for pattern in BUTTONS if fnmatchcase(key, pattern)]
    if not fitting:
        raise KeyError(f"{key}: no such button is registered")
    return max(fitting, key=lambda pattern: len(pattern.replace("*", "")))
