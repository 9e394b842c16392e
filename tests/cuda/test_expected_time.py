"""How long runs are expected to take: what was measured on an H200."""

from dataclasses import replace

import pytest

from cycletime.agents import PPOAgent
from cycletime.cuda.ppo import UPDATE_S, expected_s
from tests.cuda.cards import measured
from tests.cuda.small import make_spec

WHOLE = pytest.mark.parametrize(("task", "dt"), [("reacher", "16ms"), ("reacher", "4ms"), ("double-pendulum", "16ms")])


def test_learning_takes_what_was_measured() -> None:
    """64 samples at once make steps of it, so that a line is up to 6 % away."""
    sizes, taken = (list(map(float, each.split())) for each in measured(r"us per update, m = (.*): (.*)"))
    step, sample = UPDATE_S
    assert [1e6 * (step + sample * size) for size in sizes] == pytest.approx(taken, rel=0.06)


@WHOLE
def test_whole_runs_take_what_was_measured(task: str, dt: str) -> None:
    """Their first weights, slices and reports are not expected, and count most where runs are short."""
    (taken,) = measured(rf"{task}-{dt}, 132 runs: (\S+) s .*")
    spec = replace(make_spec(task, dt), agent=PPOAgent())
    assert 0.88 * float(taken) < expected_s(spec) < float(taken)


def test_longer_runs_are_expected_to_take_longer() -> None:
    base = make_spec(batch=2000, minibatch=50, epochs=10)
    seconds = expected_s(base)
    assert 4 < seconds < 10, "an H200 takes about 7 s for it"
    assert expected_s(replace(base, dt="8ms")) > 1.5 * seconds
    assert expected_s(replace(base, agent=PPOAgent(minibatch=12))) > 1.2 * seconds
    assert expected_s(replace(base, env_steps=10**6)) == pytest.approx(seconds / 10, rel=0.02)
