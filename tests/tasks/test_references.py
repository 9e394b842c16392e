"""Controllers that nobody trained, and what is kept of their returns."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import references as scripted
from benchmarks.references import DTS, measure
from cycletime import tasks
from cycletime.duration import Duration
from cycletime.tasks.references import NOTHING, SCRIPTED, references
from cycletime.ur5 import flange_at

pytestmark = pytest.mark.usefixtures("compiled_quickly")


@pytest.mark.slow
@pytest.mark.parametrize(("task", "good"), [("reacher", 17.0), ("double-pendulum", 9300.0), ("ur-reacher", 250.0)])
def test_a_scripted_controller_is_good_and_what_is_kept_is_what_it_gets(task: str, good: float) -> None:
    measured = measure(task, "80ms", episodes=200, seed=7)
    kept = {each.name: each for each in references(task, "80ms")}
    assert measured[SCRIPTED][0] > good > measured[NOTHING][0]
    for name, (mean, error) in measured.items():
        assert abs(mean - kept[name].mean) < 5 * (error + kept[name].error), name


def test_returns_are_kept_of_every_cycle_time_that_is_named() -> None:
    for task, dts in DTS.items():
        for dt in dts:
            assert [each.name for each in references(task, dt)] == [NOTHING, SCRIPTED]
    assert references("reacher", "0.016") == references("reacher", "16ms")


def test_nothing_is_known_of_other_tasks_and_cycle_times() -> None:
    assert references("mountain-car", "16ms") == ()
    assert references("reacher", "17ms") == ()


def test_scripted_controllers_are_of_tasks_that_there_are() -> None:
    assert set(scripted.CONTROLLERS) == set(DTS) <= set(tasks.CLOSED_FORMS)


@pytest.mark.parametrize("elbow", [0.7, -0.7])
def test_an_arm_at_the_target_is_left_alone_and_one_beside_it_is_pulled_there(elbow: float) -> None:
    shoulder = 0.4
    x = 0.1 * np.cos(shoulder) + 0.11 * np.cos(shoulder + elbow)
    y = 0.1 * np.sin(shoulder) + 0.11 * np.sin(shoulder + elbow)
    act = scripted.reach(tasks.Reacher(), Duration("16ms"))

    def pull(turned: float) -> list[float]:
        seen = (x, y, 0.0, 0.0, np.cos(shoulder + turned), np.sin(shoulder + turned), 0.0, elbow / 3, 0.0)
        return [float(each) for each in act(jnp.array(seen))]

    assert pull(0.0) == pytest.approx([0.0, 0.0], abs=1e-3)
    assert pull(-0.3)[0] > 0.1 > -0.1 > pull(0.3)[0]


def test_poles_that_lean_to_one_side_have_the_cart_pushed_there() -> None:
    act = scripted.balance(tasks.DoublePendulum(), Duration("4ms"))

    def push(lean: float) -> float:
        return float(act(jnp.array([0.0, 0.0, 0.0, np.cos(lean), np.sin(lean), 0.0, 1.0, 0.0, 0.0]))[0])

    assert push(0.0) == 0.0
    assert push(0.05) == pytest.approx(-push(-0.05), abs=1e-3)
    assert abs(push(0.05)) > 0.05


def test_a_ur5_at_its_target_is_left_alone_and_one_beside_it_goes_there() -> None:
    act = jax.jit(scripted.approach(tasks.URReacher(), Duration("40ms")))

    def speeds(y: float, z: float) -> list[float]:
        return [float(each) for each in act(jnp.array([-2.4, 1.5, 0.0, 0.0, y, z, 0.0, 0.0]))]

    def flange_after(shoulder: float, elbow: float) -> list[float]:
        return list(flange_at((-2.4 + 1e-4 * shoulder, 1.5 + 1e-4 * elbow))[1:])

    assert speeds(0.0, 0.0) == [0.0, 0.0]
    at_rest, after = np.array(flange_after(0, 0)), np.array(flange_after(*speeds(0.01, -0.02)))
    np.testing.assert_allclose((after - at_rest) / 1e-4, (-0.03, 0.06), rtol=0.05)  # three times the way in a second
    assert max(map(abs, speeds(5.0, 5.0))) == 1.0
