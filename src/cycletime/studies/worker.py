"""A worker: it claims runs of a study that nobody has, trains them, and exits when there are none left.

    python -m cycletime.studies.worker STUDY NAME WORKERS

The study's folder is the queue, on this machine, on Ray, on Slurm and on a machine with nothing but a GPU. A worker
saves and exits when its input ends or it is asked to stop; one whose work hangs is ended by its `watchdog`.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from cycletime.errors import MachineError, RunError, error_sentence
from cycletime.processes import handling, ignore_signal, owning_children, private_descriptors
from cycletime.streams import lenient_streams
from cycletime.studies.claim_runs import ClaimedRun, RunClaimer
from cycletime.studies.events import Event, EventWriter, open_event_writer, stop_file
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.watchdog import KillReason, Watchdog, run_watchdog
from cycletime.training.machine import prepare_jax
from cycletime.training.observers import Progress, Status, TrainingObserver
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import SaveOptions, TrainingJob
from cycletime.training.trainer import CompletedRun, ResultSink, train_batch

SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
_PREALLOCATE, _CACHE = "XLA_PYTHON_CLIENT_PREALLOCATE", "CYCLETIME_CACHE"


def worker_environment(device: str) -> dict[str, str]:
    cache = {_CACHE: os.environ[_CACHE]} if _CACHE in os.environ else {}
    if device == "cpu":
        return {**SINGLE_THREAD, **cache}
    # Memory as it is needed, since JAX would take most of a GPU at once and leave none to another command's worker.
    return {_PREALLOCATE: os.environ.get(_PREALLOCATE, "false"), **cache}


@dataclass(frozen=True)
class StudyResultSink(ResultSink):
    study: StudyFolder

    @property
    def save_options(self) -> SaveOptions:
        return self.study.keep

    def finish(self, completed: Sequence[CompletedRun]) -> list[Exception | None]:
        try:
            self.study.check_in_place()
            self.study.store.add([run for _, run in completed])
        except Exception as error:
            return [error] * len(completed)
        for recorder, _ in completed:
            recorder.folder.remove()
        return [None] * len(completed)


EXIT_LEASE_LOST, EXIT_MACHINE_ERROR = 75, 74
"""Exit statuses: another worker took its run while it was frozen; the machine lacks something, which is printed."""
STOP_POLL_S = 1.0
_PR_SET_PDEATHSIG = 1


def main(arguments: Sequence[str]) -> int:
    study, name, workers = arguments
    ended = threading.Event()
    with suppress(OSError, AttributeError):  # have Linux wake a stopped worker when its parent dies, so that it exits
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)
    # The guard has standard output, too: whoever reads it to its end knows that nothing is left running.
    with owning_children(), _own_pipes() as (commands, out), _set_on_eof_or_sigterm(ended, commands):
        try:
            with lenient_streams():  # an environment may print, and a log be on a full disk
                work(study, name, int(workers), ended.is_set)
        except MachineError as error:
            os.write(out, str(error).encode())
            return EXIT_MACHINE_ERROR
    return 0


@contextmanager
def _own_pipes() -> Iterator[tuple[int, int]]:
    """Keep input and output for the worker: whatever a library prints is not taken for ours, and none waits for us."""
    commands, out, nowhere = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    os.close(nowhere)
    with private_descriptors(commands, out):
        yield commands, out


@contextmanager
def _set_on_eof_or_sigterm(ended: threading.Event, commands: int) -> Iterator[None]:
    """Set an event at the end of the input or SIGTERM, even where the main thread is stuck in a library."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def listen() -> None:
        while True:
            ready, _, _ = select.select([commands, reader], [], [])
            if reader in ready and signal.SIGTERM in os.read(reader, 100):
                break
            if commands in ready and not os.read(commands, 100):
                break
        ended.set()

    # SIGTERM is written into the pipe; the one who started the worker decides what Ctrl-C means.
    handlers = {signal.SIGTERM: ignore_signal, signal.SIGINT: ignore_signal}
    with handling(handlers), private_descriptors(reader, writer):
        threading.Thread(target=listen, daemon=True).start()
        yield


def work(study: str, name: str, workers: int, stop: Callable[[], bool] = lambda: False) -> None:
    """Train runs until there are none left to claim, wherever it runs; about so many `workers` share them."""
    folder = StudyFolder.open(study)
    asked = _StopRequest(stop_file(folder.workers, name), stop)
    with open_event_writer(folder.workers, name) as events:
        events.write(Event(worker=name))

        def end_process(reason: KillReason, sentence: str) -> None:
            events.write(Event(died=sentence) if reason == "hangs" else Event(left=True))
            os.kill(os.getpid(), signal.SIGKILL)  # whatever it does

        watchdog = Watchdog(float(folder.study.hang_timeout), asked, end_process)
        try:
            with run_watchdog(watchdog):
                _work(folder, name, workers, asked, events)
        except MachineError as error:
            sentence = f"On {platform.node()}: {error}"
            events.write(Event(machine=sentence))  # a line may still find room
            raise MachineError(sentence) from error
        events.write(Event(left=True))


def _work(folder: StudyFolder, name: str, workers: int, stop: Callable[[], bool], events: EventWriter) -> None:
    plan = Plan.of(folder.study)
    prepare_jax(plan.jax_device)
    claimer = RunClaimer(folder, plan, name, workers, lambda: os._exit(EXIT_LEASE_LOST))
    owner = os.getpid()
    while not stop() and folder.is_in_place:  # else its command says so
        with ExitStack() as stack:
            claimed = claimer.claim(stack)
            if not claimed:
                return
            train_claimed(folder, claimed, events, stop)
            if os.getpid() != owner:  # a child that its environment has forked, and not ended
                os._exit(EXIT_LEASE_LOST)


def train_claimed(
    folder: StudyFolder, claimed: Sequence[ClaimedRun], events: EventWriter, stop: Callable[[], bool]
) -> None:
    for run in claimed:
        events.write(Event(run.spec.name))
    jobs = [
        TrainingJob(folder.run_folder(run.spec), [_EventObserver(run.spec.name, events)], run.check) for run in claimed
    ]
    lacking: MachineError | None = None
    for run, ended in zip(claimed, train_batch(jobs, StudyResultSink(folder), stop=stop), strict=True):
        if ended == "stopped":
            events.write(Event(run.spec.name, outcome="stopped"))
        elif isinstance(ended, MachineError):
            lacking = ended
        elif isinstance(ended, Exception) and not run.lease.is_lost():  # else it is another's by now
            with suppress(RunError):  # a full disk takes no note either
                folder.failures(run.spec.name).add(ended)
            events.write(Event(run.spec.name, outcome="failed", error=error_sentence(ended)))
    if lacking:
        raise lacking


class _StopRequest:
    def __init__(self, file: Path, stop: Callable[[], bool]) -> None:
        self.file, self.stop = file, stop
        self.due_s, self.answer = 0.0, False

    def __call__(self) -> bool:
        now = time.monotonic()
        if not self.answer and now >= self.due_s:
            self.due_s = now + STOP_POLL_S
            self.answer = self.file.exists()
        return self.answer or self.stop()


@dataclass(frozen=True)
class _EventObserver(TrainingObserver):
    name: str
    events: EventWriter

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        self.events.progress(self.name, resumed_from or 0)

    def update(self, progress: Progress) -> None:
        self.events.progress(self.name, progress.env_steps)

    def end(self, status: Status) -> None:
        # At once, since others of the batch may train on for long; `train_claimed` writes all other ends.
        if status == "finished":
            self.events.write(Event(self.name, outcome="done"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
