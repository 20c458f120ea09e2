"""Encoders whose tokenizer has more entries than the embedding table has rows."""

import json
from pathlib import Path

import pytest
from transformers import BertConfig, BertForMaskedLM

from core.errors import ModelError
from core.models import hub, sizes
from core.models.fingerprint import fingerprint
from core.models.hub import tiny_tokenizer
from core.projects import runs
from core.tagging import view as training
from tests.conftest import Command

TEXT = "Mara Lind rents hall {} in Lyon .\n"


@pytest.fixture
def misfit(tmp_path: Path) -> str:
    """Return an encoder whose tokenizer has three added tokens that the embedding table lacks."""
    folder, tokenizer = tmp_path / "misfit", tiny_tokenizer()
    size = len(tokenizer)
    tokenizer.add_tokens(["Lyon", "Bremen", "Harbour"])
    layers = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertForMaskedLM(BertConfig(vocab_size=size, **layers)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Write text and labelled sentences."""
    text, labels = tmp_path / "a.txt", tmp_path / "l.conll"
    text.write_text("".join(TEXT.format(i) for i in range(20)), encoding="utf-8")
    sentence = "Mara\tB-PER\nLind\tI-PER\nrents\tO\nhall\tO\n{}\tO\nin\tO\nLyon\tB-LOC\n.\tO\n\n"
    labels.write_text("".join(sentence.format(i) for i in range(20)), encoding="utf-8")
    return {"text": text, "labels": labels}


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("select", ["--task", "text", "--domain", "text", "--strategy", "cos-pretrained", "--encoder"]),
        ("pretrain", ["--corpus", "text", "--init"]),
        ("finetune", ["--train", "labels", "--dev", "labels", "--test", "labels", "--init"]),
    ],
)
def test_encoder_with_too_few_embeddings_is_refused(
    command: Command, misfit: str, files: dict[str, Path], kind: str, flags: list[str]
) -> None:
    code, _, err = command(kind, *(files.get(flag, flag) for flag in flags), misfit)
    assert code == 2
    assert "its tokenizer has 196 entries but its embedding table only 193 rows" in err
    assert "resize_token_embeddings(196)" in err
    assert not runs.listed(kind)


def test_broken_encoder_is_listed_and_the_others_are_ranked(
    command: Command, misfit: str, files: dict[str, Path], tmp_path: Path
) -> None:
    labels = ["--train", files["labels"], "--dev", files["labels"]]
    code, out, err = command(
        "encoders", "rank", *labels, "--encoders", f"{misfit},tiny,{tmp_path / 'nowhere'}", "--json"
    )
    assert code == 0, err
    result = json.loads(out)
    assert [each["encoder"] for each in result["encoders"]] == ["tiny"]
    assert [each["encoder"] for each in result["not_ranked"]] == [misfit, str(tmp_path / "nowhere")]
    assert "196 entries" in result["not_ranked"][0]["reason"]
    code, out, err = command("encoders", "rank", *labels, "--encoders", f"{misfit},tiny")
    assert f"Not ranked: {misfit}: its tokenizer has 196 entries" in out
    code, _, err = command("encoders", "rank", *labels, "--encoders", misfit)
    assert (code, "196 entries" in err) == (2, True)


def test_resized_embeddings_are_accepted(
    misfit: str, files: dict[str, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = (
        "its tokenizer has 196 entries but its embedding table only 193 rows, so 3 added tokens have no vector; call "
    )
    cure = r"model\.resize_token_embeddings\(196\) and save model and tokenizer again, or choose another encoder"
    with pytest.raises(ModelError, match=says + cure):
        fingerprint(misfit)
    text = runs.fingerprint_of(str(files["text"]))
    assert training.preflight("pretrain", {"corpora": (text,), "init": "tiny"}).problem == ""
    problem = training.preflight("pretrain", {"corpora": (text,), "init": misfit}).problem
    tagger = {"train": text, "dev": text, "init": misfit}
    assert training.preflight("finetune", tagger).problem == problem
    recurrent = training.preflight("finetune", {**tagger, "network": "bilstm"})  # reads no encoder
    assert (recurrent.problem, recurrent.memory_gb, recurrent.disk_gb) == ("", None, None)
    assert "196 entries" in problem
    assert "193 rows" in problem
    with monkeypatch.context() as patch:
        patch.setattr(sizes, "is_serving", lambda: True)  # a server asks a separate process
        assert "196 entries" in sizes.misfit("m", Path(misfit))
    model = hub.load_model("tiny")
    model.resize_token_embeddings(196)
    model.save_pretrained(misfit)
    assert fingerprint(misfit)
