"""A tagger's folder: its model card (data, settings, scores, how to load it) and its word list.

vocabulary.json lists the words, with words seen once at the end. model.safetensors has one vector per word, in the same
order.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NotRequired, TypedDict

from core.files import read_json
from core.kind import Job
from core.models.hub import VOCABULARY, WEIGHTS
from core.models.networks import MOST, ON_ENCODER
from core.runs.versions import versions
from core.stats.calibration import FEWEST
from core.tagging.config import FinetuneConfig
from core.tagging.evaluations import SeedOutcome, TooLong, TrainInTest
from core.training import saved_models as models

_USE = """
## Use

```python
from transformers import pipeline
tag = pipeline("token-classification", model="this folder", aggregation_strategy="first")
```

This pipeline needs no remote code. It decodes each word alone ({argmax}) and ignores the tagger's CRF
(`crf.transitions`, `crf.start_transitions`, `crf.end_transitions` in `model.safetensors`, BIOES tags in `config.json`
under `winnow`). transformers therefore reports these three as unused. Only the first piece of each word was trained.
`first` reads this piece, `simple` every piece. The following command decodes as in the column `constrained`; with
`--no-constrained`, as in the column `viterbi`:

```
python -m core predict --model "this folder" INPUT --output OUTPUT.jsonl
```

This command cuts raw text into words as the training set was cut (`cut` under `winnow` in `config.json`; by default
runs of letters and single punctuation marks). The pipeline uses the tokenizer's own rule.
"""

_MIXED = """
## Layers

This tagger was trained on a learnt mix of its layers (`mix.weights`, `mix.gamma` in `model.safetensors`). The pipeline
above ignores the mix and reads only the last layer. Dev F1 in percent: {mixed:.2f} with the mix, {last:.2f} with the
pipeline. For use without Winnow, train a tagger with another value of `layers`.
"""

_DECODINGS = ("F1, viterbi", "F1, argmax", "F1, cited_scorer", "F1, constrained")
_ONCE = (
    "The test set was scored once per seed. Macro F1: the mean over the types in the split. ECE: the expected "
    "calibration error of the confidences, 0 to 1, before and after temperature scaling."
)
HELD = (
    "`vocabulary.json` holds every word of the training text, also those seen once (including names), and those of the "
    "word vectors that it started from. Anyone with this folder can read them. The page Results offers a copy without "
    "the words seen once, as does `python -m core finetune ... --output FOLDER --without-rare-words`."
)
LEFT_OUT = (
    "`vocabulary.json` holds the words that occur at least twice in the training text, and those of the word vectors "
    "that it started from. Anyone with this folder can read them. Words seen once were left out and are read as the "
    "unknown word, so this copy may score a little lower than reported above."
)
WORTH_A_WORD = 2.0  # smallest loss in F1 points that `by_others` warns about
_HEADINGS = ("seed", "kept epoch", "split", *_DECODINGS, "F1, unseen", "macro F1", "ECE before", "ECE after")
_USE_WINNOW = """
## Use

```
python -m core predict --model "this folder" INPUT --output OUTPUT.jsonl
```

This network is Winnow's own; other software cannot load it.
"""
_WORDS = f"""
## Words

{HELD}
"""
_NAMES = """
## Dictionary

`names.json` contains the names that the tagger looks up. Anyone with this folder can read them. Other software ignores
this file, so the tagger scores lower there.
"""
_SPANS = f"""
## Spans

The tagger gives every run of up to {MOST} words one type or none. Of overlapping spans, only the one with the highest
confidence is kept. Longer entities cannot be found. {{}}
"""
_NO_CHAIN = ("head", "constrained", "layers")  # settings that a span tagger does not have


def card(
    config: FinetuneConfig,
    job: Job,
    outcomes: Sequence[SeedOutcome],
    train_in_test: TrainInTest,
    too_long: TooLong | None = None,
) -> str:
    """Return the model card of a fine-tuned tagger, in Markdown."""
    kept = max(outcomes, key=lambda outcome: outcome.dev.micro_f1)
    data = [("first", config.first)] if config.first else []
    data += [("train", config.train), *([("assisting", config.assisting)] if config.assisting else [])]
    data += [("dev", config.dev), *(("test", name) for name in config.test)]
    data += [("dictionary", name) for name in config.dictionary]
    data += [("unlabelled", config.unlabelled)] if config.unlabelled else []
    data += [("distant", name) for name in config.distant]
    corpora = [(role, job.corpus(name)) for role, name in data]
    tables = [
        _table(
            ("split", "corpus", "sentences", "fingerprint"),
            [(role, corpus.name, f"{len(corpus):,}", f"`{corpus.fingerprint}`") for role, corpus in corpora],
        ),
        _table(("setting", "value"), [*_settings(config), *kept.settings.items(), *versions().items()]),
        _table(_HEADINGS, [row for outcome in outcomes for row in _scores(outcome)]),
    ]
    on_encoder = config.network in ON_ENCODER
    kept_epoch = "last" if config.training(len(job.corpus(config.train))).last else "best"
    begun = f"fine-tuned from `{config.init}`" if on_encoder else f"({config.network}) trained from random weights"
    about = (
        f"A named-entity tagger {begun}. This folder contains the tagger of seed {kept.seed}, the best of "
        f"{len(outcomes)} on dev, with the weights of its {kept_epoch} epoch."
    )
    library = "library_name: transformers\n" if config.network == "encoder" else ""
    header = f"---\n{library}pipeline_tag: token-classification\n---\n\n# Tagger\n"
    parts = (
        header + "\n" + about,
        "## Data",
        tables[0],
        "## Settings",
        tables[1],
        "## Scores",
        _how_scored(config) + (f" {train_in_test.words} Unseen: the main score without them." if train_in_test else ""),
        tables[2],
    )
    return "\n\n".join(parts) + "\n" + _confidence(config, kept) + _use(config, kept, too_long)


def _use(config: FinetuneConfig, kept: SeedOutcome, too_long: TooLong | None) -> str:
    if config.network == "span":
        return _SPANS.format(too_long.words if too_long else "").replace(" \n", "\n") + _USE_WINNOW
    if config.network != "encoder":
        return _USE_WINNOW + _WORDS
    last = kept.last_layer
    mixed = "" if last is None else _MIXED.format(mixed=kept.dev.micro_f1, last=last)
    only_here = [*(["the mix of layers"] if mixed else []), *(["neighbouring sentences"] if config.context else [])]
    argmax = "`argmax` above" + (f", which also uses {' and '.join(only_here)}" if only_here else "")
    others = by_others(kept.dev.decodings, last, context=config.context)
    names = _NAMES if config.dictionary else ""
    return _USE.format(argmax=argmax) + others + mixed + _alone(config.context) + names


def _how_scored(config: FinetuneConfig) -> str:
    if config.network == "span":
        return (
            "Micro F1 over exact entities, percent. There is one decoding, the same in all columns: the spans with the "
            f"highest confidence that do not overlap. {_ONCE}"
        )
    return (
        "Micro F1 over exact entities, percent. viterbi: the best tag sequence, strict BIOES; argmax: each word alone, "
        "strict; cited_scorer: viterbi, scored like the code that Mahapatra et al. 2022 cite; constrained: the best "
        f"valid BIOES sequence. The main score is {'constrained' if config.within_bioes else 'viterbi'}, as in "
        f"training. {_ONCE}"
    )


def by_others(decodings: Mapping[str, float], last_layer: float | None = None, *, context: int = 0) -> str:
    """Return a warning if the tagger scores far lower in software that ignores the CRF, else "".

    decodings: {decoding: dev micro F1}, percent. last_layer: dev micro F1 of the last layer alone, for a tagger that
    mixes layers; else None. context: number of pieces that the tagger reads on each side of a sentence.
    """
    argmax, best = decodings["argmax"], max(decodings["constrained"], decodings["viterbi"])
    alone = argmax if last_layer is None else last_layer
    if best - alone < WORTH_A_WORD:
        return ""
    if best - argmax < WORTH_A_WORD:
        why = "the pipeline leaves out the mix of layers."
    else:
        why = (
            "this tagger relies on its CRF, which the pipeline ignores. For use without Winnow, "
            "train it with `--no-constrained` or `--head softmax`."
        )
    how = "if each word is decoded alone" if context else "with the pipeline above"
    return (
        f"\n**This tagger scores far lower in other software**: dev F1 is {alone:.1f} {how} and {best:.1f} with "
        f"`predict`, because {why}\n"
    )


def _confidence(config: FinetuneConfig, kept: SeedOutcome) -> str:
    if kept.dev.calibration is None:
        return ""
    fitted, among = kept.dev.calibration.fitted, ""
    if not config.within_bioes and config.network != "span":
        among = (
            f" {'The temperature was fitted' if fitted else 'The confidences are meant'} for decoding over all tag "
            "sequences, as in training, so use `predict --no-constrained`. Without this option, confidences may be "
            "wrong; `evaluate` reports their calibration error."
        )
    if not fitted:
        return (
            "\n## Confidence\n\nThe confidence of an entity is its probability under the tagger. No temperature was "
            f"fitted, because fewer than {FEWEST} entities were right on dev, or fewer than {FEWEST} were wrong. "
            f"`predict --min-confidence X` leaves out entities below X.{among}\n"
        )
    return (
        "\n## Confidence\n\nThe confidence of an entity is its probability under the tagger, at a temperature of "
        f"{kept.dev.calibration.temperature:.2f} that was fitted on dev (`temperature` in `config.json`). `predict "
        f"--min-confidence X` leaves out entities below X.{among} Other software reports confidences without "
        "this temperature.\n"
    )


def _alone(context: int) -> str:
    if not context:
        return ""
    return (
        f"\nThis tagger was trained with {context} pieces of the neighbouring sentences on each side of every sentence "
        "whose document is known, and `predict` reads them too. A pipeline reads each sentence alone, so the scores "
        "above do not apply to a pipeline.\n"
    )


def _settings(config: FinetuneConfig) -> list[tuple[str, object]]:
    names = (
        "init",
        "weights",
        "preset",
        "network",
        "first_epochs",
        "type_map",
        "assisting",
        "assisting_types",
        "assisting_weight",
        "share",
        "vectors",
        "assisting_vectors",
        "imported_vectors",
        "imported_assisting_vectors",
        "skipgram",
        "states",
        "head",
        "layers",
        "max_length",
        "context",
        "class_weights",
        "precision",
        "lora",
        "checkpointing",
        "seeds",
    )
    rows = [*((name, getattr(config, name)) for name in names), ("constrained", config.within_bioes)]
    if config.network != "span":
        return rows
    own = [("beta", config.beta), ("gamma", config.gamma)]
    return [*(row for row in rows if row[0] not in _NO_CHAIN), *own]


def _scores(outcome: SeedOutcome) -> list[tuple[object, ...]]:
    splits = [("dev", outcome.dev), *((f"test{i or ''}", scored) for i, scored in enumerate(outcome.tests))]
    return [
        (
            *(outcome.seed, outcome.best_epoch, name),
            *(f"{f1:.2f}" for f1 in scored.decodings.values()),
            "" if scored.unseen_f1 is None else f"{scored.unseen_f1:.2f}",
            "" if scored.macro_f1 is None else f"{scored.macro_f1:.2f}",
            *([f"{c.before:.3f}", f"{c.after:.3f}"] if (c := scored.calibration) else ["", ""]),
        )
        for name, scored in splits
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def _cell(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


class Vocabulary(TypedDict):
    """Stored vocabulary of a recurrent tagger.

    words: most frequent first. rare: number of words at the end of `words` that training sometimes replaces by the
    unknown word. once: number of words at the end of `words` that occur once in the training text.
    """

    words: list[str]
    rare: int
    once: NotRequired[int]


def count_words(folder: Path) -> tuple[int, int]:
    """Return the number of stored words of a tagger, and how many of them were seen once in training.

    Return (0, 0) if the tagger's folder has no word list.
    """
    if not (folder / VOCABULARY).exists():
        return 0, 0
    vocabularies = _vocabularies(folder)
    return sum(len(each["words"]) for each in vocabularies), sum(map(_once, vocabularies))


def copy_without_rare_words(folder: Path, target: Path) -> None:
    """Copy a tagger's folder to `target`; leave out words that were seen once, if the folder has a word list."""
    shutil.copytree(folder, target, dirs_exist_ok=True)
    if (folder / VOCABULARY).exists():
        _drop_rare_words(folder, target)
        models.write_card(target, models.read_card(folder).replace(HELD, LEFT_OUT))


def _drop_rare_words(folder: Path, target: Path) -> None:
    from safetensors.numpy import load_file, save_file  # The app's process must not load torch.

    vocabularies, weights = _vocabularies(folder), load_file(folder / WEIGHTS)
    for index, vocabulary in enumerate(vocabularies):
        n = len(vocabulary["words"]) - _once(vocabulary)
        name = f"towers.{index}.words.trained.weight"
        weights[name] = weights[name][: 1 + n].copy()  # Row 0 is the vector of the unknown word.
        vocabulary |= {"words": vocabulary["words"][:n], "rare": 0, "once": 0}
    (target / VOCABULARY).write_text(json.dumps(vocabularies, ensure_ascii=False), encoding="utf-8")
    save_file(weights, target / WEIGHTS)


def _vocabularies(folder: Path) -> list[Vocabulary]:
    vocabularies: list[Vocabulary] = read_json(folder / VOCABULARY)
    return vocabularies


def _once(vocabulary: Vocabulary) -> int:
    return max(int(vocabulary["once"]), int(vocabulary["rare"]))
