"""The five tasks of the gallery, and the texts of those that are not a sample set.

The grammars in `grammars/` and the off-domain rules of the sample sets generate the texts. The same seed gives the same
bytes.
"""

from dataclasses import dataclass
from pathlib import Path
from random import Random

from core.samples import sets
from core.samples.grammar import Grammar, Line, shuffled
from core.samples.plant import Guard

# Numbers of sentences; N_MORE: unlabelled sentences of T_C. After 100 training sentences, a tagger makes no more errors
# on these grammars, and nothing could be compared.
N_TRAIN, N_DEV, N_TEST, N_MORE = 25, 100, 200, 100
N_IN, N_OFF = 1000, 500  # in-domain and off-domain sentences of D_C
OWN = Path(__file__).with_name("grammars")
SHARED = Path(sets.__file__).with_name("grammars")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of the gallery.

    about: one or two sentences about its texts. sample: name of the sample set, or "" if the texts are generated here
    from the grammar `grammars/<name>.txt`, `shared` grammars of the sample sets, and topics as in `sets.Plan`.
    """

    name: str
    title: str
    about: str
    sample: str = ""
    shared: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()


TASKS = (
    Task(
        name="contracts",
        title="Contracts",
        about="Clauses of supply contracts and loans, with parties, guarantors, amounts, dates and governing law.",
        sample="legal",
    ),
    Task(
        name="clinical-notes",
        title="Clinical notes",
        about="Ward notes and discharge letters in shorthand, with drugs, doses, problems and tests.",
        sample="medical",
    ),
    Task(
        name="news",
        title="News",
        about="Local news about councils and companies, with people, organisations, places and dates. The domain corpus "
        "also has courts, roads and weather; a third of it is about kitchens, gardens and journeys.",
        shared=("common", "legal_other"),
        task=("townhall", "business"),
        inside=("townhall", "business", "courts", "roads", "weather"),
        outside=("cooking", "garden", "travel"),
    ),
    Task(
        name="abstracts",
        title="Scientific abstracts",
        about="Sentences of abstracts on lakes and streams, with species, methods, quantities and sites. The domain corpus "
        "also has soils, forests, seas and birds; a third of it is about software, music and engines.",
        shared=("common", "medical_other"),
        task=("lakes",),
        inside=("lakes", "lakes", "soils", "forests", "seas", "birds"),
        outside=("software", "music", "engines"),
    ),
    Task(
        name="german",
        title="Another language: German tenancies",
        about="German tenancy agreements, with parties, amounts, dates and places. The domain corpus also has purchases, "
        "services and employment; a third of it is about kitchens, journeys and football. The bundled encoder "
        "(MiniLM) was trained on English, so it cuts German words into many pieces. An encoder that was trained on "
        "German will do better; `--encoder` takes its folder.",
        task=("miete",),
        inside=("miete", "miete", "kauf", "dienst", "arbeit"),
        outside=("kochen", "reise", "fussball"),
    ),
)


def grammar(task: Task, rng: Random) -> Grammar:
    """Return the grammar of a task whose texts are generated here."""
    return Grammar([*(SHARED / f"{name}.txt" for name in task.shared), OWN / f"{task.name}.txt"], rng)


def write(task: Task, folder: Path, seed: int = 0) -> None:
    """Write task.txt (T_C), domain.txt (D_C), and train, dev and test.conll (L_C, IOB2) into a folder."""
    rng = Random(f"{task.name} {seed}")
    rules, guard = grammar(task, rng), Guard()
    # As in `sets.build`: held-out sentences first, because the guard keeps all later sentences different from them.
    test = sets.draw(rules, guard, task.task, N_TEST, held_out=True)
    dev = sets.draw(rules, guard, task.task, N_DEV, held_out=True)
    train = sets.draw(rules, guard, task.task, N_TRAIN)
    unlabelled = [*train, *dev, *sets.draw(rules, guard, task.task, N_MORE)]
    domain = [*sets.draw(rules, guard, task.inside, N_IN), *sets.draw(rules, guard, task.outside, N_OFF)]
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("task", unlabelled), ("domain", domain)):
        order = shuffled(range(len(lines)), rng)
        (folder / f"{name}.txt").write_text("".join(f"{lines[i].text}\n" for i in order), "utf-8")
    for name, lines in (("train", train), ("dev", dev), ("test", test)):
        (folder / f"{name}.conll").write_text(_rows(lines), "utf-8")


def _rows(lines: list[Line]) -> str:
    return "".join(sets.conll(line) for line in lines)
