"""How options become a command's and how a result is told: what the commands of `core.__main__` share."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

import click

from core import facade
from core.facade import Config, Event

Options = dict[str, Any]
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, nothing else.")


def config_options(config: type[Config], *, leave_out: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """A decorator that gives a command one option for every field of `config`."""

    def decorate(command: Any) -> Any:
        for name, field in reversed(config.model_fields.items()):
            extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
            if name in leave_out or extra.get("hidden"):
                continue
            help = (field.description or "") + (f" [{extra['unit']}]" if extra.get("unit") else "")
            command = click.option(*_flags(name), name, help=help, **_click_kind(field))(command)
        return command

    return decorate


def _flags(name: str) -> tuple[str, ...]:
    """`--option` for `options`; an option that is repeated goes by its singular too: `--seed 1 --seed 2`."""
    if name == "options":
        return ("--option",)
    singular = {"seeds": ("--seed",), "corpora": ("--corpus",)}.get(name, ())
    return (*singular, "--" + name.replace("_", "-"))


def _click_kind(field: Any) -> Options:
    """click's keywords for a pydantic field; values stay text, the config itself validates them."""
    kind, default = field.annotation, field.default
    shown: Options = {"required": True} if field.is_required() else {}
    if default not in ("", (), {}) and not shown:
        shown = {"show_default": str(default)}
    if kind is bool:
        return {"is_flag": True, "default": None}
    if get_origin(kind) is Literal:
        return {"type": click.Choice([str(choice) for choice in get_args(kind)]), "default": None, **shown}
    return {"multiple": get_origin(kind) in (tuple, dict), "default": None, **shown}


def given(values: Mapping[str, Any], config: type[Config]) -> Options:
    """The options that were typed, in the shape that `config` takes; corpora by path are added on the way."""
    options = {name: value for name, value in values.items() if name in config.model_fields and value not in (None, ())}
    if "options" in options:
        options["options"] = dict(_pair(text) for text in options["options"])
    return facade.with_corpora(config, options, progress)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise facade.ConfigError(f"option: {text!r} is not NAME=VALUE; write for example --option neighbours=10.")
    return name, value


def progress(event: Event) -> None:
    """One line on stderr that keeps changing; a note stays."""
    data = event.data
    width = shutil.get_terminal_size().columns - 1
    if event.kind == "stage":
        click.echo(f"\r{data['name']:<{width}}"[: width + 1], err=True)
    elif event.kind == "note":
        click.echo(f"\rnote: {data['text']:<{width}}", err=True)
    elif event.kind == "progress" and sys.stderr.isatty():
        of = f" of {data['total']:,}" if data["total"] else ""
        click.echo(f"\r  {data['done']:,}{of} {data['unit']}   ", nl=False, err=True)


def report(result: Mapping[str, Any], as_json: bool) -> None:
    """The result on stdout: one JSON object, or a line a key."""
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
        return
    for name, value in result.items():
        text = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
        click.echo(f"{name:<12} {text}")
