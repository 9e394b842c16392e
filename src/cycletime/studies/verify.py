"""Whether finished runs are what they were when they finished: nothing lost, nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from cycletime.duration import Duration
from cycletime.errors import InputError, RunError
from cycletime.loops import EpisodeBins
from cycletime.runs.curve import read_any_curve
from cycletime.runs.files import disk_errors
from cycletime.runs.folder import RunFolder
from cycletime.runs.policies.policy_file import read_policy
from cycletime.runs.result import hashes_of
from cycletime.studies.folder import StudyFolder

ASIDE = "damaged"
"""The folder of a study that runs are put aside into."""


def finished_runs(folder: StudyFolder) -> Iterator[Path]:
    """The folders of all runs that have a result, planned or not."""
    yield from sorted(result.parent for result in folder.runs.glob("*/result.json"))


def damage_of(run: Path) -> str | None:
    """What is wrong with a finished run, or None: its spec, its curve, its policy and their hashes."""
    try:
        folder = RunFolder.open(run)
        if folder.spec.name != run.name:
            return f"the folder's name is not the run's, {folder.spec.name}"
        return _damage(folder)
    except OSError as error:
        return f"{error.filename} cannot be read: {error.strerror}"
    except (InputError, RunError) as error:
        return str(error).rstrip(".")
    except (AttributeError, TypeError) as error:
        return f"result.json is no result: {error}"


def put_aside(folder: StudyFolder, run: Path) -> Path:
    """Move a run out of the study, so that it is run again; where it is now."""
    aside = folder.path / ASIDE
    with disk_errors(aside):
        aside.mkdir(exist_ok=True)
        place, number = aside / run.name, 1
        while place.exists():
            number += 1
            place = aside / f"{run.name}-{number}"
        return run.rename(place)


def _damage(folder: RunFolder) -> str | None:
    result = folder.result()
    if result.get("identity") != folder.spec.identity:
        return "result.json belongs to another run"
    recorded = result.get("files") or {}  # runs of the first version have none
    hashes = hashes_of(folder)
    if folder.policy_file.name in recorded or not recorded:
        folder.policy_file.stat()  # one that was there must not be lost
    for name, digest in hashes.items():
        if recorded.get(name, digest) != digest:
            return f"{name} is not what was written: its hash is {digest[:10]}, and was {recorded[name][:10]}"
    curve = read_any_curve(folder.curve_file, folder.spec.world.env_dt or Duration("1s"))
    if len(curve) != result.get("episodes"):
        return f"curve.parquet has {len(curve)} episodes, and the result {result.get('episodes')}"
    ends = curve.env_steps[curve.counts > 0] if isinstance(curve, EpisodeBins) else curve.env_steps
    if np.any(np.diff(ends, prepend=0) <= 0) or np.any(ends > folder.spec.env_steps):
        return "the episodes of curve.parquet are out of order"
    if folder.policy_file.name not in hashes:
        return None  # it came without one
    policy = read_policy(folder.policy_file)
    if (policy.identity, policy.env_steps) != (folder.spec.identity, folder.spec.env_steps):
        return f"policy.safetensors is not this run's last: it is of {policy.env_steps} environment steps"
    return None
