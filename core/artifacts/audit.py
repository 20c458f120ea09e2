"""What an `audit` run says of each row of a corpus.

artifacts/audit/    see `corpora.hygiene.Audit.save`
"""

from core.corpora.hygiene import Audit
from core.runs.run import Run

_FOLDER = "audit"


def write(run: Run, audit: Audit) -> None:
    """One byte of flags and one cluster number a row."""
    audit.save(run.artifacts / _FOLDER)


def read(run: Run) -> Audit:
    """Read what `write` wrote."""
    return Audit.load(run.artifacts / _FOLDER)
