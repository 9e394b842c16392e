"""Tables for terminals, against written-out ones."""

from cycletime.rules.hyperparameters import align_columns


def test_columns_line_up_to_the_left_or_to_the_right() -> None:
    rows = [("name", "n", "why"), ("a", "10", ""), ("bcdef", "7", "so")]
    assert align_columns(rows, underlined=False) == ["name   n   why", "a      10", "bcdef  7   so"]
    assert align_columns(rows, right=[1], underlined=False) == ["name    n  why", "a      10", "bcdef   7  so"]
    assert align_columns(rows, right=range(3), underlined=False) == [" name   n  why", "    a  10", "bcdef   7   so"]
    assert align_columns(rows)[1] == "-" * 14
