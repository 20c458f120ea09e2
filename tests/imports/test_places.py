"""Mentions of an imported sentence map back to the characters of the file that it was read from."""

from pathlib import Path

from core.corpora.readers import read
from core.text.source import Places
from tests.imports.every import SHAPES
from tests.imports.run import write


def test_a_mention_is_found_in_the_text_of_the_file(tmp_path: Path) -> None:
    (shape,) = (each for each in SHAPES if each.name == "text-with-uneven-blanks")
    path = write(shape.files, tmp_path / "files")
    whole = path.read_bytes().decode()
    found = []
    for sentence in read(path, sources=True):
        assert sentence.source is not None
        assert sentence.source.at is not None
        for mention in ("Mara Lind", "Lyon", "Otto Bärr", "Ines Holm", "Bremen"):
            if (at := sentence.text.find(mention)) >= 0:
                start, end = Places(sentence.text, sentence.source).span(at, at + len(mention))
                found.append(
                    (whole[sentence.source.at + start : sentence.source.at + end], sentence.source.line_at(start))
                )
    assert found == [("Mara Lind", 1), ("Lyon", 1), ("Otto Ba\u0308rr", 2), ("Ines Holm", 2), ("Bremen", 2)]
