"""Addresses: which ones are this computer, which need consent, and which are refused, without a look-up of any name."""

import socket

import pytest

from core.errors import ConfigError
from core.llm.addresses import server_at
from core.llm.llm import LlmConfig

HERE = {  # address -> (IP addresses to connect to, port, path)
    "http://127.0.0.1:11434/v1": (("127.0.0.1",), 11434, "/v1"),
    "http://127.0.0.1": (("127.0.0.1",), 80, ""),
    "http://127.8.9.10:1/": (("127.8.9.10",), 1, ""),
    "https://[::1]:8443/v1/": (("::1",), 8443, "/v1"),
    "https://[0:0:0:0:0:0:0:1]/a/b": (("::1",), 443, "/a/b"),
    "http://[::ffff:127.0.0.1]:80/v1": (("127.0.0.1",), 80, "/v1"),
    "http://[::FFFF:7f00:1]/v1": (("127.0.0.1",), 80, "/v1"),
    "http://localhost:8000/v1": (("127.0.0.1", "::1"), 8000, "/v1"),
    "http://LocalHost./v1": (("127.0.0.1", "::1"), 80, "/v1"),
}
ELSEWHERE = {  # address -> host, which the user may allow
    "http://10.0.0.5:8000/v1": "10.0.0.5",
    "http://8.8.8.8/v1": "8.8.8.8",
    "http://0.0.0.0:11434/v1": "0.0.0.0",  # noqa: S104
    "http://[::]:11434/v1": "::",
    "http://[::ffff:10.0.0.5]/v1": "::ffff:10.0.0.5",
    "http://[::127.0.0.1]/v1": "::127.0.0.1",  # an obsolete form, which no system takes for this computer
    "http://169.254.169.254/latest": "169.254.169.254",
    "https://api.example.com/v1": "api.example.com",
    "http://localhost.example.com/v1": "localhost.example.com",
    "http://127.0.0.1.nip.io/v1": "127.0.0.1.nip.io",
    "http://evil.localhost/v1": "evil.localhost",
    "http://localhost.localdomain/v1": "localhost.localdomain",
    "http://gpu-box:8000/v1": "gpu-box",
}
REFUSED = (
    "",
    "127.0.0.1:11434",
    "localhost",
    "//127.0.0.1/v1",
    "ftp://127.0.0.1/v1",
    "file:///etc/passwd",
    "HTTP+unix://127.0.0.1",
    "http://",
    "http:///v1",
    "http://:80/v1",
    "http://user@127.0.0.1/v1",
    "http://user:pa55word@127.0.0.1/v1",
    "http://127.0.0.1@example.com/v1",
    "http://127.0.0.1:80@example.com/v1",
    "http://127.0.0.1\\@example.com/v1",
    "http://127.0.0.1/v1?key=pa55word",
    "http://127.0.0.1/v1#@example.com",
    "http://127.0.0.1/%2e%2e/v1",
    "http://127.0.0.1//example.com",
    "http://127.0.0.1:0/v1",
    "http://127.0.0.1:65536/v1",
    "http://127.0.0.1:99999999/v1",
    "http://127.0.0.1:8o/v1",
    "http://127.0.0.1:/v1",
    "http://127.0.0.1 /v1",
    "http://127.0.0.1\r\nHost: example.com/v1",
    "http://127.0.0.1/v1\n",
    "http://1２7.0.0.1/v1",  #  a full-width digit
    "http://127。0。0。1/v1",  #  full stops that some systems read as dots
    "http://localho\u017ft/v1",  # a long s, which is an s without case
    "http://b\u00fccher.example/v1",
    "http://a..b/v1",
    f"http://{'a' * 64}/v1",
    # numbers that systems read as 127.0.0.1, and as others
    "http://2130706433/v1",
    "http://0x7f000001/v1",
    "http://0x7f.0.0.1/v1",
    "http://0177.0.0.1/v1",
    "http://127.1/v1",
    "http://127.0.0.01/v1",
    "http://127.0.0.1.1/v1",
    "http://127.0.0.256/v1",
    "http://134744072/v1",
    "http://example.0x1/v1",
    "http://[127.0.0.1]/v1",
    "http://[::1/v1",
    "http://::1/v1",
    "http://[fe80::1%25lo]/v1",
    "http://[fe80::1%lo]/v1",
    "http://[v1.fe80]/v1",
    "http://[:::1]/v1",
)


@pytest.fixture(autouse=True)
def no_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a name is looked up."""

    def fail(*args: object, **options: object) -> None:
        raise AssertionError(f"looked up {args[0]}")

    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr", "create_connection"):
        monkeypatch.setattr(socket, name, fail)


@pytest.mark.parametrize("address", HERE)
def test_addresses_of_this_computer_need_no_consent(address: str) -> None:
    ips, port, path = HERE[address]
    server = server_at(address)
    assert (server.here, server.port, server.path, server.warning) == (ips, port, path, "")
    assert server.tls == address.startswith("https")
    assert server_at(server.address) == server  # the normalised address is the same server
    settled = LlmConfig(model="m", train="t", test=("u",), address=address, allow_host=server.host).settled()
    assert (settled.address, settled.allow_host) == (server.address, "")


@pytest.mark.parametrize("address", ELSEWHERE)
def test_another_host_needs_an_option_with_its_name(address: str) -> None:
    host = ELSEWHERE[address]
    with pytest.raises(ConfigError, match="not this computer, so sentences would leave it"):
        server_at(address)
    for other in ("127.0.0.1", "localhost", "example.org", f"{host}x", host[1:]):
        with pytest.raises(ConfigError, match="allow_host: differs from"):
            server_at(address, other)
    server = server_at(address, host.upper())
    assert server.here == ()
    assert host in server.warning
    assert ("not encrypted" in server.warning) == address.startswith("http:")
    settled = LlmConfig(model="m", train="t", test=("u",), address=address, allow_host=host).settled()
    assert (settled.address, settled.allow_host) == (server.address, host)


@pytest.mark.parametrize("address", REFUSED)
def test_other_addresses_are_refused_even_with_consent(address: str) -> None:
    for allowed in ("", "example.com", "127.0.0.1"):
        with pytest.raises(ConfigError, match="address: ") as refused:
            server_at(address, allowed)
        assert "pa55word" not in str(refused.value)
    with pytest.raises(ConfigError) as refused:
        LlmConfig.parse({"model": "m", "train": "t", "test": ("u",), "address": address})
    assert "pa55word" not in str(refused.value)


def test_a_connection_to_this_computer_looks_nothing_up_and_tries_both_addresses_of_localhost() -> None:
    with socket.socket(socket.AF_INET6) as six:
        six.bind(("::1", 0))
        six.listen()
        server = server_at(f"http://localhost:{six.getsockname()[1]}")
        with server.connected(5.0) as opened:
            assert opened.getpeername()[0] == "::1"
            assert opened.gettimeout() == 5.0
    with pytest.raises(ConnectionRefusedError):
        server.connected(5.0)
