"""`pretrain`: continued pre-training (MLM) of an encoder on one or several of T_C, D_C and S_C.

On several GPUs or machines, start the command with torchrun. The first process creates the run, and the others join it:

    torchrun --nproc-per-node 4 -m core pretrain --corpus T_C --corpus S_C --init bert-base-cased
"""

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from core.config import LARGEST_SEED, option
from core.corpora.corpus import BLOCK, Corpus
from core.errors import CorpusError
from core.importing.audit import learnable
from core.importing.data_checks import red_items
from core.kind import About, Job, Kind
from core.models.encoder import EncoderOptions
from core.models.vocabulary_fit import SAMPLE, note_fit
from core.results import IntArray
from core.training import saved_models as models
from core.training.mlm_settings import PACKED, WHOLE, Balance, MlmSettings, Settings
from core.training.on_device import announce, on_device, rank
from core.training.saved_models import Perplexity, PretrainResult

if TYPE_CHECKING:
    from core.models.mlm import MaskedLM
    from core.training.pretrain import Piles
    from core.training.steps import Examples

HELD_OUT, HELD_OUT_MOST = 0.05, 1000  # share of a corpus that is held out, and the maximum number of held-out sentences
_FITTED = (
    "The encoder came without a vocabulary head, so a head was fitted first, with the encoder frozen. It started from"
    " an identity transform, a decoder tied to the embeddings, and biases from the pieces' frequencies. All losses"
    " below were measured with the fitted head."
)


class PretrainOptions(MlmSettings):
    """Options that all variants of an experiment share: settings, held-out splits, and text to measure losses on."""

    holdout: tuple[str, ...] = option(
        (), "Labelled splits. Their sentences, and near duplicates of them, are left out of the training.", corpus=True
    )
    heldout_task: str = option(
        "",
        "Text like the task corpus on which the held-out loss is measured. Default: 5% of the task corpus.",
        corpus=True,
    )
    general: str = option(
        "",
        "General text on which forgetting is measured. Default: 5% of the last corpus, if several are given.",
        corpus=True,
    )


class PretrainConfig(PretrainOptions):
    """Options: the corpora, the encoder, and the seed."""

    corpora: tuple[str, ...] = option(
        ...,
        "Task corpus (T_C) first, then the selection (S_C) or the domain corpus (D_C); or only one of them.",
        corpus=True,
        min_length=1,
    )
    init: str = option("minilm", "Encoder to start from: a Hugging Face name, a folder, or minilm (bundled).")
    seed: int = option(1, "Seed of everything random.", ge=0, le=LARGEST_SEED)

    weights: str = option(
        "", "Hash of the encoder, so that changed weights under an old name are trained again.", hidden=True
    )

    def settled(self) -> Self:
        """Return the options with the preset's numbers and the encoder's hash.

        Errors: ModelError if the encoder is missing.
        """
        named = EncoderOptions(encoder=self.init, allow_download=self.allow_download).settled()
        return self.filled().model_copy(update={"weights": named.weights})


def run(config: PretrainConfig, job: Job) -> PretrainResult:
    """Pre-train an encoder. Artifact: `model`, a Hugging Face folder with vocabulary head, tokenizer and card."""
    from core.models.mlm import MaskedLM
    from core.training.pretrain import pretrain

    context = job.context
    corpora = [learnable(reference, config.holdout, job) for reference in config.corpora]
    with on_device(job, config.precision):
        announce(context.run.id)  # the corpora are ready, so other processes may join
        context.stage(f"loading {config.init}")
        lm = MaskedLM.load(config.init, allow_download=config.allow_download)
        piles, sentences, tokens = _read(config, job, corpora, lm)
        settings = _settings(config, lm, piles, job)
        if not lm.has_head:
            context.note(f"{config.init} has no vocabulary head, so a head is fitted first, with the encoder frozen.")
        outcome = pretrain(
            lm, piles, settings, folder=context.run.checkpoints, report=context, saved=context.checkpoint
        )
    rows = piles.draw(0)
    result = PretrainResult(
        model=str(models.folder(context.run)),
        sentences=sentences,
        tokens=tokens,
        epochs=round(outcome.steps / -(-len(rows) // config.batch_size), 2),
        steps=outcome.steps,
        dev_loss=outcome.dev_loss,
        dev_loss_general=outcome.dev_loss_general,
        pseudo_perplexity=Perplexity(**outcome.pseudo_perplexity),
        before=outcome.before,
        head_fitted=outcome.head_fitted,
        tokens_per_second=outcome.tokens_per_second,
    )
    if not rank():
        context.stage("saving")
        lm.save(models.folder(context.run), _card(config, corpora, result))
        context.artifact(models.NAME, models.folder(context.run))
        for part in context.run.checkpoints.iterdir():  # checkpoints take three times the space of the model
            shutil.rmtree(part) if part.is_dir() else part.unlink()
    return result


def _read(config: PretrainConfig, job: Job, corpora: list[Corpus], lm: "MaskedLM") -> tuple["Piles", int, int]:
    """Return the rows of pieces, the number of sentences per epoch, and the number of tokens of the training sentences.

    The rows are for training, and held-out ones of T_C and of general text. No row for training contains a held-out
    sentence.
    """
    from core.models.encoder import longest
    from core.training.pretrain import Piles
    from core.training.steps import Examples, packed

    window = longest(lm.model, lm.tokenizer)

    def pieces(corpus: Corpus, rows: IntArray, max_length: int = min(config.max_length, window)) -> Examples:
        job.context.stage(f"tokenising {corpus.name}")
        return _tokenised(corpus, rows, lm, max_length, job)

    task, general = _held_out(config, job, corpora)
    held = np.concatenate([corpus.ids()[rows] for corpus, rows in (task, general) if len(rows)])
    parts, counts, left_out, tokens = [], list[int](), 0, 0
    for corpus in corpora:
        sampled = corpus.take(np.linspace(0, len(corpus) - 1, min(SAMPLE, len(corpus))).astype(np.int64))
        whole = WHOLE if config.packed else min(config.max_length, window)
        note_fit(job.context, lm.tokenizer, sampled, encoder=config.init, corpus=corpus.name, max_length=whole)
        rows = np.flatnonzero(~np.isin(corpus.ids(), held))
        counts.append(len(rows))
        left_out += len(corpus) - len(rows)
        tokens += int(corpus.lengths()[rows].sum())
        part = pieces(corpus, rows, WHOLE) if config.packed else pieces(corpus, rows)
        parts.append(packed(part, lm.tokenizer, min(PACKED, window)) if config.packed else part)
    sizes = [len(part) for part in parts]
    if not sum(sizes):
        raise CorpusError(f"{corpora[0].name}: no sentence is left to train on; give a larger corpus.")
    draw = Draw(sizes[0], sum(sizes[1:]), config.balance, config.seed)
    unit = "rows" if config.packed or not all(part.first.all() for part in parts) else "sentences"
    job.context.note(
        f"Each epoch reads {len(draw(0)):,} {unit}: {draw.task:,} of {corpora[0].name}"
        + (f" and {draw.others:,} of the others" if len(sizes) > 1 else "")
        + (f"; {left_out:,} are held out." if left_out else ".")
    )
    piles = Piles(train=Examples.join(parts), draw=draw, task=pieces(*task), general=pieces(*general))
    if not config.packed:
        return piles, int(piles.train.first[draw(0)].sum()), tokens
    # A packed row holds several sentences, so count the sentences by the share of each part's rows that is drawn.
    sentences = counts[0] * draw.task / max(sizes[0], 1)
    sentences += sum(counts[1:]) * draw.others / max(sum(sizes[1:]), 1)
    return piles, round(sentences), tokens


class Draw:
    """Draws the rows of an epoch: `draw(epoch)` returns shape (m,), with the same m for every epoch.

    The first `n_task` rows belong to T_C, the next `n_others` rows to the other corpora. task, others: number of rows
    of T_C and of the other corpora per epoch. balance: see SOURCES.md, Mixing T_C and S_C.
    """

    def __init__(self, n_task: int, n_others: int, balance: Balance, seed: int) -> None:
        self.n_task, self.n_others, self.seed = n_task, n_others, seed
        both = n_task and n_others
        self.task = max(n_task, n_others) if both and balance == "upsample_TC" else n_task
        self.others = min(n_task, n_others) if both and balance == "downsample_SC" else n_others

    def __call__(self, epoch: int) -> IntArray:
        rng = np.random.default_rng([self.seed, 2, epoch])
        whole, rest = divmod(self.task, self.n_task or 1)
        task = np.concatenate([np.tile(np.arange(self.n_task), whole), rng.permutation(self.n_task)[:rest]])
        others = np.arange(self.n_others)
        if self.others < self.n_others:
            others = np.sort(rng.permutation(self.n_others)[: self.others])
        return np.concatenate([task, self.n_task + others]).astype(np.int64)


Held = tuple[Corpus, IntArray]


def _held_out(config: PretrainConfig, job: Job, corpora: list[Corpus]) -> tuple[Held, Held]:
    """Return (corpus, rows) of the held-out sentences: those of T_C, and those of general text, drawn at random."""

    def sample(corpus: Corpus, share: float, stream: int) -> Held:
        n = min(max(round(share * len(corpus)), 1), HELD_OUT_MOST, len(corpus))
        return corpus, np.sort(np.random.default_rng([config.seed, stream]).permutation(len(corpus))[:n])

    if not config.heldout_task and len(corpora[0]) < 2:
        raise CorpusError(
            f"{corpora[0].name} has 1 sentence, expected at least 2, because one is held out; give a larger corpus."
        )
    task = sample(job.corpus(config.heldout_task), 1.0, 0) if config.heldout_task else sample(corpora[0], HELD_OUT, 0)
    if config.general:
        return task, sample(job.corpus(config.general), 1.0, 1)
    if len(corpora) > 1:
        general = sample(corpora[-1], HELD_OUT, 1)
        job.context.note(f"General text: {len(general[1]):,} held-out sentences of {general[0].name}.")
        return task, general
    job.context.note("No general text was given, so forgetting is not measured; give some with --general.")
    return task, (corpora[0], np.zeros(0, dtype=np.int64))


def _tokenised(corpus: Corpus, rows: IntArray, lm: "MaskedLM", max_length: int, job: Job) -> "Examples":
    from core.training.steps import tokenised

    def blocks() -> Iterator[list[str]]:
        texts = corpus.column("text")
        for start in range(0, len(rows), BLOCK):
            yield texts.take(rows[start : start + BLOCK]).to_pylist()

    return tokenised(blocks(), lm.tokenizer, max_length=max_length, n=len(rows), report=job.context)


def _settings(config: PretrainConfig, lm: "MaskedLM", piles: "Piles", job: Job) -> Settings:
    import torch

    from core.models.devices import pick_dtype
    from core.training.memory import lora_note

    if text := lora_note(lm.model, config.lora):
        job.context.note(text)
    assert config.learning_rate
    rows = len(piles.draw(0))
    steps, full = config.steps(rows), config.full_steps(rows)
    if steps < full and not config.max_steps:
        job.context.note(
            f"The preset quick trains {steps:,} steps instead of {full:,}; choose paper or custom for whole epochs."
        )
    return Settings(
        epochs=config.n_epochs,
        batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        accumulation=config.accumulation,
        max_steps=steps,
        max_pieces=config.max_pieces,
        patience=config.patience,
        mask_probability=config.mask_probability,
        mask_unit=config.mask,
        seed=config.seed,
        bf16=pick_dtype(config.precision, lm.model.device) == torch.bfloat16,
        lora=config.lora,
        checkpointing=config.checkpointing,
        parts=config.parts,
    )


def _card(config: PretrainConfig, corpora: Sequence[Corpus], result: PretrainResult) -> str:
    """Return the model card: Markdown with the front matter that the Hugging Face hub reads."""
    data = [
        f"- {c.name}: {c.n_sentences:,} sentences, {c.n_tokens:,} tokens, fingerprint `{c.fingerprint}`"
        for c in corpora
    ]
    settings = [
        f"- {name}: {value}"
        for name, value in config.model_dump(mode="json").items()
        # The seed is listed even if it is 0; for other numbers, 0 means that the option is off.
        if name == "seed" or (name not in ("corpora", "allow_download") and value not in ("", False, []))
    ]
    return "\n".join(
        [
            "---",
            "library_name: transformers",
            "pipeline_tag: fill-mask",
            "tags: [masked-language-modelling]",
            "---",
            f"# {config.init}, pre-trained on",
            *data,
            "",
            f"{result.sentences:,} sentences per epoch, {result.epochs:g} epochs, {result.steps:,} steps.",
            "",
            _FITTED
            if result.head_fitted
            else "The encoder's own vocabulary head was trained further together with the encoder.",
            "",
            "## Settings",
            *settings,
            "",
            "## Results",
            "Loss in nats per masked piece, after each epoch.",
            "",
            "| | before | after each epoch |",
            "|---|---|---|",
            *_losses(result),
            "",
        ]
    )


def _losses(result: PretrainResult) -> list[str]:
    losses = [
        ("held-out loss, task corpus", "dev_loss_task", result.dev_loss),
        ("held-out loss, general text", "dev_loss_general", result.dev_loss_general),
    ]
    perplexity = result.pseudo_perplexity
    return [
        *(
            f"| {name} | {_number(result.before.get(key))} | {', '.join(map(_number, curve)) or '-'} |"
            for name, key, curve in losses
        ),
        f"| pseudo-perplexity, task corpus | {_number(perplexity.before)} | {_number(perplexity.after)} |",
    ]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _outcome(result: PretrainResult, _: About) -> str:
    perplexity = result.pseudo_perplexity
    return f"Pseudo-perplexity of held-out text: {perplexity.before:,.1f} before, {perplexity.after:,.1f} after"


KIND = Kind(
    "pretrain",
    PretrainConfig,
    run,
    PretrainResult,
    title=lambda run: f"Pre-train {run.encoder(run.config['init'])} on {run.corpora(run.config['corpora'])}",
    outcome=_outcome,
    page="Training",
    opens=True,
    here=True,
    red_items=red_items,
)
