"""What a terminal shows of a board."""

import io

from rich.console import Console

from cycletime.robots.live_view import render_board, sparkline
from cycletime.robots.status_board import StatusBoard

BOARD = StatusBoard(
    title="ur-reacher ppo",
    env_steps=1000,
    done_steps=250,
    phase="driving",
    safety="NORMAL",
    episode=3,
    return_now=1.5,
    returns=(-3.0, 4.0),
    best=4.0,
    stops=1,
    updates=2,
    cycles=200,
    overruns=3,
    times_ms={"wake_error_s": (0.01, 0.02, 0.03, 12.5), "observation_age_s": (None,) * 4},
)


def text_of(board: StatusBoard, **options: bool) -> str:
    console = Console(file=io.StringIO(), width=100, **options)  # type: ignore[arg-type]
    console.print(render_board(board))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_all_is_there() -> None:
    lines = text_of(BOARD).splitlines()
    assert "ur-reacher ppo" in lines[0]
    told = [" ".join(line.strip("│ ").split()) for line in lines[1:-1]]
    assert told == [
        "now driving, episode 3, learned 2 times while it stood",
        "safety NORMAL, 1 episodes cut short",
        "progress 250 of 1,000 environment steps (25%)",
        "return 1.50 so far, last 4.00, mean of 2 0.50, best 4.00",
        "▁█",
        "cadence ms now mean p99 worst",
        "wake-up error 0.010 0.020 0.030 12.500",
        "age of observation - - - -",
        "overruns 3 of 200 cycles (1.50%)",
    ]


def test_what_is_bad_is_red() -> None:
    coloured = text_of(StatusBoard("x", 10, safety="PROTECTIVE_STOP", cycles=10, overruns=1), force_terminal=True)
    assert "\x1b[1;31mPROTECTIVE_STOP" in coloured
    assert "\x1b[1;31m1 of 10 cycles (10.00%)" in coloured


def test_a_board_before_the_first_cycle_can_be_drawn() -> None:
    assert "0 of 0 cycles" in text_of(StatusBoard("x", 0))


def test_levels_go_from_the_least_to_the_largest() -> None:
    assert sparkline([]) == ""
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
