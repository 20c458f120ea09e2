"""Measure the cost of tokenising raw text differently from L_C, and how much of it a learnt tokenisation avoids.

The tokens of public corpora are joined to text (by `written`, which shares nothing with core) and tokenised again.

    python -m tests.lab.benchmarks.bench_cut cuts       F1 of the tokens, by our rule and by the rules learnt from train
    python -m tests.lab.benchmarks.bench_cut tagger     F1 of one tagger on its test text, by each tokenisation
    python -m tests.lab.benchmarks.bench_cut vectors    share of test tokens for which a raw corpus has a vector
    ... [--data DIR] [--dataset conll2003] [--train 800] [--epochs 12] [--source reviews --sentences 60000]
"""

import argparse
import gzip
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path

from core.text.cut import learn
from core.text.sentence import Entity, Sentence
from core.text.words import cutter, tokenize

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
SETS = ("conll2003", "conll2002-es", "conll2002-nl", "german-ep", "lener-br", "inlegalner", "bc5cdr", "crossner-music")
CLOSERS, OPENERS = ".,;:!?)]}%…»”’", "([{$£€#«“‘¿¡"
HYPHENS = ("bc5cdr",)  # its tokenizer splits at hyphens; in other corpora a separate hyphen is a dash
Spans = set[tuple[int, int, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cuts", "tagger", "vectors"))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--dataset", default="conll2003")
    parser.add_argument("--train", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--source", default="reviews")
    parser.add_argument("--sentences", type=int, default=60_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WINNOW_HOME"] = folder
        {"cuts": cuts, "tagger": tagger, "vectors": vectors}[options.part](options)


def sentences(path: Path) -> list[Sentence]:
    """Read labelled sentences, in the tokens of the file."""
    from core.corpora.readers import ReadOptions, read

    return list(read(path, ReadOptions(scheme="io" if path.parent.name == "german-ep" else "iob2")))


def written(tokens: Sequence[str], *, hyphens: bool = False) -> str:
    """Join tokens to text. Attach punctuation and clitics to their words, and closing quotation marks to the left."""
    text, before, quoted = "", "", False
    for token in tokens:
        quote = token in ('"', "``", "''")
        behind = token[0] in CLOSERS and not (token[0] == "." and token[1:2].isalnum())
        clitic = token == "n't" or (token[0] in "'’" and token[1:].isalpha())
        inside = before[-1:] in OPENERS or (before in ('"', "``") and quoted)
        dash = hyphens and (token in "-/" or before in "-/")
        glued = not before or behind or clitic or inside or (quote and quoted) or dash
        text += token if glued else f" {token}"
        before, quoted = token, quoted ^ quote
    return text


def spans(tokens: Sequence[str]) -> Spans:
    """Return the tokens as spans of characters, without counting blanks."""
    return {(start, end, "") for start, end in pairwise(accumulate(map(len, tokens), initial=0))}


def f1(pairs: Iterator[tuple[Spans, Spans]]) -> float:
    gold = found = both = 0
    for one, other in pairs:
        gold, found, both = gold + len(one), found + len(other), both + len(one & other)
    return 200 * both / (gold + found)


def cuts(options: argparse.Namespace) -> None:
    print("| labelled data | our rule | learnt from train | rules |\n|---|---:|---:|---:|")
    for name in SETS:
        train, test = (sentences(options.data / name / f"{split}.conll") for split in ("train", "test"))
        cut = learn(each.tokens for each in train)
        texts = [written(each.tokens, hyphens=name in HYPHENS) for each in test]
        scores = [
            f1((spans(each.tokens), spans(rule(text))) for each, text in zip(test, texts, strict=True))
            for rule in (tokenize, cut or tokenize)
        ]
        print(f"| {name} | {scores[0]:.2f} | {scores[1]:.2f} | {len(cut.rules) if cut else 'none needed'} |")


def tagger(options: argparse.Namespace) -> None:
    from core.models.taggers import load_tagger
    from core.projects import home, runs

    train, dev, test = (
        sentences(options.data / options.dataset / f"{split}.conll") for split in ("train", "dev", "test")
    )
    library = home.library()
    parts = {"train": train[: options.train], "dev": dev[:500]}
    sealed = {part: library.seal(rows, name=part, origin={}, labelled=True) for part, rows in parts.items()}
    given = {part: corpus.fingerprint for part, corpus in sealed.items()}
    run = runs.execute("finetune", {**given, "seeds": (1,), "epochs": options.epochs})
    network = load_tagger(run.artifacts / "model")
    assert network.cut is not None
    raw = [written(one.tokens, hyphens=options.dataset in HYPHENS) for one in test]
    joined = [one.text for one in test]
    ways: list[tuple[str, Sequence[Sequence[str]]]] = [("its own tokens", [one.tokens for one in test])]
    for of, texts in (("blanks left in", joined), ("raw", raw)):
        ways.append((f"{of}, our rule", [tokenize(text) for text in texts]))
        ways.append((f"{of}, as train was cut", [network.cut(text) for text in texts]))
    differ = {i for i, (one, text) in enumerate(zip(test, raw, strict=True)) if tokenize(text) != one.tokens}
    print(
        f"{options.dataset}, {options.train} training sentences; test sentences that our rule tokenises differently: ",
        end="",
    )
    print(f"{len(differ) / len(test):.0%}\n| test text | F1 | F1 on these sentences |\n|---|---:|---:|")
    for name, tokens in ways:
        read = [replace(one, tokens=tuple(own), entities=None) for one, own in zip(test, tokens, strict=True)]
        predictions = network.predict(read)
        pairs = [
            (entities(one.tokens, one.entities or ()), entities(own, prediction.entities))
            for one, own, prediction in zip(test, tokens, predictions, strict=True)
        ]
        print(f"| {name} | {f1(iter(pairs)):.1f} | {f1(pairs[i] for i in sorted(differ)):.1f} |")


def entities(tokens: Sequence[str], of: Sequence[Entity]) -> Spans:
    """Return the entities as spans of characters, without counting blanks."""
    at = list(accumulate(map(len, tokens), initial=0))
    return {(at[entity.start], at[entity.end], entity.type) for entity in of}


def vectors(options: argparse.Namespace) -> None:
    with gzip.open(options.data / "unlabeled" / f"{options.source}.txt.gz", "rt", encoding="utf-8") as file:
        rows = [line.split() for _, line in zip(range(options.sentences), file, strict=False)]
    test = sentences(options.data / options.dataset / "test.conll")
    tokens = [token for one in test for token in one.tokens]
    texts = [written(row) for row in rows]
    ways: dict[str, tuple[Sequence[str], Callable[[str], Sequence[str]]]] = {
        "raw, by blanks": (texts, cutter("blanks")),
        "raw, by our rule": (texts, tokenize),
        "tokenised, by blanks": ([" ".join(row) for row in rows], cutter("blanks")),
    }
    print(f"{len(tokens):,} test tokens of {options.dataset}; vectors of {len(rows):,} sentences of {options.source}")
    for name, (of, cut) in ways.items():
        counts = Counter(word for text in of for word in cut(text))
        known = {word for word, n in counts.items() if n >= 5}
        whole = [token in known or token.lower() in known for token in tokens]
        pieces = [
            is_known or all(not part.isalnum() or part in known or part.lower() in known for part in tokenize(token))
            for token, is_known in zip(tokens, whole, strict=True)
        ]
        print(
            f"{name}: {100 * sum(whole) / len(tokens):.1f}% as they are, {100 * sum(pieces) / len(tokens):.1f}% by pieces"
        )


if __name__ == "__main__":
    main()
