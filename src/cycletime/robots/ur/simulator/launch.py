"""Start a simulated controller in a process of its own, and have it end with ours, however ours ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from socket import create_connection
from typing import TextIO

from cycletime.errors import InputError, RunError
from cycletime.robots.clock import request_real_time_priority
from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.simulator.profile import PROFILES, ProfileName, SimulatorSettings
from cycletime.robots.ur.simulator.server import FreeRunning, LockStep, Ports, Server
from cycletime.robots.ur.wire.dashboard import encode_line

FREE_PORTS = Ports(0, 0, 0, 0)
_FAULT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class SimulatedController:
    address: str
    ports: Ports
    pid: int

    def fault(self, line: str) -> str:
        return request_fault(self.address, self.ports.admin, line)


def request_fault(address: str, port: int, line: str) -> str:
    with (
        create_connection((address, port), timeout=_FAULT_TIMEOUT_S) as connection,
        connection.makefile("r") as replies,
    ):
        connection.sendall(encode_line(line))
        reply = replies.readline().rstrip("\n")
    if reply.startswith("refused: "):
        raise InputError(reply.removeprefix("refused: "))
    return reply


@contextmanager
def simulated_controller(
    profile: ProfileName = "cb3",
    pace: float | None = 1.0,
    *,
    address: str = "127.0.0.1",
    ports: Ports = FREE_PORTS,
    **settings: float,
) -> Iterator[SimulatedController]:
    """A simulated controller for the time of a block; `pace` of its seconds pass in a real one, None is lock-step."""
    config = {"profile": profile, "pace": pace, "address": address, "ports": asdict(ports), "settings": settings}
    arguments = [sys.executable, "-m", "cycletime.robots.ur.simulator.launch", json.dumps(config)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith("{"):
                raise RunError(f"The simulated controller did not start: {line.strip() or 'it said nothing'}")
            yield SimulatedController(address, Ports(**json.loads(line)), process.pid)
        finally:
            process.kill()


def open_server(
    settings: SimulatorSettings,
    pace: float | None,
    address: str,
    ports: Ports,
    tell: Callable[[str], None] = lambda text: None,
) -> Server:
    timing = LockStep() if pace is None else FreeRunning(pace, time.monotonic)
    return Server(Controller(settings, tell), timing, address, ports)


def serve(server: Server, pace: float | None, until_ends: TextIO | None = None) -> None:
    """Serve, for the rest of a process; in real time ahead of others, as a real one is on a busy machine as well."""
    if pace == 1:
        request_real_time_priority()
    server.serve(until_ends)


def serve_from_json(text: str) -> int:
    """What the process does: listen, tell the ports, and serve until standard input ends; the exit status."""
    config = json.loads(text)
    settings = SimulatorSettings(PROFILES[config["profile"]], **config["settings"])
    try:
        server = open_server(settings, config["pace"], config["address"], Ports(**config["ports"]))
    except InputError as error:
        print(error, flush=True)
        return 1
    print(json.dumps(asdict(server.ports)), flush=True)
    serve(server, config["pace"], until_ends=sys.stdin)
    server.close()
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent process, with which it ends
    sys.exit(serve_from_json(sys.argv[1]))
