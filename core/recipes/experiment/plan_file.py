"""PLAN.yaml: an experiment's options in a file, with errors that name the file, the line and the key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, get_origin

import yaml

from core.config import Config, fields_with
from core.errors import InputError, PathError, ReadError


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFile:
    """options: as written, every value text (`none`, `no` and `20%` mean what they say). lines: of every dotted key."""

    path: Path
    options: Mapping[str, object]
    lines: Mapping[str, int]

    @classmethod
    def read(cls, path: Path, config: type[Config]) -> Self:
        """config: whose fields the file may name; a single value will do where it takes a list, and a corpus's path
        may be relative to the file. Errors: PathError, ReadError (for
        anchors and aliases too)."""
        if not path.is_file():
            raise PathError(f"{path}: there is no such file; give an experiment's PLAN.yaml.")
        try:
            text = path.read_text(encoding="utf-8")
            for token in yaml.scan(text, Loader=yaml.BaseLoader):
                if isinstance(token, yaml.AliasToken | yaml.AnchorToken):  # nine lines of them make a billion options
                    line = token.start_mark.line + 1
                    raise ReadError(path.name, line, "refers to another part of the file; write the value out.")
            node = yaml.compose(text, Loader=yaml.BaseLoader)
        except UnicodeDecodeError as error:
            raise ReadError(path.name, None, "is not UTF-8 text; save it as UTF-8.") from error
        except RecursionError as error:
            raise ReadError(
                path.name, None, "nests too deeply to be a plan; write options one below another."
            ) from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise ReadError(path.name, line, "has a control character in it; take it out.") from error
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else None
            raise ReadError(path.name, line, f"is not YAML ({error.problem}); check quotes and indentation.") from error
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
        """The error with the place in the file whose key it begins with."""
        key = str(error).partition(":")[0]
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return ReadError(self.path.name, self.lines.get(key), str(error))


def _keys(node: yaml.MappingNode, file: str, prefix: str = "") -> Iterator[tuple[str, int]]:
    """(dotted key, its line). Errors: ReadError for a key that is there twice, of which YAML would take the last."""
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
    """A corpus's path made absolute where it lies beside the file; a name stays."""
    if isinstance(value, list):
        return [_absolute(item, folder) for item in value]
    path = folder / str(value)
    return str(path.absolute()) if value and path.exists() else value
