"""`intake`: import several files as the corpora of a project, each with its role.

A separate `add` run reads the files of each role, so that an error affects only one role. If labelled files must be
divided, a `split` run follows. Roles are assigned last. A run that was killed before this step assigns them when it is
resumed.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import TypeAdapter, model_validator

from core.config import Config, option
from core.corpora import roles
from core.corpora.formats.detect import FileKind, kind_of
from core.corpora.formats.ledger import TAGGED, Ledger
from core.corpora.looks import files_of
from core.corpora.proposal import DIVIDE, FILE_ROLES, SOURCE, apart, remaining
from core.corpora.readers import ReadOptions, proposed_scheme, sniff
from core.corpora.uploads import forget_unpacked, keep_only, still_needed
from core.errors import ConfigError, InputError, PathError, ReadError, ResourceError, WinnowError
from core.files import read_object, write_atomic
from core.importing.add import proposed_name
from core.importing.result import AddResult, IntakeResult, SplitResult, Taken, roles_in_words
from core.kind import About, Job, Kind, as_json
from core.runs.result import read
from core.runs.run import Run
from core.shown import count

# File with the result. A resumed run reads it, because the upload may be deleted already.
BEFORE = "taken.json"
SHARES = {"train": 70.0, "dev": 10.0, "test": 20.0}
# Minimum number of documents for a division by documents. A corpus with fewer is divided by sentences.
_DOCUMENTS = 10
_UNREADABLE = (ReadError, PathError, ResourceError)


class IntakeConfig(Config):
    """Options of an `intake` run: the files of each role, named as `corpus propose` lists them."""

    path: str = option(..., "A file, a folder of files, or a zip archive of them.")
    others: tuple[str, ...] = option((), "Further files, folders or archives.")
    task: tuple[str, ...] = option(
        (), "Task corpus (T_C): text like the text that you will label. By default, the training set's text."
    )
    domain: tuple[str, ...] = option((), "Domain corpus (D_C), to select from.")
    train: tuple[str, ...] = option((), "Training set: labelled sentences (L_C train).")
    dev: tuple[str, ...] = option((), "Dev set: labelled sentences (L_C dev).")
    test: tuple[str, ...] = option((), "Test set: labelled sentences (L_C test), held out.")
    divide: tuple[str, ...] = option(
        (), "Labelled files to divide into training, dev and test set. A set for which files are given is left out."
    )
    source: tuple[str, ...] = option((), "Further sources, to compare. Each becomes a corpus without a role.")
    documents: tuple[str, ...] = option(
        (), "Roles (task, domain), or files of --source, whose rows are documents to split into sentences."
    )
    encoding: str = option(
        "utf-8", "Encoding of files that are not in UTF-8, such as cp1252. UTF-16 is recognised by its byte order mark."
    )
    annotator: str = option("", "Annotator whose labels are kept if several annotators labelled a text differently.")
    move: bool = option(False, "Delete the files after the import (used for uploads, which are copies).")

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if not self.files:
            raise ValueError("no file has a role; give at least one file a role")
        if self.divide and self.train:
            raise ValueError("divide makes a training set, but train is given too; leave one of them out")
        names = [name for files in self.files.values() for name in files]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]} has two roles; give it one role")
        if unknown := [name for name in self.documents if name not in (*self.files, *names)]:
            raise ConfigError(f"documents: {unknown[0]} is neither a role with files nor one of these files; give one.")
        return self

    @property
    def files(self) -> dict[str, tuple[str, ...]]:
        """Files of each role, as {role: files}, without roles that have no files."""
        return {role: files for role in FILE_ROLES if (files := getattr(self, role))}


def run(config: IntakeConfig, job: Job) -> IntakeResult:
    """Import the files of every role; no artifacts.

    Errors: the first error, if the files of no role can be imported.
    """
    before = job.context.run.chunks / BEFORE
    # The file exists if an earlier attempt was killed after the imports.
    known = read_object(before)
    result = _taken(config, job) if known is None else TypeAdapter(IntakeResult).validate_python(known)
    if known is None:
        write_atomic(before, json.dumps(as_json(result), ensure_ascii=False).encode())
    # Delete the uploaded files, except those that failed: the user may import them again with other options.
    if config.move:
        failed = [each.part for each in result.parts if each.problem]
        keep_only(Path(config.path), job.home, [name for role in failed for name in config.files[role]])
    for path in (config.path, *config.others):
        forget_unpacked(Path(path))
    return result


def _taken(config: IntakeConfig, job: Job) -> IntakeResult:
    if config.move:
        still_needed(Path(config.path))
    listing = files_of([Path(config.path), *map(Path, config.others)])
    by_name = {name: file for file, name in listing.names.items()}
    parts, corpora, problems = list[Taken](), dict[str, str](), list[WinnowError]()
    pieces = _pieces(config)
    for number, (role, names) in enumerate(pieces, 1):
        job.context.part(number, len(pieces), role)
        taken = Taken(part=role, files=len(names), run="")
        try:
            child = _imported(config, job, role, {name: _file(by_name, name) for name in names})
            taken = replace(taken, run=child.id)
            corpora |= _by_role(job, role, read(child, AddResult).corpus, remaining(config.files))
        except (InputError, ResourceError) as error:
            # An OSError is a problem of the disk and not of the file.
            if isinstance(error.__cause__, OSError):
                raise
            problems.append(error)
            taken = replace(taken, problem=str(error))
            job.context.note(f"{role}: {error}")
        parts.append(taken)
    if problems and all(each.problem for each in parts):
        raise problems[0]
    task_of_train = "task" not in config.files and "train" in corpora and _is_of_train(roles.read(job.home))
    # The training set becomes T_C. Dev and test sentences must not be part of T_C.
    if task_of_train:
        corpora["task"] = corpora["train"]
    here = {corpus.fingerprint for corpus in job.library.list()}
    given = {role: mark for role, mark in corpora.items() if mark in here}
    roles.give(job.home, given)
    return IntakeResult(parts=parts, roles=sorted(given, key=FILE_ROLES.index), task_of_train=task_of_train)


def _pieces(config: IntakeConfig) -> list[tuple[str, tuple[str, ...]]]:
    """Return (role, files) for each corpus to import: one corpus per role, and one for each further source."""
    return [
        (role, names) for role, files in config.files.items() for names in (apart(files) if role == SOURCE else [files])
    ]


def _is_of_train(held: Mapping[str, str]) -> bool:
    """Return True if the project has no T_C, or if its T_C is its training set. held: {role: fingerprint}."""
    return "task" not in held or held["task"] == held.get("train")


def _file(by_name: Mapping[str, Path], name: str) -> Path:
    if name not in by_name:
        known = ", ".join(list(by_name)[:8])
        raise ConfigError(f"{name}: this file is not among those to import; choose one of them ({known}).")
    return by_name[name]


def _imported(config: IntakeConfig, job: Job, role: str, named: Mapping[str, Path]) -> Run:
    first, *others = named.values()
    options: dict[str, object] = {"path": str(first), "others": tuple(map(str, others)), "names": tuple(named)}
    options["encoding"] = config.encoding
    options["split"] = role in config.documents or not named.keys().isdisjoint(config.documents)
    # A file such as train.conll would give a set named "train-train".
    if role == DIVIDE and proposed_name(first).lower() in roles.ROLES:
        options["name"] = "labels"
    kinds = _readable(named, config.encoding)
    options["scheme"] = _scheme(job, [(named[name], kind) for name, kind in kinds.items()], config.encoding)
    if config.annotator and kinds:
        here, *further = (named[name] for name in kinds)
        read = ReadOptions(others=tuple(map(str, further)), names=tuple(kinds), encoding=config.encoding)
        agreement = sniff(here, read).agreement
        if agreement and config.annotator in agreement.annotators:
            options["annotator"] = config.annotator
    return job.child("add", **options)


def _readable(named: Mapping[str, Path], encoding: str) -> dict[str, FileKind]:
    """Return {name: kind} of the readable files. The `add` run leaves out the other files and reports them."""
    kinds = dict[str, FileKind]()
    for name, file in named.items():
        with suppress(*_UNREADABLE):
            kinds[name] = kind_of(file, ReadOptions(encoding=encoding))
    return kinds


def _scheme(job: Job, files: Sequence[tuple[Path, FileKind]], encoding: str) -> str:
    """Return a label scheme that fits all tags of the files; "auto" if none fits, or if no file has tags.

    All candidate schemes give the same spans, so the first is taken. The `add` run reports all errors.
    """
    tagged = [(file, kind) for file, kind in files if kind.format in TAGGED]
    if tagged:
        job.context.stage("checking the label scheme")
        ledger = Ledger(ReadOptions(encoding=encoding), tick=lambda _: job.context.check())
        with suppress(*_UNREADABLE):
            found = proposed_scheme([file for file, _ in tagged], [kind for _, kind in tagged], ledger)
            return next(iter(found.candidates), "auto")
    return "auto"


def _by_role(job: Job, role: str, corpus: str, missing: Sequence[str]) -> dict[str, str]:
    """Return {role: fingerprint} for an imported corpus, or for its parts if it must be divided; {} for a source.

    missing: roles without files. A corpus is divided into them by whole documents if it has at least `_DOCUMENTS` of
    them and no part is then empty; otherwise by sentences.
    """
    if role == SOURCE:
        return {}
    if role != DIVIDE:
        return {role: corpus}
    if len(missing) == 1:
        return {missing[0]: corpus}
    docs = job.library.find(corpus).column("doc")
    by_document = docs.null_count == 0 and len(docs.unique()) >= _DOCUMENTS
    shares = {"shares": tuple(SHARES[name] for name in missing), "names": tuple(missing)}
    try:
        child = job.child("split", corpus=corpus, by="document" if by_document else "sentence", **shares)
    except ConfigError:
        # A division by whole documents may leave a set empty. Then divide by sentences.
        if not by_document:
            raise
        child = job.child("split", corpus=corpus, by="sentence", **shares)
    return {each.name: each.corpus for each in read(child, SplitResult).parts}


def _outcome(result: IntakeResult, _: About) -> str:
    taken = [each.part for each in result.parts if not each.problem]
    return f"{len(taken)} of {count(len(result.parts), 'corpus', 'corpora')} imported: {roles_in_words(taken)}"


KIND = Kind(
    "intake",
    IntakeConfig,
    run,
    IntakeResult,
    title=lambda run: f"Import {count(sum(len(run.config[role]) for role in FILE_ROLES), 'file')}",
    outcome=_outcome,
    page="Corpora",
    opens=True,
    command=("corpus", "propose", "--use"),
    positional=("path", "others"),
    reuse=False,
)
