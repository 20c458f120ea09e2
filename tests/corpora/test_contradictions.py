"""Equal sentences with different labels are counted."""

from core.corpora.checks import contradictions
from core.text.sentence import Entity, Sentence, sentence_id


def sentence(text: str, tokens: tuple[str, ...], *entities: tuple[int, int, str]) -> Sentence:
    found = tuple(Entity(start=start, end=end, type=kind) for start, end, kind in entities)
    return Sentence(id=sentence_id(text), text=text, tokens=tokens, entities=found)


def test_equal_texts_with_different_labels_are_counted_once_per_text() -> None:
    text, tokens = "Hall 7 is in Lyon.", ("Hall", "7", "is", "in", "Lyon", ".")
    place = sentence(text, tokens, (4, 5, "LOC"))
    rows = [
        place,
        place,
        sentence(text, tokens),
        sentence(text, ("Hall", "7", "is", "in", "Ly", "on", "."), (4, 6, "LOC")),  # the same labels, cut otherwise
        sentence("No rent is due.", ("No", "rent", "is", "due", "."), (1, 2, "X")),
        sentence("No rent is due.", ("No", "rent", "is", "due", "."), (1, 2, "X")),
    ]
    found = contradictions(rows)
    assert (found.texts, found.sentences) == (1, 4)
    assert found.in_words.startswith("1 text occurs more than once with different labels (4 sentences).")
    assert contradictions(rows[:2]).in_words == ""
