"""python -m tests.lab.torture: disturb runs of every kind until the time is up. Each trial prints a JSON line.

A trial disturbs one run one to three times in one way, then lets it finish. To repeat a trial, give its seed:
--kinds KIND --ways WAY --seed SEED --trials 1. With the --out of an earlier call, the command continues after its
trials. With the --log of an earlier call, even from another machine, the trials in it count too, and the least tried
pairs of kind and way come first. At the end, the command prints a table.
"""

import argparse
import json
import os
import platform
import random
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.files import append_line
from core.kinds import KINDS
from tests.fork_server import ForkServer
from tests.lab.torture import kinds
from tests.lab.torture.trial import Calm, Stuck, Trial, undisturbed
from tests.lab.torture.ways import WAYS

MACHINE = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
MOST = 3  # disturbances per trial
BAD = ("lost", "different", "stuck")
KILLS = {"kill", "kill-loaded", "kill-writing", "torn", "clock-back", "app-killed", "server-killed"}  # by SIGKILL
Record = dict[str, Any]


class Torture:
    """Trials of some kinds in some ways, in one folder. log: file for the records; default: log.jsonl in the folder."""

    def __init__(
        self, folder: Path, fork_server: ForkServer, names: Sequence[str], ways: Sequence[str], log: Path | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.fork_server, self.names, self.ways = folder, fork_server, names, ways
        self.log = log or folder / "log.jsonl"
        self._calm_file = folder / "calm.json"
        known = json.loads(self._calm_file.read_text()) if self._calm_file.exists() else {}
        self.calm = {kind: Calm(**fields) for kind, fields in known.items()}
        kinds.made_in(folder, names)

    def records(self) -> list[Record]:
        """Return the records of all trials so far."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def trial(self, seed: int, kind: str, way: str) -> Record:
        """Disturb a run, see how it ends, and append a record to the log."""
        if kind not in self.calm:
            self.calm[kind] = undisturbed(self.fork_server, self.folder, kind)
            self._calm_file.write_text(json.dumps({kind: asdict(calm) for kind, calm in self.calm.items()}))
        lots, since, struck = random.Random(f"{seed} {kind} {way}"), time.monotonic(), 0
        trial = Trial(self.fork_server, self.folder, kind, self.calm[kind], lots)
        try:
            for _ in range(lots.randint(1, MOST)):
                struck += WAYS[way](trial)
                trial.rest()
            became, why = trial.ended()
        except Stuck as error:
            became, why = "stuck", str(error)
        about = {"date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", "machine": MACHINE}
        record = {**about, "seed": seed, "kind": kind, "way": way, "struck": struck, "became": became, "why": why}
        record |= {"seconds": round(time.monotonic() - since, 2)}
        append_line(self.log, json.dumps(record).encode())
        return record

    def until(self, deadline: float, trials: int, seed: int) -> None:
        """Run trials until the time is up, always of the least tried pair of kind and way."""
        records = self.records()
        tried = Counter((record["kind"], record["way"]) for record in records)
        seed = max((record["seed"] + 1 for record in records), default=seed)
        pairs = [(kind, way) for way in self.ways for kind in self.names]
        for _ in range(trials):
            if time.monotonic() > deadline:
                return
            pair = min(pairs, key=lambda pair: (tried[pair], random.Random(f"{seed} {pair}").random()))
            tried[pair] += 1
            try:
                record = self.trial(seed, *pair)
            except AssertionError as error:
                print(error, file=sys.stderr)
                pairs = [each for each in pairs if each[0] != pair[0]]
                continue
            print(json.dumps(record), file=sys.stderr, flush=True)
            seed += 1


def table(records: Iterable[Record]) -> str:
    """Return a Markdown table of the disturbances that took effect, by kind and way, with bad trials in brackets."""
    struck, bad = defaultdict(Counter), Counter[tuple[str, str]]()  # type: ignore[var-annotated]
    total = Counter[str]()
    for record in records:
        struck[record["kind"]][record["way"]] += record["struck"]
        total[record["became"]] += 1
        total["struck"] += record["struck"]
        total["kills"] += record["struck"] * (record["way"] in KILLS)
        bad[record["kind"], record["way"]] += record["became"] in BAD
    ways = [way for way in WAYS if any(way in counts for counts in struck.values())]
    lines = ["| kind | " + " | ".join(ways) + " |", "|---" * (len(ways) + 1) + "|"]
    for kind in sorted(struck):
        cells = [f"{struck[kind][way]}" + (f" ({bad[kind, way]} bad)" if bad[kind, way] else "") for way in ways]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    last = f"{total['struck']} disturbances, {total['kills']} of them kills, {total['alike']} runs alike"
    return "\n".join([*lines, "", ", ".join([last, *(f"{total[name]} {name}" for name in BAD)])])


def main() -> int:
    """Run the command. Return 1 if a run was lost, different or stuck."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.torture", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--trials", type=int, default=1 << 30, help="largest number of trials")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("/tmp/winnow-torture"))
    parser.add_argument(
        "--log", type=Path, help="append the trials to this file, a line each, instead of to log.jsonl in --out"
    )
    options = parser.parse_args()
    with ForkServer("tests.lab.torture.warm") as fork_server:
        torture = Torture(
            options.out.absolute(), fork_server, options.kinds.split(","), options.ways.split(","), log=options.log
        )
        try:
            torture.until(time.monotonic() + 60 * options.minutes, options.trials, options.seed)
        except KeyboardInterrupt:
            traceback.print_exc()
    records = torture.records()
    print(table(records))
    return int(any(record["became"] in BAD for record in records))


if __name__ == "__main__":
    sys.exit(main())
