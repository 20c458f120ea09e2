"""Serve the app: Streamlit behind the access check of pages/ui/door.py, on this machine's two loopback addresses.

    python app.py [--port 8501] [--no-browser]

`streamlit run app.py` serves the same app with the same check, but only on 127.0.0.1. The first page is home.py.
"""

import argparse
import gc
import importlib
import inspect
import os
import pwd
import socket
import sys
import threading
import webbrowser
from pathlib import Path

import numpy as np
import uvicorn
from starlette.middleware import Middleware
from streamlit import config
from streamlit.starlette import App

from core import charts, door
from core.door import account_listening, sees_owner
from core.errors import WinnowError
from core.explore import plot
from core.heap import few_arenas
from core.isolated import serving
from core.paths import private
from core.projects.removals import sweep
from core.projects.view import settle
from pages.ui.door import Door
from pages.ui.middleware import BACKLOG, ConnectionLimit, NotFound, Preload, answer_in_our_words

ROOT = Path(__file__).resolve().parent

try:
    few_arenas()
    private()
    serving()
    settle()
    sweep()
    answer_in_our_words()
    parts = [Middleware(Door, mode=door.mode()), Middleware(NotFound), Middleware(Preload)]
    app = App(ROOT / "home.py", middleware=parts)
except WinnowError as error:
    sys.exit(str(error))


def _warm() -> None:
    """Import all modules of the pages before the first request.

    Otherwise the imports would delay the first page. If two requests import a module at once, one of them may see it
    half-loaded.
    """
    parts = sorted((ROOT / "pages" / "ui").rglob("*.py"))
    pages = (".".join(part.relative_to(ROOT).with_suffix("").parts) for part in parts)
    for module in ("pandas", "PIL.ImageFile", "pyarrow.dataset", "plotly.tools", "scipy.ndimage", *pages):
        importlib.import_module(module)
    _draw()
    # The first call is slow, because it reads the path of every module. Streamlit would otherwise make it in a request.
    inspect.stack()
    gc.collect()
    gc.freeze()  # Later garbage collections skip the imported modules.


def _draw() -> None:
    """Draw a map of three points in advance, so that Plotly loads its classes before a user's first figure."""
    points, xy = np.arange(3), np.arange(3, dtype=np.float32)
    dots = plot.Dots(x=xy, y=xy, points=points, kinds=points, hovered=points > 0)
    fig = plot.by_class(dots, [1, 1, 1], plot.View())
    plot.label_topics(fig, xy, xy, points, ["a", "b", "c"])
    for each in (fig, plot.picked_scores(xy, xy, "")):
        charts.dressed(each, dark=False).to_json()


def main() -> None:
    """Bind the sockets, print the address, open the browser, and serve until stopped."""
    options = _options()
    _warm()
    sockets, address = _bound(options.port)
    address = _opening(sockets, address)
    print(f"\n  Winnow is at {address}\n", flush=True)
    if door.mode() == "open":
        print("  WINNOW_DOOR=open: every account on this machine can use Winnow and read its data.\n", flush=True)
    if not options.no_browser and _has_screen():
        opened = door.unseen(address) if "?key=" in address else address
        threading.Timer(0.5, webbrowser.open, (opened,)).start()
    megabytes = config.get_option("server.maxMessageSize")
    uvicorn.Server(
        uvicorn.Config(
            app,
            http=ConnectionLimit,
            backlog=BACKLOG,
            ws="websockets-sansio",
            ws_max_size=megabytes * 1_000_000,
            access_log=False,
            log_level="warning",
            proxy_headers=False,  # A client could forge its IP address in these headers.
        )
    ).run(sockets=sockets)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serve Winnow on this machine.")
    parser.add_argument("--port", type=int, default=config.get_option("server.port"))
    parser.add_argument("--no-browser", action="store_true", help="Do not open the browser.")
    return parser.parse_args()


def _bound(port: int) -> tuple[list[socket.socket], str]:
    """Return the listening sockets and the address to open.

    For `localhost`, a browser tries ::1 and 127.0.0.1, so the app listens on both. If another server already listens
    on ::1, `localhost` could open that server. The returned address then has 127.0.0.1 instead of `localhost`.
    """
    try:
        sockets = [_listening(socket.AF_INET, "127.0.0.1", port)]
    except OSError as error:
        sys.exit(
            f"127.0.0.1:{port} cannot be used ({error.strerror}{_holder('127.0.0.1', port)}); choose another --port."
        )
    port = sockets[0].getsockname()[1]
    try:
        sockets.append(_listening(socket.AF_INET6, "::1", port))
    except OSError as error:
        if holder := _holder("::1", port):
            print(f"  [::1]:{port} cannot be used ({error.strerror}{holder}). Open the address below, not localhost.")
            return sockets, f"http://127.0.0.1:{port}"
    return sockets, f"http://localhost:{port}"


def _opening(sockets: list[socket.socket], address: str) -> str:
    """Return the address that opens the app. It contains the access key if `pages.ui.door` asks for one."""
    if door.mode() == "open":
        return address
    if door.mode() == "user":
        ConnectionLimit.sees_owners = all(sees_owner(bound.getsockname()[:2]) for bound in sockets)
        if ConnectionLimit.sees_owners:
            return address
        print("\n  This system does not show who connects, so the address below contains your key. Keep it secret.")
    return f"{address}/?key={door.key()}"


def _listening(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    # With an explicit TCP protocol, asyncio sets TCP_NODELAY. Without it, each file of a page waits 40 ms.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((host, port))
        bound.listen(128)
    except OSError:
        bound.close()
        raise
    return bound


def _holder(host: str, port: int) -> str:
    """Return the account that listens on this port as ", held by ACCOUNT"; "" if the system does not show it."""
    account = account_listening((host, port))
    if account is None:
        return ""
    try:
        return f", held by {pwd.getpwuid(account).pw_name}"
    except KeyError:
        return f", held by account {account}"


def _has_screen() -> bool:
    """Return True if a browser can open in a window. Without a display, a text browser would open in this terminal."""
    named = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    return sys.platform == "darwin" or named


if __name__ == "__main__":
    main()
