"""Files at remote addresses: transfer with a folder and a bucket server, no copy that stays, and clear errors."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from core.cli.main import main
from core.corpora.library import Library
from core.corpora.remote import fetch, is_address, named, outgoing
from core.errors import ConfigError, PathError
from core.importing.uploads import fetched
from core.projects import runs
from tests.corpora.bucket import serving
from tests.planted import contracts, kitchen

LINES = contracts(30, seed=1)


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Start a bucket server on this machine; yield the address of a bucket."""
    with serving() as url, pytest.MonkeyPatch.context() as patch:
        for name, value in (("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "secret"), ("ENDPOINT_URL", url)):
            patch.setenv(f"AWS_{name}", value)
        yield "s3://texts"


@pytest.fixture(params=["s3", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a writable folder."""
    if request.param == "file":
        (tmp_path / "far").mkdir()
        return f"file://{tmp_path}/far"
    return f"{request.getfixturevalue('bucket')}/{tmp_path.name}"


def put(address: str, text: str) -> None:
    with outgoing(address) as path:
        path.write_text(text, encoding="utf-8")


def ask(*words: str) -> dict[str, object]:
    result = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert isinstance(value, dict)
    return value


def test_files_are_fetched_byte_for_byte(place: str, tmp_path: Path) -> None:
    text = "Straße\n" * 1_000_000  # more than one block
    put(f"{place}/a.txt", text)
    heard: list[str] = []
    [copy] = fetch(f"{place}/a.txt", tmp_path / "near", heard.append)
    assert copy.read_text(encoding="utf-8") == text
    assert heard == ["fetching a.txt (8,000,000 bytes)"]


def test_files_of_a_remote_folder_keep_their_names_below_the_target(place: str, tmp_path: Path) -> None:
    with outgoing(f"{place}/parts") as folder:
        (folder / "more").mkdir(parents=True)
        for name in ("a.txt", "more/a.txt", "more/b.txt"):
            (folder / name).write_text(name)
    copies = fetch(f"{place}/parts", tmp_path / "near")
    assert {copy.name: copy.read_text() for copy in copies} == {
        "a.txt": "a.txt", "more_a.txt": "more/a.txt", "more_b.txt": "more/b.txt",
    }  # fmt: skip
    assert all(copy.parent == tmp_path / "near" for copy in copies)


def test_files_that_would_get_the_same_name_are_all_kept(place: str, tmp_path: Path) -> None:
    with outgoing(f"{place}/parts") as folder:
        for name in ("2020/01.txt", "2020_01.txt", "2020_01 (2).txt"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
    copies = fetch(f"{place}/parts", tmp_path / "near")
    assert len(set(copies)) == 3
    assert sorted(copy.read_text() for copy in copies) == ["2020/01.txt", "2020_01 (2).txt", "2020_01.txt"]
    spooled = fetched([f"{place}/parts"], lambda _: None)
    assert sorted(file.read_text() for file in spooled.iterdir()) == sorted(copy.read_text() for copy in copies)


def test_a_corpus_is_added_from_an_address_and_no_copy_stays(place: str, home: Path) -> None:
    put(f"{place}/task.txt", "\n".join(LINES))
    added = ask("corpus", "add", f"{place}/task.txt")
    assert (added["name"], added["sentences"]) == ("task", len(LINES))
    assert Library(home).find(str(added["corpus"])).column("text").to_pylist() == LINES
    assert not list((home / "uploads").iterdir())
    assert not [file for file in home.rglob("*.json*") if place in file.read_text(errors="replace")]


def test_a_selection_is_written_to_an_address(place: str, home: Path, tmp_path: Path) -> None:
    for name, lines in (("task", LINES), ("domain", [*contracts(60, seed=2), *kitchen(60)])):
        (tmp_path / f"{name}.txt").write_text("\n".join(lines), encoding="utf-8")
        ask("corpus", "add", str(tmp_path / f"{name}.txt"))
    words = ("select", "--task", "task", "--domain", "domain", "--strategy", "random", "--budget", "20")
    near = tmp_path / "chosen.txt"
    ask(*words, "--output", str(near))
    assert ask(*words, "--output", f"{place}/chosen.txt")["output"] == f"{place}/chosen.txt"
    [copy] = fetch(f"{place}/chosen.txt", tmp_path / "back")
    assert copy.read_bytes() == near.read_bytes()


@pytest.mark.parametrize("name", ["nothing.txt", "no/folder"])
def test_a_missing_file_is_a_clear_error_and_leaves_nothing(place: str, name: str, home: Path) -> None:
    with pytest.raises(PathError, match="there is no such file or folder"):
        ask("corpus", "add", f"{place}/{name}")
    assert not list((home / "uploads").iterdir())


def test_keys_in_an_address_are_never_shown(tmp_path: Path) -> None:
    address = "s3://key:secret@texts/a.txt?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1&request_timeout=1"
    with pytest.raises(PathError) as caught:
        fetch(address, tmp_path)
    assert "secret" not in str(caught.value)
    assert "s3://texts/a.txt: cannot be reached" in str(caught.value)
    assert named(address) == "s3://texts/a.txt"


def test_no_part_of_a_key_with_a_slash_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    address = "s3://AKIAKEY:se/cret/s@texts/a.txt"
    assert named(address) == named("s3://AKIAKEY:1234/secret@texts/a.txt") == "s3://texts/a.txt"
    with pytest.raises(PathError, match=r"^s3://texts/a\.txt: cannot be reached") as caught:
        fetch(address, tmp_path)
    assert not any(part in str(caught.value) for part in ("AKIAKEY", "cret"))
    assert named("hdfs://n:9000/a.txt") == "hdfs://n:9000/a.txt"
    assert named("s3://texts/a@b.txt") == "s3://texts/a@b.txt"


def test_commands_without_remote_output_refuse_an_address_before_they_compute(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["pretrain", "--corpus", "t"], ["finetune", "--train", "t"], ["map"], ["predict", "t"]):
        result = CliRunner().invoke(main, [*words, "--output", "s3://key:secret@b/x.parquet"])
        assert isinstance(result.exception, ConfigError), words
        assert "output: s3://b/x.parquet is a remote address, which only select and export can write to" in str(
            result.exception
        )
    assert not list(tmp_path.glob("s3:"))


def test_an_output_that_cannot_be_reached_is_refused_before_the_work(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "execute", lambda *given: pytest.fail("worked all the same"))

    class Silent:
        def get_file_info(self, path: str) -> None:
            raise OSError("no such host")

    driver = SimpleNamespace(from_uri=lambda address: (Silent(), "texts/chosen.txt"))
    monkeypatch.setattr("pyarrow.fs.FileSystem", driver)
    output = ("--output", "s3://texts/chosen.txt")
    with pytest.raises(PathError, match=r"s3://texts/chosen\.txt: cannot be reached \(no such host\)"):
        ask("select", "--task", "task", "--domain", "domain", *output)
    with pytest.raises(PathError, match="no such host"), outgoing(output[1]):
        pytest.fail("written all the same")


def test_the_app_refuses_remote_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.corpora.remote.confined", lambda: True)
    with pytest.raises(PathError, match="only on the command line"):
        fetch(f"file://{tmp_path}", tmp_path / "near")


def test_offline_mode_refuses_remote_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    monkeypatch.setattr("pyarrow.fs.FileSystem", None)
    with pytest.raises(PathError, match=r"s3://texts/a\.txt: this machine is set to stay offline"):
        fetch("s3://key:secret@texts/a.txt", tmp_path)
    with pytest.raises(PathError, match="stay offline"), outgoing("gs://texts/a.txt"):
        pytest.fail("written all the same")


def test_without_keys_of_google_its_metadata_host_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    system = SimpleNamespace(from_uri=lambda address: pytest.fail(f"{address} may be asked for"))
    monkeypatch.setattr("pyarrow.fs.FileSystem", system)
    for address in ("gs://texts/a.txt", "GCS://texts/a.txt"):
        with pytest.raises(PathError, match="no keys of Google"):
            fetch(address, tmp_path / "near")
    with pytest.raises(pytest.fail.Exception, match="may be asked for"):
        fetch("gs://anonymous@texts/a.txt", tmp_path / "near")
    monkeypatch.setenv("GCE_METADATA_ROOT", "metadata.google.internal")
    with pytest.raises(pytest.fail.Exception, match="may be asked for"):
        fetch("gs://texts/a.txt", tmp_path / "near")


def test_addresses_and_paths_are_distinguished(home: Path, tmp_path: Path) -> None:
    assert all(map(is_address, ("s3://a/b.txt", "gs://a", "hdfs://n:9000/a", "GS://a", "file:///a")))
    assert not any(map(is_address, ("a.txt", "/s3://a", "https://example.org/a.txt", "C:/a.txt")))
    with pytest.raises(ConfigError, match="not both"):
        ask("corpus", "add", "s3://a/b.txt", str(tmp_path))
