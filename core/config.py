"""Define options of runs.

One line of code defines an option for validation, `--help`, the forms on pages and the commands that pages show.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, Self, TypedDict, Unpack, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import ConfigError

Unit = Literal["sentences", "tokens", "fraction", "threshold"]
# Largest seed of a training; numpy refuses larger ones.
LARGEST_SEED = 2**32 - 1


# {type of a pydantic error: end of the message "OPTION must be ..."}
_MUST = {
    "bool_parsing": "yes or no",
    "bool_type": "yes or no",
    "dict_type": "pairs of a name and a value",
    "finite_number": "a number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "less than {lt:g}",
    "less_than_equal": "{le:g} or less",
    "literal_error": "{expected}",
    "string_type": "text",
    "too_long": "a list of at most {max_length}",
    "too_short": "a list of at least {min_length}",
    "tuple_type": "a list",
}


def offline() -> bool:
    """Return True if an administrator set `WINNOW_OFFLINE=1`, which forbids all downloads."""
    return os.environ.get("WINNOW_OFFLINE", "") not in ("", "0")


def refuse_download(options: Mapping[str, object]) -> None:
    """Check that the options, including nested ones, allow no download and no other host if the machine is offline.

    Errors: ConfigError.
    """
    wanted = options.get("allow_download") not in (None, False)
    if wanted and offline():
        raise ConfigError(
            "allow_download: this machine is set to stay offline (WINNOW_OFFLINE), so nothing is downloaded. Leave the "
            "option out, and name a local encoder: a folder, or minilm, which is bundled."
        )
    if options.get("allow_host") and offline():
        raise ConfigError(
            "allow_host: this machine is set to stay offline (WINNOW_OFFLINE), so no text is sent to another host. "
            "Leave the option out, and give the address of a server on this computer."
        )
    for stage in options.values():
        if isinstance(stage, Mapping):
            refuse_download(stage)


class Config(BaseModel):
    """Base class of the options of runs. It is frozen, rejects unknown names, and reports errors in one sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    def settled(self) -> Self:
        """Fill in the values that the user left out, if the result depends on them, and return the config."""
        return self

    @classmethod
    def parse(cls, values: Mapping[str, object]) -> Self:
        """Validate `values`. Errors: ConfigError that names the option, its value and what was expected."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise _refusal(error) from error


def _refusal(error: ValidationError) -> ConfigError:
    """Return a ConfigError for the first problem."""
    first = error.errors(include_url=False)[0]
    option = ".".join(part for part in first["loc"] if isinstance(part, str))
    shape = _MUST.get(first["type"])
    came = f"{str(first['input'])[:60]!r}"
    if first["type"] == "missing":
        refusal = ConfigError(f"{option} is missing.")
    elif shape and option:
        refusal = ConfigError(f"{option} must be {shape.format(**first.get('ctx', {}))}, not {came}.")
    else:
        given = f" (given: {came})" if first["loc"] else ""
        refusal = ConfigError(f"{option or 'options'}: {first['msg'].removeprefix('Value error, ')}{given}.")
    refusal.option = option
    return refusal


class Bounds(TypedDict, total=False):
    """Bounds of a value, as keyword arguments of pydantic's `Field`."""

    ge: float
    gt: float
    le: float
    lt: float
    min_length: int
    max_length: int


def option(
    default: object,
    help: str,
    *,
    unit: str | None = None,
    corpus: bool = False,
    hidden: bool = False,
    **bounds: Unpack[Bounds],
) -> Any:
    """Define a field of a `Config`, like pydantic's `Field`. Returns Any, so that it can be assigned to all fields.

    default: default value; `...` if the user must give a value. unit: word to show after the value ("pieces").
    corpus: True if the value names one or several corpora, by name, fingerprint or path.
    hidden: True if users cannot set the option; `settled` fills it in.
    """
    return Field(
        default, description=help, json_schema_extra={"unit": unit, "corpus": corpus, "hidden": hidden}, **bounds
    )


def fields_with(config: type[Config], trait: Literal["corpus", "hidden"]) -> list[str]:
    """Return the names of the options that have the trait `corpus` or `hidden`."""
    extras = {name: field.json_schema_extra for name, field in config.model_fields.items()}
    return [name for name, extra in extras.items() if isinstance(extra, dict) and extra.get(trait)]


def checked(name: str, options: Mapping[str, object], config: type[Config]) -> dict[str, object]:
    """Check nested options such as those of the stage `pretrain`. Return the given options, without defaults, as JSON.

    A list may be given as one text with commas, as on the command line. name: name of the stage, for error messages.
    Errors: ConfigError that names the stage and the option.
    """
    may = [key for key in config.model_fields if key not in fields_with(config, "hidden")]
    if wrong := [key for key in options if key not in may]:
        raise ConfigError(f"{name}.{wrong[0]}: is not an option here; choose among {', '.join(may)}.")
    try:
        values = config.parse(_with_lists(options, config)).model_dump(mode="json")
    except ConfigError as error:
        raise ConfigError(f"{name}.{error}") from error
    return {key: values[key] for key in options if key in values}  # leave out options that `model_dump` excludes


def _with_lists(options: Mapping[str, object], config: type[Config]) -> dict[str, object]:
    """Return the options. Split a text at its commas if the option is a list."""
    lists = {name for name, field in config.model_fields.items() if get_origin(field.annotation) is tuple}
    return {
        name: tuple(part.strip() for part in value.split(",") if part.strip())
        if name in lists and isinstance(value, str)
        else value
        for name, value in options.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much of the domain corpus to select.

    value: its meaning depends on `unit`. `sentences`, `tokens`: their number. `fraction`: share of the domain corpus's
    sentences, 0 to 1. `threshold`: the worst score to include, in the strategy's unit.
    """

    value: float
    unit: Unit

    def __post_init__(self) -> None:
        if self.unit == "fraction" and not 0 < self.value <= 1:
            raise ConfigError(
                f"budget: {self.value * 100:.4g}% of the domain corpus is not possible; give more than 0% and at most "
                "100%, such as 20%."
            )
        if self.unit in ("sentences", "tokens") and (self.value < 1 or self.value != int(self.value)):
            raise ConfigError(f"budget: {self.value:g} {self.unit} is not possible; give a whole number of at least 1.")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `1000`, `1000sentences`, `50000tokens`, `20%` or `threshold:0.75`. Errors: ConfigError."""
        text = text.strip().replace("_", "").replace(" ", "")
        match = re.fullmatch(r"threshold:(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text)
        if match and math.isfinite(value := float(match[1])):
            return cls(value=value, unit="threshold")
        if match := re.fullmatch(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)%", text):
            return cls(value=float(match[1]) / 100, unit="fraction")
        if match := re.fullmatch(r"(\d{1,15})(sentences|tokens)?", text):
            return cls(value=int(match[1]), unit="tokens" if match[2] == "tokens" else "sentences")
        raise ConfigError(
            f"budget: {text[:40]!r} is not understood; give 1000 (sentences), 50000tokens, 20% or threshold:0.75."
        )

    @property
    def in_words(self) -> str:
        """The budget in words: "20.2%", "1,333 sentences" or "all sentences with a score of 2.837 or better"."""
        if self.unit == "fraction":
            return str(self)
        if self.unit == "threshold":
            return f"all sentences with a score of {self.value:.4g} or better"
        return f"{int(self.value):,} {self.unit}"

    def __str__(self) -> str:
        if self.unit == "fraction":
            # Without an exponent: "0.00001%", not "1e-05%".
            return f"{Decimal(f'{self.value * 100:.12g}'):f}%"
        if self.unit == "threshold":
            return f"threshold:{self.value!r}"
        return f"{int(self.value)}{'tokens' if self.unit == 'tokens' else ''}"


def unusual(config: Config, names: Iterable[str]) -> list[str]:
    """Return a phrase such as `seed 2` or `entity low 0.5` for each option in `names` that differs from its default."""
    usual = {name: field.default for name, field in type(config).model_fields.items()}
    values = {name: getattr(config, name) for name in names}
    return [
        f"{name.replace('_', ' ')} {str(value).rstrip('/').rsplit('/', 1)[-1]}"
        for name, value in values.items()
        if value != usual[name]
    ]
