"""The ratios of the papers' tables of corpora, on the command line and the page."""

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from core.cli.main import main
from core.corpora.library import Library
from core.importing import ratios
from core.importing import view as corpora
from tests.pages.test_pages import opened, texts
from tests.recipes.test_experiment import fill


def test_sizes_against_each_other(home: Path) -> None:
    made = fill(home)
    for role in ("task", "domain", "train"):
        corpora.set_role(role, made[role].fingerprint)
    origin = {"from": made["domain"].fingerprint}
    chosen = Library(home).subset(made["domain"], np.arange(12), name="S_C", origin=origin)
    said = {each.name: each.value for each in ratios.ratios()}
    assert said == {"N_T/N_D": 37 / 114, "N_L/N_T": 24 / 37, "N_L/N_D": 24 / 114, "N_S/N_D": 12 / 114}
    page = texts(opened("pages/1_Corpora.py"))
    for words in (
        "Task corpus to domain corpus (N_T/N_D)",
        "Labelled data to task corpus (N_L/N_T)",
        "Selection to domain corpus (N_S/N_D)",
    ):
        assert words in page
    ran = CliRunner().invoke(main, ["corpus", "show", "train", "--json"])
    told = json.loads(ran.stdout)
    assert told["ratios"] == {"N_L/N_T train of task": 0.6486, "N_L/N_D train of domain": 0.2105}
    assert (told["entities_per_sentence"], told["tokens_per_sentence"]) == (1.0, round(made["train"].n_tokens / 24, 4))
    assert told["entities_per_100_tokens"] == round(100 * 24 / made["train"].n_tokens, 4)
    corpora.set_role("domain", None)
    [alone] = ratios.ratios(chosen)
    assert (alone.of, alone.to, alone.value) == ("S_C", "domain", 12 / 114)
