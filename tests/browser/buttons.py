"""Every button of every page, by its key, and the walk of `test_buttons_browser.py` that presses it.

A new button is one line here and one press in a walk. `*` stands for what a key is put together from.
"""

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase

from tests.browser.driver import ROOT

KINDS = {"button", "form_submit_button", "download_button", "popover", "link_button", "menu_button", "chat_input"}
OWN, TAKEN = "presses", {"pressed", "submitted"}  # the module of the buttons whose key who calls them gives
BUTTONS = {
    "*.sample.*": "samples",
    "*.latest": "samples",
    "corpora.look": "corpora",
    "corpora.discard": "corpora",
    "corpora.submit": "corpora",
    "corpora.use": "corpora",
    "corpora.one": "corpora",
    "corpora.rejects": "corpora",
    "corpora.rename": "corpora",
    "corpora.check": "corpora",
    "corpora.undo": "corpora",
    "corpora.split.start": "corpora",
    "corpora.split.roles": "corpora",
    "corpora.removal": "corpora",
    "corpora.remove": "corpora",
    "corpora.remove.all": "corpora",
    "corpora.waiting.*": "corpora",
    "corpora.forget.*": "corpora",
    "frame.words": "words",
    "project.menu": "project",
    "project.new": "project",
    "project.rename": "project",
    "project.archive": "project",
    "project.unarchive": "project",
    "project.export": "project",
    "project.import": "project",
    "home.find": "road",
    "home.find.start": "road",
    "home.find.away": "road",
    "home.label": "road",
    "home.finished": "project",
    "home.report.pdf": "home",
    "runs.keep": "runs_table",
    "runs.pin": "runs_table",
    "runs.archive": "runs_table",
    "runs.removal": "runs_table",
    "runs.remove": "runs_table",
    "runs.remove.all": "runs_table",
    "similarity.guess": "similarity",
    "similarity.guess.show": "similarity",
    "similarity.survey": "similarity",
    "similarity.survey.keep": "similarity",
    "similarity.survey.show": "similarity",
    "similarity.csv": "similarity",
    "similarity.html": "similarity",
    "similarity.judge": "similarity",
    "similarity.example": "similarity",
    "similarity.start": "similarity",
    "selection.download": "selection",
    "selection.export": "selection",
    "selection.map": "selection",
    "selection.start": "selection",
    "selection.count": "selection",
    "selection.counted": "selection",
    "*.choice.aside": "selection",
    "*.choice.keep": "selection",
    "*.choice.more": "selection",
    "*.choice.rename": "selection",
    "*.choice.remove": "selection",
    "explore.add": "explore",
    "explore.add-flagged": "explore",
    "explore.undo": "explore",
    "explore.remove": "explore",
    "explore.seal": "explore",
    "explore.export.*": "explore",
    "explore.next": "explore",
    "explore.previous": "explore",
    "explore.clear": "explore",
    "explore.options": "explore",
    "explore.hits": "explore",
    "explore.naming": "explore",
    "explore.name": "explore",
    "explore.atlas": "explore",
    "explore.one": "explore",
    "explore.choose": "explore_runs",
    "explore.tag.start": "explore_runs",
    "explore.make": "explore_runs",
    "training.rank": "training",
    "training.layers.*": "ranking",
    "*.time": "timing",
    "training.start": "training",
    "training.fetch": "training",
    "training.vectors.start": "training",
    "*.smaller": "training",
    "*.cancel": "training",
    "*.resume": "training",
    "results.take.*": "results",
    "results.take.copy": "results",
    "results.try.start": "results",
    "results.again.start": "no_models",
    "*.csv": "bias",
    "bias.accept": "bias",
    "bias.skip": "bias",
    "bias.fix": "bias",
    "bias.undo": "bias",
    "bias.corrected": "bias",
    "bias.log": "bias",
    "bias.seal": "bias",
    "bias.rebuilt.*": "bias_runs",
    "bias.rebuild.start": "bias_runs",
    "bias.robust.*": "bias_runs",
    "bias.robust.start": "bias_runs",
    "bias.start": "bias_runs",
    "assisting.download": "assisting",
    "assisting.seal": "assisting",
    "assisting.drift.csv": "assisting",
    "assisting.sweep.start": "assisting",
    "assisting.start": "assisting",
}


def in_source() -> dict[str, str]:
    """{key: where in the source} of every button; a button whose key is not written beside it has none: {"": where}."""
    return dict(_keys())


def _keys() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "home.py", *sorted((ROOT / "pages").rglob("*.py"))):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if path.stem != OWN and isinstance(call, ast.Call) and (keys := _key(call)) is not None:
                yield next(map(_pattern, keys), ""), f"{path.relative_to(ROOT)}:{call.lineno}"


def _key(call: ast.Call) -> list[ast.expr] | None:
    """What is written as a button's key; None where no button is called."""
    if isinstance(call.func, ast.Name) and call.func.id in TAKEN:  # of `pages/ui/presses.py`: its second argument
        return call.args[1:2]
    if isinstance(call.func, ast.Attribute) and call.func.attr in KINDS:
        return [word.value for word in call.keywords if word.arg == "key"]
    return None


def _pattern(key: ast.expr) -> str:
    """What is written of a key, `*` for what is not known before it runs; empty where nothing is written."""
    parts = key.values if isinstance(key, ast.JoinedStr) else [key]
    written = [part.value if isinstance(part, ast.Constant) else "*" for part in parts]
    return "" if written == ["*"] else "".join(map(str, written))


def registered(key: str) -> str:
    """The line of `BUTTONS` that a button's key falls under: the one that says most of it. Errors: KeyError."""
    fitting = [pattern for pattern in BUTTONS if fnmatchcase(key, pattern)]
    if not fitting:
        raise KeyError(f"{key}: no such button is registered")
    return max(fitting, key=lambda pattern: len(pattern.replace("*", "")))
