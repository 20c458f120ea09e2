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
ACCOUNT = "winnow.account"  # key of a connection's state; its value is the client's user id, None if unknown
LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)  # Streamlit's inline scripts have no attributes.
PROTECTION = {
    # Without this header, the browser may look up the host of a link before a click.
    "x-dns-prefetch-control": "off",
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
UNKNOWN_ACCOUNT = "Winnow cannot find out which account sent this request"
KEY_WANTED = "This Winnow requires its key"


def policy(host: str) -> str:
    """Return the Content-Security-Policy header of a response. It forbids the browser to load from other hosts.

    The policy is a second guard behind `plain` and `escape`: markup that they miss loads no image and runs no script.
    host: Host header of the request; "" if it is not a name of this machine.
    """
    # Safari before 15.4 does not accept 'self' for a websocket, so name its host. A policy cannot name an IPv6 host.
    websocket = f" ws://{host} wss://{host}" if host and not host.startswith("[") else ""
    return (
        "default-src 'self'; "
        # Plotly's WebGL compiles code with eval, and Streamlit imports the scripts of components from blobs.
        f"script-src 'self' 'unsafe-eval' blob: {_inline_hashes()}; "
        # Streamlit, Plotly and Vega add style elements and attributes to the page.
        "style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; media-src 'self' blob:; "
        f"connect-src 'self' blob: data:{websocket}; worker-src 'self' blob:; "
        "frame-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


@cache
def _inline_hashes() -> str:
    """Return the policy's hashes of the inline scripts in Streamlit's own page. No other inline script may run."""
    page = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    digests = (sha256(script.encode()).digest() for script in INLINE_SCRIPT.findall(page))
    return " ".join(f"'sha256-{b64encode(digest).decode()}'" for digest in digests)


class Door:
    """ASGI middleware that checks access to all of Streamlit's routes: pages, websocket, media, uploads."""

    def __init__(self, app: ASGIApp, mode: door.Mode) -> None:
        self._app, self._mode = app, mode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request with status 403 and a sentence, or pass it on and add security headers to the response."""
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
        """Return a 403 response if the request has neither the owner's account nor the key; None to let it in.

        If the key is in the URL, return a redirect that sets it as a cookie.
        """
        if self._mode == "open":
            return None
        why = KEY_WANTED
        if self._mode == "user":
            # With this header, the server may report an address that the client made up, so the account is unknown.
            relayed = "x-forwarded-for" in headers
            account = None if relayed else _account(scope)
            if account == os.getuid():
                return None
            why = UNKNOWN_ACCOUNT if account is None else OTHER_ACCOUNT
        # The cookie's name contains the port, because a browser sends a cookie to all ports of a host.
        cookie = f"winnow-{scope['server'][1]}"
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
    """Return the id of the user account that opened this connection; None if the system does not show it.

    `python app.py` stores the account when the connection opens. `streamlit run app.py` does not, so the kernel is
    asked here.
    """
    if ACCOUNT in (state := scope.get("state", {})):
        kept: int | None = state[ACCOUNT]
        return kept
    if scope["client"] is None:  # The client has disconnected.
        return None
    return account_behind(tuple(scope["client"]), tuple(scope["server"]))


def _redirect(path: str, headers: Headers) -> Response:
    """Return a response that redirects the browser to `path`, the requested URL without the key.

    A browser that opened the URL from a local file (see `core.door.unseen`) would not send its cookie after an HTTP
    redirect. It gets an HTML page that redirects instead.
    """
    redirection = RedirectResponse(path, status_code=303)
    if headers.get("sec-fetch-site") in (None, "none", "same-origin"):
        return redirection
    return HTMLResponse(f'<meta http-equiv="refresh" content="0; url={escape(redirection.headers["location"])}">')


def _foreign(scope: Scope, headers: Headers) -> Response | None:
    """Return a 403 response if the request has a foreign host name or comes from another page; None to let it in.

    The browser sends the requested host name (Host) and the page that sent the request (Origin; Sec-Fetch-Site if
    there is no Origin). A page cannot change these headers. Other sites and other ports may only link to Winnow.
    """
    hosts, origins = headers.getlist("host"), headers.getlist("origin")
    # Refuse two Host headers, because Streamlit may use the one that was not checked.
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
    """Return a `send` that adds security headers to every response, against other pages and injected markup."""
    host = Headers(scope=scope).get("host", "")
    headers = {**PROTECTION, "content-security-policy": policy(host if LOOPBACK.fullmatch(host) else "")}

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(headers)
        await send(message)

    return guarded


async def _refuse(answer: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        # ASGI requires that the connect message is received first. A close before an accept gives status 403.
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    await answer(scope, receive, _protected(scope, send))


def _cookies(headers: Headers) -> Mapping[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    # Other servers on this host also set cookies, so a malformed one is no error; the key then counts as missing.
    except CookieError:
        return {}


def _is_key(text: str | None) -> bool:
    # Compare in constant time. Otherwise the response time would show how many characters of the key are right.
    return text is not None and compare_digest(text.encode(), door.key().encode())
