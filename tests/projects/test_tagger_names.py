"""Names of taggers in lists: training set, further pre-training, and variant."""

from pathlib import Path

from core.experiment import result as leaderboard
from core.projects import labels, titles
from core.projects.home import store
from core.tagging import view as training
from tests import finished
from tests.pages.drawing import select


def test_a_taggers_name_says_what_its_encoder_was_pre_trained_on(home: Path) -> None:
    made = finished.corpora(home)
    chosen = {
        words: store().get(select(strategy, budget, keep=["near_duplicate"])).result()["corpus"]
        for strategy, budget, words in (
            ("random", "7", "7 random sentences"),
            ("random", "50tokens", "50 tokens of random sentences"),
            ("random", "20%", "a random 20%"),
            ("ngram-perplexity", "20%", "the selected 20% (ngram-perplexity)"),
        )
    }
    pretrained = []
    for words, text in chosen.items():
        options = {"corpora": (made["task"].fingerprint, text), "init": "minilm"}
        pretrained.append(init := finished.finish(home, "pretrain", options, finished.constant(finished.pretrained())))
        run = finished.tuned(home, made, init.id, 0.6)
        name = f"Tagger on my train, pre-trained on my task and {words}"
        assert training.names([run.id]) == {run.id: name}
        assert training.names([run.id])[run.id] == titles.Named({}).tagger(run.id)
    again = finished.finish(home, "pretrain", {**options, "seed": 5}, finished.constant(finished.pretrained()))
    manifest = again.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"init": "minilm"', f'"init": "{pretrained[0].id}"'))
    twice = "my task and 7 random sentences, then on my task and the selected 20% (ngram-perplexity)"
    assert titles.encoder(again.id) == f"minilm pre-trained on {twice}"
    forged = finished.finish(home, "pretrain", {**options, "seed": 6}, finished.constant(finished.pretrained()))
    manifest = forged.path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"init": "minilm"', f'"init": "{forged.id}"'))
    assert titles.encoder(forged.id).startswith(f"{forged.id} pre-trained on my task and ")  # although it names itself
    store().remove(init.id)
    assert titles.tagger_name(run.manifest.config).endswith(f"on my train, pre-trained in {init.id}, which was removed")
    labels.change(run.id, name="Mine")
    assert training.names([run.id]) == {run.id: "Mine"}
    plain_one, fixed = finished.tuned(home, made, "minilm", 0.6), {"train": made["train"].fingerprint}
    assert titles.tagger_name(plain_one.manifest.config) == "Tagger on my train, no further pre-training"
    assert titles.tagger_name({**fixed, "network": "bilstm", "init": "minilm"}) == "Tagger (bilstm) on my train"
    theirs = {**fixed, "init": "tiny", "first": made["dev"].fingerprint}
    assert titles.tagger_name(theirs) == "Tagger (tiny) on my dev, then my train, no further pre-training"


def test_taggers_of_an_experiment_are_named_by_variant_if_pre_training_does_not_say_it(home: Path) -> None:
    run = finished.experiment(
        home, finished.corpora(home), (("none", "", 0), ("dataaug", "", 0)), changed={"dataaug": (9, 9)}
    )
    rows = {row.arm: row.finetunes for row in leaderboard.read(run).leaderboard}
    called = training.names([*rows["none"], *rows["dataaug"]])
    alone = "Tagger (tiny) on my train, no further pre-training"
    assert list(called.values()) == [alone, f"{alone}, variant dataaug"]
