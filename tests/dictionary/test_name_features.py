"""A tagger with a dictionary: its scores by hand, names that it never saw, its folder, its options and its variant."""

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from core.errors import ConfigError, ModelError
from core.experiment import arms
from core.experiment.config import ExperimentConfig
from core.models.name_features import STRENGTH, NameFeatures
from core.models.taggers import load_tagger, new_tagger
from core.projects import runs
from core.projects.home import library
from core.reporter import Silent
from core.stats.scoring import evaluate
from core.text.names import Dictionary
from core.text.sentence import Sentence
from core.training.finetune import SCALES, fit_names
from tests.conftest import Command, Seal, sentence

KNOWN = Dictionary({("ada",): "PER", ("ada", "co"): "ORG"})
TAGS = ("O", "B-PER", "I-PER", "E-PER", "S-PER")


def test_scores_are_log_ratios_of_the_training_labels() -> None:
    names = NameFeatures(KNOWN, TAGS)
    assert not names(names.rows([sentence("Ada met Bo")])).any()
    assert names.own[0] == "O"
    rows = [sentence("Ada met Bo", [(0, 1, "PER"), (2, 3, "PER")]), sentence("Ada left", [])]
    names.fit(rows)
    tags = [["S-PER", "O", "O"], ["S-PER", "O"]]  # of the dictionary
    assert [
        [names.own[i] for i in line[: len(own)]] for line, own in zip(names.rows(rows).tolist(), tags, strict=True)
    ] == tags
    usual = {"S-PER": (2 + 1) / (5 + 5), "O": (3 + 1) / (5 + 5)}  # 2 and 3 of 5 words, with a pseudo-count of 1 each
    (scores,) = names(names.rows([sentence("ada")])).tolist()
    expected = math.log((1 + STRENGTH * usual["S-PER"]) / (2 + STRENGTH) / usual["S-PER"])
    assert scores[0][TAGS.index("S-PER")] == pytest.approx(expected, rel=1e-5)
    unseen = names(names.rows([sentence("ADA Co")]))  # the dictionary's B-ORG and E-ORG do not occur in training
    assert unseen.abs().max() < 1e-6


NAMES = [f"{a}{b}" for a in ("zor", "vim", "tul", "gax", "peb") for b in ("an", "ek", "os", "ul", "id", "oth")]
OTHERS = ["the", "court", "paid", "left", "saw", "rent", "and", "today", "late", "again"]


def planted(n: int, names: Sequence[str], seed: int) -> list[Sentence]:
    """Return sentences with a name at a random place, among common words and words that look like names."""
    rng, rows = random.Random(seed), []
    for _ in range(n):
        words = [rng.choice(OTHERS) if rng.random() < 0.8 else rng.choice(NAMES) for _ in range(6)]
        words = [word if word not in names else "court" for word in words]
        at = rng.randrange(6)
        words[at] = rng.choice(names)
        rows.append(sentence(" ".join(words), [(at, at + 1, "PER")]))
    return rows


@pytest.fixture
def corpora(seal: Seal) -> dict[str, object]:
    """Training names are those of the first half of a list, test names those of the second half."""
    people = NAMES[::2]
    first, second = people[:8], people[8:]
    sets = {"train": planted(40, first, 1), "dev": planted(20, first, 2), "test": planted(60, second, 3)}
    marks = {name: seal(rows, name, labelled=True).fingerprint for name, rows in sets.items()}
    listed = seal([sentence(name, [(0, 1, "PER")]) for name in people], "people", labelled=True).fingerprint
    return {"train": marks["train"], "dev": marks["dev"], "test": (marks["test"],), "dictionary": (listed,)}


def test_tagger_with_a_dictionary_finds_names_that_it_never_saw(corpora: dict[str, object], tmp_path: Path) -> None:
    options, folders, found = {**corpora, "init": "tiny", "seeds": (1,), "epochs": 4}, {}, {}
    for name, own in (("with", options), ("without", {**options, "dictionary": ()})):
        run = runs.execute("finetune", own)
        found[name], folders[name] = run.result()["test"]["micro_f1"][0], run.artifacts / "model"
    assert found["with"] > 80
    assert found["without"] < found["with"] - 30
    assert not (folders["without"] / "names.json").exists()
    assert "`names.json` contains the names" in (folders["with"] / "README.md").read_text(encoding="utf-8")
    tagger, rows = load_tagger(folders["with"]), planted(60, NAMES[::2][8:], 3)
    assert evaluate(rows, tagger.predict(rows, Silent()), ["PER"]).f1() == pytest.approx(found["with"])
    tagger.write(again := tmp_path / "again")
    assert load_tagger(again).predict(rows, Silent()) == tagger.predict(rows, Silent())
    assert json.loads((again / "names.json").read_text("utf-8"))["names"]["PER"] == NAMES[::2]
    (again / "names.json").write_text("{", encoding="utf-8")
    with pytest.raises(ModelError, match="is not a complete tagger"):
        load_tagger(again)


def test_a_dictionary_needs_an_encoder_and_names_of_its_own(corpora: dict[str, object]) -> None:
    options = {**corpora, "init": "tiny", "seeds": (1,), "epochs": 1}
    with pytest.raises(ConfigError, match="works with the network encoder, not with bilstm"):
        runs.execute("finetune", {**options, "network": "bilstm", "init": ""})
    with pytest.raises(ConfigError, match="is also the training, dev or test set"):
        runs.execute("finetune", {**options, "dictionary": (options["train"],)})


def test_lists_are_given_to_the_command(corpora: dict[str, object], command: Command, tmp_path: Path) -> None:
    (tmp_path / "people.txt").write_text("\n".join(NAMES[::2]) + "\n", encoding="utf-8")
    words = [f"--{name}={corpora[name]}" for name in ("train", "dev")]
    words += ["--init=tiny", "--seeds=1", "--epochs=1", f"--list={tmp_path / 'people.txt'}=PER", "--json"]
    code, printed, _ = command("finetune", *words)
    assert code == 0
    run = runs.get(json.loads(printed)["run"])
    (listed,) = run.manifest.config["dictionary"]
    assert len(library().find(listed)) == len(NAMES[::2])


def test_variant_with_a_dictionary_is_compared_with_none() -> None:
    plan = {"train": "a", "dev": "b", "test": "c", "arms": ("none+dictionary",)}
    with pytest.raises(ConfigError, match=r"none\+dictionary looks names up; give a dictionary: lists of names"):
        ExperimentConfig.parse(plan)
    config = ExperimentConfig.parse({**plan, "dictionary": ("people",)})
    assert [str(cell) for cell in config.cells] == ["none", arms.NAMES]
    assert config.claimed
    assert config.claimed.arm.without == "no dictionary"
    with pytest.raises(ConfigError, match="needs the network encoder"):
        ExperimentConfig.parse({**plan, "dictionary": ("people",), "finetune": {"network": "bilstm"}})


def test_scores_are_trained_with_the_rate_of_the_chain() -> None:
    torch.manual_seed(1)
    tagger = new_tagger("tiny", ["PER"], precision="fp32")
    tagger.names = NameFeatures(KNOWN, tagger.tags)
    *_, last = tagger.parameter_groups(0.1, 0.2, 0.3)
    assert last["lr"] == 0.3
    assert id(tagger.names.scores.weight) in {id(p) for p in last["params"]}


def test_scores_are_scaled_by_the_factor_with_the_highest_dev_f1() -> None:
    """The dictionary is always right, and its scores are too small for the rest of the tagger."""
    torch.manual_seed(1)
    people = NAMES[::2]
    tagger, dev = new_tagger("tiny", ["PER"], precision="fp32"), planted(30, people, 4)
    assert fit_names(tagger, dev, ["PER"], Silent()) == 1.0  # no dictionary
    tagger.names = names = NameFeatures(Dictionary({(name,): "PER" for name in people}), tagger.tags)
    learnt = torch.zeros_like(names.scores.weight)
    learnt[names.own.index("S-PER"), names.tags.index("S-PER")] = 1.0
    learnt[names.own.index("O"), names.tags.index("O")] = 1.0
    with torch.no_grad():
        tagger.crf.transitions.zero_()
    by_factor = {}
    for factor in SCALES:
        names.scores.weight.data.copy_(factor * learnt)
        by_factor[factor] = evaluate(dev, tagger.predict(dev, Silent()), ["PER"]).f1()
    assert by_factor[6.0] == 100 > by_factor[0.0]
    names.scores.weight.data.copy_(learnt)
    best = fit_names(tagger, dev, ["PER"], Silent())
    assert by_factor[best] == max(by_factor.values())
    assert not [one for one in SCALES if by_factor[one] == by_factor[best] and abs(one - 1) < abs(best - 1)]
    assert torch.equal(names.scores.weight, best * learnt)
