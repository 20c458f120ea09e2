"""Words in every script: tokens, and texts that fold to the same sentence."""

import re
import sys
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.text.words import clean, fold, is_alphanumeric, joined, letters, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The court's 2nd order.", "The court ' s 2nd order ."),
        ("हिन्दी में पढ़ो।", "हिन्दी में पढ़ो ।"),
        ("आपल्या देशात", "आपल्या देशात"),
        ("বাংলা ভাষা", "বাংলা ভাষা"),
        ("தமிழ் மொழி,", "தமிழ் மொழி ,"),
        ("മലയാളം", "മലയാളം"),
        ("مُحَمَّدٌ رَسُولٌ", "مُحَمَّدٌ رَسُولٌ"),
        ("کتاب\u200cها", "کتاب\u200cها"),
        ("soft\u00adhyphen", "soft\u00adhyphen"),
        ("2020年に東京タワーで", "2020 年 に 東 京 タ ワ ー で"),
        ("ที่นี่ ๒ คน", "ที่ นี่ ๒ ค น"),
        ("ສັນຍາ", "ສັ ນ ຍ າ"),
        ("ភាសា", "ភា សា"),
        ("မြန်မာ", "မြ န် မာ"),
        ("한국어 문장", "한국어 문장"),
        ("☂\ufe0f 👩\u200d⚕\ufe0f", "☂\ufe0f 👩\u200d ⚕\ufe0f"),
        ("\u200fשָׁלוֹם", "\u200fשָׁלוֹם"),
        ("a \u0301 b", "a \u0301 b"),
    ],
)
def test_words_of_every_script_are_tokenised(text: str, tokens: str) -> None:
    assert tokenize(text) == tuple(tokens.split())


@given(st.text())
def test_tokenising_loses_only_white_space(text: str) -> None:
    assert "".join(tokenize(text)) == "".join(text.split())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＢＣ株式会社は１２３円", "ABC株式会社は123円"),
        ("ﾃﾞｰﾀ", "データ"),
        ("The con\u00adtract be\u200bgins\u2060 now\ufeff", "the contract begins now"),
        ("İSTANBUL ILICA", "istanbul ılıca"),
        ("مُحَمَّدٌ رَسُولُ اللّٰهِ", "محمد رسول الله"),
        ("كتـــاب", "كتاب"),
        ("ﻛﺘﺎﺏ", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("за\u0301мок", "Замок"),
        ("Straße", "STRASSE"),
        ("café", "cafe\u0301"),
        ("合同 自 签字 之日 起 生效 。", "合同自签字之日起生效。"),
        ("ประเทศ ไทย รวม เลือด", "ประเทศไทยรวมเลือด"),
        ("ทํา", "ทำ"),
        ("He did n't pay -LRB- or can not -RRB- .", "He didn't pay (or cannot)."),
        ("I 'm gon na say she does n’t", "I'm gonna say she doesn’t"),
        ("हिन्दी में", "हिन्दी, में।"),
    ],
)
def test_spellings_of_one_sentence_fold_to_the_same_text(one: str, other: str) -> None:
    assert joined(fold(one)) == joined(fold(other))


NINE = "काल कुल कील कोल केला किला काला काली कौल"


def test_folding_keeps_different_words_different() -> None:
    assert fold("I did n't -LRB- can not -RRB-") == fold("I didn't (cannot)") == "i didn t cannot"
    assert [letters(text) for text in ("plain", "né", "ที่นี่", "年2020年", "हिन्दी")] == [0, 0, 2, 2, 0]
    assert all(map(is_alphanumeric, ("a1", "हिन्दी", "مُحَمَّد")))
    assert not any(map(is_alphanumeric, ("a-b", "।", "a_b", "")))
    assert len(set(map(fold, NINE.split()))) == 9
    different = [
        ("उसने दिल्ली में पानी पिया", "उसने दिल्ली मे पाना पाया"),
        ("ที่", "ทู่"),
        ("வரு வாரு", "வாரு வரு"),
        ("Germany 1 2 Italy", "Germany 12 Italy"),
        ("মা", "মি"),
    ]
    for one, other in different:
        assert joined(fold(one)) != joined(fold(other))


@given(st.text(st.characters(max_codepoint=0x24F, exclude_characters="\u00ad")))
def test_tokens_of_western_text_follow_one_pattern(text: str) -> None:
    assert tokenize(text) == tuple(re.findall(r"\w+|[^\w\s]", text))


@pytest.mark.parametrize("char", ["\u0301", "\u200d", "ा", "年", "ที่", "n't ", "1 ", "-lrb-", "ﷺ", "é"])
def test_hostile_text_takes_linear_time(char: str) -> None:
    text = "x" + char * 50_000
    started = process_time()
    assert len(clean(text)) > 100
    joined(fold(text))
    tokenize(text)
    assert process_time() - started < 5


@pytest.mark.full
def test_every_character_can_be_folded() -> None:
    everything = "".join(chr(n) for n in range(sys.maxunicode + 1) if not 0xD800 <= n < 0xE000)
    assert fold(everything)
    assert "".join(tokenize(everything)) == "".join(everything.split())
