"""Plain text, documents, wrappings and encodings; and files that are not what their names say."""

import gzip

from tests import documents
from tests.imports.shape import (
    ENGLISH,
    GERMAN,
    SPANISH,
    Right,
    Shape,
    as_json,
    block,
    conll,
    read_right,
    refused,
    tarred,
    zipped,
)

LINES = "Mara Lind rents hall 7 in Lyon.\nOtto Barr pays the Harbour Board.\nNo rent is due in March.\n"
THREE = Right(sentences=3, labelled=False, texts=("Mara Lind rents hall 7 in Lyon.", "No rent is due in March."))


# Ligatures (byte 1) of a font; other lines spell their letters out.
PAGE = [
    "The o\x01ce opens at nine every day.",
    "The office closes at noon on Friday.",
    "Our offices are near the harbour.",
    "An o\x01cer of the port checks the hall.",
    "The officer and the clerk agree on it.",
]

UNEVEN = "\u00a0 Mara Lind  rents\thall 7 in Lyon .\r\nOtto Bärr pays \U0001f642  Ines Holm in Bremen.\n".replace(
    "ä", "a\u0308"
)
LIGATURES = Right(
    sentences=5,
    labelled=False,
    says=("letter|character|glyph",),
    texts=("The office opens at nine every day.",),
    without=("\ue080", "\0", "\ufffd"),
)

SHAPES = (
    Shape(
        name="pdf-ligature-private-use",
        report="py-pdf/pypdf#3975: a ligature that maps to a private character",
        files={"a.pdf": documents.pdf_mapped(PAGE, 1, "E080")},
        right=LIGATURES,
    ),
    Shape(
        name="pdf-ligature-nul",
        report="py-pdf/pypdf#3975: a ligature that maps to NUL",
        files={"a.pdf": documents.pdf_mapped(PAGE, 1, "0000")},
        right=LIGATURES,
    ),
    Shape(
        name="pdf-ligature-replacement",
        report="py-pdf/pypdf#3975: a ligature that maps to U+FFFD",
        files={"a.pdf": documents.pdf_mapped(PAGE, 1, "FFFD")},
        right=LIGATURES,
    ),
    Shape(
        name="pdf-ligature-mapped",
        report="py-pdf/pypdf#3975, the sound file: the ligature maps to its letters",
        files={"a.pdf": documents.pdf_mapped(PAGE, 1, "006600660069")},
        right=Right(sentences=5, labelled=False, texts=("The office opens at nine every day.",)),
    ),
    Shape(
        name="text-with-uneven-blanks",
        report="asahi417/tner#23: predictions must map back to the text of the file, whatever white space it has",
        files={"notes.txt": UNEVEN},
        right=Right(sentences=2, labelled=False, texts=("Mara Lind rents hall 7 in Lyon .",)),
    ),
    Shape(
        name="text-utf-16",
        report="Notepad, Save as Unicode: UTF-16 with a byte order mark",
        files={"notes.txt": LINES.encode("utf-16")},
        right=THREE,
    ),
    Shape(
        name="text-utf-16-without-mark",
        report="Exports of databases: UTF-16 without a byte order mark",
        files={"notes.txt": LINES.encode("utf-16-le")},
        options={"encoding": "utf-16-le"},
        asks="encoding|utf-16",
        right=THREE,
    ),
    Shape(
        name="text-latin-1",
        report="Files of older Windows programs: cp1252",
        files={"notas.txt": "".join(c.text + "\n" for c in SPANISH).encode("cp1252")},
        options={"encoding": "cp1252"},
        asks="encoding",
        right=read_right(SPANISH, labelled=False),
    ),
    Shape(
        name="text-gzip",
        report="Corpora as they are served: one sentence per line, .txt.gz",
        files={"notes.txt.gz": gzip.compress(LINES.encode(), mtime=0)},
        right=THREE,
    ),
    Shape(
        name="text-old-mac",
        report="Files of Mac OS 9 and of some exporters: CR alone ends lines",
        files={"notes.txt": LINES.replace("\n", "\r")},
        right=THREE,
    ),
    Shape(
        name="text-with-nul",
        report="Disk images and broken exports: NUL bytes within lines",
        files={"notes.txt": LINES.replace("hall 7", "hall\x00 7") + "The rest of the file is whole.\n"},
        right=Right(sentences=3, labelled=False, says=("NUL|reject|left out",)),
    ),
    Shape(
        name="empty-file",
        report="A download that failed: a file of 0 bytes",
        files={"train.conll": b""},
        right=refused("no text|empty"),
    ),
    Shape(
        name="byte-order-mark-alone",
        report="An empty document saved by Notepad: a byte order mark and nothing else",
        files={"notes.txt": b"\xef\xbb\xbf"},
        right=refused("no text|empty"),
    ),
    Shape(
        name="json-array-of-strings",
        report="json.dump of a list of sentences",
        files={"sentences.json": as_json([c.text for c in GERMAN])},
        right=read_right(GERMAN, labelled=False),
    ),
    Shape(
        name="subtitles",
        report="SubRip (.srt) and WebVTT: numbers and times between the lines",
        files={
            "scene.srt": block("""
                1
                00:00:01,000 --> 00:00:04,000
                Mara Lind rents hall 7 in Lyon.

                2
                00:00:05,000 --> 00:00:08,000
                Otto Barr pays.
            """)
        },
        right=refused("srt|subtitle"),
    ),
    Shape(
        name="git-lfs-pointer",
        report="git clone without git lfs: the file is a pointer of three lines",
        files={
            "train.txt": "version https://git-lfs.github.com/spec/v1\n"
            "oid sha256:4665a5ea423c2713d436b5ee50593a9640e0018c1550b5a0002f74190d6caea8\nsize 12345678\n"
        },
        right=refused("LFS", "pull|download|fetch"),
    ),
    Shape(
        name="web-page-for-a-file",
        report="Save link as on GitHub: the page about the file instead of the file",
        files={
            "train.conll": '<!DOCTYPE html>\n<html lang="en">\n<head>\n<title>ner/train.conll at main</title>\n</head>\n'
            "<body><p>Sign in to view.</p></body>\n</html>\n"
        },
        right=refused("HTML|web page|page", "raw|download|\\.html"),
    ),
    Shape(
        name="tar-gz",
        report="Data sets packed with tar: train.tar.gz",
        files={"train.tar.gz": tarred({"train.conll": conll(ENGLISH)})},
        right=refused("tar", "unpack|zip"),
    ),
    Shape(
        name="zip-of-one-conll",
        report="Kaggle and Google Drive downloads: one file in a zip",
        files={
            "train.zip": zipped(
                {"data/train.conll": conll(ENGLISH), "__MACOSX/data/._train.conll": b"\x00\x05\x16\x07"}
            )
        },
        right=read_right(ENGLISH),
    ),
    Shape(
        name="truncated-json",
        report="A download that was cut off: JSON without its end",
        files={"train.json": as_json([{"text": c.text, "label": c.spans} for c in ENGLISH])[:-40]},
        right=refused("JSON", "line|end|cut|whole"),
    ),
    Shape(
        name="old-word-document",
        report="Word 97 to 2003: .doc",
        files={"contract.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)},
        right=refused("docx"),
    ),
    Shape(
        name="word-document",
        report="Word 2007 and later: .docx",
        files={"contract.docx": documents.docx(LINES.splitlines())},
        right=THREE,
    ),
    Shape(
        name="password-pdf",
        report="A PDF that asks for a password",
        files={"a.pdf": documents.pdf([documents.lines(["The hall is let."])], encrypted=True)},
        right=refused("password|encrypted|locked"),
    ),
)
