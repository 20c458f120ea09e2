"""Real labelled sets import as they did in November 2026: the same sentences, scheme and entities per type."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from core.corpora.readers import ReadOptions, ReadReport, read


class Counts(NamedTuple):
    sentences: int
    scheme: str
    types: Mapping[str, int]


# Counted with the readers of commit bba4eeb, which read these files without a rejected or repaired row.
BEFORE = {
    "bc5cdr/dev.conll": Counts(4581, "iob2", {"Chemical": 5347, "Disease": 4246}),
    "bc5cdr/test.conll": Counts(4797, "iob2", {"Chemical": 5385, "Disease": 4424}),
    "bc5cdr/train.conll": Counts(4560, "iob2", {"Chemical": 5203, "Disease": 4182}),
    "conll2002-es/dev.conll": Counts(1915, "iob2", {"LOC": 985, "MISC": 445, "ORG": 1700, "PER": 1222}),
    "conll2002-es/test.conll": Counts(1517, "iob2", {"LOC": 1084, "MISC": 340, "ORG": 1400, "PER": 735}),
    "conll2002-es/train.conll": Counts(8323, "iob2", {"LOC": 4914, "MISC": 2173, "ORG": 7390, "PER": 4321}),
    "conll2002-nl/dev.conll": Counts(2895, "iob2", {"LOC": 479, "MISC": 748, "ORG": 686, "PER": 703}),
    "conll2002-nl/test.conll": Counts(5195, "iob2", {"LOC": 774, "MISC": 1187, "ORG": 882, "PER": 1098}),
    "conll2002-nl/train.conll": Counts(15806, "iob2", {"LOC": 3208, "MISC": 3338, "ORG": 2082, "PER": 4716}),
    "conll2003/dev.conll": Counts(3250, "iob2", {"LOC": 1837, "MISC": 922, "ORG": 1341, "PER": 1842}),
    "conll2003/test.conll": Counts(3453, "iob2", {"LOC": 1668, "MISC": 702, "ORG": 1661, "PER": 1617}),
    "conll2003/train.conll": Counts(14041, "iob2", {"LOC": 7140, "MISC": 3438, "ORG": 6321, "PER": 6600}),
    "crossner-ai/dev.conll": Counts(
        350,
        "iob2",
        {
            "algorithm": 178,
            "conference": 89,
            "country": 44,
            "field": 178,
            "location": 42,
            "metrics": 147,
            "misc": 180,
            "organisation": 94,
            "person": 41,
            "product": 173,
            "programlang": 35,
            "researcher": 142,
            "task": 147,
            "university": 59,
        },
    ),
    "crossner-ai/test.conll": Counts(
        431,
        "iob2",
        {
            "algorithm": 177,
            "conference": 93,
            "country": 44,
            "field": 207,
            "location": 39,
            "metrics": 191,
            "misc": 181,
            "organisation": 145,
            "person": 67,
            "product": 198,
            "programlang": 60,
            "researcher": 160,
            "task": 219,
            "university": 28,
        },
    ),
    "crossner-ai/train.conll": Counts(
        100,
        "iob2",
        {
            "algorithm": 80,
            "conference": 24,
            "country": 29,
            "field": 39,
            "location": 7,
            "metrics": 27,
            "misc": 43,
            "organisation": 48,
            "person": 6,
            "product": 58,
            "programlang": 25,
            "researcher": 54,
            "task": 60,
            "university": 32,
        },
    ),
    "crossner-literature/dev.conll": Counts(
        400,
        "iob2",
        {
            "award": 124,
            "book": 336,
            "country": 127,
            "event": 65,
            "literarygenre": 152,
            "location": 111,
            "magazine": 71,
            "misc": 212,
            "organisation": 115,
            "person": 194,
            "poem": 79,
            "writer": 544,
        },
    ),
    "crossner-literature/test.conll": Counts(
        416,
        "iob2",
        {
            "award": 141,
            "book": 418,
            "country": 101,
            "event": 45,
            "literarygenre": 194,
            "location": 99,
            "magazine": 57,
            "misc": 239,
            "organisation": 110,
            "person": 175,
            "poem": 120,
            "writer": 567,
        },
    ),
    "crossner-literature/train.conll": Counts(
        100,
        "iob2",
        {
            "award": 34,
            "book": 91,
            "country": 25,
            "event": 10,
            "literarygenre": 36,
            "location": 25,
            "magazine": 16,
            "misc": 58,
            "organisation": 18,
            "person": 48,
            "poem": 47,
            "writer": 133,
        },
    ),
    "crossner-music/dev.conll": Counts(
        380,
        "iob2",
        {
            "album": 282,
            "award": 230,
            "band": 402,
            "country": 130,
            "event": 72,
            "location": 187,
            "misc": 124,
            "musicalartist": 472,
            "musicalinstrument": 42,
            "musicgenre": 360,
            "organisation": 136,
            "person": 65,
            "song": 177,
        },
    ),
    "crossner-music/test.conll": Counts(
        465,
        "iob2",
        {
            "album": 332,
            "award": 260,
            "band": 462,
            "country": 160,
            "event": 69,
            "location": 343,
            "misc": 171,
            "musicalartist": 515,
            "musicalinstrument": 22,
            "musicgenre": 487,
            "organisation": 208,
            "person": 80,
            "song": 227,
        },
    ),
    "crossner-music/train.conll": Counts(
        100,
        "iob2",
        {
            "album": 91,
            "award": 69,
            "band": 125,
            "country": 27,
            "event": 12,
            "location": 30,
            "misc": 22,
            "musicalartist": 104,
            "musicalinstrument": 2,
            "musicgenre": 88,
            "organisation": 36,
            "person": 15,
            "song": 27,
        },
    ),
    "german-ep/dev.conll": Counts(538, "io", {"LOC": 43, "MISC": 136, "ORG": 65, "PER": 60}),
    "german-ep/test.conll": Counts(858, "io", {"LOC": 147, "MISC": 225, "ORG": 84, "PER": 75}),
    "german-ep/train.conll": Counts(3000, "io", {"LOC": 432, "MISC": 455, "ORG": 347, "PER": 288}),
    "inlegalner/dev.conll": Counts(
        758,
        "iob2",
        {
            "CASE_NUMBER": 33,
            "COURT": 51,
            "DATE": 30,
            "GPE": 50,
            "JUDGE": 24,
            "LAWYER": 84,
            "ORG": 31,
            "OTHER_PERSON": 49,
            "PETITIONER": 29,
            "PRECEDENT": 45,
            "PROVISION": 50,
            "RESPONDENT": 33,
            "STATUTE": 43,
            "WITNESS": 6,
        },
    ),
    "inlegalner/test.conll": Counts(
        1336,
        "iob2",
        {
            "CASE_NUMBER": 29,
            "COURT": 92,
            "DATE": 60,
            "GPE": 49,
            "JUDGE": 62,
            "LAWYER": 218,
            "ORG": 48,
            "OTHER_PERSON": 79,
            "PETITIONER": 75,
            "PRECEDENT": 51,
            "PROVISION": 76,
            "RESPONDENT": 102,
            "STATUTE": 75,
            "WITNESS": 20,
        },
    ),
    "inlegalner/train.conll": Counts(
        2051,
        "iob2",
        {
            "CASE_NUMBER": 56,
            "COURT": 139,
            "DATE": 126,
            "GPE": 79,
            "JUDGE": 68,
            "LAWYER": 204,
            "ORG": 76,
            "OTHER_PERSON": 135,
            "PETITIONER": 77,
            "PRECEDENT": 77,
            "PROVISION": 131,
            "RESPONDENT": 131,
            "STATUTE": 103,
            "WITNESS": 32,
        },
    ),
    "lener-br/dev.conll": Counts(
        1176,
        "iob2",
        {"JURISPRUDENCIA": 207, "LEGISLACAO": 397, "LOCAL": 109, "ORGANIZACAO": 561, "PESSOA": 310, "TEMPO": 234},
    ),
    "lener-br/test.conll": Counts(
        1389,
        "iob2",
        {"JURISPRUDENCIA": 185, "LEGISLACAO": 378, "LOCAL": 47, "ORGANIZACAO": 501, "PESSOA": 233, "TEMPO": 192},
    ),
    "lener-br/train.conll": Counts(
        7827,
        "iob2",
        {"JURISPRUDENCIA": 1104, "LEGISLACAO": 1920, "LOCAL": 611, "ORGANIZACAO": 2400, "PESSOA": 1525, "TEMPO": 1334},
    ),
}


@pytest.mark.real
@pytest.mark.parametrize("name", BEFORE)
def test_a_labelled_set_imports_as_before(name: str, real_data: Path) -> None:
    report, types, sentences = ReadReport(), Counter[str](), 0
    for sentence in read(real_data / name, ReadOptions(), report=report):
        sentences += 1
        types.update(entity.type for entity in sentence.entities or ())
    assert Counts(sentences, report.scheme or "", dict(types)) == BEFORE[name]
    assert (report.rejected, report.repaired, report.rejected_spans) == (0, 0, 0)
