"""Short films of median runs at 4 ms: what failing and succeeding look like.

A clip is of the run whose score is the median of its cell, so that it is neither the best nor the worst. It acts with
the policy's mean, in real time, and the clips of a task begin alike. Episodes follow one another until a clip is over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.experiments.results import verified_folder
from cycletime.policies.films import CycleStart, film_writer
from cycletime.policies.watch import Playback
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder, policy_of
from cycletime.tasks.render import Frame
from cycletime.training.atomic_files import make_folder, write_whole
from cycletime.training.finished_run import FinishedRun
from cycletime.training.worlds import make_env

DT = "4ms"
CAPTIONS_FILE = "clips.json"
FRAME_INTERVAL = "40ms"
FRAMES = 120
"""Of a clip: 4.8 s, or two episodes of Reacher."""
_DOWNSCALE = 2
"""A clip has so many times fewer pixels in each direction than what users see."""


@dataclass(frozen=True)
class Clip:
    name: str
    study: str
    labels: Mapping[str, object]
    """Of the cell at 4 ms."""


CLIPS = (
    Clip("reacher-4ms-baseline", "ppo-baseline", {"rule": "baseline"}),
    Clip("reacher-4ms-dt-aware", "ppo-dt-aware", {"rule": "dt-aware", "batch": 2000}),
    Clip("double-pendulum-4ms-baseline", "ppo-pendulum", {"rule": "baseline"}),
    Clip("double-pendulum-4ms-dt-aware", "ppo-pendulum", {"rule": "dt-aware"}),
    Clip("double-pendulum-4ms-sac-baseline", "sac-pendulum-baseline", {"rule": "baseline"}),
    Clip("double-pendulum-4ms-sac-scaled", "sac-pendulum-dt-aware", {"rule": "tuned-scaled"}),
)


def save_clips(folders: Mapping[str, StudyFolder], out: Path) -> list[Path]:
    """Write a GIF of each clip whose study is there with its policies, and what all clips show as JSON."""
    make_folder(out)
    written, captions = list[Path](), list[dict[str, Any]]()
    for clip in CLIPS:
        runs = _runs(folders[clip.study], clip) if clip.study in folders else []
        if runs:
            run = median_run(runs)
            path = out / f"{clip.name}.gif"
            _film(run, path)
            written.append(path)
            captions.append(_caption(path, clip, run, len(runs)))
    if captions:
        text = json.dumps(_merge_captions(captions, out / CAPTIONS_FILE), indent=1) + "\n"
        write_whole(out / CAPTIONS_FILE, lambda unfinished: unfinished.write_text(text))
        written.append(out / CAPTIONS_FILE)
    return written


def _merge_captions(captions: Sequence[dict[str, Any]], file: Path) -> list[dict[str, Any]]:
    """Captions in the clips' order, with those of clips that were made before and stay."""
    before = json.loads(file.read_text()) if file.exists() else []
    by_file = {caption["file"]: caption for caption in (*before, *captions)}
    return [by_file[name] for clip in CLIPS if (name := f"{clip.name}.gif") in by_file]


def median_run(runs: Sequence[FinishedRun]) -> FinishedRun:
    """The run whose score is the median; of an even number, the lower of the two in the middle."""
    return sorted(runs, key=_score)[(len(runs) - 1) // 2]


def _score(run: FinishedRun) -> float:
    score = run.result["average_return"]
    return float("-inf") if score is None or not isfinite(score) else float(score)  # astray: the worst that there is


def _runs(folder: StudyFolder, clip: Clip) -> list[FinishedRun]:
    plan = Plan.of(folder.study)
    (names,) = (
        plan.names[index]
        for index, cell in enumerate(plan.cells)
        if cell.dt == Duration(DT) and all(cell.labels.get(name) == value for name, value in clip.labels.items())
    )
    return [run for run in verified_folder(folder).store.runs() if run.name in names and run.policy is not None]


def _film(run: FinishedRun, path: Path) -> None:
    spec, write = run.spec, film_writer(path)
    env = make_env(spec.world, spec.dt, render_mode="rgb_array")
    showing = Playback(env=env, act=policy_of(run).in_numpy().act, dt=spec.dt, episodes=FRAMES)
    stride = cycle_steps(FRAME_INTERVAL, spec.dt)
    try:
        moments = islice(_subsampled(showing.moments(), stride), FRAMES)
        write_whole(path, lambda unfinished: write(unfinished, moments, stride * showing.cycle_s))
    except InputError as error:
        raise InputError(f"The clip of {run.name} cannot be drawn: {error}") from error
    finally:
        env.close()


def _subsampled(moments: Iterable[CycleStart], stride: int) -> Iterator[CycleStart]:
    """Every n-th moment, as if cycles were n times longer, with smaller pictures."""
    for moment in moments:
        if moment.agent_steps % stride == 0:
            yield CycleStart(moment.agent_steps // stride, lambda draw=moment.draw: _downscaled(draw()))  # type: ignore[misc]


def _downscaled(picture: Frame) -> Frame:
    height, width, colours = picture.shape
    blocks = picture.reshape(height // _DOWNSCALE, _DOWNSCALE, width // _DOWNSCALE, _DOWNSCALE, colours)
    averaged: Frame = blocks.mean(axis=(1, 3)).astype(np.uint8)
    return averaged


def _caption(path: Path, clip: Clip, run: FinishedRun, count: int) -> dict[str, Any]:
    return {
        "file": path.name,
        "study": clip.study,
        "algorithm": run.spec.algorithm,
        "task": run.spec.world.name,
        "rule": clip.labels["rule"],
        "dt": str(run.spec.dt),
        "seed": run.spec.seed,
        "score": run.result["average_return"],
        "median_of": count,
        "run": run.name,
    }
