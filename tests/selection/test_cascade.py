"""Selections from the part of D_C that a cascade embeds."""

import random
import re
import shlex
import shutil
import zipfile
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from core.encoders.vectors import Some
from core.errors import ConfigError
from core.explore import view as maps
from core.importing.view import find
from core.models.encoder import Encoder
from core.models.static import DIMENSION, StaticVectors, Words
from core.projects import runs
from core.projects import view as projects
from core.projects.home import store
from core.reporter import Silent
from core.runs.chunks import Chunks
from core.runs.result import read
from core.runs.run import Run
from core.selection import cascade, insights, select
from core.selection import view as selections
from core.selection.result import ScoreResult, SelectResult
from tests.conftest import Command, Seal, sealer, sentence
from tests.homes import Homes, Names, done, executed

N = 5_000
OPTIONS = {"task": "task", "domain": "domain", "encoder": "tiny", "precision": "fp32", "budget": "30%", "keep": ()}


def sentences(n: int, seed: int, least: float = 0.0) -> list[str]:
    """Return sentences that take a share of their words, `least` to 1, from one half of a vocabulary."""
    letters = random.Random(0)
    halves = [["".join(letters.choices(of, k=5)) for _ in range(300)] for of in ("abcdefghij", "hijklmnopq")]
    rng = random.Random(seed)
    shares = [rng.uniform(least, 1) for _ in range(n)]
    return [" ".join(rng.choice(halves[rng.random() > share]) for _ in range(9)) for share in shares]


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut D_C into several chunks."""
    monkeypatch.setattr(cascade, "FITTED", 150)
    monkeypatch.setattr(cascade, "EMBEDDED", 500)
    monkeypatch.setattr(cascade, "CHUNK", 2_000)


@pytest.fixture
def corpora(seal: Seal, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal T_C and D_C, and cut D_C into several chunks."""
    shorten(monkeypatch)
    fill(seal)


def fill(seal: Seal) -> None:
    """Seal T_C and D_C."""
    seal(sentences(60, 1, 0.9), "task")
    seal([*sentences(N - 1, 2), ""], "domain")


def scoring(run: Run) -> Run:
    return runs.get(read(run, SelectResult).score_run)


def values(run: Run) -> Any:
    return np.load(scoring(run).artifacts / "scores.npy")


def test_a_cut_allows_as_many_misses_as_the_bound_permits() -> None:
    """390 selected sentences are the fewest, as 0.99^390 < 0.02; a second implementation counts the misses of others."""
    rng = np.random.default_rng(0)
    for n in (389, 390, 500, 580, 581, 1000):
        keys = rng.normal(size=3 * n)
        selected = np.arange(3 * n) < n
        found = cascade.cut(keys, selected)
        misses = [missed for missed in range(n) if binom.cdf(missed, n, 0.01) <= 0.02]
        if not misses:
            assert n < 390
            assert found is None
            continue
        assert found is not None
        assert found.missed == misses[-1]
        assert found.least == np.sort(keys[:n])[misses[-1]]
        assert binom.cdf(found.missed, n, 1 - found.bound) == pytest.approx(0.02)
        assert found.bound >= 0.99
    assert cascade.cut(np.zeros(390), np.ones(390, dtype=bool)) is not None  # equal keys are all above the cut


@pytest.mark.parametrize("budget", [0.02, 0.1])
def test_the_cut_keeps_what_it_promises_in_19_of_20_draws(budget: float) -> None:
    """The exact scores are the ranking's keys plus noise; 400 samples are drawn from one D_C of 100,000."""
    n, rng, kept = 100_000, np.random.default_rng(0), list[float]()
    keys = rng.normal(size=n).astype(np.float32)
    exact = keys + rng.normal(size=n) * 0.5
    best = np.zeros(n, dtype=bool)
    best[np.argsort(-exact)[: int(budget * n)]] = True
    size = cascade.trial_size(budget, n)
    assert size is not None
    for _ in range(400):
        sample = rng.choice(n, size, replace=False)
        selected = np.zeros(size, dtype=bool)
        selected[np.argsort(-exact[sample])[: round(budget * size)]] = True
        found = cascade.cut(keys[sample], selected)
        assert found is not None
        kept.append(float((keys[best] >= found.least).mean()))
    assert np.mean(np.array(kept) >= 0.99) >= 0.95
    assert np.mean(kept) < 0.9995  # a cut that keeps everything would also pass


def test_the_sample_holds_enough_selected_sentences_or_is_refused() -> None:
    assert cascade.trial_size(0.02, 1_000_000) == 29_050  # 581 selected
    assert cascade.trial_size(0.02, 300_000) == 19_500  # 390 selected
    assert cascade.trial_size(0.03, 300_000) == 15_000  # a twentieth of D_C
    assert cascade.trial_size(0.002, 1_000_000) == 195_000  # 390 selected
    assert cascade.trial_size(0.0005, 1_000_000) is None
    assert cascade.trial_size(0.02, 70_000) is None


def test_static_vectors_are_weighted_means_of_pieces_that_the_encoder_read_alone() -> None:
    encoder = Encoder.load("tiny", precision="fp32")
    texts = ["abc ab", "c", "", "zz?"]
    static = StaticVectors.distil(encoder, Words.of(texts[:3], encoder.tokenizer), Silent())
    first, *others = encoder.tokenizer(texts[:3], add_special_tokens=False)["input_ids"]
    pieces = [*first, *chain.from_iterable(others)]
    known = sorted(set(pieces))
    counts = {piece: pieces.count(piece) for piece in known}
    alone = [encoder.tokenizer.convert_ids_to_tokens(piece) for piece in known]
    plain = [i for i, piece in enumerate(alone) if not piece.startswith("##")]
    unit, norms = encoder.encode([alone[i] for i in plain])
    assert encoder.dimension < DIMENSION  # no PCA: distances stay
    table = (
        static.table.astype(np.float64)
        * np.array([(1e-3 + counts[p] / len(pieces)) / 1e-3 for p in known] + [0])[:, None]
    )
    expected = unit.astype(np.float64) * norms[:, None]
    for i in range(1, len(plain)):
        assert table[plain[i]] - table[plain[0]] == pytest.approx(expected[i] - expected[0], abs=2e-2)
    found = static(Words.of(texts, encoder.tokenizer))
    mean = static.table[[static.places[piece] for piece in first]].sum(axis=0)
    assert found[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)
    assert not found[2].any()
    assert not found[3].any()  # no piece of it was distilled


def test_rows_without_a_vector_are_zeros() -> None:
    some = Some(6, np.array([4, 1]), np.array([[1.0, 2], [3, 4]], dtype=np.float16))
    assert len(some) == 6
    assert some[1].tolist() == [3, 4]
    assert some[np.array([0, 4])].tolist() == [[0, 0], [1, 2]]
    assert some[3:].tolist() == [[0, 0], [1, 2], [0, 0]]
    assert some[np.arange(6) == 1].tolist() == [[3, 4]]


@pytest.mark.parametrize(
    ("strategy", "options"),
    [("classifier", {"sample": 1500}), ("cos-pretrained", {"query": "contrastive"}), ("knn", {})],
)
def test_a_cascade_selects_what_the_exact_scores_select(
    strategy: str, options: dict[str, object], corpora: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.selection.strategies.cosine._SAMPLE", 1_000)
    monkeypatch.setattr(cascade, "WORTH", 1.0)
    given = {**OPTIONS, "strategy": strategy, "options": options}
    exact, quick = (executed("select", given, cascade=on) for on in (False, True))
    assert scoring(quick).manifest.kind == "cascade"
    result = read(scoring(quick), ScoreResult).cascade
    assert result is not None
    every, some = values(exact), values(quick)
    there = ~np.isnan(some)
    chosen = selections.chosen(quick.id)
    assert there.sum() + chosen.dropped.get("not_scored", 0) == result.embedded < 0.9 * N
    np.testing.assert_allclose(some[there], every[there], rtol=1e-3, atol=2e-3)
    kept = set(selections.chosen(exact.id).rows.tolist()) & set(chosen.rows.tolist())
    assert len(kept) >= 0.99 * read(exact, SelectResult).selected
    assert result.within == read(quick, SelectResult).selected == 1500


@pytest.mark.full
def test_a_cascade_joins_the_vectors_of_trained_encoders(
    corpora: None, seal: Seal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade, "WORTH", 1.0)
    for name, seed in (("train", 4), ("dev", 5)):
        seal([sentence(text, [(0, 1, "X")]) for text in sentences(20, seed)], name, labelled=True)
    given = {**OPTIONS, "strategy": "cos-mlm-ner", "train": "train", "dev": "dev"}
    exact, quick = (executed("select", given, cascade=on) for on in (False, True))
    every, some = values(exact), values(quick)
    there = ~np.isnan(some)
    assert 1500 <= there.sum() < 0.9 * N
    np.testing.assert_allclose(some[there], every[there], rtol=1e-3, atol=2e-3)
    best = int(np.nanargmax(some))
    assert insights.why(quick.id, best).total == pytest.approx(some[best], abs=1e-2)
    run = executed("map", maps.options(quick.id, sample=60, clusters=2, limit=200))
    assert not any(note.startswith("The map shows the") for note in run.state().notes)


def test_static_vectors_are_made_from_other_sentences_than_the_bound(
    corpora: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the rare words of the trial got vectors and those of other sentences did not, the bound would be too high."""
    samples, read = list[Any](), list[Any]()

    def drawn(*args: Any) -> Any:
        samples.append(draw(*args))
        return samples[-1]

    def cut(texts: Any, tokenizers: Any) -> Any:
        read.append(list(texts))
        return words(texts, tokenizers)

    draw, words = cascade._sample, cascade._words
    monkeypatch.setattr(cascade, "_sample", drawn)
    monkeypatch.setattr(cascade, "_words", cut)
    monkeypatch.setattr(cascade, "_READ", 400)
    monkeypatch.setattr(cascade, "WORTH", 1.0)
    executed("select", OPTIONS, cascade=True, options={"sample": 1000})
    (sample,) = samples
    domain = find("domain")
    texts = {role: {each.text for each in domain.take(rows)} for role, rows in sample._asdict().items()}
    assert set(read[0]) == texts["read"] > texts["fitted"]
    assert len(read[0]) == 150 + 400
    assert not texts["read"] & texts["trial"]
    assert texts["rows"] >= texts["fitted"] | texts["trial"]


def build_quick(home: Path) -> Names:
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        patch.setattr(cascade, "WORTH", 1.0)
        fill(sealer(home))
        return {"quick": done("select", OPTIONS, cascade=True, options={"sample": 1000})}


@pytest.fixture
def quick(homes: Homes, home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a selection by a cascade, by the default strategy, from a prepared home."""
    shorten(monkeypatch)
    monkeypatch.setattr(cascade, "WORTH", 1.0)
    return runs.get(homes.copy(build_quick, home)["quick"])


def test_the_run_says_what_was_embedded_and_refuses_what_its_scores_do_not_serve(quick: Run) -> None:
    found = read(scoring(quick), ScoreResult).cascade
    assert found is not None
    (note,) = (note for note in quick.state().notes if note.startswith("Cascade"))
    assert f"{found.embedded:,} of 5,000 sentences" in note
    assert "With 95% confidence, at least 99.0% of the exact selection was embedded." in note
    assert "the exact scores select 390 of them" in note
    assert len(selections.choose(quick.id, "1000").rows) == 1000
    with pytest.raises(ConfigError, match="a cascade scored only enough for the best 1,500; give a smaller"):
        selections.keep_budget(quick.id, "1501")
    with pytest.raises(ConfigError, match="flagged too_short have no scores"):
        selections.choose(quick.id, "1000", ["too_short"])
    other = executed("select", {**OPTIONS, "strategy": "random"}, cascade=False)
    assert insights.overlap_curve(quick.id, other.id)[-1][0] == 1500  # of 5,000


def test_a_refused_budget_names_the_command_that_selects_again(quick: Run, command: Command) -> None:
    code, _, err = command("choice", "set", quick.id, "--budget", 1501)
    assert code == 2
    assert "a cascade scored only enough for the best 1,500; give a smaller budget, or select again" in err
    words = shlex.split(err.partition("The command is: ")[2])
    assert words[:4] == ["python", "-m", "core", "select"]
    assert words[words.index("--budget") + 1] == "1501"
    assert "--cascade" in words
    assert command(*words[3:], "--json")[0] == 0
    assert runs.listed("select")[0].manifest.config == {**quick.manifest.config, "budget": "1501"}


def test_pages_explain_sentences_that_were_not_embedded(quick: Run) -> None:
    scores = values(quick)
    out, chosen = int(np.flatnonzero(np.isnan(scores))[0]), int(np.nanargmax(scores))
    why = insights.why(quick.id, out)
    assert why.verdict == (
        "Not selected: the quick ranking of the cascade left this sentence out, so it was not embedded."
    )
    assert (why.notes, why.neighbours) == (("This sentence was not embedded.",), [])
    assert insights.why(quick.id, N - 1).verdict == "Withheld: flagged too short."
    best = insights.why(quick.id, chosen)
    assert best.total == pytest.approx(float(scores[chosen]), abs=1e-2)
    assert len(best.parts) > 2
    assert len(best.neighbours) == 5
    assert insights.health(quick.id).variety is not None
    assert "--cascade" in selections.command(quick.id, "out.txt", "txt")
    assert selections.diverse(quick.id, "mmr")[1]  # a cascade has no scores of the pool
    selections.keep_budget(quick.id, "20%")  # A cascade for 20% would embed other sentences.
    assert f" export {quick.id} " in selections.command(quick.id, "out.txt", "txt")


def test_a_map_shows_what_the_cascade_embedded(quick: Run) -> None:
    run = executed("map", maps.options(quick.id, sample=60, clusters=2, limit=400))
    mapped, scored = maps.get(run.id), values(quick)
    assert runs.listed("embed")[0].manifest.inputs["corpus"] == quick.manifest.inputs["task"]
    assert len(runs.listed("embed")) == 1
    assert not np.isnan(scored[mapped.rows[mapped.n_task :]]).any()
    assert any(note.startswith("The map shows the") for note in run.state().notes)
    kinds = maps.classes(run.id)
    assert len(maps.pairs(run.id, kinds, 5)) == 5


def test_exported_projects_leave_out_the_vectors(quick: Run, tmp_path: Path) -> None:
    file = tmp_path / "one.zip"
    assert projects.export(projects.current(), file).left_vectors == 2
    names = zipfile.ZipFile(file).namelist()
    assert any(name.endswith(f"{scoring(quick).id}/artifacts/scores.npy") for name in names)
    assert not any("/vectors/" in name for name in names)
    shutil.rmtree(scoring(quick).artifacts / "vectors")
    best = int(np.nanargmax(values(quick)))
    assert not insights.why(quick.id, best).neighbours
    assert insights.health(quick.id).variety is None


def test_a_killed_cascade_resumes_with_the_same_bytes(quick: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run stops at every chunk of every stage, each time before the chunk is written."""
    files = ("scores.npy", "order.npy", "model.npz", "vectors/first.npy", "vectors/further.npy")
    wanted = [(scoring(quick).artifacts / name).read_bytes() for name in files]
    rows = selections.chosen(quick.id).rows
    stages, keep = set[str](), Chunks.keep
    for name in ("cascade", "select"):
        for run in runs.listed(name):
            store().remove(run.id)

    def killed(chunks: Chunks, i: int, array: Any) -> None:
        stages.add(chunks.paths[i].name.rpartition("-")[0])
        if chunks.context.run.manifest.kind == "cascade" and killed_at[-1] != (chunks.paths[i], i):
            killed_at.append((chunks.paths[i], i))
            raise OSError("killed")
        keep(chunks, i, array)

    killed_at: list[tuple[Path, int] | None] = [None]
    monkeypatch.setattr(Chunks, "keep", killed)
    again = None
    while again is None:
        try:
            again = executed("select", OPTIONS, cascade=True, options={"sample": 1000})
        except OSError:
            assert len(killed_at) < 40
    assert {"first0", "score-first", "rank", "further0", "score-further"} <= stages
    assert [(scoring(again).artifacts / name).read_bytes() for name in files] == wanted
    assert selections.chosen(again.id).rows.tolist() == rows.tolist()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"strategy": "random"}, "the strategy random does not support a cascade with these options"),
        (
            {"strategy": "knn", "options": {"query": "round-robin"}},
            "the strategy knn does not support a cascade with these options",
        ),
        ({"diversity": "quota"}, "diversity needs the vectors of more sentences than are selected"),
        ({"budget": "threshold:1"}, "the number of sentences above a threshold is not known"),
        ({"budget": "20"}, "a selection of 20 sentences of 5,000 needs too large a sample"),
        ({"worth": 0.2}, r"\d\d% of the sentences would have to be embedded"),
    ],
)
def test_where_a_cascade_cannot_help_every_sentence_is_scored_and_the_run_says_why(
    more: dict[str, Any], why: str, corpora: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade, "WORTH", more.pop("worth", 1.0))
    run = executed("select", OPTIONS, cascade=True, **more)
    assert scoring(run).manifest.kind == "score"
    assert np.isfinite(values(run)[:-1]).all()
    (note,) = (note for note in run.state().notes if note.startswith("The cascade was not used"))
    assert re.search(why, note)


def test_large_corpora_are_selected_from_by_a_cascade_unless_they_are_embedded(
    corpora: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = select.SelectConfig.parse(OPTIONS)
    assert config.settled().cascade is None
    monkeypatch.setattr(select, "LARGE", N - 1)
    assert config.settled().cascade
    assert config.model_copy(update={"cascade": False}).settled().cascade is False
    assert config.model_copy(update={"diversity": "mmr"}).settled().cascade is None
    executed("embed", {name: OPTIONS[name] for name in ("encoder", "precision")}, corpus="domain")
    assert config.settled().cascade is False
