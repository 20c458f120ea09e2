"""Names of small groups on an enlarged map: which sentences form a group, where its name is, and which words it has."""

import numpy as np

from core.explore.zoom_names import CELLS, FEWEST, WIDTHS, hills, zoom_names
from core.results import FloatArray


def blob(x: float, y: float, n: int) -> FloatArray:
    """Return `n` points on a small circle around a place, shape (2, n)."""
    turn = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.array([x + 0.3 * np.cos(turn), y + 0.3 * np.sin(turn)])


def test_points_climb_to_the_peak_of_their_own_hill() -> None:
    columns = np.array([100, 101, 102, 101, 300, 301])
    rows = np.array([200, 200, 200, 201, 50, 50])
    # The mean of the first hill is (101, 200.25), so its densest cell is (101, 200).
    peaks = hills(columns, rows, 2.0)
    assert len(set(peaks[:4].tolist())) == len(set(peaks[4:].tolist())) == 1
    assert peaks[0] == 101 * CELLS + 200
    assert peaks[4] == 300 * CELLS + 50  # as dense as (301, 50): the lower number


def test_neighbours_share_a_name_until_the_map_is_enlarged() -> None:
    # The map is 100 wide. Groups 3 apart lie within two standard deviations of the first level (1.6) and more than
    # two of the second (0.8).
    corners = np.array([[0.0, 100.0], [0.0, 100.0]])
    places = {"lease": (50.0, 50.0), "loan": (53.0, 50.0), "patent": (20.0, 80.0)}
    xy = np.concatenate([corners, *(blob(*place, 20) for place in places.values())], axis=1)
    words = [frozenset[str]()] * 2 + [frozenset({"the", word, "due"}) for word in places for _ in range(20)]
    levels = zoom_names(xy[0], xy[1], words)

    assert len(levels) == len(WIDTHS)
    assert [set(name.text.split(", ")) for name in levels[0]] == [{"lease", "loan"}, {"patent"}]
    # The largest group comes first: at the first level, both neighbours together.
    assert abs(levels[0][0].x - 51.5) < 1
    assert {name.text for name in levels[1]} == set(places)
    for name in levels[1]:
        x, y = places[name.text]
        assert max(abs(name.x - x), abs(name.y - y)) < 0.5


def test_few_sentences_and_sentences_without_own_words_get_no_name() -> None:
    few = np.concatenate([blob(0, 0, FEWEST - 1), blob(50, 50, FEWEST), blob(100, 100, 2 * FEWEST)], axis=1)
    words = [frozenset({"rare"})] * (FEWEST - 1) + [frozenset({"own"})] * FEWEST + [frozenset({"1"})] * 2 * FEWEST
    assert {name.text for name in zoom_names(few[0], few[1], words)[0]} == {"own"}
    assert zoom_names(np.empty(0), np.empty(0), []) == [[], [], []]


def test_points_at_one_place_are_one_group() -> None:
    same = np.full(FEWEST, 3.0)
    # No word distinguishes the only group of a map.
    assert zoom_names(same, same, [frozenset({"all"})] * FEWEST) == [[], [], []]
