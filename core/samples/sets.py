"""Generate the two sample sets, legal and medical, from grammars (`grammars/*.txt`), with planted duplicates and leaks.

    python -m core.samples.sets [FOLDER]     generates the same bytes again (default assets/samples)

Each set is a folder with task.txt (T_C), domain.txt.gz (D_C), train/dev/test.conll (L_C, IOB2), truth.jsonl.gz (list of
the planted copies) and ABOUT.md (description). T_C has two topics and general sentences. D_C has these and further
topics; a third of it is off-domain. All names are invented. Nothing comes from a contract, a patient or another data
set.
"""

import gzip
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

from core.errors import ConfigError, InputError
from core.samples import plant
from core.samples.grammar import Grammar, Line, shuffled
from core.samples.plant import Guard

Name = Literal["legal", "medical"]

# Numbers of sentences in the labelled sets, and number of unlabelled sentences to add to T_C (N_MORE).
N_TRAIN, N_DEV, N_TEST, N_MORE = 150, 150, 300, 200
# Numbers of in-domain and of off-domain sentences of D_C, without planted copies.
N_IN, N_OFF = 4165, 2120
# Numbers of exact and of near copies to plant in D_C, each of (in-domain, off-domain) sentences.
N_EXACT, N_NEAR = (80, 40), (80, 40)
# Numbers of exact and of near copies of held-out sentences to plant in D_C as leaks.
N_LEAK_EXACT, N_LEAK_NEAR = {"test": 40, "dev": 10}, {"test": 20, "dev": 5}

TASK_FILE = "task.txt"
_GRAMMARS = Path(__file__).with_name("grammars")
_SAMPLES = Path(__file__).parents[2] / "assets" / "samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Composition of a sample set.

    task: topics of T_C. inside, outside: in-domain and off-domain topics of D_C. A topic that is listed twice gives
    twice as many sentences. bias: paragraph for ABOUT.md on the planted bias.
    """

    title: str
    description: str
    task: tuple[str, ...]
    inside: tuple[str, ...]
    outside: tuple[str, ...]
    bias: str


SETS: dict[Name, Plan] = {
    "legal": Plan(
        title="Contracts",
        description="Contract clauses; entities: parties, guarantors, amounts, dates, governing law.",
        task=("supply", "loan", "general"),
        inside=("general", "supply", "loan", "lease", "employment", "licence", "shares", "settlement", "services"),
        outside=("cooking", "sports", "travel", "film", "garden", "town", "hard"),
        bias="The names of AMOUNT and DATE reveal their type. PARTY and GUARANTOR have the same names, so only the "
        "context distinguishes them. LAW is a state that also occurs, unlabelled, as a place. Some clauses "
        '("Box 4 of the order form states: ...") fit an AMOUNT, DATE, LAW or PARTY, so only the name shows the type.',
    ),
    "medical": Plan(
        title="Clinic notes",
        description="Ward notes and discharge letters; entities: drugs, doses, problems, tests.",
        task=("cardiology", "endocrine", "general"),
        inside=(
            *("general", "general", "cardiology", "endocrine", "infection"),
            *("oncology", "psychiatry", "surgery", "respiratory"),
        ),
        outside=("software", "astronomy", "music", "engines", "school", "wildlife", "hard"),
        bias="The names of DRUG (-ine, -mab, -pril, -olol) and DOSE reveal their type. Invented eponyms (Harlow, "
        "Quist) are a TEST in some sentences and a PROBLEM in others, so only the context shows the type. Some notes "
        '("Family asked again about ...") fit a DRUG, PROBLEM or TEST, so only the name shows the type.',
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSet:
    """Files of one sample set."""

    name: str
    title: str
    description: str
    task: Path
    domain: Path
    train: Path
    dev: Path
    test: Path
    truth: Path


def sample_sets(folder: Path = _SAMPLES) -> tuple[SampleSet, ...]:
    """Return the sample sets in `folder` that have all their files."""
    complete = []
    for name, plan in SETS.items():
        home = folder / name
        sample = SampleSet(
            name=name,
            title=plan.title,
            description=plan.description,
            task=home / TASK_FILE,
            domain=home / "domain.txt.gz",
            train=home / "train.conll",
            dev=home / "dev.conll",
            test=home / "test.conll",
            truth=home / "truth.jsonl.gz",
        )
        files = (sample.task, sample.domain, sample.train, sample.dev, sample.test, sample.truth)
        if all(file.is_file() for file in files):
            complete.append(sample)
    return tuple(complete)


def grammar_of(name: Name, rng: Random) -> Grammar:
    """Return the grammar of a sample set. rng: random generator that draws its sentences."""
    return Grammar([_GRAMMARS / file for file in ("common.txt", f"{name}.txt", f"{name}_other.txt")], rng)


def build(name: Name, folder: Path, seed: int = 0) -> None:
    """Write the sample set `name` into `folder`. The same seed gives the same bytes. Errors: ConfigError."""
    if name not in SETS:
        raise ConfigError(f"demo: there is no sample set {name!r}; choose one of {', '.join(SETS)}.")
    # The seed depends on the set's name, so that one set can be built without the other.
    rng = Random(f"{name} {seed}")
    grammar, guard, plan = grammar_of(name, rng), Guard(), SETS[name]
    # Draw the held-out sentences first, because the guard only compares later sentences with earlier ones.
    test = draw(grammar, guard, plan.task, N_TEST, held_out=True)
    dev = draw(grammar, guard, plan.task, N_DEV, held_out=True)
    train = draw(grammar, guard, plan.task, N_TRAIN)
    task = [*train, *dev, *draw(grammar, guard, plan.task, N_MORE)]
    inside = draw(grammar, guard, plan.inside, N_IN)
    outside = draw(grammar, guard, plan.outside, N_OFF)
    rows = _plant(inside, outside, {"test": test, "dev": dev}, rng)

    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / TASK_FILE, "".join(f"{task[i].text}\n" for i in shuffled(range(len(task)), rng)))
    for split, lines in (("train", train), ("dev", dev), ("test", test)):
        _write(folder / f"{split}.conll", "".join(conll(line) for line in lines))
    _write(folder / "domain.txt.gz", "".join(f"{row['text']}\n" for row in rows))
    truth = ({key: value for key, value in row.items() if key != "text"} for row in rows)
    _write(folder / "truth.jsonl.gz", "".join(json.dumps(row) + "\n" for row in truth))
    _write(folder / "ABOUT.md", _about(plan))


def draw(grammar: Grammar, guard: Guard, topics: Sequence[str], n: int, *, held_out: bool = False) -> list[Line]:
    """Draw `n` sentences, one from each topic in turn. If the guard rejects one, continue with the next topic.

    held_out: see `Guard.admit`. Errors: InputError if the grammar has too few different sentences.
    """
    lines: list[Line] = []
    tries = 0
    while len(lines) < n:
        line = grammar.line(topics[tries % len(topics)])
        tries += 1
        if guard.admit(line, held_out=held_out):
            lines.append(line)
        if tries > 40 * n:
            raise InputError(
                f"demo: the grammar of {topics[0]} has fewer than {n} different sentences; add words to it."
            )
    return lines


def conll(line: Line) -> str:
    """Return a sentence in CoNLL format: one line per token with its tag, and an empty line at the end."""
    return "".join(f"{token}\t{tag}\n" for token, tag in zip(line.tokens, line.tags, strict=True)) + "\n"


def _plant(
    inside: list[Line], outside: list[Line], held_out: dict[str, list[Line]], rng: Random
) -> list[dict[str, object]]:
    """Return the rows of D_C with planted copies, in their final order. An original comes before its copy."""
    rows = [_row(line, domain) for domain, lines in (("in", inside), ("off", outside)) for line in lines]
    free = {"in": shuffled(range(len(inside)), rng), "off": shuffled(range(len(outside)), rng)}
    lines = {"in": inside, "off": outside}
    offset = {"in": 0, "off": len(inside)}
    for kind, counts in (("exact", N_EXACT), ("near", N_NEAR)):
        for domain, n in zip(("in", "off"), counts, strict=True):
            for i, copy in _copies(lines[domain], free[domain], kind, n, rng):
                rows.append(_row(lines[domain][i], domain, copy, kind) | {"copy_of": offset[domain] + i})
    for split, sentences in held_out.items():
        left = shuffled(range(len(sentences)), rng)
        for kind, n in (("exact", N_LEAK_EXACT[split]), ("near", N_LEAK_NEAR[split])):
            for i, copy in _copies(sentences, left, kind, n, rng):
                rows.append(_row(sentences[i], "in", copy, kind) | {"leak_of": [split, i]})
    return _mix(rows, rng)


def _copies(lines: list[Line], free: list[int], kind: str, n: int, rng: Random) -> list[tuple[int, plant.Copy]]:
    """Return `n` copies of different lines, each with the line's index. kind: exact or near.

    free: indices of lines to copy; the index of each line that is tried is removed.
    """
    copies: list[tuple[int, plant.Copy]] = []
    while len(copies) < n:
        i = free.pop()
        copy = plant.exact(lines[i], rng) if kind == "exact" else plant.near(lines[i], rng)
        if copy:
            copies.append((i, copy))
    return copies


def _row(line: Line, domain: str, copy: plant.Copy | None = None, kind: str | None = None) -> dict[str, object]:
    text, change = copy or (line.text, None)
    about = {"domain": domain, "topic": line.topic, "template": line.template}
    return {"row": 0, "text": text, **about, "copy_of": None, "leak_of": None, "kind": kind, "change": change}


def _mix(rows: list[dict[str, object]], rng: Random) -> list[dict[str, object]]:
    # place[i] is the final position of row i.
    place = shuffled(range(len(rows)), rng)
    for i, row in enumerate(rows):
        first = row["copy_of"]
        # `hygiene` flags all rows of a cluster except the first. Put the original first, so that the copy is flagged.
        if isinstance(first, int) and place[first] > place[i]:
            place[first], place[i] = place[i], place[first]
    mixed: list[dict[str, object]] = [{}] * len(rows)
    for i, row in enumerate(rows):
        first = row["copy_of"]
        mixed[place[i]] = row | {"row": place[i], "copy_of": place[first] if isinstance(first, int) else None}
    return mixed


def _write(file: Path, text: str) -> None:
    data = text.encode()
    if file.suffix == ".gz":
        # Leave gzip's file name and time empty, so that every build gives the same bytes.
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream:
            stream.write(data)
        data = packed.getvalue()
    file.write_bytes(data)


def _about(plan: Plan) -> str:
    exact, near = sum(N_EXACT), sum(N_NEAR)
    leaks = [f"{n} {split}" for split, n in N_LEAK_EXACT.items()], [f"{n} {split}" for split, n in N_LEAK_NEAR.items()]
    return f"""# {plan.title}

{plan.description} `core/samples/sets.py` generated all sentences. Names are invented, and doses are no advice.

Task corpus (T_C): {", ".join(dict.fromkeys(plan.task))}. It holds every train and dev sentence, and no test sentence.
Domain corpus (D_C): {", ".join(dict.fromkeys(plan.inside))}. A third is off-domain: \
{", ".join(plan.outside)}. The topic "hard" resembles the domain.

`truth.jsonl.gz` has one object for each line of D_C:
- `row` (from 0), `domain` ("in" or "off"), `topic`, `template` (the grammar's rule and alternative)
- `copy_of`: the row of which this is a duplicate ({exact} exact, {near} near), or null
- `leak_of`: [split, sentence from 0] of the labelled sentence that leaked ({", ".join(leaks[0])} exact; \
{", ".join(leaks[1])} near), or null
- `kind`: "exact" (the same words; case and punctuation may differ) or "near" (5-gram Jaccard of at least 0.8; for \
fewer than 10 tokens, edit similarity of at least 0.9)
- `change`: what was changed

Planted bias: {plan.bias}
"""


def main(arguments: Sequence[str]) -> None:
    """Write every sample set into the folder in `arguments`, or into assets/samples if `arguments` is empty."""
    for name in SETS:
        build(name, Path(arguments[0] if arguments else _SAMPLES) / name)


if __name__ == "__main__":
    main(sys.argv[1:])
