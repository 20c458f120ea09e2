"""CoNLL-like columns: order, number and spelling of columns and tags."""

from tests.imports.shape import Right, Shape, block, clauses, conll, read_right, refused, tabs
from tests.imports.texts import (
    CHINESE,
    DANISH,
    DUTCH,
    ENGLISH,
    FRENCH,
    GERMAN,
    HINDI,
    JAPANESE,
    MEDICAL,
    POLISH,
    PORTUGUESE,
    SPANISH,
    TURKISH,
)

BODY = clauses("""
    [PER Mara Lind] hurt her [BODYPART left knee].
    Nothing else was hurt.
    The [BODYPART knee] of [PER Otto Barr] is fine.
""")
MANY = (*ENGLISH, *ENGLISH[:2], *ENGLISH[3:])

DISAGREES = (*clauses("Mara [PER Lind] rents hall 7 in [LOC Lyon]."), *ENGLISH[1:])


def _iob1(text: str) -> str:
    """Write IOB1, where B- only follows a mention of the same type."""
    return text.replace("B-", "I-")


# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("untyped-bio", "dmis-lab/biobert#35: NER files of BioBERT, tags B, I and O without a type",
        {"train.tsv": conll(MEDICAL, tag="{letter}")}, read_right(MEDICAL, rename=lambda _: "DISEASE"),
        options={"entity_type": "DISEASE"}),
    Shape("lower-case-tags", "flairNLP/flair#223: b-per, i-per and o",
        {"train.conll": conll(ENGLISH, tag="{low}-{type}", outside="o").replace("-PER", "-per").replace("-LOC", "-loc")
            .replace("-ORG", "-org")}, read_right(ENGLISH)),
    Shape("germeval-2014", "flairNLP/flair#3194: GermEval 2014, number, token, outer tag, nested tag",
        {"NER-de-train.tsv": tabs("""
            # http://example.org/notiz [2014-05-01]
            1 Die O O | 2 Reederei B-ORG O | 3 Bremen I-ORG B-LOC | 4 klagt O O
            # http://example.org/notiz [2014-05-02]
            1 Jule B-PER O | 2 Keller I-PER O | 3 wohnt O O | 4 in O O | 5 Emden B-LOC O | 6 . O O
            # http://example.org/notiz [2014-05-03]
            1 Der O O | 2 Vertrag O O | 3 endet O O
        """)},
        Right(sentences=3, mentions={"ORG": ["Reederei Bremen"], "PER": ["Jule Keller"], "LOC": ["Emden"]},
            says=("nested|column|inner",))),
    Shape("tag-before-part-of-speech", "Converters that add the part of speech last: token, tag, part of speech",
        {"train.conll": conll(MANY, "{token}\t{tag}\t{pos}")}, read_right(MANY)),
    Shape("conll-2003-english", "CoNLL-2003 shared task: token, part of speech, chunk, tag in IOB1, -DOCSTART- lines",
        {"eng.train": "-DOCSTART- -X- -X- O\n\n" + _iob1(conll(ENGLISH, "{token} {pos} I-NP {tag}"))},
        read_right(ENGLISH)),
    Shape("conll-2002-dutch", "CoNLL-2002 shared task: token, part of speech, tag in IOB2, -DOCSTART- -DOCSTART- O",
        {"ned.train": "-DOCSTART- -DOCSTART- O\n" + conll(DUTCH, "{token} {pos} {tag}")}, read_right(DUTCH)),
    Shape("conll-2002-spanish-latin-1", "CoNLL-2002 shared task, esp.train as it was distributed: ISO 8859-1",
        {"esp.train": conll(SPANISH, "{token} {tag}").encode("latin-1")}, read_right(SPANISH),
        options={"encoding": "latin-1"}, asks="encoding"),
    Shape("conll-2012-brackets",
        "CoNLL-2012 *_gold_conll files of OntoNotes 5: names in brackets in the eleventh column",
        {"bc_0001.gold_conll": block("""
            #begin document (bc/harbour/00/harbour_0001); part 000
            bc/harbour/00/harbour_0001   0   0   Mara    NNP   (TOP(S(NP*      -    -   -   Speaker#1   (PERSON*   (ARG0*   -
            bc/harbour/00/harbour_0001   0   1   Lind    NNP            *)     -    -   -   Speaker#1          *)       *)  -
            bc/harbour/00/harbour_0001   0   2   left    VBD        (VP*    leave   01   1   Speaker#1          *      (V*)  -
            bc/harbour/00/harbour_0001   0   3   Lyon    NNP        (NP*)      -    -   -   Speaker#1     (GPE)    (ARG1*)  -
            bc/harbour/00/harbour_0001   0   4      .      .          *))      -    -   -   Speaker#1          *        *   -

            bc/harbour/00/harbour_0001   0   0     No     DT   (TOP(S(NP*      -    -   -   Speaker#1          *        *   -
            bc/harbour/00/harbour_0001   0   1   rent     NN            *)     -    -   -   Speaker#1          *        *   -
            bc/harbour/00/harbour_0001   0   2     is    VBZ        (VP*      be   01   1   Speaker#1          *        *   -
            bc/harbour/00/harbour_0001   0   3    due     JJ         *))       -    -   -   Speaker#1          *        *   -

            #end document
        """)}, Right(sentences=2, mentions={"PERSON": ["Mara Lind"], "GPE": ["Lyon"]})),
    Shape("bioes", "flair, tag_format BIOES: S- and E-",
        {"train.txt": conll(FRENCH, "{token} {tag}", scheme="BIOES")}, read_right(FRENCH)),
    Shape("biluo", "spaCy 3, offsets_to_biluo_tags: L- and U-",
        {"train.iob": conll(POLISH, scheme="BILOU")}, read_right(POLISH)),
    Shape("bmes-characters", "Chinese Resume NER (jiesutd/LatticeLSTM): one character per line, B-, M-, E-, S-",
        {"demo.train.char": conll(CHINESE, "{token} {tag}", scheme="BMES", characters=True)}, read_right(CHINESE)),
    Shape("type-before-position", "NAVER NLP Challenge 2018 (naver/nlp-challenge): number, word, PER_B; - outside",
        {"train_data": tabs("""
            1 박서준은 PER_B | 2 부산에서 LOC_B | 3 창고를 - | 4 빌렸다 -
            1 항만 ORG_B | 2 공사는 ORG_I | 3 거절했다 -
            1 계약은 - | 2 오월에 DAT_B | 3 끝난다 -
        """)}, Right(sentences=3, mentions={"PER": ["박서준은"], "LOC": ["부산에서"], "ORG": ["항만 공사는"], "DAT": ["오월에"]})),
    Shape("suffix-tags", "Converters that write the type first: PER-B, PER-I",
        {"train.conll": conll(TURKISH, tag="{type}-{letter}")}, read_right(TURKISH)),
    Shape("underscore-tags", "Chinese BiLSTM-CRF tutorials: B_PER, I_PER",
        {"train.txt": conll(CHINESE, "{token}\t{tag}", tag="{letter}_{type}", characters=True)}, read_right(CHINESE)),
    Shape("klue-ner", "KLUE-NER 1.1 (KLUE-benchmark/KLUE): one character per line, the blank is a token too",
        {"klue-ner-v1.1_train.tsv": "## source: our own note\n"
                "##\tklue-ner-v1_train_00000-note\t<박서준:PS>은 <부산:LC>에 산다\n"
            + "".join(f"{c}\t{t}\n"
                for c, t in zip("박서준은 부산에 산다", ["B-PS", "I-PS", "I-PS", "O", "O", "B-LC", "I-LC", "O", "O", "O", "O"], strict=True))
            + "\n##\tklue-ner-v1_train_00001-note\t계약은 <오월:DT>에 끝난다\n"
            + "".join(f"{c}\t{t}\n"
                for c, t in zip("계약은 오월에 끝난다", ["O", "O", "O", "O", "B-DT", "I-DT", "O", "O", "O", "O", "O"], strict=True))
            + "\n"}, Right(sentences=2, mentions={"PS": ["박서준"], "LC": ["부산"], "DT": ["오월"]})),
    Shape("stanza-conllu", "Stanza 1.x, CoNLL.write_doc2conll: CoNLL-U with ner=S-PER among the features of column 10",
        {"out.conllu": tabs("""
            # sent_id = 0
            1 Mara mara PROPN NNP _ 3 nsubj _ start_char=0|end_char=4|ner=B-PER |
            2 Lind lind PROPN NNP _ 1 flat _ start_char=5|end_char=9|ner=E-PER |
            3 left leave VERB VBD _ 0 root _ start_char=10|end_char=14|ner=O |
            4 Lyon lyon PROPN NNP _ 3 obj _ start_char=15|end_char=19|ner=S-LOC |
            5 . . PUNCT . _ 3 punct _ start_char=19|end_char=20|ner=O
            # sent_id = 1
            1 Rent rent NOUN NN _ 3 nsubj _ start_char=21|end_char=25|ner=O |
            2 was be AUX VBD _ 3 cop _ start_char=26|end_char=29|ner=O |
            3 due due ADJ JJ _ 0 root _ start_char=30|end_char=33|ner=O
        """)}, Right(sentences=2, mentions={"PER": ["Mara Lind"], "LOC": ["Lyon"]})),
    Shape("dane-conllu", "DaNE (alexandrainst/danlp): CoNLL-U with name=B-PER in column 10",
        {"ddt.train.conllu": conll(DANISH, "{i}\t{token}\t{token}\tX\t_\t_\t0\tdep\t_\tname={tag}|SpaceAfter=No",
            before="# sent_id = train-{s}\n# text = {text}")}, read_right(DANISH)),
    Shape("conllu-without-names", "Universal Dependencies treebanks: ten columns, no entity anywhere",
        {"en-ud-train.conllu": conll(ENGLISH, "{i}\t{token}\t{token}\tX\t{pos}\t_\t0\tdep\t_\t_")},
        refused("CoNLL-U|entit|tag")),
    Shape("wikiner-one-line", "WikiNER (aij-wikiner-en-wp3): a sentence per line, word|part of speech|tag",
        {"aij-wikiner-en-wp3": "".join(" ".join(f"{t}|{'NNP' if k else 'NN'}|{'O' if letter == 'O' else 'I-' + k}"
                    for t, letter, k in c.tagged()) + "\n\n" for c in ENGLISH)}, read_right(ENGLISH)),
    Shape("stanford-slash-tags", "Stanford NER 4.2, -outputFormat slashTags",
        {"out.txt": "".join(" ".join(f"{t}/{k or 'O'}" for t, _, k in c.tagged()) + " \n" for c in ENGLISH)},
        read_right(ENGLISH)),
    Shape("stanford-inline-xml", "Stanford NER 4.2, -outputFormat inlineXML",
        {"out.txt": block("""
            <PERSON>Mara Lind</PERSON> rents hall 7 in <LOCATION>Lyon</LOCATION>.
            <PERSON>Otto Barr</PERSON> pays the <ORGANIZATION>Harbour Board</ORGANIZATION>.
            No rent is due in March.
        """)},
        Right(sentences=3,
            mentions={"PERSON": ["Mara Lind", "Otto Barr"], "LOCATION": ["Lyon"], "ORGANIZATION": ["Harbour Board"]},
            without=("<",))),
    Shape("enamex", "MUC-6 and MUC-7 inline markup: <ENAMEX TYPE=...>",
        {"note.txt": block("""
            <ENAMEX TYPE="PERSON">Ines Holm</ENAMEX> left <ENAMEX TYPE="LOCATION">Emden</ENAMEX>.
            Fish &amp; rope are sold here.
        """)},
        Right(sentences=2, mentions={"PERSON": ["Ines Holm"], "LOCATION": ["Emden"]},
            texts=("Fish & rope are sold here.",))),
    Shape("muc-6", "MUC-6 and MUC-7: ENAMEX with further attributes",
        {"note.sgm.txt": 'The <ENAMEX TYPE="ORGANIZATION" STATUS="OPT">Harbour Board</ENAMEX> of <ENAMEX TYPE="LOCATION">Lyon</ENAMEX> met.\n'},
        Right(sentences=1, mentions={"ORGANIZATION": ["Harbour Board"], "LOCATION": ["Lyon"]}, without=("<",))),
    Shape("ontonotes-name", "OntoNotes 5, .name files: lines that begin and end a document",
        {"note.name": block("""
            <DOC DOCNO="bc/note/00/note_0000@0000@note@bc@en@on">
            <ENAMEX TYPE="PERSON">Mara Lind</ENAMEX> rents hall 7 in <ENAMEX TYPE="GPE" S_OFF="1">Lyon</ENAMEX> .
            No rent is due .
            </DOC>
        """)}, Right(sentences=2, mentions={"PERSON": ["Mara Lind"], "GPE": ["Lyon"]}, without=("<",))),
    Shape("opennlp", "Apache OpenNLP, training data of the name finder: <START:person> ... <END>",
        {"en-ner.train": block("""
            <START:person> Mara Lind <END> rents hall 7 in <START:location> Lyon <END> .
            No rent is due in March .
            <START> Otto Barr <END> pays .
        """)}, Right(sentences=3, mentions={"person": ["Mara Lind"], "location": ["Lyon"], "ENTITY": ["Otto Barr"]},
            without=("<",))),
    Shape("docstart-with-a-name", "NER corpora with the document's name: -DOCSTART- (note 1), then a tab",
        {"train.txt": "".join(f"-DOCSTART- (note {n})\t-X-\tO\n\n" + conll([c], "{token}\tNN\t{tag}")
            for n, c in enumerate(ENGLISH))}, read_right(ENGLISH)),
    Shape("stanford-tsv", "Stanford NER 4.2, training files: token, tab, PERSON; no position letters",
        {"train.tsv": conll(ENGLISH, tag="{type}").replace("PER", "PERSON").replace("LOC", "LOCATION")},
        read_right(ENGLISH, rename={"PER": "PERSON", "LOC": "LOCATION"})),
    Shape("mit-tag-first", "MIT Movie and Restaurant corpora: tag, tab, token",
        {"engtrain.bio": conll(ENGLISH, "{tag}\t{token}")}, read_right(ENGLISH)),
    Shape("wnut-17", "WNUT-17 (leondz/emerging_entities_17): lines with a tab alone end sentences",
        {"wnut17train.conll": conll(ENGLISH, tag="{letter}-{type}", between="\t\n")}, read_right(ENGLISH)),
    Shape("windows-line-ends", "CoNLL edited in Notepad: byte order mark and CRLF",
        {"train.conll": b"\xef\xbb\xbf" + conll(SPANISH, "{token} {tag}", end="\r\n", between="\r\n").encode()},
        read_right(SPANISH)),
    Shape("utf-16", "Save as Unicode in Excel and Notepad: UTF-16 with a byte order mark",
        {"train.conll": conll(HINDI).encode("utf-16")}, read_right(HINDI)),
    Shape("jnlpba", "JNLPBA 2004 (Genia4ERtask): ###MEDLINE lines, types with DNA, protein, cell_line",
        {"Genia4EReval1.iob2": conll(MEDICAL, before="###MEDLINE:9501{s}\n").replace("CHEM", "protein")
            .replace("DIS", "cell_line")}, read_right(MEDICAL, rename={"CHEM": "protein", "DIS": "cell_line"})),
    Shape("hipe-2022", "HIPE-2022 (hipe-eval/HIPE-2022-data): a header, ten columns, comments, EndOfSentence in MISC",
        {"HIPE-2022-v2.1-note-train-fr.tsv": tabs("""
            TOKEN NE-COARSE-LIT NE-COARSE-METO NE-FINE-LIT NE-FINE-METO NE-FINE-COMP NE-NESTED NEL-LIT NEL-METO MISC |
            # hipe2022:document_id = note-1901
            # hipe2022:language = fr
            Lise B-pers O B-pers.ind O B-comp.name O Q1 _ _ | Morel I-pers O I-pers.ind O I-comp.name O Q1 _ _ |
            loue O O O O O O _ _ _ | Brest B-loc O B-loc.adm.town O O O Q2 _ NoSpaceAfter |
            . O O O O O O _ _ EndOfSentence | La O O O O O O _ _ _ | Régie B-org O B-org.adm O O O NIL _ _ |
            du I-org O I-org.adm O O O NIL _ _ | Port I-org O I-org.adm O O B-loc NIL _ _ |
            refuse O O O O O O _ _ EndOfSentence
        """)},
        Right(sentences=2, mentions={"pers": ["Lise Morel"], "loc": ["Brest"], "org": ["Régie du Port"]},
            says=("column|NE-",))),
    Shape("multiconer", "MultiCoNER 2022 and 2023: # id lines, token _ _ tag",
        {"en-train.conll": conll(GERMAN, "{token} _ _ {tag}",
            before="# id 5239d808-f300-46ea-aa3b-5093040213a{s}\tdomain=de")}, read_right(GERMAN)),
    Shape("few-nerd", "Few-NERD (thunlp/Few-NERD): person-other, location-GPE, no position letters",
        {"train.txt": conll(ENGLISH, tag="{type}").replace("PER", "person-other").replace("LOC", "location-GPE")
            .replace("ORG", "organization-company")},
        read_right(ENGLISH, rename={"PER": "person-other", "LOC": "location-GPE", "ORG": "organization-company"})),
    Shape("blank-in-type", "Own label sets with a blank in a type: B-Body Part, separated by tabs",
        {"train.tsv": conll(BODY).replace("BODYPART", "Body Part")},
        read_right(BODY, rename={"BODYPART": "Body Part"})),
    Shape("pan-x-prefix", "WikiANN / PAN-X raw files (XTREME): every token begins with its language, en:Mara",
        {"train.tsv": conll(PORTUGUESE, "pt:{token}\t{tag}")}, read_right(PORTUGUESE, without=("pt:",))),
    Shape("bio-characters-japanese", "Character-level BIO of Japanese and Chinese BERT tutorials",
        {"train.txt": conll(JAPANESE, "{token} {tag}", characters=True)}, read_right(JAPANESE)),
    Shape("doccano-transformer-conll",
        "doccano/doccano-transformer 1.0, to_conll2003: -DOCSTART- -X- -X- O, token _ _ tag",
        {"train.txt": "-DOCSTART- -X- -X- O\n\n" + conll(FRENCH, "{token} _ _ {tag}")}, read_right(FRENCH)),
    Shape("label-studio-conll2003", "Label Studio 1.x, export as CONLL2003: -DOCSTART- -X- O, token -X- _ tag",
        {"project-1.conll": "-DOCSTART- -X- O\n" + conll(GERMAN, "{token} -X- _ {tag}")}, read_right(GERMAN)),
    Shape("conlleval-gold-and-predicted",
        "conlleval and taggers' test output: token, part of speech, gold tag, predicted tag",
        {"test.out.txt": conll(MANY, "{token} {pos} {tag} {tag}").replace("Lyon NNP B-LOC B-LOC", "Lyon NNP B-LOC O",
            2)}, read_right(MANY, says=("column 4.*--tag-column",))),
    Shape("scores-in-the-last-column", "Taggers that print their confidence behind the tag",
        {"tagged.tsv": conll(GERMAN, "{token}\t{tag}\t0.9{i}")}, read_right(GERMAN)),
    Shape("empty-cell-outside", "Spreadsheets saved as text: the tag's cell is empty outside mentions",
        {"train.tsv": conll(MANY, outside="")}, read_right(MANY)),
    Shape("universal-ner", "Universal NER (UNER) .iob2: number, token, tag, -, annotator; # sent_id and # text lines",
        {"sv_note-ud-train.iob2": conll(DANISH, "{i}\t{token}\t{tag}\t-\tmlind",
            before="# sent_id = note-{s}\n# text = {text}")}, read_right(DANISH)),
    Shape("wikineural", "WikiNEuRal and MultiNERD (Babelscape): number from 0, token, tag",
        {"train_pl.tsv": conll(POLISH, "{i}\t{token}\t{tag}").replace("1\t", "0\t").replace("2\t", "1\t")
            .replace("3\t", "2\t").replace("4\t", "3\t").replace("5\t", "4\t").replace("6\t", "5\t")
            .replace("7\t", "6\t")}, read_right(POLISH)),
    Shape("conll-2000-chunks", "CoNLL-2000 shared task: token, part of speech, chunk; no entities",
        {"train.txt": tabs("""
            Mara NNP B-NP | Lind NNP I-NP | rents VBZ B-VP | hall NN B-NP | 7 CD I-NP | in IN B-PP | Lyon NNP B-NP |
            . . O
            Rent NN B-NP | is VBZ B-VP | due JJ B-ADJP | . . O
        """, " ")}, refused("chunk|NP")),
    Shape("part-of-speech-tags", "Part-of-speech corpora in two columns: token, NN; no entities",
        {"train.txt": conll(MANY, "{token}\t{pos}")}, refused("tag|entit|part", "/NN")),
    Shape("language-per-token", "LinCE language identification: token and lang1, lang2 or other; no entities",
        {"train.conll": conll(MANY, "{token}\t{pos}").replace("\tNNP", "\tlang2").replace("\tNN", "\tlang1")},
        refused("entity tags", "--tag-column", "/lang")),
    Shape("doccano-transformer-per-user",
        "doccano-transformer 1.0, to_conll2003: one file per user, who disagree on one sentence",
        {"ana.conll": conll(ENGLISH, "{token} {tag}"), "ben.conll": conll(DISAGREES, "{token} {tag}")},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("agree",)), options={"annotator": "ana"},
        asks="agree on 3 of the 4 texts.*--annotator"),
    Shape("annotator-comments",
        "CoNLL-U metadata: # annotator = NAME before each sentence, each sentence once per annotator",
        {"train.conllu": conll(ENGLISH, "{i}\t{token}\t{tag}", before="# annotator = ana")
            + conll(DISAGREES, "{i}\t{token}\t{tag}", before="# annotator = ben")},
        Right(sentences=4, mentions=read_right(DISAGREES).mentions, says=("agree",)), options={"annotator": "ben"},
        asks="agree on 3 of the 4 texts.*--annotator"),
    Shape("sentences-twice-without-annotators",
        "Files of two annotators joined with cat: each sentence twice, nobody is named",
        {"all.conll": conll(ENGLISH) + conll(DISAGREES)},
        Right(sentences=8, mentions=read_right((*ENGLISH, *DISAGREES)).mentions,
            says=("1 text occurs more than once with different labels",))),
    Shape("two-spellings-in-one-file", "Files joined by hand: B-PER in one half, B_PER in the other",
        {"train.conll": conll(ENGLISH) + conll(FRENCH, tag="{letter}_{type}")}, read_right((*ENGLISH, *FRENCH))),
    Shape("header-line", "flairNLP/flair ColumnCorpus(skip_first_line=True): column names in the first line",
        {"train.tsv": "token\tpos\tlabel\n" + conll(DUTCH, "{token}\t{pos}\t{tag}")}, read_right(DUTCH)),
    Shape("zero-for-o", "Hand-typed files: the digit 0 for O",
        {"train.conll": conll(MANY, outside="0")}, read_right(MANY)),
    Shape("torn-line", "A token split over two lines by an editor: one line without a tag",
        {"train.conll": conll((*ENGLISH, *ENGLISH, *ENGLISH)).replace("hall\tO", "hall", 1)},
        Right(sentences=11,
            mentions={"PER": ["Mara Lind"] * 2 + (["Otto Barr"] * 3) + (["Ines Holm"] * 3), "LOC": ["Lyon"] * 5,
                "ORG": ["Harbour Board"] * 6}, says=("reject|left out|1 ",))),
    Shape("annotator-column", "Tables of tokens with a column for the annotator: word, annotator, tag",
        {"train.conll": "word\tannotator\ttag\n" + conll(ENGLISH, "{token}\tana\t{tag}") + conll(DISAGREES, "{token}\tben\t{tag}")},
        Right(sentences=4, mentions=read_right(DISAGREES).mentions, says=("agree",)), options={"annotator": "ben"},
        asks="agree on 3 of the 4 texts.*--annotator"),
)
