"""Every language through import, hygiene, selection, measures and tagger.

German, Spanish, Dutch and Portuguese are real text; the others are articles 1 and 3 of the Universal Declaration of
Human Rights, in the public domain.
"""

import json
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from _pytest.mark import ParameterSet

from core.corpora.corpus import Corpus
from core.corpora.hygiene import audit
from core.corpora.readers import ReadOptions, read
from core.projects import runs
from core.reporter import Silent
from core.results import Role
from core.selection import make_strategy
from core.selection.base import Batch, Source
from core.similarity.base import Sample, draw
from core.similarity.measures import make_measure
from core.tagging.network import Borrowed, new_recurrent
from core.text.sentence import Entity, Sentence
from core.text.words import tokenize
from core.training.settings import TaggerSettings
from tests.conftest import REAL_DATA, sentence
from tests.planted import kitchen
from tests.reporters import Recorder

Seal = Callable[..., Corpus]

SHORT = {
    "Hindi": """सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।
उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।
प्रत्येक व्यक्ति को जीवन, स्वाधीनता और वैयक्तिक सुरक्षा का अधिकार है।""",
    "Marathi": """सर्व मानवी व्यक्ती जन्मतःच स्वतंत्र आहेत व त्यांना समान प्रतिष्ठा व समान अधिकार आहेत.
त्यांना विचारशक्ती व सदसद्विवेकबुद्धी लाभलेली आहे व त्यांनी एकमेकांशी बंधुत्वाच्या भावनेने आचरण करावे.""",
    "Bengali": """সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।
তাঁদের বিবেক এবং বুদ্ধি আছে; সুতরাং সকলেরই একে অপরের প্রতি ভ্রাতৃত্বসুলভ মনোভাব নিয়ে আচরণ করা উচিত।
জীবন, স্বাধীনতা এবং দৈহিক নিরাপত্তায় প্রত্যেকের অধিকার আছে।""",
    "Tamil": """மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும் உரிமைகளிலும் சமமானவர்கள்.
அவர்கள் ஒருவருடனொருவர் சகோதர உணர்வுப் பாங்கில் நடந்துகொள்ளல் வேண்டும்.""",
    "Thai": """มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ
ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ
คนทุกคนมีสิทธิในการดำรงชีวิต เสรีภาพ และความมั่นคงแห่งตัวตน""",
    "Lao": """ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ, ສິດທິ, ເສລີພາບ ແລະ ຄວາມສະເໝີພາບເທົ່າທຽມກັນ.
ທຸກໆຄົນມີເຫດຜົນ ແລະ ຄວາມຄິດຄວາມເຫັນສ່ວນຕົວຂອງໃຜຂອງມັນ.""",
    "Khmer": """មនុស្សទាំងអស់ កើតមកមានសេរីភាព និងសមភាព ក្នុងផ្នែកសេចក្ដីថ្លៃថ្នូរនិងសិទ្ធិ។
មនុស្ស មានវិចារណញ្ញាណនិងសតិសម្បជញ្ញៈជាប់ពីកំណើត។""",
    "Burmese": """လူတိုင်းသည် တူညီလွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် လည်းကောင်း မွေးဖွားလာသူများ ဖြစ်သည်။
ထိုသူတို့သည် အချင်းချင်း မေတ္တာထား၍ ဆက်ဆံကျင့်သုံးသင့်၏။""",
    "Chinese": """人人生而自由，在尊严和权利上一律平等。
他们赋有理性和良心，并应以兄弟关系的精神相对待。
人人有权享有生命、自由和人身安全。""",
    "Japanese": """すべての人間は、生れながらにして自由であり、かつ、尊厳と権利とについて平等である。
人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。
すべて人は、生命、自由及び身体の安全に対する権利を有する。""",
    "Korean": """모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.
모든 사람은 생명과 신체의 자유와 안전에 대한 권리를 가진다.""",
    "Arabic": """يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.
وقد وهبوا عقلاً وضميراً وعليهم أن يعامل بعضهم بعضاً بروح الإخاء.
لكل فرد الحق في الحياة والحرية وسلامة شخصه.""",
    "Turkish": """Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.
Akıl ve vicdana sahiptirler ve birbirlerine karşı kardeşlik zihniyeti ile hareket etmelidirler.
Yaşamak, hürriyet ve kişi emniyeti her ferdin hakkıdır.""",
    "Swahili": """Watu wote wamezaliwa huru, hadhi na haki zao ni sawa.
Wote wamejaliwa akili na dhamiri, hivyo yapasa watendeane kindugu.
Kila mtu anayo haki ya kuishi, haki ya kuwa huru na haki ya kuwa salama nafsi yake.""",
}
REAL = {"German": "german-ep", "Spanish": "conll2002-es", "Dutch": "conll2002-nl", "Portuguese": "lener-br"}
USUAL = {"Hindi", "Thai", "Chinese", "Arabic", "German"}
DENSE = {"Thai", "Lao", "Khmer", "Burmese", "Chinese", "Japanese"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Texts of one language. texts: sentences without duplicates. dense: True if words are not separated by blanks."""

    name: str
    texts: Sequence[str]
    dense: bool


def real_texts(name: str) -> list[str]:
    """Return different sentences of 8 to 40 words from the beginning of a labelled corpus."""
    with (REAL_DATA / name / "train.conll").open(encoding="utf-8") as file:
        blocks = file.read(400_000).split("\n\n")[:-1]
    texts = (" ".join(line.split("\t")[0] for line in block.split("\n")) for block in blocks)
    return list(dict.fromkeys(text for text in texts if 8 <= len(text.split()) <= 40))[:12]


def param(name: str) -> ParameterSet:
    """Mark a language: `make test` takes one per writing system, `make test-full` all."""
    marks = [*([pytest.mark.real] * (name in REAL)), *([pytest.mark.full] * (name not in USUAL))]
    return pytest.param(name, marks=marks)


@pytest.fixture(params=map(param, [*SHORT, *REAL]))
def language(request: pytest.FixtureRequest) -> Language:
    name = request.param
    texts = real_texts(REAL[name]) if name in REAL else SHORT[name].split("\n")
    return Language(name=name, texts=texts, dense=name in DENSE)


def dressed(text: str) -> str:
    """Rewrite a text as another publisher may: tokenised, decomposed, with soft hyphens and zero-width characters."""
    return unicodedata.normalize("NFD", " ".join(tokenize(text)).replace("e", "e\u200b").replace("n", "n\u00ad"))


def last_word(text: str) -> tuple[int, int]:
    """Return start and end of the last word before the closing mark; without blanks, of the last letters."""
    end = len(text.rstrip(".。।။၏ "))
    start = text.rfind(" ", 0, end) + 1
    if end - start > 24:
        start = end - 12
    while unicodedata.category(text[start]).startswith("M"):  # a mark belongs to the letter before it
        start -= 1
    return start, end


def spelt(text: str, entity: Entity, tokens: Sequence[str]) -> tuple[int, int]:
    """Return start and end of an entity in characters of `text`."""
    at, borders = 0, []
    for token in tokens:
        at = text.index(token, at)
        borders.append((at, at := at + len(token)))
    return borders[entity.start][0], borders[entity.end - 1][1]


def test_labels_of_every_script_are_imported_at_their_offsets(language: Language, tmp_path: Path) -> None:
    rows = [
        {"text": text, "label": [[*last_word(text), "LAST"]]} for text in map(" ".join, map(str.split, language.texts))
    ]
    file = tmp_path / "labelled.jsonl"
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    sentences = list(read(file, ReadOptions(format="doccano")))
    assert [one.text for one in sentences] == [unicodedata.normalize("NFC", str(row["text"])) for row in rows]
    for one in sentences:
        (entity,) = one.entities or ()
        assert spelt(one.text, entity, one.tokens) == last_word(one.text)
        assert not any(unicodedata.category(token[0]).startswith("M") for token in one.tokens)
    plain = tmp_path / "plain.txt"
    plain.write_text("\n".join(language.texts), encoding="utf-8")
    words = [len(one.tokens) for one in read(plain, ReadOptions(format="txt"))]
    blanks = [len(text.split()) for text in language.texts]
    assert all(n > 2 * m if language.dense else n <= 2 * m for n, m in zip(words, blanks, strict=True))


def test_duplicates_and_leaks_are_found_in_every_script(language: Language, seal: Seal) -> None:
    texts = list(language.texts)
    changed = [f"{text} 77" for text in texts]
    found = audit(seal([*texts, *changed]), [], Silent())
    n = len(texts)
    assert not found.has("too_short").any()
    assert found.cluster.tolist()[:n] == list(range(n))  # different sentences are not near duplicates
    assert not found.has("exact_duplicate").any()
    held = audit(seal(texts), [seal([*map(dressed, texts[: n // 2])], "held")], Silent())
    assert held.has("leak").tolist() == [row < n // 2 for row in range(n)]
    assert held.leak_rules["exact"] == n // 2
    twins = audit(seal([*texts, *map(dressed, texts)]), [], Silent())
    assert twins.has("exact_duplicate").tolist() == [False] * n + [True] * n


@pytest.mark.parametrize("strategy", ["classifier", "ngram-perplexity"])
def test_selection_prefers_sentences_of_the_same_language(language: Language, seal: Seal, strategy: str) -> None:
    """Sentences of the same language are preferred to English ones by their words alone."""
    task = [sentence(text) for text in language.texts] * 3
    domain = [*language.texts, *kitchen(40)]

    def source(corpus: Corpus, size: int) -> Source:
        vectors = np.ones((size, 4), dtype=np.float16) / 2
        return Source(corpus=corpus, vectors=vectors, norms=np.ones(size, dtype=np.float32))

    made, recorder = make_strategy(strategy, {}, 1), Recorder()
    of_task = source(seal(task, "task"), len(task))
    made.prepare({Role.TASK: of_task, Role.DOMAIN: source(seal(domain, "domain"), len(domain))}, recorder)
    assert not [note for note in recorder.notes if "share no word" in note]
    rows = [sentence(text) for text in domain]
    ids = np.array([int(row.id, 16) for row in rows], dtype=np.uint64)
    scores = made.score(Batch(ids=ids, sentences=rows, vectors=np.ones((len(rows), 4), dtype=np.float16) / 2))
    own, other = scores[: len(language.texts)], scores[len(language.texts) :]
    assert own.max() < other.min() if strategy == "ngram-perplexity" else own.min() > other.max()
    if strategy == "classifier" and language.dense:  # a note reports that D_C shares no word with T_C
        apart = source(seal(kitchen(40), "apart"), 40)
        made.prepare({Role.TASK: of_task, Role.DOMAIN: apart}, recorder)
        assert [note for note in recorder.notes if "share no word" in note]


def test_similarity_ignores_tokenisation_and_separates_languages(language: Language, seal: Seal) -> None:
    """A text is as similar to its tokenised version as to itself, and another language is not similar."""

    def sampled(texts: Sequence[str], name: str) -> Sample:
        corpus = seal(list(texts), name)
        return draw([corpus], name=name, cap=None, seed=0, tokens="words", lowercase=False, report=Silent())

    own = sampled(language.texts, "own")
    cut = sampled([" ".join(tokenize(text)) for text in language.texts], "cut")
    strange = sampled(kitchen(len(language.texts)), "strange")
    recorder = Recorder()
    for name in ("tvc", "ppl", "tvcc"):
        measure = make_measure(name, {}, seed=0, vocabulary_size=500)
        self_, tokens, far = (
            measure.compare(measure.fit(source, Silent()), own, recorder).value for source in (own, cut, strange)
        )
        assert self_ == tokens
        assert far > 2 * self_ if name == "ppl" else self_ == 100 > 2 * far
    assert any(note.startswith("content words covered") and "is for English" in note for note in recorder.notes)


def test_tagger_finds_training_entities_in_text_of_every_script(language: Language) -> None:
    """A tagger finds its training entities in plain text, at the labelled character offsets."""
    torch.manual_seed(0)
    train: list[Sentence] = []
    for text in language.texts[:3]:
        tokens = tokenize(text)
        places = [spelt(text, Entity(start=i, end=i + 1, type="W"), tokens) for i in range(len(tokens))]
        start, end = last_word(text)
        inside = [i for i, (low, high) in enumerate(places) if start <= low and high <= end]
        train.append(sentence(text, [(inside[0], inside[-1] + 1, "LAST")]))
    network = TaggerSettings(network="bilstm", hidden=16)
    tagger = new_recurrent(network, train, ["LAST"], Borrowed(assisting=[]))
    optimizer = torch.optim.Adam(tagger.parameters(), lr=0.02)
    tagger.train()
    for _ in range(60):
        optimizer.zero_grad()
        tagger(**tagger.batch(train))["loss"].backward()
        optimizer.step()
    tagger.eval()
    plain = [sentence(one.text) for one in train]
    with torch.no_grad():
        predictions = tagger.predict(plain)
    for one, prediction in zip(plain, predictions, strict=True):
        (entity,) = prediction.entities
        low, high = spelt(one.text, entity, one.tokens)
        assert one.text[low:high] == one.text[slice(*last_word(one.text))]


def test_an_import_warns_of_text_that_the_encoder_cannot_represent(language: Language, tmp_path: Path) -> None:
    """The vocabulary of the bundled encoder has the letters of Hindi and Korean, and few of the warned scripts."""
    file = tmp_path / "text.txt"
    file.write_text("\n".join(language.texts), encoding="utf-8")
    notes = runs.execute("add", {"path": str(file)}).state().notes
    warned = [note for note in notes if "of its pieces are unknown to the encoder minilm" in str(note)]
    assert len(warned) == (language.name in DENSE | {"Tamil"})


def test_training_warns_of_text_that_its_encoder_cannot_represent(seal: Seal) -> None:
    """The encoder `tiny` knows only ASCII."""
    texts = [f"{text} {i}" for text in SHORT["Bengali"].split("\n") for i in range(12)]
    for rows, known in ((texts, False), ([f"{text} ." for text in kitchen(36)], True)):
        name = "english" if known else "bengali"
        labelled = seal([sentence(text, [(0, 1, "X")]) for text in rows], name, labelled=True).fingerprint
        few = {"init": "tiny", "epochs": 1, "batch_size": 16}
        pretrained = runs.execute("pretrain", {"corpora": (labelled,), **few})
        tuned = runs.execute("finetune", {"train": labelled, "dev": labelled, "seeds": (1,), **few})
        for run in (pretrained, tuned):
            warned = [
                note for note in run.state().notes if f"{name}: " in note and "unknown to the encoder tiny" in note
            ]
            assert len(warned) == (not known)
            fit = " ".join(note for note in run.state().notes if note.startswith(f"tiny on {name}: "))
            assert ("pieces on average" in fit) == known
            assert "that its vocabulary does not cover" not in fit  # reported once, by the other warning
