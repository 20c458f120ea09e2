"""Which folders an import by path may read."""

import os
from collections.abc import Sequence
from pathlib import Path

from core.errors import PathError


def allowed_roots() -> tuple[Path, ...]:
    """The user's home, the folder the app runs in, the project's own, and those in `WINNOW_DATA_DIRS`."""
    named = [Path(part) for part in os.environ.get("WINNOW_DATA_DIRS", "").split(os.pathsep) if part]
    return (Path.home(), Path.cwd(), Path(__file__).resolve().parents[2], *named)


def allowed_path(path: Path | str, roots: Sequence[Path] | None = None) -> Path:
    """`path` with every link and `..` resolved, if it exists and lies under one of `roots`.

    Errors: PathError otherwise. The command line does not ask; the app, which a browser drives, does.
    """
    try:
        real = Path(path).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        raise PathError(f"{str(path)[:200]!r}: there is no such file or folder; check the path.") from error
    folders = [root.resolve() for root in (allowed_roots() if roots is None else roots)]
    if not any(real.is_relative_to(folder) for folder in folders):
        shown = ", ".join(dict.fromkeys(str(folder) for folder in folders))
        raise PathError(
            f"{str(path)[:200]!r}: outside the allowed folders ({shown}); move it there or name its folder in"
            " WINNOW_DATA_DIRS."
        )
    return real
