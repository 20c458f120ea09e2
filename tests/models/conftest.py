"""An encoder saved as a folder."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save the encoder `tiny` with its tokenizer; tests must not change the folder."""
    from core.models import hub

    path = tmp_path_factory.mktemp("tiny")
    hub.load_model("tiny").save_pretrained(path)
    hub.load_tokenizer("tiny").save_pretrained(path)
    return path
