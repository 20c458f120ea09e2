"""Tables and records: one token per row, lists written as text, column names of Kaggle, pandas, AutoTrain and others."""

import io
from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from openpyxl import Workbook

from tests.imports.shape import Clause, Right, Shape, as_json, as_jsonl, clauses, read_right, refused, tabs, written
from tests.imports.texts import CHINESE, DUTCH, ENGLISH, FRENCH, GERMAN, PORTUGUESE, SPANISH

LISTED = clauses("""
    [LOC 青岛]租了仓库。
    [PER 林美华]没有付款。
""")


def tokens(each: Clause) -> list[str]:
    return [token for token, _, _ in each.tagged()]


def tags(each: Clause) -> list[str]:
    return ["O" if letter == "O" else f"{letter}-{kind}" for _, letter, kind in each.tagged()]


def token_rows(given: Iterable[Clause]) -> list[tuple[int, str, str]]:
    """Return rows of (sentence from 1, token, tag)."""
    return [(s, t, tag) for s, each in enumerate(given, 1) for t, tag in zip(tokens(each), tags(each), strict=True)]


def kaggle(given: Iterable[Clause]) -> str:
    """Write rows in which only the first row of a sentence has its number."""
    rows, last = [("Sentence #", "Word", "POS", "Tag")], 0
    for s, token, tag in token_rows(given):
        rows.append((f"Sentence: {s}" if s != last else "", token, "NNP" if tag != "O" else "NN", tag))
        last = s
    return written(rows)


def numpy_list(values: Sequence[object]) -> str:
    """Write a list as numpy prints it, without commas."""
    return "[" + " ".join(map(repr, values)) + "]"


NUMBERS = {"O": 0, "B-PER": 1, "I-PER": 2, "B-ORG": 3, "I-ORG": 4, "B-LOC": 5, "I-LOC": 6}


def sheet(rows: Iterable[Sequence[object]]) -> bytes:
    book = Workbook()
    for row in rows:
        book.active.append(list(row))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def parquet(given: Sequence[Clause], **more: Sequence[str]) -> bytes:
    out = io.BytesIO()
    table = pa.table({"tokens": [tokens(c) for c in given], "ner_tags": [tags(c) for c in given], **more})
    pq.write_table(table, out)
    return out.getvalue()


def numbered(
    given: Sequence[Clause], column: str, named: Sequence[Sequence[str]], names: Sequence[str], *, lemmas: bool = False
) -> bytes:
    """Write Parquet with class numbers, and their names as `datasets` stores them."""
    out = io.BytesIO()
    columns: dict[str, object] = {"tokens": [tokens(c) for c in given]}
    if lemmas:
        columns["lemmas"] = [[token.lower() for token in tokens(c)] for c in given]
    columns[column] = [[names.index(name) for name in row] for row in named]
    feature = {"feature": {"names": list(names), "_type": "ClassLabel"}, "_type": "List"}
    metadata = {"huggingface": as_json({"info": {"features": {column: feature}}})}
    pq.write_table(pa.table(columns).replace_schema_metadata(metadata), out)
    return out.getvalue()


def penn(each: Clause) -> list[str]:
    """Return rough parts of speech."""
    return ["." if token == "." else "NNP" if token[0].isupper() else "NN" for token in tokens(each)]


def upos(each: Clause) -> list[str]:
    return ["PUNCT" if token == "." else "NOUN" for token in tokens(each)]


def suffixed(tag: str) -> str:
    return tag if tag == "O" else f"{tag[2:]}-{tag[0]}"


def offsets(each: Clause) -> list[tuple[int, int, str]]:
    return list(each.spans)


def by_token(each: Clause) -> list[dict[str, object]]:
    """Return the mentions by token; `end` is not included."""
    starts, ends = (list(borders) for borders in zip(*each.tokens(), strict=True))
    return [{"type": k, "start": starts.index(s), "end": ends.index(e) + 1} for s, e, k in each.spans]


# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("kaggle-annotated-corpus",
        "Kaggle ner_dataset.csv; ThilinaRajapakse/simpletransformers#1106, explosion/spaCy#4318",
        {"ner_dataset.csv": kaggle((*ENGLISH, *ENGLISH))}, read_right((*ENGLISH, *ENGLISH))),
    Shape("simpletransformers-frame",
        "simpletransformers 0.6x NERModel: sentence_id, words, labels, with the index that pandas writes",
        {"train_df.csv": written([("", "sentence_id", "words", "labels"),
            *((i, s - 1, t, tag) for i, (s, t, tag) in enumerate(token_rows(FRENCH)))])}, read_right(FRENCH)),
    Shape("lists-as-text", "huggingface/transformers#8698: lists written as text in CSV cells",
        {"train.csv": written([("tokens", "ner_tags"), *((str(tokens(c)), str(tags(c))) for c in GERMAN)])},
        read_right(GERMAN)),
    Shape("lists-as-numpy-text",
        "datasets to_pandas().to_csv(): arrays as numpy prints them, tags as numbers without names",
        {"train.csv": written([("id", "tokens", "ner_tags"),
            *((i, numpy_list(tokens(c)), numpy_list([NUMBERS[tag] for tag in tags(c)]))
                for i, c in enumerate(SPANISH))])}, refused("number", "name|dataset_info")),
    Shape("kaggle-corpus-of-lists",
        "Kaggle naseralqaydeh/named-entity-recognition-ner-corpus: Sentence #, Sentence, POS, Tag as a list in text",
        {"ner.csv": written([("Sentence #", "Sentence", "POS", "Tag"),
            *((f"Sentence: {i}", " ".join(tokens(c)), str(["NN"] * len(tokens(c))), str(tags(c)))
                for i, c in enumerate(ENGLISH, 1))])}, read_right(ENGLISH)),
    Shape("text-and-tags-in-a-cell",
        "Kaggle rajnathpatel/ner-data and BERT tutorials: text and labels, both separated by blanks",
        {"ner.csv": written([("text", "labels"), *((" ".join(tokens(c)), " ".join(tags(c))) for c in DUTCH)])},
        read_right(DUTCH)),
    Shape("autotrain-csv", "Hugging Face AutoTrain, token classification from CSV: tokens and tags as lists in text",
        {"train.csv": written([("tokens", "tags"), *((as_json(tokens(c)), as_json(tags(c))) for c in PORTUGUESE)])},
        read_right(PORTUGUESE)),
    Shape("autotrain-jsonl", "Hugging Face AutoTrain, token classification from JSON lines",
        {"train.jsonl": as_jsonl({"tokens": tokens(c), "tags": tags(c)} for c in PORTUGUESE)}, read_right(PORTUGUESE)),
    Shape("numbers-without-names", "datasets Dataset.to_json(): ner_tags as numbers, the names stay behind",
        {"train.jsonl": as_jsonl({"tokens": tokens(c), "ner_tags": [NUMBERS[t] for t in tags(c)]} for c in ENGLISH)},
        refused("number", "name|dataset_info")),
    Shape("tner-label-json", "asahi417/tner data sets: tags as numbers, their names in label.json beside the file",
        {"train.json": as_jsonl({"tokens": tokens(c), "tags": [NUMBERS[t] for t in tags(c)]} for c in ENGLISH),
            "label.json": as_json(NUMBERS)}, read_right(ENGLISH)),
    Shape("tokens-parted-by-empty-rows",
        "CoNLL saved as CSV: word and tag, an empty row after each sentence, no sentence column",
        {"train.csv": "word,tag\n"
            + "\n".join(written((t, tag) for t, tag in zip(tokens(c), tags(c), strict=True))
                for c in (*ENGLISH, *ENGLISH))}, read_right((*ENGLISH, *ENGLISH))),
    Shape("kaggle-pii-2024",
        "Kaggle, The Learning Agency Lab PII data: tokens with white space among them, labels, full_text",
        {"train.json": as_json([{"document": n, "full_text": c.text + "\n\nEnd", "tokens": [*tokens(c), "\n\n", "End"],
                "trailing_whitespace": [True] * (len(tokens(c)) + 2), "labels": [*tags(c), "O", "O"]}
            for n, c in enumerate(ENGLISH)])}, read_right(ENGLISH)),
    Shape("pipeline-output",
        "transformers pipeline('ner', aggregation_strategy='simple') saved as JSON: mentions without the text",
        {"ner.json": as_json([{"entity_group": k, "score": 0.99, "word": c.text[s:e], "start": s, "end": e}
            for c in ENGLISH for s, e, k in c.spans])}, refused("text")),
    Shape("flair-to-dict", "flair 0.12, Sentence.to_dict(tag_type='ner'): entities with start_pos, end_pos and labels",
        {"sentences.jsonl": as_jsonl({"text": c.text, "labels": [],
                "entities": [{"text": c.text[s:e], "start_pos": s, "end_pos": e,
                        "labels": [{"value": k, "confidence": 1.0}]} for s, e, k in c.spans]} for c in GERMAN)},
        read_right(GERMAN)),
    Shape("excel-semicolons", "Excel with a German or French locale: a CSV separated by semicolons, in cp1252",
        {"etiketten.csv": written([("Satz", "Wort", "Etikett"), *token_rows(GERMAN)], ";").encode("cp1252")},
        read_right(GERMAN), options={"encoding": "cp1252"}, asks="encoding"),
    Shape("excel-token-rows", "Annotators who work in Excel: one token per row of a sheet",
        {"labels.xlsx": sheet([("sentence_id", "token", "tag"), *token_rows(SPANISH)])}, read_right(SPANISH)),
    Shape("parquet-tags-by-name", "datasets to_parquet() with string tags",
        {"train.parquet": parquet(PORTUGUESE)}, read_right(PORTUGUESE)),
    Shape("parts-of-speech-as-tags", "Part-of-speech data sets on the Hub: words, and Penn tags under labels",
        {"train.jsonl": as_jsonl({"words": tokens(c), "labels": penn(c)} for c in ENGLISH)},
        refused("parts of speech", "--tag-column", "Mara/NNP")),
    Shape("universal-dependencies-parquet",
        "universal_dependencies on the Hub as Parquet: tokens, lemmas, upos as class numbers, no entities",
        {"test.parquet": numbered(ENGLISH, "upos", [upos(c) for c in ENGLISH], ("NOUN", "PUNCT"), lemmas=True)},
        refused("upos", "--tag-column")),
    Shape("parts-of-speech-beside-entities",
        "spaCy documents as JSON lines: tokens, tags (token.tag_) and entity_tags (ent_iob_ and ent_type_)",
        {"docs.jsonl": as_jsonl({"tokens": tokens(c), "tags": penn(c), "entity_tags": tags(c)} for c in ENGLISH)},
        read_right(ENGLISH)),
    Shape("class-names-are-numbers", "datasets ClassLabel(num_classes=7): the names of the classes are their numbers",
        {"train.parquet": numbered(ENGLISH, "ner_tags", [[str(NUMBERS[t]) for t in tags(c)] for c in ENGLISH],
            tuple("0123456"))}, refused("numbers without names", "--tag-column")),
    Shape("unusual-class-names",
        "datasets features with names such as per-B: numbers whose names put the position last",
        {"train.parquet": numbered(ENGLISH, "ner_tags", [list(map(suffixed, tags(c))) for c in ENGLISH],
            tuple(map(suffixed, NUMBERS)))}, read_right(ENGLISH)),
    Shape("parts-of-speech-as-text", "datasets to_csv() of a part-of-speech data set: tokens and tags as lists in text",
        {"train.csv": written([("tokens", "tags"), *((str(tokens(c)), str(penn(c))) for c in ENGLISH)])},
        refused("parts of speech", "--tag-column")),
    Shape("row-per-annotator",
        "Data sets for learning with disagreement: a row per sentence and annotator_id, tokens and ner_tags",
        {"train.jsonl": as_jsonl({"annotator_id": who, "tokens": tokens(c), "ner_tags": given} for who in (1, 2)
            for n, c in enumerate(ENGLISH) for given in [tags(c) if who == 1 or n else ["O"] * len(tokens(c))])},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("agree",)), options={"annotator": "1"},
        asks="agree on 3 of the 4 texts.*--annotator"),
    Shape("token-rows-per-annotator",
        "Crowd answers as a table: sentence_id, worker_id, token, tag; the workers' rows follow one another",
        {"answers.csv": written([("sentence_id", "worker_id", "token", "tag"),
            *((s, worker, token, tag) for s, c in enumerate(ENGLISH) for worker in ("w1", "w2")
                for token, tag in zip(tokens(c), tags(c), strict=True))])},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("agree on 4 of the 4 texts",))),
    Shape("one-mention-per-row",
        "Amazon Comprehend custom entity annotations: File, Line, Begin Offset, End Offset, Type; the text is elsewhere",
        {"annotations.csv": written([("File", "Line", "Begin Offset", "End Offset", "Type"),
            *(("documents.txt", line, *span) for line, c in enumerate(ENGLISH) for span in c.spans)])},
        refused("text|document", "Comprehend|offset|annotation")),
    Shape("pandas-columns-json", "pandas DataFrame.to_json() with its default orient: {column: {row: value}}",
        {"train.json": as_json({"text": {str(i): c.text for i, c in enumerate(ENGLISH)},
            "label": {str(i): offsets(c) for i, c in enumerate(ENGLISH)}})}, refused("orient|JSON lines|records")),
    Shape("gliner", "GLiNER training data: tokenized_text, and ner with the last token included",
        {"train.json": as_json([{"tokenized_text": tokens(c),
                "ner": [[next(i for i, (start, _) in enumerate(c.tokens()) if start == left),
                        next(i for i, (_, end) in enumerate(c.tokens()) if end == right), kind]
                    for left, right, kind in c.spans]} for c in FRENCH])}, read_right(FRENCH)),
    Shape("scierc-dygie",
        "DyGIE++ and SciERC JSON lines: sentences of a document, ner by token, counted through the document, ends included",
        {"train.json": as_jsonl([{"doc_key": "note-1",
            "sentences": [["Mara", "Lind", "left", "Lyon", "."], ["The", "Board", "met", "Otto", "Barr", "."]],
            "ner": [[[0, 1, "PER"], [3, 3, "LOC"]], [[6, 6, "ORG"], [8, 9, "PER"]]], "relations": [[], []]}])},
        Right(sentences=2, mentions={"PER": ["Mara Lind", "Otto Barr"], "LOC": ["Lyon"], "ORG": ["Board"]})),
    Shape("cluener", "CLUENER 2020 (CLUEbenchmark/CLUENER2020): label by type and mention, ends included",
        {"train.json": as_jsonl({"text": c.text, "label": {k: {c.text[s:e]: [[s, e - 1]]} for s, e, k in c.spans}}
            for c in CHINESE)}, read_right(CHINESE)),
    Shape("records-in-data", "Older Hugging Face JSON scripts (load_dataset(field='data')): the records lie under data",
        {"train.json": as_json({"version": "1.0",
            "data": [{"tokens": tokens(c), "ner_tags": tags(c)} for c in DUTCH]})}, read_right(DUTCH)),
    Shape("uneven-lists", "Tokenised text whose tags were cut at 128: one row with fewer tags than tokens",
        {"train.jsonl": as_jsonl({"tokens": tokens(c), "ner_tags": tags(c)[: -1 if i == 0 else None]}
            for i, c in enumerate(ENGLISH))},
        Right(sentences=3, mentions={"PER": ["Otto Barr", "Ines Holm"], "ORG": ["Harbour Board"] * 2, "LOC": ["Lyon"]},
            says=("reject|left out|1 ",))),
    Shape("classification-table", "Text classification tables: text and a class per row, no entity",
        {"reviews.csv": written([("text", "label"),
            *((c.text, "legal" if i % 2 else "other") for i, c in enumerate(ENGLISH))])},
        Right(sentences=4, labelled=False)),
    Shape("parquet-row-per-annotator", "datasets to_parquet() of crowd answers: tokens, ner_tags and annotator",
        {"train.parquet": parquet((*ENGLISH, *ENGLISH), annotator=["ana"] * 4 + ["ben"] * 4)},
        Right(sentences=4, mentions=read_right(ENGLISH).mentions, says=("agree on 4 of the 4 texts",))),
    Shape("conll-as-csv", "FiNER-data (mpsilfve/finer-data): CoNLL with tabs under the extension .csv; quotes are tokens",
        {"digitoday.2014.train.csv": tabs("""
            Mara B-PER O | said O O | " O O | Nokia B-ORG O | pays O O | " O O | . O O
            Otto B-PER O | Barr I-PER O | left O O | Lyon B-LOC O | . O O
        """)},
        Right(sentences=2, mentions={"PER": ["Mara", "Otto Barr"], "ORG": ["Nokia"], "LOC": ["Lyon"]},
            texts=('Mara said " Nokia pays " .',))),
    Shape("kaggle-corpus-with-tabs", "Kaggle's annotated corpus, saved with tabs: the sentence number in its first row",
        {"ner.tsv": kaggle(c for c in ENGLISH).replace(",", "\t")}, read_right(ENGLISH)),
    Shape("simpletransformers-frame-with-tabs", "simpletransformers: sentence_id, words, labels, saved with tabs",
        {"train.txt": written([("sentence_id", "words", "labels"), *token_rows(GERMAN)], "\t")}, read_right(GERMAN)),
    Shape("offsets-with-decimals", "pandas: offsets that went through a column with gaps are floats",
        {"train.jsonl": as_jsonl({"text": c.text, "label": [[float(s), float(e), k] for s, e, k in c.spans]}
            for c in ENGLISH)}, read_right(ENGLISH)),
    Shape("spert", "SpERT (CoNLL04, ADE, SciERC): tokens, and entities by token, the end not included",
        {"conll04_train.json": as_json([{"tokens": tokens(c), "entities": by_token(c), "relations": [], "orig_id": n}
            for n, c in enumerate(ENGLISH)])}, read_right(ENGLISH)),
    Shape("oneie", "OneIE (ACE 2005): tokens, sentence, and entity_mentions by token, the end not included",
        {"train.oneie.json": as_jsonl({"doc_id": "note", "sent_id": f"note-{n}", "tokens": tokens(c),
                "sentence": c.text, "event_mentions": [],
                "entity_mentions": [{**each, "entity_type": each["type"], "mention_type": "NAM"} for each in by_token(c)]}
            for n, c in enumerate(ENGLISH))}, read_right(ENGLISH)),
    Shape("bigbio", "BigBIO on the Hub: the text within passages; the only column of text has names of documents",
        {"train.json": as_json([{"id": str(n), "document_id": f"note-{n}",
                "passages": [{"id": f"p{n}", "type": "abstract", "text": [c.text], "offsets": [[0, len(c.text)]]}],
                "entities": [{"id": f"T{s}", "type": k, "text": [c.text[s:e]], "offsets": [[s, e]]}
                    for s, e, k in c.spans]} for n, c in enumerate(ENGLISH)])},
        refused("no column has text", "JSON lines with text and label")),
    Shape("tacred", "TACRED: token and stanford_ner as lists; the columns of text are numbers and names of relations",
        {"train.json": as_json([{"id": f"61b3a{n}", "relation": "org:founded_by", "token": tokens(c),
                "stanford_ner": tags(c)} for n, c in enumerate(ENGLISH)])},
        read_right(ENGLISH)),
    Shape("docred", "DocRED: titles, sents, and mentions in vertexSet",
        {"train.json": as_json([{"title": f"The harbour {n}", "sents": [tokens(c)], "labels": [],
                "vertexSet": [[{"name": c.text, "sent_id": 0, "pos": [0, 2], "type": "PER"}]]}
            for n, c in enumerate(ENGLISH)])}, refused("DocRED", "JSON lines")),
    Shape("conversations", "UniversalNER and other data for language models: conversations",
        {"train.json": as_json([{"id": f"ner_{n}", "conversations": [{"from": "human", "value": f"Text: {c.text}"}]}
            for n, c in enumerate(ENGLISH)])}, refused("conversations", "JSON lines")),
    Shape("rows-within-an-object", "Own exports: one object with the rows under documents",
        {"train.json": as_json({"name": "Harbour notes",
            "documents": [{"text": c.text, "entities": offsets(c)} for c in ENGLISH]})},
        refused("'documents'", "save each list")),
    Shape("text-under-an-own-name", "JSON lines of own scripts: the text under review",
        {"train.jsonl": as_jsonl({"id": n, "review": c.text, "entities": offsets(c)} for n, c in enumerate(ENGLISH))},
        read_right(ENGLISH)),
    Shape("spans-under-an-own-name", "JSON lines of own scripts: text, and spans under mentions, beside classes",
        {"train.jsonl": as_jsonl({"text": c.text, "labels": ["legal"],
                "mentions": [{"start": s, "end": e, "type": k} for s, e, k in c.spans]} for c in ENGLISH)},
        read_right(ENGLISH)),
    Shape("text-before-and-after-masking", "ai4privacy/pii-masking on the Hub: source_text, masked_text, privacy_mask with value",
        {"train.jsonl": as_jsonl({"masked_text": c.text.replace("Lyon", "[CITY_OF_THE_LEASE]"), "source_text": c.text,
                "privacy_mask": [{"value": c.text[s:e], "start": s, "end": e, "label": k} for s, e, k in c.spans]}
            for c in ENGLISH)}, read_right(ENGLISH)),
    Shape("one-mention-per-row-with-text", "Own tables with a row per mention: text, start, end, label",
        {"mentions.csv": written([("text", "mention", "start", "end", "label"),
            *((c.text, c.text[s:e], s, e, k) for c in ENGLISH for s, e, k in c.spans)])},
        refused("one mention per row", "Save one row per text")),
    Shape("segments-of-speech", "Transcripts: start and end in seconds, and a label; they are no spans of the text",
        {"talk.csv": written([("start", "end", "text", "label"),
            *((3 * n, 3 * n + 2, c.text, "clerk") for n, c in enumerate(ENGLISH))])}, read_right(ENGLISH, labelled=False)),
    Shape("segments-in-a-list", "Transcripts: segments that cover the whole text are no mentions",
        {"talk.jsonl": as_jsonl({"text": c.text, "segments": [{"start": 0, "end": len(c.text), "type": "speech"}]}
            for c in ENGLISH)}, read_right(ENGLISH, labelled=False)),
    Shape("pairs-by-type", "Own scripts: entities by type, as pairs of start and end",
        {"train.jsonl": as_jsonl({"text": c.text,
                "entities": {kind: [[s, e] for s, e, k in c.spans if k == kind] for kind in ("PER", "LOC", "ORG")}}
            for c in ENGLISH)}, read_right(ENGLISH)),
    Shape("lists-of-tokens-with-tags", "Tutorials of BiLSTM-CRF: json.dump of sentences as lists of [token, tag]",
        {"train.json": as_json([[*map(list, zip(tokens(c), tags(c), strict=True))] for c in ENGLISH])},
        read_right(ENGLISH)),
    Shape("spans-under-two-names", "Exports for an evaluation: the spans under gold, those of a model under found",
        {"test.jsonl": as_jsonl({"text": c.text, "gold": offsets(c), "found": offsets(c)[:1]} for c in ENGLISH)},
        refused("gold, found", "rename")),
    Shape("token-numbers-under-an-own-name", "JSON lines whose spans count tokens: they are not labels of characters",
        {"train.jsonl": as_jsonl({"text": c.text, "mentions": [[i, i + 2, "PER"] for i in (2, 3)]} for c in GERMAN)},
        read_right(GERMAN, labelled=False)),
    Shape("sheet-of-spans", "doccano's CSV, saved by Excel as a workbook: lists of spans in cells",
        {"train.xlsx": sheet([("id", "text", "label"),
            *((n, c.text, as_json(offsets(c))) for n, c in enumerate(ENGLISH))])}, read_right(ENGLISH)),
    Shape("lists-of-spans-as-text", "pandas read_csv() and to_json(): lists of spans in Python notation",
        {"train.jsonl": as_jsonl({"text": c.text, "label": str(offsets(c))} for c in ENGLISH)}, read_right(ENGLISH)),
    Shape("entities-of-pairs-in-cells", "spaCy's annotations as text in a CSV cell: {'entities': [...]}",
        {"train.csv": written([("text", "annotation"),
            *((c.text, str({"entities": offsets(c)})) for c in ENGLISH)])}, read_right(ENGLISH)),
)
