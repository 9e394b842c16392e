"""A gradient step on the emulated kernel against the agent's own, and that it depends on nothing but the run."""

import ctypes

import numpy as np
import pytest

from cycletime.cuda import sac
from cycletime.cuda.device import DeviceRun, Slice
from cycletime.cuda.layout import position_of
from cycletime.cuda.sac import SAC_KERNEL, agent_state_of, describe_run
from cycletime.training.spec import RunSpec
from tests.cuda.device_checks.replay import LONG_S
from tests.cuda.device_checks.sac_checks import (
    MOST_MEANS_APART,
    gradient_step,
    means_difference,
    replay_updates,
    same_in_slices,
)
from tests.cuda.emulated import Emulated
from tests.cuda.sac.small import about_to_learn, make_spec

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def test_both_sides_have_the_same_layout(sac_library: ctypes.CDLL) -> None:
    assert sac_library.run_bytes() == sac.RUN.itemsize
    assert sac_library.launch_bytes() == sac.SAC_KERNEL.launch.itemsize
    assert sac_library.state_words() == sac.STATE_WORDS
    assert sac_library.scratch_words() == sac.SCRATCH_WORDS
    assert 4 * sac_library.row_words() == sac.ROW.itemsize


@pytest.mark.parametrize("task", ["reacher", "double-pendulum"])
def test_a_gradient_step_is_that_of_the_agent(sac_device: Emulated, task: str) -> None:
    spec = make_spec(task, time_limit="terminal", critic_weight=1.0, discount=0.9)
    run = _about_to_learn(sac_device, spec)
    start = agent_state_of(sac_device.state(run), spec)
    for check in gradient_step(sac_device, spec, run):
        assert check.passed, f"{check.name}: {check.found}, at most {check.most}"
    after = sac_device.state(run)
    position = position_of(after)
    assert (int(position["agent_steps"]), int(position["updates"])) == (256, 1)
    # Adam's first step by its formula, and the targets that follow at once.
    found = agent_state_of(after, spec)
    for layer in range(3):
        weight, mean, square, old = (
            np.asarray(network[layer].weight)
            for network in (
                found.critics.second,
                found.critics_optimizer.mean.second,  # type: ignore[attr-defined]
                found.critics_optimizer.square.second,  # type: ignore[attr-defined]
                start.critics.second,
            )
        )
        np.testing.assert_allclose(weight, old - 3e-4 * mean / 0.1 / (np.sqrt(square / 0.001) + 1e-8), atol=1e-7)
        target = np.asarray(found.targets.second[layer].weight)
        np.testing.assert_allclose(target, 0.005 * weight + 0.995 * old, atol=1e-7)


def test_several_gradient_steps_may_follow_several_agent_steps(sac_device: Emulated) -> None:
    """As where updates per second are kept: the second gradient step goes on from the first, on the same replay."""
    spec = make_spec(gradient_steps=2, learning_period=3, time_limit="terminal", critic_weight=1.0)
    run = sac_device.place(describe_run(spec), *about_to_learn(spec, stored=254))
    before = sac_device.state(run)
    sac_device.train(Slice([run], most_records=4, most_reports=4, time_s=LONG_S, most_periods=1))
    after = sac_device.state(run)
    position = position_of(after)
    assert (int(position["agent_steps"]), int(position["updates"])) == (257, 2)
    truth, _ = replay_updates(spec, before, sac_device.replay_rows(run, 257), 1)
    assert means_difference(agent_state_of(after, spec), truth) < MOST_MEANS_APART


def test_neither_the_order_of_threads_nor_a_checkpoint_matters(sac_library: ctypes.CDLL) -> None:
    """The second slice of two goes on from what a checkpoint has, and threads take turns in another order."""

    class Shuffled(Emulated):
        def begin(self, work: Slice) -> None:
            self.card.schedule += 1
            super().begin(work)

    device, spec = Shuffled(sac_library, kernel=SAC_KERNEL), make_spec(gradient_steps=1)
    check = same_in_slices(device, [spec], [_about_to_learn(device, spec)], (1, 1))
    assert check.passed, check.name


def _about_to_learn(device: Emulated, spec: RunSpec) -> DeviceRun:
    return device.place(describe_run(spec), *about_to_learn(spec))
