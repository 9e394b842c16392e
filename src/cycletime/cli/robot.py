"""`cycletime robot`: train on an arm of Universal Robots in real time, check it, replay a run, or simulate one."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, cast

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, Positional, arg, subcommand

from cycletime.cli.options import NameList, SingleRunOptions, Text, Whole, name_list
from cycletime.cli.output import result_line
from cycletime.cli.run_options import AgentOptions, RunOptions
from cycletime.cli.train import train_on_robot
from cycletime.errors import InputError, RunError, printable, quote
from cycletime.processes import owning_children
from cycletime.robots.ur.rtde_client import DASHBOARD_PORT, LARGEST_PORT, REALTIME_PORT, RTDE_PORT, Address

if TYPE_CHECKING:
    from cycletime.robots.ur.types import RobotLink
    from cycletime.training.run_folder import RunFolder
    from cycletime.training.worlds import RobotKind


STANDARD_PORTS = NameList(map(str, (RTDE_PORT, REALTIME_PORT, DASHBOARD_PORT)))

ControllerPorts: TypeAlias = Annotated[
    NameList, name_list("RTDE REALTIME DASHBOARD", 3), arg(help_behavior_hint=f"(default: {' '.join(STANDARD_PORTS)})")
]


def parse_address(host: str, ports: NameList) -> Address:
    return Address(host, *_parse_ports(ports, lowest=1))


def _parse_ports(words: NameList, lowest: int) -> list[int]:
    for word in words:
        if not word.isdecimal() or int(word) > LARGEST_PORT:
            raise InputError(f"--ports has {quote(word)}: a port is a number from {lowest} to {LARGEST_PORT}.")
    return list(map(int, words))


def parse_pace(text: str) -> float | None:
    """How many of a controller's seconds pass in a real one; None is lock-step."""
    if text == "lockstep":
        return None
    try:
        pace = float(text)
    except ValueError:
        pace = math.nan
    if not 0 < pace < math.inf:
        raise InputError(f"--pace is {quote(text)}: give a number such as 1 or 20, or lockstep.")
    return pace


class SelectedArm(NamedTuple):
    kind: RobotKind
    """What it is."""
    make_link: Callable[[], RobotLink]
    """What leads to it; nothing is connected yet."""


@dataclass(frozen=True, kw_only=True)
class ArmOptions:
    host: Annotated[Text, arg(metavar="HOST", help_behavior_hint="(or --simulate)")] = None
    """The controller's name or number. One that is not on this machine needs --i-am-at-the-robot."""
    i_am_at_the_robot: bool = False
    """Say that you stand beside the arm, with its emergency stop in your hand."""
    ports: ControllerPorts = STANDARD_PORTS
    """The controller's ports, where they are not a real one's."""
    simulate: bool = False
    """Start a simulated controller, and move its arm."""
    profile: Annotated[Text, arg(metavar="cb3|e", help_behavior_hint="(default: cb3)")] = None
    """Which controller to simulate."""
    pace: Annotated[Text, arg(metavar="X|lockstep", help_behavior_hint="(default: 1)")] = None
    """How many times faster than real time a simulated controller is; in lock-step it waits for the agent."""

    def words(self) -> str:
        words = ["--simulate"] if self.simulate else ["--host", str(self.host)]
        words += ["--i-am-at-the-robot"] if self.i_am_at_the_robot else []
        words += ["--ports", *self.ports] if self.ports != STANDARD_PORTS else []
        for name in ("profile", "pace"):
            if (value := getattr(self, name)) is not None:
                words += [f"--{name}", value]
        return shlex.join(words)

    @contextmanager
    def arm(self) -> Iterator[SelectedArm]:
        if self.simulate == (self.host is not None):
            raise InputError("Give either --host with a controller's name or number, or --simulate.")
        pace = parse_pace("1" if self.pace is None else self.pace)
        if self.host is not None:
            yield self._at_host(self.host, pace)
            return
        from cycletime.robots.ur.simulator.launch import simulated_controller

        if self.ports != STANDARD_PORTS:
            raise InputError("--ports is for a controller at --host: one of --simulate listens where there is room.")
        if self.profile not in (None, "cb3", "e"):
            raise InputError(f"--profile is {quote(self.profile)}: give cb3 or e.")
        with simulated_controller(cast('Literal["cb3", "e"]', self.profile or "cb3"), pace) as robot:
            ports = robot.ports
            yield select_arm(Address(robot.address, ports.rtde, ports.realtime, ports.dashboard), pace)

    def _at_host(self, host: str, pace: float | None) -> SelectedArm:
        from cycletime.robots.operator_check import check_operator, is_loopback
        from cycletime.robots.ur.inspection import inspect, is_in_lockstep

        if self.profile is not None:
            raise InputError(f"--profile is {quote(self.profile)}: it is for --simulate, and --host is what it is.")
        address = parse_address(check_operator(host, at_the_robot=self.i_am_at_the_robot), self.ports)
        here = is_loopback(address.host)
        if self.pace is not None and not here:
            raise InputError(f"--pace is {quote(self.pace)}: an arm that is not simulated has its own.")
        if missing := inspect(address).missing:
            raise RunError(f"The arm at {host} is not ready: {' '.join(missing)}")
        if not here:
            return select_arm(address, 1.0, "real")
        if (waits := is_in_lockstep(address)) != (pace is None):
            told = "waits for its client, so give" if waits else "does not wait for its client, so leave out"
            raise InputError(f"The controller at {host} {told} --pace lockstep.")
        return select_arm(address, pace)


def select_arm(address: Address, pace: float | None, kind: RobotKind = "simulated") -> SelectedArm:
    """An arm behind a driver, or without a pace one in lock-step."""
    from cycletime.robots.ur.driver.driver import DriverSettings
    from cycletime.robots.ur.driver.link import DriverLink
    from cycletime.robots.ur.links import LockstepLink

    if pace is None:
        return SelectedArm("lockstep", lambda: LockstepLink(address))
    settings = DriverSettings(address, pace=pace)
    return SelectedArm(kind, lambda: DriverLink(settings))


def train_on_arm(folder: RunFolder, arm: SelectedArm, command: RunRobot | ResumeRobot) -> int:
    import gymnasium

    import cycletime.tasks  # noqa: F401 - registers the id

    spec = folder.spec
    make_env = partial(
        gymnasium.make,
        spec.world.name,
        link=arm.make_link,
        dt=spec.dt,
        env_dt=spec.world.env_dt,
        where="real robot" if arm.kind == "real" else "simulated robot",
        disable_env_checker=True,  # it would move the arm to try it out
    )
    to_go_on = f"cycletime robot resume {shlex.quote(str(folder.path))} {command.words()}"
    return train_on_robot(folder, make_env, command, to_go_on)


@dataclass(frozen=True, kw_only=True)
class CheckRobot:
    """Ask a controller for its versions and modes, and say what is missing before its arm can be driven.

    Nothing moves. The exit status is 0 if the arm is ready. For example: cycletime robot check --host 192.168.1.10
    """

    host: Annotated[str, arg(metavar="HOST")]
    """The controller's name or number."""
    ports: ControllerPorts = STANDARD_PORTS
    """Its ports, where they are not a real controller's."""

    def run(self) -> int:
        from cycletime.robots.ur.inspection import inspect

        found = inspect(parse_address(self.host, self.ports))
        for name, value in found.facts:
            print(printable(f"{name:<16}{value}"))
        for sentence in found.missing:
            print(printable(f"missing: {sentence}"))
        print("Not ready; nothing was moved." if found.missing else "Ready; nothing was moved.")
        return 1 if found.missing else 0


@dataclass(frozen=True, kw_only=True)
class RunRobot(AgentOptions, ArmOptions):
    """Train on UR-Reacher-2 in real time, on an arm or on a simulated one, and keep the run in a folder.

    Ctrl-C stops the arm at once; the run can go on later, without the episode in progress. For example:
    cycletime robot run --simulate --algorithm ppo --dt 40ms --batch 400 --minibatch 10 --env-steps 6000
    """

    env_dt: Annotated[str, arg(metavar="TIME")] = "10ms"
    """The environment's time step, after which rewards are paid; the authors' runs of SAC had 40ms."""

    @owning_children()
    def run(self) -> int:
        from cycletime.training.machine import use_device
        from cycletime.training.make_specs import make_specs
        from cycletime.training.run_folder import RunFolder

        self.check()
        use_device("cpu")
        with self.arm() as arm:
            asked: dict[str, Any] = self.asked()
            if self.algorithm == "ppo":
                asked["others"] = {"learn_when": "episode_end", **asked["others"]}
            (spec,) = make_specs(
                task=None,
                env="cycletime/URReacher2-v0",
                env_dt=self.env_dt,
                seeds=[self.seed],
                engine="real-time",
                robot=arm.kind,
                **asked,
            )
            folder = RunFolder(self.out / spec.name, spec)
            if folder.is_finished:
                raise InputError(f"{folder.path} has this run already, and it is finished: give another --seed.")
            if folder.has_begun:
                raise InputError(
                    f"{folder.path} has a run of this spec that was stopped: go on with 'cycletime robot resume "
                    f"{folder.path} {self.words()}', or delete the folder to begin anew."
                )
            return train_on_arm(folder, arm, self)


@dataclass(frozen=True, kw_only=True)
class ResumeRobot(RunOptions, ArmOptions, SingleRunOptions):
    """Continue a run on an arm that was stopped or killed.

    For example: cycletime robot resume runs/cycletime-URReacher2-v0-ppo-10ms-seed0-1f0c7c38a2 --simulate
    """

    @owning_children()
    def run(self) -> int:
        from cycletime.training.machine import use_device
        from cycletime.training.run_folder import RunFolder
        from cycletime.training.worlds import RobotEnv

        self.check()
        folder = RunFolder.open(self.folder)
        world = folder.spec.world
        if not isinstance(world, RobotEnv):
            raise InputError(f"{folder.path} is no run on an arm: go on with 'cycletime resume {folder.path}'.")
        if folder.is_finished:
            print(f"finished before: {result_line(folder.result(), folder.path)}")
            return 0
        use_device(folder.spec.engine.device)
        with self.arm() as arm:
            if arm.kind != world.robot:
                words = {"real": "--host", "simulated": "--simulate", "lockstep": "--simulate --pace lockstep"}
                raise InputError(
                    f"{folder.path} is a run on a robot of the kind {world.robot!r}, and this one is {arm.kind!r}: "
                    f"a run goes on where it began, so give {words[world.robot]}."
                )
            return train_on_arm(folder, arm, self)


@dataclass(frozen=True, kw_only=True)
class ReplayRobot(SingleRunOptions):
    """Show what was recorded of a run on a robot: returns, stops, and how its cycles were in time.

    For example: cycletime robot replay runs/cycletime-URReacher2-v0-ppo-10ms-seed0-1f0c7c38a2
    """

    def run(self) -> int:
        from cycletime.robots.replay import summarize_journal
        from cycletime.training.run_folder import RunFolder

        folder = RunFolder.open(self.folder)
        entries, lost = list(folder.journal.entries()), folder.journal.lost()
        if lost and not entries:
            raise RunError(lost)
        if not entries:
            raise InputError(
                f"{folder.path} has no journal with episodes of a robot: give the folder of a 'cycletime robot run'."
            )
        print(printable(f"{folder.spec.label}, seed {folder.spec.seed}"))
        if lost:
            print(printable(lost))
        for line in summarize_journal(entries, float(folder.spec.dt)):
            print(line)
        return 0


_STANDARD_SIMULATOR_PORTS = NameList((*STANDARD_PORTS, "30020"))


@dataclass(frozen=True, kw_only=True)
class SimulateRobot:
    """Simulate the controller of a UR5 until Ctrl-C: RTDE, the real-time interface, the dashboard, and faults.

    For example: cycletime robot simulate --address 127.0.0.2 --pace 20
    """

    address: str = "127.0.0.1"
    """Where to listen; several run side by side on 127.0.0.2, 127.0.0.3 and so on."""
    profile: Literal["cb3", "e"] = "cb3"
    """A CB3 controller, with 125 ticks a second, or one of the e-Series, with 500."""
    pace: Annotated[str, arg(metavar="X|lockstep")] = "1"
    """How many times faster than real time; in lock-step, time passes as a client grants it."""
    ports: Annotated[
        NameList,
        name_list("RTDE REALTIME DASHBOARD ADMIN", 4),
        arg(help_behavior_hint=f"(default: {' '.join(_STANDARD_SIMULATOR_PORTS)})"),
    ] = _STANDARD_SIMULATOR_PORTS
    """Ports, by default a real controller's; 0 is any that is free. The last, for faults, is on loopback only."""

    def run(self) -> int:
        from cycletime.robots.ur.simulator.launch import open_server, serve
        from cycletime.robots.ur.simulator.profile import PROFILES, SimulatorSettings
        from cycletime.robots.ur.simulator.server import Ports

        ports, pace = Ports(*_parse_ports(self.ports, lowest=0)), parse_pace(self.pace)
        server = open_server(SimulatorSettings(PROFILES[self.profile]), pace, self.address, ports, print_line)
        where = ", ".join(f"{name} {port}" for name, port in asdict(server.ports).items())
        print_line(f"A simulated {self.profile} controller listens on {self.address}: {where}. Ctrl-C ends it.")
        try:
            serve(server, pace)
        except KeyboardInterrupt:
            print_line("The simulated controller has ended.")
        finally:
            server.close()
        return 0


def print_line(text: str) -> None:
    """Print at once, since what happens is watched as it happens."""
    print(printable(text), flush=True)


@dataclass(frozen=True, kw_only=True)
class RobotFault:
    """Ask a simulated controller for a fault.

    For example: cycletime robot fault protective stop
    """

    words: Annotated[Positional[tuple[str, ...]], arg(metavar="FAULT", help_behavior_hint="(required)")]
    """protective stop, emergency stop, freeze 0.5, drop rtde, state, ..."""
    address: str = "127.0.0.1"
    """Where the simulated controller listens."""
    port: Whole = int(_STANDARD_SIMULATOR_PORTS[-1])
    """Its port for faults, the last of --ports."""

    def run(self) -> int:
        from cycletime.robots.ur.simulator.launch import request_fault

        if not self.words:
            raise InputError("No fault is named: give one such as protective stop.")
        if not 0 < self.port <= LARGEST_PORT:
            raise InputError(f"--port is {self.port}: a port is a number from 1 to {LARGEST_PORT}.")
        try:
            print(printable(request_fault(self.address, self.port, " ".join(self.words))))
        except OSError as error:
            raise RunError(
                f"No simulated controller answers at {self.address}:{self.port}: {error.strerror or error}."
            ) from None
        return 0


@dataclass(frozen=True)
class RobotCommand:
    """Train on an arm in real time; check its controller, or simulate one."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[CheckRobot, subcommand("check")]
            | Annotated[RunRobot, subcommand("run")]
            | Annotated[ResumeRobot, subcommand("resume")]
            | Annotated[ReplayRobot, subcommand("replay")]
            | Annotated[SimulateRobot, subcommand("simulate")]
            | Annotated[RobotFault, subcommand("fault")]
        ]
    ]
