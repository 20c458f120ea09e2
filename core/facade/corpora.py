"""Corpora: adding, looking at, giving roles."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from core.corpora import readers
from core.corpora.corpus import Corpus
from core.corpora.demo import SampleSet, sample_sets
from core.corpora.paths import allowed_path, allowed_roots
from core.facade.home import home, library
from core.files import write_atomic
from core.results import IntArray

ROLES = {
    "task": "T_C: what your task's text looks like, unlabelled",
    "domain": "D_C: the large corpus to select from",
    "train": "L_C train: labelled sentences",
    "dev": "L_C dev: labelled, for decisions",
    "test": "L_C test: labelled, held out",
}
_SAMPLES = Path(__file__).resolve().parents[2] / "assets" / "samples"


def corpora() -> list[Corpus]:
    """Every sealed corpus, newest first."""
    return library().list()


def corpus(reference: str) -> Corpus:
    """A corpus by name or fingerprint. Errors: CorpusError."""
    return library().find(reference)


def remove_corpus(reference: str) -> None:
    """Delete a corpus and forget its roles."""
    gone = corpus(reference).fingerprint
    library().remove(reference)
    _write_roles({role: fingerprint for role, fingerprint in roles().items() if fingerprint != gone})


def preview(path: Path, **options: Any) -> readers.Preview:
    """What a file looks like: format, text column, label scheme, first rows. Reads only its beginning.

    options: those of `ReadOptions`, where the first look was wrong (encoding, part, text_column).
    """
    return readers.sniff(path, readers.ReadOptions(**options))


def import_path(text: str) -> Path:
    """A path typed into the app. Errors: PathError if missing or outside the allowed folders."""
    return allowed_path(Path(text).expanduser(), import_roots())


def import_roots() -> Sequence[Path]:
    """The folders that the app may read corpora from (WINNOW_DATA_DIRS adds to them)."""
    return allowed_roots()


def spool(name: str, stream: BinaryIO) -> Path:
    """Copy an upload to disk at once, so that the server need not hold it; `add` deletes it when sealed."""
    folder = home() / "uploads" / os.urandom(6).hex()
    folder.mkdir(parents=True)
    target = folder / (Path(name).name or "upload")
    with target.open("wb") as file:
        shutil.copyfileobj(stream, file, 1 << 20)
    return target


def samples() -> Sequence[SampleSet]:
    """The sample sets that ship with Winnow."""
    return sample_sets(_SAMPLES)


def open_sample(name: str) -> None:
    """Add a sample set's corpora where they are not here yet and give them their roles."""
    sample = next(sample for sample in samples() if sample.name == name)
    given = {}
    for role in ROLES:
        path: Path = getattr(sample, role)
        reported = readers.ReadReport()
        options = readers.ReadOptions(scheme="iob2" if path.suffix == ".conll" else "auto")
        sentences = readers.read(path, options, report=reported)
        sealed = library().seal(
            sentences,
            name=f"{name}-{role}",
            origin={"file": path.name, "sample": name},
            labelled=role not in ("task", "domain"),
            describe=reported.as_dict,
        )
        given[role] = sealed.fingerprint
    _write_roles(given)


def roles() -> dict[str, str]:
    """{role: fingerprint} of the corpora in use; roles whose corpus is gone are left out."""
    try:
        stored = json.loads((home() / "roles.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    here = {corpus.fingerprint for corpus in corpora()}
    return {role: fingerprint for role, fingerprint in stored.items() if role in ROLES and fingerprint in here}


def set_role(role: str, reference: str | None) -> None:
    """Give a corpus a role (None: nobody has it)."""
    given = {other: fingerprint for other, fingerprint in roles().items() if other != role}
    _write_roles(given if reference is None else {**given, role: corpus(reference).fingerprint})


def _write_roles(given: Mapping[str, str]) -> None:
    home().mkdir(parents=True, exist_ok=True)
    write_atomic(home() / "roles.json", json.dumps(dict(given), indent=1).encode())


def token_lengths(reference: str) -> IntArray:
    """`(n,)` tokens a sentence."""
    return corpus(reference).lengths()


def describe(found: Corpus) -> dict[str, Any]:
    """A corpus in JSON, as `corpus add` and `corpus show` print it."""
    return {
        "corpus": found.fingerprint,
        "name": found.name,
        "sentences": found.n_sentences,
        "tokens": found.n_tokens,
        "types": dict(found.types),
        "labelled": found.labelled,
        **{key: found.origin[key] for key in ("repaired", "rejected") if key in found.origin},
    }
