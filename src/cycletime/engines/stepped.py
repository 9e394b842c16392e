"""The engine for Gymnasium environments: the stepped loop.

Checkpoints fall on the ends of episodes, and episode n begins with a seed that follows from (seed, n). Whether a
resumed run is identical then hangs on the environment: a reset with a seed must determine all that follows. That is
tried out before a run goes on, with a used environment and a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration, cycle_steps
from cycletime.engines.engine import Arrays, Step
from cycletime.loops.action_bounds import ActionBounds
from cycletime.loops.compilation_cache import keep_compiled_programs
from cycletime.runs.spec import RunSpec
from cycletime.runs.trees import named_arrays, tree_like
from cycletime.runs.worlds import make_env

if TYPE_CHECKING:
    import gymnasium

    from cycletime.loops import SteppedLoop

TRIED_STEPS = 50
"""The agent steps that a used and a fresh environment are compared over."""
_SIMULATORS = {
    "cycletime.tasks.closed_form_env": ("closed form", ()),
    "cycletime.tasks.bullet": ("PyBullet", ("pybullet",)),
    "mujoco": ("MuJoCo", ("gymnasium", "mujoco")),
}
"""By a part of the environment's module: what simulates it, and the packages in which that stands."""


@dataclass(frozen=True)
class SteppedEngine:
    """A run on an environment."""

    spec: RunSpec

    def __post_init__(self) -> None:
        """Refuse what this engine cannot compute."""
        _ = self.loop

    @cached_property
    def env(self) -> gymnasium.Env[Any, Any]:
        """The environment at the run's cycle time."""
        return make_env(self.spec.world, self.spec.dt)

    @cached_property
    def loop(self) -> SteppedLoop:
        """Algorithm 1."""
        from cycletime.loops import SteppedLoop

        return SteppedLoop(env=self.env, agent=self.spec.bound_agent, env_steps=self.spec.env_steps)

    @property
    def where(self) -> str:
        """Where results come from."""
        return self._simulator[0]

    @property
    def simulators(self) -> tuple[str, ...]:
        """The packages that simulate the environment."""
        return self._simulator[1]

    @property
    def _simulator(self) -> tuple[str, tuple[str, ...]]:
        module = type(self.env.unwrapped).__module__
        return next((known for part, known in _SIMULATORS.items() if part in module), ("Gymnasium", ("gymnasium",)))

    @cached_property
    def env_dt(self) -> Duration:
        """The environment's time step."""
        return Duration(self.env.get_wrapper_attr("env_dt"))

    @property
    def cycle_steps(self) -> int:
        """The environment steps of a cycle."""
        return cycle_steps(self.spec.dt, self.env_dt)

    @property
    def bounds(self) -> ActionBounds:
        """The actions that the environment takes."""
        return ActionBounds.of(self.env)

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What the environment cannot promise."""
        fresh = make_env(self.spec.world, self.spec.dt)
        try:
            same = begins_alike(self.env, fresh, self.spec.seed)
        finally:
            fresh.close()
        return () if same else (f"a reset of {self.spec.world.name} with a seed does not determine the episode",)

    def steps(self, arrays: Arrays | None) -> Iterator[Step]:
        """Train, from the start or from the arrays of a position."""
        keep_compiled_programs()  # before the example of a position is computed, which else takes seconds
        position = None if arrays is None else tree_like(self.loop.start(self.spec.seed), arrays)
        for chunk in self.loop.run(self.spec.seed, position):
            yield Step(
                env_steps=chunk.env_steps,
                agent_steps=chunk.position.agent_steps,
                episodes=chunk.episodes,
                metrics=chunk.metrics,
                psi=chunk.position.psi,
                position=chunk.position,
                exact=chunk.position.exact,
                is_last=chunk.finished is not None,
            )

    def arrays(self, step: Step) -> dict[str, NDArray[Any]]:
        """A step's position as arrays."""
        return named_arrays(step.position)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


def begins_alike(used: gymnasium.Env[Any, Any], fresh: gymnasium.Env[Any, Any], seed: int) -> bool:
    """Whether an environment that has been used gives the same bits after a reset with a seed as a fresh one."""
    rng = np.random.default_rng(seed)
    bounds = ActionBounds.of(used)
    actions = bounds.reach(rng.uniform(-1, 1, (TRIED_STEPS, bounds.size)))
    _trace(used, int(rng.integers(2**32)), actions[::-1])
    seed_now = int(rng.integers(2**32))
    return _trace(used, seed_now, actions) == _trace(fresh, seed_now, actions)


def _trace(env: gymnasium.Env[Any, Any], seed: int, actions: NDArray[Any]) -> list[bytes]:
    observation, _ = env.reset(seed=seed)
    seen = [np.asarray(observation).tobytes()]
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append(np.asarray(observation).tobytes() + np.float64(reward).tobytes())
        if terminated or truncated:
            break
    return seen
