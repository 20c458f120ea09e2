"""Encoders to start from: the bundled one, and those that can be fetched by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.models.offered import OFFERS, kept
from core.projects.home import store
from core.runs.store import Run

BUNDLED = "minilm"
MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """An encoder that Winnow knows by name.

    says: description for users. license: SPDX name. here: True if the encoder is on this machine. fetched: MB to
    download. size: MB on disk.
    """

    name: str
    says: str
    license: str
    here: bool
    fetched: int
    size: int


def newest_rank(train: str, dev: str) -> Run | None:
    """Return the newest `rank` run on these corpora (fingerprints), in any state; None if there is none."""
    of_these = (run for run in store().list("rank") if dict(run.manifest.inputs) == {"train": train, "dev": dev})
    return next(of_these, None)


def known() -> Sequence[Encoder]:
    """Return the bundled encoder, then those that can be fetched."""
    about = "all-MiniLM-L6-v2, bundled: English, uncased, 6 layers of width 384"
    return [Encoder(name=BUNDLED, says=about, license="Apache-2.0", here=True, fetched=0, size=91), *offered()]


def offered() -> Sequence[Encoder]:
    """Return the encoders that can be fetched, including those that are on this machine already."""
    return [
        Encoder(
            name=name,
            says=offer.says,
            license=offer.license,
            here=kept(name).is_dir(),
            fetched=round(offer.fetched / MB),
            size=round(offer.size / MB),
        )
        for name, offer in OFFERS.items()
    ]
