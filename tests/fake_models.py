"""Models that know the answer without training, because real ones take minutes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from core.models import hub
from core.selection.evidence import Spans, flat
from core.text.sentence import Entity, Prediction, Sentence


def tiny_mlm(folder: Path) -> Path:
    """Save `tiny` with a random head; every piece of a sentence changes every probability."""
    from transformers import AutoModelForMaskedLM

    hub.load_model("tiny", AutoModelForMaskedLM).save_pretrained(folder)
    hub.load_tokenizer("tiny").save_pretrained(folder)
    return folder


def unigram_mlm(folder: Path, texts: Iterable[str], others: Iterable[str]) -> Path:
    """Save a masked language model that predicts words by their frequency in `texts` (add one), at any position.

    others: texts whose words are in the vocabulary too.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    counts = Counter(word for text in texts for word in text.split())
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({*counts, *(word for text in others for word in text.split())})
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate([*special, *words])}, unk_token=special[1])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **names).save_pretrained(folder)
    size = len(special) + len(words)
    config = BertConfig(
        vocab_size=size,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=8,
        max_position_embeddings=64,
    )
    model = BertForMaskedLM(config)
    with torch.no_grad():
        model.bert.embeddings.word_embeddings.weight.zero_()
        shares = np.log([1.0] * len(special) + [counts[word] + 1.0 for word in words])
        model.cls.predictions.bias.copy_(torch.from_numpy(shares))
    model.save_pretrained(folder)
    return folder


def found_by_list(sentences: Sequence[Sentence], names: dict[str, str], confidence: float = 0.75) -> list[Prediction]:
    """Predict every word of the list as an entity of its type."""
    return [
        Prediction(
            entities=tuple(
                Entity(start=i, end=i + 1, type=names[word.lower()])
                for i, word in enumerate(sentence.tokens)
                if word.lower() in names
            ),
            confidence=tuple(confidence for word in sentence.tokens if word.lower() in names),
        )
        for sentence in sentences
    ]


def spans(predictions: Sequence[Prediction], types: Sequence[str]) -> Spans:
    return Spans.make(types, flat(predictions, types), len(predictions))
