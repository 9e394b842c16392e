"""Vector environments: each copy goes as a single CycleTime would, also when episodes end in the middle of holds."""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.tasks.cycle_time import CycleTime

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # other processes cannot import a test
CLOCK = ("env_steps", "agent_steps", "elapsed_s", "cycle_steps")
MODES = list(AutoresetMode)
SEEDS = (10, 11, 12)


class Drift(gym.Env[Any, Any]):
    """Sums the actions from a random start; terminates beyond 10, is truncated after ``longest`` steps."""

    observation_space = spaces.Dict(at=spaces.Box(-np.inf, np.inf, (1,), np.float64), age=spaces.Discrete(1000))
    action_space = spaces.Discrete(4)
    dt = 0.002

    def __init__(self, longest: int = 11) -> None:
        self.longest = longest

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.at, self.age = self.np_random.uniform(0, 5), 0
        return self._observe(), {"began": self.at}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        self.at, self.age = self.at + int(action) / 2, self.age + 1
        info = {"at": self.at, "deep": {"age": self.age}, **({"late": 1} if self.age > 3 else {})}
        return self._observe(), self.at, self.at > 10, self.age >= self.longest, info

    def _observe(self) -> dict[str, Any]:
        return {"at": np.array([self.at]), "age": self.age}


def single(time_limit: str | None = None) -> CycleTime:
    return CycleTime(Drift(), "8ms", time_limit=time_limit)


def actions_for(cycles: int) -> Iterator[NDArray[np.int64]]:
    random = np.random.default_rng(0)
    for _ in range(cycles):
        yield random.integers(0, 4, len(SEEDS))


class Singles:
    """What n single environments do under an autoreset mode, written out copy by copy."""

    def __init__(self, mode: AutoresetMode, time_limit: str | None = None) -> None:
        self.mode = mode
        self.envs = [single(time_limit) for _ in SEEDS]
        self.ended = [False] * len(SEEDS)
        self.cut_short = 0

    def reset(self) -> list[Any]:
        return [env.reset(seed=seed) for env, seed in zip(self.envs, SEEDS, strict=True)]

    def step(self, copy: int, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        env = self.envs[copy]
        if self.mode is AutoresetMode.NEXT_STEP and self.ended[copy]:
            self.ended[copy] = False
            observation, info = env.reset()
            return observation, 0.0, False, False, info
        observation, reward, terminated, truncated, info = env.step(action)
        self.cut_short += info["cycle_steps"] < env.cycle_steps
        self.ended[copy] = terminated or truncated
        if self.mode is AutoresetMode.SAME_STEP and self.ended[copy]:
            final = {"final_obs": observation, "final_info": info}
            observation, info = env.reset()
            info |= final
        return observation, reward, terminated, truncated, info


def assert_goes_as_singles(env: VectorEnv[Any, Any, Any], mode: AutoresetMode, time_limit: str | None = None) -> None:
    assert env.metadata["autoreset_mode"] is mode
    singles = Singles(mode, time_limit)
    observations, infos = env.reset(seed=SEEDS[0])
    for i, (observation, info) in enumerate(singles.reset()):
        assert_copy_is(i, observations, infos, observation, info)
    for actions in actions_for(60):
        observations, rewards, terminated, truncated, infos = env.step(actions)
        for i, action in enumerate(actions):
            observation, reward, *ends, info = singles.step(i, action)
            assert rewards[i] == pytest.approx(reward, rel=1e-6)
            assert [terminated[i], truncated[i]] == ends
            assert_copy_is(i, observations, infos, observation, info)
        mask = terminated | truncated
        if mode is AutoresetMode.DISABLED and mask.any():
            before = observations
            observations, infos = env.reset(options={"reset_mask": mask})
            for i in range(len(SEEDS)):
                if mask[i]:
                    assert_copy_is(i, observations, infos, *singles.envs[i].reset())
                else:
                    np.testing.assert_array_equal(observations["at"][i], before["at"][i])
    assert singles.cut_short > 15


def assert_copy_is(i: int, observations: Any, infos: dict[str, Any], observation: Any, info: dict[str, Any]) -> None:  # noqa: ANN401
    np.testing.assert_array_equal(observations["at"][i], observation["at"])
    assert observations["age"][i] == observation["age"]
    assert_info_is(i, infos, info)


def assert_info_is(i: int, infos: dict[str, Any], info: dict[str, Any]) -> None:
    given = {key for key in infos if not key.startswith("_") and infos[f"_{key}"][i]}
    assert given == info.keys()
    for key, value in info.items():
        if key == "final_obs":
            assert infos[key][i] == value
        elif isinstance(value, dict):
            assert_info_is(i, infos[key], value)
        else:
            assert infos[key][i] == value


@pytest.mark.parametrize("time_limit", [None, "18ms"])
@pytest.mark.parametrize("mode", MODES)
def test_a_sync_vector_env_made_of_held_copies_goes_as_single_ones(mode: AutoresetMode, time_limit: str | None) -> None:
    env: VectorEnv[Any, Any, Any] = SyncVectorEnv([partial(single, time_limit)] * len(SEEDS), autoreset_mode=mode)
    assert_goes_as_singles(env, mode, time_limit)


@pytest.mark.parametrize("mode", MODES)
def test_async_copies_go_as_single_ones(mode: AutoresetMode) -> None:
    env: VectorEnv[Any, Any, Any] = AsyncVectorEnv([single] * len(SEEDS), context="forkserver", autoreset_mode=mode)
    assert_goes_as_singles(env, mode)
    env.close()


@pytest.mark.parametrize("vectorization_mode", ["sync", "async"])
def test_registered_environments_are_made_with_a_cycle_time_in_every_copy(vectorization_mode: str) -> None:
    how = {"context": "forkserver"} if vectorization_mode == "async" else {}
    env = gym.make_vec(
        "CartPole-v1",
        2,
        vectorization_mode,
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP, **how},
        wrappers=[partial(CycleTime, dt="60ms", env_dt="20ms", time_limit="1s"), RecordEpisodeStatistics],
        sutton_barto_reward=True,
    )
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    copies = [
        CycleTime(gym.make("CartPole-v1", sutton_barto_reward=True), "60ms", env_dt="20ms", time_limit="1s")
        for _ in range(2)
    ]
    observations, _ = env.reset(seed=4)
    for i, copy in enumerate(copies):
        np.testing.assert_array_equal(observations[i], copy.reset(seed=4 + i)[0])
    for cycle in range(20):
        actions = np.array([1, cycle % 2])
        observations, rewards, terminated, truncated, infos = env.step(actions)
        for i, copy in enumerate(copies):
            observation, reward, *ends, info = copy.step(actions[i])
            if any(ends):
                assert infos["final_info"]["episode"]["l"][i] == info["agent_steps"]
                assert {key: infos["final_info"][key][i] for key in CLOCK} == {key: info[key] for key in CLOCK}
                np.testing.assert_array_equal(infos["final_obs"][i], observation)
                observation, info = copy.reset()
            assert [rewards[i], terminated[i], truncated[i]] == [reward, *ends]
            np.testing.assert_array_equal(observations[i], observation)
            assert {key: infos[key][i] for key in CLOCK} == {key: info[key] for key in CLOCK}
    env.close()


def test_an_environment_with_a_cycle_time_of_its_own_says_so() -> None:
    with pytest.raises(InputError, match=r"cycletime/Reacher-v0 has a cycle time of its own: .* make_vec"):
        gym.make_vec("cycletime/Reacher-v0", 2, "sync", wrappers=[partial(CycleTime, dt="8ms")])


class OfAnotherLibrary:
    """As Stable-Baselines3's VecEnv, whose step and reset give other things, and whose copies reset themselves."""

    num_envs = 2


def test_a_vector_environment_of_another_library_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(InputError, match="as the wrapper_class"):
        CycleTime(OfAnotherLibrary(), "100ms")  # type: ignore[arg-type]
