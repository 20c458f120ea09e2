"""Which strategy suits T_C: planted answers, copies, ties, resuming, refusals, the command and its words."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.errors import Cancelled, ConfigError, CorpusError, RunError
from core.projects.home import store
from core.reporter import Reporter
from core.results import BoolArray, FloatArray, Role
from core.runs.result import read
from core.selection import STRATEGIES, which_strategy
from core.selection import which_view as which
from core.selection.base import Batch, Reads, Source, Strategy
from core.selection.which_strategy import WhichStrategyConfig, WhichStrategyResult, places, untrained
from core.text.sentence import Sentence
from tests import finished
from tests.conftest import Command, Seal, elsewhere, sentence
from tests.homes import executed, project_in
from tests.planted import contracts, distinct, kitchen

SEEN = list[tuple[set[str], list[str]]]()  # ids that `Known` learnt from, and the ids of D_C, per draw


class Known(Strategy):
    """Prefers sentences with the words of contracts, and records what it was given."""

    name: ClassVar[str] = "known"
    in_short: ClassVar[str] = "contracts"
    unit: ClassVar[str] = "contracts"

    def prepare(self, sources: Mapping[Role, Source], report: Reporter) -> None:
        domain = [one.id for batch in sources[Role.DOMAIN].corpus.batches() for one in batch]
        SEEN.append(({one.id for one in sources[Role.TASK].sentences()}, domain))

    def score(self, batch: Batch) -> FloatArray:
        return np.array([self.value(one) for one in batch.sentences])

    def value(self, sentence: Sentence) -> float:
        return float("zz" in sentence.text)


class Equal(Known):
    """Gives all sentences one score."""

    name: ClassVar[str] = "equal"
    reads: ClassVar[Reads] = "text"

    def value(self, sentence: Sentence) -> float:
        return 0.0


VECTORS = dict[int, list[FloatArray]]()  # vectors that `Embedded` saw, by id of the sentence


class Embedded(Known):
    """Records the vector of each sentence."""

    name: ClassVar[str] = "embedded"
    reads: ClassVar[Reads] = "both"

    def score(self, batch: Batch) -> FloatArray:
        assert batch.vectors is not None
        for id, vector in zip(batch.ids.tolist(), batch.vectors, strict=True):
            VECTORS.setdefault(id, []).append(np.array(vector))
        return super().score(batch)


@pytest.fixture(autouse=True)
def further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the strategies of this file."""
    SEEN.clear()
    more = {**STRATEGIES, **{each.name: each for each in (Known, Equal, Embedded)}}
    monkeypatch.setattr(which_strategy, "STRATEGIES", more)
    monkeypatch.setattr("core.selection.STRATEGIES", more)


TASK, OTHERS = distinct(contracts(100, seed=1), 1, "zz"), distinct(kitchen(400), 2)


def compared(
    task: list[str], domain: list[str], seal: Callable[[list[str], str], Corpus], **options: object
) -> WhichStrategyResult:
    """Run `which-strategy`; return its result."""
    corpora = {name: seal(texts, name).fingerprint for name, texts in (("task", task), ("domain", domain))}
    return read(executed("which-strategy", {**corpora, "encoder": "tiny", **options}), WhichStrategyResult)


def test_strategies_find_planted_sentences_and_controls_find_the_share_of_the_budget(seal: Seal) -> None:
    found = compared(TASK, OTHERS, seal, budget="5%", strategies=("ngram-perplexity", "random"))
    assert (found.hidden, found.among, found.draws) == (100, 400, 10)
    assert found.chance == pytest.approx(20 / 410)
    assert list(found.strategies) == ["classifier", "ngram-perplexity", "random"]
    for name in ("classifier", "ngram-perplexity"):
        assert found.strategies[name].recall.value > 0.9
    random = found.strategies["random"]
    assert random.recall.low <= 0.05 <= random.recall.high
    assert random.recall.value < 0.2
    assert (random.difference, found.strategies["classifier"].difference) == (None, None)
    assert found.best == "classifier"
    assert which.in_words(found).startswith("Keep classifier: classifier, the default, finds ")


def test_each_sentence_is_hidden_once_and_never_learnt_from(seal: Seal) -> None:
    """Copies of T_C's sentences in either corpus take no part: they would be found without skill."""
    found = compared([*TASK, *TASK[:30]], [*OTHERS, *TASK[:50]], seal, strategies=("known",))
    assert (found.hidden, found.among, len(SEEN)) == (100, 400, 10)
    ids = {one.id: number for number, one in enumerate(_sealed(seal, TASK))}
    hidden = [[ids[id] for id in domain if id in ids] for _, domain in SEEN]
    assert sorted(number for one in hidden for number in one) == list(range(100))
    for (learnt, domain), own in zip(SEEN, hidden, strict=True):
        assert len(own) == 10
        assert len(domain) == 410
        assert {ids[id] for id in learnt} == set(range(100)) - set(own)
        assert own != sorted(own)  # hidden sentences are in random places, not in T_C's order
    places_of_hidden = [i for (_, domain) in SEEN for i, id in enumerate(domain) if id in ids]
    assert 150 < np.mean(places_of_hidden) < 260


def test_a_sentence_has_its_own_vector_in_every_draw(seal: Seal) -> None:
    """Draws have different orders, so vectors in another order than the sentences would differ between draws."""
    compared(TASK, OTHERS, seal, strategies=("embedded",), draws=5)
    assert sorted(map(len, VECTORS.values())) == [1] * 100 + [5] * 400
    assert all((vector == first).all() for first, *others in VECTORS.values() for vector in others)
    assert len({first.tobytes() for first, *_ in VECTORS.values()}) > 400


def _sealed(seal: Seal, texts: list[str]) -> list[Sentence]:
    return [one for batch in seal(texts, "alone").batches() for one in batch]


def test_a_strategy_that_finds_more_is_proposed_and_equal_scores_find_as_many_as_chance(seal: Seal) -> None:
    domain = distinct(contracts(400, seed=2), 3)
    found = compared(TASK, domain, seal, budget="3%", strategies=("known", "equal"))
    assert found.strategies["known"].recall.value == 1
    equal = found.strategies["equal"]
    assert equal.recall.low <= found.chance <= equal.recall.high
    assert equal.recall.value < 0.15
    usual = found.strategies["classifier"].recall.value
    assert usual < 0.9
    assert found.best == "known"
    assert which.in_words(found).startswith("Select by known: it finds 100% of the hidden sentences")


def test_fused_ranks_are_those_of_the_same_draw(seal: Seal) -> None:
    """Alone or after its parts, a fusion selects the same; two strategies that find all sentences find them fused."""
    alone = compared(TASK, OTHERS, seal, budget="5%", strategies=("fuse",), draws=5)
    after = compared(TASK, OTHERS, seal, budget="5%", strategies=("fuse", "moore-lewis"), draws=5)
    assert alone.strategies["fuse"].recall == after.strategies["fuse"].recall
    assert alone.strategies["fuse"].recall.value > 0.9


def test_names_of_hidden_sentences_are_not_on_the_list(seal: Seal) -> None:
    """Each sentence has a name of its own. A list of the labels of hidden sentences would find all of them."""
    written = [text.replace(" .", ".") for text in TASK]  # T_C is not tokenised like L_C
    labels = [sentence(text, [(0, 1, "NAME")]) for text in TASK]
    train = seal(labels, "train", labelled=True).fingerprint
    found = compared(written, OTHERS, seal, budget="5%", strategies=("gazetteer",), train=train, draws=5)
    recall = found.strategies["gazetteer"].recall
    assert recall.low <= found.chance <= recall.high
    shared = [sentence(f"The {text}", [(1, 2, "NAME")]) for text in TASK]  # the names are also in other sentences
    train = seal(shared, "shared", labelled=True).fingerprint
    found = compared(written, OTHERS, seal, budget="5%", strategies=("gazetteer",), train=train, draws=5)
    assert found.strategies["gazetteer"].recall.value == 1


def test_a_sample_of_the_domain_corpus_and_budgets_in_other_units(seal: Seal) -> None:
    domain = distinct([*kitchen(700), *kitchen(700, seed=3)], 4)
    taken = {}
    for budget in ("20%", "280", "3500tokens"):
        found = compared(TASK, domain, seal, budget=budget, strategies=("equal",), sample=1000, draws=5)
        assert 950 <= found.among <= 1000
        taken[budget] = found.chance
    assert taken["20%"] == pytest.approx(0.2, abs=0.001)
    assert taken["280"] == pytest.approx(0.2, abs=0.001)
    assert taken["3500tokens"] == pytest.approx(3500 / seal(domain, "domain").n_tokens, abs=0.01)


def test_a_resumed_run_keeps_finished_rankings_and_has_the_same_result(
    seal: Seal, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"strategies": ("known", "ngram-perplexity", "random"), "budget": "5%", "draws": 5}
    with elsewhere(tmp_path / "other"):
        library = Library(project_in(tmp_path / "other"))

        def other(texts: list[str], name: str) -> Corpus:
            return library.seal(map(sentence, texts), name=name, origin={})

        undisturbed = compared(TASK, OTHERS, other, **options)
    ranked, calls = which_strategy._selected, 0

    def stopped(*given: Any) -> BoolArray:
        nonlocal calls
        calls += 1
        if calls == 9:
            raise Cancelled("stopped")
        return ranked(*given)

    monkeypatch.setattr(which_strategy, "_selected", stopped)
    with pytest.raises(Cancelled):
        compared(TASK, OTHERS, seal, **options)
    [run] = store().list("which-strategy")
    (run.chunks / "mixed").mkdir()  # left by a process that was killed
    (run.chunks / "mixed" / "corpora").write_text("")
    assert compared(TASK, OTHERS, seal, **options) == undisturbed
    assert calls == 5 * 4 + 1
    assert list(run.chunks.iterdir()) == []
    assert compared(TASK, OTHERS, seal, **options, seed=1).strategies != undisturbed.strategies


def test_refusals_say_what_to_do(seal: Seal) -> None:
    parse = WhichStrategyConfig.parse
    given = {"task": "t", "domain": "d"}
    for wrong, words in (
        ({"budget": "threshold:0.5"}, "budget: strategies have different units"),
        ({"strategies": ("nearest",)}, "strategies: 'nearest' is not known; choose from classifier"),
        ({"strategies": ("cos-mlm",)}, "strategies: cos-mlm trains a model first"),
        ({"strategies": ("gazetteer",)}, "strategies: gazetteer needs labels or a list of names"),
    ):
        with pytest.raises(ConfigError, match=words):
            parse({**given, **wrong})
    with pytest.raises(CorpusError, match=r"task: 49 sentences are left.*fewer than 50 cannot show"):
        compared(TASK[:49], OTHERS, seal)
    with pytest.raises(CorpusError, match=r"domain.*: 20 sentences are left"):
        compared(TASK, [*TASK, *OTHERS[:20]], seal)
    with pytest.raises(CorpusError, match="did you swap them"):
        compared(OTHERS, TASK, seal)


def test_the_default_compares_all_strategies_that_train_nothing() -> None:
    every = WhichStrategyConfig.parse({"task": "t", "domain": "d"}).strategies
    assert every == untrained(labels=False)
    assert {"classifier", "knn", "ngram-perplexity", "random"} <= set(every)
    assert not {"gazetteer", "cos-mlm", "pseudo-perplexity"} & set(every)
    labelled = WhichStrategyConfig.parse({"task": "t", "domain": "d", "train": "l"}).strategies
    assert set(labelled) - set(every) == {"gazetteer"}


@pytest.mark.parametrize(("n", "draws", "size"), [(50, 10, 1), (430, 10, 10), (9000, 10, 50), (60, 50, 1)])
def test_neighbours_are_hidden_together(n: int, draws: int, size: int) -> None:
    where = places(n, draws, 0)
    assert np.bincount(where.block)[:-1].tolist() == [size] * (-(-n // size) - 1)
    assert all(len(set(where.draw[where.block == block].tolist())) == 1 for block in set(where.block.tolist()))
    counts = np.bincount(where.draw, minlength=draws)
    assert counts.max() - counts.min() <= 2 * size
    assert places(n, draws, 1).draw.tolist() != where.draw.tolist()


def test_the_command_prints_the_table_the_answer_and_its_limits(seal: Seal, command: Command) -> None:
    found = compared(TASK, OTHERS, seal, strategies=("ngram-perplexity", "random"), budget="5%")
    words = ["which-strategy", "--task", "task", "--domain", "domain", "--encoder", "tiny", "--budget", "5%"]
    words += ["--strategies", "ngram-perplexity,random"]
    printed = json.loads(command(*words, "--json")[1])
    assert printed["best"] == "classifier"
    assert printed["strategies"]["random"]["difference"] is None
    shown = command(*words)[1]
    for text in (which.in_words(found), which.basis(found), which.LIMIT, "a control", "the default"):
        assert text in shown
    assert "100 sentences of the task corpus were hidden, in 10 random parts, among 400 of the domain corpus" in shown


@pytest.mark.parametrize("damage", [{"best": "dsir"}, {"best": "random"}, {"strategies": {}}])
def test_a_damaged_result_is_refused(home: Path, damage: dict[str, object], seal: Seal) -> None:
    corpora = {name: seal(texts, name).fingerprint for name, texts in (("task", TASK), ("domain", OTHERS))}
    run = finished.finish(home, "which-strategy", corpora, finished.constant(finished.COMPARED))
    finished.returned(run, {**run.result(), **damage})
    with pytest.raises(RunError, match=r"its result is not a valid result of which-strategy"):
        read(run, WhichStrategyResult)
