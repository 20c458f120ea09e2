"""Rules about code that keep the promises of the app."""

import ast
from collections.abc import Iterator

from tests.browser.buttons import BUTTONS
from tests.lint.repository import APP, Finding, Repository

BUTTON_CALLS = {
    "button",
    "form_submit_button",
    "download_button",
    "popover",
    "link_button",
    "menu_button",
    "chat_input",
}
PRESSES, TAKEN = "pages/ui/widgets.py", {"pressed", "submitted"}  # wrappers of buttons: their caller gives the key
PRINTS = {"click.echo", "click.secho", "click.style", "sys.stdout", "traceback.print_exc", "print"}


def grid(repository: Repository) -> Iterator[Finding]:
    """Every table goes through `grid`, because a browser can save it and a cell may hold a formula."""
    for source in repository.under(*APP):
        for node in source.nodes:
            table = isinstance(node, ast.Attribute) and node.attr in ("dataframe", "data_editor")
            if table and source.path != "pages/ui/widgets.py":
                yield Finding(
                    source.path, getattr(node, "lineno", 1), "draw the table with `grid` of pages/ui/widgets.py"
                )


def raw_html(repository: Repository) -> Iterator[Finding]:
    """No page draws raw HTML."""
    for source in repository.under(*APP):
        for number, line in enumerate(source.text.splitlines(), 1):
            if "unsafe_allow" in line:
                yield Finding(source.path, number, "escape the text and draw it without raw HTML")


def links(repository: Repository) -> Iterator[Finding]:
    """Links keep the project in their URL."""
    for source in repository.under(*APP):
        for call in source.calls:
            if source.path != "pages/ui/project.py" and _method(call) in ("page_link", "switch_page"):
                yield Finding(source.path, call.lineno, f"call `{_method(call)}` of pages/ui/project.py")


def downloads(repository: Repository) -> Iterator[Finding]:
    """A download is created in the project that offered it, and is logged in the audit log."""
    for source in repository.under(*APP):
        for call in source.calls:
            if _method(call) == "download_button":
                data = call.args[1] if len(call.args) > 1 else None
                if not isinstance(data, ast.Call) or ast.unparse(data.func) != "later":
                    yield Finding(source.path, call.lineno, "pass `later(...)` as the second argument")
        called = {call.func for call in source.calls}
        for node in source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "read_bytes" and node not in called:
                yield Finding(
                    source.path,
                    node.lineno,
                    "deliver the file by a function of core/experiment/deliver.py, which logs it",
                )


def copies(repository: Repository) -> Iterator[Finding]:
    """Commands write files with `deliver`, which logs them in the audit log."""
    for source in repository.under("core"):
        if not source.path.rpartition("/")[2].startswith("cli") and not source.path.startswith("core/cli/"):
            continue
        for node in source.nodes:
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("shutil.copy"):
                yield Finding(
                    source.path,
                    node.lineno,
                    "deliver the file by a function of core/experiment/deliver.py, which logs it",
                )


def commands(repository: Repository) -> Iterator[Finding]:
    """Commands are drawn only when they are opened, because syntax highlighting loads 1.5 MB of script."""
    for source in repository.under(*APP):
        for call in source.calls if source.path != "pages/ui/widgets.py" else ():
            if ast.unparse(call.func) == "st.code" and any("command" in ast.unparse(word) for word in call.args):
                yield Finding(source.path, call.lineno, "draw it with `same_command` or `command_lines`")


def printing(repository: Repository) -> Iterator[Finding]:
    """Commands print only with `echo` and `echo_json`, which remove control characters."""
    for source in repository.under("core"):
        if not ("/cli" in source.path or source.path == "core/__main__.py"):
            continue
        free = {
            id(inner)
            for node in source.nodes
            if isinstance(node, ast.FunctionDef) and node.name in ("echo", "echo_json", "mute")
            for inner in ast.walk(node)
        }
        for node in source.nodes:
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in free and ast.unparse(node) in PRINTS:
                yield Finding(source.path, node.lineno, "print with `echo` or `echo_json` of core/cli")


def artifacts(repository: Repository) -> Iterator[Finding]:
    """Views, figures, and commands read only the result of a run, not its files."""
    for source in repository.under("core"):
        name = source.path.rpartition("/")[2].removesuffix(".py")
        if name.partition("_")[0] not in ("view", "plot", "words", "cli") or source.path.startswith("core/cli/"):
            continue
        for node in source.nodes:
            if isinstance(node, ast.Attribute) and node.attr == "artifacts":
                yield Finding(source.path, node.lineno, "read it by a function of the capability's result.py")


def buttons(repository: Repository) -> Iterator[Finding]:
    """A browser test presses every button, found by its key."""
    there = set()
    for source in repository.under(*APP):
        for call in source.calls:
            if source.path == PRESSES or (keys := _keys(call)) is None:
                continue
            there.add(key := next(map(_pattern, keys), ""))
            if not key:
                yield Finding(source.path, call.lineno, "give the button a key of its own, written beside it")
            elif key not in BUTTONS:
                yield Finding(source.path, call.lineno, f"add {key} to tests/browser/buttons.py and press it in a walk")
    for key in sorted(BUTTONS.keys() - there):
        yield Finding("tests/browser/buttons.py", 1, f"remove {key}: no page has such a button")


def presses(repository: Repository) -> Iterator[Finding]:
    """No page uses the return value of a button, because a rerun before the page is drawn would lose the press."""
    for source in repository.under(*APP):
        alone = {node.value for node in source.nodes if isinstance(node, ast.Expr)}
        for call in source.calls:
            if source.path != PRESSES and _method(call) in ("button", "form_submit_button") and call not in alone:
                yield Finding(source.path, call.lineno, "take the press with `pressed` or `submitted`, or in on_click")


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _keys(call: ast.Call) -> list[ast.expr] | None:
    """Return the expressions given as a button's key, or None if the call draws no button."""
    if isinstance(call.func, ast.Name) and call.func.id in TAKEN:
        return call.args[1:2]
    if _method(call) in BUTTON_CALLS:
        return [word.value for word in call.keywords if word.arg == "key"]
    return None


def _pattern(key: ast.expr) -> str:
    """Return the key with `*` for each part known only at run time; "" if no part is literal."""
    parts = key.values if isinstance(key, ast.JoinedStr) else [key]
    written = [str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts]
    return "" if written == ["*"] else "".join(written)
