"""Imports by path stay under the allowed folders."""

import pytest

from core.corpora.paths import allowed_path, allowed_roots
from core.errors import PathError


def test_only_what_lies_under_a_root(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "root2"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "a.txt").write_text("a")
    (root / "link").symlink_to(outside / "a.txt")
    assert allowed_path(root / "a.txt", [root]) == (root / "a.txt").resolve()
    assert allowed_path(str(root / "x" / ".." / "a.txt").replace("/x/..", ""), [root]).name == "a.txt"
    for path in (outside / "a.txt", root / "link", root / ".." / "root2" / "a.txt", "/etc/passwd"):
        with pytest.raises(PathError, match="WINNOW_DATA_DIRS"):
            allowed_path(path, [root])
    for path in (root / "none", "a\0b", "~nobody-at-all/x"):
        with pytest.raises(PathError, match="no such file"):
            allowed_path(path, [root])


def test_folders_can_be_named(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("a")
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))
    monkeypatch.chdir("/usr")
    monkeypatch.delenv("WINNOW_DATA_DIRS", raising=False)
    with pytest.raises(PathError):
        allowed_path(tmp_path / "a.txt")
    monkeypatch.setenv("WINNOW_DATA_DIRS", f"/nowhere:{tmp_path}")
    assert tmp_path in allowed_roots()
    assert allowed_path(tmp_path / "a.txt") == (tmp_path / "a.txt").resolve()
