"""The server on loopback, moved by hand: nothing waits, since what a client sends is there before the server looks."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from cycletime.errors import InputError
from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.server import FreeRunning, LockStep, Ports, Server, Timing
from cycletime.robots.ur.types import SpeedJ
from cycletime.robots.ur.wire import rtde
from cycletime.robots.ur.wire.rtde import LOCKSTEP_INPUTS, Frame, FrameParser, FrameType, Recipe, lockstep_values

FREE = Ports(0, 0, 0, 0)
NAMES = ("timestamp", "actual_q", "target_qd")
IN, OUT = (
    Recipe(1, LOCKSTEP_INPUTS, ("INT32", *["DOUBLE"] * 9, "INT32")),
    Recipe(1, NAMES, ("DOUBLE", "VECTOR6D", "VECTOR6D")),
)


class Bench:
    """A server and its clients in one thread."""

    def __init__(self, timing: Timing | None = None) -> None:
        self.controller = Controller()
        self.server = Server(self.controller, timing or LockStep(), "127.0.0.1", FREE)

    def connect(self, interface: str) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", getattr(self.server.ports, interface)), timeout=10)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.server.step()
        return client

    def ask(self, client: socket.socket, line: str) -> str:
        client.sendall(line.encode() + b"\n")
        self.server.step()
        return client.recv(1 << 16).decode().strip()

    def lockstep(self) -> tuple[socket.socket, Callable[..., list[Frame]]]:
        """A client that has done its handshake, and its way to send a package and see what comes of it."""
        client, parser = self.connect("rtde"), FrameParser()
        client.sendall(
            rtde.protocol_version_request(2)
            + rtde.output_recipe_request(NAMES, 125.0)
            + rtde.input_recipe_request(LOCKSTEP_INPUTS)
            + rtde.encode_frame(FrameType.START)
        )
        self.server.step()
        assert [frame.kind for frame in parser.feed(client.recv(1 << 16))] == [*map(ord, "VOISU")]

        def grant(tick: int, command: SpeedJ | None = None) -> list[Frame]:
            client.sendall(rtde.data_package(IN, lockstep_values(tick, command)))
            self.server.step()
            client.setblocking(False)
            try:
                return parser.feed(client.recv(1 << 20))
            except BlockingIOError:
                return []
            finally:
                client.settimeout(10)

        return client, grant


@pytest.fixture
def bench() -> Iterator[Bench]:
    it = Bench()
    yield it
    it.server.close()


def test_in_lock_step_a_grant_brings_a_package_for_each_tick(bench: Bench) -> None:
    client, grant = bench.lockstep()
    frames = grant(5, SpeedJ((0, 0.1, 0, 0, 0, 0), 2.0, 1.0))
    told = [OUT.unpack(frame.payload) for frame in frames]
    assert [values["timestamp"] for values in told] == pytest.approx([0.008, 0.016, 0.024, 0.032, 0.04])
    assert [values["target_qd"][1] for values in told] == pytest.approx([0, 0, 0.016, 0.032, 0.048])  # type: ignore[index]
    assert grant(5) == []
    client.close()


def test_several_clients_see_the_same_ticks(bench: Bench) -> None:
    first, grant = bench.lockstep()
    stream = bench.connect("realtime")
    grant(2)
    assert len(stream.recv(1 << 16)) == 2 * 1140
    first.close()
    stream.close()


def test_a_dropped_client_can_come_back_and_write_its_registers_again(bench: Bench) -> None:
    client, _ = bench.lockstep()
    admin = bench.connect("admin")
    assert bench.ask(admin, "drop rtde") == "ok"
    assert client.recv(1) == b""
    again, grant = bench.lockstep()
    assert [frame.kind for frame in grant(1)] == [FrameType.DATA]
    for each in (client, admin, again):
        each.close()


def test_a_client_that_speaks_no_rtde_is_cut_off_and_others_go_on(bench: Bench) -> None:
    good, grant = bench.lockstep()
    bad = bench.connect("rtde")
    bad.sendall(b"\x00\x01GET / HTTP/1.1\n")
    bench.server.step()
    assert bad.recv(1) == b""
    assert len(grant(1)) == 1
    bad.close()
    good.close()


def test_the_dashboard_greets_replies_and_lets_go(bench: Bench) -> None:
    client = bench.connect("dashboard")
    assert client.recv(100).startswith(b"Connected: ")
    assert bench.ask(client, "robotmode") == "Robotmode: RUNNING"
    assert bench.ask(client, "quit") == "Disconnected"
    assert client.recv(1) == b""
    client.close()


def test_a_frozen_stream_sends_nothing_and_then_goes_on(bench: Bench) -> None:
    client, grant = bench.lockstep()
    admin = bench.connect("admin")
    assert bench.ask(admin, "freeze 0.08") == "ok"
    assert grant(9) == []
    (frame,) = grant(10)
    assert OUT.unpack(frame.payload)["timestamp"] == pytest.approx(0.08)
    for each in (client, admin):
        each.close()


def test_a_delay_holds_packages_back(bench: Bench) -> None:
    client, grant = bench.lockstep()
    admin = bench.connect("admin")
    assert bench.ask(admin, "delay 0.016") == "ok"
    (frame,) = grant(3)
    assert OUT.unpack(frame.payload)["timestamp"] == pytest.approx(0.008)
    for each in (client, admin):
        each.close()


def test_jitter_varies_when_packages_arrive_and_never_their_order(bench: Bench) -> None:
    client, grant = bench.lockstep()
    admin = bench.connect("admin")
    assert bench.ask(admin, "jitter 0.05") == "ok"
    arrivals = [[OUT.unpack(frame.payload)["timestamp"] for frame in grant(tick)] for tick in range(1, 60)]
    times = [time_s for arrived in arrivals for time_s in arrived]
    assert times == pytest.approx([0.008 * (number + 1) for number in range(len(times))])
    assert {len(arrived) for arrived in arrivals} > {0, 1}
    for each in (client, admin):
        each.close()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("protective stop", {"safety_mode": 3}),
        ("emergency stop", {"safety_mode": 7, "robot_mode": 3}),
        ("violation", {"safety_mode": 8}),
        ("say hello", {"safety_mode": 1}),
        ("refuse unlock on", {"safety_mode": 1}),
        ("remote control off", {"safety_mode": 1}),
    ],
)
def test_faults_are_done(bench: Bench, line: str, told: dict[str, int]) -> None:
    client, grant = bench.lockstep()
    admin = bench.connect("admin")
    assert bench.ask(admin, line) == "ok"
    grant(1)
    state = json.loads(bench.ask(admin, "state"))
    assert {name: state[name] for name in told} == told
    for each in (client, admin):
        each.close()


def test_registers_can_be_somebody_elses(bench: Bench) -> None:
    admin, client = bench.connect("admin"), bench.connect("rtde")
    request = rtde.protocol_version_request(2) + rtde.input_recipe_request(("input_int_register_0",))
    assert bench.ask(admin, "in use input_int_register_0") == "ok"
    client.sendall(request)
    bench.server.step()
    assert client.recv(100).endswith(b"I\x00IN_USE")
    assert bench.ask(admin, "free input_int_register_0") == "ok"
    client.sendall(request)
    bench.server.step()
    assert client.recv(100).endswith(b"I\x01INT32")
    for each in (client, admin):
        each.close()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("protectiv stop", "did you mean protective stop?"),
        ("freeze never", "no time in seconds"),
        ("freeze", "The fault 'freeze' needs a value after it, as in 'freeze 0.5'"),
        ("in use", "The fault 'in use' needs a value"),
        ("delay -1", "no time in seconds"),
        ("drop everything", "no interface 'everything'"),
    ],
)
def test_a_fault_that_is_not_understood_is_refused(bench: Bench, line: str, why: str) -> None:
    admin = bench.connect("admin")
    assert bench.ask(admin, line).startswith("refused: ")
    assert why in bench.ask(admin, line)
    assert bench.ask(admin, "quit") == "ok"
    assert admin.recv(1) == b""
    admin.close()


def backlog_bytes(bench: Bench) -> int:
    return max(len(client.outgoing) for client in bench.server._clients)


def test_a_client_that_does_not_read_misses_packages_and_holds_nobody_up() -> None:
    now = [0.0]
    bench = Bench(FreeRunning(20.0, lambda: now[0]))
    lazy = bench.connect("realtime")
    for tick in range(20_000):
        now[0] = (tick + 1) * 0.009
        bench.server.step()
        if backlog_bytes(bench) > 200_000:
            break
    full = backlog_bytes(bench)
    assert full > 200_000
    ticks = bench.controller.tick
    now[0] += 0.009
    bench.server.step()
    assert bench.controller.tick > ticks
    assert backlog_bytes(bench) <= full
    lazy.close()
    bench.server.close()


def test_a_port_that_is_taken_is_told(bench: Bench) -> None:
    taken = bench.server.ports
    with pytest.raises(InputError, match=f"127.0.0.1:{taken.rtde}: Address already in use; give another port"):
        Server(Controller(), LockStep(), "127.0.0.1", taken)


def test_the_last_port_may_be_the_one_that_is_taken(bench: Bench) -> None:
    with pytest.raises(InputError, match="cannot listen"):
        Server(Controller(), LockStep(), "127.0.0.1", Ports(0, 0, 0, bench.server.ports.admin))


@pytest.mark.parametrize(
    ("address", "admin"), [("0.0.0.0", "127.0.0.1"), ("127.0.0.7", "127.0.0.7"), ("localhost", "127.0.0.1")]
)
def test_faults_are_asked_for_on_loopback_alone(address: str, admin: str) -> None:
    server = Server(Controller(), LockStep(), address, FREE)
    assert server.listens_at("admin")[0] == admin
    server.close()


def test_more_clients_than_select_takes_are_turned_away_and_others_go_on(bench: Bench) -> None:
    with ExitStack() as opened:
        clients = [opened.enter_context(bench.connect("dashboard")) for _ in range(201)]
        assert clients[0].recv(100).startswith(b"Connected")
        assert clients[-1].recv(100) == b"", "turned away"
        assert bench.ask(clients[0], "robotmode") == "Robotmode: RUNNING"
        clients[1].close()
        bench.server.step()
        last = opened.enter_context(bench.connect("dashboard"))
        assert last.recv(100).startswith(b"Connected"), "there is room again"


@pytest.mark.parametrize("address", ["", " "])
def test_no_address_is_not_all_of_them(address: str) -> None:
    with pytest.raises(InputError, match=r"--address is .*: give an address of this machine, such as 127\.0\.0\.1"):
        Server(Controller(), LockStep(), address, FREE)
