"""Access control: a request must come from this machine, from Winnow's own page, and from its owner."""

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from hmac import compare_digest
from html import escape
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core import door
from core.door import account_behind

HEALTH = "/_stcore/health"
ACCOUNT = "winnow.account"  # key in a connection's state: the account that the kernel reported; None: unknown
LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)  # an inline script has no attributes
PROTECTION = {
    "x-dns-prefetch-control": "off",  # the browser must not look up the host of a link before a click
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
FOREIGN_NAME = "Winnow answers only under the name localhost; open http://localhost with its port."
FOREIGN_PAGE = "Another page tried to reach Winnow and was refused; open Winnow in a new tab."
NO_KEY = (
    "{why}. Winnow admits the account that started it, and any account that has the key. The owner sees the key with "
    "`python -m core key`.\n"
)
OTHER_ACCOUNT = "This Winnow belongs to another account of this machine"
UNKNOWN_ACCOUNT = "Winnow cannot see here which account is asking"
KEY_WANTED = "This Winnow asks for its key"


def policy(host: str) -> str:
    """Return the Content-Security-Policy of an answer. With it, the browser fetches nothing from another host.

    It is a second guard behind `plain` and `escape`: markup that gets past them loads no image and runs no script.
    host: Host header of the request; "" if it is not a name of this machine.
    """
    # Safari before 15.4 does not count the websocket as 'self'. A policy cannot name an IPv6 address.
    websocket = f" ws://{host} wss://{host}" if host and not host.startswith("[") else ""
    return (
        "default-src 'self'; "
        # Plotly's WebGL compiles code with eval; Streamlit imports the scripts of components from blobs.
        f"script-src 'self' 'unsafe-eval' blob: {_inline_hashes()}; "
        "style-src 'self' 'unsafe-inline'; "  # Streamlit, Plotly and Vega write style elements and attributes
        "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' blob:; "
        f"connect-src 'self' blob: data:{websocket}; worker-src 'self' blob:; "
        "frame-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


@cache
def _inline_hashes() -> str:
    """Return the sources that allow the scripts inside Streamlit's own page, and no other inline script."""
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    digests = (sha256(script.encode()).digest() for script in INLINE_SCRIPT.findall(page))
    return " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)


class Door:
    """ASGI middleware in front of all of Streamlit's routes: pages, websocket, media, uploads."""

    def __init__(self, app: ASGIApp, mode: door.Mode) -> None:
        self._app, self._mode = app, mode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 403 with one sentence, or pass the request on and add security headers to the answer."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if answer := _foreign(scope, headers):
            await _refuse(answer, scope, receive, send)
        elif answer := self._stranger(scope, headers):
            health = scope["type"] == "http" and scope["path"] == HEALTH
            await _refuse(PlainTextResponse("ok") if health else answer, scope, receive, send)
        elif scope["type"] == "http":
            await self._app(_by_its_usual_name(scope), receive, _protected(scope, send))
        else:
            await self._app(_by_its_usual_name(scope), receive, send)

    def _stranger(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the refusal of a request that has neither the owner's account nor the key; None to let it in."""
        if self._mode == "open":
            return None
        why = KEY_WANTED
        if self._mode == "user":
            relayed = "x-forwarded-for" in headers  # the server may take the client's address and port from it
            account = None if relayed else _account(scope)
            if account == os.getuid():
                return None
            why = UNKNOWN_ACCOUNT if account is None else OTHER_ACCOUNT
        cookie = f"winnow-{scope['server'][1]}"  # per port, because browsers send a cookie to all ports
        if _is_key(_cookies(headers).get(cookie)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["type"] == "http" and _is_key(dict(query).get("key")):
            rest = urlencode([(name, value) for name, value in query if name != "key"])
            answer = _redirect("/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else ""), headers)
            answer.set_cookie(cookie, door.key(), httponly=True, samesite="strict")
            return answer
        return PlainTextResponse(NO_KEY.format(why=why), status_code=403)


def _account(scope: Scope) -> int | None:
    """Return the account that opened this connection; None if the system does not show it.

    With `python app.py`, the account was stored when the connection opened. With `streamlit run app.py` it was not, so
    the kernel is asked now.
    """
    if ACCOUNT in (state := scope.get("state", {})):
        kept: int | None = state[ACCOUNT]
        return kept
    if scope["client"] is None:  # the client has disconnected
        return None
    return account_behind(tuple(scope["client"]), tuple(scope["server"]))


def _redirect(path: str, headers: Headers) -> Response:
    """Return an answer that leads the browser to the address without the key.

    If the browser comes from a file (see `core.door.unseen`), it would not send its cookie after an HTTP redirect. It
    gets a page that redirects instead.
    """
    redirection = RedirectResponse(path, status_code=303)
    if headers.get("sec-fetch-site") in (None, "none", "same-origin"):
        return redirection
    return HTMLResponse(f'<meta http-equiv="refresh" content="0; url={escape(redirection.headers["location"])}">')


def _foreign(scope: Scope, headers: Headers) -> Response | None:
    """Return the refusal of a request under a foreign host name or from another page; None to let it in.

    A browser sends the requested name (Host) and the page that asks (Origin, or Sec-Fetch-Site without one). No page
    can change these. Other sites and other ports of this machine may only link here.
    """
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    # With two Host headers, the checked one may not be the one that Streamlit uses.
    if len(hosts) != 1 or not LOOPBACK.fullmatch(hosts[0]):
        return PlainTextResponse(FOREIGN_NAME, status_code=403)
    secure = "s" if scope["scheme"] in ("https", "wss") else ""
    own = origins == [f"http{secure}://{hosts[0]}"]
    linked = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    asked_by_other = headers.get("sec-fetch-site") in ("cross-site", "same-site") and not linked
    if ((origins or scope["type"] == "websocket") and not own) or asked_by_other:
        return PlainTextResponse(FOREIGN_PAGE, status_code=403)
    return None


def _by_its_usual_name(scope: Scope) -> Scope:
    """Return the request with the host [::1] replaced by localhost.

    Streamlit would otherwise ask the network for its own addresses before it accepts [::1].
    """
    headers = MutableHeaders(scope={**scope, "headers": list(scope["headers"])})
    host = headers["host"]
    if host.startswith("[::1]"):
        headers["host"] = host.replace("[::1]", "localhost")
        if "origin" in headers:
            headers["origin"] = headers["origin"].replace("[::1]", "localhost")
    return {**scope, "headers": headers.raw}


def _protected(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds headers to every answer. They protect it from other pages and from injected markup."""
    host = Headers(scope=scope).get("host", "")
    headers = {**PROTECTION, "content-security-policy": policy(host if LOOPBACK.fullmatch(host) else "")}

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return guarded


async def _refuse(answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        # The request for a websocket must be received before it can be refused.
        await receive()
        await send({"type": "websocket.close", "code": 1008})  # closing before accepting makes the server answer 403
        return
    await answer(scope, receive, _protected(scope, send))


def _cookies(headers: Headers) -> Mapping[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    # Other servers on this host set cookies too. A malformed cookie is treated as a missing key, not as an error.
    except CookieError:
        return {}


def _is_key(text: str | None) -> bool:
    # Constant time, so that the key cannot be guessed letter by letter.
    return text is not None and compare_digest(text.encode(), door.key().encode())
