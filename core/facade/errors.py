"""The errors that pages and the command line tell people, and what makes any text fit to be shown in a terminal."""

from core.errors import Cancelled, ConfigError, CorpusError, EncodingError, InputError, WinnowError, for_the_log
from core.shown import shown, shown_json

__all__ = [
    "Cancelled",
    "ConfigError",
    "CorpusError",
    "EncodingError",
    "InputError",
    "WinnowError",
    "for_the_log",
    "shown",
    "shown_json",
]
