"""Encoders to start from: the bundled one, and those that are fetched where somebody asks for them by name."""

from collections.abc import Sequence
from dataclasses import dataclass

from core.encoders.fetch import OFFERS, kept
from core.encoders.fetch import hosts as hosts
from core.encoders.fetched import FetchResult
from core.projects.home import store
from core.runs import result

BUNDLED = "minilm"
MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """An encoder that Winnow knows by name.

    says: what it is. license: SPDX. here: on this machine. fetched, size: MB that are fetched where it is not, and
    that it takes on the disk.
    """

    name: str
    says: str
    license: str
    here: bool
    fetched: int
    size: int


def fetched(run_id: str) -> FetchResult:
    """Result of a finished `fetch` run. Errors: RunError."""
    return result.read(store().get(run_id), FetchResult)


def known() -> Sequence[Encoder]:
    """The bundled encoder, then those that can be fetched."""
    about = "all-MiniLM-L6-v2, bundled: English, uncased, 6 layers of 384"
    return [Encoder(name=BUNDLED, says=about, license="Apache-2.0", here=True, fetched=0, size=91), *offered()]


def offered() -> Sequence[Encoder]:
    """Encoders that can be fetched, here or not."""
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
