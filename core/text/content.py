"""Find content words: English words outside the closed word classes (SOURCES.md, Content words).

Function words, punctuation, numbers and adverbs in -ly are not content words. No part-of-speech tagger is used, so the
result is deterministic and needs no download.
"""

from collections.abc import Iterable

# Articles, pronouns, prepositions, conjunctions, auxiliaries, particles, question words, number words, adverbs of
# place, time and degree, and parts of contractions ("don", "t", "ll").
_CLOSED = """
    a an the this that these those each every either neither both all any some no none such what which whose
    i me my mine myself we us our ours ourselves you your yours yourself yourselves thou thee thy he him his himself
    she her hers herself it its itself they them their theirs themselves one ones oneself who whom whoever whatever
    whichever someone somebody something anyone anybody anything everyone everybody everything nobody nothing
    another other others else many much more most few fewer fewest little less least several enough
    about above abroad across after against ahead along alongside amid amidst among amongst around as aside at atop
    away back before behind below beneath beside besides between beyond by concerning considering despite down during
    except excluding following for forth from in including inside into like minus near notwithstanding of off on onto
    opposite out outside over past pending per plus regarding regardless round save since than through throughout
    thru till to together toward towards under underneath unlike until unto up upon versus via vs with within without
    and but or nor so yet for because although though while whereas whilst if unless whether lest once provided
    albeit hence thus therefore thereby therein thereof thereafter thereto herein hereby hereof hereto hereafter
    hereunder thereunder wherein whereby whereof whereupon however moreover furthermore nevertheless nonetheless
    meanwhile otherwise instead anyway indeed
    be am is are was were been being have has had having do does did doing done can could may might must shall should
    will would ought need dare cannot used let
    not n't never ever when whenever where wherever why how here there then now again already also always almost
    altogether apart even far further hardly just maybe perhaps quite rather really seldom sometimes sometime
    somewhat somehow somewhere anywhere everywhere nowhere soon still too twice thrice very well often only
    today tomorrow yesterday tonight later earlier afterwards afterward beforehand ago
    zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion
    first second third fourth fifth sixth seventh eighth ninth tenth half
    don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn mustn needn ain shan mightn
    t s d m ll ve re em til o y
    etc eg ie e.g. i.e. cf yes yeah oh ah hey hi hello please ok okay
    's 'd 'll 're 've 'm
"""
FUNCTION_WORDS = frozenset(_CLOSED.split())

# Words in -ly that are not adverbs, or that are another part of speech at least as often.
_LY_WORDS = """
    ally anomaly apply assembly belly bully butterfly comply costly curly daily deadly disassembly early elderly
    family fly folly friendly gully hilly holly holy homely imply italy jelly july lily likely lively lonely lovely
    melancholy monopoly monthly multiply oily orderly quarterly rally rely reply scholarly sickly silly supply tally
    timely ugly unlikely weekly wobbly woolly yearly
"""
_LY = frozenset(_LY_WORDS.split())


def is_content(word: str) -> bool:
    """Return True if the word's spelling suggests a noun, a name, a verb or an adjective."""
    folded = word.casefold()
    if folded in FUNCTION_WORDS or not any(letter.isalpha() for letter in folded):
        return False
    # In words of three letters, -ly is not a suffix (sly, ply).
    return not folded.endswith("ly") or folded in _LY or len(folded) < 4


def content_words(words: Iterable[str]) -> frozenset[str]:
    """Return the content words among `words`, in their original spelling."""
    return frozenset(filter(is_content, words))
