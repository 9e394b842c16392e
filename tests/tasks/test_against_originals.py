"""The tasks that are no PyBullet ones against their public originals, and how they follow their time step.

Each is compared over whole episodes in float64, at the original's time step; the largest deviation is within 1e-6.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from gymnasium.envs.classic_control import continuous_mountain_car
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.tasks import Acrobot, CartPole, MountainCar, Pendulum
from cycletime.tasks.closed_form import ClosedFormTask

pytestmark = pytest.mark.usefixtures("compiled_quickly")
Array = NDArray[np.float64]
RETIMED: list[type[ClosedFormTask]] = [Pendulum, CartPole, MountainCar, Acrobot]
IDS = {Pendulum: "Pendulum-v1", MountainCar: "MountainCarContinuous-v0", Acrobot: "Acrobot-v1"}

CARTPOLE = """
<mujoco>
  <option timestep="0.01" integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <body pos="0 0 1">
      <joint name="slider" type="slide" axis="1 0 0" damping="5e-4"
             limited="true" range="-1.8 1.8" solreflimit=".08 1"/>
      <geom type="box" size="0.2 0.15 0.1" mass="1"/>
      <body>
        <joint name="hinge" type="hinge" axis="0 1 0" damping="2e-6"/>
        <geom type="capsule" fromto="0 0 0 0 0 1" size="0.045" mass=".1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="slider" gear="10" ctrllimited="true" ctrlrange="-1 1"/></actuator>
</mujoco>
"""
"""What dm_control 1.0.50 has in suite/cartpole.xml, without what is only seen."""


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@cache
def program(task: ClosedFormTask) -> Any:  # noqa: ANN401 - compiled by JAX
    """A start's numbers and an action for each step: the numbers, rewards, ends and observations after each."""

    def episode(start: jax.Array, actions: jax.Array) -> tuple[jax.Array, ...]:
        def step(state: Any, action: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:  # noqa: ANN401
            out = task.step(state, action)
            told = jnp.stack(task.numbers(out.state)), out.reward, out.terminated, out.truncated, out.observation
            return out.state, told

        return jax.lax.scan(step, task.start(*start), actions)[1]

    return jax.jit(episode)


def walked(task: ClosedFormTask, start: Any, actions: Array) -> tuple[Array, ...]:  # noqa: ANN401
    return tuple(np.asarray(each) for each in program(task)(jnp.asarray(start), jnp.asarray(actions)))


def original_of(kind: type[ClosedFormTask]) -> ClosedFormTask:
    return kind(jnp.float64, env_dt=kind.original_dt)  # type: ignore[arg-type]


def pushes(seed: int, count: int) -> Array:
    """Actions that swing: random ones with every odd seed, also beyond the bounds, and else of full strength."""
    rng = np.random.default_rng(seed)
    if seed % 2:
        return rng.uniform(-1.2, 1.2, (count, 1))
    return np.repeat(np.sign(rng.normal(size=(count // 20 + 1, 1))), 20, axis=0)[:count]


def gymnasium_episode(kind: type[ClosedFormTask], seed: int, actions: Array) -> tuple[Array, ...]:
    """The start, and numbers, rewards and ends after each step, of the original itself."""
    env: Any = gymnasium.make(IDS[kind]).unwrapped
    env.reset(seed=seed)
    start, told = np.array(env.state, np.float64), []
    for action in actions:
        if kind is Acrobot:
            env.AVAIL_TORQUE = [float(np.clip(action[0], -1, 1))]  # any torque, where it has three
        _, reward, terminated, *_ = env.step(0 if kind is Acrobot else action * (2 if kind is Pendulum else 1))
        told.append((np.array(env.state), reward, terminated))
        if terminated:
            break
    numbers, rewards, ends = (np.array(each) for each in zip(*told, strict=True))
    return start, numbers, rewards, ends


class UnroundedNumPy:
    """NumPy without float32, to which the original of the mountain car rounds after each step."""

    float32 = np.float64

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever NumPy has
        return getattr(np, name)


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("seed", range(4))
def test_at_its_time_step_a_task_is_gymnasium_s(
    kind: type[ClosedFormTask], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(continuous_mountain_car, "np", UnroundedNumPy())
    task = original_of(kind)
    actions = pushes(seed, task.limit_steps)
    start, numbers, rewards, ends = gymnasium_episode(kind, seed, actions)
    ours = walked(task, start, actions)
    print(f"{task.title} {seed}: within {np.abs(ours[0][: len(ends)] - numbers).max():.1e}")
    np.testing.assert_allclose(ours[0][: len(ends)], numbers, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours[1][: len(ends)], rewards, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(ours[2][: len(ends)], ends)


@pytest.mark.parametrize("seed", range(4))
def test_the_mountain_car_as_it_is_differs_by_its_rounding_to_float32(seed: int) -> None:
    task = original_of(MountainCar)
    actions = pushes(seed, task.limit_steps)
    start, numbers, _, ends = gymnasium_episode(MountainCar, seed, actions)
    difference = np.abs(walked(task, start, actions)[0][: len(ends)] - numbers).max()
    print(f"{task.title} {seed}, rounded original: within {difference:.1e}")
    assert difference < 1e-3


@pytest.mark.parametrize("kind", [MountainCar, Acrobot])
def test_who_swings_with_the_motion_reaches_the_goal_when_gymnasium_does(kind: type[ClosedFormTask]) -> None:
    """By the speed's sign, which both see: the bonus and the end come with the same step."""
    env: Any = gymnasium.make(IDS[kind]).unwrapped
    env.reset(seed=1)
    task = original_of(kind)
    step = jax.jit(task.step)
    state, terminated, steps = task.start(*env.state), False, 0
    while not terminated:
        sign = float(np.sign(env.state[-1]))
        env.AVAIL_TORQUE = [sign]
        _, reward, terminated, *_ = env.step(0 if kind is Acrobot else np.array([sign]))
        out = step(state, jnp.array([sign]))
        state, steps = out.state, steps + 1
        assert bool(out.terminated) == terminated
        np.testing.assert_allclose(out.reward, reward, atol=1e-6)
    assert steps > task.shortest_episode / task.env_dt
    assert (reward > 99) == (kind is MountainCar)


@pytest.mark.parametrize("kind", IDS)
def test_episodes_begin_and_last_as_gymnasium_s(kind: type[ClosedFormTask]) -> None:
    env: Any = gymnasium.make(IDS[kind])
    env.reset(seed=5)
    drawn = kind().draw_start(np.random.Generator(np.random.PCG64(5)))
    np.testing.assert_array_equal(drawn, env.unwrapped.state)
    assert original_of(kind).limit_steps == env.spec.max_episode_steps


def mujoco_episode(start: tuple[float, ...], actions: Array, tolerance: float) -> Array:
    """The numbers after each step, as MuJoCo has them with a tolerance of its solver."""
    model = mujoco.MjModel.from_xml_string(CARTPOLE)
    model.opt.tolerance = tolerance
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = start[:2], start[2:]
    told = []
    for action in actions:
        data.ctrl[:] = action
        mujoco.mj_step(model, data)
        told.append([*data.qpos, *data.qvel])
    return np.array(told)


@pytest.mark.parametrize("seed", range(4))
def test_at_its_time_step_the_cart_pole_is_mujoco_s(seed: int) -> None:
    task = original_of(CartPole)
    actions, start = pushes(seed, task.limit_steps), task.draw_start(np.random.default_rng(seed))
    told = mujoco_episode(start, actions, tolerance=0.0)
    ours = walked(task, start, actions)
    print(f"{task.title} {seed}: within {np.abs(ours[0] - told).max():.1e}")
    np.testing.assert_allclose(ours[0], told, rtol=0, atol=1e-6)
    assert np.abs(told[:, 0]).max() > 1.8, "the cart has run into an end of the rail"
    assert ours[3].sum() == ours[3][-1] == 1, "after ten seconds it is over"


@pytest.mark.parametrize("seed", range(4))
def test_only_at_the_rail_s_ends_does_mujoco_s_usual_tolerance_matter(seed: int) -> None:
    """There its solver stops before the exact force, and what differs by little then grows as the pole swings."""
    task = original_of(CartPole)
    actions, start = pushes(seed, task.limit_steps), task.draw_start(np.random.default_rng(seed))
    told = mujoco_episode(start, actions, tolerance=1e-8)
    print(f"{task.title} {seed}, usual tolerance: within {np.abs(walked(task, start, actions)[0] - told).max():.1e}")
    one_step = jax.jit(jax.vmap(lambda numbers, action: jnp.stack(task.step(task.start(*numbers), action).state[:4])))
    differences = np.abs(np.asarray(one_step(told[:-1], actions[1:])) - told[1:]).max(axis=1)
    away = np.maximum(np.abs(told[:-1, 0]), np.abs(told[1:, 0])) < 1.7
    assert differences[away].max() < 1e-12
    assert differences.max() < 1e-5


@pytest.mark.parametrize(
    ("start", "action", "reward", "seen"),
    [
        ((0.0, 0.0, 0.0, 0.0), 0.0, 1.0, (0.0, 1.0, 0.0, 0.0, 0.0)),
        (
            (0.5, 0.3, 0.1, -1.0),
            0.6,
            0.80752082960102,
            (0.5012813397935874, 0.958296055949618, 0.285777306921677, 0.15628231143736634, -1.0367987514643284),
        ),
        (
            (-1.2, 2.0, 1.0, 4.0),
            -1.0,
            0.09605708325101296,
            (-1.1904137642531003, -0.45252073185261016, 0.891753882662463, 0.9172660897464369, 4.076138474767463),
        ),
        (
            (1.5, -0.2, -2.0, -6.0),
            0.25,
            0.3220312777640887,
            (1.4801094730519142, 0.9663100738653425, -0.25738073188635613, -1.978236757536571, -6.06326278229663),
        ),
    ],
)
def test_the_cart_pole_s_reward_and_observation_are_dm_control_s(
    start: tuple[float, ...], action: float, reward: float, seen: tuple[float, ...]
) -> None:
    """Numbers of dm_control 1.0.50: suite.load("cartpole", "swingup"), one step from a state."""
    ours = walked(original_of(CartPole), start, np.array([[action]]))
    np.testing.assert_allclose(ours[1][0], reward, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours[4][0], seen, rtol=0, atol=1e-12)


# Other time steps.

SMOOTH: dict[type[ClosedFormTask], tuple[tuple[float, ...], str, int]] = {
    Pendulum: ((2.5, 0.3), "500ms", 1),
    CartPole: ((0.1, 2.8, 0.2, -1.0), "500ms", 4),
    MountainCar: ((-0.7, 0.01), "400ms", 1),
    Acrobot: ((0.4, -0.3, 0.5, 0.2), "2s", 4),
}
"""By task, a start from which no bound is met for a time, and the order of its integrator."""


def held(kind: type[ClosedFormTask], finer: int) -> tuple[Array, float]:
    """The numbers at the end of such a time, and the return, with the original's time step or a finer one."""
    start, time, _ = SMOOTH[kind]
    assert kind.original_dt is not None
    task = kind(jnp.float64, env_dt=Duration(kind.original_dt.exact_s / finer))
    steps = Duration(time) / task.env_dt
    numbers, rewards, *_ = walked(task, start, np.full((int(steps), 1), 0.5))
    return numbers[-1], rewards.sum()


@pytest.mark.parametrize("kind", RETIMED)
def test_with_shorter_time_steps_a_trajectory_converges_with_the_integrator_s_order(kind: type[ClosedFormTask]) -> None:
    limit, _ = held(kind, 64)
    errors = [np.abs(held(kind, finer)[0] - limit).max() for finer in (1, 2, 4)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    np.testing.assert_allclose(orders, SMOOTH[kind][2], atol=0.4)


@pytest.mark.parametrize("kind", RETIMED)
def test_a_return_hardly_depends_on_the_time_step(kind: type[ClosedFormTask]) -> None:
    """Rewards of steps are rates, so that their sum converges."""
    returns = [held(kind, finer)[1] for finer in (1, 4, 64)]
    assert abs(returns[1] - returns[2]) <= max(abs(returns[0] - returns[2]) / 2, 1e-9)
    np.testing.assert_allclose(returns[1], returns[2], rtol=0.05)


@pytest.mark.parametrize("env_dt", ["20ms", "4ms", "1ms"])
def test_the_bonus_at_the_goal_is_the_same_with_every_time_step(env_dt: str) -> None:
    task = MountainCar(jnp.float64, env_dt=Duration(env_dt))
    _, rewards, ends, *_ = walked(task, (0.449, 0.05), np.full((3, 1), 2.0))
    first = int(np.argmax(ends))
    np.testing.assert_allclose(rewards[first], 100 - 0.1 * 2.0**2 * float(env_dt[:-2]) / 20, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "env_dt", "says"),
    [
        (Pendulum, "51ms", "env_dt is 51ms: that of the Pendulum is 50ms at most."),
        (Pendulum, "3ms", "env_dt is 3ms: 10s of the Pendulum must be a whole multiple of it."),
        (MountainCar, "18ms", "env_dt is 18ms: 240ms of the Mountain Car must be a whole multiple of it."),
    ],
)
def test_a_time_step_that_does_not_suit_is_refused(kind: type[ClosedFormTask], env_dt: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        kind(env_dt=Duration(env_dt))
    assert str(caught.value) == says
