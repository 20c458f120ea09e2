"""Training sentences with mentions of three types and random measurements of them."""

import random
from collections.abc import Iterable, Sequence

from core.bias.pools import Pools, Thresholds, find_pools, ladder
from core.bias.training_sentences import Measured, Training, ordered
from core.text.sentence import Entity, Sentence, sentence_id

TYPES = ("LOC", "ORG", "PER")
FRAMES = ("said", "visited", "bought", "left", "praised", "met", "saw", "heard")


def name(rng: random.Random, kind: str) -> tuple[str, ...]:
    return tuple(f"{kind.title()}{rng.choice('abcdefghij')}{i}" for i in range(rng.randint(1, 2)))


def sentences(n: int, seed: int, types: Sequence[str] = TYPES) -> list[Sentence]:
    rng, found = random.Random(seed), list[Sentence]()
    for row in range(n):
        tokens, entities = [f"on{row}"], list[Entity]()
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            kind = rng.choice(types)
            words = name(rng, kind)
            entities.append(Entity(start=len(tokens), end=len(tokens) + len(words), type=kind))
            tokens += [*words, *rng.sample(FRAMES, rng.randint(0, 2))]
        text = " ".join(tokens)
        found.append(Sentence(id=sentence_id(text), tokens=tuple(tokens), text=text, entities=tuple(entities)))
    return found


def training(n: int = 60, seed: int = 1, held_out: Iterable[str] = (), types: Sequence[str] = TYPES) -> Training:
    return measured(sentences(n, seed, types), seed, held_out)


def measured(rows: Sequence[Sentence], seed: int = 1, held_out: Iterable[str] = ()) -> Training:
    rng, measures = random.Random(seed), dict[tuple[int, int, int], Measured]()
    for row, sentence in enumerate(rows):
        for entity in ordered(sentence):
            e, c = rng.gauss(1, 1), rng.gauss(1, 1)
            bin = "low" if e - c <= -0.5 else "high" if e - c >= 0.5 else "near_zero"
            measures[row, entity.start, entity.end] = Measured(e, c, bin)
    return Training.of(rows, measures, held_out)


def pools(found: Training, **thresholds: str) -> Pools:
    return find_pools(found.kinds, found.entity, found.context, Thresholds(**thresholds))


def rungs(found: Training, **thresholds: str) -> list[Pools]:
    return ladder(found.kinds, found.entity, found.context, Thresholds(**thresholds))
