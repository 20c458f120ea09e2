"""The sample sets end to end, compared with the planted truth."""

import gzip
import json
from typing import Any

import numpy as np
import pytest

from core.corpora.library import Library
from core.importing import view as corpora
from core.paths import home
from core.projects import runs
from core.samples.sets import sample_sets
from core.selection import view as selections
from tests.homes import done

both = pytest.mark.parametrize("name", ["legal", "medical"])


def truth(name: str) -> list[dict[str, Any]]:
    sample = next(sample for sample in sample_sets() if sample.name == name)
    with gzip.open(sample.truth, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def options(**more: object) -> dict[str, object]:
    given = corpora.roles()
    return {"task": given["task"], "domain": given["domain"], "holdout": (given["test"],), "dev": given["dev"], **more}


def area(values: np.ndarray, wanted: np.ndarray) -> float:
    """Return the area under the ROC curve, by ranks; ties count half."""
    order = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(order[2]) - (order[2] - 1) / 2)[order[1]]
    n, m = int(wanted.sum()), int((~wanted).sum())
    return float((ranks[wanted].sum() - n * (n + 1) / 2) / (n * m))


@pytest.mark.full
@both
def test_strategies_separate_in_domain_from_off_domain(name: str) -> None:
    """T_C has two of eight topics, so a strategy that correctly finds only these scores lower here."""
    corpora.open_sample(name)
    wanted = np.array([row["domain"] == "in" for row in truth(name)])
    for strategy, least in {"cos-pretrained": 0.9, "classifier": 0.78, "knn": 0.78}.items():
        assert told_apart(strategy, wanted) > least, strategy


def test_embeddings_separate_in_domain_from_off_domain_in_a_part_of_the_sample() -> None:
    corpora.open_sample("legal")
    library, roles, rows = Library(home()), corpora.roles(), np.arange(250)
    found = {
        role: library.subset(library.find(roles[role]), rows, name=f"part of {role}", origin={}).fingerprint
        for role in ("task", "domain")
    }
    wanted = np.array([row["domain"] == "in" for row in truth("legal")])[rows]
    for strategy, least in {"cos-pretrained": 0.9, "classifier": 0.75, "knn": 0.75}.items():
        assert told_apart(strategy, wanted, **found) > least, strategy


def told_apart(strategy: str, wanted: np.ndarray, **given: str) -> float:
    """Select with a strategy; return the area under the ROC curve of its scores."""
    scores = selections.scored(done("select", options(strategy=strategy, budget="10%", **given))).scores
    return area(scores.values if scores.prefer == "high" else -scores.values, wanted)


@both
def test_perplexity_finds_the_domain_and_selects_no_leaks_or_duplicates(name: str) -> None:
    """S_C has no leaks and few duplicates, and the counts of withheld rows add up."""
    corpora.open_sample(name)
    planted = truth(name)
    run = runs.get(done("select", options(strategy="ngram-perplexity", budget="30%")))
    scores = selections.scored(run.id).scores
    assert area(-scores.values, np.array([row["domain"] == "in" for row in planted])) > 0.9
    chosen = selections.choose(run.id, "100%")
    assert not [row for row in chosen.rows if planted[row]["leak_of"]]
    copies = {row["row"]: row["copy_of"] for row in planted if row["copy_of"] is not None}
    both = [row for row in chosen.rows if row in copies and copies[row] in set(chosen.rows.tolist())]
    assert len(both) <= 0.05 * len(copies)
    assert len(chosen.rows) + sum(chosen.dropped.values()) == len(planted)
    sealed, domain = corpora.find(run.result()["corpus"]), corpora.find(corpora.roles()["domain"])
    assert sealed.origin["run"] == run.id
    rows = selections.chosen(run.id).rows
    assert [s.id for batch in sealed.batches() for s in batch] == [s.id for s in domain.take(rows)]
