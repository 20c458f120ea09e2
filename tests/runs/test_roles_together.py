"""Two windows give parts at the same time: none is lost."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from core.corpora.corpus import Corpus
from core.facade import corpora

ROOT = Path(__file__).resolve().parents[2]
GIVE = """
import sys
from core.facade import corpora
print("ready", flush=True)
sys.stdin.readline()
for i in range(200):
    mark = sys.argv[2 + i % 2]
    corpora.set_role(sys.argv[1], mark)
    assert corpora.roles()[sys.argv[1]] == mark, "the other's part was written over this one"
"""


def test_two_processes_that_give_one_part_each_lose_neither(seal: Callable[..., Corpus], home: Path) -> None:
    marks = [seal([f"sentence {i} ."], f"c{i}").fingerprint for i in range(4)]
    command = [sys.executable, "-c", GIVE]
    work = [
        subprocess.Popen([*command, role, *marks[:2]], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for role in ("task", "domain")
    ]
    for process in work:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
    for process in work:  # both now, however long either took to begin
        assert process.stdin
        process.stdin.write(b"\n")
        process.stdin.flush()
    corpora.set_role("train", marks[2])
    corpora.set_role("dev", marks[3])
    assert [process.communicate(timeout=120) and process.returncode for process in work] == [0, 0]
    assert corpora.roles() == {"task": marks[1], "domain": marks[1], "train": marks[2], "dev": marks[3]}
