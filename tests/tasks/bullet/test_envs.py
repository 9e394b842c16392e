"""The manners of both environments: Gymnasium's interface, resets, limits, isolation, wrong input."""

import gc
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from cycletime.errors import InputError
from cycletime.tasks.bullet import BulletDoublePendulumEnv, BulletEnv, BulletReacherEnv, BulletWorld

BOTH = pytest.mark.parametrize("make", [BulletReacherEnv, BulletDoublePendulumEnv])


@BOTH
def test_gymnasium_s_checker_finds_nothing(make: type[BulletEnv], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    check_env(make(), skip_render_check=True)
    gymnasium.register("cycletime-test/Task-v0", entry_point=lambda **kwargs: make(**kwargs))
    try:
        env = gymnasium.make("cycletime-test/Task-v0")
        check_env(env.unwrapped)  # now that it has a spec, in each render mode too
        env.reset(seed=1)
        env.step(env.action_space.sample())
        env.close()
    finally:
        del gymnasium.registry["cycletime-test/Task-v0"]


def test_a_step_lasts_the_authors_time_step() -> None:
    assert BulletReacherEnv().dt == 0.002
    assert BulletDoublePendulumEnv().dt == 0.004


@BOTH
def test_a_seed_gives_the_same_episodes_again(make: type[BulletEnv]) -> None:
    first, again, other = (run(make(), seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@BOTH
def test_a_reset_forgets_the_episode_before(make: type[BulletEnv]) -> None:
    used = make()
    run(used, seed=1, action=1.0)
    assert np.array_equal(run(used, seed=2), run(make(), seed=2))


@BOTH
def test_environments_do_not_disturb_each_other(make: type[BulletEnv]) -> None:
    alone = run(make(), seed=3)
    first, second = make(), make()
    first.reset(seed=3)
    second.reset(seed=4)
    seen = [first.exact_observation()]
    for step in range(alone.shape[0] - 1):
        if step == 20:
            second.close()
            second.close()
            second = make()
            second.reset(seed=9)
        second.step(np.ones(second.task.action_size))
        first.step(np.full(first.task.action_size, 0.5))
        seen.append(first.exact_observation())
    assert np.array_equal(seen, alone)


def test_the_reset_distributions_fill_their_ranges() -> None:
    reacher, pendulum = BulletReacherEnv(), BulletDoublePendulumEnv()
    targets, elbows, poles = [], [], []
    for seed in range(300):
        observation, _ = reacher.reset(seed=seed)
        targets.append(observation[:2])
        elbows.append(observation[7] * 3)
        observation, _ = pendulum.reset(seed=seed)
        assert observation[0] == observation[1] == observation[5] == observation[8] == 0
        poles.append(observation[[4, 7]])
    for drawn, limit in ((targets, 0.27), (elbows, 3.14), (poles, 0.1)):
        assert 0.95 * limit < np.max(drawn) <= limit
        assert -limit <= np.min(drawn) < -0.95 * limit
        assert abs(np.mean(drawn)) < 0.2 * limit


@BOTH
def test_link_positions_are_seen_one_step_late(make: type[BulletEnv]) -> None:
    env = make()
    late = slice(2, 4) if make is BulletReacherEnv else slice(2, 3)
    start, _ = env.reset(options={"state": [0.1, 0.2, 0.3, 2.0, -0.1, 0.2]})
    first, *_ = env.step(np.zeros(env.task.action_size))
    second, *_ = env.step(np.zeros(env.task.action_size))
    assert np.array_equal(first[late], start[late])
    assert not np.array_equal(second[late], first[late])


def test_reacher_is_truncated_after_2_4_s_and_never_terminated() -> None:
    env = BulletReacherEnv()
    for _ in range(2):
        env.reset(seed=0)
        flags = [env.step(np.ones(2))[2:4] for _ in range(1200)]
        assert flags == [(False, False)] * 1199 + [(False, True)]


def test_double_pendulum_upright_for_16_s_earns_9360_and_is_truncated() -> None:
    env = BulletDoublePendulumEnv()
    env.reset(options={"state": np.zeros(6)})
    steps = [env.step(np.zeros(1))[1:4] for _ in range(4000)]
    assert [(terminated, truncated) for _, terminated, truncated in steps] == [(False, False)] * 3999 + [(False, True)]
    assert abs(sum(reward for reward, _, _ in steps) - 9360) < 1e-3


def test_double_pendulum_pays_the_step_that_terminates() -> None:
    env = BulletDoublePendulumEnv()
    env.reset(options={"state": [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]})  # the upper pole's middle is at 0.9 cos 1 = 0.49
    _, reward, terminated, truncated, _ = env.step(np.zeros(1))
    assert (terminated, truncated) == (True, False)
    expected = 0.25 * (10 - 0.01 * (0.9 * np.sin(1)) ** 2 - (0.9 * np.cos(1) - 1.7) ** 2)
    assert abs(reward - expected) < 1e-6


@pytest.mark.parametrize("action", [[5.0, -5.0], (1, -1), np.array([5, -5], np.int64), np.array([9, -9], np.float32)])
def test_torques_are_clipped(action: Any) -> None:  # noqa: ANN401
    clipped, beyond = BulletReacherEnv(), BulletReacherEnv()
    for env in (clipped, beyond):
        env.reset(seed=1)
    assert np.array_equal(clipped.step(np.array([1.0, -1.0]))[0], beyond.step(action)[0])


@BOTH
@pytest.mark.parametrize("action", [[np.nan, 0.0], [np.inf], 0.5, [0.1] * 3, [[0.1, 0.1]], "left", None, {}])
def test_what_is_no_action_is_refused(make: type[BulletEnv], action: Any) -> None:  # noqa: ANN401
    env = make()
    env.reset(seed=1)
    before = env.exact_observation()
    with pytest.raises(InputError, match=f"is not an action: give an array of {env.task.action_size} finite number"):
        env.step(action)
    assert np.array_equal(env.exact_observation(), before)


@BOTH
@pytest.mark.parametrize("state", [[0.0] * 5, [0.0] * 7, [0.0] * 5 + [np.nan], "upright", [[0.0] * 6], {"x": 1}])
def test_what_is_no_state_is_refused(make: type[BulletEnv], state: Any) -> None:  # noqa: ANN401
    env = make()
    with pytest.raises(
        InputError, match=rf"is not a state: give 6 finite numbers \({', '.join(env.task.state_limits)}\)"
    ):
        env.reset(options={"state": state})


def test_a_state_out_of_bounds_is_refused() -> None:
    with pytest.raises(InputError, match=r"The state's ty is -0\.28: give a number from -0\.27 to 0\.27"):
        BulletReacherEnv().reset(options={"state": [9, 0, 0, 0, 0, -0.28]})
    with pytest.raises(InputError, match=r"The state's v is 101\.0: give a number from -100\.0 to 100\.0"):
        BulletDoublePendulumEnv().reset(options={"state": [0, 9, -9, 101, 0, 0]})


@BOTH
def test_the_wildest_states_stay_in_the_observation_space(make: type[BulletEnv]) -> None:
    env = make()
    rng = np.random.default_rng(0)
    limits = np.minimum(list(env.task.state_limits.values()), 4.0 if make is BulletReacherEnv else 100.0)
    for _ in range(20):
        env.reset(options={"state": limits * rng.choice([-1, -0.9, 0.9, 1], limits.size)})
        pushes = np.sign(rng.normal(size=(100, env.task.action_size)))
        assert all(env.observation_space.contains(env.step(push)[0]) for push in pushes)


def test_an_unknown_reset_option_is_refused_and_none_is_fine() -> None:
    env = BulletReacherEnv()
    with pytest.raises(InputError, match="'states' is not a reset option: the only one is 'state'"):
        env.reset(options={"states": [0.0] * 6})
    env.reset(options={})
    env.reset(options={"state": None})


@BOTH
def test_stepping_and_rendering_need_a_reset_and_an_open_environment(make: type[BulletEnv]) -> None:
    env = make(render_mode="rgb_array")
    for call in (lambda: env.step(np.zeros(env.task.action_size)), env.render):
        with pytest.raises(ResetNeeded):
            call()
    env.reset()
    env.close()
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(env.task.action_size))
    with pytest.raises(InputError, match="closed: make a new one"):
        env.reset()


@BOTH
def test_rendering_gives_a_picture_that_moves(make: type[BulletEnv]) -> None:
    env = make(render_mode="rgb_array")
    env.reset(seed=1)
    before = env.render()
    for _ in range(100):
        env.step(np.ones(env.task.action_size))
    after = env.render()
    assert before is not None
    assert after is not None
    assert before.shape == after.shape
    assert not np.array_equal(before, after)


def test_rendering_without_a_mode_warns() -> None:
    env = BulletReacherEnv()
    env.reset()
    with pytest.warns(UserWarning, match="pass render_mode='rgb_array'"):
        assert env.render() is None


def test_an_unknown_render_mode_is_refused() -> None:
    with pytest.raises(InputError, match="'ansi' is not a render mode: give one of 'human', 'rgb_array', or None"):
        BulletReacherEnv(render_mode="ansi")


@pytest.mark.parametrize("module", ["pybullet", "pybullet_data"])
def test_without_pybullet_the_error_names_the_extra(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pip install 'cycletime\[bullet\]'"):
        BulletReacherEnv()


def test_importing_the_tasks_loads_neither_pybullet_nor_pygame() -> None:
    program = "import cycletime.tasks.bullet, sys; assert not {'pybullet', 'pygame'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_dropped_environment_gives_its_physics_client_back() -> None:
    world = BulletWorld("reacher.xml", 0.002, 0.0)
    disconnect = world.close
    assert disconnect.alive
    del world
    gc.collect()
    assert not disconnect.alive


def run(env: BulletEnv, seed: int, action: float = 0.5) -> np.ndarray[Any, np.dtype[np.float64]]:
    env.reset(seed=seed)
    observations = [env.exact_observation()]
    for _ in range(60):
        env.step(np.full(env.task.action_size, action))
        observations.append(env.exact_observation())
    return np.array(observations)
