"""Turn the fields of a config into command-line options, and what a user typed into values of the config."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, TypeVar, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from core import shown_command as commands
from core.cli.terminal import progress
from core.config import Config
from core.corpora import remote
from core.errors import ConfigError
from core.importing import view as corpora
from core.projects import runs

Options = dict[str, object]
Command = TypeVar("Command", bound=Callable[..., object])
_YES_OR_NO = (bool, bool | None)


class _Corpus(click.ParamType[str]):
    """Type of an option for a corpus, given by name, fingerprint or path. The value stays text.

    `given` imports the file if the value is a path.
    """

    name = "corpus"


class _Here(click.Path):
    """Type of an option for an output path on this machine.

    Errors: ConfigError for a remote address, before anything is computed.
    """

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        if remote.is_address(str(value)):
            raise ConfigError(
                f"{param.name if param else 'output'}: {remote.named(str(value))} is a remote address, which only "
                "select and export can write to. Give a path on this machine, and copy the files afterwards."
            )
        return super().convert(value, param, context)


CORPUS = _Corpus()
FILE, FOLDER = _Here(dir_okay=False), _Here(file_okay=False)  # types of options for an output file or folder


def several(context: click.Context, param: click.Parameter, typed: Sequence[str]) -> tuple[str, ...]:
    """Return the values of a repeatable option. Users may repeat the option, separate values by commas, or both.

    The name of an existing corpus or file is not split at its commas, nor is a value in double quotes. Double quotes
    that belong to such a name are kept. This is a `callback` of click.
    """
    may_be_whole = param.type is CORPUS or isinstance(param.type, click.Path)
    marked = may_be_whole and not {",", '"'}.isdisjoint("".join(typed))
    names = {corpus.name for corpus in corpora.listed()} if marked else set()

    def whole(text: str) -> bool:
        # `os.path.exists` is False for a list that is too long for a path; `Path.exists` raises an error.
        return may_be_whole and (text in names or os.path.exists(text))

    parted = ([text] if whole(text) else commands.split_items(text) for text in typed)
    return tuple(part if whole(part) else commands.unquoted(part) for parts in parted for part in parts)


def several_pairs(context: click.Context, param: click.Parameter, typed: Sequence[str]) -> tuple[str, ...]:
    """Return the NAME=VALUE pairs of a repeatable option, as `several` does. Here, values may contain commas."""
    return tuple(commands.unquoted(part) for text in typed for part in commands.split_items(text, pairs=True))


def config_options(config: type[Config], *, leave_out: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Return a decorator that adds an option for every field of `config` to a command. leave_out: fields to skip."""

    def decorate(command: Command) -> Command:
        required_first = sorted(config.model_fields.items(), key=lambda named: not named[1].is_required())
        # Add options in reverse, because click lists the option of the last decorator first.
        for name, field in reversed(required_first):
            extra = _extra(field)
            if name in leave_out or extra.get("hidden"):
                continue
            help = (field.description or "") + (f" [{extra['unit']}]" if extra.get("unit") else "") + _default(field)
            command = click.option(*_flags(name, field), name, help=help, **_click_kind(field))(command)
        return command

    return decorate


class Attributes(TypedDict, total=False):
    """Keyword arguments of `click.option`."""

    required: bool
    is_flag: bool
    multiple: bool
    default: None
    metavar: str
    type: click.ParamType[str] | None
    callback: Callable[[click.Context, click.Parameter, Sequence[str]], tuple[str, ...]]


def _extra(field: FieldInfo) -> Mapping[str, object]:
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def _flags(name: str, field: FieldInfo) -> tuple[str, ...]:
    """Return the flags of an option: its usual flag, and the field's name if it differs (`--seed` and `--seeds`).

    A yes-or-no option has the flags `--name/--no-name`, or only `--name` if its default is no.
    """
    if field.annotation in _YES_OR_NO and field.default is not False:
        return (f"{commands.flag(name)}/{commands.flag(name, on=False)}",)
    return tuple(dict.fromkeys((commands.flag(name), *(["--" + name.replace("_", "-")] if name != "options" else []))))


def _click_kind(field: FieldInfo) -> Attributes:
    """Return the arguments of `click.option` for a field of a config. Values stay text; the config validates them."""
    kind = field.annotation
    shown: Attributes = {"required": True} if field.is_required() else {}
    if kind in _YES_OR_NO:
        return {"is_flag": True, "default": None}
    if get_origin(kind) is Literal:
        return {"type": click.Choice([str(choice) for choice in get_args(kind)]), "default": None, **shown}
    shown |= {"default": None, "type": CORPUS if _extra(field).get("corpus") else None}
    name = "CORPUS" if shown["type"] else _metavar(kind)
    if get_origin(kind) in (tuple, dict):
        pairs = get_origin(kind) is dict
        shown |= {"multiple": True, "callback": several_pairs if pairs else several, "metavar": f"{name},..."}
    elif name != "CORPUS":
        shown["metavar"] = name
    return shown


def _metavar(kind: object) -> str:
    """Return the word that the help shows for an option's value: INT, FLOAT, TEXT or NAME=VALUE.

    For a list, return the word for one item. kind: type annotation of the field.
    """
    if get_origin(kind) is dict:
        return "NAME=VALUE"
    if kind in (int, float):
        return "INT" if kind is int else "FLOAT"
    # For an optional value or a list, use the first inner type that is not text.
    inner = [_metavar(each) for each in get_args(kind) if each not in (type(None), ...) and not isinstance(each, str)]
    return next((name for name in inner if name != "TEXT"), "TEXT")


def _default(field: FieldInfo) -> str:
    """Return the default as the end of a help text, such as " [default: 5]"; "" if there is nothing to show."""
    value = field.default
    if field.is_required() or value in ("", (), {}, None, False):
        return ""
    if value is True:
        return " [default: on]"
    if isinstance(value, dict):
        return f" [default: {', '.join(f'{key}={item}' for key, item in value.items())}]"
    if isinstance(value, tuple):
        return f" [default: {', '.join(map(str, value))}]"
    return f" [default: {value:g}]" if isinstance(value, float) else f" [default: {value}]"


def given(values: Mapping[str, object], config: type[Config]) -> Options:
    """Return the options that the user typed, as values of `config`. Corpora given by path are imported first."""
    options = {name: value for name, value in values.items() if name in config.model_fields and value not in (None, ())}
    for name in ("options", "skipgram"):
        if isinstance(pairs := options.get(name), tuple):
            options[name] = dict(_pair(commands.flag(name), text) for text in pairs)
    return runs.with_corpora(config, options, progress.importing)


def _pair(flag: str, text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        example = {"--option": "neighbours=10"}.get(flag, "window=2")
        raise ConfigError(f"{flag.removeprefix('--')}: {text!r} is not NAME=VALUE; write for example {flag} {example}.")
    return name, value
