"""Strategies that use the ranks of other strategies: `fuse`, from the scores of child runs."""

from pathlib import Path

import numpy as np
import pytest

from core.errors import ConfigError
from core.importing import data_checks
from core.importing import view as corpora
from core.projects import runs
from core.projects.home import library, store
from core.results import FloatArray, Prefer
from core.runs.run import Run
from core.selection import STRATEGIES, insights, involved, make_strategy
from core.selection.base import Batch
from core.selection.choose import rank_of, ranks
from tests.conftest import sealer, sentence
from tests.homes import Homes, Names, executed
from tests.planted import contracts, kitchen

TASK, DOMAIN = contracts(40, seed=1), [*contracts(60, seed=2), *kitchen(60), ""]
OF = ("ngram-perplexity", "gazetteer", "dsir")
GIVEN = {"task": "task", "domain": "domain", "train": "names", "encoder": "tiny", "budget": "30"}


def selections(home: Path) -> Names:
    """Select by fusion, and by one strategy alone."""
    seal = sealer(home)
    seal(TASK, "task")
    seal(DOMAIN, "domain")
    seal([sentence("the buyer ends", [(1, 2, "TERM")])], "names", labelled=True)
    seal([sentence("the goods end", [(1, 2, "TERM")])], "other", labelled=True)
    alone = executed("select", {**GIVEN, "strategy": "dsir"})
    fused = executed("select", {**GIVEN, "strategy": "fuse", "options": {"of": OF}})
    return {"dsir": alone.id, "fuse": fused.id}


@pytest.fixture(autouse=True)
def made(homes: Homes, home: Path) -> Names:
    return homes.copy(selections, home)


def scoring(run_id: str) -> Run:
    return runs.get(runs.get(run_id).result()["score_run"])


def values(run: Run) -> FloatArray:
    scores: FloatArray = np.load(run.artifacts / "scores.npy")
    return scores


def test_ranks_share_ties_and_skip_what_was_not_scored() -> None:
    scores = np.array([0.5, np.nan, 2.0, 0.5, -1.0])
    np.testing.assert_array_equal(ranks(scores, "high"), [2, np.nan, 1, 2, 4])
    np.testing.assert_array_equal(ranks(scores, "low"), [2, np.nan, 4, 2, 1])
    both: tuple[Prefer, ...] = ("high", "low")
    for prefer in both:
        np.testing.assert_array_equal([rank_of(row, scores, prefer) for row in range(5)], ranks(scores, prefer))


def test_fuse_adds_reciprocal_ranks_by_hand() -> None:
    """1/61 + 1/70, 1/62 of the only one that scored, and nothing."""
    given = np.array([[1, 10], [np.nan, 2], [np.nan, np.nan]])
    scores = make_strategy("fuse", {}, 0).score(Batch(ids=np.arange(3, dtype=np.uint64), ranks=given))
    np.testing.assert_allclose(scores, [1 / 61 + 1 / 70, 1 / 62, np.nan])


def test_fuse_scores_by_the_other_strategies_first_and_shares_their_runs(made: Names) -> None:
    fused = scoring(made["fuse"])
    others = [runs.get(name) for name in fused.result()["made_by"]["score"]]
    assert [other.result()["strategy"] for other in others] == list(OF)
    assert others[2].id == scoring(made["dsir"]).id  # a selection by this strategy alone has the same run
    expected = np.zeros(len(DOMAIN))
    for other in others:
        keys = values(other) * (1 if other.result()["prefer"] == "high" else -1)
        for row, key in enumerate(keys):
            expected[row] += 0 if np.isnan(key) else 1 / (60 + 1 + (keys > key).sum())
    np.testing.assert_allclose(values(fused), expected)
    rows = np.load(runs.get(made["fuse"]).artifacts / "rows.npy")
    assert (rows < 60).all()  # contracts


def test_explanation_names_the_rank_of_each_strategy_until_its_run_is_removed(made: Names) -> None:
    others = [runs.get(name) for name in scoring(made["fuse"]).result()["made_by"]["score"]]
    why = insights.why(made["fuse"], 3)
    names = [
        f"{other.result()['strategy']}: rank {ranks(values(other), other.result()['prefer'])[3]:,.0f}"
        for other in others
    ]
    assert [part.name for part in why.parts] == names
    assert why.total == pytest.approx(why.score, abs=1e-9)
    store().remove(others[0].id)
    assert "not stored here" in insights.why(made["fuse"], 3).notes[0]


def test_data_check_counts_what_the_other_strategies_need(made: Names) -> None:
    assert data_checks.needed("fuse", {"of": OF}) == 2
    assert data_checks.needed("fuse", {}) == 5  # the folds of classifier
    given = {role: GIVEN[role] for role in ("task", "domain", "train")}
    checked = {
        of: data_checks.subject("select", {**given, "strategy": "fuse", "options": {"of": of}}, library())
        for of in (("dsir", "random"), ("dsir", "gazetteer"), ("dsir", "knn"))
    }
    assert ["train" in subject.corpora for subject in checked.values()] == [False, True, False]
    assert [bool(subject.encoder) for subject in checked.values()] == [False, False, True]


def test_a_selection_uses_the_training_set_if_one_of_its_strategies_does(made: Names) -> None:
    """The same corpora in use, but another training set: only the selection that reads it is left out."""
    for role, name in {"task": "task", "domain": "domain", "train": "other"}.items():
        corpora.set_role(role, name)
    listed = [runs.get(made[name]) for name in ("dsir", "fuse")]
    assert [run.id for run in runs.of_corpora_in_use(listed)] == [made["dsir"]]


def test_fuse_needs_what_its_strategies_need() -> None:
    with pytest.raises(ConfigError, match="strategy gazetteer: needs labels; give them with --train"):
        runs.execute("select", {**GIVEN, "train": "", "strategy": "fuse", "options": {"of": OF}})
    with pytest.raises(ConfigError, match="two or more different strategies"):
        make_strategy("fuse", {"of": ("knn", "knn")}, 0)
    with pytest.raises(ConfigError, match="'best' is not known"):
        make_strategy("fuse", {"of": ("knn", "best")}, 0)
    with pytest.raises(ConfigError, match="fuse itself uses ranks of other strategies"):
        make_strategy("fuse", {"of": ("knn", "fuse")}, 0)
    assert involved("fuse", {"of": ", ".join(OF)}) == tuple(STRATEGIES[name] for name in ("fuse", *OF))
