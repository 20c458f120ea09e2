"""What an `audit` run says of each row of a corpus.

artifacts/audit/    see `corpora.hygiene.Audit.save`
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.corpora.hygiene import Audit
from core.runs.run import Run

_FOLDER = "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Result of an `audit` run.

    flags: rows by flag. leak_rules, near_rules: leaked rows and near duplicates by the rule that found them.
    sentences: rows looked through.
    """

    flags: Mapping[str, int]
    leak_rules: Mapping[str, int]
    sentences: int
    near_rules: Mapping[str, int] = field(default_factory=dict)  # results of older versions have none


def write(run: Run, audit: Audit) -> None:
    """One byte of flags and one cluster number a row."""
    audit.save(run.artifacts / _FOLDER)


def read(run: Run) -> Audit:
    """Read what `write` wrote."""
    return Audit.load(run.artifacts / _FOLDER)
