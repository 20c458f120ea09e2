"""Sentences of a document, cut by a small rule, the same for every language that marks them.

A sentence ends at . ! ? … (or their Arabic, Devanagari, Armenian and Ethiopic kin) with any closing quotes
and brackets, if white space and then something that can begin a sentence follows: a capital, a digit,
a letter of a script without case, an opening mark. 。！？ end one by themselves. A blank line always does.

A full stop does not end one
- after a title or a reference word (Dr. No. Sec. Art. Fig. v. vs. cf. e.g. bzw. Sr. ...);
- after a single letter or a run of them (J. Smith, U.S. Army, b.i.d.), unless a common opener follows (U.S. The ...);
- after Inc. Ltd. etc. a.m. and the like, unless a common opener follows;
- after a number that stands alone at the start (1. The patient).
It is a rule, not a model: for text that matters, split it before adding it.
"""

import re
from collections.abc import Iterator

_MARKS = ".!?…؟۔।॥։።፧"
_END = re.compile(  # a run of marks is entered at its start alone, so that a million dots take linear time
    rf"""(?<![{_MARKS}])(?P<mark>[{_MARKS}]++)(?P<close>["'”’»)\]}}]*+)(?=\s++(?P<next>\S++))"""
    r"""|(?<![。！？])[。！？]++[」』”’）]*+(?=\s*+\S)|\n[^\S\n]*+\n"""
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[^\s(\[{\"'“‘«„]*\Z")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]\Z")
_ENUMERATION = re.compile(r"\(?(?:\d{1,3}(?:\.\d{1,3})*|[ivxIVX]{1,5})\)?\Z")

# Followed by a name, a number or the rest of the citation; they do not end a sentence.
_NEVER = _words("""
    av avda gem adm al arg art arts assoc bd bldg brig bzw ca cap capt cf ch chap cl cmdr col cpl d.h dept dip dir div
    dr dra drs e.g ed eds eg eq eqs esp ex exc fasc ff fig figs fol gen gov gr hon i.e ibid ie ll lt
    m.a maj max mgr mme mlle mlles mmes mr mrs ms msgr mt mts n.b nos nr nrn no núm obs op.cit p par para paras pars
    pg pgs ph pl pp pres prof profa proc prop pt ref refs rep resp rev rs sec secs sect sen sgt sig sr sra sras srta
    sres st sta ste sto supp suppl tab tel u.a v var viz vol vols vs z.b
""")
# Can end a sentence as well as stand within one.
_MAYBE = _words("""
    a.m abs ave bros co corp dec esq etc feb inc jan jr jul jun ltd ltda llc mar apr aug sep sept oct nov mio mrd
    p.m pty plc s.a s.p.a sq usw approx avg min hr hrs wk wks yr yrs mo mos tabl inj
""")
_OPENERS = _words("""
    a after all although an and as at because before both but by during each for from he her here his however i if
    in it its many moreover most no none on one other our patients several she since some such that the their then
    there therefore these they this those thus to under we what when where while who with you der die das ein eine
    er sie es wir ich im in am auf bei nach mit und el la los las un una en es por para se o os as um uma no na em
    le les une il elle de het een
""")


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of every sentence in `text`, in order, without the white space around them."""
    start = 0
    for match in _END.finditer(text):
        if match["mark"] is not None and not _ends(text, start, match):
            continue
        yield from _trimmed(text, start, match.end())
        start = match.end()
    yield from _trimmed(text, start, len(text))


def split(text: str) -> list[str]:
    """The sentences of `text`."""
    return [text[start:end] for start, end in sentences(text)]


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    if left < len(piece):
        yield start + left, start + len(piece.rstrip())


def _ends(text: str, start: int, match: re.Match[str]) -> bool:
    following = match["next"].lstrip("\"'“‘«„([{¿¡-–—•*")
    first = following[:1]
    if first.islower() or (not first and match["next"][:1] in ",;:)]}"):
        return False
    if match["mark"] != "." or match["close"]:
        return True
    word = _last_word(text, max(start, match.start() - 40), match.start())
    opener = re.split(r"\W", following, maxsplit=1)[0].lower() in _OPENERS
    lowered = word.lower()
    if lowered in _NEVER:
        # "The answer is no. The court": a reference word only before what it refers to.
        return lowered in ("no", "art", "max", "ex") and opener and first.isupper()
    if lowered in _MAYBE or _INITIALS.fullmatch(word):
        return opener
    return not (_ENUMERATION.fullmatch(word) and not text[start : match.start() - len(word)].strip())


def _last_word(text: str, low: int, high: int) -> str:
    match = _WORD.search(text[low:high])
    return match[0] if match else ""
