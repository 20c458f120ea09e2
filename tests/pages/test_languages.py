"""Three scripts, from files to a selected corpus as the page Selection shows it.

T_C has sentences about human rights. D_C has sentences about other rights from the same template, and more sentences
about cooking.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import product
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.importing import view as corpora
from core.selection import view as selections
from tests.pages.drawing import add, opened_on, select

PAGE = "pages/3_Selection.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Sentences of a language. right: template for one of `rights`. dish: template for `foods` and `pots`."""

    right: str
    rights: Sequence[str]
    dish: str
    foods: Sequence[str]
    pots: Sequence[str]

    @property
    def of_rights(self) -> list[str]:
        return [self.right.format(each) for each in self.rights]

    @property
    def of_dishes(self) -> list[str]:
        return [self.dish.format(*each) for each in product(self.foods, self.pots)]


LANGUAGES: Mapping[str, Language] = {
    "Hindi": Language(
        right="प्रत्येक व्यक्ति को {} का अधिकार है और कानून इसकी रक्षा करता है।",
        rights=(
            *("जीवन", "स्वतंत्रता", "शिक्षा", "काम", "विश्राम", "संपत्ति", "सुरक्षा", "नागरिकता"),
            *("विवाह", "मत देने", "न्याय", "आवास", "स्वास्थ्य", "सम्मान", "समानता", "शरण"),
        ),
        dish="कढ़ाई में {} डालकर {} पर बीस मिनट पकाएँ और गरम परोसें।",
        foods=("आलू", "दाल", "चावल", "प्याज", "टमाटर", "पनीर"),
        pots=("धीमी आँच", "तेज़ आँच", "मध्यम आँच", "चूल्हे", "कोयले"),
    ),
    "Chinese": Language(
        right="人人有权享有{}，法律应当予以保护。",
        rights=(
            *("生命", "自由", "教育", "工作", "休息", "财产", "安全", "国籍"),
            *("婚姻", "选举", "公正审判", "住房", "健康", "尊严", "平等", "庇护"),
        ),
        dish="把{}放进{}里，加一勺盐，小火煮二十分钟。",
        foods=("土豆", "豆腐", "米饭", "洋葱", "番茄", "白菜"),
        pots=("铁锅", "砂锅", "蒸笼", "汤锅", "烤箱"),
    ),
    "Arabic": Language(
        right="لكل شخص الحق في {} ويحميه القانون دون أي تمييز.",
        rights=(
            *("الحياة", "الحرية", "التعليم", "العمل", "الراحة", "التملك", "الأمان", "الجنسية"),
            *("الزواج", "الانتخاب", "محاكمة عادلة", "السكن", "الصحة", "الكرامة", "المساواة", "اللجوء"),
        ),
        dish="ضع {} مع الملح {} واطبخها عشرين دقيقة ثم قدمها ساخنة.",
        foods=("البطاطا", "العدس", "الأرز", "البصل", "الطماطم", "الجبن"),
        pots=("في القدر", "في المقلاة", "في الفرن", "على النار", "على الجمر"),
    ),
}
N = 8  # number of sentences about rights in T_C, and in D_C


def closest(app: AppTest) -> list[str]:
    """Return the sentences in the page's table of those closest to the task corpus."""
    [table] = [
        each.proto.body for each in app.get("html") if "<caption>The closest to the task corpus" in each.proto.body
    ]
    return [unescape(text) for text in re.findall(r"<td>([^<]*)</td></tr>", table)]


@pytest.mark.parametrize(
    "name",
    ["Hindi", "Chinese", pytest.param("Arabic", marks=pytest.mark.full)],
)
def test_sentences_like_the_task_are_selected_and_shown_unchanged(name: str, home: Path, tmp_path: Path) -> None:
    language = LANGUAGES[name]
    wanted, others = language.of_rights[N:], language.of_dishes
    pile = [line for pair in zip(others, wanted, strict=False) for line in pair] + others[len(wanted) :]
    for role, lines in (("task", language.of_rights[:N]), ("domain", pile)):
        (file := tmp_path / f"{role}.txt").write_text("\n".join(lines), encoding="utf-8")
        corpora.set_role(role, add(file, name=role).result()["corpus"])
    # Sentences from one template are near duplicates.
    run = select("classifier", str(N), encoder="tiny", keep=("near_duplicate",))
    result = selections.result(run)
    assert (result.selected, result.of, any(result.dropped.values())) == (N, len(pile), False)
    selected = [each.text for each in corpora.find(result.corpus).take(range(N))]
    assert sorted(selected) == sorted(wanted)
    app = opened_on(PAGE, run)
    assert not app.error
    assert not app.warning
    shown = closest(app)
    assert shown
    assert shown == selected[: len(shown)]
