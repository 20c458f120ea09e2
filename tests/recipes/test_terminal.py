"""Nothing that came from outside is obeyed by the terminal that shows it, on any command."""

import json
import re
from pathlib import Path

import pytest

from core.corpora.corpus import Corpus
from core.errors import InputError
from core.importing import view as corpora
from core.projects import runs
from core.projects.home import store
from core.runs import worker
from core.runs.context import RunContext
from tests.conftest import Command, Seal, sentence

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
FORGED = "FORGED LINE"
EVIL = (
    f"a\x1b]52;c;ZXZpbA==\x07b\x9b2Jc\x1b[2K\x1b[1A\rd\n{FORGED}\u202ee"  # clipboard, clear, go up, a line of its own
)


@pytest.fixture
def hostile(seal: Seal) -> Corpus:
    """A labelled corpus whose name and types a data set chose, as a version without this rule sealed it."""
    made = seal([sentence("Ada sues", [(0, 1, f"T{EVIL}")]), sentence("Bob pays")], "named later", labelled=False)
    labelled = seal([sentence("Ada sues", [(0, 1, f"T{EVIL}")])], "labels", labelled=True)
    for corpus in (made, labelled):
        about = json.loads((corpus.path / "about.json").read_text(encoding="utf-8"))
        name = f"{corpus.name}{EVIL}"
        (corpus.path / "about.json").write_text(json.dumps({**about, "names": [name]}), encoding="utf-8")
    return corpora.find(labelled.fingerprint)


def a_run(state: str) -> str:
    """A run that notes and says hostile things."""
    made = store().create("audit", {"note": EVIL}, {}, seed=None, versions={}, key=state)

    def work(context: RunContext) -> dict[str, object]:
        context.stage(f"reading {EVIL}")
        context.note(f"a note of {EVIL}")
        if state == "failed":
            raise InputError(f"{EVIL}: is wrong.")
        return {"types": {EVIL: 3}, "name": EVIL, "notes": [EVIL]}

    try:
        worker.execute(made, work)
    except InputError:
        assert state == "failed"
    return made.id


def safe(printed: str) -> None:
    """Carriage returns are our own, where a line begins over what progress left."""
    for line in printed.split("\n"):
        assert not OBEYED.search(line.removeprefix("\r")), repr(line)
        assert not line.removeprefix("\r").startswith(FORGED)


@pytest.mark.parametrize("as_json", [(), ("--json",)], ids=["text", "json"])
def test_no_command_hands_a_name_to_the_terminal(
    command: Command, hostile: Corpus, tmp_path: Path, as_json: tuple[str, ...]
) -> None:
    file = tmp_path / f"f{EVIL}.conll".replace("/", "")
    file.write_text(f"Ada\tB-T{EVIL.split(maxsplit=1)[0]}\nsues\tO\n\n", encoding="utf-8")
    done, failed = a_run("done"), a_run("failed")
    said = []
    for words, expected in (
        (("corpus", "list"), 0),
        (("corpus", "show", hostile.fingerprint), 0),
        (("runs", "list"), 0),
        (("runs", "show", done), 0),
        (("runs", "show", failed), 0),
        (("corpus", "add", file), 0),
        (("corpus", "add", f"{file}x"), 2),
        (("corpus", "show", EVIL), 2),
        (("corpus", f"--{EVIL}"), 2),
        (("corpus", "audit", "--task", hostile.fingerprint, "--domain", hostile.fingerprint), 0),
        (
            (
                "similarity",
                "--target",
                hostile.fingerprint,
                "--source",
                corpora.listed()[0].fingerprint,
                "--measure",
                "tvc",
                "--min-source-tokens",
                "1",
            ),
            0,
        ),
        (("doctor",), 0),
        (("corpus", "remove", hostile.fingerprint), 0),
    ):
        code, out, err = command(*words, *as_json)
        assert code == expected, (words, err)
        said.append(out)
        safe(out)
        safe(err)
    if as_json:
        names = {row["name"] for row in json.loads(said[0])["corpora"]}
        assert f"labels{EVIL}" in names  # whoever parses it gets it as it is
        assert json.loads(said[3])["result"]["name"] == EVIL


def test_a_name_is_sealed_without_what_a_terminal_obeys(seal: Seal, tmp_path: Path) -> None:
    assert not OBEYED.search(seal(["A sentence ."], f"another {EVIL}").name)
    file = tmp_path / f"{EVIL.replace('/', '')}.txt"
    file.write_text("Another sentence .\n")
    named = runs.execute("add", {"path": str(file)}).result()["name"]
    assert not OBEYED.search(named)
    assert named.startswith(corpora.proposed_name(file))  # numbered where the name is taken
