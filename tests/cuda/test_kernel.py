"""The kernel, emulated, against its float64 replay; and that its results depend on nothing but the run."""

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cycletime.cuda.layout import position_of
from cycletime.cuda.ppo import ENDED, TERMINAL, initial_state_of, networks_of
from cycletime.training.spec import RunSpec
from tests.cuda.emulated import Emulated
from tests.cuda.numpy_replay import replay_update
from tests.cuda.small import Learned, learn, make_psi, make_slice, make_spec

CASES: dict[str, dict[str, Any]] = {
    "a short last slice and chunk": {"dt": "6ms", "batch": 170, "minibatch": 37},
    "one action": {"task": "double-pendulum", "dt": "12ms", "batch": 170, "minibatch": 37},
    "two inputs": {"task": "mountain-car", "dt": "64ms", "batch": 70, "minibatch": 37},
    "slices longer than a chunk": {"batch": 150, "minibatch": 130, "epochs": 1},
    "one sample in a slice": {"batch": 9, "minibatch": 1},
    "the whole batch in a slice": {"task": "double-pendulum", "batch": 66, "minibatch": 66},
    "even slices": {"batch": 70, "minibatch": 40, "slices": "even"},
    "as the released code": {"dt": "64ms", "batch": 50, "learn_when": "episode_end", "batch_end": "episode_end"},
    "values after time limits": {"dt": "64ms", "batch": 80, "time_limit": "bootstrap"},
    "values after falls": {
        "task": "double-pendulum",
        "batch": 80,
        "time_limit": "bootstrap",
        "learn_when": "episode_end",
    },
}


@pytest.mark.parametrize("case", CASES)
def test_a_learning_is_that_of_the_replay(device: Emulated, case: str) -> None:
    told = learn(device, make_spec(**CASES[case]))
    truth = replay_update(told.run, told.before, told.rows, told.beside)
    batch, actions = int(told.run["batch"]), int(told.run["actions"])
    np.testing.assert_allclose(told.beside["value"][: batch + 1], truth["value"][: batch + 1], atol=2e-5)
    np.testing.assert_allclose(told.beside["old_mean"][:batch, :actions], truth["old_mean"], atol=2e-5)
    for name in ("advantage", "old_log_probability", "lambda_return"):
        scale = np.abs(truth[name]).max()
        np.testing.assert_allclose(told.rows[name][:batch], truth[name], atol=2e-5 * max(1, scale))
    _agree(told, truth)


def test_adam_goes_on_from_its_moments(device: Emulated) -> None:
    spec = make_spec(batch=40)
    before = learn(device, spec).after
    told = learn(device, spec, before)
    _agree(told, replay_update(told.run, before, told.rows, told.beside))


def test_an_episode_that_the_time_limit_ended_goes_on_in_value_or_not(device: Emulated) -> None:
    """Of both kinds of episodes of the double pendulum, the state is set so that the first runs into the limit."""
    for kind, terminal in (("terminal", True), ("bootstrap", False)):
        state = initial_state_of(make_psi(1))
        position = position_of(state)
        position["status"], position["world_steps"] = 1, 4000 - 10
        position["world"][:8] = (0, 0.01, 0, 0, 0, 0, 0.009, 0.9)
        told = learn(device, make_spec("double-pendulum", batch=40, time_limit=kind), state)
        row = int(np.flatnonzero(told.rows["next"][:40] & ENDED)[0])
        assert row == 2, "ten steps are two cycles of four, and a short one"
        assert bool(told.rows["next"][row] & TERMINAL) == terminal
        assert told.result.records["env_steps"][0] == 4000
        _agree(told, replay_update(told.run, told.before, told.rows, told.beside))


@pytest.mark.parametrize(
    "spec",
    [
        make_spec(batch=70, minibatch=37, epochs=1),
        make_spec("double-pendulum", dt="12ms", batch=50, minibatch=49, epochs=1, learn_when="episode_end"),
    ],
    ids=["reacher", "double pendulum"],
)
def test_threads_in_any_order_give_the_same_bits(library: ctypes.CDLL, spec: RunSpec) -> None:
    outcomes = {learn(Emulated(library, schedule=schedule), spec).bits for schedule in (1, 99, 12345)}
    assert len(outcomes) == 1


def test_a_run_that_was_left_and_taken_up_gives_the_same_bits(device: Emulated) -> None:
    spec = make_spec("double-pendulum", batch=40, epochs=1)
    at_once, first = learn(device, spec, periods=3), learn(device, spec, periods=1)
    then = learn(device, spec, first.after, periods=2)
    assert then.after.tobytes() == at_once.after.tobytes()
    for name in ("records", "reports"):
        parts = [getattr(each.result, name) for each in (first, then)]
        assert np.concatenate(parts).tobytes() == getattr(at_once.result, name).tobytes()


def test_neither_the_place_in_the_queue_nor_neighbours_change_a_run(library: ctypes.CDLL) -> None:
    specs = [
        make_spec(batch=20, epochs=1),
        make_spec("double-pendulum", batch=30, minibatch=7, epochs=1),
        make_spec(dt="4ms", batch=64, minibatch=64, seed=9, epochs=1),
    ]
    states = [initial_state_of(make_psi(2)), initial_state_of(make_psi(1)), initial_state_of(make_psi(2, seed=1))]

    def bits(order: list[int], blocks: int) -> dict[int, tuple[bytes, ...]]:
        device = Emulated(library, blocks=blocks)
        results = device.train(make_slice([specs[run] for run in order], [states[run] for run in order], periods=2))
        return {
            run: (each.run.state.tobytes(), each.records.tobytes(), each.reports.tobytes())
            for run, each in zip(order, results, strict=True)
        }

    together = bits([0, 1, 2], 1)
    assert bits([2, 0, 1], 2) == together
    assert bits([1], 1)[1] == together[1]


def test_a_run_that_went_astray_leaves_the_next_one_of_its_block_alone(library: ctypes.CDLL) -> None:
    spec = make_spec(batch=20, minibatch=20, epochs=1)  # of four tiles, the last one is not filled
    astray, sound = initial_state_of(make_psi(2)), initial_state_of(make_psi(2, seed=1))
    networks_of(astray)[1]["last_bias"][:] = np.nan
    device = Emulated(library, blocks=1)
    first, second = (each.run.state for each in device.train(make_slice([spec, spec], [astray, sound], periods=1)))
    assert np.isnan(networks_of(first)[0]["second"]).all()
    assert second.tobytes() == learn(device, spec, sound).after.tobytes()


def test_a_run_ends_with_the_learning_in_which_it_reaches_its_budget(device: Emulated) -> None:
    spec = make_spec(dt="64ms", batch=20, epochs=1, env_steps=1500)
    told = learn(device, spec, periods=0)
    position = position_of(told.after)
    assert (int(position["status"]), int(position["period"])) == (2, 3), "640 environment steps in each"
    assert int(position["ended_env_steps"]) == 1200
    assert told.result.records["env_steps"].tolist() == [1200]
    assert told.result.records["agent_steps"].tolist() == [38], "37 whole cycles and a half"


def test_a_run_without_room_for_records_waits(device: Emulated) -> None:
    spec = make_spec("double-pendulum", batch=20, epochs=1)
    work = make_slice([spec], [initial_state_of(make_psi(1))], periods=0)
    most = int(work.runs[0].record["most_episodes"])
    (result,) = device.train(replace(work, most_records=most))
    assert int(position_of(result.run.state)["status"]) == 1
    assert 0 < len(result.records) <= most


def _agree(told: Learned, truth: dict[str, Any]) -> None:
    """What learning changed is what the replay changed, to a small part of the change.

    In the Euclidean norm: where a gradient is nearly zero, Adam makes a step of its rounding.
    """
    for index, name in enumerate(("policy", "value_network")):
        before, after = networks_of(told.before)[index], networks_of(told.after)[index]
        for part, expected in truth[name].items():
            moved, apart = np.linalg.norm(expected - before[part]), np.linalg.norm(after[part] - expected)
            assert apart <= 2e-4 * moved, f"{name} {part}"
