"""Fit of a tokenizer's vocabulary to a text: unknown pieces, pieces per word, lost capitals.

The encoder cannot distinguish words that its vocabulary cannot represent: each becomes the same unknown piece.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from core.models import hub
from core.models.hub import BUNDLED
from core.models.pieces import Pieces
from core.reporter import Reporter
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

# Share of unknown pieces above which Winnow warns.
UNKNOWN_MOST = 0.05
# Number of sentences to tokenise, spread over a corpus.
SAMPLE = 500
# Maximum number of characters to read per sentence.
_LONGEST = 2_000


def unknown_share(tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str]) -> float:
    """Return the share of pieces that are unknown to a tokenizer, 0 to 1."""
    if not texts:
        return 0.0
    rows = tokenizer([text[:_LONGEST] for text in texts], add_special_tokens=False, verbose=False)["input_ids"]
    return _share(rows, tokenizer.unk_token_id)


def unknown_warning(share: float, corpus: str, encoder: str) -> str:
    """Return a warning if `share` is above UNKNOWN_MOST, else ""."""
    if share <= UNKNOWN_MOST:
        return ""
    return (
        f"{corpus}: {share:.0%} of its pieces are unknown to the encoder {encoder}, which cannot distinguish them; "
        "choose an encoder that was trained on this language."
    )


def _share(rows: Sequence[Sequence[int]], unknown: int | None) -> float:
    n = sum(map(len, rows))
    return sum(list(row).count(unknown) for row in rows) / n if n and unknown is not None else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Coverage of a text by an encoder's vocabulary.

    unknown: share of unknown pieces, 0 to 1. pieces: number of pieces per character, without white space; more than 1
    if letters are cut into bytes.
    """

    unknown: float
    pieces: float


def coverage(encoder: str, texts: Sequence[str]) -> Coverage | None:
    """Return the coverage of `texts` by an encoder's vocabulary; loads no torch.

    Return None if the encoder is not on this machine or has no readable tokenizer.json.
    """
    # The bundled vocabulary holds every ASCII letter, so most imports need not load it.
    if encoder == hub.BUNDLED and all(text.isascii() for text in texts):
        return Coverage(unknown=0.0, pieces=0.0)
    if encoder == hub.TINY:
        return None
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(hub.folder_of(encoder) / "tokenizer.json"))
    except Exception:  # noqa: BLE001  tokenizers raises nothing more specific for a file that it cannot read
        return None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    shortened = [text[:_LONGEST] for text in texts]
    rows = [row.ids for row in tokenizer.encode_batch(shortened, add_special_tokens=False)]
    unknown = next((found for name in ("[UNK]", "<unk>") if (found := tokenizer.token_to_id(name)) is not None), None)
    characters = sum(len("".join(text.split())) for text in shortened)
    return Coverage(unknown=_share(rows, unknown), pieces=sum(map(len, rows)) / max(characters, 1))


# ASCII only, because byte-level vocabularies encode spaces and accents as capitals that are not ASCII.
_CAPITAL = re.compile("[A-Z]")
# Minimum share of pieces with a capital in a cased vocabulary. Uncased vocabularies have capitals only in special
# pieces.
CASED = 0.01
# Minimum share of unknown words, and of lower-cased words or long sentences, that `remarks` reports.
UNKNOWN, OFTEN = 0.01, 0.05
# Minimum number of pieces per word that `remarks` reports. An encoder of the text's language needs 1.1 to 1.5.
MANY = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyFit:
    """Fit of a tokenizer to some sentences; shares are 0 to 1.

    unknown: share of words with an unknown piece. pieces: mean number of pieces per word. case_lost: among words with a
    capital, the share that the tokenizer lower-cases. cased: True if the vocabulary has capitals. max_length: pieces
    per window. longer: share of sentences that do not fit into one window.
    """

    unknown: float
    pieces: float
    case_lost: float
    cased: bool
    max_length: int
    longer: float


def vocabulary_fit(
    tokenizer: "PreTrainedTokenizerBase", sentences: Sequence[Sentence], max_length: int
) -> VocabularyFit:
    """Return the fit of `tokenizer` to the words of `sentences`."""
    # A tokenizer without a limit has a model_max_length of 1e30.
    of_word = Pieces(tokenizer, tokenizer.model_max_length if tokenizer.model_max_length < 1e6 else 8192)
    words = list(chain.from_iterable(sentence.tokens for sentence in sentences))
    capital = [word for word in words if word != word.lower()]
    lower = of_word.of([word.lower() for word in capital])
    pieces = of_word.of(words)
    around = len(of_word.wrapped(()))
    lengths = [sum(map(len, of_word.of(sentence.tokens))) + around for sentence in sentences]
    unknown = tokenizer.unk_token_id
    vocabulary = tokenizer.get_vocab().keys() - set(tokenizer.all_special_tokens)
    return VocabularyFit(
        unknown=sum(unknown in ids for ids in pieces) / max(len(words), 1) if unknown is not None else 0.0,
        pieces=sum(map(len, pieces)) / max(len(words), 1),
        case_lost=sum(a == b for a, b in zip(of_word.of(capital), lower, strict=True)) / max(len(capital), 1),
        cased=sum(bool(_CAPITAL.search(piece)) for piece in vocabulary) >= CASED * max(len(vocabulary), 1),
        max_length=max_length,
        longer=sum(length > max_length for length in lengths) / max(len(lengths), 1),
    )


def remarks(name: str, fit: VocabularyFit) -> list[str]:
    """Return one sentence per problem of encoder `name` with the text. The sentences do not name the encoder."""
    texts = []
    if name == BUNDLED:
        texts.append("Uncased and English: it ignores capitals, and cuts other languages into many small pieces.")
    elif fit.case_lost > OFTEN and fit.cased:
        texts.append(
            f"Its vocabulary has capitals, but its tokenizer lower-cases {fit.case_lost:.0%} of the words with a "
            "capital. If it was trained with capitals, set do_lower_case to false in its tokenizer_config.json."
        )
    elif fit.case_lost > OFTEN:
        texts.append(f"Uncased: {fit.case_lost:.0%} of the words with a capital letter are lower-cased.")
    if fit.unknown >= UNKNOWN:
        texts.append(f"{fit.unknown:.1%} of the words contain text that its vocabulary does not cover.")
    if fit.pieces >= MANY:
        texts.append(
            f"Its vocabulary cuts a word into {fit.pieces:.1f} pieces on average, so it knows few of these words "
            "whole; an encoder of this language or domain would know more."
        )
    if fit.longer >= OFTEN:
        texts.append(
            f"{fit.longer:.0%} of the sentences are longer than {fit.max_length} pieces and are read in several parts, "
            "so the encoder never reads them whole; a larger max_length keeps more of them whole."
        )
    return texts


def note_fit(
    report: Reporter,
    tokenizer: "PreTrainedTokenizerBase",
    sample: Sequence[Sentence],
    *,
    encoder: str,
    corpus: str,
    max_length: int,
) -> None:
    """Report, before the training, what the encoder cannot represent in a sample of a corpus.

    The report covers unknown pieces, lost capitals, words of many pieces, and sentences of more than `max_length`
    pieces.
    """
    warning = unknown_warning(unknown_share(tokenizer, [each.text for each in sample]), corpus, encoder)
    if warning:
        report.note(warning)
    fit = vocabulary_fit(tokenizer, sample, max_length)
    if texts := remarks(encoder, replace(fit, unknown=0.0) if warning else fit):
        report.note(f"{encoder} on {corpus}: {' '.join(texts)}")
