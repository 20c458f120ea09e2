"""What an experiment's claim is worth in other coin: random text, labelled sentences; and that in words."""

from dataclasses import dataclass

from core.stats.multipliers import Worth


@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers:
    """Worth of choosing. arm, budget: of the claim.

    text: in tokens that `random` reads. labels: in labelled sentences that `random` learns from, where the arm has
    `labels.size`; labels_none: that `none` does, so what reading and choosing are worth together. None: not measured,
    which takes two replicates and as much text in D_C.
    """

    arm: str
    budget: str
    text: Worth | None
    labels: Worth | None
    labels_none: Worth | None

    @property
    def words(self) -> str:
        """A sentence or two; with nothing measured the reason."""
        name = f"{self.arm} {self.budget}".strip()
        worths = [words for words in (_text(self.text), _labels(self.labels)) if words]
        if not worths:
            return (
                f"What choosing by {name} is worth was not measured: it takes two replicates, and more text in "
                "the domain corpus."
            )
        together = f" Reading and choosing together were worth {_labels(self.labels_none)}." if self.labels_none else ""
        return f"Choosing by {name} was worth {', and '.join(worths)}.{together}"


def _text(worth: Worth | None) -> str:
    if worth is None:
        return ""
    if worth.unknown:
        return f"an amount of random text that {worth.replicates} replicates cannot tell"
    if worth.below:
        return "less than 1 times as much random text: it did not help"
    if worth.beyond:
        return f"reading more than {worth.most:.2g} times as much at random (beyond what was run)"
    lo = "less than 1" if worth.lo is None else f"{worth.lo:.2g}"
    hi = f"more than {worth.most:.2g}" if worth.hi is None else f"{worth.hi:.2g}"
    return f"reading {_estimate(worth)} times as much at random (95% interval {lo} to {hi})"


def _estimate(worth: Worth) -> str:
    if worth.times <= 1:
        return "less than 1"
    return f"more than {worth.most:.2g}" if worth.times >= worth.most else f"about {worth.times:.2g}"


def _labels(worth: Worth | None) -> str:
    if worth is None:
        return ""
    most, what = f"more than {_more(worth, worth.most)}", f"more labelled sentences than {worth.size:,.0f}"
    if worth.unknown:
        return f"a number of {what} that {worth.replicates} replicates cannot tell"
    if worth.below:
        return f"no {what} (less than 0)"
    if worth.beyond:
        return f"{most} {what} (beyond what was run)"
    lo = "less than 0" if worth.lo is None else _more(worth, worth.lo)
    hi = most if worth.hi is None else _more(worth, worth.hi)
    estimate = "less than 0" if worth.times <= 1 else most if worth.times >= worth.most else _more(worth, worth.times)
    return f"{estimate} {what} (95% interval {lo} to {hi})"


def _more(worth: Worth, times: float) -> str:
    """The labelled sentences that this multiple adds."""
    return f"{worth.size * (times - 1):,.0f}"
