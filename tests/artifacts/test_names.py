"""What runs leave is named in one place: `core/artifacts` alone knows their files, and no name is spelt twice."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "core"
FILE_NAME = re.compile(r"[\w{}*-]*[a-z{}][\w{}-]*\.(?:npy|npz|parquet|jsonl|json|conll|txt|md|csv|safetensors)")
# Of every Hugging Face folder, of a model or a dataset.
OF_OTHERS = {"README.md", "config.json", "tokenizer.json", "special_tokens_map.json", "model.safetensors"}
OF_OTHERS |= {"dataset_info.json", "dataset_infos.json"}
ROOMS = ("artifacts", "runs")  # a run's own files are in runs


def spelt(source: str) -> Iterator[str]:
    """File names in a module's text, `{}` for what an f-string fills in; docstrings and messages are none."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if FILE_NAME.fullmatch(text):
            yield text


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('np.save(folder / "order.npy", order)', ["order.npy"]),
        ('f"evaluation-{split}-{seed}.npz"', ["evaluation-{}-{}.npz"]),
        ('"""See order.npy of the run."""', []),
        ('path.suffix == ".npy"', []),
        ('f"{name}.parquet"', ["{}.parquet"]),
    ],
)
def test_a_file_name_is_recognised(source: str, names: list[str]) -> None:
    assert list(spelt(source)) == names


def test_artifacts_alone_look_into_a_run_s_artifacts() -> None:
    strangers = [
        f"{file.relative_to(CORE)}:{node.lineno}"
        for file in CORE.rglob("*.py")
        if file.relative_to(CORE).parts[0] not in ROOMS
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "artifacts" and not _is_the_room(node)
    ]
    assert not strangers, "read it by a function of core/artifacts"


def _is_the_room(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "core"
