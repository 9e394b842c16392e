from collections.abc import Callable, Mapping

import pytest

from cycletime.errors import InputError
from cycletime.training.trackers import GuardedTracker, RunInfo, Status

MakeInfo = Callable[..., RunInfo]


class Recorder:
    """Keeps what it hears, and raises the error of a call that it is given one for."""

    def __init__(self, **errors: BaseException) -> None:
        self.heard: list[object] = []
        self.errors = errors

    def begin(self, run: RunInfo) -> None:
        self._hear("begin", run.name)

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        self._hear("log", env_steps, dict(values))

    def end(self, status: Status) -> None:
        self._hear("end", status)

    def _hear(self, call: str, *arguments: object) -> None:
        self.heard.append((call, *arguments))
        if call in self.errors:
            raise self.errors[call]


def test_all_calls_are_passed_on(run_info: MakeInfo) -> None:
    recorder, warnings = Recorder(), list[str]()
    guarded = GuardedTracker(recorder, warnings.append)
    guarded.begin(run_info(name="a"))
    guarded.log(10, {"charts/x": 1.0})
    guarded.end("stopped")
    assert recorder.heard == [("begin", "a"), ("log", 10, {"charts/x": 1.0}), ("end", "stopped")]
    assert warnings == []


def test_the_first_failure_is_one_sentence_and_nothing_goes_there_any_more(run_info: MakeInfo) -> None:
    recorder, warnings = Recorder(log=OSError(28, "No space left on device")), list[str]()
    guarded = GuardedTracker(recorder, warnings.append)
    guarded.begin(run_info())
    for env_steps in (10, 20, 30):
        guarded.log(env_steps, {"charts/x": 1.0})
    guarded.end("finished")
    assert recorder.heard[1:] == [("log", 10, {"charts/x": 1.0})]
    assert warnings == ["Recorder failed and hears no more of this run: OSError: [Errno 28] No space left on device."]


def test_a_failure_at_the_end_is_one_sentence_too(run_info: MakeInfo) -> None:
    warnings = list[str]()
    guarded = GuardedTracker(Recorder(end=TimeoutError()), warnings.append)
    guarded.begin(run_info())
    guarded.end("finished")
    guarded.end("finished")
    assert warnings == ["Recorder failed and hears no more of this run: TimeoutError."]


def test_a_failure_to_begin_refuses_the_run_in_one_line(run_info: MakeInfo) -> None:
    recorder = Recorder(begin=ConnectionError("\n  no answer from host.\n  Try again later."))
    guarded = GuardedTracker(recorder, pytest.fail)
    with pytest.raises(InputError, match=r"^Recorder could not begin: ConnectionError: no answer from host\.$"):
        guarded.begin(run_info())
    guarded.log(10, {})
    guarded.end("failed")
    assert len(recorder.heard) == 1


def test_a_refusal_to_begin_keeps_its_own_sentence(run_info: MakeInfo) -> None:
    with pytest.raises(InputError, match=r"^Give another folder\.$"):
        GuardedTracker(Recorder(begin=InputError("Give another folder.")), pytest.fail).begin(run_info())


def test_an_interrupt_is_no_failure_of_the_tracker(run_info: MakeInfo) -> None:
    guarded = GuardedTracker(Recorder(log=KeyboardInterrupt()), pytest.fail)
    guarded.begin(run_info())
    with pytest.raises(KeyboardInterrupt):
        guarded.log(10, {})


def test_a_run_can_be_resumed_with_the_same_guard(run_info: MakeInfo) -> None:
    recorder = Recorder()
    guarded = GuardedTracker(recorder, pytest.fail)
    for _ in range(2):
        guarded.begin(run_info(name="a"))
        guarded.end("stopped")
    assert recorder.heard == [("begin", "a"), ("end", "stopped")] * 2
