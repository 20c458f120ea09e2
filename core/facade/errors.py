"""The errors that pages and the command line tell people."""

from core.errors import (
    Cancelled,
    ConfigError,
    CorpusError,
    EncodingError,
    InputError,
    OptionsError,
    Overtaken,
    ProjectError,
    WinnowError,
    for_the_log,
)

__all__ = [
    "Cancelled",
    "ConfigError",
    "CorpusError",
    "EncodingError",
    "InputError",
    "OptionsError",
    "Overtaken",
    "ProjectError",
    "WinnowError",
    "for_the_log",
]
