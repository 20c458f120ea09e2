"""`tiny`: an encoder of random weights over single characters, for tests and first tries; no file is behind it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.models.auto.auto_factory import _BaseAutoModelClass


def tiny_tokenizer() -> "PreTrainedTokenizerBase":
    """WordPiece over single printable ASCII characters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    characters = [chr(code) for code in range(33, 127)]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*special, *characters, *(f"##{character}" for character in characters)]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(vocabulary)}, unk_token=special[1]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names)


def tiny_model(auto_class: "type[_BaseAutoModelClass]", kw: dict[str, object]) -> "PreTrainedModel":
    """A BERT of two layers whose weights are as torch's seed makes them. kw: as of `hub.load_model`."""
    from transformers import BertConfig

    loading = {key: kw.pop(key) for key in ("attn_implementation",) if key in kw}
    dtype = kw.pop("dtype", None)
    config = BertConfig(
        vocab_size=193,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=512,
        initializer_range=0.1,
        **kw,
    )
    model = auto_class.from_config(config, **loading).eval()
    # Not drawn in that precision, as older transformers do: they would be other weights.
    return model.to(dtype) if dtype else model
