"""A gradient step on the emulated kernel against the agent's own, and that it depends on nothing but the run."""

import ctypes

import numpy as np
import pytest

from cycletime.engines.cuda.layout import POSITION_WORDS, position_of
from cycletime.engines.cuda.sac import layout
from cycletime.engines.cuda.sac.describing import described, psi_of
from cycletime.engines.cuda.sac.device import Resident, SACDevice, Slice, Told
from cycletime.engines.cuda.sac.replay import means_apart, updated
from cycletime.runs.spec import RunSpec
from tests.engines.cuda.sac.emulated import EmulatedMemory
from tests.engines.cuda.sac.small import about_to_learn, make_spec

MOST_APART = 0.05
"""Halves have 11 bits, and gradients are sums of products of four of them."""


def test_both_sides_have_the_same_layout(sac_library: ctypes.CDLL) -> None:
    assert sac_library.run_bytes() == layout.RUN.itemsize
    assert sac_library.launch_bytes() == layout.LAUNCH.itemsize
    assert sac_library.state_words() == layout.STATE_WORDS
    assert sac_library.scratch_words() == layout.SCRATCH_WORDS
    assert 4 * sac_library.row_words() == layout.ROW.itemsize
    assert sac_library.shared_bytes() <= 227 * 1024, "a thread block of an H200 has no more"


@pytest.mark.parametrize("task", ["reacher", "double-pendulum"])
def test_a_gradient_step_is_that_of_the_agent(sac_library: ctypes.CDLL, task: str) -> None:
    spec = make_spec(task, time_limit="terminal", critic_weight=1.0, discount=0.9)
    device = SACDevice(EmulatedMemory(sac_library))
    before, rows = about_to_learn(spec)
    resident, told = _one_period(device, spec)
    after = device.state(resident)
    position = position_of(after)
    assert (int(position["agent_steps"]), int(position["updates"])) == (256, 1)
    stored = device.rows(resident, 256)
    np.testing.assert_array_equal(stored[:255], rows)
    psi, (metrics,) = updated(spec, before, stored, 1)
    for name, value in metrics.items():
        assert float(told.reports[name][0]) == pytest.approx(float(value), rel=2e-3, abs=1e-4), name
    found = psi_of(after, spec)
    assert means_apart(found, psi) < MOST_APART
    np.testing.assert_allclose(found.temperature, psi.temperature, rtol=1e-5)
    # Adam's first step by its formula, and the targets that follow at once.
    start = psi_of(before, spec)
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


def test_the_order_of_threads_does_not_matter(sac_library: ctypes.CDLL) -> None:
    spec = make_spec()
    one, other = (SACDevice(EmulatedMemory(sac_library, schedule=schedule)) for schedule in (1, 2))
    states = [device.state(_one_period(device, spec)[0])[POSITION_WORDS:] for device in (one, other)]
    assert states[0].tobytes() == states[1].tobytes()


def _one_period(device: SACDevice, spec: RunSpec) -> tuple[Resident, Told]:
    resident = device.place(described(spec), *about_to_learn(spec))
    (told,) = device.train(Slice([resident], 8, 8, 1e6, most_periods=1))
    return resident, told
