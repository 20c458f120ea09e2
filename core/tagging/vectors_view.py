"""Word vectors of elsewhere that taggers can begin with."""

from collections.abc import Mapping

from core.encoders.vectors import ImportResult as ImportResult
from core.encoders.vectors import imports
from core.projects.home import store
from core.runs import result
from core.tagging.config import IMPORTED as IMPORTED


def imported() -> Mapping[str, ImportResult]:
    """Finished imports by their run's id, newest first."""
    return imports(store())


def import_result(run_id: str) -> ImportResult:
    """Result of a finished import. Errors: RunError."""
    return result.read(store().get(run_id), ImportResult)
