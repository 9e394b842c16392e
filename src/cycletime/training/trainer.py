"""The trainer: resumes runs, trains them by their engine, records, checkpoints and finishes them; any kill is survived.

Runs of a batch share nothing but the program: an error of one run ends that run alone. A result sink keeps finished
runs, in their own folders or in the store of a study.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from cycletime.agents.exploration import Exploration
from cycletime.duration import DurationLike
from cycletime.errors import RunError
from cycletime.rules import Rule
from cycletime.training.engine import AUTO, Chunk, RunBatch, engine_for, make_batch
from cycletime.training.finished_run import FinishedRun
from cycletime.training.learning_curve import Episodes
from cycletime.training.machine import use_device
from cycletime.training.observers import Status, TrainingObserver
from cycletime.training.process import allow_open_files
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import SAVE_ALL, RunRecorder, SaveOptions, TrainingJob
from cycletime.training.spec import LearnerName
from cycletime.training.worlds import RobotKind

CHECKPOINT_S = 30.0
"""How long runs go on between two checkpoints."""
LONGEST_WAIT_S = 600.0
"""How long a checkpoint waits for a position to go on from exactly, where episodes are long: at an episode's end."""
MOST_TIME_SAVING = 0.05
"""The share of the time that checkpoints may take; large ones come less often."""
TrainingOutcome: TypeAlias = Literal["finished", "stopped"]
Clock: TypeAlias = Callable[[], float]


class CompletedRun(NamedTuple):
    recorder: RunRecorder
    run: FinishedRun


class ResultSink(ABC):
    @property
    def save_options(self) -> SaveOptions:
        return SAVE_ALL

    def claim(self, job: TrainingJob, held: ExitStack) -> TrainingJob | None:
        """Lock a job's run for this process until the stack is closed; None where the run is finished already."""
        return job

    def save(self, recorder: RunRecorder, chunk: Chunk) -> None:  # noqa: B027 - the checkpoint may be enough
        """Called after a checkpoint was written."""

    @abstractmethod
    def finish(self, completed: Sequence[CompletedRun]) -> list[Exception | None]:
        """Keep finished runs; per run, its error or None."""


class FolderSink(ResultSink):
    def claim(self, job: TrainingJob, held: ExitStack) -> TrainingJob | None:
        folder = job.folder
        if folder.is_finished:
            with suppress(RunError), folder.locked():  # its disk may be read-only by now
                folder.sweep()
            return None
        lock = held.enter_context(folder.locked())
        folder.sweep()
        if folder.is_finished:  # meanwhile
            return None
        return replace(job, check=lock.check)

    def save(self, recorder: RunRecorder, chunk: Chunk) -> None:
        curve = recorder.curve
        assert isinstance(curve, Episodes), "a run's folder has all of them"
        recorder.folder.write_snapshot(
            curve, recorder.metrics.columns, recorder.policy(chunk), recorder.env_info.env_dt
        )

    def finish(self, completed: Sequence[CompletedRun]) -> list[Exception | None]:
        faults: list[Exception | None] = []
        for recorder, run in completed:
            try:
                recorder.folder.write_finished(run, recorder.env_info.env_dt)
                faults.append(None)
            except Exception as error:
                faults.append(error)
        return faults


def train(
    *,
    task: str | None = None,
    env: str | None = None,
    env_dt: DurationLike | None = None,
    algorithm: str = "ppo",
    dt: DurationLike,
    env_steps: int,
    seeds: int | Sequence[int] = 1,
    values: Mapping[str, Any] | None = None,
    tuned_at: DurationLike | None = None,
    tuned: Path | str | None = None,
    rule: str | Rule | None = None,
    also: Collection[str] = (),
    others: Mapping[str, Any] | None = None,
    exploration: Exploration | None = None,
    num_envs: int = 1,
    device: str = "cpu",
    engine: str = AUTO,
    robot: RobotKind | None = None,
    learner: LearnerName = "inline",
    out: Path | str = "runs",
    progress: bool = True,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
) -> tuple[RunFolder, ...]:
    """Train an agent on a task or an environment at a cycle time, with one seed or several.

    What was trained before is not trained again, and what was stopped or killed goes on where it was.

    Args:
        task: A task in closed form, such as reacher or pendulum; or
        env: a Gymnasium environment, such as Hopper-v5,
        env_dt: with a time step that it is retimed to, or that it does not publish. The paper's tasks have their own.
        algorithm: ppo, sac or actor-critic.
        dt: The action-cycle time.
        env_steps: How long to train, in environment steps.
        seeds: How many, from 0 on; or the seeds themselves.
        values: Values that rules carry: batch, minibatch, discount, trace_decay.
        tuned_at: The cycle time that they were tuned at, if not `dt`; or
        tuned: a file of `cycletime tune` that has them.
        rule: How they are carried, by default as recommended for such values; or a rule of one's own.
        also: What else is carried.
        others: Other fields of the agent, such as hidden or learning_rate.
        exploration: Noise that is coherent in time; None is white noise.
        num_envs: The environments of each run, side by side; batch and budget are of all of them.
        device: cpu or gpu.
        engine: What computes: an engine's name, or auto for the fastest that takes the run on the device.
        robot: What the environment is on, where it is a robot's: real, simulated or lockstep.
        learner: Who learns while a robot moves: inline, within the cycle, or in the background.
        out: Where runs are kept, each in a folder of its own.
        progress: Whether to show how it goes, on standard error or in the notebook.
        stop: Asked about once a second; where it says yes, runs are saved and left for later.
        checkpoint_s: The seconds between two checkpoints, at least.

    Returns:
        The runs, one for each seed. `result()` tells the performance, `finished()` has the learning curve.

    Example:
        >>> (run,) = train(task="reacher", dt="16ms", env_steps=4_000, values={"batch": 100}, out=out)
        >>> run.result()["env_steps"]
        4000
    """
    asked = {name: value for name, value in locals().items() if name not in ("out", "progress", "stop", "checkpoint_s")}
    from cycletime.training.make_specs import make_specs  # workers of a study have their specs

    specs = make_specs(**asked)
    use_device(engine_for(specs[0]).jax_device(specs[0]))
    folders = [RunFolder.create(Path(out), spec) for spec in specs]
    observers: ObserverFactory = (lambda bar: [bar]) if progress else (lambda bar: [])
    for outcomes in train_batches(folders, observers=observers, stop=stop, checkpoint_s=checkpoint_s):
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                raise outcome
    return tuple(folders)


ObserverFactory: TypeAlias = Callable[[TrainingObserver], Sequence[TrainingObserver]]
"""The observers of a run, by its progress bar, which they may include."""


def train_batches(
    folders: Sequence[RunFolder],
    *,
    observers: ObserverFactory,
    stop: Callable[[], bool],
    checkpoint_s: float = CHECKPOINT_S,
    batch: RunBatch | None = None,
) -> Iterator[list[TrainingOutcome | Exception]]:
    """Train runs of one engine in their folders, as many at a time as it trains together; `batch` are the first."""
    from cycletime.training.progress_bar import show_progress  # rich is not on every machine that trains

    size = engine_for(folders[0].spec).max_batch_size(folders[0].spec)
    for first in range(0, len(folders), size):
        if stop():
            return
        now = folders[first : first + size]
        label, alike = now[0].spec.label, len({folder.spec.label for folder in now}) == 1
        several = f"{label}, {len(now)} seeds" if alike else f"{len(now)} runs"
        title = several if len(now) > 1 else f"{label} seed {now[0].spec.seed}"
        with show_progress(title, len(now), alike=alike) as bars:
            jobs = [TrainingJob(folder, observers(bar)) for folder, bar in zip(now, bars, strict=True)]
            outcomes = train_batch(jobs, stop=stop, checkpoint_s=checkpoint_s, batch=batch)
        yield outcomes
        batch = None


def train_batch(
    jobs: Sequence[TrainingJob],
    sink: ResultSink | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    batch: RunBatch | None = None,
    clock: Clock = time.monotonic,
) -> list[TrainingOutcome | Exception]:
    """Train runs of one program together to their ends, each from its last checkpoint; finished runs are left alone.

    `stop` is asked about once a second, and there are at least `checkpoint_s` seconds between two checkpoints; `batch`
    are the runs, if they were made ready before, and is closed. A run's error ends that run alone, an engine's all.
    """
    sink = sink or FolderSink()
    outcomes: dict[int, TrainingOutcome | Exception] = {}
    claimed: dict[int, TrainingJob] = {}
    allow_open_files(len(jobs))
    with ExitStack() as held:
        for run, job in enumerate(jobs):
            try:
                own = sink.claim(job, held)
            except Exception as error:
                outcomes[run] = error
                continue
            if own is None:
                outcomes[run] = "finished"
            else:
                claimed[run] = own
        if len(claimed) < len(jobs) and batch is not None:
            batch.close()
            batch = None
        trained = _train_claimed(list(claimed.values()), sink, stop, checkpoint_s, batch, clock)
        outcomes |= dict(zip(claimed, trained, strict=True))
    return [outcomes[run] for run in range(len(jobs))]


def _train_claimed(
    jobs: Sequence[TrainingJob],
    sink: ResultSink,
    stop: Callable[[], bool],
    checkpoint_s: float,
    batch: RunBatch | None,
    clock: Clock,
) -> list[TrainingOutcome | Exception]:
    if not jobs:
        return []
    try:
        batch = batch or make_batch([job.folder.spec for job in jobs])
    except Exception as error:
        return [error] * len(jobs)
    with closing(batch):
        training = _BatchTraining(batch, sink, checkpoint_s, clock)
        try:
            for run, job in enumerate(jobs):
                training.begin(run, job)
            training.run(stop)
        except Exception as error:
            for run in list(training.recorders):
                training.end_run(run, error)
        except BaseException as error:
            status: Status = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
            for recorder in training.recorders.values():
                recorder.notify(lambda observer: observer.end(status))
            raise
        return [training.outcomes[run] for run in range(len(jobs))]


class _BatchTraining:
    def __init__(self, batch: RunBatch, sink: ResultSink, checkpoint_s: float, clock: Clock) -> None:
        self.batch, self.sink, self.checkpoint_s, self.clock = batch, sink, checkpoint_s, clock
        self.recorders: dict[int, RunRecorder] = {}
        self.unsaved: dict[int, Chunk] = {}
        """Their newest chunks, unless these have been saved."""
        self.outcomes: dict[int, TrainingOutcome | Exception] = {}

    def begin(self, run: int, job: TrainingJob) -> None:
        try:
            self.recorders[run] = RunRecorder(job, self.batch.env_infos[run], self.sink.save_options)
        except Exception as error:
            self.end_run(run, error)

    def run(self, stop: Callable[[], bool]) -> None:
        last_time = self.clock()
        due = last_time + self.checkpoint_s
        starts = {}
        for run, recorder in list(self.recorders.items()):
            with self._errors_end_run(run):
                starts[run] = recorder.resume()
                self.batch.keep_journal(run, recorder.journaled_episodes, recorder.append_to_journal)
                if earlier := self.batch.use_folder(run, recorder.folder.path):
                    recorder.note_earlier(earlier)
        for chunks in self.batch.chunks({run: start for run, start in starts.items() if run in self.recorders}):
            self._record(chunks)
            now = self.clock()
            for run in chunks:
                if run in self.recorders:
                    self.recorders[run].wall_s += now - last_time
            last_time = now if chunks else last_time  # an engine that waits for a process has none at times
            self._finish_completed()
            if not self.recorders:
                return
            if stop():
                self._stop()
                return
            if self.batch.can_save and now >= due and self._save(wait_for_exact=now < due + LONGEST_WAIT_S):
                saved = self.clock()
                due = saved + max(self.checkpoint_s, (saved - now) / MOST_TIME_SAVING)
        if self.recorders:
            raise AssertionError("an engine's last chunks say so")

    def _record(self, chunks: Mapping[int, Chunk | RunError]) -> None:
        for run, chunk in chunks.items():
            if run not in self.recorders:
                continue
            if isinstance(chunk, RunError):
                self.end_run(run, chunk)
                continue
            with self._errors_end_run(run):
                self.unsaved[run] = chunk
                self.recorders[run].add(chunk)

    def _finish_completed(self) -> None:
        completed: dict[int, CompletedRun] = {}
        for run in [run for run, chunk in self.unsaved.items() if chunk.is_last]:
            with self._errors_end_run(run):
                recorder = self.recorders[run]
                completed[run] = CompletedRun(recorder, recorder.finished(self.unsaved[run]))
        faults = self.sink.finish(list(completed.values())) if completed else ()
        for run, fault in zip(completed, faults, strict=True):
            self.end_run(run, fault or "finished")

    def _stop(self) -> None:
        for run, recorder in list(self.recorders.items()):
            with self._errors_end_run(run):
                chunk = self.unsaved.get(run)
                if chunk is not None and self.batch.can_save and (chunk.exact or not recorder.has_exact):
                    self._write_checkpoint(recorder, chunk)
                self.end_run(run, "stopped")

    def _save(self, *, wait_for_exact: bool) -> bool:
        """Write checkpoints of all runs that can go on from theirs exactly, or of all; whether there were any."""
        ready = [run for run, chunk in self.unsaved.items() if chunk.exact or not wait_for_exact]
        for run in ready:
            with self._errors_end_run(run):
                self._write_checkpoint(self.recorders[run], self.unsaved.pop(run))
        return bool(ready)

    def _write_checkpoint(self, recorder: RunRecorder, chunk: Chunk) -> None:
        recorder.save(chunk)
        self.sink.save(recorder, chunk)

    @contextmanager
    def _errors_end_run(self, run: int) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.end_run(run, error)

    def end_run(self, run: int, outcome: TrainingOutcome | Exception) -> None:
        recorder, _ = self.recorders.pop(run, None), self.unsaved.pop(run, None)
        self.outcomes[run] = outcome
        if isinstance(outcome, Exception):
            self.batch.drop(run)
        if recorder is not None:
            with self._errors_end_run(run):
                recorder.notify(lambda observer: observer.end("failed" if isinstance(outcome, Exception) else outcome))
