"""The door: host names, origins, accounts, keys and headers of requests, without a server."""

import asyncio
import os
import socket
from collections.abc import MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core import door
from core.door import account_behind, account_listening, key_of
from core.errors import ConfigError
from pages.ui.door import PROTECTION, Door, policy
from tests.pages.drawing import opened

OWN, OTHER = os.getuid(), os.getuid() + 1
PORT = 8501


Message = MutableMapping[str, Any]  # the type that ASGI defines


class Inside:
    """Stand in for Streamlit: record the requests that the door lets through."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-frame-options", b"ALLOWALL")]})
        await send({"type": "http.response.body", "body": b"inside"})


def ask(
    mode: door.Mode = "user",
    *,
    path: str = "/",
    query: str = "",
    kind: str = "http",
    inside: Inside | None = None,
    **headers: str,
) -> tuple[int, dict[str, str], str]:
    """Return status, headers and text of an answer. headers: `sec_fetch_site` stands for Sec-Fetch-Site."""
    named = {"host": f"localhost:{PORT}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": kind,
        "path": path,
        "query_string": query.encode(),
        "scheme": "http" if kind == "http" else "ws",
        "headers": [(name.encode(), value.encode()) for name, value in named.items() if value],
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", PORT),
        "method": "GET",
    }
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    with ThreadPoolExecutor(1) as thread:  # a browser test leaves this thread's event loop running
        thread.submit(lambda: asyncio.run(Door(inside or Inside(), mode)(scope, receive, send))).result()
    if sent[0]["type"] == "websocket.close":
        return 403, {}, ""
    found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    assert len(found) == len(sent[0]["headers"])  # a header that is sent twice would be hidden by the dict
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]).decode()


@pytest.fixture(params=[OWN])
def account(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Set the account that the system reports for every connection; None if it reports none."""
    for module in ("pages.ui.door", "pages.ui.middleware"):
        monkeypatch.setattr(f"{module}.account_behind", lambda client, server: request.param)
    other: int | None = request.param
    return other


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8501", "127.0.0.1:9000", "[::1]:8501"], ids=lambda host: host.replace(":", "-")
)
def test_owner_is_admitted_under_every_name_of_this_machine_and_any_port(host: str) -> None:
    assert ask(host=host)[2] == "inside"
    assert ask(host=host, origin=f"http://{host}")[2] == "inside"


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize(
    "host",
    ["evil.example", "", "a@localhost", "localhost@evil", "localhost.evil.example", "127.0.0.1.evil", "localhost:x"],
)
def test_foreign_host_name_is_refused(host: str) -> None:
    status, _, text = ask(host=host)
    assert status == 403
    assert "localhost" in text


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:9999",
        "https://localhost:8501",
        "http://127.0.0.1:8501",
        "http://127.0.0.1:1",
        "null",
        "file://",
        "http://evil.example",
        "https://evil.streamlit.app",
        "chrome-extension://x",
    ],
)
def test_page_of_another_origin_is_refused(origin: str, kind: str) -> None:
    assert ask(kind=kind, origin=origin)[0] == 403


@pytest.mark.usefixtures("account")
def test_websocket_without_an_origin_is_refused() -> None:
    assert ask(kind="websocket")[0] == 403
    assert ask(kind="websocket", origin=f"http://localhost:{PORT}")[2] == "inside"


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_page_of_another_site_may_only_link_here(site: str) -> None:
    assert ask(sec_fetch_site=site, sec_fetch_mode="no-cors", sec_fetch_dest="image")[0] == 403
    assert ask(sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="iframe")[0] == 403
    assert ask(sec_fetch_site=site, sec_fetch_mode="navigate", sec_fetch_dest="document")[0] == 200
    assert ask(sec_fetch_site="same-origin", sec_fetch_mode="cors", sec_fetch_dest="empty")[0] == 200


@pytest.mark.usefixtures("account")
def test_every_answer_has_each_security_header_once() -> None:
    for headers in (ask()[1], ask(host="evil.example")[1]):
        assert {name: headers[name] for name in PROTECTION} == PROTECTION
    assert ask()[1]["content-security-policy"] == policy(f"localhost:{PORT}")
    assert ask(host="evil.example")[1]["content-security-policy"] == policy("")


def test_the_policy_names_no_other_host_and_allows_no_inline_script() -> None:
    sources = dict(part.split(" ", 1) for part in policy(f"localhost:{PORT}").split("; "))
    hosts = {word for words in sources.values() for word in words.split() if "//" in word or "*" in word}
    assert hosts == {f"ws://localhost:{PORT}", f"wss://localhost:{PORT}"}
    assert "'unsafe-inline'" not in sources["script-src"]
    assert "'sha256-" in sources["script-src"]
    assert "//" not in policy("[::1]:8501")  # a policy cannot name this address, and 'self' is it


@pytest.mark.parametrize("account", [OTHER, None], indirect=True)
@pytest.mark.parametrize(
    "path", ["/", "/Corpora", "/media/abc.txt", "/_stcore/upload_file/a/b", "/_stcore/host-config"]
)
def test_another_account_gets_a_refusal_of_one_line(account: int | None, path: str) -> None:
    inside = Inside()
    status, _, text = ask(path=path, inside=inside)
    assert status == 403
    assert len(text.splitlines()) == 1
    assert "python -m core key" in text
    assert ("another account" in text) == (account == OTHER)
    assert ask(kind="websocket", origin=f"http://localhost:{PORT}", inside=inside)[0] == 403
    assert not inside.scopes


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_request_that_names_its_own_client_needs_the_key(kind: str) -> None:
    """Servers trust the header X-Forwarded-For. A client that names a port of the owner would be taken for the owner."""
    origin, client = f"http://localhost:{PORT}", "127.0.0.1:40000"
    assert ask(kind=kind, origin=origin, x_forwarded_for=client)[0] == 403
    key = f"winnow-{PORT}={door.key()}"
    assert ask(kind=kind, origin=origin, x_forwarded_for=client, cookie=key)[2] == "inside"


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("account", [OTHER, None], indirect=True)
def test_health_answers_ok_to_every_account_without_a_cookie() -> None:
    status, headers, text = ask(path="/_stcore/health")
    assert (status, text) == (200, "ok")
    assert "set-cookie" not in headers


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("account", [OTHER, None], indirect=True)
def test_key_in_the_address_becomes_a_cookie_that_admits() -> None:
    status, headers, _ = ask(path="/Explore", query=f"run=abc&key={door.key()}")
    assert (status, headers["location"]) == (303, "/Explore?run=abc")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    pair = cookie.split(";")[0]
    assert pair.startswith(f"winnow-{PORT}=")
    assert ask(cookie=f"other=1; {pair}")[2] == "inside"
    assert ask(kind="websocket", origin=f"http://localhost:{PORT}", cookie=pair)[2] == "inside"
    for wrong in (pair + "x", pair[:-1], f"winnow-{PORT}=", f"winnow-{PORT + 1}={door.key()}", '="; \x01'):
        assert ask(cookie=wrong)[0] == 403
    assert ask(query="key=")[0] == 403


@pytest.mark.usefixtures("account")
@pytest.mark.parametrize("account", [None], indirect=True)
def test_redirect_after_the_key_never_leaves_this_server(home: Path) -> None:
    for path in ("//evil.example/x", "/\\evil.example", "///evil.example"):
        location = ask(path=path, query=f"key={door.key()}")[1]["location"]
        assert location.startswith("/")
        assert location[1:2] not in ("/", "\\")
    status, headers, text = ask(
        path='//e/"><script>',
        query=f"run=a&key={door.key()}",
        sec_fetch_site="cross-site",
        sec_fetch_mode="navigate",
        sec_fetch_dest="document",
    )
    assert status == 200
    assert "url=/e/%22%3E%3Cscript%3E?run=a" in text
    assert "<script" not in text
    assert door.key() not in text
    assert "set-cookie" in headers


def test_browser_is_started_without_the_key_in_its_arguments(home: Path) -> None:
    before = os.umask(0)
    try:
        address = door.unseen(f"http://localhost:{PORT}/?key={door.key()}")
    finally:
        os.umask(before)
    file = Path(address.removeprefix("file://"))
    assert door.key() not in address
    assert f"url=http://localhost:{PORT}/?key={door.key()}" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.usefixtures("account")
def test_mode_decides_which_requests_need_the_key() -> None:
    assert ask("user")[0] == 200
    assert ask("key")[0] == 403
    assert ask("key", cookie=f"winnow-{PORT}={door.key()}")[0] == 200
    assert ask("open")[0] == 200
    assert ask("open", origin="http://localhost:9999")[0] == 403  # open to all accounts, but not to foreign pages


@pytest.mark.usefixtures("account")
def test_streamlit_gets_host_and_origin_that_need_no_name_lookup() -> None:
    inside = Inside()
    ask(kind="websocket", host="[::1]:8501", origin="http://[::1]:8501", inside=inside)
    assert dict(inside.scopes[0]["headers"]) == {b"host": b"localhost:8501", b"origin": b"http://localhost:8501"}


@pytest.fixture(params=["asked", "read in the tables"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the account with a query for one connection, or by a search in the table of all connections."""

    def nothing(*ends: object) -> tuple[int, int]:
        raise OSError("not here")

    if request.param == "asked":
        monkeypatch.setattr("core.door._sockets", list)
    else:
        monkeypatch.setattr("core.door._socket_state", nothing)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_account_behind_a_connection_is_found(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            pytest.skip(f"this machine has no {host}")
        server.listen()
        at = server.getsockname()[:2]
        with socket.create_connection(at) as client:
            assert account_behind(client.getsockname()[:2], at) == OWN
            assert account_behind(at, client.getsockname()[:2]) == OWN
            assert account_behind(("10.0.0.1", 1), at) is None


def test_account_that_listens_on_a_port_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert account_listening(server.getsockname()) == OWN


@pytest.mark.usefixtures("way")
def test_closed_connection_belongs_to_no_account() -> None:
    """The kernel reports root as the owner of a closed socket; a server run by root would admit any client that closes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        end = client.getsockname()
        accepted, _ = server.accept()
        with accepted:
            assert account_behind(end, server.getsockname()) == OWN
            client.close()
            assert account_behind(end, server.getsockname()) is None


@pytest.mark.usefixtures("way")
def test_account_behind_an_ipv6_socket_with_an_ipv4_address_is_found() -> None:
    with socket.socket() as server, socket.socket(socket.AF_INET6) as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        client.connect(("::ffff:127.0.0.1", server.getsockname()[1]))
        accepted, address = server.accept()
        with accepted:
            assert account_behind(address, server.getsockname()) == OWN


def test_key_is_readable_by_the_owner_only_and_is_kept(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        key = key_of(tmp_path / "home")
    finally:
        os.umask(before)
    assert key_of(tmp_path / "home") == key
    assert len(key) > 40
    assert (tmp_path / "home" / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("how", ["readable", "a link", "another account's"])
def test_key_that_another_account_may_know_is_replaced(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be older than the home, in a folder that another account created."""
    planted = tmp_path / "key"
    planted.write_text("planted")
    planted.chmod(0o644 if how == "readable" else 0o600)
    if how == "a link":
        planted.rename(tmp_path / "elsewhere")
        planted.symlink_to(tmp_path / "elsewhere")
    if how == "another account's":
        monkeypatch.setattr(os, "getuid", lambda: OTHER)
    assert key_of(tmp_path) != "planted"
    assert not planted.is_symlink()


def test_unknown_mode_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_DOOR", "ajar")
    with pytest.raises(ConfigError, match="'ajar' is not one of user, key, open"):
        door.mode()


def test_open_mode_is_announced_on_every_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_DOOR", "open")
    for page in ("home.py", "pages/1_Corpora.py"):
        app = opened(page)
        assert "every account of this machine" in app.warning[0].value
