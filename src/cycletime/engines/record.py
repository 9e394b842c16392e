"""What is kept of one run while it is trained: its curve, metrics, checkpoints, policy and result.

What is kept stands in `cycletime.runs.folder`. A checkpoint is the moment of the run and the learning curve, and it is
written before anything that came after it counts; whatever a killed process wrote later is overwritten or cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any, Protocol

from numpy.typing import NDArray

from cycletime.engines.engine import Chunk, Setting
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
from cycletime.runs.trackers.tracker import Status as Status

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


@dataclass(frozen=True)
class Trainee:
    """A run that is to be trained, and who has to do with it."""

    folder: RunFolder
    listeners: Sequence[Listener] = ()
    """Who is told."""
    guard: Callable[[], object] | None = None
    """Called before anything is written; raises where the run is no longer this process's. With a guard, a file system
    without locks will do."""


class Record:
    """A run's files while it is trained."""

    def __init__(self, trainee: Trainee, lock: Lock, setting: Setting) -> None:
        """Read what there is."""
        folder, self.listeners, self.guard = trainee.folder, trainee.listeners, trainee.guard
        self.folder, self.spec, self.lock, self.setting = folder, folder.spec, lock, setting
        learnings = window_of(self.spec.env_steps, setting.cycle_steps, self.spec.agent.period)
        window = ceil(learnings / setting.told_every)
        self.metrics = MetricsFile(folder.metrics_file, window, setting.cycle_steps)
        self.checkpoint, self.damaged = folder.checkpoints.newest(self.spec.identity)
        self.curve, self.remarks = Episodes.none(), self._remarks()
        self.sessions, self.wall_s = 1, 0.0
        self.has_exact = self.checkpoint is not None and self.checkpoint.manifest.exact
        """Whether there is a checkpoint to go on from exactly."""

    def tell(self, what: Callable[[Listener], None]) -> None:
        """Tell all listeners."""
        for listener in self.listeners:
            what(listener)

    def _check(self) -> None:
        """Whether the run is still this process's to write."""
        self.lock.check()
        if self.guard:
            self.guard()

    def _remarks(self) -> tuple[str, ...]:
        """Why the run, resumed here and now, may differ from one that was never stopped."""
        if self.checkpoint is None:
            return ()
        before = self.checkpoint.manifest
        inside: tuple[str, ...] = () if before.exact else ("it was stopped inside an episode",)
        if before.world != self.setting.fingerprint and not self.setting.remarks:
            inside += (f"{self.spec.world.name} does not behave as it did",)
        only = None if self.setting.card is None else ("device", "NVRTC")
        changed = differences(before.machine, self._machine, self.setting.simulators, only)
        now = (*inside, *self.setting.remarks, *changed)
        return tuple(dict.fromkeys((*before.remarks, *now)))

    @property
    def _machine(self) -> Mapping[str, str]:
        return {**this_machine(), **(self.setting.card or {})}

    def resume(self) -> dict[str, NDArray[Any]] | None:
        """Go on from the checkpoint, if there is one."""
        if self.checkpoint is None:
            self.metrics.resume(0, {})
            self.tell(lambda listener: listener.begin(self.folder, None))
            return None
        manifest, arrays = self.checkpoint.manifest, self.checkpoint.arrays
        self.checkpoint = None  # it may be large, and is not read again
        self.curve = Episodes(**_below(_CURVE, arrays))
        self.metrics.resume(manifest.metrics_bytes, _below(_PENDING, arrays))
        self.sessions, self.wall_s = manifest.sessions + 1, manifest.wall_s
        self.tell(lambda listener: listener.begin(self.folder, manifest.env_steps))
        for sentence in (*self.damaged, *(f"Resumed, not identical: {remark}." for remark in self.remarks)):
            self.tell(lambda listener: listener.remark(sentence))  # noqa: B023 - called at once
        return _below(_POSITION, arrays)

    def add(self, chunk: Chunk) -> None:
        """Add a chunk to the curve and the metrics, and tell."""
        self._check()
        self.curve = Episodes.joined([self.curve, chunk.episodes])
        lines = self.metrics.add(chunk.metrics, self.curve)
        progress = Progress(chunk.env_steps, chunk.agent_steps, chunk.episodes, lines)
        self.tell(lambda listener: listener.update(progress))

    def save(self, chunk: Chunk) -> None:
        """Write a checkpoint; the curve and the policy beside it are for whoever looks in the meantime."""
        self._check()
        self.metrics.flush()
        self._write_curve()
        self._write_policy(chunk)
        curve = {each.name: getattr(self.curve, each.name) for each in fields(self.curve)}
        parts = {_CURVE: curve, _PENDING: self.metrics.pending, _POSITION: chunk.moment.arrays()}
        manifest = Manifest(
            identity=self.spec.identity,
            env_steps=chunk.env_steps,
            agent_steps=chunk.agent_steps,
            metrics_bytes=self.metrics.length,
            exact=chunk.exact,
            sessions=self.sessions,
            wall_s=self.wall_s,
            world=self.setting.fingerprint,
            machine=self._machine,
            remarks=self.remarks,
        )
        self.folder.checkpoints.save(Checkpoint(manifest, dict(_named(parts))))
        self.has_exact = chunk.exact

    def finish(self, chunk: Chunk) -> None:
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
                where=self.setting.where,
                agent_steps=chunk.agent_steps,
                remarks=self.remarks,
                sessions=self.sessions,
                wall_s=self.wall_s,
                files=hashes_of(self.folder),
                machine=self._machine,
            )
        )

    def _write_curve(self) -> None:
        write_whole(self.folder.curve_file, lambda path: write_curve(path, self.curve, self.setting.env_dt))

    def _write_policy(self, chunk: Chunk) -> None:
        network = self.spec.agent.policy(chunk.moment.psi())
        write_policy(self.folder.policy_file, network, self.setting.bounds, self.spec, chunk.env_steps)


def _named(parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> Iterator[tuple[str, NDArray[Any]]]:
    for prefix, arrays in parts.items():
        for name, array in arrays.items():
            yield prefix + name, array


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
