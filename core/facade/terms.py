"""The words that pages and the command line use: each thing's plain name, its symbol, what it means."""

from core.terms import *  # noqa: F403
from core.terms import Term as Term
