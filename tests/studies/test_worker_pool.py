"""Workers that give no sign of life, with a clock of the tests' own."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest

from cycletime.studies import worker_pool
from cycletime.studies.events import Event, open_event_writer
from cycletime.studies.leases import STALE_S, hold_lease
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import HEARTBEAT_CHECK_S, STOP_TIMEOUT_S, run_study
from tests.studies.small import finish, make_old, names_of
from tests.studies.stand_ins import Notes

ONE = {"dts": ["16ms"], "rules": ["baseline"], "seeds": 1}
TICK_S = 5.0


@dataclass
class Frozen:
    """An executor whose first worker begins a run and then does nothing; the next ones finish all there is."""

    folder: StudyFolder
    stack: ExitStack
    now_s: list[float]
    each: Callable[[], object] = lambda: None
    """Called with each look at the workers, which takes a while."""
    looks: int = 0
    killed_s: float | None = None
    workers: int = 1
    over: dict[str, str] = field(default_factory=dict)
    worker: str = ""
    """The one that does nothing."""

    def find_workers(self, study: Path) -> Iterable[str]:
        return ()

    def start(self, study: Path, command: str, count: int, device: str) -> list[str]:
        name, (run,) = f"{command}-{self.looks}", names_of(self.folder)
        if self.killed_s is not None:
            finish(self.folder)
            self.over[name] = ""
            return [name]
        self.worker = name
        self.stack.enter_context(hold_lease(self.folder.leases, run, name))
        with open_event_writer(self.folder.workers, name) as events:
            events.write(Event(worker=name))
            events.write(Event(run))
        return [name]

    def poll(self, wait_s: float) -> Mapping[str, str]:
        self.looks += 1
        self.now_s[0] += TICK_S
        self.each()
        over, self.over = self.over, {}
        return over

    def stop(self, study: Path) -> None: ...

    def kill(self, name: str) -> None:
        self.killed_s = self.now_s[0]
        self.stack.close()
        self.over[name] = "its worker died with status -9"

    def close(self, wait_s: float) -> None: ...


@pytest.fixture
def frozen(make_folder: Callable[..., StudyFolder], monkeypatch: pytest.MonkeyPatch) -> Iterable[Frozen]:
    now_s = [1000.0]
    monkeypatch.setattr(worker_pool, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    with ExitStack() as stack:
        yield Frozen(make_folder(**ONE), stack, now_s)


def test_one_that_touches_its_leases_no_more_is_ended_and_another_takes_its_run(frozen: Frozen) -> None:
    notes = Notes()
    assert run_study(frozen.folder, frozen, observers=[notes]) == {"done": 1}
    assert frozen.killed_s is not None
    assert STALE_S < frozen.killed_s - 1000.0 <= STALE_S + 2 * HEARTBEAT_CHECK_S
    (told,) = (each for each in notes.heard if isinstance(each, Event) and each.error)
    assert (told.outcome, told.error) == (None, "its worker gave no sign of life for 135 s")


def test_one_that_ends_amid_a_run_without_a_word_has_died_whatever_its_status(frozen: Frozen) -> None:
    def end() -> None:
        if frozen.looks == 1:
            frozen.kill(frozen.worker)
            frozen.over = {frozen.worker: ""}

    frozen.each, notes = end, Notes()
    assert run_study(frozen.folder, frozen, observers=[notes]) == {"done": 1}
    (told,) = (each for each in notes.heard if isinstance(each, Event) and each.error)
    assert (told.outcome, told.error) == (None, "its worker ended before it was done")


def test_one_that_touches_its_leases_is_let_for_ever(frozen: Frozen) -> None:
    (run,) = names_of(frozen.folder)
    ages = iter(range(10_000, 0, -1))

    def touch() -> None:
        make_old(frozen.folder.leases / f"{run}.json", next(ages))
        if frozen.looks > 5 * STALE_S / TICK_S:
            finish(frozen.folder)
            frozen.over = {frozen.worker: ""}

    frozen.each = touch
    assert run_study(frozen.folder, frozen) == {"done": 1}
    assert frozen.killed_s is None


def test_a_command_that_was_frozen_itself_does_not_blame_its_workers(frozen: Frozen) -> None:
    def freeze() -> None:
        if frozen.looks == 2:
            frozen.now_s[0] += 100_000.0

    frozen.each = freeze
    assert run_study(frozen.folder, frozen) == {"done": 1}
    assert frozen.looks > 10, "it was not at once"


def test_one_that_is_asked_to_stop_and_gives_no_sign_is_ended_soon_and_its_run_is_no_failure(frozen: Frozen) -> None:
    assert run_study(frozen.folder, frozen, stop=lambda: frozen.looks >= 2) == {"pending": 1}
    assert frozen.killed_s is not None
    assert STOP_TIMEOUT_S <= frozen.killed_s - 1000.0 <= STOP_TIMEOUT_S + 5 * TICK_S
    assert not list(frozen.folder.runs.iterdir())
