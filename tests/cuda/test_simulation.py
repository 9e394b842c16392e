"""The kernel's tasks, noise and reports against the tasks and the agent in JAX, in float64."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.agents.ppo import Sample
from cycletime.cuda.layout import sizes_of, timed_task_of
from cycletime.cuda.ppo import ENDED, TERMINAL, agent_state_of, initial_state_of, networks_of
from cycletime.training.spec import RunSpec
from tests.cuda.device_checks.philox import PhiloxStream, normals, philox
from tests.cuda.device_checks.replay import deviation, pad_observation
from tests.cuda.emulated import Emulated
from tests.cuda.numpy_replay import outputs
from tests.cuda.small import Learned, learn, make_psi, make_spec

pytestmark = pytest.mark.usefixtures("compiled_quickly")
CASES: dict[str, dict[str, Any]] = {
    "reacher, whole cycles": {"dt": "16ms", "batch": 160},
    "reacher, the limit inside a cycle": {"dt": "14ms", "batch": 180},
    "double pendulum, falls": {"task": "double-pendulum", "dt": "4ms", "batch": 120},
    "double pendulum, falls inside a cycle": {"task": "double-pendulum", "dt": "28ms", "batch": 60},
    "at the end of an episode": {"dt": "64ms", "batch": 50, "learn_when": "episode_end", "batch_end": "episode_end"},
}

SWINGING: dict[str, tuple[int, float, dict[str, Any]]] = {
    "pendulum": (2, -1, {"dt": "64ms", "batch": 170}),
    "pendulum with the original's time step": (2, -1, {"dt": "50ms", "env_dt": "50ms", "batch": 210}),
    "cart-pole, against the rail's ends": (3, 3, {"dt": "64ms", "batch": 170}),
    "cart-pole with the original's time step": (3, 3, {"dt": "70ms", "env_dt": "10ms", "batch": 150}),
    "mountain-car, at its goal": (1, 100, {"dt": "64ms", "batch": 60}),
    "mountain-car with the original's time step": (1, 100, {"dt": "60ms", "env_dt": "20ms", "batch": 60}),
    "acrobot, above the line": (5, 1, {"dt": "200ms", "env_dt": "20ms", "batch": 110}),
    "acrobot with the original's time step": (5, 1, {"dt": "200ms", "env_dt": "200ms", "batch": 150}),
}
"""The speed that a policy pushes along with, how strongly, and the run."""
MOST_APART = {"pendulum": 4e-6, "cart-pole": 1e-5, "mountain-car": 1e-6, "acrobot": 4e-6}
"""Of observations, each about three times as far as they are; the car's are small numbers."""


@pytest.mark.parametrize("case", SWINGING)
def test_the_task_does_what_the_closed_form_does_when_it_is_swung_up(device: Emulated, case: str) -> None:
    """Fast and through all angles, where a policy that knows nothing does not come."""
    number, gain, run = SWINGING[case]
    spec = make_spec(case.split()[0].strip(","), **{**run, "minibatch": 50, "epochs": 1})
    told = learn(device, spec, _pushing_along(spec, number, gain))
    found = deviation(spec, told.rows, told.beside, told.result.records)
    assert found.observation < MOST_APART[spec.world.name]
    assert found.reward < 1e-5
    assert found.wrong_ends == 0
    assert found.episodes == len(told.result.records) > 0
    limit_steps = timed_task_of(spec).task.limit_steps
    assert (told.result.records["env_steps"] < limit_steps).all() == timed_task_of(spec).episodes_vary


def _pushing_along(spec: RunSpec, number: int, gain: float) -> NDArray[np.float32]:
    state = initial_state_of(make_psi(1, observations=sizes_of(spec).observations))
    policy = networks_of(state)[0]
    for part in policy.values():
        part[...] = 0
    policy["first"][number, 0], policy["second"][0, 0], policy["last"][0, 0] = gain, 3, 1.5
    policy["log_std"][0] = -2
    return state


@pytest.mark.parametrize("case", CASES)
def test_the_task_does_what_the_closed_form_does(device: Emulated, case: str) -> None:
    told = learn(device, make_spec(**{**CASES[case], "minibatch": 50, "epochs": 1}))
    found = deviation(told.spec, told.rows, told.beside, told.result.records)
    assert found.observation < 1e-5
    assert found.reward < 1e-5
    assert found.wrong_ends == 0
    assert found.episodes == len(told.result.records) - int(told.run["until_episode_end"]) > 0
    ended = told.rows["next"][: int(told.run["batch"])] & ENDED > 0
    assert (told.rows["next"][: len(ended)][ended] & TERMINAL).all()
    if told.run["ends_with_episode"]:
        _check_last_sight(told, found.state)


def test_actions_are_the_mean_and_noise_by_the_number_of_the_step(device: Emulated) -> None:
    """Also after the first learning, whose batch ends in the middle of the 32 steps that are drawn together."""
    spec = make_spec(batch=50, epochs=1)
    first = learn(device, spec)
    for told, begins in ((first, 0), (learn(device, spec, first.after), 50)):
        noise = normals(philox(spec.seed, PhiloxStream.NOISE, begins + np.arange(50)))
        std = np.exp(networks_of(told.before)[0]["log_std"])
        np.testing.assert_allclose(told.rows["action"][:50], told.beside["old_mean"][:50] + std * noise, atol=5e-5)


@pytest.mark.parametrize("task", ["reacher", "double-pendulum"])
def test_reports_are_the_agents_own(device: Emulated, task: str) -> None:
    spec = make_spec(task, env_steps=1000, batch=70, minibatch=20, epochs=4, learning_rate=3e-3)
    told = learn(device, spec)
    (report,) = told.result.reports
    batch, actions, agent = 70, int(told.run["actions"]), spec.agent
    assert isinstance(agent, PPOAgent)
    names = ("observation", "action", "advantage", "lambda_return", "old_log_probability")
    parts = {name: jnp.asarray(told.rows[name][:batch]) for name in names}
    data = Sample(**{**parts, "action": parts["action"][:, :actions]})
    before, after = (agent_state_of(each, spec).parameters for each in (told.before, told.after))
    for name, expected in agent._metrics(before, after, data).items():
        assert report[name] == pytest.approx(float(expected), rel=2e-3, abs=2e-5), name
    assert report["agent_steps"] == batch
    assert report["clip_fraction"] > 0
    np.testing.assert_array_equal(report["log_std"], networks_of(told.after)[0]["log_std"])


def _check_last_sight(told: Learned, state: Any) -> None:  # noqa: ANN401
    """The row after the batch is what was seen at the end of the episode, some steps after the last sample."""
    step_number, ended = int(told.run["batch"]), False
    policy = {name: numbers.astype(float) for name, numbers in networks_of(told.before)[0].items()}
    with jax.enable_x64(True):
        task = replace(timed_task_of(told.spec).task, dtype=jnp.float64)
        cycle = jax.jit(partial(task.cycle, cycle_steps=int(told.run["cycle_steps"])))
        while not ended:
            noise = normals(philox(int(told.run["seed"]), PhiloxStream.NOISE, step_number))
            mean = outputs(policy, pad_observation(task.observe(state))[None])[0]
            step = cycle(state, mean + np.exp(policy["log_std"]) * noise)
            state, step_number, ended = step.state, step_number + 1, bool(step.terminated | step.truncated)
        assert step_number > told.run["batch"]
        np.testing.assert_allclose(told.rows["observation"][told.run["batch"]], task.observe(state), atol=3e-3)
