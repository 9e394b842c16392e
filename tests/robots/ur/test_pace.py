"""Two clocks: one that is faster than it should be is refused, a hiccup of the machine is not."""

import pytest

from cycletime.errors import InputError
from cycletime.robots.ur.freshness import check_pace
from cycletime.robots.ur.reacher_env import URReacher2Env
from tests.robots.ur.virtual import Driven, VirtualArm, VirtualClock


@pytest.mark.parametrize(
    ("controller_s", "ours_s", "pace", "about"),
    [(2.1, 0.105, 1.0, "20"), (2.1, 42.0, 20.0, "1"), (2.4, 1.2, 1.0, "2"), (2.0, 4.0, 1.0, "0.5")],
)
def test_another_pace_is_refused_with_the_one_that_would_do(
    controller_s: float, ours_s: float, pace: float, about: str
) -> None:
    with pytest.raises(InputError) as error:
        check_pace(controller_s, ours_s, pace)
    assert str(error.value) == (
        f"The pace is {pace:g}, and the controller's clock went on by {controller_s:.3g} s in {ours_s:.3g} s: give the "
        f"pace that it is simulated at, here about {about}."
    )


@pytest.mark.parametrize(
    ("controller_s", "ours_s", "pace"),
    [(2.1, 2.1, 1.0), (2.1, 2.5, 1.0), (2.1, 10.0, 20.0), (2.1, 1.7, 1.0), (38.0, 40.0, 1.0)],
)
def test_a_machine_that_is_late_is_not(controller_s: float, ours_s: float, pace: float) -> None:
    check_pace(controller_s, ours_s, pace)


class Hasty(VirtualArm):
    """Whose seconds are 20 of its clock."""

    def pass_time(self, time_s: float) -> None:
        super().pass_time(time_s)
        self.clock.time_s -= 0.95 * time_s


def test_a_first_reset_finds_out() -> None:
    env = URReacher2Env(Driven(Hasty(VirtualClock())), "40ms")
    with pytest.raises(InputError, match=r"The pace is 1, .* here about 20\.$"):
        env.reset(seed=0)
