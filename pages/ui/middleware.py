"""Server middleware around every page: limit connections, name missing pages and files, preload scripts."""

import asyncio
import logging
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

MOST = 64  # connections that other accounts may hold; a process may have about a thousand open files in total
BACKLOG = 128  # connections that are accepted before the first is examined
_SILENT = logging.getLogger("winnow.others")
_SILENT.setLevel(logging.CRITICAL + 1)


class ConnectionLimit(H11Protocol):
    """Uvicorn's HTTP protocol with a limit on connections of other accounts. These write nothing into the log."""

    others: ClassVar[list[asyncio.Transport]] = []
    sees_owners: ClassVar[bool] = False  # True if this system can name the account at the other end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Ask the kernel which account connects, and keep the answer, because the address may be reused later.

        Refuse connections of other accounts above the limit, so that they cannot lock out the owner. Drop a connection
        that the client has already reset.
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
        # If the system shows accounts, an unknown one counts too: the kernel cannot be asked if no file can be opened.
        if account != os.getuid() and (account is not None or ConnectionLimit.sees_owners):
            ConnectionLimit.others = [each for each in ConnectionLimit.others if not each.is_closing()]
            ConnectionLimit.others.append(transport)
            self.logger = _SILENT
            if len(ConnectionLimit.others) > MOST:
                transport.abort()


def _account_behind(transport: asyncio.Transport) -> int | None:
    """Return the account at the other end; None if it is unknown. Errors: OSError if the connection was reset.

    The connection is checked again after the kernel has answered, so no other client can have taken its address.
    """
    end: socket.socket = transport.get_extra_info("socket")
    client, server = end.getpeername()[:2], end.getsockname()[:2]
    account = account_behind(client, server)
    end.getpeername()
    return account


NAMED = "nowhere"  # parameter in the address of Home: the unknown page that was requested
PAGE = re.compile(r"/([^/.]+)/?")  # the rule by which Streamlit reads the name of a page
NAMES = {"home", *(file.stem.partition("_")[2] for file in Path(__file__).parents[1].glob("*.py"))}


class NotFound:
    """ASGI middleware: redirects a request for an unknown page to Home of the same project."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Redirect a request for an unknown page; pass on all other requests."""
        wanted = PAGE.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if wanted and wanted[1] not in NAMES and "text/html" in Headers(scope=scope).get("accept", ""):
            asked = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
            of_project = {PROJECT: asked[PROJECT]} if PROJECT in asked else {}
            address = urlencode({NAMED: wanted[1], **of_project})
            await RedirectResponse(f"/?{address}", status_code=303)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def no_such_page() -> None:
    """Name the unknown page on Home after such a redirect."""
    if name := st.query_params.get(NAMED):
        problem = f"There is no page {plain(name)} here: the address is wrong. The pages are in the menu on the left."
        st.warning(problem, icon=":material/link_off:")


CHARTS = ("/Explore",)  # pages whose chart takes longest
CHART = "PlotlyChart"
# Streamlit's elements on these pages.
PARTS = (CHART, "BidiComponent", "Html", "PageLink", "ButtonGroup", "TextInput", "Selectbox", "Spinner")
IMPORTED = re.compile(r'(?:from|import)"\./([\w.-]+\.js)"')
HEAD = 20_000  # characters of a script that hold all its imports
_run = st.components.v2.component(
    "winnow_ahead", js="export default ({ data }) => { import(new URL(data.script, location.origin).href); }"
)


class Preload:
    """ASGI middleware: names the scripts of a page's parts in the response headers of its document.

    Otherwise the browser would request each script only when the first part of its kind arrives, and then the script's
    imports. The chart's script takes a browser longer to parse than all others together.
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
    """Let the browser run the chart's script while the server computes the page. It takes a third of a second."""
    if script := _script(CHART):
        with st.sidebar:  # in the sidebar, its height shifts no content
            _run(key="ahead", data={"script": f"/static/js/{script}"}, height=1)


@cache
def _links() -> str:
    """Return a `Link` header with which the browser preloads the scripts of all `PARTS`."""
    scripts = dict.fromkeys(file for part in PARTS if (script := _script(part)) for file in _needed(script))
    return ", ".join(f"</static/js/{script}>; rel=modulepreload; crossorigin" for script in scripts)


@cache
def _script(part: str) -> str:
    """Return the file name of a part's script; "" if this Streamlit has none."""
    return next((file.name for file in sorted(_folder().glob(f"{part}.*.js"))), "")


def _needed(script: str) -> Iterator[str]:
    """Yield the script and all its imports, except those that the document names."""
    named, todo = (_folder().parents[1] / "index.html").read_text(encoding="utf-8"), [script]
    for file in todo:
        with (_folder() / file).open(encoding="utf-8") as opened:
            imports = set(IMPORTED.findall(opened.read(HEAD)))
        todo += sorted(name for name in imports.difference(todo) if name not in named)
        yield file


def _folder() -> Path:
    return Path(st.__file__).parent / "static" / "static" / "js"


class Downloads(DeferredFileHandler):
    """Create requested files, and explain a failure in our words. Streamlit's handler would log text of corpora."""

    async def handle(self, request: BackendOperationRequest, session_id: str) -> BackendOperationResponse:
        """Return the file's address, or the sentence to show below the button."""
        answer = BackendOperationResponse(request_id=request.request_id)
        make = self._get_media_file_mgr().execute_deferred
        try:
            answer.deferred_file.url = await asyncio.to_thread(make, request.deferred_file.file_id)
        except Exception as error:  # noqa: BLE001  shown below the button
            cause = error.__cause__ or error
            answer.error_msg = str(cause) if isinstance(cause, WinnowError) else f"{BUG}. {bug(cause)}"
        return answer


def answer_in_our_words() -> None:
    """Replace Streamlit's handler of downloads for windows opened from now on."""
    app_session.DeferredFileHandler = Downloads  # type: ignore[attr-defined]
