"""Access to a real server: another account, another name, both addresses, and no look-up of its own address."""

import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from pages.ui.middleware import BACKLOG
from tests.browser.driver import ROOT, Server, free_port, settled, watched
from tests.test_privacy import GUARD
from tests.waiting import WAIT_SECONDS, frozen, until

STRANGER = 65534  # nobody
as_another_account = pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another account of this machine")
ASK = """
found = {}
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=200) as answer:
            found[url] = [answer.status, answer.read().decode(errors="replace")[:300]]
    except urllib.error.HTTPError as error:
        found[url] = [error.code, error.read().decode()[:300]]
print(json.dumps(found))
"""
FORWARD = """
import asyncio, sys
async def copy(source, target):
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except OSError:
        pass
    target.close()
async def join(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
async def main():
    server = await asyncio.start_server(join, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
HANDSHAKE = """
import base64, time
found = {}
for origin in json.loads(sys.argv[2]):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=200) as line:
        lines = ["GET /_stcore/stream HTTP/1.1", f"Host: localhost:{sys.argv[1]}", f"Origin: {origin}",
                 "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                 "Sec-WebSocket-Key: " + base64.b64encode(b"0" * 16).decode(), "", ""]
        line.sendall("\\r\\n".join(lines).encode())
        began = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/_stcore/health", timeout=200) as health:
            assert health.read() == b"ok"
        found[origin] = [int(line.recv(64).split()[1]), time.monotonic() - began]
print(json.dumps(found))
"""
# Each look-up takes this long, so that code that waits for one is noticed.
SILENCE = 120  # seconds
SILENT = f"""
import time
quick = socket.getaddrinfo
def silent(*args, **kwargs):
    time.sleep({SILENCE})
    return quick(*args, **kwargs)
socket.getaddrinfo = silent
"""


@pytest.fixture(scope="module")
def guarded_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that records and refuses every look-up and every connection to another machine."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "sitecustomize.py").write_text(GUARD + SILENT, encoding="utf-8")
    environment = {"PYTHONPATH": str(folder), "TALKED": str(folder / "talked")}
    with Server(home=folder / "home", data=folder, environment=environment) as server:
        server.start()
        yield server


def program_of(program: str, *words: object, user: int | None = None) -> list[str]:
    """Return the command of a client process. user: the account that it switches to."""
    become = f"import os; os.setgid({user}); os.setuid({user})\n" if user else ""
    imports = "import encodings.idna, http.client, json, resource, socket, sys, time, urllib.request\n"
    return [sys.executable, "-c", f"{imports}{become}{program}", *map(str, words)]


def asked(program: str, *words: object, user: int | None = None) -> dict[str, Any]:
    """Run a client process and return the answers that it received."""
    command = program_of(program, *words, user=user)
    return dict(
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=WAIT_SECONDS).stdout)
    )


def handshakes(server: Server, *origins: str, user: int | None = None) -> list[int]:
    """Return the status of each handshake; assert that no handshake blocks the server, which answers about its health."""
    answers = asked(HANDSHAKE, server.port, json.dumps(origins), user=user).values()
    assert all(seconds < SILENCE / 2 for _, seconds in answers), answers
    return [status for status, _ in answers]


@as_another_account
def test_another_account_gets_the_same_refusal_at_every_address(guarded_server: Server) -> None:
    paths = ("", "Corpora", "_stcore/host-config", "media/" + "0" * 56 + ".txt", "static/js/index.js")
    answers = asked(ASK, *(f"{guarded_server.url}/{path}" for path in paths), user=STRANGER)
    assert {json.dumps(answer) for answer in answers.values()} == {json.dumps(next(iter(answers.values())))}
    status, text = next(iter(answers.values()))
    assert status == 403
    assert "another account" in text
    assert "python -m core key" in text
    assert asked(ASK, f"{guarded_server.url}/_stcore/health", user=STRANGER) == {
        f"{guarded_server.url}/_stcore/health": [200, "ok"]
    }
    assert handshakes(guarded_server, guarded_server.url, user=STRANGER) == [403]
    assert handshakes(guarded_server, guarded_server.url) == [101]  # the owner's handshake succeeds


HOLD = """
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
held = []
for _ in range(1200):
    line = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=200)
    try:
        line.sendall(b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\n")
    except OSError:
        pass  # hung up on
    held.append(line)
print(len(held), flush=True)
sys.stdin.read()
"""
FORGE = """
port = int(sys.argv[1])
with open("/proc/net/tcp") as table:
    ends = [line.split() for line in table][1:]
owners = [int(end[1].split(":")[1], 16) for end in ends if end[2].endswith(f":{port:04X}") and int(end[3], 16) == 1]
found = {"owners": owners}
for forged in owners:
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=200)
        line.request("GET", "/_stcore/host-config", headers={header: f"127.0.0.1:{forged}"})
        found[f"{header} {forged}"] = line.getresponse().status
print(json.dumps(found))
"""


def held(port: int) -> int:
    """Count the connections to a port."""
    with Path("/proc/net/tcp").open() as table:
        ends = [line.split() for line in table][1:]
    return sum(end[2].endswith(f":{port:04X}") and int(end[3], 16) == 1 for end in ends)


@as_another_account
@pytest.mark.parametrize("asleep", [False, True], ids=["awake", "all at once"])
def test_another_account_cannot_keep_the_owner_out_by_holding_connections(tmp_path: Path, asleep: bool) -> None:
    """The stranger holds 1,200 connections with unfinished requests, more than the server may have files. asleep: the
    server accepts all of them at once."""
    with Server(home=tmp_path / "home", data=tmp_path) as server:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
        try:
            server.start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert server.process
        with subprocess.Popen(
            program_of(HOLD, server.port, user=STRANGER), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as holder:
            assert holder.stdout
            if asleep:
                with frozen(server.process.pid):
                    until(lambda: held(server.port) >= BACKLOG, "as many connections wait as the kernel holds")
            assert int(holder.stdout.readline()) == 1200
            status, _ = asked(ASK, f"{server.url}/_stcore/host-config").popitem()[1]
            holder.kill()
    assert status == 200


@as_another_account
@pytest.mark.parametrize("by_habit", [False, True], ids=["app.py", "streamlit run"])
def test_another_account_cannot_claim_a_connection_of_the_owner(tmp_path: Path, by_habit: bool) -> None:
    """Every account can list the open connections; a header that names one of them gives no access."""
    with Server(home=tmp_path / "home", data=tmp_path) as server:
        words = ("-m", "streamlit", "run", "app.py", "--server.port", str(server.port))
        server.start(words if by_habit else ())
        with socket.create_connection(("127.0.0.1", server.port)):
            answers = asked(FORGE, server.port, user=STRANGER)
    assert answers.pop("owners")
    assert set(answers.values()) == {403}


def test_the_server_listens_on_both_loopback_addresses(guarded_server: Server) -> None:
    with socket.socket(socket.AF_INET6) as probe, pytest.raises(OSError, match="in use"):
        probe.bind(("::1", guarded_server.port))
    answers = asked(ASK, f"http://[::1]:{guarded_server.port}/", f"http://127.0.0.1:{guarded_server.port}/")
    assert [status for status, _ in answers.values()] == [200, 200]


@as_another_account
def test_the_start_warns_if_another_account_holds_the_other_loopback_address(tmp_path: Path) -> None:
    """If another account listens on [::1], `localhost` would show its page, so Winnow prints a numeric address."""
    program = (
        f"import os, socket, sys; os.setuid({STRANGER}); s = socket.socket(socket.AF_INET6); s.bind(('::1', int(sys.argv[1])));"
        "s.listen(); print('ready', flush=True); sys.stdin.read()"
    )
    port = free_port()
    command = [sys.executable, "-c", program, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as impostor:
        assert impostor.stdout
        assert impostor.stdout.readline() == "ready\n"
        with Server(home=tmp_path / "home", data=tmp_path, port=port) as server:
            server.start(host="127.0.0.1")
        impostor.kill()
    log = (tmp_path / "server.log").read_text()
    assert "held by nobody" in log
    assert f"http://127.0.0.1:{port}" in log


def test_streamlit_run_refuses_foreign_pages_too(tmp_path: Path) -> None:
    with Server(home=tmp_path / "home", data=tmp_path) as server:
        server.start(["-m", "streamlit", "run", "app.py", "--server.port", str(server.port)])
        assert handshakes(server, server.url, "http://localhost:9999") == [101, 403]


def test_the_page_opens_under_both_names_and_through_a_port_forward(guarded_server: Server, page: Page) -> None:
    """Forward as `ssh -L` does: the owner's process takes the connection and opens another one to the server."""
    port = free_port()
    with subprocess.Popen(
        [sys.executable, "-c", FORWARD, str(port), str(guarded_server.port)], stdout=subprocess.PIPE
    ) as relay:
        assert relay.stdout
        assert relay.stdout.readline() == b"ready\n"
        for address in (f"localhost:{guarded_server.port}", f"127.0.0.1:{guarded_server.port}", f"localhost:{port}"):
            page.goto(f"http://{address}/Corpora")
            expect(page.get_by_role("heading", name="Corpora", exact=True)).to_be_visible()
            settled(page)
        page.goto("about:blank")  # the page sends no more requests to the server
        relay.kill()


def test_foreign_pages_open_no_websocket_and_cause_no_name_lookup(guarded_server: Server) -> None:
    """Streamlit alone would look up its own address, and wait for the answer, before it refuses a foreign page."""
    foreign = (
        "http://localhost:9999",
        f"https://localhost:{guarded_server.port}",
        "http://127.0.0.1:1",
        "http://evil.example",
        "https://a.streamlit.app",
    )
    assert handshakes(guarded_server, *foreign, guarded_server.url) == [403] * len(foreign) + [101]
    for name in ("localhost", "[::1]"):
        assert asked(ASK, f"http://{name}:{guarded_server.port}/").popitem()[1][0] == 200
    talked = guarded_server.data / "talked"
    assert not talked.exists() or talked.read_text() == ""


def test_an_answer_does_not_wait_for_acknowledgement_of_its_first_part(guarded_server: Server) -> None:
    connection, seconds = http.client.HTTPConnection("localhost", guarded_server.port), []
    for _ in range(100):  # after the first few answers, the system delays acknowledgements by up to 40 ms
        started = time.perf_counter()
        connection.request("GET", "/favicon.png")
        connection.getresponse().read()
        seconds.append(time.perf_counter() - started)
    connection.close()
    assert min(seconds[-80:]) < 0.03, seconds  # a page loads a hundred files, six at a time


@pytest.mark.road
def test_without_the_key_the_server_refuses_and_the_printed_address_opens_it(tmp_path: Path, browser: Browser) -> None:
    words = {"WINNOW_DOOR": "key"}
    with (
        Server(home=tmp_path / "home", data=tmp_path, environment=words) as server,
        watched(browser) as context,
    ):
        server.start()
        page = context.new_page()
        answer = page.goto(server.url)
        assert answer
        assert answer.status == 403
        command = [sys.executable, "-m", "core", "key", "--port", str(server.port)]
        environment = {**os.environ, "WINNOW_HOME": str(server.home)}
        address = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()
        until(lambda: address in (tmp_path / "server.log").read_text(), "the address is printed")
        page.goto(address)
        expect(page.get_by_role("heading", name="Winnow", exact=True)).to_be_visible()
        settled(page)
        expect(page).to_have_url(f"{server.url}/")  # the key does not stay in the address
        page.goto(f"{server.url}/Selection")
        expect(page.get_by_role("heading", name="Selection", exact=True)).to_be_visible()


HANG_UP = """
import encodings.idna, struct
for number in range(20):
    line = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=200)
    lines = ["GET /_stcore/stream HTTP/1.1", f"Host: localhost:{sys.argv[1]}", f"Origin: http://localhost:{sys.argv[1]}",
             "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: MDAwMDAwMDAwMDAwMDAwMA==", "", ""]
    line.sendall("\\r\\n".join(lines).encode())
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing resets the connection
    line.close()
print("{}")
"""


@as_another_account
def test_clients_that_disconnect_at_once_write_nothing_into_the_log(tmp_path: Path) -> None:
    with Server(home=tmp_path / "home", data=tmp_path) as server:
        server.start()
        for user in (STRANGER, None):
            asked(HANG_UP, server.port, user=user)
        assert asked(ASK, f"{server.url}/_stcore/health") == {f"{server.url}/_stcore/health": [200, "ok"]}
        log = (tmp_path / "server.log").read_text()
    assert log.split() == ["Winnow", "is", "at", server.url]


INVALID = """
import encodings.idna
for request in (b"\\x16\\x03\\x01\\r\\n\\r\\n", b"GET / HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: Upgrade\\r\\nUpgrade: x\\r\\n\\r\\n"):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=200) as line:
        line.sendall(request)
        assert line.recv(64)
print("{}")
"""


@as_another_account
def test_invalid_requests_of_another_account_write_nothing_into_the_log(tmp_path: Path) -> None:
    with Server(home=tmp_path / "home", data=tmp_path) as server:
        server.start()
        asked(INVALID, server.port, user=STRANGER)
        log = (tmp_path / "server.log").read_text()
    assert log.split() == ["Winnow", "is", "at", server.url]


RESET = """
import struct, time
port, server = int(sys.argv[1]), int(sys.argv[2])
line = socket.socket()
line.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
line.bind(("127.0.0.1", port))
line.connect(("127.0.0.1", server))
line.sendall(f"GET /_stcore/host-config HTTP/1.1\\r\\nHost: localhost:{server}\\r\\n".encode())
print("ready", flush=True)
sys.stdin.readline()
line.sendall(b"\\r\\n")
line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
line.close()
print("gone", flush=True)
"""


@as_another_account
def test_a_reset_request_is_not_attributed_to_the_ports_next_connection(tmp_path: Path) -> None:
    """Another account sends a request and resets; then the owner connects from the same port to the frozen server."""
    port, inside = free_port(), tmp_path / "inside"
    spy = f"""
from pages.ui import door
within = door._by_its_usual_name
def noted(scope):
    with open({str(inside)!r}, "a") as file:
        file.write(scope["path"] + "\\n")
    return within(scope)
door._by_its_usual_name = noted
import runpy, sys
sys.argv = ["app.py", "--port", sys.argv[1], "--no-browser"]
runpy.run_path("app.py", run_name="__main__")
"""
    with Server(home=tmp_path / "home", data=tmp_path) as server:
        server.start(("-c", spy, str(server.port)))
        inside.unlink(missing_ok=True)
        assert server.process
        client = program_of(RESET, port, server.port, user=STRANGER)
        with subprocess.Popen(client, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stranger:
            assert stranger.stdin
            assert stranger.stdout
            stranger.stdout.readline()
            asked(ASK, f"{server.url}/_stcore/health")  # the server has read the incomplete request
            with frozen(server.process.pid):
                stranger.stdin.write("\n")
                stranger.stdin.flush()
                assert stranger.stdout.readline() == "gone\n"
                with socket.socket() as own:
                    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    own.bind(("127.0.0.1", port))
                    own.connect(("127.0.0.1", server.port))
                    os.kill(server.process.pid, signal.SIGCONT)
                    asked(ASK, f"{server.url}/_stcore/health")
    passed = inside.read_text().split() if inside.exists() else []
    assert "/_stcore/host-config" not in passed
