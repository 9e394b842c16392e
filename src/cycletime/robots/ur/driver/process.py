"""The driver as a process: what it is started with, how it ends, and that the system lets it be on time.

It is started as a new program, which loads neither JAX nor what its parent had loaded. It ends, and the arm stands,
when the agent does, however that comes about.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from cycletime import ur5
from cycletime.robots.clock import WallClock, request_real_time_priority
from cycletime.robots.ur.driver.channel import DriverReport, Phase, SharedMemory
from cycletime.robots.ur.driver.driver import Driver, DriverSettings
from cycletime.robots.ur.freshness import Freshness
from cycletime.robots.ur.links import StandardLink
from cycletime.robots.ur.safety import StopHandler, Supervisor


class AgentChannel(SharedMemory):
    def __init__(self, files: tuple[int, int], agent: int) -> None:
        super().__init__(files)
        self._agent, self._asked_to_end = agent, False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._end)

    def agent_is_gone(self) -> bool:
        """Whether its process has ended, so that another has inherited this one; or a signal came."""
        return self._asked_to_end or os.getppid() != self._agent

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._asked_to_end = True


def main(arguments: Sequence[str]) -> int:
    """Drive, from the words of a command line; 1 where the arm had to be stopped."""
    settings = DriverSettings.from_text(arguments[0])
    memory_file, bell, agent = map(int, arguments[1:])
    channel = AgentChannel((memory_file, bell), agent)
    request_real_time_priority()
    try:
        ended = Driver(
            StandardLink(settings.address),
            Supervisor(settings.limits, ur5.tip),
            StopHandler(),
            channel,
            WallClock(settings.pace),
            settings.timeouts,
            Freshness(settings.timeouts.late_s * settings.pace),
        ).run()
    except Exception as error:  # the agent must know, whatever it is
        channel.publish(DriverReport(Phase.ENDED, text=f"The driver failed with {type(error).__name__}: {error}"))
        raise
    return int(bool(ended.text))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
