"""The engine for Gymnasium environments: the stepped loop.

Checkpoints fall on moments at which the episodes of all environments have ended, and episode n begins with a seed that
follows from (seed, n). Whether a resumed run is identical then hangs on whether a reset with a seed determines all that
follows; that is tried out before a run goes on, with a used environment and a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cycletime.duration import Duration, cycle_steps, refuse_longer_than
from cycletime.errors import RunError
from cycletime.training.checkpoints import named_arrays, tree_from_arrays
from cycletime.training.engine import Arrays, Chunk, Engine, EnvInfo, RunBatch
from cycletime.training.machine import check_device, keep_compiled_programs
from cycletime.training.process import HEARTBEAT
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ActionBounds, make_env

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.vector import SyncVectorEnv

    from cycletime.training.stepped_loop import SteppedChunk, SteppedLoop

TRIED_STEPS = 50
"""The agent steps that a used and a fresh environment are compared over."""
_SIMULATORS = {
    "cycletime.tasks.bullet": ("PyBullet", ("pybullet", "numpy")),
    "mujoco": ("MuJoCo", ("gymnasium", "mujoco", "numpy")),
}
"""By a part of the name of the environment's module, or its model's: the simulator and the packages that contain it."""


@dataclass(frozen=True)
class SteppedEngine(Engine):
    name: ClassVar[str] = "stepped"

    def make_batch(self, specs: Sequence[RunSpec]) -> SteppedBatch:
        spec = self.single_run(specs)
        check_device(spec.engine.device)
        return SteppedBatch(spec)


@dataclass(frozen=True)
class SteppedBatch(RunBatch):
    spec: RunSpec

    def __post_init__(self) -> None:
        (info,) = self.env_infos
        if info.longest_episode_steps is not None:
            refuse_longer_than(info.env_dt * info.longest_episode_steps, self.spec.dt)
        _ = self.loop

    @cached_property
    def env(self) -> gymnasium.Env[Any, Any]:
        """The environment; with several, one more of the same kind."""
        return make_env(self.spec.world, self.spec.dt)

    @cached_property
    def _several(self) -> SyncVectorEnv[Any, Any]:
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        make = partial(make_env, self.spec.world, self.spec.dt)
        return SyncVectorEnv([make] * self.spec.num_envs, autoreset_mode=AutoresetMode.DISABLED)

    @cached_property
    def loop(self) -> SteppedLoop:
        from cycletime.training.stepped_loop import SteppedLoop

        env = self.env if self.spec.num_envs == 1 else self._several
        return SteppedLoop(env=env, agent=self.spec.bound_agent, env_steps=self.spec.env_steps)

    @cached_property
    def env_infos(self) -> tuple[EnvInfo]:  # type: ignore[override]
        from cycletime.tasks.timing_contract import timing_contract

        provenance, simulators = simulator_of(self.env)
        env_dt = Duration.of_seconds(self.env.get_wrapper_attr("env_dt"))
        info = EnvInfo(
            provenance=provenance,
            env_dt=env_dt,
            cycle_steps=cycle_steps(self.spec.dt, env_dt),
            longest_episode_steps=self.env.spec.max_episode_steps if self.env.spec else None,
            bounds=ActionBounds.of(self.env),
            contract=timing_contract(self.env, env_dt),
            simulators=simulators,
            # A hash of what a fresh environment does; one that changes only after many episodes is not found so.
            fingerprint=lambda: sha256(b"".join(self._fresh_trace)).hexdigest(),
            remarks=lambda: self._remarks,
        )
        return (info,)

    @cached_property
    def _remarks(self) -> tuple[str, ...]:
        trace_env(self.env, self.spec.seed + 1)  # so that it has been used
        if trace_env(self.env, self.spec.seed) == self._fresh_trace:
            return ()
        return (f"a reset of {self.spec.world.name} with a seed does not determine the episode",)

    @cached_property
    def _fresh_trace(self) -> list[bytes]:
        with closing(make_env(self.spec.world, self.spec.dt)) as fresh:
            return trace_env(fresh, self.spec.seed)

    def chunks(self, starts: Mapping[int, Arrays | None]) -> Iterator[Mapping[int, Chunk | RunError]]:
        for arrays in starts.values():
            keep_compiled_programs()  # before the example of a position is computed, which else takes seconds
            position = None if arrays is None else tree_from_arrays(self.loop.start(self.spec.seed), arrays)
            yield from ({0: as_chunk(chunk)} for chunk in self.loop.run(self.spec.seed, position))

    def close(self) -> None:
        self.env.close()
        if "_several" in vars(self):
            self._several.close()


def simulator_of(env: gymnasium.Env[Any, Any]) -> tuple[str, tuple[str, ...]]:
    """The simulator of an environment, and the packages that contain it."""
    from cycletime.tasks.closed_form_env import ClosedFormEnv

    world = env.unwrapped
    if isinstance(world, ClosedFormEnv):
        return world.task.where, ()
    # An environment of MuJoCo's has its model, whatever module it comes from.
    modules = f"{type(world).__module__} {type(getattr(world, 'model', None)).__module__}"
    known = (simulator for part, simulator in _SIMULATORS.items() if part in modules)
    return next(known, ("Gymnasium", ("gymnasium", "numpy")))


def as_chunk(chunk: SteppedChunk) -> Chunk:
    position = chunk.position
    return Chunk(
        env_steps=chunk.env_steps,
        agent_steps=position.agent_steps,
        episodes=chunk.episodes,
        metrics=chunk.metrics,
        arrays=lambda: named_arrays(position),
        agent_state=lambda: position.psi,
        exact=position.exact,
        is_last=chunk.finished is not None,
    )


def trace_env(env: gymnasium.Env[Any, Any], seed: int) -> list[bytes]:
    """The observations and rewards after a reset with a seed, for actions drawn with the same seed."""
    bounds, rng = ActionBounds.of(env), np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    seen = [np.asarray(observation).tobytes()]
    for action in bounds.reach(rng.uniform(-1, 1, (TRIED_STEPS, bounds.size))):
        observation, reward, terminated, truncated, _ = env.step(action)
        HEARTBEAT.tick()
        seen.append(np.asarray(observation).tobytes() + np.float64(reward).tobytes())
        if terminated or truncated:
            break
    return seen
