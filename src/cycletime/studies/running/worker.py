"""A worker: it takes runs of a study that nobody has, trains them, and goes when there are none left.

    python -m cycletime.studies.running.worker STUDY NAME WORKERS

The study's folder is the queue. A worker looks which runs are not done, takes leases on as many of one program as it
trains together, and puts them into the store. So it is the same worker on this machine, on Ray, on Slurm and on a
machine with nothing but a GPU, and however many there are, started by whatever commands, they share the work.

It saves and goes when its input ends, so that it does not outlive whoever started it, and when it is asked to stop. One
whose work hangs is ended by its `watchdog`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from cycletime.engines.devices import prepare_jax
from cycletime.engines.record import Progress, Status, Trainee
from cycletime.engines.training import train_together
from cycletime.errors import MachineError, RunError, in_words
from cycletime.runs.folder import RunFolder
from cycletime.streams import lenient_streams
from cycletime.studies.plan.plan import Plan
from cycletime.studies.running.diary import Diary, diary_of, stop_file
from cycletime.studies.running.shelf import StudyShelf
from cycletime.studies.running.taking import Taken, Taking
from cycletime.studies.running.watchdog import Watchdog, Why, watched
from cycletime.studies.store.folder import StudyFolder

LOST, LACKING = 75, 74
"""Exit statuses: frozen for so long that another took its run; the machine lacks something, and what it is printed."""
STOP_S = 1.0
"""How often it looks whether it is asked to stop."""
_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> int:
    """Work in a process of its own until there is no more to do."""
    study, name, workers = arguments
    ended = threading.Event()
    _wake_when_orphaned()
    _end_with_input_or_signal(ended)
    out = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints is not taken for ours
    try:
        with lenient_streams():  # an environment may print, and a log be on a full disk
            work(study, name, int(workers), ended.is_set)
    except MachineError as error:
        os.write(out, str(error).encode())
        return LACKING
    return 0


def _wake_when_orphaned() -> None:
    """Have the system wake it, if it was stopped by a signal, when the one who started it dies: to see that, and go."""
    with suppress(OSError, AttributeError):  # where the system is not Linux
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def _end_with_input_or_signal(ended: threading.Event) -> None:
    """Let an event be set by the end of the input, or by SIGTERM: even where the main thread is stuck in a library."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started it decides what Ctrl-C means
    signal.signal(signal.SIGTERM, lambda *_: None)  # which is written into the pipe

    def listen() -> None:
        while True:
            ready, _, _ = select.select([0, told], [], [])
            if told in ready and signal.SIGTERM in os.read(told, 100):
                break
            if 0 in ready and not os.read(0, 100):
                break
        ended.set()

    threading.Thread(target=listen, daemon=True).start()


def work(study: str, name: str, workers: int, stop: Callable[[], bool] = lambda: False) -> None:
    """Train runs until there are none left to take; this is what a worker anywhere does.

    Args:
        study: The study's folder.
        name: Who this is, different from all others.
        workers: How many there are, about, so that each takes its share.
        stop: Asked about once a second whether to save and leave.

    Raises:
        MachineError: if the machine has no room or no GPU for runs, which is no failure of theirs.
    """
    folder = StudyFolder.open(study)
    asked = _Asked(stop_file(folder.workers, name), stop)
    with diary_of(folder.workers, name) as diary:
        diary.write({"worker": name})
        watchdog = Watchdog(float(folder.study.patience), asked, lambda why, told: _give_up(diary, why, told))
        try:
            with watched(watchdog):
                _work(folder, name, workers, asked, diary)
        except MachineError as error:
            told = f"On {platform.node()}: {error}"
            diary.write({"machine": told})  # a line may still find room
            raise MachineError(told) from error
        diary.write({"left": True})


def _give_up(diary: Diary, why: Why, told: str) -> None:
    """End the process, whatever it does, and what its environment has started; with a word to who looks after it."""
    diary.write({"died": told} if why == "hangs" else {"left": True})
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _work(folder: StudyFolder, name: str, workers: int, stop: Callable[[], bool], diary: Diary) -> None:
    plan = Plan.of(folder.study)
    prepare_jax(plan.jax_device)
    taking = Taking(folder, plan, name, workers, lambda: os._exit(LOST))
    while not stop():
        with ExitStack() as stack:
            taken = taking.take(stack)
            if not taken:
                return
            train_taken(folder, taken, diary, stop)


def train_taken(folder: StudyFolder, taken: Sequence[Taken], diary: Diary, stop: Callable[[], bool]) -> None:
    """Train runs that were taken, and tell what becomes of each.

    Raises:
        MachineError: if the machine has no room or no GPU for them.
    """
    for run in taken:
        diary.begin(run.name)
    trainees = [Trainee(folder.run_folder(run.spec), [_Watch(run.name, diary)], run.check) for run in taken]
    lacking: MachineError | None = None
    for run, ended in zip(taken, train_together(trainees, StudyShelf(folder), stop=stop), strict=True):
        if ended == "stopped":
            diary.end(run.name, "stopped")
        elif isinstance(ended, MachineError):
            lacking = ended
        elif isinstance(ended, Exception) and not run.lease.is_lost():  # else it is another's by now
            with suppress(RunError):  # a full disk takes no note either
                folder.failures(run.name).add(ended)
            diary.end(run.name, "failed", in_words(ended))
    if lacking:
        raise lacking


class _Asked:
    """Whether a worker is to stop; looks at the disk only now and then."""

    def __init__(self, file: Path, stop: Callable[[], bool]) -> None:
        self.file, self.stop = file, stop
        self.due_s, self.answer = 0.0, False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self.answer and now >= self.due_s:
            self.due_s = now + STOP_S
            self.answer = self.file.exists()
        return self.answer or self.stop()


@dataclass(frozen=True)
class _Watch:
    """Listens to a run in training, and writes how far it is."""

    name: str
    diary: Diary

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """Write where it begins."""
        self.diary.tell(self.name, resumed_from or 0)

    def update(self, progress: Progress) -> None:
        """Write how far it is."""
        self.diary.tell(self.name, progress.env_steps)

    def remark(self, sentence: str) -> None:
        """The result says it, too."""

    def end(self, status: Status) -> None:
        """Write that it is done at once, since others of the group may go on for long; of other ends there is more."""
        if status == "finished":
            self.diary.end(self.name, "done")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
