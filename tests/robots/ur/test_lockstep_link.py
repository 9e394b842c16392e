"""UR-Reacher-2 on a simulated controller in a process of its own, in lock-step."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from cycletime.robots.ur import arm
from cycletime.robots.ur.links import LockstepLink
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import SimulatedController, simulated_controller
from cycletime.robots.ur.types import Command, LinkError, MoveJ, SafetyMode, SpeedJ, StateTimeoutError, StopJ
from cycletime.ur5 import Q_REF, ArmModel


def address_of(controller: SimulatedController) -> Address:
    ports = controller.ports
    return Address(controller.address, ports.rtde, ports.realtime, ports.dashboard)


@pytest.fixture(scope="module")
def controller() -> Iterator[SimulatedController]:
    with simulated_controller("cb3", None) as it:
        yield it


@pytest.fixture
def link(controller: SimulatedController) -> Iterator[LockstepLink]:
    it = LockstepLink(address_of(controller))
    it.connect()
    yield it
    it.close()


def test_an_episode_is_the_same_each_time_to_the_last_bit() -> None:
    def episode() -> list[bytes]:
        with simulated_controller("cb3", None) as controller:
            env = URReacher2Env(LockstepLink(address_of(controller)), "40ms")
            seen = [env.reset(seed=5)[0].tobytes()]
            actions = np.random.default_rng(1).uniform(-1, 1, (100, 2))
            for action in actions:
                observation, reward, _, truncated, _ = env.step(action)
                seen.append(observation.tobytes() + np.float64(reward).tobytes())
            assert truncated
            env.close()
        return seen

    assert episode() == episode()


def test_the_controller_is_the_arm_of_the_model(link: LockstepLink) -> None:
    """Commands through the process's registers, and the same into the model itself."""
    model = ArmModel()
    link.send(MoveJ(Q_REF, time_s=1.0))
    state = [link.receive(10) for _ in range(250)][-1]
    own = arm.arm_at_rest(state.target_q)._replace(q=np.array(state.q), qd=np.array(state.qd))
    commands: list[Command | None] = [
        SpeedJ((0.0, 0.4, -0.3, 0.0, 0.0, 0.0), 2.0, 0.016),
        StopJ(3.0),
        MoveJ(Q_REF, 2.0, 1.0),
        None,
        None,
    ]
    for number in range(200):
        command = commands[number // 4 % len(commands)]
        if command is not None:
            link.send(command)
            own = arm.receive_command(own, command)
        state = link.receive(10)
        own = arm.advance(model, own)
        assert (state.q, state.qd) == (tuple(own.q.tolist()), tuple(own.qd.tolist()))


def test_time_passes_only_with_states_and_a_new_link_goes_on_where_the_last_one_was(link: LockstepLink) -> None:
    before = link.receive(10)
    assert link.dashboard("robotmode") == "Robotmode: RUNNING"
    link.connect()
    assert link.receive(10).time_s == pytest.approx(before.time_s + 0.008)


def test_a_second_link_may_not_move_the_controller(link: LockstepLink, controller: SimulatedController) -> None:
    with pytest.raises(LinkError, match="Another client of the controller writes input_int_register_46"):
        LockstepLink(address_of(controller)).connect()
    assert link.receive(10).safety_mode is SafetyMode.NORMAL


def test_a_protective_stop_is_unlocked_after_five_seconds_of_the_controller(
    link: LockstepLink, controller: SimulatedController
) -> None:
    controller.fault("protective stop")
    assert link.receive(10).safety_mode is SafetyMode.PROTECTIVE_STOP
    assert link.dashboard("unlock protective stop").startswith("Cannot unlock")
    for _ in range(625):
        link.receive(10)
    assert link.dashboard("unlock protective stop") == "Protective stop releasing"
    assert link.receive(10).safety_mode is SafetyMode.NORMAL


def test_a_controller_that_waits_for_its_turn_is_not_silent(
    link: LockstepLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_s: list[float] = []
    monkeypatch.setattr(LockstepLink, "_wait_for_state", lambda self, timeout_s: waited_s.append(timeout_s))
    for timeout_s in (1.0, 60.0):
        link.receive(timeout_s)
    assert waited_s == [10.0, 60.0]


def test_a_frozen_stream_is_silence_and_a_dropped_one_is_lost(controller: SimulatedController) -> None:
    with closing(LockstepLink(address_of(controller))) as link:
        link.connect()
        link._timeout_s = 0.0
        controller.fault("freeze 0.02")
        with pytest.raises(StateTimeoutError, match="no state"):
            link.receive(0.05)
        controller.fault("freeze 0")
        link.receive(10)
        controller.fault("drop rtde")
        with pytest.raises(LinkError):
            link.receive(10)


def test_without_a_connection_nothing_is_received() -> None:
    with pytest.raises(LinkError, match="connect"):
        LockstepLink(Address("127.0.0.1")).receive(1)
