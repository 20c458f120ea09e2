"""Temperature of a trained tagger's confidences, fitted on dev: one number, which changes nothing that is found."""

from collections.abc import Sequence

from core.models.tagger import Tagger
from core.reporter import Reporter
from core.stats.calibration import TEMPERATURES, best_temperature, confidences
from core.text.sentence import Sentence
from core.training.rows import judges

MOST = 1000  # sentences of dev: one number needs no more


def fit_temperature(tagger: Tagger, dev: Sequence[Sentence], report: Reporter) -> float:
    """The temperature under which the tagger's confidences on dev say best what is right; the tagger has it then."""
    gold = judges(dev, MOST)
    confidence, right = confidences(gold, tagger.predict_at(TEMPERATURES, gold, report))
    tagger.crf.temperature = best_temperature(confidence, right)
    return tagger.crf.temperature
