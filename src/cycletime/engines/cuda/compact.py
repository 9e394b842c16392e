"""Runs in compact files: what a machine with nothing but a GPU sends back, some ten kilobytes of each run.

A file is NumPy's .npz without pickles. It holds several runs, one after the other: each run's curve in 100 bins, its
reports, and where they were asked for its episodes and its policy.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.layout import NUMBERS
from cycletime.engines.engine import Chunk
from cycletime.errors import RunError
from cycletime.loops import EpisodeBins, Episodes

METRICS = ("policy_loss", "value_loss", "entropy", "kl", "clip_fraction")
REPORTED = np.dtype(
    [("env_steps", np.int64), ("agent_steps", np.int64), *((name, np.float32) for name in METRICS)],
)
"""What learning told, and when."""
EPISODE = np.dtype([("return", np.float32), ("env_steps", np.int32), ("agent_steps", np.int32)])
"""An episode: the kernel's own numbers."""
_BINNED = {"counts": np.int64, "sums": np.float64, "env_steps": np.int64, "agent_steps": np.int64}


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a run."""

    identity: str
    bins: EpisodeBins
    """Its learning curve."""
    cycle_steps: int
    """The environment steps of a cycle."""
    reports: NDArray[Any] = field(default_factory=lambda: np.zeros(0, REPORTED))
    episodes: NDArray[Any] | None = None
    """Of EPISODE, where they are kept."""
    policy: NDArray[np.float32] | None = None
    """[NUMBERS] of the policy's network, where it is kept."""
    agent_steps: int = 0
    sessions: int = 1
    """How many processes trained it."""
    wall_s: float = 0.0
    finished: str = ""
    """When, where it is finished."""

    def plus(self, chunk: Chunk) -> Kept:
        """With what a run did next."""
        ended, told = chunk.episodes, chunk.metrics
        env_ends = np.concatenate([[self.bins.env_steps.max()], ended.env_steps])
        agent_ends = np.concatenate([[self.bins.agent_steps.max()], ended.agent_steps])
        reports = np.zeros(len(told["agent_steps"]), REPORTED)
        for name in ("agent_steps", *METRICS):
            reports[name] = told[name]
        # Only the last cycle of an episode can be shorter than k.
        last = np.searchsorted(agent_ends, reports["agent_steps"], side="right") - 1
        reports["env_steps"] = env_ends[last] + (reports["agent_steps"] - agent_ends[last]) * self.cycle_steps
        episodes = None
        if self.episodes is not None:
            added = np.zeros(len(ended), EPISODE)
            added["return"], added["env_steps"] = ended.returns, ended.length_steps
            added["agent_steps"] = np.diff(agent_ends)
            episodes = np.concatenate([self.episodes, added])
        return replace(
            self,
            bins=self.bins.plus(ended),
            reports=np.concatenate([self.reports, reports]),
            episodes=episodes,
            agent_steps=chunk.agent_steps,
        )

    @property
    def curve(self) -> Episodes | EpisodeBins:
        """The learning curve, by episode where they are kept."""
        if self.episodes is None:
            return self.bins
        lengths = self.episodes["env_steps"].astype(np.int64)
        agent_steps = np.cumsum(self.episodes["agent_steps"], dtype=np.int64)
        return Episodes(np.cumsum(lengths), agent_steps, self.episodes["return"].astype(np.float64), lengths)

    @property
    def nbytes(self) -> int:
        """About the bytes that it takes in a file."""
        arrays = (self.bins.sums, *[self.bins.counts] * 3, self.reports, self.episodes, self.policy)
        return sum(array.nbytes for array in arrays if array is not None)


def write_kept(path: Path, about: Mapping[str, Any], runs: Sequence[Kept], **arrays: NDArray[Any]) -> None:
    """Write runs, and what there is to say of all of them, whole or not at all.

    Raises:
        RunError: if the disk refuses.
    """
    names = ("identity", "cycle_steps", "agent_steps", "sessions", "wall_s", "finished")
    told = {
        **about,
        "runs": [{**{name: getattr(run, name) for name in names}, "budget": run.bins.budget} for run in runs],
    }
    parts: dict[str, NDArray[Any]] = {
        "about": np.frombuffer(json.dumps(told).encode(), np.uint8),
        **{name: np.stack([getattr(run.bins, name) for run in runs]) for name in _BINNED},
        **_flat("reports", [run.reports for run in runs]),
        **arrays,
    }
    kept = [run.episodes for run in runs if run.episodes is not None]
    policies = [run.policy for run in runs if run.policy is not None]
    parts |= _flat("episodes", kept) if kept else {}
    parts |= {"policies": np.stack(policies)} if policies else {}
    save = np.savez if arrays else np.savez_compressed  # states are large, and do not get smaller
    unfinished = path.with_name(f".writing-{path.name}")
    try:
        with unfinished.open("wb") as file:
            save(file, **parts)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise RunError(f"{path} cannot be written: {error.strerror}; the same command goes on.") from error


def read_kept(path: Path) -> tuple[dict[str, Any], list[Kept], dict[str, NDArray[Any]]]:
    """What there is to say of all runs of a file, the runs, and the other arrays.

    Raises:
        RunError: if it cannot be read as one.
    """
    if path.exists() and not zipfile.is_zipfile(path):
        raise RunError(f"{path} is no file of runs: give the results-*.npz that a pack wrote.")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        runs = _runs(about.pop("runs"), arrays)
    except (OSError, EOFError, zipfile.BadZipFile, ValueError, KeyError, TypeError, IndexError) as error:
        what = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise RunError(f"{path} cannot be read as a file of runs: {what}.") from error
    return about, runs, arrays


def _runs(told: Sequence[Mapping[str, Any]], arrays: dict[str, NDArray[Any]]) -> list[Kept]:
    bins = {name: arrays.pop(name).astype(kind) for name, kind in _BINNED.items()}
    reports, episodes = _parts("reports", REPORTED, arrays), None
    if "episodes" in arrays:
        episodes = _parts("episodes", EPISODE, arrays)
    policies = arrays.pop("policies", None)
    if policies is not None and policies.shape != (len(told), NUMBERS):
        raise ValueError(f"the policies have the shape {policies.shape}")
    found = []
    for index, each in enumerate(told):
        values = dict(each)
        found.append(
            Kept(
                bins=EpisodeBins(values.pop("budget"), **{name: array[index] for name, array in bins.items()}),
                reports=reports[index],
                episodes=None if episodes is None else episodes[index],
                policy=None if policies is None else policies[index],
                **values,
            )
        )
    return found


def _flat(name: str, parts: Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Tables one after the other, as bytes, and how long each of them is."""
    return {name: np.concatenate(parts).view(np.uint8), f"{name}_each": np.array([len(part) for part in parts])}


def _parts(name: str, kind: np.dtype[Any], arrays: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
    return np.split(arrays.pop(name).view(kind), np.cumsum(arrays.pop(f"{name}_each"))[:-1])
