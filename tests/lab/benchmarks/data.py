"""The corpora in the folder beside the project, which benchmarks read in place."""

from pathlib import Path

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def sentences(path: Path) -> list[str]:
    """Return the sentences of a two-column file, with tokens joined by one blank."""
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [" ".join(line.split("\t")[0] for line in block.split("\n")) for block in blocks]
