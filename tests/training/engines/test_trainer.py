"""Training in process: what it leaves, when it saves, what listeners hear, and whose error is whose."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import RunError
from cycletime.training import run_recorder, trainer
from cycletime.training.engine import Chunk
from cycletime.training.finished_run import FinishedRun, find_fault
from cycletime.training.learning_curve import EpisodeBins, Episodes
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import SaveOptions, TrainingJob
from cycletime.training.spec import RunSpec
from cycletime.training.trainer import LONGEST_WAIT_S, CompletedRun, FolderSink, ResultSink, train_batch
from tests.training.engines.scripted import CHUNK_STEPS, Clock, Scripted, make_spec, train
from tests.training.runs.finished import all_of

Ears = Callable[..., Any]
After = Callable[[int], Callable[[], bool]]
LeftBy = Callable[[RunFolder], dict[str, Any]]


@dataclass
class Shelf(ResultSink):
    """Keeps finished runs in memory."""

    wanted: SaveOptions = SaveOptions()  # noqa: RUF009 - it is frozen
    saved: list[tuple[str, int]] = field(default_factory=list)
    """Runs, and where they were."""
    runs: dict[str, FinishedRun] = field(default_factory=dict)
    fault: Exception | None = None

    @property
    def save_options(self) -> SaveOptions:
        return self.wanted

    def save(self, recorder: run_recorder.RunRecorder, chunk: Chunk) -> None:
        self.saved.append((recorder.spec.name, chunk.env_steps))

    def finish(self, completed: Sequence[CompletedRun]) -> list[Exception | None]:
        if self.fault is None:
            self.runs |= {run.name: run for _, run in completed}
        return [self.fault] * len(completed)


@pytest.fixture
def specs() -> list[RunSpec]:
    """Three runs of eight, four and eight chunks."""
    return [make_spec(chunks, seed) for seed, chunks in enumerate((8, 4, 8))]


@pytest.fixture
def folders(tmp_path: Path, specs: list[RunSpec]) -> list[RunFolder]:
    """Where they would be, though nothing is there yet."""
    return [RunFolder(tmp_path / "runs" / spec.name, spec) for spec in specs]


def trainees(folders: Sequence[RunFolder], ears: Sequence[Any] = ()) -> list[TrainingJob]:
    return [TrainingJob(folder, [ear] if ear else []) for folder, ear in zip(folders, ears or [None] * 9, strict=False)]


def together(folders: Sequence[RunFolder], shelf: Shelf, *, ears: Sequence[Any] = (), **how: Any) -> list[Any]:  # noqa: ANN401
    group = how.pop("batch", None) or Scripted([folder.spec for folder in folders])
    ends = train_batch(trainees(folders, ears), shelf, batch=group, **{"clock": Clock(), **how})
    assert group.closed == 1
    return ends


# Folders.


def test_a_finished_run_has_its_files_and_no_others(tmp_path: Path, walk: RunSpec) -> None:
    folder = RunFolder.create(tmp_path, walk)
    assert train(folder, checkpoint_s=0) == "finished"
    names = ["curve.parquet", "lock", "metrics.jsonl", "policy.safetensors", "result.json", "spec.json"]
    assert sorted(path.name for path in folder.path.iterdir()) == names
    assert folder.result()["resumed"] == "never"
    assert find_fault(folder.finished()) is None
    assert (folder.policy().contract or {})["observation"] == ["observation[0]", "observation[1]"]


def test_a_finished_run_is_left_alone(
    tmp_path: Path, specs: list[RunSpec], make_ear: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ear, group = RunFolder.create(tmp_path, specs[0]), make_ear(), Scripted(specs[:1])
    train(folder, batch=Scripted(specs[:1]))
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()}
    before.pop("lock")
    monkeypatch.setattr(trainer, "make_batch", None)
    assert train(folder, [ear], batch=group) == "finished"
    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.path.iterdir()}
    after.pop("lock")
    assert (after, ear.heard, group.closed) == (before, [], 1)


def test_who_comes_second_is_told_so_and_harms_nothing(tmp_path: Path, specs: list[RunSpec], make_ear: Ears) -> None:
    folders, ears = [RunFolder.create(tmp_path, spec) for spec in specs], [make_ear() for _ in specs]
    with folders[1].locked(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "make_batch", Scripted)  # of those that are left
        ends = train_batch(trainees(folders, ears), batch=Scripted(specs))
    assert (ends[0], ends[2]) == ("finished", "finished")
    assert "is being trained by process" in str(ends[1])
    assert ears[1].heard == []
    assert not folders[1].is_finished
    assert train(folders[1], batch=Scripted(specs[1:2])) == "finished"


def test_a_run_can_be_looked_at_while_it_goes_on(tmp_path: Path, specs: list[RunSpec], after: After) -> None:
    folder = RunFolder.create(tmp_path, specs[0])
    assert train(folder, batch=Scripted(specs[:1]), stop=after(3)) == "stopped"
    lines = [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]
    assert [line["env_steps"] for line in lines] == [100, 200, 300]
    assert folder.policy().env_steps == 300
    assert folder.policy().contract == Scripted(specs[:1]).env_infos[0].contract is not None
    assert folder.checkpoints.newest(folder.spec.identity)[0] is not None
    assert not folder.is_finished


# When checkpoints are due.


def saved_at(clock: Clock, folder: RunFolder, chunk_s: float = 1, save_s: float = 0, **how: Any) -> list[int]:  # noqa: ANN401
    """The environment steps of the checkpoints, where a chunk takes so long, and a checkpoint so long."""
    saved = []

    class Slow(Shelf):
        def save(self, recorder: run_recorder.RunRecorder, chunk: Chunk) -> None:
            saved.append(chunk.env_steps)
            clock.go(save_s)

    exact = how.pop("exact", lambda chunk: True)
    group = Scripted([folder.spec], does=lambda chunk: clock.go(chunk_s), exact=exact)
    assert together([folder], Slow(), batch=group, clock=clock, **how) == ["finished"]
    return saved


@pytest.mark.parametrize(
    ("save_s", "expected"),
    [
        (0, [1000, 2000, 3000]),
        (0.4, [1000, 2000, 3000]),  # a twenty-fifth of the time
        (2, [1000]),  # of which no second one is due before 52 s have passed
        (0.7, [1000, 2400]),
    ],
)
def test_checkpoints_wait_their_time_and_take_a_twentieth_of_it_at_most(
    tmp_path: Path, save_s: float, expected: list[int]
) -> None:
    spec = make_spec(chunks=35)
    assert saved_at(Clock(), RunFolder(tmp_path / "run", spec), save_s=save_s, checkpoint_s=10) == expected


def test_a_checkpoint_waits_for_a_moment_to_go_on_from_exactly_but_not_for_ever(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", make_spec(chunks=30))
    exact = {14, 21, 30}.__contains__
    assert saved_at(Clock(), folder, exact=exact, checkpoint_s=10) == [1400]
    folder.remove()
    chunk_s = LONGEST_WAIT_S / 10
    assert saved_at(Clock(), folder, chunk_s, exact=lambda chunk: chunk == 30, checkpoint_s=chunk_s) == [1100, 2200]


def test_time_is_counted_over_sessions(tmp_path: Path, after: After) -> None:
    clock, shelf = Clock(), Shelf()
    folder = RunFolder(tmp_path / "run", make_spec())
    for stop in (after(3), after(99)):
        group = Scripted([folder.spec], does=lambda chunk: clock.go(2))
        together([folder], shelf, batch=group, clock=clock, stop=stop)
        clock.go(1000)
    (run,) = shelf.runs.values()
    assert (run.result["wall_s"], run.result["sessions"], run.result["resumed"]) == (16, 2, "resumed, identical")


# Stopping.


def test_a_run_that_is_stopped_is_saved_and_goes_on_later(folders: list[RunFolder], after: After) -> None:
    shelf, whole = Shelf(), Shelf()
    assert together(folders, whole) == ["finished"] * 3
    assert not folders[0].path.exists(), "nothing is written before the first checkpoint"
    assert together(folders, shelf, stop=after(5)) == ["stopped", "finished", "stopped"]
    assert [steps for _, steps in shelf.saved] == [500, 500]
    assert not folders[1].path.exists()
    group = Scripted([folders[0].spec, folders[2].spec])
    assert together([folders[0], folders[2]], shelf, batch=group) == ["finished"] * 2
    assert [int(start["chunk"]) for start in group.starts.values() if start] == [5, 5]
    assert shelf.runs.keys() == whole.runs.keys()
    for name, run in shelf.runs.items():
        assert same(run, whole.runs[name])


def same(one: FinishedRun, other: FinishedRun) -> bool:
    left = ("resumed", "remarks", "sessions", "wall_s", "finished")
    told = [{**all_of(run), "result": {k: v for k, v in run.result.items() if k not in left}} for run in (one, other)]
    return told[0] == told[1]


def test_what_is_not_exact_is_not_saved_over_what_is(tmp_path: Path, after: After) -> None:
    folder, shelf = RunFolder(tmp_path / "run", make_spec()), Shelf()
    for exact, expected in ((False, [200]), (True, [200, 400]), (False, [200, 400])):
        group = Scripted([folder.spec], exact=lambda chunk: exact)  # noqa: B023 - called at once
        together([folder], shelf, batch=group, stop=after(2))
        assert [steps for _, steps in shelf.saved] == expected
    assert together([folder], shelf) == ["finished"]
    (run,) = shelf.runs.values()
    assert run.result["remarks"] == ["it was stopped inside an episode"], "the first time"


# Who hears what.


def test_listeners_hear_the_beginning_each_step_and_the_end(
    tmp_path: Path, specs: list[RunSpec], make_ear: Ears, after: After
) -> None:
    folder = RunFolder.create(tmp_path, specs[0])
    first, second = make_ear(), make_ear()
    train(folder, [first], stop=after(3), batch=Scripted(specs[:1]))
    train(folder, [second], batch=Scripted(specs[:1]))
    for ear, begins, ends in ((first, None, "stopped"), (second, 300, "finished")):
        assert ear.heard[0] == ("begin", begins)
        assert ear.heard[-1] == ("end", ends)
        assert ear.heard[1:-1] == ear.updates
    updates = first.updates + second.updates
    steps = list(range(CHUNK_STEPS, 8 * CHUNK_STEPS + 1, CHUNK_STEPS))
    assert [update.env_steps for update in updates] == steps
    assert [update.agent_steps for update in updates] == [each // 10 for each in steps]
    assert [update.episodes.env_steps.tolist() for update in updates] == [[each] for each in steps]
    lines = [line for update in updates for line in update.lines]
    assert lines == [json.loads(line) for line in (folder.path / "metrics.jsonl").read_text().splitlines()]


# Whose error is whose.


def test_an_error_of_a_run_ends_that_run_alone(folders: list[RunFolder], make_ear: Ears) -> None:
    divisors = iter([1, 1, 0])
    ears = [make_ear(does=lambda: 1 / next(divisors)), make_ear(), make_ear()]
    shelf, group = Shelf(), Scripted([folder.spec for folder in folders])
    ends = together(folders, shelf, batch=group, ears=ears, checkpoint_s=0)
    assert isinstance(ends[0], ZeroDivisionError)
    assert ends[1:] == ["finished", "finished"]
    assert [ear.heard[-1] for ear in ears] == [("end", "failed"), ("end", "finished"), ("end", "finished")]
    assert (group.dropped, len(ears[0].updates)) == ({0}, 3)
    assert folders[0].has_begun, "what was saved before stays"
    assert together(folders[:1], shelf) == ["finished"]
    assert len(shelf.runs) == 3


def test_a_run_that_is_another_s_by_now_writes_no_more(folders: list[RunFolder]) -> None:
    answers = iter([*[None] * 4, RunError("It belongs to somebody else.")])

    def check() -> None:
        if error := next(answers):
            raise error

    shelf = Shelf()
    group = Scripted([folder.spec for folder in folders[:2]])
    made = [TrainingJob(folders[0], check=check), TrainingJob(folders[1])]
    ends = train_batch(made, shelf, batch=group, checkpoint_s=0, clock=Clock())
    assert [str(end) for end in ends] == ["It belongs to somebody else.", "finished"]
    assert [steps for name, steps in shelf.saved if name == folders[0].spec.name] == [100, 200]


def test_a_checkpoint_that_cannot_be_read_is_its_run_s_error(
    folders: list[RunFolder], make_ear: Ears, after: After
) -> None:
    shelf = Shelf()
    together(folders, shelf, stop=after(2))
    for file in folders[0].checkpoints.folder.rglob("arrays.npz"):
        file.write_bytes(b"")
    before, ear = sorted(folders[0].path.rglob("*")), make_ear()
    group = Scripted([folder.spec for folder in folders], wrong={2: RunError("Its arrays do not fit.")})
    ends = together(folders, shelf, batch=group, ears=[ear, None, None])
    assert "is damaged" in str(ends[0])
    assert (ends[1], str(ends[2])) == ("finished", "Its arrays do not fit.")
    assert (sorted(folders[0].path.rglob("*")), ear.heard) == (before, [])


def test_an_error_of_the_engine_ends_all_that_are_not_finished(folders: list[RunFolder], make_ear: Ears) -> None:
    def fails(chunk: int) -> None:
        if chunk == 6:
            raise MemoryError("The card is full.")

    shelf, ears = Shelf(), [make_ear() for _ in folders]
    group = Scripted([folder.spec for folder in folders], does=fails)
    ends = together(folders, shelf, batch=group, ears=ears, checkpoint_s=0)
    assert (str(ends[0]), ends[1], str(ends[2])) == ("The card is full.", "finished", "The card is full.")
    assert [ear.heard[-1] for ear in ears] == [("end", "failed"), ("end", "finished"), ("end", "failed")]
    assert together([folders[0], folders[2]], shelf) == ["finished"] * 2
    assert {run.result["sessions"] for run in shelf.runs.values()} == {1, 2}


def test_an_engine_that_forgets_a_run_is_noticed(folders: list[RunFolder]) -> None:
    group = Scripted([folder.spec for folder in folders[:2]])
    group.drop(0)  # as nobody asked for
    ends = together(folders[:2], Shelf(), batch=group)
    assert isinstance(ends[0], AssertionError)
    assert ends[1] == "finished"


def test_runs_that_cannot_be_made_ready_have_the_reason(walk: RunSpec, tmp_path: Path, make_ear: Ears) -> None:
    other = replace(walk, seed=4)
    folders, ear = [RunFolder.create(tmp_path, spec) for spec in (walk, other)], make_ear()
    ends = train_batch(trainees(folders, [ear, ear]))
    assert [str(end) for end in ends] == ["There are 2 runs: the engine stepped trains one at a time."] * 2
    assert ear.heard == []


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, "stopped"), (SystemExit, "failed")])
def test_whoever_ends_the_program_is_told_of(
    folders: list[RunFolder], make_ear: Ears, error: type[BaseException], status: str
) -> None:
    def ends(chunk: int) -> None:
        if chunk == 6:
            raise error

    ears = [make_ear() for _ in folders]
    with pytest.raises(error):
        together(folders, Shelf(), batch=Scripted([folder.spec for folder in folders], does=ends), ears=ears)
    assert [ear.heard[-1] for ear in ears] == [("end", status), ("end", "finished"), ("end", status)]


def test_a_run_that_the_shelf_cannot_take_is_not_finished(folders: list[RunFolder], make_ear: Ears) -> None:
    shelf, ear = Shelf(fault=RunError("The disk is full.")), make_ear()
    (ended,) = together(folders[:1], shelf, ears=[ear], checkpoint_s=0)
    assert (str(ended), ear.heard[-1]) == ("The disk is full.", ("end", "failed"))
    shelf.fault = None
    assert together(folders[:1], shelf) == ["finished"]


def test_of_folders_each_is_written_for_itself(tmp_path: Path, specs: list[RunSpec]) -> None:
    folders = [RunFolder.create(tmp_path, spec) for spec in specs]
    (folders[2].path / "result.json").mkdir()
    (folders[2].path / "result.json" / "in the way").touch()
    ends = train_batch(trainees(folders), FolderSink(), batch=Scripted(specs))
    assert ends[:2] == ["finished", "finished"]
    assert "result.json cannot be written" in str(ends[2])


# What is wanted of runs.


@pytest.mark.parametrize("episodes", [True, False])
@pytest.mark.parametrize("policies", [True, False])
def test_only_what_is_wanted_is_kept(folders: list[RunFolder], episodes: bool, policies: bool, after: After) -> None:
    whole, cut, everything = Shelf(SaveOptions(episodes, policies)), Shelf(SaveOptions(episodes, policies)), Shelf()
    together(folders[:1], everything)
    together(folders[:1], whole)
    together(folders[:1], cut, stop=after(3))
    together(folders[:1], cut)
    (run,), (resumed,), (full,) = whole.runs.values(), cut.runs.values(), everything.runs.values()
    assert type(run.curve) is (Episodes if episodes else EpisodeBins)
    assert (run.policy is not None) == policies
    assert same(run, resumed)
    assert resumed.result["resumed"] == "resumed, identical"
    assert run.result["average_return"] == full.result["average_return"]
    assert find_fault(run) is None


def test_a_checkpoint_without_what_is_wanted_now_is_not_gone_on_from(folders: list[RunFolder], after: After) -> None:
    together(folders[:1], Shelf(SaveOptions(episodes=False)), stop=after(3))
    shelf, whole = Shelf(), Shelf()
    together(folders[:1], shelf)
    folders[0].remove()
    together(folders[:1], whole)
    (run,), (expected,) = shelf.runs.values(), whole.runs.values()
    assert same(run, expected)
