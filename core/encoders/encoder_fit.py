"""What an encoder loses of a text, noted before it is trained on it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.kind import Job
from core.models import unknown
from core.models.vocabulary_fit import remarks, vocabulary_fit
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def note_fit(
    job: Job,
    tokenizer: "PreTrainedTokenizerBase",
    sentences: Sequence[Sentence],
    *,
    encoder: str,
    corpus: str,
    max_length: int,
) -> None:
    """Note what `encoder` cannot read of `sentences`, a sample of `corpus`: unknown pieces, capitals, words in many
    pieces, sentences of more than `max_length`."""
    warning = unknown.warning(unknown.of_tokenizer(tokenizer, [each.text for each in sentences]), corpus, encoder)
    if warning:
        job.context.note(warning)
    fit = vocabulary_fit(tokenizer, sentences, max_length)
    if texts := remarks(encoder, replace(fit, unknown=0.0) if warning else fit):
        job.context.note(f"{encoder} on {corpus}: {' '.join(texts)}")
