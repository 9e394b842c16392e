"""What MuJoCo Playground's environments pay for the same held actions, before and after a transfer.

Each task's configuration is written as JSON, carried to half and twice its cycle time by `cycletime transfer`, and
played from the same state with the same actions as a function of time: sines, held for the longest of the cycles, on
the same physics. Commands are held, observations have no noise, nothing kicks. Compared are terms and not a total that
the task may clip: a rate by what a second pays, a landing or a fall by what one pays. How many landings a play has
depends on how often contacts are looked at, and a robot that lies pays for its fall in every step unless the episode
ends: what events pay in a play is shown, and not judged. Fixed before the plays:

A reward is looked at where a cycle ends, so that another cycle time looks at other instants of the same motion. How
much that alone changes a term is known from the task's own play: the mean of every second reward against the mean of
all. A play has 200 of the task's own cycles, doubled while that is more than half of the tolerance, 800 at most. To
first order it is dt (r(T) - r(0)) / 2T of a rate r that is smooth, so 200 cycles do for one that changes by twice its
mean; one that lives from what follows each switch of an action (a velocity, a torque) keeps it however long the play.
Such a term is judged where all three look, at the ends of the longest cycles, and its whole sum is shown.

Prints the terms of each task, and fails where one differs by more than 1 %. Run by ./check playground.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
from mujoco import mjx
from mujoco_playground import registry
from mujoco_playground._src import mjx_env
from mujoco_playground.config import dm_control_suite_params, locomotion_params, manipulation_params

from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.configuration import read_configuration

TASKS = ("CartpoleBalance", "CartpoleSwingup", "WalkerStand", "PandaPickCube", "Go1JoystickFlatTerrain")
PHYSICS_S = {"CartpoleBalance": 0.005, "CartpoleSwingup": 0.005, "Go1JoystickFlatTerrain": 0.005}
"""Steps of the physics of which half a cycle has a whole number, where the task's own has none."""
OWN_CYCLES, MOST_CYCLES = 200, 800
TOLERANCE = 0.01
EVENTS = ("termination", "feet_air_time", "feet_height")
SWITCHES = ("action_rate",)
"""Paid where an action is another than the last: of held actions as often at each cycle time."""
LANDED_S = 0.3


@jax.jit
def _substeps(model: mjx.Model, data: mjx.Data, action: jax.Array, count: int) -> mjx.Data:
    return jax.lax.fori_loop(0, count, lambda _, now: mjx.step(model, now.replace(ctrl=action)), data)


def share_physics() -> None:
    """Compile the physics once for all cycle times of a task, which is nearly all there is to compile."""
    mjx_env.step = lambda model, data, action, n_substeps=1: _substeps(model, data, action, n_substeps)
    mjx.forward = jax.jit(mjx.forward)


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
    env["action_repeat"] = trainer.get("action_repeat", 1)  # Playground's trainer takes its own
    if "noise_config" in env:
        env["noise_config"]["level"] = 0.0
    return {"env": env, "ppo": trainer}


def carried(config: dict[str, Any], dt_s: float) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "config.json"
        file.write_text(json.dumps(config))
        documents = carry_configuration(read_configuration(file), dt_s).documents()
        new: dict[str, Any] = documents[file]
        return new


class Play:
    """A task at one cycle time, played on and on."""

    def __init__(self, name: str, config: dict[str, Any], hold_s: float) -> None:
        settings = registry.get_default_config(name)
        with settings.unlocked():
            settings.update(config["env"])
            settings.impl = "jax"
        self.env = registry.load(name, config=settings)
        self.dt, self.hold_s = config["env"]["ctrl_dt"], hold_s
        assert abs(self.env.dt - self.dt) < 1e-9, (self.env.dt, self.dt)
        self.per_hold = round(hold_s / self.dt)
        self.scale = config["ppo"].get("reward_scaling", 1.0)
        self.weights = config["env"].get("reward_config", {}).get("scales", {})
        self.state = self._with_command(self.env.reset(jax.random.PRNGKey(1)))
        # Steps write into these.
        self.begun = self.state.replace(info=dict(self.state.info), metrics=dict(self.state.metrics))
        self.rewards: dict[str, list[float]] = {}

    def _with_command(self, state: Any) -> Any:  # noqa: ANN401 - untyped
        """One command throughout, where there are commands: a task draws another after a while, and after a fall."""
        if "command" in state.info:
            state.info["command"] = jnp.array([0.5, 0.1, 0.2])
            state.info["steps_until_next_cmd"] = jnp.array(10**6, jnp.int32)
        return state

    def _action(self, hold: int) -> jax.Array:
        size = self.env.action_size
        share = np.arange(size) / size
        period = 25 * self.hold_s * (1 + share)
        return jnp.asarray(0.3 * np.sin(2 * np.pi * (hold * self.hold_s / period + share)), jnp.float32)

    def paid(self, state: Any) -> dict[str, float]:  # noqa: ANN401 - untyped
        """By term, what the agent is paid for one step."""
        terms = {f"reward/{term}" for term in self.weights} & {*state.metrics}
        if terms:  # weighted, and multiplied by the cycle time as a whole
            return {term[7:]: float(state.metrics[term]) * self.dt * self.scale for term in sorted(terms)}
        if self.weights:
            return {
                term: float(state.metrics[term]) * weight * self.scale for term, weight in sorted(self.weights.items())
            }
        return {"reward": float(state.reward) * self.scale}

    def go_to(self, holds: int) -> None:
        done = len(next(iter(self.rewards.values()), []))
        for number in range(done, holds * self.per_hold):
            self.state = self._with_command(self.env.step(self.state, self._action(number // self.per_hold)))
            for term, value in self.paid(self.state).items():
                self.rewards.setdefault(term, []).append(value)

    def per_second(self, term: str, every: int = 1) -> float:
        """What a second pays, looking at every so many-th step only."""
        seen = self.rewards[term][every - 1 :: every]
        return sum(seen) / len(seen) / float(self.dt)

    def events(self) -> dict[str, float]:
        """What one fall pays, and one landing of all feet after the same time in the air."""
        if "termination" not in self.weights:
            return {}
        data, action = self.begun.data, self._action(0)
        fallen = data.replace(qpos=data.qpos.at[3:7].set(jnp.array([0.0, 1.0, 0.0, 0.0])))
        found = {"one termination": self.paid(self._one_step(fallen, action))["termination"]}
        if "feet_air_time" in self.weights:
            info = {
                "feet_air_time": jnp.full(4, LANDED_S - self.dt),
                "last_contact": jnp.ones(4, bool),
                "swing_peak": jnp.full(4, 0.3),
            }
            landed = self.paid(self._one_step(data, action, info))
            found |= {f"one landing: {term}": landed[term] for term in ("feet_air_time", "feet_height")}
        return found

    def _one_step(self, data: mjx.Data, action: jax.Array, info: dict[str, jax.Array] | None = None) -> Any:  # noqa: ANN401 - untyped
        info = {**self.begun.info, **(info or {})}
        state = self.begun.replace(data=data, info=info, metrics=dict(self.begun.metrics))
        return self.env.step(state, action)


class Row(NamedTuple):
    term: str
    how: str
    paid: list[float]
    """At the task's own cycle time, at half and at twice."""
    sampling: float = 0.0
    judged: bool = True

    def differences(self) -> list[float]:
        own, *others = self.paid
        return [other / own - 1 for other in others]

    @property
    def wrong(self) -> bool:
        return self.judged and not all(abs(each) <= TOLERANCE for each in self.differences())

    def __str__(self) -> str:
        half, twice = (f"{each:+10.3%}" for each in self.differences())
        said = "differs" if self.wrong else "same" if self.judged else "not judged"
        return f"  {self.term:28} {self.how:16} {self.paid[0]:12.6g} {half} {twice} {self.sampling:10.3%}  {said}"


def sampling(own: Play, term: str) -> float:
    """How much looking at every second step only changes what the task's own play pays."""
    return abs(own.per_second(term, 2) / own.per_second(term) - 1)


def compare(name: str) -> list[Row]:
    config = configuration(name)
    own_s = config["env"]["ctrl_dt"]
    repeat = config["env"]["action_repeat"]
    half, twice = (carried(config, own_s * factor * repeat) for factor in (0.5, 2.0))
    own = Play(name, config, 2 * own_s)
    cycles = OWN_CYCLES
    while True:
        own.go_to(cycles // 2)
        rates = [term for term, values in own.rewards.items() if any(values) and term not in (*EVENTS, *SWITCHES)]
        if cycles == MOST_CYCLES or all(sampling(own, term) <= TOLERANCE / 2 for term in rates):
            break
        cycles *= 2
    plays = [own, Play(name, half, 2 * own_s), Play(name, twice, 2 * own_s)]
    for play in plays[1:]:
        play.go_to(cycles // 2)
    rows = []
    for term in rates:
        share = sampling(own, term)
        smooth = share <= TOLERANCE / 2
        rows.append(Row(term, "per second", [play.per_second(term) for play in plays], share, judged=smooth))
        if not smooth:
            rows.append(Row(term, "at common ends", [play.per_second(term, play.per_hold) for play in plays]))
    rows += [
        Row(term, "per second", [play.per_second(term) for play in plays], judged=term in SWITCHES)
        for term in (*SWITCHES, *EVENTS)
        if any(own.rewards.get(term, ()))
    ]
    events = [play.events() for play in plays]
    rows += [Row(event, "per event", [each[event] for each in events]) for event in events[0]]
    apart = [float(jnp.abs(play.state.data.qpos - own.state.data.qpos).max()) for play in plays[1:]]
    default = registry.get_default_config(name).sim_dt
    physics = config["env"]["sim_dt"]
    print(
        f"{name}: {1000 * own_s:g} ms, {cycles} cycles ({cycles * own_s:g} s), physics {1000 * physics:g} ms"
        + (f" (the task's own {1000 * default:g} ms has no whole number in half a cycle)" if physics != default else "")
        + f"; joints apart at the end by {apart[0]:.2g} and {apart[1]:.2g}"
    )
    for row in rows:
        print(row, flush=True)
    if not rows:
        raise SystemExit(f"{name} pays nothing for these actions, so that there is nothing to compare.")
    return rows


def main(names: list[str]) -> int:
    share_physics()
    print(f"  {'term':28} {'compared':16} {'own':>12} {'half':>10} {'twice':>10} {'sampling':>10}")
    rows = [row for name in names or TASKS for row in compare(name)]
    judged = [row for row in rows if row.judged]
    print(f"{sum(not row.wrong for row in judged)} of {len(judged)} terms pay the same within {TOLERANCE:.0%}.")
    return int(any(row.wrong for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
