"""The app's door loads neither torch nor streamlit, and a worker neither the facade nor plotting."""

import subprocess
import sys
from pathlib import Path

from core.kind import register
from core.kinds import RECIPES
from core.runs.store import RunStore
from tests.conftest import ROOT


def test_the_facade_loads_nothing_slow() -> None:
    modules = ", ".join(f"core.facade.{path.stem}" for path in sorted((ROOT / "core" / "facade").glob("[a-z]*.py")))
    code = f"import sys, {modules}; print(sorted({{'torch', 'ray', 'streamlit', 'transformers', 'sklearn', 'scipy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_loads_neither_the_facade_nor_plotting(home: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("One sentence .\n", encoding="utf-8")
    recipe = RECIPES["add"]
    run = register(recipe, recipe.config.parse({"path": str(tmp_path / "text.txt")}), RunStore(home))
    code = (
        "import sys; from core import work as __main__ as process; status = process.main();"
        "rooms = {'.'.join(name.split('.')[:2]) for name in sys.modules};"
        "print(status, sorted(rooms & {'plotly', 'altair', 'streamlit', 'core.facade', 'core.cli', 'core.plots'}))"
    )
    command = [sys.executable, "-c", code, "work", run.id, "--home", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"
    assert run.state().state == "succeeded"
