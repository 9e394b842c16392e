"""Learning rates, clips and initial sigmas against the installed libraries. Run by './check libraries'."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from importlib import import_module
from math import exp
from typing import Any

import pytest

from cycletime.libraries import LIBRARIES
from cycletime.libraries.parameters import OneRate
from cycletime.rules import ALGORITHMS, PPO

pytestmark = pytest.mark.libraries

SB3 = {name: ("sb3_contrib" if name == "tqc" else "stable_baselines3") for name in ALGORITHMS}
TIANSHOU = "tianshou.highlevel.params.algorithm_params"


def signature(path: str, name: str) -> Mapping[str, Any]:
    """The defaults of a function's or constructor's parameters."""
    parameters = inspect.signature(getattr(import_module(path), name)).parameters
    return {key: parameter.default for key, parameter in parameters.items()}


def fields(path: str, name: str) -> Mapping[str, Any]:
    """The defaults of a dataclass."""
    return {field.name: field.default for field in dataclasses.fields(getattr(import_module(path), name))}


def rejax(name: str) -> Mapping[str, Any]:
    return dict(vars(getattr(import_module("rejax"), name).create(env="Pendulum-v1")))


@pytest.mark.parametrize(
    ("library", "algorithm", "own"),
    [
        *(("stable-baselines3", name, lambda n=name: signature(SB3[n], n.upper())) for name in ALGORITHMS),
        *(("sbx", name, lambda n=name: signature("sbx", n.upper())) for name in ("ppo", "sac", "tqc", "td3", "ddpg")),
        *(("rejax", name, lambda n=name: rejax(n.upper())) for name in ("ppo", "sac")),
        *(("brax", it, lambda n=it: signature(f"brax.training.agents.{n}.train", "train")) for it in ("ppo", "sac")),
        *(("skrl", it, lambda n=it: fields(f"skrl.agents.torch.{n}", f"{n.upper()}_CFG")) for it in ("ppo", "sac")),
        *(("tianshou", name, lambda n=name: fields(TIANSHOU, f"{n.upper()}Params")) for name in ("ppo", "sac")),
        ("rsl-rl", "ppo", lambda: signature("rsl_rl.algorithms", "PPO")),
    ],
)
def test_the_words_and_their_defaults_are_the_library_s_own(library: str, algorithm: str, own: Any) -> None:  # noqa: ANN401
    words, real = LIBRARIES[library][algorithm].rates, own()
    rates = [rate for rate in (words.learning_rate, words.clip) if rate is not None]
    for word in (word for rate in rates for word in rate.words):
        default = real[word.name.removeprefix("algorithm.")]
        assert default == (pytest.approx(word.default) if word.default is not None else None), word.name


def test_rsl_rl_s_sigma_is_its_distribution_s() -> None:
    sigma = LIBRARIES["rsl-rl"]["ppo"].rates.noise_std
    assert isinstance(sigma, OneRate)
    real = signature("rsl_rl.modules.distribution", "GaussianDistribution")
    assert real["init_std"] == sigma.words[0].default


@pytest.mark.parametrize(("library", "algorithm"), [("sb3", "PPO"), ("sb3", "A2C"), ("sbx", "PPO")])
def test_log_std_init_is_the_logarithm_of_the_policy_s_first_sigma(library: str, algorithm: str) -> None:
    module = {"sb3": "stable_baselines3", "sbx": "sbx"}[library]
    constructor = getattr(import_module(module), algorithm)
    values = ALGORITHMS[algorithm.lower()](dt="16ms", noise_std=0.25)  # type: ignore[call-arg]
    settings = dict(values.at("4ms", also="exploration-noise").to(library))
    settings["policy_kwargs"] = {**settings["policy_kwargs"], "net_arch": [8]}
    for given, sigma in ((settings, 0.5), ({**settings, "policy_kwargs": {"net_arch": [8]}}, 1.0)):
        policy = constructor("MlpPolicy", "Pendulum-v1", device="cpu", **given).policy
        log_std = policy.log_std if library == "sb3" else policy.actor_state.params["params"]["log_std"]
        assert exp(log_std[0].item()) == pytest.approx(sigma)


def test_stable_baselines3_takes_the_carried_learning_rate_and_clip() -> None:
    values = PPO.from_("sb3", dt="16ms", learning_rate=1e-4, clip_range=0.1, n_steps=16, batch_size=8)
    settings = values.at("8ms", also=["learning-rate", "clip"]).to("sb3")
    model = import_module("stable_baselines3").PPO("MlpPolicy", "Pendulum-v1", device="cpu", **settings)
    assert model.lr_schedule(1.0) == pytest.approx(1e-4 * 2**0.5)
    assert model.clip_range(1.0) == pytest.approx(0.1 / 2**0.5)
