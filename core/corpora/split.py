"""Split a document into sentences, by rules that are the same for every language with punctuation.

A sentence ends at . ! ? … (or their Arabic, Devanagari, Armenian and Ethiopic counterparts), after any closing quotes
and brackets. White space and a possible start of a sentence must follow: a capital, a digit, a letter of a script
without case, an opening mark, or an item's letter in brackets. 。！？ always end a sentence, and so does a blank line.

A full stop does not end a sentence
- after a title or a reference word (Dr. Sec. Fig. v. vs. cf. e.g. bzw. Sr. ...), or after a word with its number (No.
  4, Art. 5, Ziff. 3, Hauptstr. 5, temp. 37.2);
- after single letters (J. Smith, J.-P. Martin, U.S. Army), unless the letter is a label (Annex A.) or a common opener
  follows: a word that often begins a sentence (U.S. The ...);
- after a dosage abbreviation (b.i.d.), unless a capital follows;
- after Inc. Ltd. etc. a.m. and similar abbreviations, unless a common opener follows;
- after a number at the start or after a colon (1. The patient; Diagnosis: 1. Anemia);
- in a date (12. 3. 2019), or in a German ordinal, recognised by the word before it (am 3. Tag, im 2. Stock).
The rules make errors. Users should split important text by hand before the import.
"""

import re
from collections.abc import Iterator

_MARKS = ".!?…؟۔।॥։።፧"
_END = re.compile(  # a match begins only at the start of a run of marks, so that a million dots take linear time
    rf"""(?<![{_MARKS}])(?P<mark>[{_MARKS}]++)(?P<close>["'”’“‘»)\]}}]*+)(?=\s++(?P<next>\S++))"""
    r"""|(?<![。！？])[。！？]++[」』”’）]*+(?=\s*+\S)|\n[^\S\n]*+\n"""
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[^\s(\[{\"'“‘«„]*\Z")
_INITIALS = re.compile(r"(?:[^\W\d_]\.-?)*[^\W\d_]\Z")
_ENUMERATION = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,3})*|[ivxIVX]{1,5})\)?\Z")
_INITIAL_NEXT = re.compile(r"[^\W\d_]\.")
_NUMBERED = re.compile(r"[\d§(]|[IVXLC]+\b")
_ITEM = re.compile(r"\(?(?:[a-z]{1,2}|[ivx]{1,5}|\d{1,2})\)")
_DAY = re.compile(r"[0-3]?\d")
_MONTH_AND_YEAR, _YEAR = re.compile(r"[01]?\d\.\s?\d{2,4}\b"), re.compile(r"(?:19|20)\d\d\W*")
_DAY_BEFORE = re.compile(r"\b[0-3]?\d\.\Z")

# A full stop after these abbreviations does not end a sentence, because a name, a number or the rest of a citation
# follows.
_NEVER = _words("""
    av avda gem adm al arg arts assoc bd bldg brig bzw ca cap capt cf ch chap cl cmdr col cpl d.h dept dip dir div
    dr dra drs e.g ed eds eg eq eqs esp ex exc excma excmo fasc fed ff fig figs fol gen gov gr hon hr i.e ibid ie
    ilma ilmo ing inkl insb insbes ll lt lic m.a maj max med messrs mgr mind mme mlle mlles mmes mr mrs ms msgr mt
    mts n.b nos nr nrn núm núms obs op.cit p par para paras pars pg pgs ph pl pp pres prof profa proc prop pt rd ref
    refs rep resp rev rs sec secs sect sen sgt sig sr sra sras srta sog sres st sta ste sto supp suppl tab tel u.a
    urt v var vgl viz vol vols vs z.b av bspw civ crim dipl dña entspr evtl exkl fr frl geb ggf ggfs jur lat phil
    zzgl avv dhr dott ee mevr
""")
# A full stop after these words ends a sentence ("state of the art. The"), unless a number, § or a bracket follows
# ("Art. 5", "Art. IV").
_BEFORE_NUMBER = _words("""
    abd ap apdo app apps apt art az bl buchst cir cláus cr creat div encl encls exh fol fols hb hct krea lit no nota
    pág págs plt randnr rdnr reg regs rn rz segm tab temp wbc ziff
""")
# A single letter after one of these words is a label, not an initial: "Annex A.", "letra b."
_LETTERED = _words("""
    anexo anlage annex appendix apartado buchstabe class exhibit group grade hepatitis letra letter lit option part
    plan schedule section segment stage type typ vitamin
""")
_MONTHS = _words("""
    januar jänner februar märz april mai juni juli august september oktober november dezember jan feb mär apr jun
    jul aug sept sep okt nov dez
""")
# A full stop after these dosage abbreviations ends a sentence if a capital follows.
_DOSES = _words("b.i.d t.i.d q.i.d q.d q.o.d q.h.s p.r.n p.o s.c i.v i.m h.s v.o")
# In German, a number with a full stop after one of these words is an ordinal ("am 3. Tag").
_ORDINAL = _words("""
    ab am an beim bis das dem den der des die ein eine einem einen einer eines im jeden jeder pro seit vom zum zur
""")
# A full stop after these abbreviations ends a sentence only if a common opener (see `_OPENERS`) follows.
_MAYBE = _words("""
    a.m abs ave bros co corp dec esq etc feb inc jan jr jul jun ltd ltda llc mar apr aug sep sept oct nov mio mrd
    p.m pty plc s.a s.p.a s.l sq ud uds usw usf approx aprox avg min hr hrs wk wks yr yrs mo mos tabl inj déc févr janv
    juil uu
""")
_OPENERS = _words("""
    a after all although an and as at because before both but by during each for from he her here his however i if
    in it its many moreover most no none on one other our patients several she since some such that the their then
    there therefore these they this those thus to under we what when where while who with you der die das ein eine
    er sie es wir ich im in am auf bei nach mit und alle auch aus beim bis da dann daher das dem den der des deren
    dies diese dieser dieses durch einem einen einer eines falls für gegen ihr ihre ist jede jeder kein keine man
    nur ohne seine sein seit so sofern soweit sind über um unter vom von vor war waren wenn werden wird zum zur
    zwischen además al así como con contra cuando desde este esta estos estas hasta lo si sin sobre su sus según
    también todo toda tras y el la los las un una en es por para se o os as um uma no na em le les une il elle de
    het een
""")


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of every sentence in `text`, in order, without surrounding white space."""
    start = 0
    for match in _END.finditer(text):
        if match["mark"] is not None and not _ends(text, start, match):
            continue
        yield from _trimmed(text, start, match.end())
        start = match.end()
    yield from _trimmed(text, start, len(text))


def split(text: str) -> list[str]:
    """Return the sentences of `text`."""
    return [text[start:end] for start, end in sentences(text)]


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    if left < len(piece):
        yield start + left, start + len(piece.rstrip())


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    following = match["next"].lstrip("\"'“‘«„([{¿¡-–—•*")
    first = following[:1]
    if _ITEM.match(match["next"]):
        first = following = "A"
    if first.islower() or (not first and match["next"][:1] in ",;:)]}"):
        return False
    if match["mark"] != "." or match["close"]:
        return True
    return _ends_by_word(text, start, match, following)


def _ends_by_word(text: str, start: int, match: re.Match[str], following: str) -> bool:
    """Return True if a full stop after a word ends a sentence. Called if the next word may begin a sentence.

    start: start of the sentence. following: the next word, without marks before it.
    """
    # Look back at most 40 characters, because all abbreviations are shorter. Without a limit, text without blanks would
    # take quadratic time.
    low = max(start, match.start() - 40)
    word = _last_word(text, low, match.start())
    before = text[low : match.start() - len(word)].rstrip()
    first_word = re.split(r"\W", following, maxsplit=1)[0].lower()
    opener = first_word in _OPENERS and not _INITIAL_NEXT.match(following)  # "A." is an initial, not an article
    lowered = word.lower().rpartition(".-")[2]  # "ing" of "Dipl.-Ing."
    if lowered in _BEFORE_NUMBER or lowered.endswith("str"):  # "Hauptstr. 5", "Berliner Str. 5"
        return not _NUMBERED.match(match["next"])
    if lowered in _NEVER or lowered in _DOSES:
        return (lowered in _DOSES or (lowered in ("max", "ex") and opener)) and following[:1].isupper()
    if _INITIALS.fullmatch(word):
        return opener or _last_word(before, 0, len(before)).lower() in _LETTERED
    if lowered in _MAYBE:
        return opener
    enumerates = _ENUMERATION.fullmatch(word) and (not before or before.endswith(":"))
    return not enumerates and not (
        _DAY.fullmatch(word) and (first_word in _MONTHS or _is_ordinal(text, before, match, opener))
    )


def _is_ordinal(text: str, before: str, match: re.Match[str], opener: bool) -> bool:
    """Return True if a number of one or two digits with a full stop belongs to a date, or is a German ordinal."""
    if _MONTH_AND_YEAR.match(text[match.end() : match.end() + 12].lstrip()):
        return True
    if _YEAR.fullmatch(match["next"]) and _DAY_BEFORE.search(before):
        return True
    return not opener and _last_word(before, 0, len(before)).lower() in _ORDINAL


def _last_word(text: str, low: int, high: int) -> str:
    match = _WORD.search(text[low:high])
    return match[0] if match else ""
