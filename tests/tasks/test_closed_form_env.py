"""The closed-form tasks behind Gymnasium: registration, seeding, cycles, many copies, pictures, refusals."""

import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import cycletime.tasks
from cycletime.errors import InputError
from cycletime.tasks import ClosedFormEnv, ClosedFormVectorEnv, DoublePendulum, Pendulum, Reacher

pytestmark = pytest.mark.usefixtures("compiled_quickly")
IDS = ["cycletime/Reacher-v0", "cycletime/DoublePendulum-v0"]
ALL_IDS = [f"cycletime/{name}-v0" for name in cycletime.tasks.CLOSED_FORMS.values()]
BULLET_IDS = ["cycletime/BulletReacher-v0", "cycletime/BulletDoublePendulum-v0"]
COPIES = 3
"""The same everywhere, as is 64 ms, so that tests share programs: compiling them takes most of the time."""


def episode(env: Any, seed: int) -> list[tuple[Any, ...]]:  # noqa: ANN401
    observation, _ = env.reset(seed=seed)
    env.action_space.seed(seed)
    seen: list[tuple[Any, ...]] = [(observation.tolist(),)]
    while len(seen) == 1 or not (seen[-1][2] or seen[-1][3]):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        seen.append((observation.tolist(), reward, terminated, truncated))
    return seen


@pytest.mark.parametrize("env_id", [*ALL_IDS, *BULLET_IDS])
def test_every_id_passes_gymnasium_s_own_check(env_id: str) -> None:
    env = gymnasium.make(env_id, disable_env_checker=True, render_mode="rgb_array")
    check_env(env.unwrapped)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*is different from the unwrapped version")
        check_env(env, skip_render_check=True)


def test_the_ids_are_known_in_a_fresh_process_by_naming_the_module() -> None:
    program = "import gymnasium; print(gymnasium.make('cycletime.tasks:cycletime/Reacher-v0', dt='16ms').unwrapped.dt)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "0.016"


@pytest.mark.parametrize("env_id", IDS)
def test_a_seed_reproduces_an_episode_and_another_one_does_not(env_id: str) -> None:
    env = gymnasium.make(env_id, dt="32ms")
    assert episode(env, 5) == episode(env, 5) == episode(gymnasium.make(env_id, dt="32ms"), 5)
    assert episode(env, 5) != episode(env, 6)


@pytest.mark.parametrize(
    ("ours_id", "their_id", "dt", "strongest"),
    [
        ("cycletime/Pendulum-v0", "Pendulum-v1", "50ms", 2.0),
        ("cycletime/MountainCar-v0", "MountainCarContinuous-v0", "20ms", 1.0),
    ],
)
def test_with_one_seed_and_its_time_step_it_is_the_same_episode_as_gymnasium_s(
    ours_id: str, their_id: str, dt: str, strongest: float
) -> None:
    ours, theirs = gymnasium.make(ours_id, dt=dt, env_dt=dt), gymnasium.make(their_id)
    np.testing.assert_allclose(ours.reset(seed=2)[0], theirs.reset(seed=2)[0], atol=1e-6)
    for _ in range(20):
        a, b = ours.step(np.array([0.7], np.float32)), theirs.step(np.array([0.7 * strongest], np.float32))
        np.testing.assert_allclose(a[0], b[0], atol=1e-4)
        np.testing.assert_allclose(float(a[1]), float(b[1]), atol=1e-3)
        assert a[2:4] == b[2:4]


def test_the_time_step_is_set_for_one_environment_alone_and_for_many_copies() -> None:
    coarse, usual = ClosedFormEnv(Pendulum(), "100ms", env_dt="50ms"), ClosedFormEnv(Pendulum(), "100ms")
    many = gymnasium.make_vec("cycletime/Pendulum-v0", num_envs=COPIES, dt="100ms", env_dt="50ms")
    many.reset(seed=0)
    for env, env_dt, steps in ((coarse, 0.05, 2), (usual, 0.002, 50)):
        env.reset(seed=0)
        assert (env.env_dt, env.step(np.zeros(1))[4]["cycle_steps"]) == (env_dt, steps)
    _, _, _, _, info = many.step(np.zeros((COPIES, 1)))
    assert (info["cycle_steps"].tolist(), info["elapsed_s"].tolist()) == ([2] * COPIES, [0.1] * COPIES)


@pytest.mark.parametrize("pair", list(zip(IDS, BULLET_IDS, strict=True)))
@pytest.mark.parametrize("dt", ["16ms", "64ms"])
def test_with_one_seed_it_is_the_same_episode_as_pybullet_s(pair: tuple[str, str], dt: str) -> None:
    ours, bullet = (gymnasium.make(env_id, dt=dt) for env_id in pair)
    first, second = ours.reset(seed=2), bullet.reset(seed=2)
    np.testing.assert_allclose(first[0], second[0], atol=1e-6)
    for _ in range(5):
        action = 0.2 * np.ones_like(ours.action_space.sample())
        a, b = ours.step(action), bullet.step(action)
        np.testing.assert_allclose(a[0], b[0], atol=1e-4)
        assert abs(float(a[1]) - float(b[1])) < 1e-3
        assert a[2:4] == b[2:4]
        assert {name: a[4][name] for name in ("env_steps", "agent_steps", "cycle_steps")} == {
            name: b[4][name] for name in ("env_steps", "agent_steps", "cycle_steps")
        }


def test_at_64_milliseconds_a_reacher_episode_has_38_cycles_the_last_of_half_length() -> None:
    env = gymnasium.make("cycletime/Reacher-v0", dt="64ms")
    env.reset(seed=0)
    lengths = []
    for _ in range(38):
        _, _, terminated, truncated, info = env.step(np.zeros(2, np.float32))
        lengths.append(info["cycle_steps"])
    assert (terminated, truncated) == (False, True)
    assert lengths == [32] * 37 + [16]
    assert (info["env_steps"], info["agent_steps"], info["elapsed_s"]) == (1200, 38, 2.4)


def test_the_spec_makes_the_same_environment_again() -> None:
    env = gymnasium.make("cycletime/Reacher-v0", dt="8ms")
    assert env.spec is not None
    assert gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json())).unwrapped.dt == 0.008  # type: ignore[attr-defined]


def test_many_copies_are_one_program_with_its_autoreset_declared() -> None:
    envs = gymnasium.make_vec("cycletime/Reacher-v0", num_envs=COPIES, dt="64ms")
    assert isinstance(envs.unwrapped, ClosedFormVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    observation, info = envs.reset(seed=3)
    assert observation in envs.observation_space
    assert info["env_steps"].tolist() == [0] * COPIES


def test_what_many_copies_return_can_be_written_to_and_does_not_reach_them() -> None:
    envs: Any = gymnasium.make_vec("cycletime/DoublePendulum-v0", num_envs=COPIES, dt="64ms")
    observation, info = envs.reset(seed=0)
    observation[:] = 1
    info["env_steps"][:] = 9
    *arrays, info = envs.step(np.zeros((COPIES, 1), np.float32))
    for array in (*arrays, *info.values()):
        array[:] = 1
    assert envs.step(np.zeros((COPIES, 1), np.float32))[4]["env_steps"].tolist() == [32] * COPIES


def test_many_copies_tell_the_same_time_as_a_single_one() -> None:
    one, many = ClosedFormEnv(Reacher(), "64ms"), ClosedFormVectorEnv(Reacher(), COPIES, "64ms")
    one.reset(seed=0)
    many.reset(seed=0)
    told = [
        (one.step(np.zeros(2))[4]["elapsed_s"], many.step(np.zeros((COPIES, 2)))[4]["elapsed_s"][1]) for _ in range(38)
    ]
    assert all(single == copy for single, copy in told)
    assert told[8] == (0.576, 0.576)


@pytest.mark.parametrize(
    "make", [lambda dt: ClosedFormEnv(Reacher(), dt), lambda dt: ClosedFormVectorEnv(Reacher(), 1, dt)]
)
def test_videos_have_a_whole_frame_rate_of_at_least_1(make: Any) -> None:  # noqa: ANN401
    assert [make(dt).metadata["render_fps"] for dt in ("16ms", "2.4s")] == [62, 1]


WITHOUT_GYMNASIUM = """
import sys
sys.modules["gymnasium"] = None
import cycletime.tasks
print(cycletime.tasks.Reacher().limit_steps, hasattr(cycletime.tasks, "nothing"))
try:
    from cycletime.tasks import CycleTime
except cycletime.InputError as error:
    print(error)
"""


def test_without_gymnasium_the_tasks_work_and_a_wrapper_says_what_is_missing() -> None:
    ran = subprocess.run([sys.executable, "-c", WITHOUT_GYMNASIUM], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [
        "1200 False",
        "cycletime.tasks.CycleTime needs Gymnasium, which is not installed: pip install gymnasium.",
    ]


@pytest.mark.parametrize("env_id", IDS)
def test_many_copies_behave_as_gymnasium_s_own_vector_of_single_ones(env_id: str) -> None:
    """Same starts, same actions: same rewards, flags, and resets one step after an end."""
    many: Any = gymnasium.make_vec(env_id, num_envs=COPIES, dt="64ms")
    many.reset(seed=1)
    task = many.unwrapped.task
    columns = np.stack(task.numbers(many.unwrapped._states), axis=1)
    singles = SyncVectorEnv([lambda: gymnasium.make(env_id, dt="64ms") for _ in range(COPIES)])
    singles.reset(seed=1)
    for env, start in zip(singles.envs, columns, strict=True):
        env.reset(options={"state": start.astype(float).tolist()})
    rng, ended = np.random.default_rng(0), np.zeros(COPIES, bool)
    for _ in range(60):
        # Gentle, since at its limits a Reacher makes chaos of rounding.
        actions = rng.uniform(-0.2, 0.2, many.action_space.shape).astype(np.float32)
        ours, theirs = many.step(actions), singles.step(actions)
        np.testing.assert_array_equal(ours[1][ended], 0)
        np.testing.assert_array_equal(ours[4]["env_steps"][ended], 0)
        if ended.any():
            break
        np.testing.assert_allclose(ours[0], theirs[0], atol=2e-2)
        np.testing.assert_allclose(ours[1], theirs[1], atol=0.2)
        np.testing.assert_array_equal(ours[2], theirs[2])
        np.testing.assert_array_equal(ours[3], theirs[3])
        ended = ours[2] | ours[3]
    assert ended.any(), "some episode has ended and begun anew"


def test_a_seed_reproduces_many_copies_through_their_resets() -> None:
    def run(seed: int) -> list[Any]:
        envs = gymnasium.make_vec("cycletime/DoublePendulum-v0", num_envs=COPIES, dt="64ms")
        envs.reset(seed=seed)
        steps = [envs.step(np.full((COPIES, 1), 0.1, np.float32)) for _ in range(60)]
        assert all(terminated.any() for terminated in np.array([step[2] for step in steps]).T)
        return [step[0].tolist() for step in steps]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_copies_differ_from_each_other_and_from_their_former_episodes() -> None:
    envs: Any = gymnasium.make_vec("cycletime/Reacher-v0", num_envs=COPIES, dt="64ms")
    first, _ = envs.reset(seed=0)
    for _ in range(38):
        *_, truncated, _ = envs.step(np.zeros((COPIES, 2), np.float32))
    assert truncated.all()
    second, *_ = envs.step(np.zeros((COPIES, 2), np.float32))
    assert len(np.unique(np.concatenate([first, second])[:, 0])) == 2 * COPIES


def test_pictures_show_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    env = ClosedFormEnv(Reacher(), render_mode="rgb_array")
    env.reset(options={"state": [0.0, 0.0, 0.0, 0.0, 0.2, 0.2]})
    before = env.render()
    env.step(np.ones(2))
    after = env.render()
    assert before is not None
    assert after is not None
    assert before.shape == (480, 480, 3)
    assert (before != after).any()
    envs: Any = gymnasium.make_vec("cycletime/Reacher-v0", num_envs=COPIES, render_mode="rgb_array")
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == COPIES
    assert (frames[0] != frames[1]).any()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: ClosedFormEnv(Reacher(), dt="15ms"),
            "15ms is not a whole multiple .* 2ms: the nearest cycle times are 14ms and 16ms",
        ),
        (lambda: ClosedFormEnv(DoublePendulum(), dt="2ms"), "the nearest cycle times are 4ms and 8ms"),
        (lambda: ClosedFormEnv(Reacher(), dt="16s"), "16s is longer than an episode, 2.4s: give at most that"),
        (lambda: ClosedFormVectorEnv(Reacher(), 2, dt="16s"), "16s is longer than an episode"),
        (lambda: ClosedFormEnv(Reacher(), render_mode="ascii"), "'ascii' is not a render mode"),
        (lambda: ClosedFormEnv(Reacher()).reset(options={"start": 1}), "'start' is not a reset option"),
        (
            lambda: ClosedFormEnv(Reacher()).reset(options={"state": [1, 2]}),
            r"is not a state: give 6 finite numbers \(q1, q2",
        ),
        (lambda: ClosedFormEnv(Reacher(), env_dt="4ms"), "env_dt is 4ms: the Reacher has a time step of its own, 2ms."),
        (lambda: ClosedFormEnv(Pendulum(), env_dt="50ms"), "16ms is not a whole multiple .* 50ms"),
        (lambda: ClosedFormVectorEnv(Reacher(), 0), "num_envs is 0"),
        (lambda: ClosedFormVectorEnv(Reacher(), 2, render_mode="human"), "'human' is not a render mode of many"),
        (lambda: ClosedFormVectorEnv(Reacher(), 2).reset(options={"state": 1}), "'state' is not a reset option"),
    ],
)
def test_wrong_input_is_refused(make: Any, says: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=says):
        make()


def test_wrong_actions_are_refused() -> None:
    env, envs = ClosedFormEnv(Reacher()), ClosedFormVectorEnv(Reacher(), 2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(2))
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.zeros((2, 2)))
    env.reset()
    envs.reset()
    with pytest.raises(InputError, match="is not an action: give an array of 2 finite numbers"):
        env.step(np.array([np.nan, 0]))
    with pytest.raises(InputError, match=r"shape \(2,\): it must be \(2, 2\)"):
        envs.step(np.zeros(2))
    for wrong in (np.nan, np.inf):
        with pytest.raises(InputError, match=r"actions of the copies \[1\] are not all finite"):
            envs.step(np.array([[0, 0], [0, wrong]]))
