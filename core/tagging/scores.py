"""Score taggers on labelled splits, and combine the scores of all seeds."""

from collections.abc import Sequence
from itertools import chain
from statistics import mean, stdev
from typing import TYPE_CHECKING

from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.kind import Job
from core.results import BoolArray, Evaluation
from core.stats.bootstrap import intervals_by_type
from core.stats.calibration import abstaining, calibration, confidences
from core.stats.learning import chance_f1
from core.stats.scoring import MICRO, TypeReport, cited_spans, evaluate, seqeval_report
from core.tagging import evaluations
from core.tagging.evaluations import (
    FinetuneResult,
    OverSeeds,
    SeedOutcome,
    SplitScores,
    TooLong,
    TrainInTest,
    WithVector,
)
from core.text.sentence import Sentence

if TYPE_CHECKING:
    from core.models.tagger import Tagger


def labelled(corpus: Corpus) -> list[Sentence]:
    """Return all sentences of a labelled corpus. Errors: CorpusError if it is not labelled."""
    if not corpus.labelled:
        raise CorpusError(f"{corpus.name}: is not labelled; give a corpus with entities, for example a CoNLL file.")
    return list(chain.from_iterable(corpus.batches()))


def types_of(*splits: Sequence[Sentence]) -> set[str]:
    """Return the entity types in the splits."""
    return {entity.type for split in splits for sentence in split for entity in sentence.entities or ()}


def score_split(
    job: Job,
    tagger: "Tagger",
    gold: Sequence[Sentence],
    types: Sequence[str],
    name: str,
    *,
    seen: BoolArray | None,
) -> SplitScores:
    """Score a tagger on one split with all decodings, and write its results.

    The main score is strict and uses the tagger's own decoding. seen: `(n,)`, True for sentences that are in the
    training set.
    """
    from core.models.tagger import prediction_of

    job.context.stage(f"evaluating {name}")
    tags, (plain, best) = tagger.read((1.0, tagger.crf.temperature), gold, job.context)
    table = evaluate(gold, best, types)
    evaluations.write(job.context.run, name, table, best)
    sure, right = confidences(gold, (plain, best))
    evaluations.write_abstaining(job.context.run, name, abstaining(sure[:, 1], right, int(table.gold.sum())))
    decoded = {
        "viterbi": [prediction_of(sentence.viterbi) for sentence in tags],
        "argmax": [prediction_of(sentence.argmax) for sentence in tags],
        "cited_scorer": [cited_spans(sentence.viterbi) for sentence in tags],
        "constrained": [prediction_of(sentence.constrained) for sentence in tags],
    }
    return SplitScores(
        micro_f1=table.f1(),
        precision=table.precision(),
        recall=table.recall(),
        by_type=table.by_type(),
        decodings={decoding: evaluate(gold, spans, types).f1() for decoding, spans in decoded.items()},
        lot=chance_f1(gold, best),
        macro_f1=table.macro_f1(),
        calibration=calibration(sure, right, tagger.crf.temperature),
        # None if no sentence is left, or if all are and the score is the one above.
        unseen_f1=table.of(~seen).f1() if seen is not None and seen.any() and not seen.all() else None,
        report=seqeval_report(gold, best),
    )


def without_mix(job: Job, tagger: "Tagger", gold: Sequence[Sentence], types: Sequence[str]) -> float | None:
    """Return the micro F1 of a tagger that mixes layers when it is loaded without Winnow.

    That uses the last layer and decodes each word alone. None for other taggers, for which `argmax` is this score.
    """
    from core.models.tagger import prediction_of
    from core.models.taggers import EncoderTagger

    if not isinstance(tagger, EncoderTagger) or tagger.mix is None:
        return None
    job.context.stage("evaluating by the last layer")
    with tagger.mix.off():
        tags = tagger.tag(gold, job.context)
    return evaluate(gold, [prediction_of(sentence.argmax) for sentence in tags], types).f1()


def note_unlearnt(job: Job, outcome: SeedOutcome) -> None:
    """Add a note if a seed's tagger is no better than chance on dev."""
    results = [outcome.dev, *outcome.tests]
    if not outcome.dev.learnt:
        names = ["dev", *map(evaluations.name_of_test_set, range(len(outcome.tests)))]
        f1s = ", ".join(f"{name} {result.micro_f1:.2f}" for name, result in zip(names, results, strict=True))
        job.context.note(
            f"Seed {outcome.seed} learnt nothing: its score on dev is no better than chance ({f1s}). Train for more "
            "epochs or at a higher rate."
        )


def over_seeds(results: Sequence[SplitScores], tables: Sequence[Evaluation] = ()) -> OverSeeds:
    """Combine the unrounded scores of all seeds on one split.

    tables: one per seed, to compute intervals by type; without them there are none.
    """
    values = [one.micro_f1 for one in results]
    # By position, because older versions name the third decoding differently and lack the last.
    scores = zip(*(one.decodings.values() for one in results), strict=False)
    return OverSeeds(
        micro_f1=values,
        mean=mean(values),
        sd=stdev(values) if len(values) > 1 else None,
        by_type={name: mean(one.by_type[name] for one in results) for name in results[0].by_type},
        decodings={name: list(f1s) for name, f1s in zip(results[-1].decodings, scores, strict=False)},
        lot=[one.lot for one in results],
        macro_f1=[one.macro_f1 for one in results if one.macro_f1 is not None],
        calibration=[one.calibration for one in results if one.calibration],
        intervals=intervals_by_type(tables) if tables else {},
        unseen_f1=[one.unseen_f1 for one in results if one.unseen_f1 is not None],
        report=_mean_report([one.report for one in results]),
    )


def _mean_report(reports: Sequence[Sequence[TypeReport]]) -> list[TypeReport]:
    """Average the seeds' reports line by line; a type that a seed's report lacks scores 0 there."""
    lines: dict[str, list[TypeReport]] = {}
    for report in reports:
        for line in report:
            lines.setdefault(line.type, []).append(line)
    n = len(reports)
    return [
        TypeReport(
            type=name,
            precision=sum(line.precision for line in seeds) / n,
            recall=sum(line.recall for line in seeds) / n,
            f1=sum(line.f1 for line in seeds) / n,
            support=max(line.support for line in seeds),
        )
        for name, seeds in sorted(lines.items(), key=lambda pair: (pair[0] == MICRO, pair[0]))
    ]


def all_seeds(
    model: str,
    outcomes: Sequence[SeedOutcome],
    tables: Sequence[Sequence[Evaluation]] = (),
    train_in_test: TrainInTest | None = None,
    too_long: TooLong | None = None,
    *,
    with_vector: WithVector | None = None,
) -> FinetuneResult:
    """Combine the outcomes of all seeds of a fine-tuning.

    model: folder of the best seed. tables: per test set, one per seed, to compute intervals by type.
    """
    tests = [
        over_seeds([outcome.tests[i] for outcome in outcomes], tables[i] if tables else ())
        for i in range(len(outcomes[0].tests))
    ]
    return FinetuneResult(
        model=model,
        dev=over_seeds([outcome.dev for outcome in outcomes]),
        test=tests[0] if tests else None,
        tests=tests,
        best_epoch=[outcome.best_epoch for outcome in outcomes],
        epochs=[outcome.epochs for outcome in outcomes],
        seconds=[outcome.seconds for outcome in outcomes],
        settings=outcomes[0].settings,
        train_in_test=train_in_test,
        too_long=too_long,
        with_vector=with_vector,
    )
