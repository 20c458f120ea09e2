"""A home with a finished run of each kind that pages show, most of them without training."""

from pathlib import Path

from core.corpora.library import Library
from core.explore import view as maps
from core.projects import runs
from tests import finished, finished_bias
from tests.assisting.test_assist import AWAY, HOME
from tests.conftest import sentence
from tests.homes import done
from tests.planted import contracts, kitchen
from tests.similarity.test_measures import FRUIT, METAL, chained


def furnish(home: Path) -> dict[str, str]:
    """Fill the current home. Return {page: its address with query}."""
    made, library = finished.corpora(home), Library(home)
    finished.experiment(home, made, finished.LINES)
    measured = finished_bias.measured(home, finished_bias.contracts(home))
    lines = {
        "contracts": contracts(60, seed=1),
        "pile": [*contracts(150, seed=2), *kitchen(150)],
        **{
            name: [" ".join(words) for words in chained(*given)]
            for name, given in (("fruit", (FRUIT, 40, 1)), ("orchard", (FRUIT, 200, 2)), ("mine", (METAL, 200, 3)))
        },
    }
    plain = {name: library.seal(map(sentence, rows), name=name, origin={}).fingerprint for name, rows in lines.items()}
    labelled = [library.seal(rows, name=n, origin={}, labelled=True) for n, rows in (("here", HOME), ("there", AWAY))]

    few = {"draws": 2, "sizes": 1, "skipgram_epochs": 1, "min_source_tokens": 1_000}
    similarity = done("similarity", few, target=(plain["fruit"],), source=(plain["orchard"], plain["mine"]))
    corpora = {"task": plain["contracts"], "domain": plain["pile"]}
    select = done("select", corpora, encoder="tiny", strategy="knn", budget="60")
    roles = {"task": made["task"].fingerprint, "domain": made["domain"].fingerprint}
    finished.finish(home, "which-strategy", roles, finished.constant(finished.COMPARED))
    done("map", maps.options(select, sample=200, clusters=4))
    queue = done("queue", corpora, encoder="tiny", n=5)
    skl = done("skl", primary=labelled[0].fingerprint, assisting=labelled[1].fingerprint)
    tuned = runs.listed("finetune")[0]
    return {
        "Home": "",
        "Corpora": "Corpora",
        "Similarity": f"Similarity?run={similarity}",
        "Selection": f"Selection?run={select}",
        "Explore": f"Explore?run={select}",
        "Label": f"Label?run={queue}",
        "Bias": f"Bias?run={measured.id}",
        "Assisting": f"Assisting?run={skl}",
        "Training": f"Training?run={tuned.id}",
        "Results": "Results",
        "Runs": "Runs",
        "Papers": "Papers",
    }
