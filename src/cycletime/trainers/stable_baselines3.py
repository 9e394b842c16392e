"""Stable-Baselines3's trainers: settings as its constructors and RL Baselines3 Zoo's entries have them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, did_you_mean, quote
from cycletime.libraries.synonyms import name_hint
from cycletime.trainers.trainer_run import POINTS_FILE, TrainerRun

ALGORITHMS = {"ppo": "PPO", "a2c": "A2C", "sac": "SAC", "td3": "TD3", "ddpg": "DDPG"}
_POLICIES = {"sac": ("sac", "SACPolicy"), "td3": ("td3", "TD3Policy"), "ddpg": ("td3", "TD3Policy")}
"""By algorithm, the package and class of its policies, whose arguments `policy_kwargs` has; else the common ones."""
_OF_THE_ZOO = {"normalize": "env", "noise_type": "action_noise", "noise_std": "action_noise"}
"""What entries of the RL Zoo say besides, and which argument of a constructor is made of it."""


def train(run: TrainerRun) -> None:
    """Train as Stable-Baselines3 does, with its own Monitor telling the returns of episodes."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    if run.device == "gpu" and not torch.cuda.is_available():
        raise InputError("device is 'gpu', and PyTorch finds none here: leave it out, or install PyTorch with CUDA.")
    keywords = {name: read_setting(name, value) for name, value in run.values.items() if value is not None}
    normalize, policy = keywords.pop("normalize", False), keywords.pop("policy", "MlpPolicy")
    noise = keywords.pop("noise_type", None), keywords.pop("noise_std", 0.0)
    env: Any = make_vec_env(run.make_env, n_envs=run.num_envs, seed=run.seed)
    if noise[0]:
        keywords["action_noise"] = _noise(*noise, env.action_space.shape[-1])
    if normalize:  # by the agent's gamma whatever the entry says, as the Zoo does
        own = normalize if isinstance(normalize, dict) else {}
        env = VecNormalize(env, **{**own, "gamma": keywords.get("gamma", 0.99)})

    class Points(BaseCallback):  # type: ignore[misc]  # where it is not installed
        """Reports each episode; its length in agent steps over all environments is the trainer's own count."""

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if "episode" in info:
                    run.report(self.num_timesteps * run.dt_s, self.num_timesteps, info["episode"]["r"])
            return True

    make = getattr(stable_baselines3, ALGORITHMS[run.algorithm])
    try:
        model = make(policy, env, seed=run.seed, device="cuda" if run.device == "gpu" else "cpu", **keywords)
    except (TypeError, ValueError, AssertionError) as error:  # of settings, and of actions
        raise InputError(f"{ALGORITHMS[run.algorithm]} of Stable-Baselines3 refuses: {error}.") from error
    model.learn(total_timesteps=run.agent_steps, callback=Points())
    if not (run.folder / POINTS_FILE).exists():
        raise InputError(no_episode(run))
    model.save(run.folder / "model.zip")


def no_episode(run: TrainerRun) -> str:
    """What is told where no episode ended within the budget, which all environments share."""
    with closing(run.make_env()) as env:
        steps = (env.spec and env.spec.max_episode_steps) or 0
    shared = f", {run.simulated_s / run.num_envs:,.6g} s in each of {run.num_envs} environments"
    enough = f", env_steps = {run.num_envs * steps} for a whole one in each" if steps else ""
    told = f"No episode ended in {run.simulated_s:,.6g} s simulated{shared if run.num_envs > 1 else ''}"
    return f"{told}: give the study a larger budget{enough}."


def check_settings(algorithm: str, settings: Mapping[str, Any]) -> None:
    """Refuse what each run would be refused for; names where Stable-Baselines3 is installed."""
    if algorithm not in ALGORITHMS:
        raise InputError(f"stable-baselines3 has no {algorithm} here: give one of {', '.join(ALGORITHMS)}.")
    known = _arguments(f"{algorithm}/{algorithm}.py", ALGORITHMS[algorithm])
    package, policy = _POLICIES.get(algorithm, ("common", "ActorCriticPolicy"))
    of_policy = list(_arguments(f"{package}/policies.py", policy))[4:]  # without self, two spaces and the schedule
    for name, value in settings.items():
        read: Any = None
        with suppress(ModuleNotFoundError):  # nn.NAME needs PyTorch
            read = read_setting(name, value)
        if known and _OF_THE_ZOO.get(name, name) not in known:
            near = name_hint(name, algorithm, known)
            raise InputError(f"{name} is {quote(value)}: {ALGORITHMS[algorithm]} has no such setting{near}")
        if of_policy and name == "policy_kwargs" and isinstance(read, dict) and (wrong := read.keys() - of_policy):
            near = did_you_mean(unknown := min(wrong), of_policy)
            raise InputError(f"policy_kwargs has {unknown!r}: {policy} takes {', '.join(of_policy)}{near}")
        if isinstance(read, str) and "str" not in known.get(name, "str"):
            raise InputError(f"{name} is {quote(value)}: {ALGORITHMS[algorithm]} takes {known[name]}, and no text.")


@cache
def _arguments(path: str, name: str) -> dict[str, str]:
    """A constructor's, with types, from its source, since to import it takes seconds; none where it is not found."""
    package = find_spec("stable_baselines3")
    file = Path(package.origin if package and package.origin else "").parent / path
    classes = ast.parse(file.read_text()).body if file.is_file() else []
    own = [node for each in classes if isinstance(each, ast.ClassDef) and each.name == name for node in each.body]
    makers = (node for node in own if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    arguments = [each for node in makers for each in node.args.args]
    return {each.arg: "str" if each.annotation is None else ast.unparse(each.annotation) for each in arguments}


def read_setting(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever an entry has
    """A setting as a constructor takes it: the Zoo writes schedules as lin_3e-4, and keywords as Python's text."""
    if isinstance(value, str) and value.startswith("lin_"):
        first = float(_read(name, value.removeprefix("lin_")))
        return lambda remaining: remaining * first
    return _read(name, value) if name.endswith("_kwargs") or name == "normalize" else value


def _read(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever an entry has
    """A text such as 'dict(net_arch=[64, 64], activation_fn=nn.ReLU)' as what it means; nothing is executed."""
    if not isinstance(value, str):
        return value
    try:
        return _evaluate(ast.parse(value, mode="eval").body)
    except (ValueError, SyntaxError, AttributeError) as error:
        readable = "dict(...), lists, numbers and nn.NAME can"
        raise InputError(f"{name} is {quote(value)}, which cannot be read: {readable}.") from error


def _evaluate(node: ast.expr) -> Any:  # noqa: ANN401 - whatever it means
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        return {each.arg: _evaluate(each.value) for each in node.keywords}
    if isinstance(node, ast.List | ast.Tuple):
        return [_evaluate(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        return {ast.literal_eval(key): _evaluate(each) for key, each in zip(node.keys, node.values, strict=True) if key}
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "nn":
        from torch import nn

        return getattr(nn, node.attr)
    return ast.literal_eval(node)


def _noise(kind: str, std: float, size: int) -> Any:  # noqa: ANN401 - its class is Stable-Baselines3's
    import numpy as np
    from stable_baselines3.common.noise import NormalActionNoise, OrnsteinUhlenbeckActionNoise

    kinds = {"normal": NormalActionNoise, "ornstein-uhlenbeck": OrnsteinUhlenbeckActionNoise}
    if kind not in kinds:
        raise InputError(f"noise_type is {quote(kind)}: give one of {', '.join(kinds)}.")
    return kinds[kind](np.zeros(size), std * np.ones(size))
