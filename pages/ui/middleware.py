"""Server middleware for all pages: limit connections, handle unknown pages and failed downloads, preload scripts."""

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

# largest number of open connections from other accounts; a process may have about a thousand open files in total
MOST = 64

BACKLOG = 128  # largest number of connections that asyncio accepts in a row before `ConnectionLimit` checks them
_SILENT = logging.getLogger("winnow.others")
_SILENT.setLevel(logging.CRITICAL + 1)


class ConnectionLimit(H11Protocol):
    """Uvicorn's HTTP protocol, with a limit on connections from other user accounts and no log messages about them."""

    others: ClassVar[list[asyncio.Transport]] = []
    sees_owners: ClassVar[bool] = False  # True if this system shows which account opened a connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Store which account opened this connection. Ask the kernel now, because the address may be reused later.

        Close connections of other accounts above the limit, so that these cannot lock out the owner. Also close a
        connection that the client has already reset.
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
        # Where the system shows accounts, an unknown one counts as another account. The account is unknown, for
        # example, if so many files are open that Winnow cannot ask the kernel.
        if account != os.getuid() and (account is not None or ConnectionLimit.sees_owners):
            ConnectionLimit.others = [each for each in ConnectionLimit.others if not each.is_closing()]
            ConnectionLimit.others.append(transport)
            self.logger = _SILENT
            if len(ConnectionLimit.others) > MOST:
                transport.abort()


def _account_behind(transport: asyncio.Transport) -> int | None:
    """Return the account that opened a connection; None if it is unknown. Errors: OSError if the client has reset it.

    Check the connection again after the kernel has answered. If the client has reset it meanwhile, another client may
    have got its address, and the answer may be about that client.
    """
    end: socket.socket = transport.get_extra_info("socket")
    client, server = end.getpeername()[:2], end.getsockname()[:2]
    account = account_behind(client, server)
    end.getpeername()
    return account


NAMED = "nowhere"  # URL parameter of Home: name of the unknown page that was requested

PAGE = re.compile(r"/([^/.]+)/?")  # matches the paths that Streamlit takes for pages
NAMES = {"home", *(file.stem.partition("_")[2] for file in Path(__file__).parents[1].glob("*.py"))}


class NotFound:
    """ASGI middleware that redirects a request for an unknown page to Home of the same project."""

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
    """Show a warning on Home if the browser asked for an unknown page and `NotFound` redirected it."""
    if name := st.query_params.get(NAMED):
        problem = f"There is no page {plain(name)} here: the address is wrong. The pages are in the menu on the left."
        st.warning(problem, icon=":material/link_off:")


CHARTS = ("/Explore",)  # pages whose chart takes longest to load
CHART = "PlotlyChart"
# Streamlit's names of the elements on these pages, which are also the beginnings of their scripts' file names.
PARTS = (CHART, "BidiComponent", "Html", "PageLink", "ButtonGroup", "TextInput", "Selectbox", "Spinner")
IMPORTED = re.compile(r'(?:from|import)"\./([\w.-]+\.js)"')
HEAD = 20_000  # All imports of a script are within this many characters of its start.
_run = st.components.v2.component(
    "winnow_ahead", js="export default ({ data }) => { import(new URL(data.script, location.origin).href); }"
)


class Preload:
    """ASGI middleware that makes the browser preload the scripts of a page, by a header of its HTML response.

    Without this header, the browser requests an element's script when the first such element arrives, and then the
    script's imports. The script of charts takes longer to parse than all others together.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add the `Link` header to the response if the page is in `CHARTS`."""
        wanted = scope["type"] == "http" and scope["path"].rstrip("/") in CHARTS

        async def named(message: Message) -> None:
            if wanted and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("link", _links())
            await send(message)

        await self._app(scope, receive, named)


def preload_chart() -> None:
    """Make the browser load the script of charts, which takes 0.3 s, while the server computes the page."""
    if script := _script(CHART):
        # The component is invisible but has a height. In the sidebar, this moves no content of the page.
        with st.sidebar:
            _run(key="ahead", data={"script": f"/static/js/{script}"}, height=1)


@cache
def _links() -> str:
    """Return the `Link` header that makes the browser preload the scripts of all `PARTS`."""
    scripts = dict.fromkeys(file for part in PARTS if (script := _script(part)) for file in _needed(script))
    return ", ".join(f"</static/js/{script}>; rel=modulepreload; crossorigin" for script in scripts)


@cache
def _script(part: str) -> str:
    """Return the file name of the script of an element; "" if this version of Streamlit has none."""
    return next((file.name for file in sorted(_folder().glob(f"{part}.*.js"))), "")


def _needed(script: str) -> Iterator[str]:
    """Yield a script and all scripts that it imports, except those that Streamlit's HTML page loads anyway."""
    named, todo = (_folder().parents[1] / "index.html").read_text(encoding="utf-8"), [script]
    for file in todo:
        with (_folder() / file).open(encoding="utf-8") as opened:
            imports = set(IMPORTED.findall(opened.read(HEAD)))
        todo += sorted(name for name in imports.difference(todo) if name not in named)
        yield file


def _folder() -> Path:
    return Path(st.__file__).parent / "static" / "static" / "js"


class Downloads(DeferredFileHandler):
    """Handler of download buttons that creates the file and, if that fails, sends Winnow's error message.

    It replaces Streamlit's handler, which would write text of corpora into the log.
    """

    async def handle(self, request: BackendOperationRequest, session_id: str) -> BackendOperationResponse:
        """Return the URL of the file, or the error message to show below the button."""
        answer = BackendOperationResponse(request_id=request.request_id)
        make = self._get_media_file_mgr().execute_deferred
        try:
            answer.deferred_file.url = await asyncio.to_thread(make, request.deferred_file.file_id)
        except Exception as error:  # noqa: BLE001  shown below the button
            cause = error.__cause__ or error
            answer.error_msg = str(cause) if isinstance(cause, WinnowError) else f"{BUG}. {bug(cause)}"
        return answer


def answer_in_our_words() -> None:
    """Make Streamlit use `Downloads` for download buttons, in all browser tabs that are opened from now on."""
    app_session.DeferredFileHandler = Downloads  # type: ignore[attr-defined]
