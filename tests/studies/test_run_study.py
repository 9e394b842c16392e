"""The command that looks after workers, whatever becomes of them."""

import os
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cycletime.errors import MachineError, RunError
from cycletime.studies import worker, worker_pool
from cycletime.studies.events import Event, open_event_writer
from cycletime.studies.leases import hold_lease
from cycletime.studies.study_folder import MAX_FAILURES, RunState, StudyFolder
from cycletime.studies.worker_pool import MAX_SILENT_WORKERS, run_study
from tests.studies.small import finish, names_of, specs_of, wait_until
from tests.studies.stand_ins import Death, InThreads, InTurn, Notes, Trained

ONE = {"dts": ["16ms"], "rules": ["baseline"]}
"""Of a study with one program."""


def test_all_runs_are_done_once_and_a_done_study_is_left_alone(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder, notes = make_folder(), Notes()
    names = names_of(folder)
    assert run_study(folder, InTurn(), observers=[notes]) == {"done": 6}
    assert sorted(trained.runs) == sorted(names)
    assert notes.heard[0] == dict.fromkeys(names, "pending")
    assert notes.outcomes == [(name, "done") for name in trained.runs]
    assert notes.heard[-1] == "end"
    assert len(list((folder.path / "finished").iterdir())) == 1, "small files are put together"
    assert not [*folder.workers.iterdir(), *folder.leases.iterdir(), *folder.runs.iterdir()]
    idle = InTurn()
    assert run_study(folder, idle) == {"done": 6}
    assert (idle.started, len(trained.runs)) == ([], 6)


@pytest.mark.parametrize("place", ["workers", "leases", "runs", "finished"])
def test_a_folder_that_workers_may_not_write_to_is_told_of_before_one_is_started(
    make_folder: Callable[..., StudyFolder], trained: Trained, place: str
) -> None:
    folder, notes, executor = make_folder(), Notes(), InTurn()
    path = folder.path / place
    if path.exists():
        path.rmdir()
    path.symlink_to("/sys/kernel")  # not even root may
    with pytest.raises(RunError, match=f"^{path} cannot be written: the folder is read-only for you; give one that"):
        run_study(folder, executor, observers=[notes])
    assert (executor.started, notes.heard, trained.runs) == ([], [], [])


def test_a_study_that_is_done_can_be_asked_for_where_nobody_may_write(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder = make_folder()
    assert run_study(folder, InTurn()) == {"done": 6}
    folder.workers.rmdir()
    folder.workers.symlink_to("/sys/kernel")
    assert run_study(folder, InTurn()) == {"done": 6}


def test_no_more_workers_are_started_than_have_something_to_do(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    executor = InTurn(workers=50)
    assert run_study(make_folder(**ONE, seeds=5, width=2), executor) == {"done": 5}
    assert len(executor.started) == 3


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"seeds": 3}, 3),
        ({"dts": ["8ms", "16ms", "32ms"]}, 4),
        ({"rules": ["baseline", "dt-aware", "constant"]}, 2),
        ({"seeds": 1}, 0),
        ({"tuned": {"dt": "16ms", "batch": [100, 200], "minibatch": 50}}, 6),
    ],
)
def test_a_study_that_grew_runs_only_what_is_new(
    make_folder: Callable[..., StudyFolder], trained: Trained, change: dict[str, object], more: int
) -> None:
    run_study(make_folder(), InTurn())
    before = list(trained.runs)
    run_study(make_folder(**change), InTurn())
    assert len(trained.runs) == len(before) + more == len(set(trained.runs))


def test_a_run_that_fails_three_times_does_not_stop_the_others_and_is_tried_again_after_a_retry(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder, notes = make_folder(), Notes()
    bad = names_of(folder)[2]
    trained.faults[bad] = FloatingPointError("no number")
    assert run_study(folder, InTurn(), observers=[notes]) == {"done": 5, "failed": 1}
    assert (trained.runs.count(bad), len(trained.runs)) == (3, 8)
    assert notes.outcomes.count((bad, "failed")) == 3
    assert run_study(folder, InTurn()) == {"done": 5, "failed": 1}
    assert len(trained.runs) == 8
    folder.failures(bad).forget()
    del trained.faults[bad]
    assert run_study(folder, InTurn()) == {"done": 6}


@pytest.mark.parametrize("tells", ["its executor", "its diary alone"])
def test_what_a_machine_lacks_ends_it_for_all_and_is_no_failure_of_runs(
    make_folder: Callable[..., StudyFolder], trained: Trained, tells: str
) -> None:
    folder, notes = make_folder(), Notes()
    first = names_of(folder)[0]
    trained.faults[first] = MachineError("The disk is full.")

    def works(study: str, name: str, workers: int) -> None:
        try:
            worker.work(study, name, workers)
        except MachineError as error:
            if tells == "its executor":
                raise
            raise Death("its job ended early") from error

    executor = InTurn(workers=2, work=works)
    with pytest.raises(MachineError, match=r"^On .*: The disk is full\.$"):
        run_study(folder, executor, observers=[notes])
    assert trained.runs == [first]
    assert not any(folder.failures(name).read() for name in names_of(folder))
    assert executor.calls == ["stop", "close"], "who is left saves and goes"
    assert notes.heard[-1] == "end"
    del trained.faults[first]
    assert run_study(folder, InTurn()) == {"done": 6}


def test_runs_of_others_are_waited_for_and_told_of(
    make_folder: Callable[..., StudyFolder], trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, notes = make_folder(), Notes()
    theirs = specs_of(folder)[3]
    waits: list[float] = []
    with hold_lease(folder.leases, theirs.name, "other") as lease:
        assert lease is not None

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                finish(StudyFolder.open(folder.path), [theirs])
                lease.release()

        monkeypatch.setattr(time, "sleep", sleep)
        assert run_study(folder, InTurn(), observers=[notes]) == {"done": 6}
    assert waits == [worker_pool.OTHERS_POLL_S] * 3
    assert theirs.name not in trained.runs
    told = [each[1] for each in notes.heard if isinstance(each, tuple)]
    assert told == [{theirs.name: f"other on {socket.gethostname()}, process {os.getpid()}"}] * 3
    assert Counter(notes.outcomes) == Counter((name, "done") for name in names_of(folder))


def test_two_commands_at_once_share_the_runs(
    make_folder: Callable[..., StudyFolder], trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "OTHERS_POLL_S", 0.01)
    folder = make_folder(seeds=4)
    meeting = threading.Barrier(2)
    counts: list[Counter[RunState]] = []
    met: set[str] = set()

    def both_are_there(names: Sequence[str]) -> None:
        command = threading.current_thread().name
        if command not in met:
            met.add(command)
            meeting.wait(timeout=120)

    trained.before = both_are_there

    def command() -> None:
        counts.append(run_study(StudyFolder.open(folder.path), InTurn()))

    threads = [threading.Thread(target=command) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [{"done": 12}] * 2
    assert sorted(trained.runs) == sorted(names_of(folder)), "each once"


def test_asked_to_stop_workers_leave_the_rest_for_later(
    make_folder: Callable[..., StudyFolder], trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "STOP_POLL_S", 0.0)
    folder, notes, executor = make_folder(), Notes(), InThreads()

    def wait_for_the_word(names: Sequence[str]) -> None:
        if len(trained.runs) == 2:
            wait_until(lambda: list(folder.workers.glob("*.stop")))

    trained.before = wait_for_the_word
    counts = run_study(folder, executor, observers=[notes], stop=lambda: len(trained.runs) >= 2)
    assert counts == {"done": 2, "pending": 4}
    assert executor.calls == ["stop", "close"]
    assert notes.heard[-1] == "end"
    assert not list(folder.workers.iterdir())
    assert run_study(folder, InTurn()) == {"done": 6}
    assert len(trained.runs) == len(set(trained.runs)) == 6


def test_workers_that_never_came_before_they_were_asked_to_stop_are_no_silence(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    """Such as jobs that waited for their turn in a queue."""

    class Queue(InTurn):
        def stop(self, study: Path) -> None:
            self.calls.append("stop")

        def poll(self, wait_s: float) -> Mapping[str, str]:
            if not self.calls:
                return {}
            over = [name for _, name in self.waiting]
            self.waiting.clear()
            return dict.fromkeys(over, "its job ended early")

    executor = Queue(workers=3 * MAX_SILENT_WORKERS)
    asked = iter([False] * 2)
    counts = run_study(make_folder(**ONE, seeds=40), executor, stop=lambda: next(asked, True))
    assert len(executor.started) == 3 * MAX_SILENT_WORKERS
    assert counts == {"pending": 40}


@dataclass
class Requeued(InTurn):
    """An executor whose workers an earlier command has started."""

    left: list[str] = field(default_factory=list)

    def find_workers(self, study: Path) -> Iterable[str]:
        found, self.left = self.left, []
        self.waiting += [(str(study), name) for name in found]
        return found


def test_workers_of_an_earlier_command_are_found_and_what_was_told_then_is_not_counted_again(
    make_folder: Callable[..., StudyFolder], trained: Trained
) -> None:
    folder, notes = make_folder(**ONE, seeds=2), Notes()
    first, second = names_of(folder)
    folder.workers.mkdir()
    with open_event_writer(folder.workers, "cycletime-old-0") as events:
        for _ in range(MAX_FAILURES):  # each of which the earlier command has noted, if it was there
            events.write(Event(worker="cycletime-old-0"))
            events.write(Event(first))
            events.write(Event(first, 0))
        events.write(Event(machine="The disk was full."))
    executor = Requeued(left=["cycletime-old-0"])
    assert run_study(folder, executor, observers=[notes]) == {"done": 2}
    assert executor.started == []
    assert sorted(notes.outcomes) == [(first, "done"), (second, "done")]
    assert not folder.failures(first).is_final


def test_the_watcher_is_told_of_the_end_whatever_happens(make_folder: Callable[..., StudyFolder]) -> None:
    def interrupted(study: str, name: str, workers: int) -> None:
        raise KeyboardInterrupt

    notes, executor = Notes(), InTurn(work=interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_study(make_folder(), executor, observers=[notes])
    assert (notes.heard[-1], executor.calls[-1]) == ("end", "close")
    assert executor.patience_s == [0.0], "it was asked twice, and waits for nobody"


def test_the_folder_of_a_run_that_is_done_is_removed(make_folder: Callable[..., StudyFolder], trained: Trained) -> None:
    folder = make_folder(**ONE)
    finish(folder)
    (folder.runs / names_of(folder)[0] / "checkpoints" / "000001").mkdir(parents=True)
    assert run_study(folder, InTurn()) == {"done": 2}
    assert not list(folder.runs.iterdir())
