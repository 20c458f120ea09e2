"""What came out of a finished run, in a line."""

from collections.abc import Callable, Mapping
from statistics import mean
from typing import Any

from core.facade import assisting, figures
from core.facade.errors import WinnowError
from core.facade.runs import Run
from pages.ui.runs.words import corpus_name

Values = Mapping[str, Any]


def outcome(run: Run) -> str:
    """Of a finished run; "" where its kind has nothing to say in a line, or an earlier version wrote less."""
    say = SAYS.get(run.manifest.kind)
    try:
        return say(run.result(), run.manifest.config) if say else ""
    except (KeyError, IndexError, TypeError, WinnowError):
        return ""


def _selected(found: Values, config: Values) -> str:
    return f"S_C: {found['selected']:,} of {found['of']:,} sentences, {found['tokens']:,} tokens"


def _finetuned(found: Values, config: Values) -> str:
    test, dev = found["test"], found["dev"]["micro_f1"]
    if not test:
        return f"F1 {max(dev):.1f} on dev, the best of {len(dev)} {'seed' if len(dev) == 1 else 'seeds'}"
    spread = f" ± {test['sd']:.1f} over {len(test['micro_f1'])} seeds" if len(test["micro_f1"]) > 1 else ""
    return f"F1 {mean(test['micro_f1']):.1f}{spread} on {corpus_name(config['test'][0])}"


def _pretrained(found: Values, config: Values) -> str:
    perplexity = found["pseudo_perplexity"]
    return f"Pseudo-perplexity of held-out text: {perplexity['before']:,.1f} before, {perplexity['after']:,.1f} after"


def _checked(found: Values, config: Values) -> str:
    told = [f"{n:,} {name.replace('_', ' ')}" for name, n in found["flags"].items() if n]
    return f"Of {found['sentences']:,} sentences: {', '.join(told) or 'nothing to flag'}"


def _measured(found: Values, config: Values) -> str:
    bits = found["v_information"]
    return f"Names tell {bits['entity']:.2f} bits, contexts {bits['context']:.2f}, over {found['mentions']:,} mentions"


def _drifting(found: Values, config: Values) -> str:
    drifting, shared = found["entities"]["drifting"], found["overlapping"]
    return f"{drifting:,} of the {shared:,} entities in both corpora drift"


def _imported(found: Values, config: Values) -> str:
    return f"{found['sentences']:,} sentences, {found['tokens']:,} tokens"


def _timed(found: Values, config: Values) -> str:
    pace = 1 / max(found["mlm"][1], 1e-9)
    busy = ", while it was busy with other work" if found["busy"] else ""
    return f"{found['machine']}: pre-training reads about {pace:,.0f} pieces a second{busy}"


SAYS: Mapping[str, Callable[[Values, Values], str]] = {
    "add": _imported,
    "audit": _checked,
    "select": _selected,
    "map": lambda found, config: f"{found['points']:,} sentences laid out",
    "similarity": lambda found, config: " ".join(found["recommendation"].values()),
    "difficulty": _measured,
    "rebuild": lambda found, config: f"{found['changed']:,} mentions changed",
    "robustness": lambda found, config: f"{found['changed']:,} of {found['mentions']:,} mentions renamed",
    "skl": _drifting,
    "assist": lambda found, config: assisting.in_words(found["tables"][0]),
    "pretrain": _pretrained,
    "finetune": _finetuned,
    "experiment": lambda found, config: figures.answer(found["leaderboard"]),
    "tag": lambda found, config: f"{found['entities']:,} entities in {found['sentences']:,} sentences",
    "predict": lambda found, config: f"{found['entities']:,} entities in {found['sentences']:,} sentences",
    "calibrate": _timed,
}
