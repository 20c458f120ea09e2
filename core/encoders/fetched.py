"""What a `fetch` run came to; the encoder itself lies in the home, for every run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResult:
    """encoder: its name. folder: in which it lies."""

    encoder: str
    folder: str
