"""How well a tokenizer's vocabulary fits a text: what is unknown to it, how finely it cuts, whether capitals last."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from core.models import unknown
from core.models.hub import BUNDLED
from core.models.pieces import Pieces
from core.reporter import Reporter
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_CAPITAL = re.compile("[A-Z]")  # a byte-level vocabulary writes spaces and accents as capitals of other alphabets
# Share of a vocabulary with a capital from which it is called cased; uncased ones have special names alone.
CASED = 0.01
UNKNOWN, OFTEN = 0.01, 0.05  # shares from which a word is said
MANY = 2.0  # pieces a word from which it is; an encoder of the text's own language takes 1.1 to 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyFit:
    """Fit of a tokenizer to some sentences; shares are 0 to 1.

    unknown: of words with a piece that the vocabulary lacks. pieces: a word has. case_lost: of the words with a
    capital, those that it reads as if they had none. cased: whether the vocabulary knows capitals. max_length: pieces
    that are embedded or masked at once. longer: of sentences that have more.
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
    """Fit of `tokenizer` to the words of `sentences`."""
    # A tokenizer that knows no limit names one of 1e30.
    of_word = Pieces(tokenizer, tokenizer.model_max_length if tokenizer.model_max_length < 1e6 else 8192)
    words = list(chain.from_iterable(sentence.tokens for sentence in sentences))
    capital = [word for word in words if word != word.lower()]
    lower = of_word.of([word.lower() for word in capital])
    pieces = of_word.of(words)
    around = len(of_word.wrapped(()))
    lengths = [sum(map(len, of_word.of(sentence.tokens))) + around for sentence in sentences]
    unknown = tokenizer.unk_token_id
    return VocabularyFit(
        unknown=sum(unknown in ids for ids in pieces) / max(len(words), 1) if unknown is not None else 0.0,
        pieces=sum(map(len, pieces)) / max(len(words), 1),
        case_lost=sum(a == b for a, b in zip(of_word.of(capital), lower, strict=True)) / max(len(capital), 1),
        cased=_cased(tokenizer),
        max_length=max_length,
        longer=sum(length > max_length for length in lengths) / max(len(lengths), 1),
    )


def _cased(tokenizer: "PreTrainedTokenizerBase") -> bool:
    vocabulary = tokenizer.get_vocab().keys() - set(tokenizer.all_special_tokens)
    return sum(bool(_CAPITAL.search(piece)) for piece in vocabulary) >= CASED * max(len(vocabulary), 1)


def remarks(name: str, fit: VocabularyFit) -> list[str]:
    """Sentences on what encoder `name` loses of the text that `fit` is of; the first word is not its name."""
    texts = []
    if name == BUNDLED:
        texts.append("Uncased and English: capitals are not seen, and other languages fall into many small pieces.")
    elif fit.case_lost > OFTEN and fit.cased:
        texts.append(
            f"Its vocabulary knows capitals and its tokenizer lower-cases {fit.case_lost:.0%} of the words with one "
            "before it looks: set do_lower_case to false in its tokenizer_config.json, if it was trained with capitals."
        )
    elif fit.case_lost > OFTEN:
        texts.append(f"Uncased: of the words with a capital {fit.case_lost:.0%} are read as if they had none.")
    if fit.unknown >= UNKNOWN:
        texts.append(f"{fit.unknown:.1%} of the words hold a piece that its vocabulary lacks.")
    if fit.pieces >= MANY:
        texts.append(
            f"Its vocabulary cuts a word into {fit.pieces:.1f} pieces on average, so it knows few of these words "
            "whole; an encoder of this language or domain would know more."
        )
    if fit.longer >= OFTEN:
        texts.append(
            f"{fit.longer:.0%} of the sentences are longer than {fit.max_length} pieces and are read in several parts, "
            "none of which sees the whole; a larger max_length leaves more of them whole."
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
    """Note what `encoder` cannot represent of a sample of `corpus` before it is trained on it.

    Covers unknown pieces, lost capitals, words in many pieces, and sentences of more than `max_length` pieces.
    """
    warning = unknown.warning(unknown.of_tokenizer(tokenizer, [each.text for each in sample]), corpus, encoder)
    if warning:
        report.note(warning)
    fit = vocabulary_fit(tokenizer, sample, max_length)
    if texts := remarks(encoder, replace(fit, unknown=0.0) if warning else fit):
        report.note(f"{encoder} on {corpus}: {' '.join(texts)}")
