"""The commands `audit`, `doctor` and `key`: who did what, what this machine has, who may come in."""

import sys
from datetime import datetime

import click

from core.cli.terminal import echo, echo_json, json_option, report
from core.projects import audit, cluster, door, machine, privacy

BAD = 2  # the exit code where a check is bad


@click.command("audit")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    help="From this day or moment on, UTC: 2026-11-22 or 2026-11-22T09:30:00.",
)
@json_option
def audit_list(since: datetime | None, as_json: bool) -> None:
    """List who did what, in every project: imports, looks, exports, removals and runs, oldest first.

    It is one log for all of them, whichever --project names: a removed project has its removal in it, and no line holds
    a project's name, which may be a client's.

    The log is audit.jsonl in the home; WINNOW_AUDIT=/a/path puts it elsewhere, WINNOW_AUDIT=off writes none.
    """
    path, lines = audit.lines(since)
    if spoilt := audit.spoilt():
        echo(f"note: {path}: {spoilt} of its lines cannot be read and are left out", err=True)
    if as_json:
        echo_json({"log": None if path is None else str(path), "lines": lines})
        return
    if path is None:
        echo("note: the audit log is off (WINNOW_AUDIT=off)", err=True)
    for line in lines:
        echo(_in_words(line))


def _in_words(line: audit.Line) -> str:
    what = [*line.get("corpora", ()), *line.get("runs", ())]
    words = [str(line.get(name, "?")) for name in ("time", "account", "action", "origin")]
    return f"{words[0]}  {words[1]:<12} {words[2]:<7} {words[3]:<13} {' '.join(map(str, what))}"


@click.command()
@click.option(
    "--privacy",
    "only_privacy",
    is_flag=True,
    help="Check who can read what is kept here; exits 2 where something is bad.",
)
@click.option("--on", help="Check a cluster, ray or ray:HOST:PORT: machines, bytes, privacy; exits 2 if refused.")
@json_option
def doctor(only_privacy: bool, on: str | None, as_json: bool) -> None:
    """Show what this machine has: versions, device, disk, the bundled encoder."""
    if on:
        there = cluster.checked(on)
        report(there.as_json(), as_json, there.lines)
        if there.bad:
            sys.exit(BAD)
        return
    if not only_privacy:
        report(machine.doctor(), as_json)
        return
    checks = privacy.checks()
    plain = [f"{check.verdict:<5} {check.name:<10} {check.says}" for check in checks]
    report({"checks": [check.as_dict() for check in checks]}, as_json, plain)
    if any(check.verdict == "bad" for check in checks):
        sys.exit(BAD)


@click.command()
@click.option("--port", default=8501, show_default=True, help="The app's port.")
@json_option
def key(port: int, as_json: bool) -> None:
    """The app's address with its key, for where the door cannot see who comes (WINNOW_DOOR)."""
    address = f"http://localhost:{port}/?key={door.key()}"
    report({"key": door.key(), "address": address}, as_json, address)
