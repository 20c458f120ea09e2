"""Equal names in a list get a date, then a number."""

from core.shown import distinct, when


def test_equal_names_get_a_date_and_equal_dates_a_number() -> None:
    moments = {"a": 30.0, "b": 10.0, "c": 20.0, "d": 86_410.0, "e": 10.0}
    names = {"a": "Train", "b": "Train", "c": "Train", "d": "Train", "e": "Test"}
    assert distinct(names, moments) == {
        "a": f"Train ({when(30)}, no. 3)",
        "b": f"Train ({when(10)}, no. 1)",
        "c": f"Train ({when(20)}, no. 2)",
        "d": f"Train ({when(86_410)})",
        "e": "Test",
    }
