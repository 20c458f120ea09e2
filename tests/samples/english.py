"""Checks of English that regular expressions can make: articles, number, doubled words, verb forms, case.

`problems` finds a mistake only in the plain shapes that the grammars of the samples use: a noun phrase at the beginning
of a sentence or a clause, then a verb in the present, or was, were, has, have.
"""

import re
from collections.abc import Iterator


def _words(text: str) -> set[str]:
    return set(text.split())


_VERBS = _words(
    "accept accrue agree allow apply arise assign attract belong bind breed cease collect comply comprise conform "
    "confirm constitute contain continue contribute cover crash deliver demise deny depend deserve discharge employ "
    "engage entitle erupt exceed exist expire explain extend fail fall feed fill flood follow forget give grant grow "
    "guarantee hang hide include indemnify infringe insure keep lapse leak lean lend lie limit list mature mean mention "
    "need oblige occur owe pass pay persist pledge prevail prevent print provide qualify rank reach release relieve "
    "remain repay report represent require resume rise rot run say serve settle shelter show sing spend spoil squeal "
    "stand state struggle submit suffer suffice suggest suit supersede support survive tell terminate thrive trouble "
    "use vest waive warrant waste wear"
)
# These are nouns as well, so after a noun they say nothing about its number.
_NOUNS_TOO = _words(
    "cover crash discharge fall feed fill flood guarantee lapse leak limit list need pass pay pledge rank reach release "
    "report rise run show stand state struggle support trouble use waste wear spend print"
)
_SINGULAR = {"is", "was", "has", "does"} | {re.sub("(?<=[^aeiou])y$", "ie", verb) + "s" for verb in _VERBS}
_SINGULAR |= {"passes", "reaches"}
_PLURAL = ({"are", "were", "have", "do"} | _VERBS) - _NOUNS_TOO
# Singular, although they end in -s.
_ONE = _words(
    "Ceres Cyprus Illinois Linus Massachusetts Mars Texas Tobias bias business class gas loss news process series"
)
_MANY = {"boar", "children", "data", "feet", "geese", "people", "personnel", "police", "staff"}
# Singular or plural, as in British English.
_EITHER = {"club", "council", "family", "field", "microbiology", "pack", "peloton", "team"}
_SUMS = {"dollars", "euros", "francs", "pounds"}  # an amount is singular
_NOT_NOUNS = _words(
    "always but he here i it never nothing often she sometimes that there these they this those we what which who you"
)
_CUT = _words(
    "about above according across after against among around arising as at attaching before behind below beside between "
    "beyond by costing covering dated drawn due during existing for from given handled held in issued listed made named "
    "near obtained of on over payable per pursuant relating shipped signed since stored supplied than through to touching "
    "towards under until up upon via with within without"
)
_OPENERS = _words("although because if since that though unless when where whether while")
_DETERMINERS = _words("a all an any each every its minimum no some the these this those")
_STOP = _OPENERS | _words(
    "shall may must will can cannot would could should not don't nor how why who which is are there let"
)
_NO_VERB_AFTER = {*_DETERMINERS, "of", "or", "and", "to", "in", "by", "for", "with", "on", "at", "from"}

_AN = re.compile(r"(?:[aeio]|u(?!ni(?!n)|se|sua|ri)|8|11\b|18\b|hour|heir|honest)(?!one\b|once\b|eu)", re.IGNORECASE)
_SPELLED = re.compile(r"[A-Z]{2,}|[A-Z]-|[A-Z][a-z]?[A-Z0-9]")  # read letter by letter, such as MRI, X-ray, HbA1c
_PLAIN = {
    "a doubled word": re.compile(r"\b([a-z]+) \1\b", re.IGNORECASE),
    "two articles": re.compile(
        r"\b(?:an?|the|no|any|each|every|another|this|known|likely|ongoing|some|the past|the last) (?:an?|the|no|any|each|every)\b",
        re.IGNORECASE,
    ),
    "one of a plural": re.compile(
        r"(?:\b(?:for|of|in|within|after|with|last|past|next|another|serves)|[,:]) 1 (?!is\b)[a-z]+s\b"
    ),
    "a wrong verb form": re.compile(
        r"\b(?:shall|may|must|will|would|can|could|should|not to|does not|do not)(?: not| only| solely)? "
        r"(?!process\b|pass\b|miss\b|dismiss\b|discuss\b|access\b|always\b|as\b|this\b|its\b|less\b|guess\b)[a-z]+s\b"
    ),
    "a wrong case": re.compile(r"\b(?:of|for|to|with|from|by|referring|see|saw|reviewed) (?:he|she|they|I)\b"),
    "a wrong plural": re.compile(r"\b(?:each|every|another|one) [a-z]+[^su\W]s\b", re.IGNORECASE),
    "a wrong possessive": re.compile(r"[sx]'s\b"),
    "a blank or mark too many": re.compile(r"\s[,.;:?!]|,,|\.\.|;;|, ?[.;:]|\s\s|[({]\s|\s\)"),
    "no capital": re.compile(r"^\W*[a-z]"),
    "no end": re.compile(r"[^.?!)\"]$"),
}


def problems(sentence: str) -> list[str]:
    """Return what is wrong with a sentence; [] if nothing was found."""
    found = [f"{name}: {match[0]}" for name, rule in _PLAIN.items() if (match := rule.search(sentence))]
    for match in re.finditer(r"\b([Aa]n?) \W?([\w-]+)", sentence):
        spelled = _SPELLED.match(match[2])
        vowel = match[2][0] in "AEFHILMNORSX" if spelled else bool(_AN.match(match[2]))
        if vowel != (match[1].lower() == "an"):
            found.append(f"a wrong article: {match[0]}")
    return found + list(_disagreements(sentence))


def _disagreements(sentence: str) -> Iterator[str]:
    text = re.sub(r'"[^"]*"', "X", sentence.rstrip(".?!"))
    clauses = re.split(r"[,;:]\s+|\b(?=(?:although|because|if|that|unless|when|where|while) )", text)
    for number, clause in enumerate(clauses):
        words = re.findall(r"[\w&'-]+", clause)
        if opener := bool(words) and words[0].lower() in _OPENERS:
            words = words[1:]
        if words and (number == 0 or opener or words[0].lower() in _DETERMINERS):
            yield from _disagreement(words)


def _disagreement(words: list[str]) -> Iterator[str]:
    """Find the first verb after the noun phrase at the beginning of `words`; compare their number."""
    phrase: list[str] = []
    cut = False
    for i, word in enumerate(words):
        before = words[i - 1].lower() if i else "the"
        if word in _SINGULAR | _PLURAL and before not in _NO_VERB_AFTER:
            wrong = {"many": _SINGULAR, "one": _PLURAL, "": set[str]()}[_number(phrase)]
            if word in wrong:
                yield f"number: {' '.join(words[: i + 1])}"
            return
        if word.lower() in _STOP:
            return
        cut = cut or word in _CUT
        if not cut:
            phrase.append(word)


def _number(phrase: list[str]) -> str:
    """Return "one", "many", or "" if the number of a noun phrase is not clear."""
    if not phrase or phrase[0].lower() in {"neither", "either"} or {"and", "or", "&"} & set(phrase):
        return ""
    first, last = phrase[0], phrase[-1]
    if "clauses" in phrase:
        return "many"
    gerund = first.endswith("ing") and len(phrase) > 1
    if gerund or last.lower() in _NOT_NOUNS | _EITHER | _SUMS or any(word[0].isdigit() for word in phrase):
        return ""
    if last in _MANY:
        return "many"
    return "many" if last.endswith("s") and not last.endswith(("ss", "'s", "us", "is")) and last not in _ONE else "one"
