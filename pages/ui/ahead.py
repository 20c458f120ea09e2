"""What a page's browser fetches ahead: the script that draws its charts, while the page itself is still worked out."""

from functools import cache
from pathlib import Path

import streamlit
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CHARTS = ("/Explore",)  # pages on which a chart is what a person waits for


class Ahead:
    """ASGI middleware: names the script in the head of the page's document.

    Streamlit's own page asks for it only when the first chart arrives, and it takes a browser longer to read than
    all else together.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        wanted = scope["type"] == "http" and scope["path"].rstrip("/") in CHARTS and _script()

        async def named(message: Message) -> None:
            if wanted and message["type"] == "http.response.start":
                MutableHeaders(scope=message).append("link", f"<{_script()}>; rel=modulepreload; crossorigin")
            await send(message)

        await self._app(scope, receive, named)


@cache
def _script() -> str:
    """Its address; "" where this Streamlit has none of that name."""
    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    return next((f"/static/js/{file.name}" for file in sorted(folder.glob("PlotlyChart.*.js"))), "")
