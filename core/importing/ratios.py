"""The ratios that papers print beside the counts of their corpora: how large, how dense, against what."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from core.corpora.corpus import Corpus
from core.errors import CorpusError
from core.importing.result import ROLES
from core.importing.view import roles
from core.projects.home import library

CHOICE = "N_S/N_D"
_AGAINST = {"N_T/N_D": ("task", "domain"), "N_L/N_T": ("train", "task"), "N_L/N_D": ("train", "domain")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One ratio of sentences. name: as papers write it ("N_S/N_D"). of, to: names of the corpora."""

    name: str
    of: str
    to: str
    value: float


def density(corpus: Corpus) -> dict[str, float]:
    """Tokens a sentence; of a labelled corpus entities a sentence, and of 100 tokens."""
    means = {"tokens_per_sentence": corpus.n_tokens / len(corpus)}
    if corpus.labelled:
        entities = sum(corpus.types.values())
        means |= {
            "entities_per_sentence": entities / len(corpus),
            "entities_per_100_tokens": 100 * entities / corpus.n_tokens,
        }
    return {name: round(value, 4) for name, value in means.items()}


def ratios(corpus: Corpus | None = None) -> Sequence[Ratio]:
    """Ratios of the corpora in their roles, and of all that was selected from D_C.

    Choices stand behind the others, the newest first.
    corpus: only those that it has a part in; of one that was made from another its share of that too.
    """
    given = roles()
    named = {role: library().find(mark) for role, mark in given.items() if role in ROLES}
    pairs = [(name, named[one], named[other]) for name, (one, other) in _AGAINST.items() if {one, other} <= set(named)]
    domain = named.get("domain")
    chosen = [each for each in library().list() if domain and each.parent == domain.fingerprint]
    pairs += [(CHOICE, each, domain) for each in chosen if domain and each.fingerprint not in given.values()]
    if corpus is not None:
        pairs = [pair for pair in pairs if corpus in pair[1:]]
        with suppress(CorpusError):  # what it was made from may be gone
            if corpus.parent and not any(of == corpus and to.fingerprint == corpus.parent for _, of, to in pairs):
                pairs.append(("N/N of what it is from", corpus, library().find(corpus.parent)))
    return [Ratio(name=name, of=of.name, to=to.name, value=len(of) / len(to)) for name, of, to in pairs]
