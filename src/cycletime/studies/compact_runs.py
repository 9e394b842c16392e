"""Runs that come back in compact files (`cycletime.engines.cuda.compact`), made into run folders of a study."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cycletime.engines.cuda.compact import METRICS, Kept, read_kept
from cycletime.engines.cuda.describing import psi_of
from cycletime.engines.cuda.layout import NUMBERS, POSITION_WORDS, STATE_WORDS, position_of
from cycletime.engines.cuda.setting import CudaSetting
from cycletime.engines.cuda.travel import GOING_ON
from cycletime.errors import InputError, RunError
from cycletime.loops import EpisodeBins, Episodes
from cycletime.runs.curve import write_bins, write_curve
from cycletime.runs.files import write_whole
from cycletime.runs.folder import RunFolder
from cycletime.runs.metrics import MetricsFile
from cycletime.runs.policies.policy_file import write_policy
from cycletime.runs.result import hashes_of, result_of
from cycletime.runs.spec import RunSpec
from cycletime.studies.folder import StudyFolder
from cycletime.studies.kernel_code import check_code
from cycletime.studies.study_file import study_from


def compact_files(source: Path) -> list[Path]:
    """The compact files that a source is, or that lie in it."""
    if source.is_file():
        return [source]
    return sorted(path for path in source.rglob("*.npz") if path.name != GOING_ON and not path.name.startswith("."))


def study_folder_for(path: Path, sources: list[Path]) -> StudyFolder:
    """The study in a folder; where there is none, that which compact files belong to."""
    files = [file for source in sources for file in compact_files(source)]
    if (path / "study.json").exists() or not files:
        return StudyFolder.open(path)
    about = read_kept(files[0])[0]
    try:
        study = study_from(about["study"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{files[0]} does not say which study its runs are of: {error}.") from error
    return StudyFolder.create(path, study)


def checked_runs(file: Path) -> Iterator[tuple[Kept, dict[str, Any]]]:
    """The runs of a file, each with the machine that computed it.

    Raises:
        RunError: if it cannot be read, or other code computed them.
    """
    about, runs, _ = read_kept(file)
    check_code(about)
    machine = {str(name): str(each) for name, each in about["machine"].items()}
    for run in runs:
        if not run.finished:
            raise RunError(f"run {run.identity[:10]} is not finished")
        yield run, machine


def fill(folder: RunFolder, kept: Kept, machine: dict[str, Any]) -> None:
    """Write a run's files as if it had been computed here, the result last.

    Raises:
        RunError: if the numbers are not the run's, or the disk refuses.
    """
    spec, curve = folder.spec, kept.curve
    setting = CudaSetting(spec)
    _check(spec, kept, setting.cycle_steps)
    if isinstance(curve, Episodes):
        episodes = curve
        write_whole(folder.curve_file, lambda path: write_curve(path, episodes, setting.env_dt))
    else:
        bins = curve
        write_whole(folder.curve_file, lambda path: write_bins(path, bins, setting.env_dt))
    _write_metrics(folder, kept)
    folder.policy_file.unlink(missing_ok=True)
    if kept.policy is not None:
        _write_policy(folder, kept, setting)
    told = result_of(
        spec,
        curve,
        where=setting.where,
        agent_steps=kept.agent_steps,
        remarks=(),
        sessions=kept.sessions,
        wall_s=kept.wall_s,
        files=hashes_of(folder),
        machine=machine,
    )
    folder.write_result({**told, "finished": kept.finished})


def _check(spec: RunSpec, kept: Kept, cycle_steps: int) -> None:
    bins = kept.bins
    ends = bins.env_steps[bins.counts > 0]
    in_order = not np.any(np.diff(ends, prepend=0) <= 0) and not np.any(ends > spec.env_steps)
    steps = kept.reports["agent_steps"]
    if (bins.budget, kept.cycle_steps) != (spec.env_steps, cycle_steps) or not in_order or np.any(np.diff(steps) <= 0):
        raise RunError(f"what was kept of {spec.name} does not fit together")
    if isinstance(curve := kept.curve, Episodes):
        again = EpisodeBins.none(bins.budget).plus(curve)
        if not (np.array_equal(again.counts, bins.counts) and np.array_equal(again.sums, bins.sums, equal_nan=True)):
            raise RunError(f"the episodes of {spec.name} are not those of its bins")


def _write_metrics(folder: RunFolder, kept: Kept) -> None:
    """One line for each report; `metrics.jsonl` has as many of a run that was computed here."""
    file = MetricsFile(folder.metrics_file, 1, kept.cycle_steps)
    file.resume(0, {})
    steps, nothing = kept.reports["agent_steps"], np.zeros(len(kept.reports))
    # Its environment steps are known, and told as if an episode had ended there.
    known = Episodes(kept.reports["env_steps"], steps, nothing, nothing.astype(np.int64))
    file.add({**{name: kept.reports[name] for name in METRICS}, "agent_steps": steps}, known)
    file.flush()


def _write_policy(folder: RunFolder, kept: Kept, setting: CudaSetting) -> None:
    state = np.zeros(STATE_WORDS, np.float32)
    position_of(state)["mean_decay"] = position_of(state)["square_decay"] = 1.0
    state[POSITION_WORDS : POSITION_WORDS + NUMBERS] = kept.policy
    network = folder.spec.agent.policy(psi_of(state, len(setting.bounds.centre)))
    write_policy(folder.policy_file, network, setting.bounds, folder.spec, folder.spec.env_steps)
