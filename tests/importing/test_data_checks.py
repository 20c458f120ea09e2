"""The data check before a run: items that stop it, overruling them, and the command `check`."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.errors import ConfigError
from core.importing import data_checks
from core.importing import view as corpora
from core.kind import overruled, plan, register, work_of
from core.kinds import KINDS
from core.projects import runs
from core.projects.home import library, store
from core.runs import worker
from core.runs.run import Run
from tests import finished
from tests.conftest import Command, Seal, sentence
from tests.planted import contracts, kitchen

BUNDLED = "minilm"


@pytest.fixture
def piles(seal: Seal) -> dict[str, str]:
    """Seal a task corpus of 40 and a domain corpus of 120 sentences; return the fingerprints by role."""
    task = seal(contracts(40, seed=1), "task").fingerprint
    return {"task": task, "domain": seal([*contracts(60, seed=2), *kitchen(60)], "domain").fingerprint}


@pytest.mark.parametrize(("kind", "budget"), [("select", "121"), ("select", "99999tokens"), ("experiment", "91")])
def test_a_budget_above_the_domain_corpus_starts_no_run(
    piles: dict[str, str], home: Path, kind: str, budget: str
) -> None:
    options: dict[str, object] = {**piles, "budget": budget, "encoder": "tiny"}
    if kind == "experiment":
        made = {role: corpus.fingerprint for role, corpus in finished.corpora(home).items()}
        options = {**made, "budgets": ("10%", budget), "encoder": "tiny"}
    elif budget == "121":
        with pytest.raises(ConfigError, match=r"asks for 121 sentences, but .* has 120\. To continue, choose a smal"):
            execute(kind, options, run_anyway=True)
    with pytest.raises(ConfigError, match=r"asks for .*, but .* has"):
        execute(kind, options)
    assert not runs.listed()
    recipe = KINDS[kind]  # a run from a project file is not checked beforehand, and stops before it embeds
    kept = store().create(**plan(recipe, recipe.config.parse(options), home).manifest())
    with pytest.raises(ConfigError, match="more than the domain corpus has"):
        worker.execute(kept, work_of(kept, KINDS))
    assert [each.manifest.kind for each in runs.listed()] == [kind]


def test_a_red_item_stops_a_run_unless_overruled_and_the_run_notes_it(
    piles: dict[str, str], seal: Seal, command: Command
) -> None:
    one = seal(contracts(1, seed=3), "one").fingerprint
    options = {"task": one, "domain": piles["domain"], "strategy": "knn", "encoder": "tiny", "budget": "10"}
    with pytest.raises(
        ConfigError, match=r"knn is not reliable with fewer than 2. To continue, .* or run anyway \(--run-anyway\)"
    ):
        execute("select", options)
    none = seal([sentence(text, []) for text in contracts(20, seed=1)], "none", labelled=True).fingerprint
    with pytest.raises(ConfigError, match="The training set and dev set have no entity"):
        execute("finetune", {"train": none, "dev": none, "init": "tiny"})
    assert not runs.listed()
    made = execute("select", options, run_anyway=True)
    notes = [text for text in runs.state(made.id).notes if text.startswith("Started although the data check says:")]
    assert len(notes) == 1
    assert "has 1 sentence; the strategy knn is not reliable with fewer than 2." in notes[0]
    assert execute("select", options).id == made.id  # a finished run is not stopped
    words = ("select", "--task", "domain", "--domain", "domain", "--strategy", "random", "--budget", "9")
    code, _, err = command(*words)
    assert (code, "have the same sentences" in err) == (2, True)
    assert command(*words, "--run-anyway", "--json")[0] == 0


def test_amber_items_stop_no_run_and_overruling_changes_no_key(piles: dict[str, str]) -> None:
    assert [one.name for one in corpora.check_run("select", piles) if one.level == "amber"] == ["task size"]
    assert runs.refuse_red("select", {**piles, "encoder": "tiny"}) == []
    options = {**piles, "strategy": "random", "budget": "10"}
    made = execute("select", options, run_anyway=True)
    assert execute("select", options).id == made.id
    assert not any("data check" in text for text in runs.state(made.id).notes)


def execute(kind: str, options: Mapping[str, object], *, run_anyway: bool = False) -> Run:
    return runs.execute(kind, options, run_anyway=run_anyway)


def test_a_study_and_a_registered_run_stop_at_red_items_unless_overruled(home: Path) -> None:
    made = {role: (corpus.fingerprint,) for role, corpus in finished.corpora(home).items()}
    recipe = KINDS["study"]
    config = recipe.config.parse({**made, "domain": made["task"], "encoder": "tiny", "budgets": ["5"]})
    for start in (
        lambda: execute("study", config.model_dump()),
        lambda: runs.start("study", config.model_dump()),
        lambda: register(recipe, config, store()),
    ):
        with pytest.raises(ConfigError, match=r"have the same sentences.*run anyway \(--run-anyway\)"):
            start()
    assert not runs.listed()
    assert "have the same sentences" in overruled(register(recipe, config, store(), run_anyway=True))


def test_a_script_that_the_encoder_does_not_know_is_red(seal: Seal) -> None:
    known, other = seal(contracts(5, seed=1), "known"), seal(["ქართული ენა", "ენა ქართული"], "other")
    assert data_checks.encoder_fits({"task": known}, BUNDLED).level == "green"
    found = data_checks.encoder_fits({"task": known, "domain": other}, BUNDLED)
    assert found.sentence.startswith("The vocabulary of minilm cannot represent all text. Unknown pieces: ")
    assert found.sentence.endswith("% in the domain corpus (D_C).")
    assert "was not checked" in data_checks.encoder_fits({"task": known}, "nobody/nowhere").sentence


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_an_import_prints_its_amber_items_also_beside_json(
    home: Path, tmp_path: Path, command: Command, flags: tuple[str, ...]
) -> None:
    text = "\n".join(f"Die KÃ¼ndigung von Wohnung {i} ist gÃ¼ltig ." for i in range(40))
    path = tmp_path / "garbled.txt"
    path.write_text(text, encoding="utf-8")
    code, out, err = command("corpus", "add", str(path), *flags)
    assert code == 0
    assert "amber  Garbled characters" in (err if flags else out)
    assert not flags or json.loads(out)["sentences"] == 40


def test_the_command_lists_every_item_and_exits_2_if_one_is_red(command: Command, home: Path) -> None:
    assert command("check") == (0, "Nothing to check: the project has no corpora in use.\n", "")
    corpora.open_sample("legal")
    code, out, _ = command("check", "--json")
    found = json.loads(out)
    assert (code, found["level"]) == (0, "amber")
    assert [one["name"] for one in found["checks"] if one["level"] == "amber"] == ["dev size"]
    assert {"name", "level", "sentence", "cure", "page", "command", "final"} == found["checks"][0].keys()
    code, out, _ = command("check", "--budget", "99999", "--task", "legal-domain")
    assert code == 2
    red = [line for line in out.splitlines() if line.startswith("red ")]
    assert len(red) == 2
    assert "have the same sentences" in red[0]
    assert out.splitlines()[0] == red[0]


def test_a_corpus_named_like_a_role_is_not_checked_as_if_it_had_the_role(seal: Seal, command: Command) -> None:
    for name, n in (("train", 50), ("test", 50), ("task", 5), ("other", 60)):
        seal(contracts(n, seed=1), name)
    found = data_checks.checked(data_checks.subject("pretrain", {"corpora": ["train", "test"]}, library()))
    assert [one.name for one in found if one.level != "green"] == []
    assert "train in test" not in {one.name for one in found}
    compared = data_checks.subject("similarity", {"target": "other", "source": ["train", "task"]}, library())
    assert list(compared.corpora) == ["task", "corpus train", "corpus task"]
    assert compared.corpora["task"].name == "other"
    assert [one.name for one in data_checks.checked(compared) if one.level == "red"] == []
    assert [one for one in corpora.check_corpus("train") if one.level != "green"] == []
