"""What MuJoCo Playground's environments pay per second for the same held actions, before and after a transfer.

Each task's configuration is written as JSON, carried to half and twice its cycle time by `cycletime transfer`, and
played from the same state with the same actions, each held for the longest of the cycles, on the same physics. Prints
one JSON object for each task, and fails where a total or an event differs by more than 1 %. Run by ./check playground:
each cycle time of a task compiles for a minute or two.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
from mujoco_playground import registry
from mujoco_playground.config import dm_control_suite_params, locomotion_params, manipulation_params

from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.configuration import read_configuration

TASKS = ("CartpoleBalance", "CartpoleSwingup", "WalkerStand", "Go1JoystickFlatTerrain", "PandaPickCube")
PHYSICS_S = {
    "CartpoleBalance": 0.005,
    "CartpoleSwingup": 0.005,
    "WalkerStand": 0.0025,
    "Go1JoystickFlatTerrain": 0.005,
}
"""Steps of the physics of which half a cycle has a whole number, where the task's own has none."""
SECONDS = 12.0
"""Long enough that it matters little at which end of a cycle a reward is looked at."""
MOST = 0.01


def plain(config: Any) -> dict[str, Any]:  # noqa: ANN401 - untyped
    data: dict[str, Any] = json.loads(config.to_json_best_effort())
    return data


def configuration(name: str) -> dict[str, Any]:
    for module in (dm_control_suite_params, locomotion_params, manipulation_params):
        try:
            trainer = plain(module.brax_ppo_config(name))
            break
        except (AssertionError, KeyError, ValueError):
            continue
    env = plain(registry.get_default_config(name))
    env["sim_dt"] = PHYSICS_S.get(name, env["sim_dt"])
    return {"env": env, "ppo": trainer}


def carried(config: dict[str, Any], dt_s: float) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(config))
        documents = carry_configuration(read_configuration(file), dt_s).documents()
        new: dict[str, Any] = documents[file]
        return new


def make(name: str, settings: dict[str, Any]) -> Any:  # noqa: ANN401 - untyped
    config = registry.get_default_config(name)
    flat: dict[str, Any] = {}

    def flatten(values: dict[str, Any], prefix: str) -> None:
        for key, value in values.items():
            if isinstance(value, dict):
                flatten(value, f"{prefix}{key}.")
            elif isinstance(value, int | float) and not isinstance(value, bool):
                flat[prefix + key] = value

    flatten(settings, "")
    for key, value in flat.items():
        node = config
        *branches, leaf = key.split(".")
        for branch in branches:
            node = node[branch]
        if leaf in node and node[leaf] is not None:
            with node.unlocked():
                node[leaf] = value
    if "impl" in config:
        config.impl = "jax"
    return registry.load(name, config=config)


def play(name: str, config: dict[str, Any], longest_s: float) -> dict[str, float]:
    """By reward term, what a second pays; of an episode's end what it pays once."""
    env = make(name, config["env"])
    dt = config["env"]["ctrl_dt"]
    assert abs(env.dt - dt) < 1e-9, (env.dt, dt)
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    state = reset(jax.random.PRNGKey(1))
    scale = config["ppo"]["reward_scaling"]
    held = round(longest_s / dt)
    steps = round(SECONDS / longest_s) * held
    key = jax.random.PRNGKey(2)
    actions = 0.3 * jax.random.uniform(key, (steps // held, env.action_size), minval=-1.0, maxval=1.0)
    total, terms = 0.0, dict[str, float]()
    with_dt = bool({"termination", "action_rate"} & {*config["env"].get("reward_config", {}).get("scales", {})})
    for number in range(steps):
        state = step(state, actions[number // held])
        total += float(state.reward) * scale
        for term, value in state.metrics.items():
            if term.startswith("reward/"):
                terms[term] = terms.get(term, 0.0) + float(value) * (dt if with_dt else 1.0) * scale
    seconds = steps * dt
    paid = {"total": total / seconds, **{term: value / seconds for term, value in terms.items() if value}}
    if "termination" in config["env"].get("reward_config", {}).get("scales", {}):
        fallen = state.replace(data=state.data.replace(qpos=state.data.qpos.at[3:7].set(jnp.array([0.0, 1.0, 0, 0]))))
        paid["one termination"] = float(step(fallen, actions[0]).metrics["reward/termination"]) * dt * scale
    return paid


def main(names: list[str]) -> int:
    wrong = 0
    for name in names or list(TASKS):
        config = configuration(name)
        own = config["env"]["ctrl_dt"]
        paid = {"own": play(name, config, 2 * own)}
        for label, factor in (("half", 0.5), ("twice", 2.0)):
            repeat = config["ppo"].get("action_repeat", 1)
            config["env"]["action_repeat"] = repeat  # Playground's trainer takes its own
            paid[label] = play(name, carried(config, own * factor * repeat), 2 * own)
        print(json.dumps({"task": name, "paid": paid}), flush=True)
        wrong += sum(
            abs(paid[label][term] / paid["own"][term] - 1) > MOST
            for label in ("half", "twice")
            for term in ("total", "one termination")
            if paid["own"].get(term)
        )
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
