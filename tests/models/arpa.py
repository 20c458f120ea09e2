r"""ARPA files of back-off n-gram models, as `lmplz` writes them and KenLM, SRILM and others read them.

    \data\
    ngram 1=14
    ...
    \1-grams:
    -1.234<TAB>word<TAB>-0.301        log10 P, the n-gram, log10 back-off (none in the highest order)
    ...
    \end\

Numbers are printed so that reading them gives the same float32: a model scores alike before and after.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from core.errors import ModelError, ReadError
from core.models.kneser_ney import BOS, EOS, UNK, NgramTable, word_bits
from core.models.ngram import RESERVED, KneserNey

_LINES = 50_000  # lines written or read at a time
_MISSING = -100.0  # log10 P of <unk> where the file has none, KenLM's choice

_Int64 = npt.NDArray[np.int64]


def write_arpa(model: KneserNey, path: Path) -> None:
    """Write `model`; `<s>` has log10 P 0, as `lmplz` has it. Errors: ModelError where a word holds white space."""
    names = sorted(model.vocabulary, key=model.vocabulary.__getitem__)
    for number, name in enumerate(names):
        if not name or any(blank in name for blank in " \t\n\r\0"):
            raise ModelError(
                f"{path.name}: word {number} of the vocabulary is empty or holds white space, "
                "which an ARPA file cannot express; clean the corpus's tokens and fit again."
            )
    with path.open("w", encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        file.write("\\data\\\n")
        file.writelines(f"ngram {n}={len(table)}\n" for n, table in enumerate(model.tables, 1))
        for n in range(1, model.order + 1):
            file.write(f"\n\\{n}-grams:\n")
            for start in range(0, len(model.tables[n - 1]), _LINES):
                file.writelines(_lines(model, names, n, slice(start, start + _LINES)))
        file.write("\n\\end\\\n")


def _lines(model: KneserNey, names: list[str], n: int, part: slice) -> Iterator[str]:
    bits = word_bits(len(names))
    table = model.tables[n - 1]
    keys, spelled = table.keys[part], []
    for below in reversed(model.tables[: n - 1]):
        spelled.append(keys & ((1 << bits) - 1))
        keys = below.keys[keys >> bits]
    grams = (
        " ".join(map(names.__getitem__, ids))
        for ids in zip(*(each.tolist() for each in (keys, *reversed(spelled))), strict=True)
    )
    probs = table.log_probs[part].astype(str).tolist()
    if n == model.order:
        return (f"{prob}\t{gram}\n" for prob, gram in zip(probs, grams, strict=True))
    backoffs = table.backoffs[part].astype(str).tolist()
    return (f"{prob}\t{gram}\t{backoff}\n" for prob, gram, backoff in zip(probs, grams, backoffs, strict=True))


def read_arpa(path: Path) -> KneserNey:
    """Read a model that is not pruned in the middle: every n-gram's prefix and suffix must be there too.

    Discounts are not in such a file. Errors: ReadError with the line.
    """
    with path.open(encoding="utf-8", errors="surrogatepass", newline="\n") as file:
        lines = _Lines(file, path.name)
        try:
            return _read(lines)
        except UnicodeDecodeError as error:
            raise lines.error("is not UTF-8 text; convert the file") from error


class _Lines:
    """The lines of a file, counted."""

    def __init__(self, file: TextIO, name: str) -> None:
        self.file, self.name, self.number = file, name, 0

    def take(self, n: int) -> list[str]:
        lines = [line.rstrip("\r\n") for line in islice(self.file, n)]
        self.number += len(lines)
        if len(lines) < n:
            raise self.error("the file ends here, before \\end\\; write it again")
        return lines

    def filled(self) -> str:
        """The next line that is not blank."""
        while not (line := self.take(1)[0].strip()):
            pass
        return line

    def expect(self, line: str) -> None:
        if self.filled() != line:
            raise self.error(f"{line} was expected; give an ARPA file")

    def error(self, problem: str, back: int = 0) -> ReadError:
        return ReadError(self.name, self.number - back, f"{problem}.")


def _read(lines: _Lines) -> KneserNey:
    lines.expect("\\data\\")
    sizes: list[int] = []
    while match := re.fullmatch(r"ngram (\d+) *= *(\d+)", line := lines.filled()):
        if int(match[1]) != len(sizes) + 1:
            raise lines.error(f"the size of order {len(sizes) + 1} was expected; give an ARPA file")
        sizes.append(int(match[2]))
    if line != "\\1-grams:" or not sizes:
        raise lines.error("\\1-grams: was expected; give an ARPA file")
    vocabulary = dict(RESERVED)
    tables = [_unigrams(lines, sizes[0], vocabulary)]
    for n, size in enumerate(sizes[1:], 2):
        lines.expect(f"\\{n}-grams:")
        tables.append(_ngrams(lines, n, size, vocabulary, tables))
    lines.expect("\\end\\")
    return KneserNey(vocabulary=vocabulary, tables=tuple(tables))


def _unigrams(lines: _Lines, size: int, vocabulary: dict[str, int]) -> NgramTable:
    names, numbers = _entries(lines, size)
    ids = [vocabulary.setdefault(name, len(vocabulary)) for name in names]
    columns = np.zeros((2, len(vocabulary)), np.float32)
    columns[0, [UNK, EOS]] = _MISSING
    columns[:, ids] = numbers
    columns[0, BOS] = 0  # some write -99; `<s>` is never predicted
    return NgramTable(keys=np.arange(len(vocabulary)), log_probs=columns[0], backoffs=columns[1])


def _ngrams(lines: _Lines, n: int, size: int, vocabulary: dict[str, int], below: list[NgramTable]) -> NgramTable:
    bits = word_bits(len(vocabulary))
    keys, columns = np.empty(size, np.int64), np.empty((2, size), np.float32)
    for start in range(0, size, _LINES):
        grams, columns[:, start : start + _LINES] = _entries(lines, min(_LINES, size - start))
        ids = np.full((len(grams), n), -1)
        for row, gram in enumerate(grams):
            if len(words := gram.split(" ")) == n:
                ids[row] = [vocabulary.get(word, -1) for word in words]
        prefix = _rows(ids[:, :-1], below, bits)
        bad = np.flatnonzero((prefix < 0) | (_rows(ids[:, 1:], below, bits) < 0))
        if len(bad):
            raise lines.error(
                f"this is not {n} words whose first and last {n - 1} are listed one order below; "
                "give a model without such gaps",
                back=len(grams) - 1 - int(bad[0]),
            )
        keys[start : start + len(grams)] = prefix << bits | ids[:, -1]
    order = np.argsort(keys)
    return NgramTable(keys=keys[order], log_probs=columns[0, order], backoffs=columns[1, order])


def _rows(words: _Int64, tables: list[NgramTable], bits: int) -> _Int64:
    """Row of each n-gram, `words` is `(m, n)`, in the table of its order; -1 where it is not there."""
    rows = words[:, 0].copy()
    for table, word in zip(tables[1:], words.T[1:], strict=True):
        known = np.flatnonzero((rows >= 0) & (word >= 0))
        hit, found = table.find(rows[known] << bits | word[known])
        rows = np.full(len(words), -1)
        rows[known[hit]] = found
    return rows


def _entries(lines: _Lines, size: int) -> tuple[list[str], npt.NDArray[np.float32]]:
    """The next `size` lines: their n-grams, and `(2, size)` log10 P and back-off, 0 where none is given."""
    grams, numbers = [], np.zeros((2, size), np.float32)
    for row, line in enumerate(lines.take(size)):
        prob, gram, *backoff = line.split("\t") if "\t" in line else ("", "")
        try:
            numbers[: 1 + len(backoff), row] = [float(prob), *map(float, backoff)]
        except ValueError:
            problem = "log10 P, an n-gram and perhaps a back-off were expected, with tabs between; give an ARPA file"
            raise lines.error(problem, back=size - 1 - row) from None
        grams.append(gram)
    return grams, numbers
