"""One request: faults of the server, bounds of time and size, redirects, proxies, TLS and the key."""

import ssl
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from core.errors import ConfigError, ModelError, ResourceError
from core.llm import client as clients
from core.llm.addresses import server_at
from core.llm.client import KEY, LOST, MOST_BYTES, NO_ANSWER, TIME_OUT, TOO_LARGE, Client, Reply
from core.llm.prompt import request
from tests import fake_llm
from tests.fake_llm import FakeLlm, Handler, completion, fails
from tests.waiting import within

BODY = request("m", 'Sentence: "Bo"\nAnswer:', 100)
Fault = Callable[[Handler], None]


def asked(fault: Fault | None, timeout: float = 10.0) -> tuple[Reply, int]:
    """Return the reply of a server with a fault, and the number of requests that it got."""
    with FakeLlm(lambda sentence: f"[] for {sentence}", {-1: fault} if fault else {}) as server:
        return Client(server_at(server.address), timeout).ask(BODY), len(server.asked)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
def test_every_form_of_this_computer_is_reached(host: str) -> None:
    with FakeLlm(lambda sentence: "[]") as server:
        address = server.address.replace("127.0.0.1", host)
        assert Client(server_at(address), 10.0).ask(BODY) == Reply(text="[]")
        assert server.asked[0][2]["Host"] == address.split("/")[2]


def test_an_answer_is_returned() -> None:
    assert asked(None) == (Reply(text="[] for Bo"), 1)
    assert asked(lambda handler: handler.reply(completion("x"), kind="text/html")) == (
        Reply(text="x"),
        1,
    )  # the content decides, not its type


@pytest.mark.parametrize(
    ("fault", "reply"),
    [
        (fails(500), Reply(problem="HTTP 500", again=True)),
        (fails(503), Reply(problem="HTTP 503", again=True)),
        (fails(429, Retry_After="3600"), Reply(problem="HTTP 429", again=True)),
        (fails(400), Reply(problem="HTTP 400")),
        (fails(200, b"<html>Bo is in this text</html>"), Reply(problem=NO_ANSWER, again=True)),
        (fails(200, b"[" * 100_000), Reply(problem=NO_ANSWER, again=True)),
        (fails(200, b"\xff\xfe"), Reply(problem=NO_ANSWER, again=True)),
        (fails(200, b'{"choices": []}'), Reply(problem=NO_ANSWER, again=True)),
        (fails(200, b'{"choices": [{"message": {"content": null}}]}'), Reply(problem=NO_ANSWER, again=True)),
        (fails(200, b'"choices"'), Reply(problem=NO_ANSWER, again=True)),
        (fails(200, b"1" * 10_000), Reply(problem=NO_ANSWER, again=True)),
        (fake_llm.hangs_up, Reply(problem=NO_ANSWER, again=True)),
        (lambda handler: handler.wfile.write(b"SSH-2.0\r\n\r\n"), Reply(problem=LOST, again=True)),
        (
            lambda handler: handler.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200),
            Reply(problem=LOST, again=True),
        ),
        (fake_llm.floods, Reply(problem=TOO_LARGE)),
    ],
    ids=range(15),
)
def test_a_fault_is_named_and_may_be_tried_again(fault: Fault, reply: Reply) -> None:
    assert asked(fault) == (reply, 1)


def test_a_response_of_the_greatest_size_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    body = completion("x" * 1000)
    monkeypatch.setattr(clients, "MOST_BYTES", len(body))
    assert asked(fails(200, body))[0].text == "x" * 1000
    monkeypatch.setattr(clients, "MOST_BYTES", len(body) - 1)
    assert asked(fails(200, body))[0] == Reply(problem=TOO_LARGE)
    assert MOST_BYTES < 10_000_000


@pytest.mark.parametrize("fault", [fake_llm.hangs, fake_llm.drips], ids=["hangs", "drips"])
def test_a_request_ends_at_its_time_limit(fault: Fault) -> None:
    with within(5.0):
        assert asked(fault, timeout=0.3) == (Reply(problem=TIME_OUT, again=True), 1)


def test_a_slow_body_ends_at_the_time_limit() -> None:
    def slow(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not handler.server.over.wait(0.05):
            handler.wfile.write(b" ")

    with within(5.0):
        assert asked(slow, timeout=0.3) == (Reply(problem=TIME_OUT, again=True), 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_refused_and_not_followed(status: int) -> None:
    with FakeLlm(lambda sentence: "[]") as other:
        for to in (other.address, "http://127.0.0.1:1/v1", "/elsewhere"):
            with pytest.raises(ModelError, match=f"redirects elsewhere.*HTTP {status}"):
                asked(fails(status, Location=to))
    assert other.asked == []


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLlm(lambda sentence: "[]") as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.address)
        monkeypatch.delenv("no_proxy", raising=False)
        assert asked(None)[0].text == "[] for Bo"
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("status", "words"), [(401, "set the key"), (403, "check the key"), (404, "the model or the path")]
)
def test_what_every_request_would_get_is_an_error_without_the_servers_words(status: int, words: str) -> None:
    with pytest.raises(ModelError, match=words) as raised:
        asked(fails(status, b'{"error": "Bo"}'))
    assert "Bo" not in str(raised.value)
    assert f"HTTP {status}" in str(raised.value)


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLlm(lambda sentence: "[]") as server:
        address = server.address
    with pytest.raises(ResourceError, match=rf"{address}: nothing answers there; start .*ollama serve"):
        Client(server_at(address), 5.0).ask(BODY)
    with pytest.raises(ResourceError, match="nothing answers there"):
        Client(server_at("http://winnow.invalid/v1", "winnow.invalid"), 5.0).ask(BODY)


def test_the_key_comes_from_the_environment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLlm(lambda sentence: "[]") as server:
        Client(server_at(server.address), 5.0).ask(BODY)
        monkeypatch.setenv(KEY, "s3cret")
        Client(server_at(server.address), 5.0).ask(BODY)
        [without, having] = [headers for _, _, headers in server.asked]
    assert "Authorization" not in without
    assert having["Authorization"] == "Bearer s3cret"
    for wrong in ("s3cret\r\nX: y", "s3 cret", "s3cr\u00e9t"):
        monkeypatch.setenv(KEY, wrong)
        with pytest.raises(ConfigError, match=KEY) as raised:
            Client(server_at("http://127.0.0.1"), 5.0)
        assert "s3" not in str(raised.value)


def test_closing_ends_waiting_requests_and_refuses_others() -> None:
    with FakeLlm(lambda sentence: "[]", {-1: fake_llm.hangs}) as server:
        client, replies = Client(server_at(server.address), 60.0), list[Reply]()
        waiting = [threading.Thread(target=lambda: replies.append(client.ask(BODY))) for _ in range(3)]
        for thread in waiting:
            thread.start()
        while len(server.asked) < 3:
            time.sleep(0.01)
        with within(10.0):
            client.close()
            for thread in waiting:
                thread.join()
        assert [bool(reply.problem) for reply in replies] == [True] * 3
        assert client.ask(BODY).problem
        assert len(server.asked) == 3


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Write a certificate for 127.0.0.1 with its key, signed by itself."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fake")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    (tmp_path / "cert.pem").write_bytes(key.private_bytes(pem, *form) + made.public_bytes(pem))
    return tmp_path / "cert.pem"


def test_tls_is_checked_and_works_with_a_known_certificate(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeLlm(lambda sentence: "[]") as server:
        plain = server.address.replace("http:", "https:")
        with pytest.raises(ResourceError, match=r"no secure connection .*SSL_CERT_FILE"):
            Client(server_at(plain), 5.0).ask(BODY)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        with pytest.raises(ResourceError, match="CERTIFICATE_VERIFY_FAILED"):
            Client(server_at(plain), 5.0).ask(BODY)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert Client(server_at(plain), 5.0).ask(BODY) == Reply(text="[]")
        with pytest.raises(ResourceError, match="CERTIFICATE_VERIFY_FAILED"):  # the certificate is of 127.0.0.1
            Client(server_at(plain.replace("127.0.0.1", "localhost")), 5.0).ask(BODY)
        server.faults[-1] = fake_llm.drips
        with within(5.0):
            assert Client(server_at(plain), 0.5).ask(BODY).problem == TIME_OUT
