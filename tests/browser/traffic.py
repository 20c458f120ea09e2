"""Checks of every page that a test opens: no request to another host, no error in the console, no dialog."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlparse

from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, WebSocket

# Seen once, on a busy machine, on the way from Selection to Explore: Streamlit's frontend received an element for a page
# that it had left. The page was complete afterwards. The cause is either a fragment of Winnow or Streamlit's order of
# messages, so ignoring this error may hide one of ours.
LATE = "Bad delta path index"


@contextmanager
def held_to_account(page: Page) -> Iterator[Page]:
    """Yield the page. Errors: AssertionError at the end of the block if a check fails."""
    foreign, errors = list[str](), list[str]()

    def asked(request: Request | WebSocket) -> None:
        if urlparse(request.url).hostname not in ("localhost", "127.0.0.1", None, ""):
            foreign.append(request.url)

    def said(message: ConsoleMessage) -> None:
        if message.type == "error" and not _expected(message):
            errors.append(f"{message.text} {message.location}")

    def dismissed(dialog: Dialog) -> None:
        errors.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("request", asked)
    page.on("websocket", asked)
    page.on("console", said)
    page.on("pageerror", lambda error: None if LATE in str(error) else errors.append(str(error)))
    page.on("dialog", dismissed)
    yield page
    assert not foreign, "asked another host"
    assert not errors, errors


def _expected(message: ConsoleMessage) -> bool:
    """Return True for harmless errors: probes of other addresses after a deep link, a stopped server, and `LATE`."""
    where = message.location.get("url", "")
    probes = ("/_stcore/health", "/_stcore/host-config", "/_stcore/stream")
    gone = (
        "ERR_CONNECTION_REFUSED",
        "when disconnected from server",
        "Is Streamlit still running?",
        "WebSocket onerror",
    )
    return any(part in where for part in probes) or any(part in message.text for part in (*probes, *gone, LATE))
