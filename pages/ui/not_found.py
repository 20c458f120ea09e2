"""An address that is no page of Winnow's: Home answers it, in Winnow's words. Streamlit's own would be a dialog."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from pages.ui.project import NAMED as PROJECT
from pages.ui.widgets import plain

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
