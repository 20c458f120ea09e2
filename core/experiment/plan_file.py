"""PLAN.yaml: options of an experiment or a study in a file, with errors that name the file, the line and the key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, get_origin

import yaml

from core.config import Config, fields_with
from core.errors import InputError, PathError, ReadError
from core.shown import brief

MAX_BYTES = 1 << 20  # of a plan; the longest of ours has 4 KB
_MAX_TOKENS = 50_000  # of YAML; its scanner reads about 50,000 per second
_MAX_DEPTH = 20  # of nested lists and options; the time of YAML's scanner grows with the square of the depth


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """A PLAN.yaml. options: values as text, so that `no` and `20%` stay as written. lines: {dotted key: line}."""

    path: Path
    options: Mapping[str, object]
    lines: Mapping[str, int]

    @classmethod
    def read(cls, path: Path, config: type[Config]) -> Self:
        """Read a plan. config: class whose options are the allowed keys.

        An option that is a list accepts a single value. Paths of corpora may be relative to the file.
        Errors: PathError; ReadError, also for anchors and aliases.
        """
        node = _composed(path, _text(path))
        if not isinstance(node, yaml.MappingNode):
            raise ReadError(path.name, 1, "is no list of options; write lines like `task: my-corpus`.")
        lines = dict(_keys(node, path.name))
        options: dict[str, object] = yaml.BaseLoader("").construct_document(node)
        plan = cls(path=path, options=options, lines=lines)
        for key in options:
            if key not in config.model_fields or key == "weights":
                known = ", ".join(name for name in config.model_fields if name != "weights")
                raise plan.blame(InputError(f"{key}: is not an option; choose among {known}."))
        lists = {name for name in options if get_origin(config.model_fields[name].annotation) is tuple}
        options |= {name: [options[name]] for name in lists if isinstance(options[name], str)}
        named = [name for name in fields_with(config, "corpus") if name in options]
        options |= {name: _absolute(options[name], path.parent) for name in named}
        return plan

    def blame(self, error: InputError) -> ReadError:
        """Add file and line to an error whose message begins with a key."""
        key = str(error).partition(" ")[0].rstrip(":")
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return ReadError(self.path.name, self.lines.get(key), str(error))


def _text(path: Path) -> str:
    """Read the file's text. Errors: PathError; ReadError if it is too long or not UTF-8."""
    try:
        if not path.is_file():
            raise PathError(f"{path}: there is no such file; give an experiment's PLAN.yaml.")
        with path.open("rb") as file:
            written = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PathError(f"{brief(path.name)}: cannot be read ({error.strerror}); check the path.") from error
    if len(written) > MAX_BYTES:
        raise ReadError(path.name, None, f"is larger than {MAX_BYTES >> 20} MB, so it is no plan; give a PLAN.yaml.")
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ReadError(path.name, None, "is not UTF-8 text; save it as UTF-8.") from error


def _composed(path: Path, text: str) -> yaml.Node | None:
    """Parse the file's YAML. Errors: ReadError with the line."""
    try:
        _refuse_unbounded(path, text)
        return yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ReadError(path.name, line, "has a control character in it; take it out.") from error
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark.line + 1 if error.problem_mark else None
        raise ReadError(path.name, where, f"is not YAML ({error.problem}); check quotes and indentation.") from error


def _refuse_unbounded(path: Path, text: str) -> None:
    """Refuse what makes a short file expensive: aliases and deeply nested lists. Errors: ReadError."""
    depth = 0
    for n_tokens, token in enumerate(yaml.scan(text, Loader=yaml.BaseLoader)):
        line = token.start_mark.line + 1
        if isinstance(token, yaml.AliasToken | yaml.AnchorToken):  # nine lines of aliases make a billion options
            raise ReadError(path.name, line, "refers to another part of the file; write the value out.")
        depth += isinstance(token, _OPENING) - isinstance(token, _CLOSING)
        if n_tokens > _MAX_TOKENS:
            raise ReadError(path.name, line, f"has more than {_MAX_TOKENS:,} values and marks; shorten the plan.")
        if depth > _MAX_DEPTH:
            raise ReadError(path.name, line, "nests too deeply to be a plan; write options one below another.")


_OPENING = (
    yaml.BlockSequenceStartToken,
    yaml.BlockMappingStartToken,
    yaml.FlowSequenceStartToken,
    yaml.FlowMappingStartToken,
)
_CLOSING = (yaml.BlockEndToken, yaml.FlowSequenceEndToken, yaml.FlowMappingEndToken)


def _keys(node: yaml.MappingNode, file: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield (dotted key, line). Errors: ReadError for a repeated key, of which YAML would silently take the last."""
    seen: set[str] = set()
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise ReadError(file, line, "a key must be a word; write lines like `task: my-corpus`.")
        if key.value in seen:
            raise ReadError(file, line, f"{prefix}{key.value}: is there twice; keep one of them.")
        seen.add(key.value)
        yield prefix + key.value, line
        if isinstance(value, yaml.MappingNode):
            yield from _keys(value, file, f"{prefix}{key.value}.")


def _absolute(value: object, folder: Path) -> object:
    """Make a path of a corpus absolute, relative to the file; keep names of corpora."""
    if isinstance(value, list):
        return [_absolute(item, folder) for item in value]
    path = folder / str(value)
    try:
        return str(path.absolute()) if value and path.exists() else value
    except OSError:  # too long to be a path
        return value
