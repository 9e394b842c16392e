"""Runs as people ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.exploration import Exploration, OrnsteinUhlenbeck, Pink
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.rules import laws
from cycletime.training.make_specs import MOST_SEEDS, make_exploration, make_specs
from cycletime.training.spec import EngineSpec
from cycletime.training.worlds import ClosedFormWorld, GymnasiumEnv

TUNED = """
[tuned.ppo]
dt = "16ms"
batch = 400
minibatch = 10

[tuned.actor-critic]
dt = "16ms"
discount = 0.9

[set.ppo]
hidden = [8]
epochs = 3
"""
HOPPER = {"task": None, "env": "Hopper-v5", "dt": "40ms"}


def asked(**what: Any) -> Any:  # noqa: ANN401
    """The specs of the paper's Reacher, unless something else is asked for."""
    return make_specs(**{"task": "reacher", "dt": "16ms", "env_steps": 2000, **what})


def test_little_has_to_be_said() -> None:
    (spec,) = asked()
    assert (spec.world, spec.agent, spec.seed) == (ClosedFormWorld("reacher"), PPOAgent(), 0)
    assert (spec.engine, spec.exploration, spec.origin) == (EngineSpec(), None, {})
    (spec,) = make_specs(env="Pendulum-v1", env_dt="50ms", algorithm="actor-critic", dt="100ms", env_steps=10)
    assert (spec.world, spec.agent) == (GymnasiumEnv("Pendulum-v1", Duration("50ms")), ActorCriticAgent())
    assert spec.engine == EngineSpec("stepped")


@pytest.mark.parametrize(("seeds", "expected"), [(3, [0, 1, 2]), (range(5, 7), [5, 6]), ([9, 4], [9, 4]), (1, [0])])
def test_there_is_a_run_for_each_seed_and_they_differ_in_nothing_else(seeds: Any, expected: list[int]) -> None:  # noqa: ANN401
    specs = asked(seeds=seeds)
    assert [spec.seed for spec in specs] == expected
    assert len({spec.identity for spec in specs}) == len(expected)
    assert all({**spec.as_json(), "seed": 0} == {**specs[0].as_json(), "seed": 0} for spec in specs)


def test_values_are_carried_from_the_cycle_time_that_they_were_tuned_at() -> None:
    values = {"batch": 400, "minibatch": 10, "discount": 0.99}
    (spec,) = asked(dt="32ms", tuned_at="16ms", values=values, others={"epochs": 3})
    assert isinstance(spec.agent, PPOAgent)
    assert (spec.agent.batch, spec.agent.minibatch, spec.agent.epochs) == (200, 5, 3)
    assert spec.agent.discount == pytest.approx(0.99**2)
    assert (spec.origin["rule"], spec.origin["tuned_at"]) == ("dt-aware", "16ms")
    (plain,) = asked(dt="32ms", tuned_at="16ms", values=values, rule="baseline")
    assert isinstance(plain.agent, PPOAgent)
    assert plain.agent.batch == 400
    (sac,) = asked(algorithm="sac", dt="8ms", tuned_at="16ms", values={"discount": 0.9}, also=["target-smoothing"])
    assert isinstance(sac.agent, SACAgent)
    assert sac.agent.target_smoothing == pytest.approx(1 - 0.995**0.5, rel=1e-3)


def test_a_file_of_tuned_values_says_where_they_are_from_and_what_is_given_beside_it_counts(tmp_path: Path) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(TUNED)
    (spec,) = asked(dt="32ms", tuned=file)
    assert spec.agent == PPOAgent(batch=200, minibatch=5, discount=0.99**2, trace_decay=0.95**2, hidden=(8,), epochs=3)
    assert spec.origin["tuned_at"] == "16ms"
    (spec,) = asked(dt="32ms", tuned=file, values={"batch": 800}, others={"epochs": 4})
    assert isinstance(spec.agent, PPOAgent)
    assert (spec.agent.batch, spec.agent.epochs, spec.agent.hidden) == (400, 4, (8,))
    (spec,) = asked(algorithm="actor-critic", tuned=file)
    assert (spec.agent, spec.origin) == (ActorCriticAgent(discount=0.9), {})
    with pytest.raises(InputError, match="no rule carries values of actor-critic"):
        asked(algorithm="actor-critic", dt="32ms", tuned=file)


@pytest.mark.parametrize(
    ("device", "engine", "expected"),
    [
        ("cpu", "auto", EngineSpec()),
        ("gpu", "auto", EngineSpec("cuda", "gpu")),
        ("gpu", "compiled", EngineSpec("compiled", "gpu")),
        ("cpu", "stepped", EngineSpec("stepped")),
    ],
)
def test_the_engine_is_the_fastest_on_the_device_or_the_one_that_is_asked_for(
    device: str, engine: str, expected: EngineSpec
) -> None:
    (spec,) = asked(device=device, engine=engine)
    assert spec.engine == expected


@pytest.mark.parametrize("task", ["pendulum", "cart-pole", "mountain-car", "acrobot"])
def test_the_kernel_has_every_task_with_any_time_step(task: str) -> None:
    (spec,) = asked(task=task, env_dt="1ms", device="gpu", env_steps=10_000)
    assert spec.engine == EngineSpec("cuda", "gpu")
    assert spec.world == ClosedFormWorld(task, Duration("1ms"))


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"task": None}, "Give either a task"),
        ({"env": "Hopper-v5"}, "Give either a task"),
        ({"env_dt": "4ms"}, "env_dt is 4ms: the Reacher has a time step of its own, 2ms"),
        ({"task": "Reacher"}, "'Reacher' is not a task"),
        ({"seeds": 0}, f"seeds is 0: there must be from 1 to {MOST_SEEDS}"),
        ({"seeds": -1}, "seeds is -1"),
        ({"seeds": []}, "from 1 to"),
        ({"seeds": MOST_SEEDS + 1}, f"seeds is {MOST_SEEDS + 1}"),
        ({"seeds": [3, -4]}, "seed is -4"),
        ({"seeds": [0, 0]}, "seeds is [0, 0]: give each once"),
        ({"task": PPOAgent()}, "tanh') is not a task: give 'reacher'"),
        ({"task": None, "env": PPOAgent()}, "tanh'): give its id in one line, such as 'Reacher-v5'"),
        ({"rule": laws.COUNT, "tuned_at": "8ms"}, ") for ppo: choose one of baseline, dt-aware"),
        ({"algorithm": "dqn"}, "'dqn' is not an algorithm"),
        ({"dt": "15ms"}, "not a whole multiple"),
        ({"env_steps": 0}, "env_steps is 0"),
        ({"values": {"batch": -1}}, "batch is -1"),
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"engine": "metal"}, "'metal' is not an engine"),
        ({"engine": "cuda"}, "has the device 'cpu'"),
        (
            {**HOPPER, "engine": "compiled"},
            "which the compiled engine cannot run",
        ),
        (
            {**HOPPER, "engine": "cuda", "device": "gpu"},
            "The engine cuda cannot run 'Hopper-v5'",
        ),
        ({"rule": "scaled"}, "it needs tuned_at"),
        ({"tuned": "some.toml", "tuned_at": "16ms"}, "tuned_at is 16ms: the file of tuned values says it already"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_value(what: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(**what)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("noise", "expected"),
    [
        (("white",), None),
        (("ornstein-uhlenbeck", "100ms"), OrnsteinUhlenbeck("100ms")),
        (("pink",), Pink()),
        (("pink", "5s"), Pink(slowest="5s")),
    ],
)
def test_noise_has_a_name_and_its_time(noise: tuple[Any, ...], expected: Exploration | None) -> None:
    assert make_exploration(*noise) == expected
    (spec,) = asked(exploration=make_exploration(*noise))
    assert spec.exploration == expected


@pytest.mark.parametrize(
    ("noise", "sentence"),
    [
        (("brown",), "'brown' is not a noise: give one of white"),
        (("white", "100ms"), "correlation is 100ms: white noise has none"),
        (("ornstein-uhlenbeck",), "correlation is missing"),
    ],
)
def test_noise_that_does_not_exist_is_refused(noise: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        make_exploration(*noise)
    assert sentence in str(caught.value)
