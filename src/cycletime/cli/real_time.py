"""A run on a robot, as typed: shown while it goes on, stopped at once by a signal, and kept whatever ends it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cycletime.cli.announcing import announced
from cycletime.cli.running import Running, result_line, say
from cycletime.errors import InputError

if TYPE_CHECKING:
    import gymnasium

    from cycletime.engines.record import Progress, Status
    from cycletime.engines.training import Ended
    from cycletime.runs.folder import RunFolder


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

    folder: RunFolder
    """The run's, which need not be there: it is made once nothing is left that may be refused."""
    make_env: Callable[[], gymnasium.Env[Any, Any]]
    """Reaches the robot."""
    options: Running
    """How it is trained."""
    to_go_on: str
    """The command that goes on with the run."""

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
                ended = self._trained(env, remarks)
            finally:
                env.close()
                for sentence in remarks.sentences:
                    say(f"note: {sentence}")
        if isinstance(ended, InputError):
            raise ended
        if ended == "finished":
            print(result_line(self.folder.result(), self.folder.path), flush=True)
            return 0
        say("Stopped, and the robot stands." if ended == "stopped" else f"cycletime: {ended}")
        if self.folder.path.exists():  # else it was stopped before anything was there to go on with
            say(f"To go on: {self.to_go_on}")
        return stopper.status if ended == "stopped" else 1

    def _trained(self, env: gymnasium.Env[Any, Any], remarks: Remarks) -> Ended | Exception:
        """Show it while it is trained; what became of it."""
        from cycletime.duration import cycle_steps
        from cycletime.engines.live.board import Board
        from cycletime.engines.live.shown import shown_live
        from cycletime.engines.real_time import RealTimeGroup
        from cycletime.engines.training import train_folders
        from cycletime.robots.real_time_env import real_time_env_of

        folder, options, robot = self.folder, self.options, real_time_env_of(env)
        spec, before = folder.spec, tuple(folder.journal.entries())
        board = Board(f"{spec.label} seed {spec.seed}, {robot.where}", spec.env_steps).after(before)
        with shown_live(board, cycle_steps(spec.dt, robot.dt)) as keeper:
            group = RealTimeGroup(spec, env, keeper)
            say(announced(spec, group))
            try:
                _ = group.calibration  # which may refuse the run
                folder.make()
                (ended,) = train_folders(
                    [folder], listeners=[options.beside(remarks)], checkpoint_s=options.checkpoint_s, group=group
                )
            except KeyboardInterrupt:  # at once, and not at the episode's end: somebody wants the robot to stand
                return "stopped"
        return ended


def run_by_id(folder: RunFolder, options: Running) -> int:
    """Train a run on a robot that is made by its id alone; the exit status.

    Args:
        folder: The run's, which need not be there.
        options: How it is trained.
    """
    from cycletime.runs.worlds import make_env

    if folder.is_finished:
        print(f"finished before: {result_line(folder.result(), folder.path)}", flush=True)
        return 0
    return RealTimeRun(
        folder,
        lambda: make_env(folder.spec.world, folder.spec.dt),
        options,
        f"cycletime resume {shlex.quote(str(folder.path))}",
    ).run()
