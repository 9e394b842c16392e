"""Brax's PPO and SAC on MuJoCo Playground's tasks, at any cycle time; on a GPU where the study asks for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from inspect import signature
from math import ceil
from typing import Any

from cycletime.duration import Duration
from cycletime.errors import InputError, did_you_mean
from cycletime.trainers.trainer_run import TrainerRun
from cycletime.training.machine import keep_compiled_programs, use_device

EVALUATIONS = 20
"""Points of a curve, unless num_evals says otherwise."""
_DECIDED = {"environment", "wrap_env_fn", "network_factory", "progress_fn"}
_DECIDED |= {"episode_length", "action_repeat", "num_timesteps", "seed"}
"""Keywords of brax's functions that follow from the task, the cycle time, the budget and the seed."""


def train(run: TrainerRun) -> None:
    """Train as Playground does: its networks and settings, the run's values, and its own count of simulated time."""
    use_device(run.device)
    keep_compiled_programs()
    _give_device_put_replicated()
    from brax.training.agents.ppo import networks as ppo_networks
    from brax.training.agents.ppo import train as ppo
    from brax.training.agents.sac import networks as sac_networks
    from brax.training.agents.sac import train as sac
    from mujoco_playground import registry, wrapper

    makers = {"ppo": (ppo.train, ppo_networks.make_ppo_networks), "sac": (sac.train, sac_networks.make_sac_networks)}
    if run.algorithm not in makers:
        raise InputError(f"brax has no {run.algorithm} here: give one of {', '.join(makers)}.")
    if run.env not in registry.ALL_ENVS:
        near = did_you_mean(run.env, registry.ALL_ENVS)
        raise InputError(f"{run.env!r} is not one of Playground's tasks{near}")
    settings = dict(run.values)
    config, rho = _configuration(registry, run, settings.pop("sim_dt", None))
    learn, make_networks = makers[run.algorithm]
    known = signature(learn).parameters.keys() - _DECIDED
    if unknown := sorted(settings.keys() - known):
        near = did_you_mean(unknown[0], known)
        raise InputError(f"{unknown[0]} is no setting of brax's {run.algorithm} that a study can give{near}")
    shipped = _shipped(run, registry)
    network = shipped.pop("network_factory", {})
    # dm_control's tasks pay per step, the others per second: a second shall be worth as much at every cycle time.
    scale = rho if run.env in registry.dm_control_suite.ALL_ENVS else 1.0
    values = {
        **{name: value for name, value in shipped.items() if name in known},  # a suite's algorithms share some
        "num_evals": EVALUATIONS,
        **settings,
        "reward_scaling": scale * {"reward_scaling": 1.0, **shipped, **settings}["reward_scaling"],
        "num_envs": run.num_envs,
        "episode_length": config.episode_length,
        "action_repeat": 1,
        "seed": run.seed,
    }
    values["num_timesteps"], values["num_evals"] = _within_budget(run, values)

    def report(steps: int, metrics: Mapping[str, Any]) -> None:
        if steps:
            run.report(steps * run.dt_s, steps, scale * float(metrics["eval/episode_reward"]))

    learn(
        environment=registry.load(run.env, config=config),
        wrap_env_fn=wrapper.wrap_for_brax_training,
        network_factory=partial(make_networks, **network),
        progress_fn=report,
        **values,
    )


def _configuration(registry: Any, run: TrainerRun, sim_dt: float | None) -> tuple[Any, float]:  # noqa: ANN401 - Playground's
    """The task's configuration at the cycle time, its episode as long in seconds; and the ratio of cycle times."""
    config = registry.get_default_config(run.env)
    rho = run.dt / Duration.of_seconds(config.ctrl_dt)
    physics = Duration(config.sim_dt if sim_dt is None else sim_dt)
    if (run.dt / physics).denominator != 1:
        raise InputError(f"The cycle time {run.dt} is no multiple of the simulation's step, {physics}: set sim_dt.")
    config.ctrl_dt, config.sim_dt = run.dt_s, float(physics)
    config.episode_length = round(config.episode_length / rho)
    if "impl" in config:
        config.impl = "jax"
    return config, float(rho)


def _within_budget(run: TrainerRun, values: Mapping[str, Any]) -> tuple[int, int]:
    """The agent steps of whole updates, and evaluations: brax rounds up, and a point beyond the budget is no point."""
    if run.algorithm == "ppo":
        samples = values["batch_size"] * values["num_minibatches"]
        if samples % run.num_envs:
            needed = f"brax needs a divisor of batch_size x num_minibatches, {samples}"
            raise InputError(f"num_envs is {run.num_envs}: {needed}.")
        first, each = 0, samples * values["unroll_length"] * max(values.get("num_resets_per_eval", 0), 1)
    else:
        first, each = ceil(values.get("min_replay_size", 0) / run.num_envs) * run.num_envs, run.num_envs
    updates = (run.agent_steps - first) // each
    if updates < 1:
        budget = f"The budget is {run.agent_steps:,} agent steps"
        raise InputError(f"{budget}, and brax learns first after {first + each:,}: give more.")
    most = min(max(values["num_evals"] - 1, 1), updates)
    points = next(count for count in range(most, 0, -1) if updates % count <= updates / 20)  # 5 % may be left
    return first + (updates - updates % points) * each, points + 1


def _shipped(run: TrainerRun, registry: Any) -> dict[str, Any]:  # noqa: ANN401 - Playground's
    """What Playground ships for the task and the values of a run do not say, such as networks and normalisation."""
    from mujoco_playground.config import dm_control_suite_params, locomotion_params, manipulation_params

    suites: Sequence[tuple[Any, Any]] = (
        (registry.dm_control_suite, dm_control_suite_params),
        (registry.locomotion, locomotion_params),
        (registry.manipulation, manipulation_params),
    )
    params = next(params for suite, params in suites if run.env in suite.ALL_ENVS)
    make = getattr(params, f"brax_{run.algorithm}_config", None)
    return dict(make(run.env).to_dict()) if make else {}


def _give_device_put_replicated() -> None:
    """Give JAX back a function that brax 0.14 calls and JAX 0.10 removed: each leaf is stacked once for each device."""
    import jax
    import jax.numpy as jnp

    def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:  # noqa: ANN401 - any tree
        mesh = jax.sharding.Mesh(devices, ("i",))
        along = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))  # type: ignore[no-untyped-call]
        return jax.tree.map(lambda leaf: jax.device_put(jnp.stack([leaf] * len(devices)), along), x)

    if not hasattr(jax, "device_put_replicated"):
        jax.device_put_replicated = device_put_replicated
