"""Pages and commands load no slow package; a worker loads neither chart libraries nor commands."""

import subprocess
import sys
from pathlib import Path

from core.kind import register
from core.kinds import KINDS
from core.runs.store import RunStore
from tests.conftest import ROOT
from tests.lint.repository import Repository


def test_pages_and_commands_load_no_slow_package() -> None:
    sources = [source for source in Repository(ROOT).sources if not source.path.startswith("core/")]
    names = {name for source in sources for name, _ in source.loaded if name.startswith("core.")}
    modules = ", ".join(sorted(filter(_exists, {*names, "core.cli.main"})))
    code = f"import sys, {modules}; print(sorted({{'torch', 'ray', 'streamlit', 'transformers', 'sklearn', 'scipy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _exists(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_a_worker_loads_neither_figures_nor_commands(home: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("One sentence .\n", encoding="utf-8")
    recipe = KINDS["add"]
    run = register(recipe, recipe.config.parse({"path": str(tmp_path / "text.txt")}), RunStore(home))
    code = (
        "import sys; from core import work as process; status = process.main();"
        "rooms = {'.'.join(name.split('.')[:2]) for name in sys.modules};"
        "print(status, sorted(rooms & {'plotly', 'altair', 'streamlit', 'core.cli', 'core.charts'}))"
    )
    command = [sys.executable, "-c", code, "work", run.id, "--home", str(home)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0 []"
    assert run.state().state == "succeeded"
