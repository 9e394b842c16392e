"""ur_rtde's control script by its registers; the real client is in test_clients.py."""

import pytest

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.types import RuntimeState, SafetyMode
from cycletime.robots.ur.wire.script import Program

SCRIPT = Program("def", "rtde_control", 'def rtde_control():\n  textmsg("RTDE Control Script Loaded")\nend')
READY, DONE = 1, 2


class Client:
    """Writes registers as ur_rtde does, each with a package that feeds the watchdog."""

    def __init__(self) -> None:
        self.controller = Controller()
        self.controller.run_program(SCRIPT)

    def ask(self, command: int, *doubles: float, asynchronous: bool = False, ticks: int = 1) -> None:
        registers = self.controller.registers
        registers["input_int_register_0"] = command
        registers["input_int_register_1"] = int(asynchronous)
        for number, value in enumerate(doubles):
            registers[f"input_double_register_{number}"] = value
        if self.controller.program is not None:
            self.controller.program.feed_watchdog(self.controller.tick)
        self.wait(ticks)

    def wait(self, ticks: int) -> None:
        for _ in range(ticks):
            self.controller.advance()

    @property
    def answer(self) -> object:
        return self.controller.registers["output_int_register_0"]

    @property
    def speed(self) -> float:
        return self.controller.state.qd[1]


@pytest.fixture
def client() -> Client:
    return Client()


def speed_j(client: Client, ticks: int = 1) -> None:
    client.ask(9, 0, 0.3, 0, 0, 0, 0, 2.0, ticks=ticks)


def test_speed_j_goes_on_without_its_client_until_it_is_stopped(client: Client) -> None:
    speed_j(client, ticks=300)
    assert client.answer == READY
    assert client.speed == pytest.approx(0.3, abs=1e-3)
    client.ask(0, ticks=100)
    assert client.speed == pytest.approx(0.3, abs=1e-3)
    client.ask(15, 10.0)
    assert client.answer == READY
    client.wait(20)
    assert client.answer == DONE
    assert abs(client.speed) < 0.01


def test_the_watchdog_ends_the_program_and_the_arm_stands(client: Client) -> None:
    client.ask(35, 10.0)
    assert client.answer == DONE
    client.ask(0)
    for _ in range(50):
        speed_j(client)
    assert client.controller.runs_program
    client.wait(13)  # 0.1 s and a period
    assert client.controller.state.runtime_state == RuntimeState.STOPPED
    assert "watchdog" in client.controller.log[-1][1].message
    client.wait(20)
    assert abs(client.speed) < 0.01


def test_move_j_is_done_when_the_arm_is_there(client: Client) -> None:
    goal = (1.5, -2.3, 1.5, -0.7, 1.6, 1.0)
    client.ask(1, *goal, 1.05, 1.4)
    ticks = 0
    while client.answer != DONE:
        client.wait(1)
        ticks += 1
        assert ticks < 200
    assert client.controller.state.target_q == goal
    client.ask(0)
    assert client.answer == READY


def test_an_asynchronous_move_is_done_at_once_and_tells_its_progress(client: Client) -> None:
    client.ask(1, 1.5, -2.3, 1.5, -0.7, 1.6, 1.0, 1.05, 1.4, asynchronous=True)
    assert client.answer == DONE
    assert client.controller.registers["output_int_register_2"] == 0
    client.ask(0, ticks=200)
    assert client.controller.state.target_q[1] == -2.3
    assert client.controller.registers["output_int_register_2"] == -1


def test_servo_j_follows_angles(client: Client) -> None:
    goal = list(client.controller.state.q)
    goal[1] += 0.05
    client.ask(11, *goal, 0, 0, 0.008, 0.1, 300, ticks=150)
    assert client.controller.state.q[1] == pytest.approx(goal[1], abs=1e-3)
    client.ask(16, 10.0, ticks=5)
    assert client.answer == DONE


def test_questions_are_answered(client: Client) -> None:
    client.ask(47)
    assert client.controller.registers["output_int_register_1"] == 1
    client.ask(0)
    client.ask(43)
    pose = [client.controller.registers[f"output_double_register_{number}"] for number in range(3)]
    # The flange at the pose where UR-Reacher-2 begins, in the base's frame.
    assert pose == pytest.approx([0.10405, -0.01940, 0.76998], abs=1e-5)


def test_the_program_can_stop_the_arm_or_itself_and_knows_what_it_does_not_know(client: Client) -> None:
    client.ask(255, ticks=2)
    assert not client.controller.runs_program
    client.controller.run_program(SCRIPT)
    client.ask(31)
    assert client.controller.safety.safety_mode is SafetyMode.PROTECTIVE_STOP
    other = Client()
    other.ask(66)
    assert "command 66 is not simulated" in other.controller.log[-1][1].message
    assert not other.controller.runs_program


def test_numbers_that_make_no_sense_end_the_program_and_move_nothing(client: Client) -> None:
    client.ask(9, 0, float("nan"), 0, 0, 0, 0, 2.0)
    assert "not finite" in client.controller.log[-1][1].message
    client.wait(10)
    assert client.controller.state.qd == (0.0,) * 6
