"""Runs of `rank`: encoders ordered by how well their frozen states fit the labels."""

import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from core import shown_command as commands
from core.corpora.corpus import Corpus
from core.corpora.library import Library
from core.encoders import rank, transfer
from core.encoders import view as encoders
from core.encoders.rank import Labelled, RankResult, read_encoder
from core.errors import Cancelled, ConfigError, CorpusError
from core.models import hub
from core.projects import runs
from core.reporter import Reporter
from core.runs import result as results
from core.stats.scoring import count
from tests.conftest import Command, sentence
from tests.encoders.test_transfer import TYPES, sentences, states
from tests.homes import done


def sealed(home: Path, n: int, seed: int, name: str) -> Corpus:
    """Seal sentences whose entities begin with a letter of their type, which an encoder of single letters detects."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        kind = int(rng.integers(2))
        rows.append(sentence(f"we saw {'lp'[kind]}x{i} at {'pl'[kind]}y{i} {name}", [(2, 3, TYPES[kind])]))
    return Library(home).seal(rows, name=name, origin={}, labelled=True)


@pytest.fixture
def parts(home: Path) -> dict[str, str]:
    """Seal a training and a dev set."""
    return {"train": sealed(home, 40, 1, "train").fingerprint, "dev": sealed(home, 20, 2, "dev").fingerprint}


def test_rank_command_scores_every_layer_and_prints_the_vocabulary_fit(parts: dict[str, str], command: Command) -> None:
    words = ("encoders", "rank", "--train", parts["train"], "--dev", parts["dev"], "--encoder", "tiny")
    code, out, _ = command(*words, "--json")
    assert code == 0
    run = runs.get(json.loads(out)["run"])
    result = results.read(run, RankResult)
    [tiny] = result.encoders
    assert (result.train, result.dev, tiny.encoder) == (40, 20, "tiny")
    assert [scores.layer for scores in (tiny.mean, *tiny.layers)] == [0, 1, 2]
    assert all(0 <= scores.f1 <= 100 and scores.h_score > 0 for scores in tiny.layers)
    assert tiny.best.f1 > 50
    assert tiny.fit.pieces > 2
    assert tiny.proposal.why
    newest = encoders.newest_rank(**parts)
    assert newest
    assert newest.id == run.id
    assert encoders.newest_rank(train=parts["dev"], dev=parts["dev"]) is None
    assert commands.command("rank", run.manifest.config).split()[2:5] == ["core", "encoders", "rank"]
    lines = command(*words)[1].splitlines()
    assert lines[0].split()[:4] == ["encoder", "H-score", "H-score", "last"]
    assert "case lost" in lines[0]
    assert lines[1].startswith("tiny ")
    assert any("tiny: layers" in line for line in lines)


def test_cancelled_ranking_resumes_and_puts_the_better_encoder_first(
    parts: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weaker encoder gives all words nearly the same states."""
    blind = hub.load_model("tiny")
    for parameter in blind.embeddings.word_embeddings.parameters():
        parameter.data.fill_(0.1)
    blind.save_pretrained(tmp_path / "blind")
    hub.load_tokenizer("tiny").save_pretrained(tmp_path / "blind")
    read, read_encoders = transfer.word_states, list[str]()

    def stops(name: str, rows: list[object], report: Reporter) -> object:
        read_encoders.append(name)
        if len(read_encoders) == 2:
            raise Cancelled("now")
        return read(name, rows, report)  # type: ignore[arg-type]

    monkeypatch.setattr(transfer, "word_states", stops)
    with pytest.raises(Cancelled):
        done("rank", parts, encoders=(str(tmp_path / "blind"), "tiny"))
    [run] = runs.listed("rank")
    assert read_encoder(run, 0)
    assert read_encoder(run, 1) is None
    runs.go_on(run.id)
    assert [Path(name).name for name in read_encoders] == ["blind", "tiny", "tiny"]
    assert [each.encoder for each in results.read(run, RankResult).encoders] == ["tiny", str(tmp_path / "blind")]


def in_memory(n: int) -> Labelled:
    return Labelled(train=sentences(n, 1), dev=sentences(10, 2), types=TYPES, all_types=TYPES)


class Quiet:
    """Job without progress reports."""

    class context:
        stage = check = progress = staticmethod(lambda *_: None)


@pytest.mark.parametrize(
    ("signals", "layers"),
    [((0.3, 3.0, 3.0, 0.3), "3"), ((3.0, 0.3, 0.3, 0.3), "1"), ((0.3, 0.3, 3.0, 3.0), "last"), ((3.0,), "last")],
)
def test_layer_is_proposed_only_if_its_interval_excludes_zero(
    signals: tuple[float, ...], layers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proposal is the topmost layer that is better than the last; layers below it are not probed."""
    counted = Mock(side_effect=transfer.within)
    monkeypatch.setattr(transfer, "within", counted)
    sample = in_memory(40)
    planted = np.stack([states(sample.train, signal, i) for i, signal in enumerate(signals)]).astype(np.float16)
    proposal = rank._proposal(planted, sample, Quiet)  # type: ignore[arg-type]
    assert proposal.layers == layers
    if layers.isdigit():
        assert f"from layer {layers}" in proposal.why
        assert counted.call_count == len(signals) - int(layers) + 1
    elif len(signals) > 1:
        assert "No layer is reliably better" in proposal.why


def test_proposal_does_not_use_the_dev_set(monkeypatch: pytest.MonkeyPatch) -> None:
    sample, seen = in_memory(12), list[int]()

    def within(states: object, train: list[object], *_: object) -> object:
        seen.append(len(train))
        return count([()] * len(train), [()] * len(train), TYPES)

    monkeypatch.setattr(transfer, "within", within)
    rank._proposal(np.zeros((2, sample.n_words, 4), np.float16), sample, Quiet)  # type: ignore[arg-type]
    assert seen == [12, 12]


def test_wrong_names_and_unlabelled_entities_are_refused(home: Path, parts: dict[str, str]) -> None:
    for named in (), ("tiny", "tiny"), ("",):
        with pytest.raises(ConfigError, match="give one or more names"):
            done("rank", parts, encoders=named)
    plain = Library(home).seal([sentence("nothing here", [])], name="plain", origin={}, labelled=True).fingerprint
    with pytest.raises(CorpusError, match="no entity in the training set"):
        done("rank", {**parts, "train": plain}, encoders=("tiny",))
