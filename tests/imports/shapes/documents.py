"""Plain text, documents, archives and encodings; files whose content does not fit their name."""

import gzip

from tests import documents
from tests.imports.shape import Right, Shape, as_json, block, conll, read_right, refused, tarred, zipped
from tests.imports.texts import ENGLISH, GERMAN, SPANISH

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
    says=("2 letters.* map to no character; 2 were restored|2 letters map to no character .*; 2 were",),
    texts=("The office opens at nine every day.",),
    without=("\ue080", "\0", "\ufffd"),
)

# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("pdf-ligature-private-use", "py-pdf/pypdf#3975: a ligature that maps to a private character",
        {"a.pdf": documents.pdf_mapped(PAGE, 1, "E080")}, LIGATURES),
    Shape("pdf-ligature-nul", "py-pdf/pypdf#3975: a ligature that maps to NUL",
        {"a.pdf": documents.pdf_mapped(PAGE, 1, "0000")}, LIGATURES),
    Shape("pdf-ligature-replacement", "py-pdf/pypdf#3975: a ligature that maps to U+FFFD",
        {"a.pdf": documents.pdf_mapped(PAGE, 1, "FFFD")}, LIGATURES),
    Shape("pdf-ligature-mapped", "py-pdf/pypdf#3975, the sound file: the ligature maps to its letters",
        {"a.pdf": documents.pdf_mapped(PAGE, 1, "006600660069")},
        Right(sentences=5, labelled=False, texts=("The office opens at nine every day.",))),
    Shape("text-with-uneven-blanks",
        "asahi417/tner#23: predictions must map back to the text of the file, whatever white space it has",
        {"notes.txt": UNEVEN}, Right(sentences=2, labelled=False, texts=("Mara Lind rents hall 7 in Lyon .",))),
    Shape("text-utf-16", "Notepad, Save as Unicode: UTF-16 with a byte order mark",
        {"notes.txt": LINES.encode("utf-16")}, THREE),
    Shape("text-utf-16-without-mark", "Exports of databases: UTF-16 without a byte order mark",
        {"notes.txt": LINES.encode("utf-16-le")}, THREE, options={"encoding": "utf-16-le"}, asks="encoding|utf-16"),
    Shape("text-latin-1", "Files of older Windows programs: cp1252",
        {"notas.txt": "".join(c.text + "\n" for c in SPANISH).encode("cp1252")}, read_right(SPANISH, labelled=False),
        options={"encoding": "cp1252"}, asks="encoding"),
    Shape("text-gzip", "Corpora as they are served: one sentence per line, .txt.gz",
        {"notes.txt.gz": gzip.compress(LINES.encode(), mtime=0)}, THREE),
    Shape("text-old-mac", "Files of Mac OS 9 and of some exporters: CR alone ends lines",
        {"notes.txt": LINES.replace("\n", "\r")}, THREE),
    Shape("text-with-nul", "Disk images and broken exports: NUL bytes within lines",
        {"notes.txt": LINES.replace("hall 7", "hall\x00 7") + "The rest of the file is whole.\n"},
        Right(sentences=3, labelled=False, says=("NUL|reject|left out",))),
    Shape("empty-file", "A download that failed: a file of 0 bytes", {"train.conll": b""}, refused("no text|empty")),
    Shape("byte-order-mark-alone", "An empty document saved by Notepad: a byte order mark and nothing else",
        {"notes.txt": b"\xef\xbb\xbf"}, refused("no text|empty")),
    Shape("json-array-of-strings", "json.dump of a list of sentences",
        {"sentences.json": as_json([c.text for c in GERMAN])}, read_right(GERMAN, labelled=False)),
    Shape("subtitles", "SubRip (.srt) and WebVTT: numbers and times between the lines",
        {"scene.srt": block("""
            1
            00:00:01,000 --> 00:00:04,000
            Mara Lind rents hall 7 in Lyon.

            2
            00:00:05,000 --> 00:00:08,000
            Otto Barr pays.
        """)}, refused("srt|subtitle")),
    Shape("git-lfs-pointer", "git clone without git lfs: the file is a pointer of three lines",
        {"train.txt": "version https://git-lfs.github.com/spec/v1\n"
            "oid sha256:4665a5ea423c2713d436b5ee50593a9640e0018c1550b5a0002f74190d6caea8\nsize 12345678\n"},
        refused("LFS", "git lfs pull")),
    Shape("web-page-for-a-file", "Save link as on GitHub: the page about the file instead of the file",
        {"train.conll": '<!DOCTYPE html>\n<html lang="en">\n<head>\n<title>ner/train.conll at main</title>\n</head>\n'
            "<body><p>Sign in to view.</p></body>\n</html>\n"}, refused("HTML|web page|page", "raw|download|\\.html")),
    Shape("tar-gz", "Data sets packed with tar: train.tar.gz",
        {"train.tar.gz": tarred({"train.conll": conll(ENGLISH)})}, refused("tar", "unpack|zip")),
    Shape("zip-of-one-conll", "Kaggle and Google Drive downloads: one file in a zip",
        {"train.zip": zipped({"data/train.conll": conll(ENGLISH), "__MACOSX/data/._train.conll": b"\x00\x05\x16\x07"})},
        read_right(ENGLISH)),
    Shape("truncated-json", "A download that was cut off: JSON without its end",
        {"train.json": as_json([{"text": c.text, "label": c.spans} for c in ENGLISH])[:-40]},
        refused("JSON", "line|end|cut|whole")),
    Shape("old-word-document", "Word 97 to 2003: .doc",
        {"contract.doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)}, refused("docx")),
    Shape("word-document", "Word 2007 and later: .docx", {"contract.docx": documents.docx(LINES.splitlines())}, THREE),
    Shape("password-pdf", "A PDF that asks for a password",
        {"a.pdf": documents.pdf([documents.lines(["The hall is let."])], encrypted=True)},
        refused("password|encrypted|locked")),
    Shape("subtitles-as-text", "SubRip under another name, with Windows line ends",
        {"scene.txt": "1\r\n00:00:01,000 --> 00:00:04,000\r\nMara pays.\r\n"}, refused("save only the spoken lines")),
    Shape("webvtt", "Subtitles of web videos: WebVTT",
        {"scene.vtt": "WEBVTT\n\n00:01.000 --> 00:04.000\nMara pays.\n"}, refused("save only the spoken lines")),
    Shape("web-page-after-a-mark", "The page about a file, saved with a byte order mark",
        {"train.conll": b"\xef\xbb\xbf<!DOCTYPE html>\n<html><body>Sign in</body></html>\n"},
        refused("download the raw file")),
)
