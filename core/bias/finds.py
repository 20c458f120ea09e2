"""Names that a tagger found in text of the domain and that training sentences do not hold: they read like names."""

from collections import defaultdict
from collections.abc import Iterable

from core.bias.names import Known, folded, is_content_word
from core.bias.training_sentences import Name

Find = tuple[Name, str, float]  # a name, the type that it was found as, how sure the tagger was


def new_names(finds: Iterable[Find], known: Known, least: float) -> dict[str, list[Name]]:
    """{type: names}, in the order in which they come, each once and under one type: that of which the tagger was surest
    in sum, and there on average at least so sure.

    What begins or ends in a mark or function word, or is longer than any name of the type, is a slip of the tagger.
    """
    sure: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    spellings: dict[str, Name] = {}
    for name, kind, confidence in finds:
        if name and is_content_word(name[0]) and is_content_word(name[-1]) and known.is_new(name):
            spellings.setdefault(folded(name), name)
            sure[folded(name)][kind].append(confidence)
    longest = {kind: max(map(len, names)) for kind, names in known.names.items()}
    by_type: dict[str, list[Name]] = {}
    for key, kinds in sure.items():
        kind = max(kinds, key=lambda kind: sum(kinds[kind]))
        if sum(kinds[kind]) >= least * len(kinds[kind]) and len(spellings[key]) <= longest.get(kind, 0):
            by_type.setdefault(kind, []).append(spellings[key])
    return by_type
