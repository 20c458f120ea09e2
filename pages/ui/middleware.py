"""What the server does around every page: limit connections, name missing pages and files, preload scripts."""

import asyncio
import os
import re
import socket
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackendOperationRequest
from streamlit.proto.ForwardMsg_pb2 import BackendOperationResponse
from streamlit.runtime import app_session
from streamlit.runtime.backend_operation_handler import DeferredFileHandler
from uvicorn.protocols.http.h11_impl import H11Protocol

from core import door
from core.door import account_behind
from core.errors import WinnowError
from pages.ui.door import ACCOUNT
from pages.ui.frame import BUG, bug
from pages.ui.project import NAMED as PROJECT
from pages.ui.widgets import plain

MOST = 64  # connections that other accounts may hold; a process may have a thousand files open in all
BACKLOG = 128  # connections that are taken before the first of them is looked at


class ConnectionLimit(H11Protocol):
    """HTTP as uvicorn speaks it, for as many others at once."""

    others: ClassVar[list[asyncio.Transport]] = []
    sees_owners: ClassVar[bool] = False  # whether this system tells who is at the other end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel whose connection this is, and keep the answer with it: its address may be another's later.

        Hang up on one stranger too many, who would keep the owner out by holding connections and saying nothing, and
        on a client that has hung up itself.
        """
        super().connection_made(transport)
        if door.mode() == "open":
            return
        try:
            account = _account_behind(transport)
        except OSError:
            transport.abort()
            return
        self.app_state = {**self.app_state, ACCOUNT: account}
        # If owners are seen, an unknown account counts too: with no file left to open, the kernel cannot be asked.
        if account != os.getuid() and (account is not None or ConnectionLimit.sees_owners):
            ConnectionLimit.others = [each for each in ConnectionLimit.others if not each.is_closing()]
            ConnectionLimit.others.append(transport)
            if len(ConnectionLimit.others) > MOST:
                transport.abort()


def _account_behind(transport: asyncio.Transport) -> int | None:
    """Return the account at the other end. Errors: OSError if the connection was reset.

    It is still connected after the kernel has answered, so no other client has taken its address before.
    """
    end: socket.socket = transport.get_extra_info("socket")
    client, server = end.getpeername()[:2], end.getsockname()[:2]
    account = account_behind(client, server)
    end.getpeername()
    return account


NAMED = "nowhere"  # in the address of Home: what was asked for
PAGE = re.compile(r"/([^/.]+)/?")  # what Streamlit takes for the name of a page
NAMES = {"home", *(file.stem.partition("_")[2] for file in Path(__file__).parents[1].glob("*.py"))}


class NotFound:
    """ASGI middleware: redirects a browser that asks for a page which is not there to Home of the same project."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass every other request on."""
        wanted = PAGE.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if wanted and wanted[1] not in NAMES and "text/html" in Headers(scope=scope).get("accept", ""):
            asked = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
            of_project = {PROJECT: asked[PROJECT]} if PROJECT in asked else {}
            address = urlencode({NAMED: wanted[1], **of_project})
            await RedirectResponse(f"/?{address}", status_code=303)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def no_such_page() -> None:
    """Say on Home which page is not there, after an address that named none."""
    if name := st.query_params.get(NAMED):
        problem = f"There is no page {plain(name)} here: the address is wrong. The pages are in the menu on the left."
        st.warning(problem, icon=":material/link_off:")


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


class Downloads(DeferredFileHandler):
    """Has a file made that was asked for, and says why where that cannot be."""

    async def handle(self, request: BackendOperationRequest, session_id: str) -> BackendOperationResponse:
        """The file's address, or the sentence that stands below the button for some seconds."""
        answer = BackendOperationResponse(request_id=request.request_id)
        make = self._get_media_file_mgr().execute_deferred
        try:
            answer.deferred_file.url = await asyncio.to_thread(make, request.deferred_file.file_id)
        except Exception as error:  # noqa: BLE001  told below the button
            answer.error_msg = _why(error.__cause__ or error)
        return answer


def _why(error: BaseException) -> str:
    return str(error) if isinstance(error, WinnowError) else f"{BUG}. {bug(error)}"


def answer_in_our_words() -> None:
    """Put ours in the place of Streamlit's, for every window that is opened from now on."""
    app_session.DeferredFileHandler = Downloads  # type: ignore[attr-defined]
