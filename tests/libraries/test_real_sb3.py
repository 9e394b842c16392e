"""Whole settings against the installed Stable-Baselines3 and its contrib package. Run by './check libraries'."""

from __future__ import annotations

import inspect
import re
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from cycletime.libraries import LIBRARIES
from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.configuration import read_configuration
from cycletime.rules import ALGORITHMS, PPO

pytestmark = pytest.mark.libraries

MODULES = {"tqc": "sb3_contrib"}
WHOLE: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 16, "batch_size": 8, "n_epochs": 2, "clip_range": lambda progress: 0.1 * progress},
    "a2c": {"n_steps": 4, "use_rms_prop": False, "gae_lambda": 0.9},
    **{
        name: {"batch_size": 4, "tau": 0.02, "buffer_size": 100, "learning_starts": 10, "train_freq": (2, "step")}
        for name in ("sac", "tqc", "td3", "ddpg")
    },
}
PARTS = ["replay-capacity", "warm-up", "target-smoothing", "updates-per-second"]
EVERY = pytest.mark.parametrize("algorithm", ALGORITHMS)


def constructor(algorithm: str) -> Any:  # noqa: ANN401 - the library's class
    return getattr(import_module(MODULES.get(algorithm, "stable_baselines3")), algorithm.upper())


@EVERY
def test_the_settings_that_come_back_make_an_agent_that_learns(algorithm: str) -> None:
    whole = {**WHOLE[algorithm], "gamma": 0.98, "learning_rate": 1e-4, "policy_kwargs": {"net_arch": [8]}, "seed": 3}
    kind = ALGORITHMS[algorithm]
    also = PARTS if "tau" in whole else []
    values = kind.from_("sb3", dt="100ms", **whole).at("50ms", also=also)
    settings = values.to("sb3")
    model = constructor(algorithm)("MlpPolicy", "Pendulum-v1", device="cpu", **settings)
    model.learn(32)
    assert (model.gamma, model.learning_rate, model.seed) == (values.stated()["discount"], 1e-4, 3)
    if also:
        assert (model.buffer_size, model.learning_starts) == (200, 20)
        assert (model.train_freq.frequency, model.gradient_steps) == (4, 1)
        assert model.tau == 0.02  # since the updates come as often per second as before
    else:
        assert model.n_steps == 2 * whole["n_steps"]


@EVERY
def test_a_saved_model_is_read_and_carried(algorithm: str, tmp_path: Path) -> None:
    model = constructor(algorithm)("MlpPolicy", "Pendulum-v1", device="cpu", **WHOLE[algorithm])
    model.learn(32)
    model.save(tmp_path / "model.zip")
    carried = carry_configuration(read_configuration(tmp_path / "model.zip"), "50ms", from_dt="100ms")
    assert carried.values is not None
    assert carried.values.algorithm == algorithm


@EVERY
def test_the_defaults_are_those_of_the_constructor_and_every_name_of_it_is_given_back(algorithm: str) -> None:
    signature = inspect.signature(constructor(algorithm)).parameters
    own = {name: each.default for name, each in signature.items() if each.default is not inspect.Parameter.empty}
    assert ALGORITHMS[algorithm].from_("sb3", dt="40ms").to("sb3").items() <= own.items()
    words = LIBRARIES["stable-baselines3"][algorithm]
    assert getattr(words, "defaults", {}).items() <= own.items()
    same = ALGORITHMS[algorithm].from_("sb3", dt="40ms", **own).to("sb3")
    assert dict(same) == own


@pytest.mark.parametrize(("n_steps", "batch_size"), [(8, 64), (8, 9), (8, 16)])
def test_a_mini_batch_greater_than_the_batch_is_one_gradient_step_on_all_of_it(n_steps: int, batch_size: int) -> None:
    values = PPO.from_("sb3", dt="40ms", n_steps=n_steps, batch_size=batch_size)
    assert values.minibatch == values.batch == n_steps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a factor of the batch
        model = constructor("ppo")("MlpPolicy", "Pendulum-v1", n_epochs=1, device="cpu", **values.to("sb3"))
    model.learn(n_steps)
    (sizes,) = [[len(part.actions) for part in model.rollout_buffer.get(model.batch_size)]]
    assert sizes == [n_steps]


def test_the_page_s_script_trains_at_the_shorter_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "stable-baselines3.md").read_text()
    (script,) = re.findall(r"```python\n(# not run: needs Stable-Baselines3\n.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {}
    exec(compile(script.replace("200_000", "2_048"), "page", "exec"), made)
    model, env = made["model"], made["env"]
    assert (model.n_steps, model.batch_size, model.num_timesteps) == (512, 128, 4096)
    assert env.gamma == model.gamma == pytest.approx(0.9**0.5)
    assert {spec.max_episode_steps for spec in env.get_attr("spec")} == {400}
    assert {path.name for path in tmp_path.iterdir()} == {"ppo-25ms.zip", "vecnormalize-25ms.pkl"}
