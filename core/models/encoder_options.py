"""The options of an embedding, which every kind of run that embeds has."""

from typing import Literal, Self

from core.config import Config, option
from core.errors import ModelError
from core.models.fingerprint import fingerprint


class EncoderOptions(Config):
    """Options of an embedding, the same for every recipe that embeds."""

    encoder: str = option("minilm", "A Hugging Face name, a local folder, or minilm (bundled).")
    pooling: Literal["mean", "cls", "last4"] = option(
        "mean", "Mean of the last layer's pieces, its [CLS] piece, or the mean of the last four layers."
    )
    max_length: int = option(128, "Longer sentences are read in windows.", unit="pieces", ge=8, le=8192)
    precision: Literal["auto", "bf16", "fp32"] = option("auto", "auto takes bf16 where the device has it.")
    allow_download: bool = option(False, "Fetch the encoder from the Hugging Face hub if it is not here yet.")

    weights: str = option("", "Hash of the encoder, so that other weights under an old name embed anew.", hidden=True)

    def settled(self) -> Self:
        """Options with the encoder's hash. Errors: ModelError if the encoder is not here and may not be fetched."""
        try:
            return self.model_copy(update={"weights": fingerprint(self.encoder)})
        except ModelError:
            if not self.allow_download:
                raise
            return self  # the worker fetches it; a page must not wait for that


def encoder_options(config: EncoderOptions) -> dict[str, object]:
    """The options of `config` that say which embedding."""
    return config.model_dump(include=set(EncoderOptions.model_fields))
