"""What several pages do is there once: choosing a run, an empty page, a command, timing this machine."""

from pathlib import Path

import pytest

from core.corpora.corpus import Corpus
from core.facade import corpora, runs
from tests.finished import corpora as finished_corpora
from tests.finished_bias import contracts, measured
from tests.pages.test_assisting import pair  # noqa: F401
from tests.pages.test_pages import ROOT, commands_on, opened, texts, trio  # noqa: F401


def test_a_command_is_drawn_once_it_is_opened_and_stays_while_the_page_changes(home: Path) -> None:
    corpora.set_role("train", contracts(home).fingerprint)
    app = opened("pages/7_Bias.py")
    assert not app.code  # what colours it is 1.5 MB of script
    app.session_state["bias.command"] = True
    for mentions in (20, 30):
        app.number_input(key="bias.mentions").set_value(mentions).run()
        assert not app.exception
        [command] = [code.value for code in app.code]
        assert f"--mentions {mentions}" in command
    app.session_state["bias.command"] = False
    assert not app.run().code


def test_a_rebuilt_set_that_was_picked_stays_and_the_address_stays_the_measurements(home: Path) -> None:
    corpus = contracts(home)
    corpora.set_role("train", corpus.fingerprint)
    run = measured(home, corpus).id
    options = {"train": corpus.fingerprint, "difficulty": run, "method": "random2low"}
    older, newer = (runs.execute("rebuild", {**options, "rate": rate}).id for rate in (0.1, 0.2))
    app = opened("pages/7_Bias.py")
    choice = app.selectbox(key=f"bias.which.{newer}")
    assert [label[:29] for label in choice.options] == [
        "Harder names anywhere 20%, se",
        "Harder names anywhere 10%, se",
    ]
    choice.set_value(older).run()
    for _ in range(2):
        assert not app.exception
        assert "run" not in app.query_params
        assert app.selectbox(key=f"bias.which.{older}").value == older
        assert "--rate 0.1" in " ".join(commands_on(app))
        app.run()


def test_an_earlier_sweep_can_be_looked_at_again(pair: tuple[Corpus, Corpus]) -> None:  # noqa: F811
    given = {"primary": pair[0].fingerprint, "assisting": pair[1].fingerprint}
    runs.execute("skl", given)
    small = {**given, "dev": given["primary"], "test": given["primary"], "hidden": 4, "epochs": 1, "thresholds": (1,)}
    older, newer = (runs.execute("assist", {**small, "seeds": (seed,)}).id for seed in (1, 2))
    app = opened("pages/8_Assisting.py")
    app.selectbox(key=f"assisting.which.{newer}").set_value(older).run()
    assert not app.exception
    assert app.selectbox(key=f"assisting.which.{older}").value == older
    assert "--seed 1" in " ".join(commands_on(app))


@pytest.mark.parametrize(
    ("page", "then", "words"),
    [("4_Explore", "Selection", "no finished selection"), ("6_Results", "Training", "no finished run")],
)
def test_a_page_without_runs_leads_to_what_makes_them(
    page: str,
    then: str,
    words: str,
    trio: dict[str, Corpus],  # noqa: F811
) -> None:
    app = opened(f"pages/{page}.py")
    assert not app.exception
    assert words in texts(app)
    assert [link.proto.page for link in app.main.get("page_link")] == [then]
    assert not app.button
    for corpus in trio.values():
        corpora.remove(corpus.fingerprint)
    app = opened(f"pages/{page}.py")
    assert words in texts(app)
    assert [link.proto.label for link in app.main.get("page_link")] == ["Import your own corpora"]
    assert "Open the legal sample" in [button.label for button in app.button]


def test_this_machine_is_timed_from_both_pages_alike(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = finished_corpora(home)
    begun: list[tuple[str, object]] = []

    def start(kind: str, options: dict[str, object]) -> str:
        begun.append((kind, options["train"]))
        return ""

    monkeypatch.setattr(runs, "start", start)
    for page, key in (("7_Bias", "bias"), ("5_Training", "training")):
        app = opened(f"pages/{page}.py")
        app.button(key=f"{key}.time").click().run()
        assert not app.exception
    assert begun == [("calibrate", made["train"].fingerprint)] * 2
