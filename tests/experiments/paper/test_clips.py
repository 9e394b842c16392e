"""Clips of made-up runs: whose they are, how long, and how large."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.experiments.investigation import Size
from cycletime.experiments.paper import clips
from cycletime.experiments.paper.clips import CLIPS, median_run, save_clips
from cycletime.experiments.paper.experiments import load_study
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ActionBounds
from tests.studies.small import finished, specs_of

pytestmark = pytest.mark.usefixtures("compiled_quickly")
SCORES = (5.0, 1.0, 3.0)
"""By seed: the median is that of seed 2."""


def constant(spec: RunSpec) -> SavedPolicy:
    """A policy that pushes always alike, and the more the larger its seed."""
    size = 2 if spec.world.name == "reacher" else 1
    layer = Layer(jnp.zeros((9, size)), jnp.full(size, 0.02 * spec.seed))
    network = PolicyNetwork((layer,), "tanh", jnp.zeros(size), False)
    return SavedPolicy.of(network, ActionBounds.raw(size), spec, spec.env_steps)


def run_study(folder: Path, name: str, *, policies: bool = True) -> StudyFolder:
    made = StudyFolder.create(folder / name, load_study(name, Size(0.001, len(SCORES))))
    specs = [spec for spec in specs_of(made) if str(spec.dt) == "4ms"]
    runs = [finished(spec, SCORES[spec.seed]) for spec in specs]
    made.store.add([replace(run, policy=constant(run.spec) if policies else None) for run in runs])
    return made


def film_of(path: Path) -> tuple[list[int], tuple[int, int]]:
    """How long each picture is shown, in milliseconds, and its size."""
    with Image.open(path) as film:
        frames: Any = film
        durations = []
        for index in range(frames.n_frames):
            film.seek(index)
            durations.append(int(film.info["duration"]))
        return durations, film.size


def test_there_is_a_clip_of_either_rule_s_median_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clips, "FRAMES", 4)
    folders = {name: run_study(tmp_path, name) for name in dict.fromkeys(clip.study for clip in CLIPS)}
    written = save_clips(folders, tmp_path / "clips")
    assert [path.name for path in written] == [*(f"{clip.name}.gif" for clip in CLIPS), "clips.json"]
    captions = json.loads(written[-1].read_text())
    assert [each["file"] for each in captions] == [path.name for path in written[:-1]]
    assert [(each["algorithm"], each["task"], each["rule"]) for each in captions] == [
        ("ppo", "reacher", "baseline"),
        ("ppo", "reacher", "dt-aware"),
        ("ppo", "double-pendulum", "baseline"),
        ("ppo", "double-pendulum", "dt-aware"),
        ("sac", "double-pendulum", "baseline"),
        ("sac", "double-pendulum", "tuned-scaled"),
    ]
    assert {(each["dt"], each["seed"], each["score"], each["median_of"]) for each in captions} == {("4ms", 2, 3.0, 3)}
    assert film_of(written[0])[1] == (240, 240)


def test_captions_of_clips_that_were_made_before_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clips, "FRAMES", 2)
    for study in ("ppo-pendulum", "ppo-baseline", "ppo-baseline"):
        save_clips({study: run_study(tmp_path, study)}, tmp_path / "clips")
    captions = json.loads((tmp_path / "clips" / "clips.json").read_text())
    assert [each["study"] for each in captions] == ["ppo-baseline", "ppo-pendulum", "ppo-pendulum"], "in CLIPS' order"


def test_a_clip_is_small_and_lasts_as_long_as_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clips, "FRAMES", clips.FRAMES // 4)
    (path, _) = save_clips({"ppo-baseline": run_study(tmp_path, "ppo-baseline")}, tmp_path)
    durations, _ = film_of(path)
    assert sum(durations) == 1200
    assert path.stat().st_size < 300_000 / 4


def test_films_of_the_same_run_are_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clips, "FRAMES", 3)
    folders = {"ppo-baseline": run_study(tmp_path, "ppo-baseline")}
    first, again = (save_clips(folders, tmp_path / name)[0].read_bytes() for name in ("a", "b"))
    assert first == again


def test_without_policies_or_studies_there_are_no_clips(tmp_path: Path) -> None:
    folders = {"ppo-baseline": run_study(tmp_path, "ppo-baseline", policies=False)}
    assert save_clips(folders, tmp_path / "clips") == []
    assert not (tmp_path / "clips" / "clips.json").exists()


@pytest.mark.parametrize(
    ("scores", "expected"), [((4.0,), 4.0), ((2.0, 1.0), 1.0), ((1.0, 9.0, 5.0, 7.0), 5.0), ((None, 1.0, 2.0), 1.0)]
)
def test_the_median_run_is_one_of_the_runs(scores: tuple[float | None, ...], expected: float, tmp_path: Path) -> None:
    spec = specs_of(StudyFolder.create(tmp_path, load_study("ppo-baseline", Size(0.001, 1))))[0]
    runs = [finished(spec, average_return=score) for score in scores]
    assert median_run(runs).result["average_return"] == expected


def test_a_smaller_picture_is_the_mean_of_blocks() -> None:
    picture = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)
    small = clips._downscaled(picture)
    assert small.shape == (2, 3, 3)
    assert small[0, 0].tolist() == picture[:2, :2].mean(axis=(0, 1)).astype(np.uint8).tolist()
