from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.tasks import CLOSED_FORMS
from cycletime.training.worlds import (
    ClosedFormWorld,
    GymnasiumEnv,
    World,
    make_env,
    refuse_budget_without_episode,
    refuse_unknown_env,
)


@contextmanager
def made(world: World, dt: str) -> Iterator[gymnasium.Env[Any, Any]]:
    env = make_env(world, Duration(dt))
    try:
        yield env
    finally:
        env.close()


def clock_after_one_step(world: World, dt: str) -> tuple[float, float, int]:
    """The env_dt and dt that the environment tells, and the environment steps that one of its steps took."""
    with made(world, dt) as env:
        env.reset(seed=0)
        *_, info = env.step(np.zeros(env.action_space.shape or (), env.action_space.dtype))
        return env.get_wrapper_attr("env_dt"), env.get_wrapper_attr("dt"), info["cycle_steps"]


def episode(world: World, dt: str, agent_steps: int) -> list[float]:
    """All numbers of a short episode."""
    with made(world, dt) as env:
        observation, _ = env.reset(seed=3)
        numbers = [*map(float, observation)]
        for _ in range(agent_steps):
            observation, reward, *_ = env.step(np.full(env.action_space.shape or (), 0.1, np.float32))
            numbers += [*map(float, observation), float(reward)]
        return numbers


def refusal(world: World, dt: str = "40ms") -> str:
    with pytest.raises(InputError) as caught:
        make_env(world, Duration(dt))
    return str(caught.value)


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module `registering_toys` that registers toys/Car-v0, and leaves a file behind where it is imported."""
    (tmp_path / "registering_toys.py").write_text(
        "import gymnasium, pathlib\n"
        "pathlib.Path(__file__).with_name('imported').touch()\n"
        "car = 'gymnasium.envs.classic_control:Continuous_MountainCarEnv'\n"
        "gymnasium.register('toys/Car-v0', car, max_episode_steps=9)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    gymnasium.registry.pop("toys/Car-v0", None)
    sys.modules.pop("registering_toys", None)


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_a_task_is_made_at_the_cycle_time_that_is_asked_for(name: str) -> None:
    world = ClosedFormWorld(name)
    env_dt, dt, steps = clock_after_one_step(world, "40ms")
    assert (env_dt, dt) == (float(world.env_dt), 0.04)
    assert steps == Duration("40ms") / world.env_dt


def test_an_unknown_task_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"'Reacher' is not a task: give 'reacher', .* or 'ur-reacher', or a"):
        ClosedFormWorld("Reacher")


def test_a_task_by_its_gymnasium_id_is_the_same_environment() -> None:
    assert episode(GymnasiumEnv("cycletime/Reacher-v0"), "20ms", 5) == episode(ClosedFormWorld("reacher"), "20ms", 5)


def test_a_task_by_its_gymnasium_id_keeps_its_own_time_step() -> None:
    own = GymnasiumEnv("cycletime/Reacher-v0", Duration("2ms"))
    assert clock_after_one_step(own, "40ms") == (0.002, 0.04, 20)
    told = refusal(GymnasiumEnv("cycletime/Reacher-v0", Duration("10ms")))
    assert told == "env_dt is 10ms: the Reacher has a time step of its own, 2ms."


def test_a_task_has_the_time_step_that_is_asked_for() -> None:
    original = ClosedFormWorld("pendulum", Duration("50ms"))
    assert clock_after_one_step(original, "100ms") == (0.05, 0.1, 2)
    assert clock_after_one_step(GymnasiumEnv("cycletime/Pendulum-v0", Duration("50ms")), "100ms") == (0.05, 0.1, 2)
    assert ClosedFormWorld("pendulum", Duration("2ms")) == ClosedFormWorld("pendulum") != original


def test_mujoco_holds_its_own_steps_unless_it_is_retimed() -> None:
    assert clock_after_one_step(GymnasiumEnv("Hopper-v5"), "40ms") == (0.008, 0.04, 5)
    assert clock_after_one_step(GymnasiumEnv("Hopper-v5", Duration("2ms")), "40ms") == (0.002, 0.04, 20)


def test_retiming_to_the_own_time_step_changes_no_number() -> None:
    plain, retimed = GymnasiumEnv("Hopper-v5"), GymnasiumEnv("Hopper-v5", Duration("8ms"))
    np.testing.assert_allclose(episode(plain, "16ms", 5), episode(retimed, "16ms", 5), rtol=1e-12)


def test_an_environment_without_a_time_step_takes_the_one_that_is_given() -> None:
    world = "MountainCarContinuous-v0"
    assert clock_after_one_step(GymnasiumEnv(world, Duration("20ms")), "60ms") == (0.02, 0.06, 3)
    assert refusal(GymnasiumEnv(world)).startswith(f"{world} publishes no time step (env.unwrapped.dt): give it")


def test_actions_that_no_agent_takes_are_refused_before_a_time_step_is_asked_for() -> None:
    told = "The actions are Discrete(2): the agents need a Box of floating-point numbers."
    assert refusal(GymnasiumEnv("CartPole-v1")) == told
    assert refusal(GymnasiumEnv("CartPole-v1", Duration("20ms"))) == told


def test_so_are_those_of_an_environment_that_can_be_retimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycletime.tasks.retime.RETIMINGS", {"CartPole-v1": None})
    monkeypatch.setattr("cycletime.tasks.retime.retime", lambda name, dt, **keywords: gymnasium.make(name))
    assert "The actions are Discrete(2)" in refusal(GymnasiumEnv("CartPole-v1", Duration("20ms")))


def test_a_task_that_is_asked_for_as_an_environment_is_told() -> None:
    assert refusal(GymnasiumEnv("reacher")).endswith("for one that a module registers, or task='reacher'.")
    assert refusal(GymnasiumEnv("reachr")).endswith("for one that a module registers.")


@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
def test_a_time_step_that_contradicts_what_the_environment_publishes_is_refused() -> None:
    """Hopper-v4 cannot be retimed: it would train at 8 ms, and say 2."""
    told = refusal(GymnasiumEnv("Hopper-v4", Duration("2ms")))
    assert told.startswith("env_dt is 2ms, but a step of Hopper-v4 lasts 8ms: leave env_dt out")
    assert clock_after_one_step(GymnasiumEnv("Hopper-v4", Duration("8ms")), "40ms") == (0.008, 0.04, 5)


def test_a_time_step_is_the_same_however_it_is_written() -> None:
    worlds = {GymnasiumEnv("CartPole-v1", dt) for dt in ("20ms", "0.02", "50Hz", 0.02, Duration("20ms"))}  # type: ignore[arg-type]
    assert worlds == {GymnasiumEnv("CartPole-v1", Duration("20ms"))}


@pytest.mark.parametrize(
    ("world", "nearest"),
    [
        (ClosedFormWorld("reacher"), "42ms"),
        (GymnasiumEnv("Hopper-v5"), "40ms and 48ms"),
        (GymnasiumEnv("Hopper-v5", Duration("2ms")), "42ms and 44ms"),
        (GymnasiumEnv("CartPole-v1", Duration("20ms")), "40ms and 60ms"),
    ],
)
def test_a_cycle_that_is_no_multiple_is_refused_with_the_nearest(world: World, nearest: str) -> None:
    assert nearest in refusal(world, "43ms")


def test_a_cycle_that_is_no_multiple_is_refused_before_anything_is_looked_up() -> None:
    assert "not a whole multiple" in refusal(GymnasiumEnv("no such id", Duration("3ms")))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("hopper-v5", "Did you mean: `Hopper`?"),
        ("Hoper-v5", "Did you mean: `Hopper`?"),
        ("Hopper-v99", "`v5`"),
        ("nosuch/Hopper-v5", "Namespace nosuch not found"),
        ("two words", "Malformed environment ID: two words"),
        ("", "Malformed environment ID"),
    ],
)
def test_an_unknown_id_is_refused_with_what_gymnasium_knows(name: str, hint: str) -> None:
    told = refusal(GymnasiumEnv(name))
    assert told.startswith(f"{name!r} is not an environment that Gymnasium can make (")
    assert hint in told
    with pytest.raises(InputError) as caught:
        refuse_unknown_env(GymnasiumEnv(name))
    assert str(caught.value) == told


def test_a_version_that_gymnasium_has_dropped_is_refused_with_the_one_to_use() -> None:
    assert "`Pendulum-v1`" in refusal(GymnasiumEnv("Pendulum-v0"))


@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
def test_a_version_that_another_package_has_is_refused_with_that_package() -> None:
    assert "gymnasium-robotics" in refusal(GymnasiumEnv("Hopper-v2"))


def test_an_id_without_a_version_is_refused_since_it_may_become_another_world() -> None:
    assert refusal(GymnasiumEnv("Hopper")) == "'Hopper' has no version, and its newest may change: give 'Hopper-v5'."


@pytest.mark.parametrize("world", [ClosedFormWorld("reacher"), GymnasiumEnv("Hopper-v5"), GymnasiumEnv("nosuch:X-v0")])
def test_what_may_be_an_environment_is_not_refused_before_it_is_made(world: World) -> None:
    refuse_unknown_env(world)


def test_whether_an_environment_is_known_is_told_without_importing_it() -> None:
    told = subprocess.run(
        [sys.executable, "-c", KNOWN_WITHOUT_IMPORTS], capture_output=True, text=True, check=True, timeout=60
    )
    assert told.stdout.split() == ["known"]


KNOWN_WITHOUT_IMPORTS = """
import sys
from cycletime.training.worlds import GymnasiumEnv, refuse_unknown_env
for name in ("Hopper-v5", "antigravity:X-v0", "cycletime/BulletReacher-v0"):
    refuse_unknown_env(GymnasiumEnv(name))
print("known", *{"mujoco", "pybullet", "antigravity"} & set(sys.modules))
"""


def test_a_module_that_is_missing_is_named() -> None:
    assert "No module named 'nosuch': install it, or put its folder on PYTHONPATH; " in refusal(
        GymnasiumEnv("nosuch:X-v0")
    )


@pytest.mark.parametrize("name", [":X-v0", "a:b:X-v0", "a b:X-v0", "./toys.py:X-v0"])
def test_what_is_no_module_is_refused(name: str) -> None:
    told = refusal(GymnasiumEnv(name))
    assert repr(name) in told
    with pytest.raises(InputError) as caught:
        refuse_unknown_env(GymnasiumEnv(name))
    assert str(caught.value) == told


def test_a_module_registers_its_environment(toys: Path) -> None:
    world = GymnasiumEnv("registering_toys:toys/Car-v0", Duration("20ms"))
    refuse_unknown_env(world)
    assert not (toys / "imported").exists()
    assert clock_after_one_step(world, "60ms") == (0.02, 0.06, 3)
    assert (toys / "imported").exists()


def test_an_id_that_its_module_does_not_register_is_refused(toys: Path) -> None:
    assert "Environment `Pool` doesn't exist" in refusal(GymnasiumEnv("registering_toys:toys/Pool-v0"))


def test_an_environment_of_a_module_is_retimed_like_any_other(toys: Path) -> None:
    world = GymnasiumEnv("registering_toys:Pendulum-v1", Duration("10ms"))
    assert clock_after_one_step(world, "40ms") == (0.01, 0.04, 4)


@pytest.mark.parametrize(
    ("name", "shortest"), [("reacher", 1200), ("double-pendulum", 25), ("mountain-car", 60), ("acrobot", 200)]
)
def test_a_budget_without_an_episode_is_refused_where_that_is_known(name: str, shortest: int) -> None:
    refuse_budget_without_episode(ClosedFormWorld(name), shortest)
    with pytest.raises(
        InputError, match=f"env_steps is {shortest - 1}: no episode of {name} ends before {shortest:,} "
    ):
        refuse_budget_without_episode(ClosedFormWorld(name), shortest - 1)
    refuse_budget_without_episode(GymnasiumEnv("Pendulum-v1"), 1)


def test_a_package_that_an_environment_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    told = refusal(GymnasiumEnv("Hopper-v5"))
    assert told.startswith("'Hopper-v5' needs a package that is not installed (")
    assert "pip install 'cycletime[mujoco]'" in told
