"""The finished samples that are delivered with Winnow: small, complete, and opened with one click."""

from pathlib import Path

import pytest

from core import paths
from core.corpora.library import Library
from core.errors import ProjectError, ResourceError, RunError
from core.experiment import deliver, find_out, results
from core.experiment import view as experiments
from core.experiment.config import ExperimentConfig
from core.explore import view as maps
from core.explore.result import MapResult
from core.files import refuse_changed
from core.importing import view as corpora
from core.paths import within
from core.projects import home_steps, preferences, removals, runs, unpack
from core.projects import view as projects
from core.projects.view import FINISHED
from core.runs.result import read
from core.samples.sets import Name
from core.shown import duration, in_points
from core.stats.verdict import detected
from core.tagging import view as taggers
from tests import finished
from tests.conftest import Seal, sealer
from tests.pages.drawing import opened, texts
from tests.pages.test_results import tab

MOST = {"legal": 12_000_000, "medical": 5_000_000}  # bytes; `.ci/finished` makes nothing larger


@pytest.mark.parametrize("sample", FINISHED)
def test_a_finished_sample_is_small_and_opens_once_with_all_steps_done(home: Path, sample: Name) -> None:
    assert FINISHED[sample].stat().st_size <= MOST[sample]
    project = projects.open_finished_sample(sample)
    assert projects.open_finished_sample(sample) == project
    assert [each.name for each in projects.listed()] == ["My first project", project.name]
    assert projects.usual().name == "My first project"
    with within(project.slug):
        texts, choice, worth, report = stops = home_steps.steps()
        assert all(stop.ready for stop in stops), stops
        mapped = str(maps.of(choice.run))
        assert read(runs.get(mapped), MapResult).points > 1000
        with pytest.raises(
            RunError, match=rf"^sentence vectors of {sample}-domain: "
        ):  # exported projects leave them out
            maps.pairs(mapped, maps.classes(mapped))
        assert worth.run == report.run
        assert deliver.report(report.run, "pdf").startswith(b"%PDF")
        assert "sentences" in texts.known


@pytest.mark.full
def test_verdict_and_forecast_of_one_plan_agree(home: Path) -> None:
    """Repetitions, minutes and taggers come from one forecast; the detected difference comes from the interval."""
    with within(projects.open_finished_sample().slug):
        run = runs.get(home_steps.steps()[2].run)
        same = dict(run.manifest.config)
        finished.finish(paths.home(), "calibrate", experiments.calibrations(same)[0], lambda _: finished.TIMED)
        finding, plan, options = results.finding(run.id), experiments.foresight(same), find_out.again(run)
        config, time = ExperimentConfig.parse(options), duration(experiments.cost(options).seconds)
        assert finding.next == (
            f"Next: {len(config.seeds) - 3} more replicates ({len(config.seeds)} in all), about {time}. If the "
            f"true gain is 1 point, {len(config.seeds)} replicates detect it in 80 of 100 cases."
        )
        proposed, larger = find_out.plan(options), experiments.foresight(options)
        assert proposed.time.startswith(f"It takes about {time} ")
        assert f"detect gains of about {in_points(larger.points)} or more, in 80 of 100 cases" in proposed.shows
        assert "Measured on 9 taggers trained on these labels so far." in proposed.shows
        [row] = [row for row in results.board(run.id).leaderboard if row.arm == "classifier"]
        assert larger.points <= row.delta < plan.points
        assert row.interval_random
        assert row.estimate_random
        half = (row.interval_random[1] - row.interval_random[0]) / 2
        detects = detected(half, row.estimate_random.dof)
        assert half < detects
        assert (
            f"The 3 replicates differ so much that they can only detect gains of about {in_points(detects)} or more over "
            "as much random text" in finding.sure
        )
        assert " replicates a variant would settle" not in f"{row.why} {deliver.board_lines(run.id)}"


def test_scores_by_type_are_means_over_all_replicates_and_name_their_number(home: Path) -> None:
    with within(projects.open_finished_sample().slug):
        run = home_steps.steps()[2].run
        [claimed] = [row for row in results.board(run).leaderboard if row.arm == "classifier"]
        replicates = results.replicates(run)[claimed.finetunes[0]]
        assert list(replicates) == list(claimed.finetunes)
        each = [results.type_scores((one,), (one,))[0].a for one in replicates]
        assert results.type_scores(replicates, replicates)[0].a == pytest.approx(sum(each) / 3)
        assert "Each score is the mean of 3 trainings." in finished.html_report(run)
        app = tab(opened("pages/6_Results.py", project=projects.current().slug), "By type")
    assert "A (3 replicates)" in texts(app)
    assert "B (3 seeds)" in texts(app)


def test_a_sample_beside_corpora_in_use_opens_in_a_separate_project(home: Path, seal: Seal) -> None:
    mine = seal(["One ."], "mine").fingerprint
    corpora.set_role("task", mine)
    app, caption = opened("home.py"), "sample opens in a separate project, because this project has corpora in use"
    assert f"A {caption}" in texts(app)
    app.button(key="home.sample.legal").click().run()
    assert not app.exception
    assert [project.name for project in projects.listed()] == ["My first project", "Legal sample"]
    assert corpora.roles() == {"task": mine}
    with within(projects.open_sample("legal").slug):
        assert len(corpora.roles()) == 5
        assert f"The medical {caption}" in texts(opened("home.py", project=projects.current().slug))
    assert len(projects.listed()) == 2


def test_a_sample_whose_import_failed_is_completed_when_it_is_opened_again(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object, **options: object) -> None:
        raise ResourceError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(Library, "seal", fail)
        with pytest.raises(ResourceError):
            projects.open_sample("legal")
    with within(projects.open_sample("legal").slug):
        assert len(corpora.roles()) == 5
    assert [project.name for project in projects.listed()] == ["My first project", "Legal sample"]


def test_an_address_without_a_project_opens_an_own_project_before_a_sample(home: Path) -> None:
    sample = projects.open_finished_sample()
    preferences.set_last_project(sample.slug)
    assert {project.name for project in projects.listed()} == {"My first project", sample.name}
    assert projects.usual().name == "My first project"
    assert projects.rename(sample.slug, "A sample").sample
    app = opened("home.py")
    assert app.query_params["project"] == "my-first-project"


@pytest.mark.parametrize("sample", FINISHED)
def test_home_has_a_button_that_opens_each_finished_sample(home: Path, sample: Name) -> None:
    app = opened("home.py")
    app.button(key=f"home.finished.{sample}").click().run()
    assert not app.exception
    assert [project.name for project in projects.listed() if project.sample] == [
        f"{sample.capitalize()} sample, finished"
    ]


def test_home_shows_the_error_of_a_damaged_sample(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (half := tmp_path / "half.zip").write_bytes(FINISHED["legal"].read_bytes()[:1000])
    monkeypatch.setitem(projects.FINISHED, "legal", half)
    with pytest.raises(ProjectError), half.open("rb") as file:
        unpack.name_in(file, half.name)
    app = opened("home.py")
    next(button for button in app.button if button.label == "Open the finished legal sample").click().run()
    assert not app.exception
    assert "is damaged or not a zip file" in app.error[0].value
    assert len(projects.listed()) == 1


@pytest.mark.parametrize("sample", FINISHED)
def test_a_finished_sample_has_a_tagger_with_and_one_without_pre_training(home: Path, sample: Name) -> None:
    with within(projects.open_finished_sample(sample).slug):
        found = taggers.here()
        inits = [str(runs.get(run).manifest.config["init"]) for run in found]
        assert [init == "minilm" for init in inits] == [False, True]  # newest first
        assert list(found.values()) == ["Small tagger with pre-training", "Small tagger without pre-training"]
        assert set(found) <= {each.id for each in runs.own("finetune")}
        refuse_changed(Path(taggers.model(next(iter(found)))))
        for run in found:
            removals.remove_run(run)
        assert not taggers.here()
        assert projects.open_finished_sample(sample).slug == projects.current().slug
        assert not taggers.here()


TYPED = {
    "legal": (
        "Meridian Bank pays Harlow Mills Ltd EUR 5,000 on 3 March 2025 .",
        {("Harlow Mills Ltd", "PARTY"), ("EUR 5,000", "AMOUNT"), ("3 March 2025", "DATE")},
    ),
    "medical": (
        "Known hypertension , on bisoprolol 2.5 mg ; ECG normal .",
        {("bisoprolol", "DRUG"), ("2.5 mg", "DOSE"), ("hypertension", "PROBLEM"), ("ECG", "TEST")},
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("sample", FINISHED)
def test_a_finished_samples_taggers_find_the_entities_of_a_typed_sentence(home: Path, sample: Name) -> None:
    text, entities = TYPED[sample]
    with within(projects.open_finished_sample(sample).slug):
        typed = sealer(paths.home())([text])
        for run in taggers.here():
            predicted = runs.execute("predict", {"model": run, "corpus": typed.fingerprint})
            [sentence] = taggers.found_sentences(predicted.id)
            assert {(entity.text, entity.type) for entity in sentence.entities} == entities
