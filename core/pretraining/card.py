"""The card of a pre-trained encoder: what it has read, how, and what came of it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.corpora.corpus import Corpus
from core.training.saved_models import PretrainResult

if TYPE_CHECKING:
    from core.pretraining.pretrain import PretrainConfig

_FITTED = (
    "The encoder came without a vocabulary head. One was fitted first with the encoder frozen (transform from the"
    " identity, decoder tied to the embeddings, bias from the pieces' frequencies); losses below are after that."
)


def card(config: "PretrainConfig", corpora: Sequence[Corpus], result: PretrainResult) -> str:
    """Markdown with the front matter that the Hugging Face hub reads."""
    data = [
        f"- {c.name}: {c.n_sentences:,} sentences, {c.n_tokens:,} tokens, fingerprint `{c.fingerprint}`"
        for c in corpora
    ]
    settings = [
        f"- {name}: {value}"
        for name, value in config.model_dump(mode="json").items()
        if name not in ("corpora", "allow_download") and value not in ("", False, [])
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
            _FITTED if result.head_fitted else "The vocabulary head is the encoder's own, trained on with it.",
            "",
            "## Settings",
            *settings,
            "",
            "## What came of it",
            "Losses in nats a masked piece, after each epoch.",
            "",
            "| | before | after each epoch |",
            "|---|---|---|",
            *_losses(result),
            "",
        ]
    )


def _losses(result: PretrainResult) -> list[str]:
    """Rows of the table."""
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
