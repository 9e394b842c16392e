# mypy: disable-error-code="import-not-found"
"""A task of Playground at a cycle time: what its configuration counts in steps is set in seconds.

The same for all arms. The task's code is used as released; what counts in steps there stays so (`Task.fixed_steps`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.robots.trial import Task


def config_changes(task: Task, dt_ms: float, shipped: Mapping[str, Any], rewards: str = "shipped") -> dict[str, Any]:
    """What is set in the configuration that Playground ships, by dotted name."""
    rho = task.ratio(dt_ms)
    changes: dict[str, Any] = {
        "ctrl_dt": dt_ms / 1000,
        "sim_dt": task.sim_dt_ms / 1000,
        "episode_length": _whole(shipped["episode_length"] / rho, f"{task.name}'s episode_length"),
        "impl": "jax",
    }
    if task.increments:
        changes["action_scale"] = shipped["action_scale"] * float(rho)
    for name in task.step_ranges:
        low, high = (max(1, round(limit / rho)) for limit in shipped[name])
        changes[name] = [low, max(high, low + 1)]
    if rewards == "corrected":
        scales = shipped["reward_config"]["scales"]
        for term in (*task.events, *task.differences):
            changes[f"reward_config.scales.{term}"] = scales[term] / float(rho)
    return changes


def load_environment(task: Task, dt_ms: float, rewards: str = "shipped") -> Any:  # noqa: ANN401
    """The environment, at a cycle time. Needs Playground."""
    from mujoco_playground import registry

    config = registry.get_default_config(task.name)
    for name, value in config_changes(task, dt_ms, config.to_dict(), rewards).items():
        *path, last = name.split(".")
        table = config
        for part in path:
            table = table[part]
        table[last] = value
    return registry.load(task.name, config=config)


def with_state_alone(env: Any) -> Any:  # noqa: ANN401
    """The environment with the policy's part of its observation alone, since brax's SAC takes no dictionaries."""
    from mujoco_playground import wrapper

    class StateAlone(wrapper.Wrapper):  # type: ignore[misc]
        def reset(self, rng: Any) -> Any:  # noqa: ANN401
            state = self.env.reset(rng)
            return state.replace(obs=state.obs["state"])

        def step(self, state: Any, action: Any) -> Any:  # noqa: ANN401
            state = self.env.step(state, action)
            return state.replace(obs=state.obs["state"])

        @property
        def observation_size(self) -> int:
            return int(self.env.observation_size["state"][0])

    return StateAlone(env) if hasattr(env.observation_size, "keys") else env


def _whole(value: Any, what: str) -> int:  # noqa: ANN401
    if value != int(value):
        raise ValueError(f"{what} would be {float(value)} steps: choose a cycle time that divides it.")
    return int(value)
