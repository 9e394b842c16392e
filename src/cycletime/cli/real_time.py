"""A run on a robot, as typed: shown while it goes on, stopped at once by a signal, and kept whatever ends it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cycletime.cli.announcing import announced
from cycletime.cli.running import Running, result_line, say
from cycletime.errors import InputError

if TYPE_CHECKING:
    import gymnasium

    from cycletime.engines.record import Progress, Status
    from cycletime.engines.training import Ended
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.journal import Entry
    from cycletime.runs.spec import RunSpec


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
class RealTimeRun:
    """A run on a robot, before it begins."""

    spec: RunSpec
    make_env: Callable[[], gymnasium.Env[Any, Any]]
    """Reaches the robot."""
    options: Running
    """How it is trained."""
    open_folder: Callable[[], RunFolder]
    """Gives the run's folder, once nothing is left that may be refused."""
    to_go_on: Callable[[Path], str]
    """The command that goes on with the run in a folder."""
    before: tuple[Entry, ...] = ()
    """The episodes of a run that goes on."""

    def run(self) -> int:
        """Train; the exit status.

        Raises:
            InputError: if the run is refused; the robot has not moved.
            RunError: if the robot cannot be reached.
        """
        from cycletime.runs.stopping import stopping_at_once

        with stopping_at_once() as stopper:
            env, remarks = self.make_env(), Remarks()
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
        say("Stopped, and the robot stands." if ended == "stopped" else f"cycletime: {ended}")
        say(f"To go on: {self.to_go_on(folder.path)}")
        return stopper.status if ended == "stopped" else 1

    def _trained(self, env: gymnasium.Env[Any, Any], remarks: Remarks) -> tuple[RunFolder, Ended | Exception]:
        """Show it while it is trained; what became of it."""
        from cycletime.duration import cycle_steps
        from cycletime.engines.live.board import Board
        from cycletime.engines.live.shown import shown_live
        from cycletime.engines.real_time import RealTimeGroup
        from cycletime.engines.training import train_folders
        from cycletime.robots.real_time_env import real_time_env_of

        spec, options, robot = self.spec, self.options, real_time_env_of(env)
        board = Board(f"{spec.label} seed {spec.seed}, {robot.where}", spec.env_steps).after(self.before)
        with shown_live(board, cycle_steps(spec.dt, robot.dt)) as keeper:
            group = RealTimeGroup(spec, env, keeper)
            folder = self.open_folder()
            say(announced(spec, group))
            try:
                (ended,) = train_folders(
                    [folder], listeners=[options.beside(remarks)], checkpoint_s=options.checkpoint_s, group=group
                )
            except KeyboardInterrupt:  # at once, and not at the episode's end: somebody wants the robot to stand
                return folder, "stopped"
        return folder, ended


def run_by_id(folder: RunFolder, options: Running, open_folder: Callable[[], RunFolder] | None = None) -> int:
    """Train a run on a robot that is made by its id alone; the exit status.

    Args:
        folder: The run's, which need not be there.
        options: How it is trained.
        open_folder: Gives it, if that may be refused.
    """
    from cycletime.runs.worlds import make_env

    if folder.is_finished:
        print(f"finished before: {result_line(folder.result(), folder.path)}", flush=True)
        return 0
    return RealTimeRun(
        folder.spec,
        lambda: make_env(folder.spec.world, folder.spec.dt),
        options,
        open_folder or (lambda: folder),
        lambda path: f"cycletime resume {shlex.quote(str(path))}",
        tuple(folder.journal.entries()),
    ).run()
