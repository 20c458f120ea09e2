"""`llm`: ask a language model that the user runs to tag test sets, and score what it finds. Nothing is trained.

The result shows how well the model works with a few examples from the training set (SOURCES.md, Language models).
Artifacts: as for `evaluate`, one split per test set.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Self

from pydantic import model_validator

from core.config import Config, option, refuse_download
from core.errors import ConfigError, CorpusError
from core.kind import About, Job, Kind
from core.llm.addresses import server_at
from core.llm.align import aligned
from core.llm.answers import Answer, Answers
from core.llm.asking import ask_all, in_words
from core.llm.client import Client, check_reachable
from core.llm.examples import Nearest
from core.llm.prompt import beginning, prompt, quotes_in, request
from core.runs.store import RunStore
from core.shown import count
from core.tagging.evaluations import OverSeeds, labelled, name_of_test_set, score_found, types_of
from core.text.sentence import Prediction, Sentence

ASKING = ("llm", "queue")  # kinds of run that ask a model and store its answers


class LlmOptions(Config):
    """Options that `llm` runs and experiments share: the allowed host, the examples, and the limits of requests."""

    allow_host: str = option("", "Host of the address, if it is another computer. All sentences are sent to this host.")
    examples: int = option(
        5,
        "Number of examples per sentence: the training sentences that share most words with the sentence.",
        ge=0,
        le=100,
    )
    guidelines: str = option(
        "", "Text for the prompt that explains what belongs to each type and what does not.", max_length=20_000
    )
    max_tokens: int = option(1024, "Longest answer, reasoning included.", unit="tokens", ge=16, le=100_000)
    timeout: float = option(120.0, "Time limit of one request.", unit="seconds", gt=0, le=3600)
    retries: int = option(2, "Number of repetitions of a request without a usable answer.", ge=0, le=10)
    at_once: int = option(
        1, "Number of parallel requests. Above 1, a server may give slightly different answers.", ge=1, le=64
    )


class LlmConfig(LlmOptions):
    """Options: the model, its server, the training set and the test sets, in addition to `LlmOptions`."""

    model: str = option(..., "Name of the model on its server.", min_length=1, max_length=200)
    train: str = option(..., "Training set, which gives the types to ask for and the examples.", corpus=True)
    test: tuple[str, ...] = option(..., "Test sets: labelled sentences.", corpus=True, min_length=1)
    address: str = option(
        "http://127.0.0.1:11434/v1",
        "Address of an OpenAI-compatible server on this computer: Ollama, vLLM, llama.cpp. If it needs a key, set the "
        "environment variable WINNOW_LLM_KEY.",
    )

    @model_validator(mode="after")
    def _allowed(self) -> Self:
        tags = self.model.lower().split(":")[1:]
        if server_at(self.address, self.allow_host).here and any(f"-{tag}".endswith("-cloud") for tag in tags):
            raise ConfigError(
                f"model: Ollama on this computer would send all sentences for {self.model} to ollama.com; choose a "
                "model that runs here, or give the address https://ollama.com/v1 with allow_host=ollama.com."
            )
        return self

    def settled(self) -> Self:
        """Return the options with normalised address and host, so that equal runs have the same key."""
        server = server_at(self.address, self.allow_host)
        return self.model_copy(update={"address": server.address, "allow_host": "" if server.here else server.host})


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmResult:
    """Result of an `llm` run.

    sentences: number of sentences in all test sets. unanswered: {reason: number of sentences without a usable answer};
    these count as sentences without entities. quotes: number of entities in all answers. dropped: {reason: number of
    quotes that could not be aligned} (`align`). tests: scores on each test set. seconds: total time of the requests for
    all usable answers, including requests of other runs.
    """

    sentences: int
    unanswered: Mapping[str, int]
    quotes: int
    dropped: Mapping[str, int]
    tests: Sequence[OverSeeds]
    seconds: float


class _Requests:
    """The requests of a run. types: entity types of the training set, sorted."""

    def __init__(self, config: LlmConfig, train: Sequence[Sentence], types: Sequence[str]) -> None:
        self._config, self._train = config, train
        self._nearest, self._begin = Nearest(train), beginning(types, config.guidelines)

    def body(self, sentence: Sentence, hint: str = "") -> bytes:
        """Return the request about a sentence. hint: text to insert before the sentence in the prompt."""
        rows = self._nearest.of(sentence, self._config.examples)
        # The nearest example comes last, next to the sentence.
        examples = [self._train[row] for row in reversed(rows)]
        whole = prompt(self._begin, examples, sentence, hint)
        return request(self._config.model, whole, self._config.max_tokens)

    def key(self, sentence: Sentence) -> str:
        """Return the hash of the request about a sentence. It does not depend on the address."""
        return sha256(self.body(sentence)).hexdigest()


def check(config: LlmConfig, _: Job) -> None:
    """Check that the server can be reached, before anything is computed. Errors: ResourceError."""
    check_reachable(server_at(config.address, config.allow_host))


def run(config: LlmConfig, job: Job) -> LlmResult:
    """Ask the model about each test sentence, align its answers, and return their scores."""
    refuse_download(config.model_dump())  # again, because an experiment starts this run without the check
    tests = [labelled(job.corpus(mark)) for mark in config.test]
    train, types = _taught(config, job)
    _note(job, train, tests)
    keys, answers, unanswered = _asked(config, job, train, types, tests, without="count as sentences without entities")
    return _scored(job, tests, keys, answers, types, unanswered=unanswered)


def find(config: LlmConfig, sentences: Sequence[Sentence], job: Job) -> list[Prediction]:
    """Return the entities that the model finds in sentences. The requests are the same as those of `run`.

    A sentence without a usable answer gets no entity. Errors: CorpusError if no training sentence has an entity; errors
    of `server_at` and `ask_all`.
    """
    train, types = _taught(config, job)
    [keys], answers, _ = _asked(config, job, train, types, [sentences], without="have no suggestion")
    return [_read(sentence, answers.get(key), types)[0] for sentence, key in zip(sentences, keys, strict=True)]


def _taught(config: LlmConfig, job: Job) -> tuple[list[Sentence], list[str]]:
    """Return the training sentences and their types, sorted. Errors: CorpusError if no sentence has an entity."""
    job.context.stage("reading the labelled sentences")
    corpus = job.corpus(config.train)
    train = labelled(corpus)
    if not (types := sorted(types_of(train))):
        raise CorpusError(f"{corpus.name}: no sentence contains an entity, so there is no type to ask for.")
    return train, types


def _asked(
    config: LlmConfig,
    job: Job,
    train: Sequence[Sentence],
    types: Sequence[str],
    parts: Sequence[Sequence[Sentence]],
    *,
    without: str,
) -> tuple[list[list[str]], Answers, Counter[str]]:
    """Ask the model about all sentences in `parts`, such as test sets.

    Return the key of each sentence's request by part, the answers, and the number of sentences without a usable answer
    by reason.
    without: words for the note on sentences without an answer, such as "have no suggestion".
    """
    server = server_at(config.address, config.allow_host)
    if server.warning:
        job.context.note(server.warning)
    requests = _Requests(config, train, types)
    job.context.stage("choosing the examples")
    sentences = dict[str, Sentence]()  # {key: first sentence with this request}
    keys = [[_keyed(requests, sentence, sentences, job) for sentence in part] for part in parts]
    wanted = Counter(key for part in keys for key in part)
    others = [run for run in RunStore(job.home).list(*ASKING) if run.id != job.context.run.id]
    answers = Answers(job.context.run, [run for run in others if not run.brought_file.exists()], wanted)
    job.context.stage(f"asking {config.model}")
    unanswered = ask_all(
        Client(server, config.timeout),
        answers,
        wanted,
        lambda key, hint: requests.body(sentences[key], hint),
        job.context,
        at_once=config.at_once,
        retries=config.retries,
    )
    if unanswered:
        job.context.note(
            f"{unanswered.total():,} of {count(wanted.total(), 'sentence')} got no usable answer "
            f"({in_words(unanswered)}), and {without}."
        )
    return keys, answers, unanswered


def _keyed(requests: _Requests, sentence: Sentence, sentences: dict[str, Sentence], job: Job) -> str:
    job.context.check()
    key = requests.key(sentence)
    sentences.setdefault(key, sentence)
    return key


def _read(sentence: Sentence, answer: Answer | None, types: Sequence[str]) -> tuple[Prediction, int, Counter[str]]:
    """Return the entities of an answer, its number of quotes, and the number of dropped quotes by reason."""
    listed = quotes_in(answer.text) or [] if answer else []
    entities, dropped = aligned(sentence.tokens, listed, types)
    return Prediction(entities=entities, confidence=(1.0,) * len(entities)), len(listed), dropped


def _note(job: Job, train: Sequence[Sentence], tests: Sequence[Sequence[Sentence]]) -> None:
    """Add notes to the run: types that the training set lacks, and the number of test sentences that it contains."""
    if missing := sorted(types_of(*tests) - types_of(train)):
        job.context.note(
            f"Types that the prompt does not name, because the training set lacks them: {', '.join(missing)}."
        )
    known = {sentence.id for sentence in train}
    if shared := sum(sentence.id in known for gold in tests for sentence in gold):
        job.context.note(
            f"Also in the training set: {count(shared, 'test sentence')}. Examples in the prompt may show the answer."
        )


def _scored(
    job: Job,
    tests: Sequence[Sequence[Sentence]],
    keys: Sequence[Sequence[str]],
    answers: Answers,
    types: Sequence[str],
    *,
    unanswered: Mapping[str, int],
) -> LlmResult:
    """Align the answers, and return their scores. keys: for each test set, the key of each sentence's request."""
    scores, quotes, dropped, seconds = list[OverSeeds](), 0, Counter[str](), dict[str, float]()
    for number, (gold, own) in enumerate(zip(tests, keys, strict=True)):
        found = []
        for sentence, key in zip(gold, own, strict=True):
            answer = answers.get(key)
            prediction, listed, left = _read(sentence, answer, types)
            found.append(prediction)
            quotes, dropped = quotes + listed, dropped + left
            seconds[key] = answer.seconds if answer else 0.0
        scores.append(score_found(job.context.run, gold, found, name_of_test_set(number)))
    return LlmResult(
        sentences=sum(map(len, tests)),
        unanswered=dict(unanswered),
        quotes=quotes,
        dropped=dict(dropped),
        tests=scores,
        seconds=round(sum(seconds.values()), 2),
    )


def _title(run: About) -> str:
    config = run.config
    at = f" at {config['allow_host']}" if config["allow_host"] else ""
    return f"Ask {config['model']}{at} to tag {run.corpora(config['test'])}"


def _outcome(result: LlmResult, _: About) -> str:
    missing = sum(result.unanswered.values())
    without = f", {missing:,} of {count(result.sentences, 'sentence')} without an answer" if missing else ""
    return f"Score (F1) {result.tests[0].mean:.1f} with a language model, without training{without}"


KIND = Kind("llm", LlmConfig, run, LlmResult, title=_title, outcome=_outcome, page="Training", opens=True, here=True)
