"""Episodes of a learned policy, without pictures: what it earns, at its own cycle time or another, in time or late.

Episode i begins as `env.reset(seed=seed + i)` does, so that the same seeds compare policies on the same starts. Tasks
in closed form are played side by side in one compiled program, other environments one episode after another.

A delay of d environment steps at k steps for each cycle is d = q k + r. In each cycle the first r steps still apply the
action of q + 1 cycles ago, and the others that of q cycles ago; before the first arrives, it is zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import NDArray

from cycletime.agents.checks import check_counts
from cycletime.agents.networks import PolicyNetwork
from cycletime.duration import Duration, cycle_steps
from cycletime.errors import InputError
from cycletime.policies.watch import Act, Playback, WatchedEpisode
from cycletime.tasks.closed_form import ClosedFormTask, State
from cycletime.tasks.delays import delay_steps
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.spec import refuse_longer_than
from cycletime.training.worlds import ActionBounds, ClosedFormWorld, GymnasiumEnv, World, make_env, observation_size

MOST_EPISODES = 10_000_000
MOST_TOGETHER = 1024
"""Episodes that one program plays side by side."""


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    policy: SavedPolicy
    world: World
    dt: Duration
    delay: str | None = None
    """How late actions take effect, in whole environment steps; None or '0s' is in time."""
    episodes: int = 100
    seed: int = 0
    """Of the first episode; the others count up from it."""
    sampled: bool = False
    """Whether actions are drawn from the policy, as in training, instead of being its mean."""

    def __post_init__(self) -> None:
        check_counts(self, "episodes")
        if self.episodes > MOST_EPISODES:
            raise InputError(f"episodes is {self.episodes}: at most {MOST_EPISODES:,} are played.")
        check_counts(self, "seed", least=0)

    def play(self) -> EvaluatedEpisodes:
        self.policy.in_numpy()  # refuses what is not finite
        played = self._compiled(self.world) if isinstance(self.world, ClosedFormWorld) else self._stepped(self.world)
        finite = np.isfinite(played.returns)
        if not finite.all():
            first = int(np.argmin(finite))
            raise InputError(
                f"The return of the episode with seed {self.seed + first} is {played.returns[first]}: the policy meets "
                f"what it never saw in training at {self.policy.dt}, so try it nearer to that."
            )
        return played

    def _stepped(self, world: GymnasiumEnv) -> EvaluatedEpisodes:
        env = make_env(world, self.dt, delay=self.delay)
        try:
            self.policy.refuse_other_sizes(observation_size(env), ActionBounds.of(env).size, env)
            seen: list[WatchedEpisode] = []
            showing = Playback(
                env=env, act=self._act(), dt=self.dt, episodes=self.episodes, seed=self.seed, tell=seen.append
            )
            for _ in showing.moments():
                pass
        finally:
            env.close()
        numbers = [(each.total_reward, each.agent_steps, each.terminated) for each in seen]
        return EvaluatedEpisodes(*(np.array(column) for column in zip(*numbers, strict=True)))

    def _act(self) -> Act:
        """The policy in NumPy; episodes begin the same with noise and without."""
        policy, rng = self.policy.in_numpy(), np.random.default_rng([self.seed, 1]) if self.sampled else None

        def act(observation: NDArray[Any]) -> NDArray[Any]:
            try:
                return policy.act(observation, rng)
            except ValueError as error:
                raise InputError(f"The policy cannot act: {error}") from error

        return act

    def _compiled(self, world: ClosedFormWorld) -> EvaluatedEpisodes:
        task = world.task
        refuse_longer_than(task.time_limit, self.dt)
        self.policy.refuse_other_sizes(task.observation_size, task.action_size, world.name)
        late_steps = 0 if self.delay is None else delay_steps(self.delay, task.env_dt)[0]
        game = _EpisodeProgram(task, cycle_steps(self.dt, task.env_dt), late_steps, self.policy.network, self.sampled)
        seeds = np.arange(self.seed, self.seed + self.episodes)
        together = min(self.episodes, MOST_TOGETHER)
        program = jax.jit(jax.vmap(game.play, in_axes=(None, 0, 0)))
        parts = []
        for first in range(0, self.episodes, together):
            some = seeds[first : first + together]
            padded = np.pad(some, (0, together - len(some)), mode="edge")  # one shape, one compilation
            starts = [task.draw_start(np.random.default_rng(int(seed))) for seed in padded]
            keys = jax.vmap(jax.random.key)(jnp.asarray(padded, jnp.uint32))
            numbers = jnp.asarray(np.array(starts, np.float64), task.dtype)
            parts.append([np.asarray(each)[: len(some)] for each in program(self._weights(), numbers, keys)])
        returns, agent_steps, terminated = (np.concatenate(column) for column in zip(*parts, strict=True))
        return EvaluatedEpisodes(returns.astype(np.float64), agent_steps.astype(np.int64), terminated)

    def _weights(self) -> Mapping[str, Any]:
        bounds = {name: jnp.asarray(getattr(self.policy.bounds, name)) for name in ("centre", "half", "low", "high")}
        return {"layers": self.policy.network.layers, "log_std": self.policy.network.log_std, **bounds}


@dataclass(frozen=True, eq=False)
class EvaluatedEpisodes:
    returns: NDArray[np.float64]
    agent_steps: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    """Whether the task itself ended it, and not a time limit."""


class _EpisodePosition(NamedTuple):
    state: State
    queue: jax.Array
    """The last q + 2 actions, the oldest first."""
    total_reward: jax.Array
    agent_steps: jax.Array
    terminated: jax.Array
    truncated: jax.Array


@dataclass(frozen=True, eq=False)
class _EpisodeProgram:
    task: ClosedFormTask
    cycle_steps: int
    late_steps: int
    network: PolicyNetwork
    sampled: bool

    def play(
        self, weights: Mapping[str, Any], numbers: jax.Array, key: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        network = replace(self.network, layers=weights["layers"], log_std=weights["log_std"])

        def act(place: _EpisodePosition) -> jax.Array:
            shape = (self.task.action_size,)
            draw = jax.random.fold_in(key, place.agent_steps)
            noise = jax.random.normal(draw, shape) if self.sampled else jnp.zeros(shape)
            action = network.act(self.task.observe(place.state), noise)
            return jnp.clip(weights["centre"] + weights["half"] * action, weights["low"], weights["high"])

        zero = jnp.zeros((), self.task.dtype)
        whole_cycles, _ = divmod(self.late_steps, self.cycle_steps)
        start = _EpisodePosition(
            state=self.task.start(*numbers),
            queue=jnp.zeros((whole_cycles + 2, self.task.action_size), self.task.dtype),
            total_reward=zero,
            agent_steps=jnp.zeros((), jnp.int32),
            terminated=jnp.zeros((), jnp.bool),
            truncated=jnp.zeros((), jnp.bool),
        )
        end = lax.while_loop(
            lambda place: ~(place.terminated | place.truncated), lambda place: self._cycle(place, act(place)), start
        )
        return end.total_reward, end.agent_steps, end.terminated

    def _cycle(self, place: _EpisodePosition, action: jax.Array) -> _EpisodePosition:
        queue = jnp.concatenate([place.queue[1:], action[None].astype(self.task.dtype)])
        held = place._replace(queue=queue, agent_steps=place.agent_steps + 1)
        before_steps = self.late_steps % self.cycle_steps
        if not before_steps:
            return self._hold(held, queue[1], self.cycle_steps)
        held = self._hold(held, queue[0], before_steps)
        after = self._hold(held, queue[1], self.cycle_steps - before_steps)
        over = held.terminated | held.truncated
        kept: _EpisodePosition = jax.tree.map(lambda old, new: jnp.where(over, old, new), held, after)
        return kept

    def _hold(self, place: _EpisodePosition, action: jax.Array, env_steps: int) -> _EpisodePosition:
        step = self.task.cycle(place.state, action, env_steps)
        return place._replace(
            state=step.state,
            total_reward=place.total_reward + step.reward,
            terminated=step.terminated,
            truncated=step.truncated,
        )
