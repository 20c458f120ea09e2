"""Models that know the answer without training, because real ones take minutes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


def ready_model(
    folder: Path, labels: Sequence[str], words: Mapping[str, Mapping[str, float]], *, positions: int = 64
) -> Path:
    """Save a token classifier that gives each piece its probabilities, whatever surrounds it.

    labels: of its outputs. words: {piece: {label: probability}}; the other labels share the rest, at least 1e-6. `##x` is
    the piece of a word's end. Unknown words have the first label with probability 0.99. positions: most pieces at once.

    A piece's vector holds the logarithms of its probabilities, and two numbers that make its standard deviation `wide`.
    So all layer normalisations divide by `wide`, attention and feed-forward add 0, and the classifier multiplies by it.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate([*special, *words])}, unk_token=special[1])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=positions, **names).save_pretrained(folder)
    k, wide = len(labels), 8.0
    model = BertForTokenClassification(
        BertConfig(
            vocab_size=len(special) + len(words),
            hidden_size=k + 2,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=4,
            max_position_embeddings=positions,
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
        )
    )
    with torch.no_grad():
        embeddings, layer = model.bert.embeddings, model.bert.encoder.layer[0]
        for part in (embeddings.position_embeddings, embeddings.token_type_embeddings, layer.attention.output.dense):
            part.weight.zero_()
        layer.output.dense.weight.zero_()
        for row, given in enumerate([{labels[0]: 0.99}] * len(special) + [*words.values()]):
            rest = max(1 - sum(given.values()), 1e-6) / max(k - len(given), 1)
            logits = np.log([given.get(label, rest) for label in labels])
            logits -= logits.mean()
            most = np.sqrt((wide**2 * (k + 2) - (logits**2).sum()) / 2)
            embeddings.word_embeddings.weight[row] = torch.tensor([*logits, most, -most])
        model.classifier.weight.copy_(wide * torch.eye(k, k + 2))
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
