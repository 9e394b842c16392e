"""One training, kept on disk so that it survives anything: resume, record, checkpoint, finish.

What is kept stands in `cycletime.runs.folder`. A checkpoint is the position of the loop and the learning curve, and it
is written before anything that came after it counts; whatever a killed process wrote later is overwritten or cut off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from typing import Any, Literal, Protocol

import jax
from numpy.typing import NDArray

from cycletime.engines.compiled import CompiledEngine
from cycletime.engines.engine import Chunk, Engine
from cycletime.engines.stepped import SteppedEngine
from cycletime.errors import InputError, RunError
from cycletime.loops import Episodes
from cycletime.runs.checkpoints import Checkpoint, Manifest
from cycletime.runs.curve import write_curve
from cycletime.runs.files import write_whole
from cycletime.runs.folder import RunFolder
from cycletime.runs.lock import Lock
from cycletime.runs.machine import differences, this_machine
from cycletime.runs.metrics import MetricsFile, window_of
from cycletime.runs.policies.policy_file import write_policy
from cycletime.runs.result import hashes_of, result_of
from cycletime.runs.spec import RunSpec
from cycletime.runs.trackers.tracker import Status as Status

CHECKPOINT_S = 30.0
"""How long a run goes on between two checkpoints."""
LONGEST_WAIT_S = 600.0
"""How long it waits for a moment to go on from exactly, where episodes are long: at an episode's end."""
MOST_TIME_SAVING = 0.05
"""The share of a run's time that checkpoints may take; large ones come less often."""
_CURVE, _PENDING, _POSITION = "curve/", "pending/", "position/"


@dataclass(frozen=True)
class Progress:
    """What a listener is told, about once a second."""

    env_steps: int
    """Environment steps done."""
    agent_steps: int
    """Agent steps done."""
    episodes: Episodes
    """The episodes that ended since the last time."""
    lines: Sequence[Mapping[str, Any]]
    """The lines that were added to the metrics."""


class Listener(Protocol):
    """Who wants to know how a run goes: the progress bar, a tracker."""

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        """The run begins, or goes on from a checkpoint at so many environment steps."""

    def update(self, progress: Progress) -> None:
        """The run went on."""

    def remark(self, sentence: str) -> None:
        """Something that the user should know."""

    def end(self, status: Status) -> None:
        """The run is finished, or was stopped and can be resumed, or something failed."""


def train(
    folder: RunFolder,
    *,
    listeners: Sequence[Listener] = (),
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    guard: Callable[[], object] = lambda: None,
) -> Literal["finished", "stopped"]:
    """Train a run to its end, from its last checkpoint if there is one; a finished run is left alone.

    Args:
        folder: The run.
        listeners: Who is told.
        stop: Asked about once a second; where it says yes, a checkpoint is written and the run left for later.
        checkpoint_s: The seconds between two checkpoints, at least.
        guard: Called before anything is written; raises where the run is no longer this process's.

    Raises:
        RunError: if the run cannot go on: another process trains it, the disk is full, its checkpoints are damaged.
    """
    if folder.is_finished:
        with suppress(RunError), folder.locked():  # its disk may be read-only by now
            folder.sweep()
        return "finished"
    with folder.locked() as lock:
        folder.sweep()
        if folder.is_finished:
            return "finished"
        with closing(engine_for(folder.spec)) as engine:
            training = _Training(folder, lock, guard, engine, listeners, checkpoint_s)
            try:
                status = training.run(stop)
            except BaseException as error:
                how: Status = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
                training.tell(lambda listener: listener.end(how))
                raise
            training.tell(lambda listener: listener.end(status))
            return status


def engine_for(spec: RunSpec) -> Engine:
    """The engine that a spec asks for."""
    here = jax.default_backend()
    if here != spec.engine.device:
        raise InputError(
            f"The run is for {spec.engine.device!r}, but JAX computes on {here!r} here: set JAX_PLATFORMS."
        )
    return CompiledEngine(spec) if spec.engine.name == "compiled" else SteppedEngine(spec)


class _Training:
    """A training while it goes on."""

    def __init__(
        self,
        folder: RunFolder,
        lock: Lock,
        guard: Callable[[], object],
        engine: Engine,
        listeners: Sequence[Listener],
        checkpoint_s: float,
    ) -> None:
        """Read what there is."""
        self.lock, self.guard = lock, guard
        self.folder, self.spec, self.engine, self.listeners = folder, folder.spec, engine, listeners
        window = window_of(self.spec.env_steps, engine.cycle_steps, self.spec.agent.period)
        self.metrics = MetricsFile(folder.metrics_file, window, engine.cycle_steps)
        self.checkpoint_s = checkpoint_s
        self.checkpoint, self.damaged = folder.checkpoints.newest(self.spec.identity)
        self.curve, self.remarks = Episodes.none(), self._remarks()
        self.sessions, self.wall_s = 1, 0.0
        self.has_exact = self.checkpoint is not None and self.checkpoint.manifest.exact

    def run(self, stop: Callable[[], bool]) -> Literal["finished", "stopped"]:
        """Train until the end, or until asked to stop."""
        looked = time.monotonic()
        due = looked + self.checkpoint_s
        position = self._resume()
        for chunk in self.engine.chunks(position):
            self._record(chunk)
            now = time.monotonic()
            self.wall_s, looked = self.wall_s + now - looked, now
            if chunk.is_last:
                self._finish(chunk)
                return "finished"
            if stop():
                if chunk.exact or not self.has_exact:
                    self._save(chunk)
                return "stopped"
            if now >= due and (chunk.exact or now >= due + LONGEST_WAIT_S):
                self._save(chunk)
                saved = time.monotonic()
                due = saved + max(self.checkpoint_s, (saved - now) / MOST_TIME_SAVING)
        raise AssertionError("an engine's last chunk says so")

    def tell(self, what: Callable[[Listener], None]) -> None:
        """Tell all listeners."""
        for listener in self.listeners:
            what(listener)

    def _check(self) -> None:
        """Whether the run is still this process's to write."""
        self.lock.check()
        self.guard()

    def _remarks(self) -> tuple[str, ...]:
        """Why the run, resumed here and now, may differ from one that was never stopped."""
        if self.checkpoint is None:
            return ()
        before = self.checkpoint.manifest
        inside: tuple[str, ...] = () if before.exact else ("it was stopped inside an episode",)
        if before.world != self.engine.fingerprint and not self.engine.remarks:
            inside += (f"{self.spec.world.name} does not behave as it did",)
        changed = differences(before.machine, this_machine(), self.engine.simulators)
        now = (*inside, *self.engine.remarks, *changed)
        return tuple(dict.fromkeys((*before.remarks, *now)))

    def _resume(self) -> dict[str, NDArray[Any]] | None:
        """Go on from the checkpoint, if there is one."""
        if self.checkpoint is None:
            self.metrics.resume(0, {})
            self.tell(lambda listener: listener.begin(self.folder, None))
            return None
        manifest, arrays = self.checkpoint.manifest, self.checkpoint.arrays
        self.curve = Episodes(**_below(_CURVE, arrays))
        self.metrics.resume(manifest.metrics_bytes, _below(_PENDING, arrays))
        self.sessions, self.wall_s = manifest.sessions + 1, manifest.wall_s
        self.tell(lambda listener: listener.begin(self.folder, manifest.env_steps))
        for sentence in (*self.damaged, *(f"Resumed, not identical: {remark}." for remark in self.remarks)):
            self.tell(lambda listener: listener.remark(sentence))  # noqa: B023 - called at once
        return _below(_POSITION, arrays)

    def _record(self, chunk: Chunk) -> None:
        """Add a chunk to the curve and the metrics, and tell."""
        self._check()
        self.curve = Episodes.joined([self.curve, chunk.episodes])
        lines = self.metrics.add(chunk.metrics, self.curve)
        progress = Progress(chunk.env_steps, chunk.agent_steps, chunk.episodes, lines)
        self.tell(lambda listener: listener.update(progress))

    def _save(self, chunk: Chunk) -> None:
        """Write a checkpoint; the curve and the policy beside it are for whoever looks in the meantime."""
        self._check()
        self.metrics.flush()
        self._write_curve()
        self._write_policy(chunk)
        curve = {each.name: getattr(self.curve, each.name) for each in fields(self.curve)}
        parts = {_CURVE: curve, _PENDING: self.metrics.pending, _POSITION: self.engine.arrays(chunk)}
        manifest = Manifest(
            identity=self.spec.identity,
            env_steps=chunk.env_steps,
            agent_steps=chunk.agent_steps,
            metrics_bytes=self.metrics.length,
            exact=chunk.exact,
            sessions=self.sessions,
            wall_s=self.wall_s,
            world=self.engine.fingerprint,
            machine=this_machine(),
            remarks=self.remarks,
        )
        self.folder.checkpoints.save(Checkpoint(manifest, dict(_named(parts))))
        self.has_exact = chunk.exact

    def _finish(self, chunk: Chunk) -> None:
        """Write what remains; the result comes last, since it says that all is there."""
        self._check()
        self.metrics.finish(self.curve)
        self.metrics.flush()
        self._write_curve()
        self._write_policy(chunk)
        self.folder.write_result(
            result_of(
                self.spec,
                self.curve,
                where=self.engine.where,
                agent_steps=chunk.agent_steps,
                remarks=self.remarks,
                sessions=self.sessions,
                wall_s=self.wall_s,
                files=hashes_of(self.folder),
            )
        )

    def _write_curve(self) -> None:
        write_whole(self.folder.curve_file, lambda path: write_curve(path, self.curve, self.engine.env_dt))

    def _write_policy(self, chunk: Chunk) -> None:
        network = self.spec.agent.policy(chunk.psi)
        write_policy(self.folder.policy_file, network, self.engine.bounds, self.spec, chunk.env_steps)


def _named(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> Iterator[tuple[str, NDArray[Any]]]:
    for prefix, arrays in parts.items():
        for name, array in arrays.items():
            yield prefix + name, array


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
