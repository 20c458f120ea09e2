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
NOTE_RIGHT = Right(
    sentences=3,
    mentions={"PER": ["Mara Lind", "Otto Barr"], "LOC": ["Lyon"], "ORG": ["Harbour Board"]},
)

SHAPES = (
    Shape(
        name="brat-standard",
        report="brat 1.3: entities, relations, attributes, notes, events and equivalences",
        files={"note.txt": NOTE, "note.ann": NOTE_ANN},
        right=NOTE_RIGHT,
    ),
    Shape(
        name="brat-fragments-over-a-line-end",
        report="nlplab/brat#1042: a mention over the end of a line is written as two fragments",
        files={
            "a.txt": "The lease was granted by the Dock\nTrust of Lyon last week.\nNo rent is due.\n",
            "a.ann": "T1\tORG 29 33;34 39\tDock Trust\nT2\tLOC 43 47\tLyon\n",
        },
        right=Right(sentences=2, mentions={"ORG": ["Dock Trust"], "LOC": ["Lyon"]}),
    ),
    Shape(
        name="brat-crlf",
        report="nlplab/brat#853: text with CRLF, offsets counted with LF",
        files={
            "a.txt": "Jule signs.\r\nShe pays Otto.\r\nEmden wins.\r\n",
            "a.ann": "T1\tPER 0 4\tJule\nT2\tPER 21 25\tOtto\nT3\tLOC 27 32\tEmden\n",
        },
        right=Right(sentences=3, mentions={"PER": ["Jule", "Otto"], "LOC": ["Emden"]}),
    ),
    Shape(
        name="brat-discontinuous",
        report="brat 1.3 and later: a mention with a gap, left and right arm",
        files={
            "a.txt": "His left and right knee hurt.\nMara Lind left Lyon.\nNo rent is due.\n",
            "a.ann": "T1\tBODY 4 8;19 23\tleft knee\nT2\tBODY 13 23\tright knee\nT3\tPER 30 39\tMara Lind\nT4\tLOC 45 49\tLyon\n",
        },
        right=Right(
            sentences=2, mentions={"PER": ["Mara Lind"], "LOC": ["Lyon"]}, says=("discontinuous|gap|fragment|span",)
        ),
    ),
    Shape(
        name="brat-annotation-alone",
        report="brat: the .ann file without its text",
        files={"note.ann": NOTE_ANN},
        right=refused(r"\.txt|folder"),
    ),
    Shape(
        name="brat-collection-zip",
        report="brat collections: annotation.conf and several documents, packed as zip",
        files={
            "collection.zip": zipped(
                {
                    "collection/annotation.conf": "[entities]\nPER\nLOC\nORG\n[relations]\n[events]\n[attributes]\n",
                    "collection/a.txt": NOTE,
                    "collection/a.ann": NOTE_ANN,
                    "collection/b.txt": "Ines Holm left Emden.\n",
                    "collection/b.ann": "T1\tPER 0 9\tInes Holm\nT2\tLOC 15 20\tEmden\n",
                }
            )
        },
        right=Right(
            sentences=4,
            mentions={
                "PER": ["Mara Lind", "Otto Barr", "Ines Holm"],
                "LOC": ["Lyon", "Emden"],
                "ORG": ["Harbour Board"],
            },
        ),
    ),
    Shape(
        name="brat-tar-gz",
        report="brat, a collection as it is exported: a .tar.gz",
        files={"collection.tar.gz": tarred({"note.txt": NOTE, "note.ann": NOTE_ANN})},
        right=refused("tar", "unpack|zip"),
    ),
    Shape(
        name="brat-text-was-changed",
        report="brat: the text was edited after it was annotated, offsets no longer fit",
        files={
            "a.txt": "Today Mara Lind rents hall 7 in Lyon.\nThe Harbour Board met.\n",
            "a.ann": "T1\tPER 0 9\tMara Lind\nT2\tLOC 26 30\tLyon\nT3\tORG 36 49\tHarbour Board\n",
        },
        right=refused("text", "fit|match|not the one"),
    ),
)
