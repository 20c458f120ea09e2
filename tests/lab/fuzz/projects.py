"""Corrupted projects: their folders, names that select one, exported project files, and folders of files to import."""

import io
import json
import os
import zipfile
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

from core import isolated
from core.corpora import looks
from core.corpora.library import Library
from core.corpora.proposal import FILE_ROLES, UNUSED, Look, propose
from core.errors import ProjectError, ReadError, WinnowError
from core.importing import intake_view as intake
from core.importing import view as corpora
from core.importing.intake import IntakeConfig
from core.importing.result import IntakeResult
from core.paths import home as project_home
from core.paths import within
from core.project_list import shared_home
from core.projects import pack, runs, unpack
from core.projects import view as projects
from core.projects.pack import LIST
from core.runs.result import read as read_result
from core.selection import choices
from tests import documents
from tests.conftest import sentence
from tests.homes import project_in
from tests.lab.fuzz.mutate import mutated, node
from tests.lab.fuzz.reading import put, said
from tests.lab.fuzz.seeds import SEEDS
from tests.lab.fuzz.stored import Stored, each, make_home, read_corpus, read_run, use
from tests.planted import contracts

_LOOKS = TypeAdapter(list[Look])
ARCHIVE = "project.zip"
PROJECTS = ("projects/*/project.json", "projects/*/roles.json", "projects/*/corpora/*/about.json")


def make_projects(folder: Path) -> None:
    """Create two projects and an archived one."""
    for name in ("Leases", "Zo\u00eb's wills", "Old"):
        project = projects.new(name)
        use(project.folder)
        make_home(project.folder)
        use(folder)
    projects.archive("Old")


def read_projects(folder: Path) -> None:
    """Read what the project switch, the project page and the command line need."""
    listed = projects.listed()
    assert len(listed) == 3
    assert len({project.slug for project in listed}) == 3
    each(projects.settle, projects.usual, projects.current, projects.unreadable, projects.at_work, projects.several)
    for project in listed:
        with within(project.slug):
            each(
                partial(projects.find, project.name),
                partial(pack.size_of, project),
                partial(pack.weights_of, project),
                *(partial(read_corpus, project_home(), corpus.fingerprint) for corpus in corpora.listed()),
                lambda: ([run.state() for run in runs.listed()], corpora.roles(), choices.in_use()),
                lambda: projects.typed("runs", "list"),
            )


class Projects(Stored):
    """Projects of a home with one corrupted file; afterwards mistyped names are looked up and used for new projects."""

    def __init__(self, shared: Path) -> None:
        super().__init__("projects", shared, make_projects, read_projects, *PROJECTS)

    def attempt(self, random: Random, folder: Path) -> str:
        outcome = super().attempt(random, folder)
        name = random.choice(("Leases", "leases", "Zo\u00eb's wills", "old")).encode()
        word = mutated(random, "word.txt", name)[:5_000].replace(b"\0", b"").decode("utf-8", "surrogateescape")
        for call in (projects.find, chosen, projects.new):
            try:
                call(word)
            except WinnowError as error:
                said(error, folder)
        return outcome

    attempt_apart = attempt


def chosen(word: str) -> None:
    """Look up a project by name, as a browser window and as the environment variable do."""
    with suppress(WinnowError), within(word):
        project_home()
    os.environ["WINNOW_PROJECT"] = word
    try:
        project_home()
    finally:
        del os.environ["WINNOW_PROJECT"]


class Archive:
    """An exported project, damaged or forged with matching checksums: it is imported completely or not at all."""

    name = "archive"

    def __init__(self, shared: Path) -> None:
        self._file = shared / "archive" / "project.zip"

    def prepare(self) -> None:
        """Create the intact file unless an earlier child has. Make imports read tables in this process."""
        vars(unpack)["refuse_forged"] = _looked_through
        if not self._file.exists():
            sound = project_in(self._file.with_name("home"))
            sound.mkdir(parents=True)
            use(shared_home(sound))
            make_home(sound)
            library = Library(sound)
            task, domain = (
                library.seal(map(sentence, contracts(n, seed=n)), name=f"c{n}", origin={}).fingerprint for n in (9, 30)
            )
            runs.execute("select", {"task": task, "domain": domain, "strategy": "random", "budget": "5"})
            projects.export(projects.current(), self._file)

    def attempt(self, random: Random, folder: Path) -> str:
        """Import a corrupted file. Errors: AssertionError if a refused import leaves files, or one lies elsewhere."""
        root = folder / "home"
        use(root)
        data = spoilt_archive(random, self._file.read_bytes())
        (given := folder / ARCHIVE).write_bytes(data)
        try:
            with given.open("rb") if random.random() < 0.5 else io.BytesIO(data) as file:
                made = projects.bring_in(file, ARCHIVE)
        except WinnowError as error:
            said(error, self._file)
            left = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"]
            assert not left, left[:3]
            return "refused"
        assert {path.name for path in folder.iterdir()} == {"home", ARCHIVE}
        assert [project.slug for project in projects.listed()] == [made.slug]
        use(root)
        before = {path.relative_to(root) for path in root.rglob("*")}
        try:
            read_project(made.folder)
        except WinnowError as error:
            said(error, self._file)
        anew = {path.relative_to(root) for path in root.rglob("*")} - before
        assert not anew, f"left: {sorted(anew)[:3]}"
        return "taken"

    attempt_apart = attempt


def _looked_through(folder: Path, label: str) -> None:
    """Do in this process what `unpack.refuse_forged` does in a separate one."""
    try:
        unpack.answer([str(path) for path in sorted(folder.rglob("*.parquet"))])
    except ReadError as error:
        raise ProjectError(f"{label}: a table in it cannot be read; export the project again.") from error


def read_project(folder: Path) -> None:
    """Read what pages show of an imported project."""
    each(
        projects.unreadable,
        corpora.roles,
        lambda: [(choices.title(one), choices.proposed_name(one)) for one in choices.in_use()],
        *(lambda corpus=corpus: read_corpus(folder, corpus.fingerprint) for corpus in corpora.listed()),
        *(lambda run=run: read_run(run) for run in runs.listed()),
    )


def spoilt_archive(random: Random, data: bytes) -> bytes:
    """Corrupt the whole file or one member. The list gets the member's new checksum, and is sometimes corrupted too."""
    if random.random() < 0.3:
        return mutated(random, ARCHIVE, data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members: dict[str, bytes] = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(members.pop(LIST))
    name = random.choice(list(members))
    inside = mutated(random, name, members.pop(name))
    if random.random() < 0.1:
        name = random.choice(
            ("../x.txt", "/x.txt", "runs/x", "corpora/x/y/z", "roles.json/x", name.upper(), name + "/")
        )
    members[name] = inside
    about["files"] = {
        each: [len(part), sha256(part).hexdigest(), about["files"].get(each, [0, "", 10**18])[2]]
        for each, part in members.items()
    }
    if random.random() < 0.3:
        about = node(random, about)
    written = json.dumps(about).encode("utf-8", "surrogatepass")
    return documents.zipped({**members, LIST: written})


class Intake:
    """A folder of a few files, some corrupted. A role is proposed for each; some folders are imported as proposed."""

    name = "intake"

    def prepare(self) -> None:
        """Read everything in this child process."""
        isolated._isolated.set()
        use(Path("/nowhere"))

    def attempt(self, random: Random, folder: Path) -> str:
        """Errors: AssertionError if a file has no role or two, or if roles differ from the result of the import."""
        use(folder / "home")
        (folder / "home").mkdir()
        pile = folder / "in"
        pile.mkdir()
        for i in range(random.randint(1, 5)):
            seed = random.choice(SEEDS[random.choice(list(SEEDS))])
            if random.random() < 0.5:
                put(seed, random, pile / f"{i}")
            else:
                (pile / f"{i}").mkdir()
                for name, data in seed.files.items():
                    (pile / f"{i}" / random.choice((name, f"train-{name}", f"test.{name}"))).write_bytes(data)
        try:
            return _taken_in(pile, random)
        except WinnowError as error:
            said(error, pile)
            return "refused"

    attempt_apart = attempt


def _taken_in(pile: Path, random: Random) -> str:
    seen = _LOOKS.validate_python(json.loads(json.dumps(looks.answer([str(pile)], "utf-8", None), ensure_ascii=False)))
    names = [each.name for each in seen]
    like = random.sample(names, 1) if names and random.random() < 0.2 else ()
    proposed = propose(seen, like)
    placed = sorted(name for row in proposed.rows for name in row.files)
    assert placed == sorted(names), (placed, names)
    assert {row.part for row in proposed.rows} <= {*FILE_ROLES, UNUSED}
    if not proposed.files():
        return "taken"
    options = intake.options(proposed, [pile])
    IntakeConfig.model_validate(options)
    if random.random() < 0.3:
        run = runs.execute("intake", options)
        result, roles = read_result(runs.get(run.id), IntakeResult), corpora.roles()
        assert set(result.roles) == set(roles), (result, roles)
        assert all(corpora.find(mark) for mark in roles.values())
    return "taken"
