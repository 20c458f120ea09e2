"""Check the folder of a ready model. Errors say what to do if it cannot be used. Torch is not loaded."""

import os
from collections.abc import Mapping
from pathlib import Path

from core.errors import ModelError
from core.models.model_files import PICKLE, json_object
from core.paths import user_path

FETCH = (
    "Download a token classifier with its model.safetensors into a folder, for example dslim/bert-base-NER from "
    "Hugging Face (PER, ORG, LOC and MISC in English news), and give that folder; this program does not fetch it."
)
_CLASSIFIER = "ForTokenClassification"


def folder_of(model: str) -> Path:
    """Return the folder of a ready model as an absolute path, which cannot be mistaken for the name of an encoder.

    Errors: PathError for a path that pages must not open; ModelError, with advice, for a folder without a complete
    model.
    """
    folder = user_path(os.path.expanduser(model)).absolute()
    if not folder.is_dir():
        raise ModelError(f"{model}: is not a folder. {FETCH}")
    if (folder / "gliner_config.json").exists():
        raise ModelError(f"{model}: is a GLiNER model, which this program cannot read. {FETCH}")
    if (folder / "adapter_config.json").exists():
        raise ModelError(
            f"{model}: contains an adapter, which would load another model; merge it into that model (peft's "
            "merge_and_unload) and give the merged folder."
        )
    if not any(folder.glob("*.safetensors")):
        if (folder / PICKLE).exists():
            raise ModelError(
                f"{model}: its only weights are a pickle ({PICKLE}), which can run code. Fetch the model's "
                "model.safetensors. If you trust the pickle, you can also convert it: load the model with transformers "
                "and save it (save_pretrained)."
            )
        raise ModelError(f"{model}: contains no .safetensors file. {FETCH}")
    return folder


def label_names(model: str, folder: Path) -> list[str]:
    """Return the names of the model's outputs, in order, from its config.json.

    Errors: ModelError if config.json is damaged, describes no token classifier, or does not name every output.
    """
    config = json_object(model, folder / "config.json")
    made = config.get("architectures")
    if isinstance(made, list) and made and not any(str(name).endswith(_CLASSIFIER) for name in made):
        raise ModelError(f"{model}: is not a token classifier (its config.json says {str(made[0])[:60]!r}). {FETCH}")
    named = config.get("id2label")
    names = {str(key): name for key, name in named.items()} if isinstance(named, Mapping) else {}
    ordered = [names.get(str(number)) for number in range(len(names))]
    texts = [name for name in ordered if isinstance(name, str)]
    if not texts or len(texts) < len(names):
        raise ModelError(
            f"{model}: its config.json has no id2label that names every output (0, 1, 2, ...), so its types are not "
            "known. Add the names, for example from the page on which the model was published."
        )
    return texts
