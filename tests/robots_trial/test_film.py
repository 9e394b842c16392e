"""What the films show: whose policies, and how these act. The pictures need Playground, and were looked at."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.robots import film
from benchmarks.robots.judge import Judgement
from benchmarks.robots.rows import Rows
from tests.robots_trial.test_judge import TRIAL, row

TASK = "Go1JoystickFlatTerrain"


def judged(scores: list[float], tmp_path: Path, kept: list[int]) -> Judgement:
    rows: list[dict[str, Any]] = [row(TASK, 8, ("kept",), seed, score) for seed, score in enumerate(scores)]
    for run in rows:
        if run["seed"] in kept:
            film.policy_file(run, tmp_path).parent.mkdir(exist_ok=True)
            film.policy_file(run, tmp_path).touch()
    return Judgement(TRIAL, Rows(rows))


@pytest.mark.parametrize(
    ("kept", "median"),
    [([0, 1, 2, 3, 4], 3), ([0, 1, 2, 3], 0), ([4], 4)],  # scores 3, 1, 5, 4, 9; of two in the middle the lower
)
def test_a_film_is_of_the_median_run(kept: list[int], median: int, tmp_path: Path) -> None:
    judgement = judged([3.0, 1.0, 5.0, 4.0, 9.0], tmp_path, kept)
    assert film.median_run(judgement, TASK, 8, "kept", tmp_path)["seed"] == median


def test_an_arm_without_a_policy_has_no_film(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileNotFoundError, match="No run of horizons on Go1JoystickFlatTerrain at 8 ms has a policy"):
        film.median_run(judged([1.0], tmp_path, [0]), TASK, 8, "horizons", tmp_path)
    with pytest.raises(SystemExit, match="2"):
        film.main(["Go2", "8"])
    assert "'Go2' is no task of the trial: give one of Go1JoystickFlatTerrain" in capsys.readouterr().err


def test_a_policy_acts_by_the_mean_of_brax_s_network() -> None:
    keys = jax.random.split(jax.random.key(0), 9)
    sizes = [5, 8, 6, 4]
    kernels = [jax.random.normal(keys[i], (sizes[i], sizes[i + 1])) for i in range(3)]
    biases = [jax.random.normal(keys[3 + i], (sizes[i + 1],)) for i in range(3)]
    mean, std = jax.random.normal(keys[6], (5,)), jnp.exp(jax.random.normal(keys[7], (5,)))
    arrays = {"mean['state']": np.asarray(mean, np.float64), "std['state']": np.asarray(std, np.float64)}
    for number, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
        layer = f"policy['params']['hidden_{number}']"
        arrays |= {f"{layer}['kernel']": np.asarray(kernel), f"{layer}['bias']": np.asarray(bias)}
    observation = jax.random.normal(keys[8], (5,))
    hidden = jax.nn.swish((observation - mean) / std @ kernels[0] + biases[0])
    hidden = jax.nn.swish(hidden @ kernels[1] + biases[1])
    wanted = jnp.tanh(jnp.split(hidden @ kernels[2] + biases[2], 2)[0])
    assert film.mean_action(arrays, np.asarray(observation)) == pytest.approx(np.asarray(wanted), abs=1e-5)
