"""The preview of a file, made in a process of its own."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.corpora.readers import Preview, ReadOptions, sniff
from core.isolated import Isolated

_process = Isolated(__name__, "import it by the command line, python -m core corpus add, if you trust it")
ready = _process.ready


def preview(path: Path, options: ReadOptions) -> Preview:
    """`readers.sniff`, at most 20 seconds long. Errors: as of that; ResourceError as of `Isolated.ask`."""
    from pydantic import TypeAdapter  # not for the other process, which should be up soon

    return TypeAdapter(Preview).validate_python(_process.ask(path.name, path=str(path), options=asdict(options)))


def answer(path: str, options: Mapping[str, Any]) -> dict[str, object]:
    """The other process's part."""
    return asdict(sniff(Path(path), ReadOptions(**options)))
