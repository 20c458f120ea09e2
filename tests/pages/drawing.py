"""Draw pages without a browser, press their buttons, and read what they show."""

from collections.abc import Mapping
from html import unescape
from io import BytesIO
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from core.importing import uploads
from core.importing import view as corpora
from core.projects import runs
from core.runs.run import Run

ROOT = Path(__file__).resolve().parents[2]
CORPORA, SELECTION = "pages/1_Corpora.py", "pages/3_Selection.py"
EXPLORE, TRAINING = "pages/4_Explore.py", "pages/5_Training.py"
NASTY = "<img src=x onerror=alert(1)> [x](http://evil.example) :red[loud] $x^2$ `code` **bold** a@b.example"


def opened(page: str, state: Mapping[str, Any] | None = None, **query: str) -> AppTest:
    """Draw a page once. state: values of its fields, by key. query: parts of its address."""
    app = AppTest.from_file(str(ROOT / "home.py"), default_timeout=300)
    if page != "home.py":
        app.switch_page(page)
    app.query_params.update(query)
    for key, value in (state or {}).items():
        app.session_state[key] = value
    return app.run()


def opened_on(page: str, run_id: str, state: Mapping[str, Any] | None = None) -> AppTest:
    """Draw a page whose address names a run."""
    return opened(page, state, run=run_id)


def dropped(**files: bytes) -> AppTest:
    """Draw Corpora after an upload of these files, which its address names."""
    token = uploads.spool_all([(name, BytesIO(data)) for name, data in files.items()])
    return opened(CORPORA, upload=token)


def codes(app: AppTest) -> list[str]:
    """Return the commands and other texts of a page that can be copied."""
    return [code.value for code in app.code]


def texts(app: AppTest) -> str:
    """Return all text of a page in one string."""
    kinds = ("title", "header", "subheader", "caption", "markdown", "info", "warning", "error", "text")
    shown = [element.value for kind in kinds for element in getattr(app, kind)]
    return " ".join([*shown, *(element.proto.body for element in app.get("html"))])


def select(strategy: str = "random", budget: str = "20%", **options: Any) -> str:
    """Select from the domain corpus in use; return the id of the run."""
    roles = corpora.roles()
    marks: dict[str, object] = {role: roles[role] for role in ("task", "domain") if role in roles}
    return runs.execute("select", {**marks, "strategy": strategy, "budget": budget, **options}).id


def audit(corpus: str, *held_out: str) -> str:
    """Check a corpus for duplicates and leaks; return the id of the run."""
    return runs.execute("audit", {"corpus": corpus, "held_out": held_out}).id


def add(path: Path, **options: Any) -> Run:
    """Import a file."""
    return runs.execute("add", {"path": str(path), **options})


def keys(app: AppTest) -> set[str | None]:
    """Return the keys of a page's buttons."""
    return {button.key for button in app.button}


def seen(app: AppTest) -> str:
    """Return the text of a page as a reader sees it, without escapes and word joiners."""
    return unescape(texts(app)).replace("\u2060", "")


def press(app: AppTest, key: str) -> AppTest:
    """Click a button and draw the page again."""
    return app.button(key=key).click().run()
