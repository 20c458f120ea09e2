"""Read and write files at a remote address (s3://, gs://, hdfs:// or file://) with pyarrow.

pyarrow finds keys, regions and endpoints in the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL), in the cloud's own
configuration files, or in the address (s3://bucket/file?region=eu-central-1). Winnow does not store the address. It
imports a copy of the file, as with an upload.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from core.config import offline
from core.errors import PathError, ResourceError
from core.paths import confined

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

SCHEMES = ("s3", "gs", "gcs", "hdfs", "viewfs", "file")
_ADDRESS = re.compile(rf"({'|'.join(SCHEMES)})://", re.IGNORECASE)
# Matches the secret parts of an address: a key before the bucket, and options after the path. A key may contain a slash
# that was not escaped.
_SECRET = re.compile(r"//[^/@?]*:[^?]*@|//[^/@]*@|\?.*")
# Beginnings of addresses in Google Cloud Storage; an address of a public bucket begins with gs://anonymous@.
_GOOGLE = re.compile(r"gc?s://(?!anonymous@)", re.IGNORECASE)
# File systems in which a file's folder must exist before the file is written.
_FOLDERS = ("local", "hdfs")
# Number of bytes copied at a time.
BLOCK = 1 << 22


def is_address(text: str) -> bool:
    """Return True if `text` is a remote address, not a path."""
    return bool(_ADDRESS.match(text))


def named(address: str) -> str:
    """Return an address without keys and options, safe to show."""
    return _SECRET.sub(lambda match: "//" if match[0].startswith("//") else "", address)


def fetch(address: str, folder: Path, say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Copy the file at `address`, or all files of a folder there, into `folder` and return the copies.

    say: called with a message for each file. Errors: PathError if there is no file or the address cannot be reached;
    ResourceError if the disk is full.
    """
    system, path = _system(address)
    folder.mkdir(parents=True, exist_ok=True)
    copies = []
    for info in _files(system, path, address):
        copy = _free(_path_below(folder, PurePosixPath(info.path), PurePosixPath(path)))
        say(f"fetching {copy.name}" + (f" ({info.size:,} bytes)" if info.size else ""))
        with copy.open("wb") as out:
            try:
                with system.open_input_stream(info.path, compression=None) as stream:
                    while block := stream.read(BLOCK):
                        try:
                            out.write(block)
                        except OSError as error:
                            why = f"cannot be stored in {copy.parent} ({error.strerror})"
                            raise ResourceError(f"{copy.name}: {why}; free some space there.") from error
            except OSError as error:
                raise _unreachable(address, error) from error
        copies.append(copy)
    return copies


@contextmanager
def outgoing(output: str) -> Iterator[Path]:
    """Yield the local path to write for `output`. If `output` is an address, upload the files after the block.

    Errors: PathError if the address cannot be reached.
    """
    if not is_address(output):
        yield Path(output)
        return
    system, path = reach(output)
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        local = Path(folder) / PurePosixPath(path).name
        yield local
        files = [local] if local.is_file() else sorted(file for file in local.rglob("*") if file.is_file())
        for file in files:
            target = path if file == local else f"{path}/{file.relative_to(local).as_posix()}"
            try:
                if system.type_name in _FOLDERS:
                    system.create_dir(str(PurePosixPath(target).parent))
                with file.open("rb") as source, system.open_output_stream(target) as stream:
                    shutil.copyfileobj(source, stream, BLOCK)
            except OSError as error:
                raise _unreachable(output, error) from error


def reach(address: str) -> "tuple[FileSystem, str]":
    """Return the file system of an address, and the path in it. Errors: PathError if a test request fails."""
    system, path = _system(address)
    try:
        system.get_file_info(path)
    except OSError as error:
        raise _unreachable(address, error) from error
    return system, path


def _system(address: str) -> "tuple[FileSystem, str]":
    """Return the file system of an address, and the path in it.

    Errors: PathError in the app (`confined`), on an offline machine except for file://, without keys of Google, and if
    pyarrow refuses the address.
    """
    from pyarrow.fs import FileSystem  # imported here, because it loads libraries for cloud storage

    if confined():
        raise PathError("Remote addresses can be used only on the command line; choose a file.")
    if offline() and not address.lower().startswith("file:"):
        raise PathError(f"{named(address)}: this machine is set to stay offline (WINNOW_OFFLINE); choose a file.")
    # If keys are missing, pyarrow would ask a metadata host of Google or Amazon, which the user did not name.
    if _GOOGLE.match(address) and not _has_google_keys():
        raise PathError(
            f"{named(address)}: this account has no keys of Google; run `gcloud auth application-default login`, or "
            "name a key file in GOOGLE_APPLICATION_CREDENTIALS. A public bucket needs none: write gs://anonymous@BUCKET."
            " Within Google's cloud, set GCE_METADATA_ROOT=metadata.google.internal."
        )
    os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
    try:
        system, path = FileSystem.from_uri(address)
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's errors are subclasses of these
        raise _unreachable(address, error) from error
    return system, path


def _has_google_keys() -> bool:
    """Return True if pyarrow finds keys of Google, or if the user has named the host that has them."""
    kept = Path.home() / ".config" / "gcloud" / "application_default_credentials.json"
    return any(map(os.environ.get, ("GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_ROOT"))) or kept.exists()


def _files(system: "FileSystem", path: str, address: str) -> "list[FileInfo]":
    from pyarrow.fs import FileSelector, FileType

    try:
        info = system.get_file_info(path)
        if info.type == FileType.Directory:
            inside = system.get_file_info(FileSelector(path, recursive=True))
            return sorted((each for each in inside if each.type == FileType.File), key=lambda each: each.path)
    except OSError as error:
        raise _unreachable(address, error) from error
    if info.type != FileType.File:
        raise PathError(f"{named(address)}: there is no such file or folder; check the address.")
    return [info]


def _path_below(folder: Path, path: PurePosixPath, top: PurePosixPath) -> Path:
    """Return the local path for a copy of a remote file. The copy is always directly in `folder`.

    path: path of the remote file. top: remote file or folder that the user named.
    """
    inside = path.relative_to(top) if path != top else PurePosixPath(path.name)
    name = "_".join(part for part in inside.parts if part not in ("..", ".", "/"))
    return folder / name


def _free(path: Path) -> Path:
    """Return `path`; if a file with this path exists, add a number before the extension.

    Names can collide, because a/b.txt and a_b.txt get the same local name.
    """
    free, n = path, 2
    while free.exists():
        free, n = path.with_name(f"{path.stem} ({n}){path.suffix}"), n + 1
    return free


def _unreachable(address: str, error: Exception) -> PathError:
    reason = str(error).splitlines()[0].replace(address, named(address))
    keys = (match for match in _SECRET.findall(address) if match.startswith("//"))
    for part in re.split(r"[/:@]", "".join(keys)):  # the reason may quote a part of the key
        reason = reason.replace(part, "...") if len(part) > 3 else reason
    return PathError(f"{named(address)}: cannot be reached ({reason[:300]}); check the address and its keys.")
