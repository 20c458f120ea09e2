"""Taggers on disk: training words in a folder, a copy without rare words, and stored results."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter
from streamlit.testing.v1 import AppTest

from core.errors import ConfigError, ModelError, PathError, RunError
from core.experiment import deliver
from core.explore.result import MapResult, Topic
from core.importing.result import AuditResult
from core.kind import as_json
from core.models.taggers import load_tagger
from core.models.word_features import Vectors, build_vocabulary
from core.projects import runs
from core.runs.result import read
from core.runs.store import Run, RunStore
from core.runs.worker import execute
from core.tagging.evaluations import SeedOutcome, SplitScores
from tests.assisting.test_assist import HOME
from tests.conftest import Command, Seal, sentence
from tests.homes import executed
from tests.word_search import holding

ONCE = [f"Zyxname{i}" for i in range(6)]
OFTEN = "Qwxcommon"
KNOWN = [sentence(f"Ada saw {OFTEN} today .", [(0, 1, "PER")])] * 2
ROWS = [*HOME, *KNOWN, *(sentence(f"{name} saw {OFTEN} today .", [(0, 1, "PER")]) for name in ONCE)]


@pytest.fixture
def tuned(seal: Seal) -> Run:
    train = seal(ROWS, "notes", labelled=True).fingerprint
    few = {"network": "charcnn", "seeds": (1,), "hidden": 4, "epochs": 1}
    return executed("finetune", few, train=train, dev=train)


def test_copy_without_rare_words_predicts_the_same(tuned: Run, command: Command, tmp_path: Path) -> None:
    whole, short = deliver.export_model(tuned.id), deliver.export_model(tuned.id, rare=False)
    assert {line.split()[-1] for line in holding(whole, [*ONCE, OFTEN])} == {*ONCE, OFTEN}
    assert {line.split()[-1] for line in holding(short, [*ONCE, OFTEN])} == {OFTEN}
    words, once = deliver.words_held(tuned.id)  # the run's own tagger keeps all words
    assert words >= once >= len(ONCE)
    vectors = Vectors(words=("Ada", "never"), values=np.ones((2, 3), dtype=np.float32))
    found = build_vocabulary([sentence("Ada met Bob ."), sentence("Bob left .")], vectors)
    assert (found.once, found.rare) == (3, 2)  # a word seen once is dropped even if it has a vector
    assert set(found.words[-3:]) == {"Ada", "met", "left"}
    says = "holds every word of the training text"
    assert says in (whole / "README.md").read_text()
    card = (short / "README.md").read_text()
    assert "Words seen once were left out" in card
    assert says not in card
    ours, theirs = load_tagger(short), load_tagger(whole)
    assert ours.predict(KNOWN) == theirs.predict(KNOWN)
    config, taken = tuned.manifest.config, tmp_path / "taken"
    assert executed("evaluate", model=str(short), test=config["dev"]).result()["test"]
    network = ("--network", "charcnn", "--hidden", 4, "--seeds", 1, "--epochs", 1)
    finetune = ("finetune", *network, "--train", config["train"], "--dev", config["dev"])
    code, _, stderr = command(*finetune, "--output", taken, "--without-rare-words")
    assert code == 0, stderr
    assert len(runs.listed("finetune")) == 1  # the command reuses the finished run
    assert holding(taken, ONCE) == []
    assert holding(taken, [OFTEN])


def test_a_tagger_replaces_another_one_in_its_folder(seal: Seal, tuned: Run, tmp_path: Path) -> None:
    """Words and names of the earlier tagger do not stay, but files that belong to no tagger do."""
    target, train = tmp_path / "taken", seal(ROWS, "notes", labelled=True).fingerprint
    names = seal([sentence("Zyxlisted", [(0, 1, "PER")])], "list", labelled=True).fingerprint
    few = {"init": "tiny", "seeds": (1,), "epochs": 1, "train": train, "dev": train}
    listed, plain = (executed("finetune", few, dictionary=each) for each in ((names,), ()))
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "names.json").write_text("[]")
    for run, folder in ((tuned, target), (listed, target), (plain, target), (plain, tmp_path / "own")):
        deliver.copy_model(run.id, folder)
        assert load_tagger(target).predict(KNOWN)
    assert holding(target, [*ONCE, "Zyxlisted"]) == []
    assert (tmp_path / "own" / "names.json").read_text() == "[]"


@pytest.mark.parametrize("begins", ["run", "folder"])
def test_an_exported_tagger_holds_the_encoder_whose_states_it_reads(
    begins: str, seal: Seal, home: Path, tmp_path: Path
) -> None:
    train = seal(ROWS, "notes", labelled=True).fingerprint
    read = executed("pretrain", {"init": "tiny", "max_steps": 1}, corpora=(train,))
    states, encoder = read.id, read.artifacts / "model"
    if begins == "folder":
        states = str(encoder := Path(shutil.copytree(encoder, tmp_path / "mine")))
    few = {"network": "bilstm", "states": states, "hidden": 4, "seeds": (1,), "epochs": 1}
    run = executed("finetune", few, train=train, dev=train)
    expected = load_tagger(run.artifacts / "model").predict(KNOWN)
    taken, short = deliver.export_model(run.id), deliver.export_model(run.id, rare=False)
    elsewhere = [Path(shutil.move(folder, tmp_path / folder.name)) for folder in (taken, short)]
    if begins == "run":  # A project that was moved finds the model in its new place.
        moved = Path(shutil.copytree(home, tmp_path / "moved"))
        elsewhere.append(moved / "runs" / run.id / "artifacts" / "model")
    shutil.rmtree(encoder)
    with pytest.raises(ConfigError, match="the encoder whose states this tagger reads is missing"):
        deliver.export_model(run.id)
    for folder in elsewhere:
        assert load_tagger(folder).predict(KNOWN) == expected
    for folder in elsewhere[:2]:
        assert json.loads((folder / "config.json").read_text())["winnow"]["layout"]["states"] == "states"


@pytest.mark.parametrize("confined", [False, True])
def test_a_forged_tagger_brings_no_file_of_another_folder_into_its_copy(
    confined: bool, tuned: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, config = tmp_path / ".docker", tuned.artifacts / "model" / "config.json"
    secret.mkdir()
    (secret / "config.json").write_text('{"auths": "Zyxkey"}')
    if confined:  # even the files of a model
        (secret / "model.safetensors").touch()
        monkeypatch.setenv("WINNOW_CONFINED", "1")
    about = json.loads(config.read_text())
    about["winnow"]["layout"]["states"] = str(secret)
    config.write_text(json.dumps(about))
    with pytest.raises(PathError if confined else ModelError):
        deliver.export_model(tuned.id)
    assert holding(deliver.exports(), ["Zyxkey"]) == []


def test_page_warns_about_training_words_beside_the_download(tuned: Run) -> None:
    def page(run_id: str) -> None:
        from pages.ui.results.take import take_away

        take_away(None, {run_id: "notes"})

    app = AppTest.from_function(page, kwargs={"run_id": tuned.id}).run(timeout=300)
    words, once = deliver.words_held(tuned.id)
    assert f"{words:,} words of its training text, {once:,} of them seen only once" in app.warning[0].value
    app.toggle(key="results.take.rare").set_value(True).run(timeout=300)
    app.button(key="results.take.copy").click().run(timeout=300)
    assert holding(Path(app.code[-1].value), ONCE) == []
    app.toggle(key="results.take.rare").set_value(False).run(timeout=300)
    assert not app.code  # the folder of the copy without these words would be mistaken for the copy that is asked for
    app.button(key="results.take.copy").click().run(timeout=300)
    assert holding(whole := Path(app.code[-1].value), ONCE)
    app.toggle(key="results.take.rare").set_value(True).run(timeout=300)
    assert str(whole) not in [code.value for code in app.code]  # everyone who gets it can read the words
    assert not app.exception


RESULT = AuditResult(flags={"leak": 1}, leak_rules={"exact": 1}, near_rules={"edited": 0}, sentences=7)


MAP = MapResult(
    points=9,
    task_points=2,
    fitted=9,
    of=12,
    task="t",
    domain="d",
    layout="l",
    embedded={"task": "a", "domain": "b"},
    clusters=[Topic(name="deed, clause", size=5), Topic(name="mixed", size=4)],
)


@pytest.mark.parametrize("result", [RESULT, MAP])
def test_stored_result_is_read_back(result: object, tmp_path: Path) -> None:
    run = RunStore(tmp_path).create("audit", {}, {}, seed=None, versions={}, key="k")
    execute(run, lambda context: as_json(result))
    assert read(run, type(result)) == result
    older = RunStore(tmp_path).create("audit", {"x": 1}, {}, seed=None, versions={}, key="older")
    execute(older, lambda context: {"flags": {"leak": 1}, "leak_rules": {"exact": 1}, "sentences": 7})
    assert read(older, AuditResult).near_rules == {}


@pytest.mark.parametrize("damaged", [{}, {"flags": 3, "leak_rules": {}, "sentences": 7}])
def test_result_of_another_kind_raises_a_readable_error(tmp_path: Path, damaged: dict[str, object]) -> None:
    run = RunStore(tmp_path).create("audit", {}, {}, seed=None, versions={}, key="k")
    execute(run, lambda context: damaged)
    with pytest.raises(RunError, match=f"run {run.id}: its result is not a valid result of audit .*; remove the run"):
        read(run, AuditResult)


def test_boolean_setting_of_a_seed_stays_boolean() -> None:
    """A resumed run reads the outcome of a seed that an earlier attempt finished."""
    settings: Mapping[str, float] = {"in_turn": False, "epochs": 3, "rate": 0.5}
    scores = SplitScores(micro_f1=1.0, precision=1.0, recall=1.0, by_type={}, decodings={})
    outcome = SeedOutcome(seed=1, best_epoch=1, epochs=3, seconds=9.0, dev=scores, tests=[], settings=settings)
    again = TypeAdapter(SeedOutcome).validate_python(json.loads(json.dumps(asdict(outcome))))
    assert json.dumps(again.settings) == json.dumps(settings)
