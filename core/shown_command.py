"""Build the command line that repeats what a page does, so that the page can show it."""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress

from core.config import fields_with
from core.corpora.corpus import Corpus
from core.errors import CorpusError, WinnowError
from core.kinds import KINDS
from core.projects import view as projects
from core.projects.home import library
from core.runs.store import Run
from core.selection import DEFAULT_STRATEGY, strategy_options

_PAIR_START = re.compile(r'\s*"?[\w.-]+=')  # beginning of a NAME=VALUE pair


def command(kind: str, options: Mapping[str, object]) -> str:
    """Return the command line for `runs.start(kind, options)`."""
    known = KINDS[kind]
    config = known.config.parse(dict(options))
    references, hidden = (set(fields_with(known.config, trait)) for trait in ("corpus", "hidden"))
    words = ["python", "-m", "core", *projects.option(), *known.words]
    if kind == "pretrain" and not config.model_dump()["holdout"]:
        words += ["--holdout", "none"]  # without this option, the dev and test sets are held out
    for name, field in known.config.model_fields.items():
        value = getattr(config, name)
        if name in hidden or (value == field.default and not field.is_required()):
            continue
        if name in known.positional:
            shown = _shown if name in references else str
            words += [shown(value)] if isinstance(value, str) else map(quoted, value)
        elif kind == "select" and name == "domain":
            words += _domain(value)
        elif name == "options":
            usual = strategy_options(str(options.get("strategy", DEFAULT_STRATEGY)), {}).model_dump(mode="json")
            value = {key: item for key, item in value.items() if item != usual.get(key)}
            words += [part for pair in pairs(value) for part in (flag(name), pair)]
        elif isinstance(value, dict):
            words += [part for pair in pairs(value) for part in (flag(name), pair)]
        elif isinstance(value, tuple):
            words += [
                part for item in value for part in (flag(name), _shown(item) if name in references else quoted(item))
            ]
        elif isinstance(value, bool):
            words.append(flag(name, on=value))
        else:
            words += [flag(name), _shown(value) if name in references else str(value)]
    return shlex.join(words)


def command_of(run: Run) -> str | None:
    """Return the command line that repeats a run, or None if there is none.

    There is none in three cases: runs of this kind have no command, the run's options are no longer valid, or the run
    imported an uploaded file, which was deleted after the import.
    """
    kind, options = run.manifest.kind, run.manifest.config
    with suppress(KeyError, TypeError, WinnowError):
        return None if KINDS[kind].command is None or options.get("move") else command(kind, options)
    return None


def filter_command(made: Corpus) -> str:
    """Return the command line that makes a filtered corpus. made: this corpus, from `importing.view.filtered`."""
    words = ["python", "-m", "core", *projects.option(), "corpus", "filter", _shown(made.parent), *_where(made)]
    return shlex.join(words)


def _domain(fingerprint: str) -> list[str]:
    """Return the options for a domain corpus. For a filtered corpus, they name the whole corpus and the filter."""
    with suppress(CorpusError):
        domain = library().find(fingerprint)
        if where := _where(domain):
            return ["--domain", _shown(library().find(domain.parent).fingerprint), *where]
    return ["--domain", _shown(fingerprint)]


def _where(made: Corpus) -> list[str]:
    """Return the options that filter a corpus; [] for a corpus that was not filtered."""
    where = made.origin.get("where")
    pairs = where.items() if isinstance(where, Mapping) else ()
    return [part for name, values in pairs for value in values for part in ("--where", _where_item(name, value))]


def _where_item(name: str, value: str) -> str:
    """Return NAME=VALUE, in double quotes if the command line would split it or drop its last comma."""
    pair = f"{name}={value}"
    return f'"{pair}"' if re.search(r",(\s*[\w.-]+=|$)", pair) else pair


def flag(name: str, *, on: bool = True) -> str:
    """Return the flag of an option. The flag of a repeatable option is in the singular: `--seed 1 --seed 2`.

    on: False for the flag that switches the option off, such as `--no-fast`.
    """
    singular = {"corpora": "corpus", "options": "option", "seeds": "seed", "encoders": "encoder"}.get(name, name)
    if name == "cascade" and not on:
        return "--exact"
    return ("--" if on else "--no-") + singular.replace("_", "-")


def pairs(options: Mapping[str, object]) -> Iterator[str]:
    """Yield nested options as NAME=VALUE: for {knn: {neighbours: 10}}, `knn.neighbours=10`. Commas join lists."""
    for name, value in options.items():
        if isinstance(value, dict):
            yield from (f"{name}.{pair}" for pair in pairs(value))
        else:
            yield f"{name}={','.join(map(str, value)) if isinstance(value, list | tuple) else value}"


def quoted(value: object) -> str:
    """Return a value of a list. Double quotes keep the command line from splitting it at its commas."""
    return f'"{value}"' if "," in str(value) else str(value)


def unquoted(text: str) -> str:
    """Return a value without the double quotes around it."""
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == '"' else text


def split_items(text: str, *, pairs: bool = False) -> list[str]:
    """Split a text at its commas, but not inside double quotes, and drop blank items.

    pairs: True to split only before the next NAME=, so that the value of `k=1,5` stays whole. If all items are blank,
    return the text itself, which causes an error later. An empty list would silently select the option's default.
    """
    has_pairs = text.count('"') % 2 == 0  # Otherwise a quote is only a character, as in 5" pipe.
    parts, inside = list[list[str]](), False
    for piece in text.split(","):
        if parts and (inside or (pairs and not _PAIR_START.match(piece))):
            parts[-1].append(piece)
        else:
            parts.append([piece])
        inside ^= has_pairs and piece.count('"') % 2 == 1
    return [part for pieces in parts if (part := ",".join(pieces).strip().rstrip(","))] or [text]


def _shown(fingerprint: str) -> str:
    """Return a corpus's name if it is unique, else its fingerprint."""
    try:
        corpus = library().find(fingerprint)
        return corpus.name if library().find(corpus.name).fingerprint == corpus.fingerprint else fingerprint
    except CorpusError:
        return fingerprint
