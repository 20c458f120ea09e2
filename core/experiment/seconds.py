"""How long an experiment's steps take on this machine, from a `calibrate` run; trainings as `estimate` has them."""

from collections.abc import Collection, Mapping, Sequence
from copy import copy

from core.bias.difficulty import DifficultyOptions
from core.config import Budget
from core.corpora.corpus import Corpus
from core.experiment.arms import AUGMENT, CONTROL, GROWS, WHOLE, Arm, Cell
from core.experiment.caps import tokens_read
from core.experiment.config import ExperimentConfig
from core.experiment.replicates import Replicate
from core.selection import STRATEGIES, strategy_options
from core.tagging import estimate
from core.tagging.calibration import CalibrateResult
from core.tagging.estimate import START, Read, Speed, Speeds
from core.tagging.network import begins_from_encoder
from core.training.mlm_settings import MlmSettings
from core.training.settings import TaggerSettings

AUDIT, SCORE = 4e-6, 2e-6  # seconds a token, of flagging and of scoring once embedded
SKIPGRAM = 2e-5  # seconds a token of a source, of word vectors in five epochs on two cores
STATES = 8  # sentences one by one take so many times longer than in batches


class Seconds:
    """Seconds of single stages. What several lines share is counted with the first that asks for it.

    measured: the result of `calibrate`. corpora: by role, those that are there. others: the same result of every
    encoder of the axis. speeds: what trainings go by; None: by `measured`. basis: what those that were asked for rest
    on, sentences.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        measured: CalibrateResult,
        corpora: Mapping[str, Corpus],
        sources: Sequence[Corpus] = (),
        also_test: Sequence[Corpus] = (),
        *,
        others: Mapping[str, CalibrateResult] | None = None,
        speeds: Speeds | None = None,
    ) -> None:
        self.config, self.measured, self.corpora = config, measured, corpora
        self.sources, self.also_test, self.others = sources, also_test, others or {}
        self.encoder, self.speeds, self.basis = config.encoder, speeds, dict[str, None]()
        self.embeds = 0  # of D_C
        self._counted: set[tuple[str, ...]] = set()

    def select(self, cell: Cell, replicate: Replicate) -> float:
        """Flags once, embeddings once an encoder, scores once a strategy and seed; then choosing and sealing."""
        strategy, domain = STRATEGIES[cell.arm.strategy], self.corpora["domain"]
        seconds = START / 3 + (domain.n_tokens * AUDIT if self._first("audit") else 0)
        drawn = str(replicate.draw)
        if not self._first("score", strategy.name, drawn):
            return seconds
        models = sorted(strategy.models)
        folds = self._folds(strategy.name) if "ner" in models else 1
        seconds += domain.n_tokens * SCORE
        if models and self._first("B1", drawn):
            task = self.corpora["task"]
            seconds += self._mlm(len(task), task.n_tokens, [task])
        if "ner" in models and self._first("B2", str(folds), drawn):
            seconds += self.finetune(0) / len(self.config.seeds) * folds
        one_pass = self._pieces("domain") * self.measured.embed[1]
        if strategy.reads in ("vectors", "both"):
            encoders: list[tuple[str, str]] = [(encoder, drawn) for encoder in models]
            encoders = encoders or [("base", "")]
            new = [encoder for encoder in encoders if self._first("embed", *encoder)]
            self.embeds += len(new)
            seconds += one_pass * len(new)
        elif strategy.reads == "spans":
            seconds += one_pass * folds if self._first("tag", str(folds), drawn) else 0
        elif models:  # pseudo-perplexity: a pass for every piece of a sentence
            seconds += one_pass * self._pieces("domain") / len(domain)
        return seconds

    def pretrain(self, cell: Cell) -> float:
        """MLM of a line."""
        if other := self._of_its_encoder(cell):
            return other.pretrain(cell)
        sentences, tokens = self._reads(cell)
        if self.config.fixed != "none":
            # The line with the most says how much all of them read.
            reads = [self._reads(c) for c in self.config.cells if c.arm.pretrains and c.arm.budget != WHOLE]
            sentences, tokens = max(reads, default=(sentences, tokens))
        return self._mlm(sentences, tokens, self._texts(cell.arm))

    def halves(self) -> float:
        """Copies found among all labelled sentences, then sealed."""
        return START / 3 + 2 * self.corpora["test"].n_tokens * AUDIT

    def skl(self) -> float:
        """Counting and scoring the sentences of both corpora."""
        audit = AUDIT if self._first("audit assisting") else 0.0
        return START / 3 + self.corpora["assisting"].n_tokens * (SCORE + audit)

    def difficulty(self, part: tuple[int, int], replicate: Replicate | None = None) -> float:
        """Classifiers of names and of contexts for every fold; the same for all that is rebuilt by them.

        replicate: with labels of its own."""
        whose = (str(replicate.number),) if replicate and self.config.cross else ()
        if not self._first("difficulty", *map(str, part), *whose):
            return 0.0
        config, train = self.config, self.corpora["train"]
        chosen = DifficultyOptions.parse({"preset": config.preset, **config.difficulty})
        share = (part[0] or len(train)) / len(train)
        pieces = self._read(train).pieces / len(train)
        encoder = config.difficulty_encoder or config.encoder
        measured = self.speeds.of_classifiers(encoder, [train.fingerprint]) if self.speeds else None
        return estimate.difficulty(chosen, train, measured or self.measured, pieces=pieces, share=share)

    def rebuild(self) -> float:
        """Mentions and contexts changed, then sealed."""
        return START / 3 + self.corpora["train"].n_tokens * SCORE

    def finetune(self, size: int, cell: Cell | None = None, replicate: Replicate | None = None) -> float:
        """Taggers of a replicate's seeds, or of all, on `size` sentences of L_C; 0: on all of it. cell: whose; None: of
        `none`."""
        if cell and (other := self._of_its_encoder(cell)):
            return other.finetune(size, cell, replicate)
        seeds = len(replicate.seeds if replicate else self.config.seeds)
        config, train = self.config, self.corpora["train"]
        arm = cell.arm if cell else None
        n = size or len(train)
        # What is told by its bin comes on top of as many at random.
        n = min(n, arm.size * (1 if arm.bin in ("", "none") else 2)) if arm and arm.size else n
        read = self._labelled(arm, n)
        own = config.tagger_settings.model_copy(update={**config.tagger, **(arm.tagger if arm else {})})
        read = read.with_copies if own.beta or own.gamma else read
        time = estimate.tagger(
            self._tagger(own, states=bool(arm and arm.states)),
            own.training(read.sentences).planned(read.sentences),
            seeds,
            train=read,
            dev=self._read(self.corpora["dev"]),
            tests=[self._read(each) for each in (self.corpora["test"], *self.also_test)],
            stages=2 if arm and arm.lpft else 1,
        )
        return time.expected + (self._borrowed(cell, seeds) if cell else 0.0)

    def _of_its_encoder(self, cell: Cell) -> "Seconds | None":
        """The same stages under an encoder of the axis; None where the line has the experiment's own."""
        measured = self.others.get(cell.arm.encoder)
        if measured is None:
            return None
        other = copy(self)
        other.encoder, other.measured, other.others = cell.arm.encoder, measured, {}
        return other

    def _tagger(self, settings: TaggerSettings, *, states: bool = False) -> Speed:
        """states: whether a recurrent tagger reads an encoder's."""
        encoder = self.encoder if states or begins_from_encoder(settings.network) else ""
        usual = Speed.measured(self.measured, "tagger", "train")
        return self._speed(usual, settings, encoder, [self.corpora["train"]]).of_network(settings.network)

    def _speed(
        self, usual: Speed, settings: MlmSettings | TaggerSettings, encoder: str, texts: Collection[Corpus]
    ) -> Speed:
        """The speed of such a training, `usual` where no runs are asked."""
        known = self.speeds.of(settings, encoder, [text.fingerprint for text in texts]) if self.speeds else None
        self.basis |= {known.basis: None} if known else {}
        return known.speed if known else usual

    def _labelled(self, arm: Arm | None, n: int) -> Read:
        """Text that an epoch reads of `n` of L_C, and of what an arm adds to them."""
        train = self.corpora["train"]
        pieces = self._read(train).pieces / len(train)
        if arm and arm.assisting:
            other = self._read(self.corpora["assisting"])
            return Read(sentences=n, pieces=n * (pieces + other.pieces / other.sentences))  # as many in every step
        grown = n * (2 if arm and arm.rebuild == AUGMENT else 1 + arm.rate if arm and arm.rebuild in GROWS else 1)
        return Read(sentences=round(grown), pieces=grown * pieces)

    def _borrowed(self, cell: Cell, seeds: int) -> float:
        """Word vectors of a source, once; the frozen states of L_C's splits, once a seed; leaks of what assists."""
        arm = cell.arm
        if arm.assisting:
            return self.corpora["assisting"].n_tokens * AUDIT if self._first("audit assisting") else 0.0
        if arm.states:
            splits = (self.corpora[name] for name in ("train", "dev", "test"))
            tokens = sum(corpus.n_tokens for corpus in splits) * self.measured.pieces["train"]
            return STATES * seeds * tokens * self.measured.embed[1]
        if not arm.source or arm.source in self.config.imported_vectors:
            return 0.0
        return self._cap(cell) * (SKIPGRAM + (AUDIT if self._first("audit source") else 0))

    def _cap(self, cell: Cell) -> int:
        """Tokens that a line reads of its source."""
        smallest = min((corpus.n_tokens for corpus in self.sources), default=0)
        return tokens_read(cell.budget, self.config.cap_tokens, smallest)

    def _mlm(self, sentences: int, tokens: float, texts: Collection[Corpus]) -> float:
        settings, held_out = self.config.mlm_settings, len(self.corpora["dev"])
        speed = self._speed(Speed.measured(self.measured, "mlm", "task"), settings, self.encoder, texts)
        return estimate.mlm(speed, settings, sentences=sentences, tokens=tokens, held_out=held_out).expected

    def _texts(self, arm: Arm) -> list[Corpus]:
        """Corpora that a line's MLM reads of."""
        if arm.source:
            return list(self.sources)
        roles = ["task"] * arm.task + ["domain"] * bool(arm.strategy)
        return [self.corpora[role] for role in roles]

    def _reads(self, cell: Cell) -> tuple[int, float]:
        """(sentences, tokens) that a line's MLM reads, flags not known yet."""
        if cell.arm.source:
            per_token = sum(map(len, self.sources)) / sum(corpus.n_tokens for corpus in self.sources)
            return round(self._cap(cell) * per_token), float(self._cap(cell))
        task = self.corpora["task"]
        sentences, tokens = (len(task), float(task.n_tokens)) if cell.arm.task else (0, 0.0)
        if cell.arm.strategy:
            mean = self.corpora["domain"].n_tokens / len(self.corpora["domain"])
            n = len(task) if cell.arm.plain_name == CONTROL else self._chosen(cell.budget, mean)
            sentences, tokens = sentences + n, tokens + n * mean
        return sentences, tokens

    def _chosen(self, text: str, mean: float) -> int:
        """Sentences that a budget takes of D_C, whose mean length is `mean` tokens."""
        budget, n_domain = Budget.parse(text), len(self.corpora["domain"])
        wanted = {"tokens": budget.value / mean, "fraction": budget.value * n_domain}.get(budget.unit, budget.value)
        return min(int(wanted), n_domain)

    def _pieces(self, name: str) -> float:
        return self.corpora[name].n_tokens * self.measured.pieces[name]

    def _read(self, corpus: Corpus) -> Read:
        """Text that a tagger reads of a labelled corpus."""
        neighbours = 2 * self.config.tagger_settings.context * len(corpus)
        pieces = self._tagger(self.config.tagger_settings).pieces
        return Read(sentences=len(corpus), pieces=corpus.n_tokens * pieces + neighbours)

    def _folds(self, strategy: str) -> int:
        options = strategy_options(strategy, self.config.strategies.get(strategy, {})).model_dump()
        return int(options.get("folds", 1))

    def _first(self, *part: str) -> bool:
        """Whether this shared part of the work is asked for the first time."""
        new = part not in self._counted
        self._counted.add(part)
        return new
