"""Which library wrote a configuration, from the names in it: the agent's side, the environment's, or both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cycletime.errors import InputError
from cycletime.libraries.names import LIBRARIES, table_names
from cycletime.libraries.parameters import SECTIONS, one_slip_apart
from cycletime.libraries.time_keys import DEPLOYED_BY

_OFF_POLICY_NAMES = (
    *("q_lr", "policy_lr", "buffer_size", "polyak", "agent.polyak", "min_replay_size", "max_replay_size"),
    *("grad_updates_per_step", "memory_size", "fill_buffer"),
)
"""Settings of a replay buffer or of what learns from it."""
_CLASS_NAMES = {
    "rsl-rl": ("algorithm.class_name", "runner.algorithm.class_name"),
    "skrl": ("agent.class", "class"),
    "rl-games": ("params.algo.name", "algo.name"),
}
_TELLING = ("num_steps_per_env", "decimation", "ctrl_dt", "discount_factor", "rollouts", "unroll_length")
"""Names without which a library is not recognised, and that others do not resemble."""


class Part(NamedTuple):
    """A part of a document with one library's settings of an agent, of an environment, or both."""

    path: tuple[str, ...]
    agent: str | None
    environment: str | None


def recognise_parts(document: Mapping[Any, Any]) -> list[Part]:
    """The document itself if it is one library's, else those of its sections that are."""
    if any(found := libraries_of(document)):
        return [Part((), *found)]
    sections = [(name, each) for name, each in document.items() if isinstance(each, Mapping) and isinstance(name, str)]
    return [Part((name,), *found) for name, section in sections if any(found := libraries_of(section))]


def libraries_of(section: Mapping[Any, Any]) -> tuple[str | None, str | None]:
    """The agent's library and the environment's, also by a misspelt name, so that the slip can be named."""
    if any(found := (_agent_library(section), _environment_library(section))):
        return found
    spelt = _spelt(section, 3)
    return _agent_library(spelt), _environment_library(spelt)


def _spelt(section: Mapping[Any, Any], levels: int) -> dict[Any, Any]:
    return {
        next((mark for mark in _TELLING if mark not in section and one_slip_apart(str(name), mark)), name): (
            _spelt(each, levels - 1) if isinstance(each, Mapping) and levels else each
        )
        for name, each in section.items()
    }


def simulated_environment(document: Mapping[Any, Any]) -> str | None:
    """Name what no library writes: environments of legged_gym's forks and of IsaacGymEnvs, and deployments."""
    if any(isinstance(document.get(name), float) for name in DEPLOYED_BY):
        return "deployment"
    simulation, control, env = (document.get(name) for name in ("sim", "control", "env"))
    if not isinstance(simulation, Mapping) or "dt" not in simulation:
        return None
    if isinstance(control, Mapping) and "decimation" in control:
        return "legged-gym"
    return "isaac-gym" if isinstance(env, Mapping) and "numEnvs" in env else None


def is_zoo_file(document: Mapping[Any, Any]) -> bool:
    entries = [entry for entry in document.values() if isinstance(entry, Mapping)]
    return (
        len(entries) == len(document) > 0
        and not {*document} & {*SECTIONS}
        and not _agent_library(document)
        and any(_has_any(entry, "n_timesteps", "policy", "n_steps", "gamma", "<<") for entry in entries)
        and not any(_agent_library(entry) not in (None, "stable-baselines3") for entry in entries)
        and not any(_environment_library(entry) for entry in entries)
    )


def _environment_library(document: Mapping[Any, Any]) -> str | None:
    simulation = document.get("sim")
    if "decimation" in document and isinstance(simulation, Mapping):
        return "mjlab" if "mujoco" in simulation else "isaac-lab"
    return "mujoco-playground" if _has_any(document, "ctrl_dt") else None


def _agent_library(document: Mapping[Any, Any]) -> str | None:
    runner, agent, policy = document.get("runner"), document.get("agent"), document.get("policy")
    around = [each for each in (document.get("params"), document) if isinstance(each, Mapping)]
    config = next((each["config"] for each in around if each.get("config")), None)
    if isinstance(document.get("algorithm"), Mapping) and any(
        isinstance(each, Mapping) and "num_steps_per_env" in each for each in (document, runner)
    ):
        return "rsl-rl"
    if isinstance(config, Mapping) and _has_any(config, "horizon_length", "minibatch_size"):
        return "rl-games"
    of_skrl = agent if isinstance(agent, Mapping) else document if "rollouts" in document else ()
    if "discount_factor" in of_skrl:
        return "skrl"
    if isinstance(policy, Mapping) and "type" in policy and _has_any(document, "dataset", "env", "job_name", "fps"):
        return "lerobot"
    if _has_any(document, "unroll_length", "min_replay_size", "grad_updates_per_step") and _has_any(
        document, "discounting", "num_timesteps", "num_minibatches"
    ):
        return "brax"
    if {"NUM_STEPS", "NUM_MINIBATCHES"} <= document.keys():
        return "purejaxrl"
    if "total_timesteps" in document and _has_any(document, "num_minibatches", "update_epochs", "q_lr", "policy_lr"):
        return "cleanrl"
    if _has_any(document, "n_steps", "buffer_size", "batch_size") and _has_any(
        document, "policy", "gae_lambda", "n_timesteps", "learning_starts", "policy_class"
    ):
        return "stable-baselines3"
    return None


def recognise_algorithm(library: str, settings: Mapping[str, Any], asked: str | None, of_file: str = "") -> str | None:
    """The algorithm of a library's settings, by their dotted names, or of an RL Zoo file, by its own name.

    One that is asked for is taken unless the settings show another. It may have no rule here.
    """
    tables = LIBRARIES.get(library, {})
    said = (of_file if of_file in tables else None) if of_file else _algorithm_of(library, settings)
    if asked and said and said in tables and said != asked:
        only = table_names(tables[said]) - table_names(tables.get(asked))
        classes = [name for name in _CLASS_NAMES.get(library, ()) if name in settings]
        for name in (*classes, *(name for name in settings if {name, name.rpartition(".")[2]} & only)):
            raise InputError(f"{name} {settings[name]} is of {said}: leave --algorithm {asked} out.")
    return asked or said


def _algorithm_of(library: str, settings: Mapping[str, Any]) -> str | None:
    if named := "".join(str(settings[name]) for name in _CLASS_NAMES.get(library, ()) if name in settings).lower():
        return "ppo" if "ppo" in named or "a2c_" in named else named  # rl_games calls its PPO a2c_continuous
    if library in ("stable-baselines3", "sbx"):
        return _stable_baselines3_algorithm(settings)
    if library == "lerobot":
        kind = settings.get("policy.type")
        return "sac" if kind in ("sac", "gaussian_actor") else None
    if library in ("rsl-rl", "rl-games", "purejaxrl", "pufferlib"):
        return "ppo"
    return "sac" if _has_any(settings, *_OFF_POLICY_NAMES) else "ppo"


def _stable_baselines3_algorithm(settings: Mapping[str, Any]) -> str | None:
    if not _has_any(settings, "buffer_size", "learning_starts", "tau", "train_freq", "replay_buffer_class"):
        is_ppo = _has_any(settings, "batch_size", "n_minibatches", "clip_range", "n_epochs")
        # A saved model says all of its settings; in a file of some, what is not said may be PPO's default.
        is_a2c = _has_any(settings, "policy_class", "use_rms_prop", "rms_prop_eps")
        return "ppo" if is_ppo else "a2c" if is_a2c else None
    if _has_any(settings, "top_quantiles_to_drop_per_net"):
        return "tqc"
    if _has_any(settings, "policy_delay", "target_policy_noise"):
        return "ddpg" if settings.get("policy_delay") == 1 and settings.get("target_noise_clip") == 0 else "td3"
    return "sac"


def _has_any(document: Mapping[Any, Any], *names: str) -> bool:
    return any(name in document for name in names)
