"""brat standoff: a text and its annotation file."""

from tests.imports.shape import Right, Shape, refused, tarred, zipped

NOTE = "Mara Lind rents hall 7 in Lyon.\nOtto Barr pays the Harbour Board.\nNo rent is due in March.\n"
NOTE_ANN = (
    "T1\tPER 0 9\tMara Lind\n"
    "T2\tLOC 26 30\tLyon\n"
    "T3\tPER 32 41\tOtto Barr\n"
    "T4\tORG 51 64\tHarbour Board\n"
    "R1\tpays Arg1:T3 Arg2:T4\t\n"
    "A21\tNegation T3\n"
    "#1\tAnnotatorNotes T2\tthe city\n"
    "E1\tpays:T3 Payee:T4\n"
    "*\tEquiv T1 T3\n"
)
BEN_ANN = NOTE_ANN.replace("T2\tLOC 26 30\tLyon", "T2\tLOC 16 22\thall 7")
NOTE_RIGHT = Right(
    sentences=3,
    mentions={"PER": ["Mara Lind", "Otto Barr"], "LOC": ["Lyon"], "ORG": ["Harbour Board"]},
)

# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("brat-standard", "brat 1.3: entities, relations, attributes, notes, events and equivalences",
        {"note.txt": NOTE, "note.ann": NOTE_ANN}, NOTE_RIGHT),
    Shape("brat-fragments-over-a-line-end",
        "nlplab/brat#1042: a mention over the end of a line is written as two fragments",
        {"a.txt": "The lease was granted by the Dock\nTrust of Lyon last week.\nNo rent is due.\n",
            "a.ann": "T1\tORG 29 33;34 39\tDock Trust\nT2\tLOC 43 47\tLyon\n"},
        Right(sentences=2, mentions={"ORG": ["Dock Trust"], "LOC": ["Lyon"]})),
    Shape("brat-crlf", "nlplab/brat#853: text with CRLF, offsets counted with LF",
        {"a.txt": "Jule signs.\r\nShe pays Otto.\r\nEmden wins.\r\n",
            "a.ann": "T1\tPER 0 4\tJule\nT2\tPER 21 25\tOtto\nT3\tLOC 27 32\tEmden\n"},
        Right(sentences=3, mentions={"PER": ["Jule", "Otto"], "LOC": ["Emden"]})),
    Shape("brat-byte-order-mark", "brat: a text saved by Notepad; brat counts the byte order mark as a character",
        {"a.txt": b"\xef\xbb\xbfMara Lind rents.\n", "a.ann": "T1\tPER 1 10\tMara Lind\n"},
        Right(sentences=1, mentions={"PER": ["Mara Lind"]})),
    Shape("brat-discontinuous", "brat 1.3 and later: a mention with a gap, left and right arm",
        {"a.txt": "His left and right knee hurt.\nMara Lind left Lyon.\nNo rent is due.\n",
            "a.ann": "T1\tBODY 4 8;19 23\tleft knee\nT2\tBODY 13 23\tright knee\nT3\tPER 30 39\tMara Lind\nT4\tLOC 45 49\tLyon\n"},
        Right(sentences=2, mentions={"PER": ["Mara Lind"], "LOC": ["Lyon"]},
            says=("discontinuous|gap|fragment|span",))),
    Shape("brat-annotation-alone", "brat: the .ann file without its text",
        {"note.ann": NOTE_ANN}, refused(r"\.txt|folder")),
    Shape("brat-collection-zip", "brat collections: annotation.conf and several documents, packed as zip",
        {"collection.zip": zipped({"collection/annotation.conf": "[entities]\nPER\nLOC\nORG\n[relations]\n[events]\n[attributes]\n",
            "collection/a.txt": NOTE, "collection/a.ann": NOTE_ANN, "collection/b.txt": "Ines Holm left Emden.\n",
            "collection/b.ann": "T1\tPER 0 9\tInes Holm\nT2\tLOC 15 20\tEmden\n"})},
        Right(sentences=4,
            mentions={"PER": ["Mara Lind", "Otto Barr", "Ines Holm"], "LOC": ["Lyon", "Emden"],
                "ORG": ["Harbour Board"]})),
    Shape("brat-tar-gz", "brat, a collection as it is exported: a .tar.gz",
        {"collection.tar.gz": tarred({"note.txt": NOTE, "note.ann": NOTE_ANN})}, refused("tar", "unpack|zip")),
    Shape("brat-text-was-changed", "brat: the text was edited after it was annotated, offsets no longer fit",
        {"a.txt": "Today Mara Lind rents hall 7 in Lyon.\nThe Harbour Board met.\n",
            "a.ann": "T1\tPER 0 9\tMara Lind\nT2\tLOC 26 30\tLyon\nT3\tORG 36 49\tHarbour Board\n"},
        refused("text", "fit|match|not the one")),
    Shape("i2b2-2010-concepts", "i2b2 2010: concepts with the numbers of line and word, in a file without the text",
        {"record-13.con": 'c="mara lind" 1:0 1:1||t="person"\nc="lyon" 1:6 1:6||t="place"\n'},
        refused("i2b2", "brat or CoNLL")),
    Shape("brat-folder-per-annotator", "brat with a copy of the collection per annotator, who disagree",
        {"collection.zip": zipped({f"{who}/note.{ending}": text for who, ann in (("ana", NOTE_ANN), ("ben", BEN_ANN))
            for ending, text in (("txt", NOTE), ("ann", ann))})},
        NOTE_RIGHT, options={"annotator": "ana"}, asks=r"ana \(1\), ben \(1\).*span F1 0\.75\).*--annotator NAME"),
)
