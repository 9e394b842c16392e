"""One Gymnasium environment or several copies behind one interface: rows of agent steps with their true successors.

Episodes have their numbers in the order in which those before them ended, and begin with seeds that follow from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from numpy.typing import NDArray

from cycletime.agents.exploration import CoherentNoise, check_cycle
from cycletime.errors import InputError
from cycletime.tasks.time_step import AnyEnv, step_duration
from cycletime.training.learning_curve import Episodes
from cycletime.training.worlds import ActionBounds, observation_size

_GREATEST = float(np.finfo(np.float32).max)


class StepResult(NamedTuple):
    successor: NDArray[np.float32]
    """S'; at an episode's end its last observation."""
    reward: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    env_steps: NDArray[np.int64]
    observation: NDArray[np.float32]
    """What the agent sees next; not yet of a new episode where those of all copies ended."""

    @classmethod
    def of_one(
        cls, successor: NDArray[np.float32], reward: SupportsFloat, terminated: bool, truncated: bool, env_steps: int
    ) -> StepResult:
        """The step of one copy, whose successor is [1, |S|]."""
        ends = np.array([terminated], np.bool_), np.array([truncated], np.bool_)
        return cls(successor, np.array([reward], np.float64), *ends, np.array([env_steps], np.int64), successor)

    @property
    def ended(self) -> NDArray[np.bool_]:
        return self.terminated | self.truncated


def adapt_env(env: AnyEnv) -> EnvAdapter:
    if isinstance(env, VectorEnv):
        return VectorEnvAdapter(env)
    if isinstance(env, gymnasium.Env):
        return SingleEnvAdapter(env)
    raise InputError(f"{env!r} is not an environment: give a gymnasium.Env or a gymnasium.vector.VectorEnv.")


def check_exploration_dt(env: AnyEnv, coherent: CoherentNoise | None) -> None:
    """Refuse noise for another cycle time than the environment's, where that one is known for sure."""
    if coherent is not None and isinstance(env, gymnasium.Env):
        try:
            step_duration(env, coherent.dt)
        except InputError:
            check_cycle(coherent, step_duration(env))


def episode_seed(seed: int, episode: int) -> int:
    """The seed that an episode is reset with: a function of the run's seed and the episode's number alone."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0])


class EnvAdapter(ABC):
    """An environment as the stepped loop uses it; spaces that the agents cannot use are refused."""

    num_envs = 1

    def __init__(self, env: AnyEnv) -> None:
        self.observation_size, self.bounds = observation_size(env), ActionBounds.of(env)

    @abstractmethod
    def begin(self, seed: int, episode: int) -> NDArray[np.float32]:
        """Begin the run's n-th episode, in several copies that and the following ones."""

    @abstractmethod
    def step(self, actions: NDArray[np.float32]) -> StepResult:
        """Take one step with the agent's actions, [num_envs, |A|]."""


class SingleEnvAdapter(EnvAdapter):
    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.env = env

    def begin(self, seed: int, episode: int) -> NDArray[np.float32]:
        seen, _ = self.env.reset(seed=episode_seed(seed, episode))
        observation = _as_float32([seen])
        if observation.shape != (1, self.observation_size):
            raise InputError(
                f"The observation has the shape {observation.shape[1:]}: its space says ({self.observation_size},)."
            )
        return observation

    def step(self, actions: NDArray[np.float32]) -> StepResult:
        observation, reward, terminated, truncated, info = self.env.step(self.bounds.reach(actions[0]))
        env_steps = max(1, info.get("cycle_steps", 1))
        return StepResult.of_one(_as_float32([observation]), reward, terminated, truncated, env_steps)


class VectorEnvAdapter(EnvAdapter):
    """One of Gymnasium's own vector environments that leaves resets to its user.

    A copy's next episode begins at once; where those of all copies end together, the loop begins the next ones.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(env.unwrapped, SyncVectorEnv | AsyncVectorEnv) or mode != AutoresetMode.DISABLED:
            raise InputError(
                f"{env}, whose autoreset_mode is {mode}, is none of Gymnasium's own that leave resets to others: make "
                "it with vectorization_mode='sync' and vector_kwargs={'autoreset_mode': "
                "gymnasium.vector.AutoresetMode.DISABLED}."
            )
        super().__init__(env)
        self.env, self.num_envs = env, env.num_envs

    def begin(self, seed: int, episode: int) -> NDArray[np.float32]:
        self._seed, self._begun = seed, episode
        every = np.ones(self.num_envs, np.bool_)
        observation, _ = self.env.reset(seed=self._next_seeds(every))  # type: ignore[arg-type]  # one for each
        return _as_float32(observation)

    def step(self, actions: NDArray[np.float32]) -> StepResult:
        seen, reward, terminated, truncated, infos = self.env.step(self.bounds.reach(actions))
        observation = successor = _as_float32(seen)
        terminated, truncated = np.array(terminated, np.bool_), np.array(truncated, np.bool_)
        ended = terminated | truncated
        if ended.any() and not ended.all():
            options = {"reset_mask": ended.copy()}
            fresh, _ = self.env.reset(seed=self._next_seeds(ended), options=options)  # type: ignore[arg-type]
            observation = np.where(ended[:, None], _as_float32(fresh), observation)
        every = np.ones(self.num_envs, np.int64)
        reports = infos.get("_cycle_steps", every.astype(np.bool_))  # of some copies, where they differ
        env_steps = np.where(reports, np.maximum(infos.get("cycle_steps", every), 1), every).astype(np.int64)
        return StepResult(successor, np.array(reward, np.float64), terminated, truncated, env_steps, observation)

    def _next_seeds(self, chosen: NDArray[np.bool_]) -> list[int | None]:
        """For the copies that are chosen, the seeds of the run's next episodes."""
        seeds: list[int | None] = [None] * self.num_envs
        for copy in np.flatnonzero(chosen).tolist():
            seeds[copy] = episode_seed(self._seed, self._begun)
            self._begun += 1
        return seeds


def _as_float32(observations: Any) -> NDArray[np.float32]:  # noqa: ANN401 - whatever an environment gives
    """A copy, since environments may use their arrays again while JAX still reads them."""
    with np.errstate(over="ignore"):  # an infinity is refused later, with the step at which it came
        return np.array(observations, np.float32)


class Counters:
    def __init__(self, num_envs: int, env_steps: int = 0, agent_steps: int = 0, episodes: int = 0) -> None:
        self.env_steps, self.agent_steps, self.episodes = env_steps, agent_steps, episodes
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        self._steps = np.zeros(num_envs, np.int64)
        self._ended: list[tuple[int, int, float, int]] = []

    def count(self, result: StepResult) -> None:
        # Python's sum of a list takes a tenth of NumPy's of an array where there is one copy.
        self.env_steps += sum(result.env_steps.tolist())
        self.agent_steps += len(self._steps)
        self._returns += result.reward
        self._lengths += result.env_steps
        self._steps += 1
        for copy, ended in enumerate(result.ended.tolist()):
            if not ended:
                continue
            self._ended.append((self.env_steps, self.agent_steps, float(self._returns[copy]), int(self._lengths[copy])))
            self._returns[copy] = self._lengths[copy] = self._steps[copy] = 0
            self.episodes += 1

    @property
    def current_steps(self) -> int:
        """The environment steps of the current episode, of the longest among the copies."""
        return int(self._lengths.max())

    def pop_episodes(self) -> Episodes:
        ended, self._ended = self._ended, []
        return Episodes.of(ended)

    def check_finite(self, **rows: NDArray[Any]) -> None:
        """Refuse what is not finite in float32, before it becomes part of the weights."""
        for name, row in rows.items():
            # The sum of squares is one call, so that few rows are looked at number by number.
            if np.vdot(row, row) <= _GREATEST or (np.abs(row) <= _GREATEST).all():
                continue
            copy = int(np.flatnonzero(~(np.abs(row.reshape(len(row), -1)) <= _GREATEST).all(axis=1))[0])
            who, episode = (f" of copy {copy}", "its episode") if len(row) > 1 else ("", f"episode {self.episodes + 1}")
            remedy = "the environment must give finite numbers that fit float32"
            if name == "action":
                remedy = "learning diverged, so try a smaller learning rate"
            raise InputError(
                f"The {name}{who} is {row[copy].tolist()} at agent step {self._steps[copy] + 1} of {episode}: {remedy}."
            )
