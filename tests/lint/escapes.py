"""Rule: pages draw user text through `plain`, so that it is never markup."""

import ast
from collections.abc import Iterator, Mapping

from tests.lint.repository import APP, Finding, Repository

DRAWN = {"markdown", "caption", "success", "info", "warning", "error", "write", "subheader", "header", "title"}
# Functions whose result contains no user text, or escapes it.
SAFE = {"plain", "escape", "count", "duration", "size", "in_points", "number_in_words", "when", "bits", "len", "grey"}
CONSTANTS = {"terms", "find_out"}  # modules whose constants are Winnow's own words


def escapes(repository: Repository) -> Iterator[Finding]:
    """A page escapes each value that it draws as Markdown, or the value is listed in `OWN_WORDS`."""
    there: dict[str, set[str]] = {}
    for source in repository.under(*APP):
        for call in source.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr in DRAWN and call.args:
                for leaf in _leaves(call.args[0]):
                    words = ast.unparse(leaf)
                    there.setdefault(source.path, set()).add(words)
                    if words not in OWN_WORDS.get(source.path, ()):
                        advice = (
                            f"wrap {words} in `plain`, or list it in tests/lint/escapes.py if it holds no text of users"
                        )
                        yield Finding(source.path, leaf.lineno, advice)
    for source in repository.under(*APP):
        path = source.path
        for words in sorted(OWN_WORDS.get(path, set()) - there.get(path, set())):
            yield Finding("tests/lint/escapes.py", 1, f"remove {words} of {path}: it is not drawn there")


def _leaves(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the parts of a drawn value that may contain user text."""
    if isinstance(value, ast.Constant) or _is_constant(value):
        return
    if isinstance(value, ast.JoinedStr | ast.BoolOp):
        for part in value.values:
            yield from _leaves(part)
    elif isinstance(value, ast.FormattedValue):
        if not _is_number(value):
            yield from _leaves(value.value)
    elif isinstance(value, ast.IfExp):
        yield from (*_leaves(value.body), *_leaves(value.orelse))
    elif isinstance(value, ast.BinOp):
        yield from (*_leaves(value.left), *_leaves(value.right))
    elif isinstance(value, ast.Call) and _name(value.func) in SAFE:
        return
    elif isinstance(value, ast.Call) and _name(value.func) == "join" and value.args:
        yield from _joined(value.args[0])
    else:
        yield value


def _joined(parts: ast.expr) -> Iterator[ast.expr]:
    if isinstance(parts, ast.GeneratorExp | ast.ListComp):
        yield from _leaves(parts.elt)
    elif isinstance(parts, ast.Call) and _name(parts.func) == "map" and _name(parts.args[0]) in (*SAFE, "str"):
        return
    elif isinstance(parts, ast.List | ast.Tuple):
        for part in parts.elts:
            yield from _joined(part.value) if isinstance(part, ast.Starred) else _leaves(part)
    else:
        yield parts


def _is_number(value: ast.FormattedValue) -> bool:
    """Return True for a value with a numeric format, such as `{n:,}`."""
    written = ast.unparse(value.format_spec) if value.format_spec else ""
    return "," in written or written.rstrip("'\"")[-1:] in ("f", "d", "%", "e", "g")


def _is_constant(value: ast.expr) -> bool:
    """Return True for a name in capitals, of this module or of `CONSTANTS`."""
    if isinstance(value, ast.Name):
        return value.id.isupper()
    names = ast.unparse(value).split(".")
    return isinstance(value, ast.Attribute) and names[0] in CONSTANTS and names[1].isupper()


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


# Values that pages draw, checked one by one: they contain no user text, or contain it escaped. {file: {value}}.
OWN_WORDS: Mapping[str, set[str]] = {
    "home.py": {"_card()"},
    "pages/1_Corpora.py": {"kinds", "term.meaning"},
    "pages/3_Selection.py": {"reading", "size", "strategy.summary", "strategy.trust", "tagger"},
    "pages/4_Explore.py": {"reasons", "removed(run_id)"},
    "pages/5_Training.py": {"WHAT[kind]"},
    "pages/8_Assisting.py": {"advice"},
    "pages/9_Papers.py": {"paper.link"},
    "pages/ui/assisting/threshold.py": {"heading"},
    "pages/ui/bias/rebuild.py": {"METHODS[method][1]", "_lowered(drawn.reached)", "able", "more", "name"},
    "pages/ui/bias/robust.py": {"unsure[test]"},
    "pages/ui/bias/views.py": {
        "_answer(information)",
        "context",
        "name",
        "of",
        "plot.bar_words(picked[1])",
        "s",
        "some",
    },
    "pages/ui/checks.py": {"ICONS[one.level]", "colour", "one.cure"},
    "pages/ui/choice.py": {"choice", "links.GONE", "read"},
    "pages/ui/corpora/imports.py": {"advice", "n", "n > 1", "roots", "what"},
    "pages/ui/corpora/report.py": {"more", "parts", "rule"},
    "pages/ui/empty.py": {"sentence", "which"},
    "pages/ui/explore/controls.py": {"counts", "lines"},
    "pages/ui/explore/map.py": {"part[1:]", "part[:1].upper()"},
    "pages/ui/explore/panel.py": {"n", "rows", "state.flagged(choice_id, rows)", "state.words(map_run, region)"},
    "pages/ui/frame.py": {
        "VERDICTS[check.verdict]",
        "ending(runs.get(run_id), state)",
        "group",
        "more",
        "summary",
        "title",
    },
    "pages/ui/home_steps.py": {"find_out.LIMITS[asked.limit].capitalize()", "words"},
    "pages/ui/label/editor.py": {"types"},
    "pages/ui/label/outcome.py": {"gains", "kept", "known", "use", "words"},
    "pages/ui/label/setup.py": {"checks", "role", "suggested", "takes"},
    "pages/ui/middleware.py": {"problem"},
    "pages/ui/removal.py": {"goes.in_words", "span_words(kept.chosen, kept.unit, kept.prefer)", "used.in_words"},
    "pages/ui/results/board.py": {
        "against",
        "alt.partition(',')[0]",
        "names",
        "none_at_all",
        "parts",
        "total",
    },
    "pages/ui/results/pair.py": {"how", "names"},
    "pages/ui/results/try_it.py": {"found", "unsure", "where", "words"},
    "pages/ui/runs/links.py": {"problem", "words"},
    "pages/ui/runs/panel.py": {
        "_when(state)",
        "gone",
        "stopped(runs.get(run_id))",
        "waited_for(state.waiting_for)",
        "why",
        "words",
    },
    "pages/ui/selection/chosen.py": {
        "edits",
        "heading",
        "parts",
        "prevalence.in_words(count, asked)",
        "selections.at(other)",
        "span_words(chosen.scores, scores.unit, scores.prefer)",
        "warning",
    },
    "pages/ui/selection/which.py": {"view.LIMIT", "view.basis(result)", "view.in_words(result)"},
    "pages/ui/similarity/results.py": {"agreement_text(agreement)", "grey", "sentence"},
    "pages/ui/similarity/worth.py": {"agreement_text(agreement)"},
    "pages/ui/training/encoders.py": {"wanted.fetched", "wanted.size"},
    "pages/ui/training/form.py": {"rows", "short", "text"},
    "pages/ui/training/live.py": {"heading", "name", "part.word", "seed", "what", "words"},
    "pages/ui/training/parts.py": {"meaning.get(preset, CUSTOM)"},
    "pages/ui/widgets.py": {"WORD_TINTS[verdict.word]"},
}
