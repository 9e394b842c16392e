"""Episodes of a learned policy, without pictures: what it earns, at its own cycle time or another, in time or late.

Episode i begins as `env.reset(seed=seed + i)` does, so that the same seeds compare policies on the same starts.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import numpy as np

from cycletime.agents.checks import check_counts
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.policies.watch import Playback, WatchedEpisode, act_of
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.worlds import ActionBounds, World, make_env, observation_size

MOST_EPISODES = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    policy: SavedPolicy
    world: World
    dt: Duration
    delay: str | None = None
    """How late actions take effect, in whole environment steps; None or '0s' is in time."""
    episodes: int = 100
    seed: int = 0
    sampled: bool = False
    """Whether actions are drawn from the policy, as in training, instead of being its mean."""

    def __post_init__(self) -> None:
        check_counts(self, "episodes")
        if self.episodes > MOST_EPISODES:
            raise InputError(f"episodes is {self.episodes}: at most {MOST_EPISODES:,} are played.")
        check_counts(self, "seed", least=0)

    def play(self) -> list[WatchedEpisode]:
        act = act_of(self.policy, self.seed, sampled=self.sampled)
        with closing(make_env(self.world, self.dt, delay=self.delay)) as env:
            self.policy.refuse_other_sizes(observation_size(env), ActionBounds.of(env).size, self.world.name)
            seen: list[WatchedEpisode] = []
            for _ in Playback(
                env=env, act=act, dt=self.dt, episodes=self.episodes, seed=self.seed, tell=seen.append
            ).moments():
                pass
        for each in seen:
            if not np.isfinite(each.total_reward):
                why = f"the policy meets what it never saw in training at {self.policy.dt}, so try it nearer to that"
                episode = f"The return of the episode with seed {self.seed + each.number}"
                raise InputError(f"{episode} is {each.total_reward}: {why}.")
        return seen
