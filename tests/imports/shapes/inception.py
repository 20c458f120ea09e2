"""INCEpTION and WebAnno."""

from collections.abc import Sequence

from tests.imports.shape import Clause, Right, Shape, block, conll, read_right, refused
from tests.imports.texts import ENGLISH, FRENCH, GERMAN, SPANISH

NAMED = "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|"


def webanno(given: Sequence[Clause], *, version: str, features: str, before: str = "", identifier: str = "") -> str:
    """Write WebAnno TSV 3 with numbered mentions. before: cells of earlier layers. identifier: of a mention."""
    out, at, mention = f"#FORMAT=WebAnno TSV {version}\n{features}\n\n", 0, 0
    for s, each in enumerate(given, 1):
        out += f"\n#Text={each.text}\n"
        numbers = {}
        for left, right, _ in each.spans:
            if sum(left <= start < right for start, _ in each.tokens()) > 1:
                mention += 1
                numbers[left] = f"[{mention}]"
        for i, ((start, end), (token, letter, kind)) in enumerate(zip(each.tokens(), each.tagged(), strict=True), 1):
            left = next((left for left, right, _ in each.spans if left <= start < right), -1)
            number = numbers.get(left, "")
            value = "_" if letter == "O" else kind + number
            named = f"{'_' if letter == 'O' else identifier + number}\t" if identifier else ""
            out += f"{s}-{i}\t{at + start}-{at + end}\t{token}\t{before}{named}{value}\t\n"
        at += len(each.text) + 1
    return out


# A table: ruff would give each field its own line.
# fmt: off
SHAPES = (
    Shape("webanno-tsv-3.3", "INCEpTION 20 and later, WebAnno TSV v3.3: NamedEntity with identifier and value",
        {"note.tsv": webanno(GERMAN, version="3.3", features=NAMED + "identifier|value", identifier="*")},
        read_right(GERMAN)),
    Shape("webanno-tsv-3.2-with-part-of-speech",
        "WebAnno 3.4, TSV v3.2: part of speech and lemma layers before NamedEntity",
        {"note.tsv": webanno(FRENCH, version="3.2",
            features="#T_SP=de.tudarmstadt.ukp.dkpro.core.api.lexmorph.type.pos.POS|PosValue|coarseValue\n" + NAMED
                + "value", before="NN\tNOUN\t")}, read_right(FRENCH)),
    Shape("webanno-tsv-own-layer", "INCEpTION, WebAnno TSV v3.3: a custom span layer, webanno.custom.Party|role",
        {"note.tsv": webanno(SPANISH, version="3.3", features="#T_SP=webanno.custom.Party|role")}, read_right(SPANISH)),
    Shape("webanno-tsv-stacked", "INCEpTION, WebAnno TSV v3.3: two mentions on one token, ORG[1]|LOC[2]",
        {"note.tsv": "#FORMAT=WebAnno TSV 3.3\n" + NAMED
            + "value\n\n\n" "#Text=The Port of Lyon pays Otto Barr.\n"
                "1-1\t0-3\tThe\t_\t\n1-2\t4-8\tPort\tORG[1]\t\n1-3\t9-11\tof\tORG[1]\t\n1-4\t12-16\tLyon\tORG[1]|LOC\t\n"
                "1-5\t17-21\tpays\t_\t\n1-6\t22-26\tOtto\tPER[2]\t\n1-7\t27-31\tBarr\tPER[2]\t\n1-8\t31-32\t.\t_\t\n"
                "\n#Text=Ines Holm left.\n"
                "2-1\t33-37\tInes\tPER[3]\t\n2-2\t38-42\tHolm\tPER[3]\t\n2-3\t43-47\tleft\t_\t\n2-4\t47-48\t.\t_\t\n"},
        Right(sentences=1, mentions={"PER": ["Ines Holm"]}, says=("overlap|stacked|nested|span",))),
    Shape("webanno-tsv-2", "WebAnno 2.x, TSV 2: # webanno.custom or NamedEntity | value, B- and I- tags",
        {"note.tsv": " # de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity | value\n"
            + conll(ENGLISH, "{s}-{i}\t{token}\t{tag}", before="#id={s}\n#text={text}")}, read_right(ENGLISH)),
    Shape("inception-conll-2002", "INCEpTION, export as CoNLL 2002: token, blank, tag",
        {"note.conll": conll(SPANISH, "{token} {tag}")}, read_right(SPANISH)),
    Shape("uima-xmi", "INCEpTION, export as UIMA CAS XMI (XML 1.0)",
        {"note.xmi": block("""
            <?xml version="1.0" encoding="UTF-8"?>
            <xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" xmlns:type5="http:///de/tudarmstadt/ukp/dkpro/core/api/ner/type.ecore" xmi:version="2.0">
            <cas:NULL xmi:id="0"/>
            <type5:NamedEntity xmi:id="9" sofa="1" begin="0" end="9" value="PER"/>
            <cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString="Mara Lind left Lyon."/>
            </xmi:XMI>
        """)}, refused("XMI|UIMA", "TSV|CoNLL")),
    Shape("uima-cas-json", "INCEpTION 24 and later, export as UIMA CAS JSON 0.4",
        {"note.json": '{"%TYPES":{},"%FEATURE_STRUCTURES":[{"%ID":1,"%TYPE":"uima.cas.Sofa","sofaNum":1,'
            '"sofaID":"_InitialView","mimeType":"text","sofaString":"Mara Lind left Lyon."},{"%ID":3,"%TYPE":'
            '"de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity","@sofa":1,"begin":0,"end":9,"value":"PER"}],'
            '"%VIEWS":{"_InitialView":{"%SOFA":1,"%MEMBERS":[3]}}}'}, refused("UIMA|INCEpTION|CAS", "TSV|CoNLL")),
    Shape("webanno-tsv-two-layers", "INCEpTION, WebAnno TSV v3.3: two custom layers with spans",
        {"note.tsv": "#FORMAT=WebAnno TSV 3.3\n#T_SP=custom.A|value\n#T_SP=custom.B|value\n\n#Text=Lyon wins\n"
            "1-1\t0-4\tLyon\tX\t_\n1-2\t5-9\twins\t_\tY\n"}, refused(r"several layers have spans \(A, B\)")),
    Shape("nif-turtle", "INCEpTION, export as NIF (Turtle)", {"note.ttl": "@prefix nif: <x> .\n"}, refused("NIF.*brat")),
)
