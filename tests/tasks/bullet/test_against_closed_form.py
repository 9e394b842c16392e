"""The environments against the formulas of the tasks' specification, written out here in plain NumPy and float64."""

from math import atan2, copysign, cos, hypot, pi, sin

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.tasks.bullet import BulletDoublePendulumEnv, BulletReacherEnv

Array = NDArray[np.float64]
GAINS = np.array([-0.93, -7.46, -19.99, -1.27, -3.57, -3.44])  # a linear-quadratic regulator of the upright pose
DAMPING = 0.03999999910593033  # float32 of 0.04, as is the depth below which a limit does not push back


def test_reacher_follows_the_closed_form_under_random_torque() -> None:
    for seed in range(6):
        compare_reacher(None, random_actions(seed, size=2, env_steps=100, hold=1 + 7 * (seed % 2)), seed)


def test_reacher_follows_the_closed_form_from_an_initial_velocity_without_torque() -> None:
    for state in (
        [0.3, -0.4, 5.0, -8.0, 0.1, 0.2],
        [2.0, 1.0, -20.0, 9.0, -0.27, 0.27],
        [0.0, 0.0, 100.0, -100.0, 0.0, 0.0],
    ):
        compare_reacher(state, np.zeros((100, 2)))


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("start", [2.95, 3.0, 3.02, 3.03, 3.05, 3.14])
def test_reacher_follows_the_closed_form_at_the_elbow_s_limit(start: float, side: int) -> None:
    outwards = np.tile([0.0, 0.8 * side], (100, 1))
    result = compare_reacher([1.0, start * side, 0.0, 6.0 * side, 0.1, -0.1], outwards)
    assert result.stuck_steps > 50


def test_reacher_pays_for_what_it_asked_beyond_the_action_space() -> None:
    compare_reacher([0.1, 0.2, 1.0, -1.0, 0.1, 0.2], 7.0 * random_actions(1, size=2, env_steps=100))


def test_reacher_follows_the_closed_form_for_a_whole_episode() -> None:
    compare_reacher([0.1, 0.2, 0.0, 0.0, -0.2, 0.2], random_actions(3, size=2, env_steps=1200, hold=4))


def test_double_pendulum_follows_the_closed_form_until_it_has_fallen() -> None:
    for seed in range(6):
        result = compare_double_pendulum(None, random_actions(seed, size=1, env_steps=300, hold=3), seed)
        assert 0 < result.ended_steps < 300


def test_double_pendulum_follows_the_closed_form_from_an_initial_velocity_without_force() -> None:
    for state in ([0.2, 0.05, -0.1, 0.5, 1.0, -2.0], [0.0, pi, 0.0, 0.0, 3.0, -4.0], [0.0, 1.0, 2.0, 0.0, 60.0, 80.0]):
        compare_double_pendulum(state, np.zeros((100, 1)))


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("start", [0.9, 1.0, 1.03, 1.05])
def test_double_pendulum_follows_the_closed_form_at_the_rail_s_end(start: float, side: int) -> None:
    compare_double_pendulum([start * side, 0.1, -0.1, 2.0 * side, 0.0, 0.0], np.full((100, 1), 0.9 * side))


def test_double_pendulum_balanced_by_the_same_controller_follows_the_closed_form_for_4_s() -> None:
    env, model = BulletDoublePendulumEnv(), DoublePendulum([0.05, 0.02, -0.03, 0, 0, 0])
    env.reset(options={"state": model.state})
    total = 0.0
    for _ in range(1000):
        reward, terminated = model.advance([balance(model.observation())])
        _, env_reward, env_terminated, _, _ = env.step(np.array([balance(env.exact_observation())]))
        assert abs(env_reward - reward) < 1e-9
        assert not terminated
        assert not env_terminated
        total += env_reward
    np.testing.assert_allclose(env.exact_observation(), model.observation(), rtol=0, atol=1e-9)
    assert abs(total - 2340) < 10


def balance(observation: Array) -> float:
    x, v, _, cos_th, sin_th, w, cos_ga, sin_ga, u = observation
    return float(GAINS @ [x, atan2(sin_th, cos_th), atan2(sin_ga, cos_ga), v, w, u])


class Comparison:
    stuck_steps = 0
    ended_steps = 0


def compare_reacher(state: list[float] | None, actions: Array, seed: int = 0) -> Comparison:
    env = BulletReacherEnv()
    first, _ = env.reset(seed=seed, options=None if state is None else {"state": state})
    model = Reacher(reacher_reset(seed) if state is None else state)
    np.testing.assert_allclose(first, model.observation(), rtol=1e-6, atol=1e-6)
    result = Comparison()
    for action in actions:
        reward = model.advance(action.tolist())
        _, env_reward, terminated, truncated, _ = env.step(action)
        assert abs(env_reward - reward) < 1e-9
        assert (terminated, truncated) == (False, model.env_steps >= 1200)
        np.testing.assert_allclose(env.exact_observation(), model.observation(), rtol=0, atol=1e-9)
        result.stuck_steps += abs(model.q2) / 3 > 0.99
    return result


def compare_double_pendulum(state: list[float] | None, actions: Array, seed: int = 0) -> Comparison:
    env = BulletDoublePendulumEnv()
    first, _ = env.reset(seed=seed, options=None if state is None else {"state": state})
    model = DoublePendulum(double_pendulum_reset(seed) if state is None else state)
    np.testing.assert_allclose(first, model.observation(), rtol=1e-6, atol=1e-6)
    result = Comparison()
    for action in actions:
        reward, terminated = model.advance(action.tolist())
        _, env_reward, env_terminated, truncated, _ = env.step(action)
        assert abs(env_reward - reward) < 1e-9
        assert (env_terminated, truncated) == (terminated, False)
        np.testing.assert_allclose(env.exact_observation(), model.observation(), rtol=0, atol=1e-9)
        result.ended_steps += terminated
    return result


def random_actions(seed: int, size: int, env_steps: int, hold: int = 1) -> Array:
    drawn = np.random.default_rng(seed).normal(size=(-(-env_steps // hold), size))
    return np.repeat(drawn, hold, axis=0)[:env_steps]


def reacher_reset(seed: int) -> list[float]:
    tx, ty, q1, q2 = np.random.default_rng(seed).random(4) * 2 - 1
    return [3.14 * q1, 3.14 * q2, 0.0, 0.0, 0.27 * tx, 0.27 * ty]


def double_pendulum_reset(seed: int) -> list[float]:
    th, ga = 0.1 * (np.random.default_rng(seed).random(2) * 2 - 1)
    return [0.0, th, ga, 0.0, 0.0, 0.0]


class Reacher:
    dt = 0.002
    m, i, mf, i_f = 0.03560471552353649, 1.4835298232074667e-4, 0.0041887902047863905, 1.6755160819145562e-7
    c, l, lf = 0.05000000074505806, 0.10000000149011612, 0.10999999940395355  # noqa: E741

    def __init__(self, state: list[float]) -> None:
        self.q1, self.q2, self.w1, self.w2, self.tx, self.ty = state
        self.late = self.q1, self.q2
        self.env_steps = 0

    def tip_from_target(self) -> tuple[float, float]:
        q1, q2 = self.late
        x = self.l * cos(q1) + self.lf * cos(q1 + q2)
        y = self.l * sin(q1) + self.lf * sin(q1 + q2)
        return x - self.tx, y - self.ty

    def observation(self) -> Array:
        scaled = [0.1 * self.w1, self.q2 / 3, 0.1 * self.w2]
        return np.array([self.tx, self.ty, *self.tip_from_target(), cos(self.q1), sin(self.q1), *scaled])

    def advance(self, action: list[float]) -> float:
        before = -100 * hypot(*self.tip_from_target())
        self.late = self.q1, self.q2
        self.move(*(0.05 * min(max(a, -1), 1) for a in action))
        self.env_steps += 1
        a1, a2 = action
        energy = -0.1 * (abs(a1 * 0.1 * self.w1) + abs(a2 * 0.1 * self.w2)) - 0.01 * (abs(a1) + abs(a2))
        stuck = -0.1 if abs(self.q2 / 3) > 0.99 else 0.0
        return -100 * hypot(*self.tip_from_target()) - before + 0.125 * (energy + stuck)

    def move(self, tau1: float, tau2: float) -> None:
        m, c, l, mf, lf = self.m, self.c, self.l, self.mf, self.lf  # noqa: E741
        w1, w2, cos2, sin2 = self.w1, self.w2, cos(self.q2), sin(self.q2)
        a = self.i + m * c**2 + (m + mf) * l**2
        b = self.i + self.i_f + m * c**2 + mf * lf**2
        h = (m * c + mf * lf) * l
        mass = np.array([[a + b + 2 * h * cos2, b + h * cos2], [b + h * cos2, b]])
        d1, d2 = self.damping(w1, w1 + w2, cos2, sin2)
        push = np.array([tau1 + h * sin2 * (2 * w1 * w2 + w2**2) - d1, tau2 - h * sin2 * w1**2 - d2])
        inverse = np.linalg.inv(mass)
        w = np.clip(np.array([w1, w2]) + self.dt * inverse @ push, -100, 100)
        w = stop_at_limit(self.q2, 3.0, w, inverse, joint=1, dt=self.dt)
        self.w1, self.w2 = w.tolist()
        self.q1 += self.dt * self.w1
        self.q2 += self.dt * self.w2

    def damping(self, w1: float, w: float, cos2: float, sin2: float) -> tuple[float, float]:
        c, l, lf = self.c, self.l, self.lf  # noqa: E741
        v2x, v2y = -w * c * sin2, w1 * l + w * c * cos2
        vfx, vfy = -w * lf * sin2, w1 * l + w * lf * cos2
        k1 = self.m * DAMPING * (1 + abs(c * w1))
        k2 = self.m * DAMPING * (1 + hypot(v2x, v2y))
        kf = self.mf * DAMPING * (1 + hypot(vfx, vfy))
        d2 = (self.i + self.i_f) * DAMPING * w * (1 + abs(w))
        d2 += k2 * (-v2x * c * sin2 + v2y * c * cos2) + kf * (-vfx * lf * sin2 + vfy * lf * cos2)
        d1 = d2 + self.i * DAMPING * w1 * (1 + abs(w1)) + k1 * w1 * c**2 + l * (k2 * v2y + kf * vfy)
        return d1, d2


class DoublePendulum:
    dt, g = 0.004, 9.8
    mc, m, i = 10.47197598009977, 4.198739082051421, 0.217564678634353
    c, l = 0.30000001192092896, 0.6000000238418579  # noqa: E741

    def __init__(self, state: list[float]) -> None:
        self.state = np.array(state, dtype=np.float64)
        self.late = self.middle()

    def middle(self) -> tuple[float, float]:
        x, th, ga = self.state[:3]
        return x + self.l * sin(th) + self.c * sin(th + ga), self.l * cos(th) + self.c * cos(th + ga)

    def observation(self) -> Array:
        x, th, ga, v, w, u = self.state
        return np.array([x, v, self.late[0], cos(th), sin(th), w, cos(ga), sin(ga), u])

    def advance(self, action: list[float]) -> tuple[float, bool]:
        self.late = px, py = self.middle()
        self.move(200 * min(max(action[0], -1), 1))
        return 0.25 * (10 - 0.01 * px**2 - (py + 0.3 - 2) ** 2), py + 0.3 <= 1

    def move(self, force: float) -> None:
        x, th, ga, v, w, u = self.state
        to_joints = np.array([[1, 0, 0], [0, 1, 0], [0, -1, 1]])  # from the poles' angles against the vertical
        inverse = np.linalg.inv(self.mass(th, th + ga))
        joint_inverse = to_joints @ inverse @ to_joints.T
        acceleration = to_joints @ inverse @ self.push(force, th, th + ga, v, w, w + u)
        velocities = np.clip(np.array([v, w, u]) + self.dt * acceleration, -100, 100)
        velocities = stop_at_limit(x, 1.0, velocities, joint_inverse, joint=0, dt=self.dt)
        self.state = np.concatenate([self.state[:3] + self.dt * velocities, velocities])

    def mass(self, th: float, ph: float) -> Array:
        m, c, l = self.m, self.c, self.l  # noqa: E741
        cart, lower, upper = self.mc + 2 * m, m * (c + l) * cos(th), m * c * cos(ph)
        mixed = m * c * l * cos(ph - th)
        diagonal = self.i + m * c**2
        return np.array([[cart, lower, upper], [lower, diagonal + m * l**2, mixed], [upper, mixed, diagonal]])

    def push(self, force: float, th: float, ph: float, v: float, w: float, big_w: float) -> Array:
        m, c, l, g = self.m, self.c, self.l, self.g  # noqa: E741
        s1, c1, s2, c2, bend = sin(th), cos(th), sin(ph), cos(ph), sin(ph - th)
        p1x, p1z = v + c * c1 * w, -c * s1 * w
        p2x, p2z = v + l * c1 * w + c * c2 * big_w, -l * s1 * w - c * s2 * big_w
        kc = self.mc * DAMPING * (1 + abs(v))
        k1, k2 = (m * DAMPING * (1 + hypot(*p)) for p in ((p1x, p1z), (p2x, p2z)))
        r1 = force + m * (c + l) * s1 * w**2 + m * c * s2 * big_w**2 - kc * v - k1 * p1x - k2 * p2x
        r2 = m * g * (c + l) * s1 + m * c * l * bend * big_w**2 - self.i * DAMPING * w * (1 + abs(w))
        r2 -= k1 * c * (p1x * c1 - p1z * s1) + k2 * l * (p2x * c1 - p2z * s1)
        r3 = m * g * c * s2 - m * c * l * bend * w**2 - self.i * DAMPING * big_w * (1 + abs(big_w))
        r3 -= k2 * c * (p2x * c2 - p2z * s2)
        return np.array([r1, r2, r3])


def stop_at_limit(q: float, limit: float, velocities: Array, inverse: Array, joint: int, dt: float) -> Array:
    """Bullet's unilateral row of a joint limited to +-limit; q is the joint before its update."""
    depth = limit - abs(q)
    if depth > 0:
        return velocities
    inwards = -copysign(1.0, q)
    bias = -depth * 0.2 / dt if depth > -DAMPING else 0.0
    impulse = min(max((bias - inwards * float(velocities[joint])) / float(inverse[joint, joint]), 0.0), 100.0)
    return (velocities + inwards * impulse * inverse[:, joint]).clip(-100, 100)
