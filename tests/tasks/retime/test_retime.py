"""Every environment that `retime` knows, at its own time step and at shorter ones."""

import math
import pickle
import subprocess
import sys
from copy import deepcopy
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from cycletime import Duration, InputError
from cycletime.libraries.zoo import RETIMED
from cycletime.tasks.retime import RETIMINGS, retime
from docs.retime_tables import own_time_limit
from tests.tasks.retime.own import own_time_step

OWN = {  # physics step, frame skip and episode, from Gymnasium's documentation
    "Ant-v5": ("10ms", 5, "50s"),
    "HalfCheetah-v5": ("10ms", 5, "50s"),
    "Hopper-v5": ("2ms", 4, "8s"),
    "Humanoid-v5": ("3ms", 5, "15s"),
    "HumanoidStandup-v5": ("3ms", 5, "15s"),
    "InvertedDoublePendulum-v5": ("10ms", 5, "50s"),
    "InvertedPendulum-v5": ("20ms", 2, "40s"),
    "Pendulum-v1": ("50ms", 1, "10s"),
    "Pusher-v5": ("10ms", 5, "5s"),
    "Reacher-v5": ("10ms", 2, "1s"),
    "Swimmer-v5": ("10ms", 4, "40s"),
    "Walker2d-v5": ("2ms", 4, "8s"),
}
IDS = sorted(OWN)
MUJOCO_IDS = [env_id for env_id in IDS if env_id != "Pendulum-v1"]


def own_dt(env_id: str) -> Duration:
    physics_dt, frame_skip, _ = OWN[env_id]
    return Duration(physics_dt) * frame_skip


def part_of_own_dt(env_id: str, parts: int) -> Duration:
    return own_dt(env_id) * Fraction(1, parts)


def trace(env: gym.Env[Any, Any], n: int = 25, seed: int = 3) -> list[Any]:
    env.action_space.seed(seed)
    steps: list[Any] = [env.reset(seed=seed)]
    for _ in range(n):
        steps.append(env.step(env.action_space.sample()))
        if steps[-1][2]:
            steps.append(env.reset())
    env.close()
    return steps


def test_what_is_known_is_what_is_tested() -> None:
    assert sorted(RETIMINGS) == IDS
    assert sorted(filter(RETIMED.fullmatch, gym.registry)) == IDS, "what notes on the Zoo's files say"


@pytest.mark.parametrize("env_id", IDS)
def test_own_time_steps_and_limits_are_read_from_the_environment(env_id: str) -> None:
    physics_dt, frame_skip, limit = OWN[env_id]
    step = own_time_step(env_id)
    assert (step.physics_dt, step.frame_skip) == (Duration(physics_dt), frame_skip)
    assert own_time_limit(env_id, step) == Duration(limit)


@pytest.mark.parametrize("env_id", IDS)
def test_at_the_own_time_step_it_is_gymnasium_s_environment_bit_by_bit(env_id: str) -> None:
    retimed = retime(env_id, own_dt(env_id))
    assert retimed.metadata == gym.make(env_id).metadata
    for plain, here in zip(trace(gym.make(env_id)), trace(retimed), strict=True):
        np.testing.assert_equal(here, plain)


@pytest.mark.parametrize("parts", [2, 5])
@pytest.mark.parametrize("env_id", IDS)
def test_a_shorter_step_is_exact_and_episodes_keep_their_seconds(env_id: str, parts: int) -> None:
    env_dt = part_of_own_dt(env_id, parts)
    env = retime(env_id, env_dt)
    step, raw = env.time_step, env.unwrapped
    assert step.env_dt == env_dt == Duration(raw.dt)  # type: ignore[attr-defined]
    assert env.env_dt == float(env_dt)
    if env_id in MUJOCO_IDS:
        assert Duration(raw.model.opt.timestep) == step.physics_dt  # type: ignore[attr-defined]
        assert raw.frame_skip == step.frame_skip  # type: ignore[attr-defined]
    own_physics_dt = Duration(OWN[env_id][0])
    assert step.physics_dt <= own_physics_dt
    assert (step.physics_dt == own_physics_dt) == ((env_dt / own_physics_dt).denominator == 1)
    assert env.spec is not None
    assert env.spec.max_episode_steps is not None
    assert env_dt * env.spec.max_episode_steps == Duration(OWN[env_id][2])
    assert env.metadata["render_fps"] == round(1 / float(env_dt))
    assert type(raw).metadata.get("render_fps") in (None, 30)  # the class is left as it was


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("env_id", IDS)
def test_episodes_are_truncated_at_the_same_time(env_id: str, parts: int) -> None:
    spec = deepcopy(gym.spec(env_id))
    spec.max_episode_steps = 6
    env = retime(spec, part_of_own_dt(env_id, parts))
    env.reset(seed=0)
    still = np.zeros(env.action_space.shape or ())
    truncations = [env.step(still)[3] for _ in range(6 * parts)]
    assert truncations == [False] * (6 * parts - 1) + [True]
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_spaces_and_first_observations_do_not_depend_on_the_step(env_id: str) -> None:
    plain, retimed = gym.make(env_id), retime(env_id, part_of_own_dt(env_id, 5))
    assert retimed.observation_space == plain.observation_space
    assert retimed.action_space == plain.action_space
    np.testing.assert_equal(retimed.reset(seed=11), plain.reset(seed=11))


@pytest.mark.parametrize("env_id", IDS)
def test_seeds_reproduce(env_id: str) -> None:
    env_dt = part_of_own_dt(env_id, 4)
    first, again, other = (trace(retime(env_id, env_dt), 10, seed) for seed in (3, 3, 4))
    np.testing.assert_equal(again, first)
    assert not np.array_equal(other[0][0], first[0][0])


# The checker would prefer a bare environment, bounded observations and actions within +-1.
@pytest.mark.filterwarnings("ignore:.*WARN.*(unwrapped|infinity|normalized)")
@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_s_checker_is_content(env_id: str) -> None:
    check_env(retime(env_id, part_of_own_dt(env_id, 5)), skip_render_check=True)


@pytest.mark.parametrize("env_id", IDS)
def test_a_pickled_environment_keeps_its_step(env_id: str) -> None:
    env = retime(env_id, part_of_own_dt(env_id, 5))
    copy = pickle.loads(pickle.dumps(env))
    assert Duration(copy.unwrapped.dt) == part_of_own_dt(env_id, 5)
    assert copy.metadata == env.metadata
    np.testing.assert_equal(trace(copy, 5), trace(env, 5))


def test_a_spec_makes_the_same_environment_again_also_through_json() -> None:
    env = retime("Hopper-v5", "3ms", physics_dt="1ms", time_limit="6s", healthy_reward=2.0)
    assert env.spec is not None
    for spec in (env.spec, EnvSpec.from_json(env.spec.to_json())):
        again: Any = gym.make(spec)
        assert again.spec == env.spec
        assert again.time_step == env.time_step
        np.testing.assert_equal(trace(again), trace(gym.make(env.spec)))


def test_retime_is_an_entry_point(request: pytest.FixtureRequest) -> None:
    gym.register("Fast/Hopper-v5", "cycletime.tasks.retime:retime", kwargs={"env_id": "Hopper-v5", "env_dt": "2ms"})
    request.addfinalizer(lambda: gym.registry.pop("Fast/Hopper-v5"))
    env: Any = gym.make("Fast/Hopper-v5", healthy_reward=3.0)
    assert (env.unwrapped.dt, env.spec.max_episode_steps) == (0.002, 4000)
    again: Any = gym.make(env.spec)
    np.testing.assert_equal(trace(again), trace(env))
    vector: Any = gym.make_vec("Fast/Hopper-v5", num_envs=2)
    assert [inner.unwrapped.dt for inner in vector.envs] == [0.002, 0.002]


def test_the_time_limit_is_in_seconds_or_off() -> None:
    given = retime("Reacher-v5", "4ms", time_limit="2.4s").spec
    assert given is not None
    assert given.max_episode_steps == 600
    unlimited = retime("Reacher-v5", "4ms", time_limit=math.inf).spec
    assert unlimited is not None
    assert unlimited.max_episode_steps is None


def test_keywords_reach_the_environment() -> None:
    env: Any = retime("Ant-v5", "10ms", include_cfrc_ext_in_observation=False, disable_env_checker=True)
    assert env.observation_space.shape == (27,)
    assert "PassiveEnvChecker" not in str(env)


@pytest.mark.parametrize(
    ("env_id", "env_dt", "keywords", "complaint"),
    [
        ("Hopper-v4", "2ms", {}, r"'Hopper-v4' are not known: .* register_retiming\('Hopper-v4', terms\), or choose"),
        ("Hopper-v4", "2ms", {}, "Walker2d-v5; did you mean Hopper-v5\\?"),
        ("Hoper-v5", "2ms", {}, "did you mean Hopper-v5\\?"),
        ("Hopper", "2ms", {}, "'Hopper' are not known"),
        (
            "Hopper-v5",
            "3ms",
            {},
            "plain environment's episode of 8s is no whole number of steps of 3ms: take 2.5ms or 3.2ms, or give retime",
        ),
        ("Pendulum-v1", "15ms", {}, "episode of 10s is no whole number of steps of 15ms: take 12.5ms or 16ms, or"),
        ("Pendulum-v1", "49.9ms", {}, "steps of 49.9ms: take 40ms or 50ms, or give retime a time_limit"),
        ("Reacher-v5", "1.1s", {}, "episode of 1s is no whole number of steps of 1.1s: take 1s, or give retime a"),
        ("Pendulum-v1", "75ms", {}, "step 75ms is longer than the 50ms .* hold each action for several"),
        ("Hopper-v5", 2, {}, "'2' has no unit: write '2ms'"),
        ("Hopper-v5", "2ms", {"time_limit": "1ms"}, "time_limit 1ms is not a whole multiple"),
        ("Hopper-v5", "2ms", {"time_limit": -math.inf}, "-inf is not a time span"),
        ("Hopper-v5", "2ms", {"max_episode_steps": 9}, "max_episode_steps=9 counts steps, .* give time_limit instead"),
        ("Hopper-v5", "2ms", {"frame_skip": 1}, "frame_skip=1 counts steps, .* give env_dt instead"),
        ("Pendulum-v1", "0.1s", {}, "give at most 50ms"),
        ("Hopper-v5", -0.002, {}, "-0.002 is not a time span"),
        (5, "2ms", {}, "5 is neither an id such as 'Hopper-v5' nor a spec"),
    ],
)
def test_wrong_input_is_refused(env_id: str, env_dt: str, keywords: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        retime(env_id, env_dt, **keywords)


def test_a_retimed_environment_is_not_retimed_again() -> None:
    spec = retime("Reacher-v5", "4ms").spec
    assert spec is not None
    with pytest.raises(InputError, match="was retimed to 4ms already"):
        retime(spec, "3ms")


def test_without_mujoco_the_extra_is_named_and_pendulum_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(InputError, match=r"MuJoCo is not installed: pip install 'cycletime\[mujoco\]'\."):
        retime("Hopper-v5", "2ms")
    assert retime("Pendulum-v1", "10ms").env_dt == 0.01


def test_importing_does_not_import_mujoco() -> None:
    program = "import sys, cycletime.tasks.retime; sys.exit('mujoco' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
