"""Arms of an experiment: names, needs, controls, steps, other encoders, and the text and labels that each arm uses."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from core import RESULTS_VERSION
from core.config import Config, option
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.encoders.embed import EmbedConfig
from core.errors import ConfigError
from core.experiment import arms, leaderboard, results, tables
from core.experiment import steps as stages_module
from core.experiment import view as experiments
from core.experiment.arms import as_much_as, claimed
from core.experiment.config import ExperimentConfig, Replicate
from core.experiment.cost import Lookup, Seconds
from core.experiment.steps import CHECK, Labels, Stages, in_order, lines, options_of
from core.experiment.words import name_of
from core.importing import view as facade_corpora
from core.kind import Job, plan
from core.kinds import KINDS
from core.models.bilstm import BiLstmTagger
from core.models.encoder import EncoderOptions
from core.models.fingerprint import fingerprint
from core.models.taggers import load_tagger
from core.projects import runs
from core.reporter import Silent
from core.results import Evaluation
from core.runs.context import RunContext
from core.runs.run import run_key
from core.selection import STRATEGIES, select
from core.selection import score as score_module
from core.similarity import view as similarity
from core.similarity.base import capped
from core.tagging import calibrate
from tests import finished
from tests.conftest import sentence
from tests.experiment.test_experiment import OPTIONS, fill, labelled
from tests.fake_models import tiny_mlm
from tests.finished import TIMED
from tests.homes import done
from tests.planted import contracts, kitchen

SPLITS = {
    "train": "train",
    "dev": "dev",
    "test": "test",
    "also_test": ("hard",),
    "encoder": "tiny",
    "seeds": (1, 2),
    "repeat": "tagger",
}
GIVEN = {"task": "t", "domain": "d", "sources": ("s",), "assisting": "a"}


def fill_all(home: Path) -> Library:
    """Seal L_C with two types, labels to borrow, and two sources of different sizes; one contains a test sentence."""
    library, texts = Library(home), contracts(150, seed=1)
    for name, part in {"train": texts[:40], "dev": texts[40:50], "test": texts[50:70], "hard": texts[70:90]}.items():
        rows = [
            sentence(text, [(0, 2, "PARTY"), (len(text.split()) - 2, len(text.split()) - 1, "END")]) for text in part
        ]
        library.seal(rows, name=name, origin={}, labelled=True)
    library.seal(labelled(texts[90:110]), name="theirs", origin={}, labelled=True)
    library.seal(map(sentence, [*texts[110:], texts[50]]), name="law", origin={})
    library.seal(map(sentence, kitchen(90)), name="food", origin={})
    return library


@pytest.fixture
def corpora(home: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setattr(calibrate, "SECONDS", 0.0)
    return fill_all(home)


def timed(options: dict[str, Any]) -> None:
    """Time this machine for the encoders of an experiment."""
    for timing in experiments.calibrations(options):
        done("calibrate", timing)


def made(**options: Any) -> tuple[Any, dict[str, Any]]:
    """Execute an experiment; return it and {arm: row}. Check its estimated cost before and after."""
    options = {**SPLITS, **options}
    timed(options)
    before = experiments.cost(options)
    assert before.seconds > 0
    stages: list[str] = []
    run = runs.execute("experiment", options, lambda e: stages.append(e.data["name"]) if e.kind == "stage" else None)
    assert sum(name.startswith("[") for name in stages) == len(before.steps)
    assert experiments.cost(options).seconds == 0
    return run, {row["arm"]: row for row in run.result()["leaderboard"]}


def test_variant_names_with_values_are_parsed() -> None:
    assert arms.find("monolingual") == arms.find("base") == arms.find("none")
    assert arms.find("vectors:my law").source == "my law"
    lm = arms.find("lm:law")
    assert (lm.states, lm.pretrains, lm.adapts) == (True, True, False)
    assert arms.find("skl:2.0") == arms.find("skl:2")
    assert (arms.find("highc2low:20%").rate, arms.find("low-share:0.30%").name) == (0.2, "low-share:0.3%")
    assert arms.find("dataaug").rebuild == "dataaug"
    assert (arms.find("low-share:0.0%").name, arms.find("low-share:0 %").rate) == ("low-share:0%", 0.0)
    config: Any = SimpleNamespace(draw_seed=0, rebuild={}, encoder="tiny", held_out=(), dev="d", train="t")
    run: Any = SimpleNamespace(id="measured")
    cell = arms.Cell(arm=arms.sized(arms.find("low-share:0%"), 5))
    rebuilt = Labels(config, cast(Job, None)).rebuild(cell, Replicate(draw=0, seeds=(1,)), [run], (0, 0))
    assert (rebuilt.rate, rebuilt.difficulty) == (0.0, "measured")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vectors", "'vectors' is not known; choose among none.*vectors:SOURCE, lm:SOURCE, skl:THRESHOLD"),
        ("vectors: ", "is not known"),
        ("skl:much", "'skl:much' needs a threshold above 0; write for example skl:2"),
        ("skl:-1", "needs a threshold above 0"),
        ("highc2low:200", "'highc2low:200' needs a share; write for example highc2low:20%"),
        ("highc2low:140%", "needs a share"),
        ("highc2low:0%", "needs a share"),
        ("low-share:", "is not known"),
        ("dataaug:20%", "is not known"),
        ("base:many", "'base:many' needs a number of sentences; write for example base:1000"),
        ("base+low:0", "write for example base\\+low:1000"),
    ],
)
def test_wrong_variant_name_raises_a_readable_error(name: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        arms.find(name)


@pytest.mark.parametrize(
    ("name", "without", "network", "says"),
    [
        ("tapt", "task", "encoder", "arms: tapt uses the task corpus; give a task corpus, or leave that variant out"),
        ("dapt", "task", "encoder", "dapt uses the task corpus"),
        ("knn", "domain", "encoder", "knn selects from the domain corpus"),
        ("vectors:law", "sources", "bilstm", "vectors:law uses a source; give sources or imported_vectors"),
        ("lm:law", "sources", "bilstm", "lm:law uses a source; give sources, or leave"),
        ("skl:2", "assisting", "encoder", "skl:2 adds assisting sentences; give an assisting corpus"),
        ("tapt", "", "bilstm", "tapt needs the network encoder or span, but all variants share bilstm"),
        ("lm:law", "", "charcnn", "lm:law needs the network bilstm"),
        ("vectors:law", "", "encoder", "vectors:law needs the network bilstm or charcnn"),
    ],
)
def test_variant_without_its_input_or_network_is_refused(name: str, without: str, network: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        arms.complete((name,), {key: value for key, value in GIVEN.items() if key != without}, network)


def planned(home: Path, **options: Any) -> tuple[ExperimentConfig, Stages]:
    """Return the resolved config of an experiment and its stages."""
    config = plan(KINDS["experiment"], ExperimentConfig.parse({**SPLITS, **options}), home).config
    assert isinstance(config, ExperimentConfig)
    return config, Stages(config, Lookup(home, cast(RunContext, Silent()), KINDS))


def test_gazetteer_variant_reads_the_given_list_or_the_training_set(home: Path) -> None:
    made = fill(home)
    names = Library(home).seal([sentence("The supplier"), sentence("Harlow Ltd")], name="names", origin={})
    given = {"also_test": (), "task": "task", "domain": "domain", "arms": ("gazetteer", "classifier")}
    for listed in ("", "names"):
        config, stages = planned(home, **given, gazetteer=listed)
        read = {cell.arm.name: stages.select(cell, config.replicates(cell)[0]).train for cell in config.cells[1:]}
        train = made["train"].fingerprint
        assert read == {"random": train, "gazetteer": names.fingerprint if listed else train, "classifier": train}


def test_multiple_of_a_budget_in_tokens_is_at_most_all_of_the_domain_corpus(home: Path) -> None:
    tokens = fill(home)["domain"].n_tokens
    given: dict[str, Any] = {"also_test": (), "task": "task", "domain": "domain", "arms": ("knn",)}
    given |= {"transductive": "all", "repeat": "pipeline", "seeds": (1, 2), "multipliers": True}
    config, stages = planned(home, **given, budgets=(f"{tokens // 3}tokens",))
    drawn = [cell for cell in config.cells if cell.arm.name == arms.RANDOM]
    budgets = [stages.select(cell, config.replicates(cell)[0]).budget for cell in drawn]
    assert budgets == [f"{n}tokens" for n in (tokens // 3, 2 * (tokens // 3), tokens)]


def test_few_letters_of_a_fingerprint_name_no_source(corpora: Library) -> None:
    """A misspelt name such as `vectors:fa` must not take a corpus whose fingerprint begins with these letters."""
    law = corpora.find("law")
    for letters in (1, 5, 6, 24):
        name = law.fingerprint[:letters]
        find = partial(stages_module.find_named, arms.find(f"vectors:{name}"), name, [law], "sources")
        if letters < 6:
            with pytest.raises(ConfigError, match="names none of the sources; choose among law"):
                find()
        else:
            assert find() == law


def test_control_of_tapt_reads_all_of_a_domain_corpus_that_is_smaller_than_the_task_corpus(home: Path) -> None:
    """A larger budget would be refused, although the user gave none."""
    made = fill(home)
    for task, domain in (("task", "domain"), ("domain", "task")):
        given = {"also_test": (), "task": task, "domain": domain, "arms": ("tapt",), "transductive": "all"}
        config, stages = planned(home, **given)
        (cell,) = [cell for cell in config.cells if cell.arm.name == arms.CONTROL]
        budget = stages.select(cell, config.replicates(cell)[0]).budget
        assert budget == f"{min(made[task].n_tokens, made[domain].n_tokens)}tokens"


def test_lines_share_the_vectors_of_a_large_domain_corpus(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(home)
    for largest, cascade in ((select.LARGE, None), (9, False)):
        for module in (select, stages_module):
            monkeypatch.setattr(module, "LARGE", largest)
        config, stages = planned(home, also_test=(), task="task", domain="domain", arms=("classifier",))
        cell = config.cells[-1]
        assert stages.select(cell, config.replicates(cell)[0]).settled().cascade is cascade


def test_each_size_of_a_source_has_variants_and_sizes_are_nested(
    corpora: Library, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages_module, "learnable", lambda source, held_out, job: corpora.find(source))
    sizes = (300, 100)
    config, stages = planned(home, sources=("law", "food"), arms=("vectors:law", "lm:law"), cap_tokens=sizes)
    lines = [f"{arm} {size}tokens" for arm in ("vectors:law", "lm:law") for size in sizes]
    assert [str(cell) for cell in config.cells] == ["none", "states", *lines]
    large, small = (stages.source(cell) for cell in config.cells[2:4])
    assert large
    assert small
    assert 60 < small.n_tokens <= 100 < 260 < large.n_tokens <= 300
    assert set(small.ids().tolist()) < set(large.ids().tolist())
    assert [stages.source(cell) for cell in config.cells[4:]] == [large, small]
    replicate = config.replicates(config.cells[3])[0]
    tuned = stages.finetune(config.cells[3], replicate, (0, 0), select=None, pretrain=None, labels=())
    assert tuned.vectors == small.fingerprint
    assert str(arms.control(config.cells[4], config.cells)) == "states"
    timed = Seconds(config, TIMED, {each.name: each for each in facade_corpora.listed()}, [corpora.find("law")])
    more, less = (timed.pretrain(cell) for cell in config.cells[4:])
    assert more > less


def test_cost_counts_the_other_strategies_and_the_sentences_that_are_compared(home: Path) -> None:
    """`loss-drop` scores by `classifier` too, trains two models, and compares five times the budget."""
    made = fill(home)

    def seconds(arm: str, budget: str) -> float:
        config, _ = planned(home, also_test=(), task="task", domain="domain", arms=(arm,), budgets=(budget,))
        (cell,) = [cell for cell in config.cells if cell.arm.strategy == arm]
        return Seconds(config, TIMED, made).select(cell, config.replicates(cell)[0])

    assert seconds("fuse", "10%") > seconds("classifier", "10%") > seconds("moore-lewis", "10%")
    few, more, most = (seconds("loss-drop", budget) for budget in ("5%", "10%", "50%"))
    assert seconds("classifier", "10%") < few < more < most
    assert seconds("loss-drop", "90%") == most


def test_single_token_cap_stays_a_number_and_wrong_caps_are_refused() -> None:
    given = {**SPLITS, "sources": ("a",), "arms": ("vectors:a",)}
    for size, kept in ((0, 0), ("", 0), (500, 500), (("500",), 500), ((500, 100), [500, 100])):
        config = ExperimentConfig.parse({**given, "cap_tokens": size})
        assert config.model_dump(mode="json")["cap_tokens"] == kept
        assert ExperimentConfig.parse(config.model_dump(mode="json")) == config
        assert len(config.cells) == (3 if size == (500, 100) else 2)
    for wrong in ((0, 5), (5, 5), -1):
        with pytest.raises(ConfigError, match=r"cap_tokens: .* must be different numbers of tokens, each at least 1"):
            ExperimentConfig.parse({**given, "cap_tokens": wrong})
    lengths = np.array([5, 9, 2, 7])
    assert capped(lengths, None, 0).tolist() == [0, 1, 2, 3]
    rows = capped(lengths, 12, 3)
    assert 0 < lengths[rows].sum() <= 12 or len(rows) == 1  # only whole sentences are drawn


def test_variants_read_as_many_tokens_as_the_claimed_strategy() -> None:
    """Lines read as many tokens as the claimed strategy, by default the first. A budget in tokens needs no pattern."""
    names = arms.complete(("tapt", "knn", "gazetteer"), GIVEN, "encoder")
    cells = arms.cells(names, ("10%", "500tokens"), ("other",))

    def patterns(claim: str) -> dict[str, str]:
        pairs = ((cell, as_much_as(cell, cells, claim)) for cell in cells)
        return {str(cell): str(other) for cell, other in pairs if other}

    assert [str(claimed(cells, name)) for name in ("", "gazetteer", "tapt")] == ["knn 10%", "gazetteer 10%", "tapt"]
    assert patterns("") == patterns("tapt")  # `tapt` selects nothing
    assert patterns("") == {
        "random 10%": "knn 10%",
        "gazetteer 10%": "knn 10%",
        "random encoder:other 10%": "knn encoder:other 10%",
        "gazetteer encoder:other 10%": "knn encoder:other 10%",
    }
    assert patterns("gazetteer")["knn 10%"] == "gazetteer 10%"
    config = {**SPLITS, "task": "t", "domain": "d", "arms": ("tapt", "knn"), "claim": "random"}
    with pytest.raises(ConfigError, match="claim: random gets no verdict; name one of tapt, knn"):
        ExperimentConfig.parse(config)


def test_each_variant_gets_its_control() -> None:
    names = arms.complete(("lm:law", "vectors:law"), GIVEN, "bilstm")
    assert names == ("none", "states", "lm:law", "vectors:law")
    assert arms.complete(("skl:2",), GIVEN, "encoder") == ("none", "all", "random-part:2", "skl:2")
    assert arms.complete(("low2high:20%", "lpft"), {}, "encoder") == ("none", "low2high:20%", "lpft")
    grown = arms.complete(("highc2low:20%", "dataaug"), {}, "encoder")
    assert grown == ("none", "copies:highc2low:20%", "copies:dataaug", "highc2low:20%", "dataaug")
    every = arms.cells((*names, *arms.complete(("skl:2",), GIVEN, "encoder")[1:], *grown[1:]), ("10%",))
    against = {str(cell): str(arms.control(cell, every)) for cell in every}
    assert {name: other for name, other in against.items() if other != "None"} == {
        "lm:law": "states",
        "skl:2": "random-part:2",
        "highc2low:20%": "copies:highc2low:20%",
        "dataaug": "copies:dataaug",
    }
    assert {cell.arm.name for cell in every if not cell.arm.judged} == {"none", *against.values()} - {"None", "states"}
    assert all(arms.against(other) for cell in every if (other := arms.control(cell, every)))
    unlabelled = arms.cells(("none", "distant:random", "distant", "self-train:random", "self-train"), ("20",))
    controls = {cell: other for cell in unlabelled if (other := arms.control(cell, unlabelled))}
    named = {str(cell): str(other) for cell, other in controls.items()}
    assert named == {f"{name} 2000": f"{name}:random 2000" for name in ("distant", "self-train")}
    assert all(map(arms.against, controls.values()))


def test_sets_of_a_fixed_size_have_a_random_set_of_equal_size_as_baseline(corpora: Library) -> None:
    """Ma et al. 2023, Table 3: compared with the whole of L_C, every smaller set would lose."""
    given: dict[str, Any] = {
        **{**SPLITS, "repeat": "pipeline"},
        "arms": ("base+low:8", "low-share:50%", "dataaug"),
        "rebuild": {"size": 5},
        "axis": ("encoder:other",),
    }
    config = ExperimentConfig.parse(given)
    against = {str(cell): str(arms.baseline(cell, config.cells)) for cell in config.cells}
    assert against["base+low:8"] == "base:8"
    assert against["low-share:50%"] == "base:5"
    assert against["base+low:8 encoder:other"] == "base:8 encoder:other"
    assert against["base:8"] == against["dataaug"] == "none"
    judged = {cell.arm.name for cell in config.cells if cell.arm.judged and not cell.arm.encoder}
    assert judged == {"base+low:8", "low-share:50%", "dataaug"}
    by_name = {str(cell): cell for cell in config.cells}
    seconds = Seconds(config, TIMED, {name: corpora.find(name) for name in ("train", "dev", "test")})
    whole, small = (seconds.finetune(0, by_name[name]) for name in ("none", "base:5"))
    assert small < whole
    with pytest.raises(ConfigError, match="add for example base\\+low:1000 to arms"):
        ExperimentConfig.parse({**given, "rebuild": {"add_bin": "low"}})


def test_variants_that_rebuild_labels_use_the_preset_of_their_paper() -> None:
    def preset(*names: str, **options: Any) -> str:
        return ExperimentConfig.parse({**SPLITS, "preset": "paper", "arms": names, **options}).tagger_settings.preset

    assert preset("base:1000", "highc2low:20%", "lpft") == "paper-bias"
    assert preset("none") == preset("low2high:20%", "tapt", task="t") == "paper"
    assert preset("low2high:20%", finetune={"network": "charcnn"}) == "paper"


def test_sources_share_a_token_cap_and_similarity_uses_their_effects(corpora: Library, tmp_path: Path) -> None:
    (tmp_path / "far.vec").write_text("of 1 2 3 4 5 6 7\nthe 7 6 5 4 3 2 1\n")
    (tmp_path / "wide.vec").write_text("of 1 2\n")
    far, _ = (done("vectors-import", path=str(tmp_path / name)) for name in ("far.vec", "wide.vec"))
    _, rows = made(
        sources=("law", "food"),
        imported_vectors=("far",),
        arms=("vectors:food", "lm:law", "vectors:far"),
        pretrain={"epochs": 1},
        seeds=(1,),
        finetune={"epochs": 2, "hidden": 4},
        vectors={"window": "2"},
    )
    assert set(rows) == {"none", "states", "vectors:food", "lm:law", "vectors:far"}
    (learnt,) = runs.listed("vectors")
    assert (learnt.manifest.config["window"], learnt.result()["dimension"]) == (2, 7)
    # All arms have word vectors of the same length.
    layouts = [load_tagger(runs.get(row["finetune_run"]).artifacts / "model", device="cpu") for row in rows.values()]
    assert {tagger.layout.word_size for tagger in layouts if isinstance(tagger, BiLstmTagger)} == {7}
    tuned = {arm: runs.get(row["finetune_run"]).manifest.config for arm, row in rows.items()}
    assert {config["network"] for config in tuned.values()} == {"bilstm"}
    assert not tuned["none"]["vectors"] + tuned["none"]["states"]
    assert [arm for arm, config in tuned.items() if config.get("imported_vectors") == far] == ["vectors:far"]
    (pretrained,) = (runs.get(row["pretrain_run"]) for row in rows.values() if row["pretrain_run"])
    law, food = corpora.find(*pretrained.manifest.config["corpora"]), corpora.find(tuned["vectors:food"]["vectors"])
    small, large = sorted((law.n_tokens, food.n_tokens))
    assert 0 <= large - small < 40  # both have whole sentences up to the same cap
    assert large <= corpora.find("law").n_tokens < corpora.find("food").n_tokens
    held_out = set(corpora.find("test").ids().tolist()) | set(corpora.find("hard").ids().tolist())
    assert not held_out & set(law.ids().tolist())
    assert (tuned["lm:law"]["states"], tuned["states"]["states"]) == (pretrained.id, "tiny")

    compared = {"source": ("law", "food"), "target": ("train",), "measure": ("tvc",), "min_source_tokens": 1}
    found = similarity.judge_own(done("similarity", compared, draws=1, sizes=0))
    assert found is not None
    assert {effect.name for effect in found.effects} == {"word vectors", "language model"}
    assert found.rule is None  # no source has both effects
    wrong = {**SPLITS, "sources": ("law", "food"), "arms": ("vectors:sport",), "finetune": {"hidden": 4}}
    with pytest.raises(ConfigError, match=r"arms: vectors:sport names none of the sources; choose among law, food"):
        experiments.cost(wrong)
    with pytest.raises(ConfigError, match=r"need vectors of one dimension, but these differ \(far 7, wide 2\)"):
        experiments.cost({**wrong, "imported_vectors": ("far", "wide"), "arms": ("vectors:far",)})
    with pytest.raises(
        ConfigError, match=r"cap_tokens: .* has only [\d,]+ tokens, but every source must give the same number"
    ):
        done("experiment", wrong, arms=("vectors:law",), cap_tokens=10**6)


def test_taggers_of_an_experiment_with_a_further_seed_count_once(corpora: Library, untrained: None) -> None:
    """For `none` and `vectors`, one run trains all seeds, so the second experiment trains the first seeds again."""
    options: dict[str, Any] = {"sources": ("law",), "arms": ("vectors:law", "lm:law"), "repeat": "pipeline"}
    options |= {"finetune": {"hidden": 4}, "pretrain": {"epochs": 1}}
    boards = [made(**options, seeds=seeds)[1] for seeds in ((1, 2), (1, 2, 3))]
    compared = {"source": ("law", "food"), "target": ("train",), "measure": ("tvc",), "min_source_tokens": 1}
    found = similarity.own_f1(done("similarity", compared, draws=1, sizes=0))
    arms_of = {"word vectors": "vectors:law", "language model": "lm:law"}
    assert {each.name for each in found} == {*arms_of}
    for each in found:
        f1s = boards[1][arms_of[each.name]]["micro_f1"]
        assert (each.runs.tolist(), each.mean[0, 0]) == ([[3, 0]], pytest.approx(mean(f1s)))
        assert each.none.tolist() == [pytest.approx(mean(boards[1]["none"]["micro_f1"]))]


def test_further_test_sets_are_scored_and_shown_beside_the_first(corpora: Library, untrained: None) -> None:
    run, rows = made(
        assisting="theirs", arms=("monolingual", "skl:4"), finetune={"network": "charcnn", "hidden": 8, "epochs": 9}
    )
    assert set(rows) == {"none", "all", "skl:4", "random-part:4"}
    hard = {arm: row["also"] for arm, row in rows.items()}
    for arm, row in rows.items():
        (test,) = hard[arm]
        tuned = [runs.get(name) for name in row["finetune_runs"]]
        parts = [(run.artifacts, seed) for run in tuned for seed in run.manifest.config["seeds"]]
        f1s = [Evaluation.load(folder / f"evaluation-test1-{seed}.npz").f1() for folder, seed in parts]
        assert (test["test"], test["micro_f1"]) == ("hard", f1s)
        assert test["mean"] == pytest.approx(mean(f1s))
        assert test["delta"] == pytest.approx(mean(f1s) - hard["none"][0]["mean"])
        assert row["micro_f1"] != test["micro_f1"] or not any(f1s)
    table = list(csv.DictReader(io.StringIO(tables.as_csv(results.board(run.id)))))
    assert {row["arm"]: float(row["mean hard"]) for row in table} == {arm: hard[arm][0]["mean"] for arm in rows}
    assert "| variant | budget | test | hard |" in tables.as_markdown(results.board(run.id))
    board = run.result()
    board["leaderboard"] = [
        {key: row[key] for key in row if key not in ("also", "about", "welch")} for row in rows.values()
    ]
    finished.returned(run, board)
    # A result from before further test sets were compared.
    assert "hard" not in tables.as_markdown(results.board(run.id))

    borrowed = {arm: runs.get(row["finetune_run"]).manifest.config["assisting"] for arm, row in rows.items()}
    assert borrowed["none"] == ""
    assert len(corpora.find(borrowed["all"])) >= len(corpora.find(borrowed["skl:4"])) > 0
    part, kept = (corpora.find(borrowed[arm]) for arm in ("random-part:4", "skl:4"))
    assert len(part) == len(kept)
    assert rows["skl:4"]["delta_random"] == pytest.approx(rows["skl:4"]["mean"] - rows["random-part:4"]["mean"])
    assert (rows["random-part:4"]["verdict"], len(rows["random-part:4"]["finetune_runs"])) == ("control", 2)
    assert Counter(each.manifest.kind for each in runs.listed())["skl"] == 1


def test_all_needs_no_scores_and_skl_takes_its_options(corpora: Library, untrained: None) -> None:
    """SKL could not compare L_C with `strange`. Taggers of all arms have the same hidden size."""
    rows = [sentence("Acme sued Beta .", [(0, 1, "FIRM"), (2, 3, "RIVAL")])]
    strange = corpora.seal(rows, name="strange", origin={}, labelled=True).fingerprint
    small = {"seeds": (1,), "finetune": {"network": "charcnn", "epochs": 1}}
    _, found = made(assisting="strange", arms=("all",), **small)
    assert not runs.listed("skl")
    tuned = [runs.get(row["finetune_run"]).manifest.config for row in found.values()]
    assert [each["hidden"] for each in tuned] == [400, 400]
    assert runs.get(found["all"]["finetune_run"]).manifest.config["assisting"] == strange
    assert facade_corpora.find(strange).name == "strange"
    made(assisting="theirs", arms=("skl:9.5",), skl={"unit": "surface"}, **small)
    assert runs.listed("skl")[0].manifest.config["unit"] == "surface"

    def tagger(*names: str, **finetune: Any) -> object:
        given = {**SPLITS, "assisting": "theirs", "arms": names, "finetune": finetune}
        return ExperimentConfig.parse(given).tagger

    assert tagger("all", network="charcnn") == {"network": "charcnn", "hidden": 400}
    assert tagger("skl:2", network="charcnn", hidden=7) == {"network": "charcnn", "hidden": 7}
    assert tagger("none", network="charcnn") == {"network": "charcnn"}
    assert tagger("all") == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arms": ("skl:9.5",), "assisting": "odd"}, "GPE is no type"),
        ({"arms": ("all",), "assisting": "odd"}, "GPE is no type"),
        ({"arms": ("all",), "assisting": "theirs", "type_map": ("PARTY=FIRM",)}, "renames a type of train"),
    ],
)
def test_impossible_borrowing_is_refused_before_the_first_training(
    corpora: Library, options: dict[str, Any], words: str
) -> None:
    rows = [*labelled(contracts(20, seed=2)), sentence("We met in Oslo .", [(3, 4, "GPE")])]
    corpora.seal(rows, name="odd", origin={}, labelled=True)
    with pytest.raises(ConfigError, match=words):
        done("experiment", SPLITS, **options)
    assert not runs.listed("finetune")


def test_options_that_the_experiment_sets_itself_are_refused() -> None:
    for stage, name in ("skl", "primary"), ("select", "weights"), ("pretrain", "weights"), ("finetune", "weights"):
        with pytest.raises(ConfigError, match=rf"{stage}\.{name}: is not an option here; choose among "):
            ExperimentConfig.parse({**SPLITS, stage: {name: "x"}})


def test_labels_are_rebuilt_by_one_measurement_with_another_encoder(
    corpora: Library, tmp_path: Path, untrained: None
) -> None:
    judge = str(tiny_mlm(tmp_path / "judge"))
    _, rows = made(
        arms=("base", "highc2low:20%", "low2high:20%", "dataaug", "lpft", "base+high:6"),
        finetune={"epochs": 2, "head_learning_rate": 0.1, "dev_every": 3},
        seeds=(1,),
        difficulty={"folds": 2, "entity_epochs": 1, "context_epochs": 1},
        difficulty_encoder=judge,
    )
    (measured,) = runs.listed("difficulty")
    assert (measured.manifest.config["encoder"], measured.manifest.config["weights"]) == (judge, fingerprint(judge))
    tuned = {arm: runs.get(row["finetune_run"]).manifest.config for arm, row in rows.items()}
    assert {(config["init"], config["dev_every"]) for config in tuned.values()} == {("tiny", 3)}
    rebuilt = {each.manifest.config["method"]: each for each in runs.listed("rebuild")}
    assert set(rebuilt) >= {"highc2low", "low2high", "dataaug"}
    assert {each.manifest.config["difficulty"] for each in rebuilt.values()} == {measured.id, ""}
    held_out = {corpora.find(name).fingerprint for name in ("dev", "test", "hard")}
    for name, arm in (("highc2low", "highc2low:20%"), ("low2high", "low2high:20%"), ("dataaug", "dataaug")):
        assert set(rebuilt[name].manifest.config["holdout"]) == held_out
        assert tuned[arm]["train"] == rebuilt[name].result()["corpus"]
        assert rows[arm]["label_runs"][-1] == rebuilt[name].id
    assert tuned["lpft"]["stages"] == "lpft"
    assert rows["dataaug"]["why"].startswith("Against the labels as they are")
    assert rows["dataaug"]["f1_per_hour"] is not None
    trained = {arm: corpora.find(config["train"]).ids().tolist() for arm, config in tuned.items()}
    whole = Counter(corpora.find("train").ids().tolist())
    added, again = (Counter(trained[arm]) - whole for arm in ("dataaug", "copies:dataaug"))
    assert added.total() == again.total() > 0
    assert set(again) <= set(whole)
    assert rows["dataaug"]["delta_random"] is not None
    base, more = rows["base:6"], rows["base+high:6"]  # Ma et al. 2023, Table 3
    assert (len(trained["base:6"]), len(trained["base+high:6"])) == (6, 12)
    assert set(trained["base:6"]) < set(trained["base+high:6"])
    assert more["delta"] == pytest.approx(more["mean"] - base["mean"])
    assert base["verdict"] == "control"


def test_estimate_grows_with_the_work_of_a_variant(corpora: Library) -> None:
    here = {corpus.name: corpus for corpus in facade_corpora.listed()}
    names = ("highc2low:20%", "low2high:20%", "dataaug", "lpft", "all")
    config = ExperimentConfig.parse({**SPLITS, "assisting": "theirs", "arms": names, "finetune": {"epochs": 10}})
    timed = Seconds(config, TIMED, {**here, "assisting": here["theirs"]}, also_test=[here["hard"]])
    cells = {cell.arm.name: cell for cell in config.cells}
    none = timed.finetune(0)
    assert none == timed.finetune(0, cells["none"]) == timed.finetune(0, cells["low2high:20%"])
    for arm in ("highc2low:20%", "dataaug", "lpft", "all"):
        assert timed.finetune(0, cells[arm]) > none
    assert none > Seconds(config, TIMED, here).finetune(0)  # the harder test set is evaluated too
    assert timed.difficulty((0, 0)) > timed.rebuild()
    assert timed.difficulty((0, 0)) == 0  # one measurement serves all rebuilt sets


def test_each_test_set_is_compared_with_none_on_the_same_set(corpora: Library, tmp_path: Path) -> None:
    """Each table has ten spans. `right` gives the spans found with the seeds 1 and 2."""
    right = {("none", "test"): (9, 9), ("none", "test1"): (2, 4), ("arm", "test"): (8, 8), ("arm", "test1"): (6, 7)}
    ones = np.ones((10, 1), dtype=np.int32)
    for (arm, split), found in right.items():
        (tmp_path / arm).mkdir(exist_ok=True)
        for seed, n in enumerate(found, 1):
            table = Evaluation(types=("A",), tp=ones * (np.arange(10) < n)[:, None], predicted=ones, gold=ones)
            table.save(tmp_path / arm / f"evaluation-{split}-{seed}.npz")
    about = SimpleNamespace(config={"seeds": [1, 2], "test": ["test", "hard"]})
    system, control = (SimpleNamespace(id=name, artifacts=tmp_path / name, manifest=about) for name in ("arm", "none"))
    (further,) = leaderboard.further_tests([system], [control], corpora, seed=0)  # type: ignore[list-item]
    assert further.test == "hard"
    assert further.micro_f1 == pytest.approx([60, 70])
    assert (further.mean, further.sd, further.delta) == pytest.approx((65, 50**0.5, 35))
    assert further.interval[0] < 35 < further.interval[1]
    (same,) = leaderboard.further_tests([control], [control], corpora, seed=0)  # type: ignore[list-item]
    assert (same.delta, same.interval) == (0, (0, 0))

    test, why = leaderboard.with_welch([71.0, 72.0, 73.0], [60.0, 61.0, 62.0], "Why.")
    assert test is not None
    assert test.dagger
    assert why.startswith("Why. Welch's two-sided test over seeds: t = 13.47, p = 0.000")
    assert leaderboard.with_welch([71.0], [60.0], "Why.") == (None, "Why.")


MINER: dict[str, Any] = {**SPLITS, "also_test": ()}


def test_control_of_miner_is_a_plain_span_tagger() -> None:
    assert arms.complete(("miner",), {}, "encoder") == ("none", "span", "miner")
    assert arms.complete(("miner", "lpft"), {}, "span") == ("none", "miner", "lpft")  # `none` is a tagger of spans
    cells = arms.cells(("none", "span", "miner"), ())
    assert [str(arms.control(cell, cells)) for cell in cells] == ["None", "None", "span"]
    assert arms.against(cells[1]) == "a plain tagger of spans"
    assert [cell.arm.judged for cell in cells] == [False, False, True]
    for name, network in (("span", "span"), ("miner", "charcnn")):
        with pytest.raises(ConfigError, match=f"{name} needs the network encoder"):
            arms.complete((name,), {}, network)
    for options, words in (
        ({"arms": ("none",), "finetune": {"beta": 0.1}}, "beta, gamma: need the network span"),
        ({"arms": ("miner",), "finetune": {"layers": "mix"}}, "layers: mix needs the network encoder"),
    ):
        with pytest.raises(ConfigError, match=words):
            ExperimentConfig.parse({**MINER, **options})
    spans = {"network": "span", "beta": 0.01, "gamma": 0.001}
    both = ExperimentConfig.parse({**MINER, "preset": "paper", "arms": ("highc2low:40%",), "finetune": spans})
    settings = both.tagger_settings
    assert (settings.network, settings.beta, settings.gamma, settings.preset) == ("span", 0.01, 0.001, "paper-bias")
    assert [str(cell) for cell in both.cells] == ["none", "copies:highc2low:40%", "highc2low:40%"]
    alone = ExperimentConfig.parse({**MINER, "preset": "paper", "arms": ("miner",), "finetune": {"beta": 0.0}})
    assert alone.tagger_settings.preset == "paper-bias"


def test_an_experiment_trains_miner_beside_its_control(corpora: Library) -> None:
    long = [sentence("a b c d e f g", [(0, 5, "PARTY"), (6, 7, "END")])]
    held = [*(one for block in corpora.find("test").batches() for one in block), *long]
    test = corpora.seal(iter(held), name="longer", origin={}, labelled=True).fingerprint
    run, rows = made(also_test=(), test=test, arms=("miner",), seeds=(1,), finetune={"epochs": 1})
    tuned = {name: runs.get(row["finetune_run"]).manifest.config for name, row in rows.items()}
    own = {name: tuple(config.get(key) for key in ("network", "beta", "gamma")) for name, config in tuned.items()}
    assert own == {"none": ("encoder", 0.0, 0.0), "span": ("span", 0.0, 0.0), "miner": ("span", 0.01, 0.001)}
    board = results.board(run.id)
    assert rows["span"]["verdict"] in ("control", "baseline")
    share = f"{1 / (2 * len(held)):.1%}"
    assert board.ceiling_words == f"{share} of the spans in test are longer than 4 words and cannot be found."
    assert board.ceiling_words in tables.as_markdown(board)
    miner = next(row for row in board.leaderboard if row.arm == "miner")
    assert name_of(miner, board.leaderboard) == "similar states for all names of a type"
    config = ExperimentConfig.parse({**MINER, "arms": ("miner",), "finetune": {"epochs": 1}})
    seconds = Seconds(config, TIMED, {name: corpora.find(name) for name in ("train", "dev", "test")})
    none, span, copied = (seconds.finetune(0, cell) for cell in config.cells)
    assert none == span < copied


TEXTS = {"task": "t", "domain": "d", "train": "l", "dev": "e", "test": "s", "assisting": "a"}


def order(**options: Any) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """Return (kind, line, part of L_C, needs) of every step, without reading a corpus."""
    config = ExperimentConfig.parse({**TEXTS, "budgets": ("10", "30"), **options})
    (steps,) = in_order(lines(Stages(config, Job(Path(), None, {})), 1.5))  # type: ignore[arg-type]
    at = {step: i for i, step in enumerate(steps)}
    assert all(at[need] < at[step] for step in steps for need in step.needs)
    return [(s.kind, str(s.cell), s.what, [(need.kind, str(need.cell)) for need in s.needs]) for s in steps]


def test_texts_and_labels_are_prepared_before_the_training() -> None:
    kinds = [kind for kind, *_ in order(arms=("tapt", "knn", "skl:2", "highc2low:20%"))]
    first = kinds.index("pretrain")
    assert set(kinds[:first]) == {"select", "skl", CHECK, "difficulty", "rebuild", "finetune"}  # `none` is tuned first
    assert set(kinds[first:]) == {"pretrain", "finetune"}
    assert kinds.index("finetune") > max(i for i, kind in enumerate(kinds) if kind in ("select", "rebuild", CHECK))
    own = {line: needs for kind, line, _, needs in order(arms=("tapt", "knn")) if kind == "pretrain"}
    assert own["tapt"] == []
    assert own["knn 10"] == [("select", "knn 10")]
    alike = {line: needs for kind, line, _, needs in order(arms=("tapt", "knn"), fixed="steps") if kind == "pretrain"}
    # With equal steps, each pre-training waits for all texts.
    assert len({tuple(needs) for needs in alike.values()}) == 1
    assert {("select", "knn 10"), ("select", "knn 30")} <= set(alike["tapt"])


@pytest.mark.parametrize(
    ("options", "steps", "pieces"),
    [
        ({"preset": "custom", "epochs": 2}, 2 * 900, 2 * 3_000_000),
        ({"preset": "custom", "epochs": 2, "balance": "upsample_TC"}, 2 * 1200, 2 * 4_000_000),
        # 3 million pieces fill 5,860 rows.
        ({"preset": "custom", "epochs": 2, "packed": True}, 2 * 92, 2 * 3_000_000),
        ({"preset": "quick"}, 1500, 5_000_000),
        ({"preset": "quick", "max_steps": 30}, 30, 100_000),
    ],
)
def test_an_equal_amount_is_what_the_variant_with_the_most_text_trains_on_by_itself(
    options: dict[str, object], steps: int, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sized:
        def __init__(self, sentences: int) -> None:
            self.n_tokens, self.sentences = 40 * sentences, sentences

        def __len__(self) -> int:
            return self.sentences

    sizes = {"t": 64 * 300, "small": 64 * 200, "big": 64 * 600}
    job = SimpleNamespace(corpus=lambda name: Sized(sizes[name]))
    own = {"tapt": ("t",), "knn": ("t", "small"), "classifier": ("t", "big")}
    monkeypatch.setattr(Stages, "read", lambda self, cell, select: own.get(cell.arm.name, own["knn"]))
    for fixed, amount in (("steps", {"max_steps": steps}), ("tokens", {"max_pieces": pieces})):
        config = ExperimentConfig.parse({**TEXTS, "arms": tuple(own), "fixed": fixed, "pretrain": options})
        found = Stages(config, cast("Any", job)).amount({}, 3_000_000 / (64 * 900 * 40))
        assert found == pytest.approx(amount, rel=0.01)


def test_borrowed_labels_are_checked_before_anything_is_trained() -> None:
    steps = order(arms=("all", "skl:2"), train_sizes=(5,), draws=1)
    trained = next(i for i, step in enumerate(steps) if step[0] == "finetune")
    checks = [(line, needs) for kind, line, _, needs in steps[:trained] if kind == CHECK]
    drawn = [check for check in checks if check[0] == "random-part:2"]
    assert drawn == [("random-part:2", [("skl", "random-part:2")])] * 6  # two sizes, one draw per seed
    assert [check for check in checks if check not in drawn] == [("all", [])] * 2 + [("skl:2", [("skl", "skl:2")])] * 2


def test_keys_and_manifests_hold_every_option_of_runs_and_strategies() -> None:
    configs = [*(recipe.config for recipe in KINDS.values()), *(strategy.Options for strategy in STRATEGIES.values())]
    fields = [(config, name, field) for config in configs for name, field in config.model_fields.items()]
    assert [(config, name) for config, name, field in fields if field.exclude or field.exclude_if] == []


def test_a_new_option_changes_a_key_only_if_it_is_set(home: Path) -> None:
    fill(home)
    kind = KINDS["embed"]

    class Newer(EmbedConfig):
        windows: int = option(3, "An option that a later version adds.")

    def key(config: type[Config], **more: object) -> str:
        return plan(kind, config.parse({"corpus": "task", **more}), home).key

    assert key(Newer) == key(Newer, windows=3) == key(EmbedConfig)
    assert key(Newer, windows=4) != key(Newer)
    assert key(EmbedConfig, encoder="tiny") != key(EmbedConfig)

    # `RESULTS_VERSION` need not change for runs of 0.4: their keys include all options, so they are not reused.
    planned = plan(kind, EmbedConfig.parse({"corpus": "task"}), home)
    stored = planned.config.model_dump(mode="json")
    assert run_key("embed", stored, planned.inputs, seed=None, code_version=RESULTS_VERSION) != planned.key


def test_tapt_and_b1_are_one_run_if_their_options_are_equal(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B1 holds out a part of T_C, whereas the dev set judges TAPT. With the same part held out, both are one run."""
    task, held, keys = fill(home)["task"], [], []

    def learnt(reference: str, held_out: Sequence[str], job: Job) -> Corpus:
        held.append(held_out)
        return task

    def child(kind: str, **options: Any) -> None:
        keys.append(plan(KINDS[kind], KINDS[kind].config.parse(options), home).key)

    monkeypatch.setattr(stages_module, "learnable", learnt)
    monkeypatch.setattr(score_module, "learnable", learnt)
    job: Any = SimpleNamespace(child=child)
    own = experiments.stage_options(["pretrain.heldout_task=", "pretrain.general="])  # as SOURCES.md describes
    config = ExperimentConfig.parse({**PARTS, **own, "task": "task", "encoder": "tiny", "arms": ("tapt",)})
    tapt = next(cell for cell in config.cells if cell.arm.pretrains)
    first = config.replicates(tapt)[0]
    child("pretrain", **options_of(Stages(config, job).pretrain(tapt, first, {}, 1.5)))
    b1 = {"seed": first.draw, "preset": config.preset, "accumulation": 1}
    held_out = (*config.held_out, config.dev)
    score_module.language_model(job, "task", held_out, EncoderOptions(encoder="tiny"), **b1)
    assert keys[0] == keys[1]
    assert held[0] == held[1]


PARTS = {"train": "train", "dev": "dev", "test": "test"}


def config(**options: Any) -> ExperimentConfig:
    return ExperimentConfig.parse({**PARTS, "task": "t", "domain": "d", **options})


def test_every_variant_occurs_once_per_encoder(seal: Callable[..., Corpus]) -> None:
    axis = ("encoder:minilm", "encoder: a ", "encoder:b", "encoder:a")
    experiment = config(arms=("none", "knn", "lpft"), budgets=("10%", "20%"), axis=axis)
    assert experiment.axis == ("encoder:minilm", "encoder:a", "encoder:b")
    assert experiment.encoders == ["a", "b"]  # the experiment's own encoder is always included
    names = [str(cell) for cell in experiment.cells]
    usual = [name for name in names if "encoder:" not in name]
    assert usual == ["random 10%", "random 20%", "none", "knn 10%", "knn 20%", "lpft"]
    assert len(names) == len(set(names)) == 3 * len(usual)
    assert names[len(usual)] == "random encoder:a 10%"
    assert config(arms=("none", "knn")).cells == config(arms=("none", "knn"), axis=("encoder:minilm",)).cells
    rows = [sentence(f"Ada{i} sues .", [(0, 1, "PER")]) for i in range(200)]
    experiment = config(arms=("none",), axis=("encoder:a",))
    slow = replace(TIMED, tagger=(10 * TIMED.tagger[0], 10 * TIMED.tagger[1]))
    timed = Seconds(experiment, TIMED, {name: seal(rows, name, labelled=True) for name in PARTS}, others={"a": slow})
    base, other = (timed.finetune(0, cell) for cell in experiment.cells)
    assert timed.finetune(0) == base < other / 2


def test_variants_are_compared_with_none_and_control_of_their_encoder() -> None:
    cells = config(arms=("none", "knn", "tapt"), axis=("encoder:a",)).cells
    against = {str(cell): str(arms.baseline(cell, cells)) for cell in cells}
    assert against["knn 10%"] == "none"
    assert against["knn encoder:a 10%"] == against["random encoder:a 10%"] == "none encoder:a"
    assert against["none encoder:a"] == against["none"] == "none"
    control = {str(cell): str(arms.control(cell, cells)) for cell in cells}
    assert control["knn encoder:a 10%"] == "random encoder:a 10%"
    assert control["tapt encoder:a"] == "random-only encoder:a |T_C|"
    assert control["random encoder:a 10%"] == control["none encoder:a"] == "None"
    judged = {str(cell) for cell in cells if cell.arm.judged}
    assert judged == {"knn 10%", "tapt", "none encoder:a", "knn encoder:a 10%", "tapt encoder:a"}
    for axis, network, says in (
        ("minilm", "encoder", "axis: 'minilm' is not understood; write for example encoder:minilm"),
        ("encoder: ", "encoder", "is not understood"),
        ("encoder:a", "bilstm", "axis: a bilstm uses no encoder"),
    ):
        with pytest.raises(ConfigError, match=says):
            config(arms=("none",), axis=(axis,), finetune={"network": network})


def test_variants_of_another_encoder_use_the_same_selection(home: Path, tmp_path: Path, untrained: None) -> None:
    other = str(tiny_mlm(tmp_path / "other"))
    fill(home)
    options = {**OPTIONS, "arms": ("none", "gazetteer"), "axis": (f"encoder:{other}",), "seeds": (1,)}
    timed(options)
    assert [run.manifest.config["encoder"] for run in runs.listed("calibrate")] == [other, "tiny"]
    before = experiments.cost(options)
    run = runs.get(done("experiment", options))
    assert experiments.cost(options).seconds == 0 < before.seconds
    assert run.manifest.config["weights"] == f"tiny-1 {fingerprint(other)}"
    assert not [note for note in run.state().notes if note.startswith("Added") and "encoder:" in note]
    rows = {row["arm"]: row for row in run.result()["leaderboard"]}
    usual = ("none", "random", "gazetteer")
    assert set(rows) == {*usual, *(f"{name} encoder:{other}" for name in usual)}

    def read(row: dict[str, Any]) -> tuple[str, object, object]:
        """Return the encoder, the text and the labels of a row."""
        chain = [runs.get(row[f"{kind}_run"]) for kind in ("pretrain", "finetune") if row[f"{kind}_run"]]
        first, last = chain[0].manifest.config, chain[-1].manifest.config
        return first["init"], first.get("corpora"), last["train"]

    for name in usual:
        row, same = rows[name], rows[f"{name} encoder:{other}"]
        assert row["select_run"] == same["select_run"]
        assert (read(row)[0], read(same)[0]) == ("tiny", other)
        assert read(row)[1:] == read(same)[1:]
    none = rows[f"none encoder:{other}"]
    assert none["why"].startswith("Against the experiment's own encoder")
    assert none["delta"] == pytest.approx(none["mean"] - rows["none"]["mean"], abs=1e-2)
    assert rows[f"random encoder:{other}"]["verdict"] == "control"
    for name in ("random", "gazetteer"):
        row = rows[f"{name} encoder:{other}"]
        assert row["delta"] == pytest.approx(row["mean"] - none["mean"], abs=1e-2)
