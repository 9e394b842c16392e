"""`cycletime robot replay`: a run on a robot once more, from the journal of its cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cycletime.cli.of_one_run import OfOneRun
from cycletime.cli.options import Real
from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.runs.folder import RunFolder
    from cycletime.runs.journal import Entry


@dataclass(frozen=True, kw_only=True)
class ReplayRobot(OfOneRun):
    """Show what was recorded of a run on a robot: returns, stops, and how its cycles were in time.

    For example: cycletime robot replay runs/cycletime-URReacher2-v0-ppo-10ms-seed0-1f0c7c38a2 --play --speed 10
    """

    play: bool = False
    """Show its cycles one after the other, as they were shown live."""
    speed: Real = 1.0
    """How much faster than they were."""

    def run(self) -> int:
        """Read the journal, and print or play it."""
        from cycletime.engines.live.replay import summary
        from cycletime.runs.folder import RunFolder

        folder = RunFolder.open(self.folder)
        entries = list(folder.journal.entries())
        if not entries:
            raise InputError(
                f"{folder.path} has no journal with episodes of a robot: give the folder of a 'cycletime robot run'."
            )
        if self.play:
            self._play(folder, entries)
        print(printable(f"{folder.spec.label}, seed {folder.spec.seed}"))
        for line in summary(entries, float(folder.spec.dt)):
            print(line)
        return 0

    def _play(self, folder: RunFolder, entries: list[Entry]) -> None:
        from cycletime.engines.live.board import Board
        from cycletime.engines.live.replay import play
        from cycletime.engines.live.shown import shown_live
        from cycletime.robots.clock import WallClock

        steps = sum(entry.episode.env_steps for entry in entries)
        cycle_steps = int(entries[0].episode.length_steps[0])
        board = Board(f"{folder.spec.label} seed {folder.spec.seed}, recorded", steps)
        with shown_live(board, cycle_steps) as keeper:
            play(entries, keeper, WallClock(), self.speed)
