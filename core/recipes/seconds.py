"""How long an experiment's stages take on this machine, from a `calibrate` run: t = a + b pieces a step (SPEC B2)."""

import math
from collections.abc import Mapping
from typing import Any

from core.config import Budget
from core.corpora.corpus import Corpus
from core.recipes.arms import CONTROL, WHOLE, Cell
from core.recipes.experiment_config import ExperimentConfig
from core.recipes.finetune import FinetuneConfig, settings_of
from core.recipes.pretrain import HELD_OUT_MOST, QUICK_STEPS, PretrainConfig
from core.recipes.stages import epochs_of
from core.selection import STRATEGIES, strategy_options

START = 3.0  # seconds: what a run reads, checks and saves beside weights
FORWARD = 1 / 3  # of a training step, without the backward pass
EARLY = 0.7  # share of the epochs that early stopping leaves, as seen on CrossNER and the samples
AUDIT, SCORE = 4e-6, 2e-6  # seconds a token, of flagging and of scoring once embedded
PROBED, PROBE_SECONDS = 64, 30.0  # sentences of the pseudo-perplexity before and after MLM, and its limit


class Seconds:
    """Seconds of single stages. What several lines share is counted with the first that asks for it.

    measured: the result of `calibrate`. corpora: by role, those that are there.
    """

    def __init__(self, config: ExperimentConfig, measured: Mapping[str, Any], corpora: Mapping[str, Corpus]) -> None:
        self.config, self.measured, self.corpora = config, measured, corpora
        self.embeds = 0  # of D_C
        self._counted: set[tuple[str, ...]] = set()

    def select(self, cell: Cell) -> float:
        """Flags once, embeddings once an encoder, scores once a strategy; then choosing and sealing."""
        strategy, domain = STRATEGIES[cell.arm.strategy], self.corpora["domain"]
        seconds = START / 3 + (domain.n_tokens * AUDIT if self._first("audit") else 0)
        if not self._first("score", strategy.name):
            return seconds
        models = sorted(strategy.models)
        folds = self._folds(strategy.name) if "ner" in models else 1
        seconds += domain.n_tokens * SCORE
        if models and self._first("B1"):
            seconds += self._mlm(len(self.corpora["task"]), self.corpora["task"].n_tokens)
        if "ner" in models and self._first("B2", str(folds)):
            seconds += self.finetune(0) / len(self.config.seeds) * folds
        every = self._pieces("domain") * self.measured["embed"][1]
        if strategy.reads in ("vectors", "both"):
            new = [encoder for encoder in (*models, *(() if models else ("base",))) if self._first("embed", encoder)]
            self.embeds += len(new)
            seconds += every * len(new)
        elif strategy.reads == "spans":
            seconds += every * folds if self._first("tag", str(folds)) else 0
        elif models:  # pseudo-perplexity: a pass for every piece of a sentence
            seconds += every * self._pieces("domain") / len(domain)
        return seconds

    def pretrain(self, cell: Cell) -> float:
        """MLM of a line."""
        sentences, tokens = self._reads(cell)
        if self.config.fixed != "none":
            every = [self._reads(c) for c in self.config.cells if c.arm.pretrains and c.arm.budget != WHOLE]
            sentences, tokens = max(every, default=(sentences, tokens))
        return self._mlm(sentences, tokens)

    def finetune(self, size: int) -> float:
        """Taggers of all seeds on `size` sentences of L_C; 0: on all of it."""
        config, train = self.config, self.corpora["train"]
        n = size or len(train)
        options = {"train": "?", "dev": "?", "preset": config.preset, **config.finetune}
        settings = settings_of(FinetuneConfig.parse(options), n).planned(n)
        a, b = map(float, self.measured["tagger"])
        epoch = math.ceil(n / settings.batch_size) * a + self._pieces("train") * n / len(train) * b
        dev, test = (self._pieces(name) * b * FORWARD for name in ("dev", "test"))
        judged = dev * min(1.0, (settings.dev_sentences or math.inf) / len(self.corpora["dev"]))
        epochs = max(settings.epochs * EARLY, min(settings.epochs, settings.min_epochs))
        return START + len(config.seeds) * (float(self.measured["load"]) + epochs * (epoch + judged) + dev + test)

    def _mlm(self, sentences: int, tokens: float) -> float:
        config, measured = self.config, self.measured
        chosen = PretrainConfig.parse({"corpora": ("?",), "preset": config.preset, **config.pretrain})
        epochs = epochs_of(chosen)
        a, b = map(float, measured["mlm"])
        steps, pieces = (
            epochs * math.ceil(sentences / chosen.batch_size),
            epochs * tokens * float(measured["pieces"]["task"]),
        )
        limit = chosen.max_steps or (QUICK_STEPS if chosen.preset == "quick" else 0)
        if limit and (steps > limit or chosen.max_steps):
            steps, pieces = limit, pieces * limit / steps
        trained = steps * a + pieces * b
        head = 0 if measured["has_head"] else trained / epochs * FORWARD
        mean = pieces / max(epochs * sentences, 1)
        probe = min(PROBED * mean**2 * b * FORWARD, PROBE_SECONDS)
        held = min(len(self.corpora["dev"]), HELD_OUT_MOST) * mean * b * FORWARD
        return START + float(measured["load"]) + trained + head + 2 * probe + (epochs + 1) * held

    def _reads(self, cell: Cell) -> tuple[int, float]:
        """(sentences, tokens) that a line's MLM reads, flags not known yet."""
        task = self.corpora["task"]
        sentences, tokens = (len(task), float(task.n_tokens)) if cell.arm.task else (0, 0.0)
        if cell.arm.strategy:
            mean = self.corpora["domain"].n_tokens / len(self.corpora["domain"])
            n = len(task) if cell.arm.name == CONTROL else self._chosen(cell.budget, mean)
            sentences, tokens = sentences + n, tokens + n * mean
        return sentences, tokens

    def _chosen(self, text: str, mean: float) -> int:
        """Sentences that a budget takes of D_C, whose mean length is `mean` tokens."""
        budget, every = Budget.parse(text), len(self.corpora["domain"])
        wanted = {"tokens": budget.value / mean, "fraction": budget.value * every}.get(budget.unit, budget.value)
        return min(int(wanted), every)

    def _pieces(self, name: str) -> float:
        per_token = self.measured["pieces"]
        return float(self.corpora[name].n_tokens * per_token.get(name, per_token["train"]))

    def _folds(self, strategy: str) -> int:
        options = strategy_options(strategy, self.config.strategies.get(strategy, {})).model_dump()
        return int(options.get("folds", 1))

    def _first(self, *part: str) -> bool:
        """Whether this shared part of the work is asked for the first time."""
        new = part not in self._counted
        self._counted.add(part)
        return new
