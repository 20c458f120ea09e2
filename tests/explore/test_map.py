"""Maps of a tiny corpus: their runs and all views of a map."""

import csv
import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from core import shown_command as commands
from core.corpora.columns import matches, stored
from core.corpora.hygiene import FLAGS
from core.corpora.writers import FLAGGED, MARKS, harmless
from core.errors import Cancelled, ConfigError, CorpusError
from core.explore import map as recipe
from core.explore import regions
from core.explore import view as maps
from core.explore.result import CLASSES
from core.importing import view as corpora
from core.projects import removals, runs
from core.runs.events import Event
from core.runs.run import Run
from core.selection import insights
from core.selection import view as selections
from core.selection.choose import ranking
from tests.conftest import Command, Seal, sentence
from tests.homes import SELECTION, Names, done
from tests.planted import contracts


def mapped(options: Mapping[str, object], listener: Callable[[Event], None] | None = None) -> Run:
    return runs.execute("map", options, listener)


@pytest.fixture
def select(selected: Names) -> str:
    return selected["select"]


@pytest.fixture
def map_run(selected: Names) -> str:
    return selected["map"]


def test_map_holds_every_sentence_and_equals_its_file(select: str, map_run: str) -> None:
    result, found = runs.get(map_run).result(), maps.get(map_run)
    assert (result["points"], result["of"], result["task_points"], result["fitted"]) == (282, 282, 40, 150)
    assert found.xy.shape == (2, 282)
    assert np.isfinite(found.xy).all()
    assert sum(cluster.size for cluster in found.clusters) == 282
    table = pq.read_table(runs.get(map_run).artifacts / "map.parquet").to_pylist()
    assert list(table[0]) == ["x", "y", "id", "text", "class", "score", "row", "corpus"]
    kinds = maps.classes(map_run)
    scores = selections.scored(select).scores.values
    texts = {"task": stored(found.task, "text").to_pylist(), "domain": stored(found.domain, "text").to_pylist()}
    for point, row in enumerate(table):
        assert (row["x"], row["y"]) == (found.xy[0, point], found.xy[1, point])
        assert row["class"] == CLASSES[kinds[point]]
        assert row["text"] == texts[row["corpus"]][row["row"]]
        assert row["score"] == (None if row["corpus"] == "task" else scores[row["row"]])
    chosen = selections.chosen(select).rows
    assert sorted(row["row"] for row in table if row["class"] == "selected") == sorted(chosen)
    inputs = runs.get(map_run).manifest.inputs
    assert inputs == {name: corpora.find(name).fingerprint for name in ("task", "domain")}


def test_selection_of_the_same_corpora_reuses_the_layout(
    selected: Names, select: str, map_run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, size = selected["random"], {"sample": 300, "clusters": 4}  # 300: all points are fitted
    first = mapped(maps.options(select, **size))
    options = maps.options(other, **size)
    with monkeypatch.context() as patch:
        patch.setattr(recipe, "_fit", lambda *_: pytest.fail("laid out again"))
        second = mapped(options)
    for name in ("coordinates.npy", "cluster.npy", "rows.npy", "fitted.npy"):
        assert (first.artifacts / name).read_bytes() == (second.artifacts / name).read_bytes()
    assert maps.get(second.id).clusters == maps.get(first.id).clusters
    table = pq.read_table(second.artifacts / "map.parquet").to_pylist()
    drawn = sorted(row["row"] for row in table if row["class"] == "selected")
    assert drawn == sorted(selections.chosen(other).rows)  # each map marks its own selection
    assert any(first.id in note for note in second.state().notes)
    changes: tuple[dict[str, object], ...] = ({"seed": 1}, {"neighbours": 9}, {"clusters": 3}, {"sample": 150})
    changed = [mapped({**options, **change}).result()["layout"] for change in changes]
    assert len({first.result()["layout"], *changed}) == 5


def test_existing_map_is_drawn_with_another_selection(selected: Names, select: str, map_run: str, seal: Seal) -> None:
    assert maps.of(select) == map_run
    other = selected["random"]
    laid_over = maps.of(other)
    assert laid_over is not None
    assert len(runs.listed("map")) == 1  # no new map was computed
    theirs, found = maps.get(map_run), maps.get(laid_over)
    assert (found.xy.tobytes(), found.rows.tobytes()) == (theirs.xy.tobytes(), theirs.rows.tobytes())
    kinds = maps.classes(laid_over)
    assert maps.get(laid_over).domain_rows(np.flatnonzero(kinds == 1)).tolist() == sorted(selections.chosen(other).rows)
    row = maps.page_of(laid_over, np.flatnonzero(kinds == 1), kinds, size=1)[0]
    assert row["score"] == selections.scored(other).scores.values[row["row"]]
    regions.keep_region(laid_over, {"kind": "topic", "value": 1})
    assert regions.kept_region(laid_over) == {"kind": "topic", "value": 1}
    assert mapped(maps.config(laid_over)).id == maps.of(other)  # from now on its own map
    seal([*contracts(60, seed=5)], "elsewhere")
    assert maps.of(done("select", {**SELECTION, "domain": "elsewhere"}, strategy="random")) is None
    assert maps.of(done("select", SELECTION, max_length=64, strategy="random")) is None


def test_cancelled_map_resumes_with_its_stored_layout(select: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The map has 3 dimensions, a sample of the corpus, and the fast method, which would not repeat its layout."""
    monkeypatch.setattr(recipe, "CHUNK", 64)
    options = maps.options(select, sample=60, limit=100, dimensions=3, seed=5, fast=True, clusters=2)

    def stop(event: Event) -> None:
        if event.data.get("name") == "placing the other sentences":
            raise Cancelled("stop")

    with pytest.raises(Cancelled):
        mapped(options, stop)
    run = runs.listed("map")[0]
    assert run.state().state == "cancelled"
    assert run.id not in {other.id for other in maps.finished(select)}
    layout = np.load(run.chunks / "layout.npz")["coordinates"]
    runs.go_on(run.id)
    found = maps.get(run.id)
    np.testing.assert_array_equal(found.xy[:, found.fitted].T, layout)
    assert run.id in {other.id for other in maps.finished(select)}
    assert (found.xy.shape, found.of) == ((3, 100), 282)
    assert min(n for n, _ in maps.class_counts(np.arange(100), maps.classes(run.id)).values()) >= 33
    assert any("100 of 282" in note for note in run.state().notes)
    assert "z" in pq.read_schema(run.artifacts / "map.parquet").names


def test_map_command_repeats_the_map_of_the_same_seed(select: str, tmp_path: Path, command: Command) -> None:
    options = maps.options(select, sample=120, seed=20261129113000, clusters=2)  # a date and time
    run = mapped(options)
    files = [(run.artifacts / name).read_bytes() for name in ("coordinates.npy", "cluster.npy", "fitted.npy")]
    removals.remove_run(run.id)
    words = shlex.split(commands.command("map", options))[3:]
    code, out, _ = command(*words, "--output", tmp_path / "map.parquet", "--json")
    result = json.loads(out)
    made = runs.get(result["run"])
    assert code == 0
    assert [(made.artifacts / name).read_bytes() for name in ("coordinates.npy", "cluster.npy", "fitted.npy")] == files
    assert len(pq.read_table(tmp_path / "map.parquet")) == result["points"] == 282
    with pytest.raises(ConfigError, match="select run"):
        mapped({"selection": made.id})
    code, _, err = command(*words, "--output", tmp_path / "map.csv")
    assert (code, "must end in .parquet" in err) == (2, True)


def test_lasso_and_box_give_points_counts_and_a_sorted_table(select: str, map_run: str) -> None:
    found, kinds = maps.get(map_run), maps.classes(map_run)
    x, y = found.xy
    left, right, low, high = x.min() - 1, float(np.median(x)), y.min() - 1, y.max() + 1
    square = [(left, low), (right, low), (right, high), (left, high)]
    points = found.lasso(square)
    assert points.tolist() == np.flatnonzero(x < right).tolist()
    assert set(points) <= set(found.box(left, right, low, high))
    counts = maps.class_counts(points, kinds)
    assert counts["selected"] == ((kinds[points] == 1).sum(), 40)
    assert [total for _, total in counts.values()] == [40, 40, 202]
    pages = [maps.page_of(map_run, points, kinds, page=i, size=30) for i in range(len(points) // 30 + 1)]
    table = [row for page in pages for row in page]
    assert sorted(row["point"] for row in table) == points.tolist()
    scored = [row["score"] for row in table if row["corpus"] == "D_C"]
    assert scored == sorted(scored)  # low perplexity is preferred
    assert all(row["corpus"] == "T_C" for row in table[len(scored) :])
    domain = selections.scored(select)
    for row in table[:5]:
        (known,) = domain.table(np.array([row["row"]]))
        shown: Mapping[str, object] = row
        assert known == {key: shown[key] for key in known}
    longest = maps.page_of(map_run, points, kinds, sort="tokens", descending=True, size=5)
    assert [row["tokens"] for row in longest] == sorted((row["tokens"] for row in table), reverse=True)[:5]


def test_drawn_points_have_colours_and_tooltips(map_run: str) -> None:
    found, kinds = maps.get(map_run), maps.classes(map_run)
    drawn = found.draw(kinds, 90)
    assert [len(drawn), len(found.draw(kinds, 200)), len(found.draw(kinds, 9999))] == [90, 200, 282]
    assert found.fitted[drawn].all()
    assert set(kinds[drawn]) == {0, 1, 2}
    hover = maps.hover(map_run, np.array([281, 0]), width=12)
    assert hover[0]["text"] == "Slowly stir…"
    assert np.isnan(hover[1]["score"])
    for number in ("score", "length"):
        assert len(maps.colour_numbers(map_run, drawn, number)) == 90
    for name in ("cluster", "doc", "class"):
        assert len(maps.colour_names(map_run, drawn, name)) == 90
    kitchen_points = found.points_of(np.arange(120, 240))
    assert found.domain_rows(kitchen_points).tolist() == list(range(120, 240))
    words = {telling.word for telling in maps.telling_words(map_run, kitchen_points, 30)}
    assert words & {"stir", "bake", "chop", "dough", "aunt"}
    assert not words & {"shall", "agreement", "supplier"}
    assert maps.telling_words(map_run, np.empty(0, dtype=np.int64)) == []


def test_a_column_named_source_is_not_taken_for_the_document(seal: Seal) -> None:
    lines = contracts(60, seed=3)
    columns = [(("source", "pq"[i % 2]),) for i in range(60)]
    rows = [replace(sentence(line), doc="abcde"[i // 12], columns=columns[i]) for i, line in enumerate(lines)]
    corpora.set_role("task", seal(contracts(20, seed=4), "task").fingerprint)
    corpora.set_role("domain", seal(rows, "domain").fingerprint)
    select = done("select", {**SELECTION, "strategy": "random"})
    map_run = done("map", maps.options(select, sample=60, clusters=3))
    assert maps.group_columns(map_run) == [maps.TOPIC, "doc", "source"]
    found = maps.filter_values(map_run)
    assert found["doc"] == {maps.UNKNOWN: 20, **dict.fromkeys("abcde", 12)}
    assert found["source"] == {"p": 30, "q": 30, maps.UNKNOWN: 20}
    kept = maps.get(map_run).rows[maps.with_values(map_run, {"source": ["q"], "doc": ["a"]})]
    assert kept.tolist() == [1, 3, 5, 7, 9, 11]


def test_a_column_of_numbers_with_the_name_of_the_document_is_no_range(seal: Seal) -> None:
    """One corpus has documents, and the other a further column `doc`, such as a number that is not its document."""
    rows = [replace(sentence(line), doc="abcde"[i // 12]) for i, line in enumerate(contracts(60, seed=3))]
    task = [replace(sentence(line), columns=(("doc", str(i % 3)),)) for i, line in enumerate(contracts(20, seed=4))]
    corpora.set_role("task", seal(task, "task").fingerprint)
    corpora.set_role("domain", seal(rows, "domain").fingerprint)
    map_run = done("map", maps.options(done("select", {**SELECTION, "strategy": "random"}), sample=60, clusters=3))
    assert maps.filter_values(map_run)["doc"] == {**dict.fromkeys("abcde", 12), "0": 7, "1": 7, "2": 6}
    assert maps.numbers(map_run, "doc") == []
    # Before Explore called the document `doc`, stored regions named it `source`.
    old = maps.with_values(map_run, {"source": ["b"]})
    assert maps.get(map_run).rows[old].tolist() == list(range(12, 24))


def test_search_ignores_case_and_finds_every_row(map_run: str, tmp_path: Path) -> None:
    texts = {role: stored(corpora.find(role), "text").to_pylist() for role in ("task", "domain")}
    for query in ("THE GOODS", "roux", "MÜDE", "<img src=x>", "", "nowhere", "."):
        hits = maps.search(map_run, query)
        wanted = {r: [i for i, t in enumerate(ts) if query and query.lower() in t.lower()] for r, ts in texts.items()}
        assert (hits.rows.tolist(), hits.task_rows.tolist()) == (wanted["domain"], wanted["task"])
        assert len(hits.points) == len(hits.rows) + len(hits.task_rows)  # all are on this map
    words = maps.search(map_run, "GOODS the", "words").rows.tolist()
    assert words == [i for i, t in enumerate(texts["domain"]) if {"the", "goods"} <= set(t.lower().split())]
    assert not len(maps.search(map_run, "good", "words").rows)  # whole words
    assert len(matches(stored(corpora.find("domain"), "text"), "roux müde", "words")) == 1
    pairs = maps.pairs(map_run, maps.classes(map_run), 5)
    assert [(ours["class"], theirs["class"]) for ours, theirs, _ in pairs] == [("selected", "filtered")] * 5


def test_export_of_sentences_has_rank_class_and_flags(select: str, map_run: str, tmp_path: Path) -> None:
    mapped, chosen = maps.get(map_run), selections.chosen(select).rows
    scored = selections.scored(select)
    domain = [
        int(chosen[0]),
        *(int(np.flatnonzero(scored.audit.mask & bit)[0]) for bit in (1, 2, 8) if (scored.audit.mask & bit).any()),
    ]
    points = np.array([5, *mapped.points_of(np.array(domain))])
    for name in ("x.txt", "x.jsonl", "x.parquet", "x.csv"):
        maps.export(map_run, points, tmp_path / name)
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[-1]["text"] == mapped.texts(np.array([5]))[0]  # T_C comes last
    assert {name for name, value in rows[-1].items() if value is None} == {"score", "rank", *MARKS}
    for row in rows[:-1]:
        why = insights.why(select, row["row"])
        assert row["rank"] == why.rank  # as shown beside the map
        assert row["selected"] == (row["row"] in chosen)
        mask = scored.audit.mask[row["row"]]
        assert [row[name] for name in FLAGGED] == [bool(mask >> bit & 1) for bit in range(len(FLAGGED))]
    assert [row["rank"] for row in rows[:-1]] == sorted(row["rank"] for row in rows[:-1])
    assert any(row[name] for row in rows[:-1] for name in FLAGGED)
    assert (tmp_path / "x.txt").read_text(encoding="utf-8").splitlines() == [row["text"] for row in rows]
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == rows
    with (tmp_path / "x.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = list(csv.DictReader(file))
    assert [cell["selected"] for cell in cells] == [str(row["selected"]) for row in rows[:-1]] + [""]
    assert [cell["text"] for cell in cells] == [str(harmless(row["text"])) for row in rows]


def test_hand_edits_are_stored_exported_and_sealed(select: str, map_run: str, tmp_path: Path) -> None:
    chosen = selections.chosen(select).rows
    out = np.setdiff1d(np.arange(242), chosen)[:3]
    selections.edit(select, "add", out)
    selections.edit(select, "remove", chosen[:2])
    selections.edit(select, "remove", chosen[:20])
    selections.undo(select)
    kinds = maps.classes(map_run)
    assert maps.class_counts(np.arange(5), kinds)["selected"][1] == 41
    now = selections.chosen(select)
    assert set(now.rows) == (set(chosen) | set(out)) - set(chosen[:2])
    assert now.dropped["removed_by_hand"] == 2
    config = runs.get(select).manifest.config
    selections.export(select, config["budget"], config["keep"], tmp_path / "s.jsonl")
    assert len((tmp_path / "s.jsonl").read_text(encoding="utf-8").splitlines()) == 41
    selections.export(select, config["budget"], config["keep"], tmp_path / "folder")
    assert "3 added and 2 removed by hand" in (tmp_path / "folder" / "README.md").read_text(encoding="utf-8")
    sealed = selections.seal(select)
    assert sealed.origin["hand_edits"] == {"added": 3, "removed": 2}
    assert sealed.origin["run"] == select
    assert len(sealed) == 41
    with pytest.raises(CorpusError, match="242"):
        selections.edit(select, "add", np.array([242]))
    for _ in range(5):
        selections.undo(select)
    assert selections.chosen(select).rows.tolist() == chosen.tolist()


def test_explanation_states_why_a_sentence_was_selected_or_not(select: str, map_run: str) -> None:
    chosen = selections.chosen(select).rows
    scored = selections.scored(select)
    best = insights.why(select, int(chosen[0]))
    assert (best.verdict, best.rank) == ("Selected: number 1 of 40 in the selection.", 1)
    order = scored.order.tolist()
    flagged = next(row for row in order if scored.audit.mask[row])
    after = insights.why(select, next(row for row in chosen.tolist() if order.index(row) > order.index(flagged)))
    better = order[: order.index(after.row)]
    left_out = sum(bool(scored.audit.mask[row]) for row in better)
    number = len(better) - left_out + 1
    words = "1 sentence with a better rank is" if left_out == 1 else f"{left_out} sentences with a better rank are"
    assert after.verdict == f"Selected: number {number} of 40 in the selection; {words} left out."
    assert after.rank == number + left_out
    assert (best.of, best.unit, best.prefer) == (242, "perplexity", "low")
    assert 10**best.total == pytest.approx(best.score, rel=1e-5)
    assert len(best.neighbours) == 5  # the map embedded the sentences; the strategy needs no embedding
    cosines = [near["cosine"] for near in best.neighbours]
    assert cosines == sorted(cosines, reverse=True)
    short = insights.why(select, 240)
    assert "Withheld: flagged too short" in short.verdict
    free = scored.eligible(FLAGS)
    below = insights.why(select, int(free[40]))
    assert (
        below.verdict
        == "Below the cut: 40 sentences that may be selected have a better rank, and the budget selects 40."
    )
    assert below.rank is not None
    worse = (scored.scores.values > below.score).sum()
    assert below.percentile == pytest.approx(100 * worse / 241)
    clusters = scored.audit.cluster
    (copied,) = np.flatnonzero(np.bincount(clusters)[clusters] > 1)[:1]
    same = set(np.flatnonzero(clusters == clusters[copied])) - {copied}
    assert {row["row"] for row in insights.why(select, int(copied)).duplicates} == same
    selections.edit(select, "remove", chosen[:1])
    selections.edit(select, "add", free[40:41])
    assert insights.why(select, int(chosen[0])).verdict == "Removed from the selection by hand."
    assert insights.why(select, int(free[40])).verdict == "Added to the selection by hand."
    with pytest.raises(CorpusError):
        insights.why(select, 242)


def test_explanation_counts_better_ranks_by_score_if_diversity_changed_the_order(selected: Names) -> None:
    diverse = done("select", SELECTION, strategy="ngram-perplexity", diversity="mmr", trade=0.3)
    scored, chosen = selections.scored(diverse), selections.chosen(diverse).rows
    by_score, free = ranking(scored.scores.values, "low"), scored.eligible(FLAGS)
    for number, row in enumerate(chosen.tolist(), 1):
        left = len(set(by_score[: by_score.tolist().index(row)]) - set(chosen))
        more = f"; {left} sentences with a better rank are left out." if left > 1 else "."
        verdict = insights.why(diverse, row).verdict
        assert left == 1 or verdict == f"Selected: number {number} of 40 in the selection{more}"
    kinds = set()
    for row in sorted(set(free) - set(chosen)):
        before = len(set(by_score[: by_score.tolist().index(row)]) & set(free))
        kinds.add(kind := "Below the cut" if before >= 40 else "Left out by diversity")
        assert insights.why(diverse, int(row)).verdict.startswith(f"{kind}: {before} sentence")
    assert len(kinds) == 2
    flagged = next(row for row in by_score.tolist() if scored.audit.mask[row])
    assert insights.why(diverse, flagged).verdict.endswith("its score would have been enough.")


def test_two_selections_are_compared(selected: Names) -> None:
    select, other = selected["select"], selected["random"]
    ours, theirs = set(selections.chosen(select).rows), set(selections.chosen(other).rows)
    found = insights.sides(select, other)
    for i, rows in enumerate([set(range(242)) - ours - theirs, ours - theirs, theirs - ours, ours & theirs]):
        assert set(np.flatnonzero(found == i)) == rows
    for n, shared in insights.overlap_curve(select, other):
        a, b = (selections.chosen(run, str(n)).rows for run in (select, other))
        assert shared == len(set(a) & set(b))
    may = selections.scored(select).eligible(FLAGS)
    assert len(may) < 242
    n, shared = insights.overlap_curve(select, select)[-1]
    assert shared / n == n / insights.chance_of(select, select)  # both select all that may be selected
    keeping = done("select", {**SELECTION, "keep": FLAGS}, strategy="random")
    assert insights.chance_of(select, keeping) == 242  # `select` draws a part of the 242 rows that `keeping` draws from
    for i, side in enumerate(insights.SIDES):
        examples = [row["row"] for row in insights.side_examples(select, other, side, 4)]
        assert examples
        assert (found[examples] == i).all()


@pytest.mark.parametrize("how", ["quota", "mmr"])
def test_diversity_changes_only_the_order(select: str, map_run: str, how: str, tmp_path: Path) -> None:
    options = {"strategy": "ngram-perplexity", "diversity": how, "trade": 0.3}
    diverse = done("select", SELECTION, **options)
    assert runs.get(diverse).result()["score_run"] == runs.get(select).result()["score_run"]
    rows = selections.chosen(diverse).rows
    assert len(rows) == 40
    assert set(rows) <= set(selections.scored(select).eligible(FLAGS)[:200])
    assert set(rows) != set(selections.chosen(select).rows)
    assert selections.chosen(diverse, "15").rows.tolist() == rows[:15].tolist()
    assert sorted(selections.scored(diverse).order) == sorted(selections.scored(select).order)
    before, after = insights.health_without_diversity(diverse), insights.health(diverse)
    assert before == insights.health(select)
    assert after.variety != before.variety
    path = maps.export(f"{map_run}@{diverse}", np.arange(282), tmp_path / "all.jsonl")
    exported = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    scored = [row for row in exported if row["rank"]]
    assert [row["rank"] for row in scored] == [insights.why(diverse, row["row"]).rank for row in scored]
    assert [row["rank"] for row in scored] == list(range(1, len(scored) + 1))
    with pytest.raises(ConfigError, match="threshold"):
        done("select", {**SELECTION, **options, "strategy": "dsir"}, budget="threshold:9")
    assert "dsir" not in [run.manifest.config["strategy"] for run in runs.listed("score")]  # refused before scoring


@pytest.mark.parametrize("strategy", ["ngram-perplexity", "dsir"])
def test_threshold_of_a_diverse_selection_takes_exactly_the_sentences_that_reach_it(
    selected: Names, strategy: str
) -> None:
    diverse = done("select", SELECTION, strategy=strategy, diversity="mmr", trade=0.3)
    scored, n = selections.scored(diverse), len(selections.chosen(diverse).rows)
    by_score = ranking(scored.scores.values, scored.scores.prefer)
    best = by_score[np.isin(by_score, scored.eligible(FLAGS))][:n]
    selections.keep_budget(diverse, selections.budget_in(diverse, "threshold"))
    chosen = selections.chosen(diverse)
    assert sorted(chosen.rows) == sorted(best)
    shown = insights.examples(diverse, chosen, (), "borderline")
    assert [row["selected"] for row in shown] == [row["row"] in best for row in shown] == [True] * 4 + [False] * 4


def test_health_counts_tokens_coverage_and_new_entities(select: str, seal: Seal) -> None:
    found = insights.health(select)
    assert found.sentences == 40
    assert None not in (found.coverage, found.variety)
    random = done("select", SELECTION, max_length=64, strategy="random")
    bare = insights.health(random)
    assert (bare.coverage, bare.variety) == (None, None)  # nothing was embedded with windows of this length
    done("map", maps.options(random))
    assert None not in (insights.health(random).coverage, insights.health(random).variety)
    lengths = selections.scored(select).lengths
    rows = selections.chosen(select).rows
    assert found.tokens == lengths[rows].sum()
    assert found.median_tokens["D_C"] == np.median(lengths)
    selections.edit(select, "remove", rows[:30])
    assert insights.health(select).sentences == 10
    names = [sentence("the Harlow Ltd sued", [(1, 3, "ORG")])]
    seal(names, "names", labelled=True)
    assert insights.health(select, labelled="names").new_entities_of >= 0
