"""Runs as they are described to the kernel, and states as the agent has them."""

import re
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.exploration import OrnsteinUhlenbeck
from cycletime.cuda.engine import CudaEngine
from cycletime.cuda.layout import position_of, sizes_of
from cycletime.cuda.ppo import (
    STATE_WORDS,
    agent_state_of,
    describe_run,
    initial_state,
    initial_state_of,
    networks_of,
)
from cycletime.errors import InputError, RunError
from cycletime.training.checkpoints import tree_from_arrays
from cycletime.training.compiled_engine import make_loop
from cycletime.training.engine import engine_for
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import GymnasiumEnv
from tests.cuda.emulated import Emulated
from tests.cuda.small import learn, make_psi, make_spec


def test_a_description_has_all_that_the_spec_says() -> None:
    agent: dict[str, Any] = {"batch": 70, "minibatch": 40, "slices": "even", "learn_when": "episode_end"}
    spec = make_spec(
        "double-pendulum", "16ms", 2**32 - 1, 10**6, **agent, batch_end="episode_end", time_limit="bootstrap"
    )
    told = {name: describe_run(spec)[name].item() for name in describe_run(spec).dtype.names or () if name != "unused"}
    assert told == {
        "task": 1,
        "cycle_steps": 4,
        "limit_steps": 4000,
        "env_steps": 10**6,
        "actions": 1,
        "batch": 70,
        "slice": 70,
        "epochs": 2,
        "until_episode_end": 1,
        "limit_is_terminal": 0,
        "ends_with_episode": 1,
        "metrics_every": 12,
        "most_episodes": 153 + 1,
        "seed": 2**32 - 1,
        "discount": pytest.approx(0.99),
        "trace_decay": pytest.approx(0.95),
        "learning_rate": pytest.approx(3e-4),
        "clip": pytest.approx(0.2),
        "env_dt_s": pytest.approx(0.004),
    }


@pytest.mark.parametrize(("env_steps", "every"), [(1, 1), (300 * 480, 1), (300 * 480 + 1, 2), (10**7, 70)])
def test_about_three_hundred_learnings_are_reported(env_steps: int, every: int) -> None:
    assert describe_run(make_spec(env_steps=env_steps))["metrics_every"] == every


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"world": GymnasiumEnv("Hopper-v5")}, "The engine cuda cannot run 'Hopper-v5': it has reacher, double-"),
        ({"agent": ActorCriticAgent()}, "The engine cuda cannot train actor-critic: it has ppo and sac."),
        ({"agent": SACAgent(minibatch=64)}, "minibatch is 64: the engine cuda trains SAC with 256 only."),
        ({"num_envs": 6}, "num_envs is 6: the engine cuda has one environment for each run, and compiled has many."),
        ({"exploration": OrnsteinUhlenbeck("100ms")}, "The engine cuda explores with white noise only: leave"),
        (
            {"agent": PPOAgent(hidden=(32, 32))},
            r"hidden is \(32, 32\): the engine cuda has networks of \(64, 64\) only.",
        ),
        (
            {"agent": PPOAgent(learning_period=100)},
            "learning_period is 100: the engine cuda learns once for each batch, 2000.",
        ),
        ({"agent": PPOAgent(minibatch=513)}, "Mini-batches have 513 samples: the engine cuda takes 512 at most."),
        ({"agent": PPOAgent(minibatch=400, batch=700, slices="even")}, "Mini-batches have 700 samples"),
        ({"env_steps": 2**31 - 1}, "env_steps is 2147483647: the engine cuda counts to 2147480767 for this run."),
    ],
)
def test_what_the_kernel_cannot_take_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    spec = replace(make_spec(), **changes)  # which is a run, though not for this engine
    assert re.match(sentence, CudaEngine().refusal(spec) or "")
    with pytest.raises(InputError, match=f"^{sentence}"):
        engine_for(spec)


@pytest.mark.parametrize(
    "changes",
    [{}, {"agent": PPOAgent(minibatch=512)}, {"env_steps": 2_147_480_767}, {"agent": PPOAgent(learning_period=2000)}],
)
def test_what_it_just_can_take_is_taken(changes: dict[str, Any]) -> None:
    assert CudaEngine().refusal(replace(make_spec(), **changes)) is None


@pytest.mark.parametrize("task", ["reacher", "mountain-car"])
def test_first_weights_are_those_of_the_compiled_loop_for_the_same_seed(task: str) -> None:
    spec = make_spec(task, seed=77, noise_std=0.5)
    theirs = make_loop(replace(spec, engine=EngineSpec())).start([77]).state.psi
    first, other = initial_state(spec), initial_state(replace(spec, seed=78))
    ours = agent_state_of(first, spec)
    for one, another in zip(jax.tree.leaves(theirs), jax.tree.leaves(ours), strict=True):
        np.testing.assert_array_equal(one, another)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("task", ["reacher", "mountain-car"])
def test_a_state_and_what_the_agent_has_are_the_same_numbers(task: str) -> None:
    spec = make_spec(task)
    sizes = sizes_of(spec)
    psi = make_psi(sizes.actions, seed=3, observations=sizes.observations)
    back = agent_state_of(initial_state_of(psi), spec)
    for one, another in zip(jax.tree.leaves(psi), jax.tree.leaves(back), strict=True):
        np.testing.assert_array_equal(one, another)


def test_inputs_that_a_task_does_not_have_learn_nothing(device: Emulated) -> None:
    told = learn(device, make_spec("pendulum", batch=20), periods=2)
    for kept in range(3):
        for network in networks_of(told.after, kept):
            assert network["first"][[0, 1, 2, 9]].any(axis=1).all()
            assert not network["first"][3:9].any()
            assert np.isfinite(network["first"]).all()


def test_gradient_steps_are_counted(device: Emulated) -> None:
    told = learn(device, make_spec(batch=50, minibatch=20), periods=2)
    assert int(agent_state_of(told.after, make_spec()).optimizer.taken) == 2 * 2 * 3
    policy_mean = networks_of(told.after, 1)[0]["second"]
    mean: Any = agent_state_of(told.after, make_spec()).optimizer.mean
    np.testing.assert_array_equal(mean.policy.network[1].weight, policy_mean)


def test_a_state_goes_through_its_words() -> None:
    state = initial_state_of(make_psi(1))
    position_of(state)["agent_steps"] = 0x7FC00001  # as a floating-point number, not a number
    example = {"state": np.zeros(STATE_WORDS, np.int32)}
    assert tree_from_arrays(example, {"state": state.view(np.int32)})["state"].tobytes() == state.tobytes()
    with pytest.raises(RunError, match=r"^The checkpoint holds float32\[\d+\] as 'state'"):
        tree_from_arrays(example, {"state": state})


def test_names_and_identities_tell_engines_apart() -> None:
    on_kernel = make_spec()
    plain: RunSpec = replace(on_kernel, engine=EngineSpec())
    assert on_kernel.identity != plain.identity
    assert on_kernel.as_json()["engine"] == {"name": "cuda", "device": "gpu", "width": 1}
    assert RunSpec.from_json(on_kernel.as_json()) == on_kernel


def test_gradient_steps_are_known_long_after_the_means_have_forgotten_their_start() -> None:
    state = initial_state_of(make_psi(2))
    position = position_of(state)
    position["mean_decay"], position["square_decay"] = 2.5e-323, 0.999**100_000
    assert int(agent_state_of(state, make_spec()).optimizer.taken) == 100_000
