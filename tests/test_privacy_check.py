"""`doctor --privacy`: each check passes in a correct home and reports each problem."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from core import door
from core.paths import private
from core.project_list import shared_home
from core.projects import privacy
from tests.conftest import ROOT, Command

Verdict = Callable[[str], str]


@pytest.fixture
def sound(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Make a home as Winnow does, for an account without settings of its own, on an encrypted disk."""
    for name in ("WINNOW_DOOR", "WINNOW_AUDIT", *(name for name in os.environ if name.startswith("STREAMLIT_"))):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WINNOW_OFFLINE", "1")
    monkeypatch.setattr(privacy, "encrypted", lambda path: True)
    monkeypatch.setattr(privacy, "open_swaps", list)
    before = os.umask(0o077)
    (home / "runs").mkdir(parents=True)
    (home / "runs" / "a.json").write_text("{}")
    yield
    os.umask(before)


@pytest.fixture
def verdict(sound: None) -> Verdict:
    """Return a function: `verdict("modes")` -> the verdict and the sentence of a check."""
    return lambda name: next(f"{each.verdict}: {each.says}" for each in privacy.checks() if each.name == name)


def test_the_door_is_checked(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    for mode, due in (("open", "bad: WINNOW_DOOR=open"), ("ajar", "bad: WINNOW_DOOR: 'ajar'"), ("key", "ok")):
        monkeypatch.setenv("WINNOW_DOOR", mode)
        assert verdict("door").startswith(due)
    monkeypatch.delenv("WINNOW_DOOR")
    monkeypatch.setattr(door, "account_behind", lambda client, server: None)
    assert verdict("door").startswith("look: This system does not show who connects")


def test_modes_of_all_files_except_links_are_checked(verdict: Verdict, home: Path, tmp_path: Path) -> None:
    (home / "link").symlink_to(tmp_path)
    for wide in ("", "runs", "runs/a.json"):
        mode = (home / wide).stat().st_mode
        (home / wide).chmod(0o750)
        assert verdict("modes").startswith(f"bad: {home / wide}: ")
        (home / wide).chmod(mode)
    assert verdict("modes").startswith("ok")


def test_the_owner_the_offline_switch_and_the_allowed_folders_are_checked(
    verdict: Verdict, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: home.stat().st_uid + 1)
    assert verdict("owner").startswith(f"bad: {shared_home(home)}: belongs to another account")
    monkeypatch.delenv("WINNOW_OFFLINE")
    assert verdict("offline").startswith("look")
    monkeypatch.setenv("WINNOW_DATA_DIRS", str(tmp_path / "texts"))
    assert str(tmp_path / "texts") in verdict("roots")
    monkeypatch.setattr(privacy, "allowed_roots", lambda: [tmp_path, Path("/")])
    assert verdict("roots").startswith("bad: Pages may read the whole disk")


def test_the_audit_log_is_checked(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: Path
) -> None:
    assert verdict("audit") == f"ok: The audit log is {shared_home(home) / 'audit.jsonl'}."
    for setting, due in (("off", "look: The audit log is off"), ("here.jsonl", "bad: WINNOW_AUDIT")):
        monkeypatch.setenv("WINNOW_AUDIT", setting)
        assert verdict("audit").startswith(due)
    path = tmp_path / "log"
    monkeypatch.setenv("WINNOW_AUDIT", str(path))
    assert verdict("audit") == f"ok: The audit log is {path}."
    for mode, due in ((0o644, "bad"), (0o640, "look"), (0o600, "ok")):
        path.touch()
        path.chmod(mode)
        assert verdict("audit").startswith(due)
    for place in (tmp_path, tmp_path / "no" / "folder"):
        monkeypatch.setenv("WINNOW_AUDIT", str(place))
        assert verdict("audit").startswith(f"bad: {place}: the audit log cannot be written")


def test_settings_of_streamlit_are_checked(verdict: Verdict, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {
        "BROWSER_GATHER_USAGE_STATS": "true",
        "CLIENT_ALLOWED_ORIGINS": '["https://*.streamlit.app"]',
        "CLIENT_SHOW_ERROR_LINKS": "auto",
        "SERVER_ADDRESS": "::",
    }.items():
        with monkeypatch.context() as patch:
            patch.setenv(f"STREAMLIT_{name}", value)
            assert verdict("streamlit").startswith("bad")
            assert value in verdict("streamlit")
    monkeypatch.setattr(privacy, "ROOT", tmp_path / "project")  # without settings, the defaults of Streamlit apply
    assert verdict("streamlit").startswith("bad: browser.gatherUsageStats is True; client.allowedOrigins is")
    for folder in (tmp_path, tmp_path / "project"):
        (folder / ".streamlit").mkdir(parents=True)
    (tmp_path / ".streamlit" / "config.toml").write_text("[browser]\ngatherUsageStats = true\n")
    config = tmp_path / "project" / ".streamlit" / "config.toml"
    config.write_bytes((ROOT / ".streamlit" / "config.toml").read_bytes())
    assert verdict("streamlit").startswith("ok")  # settings of the project take precedence
    config.write_text("[browser\n")
    assert verdict("streamlit").startswith("bad: A config.toml of Streamlit cannot be read")


def test_disk_and_swap_pass_only_if_known_to_be_encrypted(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    for encrypted in (True, False, None):
        monkeypatch.setattr(privacy, "encrypted", lambda path, encrypted=encrypted: encrypted)
        assert verdict("disk").startswith("ok" if encrypted else "look")
        assert ("unknown" in verdict("disk")) == (encrypted is None)
    for swaps in ([], ["/dev/sda2"], None):
        monkeypatch.setattr(privacy, "open_swaps", lambda swaps=swaps: swaps)
        assert verdict("swap").startswith("ok" if swaps == [] else "look")
        assert all(name in verdict("swap") for name in swaps or ())


def device(folder: Path, name: str, *below: Path, uuid: str = "") -> Path:
    """Make a block device as in /sys."""
    made = folder / name
    (made / "slaves").mkdir(parents=True)
    for part in below:
        (made / "slaves" / part.name).symlink_to(part)
    if uuid:
        (made / "dm").mkdir()
        (made / "dm" / "uuid").write_text(f"{uuid}\n")
    return made


def test_a_disk_is_encrypted_only_if_all_disks_below_it_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    number = os.stat(tmp_path).st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    bare, other = device(tmp_path, "sda2"), device(tmp_path, "sdb2")
    luks = device(tmp_path, "dm-0", bare, uuid="CRYPT-LUKS2-0123-luks")
    monkeypatch.setattr(privacy, "_mounted", lambda path: number)  # the folder of the tests may have no device
    for below, due in (((), False), ((luks,), True), ((luks, other), False), ((bare,), False)):
        monkeypatch.setattr(privacy, "BLOCK", tmp_path / str(len(list(tmp_path.iterdir()))))
        device(privacy.BLOCK, name, *below, uuid="LVM-0123" if below else "")
        assert privacy.encrypted(tmp_path) is due
    monkeypatch.setattr(privacy, "BLOCK", tmp_path / "nowhere")
    assert privacy.encrypted(tmp_path) is privacy.encrypted(tmp_path / "gone") is None

    class Some:
        total = 1

    monkeypatch.setattr(psutil, "swap_memory", Some)
    monkeypatch.setattr(privacy, "SWAPS", tmp_path / "swaps")
    assert privacy.open_swaps() is None
    rows = ["Filename Type Size Used Priority", "/dev/zram0 partition 1 0 100", f"{tmp_path}/file file 1 0 -2"]
    (tmp_path / "swaps").write_text("\n".join([*rows, "/dev/no-such partition 1 0 -3"]))
    for safe, left in ((True, ["/dev/no-such"]), (None, [f"{tmp_path}/file", "/dev/no-such"])):
        monkeypatch.setattr(privacy, "encrypted", lambda path, safe=safe: safe)
        assert privacy.open_swaps() == left


@pytest.mark.usefixtures("sound")
def test_the_command_exits_0_only_if_no_check_is_bad(
    home: Path, monkeypatch: pytest.MonkeyPatch, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = command("doctor", "--privacy")
    assert {each.name: each.says for each in privacy.checks() if each.verdict != "ok"} == {}
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()] == [["ok", name] for name in privacy.CHECKS]
    monkeypatch.delenv("WINNOW_OFFLINE")
    assert command("doctor", "--privacy")[0] == 0  # a verdict that asks the user to look is not a failure
    monkeypatch.setenv("WINNOW_DOOR", "open")
    with pytest.raises(SystemExit) as end:
        command("doctor", "--privacy", "--json")
    assert end.value.code == 2
    checks = {each["name"]: each for each in json.loads(capsys.readouterr().out)["checks"]}
    assert list(checks) == list(privacy.CHECKS)
    assert checks["door"]["verdict"] == "bad"

    def refuse(path: Path, mode: int) -> None:
        raise PermissionError(1, "Operation not permitted", str(path))

    shared_home(home).chmod(0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    private()  # must not fail in a home of another account
