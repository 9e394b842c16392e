"""Tables for terminals, against written-out ones."""

from cycletime.cli.output import format_columns


def test_columns_line_up_to_the_left_or_to_the_right() -> None:
    rows = [("name", "n", "why"), ("a", "10", ""), ("bcdef", "7", "so")]
    assert format_columns(rows) == ["name   n   why", "a      10", "bcdef  7   so"]
    assert format_columns(rows, right=[1]) == ["name    n  why", "a      10", "bcdef   7  so"]
    assert format_columns(rows, right=range(3)) == [" name   n  why", "    a  10", "bcdef   7   so"]
