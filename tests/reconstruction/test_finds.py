"""Names that a tagger found: new ones alone, each under one type, sure ones, none that is a slip of the tagger."""

from core.bias.training_sentences import Known, new_names
from tests.conftest import sentence

KNOWN = Known.of([sentence("Ada Lee met Acme in Rome", [(0, 2, "PER"), (3, 4, "ORG"), (5, 6, "LOC")])])


def test_new_and_sure_names_under_their_likeliest_type() -> None:
    finds = [
        (("Bo", "Quill"), "PER", 0.9),
        (("bo", "quill"), "PER", 0.8),
        (("Bo", "Quill"), "LOC", 0.95),
        (("Zed",), "ORG", 0.85),
        (("Oslo",), "LOC", 0.5),
        (("Oslo",), "LOC", 0.99),
        (("Ada", "Moe"), "PER", 1.0),  # a word of a training sentence
        ((",", "Kip"), "PER", 1.0),
        (("Kip", "of"), "PER", 1.0),
        (("Kip", "Tom", "Bob"), "PER", 1.0),  # longer than any name of the type
        (("Xan",), "DATE", 1.0),  # a type that training sentences lack
    ]
    assert new_names(finds, KNOWN, 0.8) == {"PER": [("Bo", "Quill")], "ORG": [("Zed",)]}
    assert new_names(finds, KNOWN, 0.7) == {"PER": [("Bo", "Quill")], "ORG": [("Zed",)], "LOC": [("Oslo",)]}
    assert new_names([], KNOWN, 0.8) == {}
