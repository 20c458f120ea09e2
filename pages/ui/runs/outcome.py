"""What came out of a finished run, in a line."""

from collections.abc import Callable, Mapping
from contextlib import suppress

from core.assisting import view as assisting
from core.bias import rebuilding
from core.bias import view as bias
from core.encoders import view as encoders
from core.errors import WinnowError
from core.experiment import results, studies
from core.experiment import view as experiments
from core.explore import view as maps
from core.importing import intake_view as intake
from core.importing import view as corpora
from core.projects.runs import Run
from core.selection import prevalence_view as prevalence
from core.selection import view as selections
from core.shown import count
from core.similarity import view as similarity
from core.tagging import training_view as training
from core.tagging import vectors_view as vectors
from core.tagging import view as taggers
from core.terms import CHOICE, DECIDING
from pages.ui.runs.words import corpus_name, encoder


def outcome(run: Run) -> str:
    """Result of a finished run in a line; "" where its kind has nothing to say, or its result cannot be read."""
    say = SAYS.get(run.manifest.kind)
    with suppress(WinnowError):
        return say(run) if say else ""
    return ""


def _selected(run: Run) -> str:
    result = selections.kept(run.id)
    return f"{CHOICE.title}: {result.selected:,} of {count(result.of, 'sentence')}, {count(result.tokens, 'token')}"


def _finetuned(run: Run) -> str:
    tuned = results.tuned(run.id)
    test, dev = tuned.test, tuned.dev.micro_f1
    if not test:
        return f"{DECIDING.named} {max(dev):.1f}, the best of {len(dev)} {'seed' if len(dev) == 1 else 'seeds'}"
    spread = "" if test.spread is None else f" ± {test.spread:.1f} over {count(len(test.micro_f1), 'seed')}"
    return f"Score (F1) {test.f1:.1f}{spread} on {corpus_name(run.manifest.config['test'][0])}"


def _tested(run: Run) -> str:
    return f"Score (F1) {results.evaluation(run.id).test.f1:.1f}"


def _pretrained(run: Run) -> str:
    perplexity = training.pretrained(run.id).pseudo_perplexity
    return f"Pseudo-perplexity of held-out text: {perplexity.before:,.1f} before, {perplexity.after:,.1f} after"


def _audited(run: Run) -> str:
    result = corpora.audit_result(run.id)
    flagged = [f"{n:,} {name.replace('_', ' ')}" for name, n in result.flags.items() if n]
    return f"Of {count(result.sentences, 'sentence')}: {', '.join(flagged) or 'nothing to flag'}"


def _divided(run: Run) -> str:
    parts = corpora.split_result(run.id).parts
    return ", ".join(f"{part.name} {part.sentences:,}" for part in parts) + " sentences"


def _measured(run: Run) -> str:
    result = bias.result(run.id)
    bits = result.v_information
    return f"Names tell {bits.entity:.2f} bits, contexts {bits.context:.2f}, over {count(result.mentions, 'mention')}"


def _drifting(run: Run) -> str:
    result = assisting.result(run.id)
    return (
        f"{result.entities.drifting:,} of the {count(result.overlapping, 'entity', 'entities')} in both corpora drift"
    )


def _imported(run: Run) -> str:
    result = corpora.import_result(run.id)
    return f"{count(result.sentences, 'sentence')}, {count(result.tokens, 'token')}"


def _taken_in(run: Run) -> str:
    parts = intake.result(run.id).parts
    taken = sum(not part.problem for part in parts)
    named = intake.parts_in_words([part.part for part in parts if not part.problem])
    return f"{taken} of {count(len(parts), 'part')} imported: {named}"


def _renamed(run: Run) -> str:
    result = rebuilding.robustness_result(run.id)
    return f"{result.changed:,} of {count(result.mentions, 'mention')} renamed"


def _tagged(run: Run) -> str:
    tagged = taggers.tagged(run.id)
    return f"{count(tagged.entities, 'entity', 'entities')} in {count(tagged.sentences, 'sentence')}"


def _timed(run: Run) -> str:
    timed = experiments.calibrated(run.id)
    pace = 1 / max(timed.mlm[1], 1e-9)
    busy = ", while it was busy with other work" if timed.busy else ""
    return f"{timed.machine}: pre-training reads about {pace:,.0f} pieces a second{busy}"


def _ranked(run: Run) -> str:
    first = training.ranked(run.id).encoders[0]
    return f"{encoder(first.encoder)} fits best: a linear probe scores {first.mean.f1:.1f} (F1) from its layers' mean"


def _counted(run: Run) -> str:
    found = prevalence.result(run.id)
    interval = f"{found.low:,} to {found.high:,}"
    return f"About {count(found.about, 'sentence')} of the domain corpus are like the task corpus ({interval})"


SAYS: Mapping[str, Callable[[Run], str]] = {
    "add": _imported,
    "intake": _taken_in,
    "audit": _audited,
    "split": _divided,
    "select": _selected,
    "map": lambda run: f"{count(maps.result(run.id).points, 'sentence')} laid out",
    "similarity": lambda run: " ".join(similarity.result(run.id).recommendation.values()),
    "difficulty": _measured,
    "rebuild": lambda run: f"{count(rebuilding.rebuild_result(run.id).changed, 'mention')} changed",
    "robustness": _renamed,
    "skl": _drifting,
    "assist": lambda run: assisting.in_words(assisting.swept(run.id).tables[0]),
    "pretrain": _pretrained,
    "finetune": _finetuned,
    "experiment": lambda run: " ".join(results.finding(run.id).parts),
    "study": lambda run: " ".join(studies.finding(run.id).parts),
    "tag": _tagged,
    "predict": _tagged,
    "evaluate": _tested,
    "calibrate": _timed,
    "prevalence": _counted,
    "rank": _ranked,
    "vectors-import": lambda run: vectors.import_result(run.id).says,
    "fetch": lambda run: f"The encoder {encoders.fetched(run.id).encoder} is on this machine",
}
