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
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit
from gymnasium.wrappers.vector import RecordEpisodeStatistics as VectorStatistics
from numpy.typing import NDArray

from cycletime.errors import InputError
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.vector_cycle_time import VectorCycleTime, make_vec_with_cycle_time

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


class DriftAtOnce(VectorEnv[Any, Any, Any]):
    """`Drift` as a custom vector environment, which steps ended copies too and reuses the arrays that it returns."""

    def __init__(self, num_envs: int, mode: AutoresetMode | None = AutoresetMode.DISABLED) -> None:
        self.num_envs = num_envs
        self.metadata = {"autoreset_mode": mode} if mode else {}
        self.copies = [Drift() for _ in range(num_envs)]
        self.single_observation_space, self.single_action_space = Drift.observation_space, Drift.action_space
        self.observation_space = batch_space(Drift.observation_space, num_envs)
        self.action_space = batch_space(Drift.action_space, num_envs)
        self.batch: Any = create_empty_array(Drift.observation_space, num_envs)
        self.rewards = np.zeros(num_envs, np.float32)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        mask = (options or {}).pop("reset_mask", np.ones(self.num_envs, np.bool_))
        infos: dict[str, Any] = {}
        for i, copy in enumerate(self.copies):
            if mask[i]:
                infos = self._add_info(infos, copy.reset(seed=None if seed is None else seed + i)[1], i)
        return self._observe(), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:  # noqa: ANN401
        infos: dict[str, Any] = {}
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        for i, copy in enumerate(self.copies):
            _, self.rewards[i], terminated[i], truncated[i], info = copy.step(actions[i])
            infos = self._add_info(infos, info, i)
        return self._observe(), self.rewards, terminated, truncated, infos

    def _observe(self) -> Any:  # noqa: ANN401
        return concatenate(self.single_observation_space, [copy._observe() for copy in self.copies], self.batch)


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


@pytest.mark.parametrize("time_limit", [None, "18ms"])
@pytest.mark.parametrize("mode", MODES)
def test_an_existing_sync_vector_env_goes_as_single_ones(mode: AutoresetMode, time_limit: str | None) -> None:
    env = VectorCycleTime(SyncVectorEnv([Drift] * len(SEEDS), autoreset_mode=mode), "8ms", time_limit=time_limit)
    assert (env.dt, env.env_dt, env.cycle_steps, env.metadata["render_fps"]) == (0.008, 0.002, 4, 125)
    assert_goes_as_singles(env, mode, time_limit)


@pytest.mark.parametrize("time_limit", [None, "18ms"])
def test_copies_stepped_at_once_go_as_single_ones(time_limit: str | None) -> None:
    env = VectorCycleTime(DriftAtOnce(len(SEEDS)), "8ms", env_dt="2ms", time_limit=time_limit, steps_past_end=True)
    assert_goes_as_singles(env, AutoresetMode.DISABLED, time_limit)


def test_copies_that_ended_keep_their_last_observation_until_they_are_reset() -> None:
    env = VectorCycleTime(DriftAtOnce(3), "24ms", env_dt="2ms", steps_past_end=True)
    env.reset(seed=1)
    observations, _, terminated, truncated, infos = env.step(np.array([3, 3, 0]))
    assert (terminated | truncated).all()
    assert infos["cycle_steps"].tolist() == observations["age"].tolist()
    assert observations["age"][2] == 11
    assert max(observations["age"][:2]) < 11
    after, infos = env.reset(options={"reset_mask": np.array([True, False, False])})
    np.testing.assert_array_equal(after["at"][1:], observations["at"][1:])
    assert after["age"].tolist() == [0, *observations["age"][1:]]
    assert infos["env_steps"].tolist() == after["age"].tolist()
    with pytest.raises(InputError, match=r"copies \[1, 2\] have ended: reset these first"):
        env.step(np.array([0, 0, 0]))


def test_a_hold_of_all_copies_stops_when_all_have_ended() -> None:
    inner = DriftAtOnce(2)
    env = VectorCycleTime(inner, "200ms", env_dt="2ms", steps_past_end=True)
    env.reset(seed=1)
    env.step(np.array([0, 0]))
    assert [copy.age for copy in inner.copies] == [11, 11]


@pytest.mark.parametrize("mask", [np.array([1, 0]), np.array([True]), [True, False], np.array([False, False])])
def test_a_reset_mask_that_is_none_is_refused(mask: object) -> None:
    env = VectorCycleTime(DriftAtOnce(2), "8ms", env_dt="2ms", steps_past_end=True)
    with pytest.raises(InputError, match=r"reset_mask is .*give a NumPy array of 2 booleans, at least one True"):
        env.reset(options={"reset_mask": mask})


def test_statistics_around_it_see_masked_resets() -> None:
    env = VectorStatistics(VectorCycleTime(SyncVectorEnv([Drift] * 2, autoreset_mode="Disabled"), "8ms"))
    options = {"reset_mask": np.array([True, False])}
    env.reset(seed=1)
    env.step(np.array([0, 0]))
    env.reset(options=options)
    env.step(np.array([0, 0]))
    assert env.episode_lengths.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: DriftAtOnce(2, AutoresetMode.NEXT_STEP),
            r"autoreset_mode AutoresetMode.NEXT_STEP, .*make_vec_with_cycle",
        ),
        (lambda: DriftAtOnce(2, AutoresetMode.SAME_STEP), r"autoreset_mode AutoresetMode.SAME_STEP, .* next episode"),
        (lambda: DriftAtOnce(2, None), r"autoreset_mode None, .* or give an environment with AutoresetMode.DISABLED"),
        (lambda: DriftAtOnce(2), r"say steps_past_end=True if its step\(\) tolerates that"),
        (
            lambda: AsyncVectorEnv([Drift], context="forkserver"),
            "live in other processes: hold the actions inside the copies",
        ),
        (lambda: VectorStatistics(SyncVectorEnv([Drift])), "is wrapped already: put VectorCycleTime around Sync"),
        (lambda: SyncVectorEnv([Drift, SlowDrift]), r"time steps \['2ms', '4ms'\]: give them a common one"),
    ],
)
def test_what_cannot_be_held_correctly_is_refused_with_what_to_do(build: Any, sentence: str) -> None:  # noqa: ANN401
    env = build()
    with pytest.raises(InputError, match=sentence):
        VectorCycleTime(env, "8ms")
    env.close()


class SlowDrift(Drift):
    dt = 0.004


def test_spans_that_do_not_fit_are_refused_and_leave_the_environment_alone() -> None:
    env: SyncVectorEnv[Any, Any] = SyncVectorEnv([Drift] * 2)
    with pytest.raises(InputError, match="nearest cycle times are 8ms and 10ms"):
        VectorCycleTime(env, "9ms")
    assert not any(isinstance(copy, CycleTime) for copy in env.envs)
    with pytest.raises(InputError, match="publishes no time step"):
        VectorCycleTime(DriftAtOnce(2), "8ms", steps_past_end=True)
    with pytest.raises(InputError, match="time limit 9ms is not a whole multiple"):
        VectorCycleTime(DriftAtOnce(2), "8ms", env_dt="2ms", time_limit="9ms", steps_past_end=True)


@pytest.mark.parametrize("vectorization_mode", ["sync", "async"])
def test_registered_environments_are_made_with_a_cycle_time_in_every_copy(vectorization_mode: str) -> None:
    env = make_vec_with_cycle_time(
        "CartPole-v1",
        2,
        vectorization_mode,
        dt="60ms",
        env_dt="20ms",
        time_limit=1,
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        wrappers=[RecordEpisodeStatistics],
        sutton_barto_reward=True,
    )
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    copies = [
        CycleTime(gym.make("CartPole-v1", sutton_barto_reward=True), "60ms", env_dt="20ms", time_limit=1)
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


def test_inner_time_limits_keep_their_seconds_in_every_copy() -> None:
    env: VectorEnv[Any, Any, Any] = VectorCycleTime(SyncVectorEnv([lambda: TimeLimit(Drift(99), 7)] * 2), "8ms")
    env.reset(seed=0)
    ends = [env.step(np.array([0, 0]))[3].all() for _ in range(2)]
    assert ends == [False, True]
    *_, infos = env.step(np.array([0, 0]))
    assert infos["env_steps"].tolist() == [0, 0]


def test_an_environment_with_a_cycle_time_of_its_own_says_so() -> None:
    with pytest.raises(InputError, match=r"cycletime/Reacher-v0 has a cycle time of its own: .* make_vec"):
        make_vec_with_cycle_time("cycletime/Reacher-v0", 2, dt="8ms")


def test_the_cycle_time_must_be_given() -> None:
    with pytest.raises(TypeError, match="'dt'"):
        VectorCycleTime(SyncVectorEnv([Drift]))  # type: ignore[call-arg]


def test_vectorisation_by_the_environment_itself_is_refused() -> None:
    with pytest.raises(InputError, match="vectorization_mode is 'vector_entry_point': give 'sync' or 'async'"):
        make_vec_with_cycle_time("CartPole-v1", 2, "vector_entry_point", dt="40ms", env_dt="20ms")


class OfAnotherLibrary:
    """As Stable-Baselines3's VecEnv, whose step and reset give other things, and whose copies reset themselves."""

    num_envs = 2


def test_what_is_no_vector_environment_of_gymnasium_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(InputError, match=r"make_vec_env\(id, n_envs, wrapper_class=CycleTime, wrapper_kwargs="):
        VectorCycleTime(OfAnotherLibrary(), "100ms")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="as the wrapper_class"):
        CycleTime(OfAnotherLibrary(), "100ms")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="put CycleTime around it"):
        VectorCycleTime(gym.make("Pendulum-v1"), "100ms")  # type: ignore[arg-type]
