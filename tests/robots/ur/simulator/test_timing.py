from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.server import FreeRunning, LockStep


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def do_due(timing: FreeRunning, controller: Controller) -> int:
    ticks = timing.ticks_due(controller)
    for _ in range(ticks):
        controller.advance()
    return ticks


def test_ticks_are_due_on_an_absolute_grid_so_that_lateness_does_not_add_up() -> None:
    clock, controller = Hands(), Controller()
    timing = FreeRunning(1.0, clock)
    assert do_due(timing, controller) == 0
    assert abs(timing.due_in_s(controller) - 0.008) < 1e-9
    for tick in range(1, 100):
        clock.now = 100.0 + tick * 0.008 + 0.003  # always 3 ms late
        assert do_due(timing, controller) == 1
    assert abs(timing.due_in_s(controller) - 0.005) < 1e-9


def test_a_pace_makes_time_pass_faster() -> None:
    clock, controller = Hands(), Controller()
    timing = FreeRunning(20.0, clock)
    clock.now += 0.008 + 1e-6
    assert do_due(timing, controller) == 20
    assert timing.due_in_s(controller) < 0.008 / 20


def test_lateness_in_which_no_client_was_heard_is_not_made_up_for_in_a_burst() -> None:
    clock, controller = Hands(), Controller()
    timing = FreeRunning(1.0, clock)
    clock.now += 0.03
    assert do_due(timing, controller) == 1
    assert do_due(timing, controller) == 0
    clock.now += 0.0081
    assert do_due(timing, controller) == 1


def test_in_lock_step_nothing_happens_until_it_is_granted() -> None:
    controller, timing = Controller(), LockStep()
    assert timing.due_in_s(controller) is None
    controller.registers["input_int_register_47"] = 5
    assert (timing.due_in_s(controller), timing.ticks_due(controller)) == (0.0, 5)
    for _ in range(5):
        controller.advance()
    controller.registers["input_int_register_47"] = 3  # a grant of the past
    assert timing.due_in_s(controller) is None
