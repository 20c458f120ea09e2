"""The table of mentions: what is written is read; bins at half a bit."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bias.result import Mention, bin_of, read_mentions, write_mentions

BITS = st.floats(-20, 20)
NUMBER = st.integers(0, 2**31 - 1)
MENTION = st.builds(
    Mention,
    row=NUMBER,
    sentence=st.text("0123456789abcdef", min_size=16, max_size=16),
    start=NUMBER,
    end=NUMBER,
    type=st.text(max_size=5),
    surface=st.text(max_size=9),
    pvi_entity=BITS,
    pvi_context=BITS,
    ceim=BITS,
    bin=st.sampled_from(("low", "near_zero", "high")),
    fold=NUMBER,
)


@settings(deadline=None, max_examples=25)
@given(st.lists(MENTION, max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, mentions: list[Mention]) -> None:
    path: Path = tmp_path_factory.getbasetemp() / "mentions.parquet"
    write_mentions(mentions, path)
    assert read_mentions(path) == mentions


@pytest.mark.parametrize(
    ("ceim", "name"),
    [(-7, "low"), (-0.5, "low"), (-0.4999, "near_zero"), (0, "near_zero"), (0.4999, "near_zero"), (0.5, "high")],
)
def test_bins_of_the_specification(ceim: float, name: str) -> None:
    assert bin_of(ceim) == name
