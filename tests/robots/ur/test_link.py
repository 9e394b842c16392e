"""The standard link against scripted controllers: whatever TCP does to the bytes, and whatever version answers."""

import math
import socket
from collections.abc import Iterator

import pytest

from cycletime.errors import InputError
from cycletime.robots.ur.links import StandardLink
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.types import (
    ArmState,
    LinkError,
    RobotMode,
    RuntimeState,
    SafetyMode,
    SpeedJ,
    StateTimeoutError,
    StopJ,
)
from cycletime.robots.ur.wire.rtde import ControllerVersion
from tests.robots.ur.scripted import Realtime, ScriptedRtde, Talk, scripted, serving, until_closed

STATE = ArmState(
    1.0,
    (0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    (1.0,) * 6,
    (2.0,) * 6,
    (3.0,) * 6,
    RobotMode.RUNNING,
    SafetyMode.REDUCED,
    RuntimeState.PLAYING,
    0.5,
)


@pytest.fixture
def links() -> Iterator[list[StandardLink]]:
    made: list[StandardLink] = []
    yield made
    for link in made:
        link.close()


def connected(links: list[StandardLink], address: Address, timeout_s: float = 5.0) -> StandardLink:
    links.append(StandardLink(address, timeout_s))
    links[-1].connect()
    return links[-1]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 16])
@pytest.mark.parametrize("talkative", [False, True])
def test_states_come_in_any_pieces_and_between_texts(links: list[StandardLink], chunk: int, talkative: bool) -> None:
    with scripted(ScriptedRtde(chunk=chunk, talkative=talkative)) as address:
        link = connected(links, address)
        assert link.receive(5.0) == STATE
        assert (link.version, link.period_s) == ("3.15.8.106339", 0.008)


def test_of_merged_packages_the_newest_counts_and_none_twice(links: list[StandardLink]) -> None:
    with scripted(ScriptedRtde(packages=(1.0, 2.0, 3.0))) as address:
        link = connected(links, address)
        assert link.receive(5.0).time_s == 3.0
        with pytest.raises(StateTimeoutError, match=r"The controller at 127\.0\.0\.1 sent no state for 0\.01 s"):
            link.receive(0.01)


def test_half_a_package_is_no_state_until_the_rest_comes(links: list[StandardLink]) -> None:
    server = ScriptedRtde(packages=(1.0, 2.0), cut=100)
    with scripted(server) as address:
        link = connected(links, address)
        assert link.receive(5.0).time_s == 1.0
        with pytest.raises(StateTimeoutError):
            link.receive(0.01)
        link._states._connection.send(b"x")  # type: ignore[union-attr]  # the server goes on
        assert link.receive(5.0).time_s == 2.0


def test_the_e_series_is_faster(links: list[StandardLink]) -> None:
    server = ScriptedRtde(version=ControllerVersion(5, 12, 5, 1))
    with scripted(server) as address:
        assert connected(links, address).period_s == 0.002
    assert server.frequencies_hz == [500.0]


@pytest.mark.parametrize(
    ("server", "says"),
    [
        (
            ScriptedRtde(missing=("safety_mode", "robot_mode")),
            "The controller (version 3.15.8.106339) does not tell safety_mode, robot_mode: it needs 3.4 or later.",
        ),
        (ScriptedRtde(protocols=(1,)), "The controller does not speak version 2 of RTDE: update its software."),
        (ScriptedRtde(starts=False), "The controller (version 3.15.8.106339) refuses to send states by RTDE."),
    ],
)
def test_what_cannot_be_driven_is_named(server: ScriptedRtde, says: str) -> None:
    with scripted(server) as address, pytest.raises(LinkError) as refused:
        StandardLink(address).connect()
    assert str(refused.value) == says


def test_another_server_is_no_controller() -> None:
    def web(connection: socket.socket) -> None:
        connection.sendall(b"\x00\x01\x00 bytes that are no frame")
        until_closed(connection)

    with scripted(web) as address, pytest.raises(LinkError, match="does not speak as a UR controller: An RTDE frame"):
        StandardLink(address).connect()


def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    says = r"The RTDE interface of the controller at 127\.0\.0\.1:\d+ does not reply to the request PROTOCOL_VERSION"
    with scripted(until_closed) as address, pytest.raises(LinkError, match=says):
        StandardLink(address, timeout_s=0.05).connect()


def test_where_nobody_listens() -> None:
    with pytest.raises(LinkError, match=r"The real-time interface of the controller at 127.0.0.1:9 does not answer"):
        StandardLink(Address("127.0.0.1", 9, 9, 9)).connect()


def test_a_lost_connection_is_told_and_can_be_made_again(links: list[StandardLink]) -> None:
    with scripted(ScriptedRtde(stays=False), ScriptedRtde(packages=(9.0,)), connections=2) as address:
        link = connected(links, address)
        assert link.receive(5.0).time_s == 1.0
        with pytest.raises(LinkError, match=r"RTDE interface of the controller at .* has closed the connection"):
            link.receive(5.0)
        link.connect()
        assert link.receive(5.0).time_s == 9.0


def test_commands_are_lines_and_what_streams_there_is_thrown_away(links: list[StandardLink]) -> None:
    realtime = Realtime(stream=b"\x00" * 300_000)
    with scripted(ScriptedRtde(), realtime=realtime) as address:
        link = connected(links, address)
        link.receive(5.0)
        link.send(SpeedJ((0.0, 0.5, 0.0, 0.0, 0.0, 0.0), 2.0, 0.016))
        link.send(StopJ(3.0))
        lines = realtime.wait_for(2)
    assert lines == [b"speedj([0.0, 0.5, 0.0, 0.0, 0.0, 0.0], 2.0, 0.016)", b"stopj(a=3.0)"]


def test_what_is_no_number_is_never_sent(links: list[StandardLink]) -> None:
    realtime = Realtime()
    with scripted(ScriptedRtde(), realtime=realtime) as address:
        link = connected(links, address)
        with pytest.raises(InputError):
            link.send(SpeedJ((math.nan,) * 6))
        link.close()
    assert realtime.received == b""


def test_before_it_is_connected_nothing_works() -> None:
    link = StandardLink(Address("127.0.0.1"))
    for use in (lambda: link.receive(1.0), lambda: link.send(StopJ()), lambda: link.period_s):
        with pytest.raises(LinkError, match="The link is not connected"):
            use()
    link.close()


def test_a_controller_without_rtde_is_not_driven() -> None:
    says = r"RTDE interface .* does not answer: .* States come by RTDE alone, from software 3\.4 on\."
    with serving(Realtime()) as port, pytest.raises(LinkError, match=says):
        StandardLink(Address("127.0.0.1", 9, port, 9)).connect()


def dashboard(*pieces: bytes, greeting: bytes = b"Connected: Universal Robots Dashboard Server\n") -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.sendall(greeting)
        for piece in pieces:
            connection.recv(4096)
            for byte in piece:
                connection.sendall(bytes([byte]))
        connection.recv(4096)

    return talk


def test_the_dashboard_is_asked_and_asked_again_where_it_was_lost(links: list[StandardLink]) -> None:
    talks = dashboard(b"Robotmode: RUNNING\n"), dashboard(b"Safetymode: NORMAL\r\n")
    with serving(*talks) as port:
        links.append(StandardLink(Address("127.0.0.1", 9, 9, port)))
        assert links[-1].dashboard("robotmode") == "Robotmode: RUNNING"
        assert links[-1].dashboard("safetymode") == "Safetymode: NORMAL"  # the first talk has ended


@pytest.mark.parametrize(
    ("talk", "says"),
    [
        (dashboard(b"half a line"), "The dashboard at 127.0.0.1 did not reply within 0.05 s."),
        (dashboard(greeting=b"SSH-2.0\n"), "What answers there is no dashboard: it says 'SSH-2.0'."),
    ],
)
def test_a_dashboard_that_does_not_reply_or_is_none(talk: Talk, says: str) -> None:
    with serving(talk) as port, pytest.raises(LinkError) as failed:
        StandardLink(Address("127.0.0.1", 9, 9, port), timeout_s=0.05).dashboard("robotmode")
    assert str(failed.value).replace(f"at port {port}", "there") == says


@pytest.mark.parametrize(("host", "port"), [("", 30004), (" ", 30004), ("robot", 0), ("robot", 70000)])
def test_an_address_that_is_none(host: str, port: int) -> None:
    with pytest.raises(InputError, match=r"is no (host|port): give"):
        Address(host, port)
