"""What a page's browser fetches and runs ahead, while the page itself is still worked out: what draws its charts."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CHARTS = ("/Explore",)  # pages on which a chart is what a person waits for
CHART = "PlotlyChart"
PARTS = (CHART, "BidiComponent", "Html", "PageLink", "ButtonGroup", "TextInput", "Selectbox", "Spinner")  # of them
IMPORTED = re.compile(r'(?:from|import)"\./([\w.-]+\.js)"')
HEAD = 20_000  # letters of a script in which all it imports is named
_run = st.components.v2.component(
    "winnow_ahead", js="export default ({ data }) => { import(new URL(data.script, location.origin).href); }"
)


class Preload:
    """ASGI middleware: names the scripts of a page's parts in the head of its document.

    Streamlit's own page asks for each when the first part of its kind arrives, and then for what that imports, from a
    server that is at work on the page. The chart's takes a browser longer to read than all else together.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        wanted = scope["type"] == "http" and scope["path"].rstrip("/") in CHARTS

        async def named(message: Message) -> None:
            if wanted and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("link", _links())
            await send(message)

        await self._app(scope, receive, named)


def preload_chart() -> None:
    """Let the browser run the chart's script now: it takes a third of a second, in which the server works on it."""
    if script := _script(CHART):
        with st.sidebar:  # where its height moves nothing
            _run(key="ahead", data={"script": f"/static/js/{script}"}, height=1)


@cache
def _links() -> str:
    """All of them, as a header."""
    scripts = dict.fromkeys(file for part in PARTS if (script := _script(part)) for file in _needed(script))
    return ", ".join(f"</static/js/{script}>; rel=modulepreload; crossorigin" for script in scripts)


@cache
def _script(part: str) -> str:
    """The name of its file; "" where this Streamlit has none of that name."""
    return next((file.name for file in sorted(_folder().glob(f"{part}.*.js"))), "")


def _needed(script: str) -> Iterator[str]:
    """Itself and all that it imports, but for what the document names."""
    named, todo = (_folder().parents[1] / "index.html").read_text(encoding="utf-8"), [script]
    for file in todo:
        with (_folder() / file).open(encoding="utf-8") as opened:
            imports = set(IMPORTED.findall(opened.read(HEAD)))
        todo += sorted(name for name in imports.difference(todo) if name not in named)
        yield file


def _folder() -> Path:
    return Path(st.__file__).parent / "static" / "static" / "js"
