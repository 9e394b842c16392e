"""A run on an arm, as `robot run` and `robot resume` do it: shown while it goes on, and kept whatever ends it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cycletime.cli.robot.arm import Arm, ArmOptions
from cycletime.cli.running import Running, result_line, say
from cycletime.errors import InputError

if TYPE_CHECKING:
    import gymnasium

    from cycletime.engines.record import Progress, Status
    from cycletime.engines.training import Ended
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.journal import Entry
    from cycletime.runs.spec import RunSpec

_INTERRUPTED = 130


@dataclass
class Remarks:
    """Keeps what the user should know until the live view is gone, which would draw over it."""

    sentences: list[str] = field(default_factory=list)

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Say where a run goes on."""
        if resumed_from is not None:
            self.remark(f"goes on from {resumed_from:,} environment steps")

    def update(self, progress: Progress) -> None:
        """The live view has it."""

    def remark(self, sentence: str) -> None:
        """Keep it."""
        self.sentences.append(sentence)

    def end(self, status: Status) -> None:
        """Whoever asked for the run is told."""


@dataclass(frozen=True)
class Driving:
    """A run on an arm, before it begins."""

    spec: RunSpec
    arm: Arm
    options: Running
    """How it is trained."""
    moved_by: ArmOptions
    """How the arm was named, which is printed where the run can go on."""
    open_folder: Callable[[], RunFolder]
    """Gives the run's folder, once nothing is left that may be refused."""
    before: tuple[Entry, ...] = ()
    """The episodes of a run that goes on."""

    def run(self) -> int:
        """Train; the exit status.

        Raises:
            InputError: if the run is refused; the arm has not moved.
            LinkError: if the arm cannot be reached.
        """
        refuse_long_cycles(self.spec, self.arm)
        env, remarks = make_arm_env(self.spec, self.arm), Remarks()
        try:
            folder, ended = self._trained(env, remarks)
        finally:
            env.close()
            for sentence in remarks.sentences:
                say(f"note: {sentence}")
        if isinstance(ended, InputError):
            raise ended
        if ended == "finished":
            print(result_line(folder.result(), folder.path), flush=True)
            return 0
        say("Stopped, and the arm stands." if ended == "stopped" else f"cycletime: {ended}")
        say(f"To go on: cycletime robot resume {shlex.quote(str(folder.path))} {self.moved_by.words()}")
        return _INTERRUPTED if ended == "stopped" else 1

    def _trained(self, env: gymnasium.Env[Any, Any], remarks: Remarks) -> tuple[RunFolder, Ended | Exception]:
        """Show it while it is trained; what became of it."""
        from cycletime.engines.live.board import Board
        from cycletime.engines.live.shown import shown_live
        from cycletime.engines.real_time import RealTimeGroup
        from cycletime.engines.training import train_folders

        spec, options = self.spec, self.options
        board = Board(f"{spec.label} seed {spec.seed}, {self.arm.where}", spec.env_steps).after(self.before)
        cycle_steps = round(spec.dt / spec.world.env_dt)  # type: ignore[operator]  # a run on an arm has one
        with shown_live(board, cycle_steps) as keeper:
            group = RealTimeGroup(spec, env, keeper)
            folder = self.open_folder()
            try:
                (ended,) = train_folders(
                    [folder], listeners=[options.beside(remarks)], checkpoint_s=options.checkpoint_s, group=group
                )
            except KeyboardInterrupt:  # at once, and not at the episode's end: somebody wants the arm to stand
                return folder, "stopped"
        return folder, ended


def make_arm_env(spec: RunSpec, arm: Arm) -> gymnasium.Env[Any, Any]:
    """The environment of a run, connected to the arm.

    Raises:
        LinkError: if it cannot be reached.
    """
    import gymnasium

    import cycletime.tasks  # noqa: F401 - registers the id

    world = spec.world
    made: gymnasium.Env[Any, Any] = gymnasium.make(
        world.name,
        link=arm.make_link,
        dt=spec.dt,
        env_dt=world.env_dt,
        where=arm.where,
        disable_env_checker=True,  # it would move the arm to try it out
    )
    return made


def refuse_long_cycles(spec: RunSpec, arm: Arm) -> None:
    """Refuse cycles in which the dead-man chain would stop the arm each time.

    Raises:
        InputError: if there is a driver, and the cycle is longer than orders may be old.
    """
    from cycletime.robots.ur.driver.driver import DriverTimeouts

    oldest_s = DriverTimeouts().order_age_s
    if arm.kind != "lockstep" and float(spec.dt) >= oldest_s:
        raise InputError(
            f"The cycle time is {spec.dt}: the driver stops an arm that nobody has told anything for {oldest_s:g} s, "
            "so give less."
        )
