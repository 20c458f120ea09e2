"""Cost of using a variant once: machine seconds, labelled sentences, and downloads.

The cost does not include a person's time, because a variant that only uses the given labels needs no further work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.corpora.library import Library
from core.encoders.vectors import ImportResult
from core.experiment.reference import KINDS
from core.models.hub import BUNDLED, TINY
from core.models.networks import ON_ENCODER
from core.runs import durations, result
from core.runs.store import Run, RunStore, is_run_id

# Inputs whose labels a variant uses.
LEARNT_FROM = ("train", "assisting", "first", "dictionary", "distant", "names")
# Format of an imported list of entity names. It contains no labelled sentences.
NAMES = "names"


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Cost of using a variant once.

    seconds: computing time of one tagger and of the runs that it needs.
    labels: number of labelled sentences, without dev and test set.
    downloads: models and word vectors that had to be downloaded, in words; "" for none.
    """

    seconds: float
    labels: int
    downloads: str


def price(found: Run, added: Sequence[Run], reference: str, store: RunStore) -> Price:
    """Return the cost of using a variant once: that of one tagger and of the runs that this tagger needs.

    found: a `finetune` run of the variant, or the run of a reference variant. added: the runs that `found` needs.
    reference: kind of a reference variant's run; "" for other variants.
    """
    own = sum(durations.by_kind([found], store).values())
    taggers = 1 if reference else len(found.manifest.config["seeds"])
    return Price(
        seconds=own / taggers + sum(durations.by_kind(added, store).values()),
        labels=labels_used(found, added, Library(store.home)),
        downloads=KINDS[reference].downloads(found) if reference else _downloads(found, store),
    )


def labels_used(found: Run, added: Sequence[Run], library: Library) -> int:
    """Return the number of labelled sentences that a run learnt from. Each corpus is counted once.

    Imported lists of names do not count, because they have no labelled sentences. A rebuilt training set counts for at
    most as many sentences as the set it was made from, because copies were not labelled by hand.
    found, added: as in `price`.
    """
    inputs = found.manifest.inputs
    marks = {mark for name, mark in inputs.items() if name.partition(".")[0] in LEARNT_FROM}
    corpora = {mark: library.recall(mark) for mark in marks}
    sizes = {mark: len(each) for mark, each in corpora.items() if each.labelled and each.origin.get("format") != NAMES}
    for run in added:
        if run.manifest.kind == "rebuild":
            sizes[inputs["train"]] = min(sizes[inputs["train"]], len(library.recall(run.manifest.inputs["train"])))
    return sum(sizes.values())


def _downloads(finetune: Run, store: RunStore) -> str:
    config = finetune.manifest.config
    named = [config["init"] if config.get("network", "encoder") in ON_ENCODER else "", config.get("states", "")]
    words = [_encoder(name, store) for name in named if name]
    if imported := config.get("imported_vectors"):
        words.append(f"the word vectors {result.read(store.get(imported), ImportResult).name}")
    return " and ".join(dict.fromkeys(filter(None, words)))


def _encoder(name: str, store: RunStore) -> str:
    """Return an encoder's name or folder in words; "" if it is bundled with Winnow or was made in this project.

    name: name or folder of the encoder. It may also be the id of a pre-training run; then the encoder is the one from
    which this pre-training started.
    """
    while is_run_id(name):
        name = store.get(name).manifest.config["init"]
    if name in (BUNDLED, TINY):
        return ""
    folder = Path(name)
    if folder.is_absolute():
        made_here = folder.is_relative_to(store.home)
        return "" if made_here else f"the folder {folder.name}"
    return f"the encoder {name}"
