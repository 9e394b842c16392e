"""One run while it is trained: curve, metrics and checkpoints, its observers, and where it goes on after a kill.

Whatever a killed process did after its last checkpoint is done again, to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError, quote
from cycletime.training.checkpoints import BINS, EPISODES, METRICS, POLICY, POSITION, Checkpoint, Manifest
from cycletime.training.engine import Chunk, EarlierSessions, EnvInfo
from cycletime.training.external import ExternalAgent
from cycletime.training.finished_run import FinishedRun, make_result
from cycletime.training.journal import EpisodeRecord, JournalEntry, summarize_timing
from cycletime.training.learning_curve import EpisodeBins, Episodes, MetricsLog, updates_per_line
from cycletime.training.machine import machine_differences, this_machine
from cycletime.training.observers import Progress, TrainingObserver
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.run_folder import RunFolder


@dataclass(frozen=True)
class SaveOptions:
    """What is kept of finished runs, beside their curves in bins and their metrics."""

    episodes: bool = True
    policies: bool = True

    def __post_init__(self) -> None:
        for each in fields(self):
            if not isinstance(value := getattr(self, each.name), bool):
                raise InputError(f"keep.{each.name} is {quote(value)}: it must be true or false")


SAVE_ALL = SaveOptions()


@dataclass(frozen=True)
class TrainingJob:
    folder: RunFolder
    """Where it has its checkpoints; made with the first of them."""
    observers: Sequence[TrainingObserver] = ()
    check: Callable[[], object] = lambda: None
    """Called before anything is written; raises where the run is no longer this process's."""


class RunRecorder:
    def __init__(self, job: TrainingJob, env_info: EnvInfo, keep: SaveOptions) -> None:
        self.job, self.folder, self.spec = job, job.folder, job.folder.spec
        self.env_info, self.keep = env_info, keep
        updates = updates_per_line(self.spec.env_steps, env_info.cycle_steps, self.spec.agent.period)
        self.metrics = MetricsLog(ceil(updates / env_info.log_interval), env_info.cycle_steps)
        self.checkpoint, self.damaged = self.folder.checkpoints.newest(self.spec.identity)
        self.damaged += filter(None, (self.folder.journal.repair(), self.folder.journal.lost()))
        self._journaled = self.folder.journal.last()
        if self.checkpoint is not None and bool(self.checkpoint.below(EPISODES)) != keep.episodes:
            self.checkpoint = None  # it does not have what is wanted now
        self.curve: Episodes | EpisodeBins = Episodes.none() if keep.episodes else EpisodeBins.none(self.spec.env_steps)
        self.remarks = self._remarks()
        self.sessions, self.wall_s = 1, 0.0
        self.has_exact = self.checkpoint is not None and self.checkpoint.manifest.exact

    def notify(self, call: Callable[[TrainingObserver], None]) -> None:
        for observer in self.job.observers:
            call(observer)

    def _remarks(self) -> tuple[str, ...]:
        """Why the run, resumed here and now, may differ from one that was never stopped."""
        if self.checkpoint is None:
            return self.env_info.remarks() if self._journaled else ()
        before = self.checkpoint.manifest
        inside: tuple[str, ...] = () if before.exact else ("it was stopped inside an episode",)
        if before.world != self.env_info.fingerprint() and not self.env_info.remarks():
            inside += (f"{self.spec.world.name} does not behave as it did",)
        only = ("device", "NVRTC", "kernel") if "device" in self.env_info.card else None
        changed = machine_differences(before.machine, self._machine, self.env_info.simulators, only)
        now = (*inside, *self.env_info.remarks(), *changed)
        return tuple(dict.fromkeys((*before.remarks, *now)))

    @property
    def _machine(self) -> Mapping[str, str]:
        return {**this_machine(), **self.env_info.card}

    def resume(self) -> dict[str, NDArray[Any]] | None:
        """Read the newest checkpoint, notify observers, and return the arrays to go on from; None at the start."""
        checkpoint, self.checkpoint = self.checkpoint, None  # it may be large, and is not read again
        done = []
        if self._journaled is not None:
            done.append(self._journaled.episode.run_env_steps)
            self.sessions = self._journaled.session + 1
        if checkpoint is not None:
            done.append(checkpoint.manifest.env_steps)
            self.curve = checkpoint.curve(self.spec.env_steps)
            self.metrics.resume(checkpoint.below(METRICS))
            self.sessions = max(checkpoint.manifest.sessions + 1, self.sessions)
            self.wall_s = checkpoint.manifest.wall_s
        self.notify(lambda observer: observer.begin(self.folder, max(done, default=None)))
        for sentence in (*self.damaged, *(f"Resumed, not identical: {remark}." for remark in self.remarks)):
            self.notify(lambda observer: observer.remark(sentence))  # noqa: B023 - called at once
        return None if checkpoint is None else checkpoint.below(POSITION)

    def note_earlier(self, earlier: EarlierSessions) -> None:
        self.sessions += earlier.sessions
        self.remarks += (earlier.remark,)
        self.notify(lambda observer: observer.remark(f"Resumed, not identical: {earlier.remark}."))

    def journaled_episodes(self) -> Iterator[EpisodeRecord]:
        known = len(self.curve)
        return (entry.episode for entry in self.folder.journal.entries() if entry.episode.number >= known)

    def append_to_journal(self, episode: EpisodeRecord) -> None:
        self.job.check()
        self.folder.make()
        self.folder.journal.append(JournalEntry(episode, self.sessions))

    def _cadence(self) -> dict[str, Any] | None:
        """How the cycles in the journal went, and a remark if many were late; None where there is no journal."""
        if not self.folder.journal.path.exists():
            return None
        timing = summarize_timing(entry.episode.cycles for entry in self.folder.journal.entries())
        if warning := timing.warning:
            self.notify(lambda observer: observer.remark(warning))
        return timing.as_json()

    def add(self, chunk: Chunk) -> None:
        self.job.check()
        lines = self.metrics.add(chunk.metrics, chunk.episodes)
        if isinstance(self.curve, EpisodeBins):
            self.curve = self.curve.plus(chunk.episodes)
        else:
            self.curve = Episodes.joined([self.curve, chunk.episodes])
        progress = Progress(chunk.env_steps, chunk.agent_steps, chunk.episodes, lines)
        self.notify(lambda observer: observer.update(progress))

    def save(self, chunk: Chunk) -> None:
        self.job.check()
        policy = self.policy(chunk)
        manifest = Manifest(
            identity=self.spec.identity,
            env_steps=chunk.env_steps,
            agent_steps=chunk.agent_steps,
            exact=chunk.exact,
            sessions=self.sessions,
            wall_s=self.wall_s,
            world=self.env_info.fingerprint(),
            machine=self._machine,
            policy=policy.description(),
            remarks=self.remarks,
        )
        names = [each.name for each in fields(self.curve) if each.name != "budget"]
        curve = EPISODES if self.keep.episodes else BINS
        arrays = {
            **{curve + name: getattr(self.curve, name) for name in names},
            **{METRICS + name: each for name, each in self.metrics.arrays().items()},
            **{POSITION + name: each for name, each in chunk.arrays().items()},
            **{POLICY + name: each for name, each in policy.arrays().items()},
            "env_dt_s": np.float64(self.env_info.env_dt),
        }
        self.folder.make()
        self.folder.checkpoints.save(Checkpoint(manifest, arrays))
        self.has_exact = chunk.exact

    def finished(self, chunk: Chunk) -> FinishedRun:
        self.job.check()
        self.metrics.finish()
        result = make_result(
            self.spec,
            self.curve,
            where=self.env_info.provenance,
            env_dt_s=float(self.env_info.env_dt),
            agent_steps=chunk.agent_steps,
            remarks=self.remarks,
            sessions=self.sessions,
            wall_s=self.wall_s,
            machine=self._machine,
            cadence=self._cadence(),
        )
        has_policy = self.keep.policies and not isinstance(self.spec.agent, ExternalAgent)
        policy = self.policy(chunk) if has_policy else None
        return FinishedRun(self.spec, result, self.curve, self.metrics.columns, policy)

    def policy(self, chunk: Chunk) -> SavedPolicy:
        network = self.spec.own_agent.policy(chunk.agent_state())
        return SavedPolicy.of(network, self.env_info.bounds, self.spec, chunk.env_steps, self.env_info.contract)
