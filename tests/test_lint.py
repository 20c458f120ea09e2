"""The repository keeps the rules of tests/lint, and each rule finds a breach of it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.browser.buttons import BUTTONS
from tests.conftest import ROOT
from tests.lint.__main__ import RULES, broken
from tests.lint.repository import Repository

ROWS = "".join(f"| promise {i} | `tests/test_it.py::test_it` |\n" for i in range(10))
TABLE = f"| promise | held by |\n|---|---|\n{ROWS}"
README = {"README.md": "[it](SECURITY.md)\n"}
DRAWN = "".join(f"st.button(key={key!r})\n" for key in BUTTONS)

# Per rule: files that break it, and the places that it reports.
BREACHES: list[tuple[str, Mapping[str, str], list[str]]] = [
    ("layers", {"core/text/a.py": "import os\nfrom core import runs\nfrom core.errors import InputError\n"}, ["core/text/a.py:2"]),
    ("layers", {"core/unheard/a.py": ""}, ["core/unheard/a.py:1"]),
    ("third-party", {"core/cli/a.py": "def f():\n    import streamlit as st\n"}, ["core/cli/a.py:2"]),
    ("third-party", {"core/samples/a.py": "import json\nimport numpy\nimport pyarrow.csv\n"}, ["core/samples/a.py:3"]),
    ("circles", {"core/bias/a.py": "from core.bias import b\n", "core/bias/b.py": "def f():\n    from core.bias.a import x\n", "core/bias/c.py": "from core.bias import a\n"}, ["core/bias/a.py:1", "core/bias/b.py:1"]),
    ("light-pages", {"home.py": "from core.bias import a\n", "core/bias/a.py": "if x:\n    import torch\n\ndef f():\n    import sklearn\n", "core/bias/b.py": "import torch\n"}, ["core/bias/a.py:2"]),
    ("regular-expressions", {"core/a.py": "import re\n", "core/b.py": "import re as r\n", "pages/c.py": "from re import sub\n"}, ["core/b.py:1", "pages/c.py:1"]),
    ("grid", {"pages/a.py": "st.dataframe(rows)\n", "pages/ui/widgets.py": "st.dataframe(rows)\n"}, ["pages/a.py:1"]),
    ("raw-html", {"pages/a.py": "st.markdown(x, unsafe_allow_html=True)\n"}, ["pages/a.py:1"]),
    ("links", {"pages/a.py": "page_link('x')\nst.page_link('x')\n"}, ["pages/a.py:2"]),
    ("downloads", {"pages/a.py": "st.download_button('x', later(f))\nst.download_button('x', f)\n"}, ["pages/a.py:2"]),
    ("downloads", {"pages/a.py": "path.read_bytes()\nst.download_button('x', later(path.read_bytes))\n"}, ["pages/a.py:2"]),
    ("copies", {"core/bias/cli.py": "shutil.copy2(a, b)\n", "core/runs/a.py": "shutil.copy(a, b)\n"}, ["core/bias/cli.py:1"]),
    ("commands", {"pages/a.py": "st.code(command)\n", "pages/ui/widgets.py": "st.code(command)\n"}, ["pages/a.py:1"]),
    ("printing", {"core/cli/a.py": "def echo(x):\n    print(x)\n\nprint(1)\nsys.stdout.write(x)\n"}, ["core/cli/a.py:4", "core/cli/a.py:5"]),
    ("artifacts", {"core/selection/view.py": "import core.runs\nrun.artifacts / 'order.npy'\n", "core/selection/result.py": "run.artifacts\n"}, ["core/selection/view.py:2"]),
    ("buttons", {"pages/a.py": f"{DRAWN}st.button('x')\nst.button(key=f'new.{{n}}')\n"}, [f"pages/a.py:{len(BUTTONS) + n}" for n in (1, 2)]),
    ("buttons", {"pages/a.py": DRAWN.partition("\n")[2]}, ["tests/browser/buttons.py:1"]),
    ("presses", {"pages/a.py": "st.button('x', on_click=f)\nif st.button('y'):\n    act()\n"}, ["pages/a.py:2"]),
    ("escapes", {"pages/a.py": "st.markdown(f'{plain(x)} {n:,}')\nst.caption(f'a {x}')\nst.info(', '.join(f'{plain(a)} {b}' for a in c))\n"}, ["pages/a.py:2", "pages/a.py:3"]),
    ("escapes", {"home.py": "st.caption(f'{plain(x)}' if y else WORDS[1:])\nst.title(TITLE)\n"}, ["home.py:1", "tests/lint/escapes.py:1"]),
    ("private-names", {"core/a.py": "# as SPEC has it\n# B1 and T_C, =SUM(A1)\n# see A2.1\n"}, ["core/a.py:1", "core/a.py:3"]),
    ("citations", {"core/SOURCES.md": "# Sources\n## Words\n", "core/a.py": "# SOURCES.md, Words\n# SOURCES.md, Wordsmiths\n"}, ["core/a.py:2"]),
    ("named-tests", {"SECURITY.md": "`tests/test_a.py::test_b`\n`tests/test_a.py::test_c`\n", "tests/test_a.py": "\ndef test_b() -> None:\n"}, ["SECURITY.md:2"]),
    ("promises", {"SECURITY.md": f"# Promises\n\n{TABLE}| nothing leaks | hope |\n", **README}, ["SECURITY.md:15"]),
    ("promises", {"SECURITY.md": "No table.\n", "README.md": "No link.\n"}, ["SECURITY.md:1", "README.md:1"]),
    ("rooms", {"core/README.md": "| `core/text/` | words |\n| `core/gone/` | |\n", "core/text/a.py": "", "pages/a.py": ""}, ["core/README.md:1"] * 2),
    ("named-files", {"README.md": "`core/a.py`\n`core/b.py`\n`python -m tests.nothing`\n", "core/a.py": ""}, ["README.md:2", "README.md:3"]),
    ("named-commands", {"README.md": "python -m core doctor\npython -m core frobnicate\n"}, ["README.md:2"]),
    ("document-links", {"README.md": "[a](b.md)\n[c](https://example.org)\n[d](e.png)\n", "e.png": ""}, ["README.md:1", "README.md:3"]),
    ("lock", {"requirements.lock": "# made\nnumpy\n", "requirements.txt": "# ranges\nnumpy>=2\ntorch\n"}, ["requirements.lock:2", "requirements.txt:2"]),
]  # fmt: skip


@pytest.mark.full  # `make test` and `make lint` run the same rules as a command
def test_the_repository_keeps_every_rule() -> None:
    repository = Repository(ROOT)
    assert (len(repository.sources) > 300, len(repository.documents) > 8) == (True, True)
    assert broken(ROOT) == []


def test_each_rule_reports_where_it_is_broken(tmp_path: Path) -> None:
    assert {name for name, _, _ in BREACHES} == RULES.keys()
    for number, (rule, files, places) in enumerate(BREACHES):
        root = tmp_path / str(number)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        found = [line.split(": ") for line in broken(root, {rule: RULES[rule]})]
        assert sorted(place for place, *_ in found) == sorted(places), number
        assert {name for _, name, *_ in found} == {rule}
