"""Installing, listing and bundling the packages: .ci/install, .ci/sbom and .ci/bundle, without a network."""

import hashlib
import importlib.util
import json
import re
import subprocess
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.conftest import ROOT


def script(name: str) -> Any:
    """Import a script of .ci as a module."""
    loader = SourceFileLoader(f"ci_{name}", str(ROOT / ".ci" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    module: ModuleType = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("pip_says", "locked", "code", "sentence", "calls"),
    [
        (None, "", 0, "", ["--require-hashes", "some.txt", "--editable"]),
        (None, "0", 0, "", ["some.txt", "--editable"]),
        (
            "ERROR: No matching distribution found for x==1",
            "",
            0,
            "the ranges",
            ["--require-hashes", "some.txt", "--editable"],
        ),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", "", 1, "is not the locked one", ["--require-hashes"]),
    ],
)
def test_the_lock_is_tried_first_and_another_hash_is_never_installed(
    pip_says: str | None,
    locked: str,
    code: int,
    sentence: str,
    calls: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install, called = script("install"), list[list[str]]()

    def run(words: list[str], **_: object) -> SimpleNamespace:
        called.append(words)
        failed = pip_says is not None and "--require-hashes" in words
        return SimpleNamespace(returncode=int(failed), stdout="", stderr=pip_says or "")

    monkeypatch.setattr(install, "fits", lambda line: True)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr("sys.argv", ["install", "some.txt"])
    monkeypatch.setenv("LOCKED", locked)
    assert install.main() == code
    assert [next(word for word in calls if word in words) for words in called] == calls
    assert sentence in "".join(capsys.readouterr())


def test_a_lock_for_another_platform_is_ignored() -> None:
    install = script("install")
    first = (ROOT / "requirements.lock").read_text(encoding="utf-8").split("\n", 1)[0]
    made = re.search(r"Python (\d+\.\d+)\.\S*, (\w+) (\w+)\.", first)
    assert made
    install.platform = SimpleNamespace(
        python_version_tuple=lambda: (*made[1].split("."), "99"), system=lambda: made[2], machine=lambda: made[3]
    )
    assert install.fits(first)
    install.platform.machine = lambda: "riscv64"
    assert not install.fits(first)


def test_the_bill_of_materials_follows_cyclonedx() -> None:
    document = script("sbom").bill()
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", document["serialNumber"])
    refs = [each["bom-ref"] for each in document["components"]]
    assert len(refs) == len(set(refs))
    for each in document["components"]:
        assert each["type"] in ("library", "machine-learning-model")
        assert each["name"]
        (one,) = each["licenses"]
        assert one.get("expression") or one["license"].get("id") or one["license"]["name"]
        assert all(re.fullmatch("[0-9a-f]{64}", digest["content"]) for digest in each.get("hashes", ()))
    assert {"torch", "transformers", "streamlit", "minilm"} <= {each["name"] for each in document["components"]}
    assert {ref for each in document["dependencies"] for ref in (each["ref"], *each["dependsOn"])} <= {*refs, "winnow"}
    text = script("sbom").licenses(document)
    assert len(text.splitlines()) == len(refs)
    assert "not stated" not in text
    json.dumps(document)


def test_a_bundle_is_complete_and_its_script_uses_no_network(tmp_path: Path) -> None:
    bundle, folder = script("bundle"), tmp_path / "winnow-bundle"

    def wheels(into: Path) -> None:
        (into / "x-1-py3-none-any.whl").write_bytes(b"a wheel")

    bundle.gather(folder, wheels)
    bundle.sums(folder)
    assert {"app.py", "core", "pages", "requirements.txt", "assets"} <= {
        path.name for path in (folder / "winnow").iterdir()
    }
    start = (folder / "start.sh").read_text(encoding="utf-8")
    subprocess.run(["sh", "-n", str(folder / "start.sh")], check=True)
    assert "--no-index" in start
    assert "--isolated" in start
    assert "://" not in start
    assert start.index("sha256sum --check") < start.index("-m venv") < start.index("pip") < start.index("app.py")
    lines = [line.split("  ", 1) for line in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    sums = {name: digest for digest, name in lines}
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    assert set(sums) == files
    assert sums["wheels/x-1-py3-none-any.whl"] == hashlib.sha256(b"a wheel").hexdigest()
    assert bundle.unlocked(folder / "wheels") == ["x-1-py3-none-any.whl"]
