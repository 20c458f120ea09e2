"""Windows over a long text: every piece counts once, the first window is the cut, the last has its context too."""

from hypothesis import given
from hypothesis import strategies as st

from core.models.pieces import even_parts, windows


@given(st.integers(0, 2), st.integers(0, 2), st.integers(1, 12), st.integers(1, 60))
def test_every_piece_counts_once_and_every_window_is_full(before: int, behind: int, room: int, more: int) -> None:
    special = [1] * before + [0] * (room + more) + [1] * behind
    n, most = len(special), before + room + behind
    parts = windows(special, most)
    assert [part.places[i] for part in parts for i in part.new] == list(range(before, n - behind))
    assert list(parts[0].places) == [*range(before + room), *range(n - behind, n)]  # what cutting leaves
    assert len(parts) == -(-(room + more) // room)
    for part in parts:
        assert len(part.places) == most
        assert [special[place] for place in part.places] == special[:before] + [0] * room + special[n - behind :]


@given(st.integers(0, 2), st.integers(0, 2), st.integers(1, 12), st.integers(1, 60))
def test_parts_hold_every_piece_once_and_are_even(before: int, behind: int, room: int, n: int) -> None:
    special = [1] * before + [0] * n + [1] * behind
    parts = even_parts(special, before + room + behind)
    ends = [*range(before), *range(before + n, len(special))]
    assert all([*part[:before], *part[len(part) - behind :]] == ends for part in parts)
    inner = [part[before : len(part) - behind] for part in parts]
    assert [place for part in inner for place in part] == list(range(before, before + n))
    assert len(parts) == -(-n // room)
    assert max(map(len, inner)) - min(map(len, inner)) <= 1
