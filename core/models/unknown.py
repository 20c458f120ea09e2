"""How much of a text an encoder reads as unknown: whatever its vocabulary lacks is one and the same piece to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import WinnowError
from core.models import hub

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MOST = 0.05  # of a text's pieces
SAMPLE = 500  # sentences that are looked at, from all over a corpus
_LONGEST = 2_000  # characters of each


def of_bundled(texts: Sequence[str]) -> float:
    """Share of unknown pieces, 0 to 1, to the bundled encoder; asks its vocabulary alone, without transformers."""
    # ASCII is in its vocabulary letter by letter, so that most imports need not load it.
    if all(text.isascii() for text in texts):
        return 0.0
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(hub.folder_of(hub.BUNDLED) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rows = tokenizer.encode_batch([text[:_LONGEST] for text in texts], add_special_tokens=False)
    return _share([row.ids for row in rows], tokenizer.token_to_id("[UNK]"))


def of_tokenizer(tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str]) -> float:
    """The same to any encoder's."""
    if not texts:
        return 0.0
    rows = tokenizer([text[:_LONGEST] for text in texts], add_special_tokens=False, verbose=False)["input_ids"]
    return _share(rows, tokenizer.unk_token_id)


def warning(share: float, corpus: str, encoder: str) -> str:
    """A sentence for people where `share` is too much, else ""."""
    if share <= MOST:
        return ""
    return (
        f"{corpus}: {share:.0%} of its pieces are unknown to the encoder {encoder}, which cannot tell them apart; "
        "choose an encoder that was trained on this language."
    )


def _share(rows: Sequence[Sequence[int]], unknown: int | None) -> float:
    n = sum(map(len, rows))
    return sum(list(row).count(unknown) for row in rows) / n if n and unknown is not None else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How an encoder's vocabulary covers a text. unknown: share of unknown pieces, 0 to 1. pieces: per character that
    is not white space; more than 1 where letters fall into bytes."""

    unknown: float
    pieces: float


def coverage(encoder: str, texts: Sequence[str]) -> Coverage | None:
    """Coverage of `texts` by an encoder of this machine, from its vocabulary alone, without torch.

    None if the encoder is not here or has no tokenizer.json.
    """
    file = _tokenizer_file(encoder)
    if file is None:
        return None
    if encoder == hub.BUNDLED and all(text.isascii() for text in texts):
        return Coverage(unknown=0.0, pieces=0.0)
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception:  # noqa: BLE001  tokenizers raises nothing more specific for a file that it cannot read
        return None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    shortened = [text[:_LONGEST] for text in texts]
    rows = [row.ids for row in tokenizer.encode_batch(shortened, add_special_tokens=False)]
    unknown = next((found for name in ("[UNK]", "<unk>") if (found := tokenizer.token_to_id(name)) is not None), None)
    characters = sum(len("".join(text.split())) for text in shortened)
    return Coverage(unknown=_share(rows, unknown), pieces=sum(map(len, rows)) / max(characters, 1))


def _tokenizer_file(encoder: str) -> Path | None:
    if encoder == hub.TINY:
        return None
    try:
        file = hub.folder_of(encoder) / "tokenizer.json"
    except WinnowError:
        return None
    return file if file.is_file() else None
