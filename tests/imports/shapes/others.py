"""LightTag, tagtog, GATE, BioC, PubTator, and other tools that label text."""

from tests.imports.shape import Right, Shape, as_json, as_jsonl, block, read_right, refused, zipped
from tests.imports.texts import ENGLISH, FRENCH, GERMAN, JAPANESE, MEDICAL, SPANISH

# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("lighttag", "LightTag export: examples with annotations of start, end, tag, value; nobody labelled the third",
        {"annotations.json": as_json({"schema": {"name": "harbour",
                "tags": [{"name": k, "id": k.lower()} for k in ("PER", "LOC", "ORG")]},
            "examples": [{"example_id": f"e{n}", "content": c.text, "metadata": {},
                    "annotations": [{"start": s, "end": e, "tag": k, "value": c.text[s:e], "tag_id": k.lower(),
                            "tagged_token_id": f"t{n}-{s}", "annotated_by": [{"annotator": "ana", "annotator_id": 1}],
                            "correct": None} for s, e, k in c.spans], "classifications": []}
                for n, c in enumerate(ENGLISH)], "relations": []})},
        Right(sentences=3, mentions=read_right(ENGLISH).mentions)),
    Shape("tagtog-annotation-alone", "tagtog, ann.json: offsets within a part of a page that is not in the file",
        {"note.ann.json": as_json({"annotatable": {"parts": ["s1v1"]}, "anncomplete": True, "sources": [], "metas": {},
            "entities": [{"classId": "e_1", "part": "s1v1", "offsets": [{"start": 0, "text": "Mara Lind"}],
                "coordinates": [], "confidence": {"state": "pre-added", "who": ["user:ana"], "prob": 1}, "fields": {},
                "normalizations": {}}], "relations": []})}, refused("tagtog|ann.json", "text|html|folder")),
    Shape("tagtog-zip", "tagtog, project export: annotations-legend.json, plain.html pages, ann.json",
        {"project.zip": zipped({"harbour/annotations-legend.json": as_json({"e_1": "PER", "e_2": "LOC"}),
            "harbour/ann.json/master/pool/aVx1-note.txt.ann.json": as_json({"annotatable": {"parts": ["s1v1"]},
                "anncomplete": True, "sources": [], "metas": {},
                "entities": [{"classId": "e_1", "part": "s1v1", "offsets": [{"start": 0, "text": "Mara Lind"}],
                        "fields": {}, "normalizations": {}},
                    {"classId": "e_2", "part": "s1v1", "offsets": [{"start": 15, "text": "Lyon"}], "fields": {},
                        "normalizations": {}}], "relations": []}),
            "harbour/plain.html/pool/aVx1-note.txt.plain.html": '<!DOCTYPE html >\n<html id="aVx1-note.txt" data-origid="note.txt" class="anafora" data-anafora-version="v1" lang="" xml:lang="" xmlns="http://www.w3.org/1999/xhtml">\n<head><meta charset="UTF-8"/><title>note.txt</title></head>\n<body><article><section data-type="">\n<pre id="s1v1">Mara Lind left Lyon.</pre>\n</section></article></body></html>\n'})},
        refused("tagtog")),
    Shape("gate-xml", "GATE Developer 9, Save as GATE XML: nodes in the text, annotation sets behind it",
        {"note.xml": block("""
            <?xml version='1.0' encoding='utf-8'?>
            <GateDocument version="3">
            <GateDocumentFeatures></GateDocumentFeatures>
            <TextWithNodes><Node id="0"/>Mara Lind<Node id="9"/> left <Node id="15"/>Lyon<Node id="19"/>.</TextWithNodes>
            <AnnotationSet Name="Key">
            <Annotation Id="1" Type="Person" StartNode="0" EndNode="9"></Annotation>
            <Annotation Id="2" Type="Location" StartNode="15" EndNode="19"></Annotation>
            </AnnotationSet>
            </GateDocument>
        """)}, Right(sentences=1, mentions={"Person": ["Mara Lind"], "Location": ["Lyon"]})),
    Shape("i2b2-xml", "i2b2 2014 de-identification: TEXT and TAGS in XML",
        {"110-01.xml": block("""
            <?xml version="1.0" encoding="UTF-8" ?>
            <deIdi2b2>
            <TEXT><![CDATA[Mara Lind left Lyon.]]></TEXT>
            <TAGS>
            <NAME id="P0" start="0" end="9" text="Mara Lind" TYPE="PATIENT" comment="" />
            <LOCATION id="P1" start="15" end="19" text="Lyon" TYPE="CITY" comment="" />
            </TAGS>
            </deIdi2b2>
        """)}, refused("XML", "JSONL|brat|CoNLL")),
    Shape("tei-xml", "TEI P5: persName and placeName within the text",
        {"note.xml": block("""
            <?xml version="1.0" encoding="UTF-8"?>
            <TEI xmlns="http://www.tei-c.org/ns/1.0"><text><body>
            <p><persName>Mara Lind</persName> left <placeName>Lyon</placeName>.</p>
            </body></text></TEI>
        """)}, refused("XML", "JSONL|brat|CoNLL")),
    Shape("gate-twitter-json", "GATE Developer 9 and GATE Cloud, JSON as of Twitter: entities by type, indices",
        {"note.json": as_json({"text": "Mara Lind left Lyon. Otto Barr stayed.",
            "entities": {"Person": [{"indices": [0, 9], "rule": "x"}, {"indices": [21, 30]}],
                "Location": [{"indices": [15, 19]}]}})},
        Right(sentences=1, mentions={"Person": ["Mara Lind", "Otto Barr"], "Location": ["Lyon"]})),
    Shape("bioc-json", "BioC JSON (PubTator 3 API, biocjson): passages with annotations and locations",
        {"collection.json": as_json({"source": "note", "date": "2026", "key": "note.key",
            "documents": [{"id": "1", "infons": {},
                "passages": [{"offset": 100, "infons": {"type": "abstract"}, "text": "Velotrin eased harbour fever.",
                    "annotations": [{"id": "1", "infons": {"type": "Chemical"}, "text": "Velotrin",
                            "locations": [{"offset": 100, "length": 8}]},
                        {"id": "2", "infons": {"type": "Disease"}, "text": "harbour fever",
                            "locations": [{"offset": 115, "length": 13}]}], "relations": [], "sentences": []}],
                "relations": []}]})},
        Right(sentences=1, mentions={"Chemical": ["Velotrin"], "Disease": ["harbour fever"]})),
    Shape("bioc-xml", "BioC XML of BioCreative V (BC5CDR as it is distributed)",
        {"CDR_Note.BioC.xml": block("""
            <?xml version='1.0' encoding='UTF-8'?>
            <!DOCTYPE collection SYSTEM 'BioC.dtd'>
            <collection><source>note</source><date>2026</date><key>note.key</key>
            <document><id>1</id><passage><infon key="type">title</infon><offset>0</offset>
            <text>Velotrin eased harbour fever.</text>
            <annotation id="0"><infon key="type">Chemical</infon><location offset="0" length="8"/><text>Velotrin</text></annotation>
            <annotation id="1"><infon key="type">Disease</infon><location offset="15" length="13"/><text>harbour fever</text></annotation>
            </passage></document></collection>
        """)}, Right(sentences=1, mentions={"Chemical": ["Velotrin"], "Disease": ["harbour fever"]})),
    Shape("bioc-xml-annotated-passages", "BioC XML: passages cut into sentences, whose annotations belong to the passage",
        {"note.bioc": block("""
            <?xml version='1.0' encoding='UTF-8'?>
            <collection><source>note</source><date>2026</date><key>note.key</key>
            <document><id>1</id><passage><offset>0</offset>
            <sentence><offset>0</offset><text>Velotrin eased harbour fever.</text></sentence>
            <sentence><offset>30</offset><text>Dock lung stayed.</text></sentence>
            <annotation id="0"><infon key="type">Chemical</infon><location offset="0" length="8"/><text>Velotrin</text></annotation>
            <annotation id="1"><infon key="type">Disease</infon><location offset="30" length="9"/><text>Dock lung</text></annotation>
            </passage></document></collection>
        """)}, Right(sentences=2, mentions={"Chemical": ["Velotrin"], "Disease": ["Dock lung"]})),
    Shape("bioc-json-annotated-documents", "BioC JSON: the annotations belong to the document, not to its passages",
        {"note.json": as_json({"source": "note", "documents": [{"id": "1",
            "passages": [{"offset": 0, "text": "Velotrin eased harbour fever.", "annotations": []}],
            "annotations": [{"id": "1", "infons": {"type": "Chemical"}, "text": "Velotrin",
                "locations": [{"offset": 0, "length": 8}]}]}]})},
        Right(sentences=1, mentions={"Chemical": ["Velotrin"]})),
    Shape("pubtator", "PubTator and NCBI disease corpus: 1|t|title, 1|a|abstract, tab-separated mentions",
        {"note.PubTator": "".join(f"{n}|t|{c.text}\n{n}|a|Nothing else was seen.\n"
                + "".join(f"{n}\t{s}\t{e}\t{c.text[s:e]}\t{k}\tD00{s}\n" for s, e, k in c.spans) + "\n"
            for n, c in enumerate(MEDICAL, 101))}, Right(sentences=8, mentions=read_right(MEDICAL).mentions)),
    Shape("ground-truth-manifest",
        "Amazon SageMaker Ground Truth, NER: output.manifest, source and the job's annotations",
        {"output.manifest": as_jsonl({"source": c.text,
                "harbour-job": {"annotations": {"entities": [{"endOffset": e, "startOffset": s, "label": k}
                        for s, e, k in c.spans], "labels": [{"label": "PER"}]}},
                "harbour-job-metadata": {"type": "groundtruth/text-span", "human-annotated": "yes"}} for c in SPANISH)},
        read_right(SPANISH)),
    Shape("dataturks", "Dataturks JSON: content, annotation with points, the last character included",
        {"export.json": as_jsonl({"content": c.text,
                "annotation": [{"label": [k], "points": [{"start": s, "end": e - 1, "text": c.text[s:e]}]} for s, e, k in c.spans] or None,
                "extras": None} for c in FRENCH)}, Right(sentences=3, mentions=read_right(FRENCH).mentions)),
    Shape("vertex-ai", "Google Vertex AI and AutoML Natural Language: textContent, textSegmentAnnotations",
        {"import.jsonl": as_jsonl({"textContent": c.text,
                "textSegmentAnnotations": [{"startOffset": s, "endOffset": e, "displayName": k} for s, e, k in c.spans],
                "dataItemResourceLabels": {}} for c in GERMAN)}, read_right(GERMAN)),
    Shape("azure-language", "Azure AI Language, custom NER project: documents by location, the texts are elsewhere",
        {"project.json": as_json({"projectFileVersion": "2022-05-01", "stringIndexType": "Utf16CodeUnit",
            "metadata": {"projectKind": "CustomEntityRecognition", "projectName": "harbour", "language": "en"},
            "assets": {"projectKind": "CustomEntityRecognition", "entities": [{"category": "PER"}],
                "documents": [{"location": "note.txt", "language": "en",
                    "entities": [{"regionOffset": 0, "regionLength": 20,
                        "labels": [{"category": "PER", "offset": 0, "length": 9}]}]}]}})}, refused("text")),
    Shape("recogito-json-ld", "Recogito and Hypothesis: W3C web annotations, text position selectors without the text",
        {"annotations.json": as_json([{"@context": "http://www.w3.org/ns/anno.jsonld", "id": f"#{s}",
                "type": "Annotation", "body": [{"type": "TextualBody", "value": k, "purpose": "tagging"}],
                "target": {"selector": [{"type": "TextQuoteSelector", "exact": ENGLISH[0].text[s:e]},
                    {"type": "TextPositionSelector", "start": s, "end": e}]}} for s, e, k in ENGLISH[0].spans])},
        refused("text")),
    Shape("ubiai-json", "UBIAI JSON: document, tokens with start and end, entityLabel",
        {"ubiai.json": as_json([{"documentName": f"note-{n}.txt", "document": c.text,
                "tokens": [{"text": c.text[s:e], "start": s, "end": e, "token_start": 0, "token_end": 1,
                        "entityLabel": k} for s, e, k in c.spans], "relations": []} for n, c in enumerate(GERMAN)])},
        read_right(GERMAN)),
    Shape("labelbox", "Labelbox, NDJSON of 2023 and later: the text under data_row",
        {"export.ndjson": as_jsonl({"data_row": {"id": f"c{n}", "row_data": c.text}, "projects": {"p": {"labels": []}}}
            for n, c in enumerate(ENGLISH))}, refused("Labelbox", "JSON lines")),
    Shape("labelbox-2020", "Labelbox, JSON until 2022: Labeled Data and Label",
        {"export.json": as_json([{"ID": f"c{n}", "Labeled Data": c.text,
                "Label": {"objects": [{"title": k, "data": {"location": {"start": s, "end": e - 1}}}
                    for s, e, k in c.spans]}} for n, c in enumerate(ENGLISH)])}, refused("Labelbox", "JSON lines")),
    Shape("kili", "Kili: content, and labels with a jsonResponse",
        {"export.json": as_json([{"content": c.text, "externalId": f"note-{n}",
                "labels": [{"labelType": "DEFAULT", "jsonResponse": {"NER": {"annotations": [{"beginOffset": s,
                    "content": c.text[s:e], "categories": [{"name": k}]} for s, e, k in c.spans]}}}]}
            for n, c in enumerate(ENGLISH)])}, refused("Kili", "JSON lines")),
    Shape("comprehend-result", "Amazon Comprehend, output of a job: Entities, File and Line; the text is elsewhere",
        {"output.jsonl": as_jsonl({"Entities": [{"BeginOffset": s, "EndOffset": e, "Text": c.text[s:e], "Type": k}
                for s, e, k in c.spans], "File": "notes.txt", "Line": n} for n, c in enumerate(ENGLISH))},
        refused("Comprehend", "JSON lines")),
    Shape("dialogflow", "Dialogflow ES, usersays: each phrase is a list of parts",
        {"rent_usersays_en.json": as_json([{"id": "1", "data": [{"text": "rent a hall in ", "userDefined": False},
            {"text": "Lyon", "alias": "city", "meta": "@sys.geo-city", "userDefined": True}]}])},
        refused("Dialogflow", "JSON lines")),
    Shape("pubannotation", "PubAnnotation and TextAE: denotations, whose begin and end are under span, and their type under obj",
        {"notes.json": as_json([{"target": f"https://pubannotation.example.org/docs/{n}", "sourceid": str(n),
                "text": c.text, "denotations": [{"id": f"T{s}", "span": {"begin": s, "end": e}, "obj": k}
                    for s, e, k in c.spans]} for n, c in enumerate(MEDICAL)])}, read_right(MEDICAL)),
    Shape("stockmark", "stockmarkteam/ner-wikipedia-dataset (Japanese): name, span as a pair, type",
        {"ner.json": as_json([{"curid": str(n), "text": c.text,
                "entities": [{"name": c.text[s:e], "span": [s, e], "type": k} for s, e, k in c.spans]}
            for n, c in enumerate(JAPANESE)])}, read_right(JAPANESE)),
)
