"""Whatever bytes come, a session replies or ends its connection; nothing else goes wrong, and the arm stays finite."""

import math

from hypothesis import given
from hypothesis import strategies as st

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.rtde_session import InputOwners, RtdeSession
from cycletime.robots.ur.simulator.text_sessions import DashboardSession, RealtimeSession
from cycletime.robots.ur.types import WireError
from cycletime.robots.ur.wire.rtde import LOCKSTEP_INPUTS, FrameType, encode_frame

NUMBERS = st.sampled_from(["0", "1", "-1", "1e400", "nan", "inf", "1e-300", "6.3", "x"])
LINES = st.builds(
    lambda name, numbers, rest: f"{name}([{','.join(numbers)}],{','.join(rest)})\n".encode(),
    st.sampled_from(["speedj", "movej", "stopj"]),
    st.lists(NUMBERS, min_size=6, max_size=6),
    st.lists(NUMBERS, max_size=4),
)
FRAMES = st.builds(encode_frame, st.sampled_from(FrameType), st.binary(max_size=120))
RECIPES = st.sampled_from(
    [
        encode_frame(FrameType.INPUT_RECIPE, ",".join(LOCKSTEP_INPUTS).encode()),
        encode_frame(FrameType.OUTPUT_RECIPE, b"\0" * 8 + b"timestamp,actual_TCP_pose"),
        encode_frame(FrameType.START),
    ]
)


def feed(session: RtdeSession | RealtimeSession | DashboardSession, controller: Controller, parts: list[bytes]) -> None:
    try:
        for part in parts:
            session.receive(part)
            controller.advance()
            session.stream()
    except WireError:
        pass
    for _ in range(5):
        controller.advance()
    assert all(map(math.isfinite, controller.state.q + controller.state.qd))


@given(st.lists(RECIPES | FRAMES | st.binary(max_size=20), max_size=12))
def test_rtde(parts: list[bytes]) -> None:
    controller = Controller()
    feed(RtdeSession(controller, InputOwners()), controller, parts)


@given(st.lists(LINES | st.binary(max_size=40), max_size=8))
def test_the_real_time_interface(parts: list[bytes]) -> None:
    controller = Controller()
    feed(RealtimeSession(controller), controller, parts)


@given(st.lists(st.binary(max_size=40), max_size=5))
def test_the_dashboard(parts: list[bytes]) -> None:
    controller = Controller()
    feed(DashboardSession(controller), controller, parts)
