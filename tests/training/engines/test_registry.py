"""Which engine takes what, in what groups, and why not; nothing is computed."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.exploration import OrnsteinUhlenbeck, Pink
from cycletime.duration import Duration
from cycletime.errors import InputError, NoGpuError
from cycletime.training import compiled_engine
from cycletime.training.compiled_engine import GPU_BYTES, MOST_LANES, lane_bytes, make_loop
from cycletime.training.engine import ENGINES, Cost, engine_for, make_batch, probe_cost, with_engine
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld, GymnasiumEnv
from tests.training.engines.scripted import Scripted, make_spec

HOPPER: dict[str, Any] = {"world": GymnasiumEnv("Hopper-v5"), "dt": "40ms"}


def a_spec(name: str = "compiled", device: str = "cpu", width: int = 1, **of: Any) -> RunSpec:  # noqa: ANN401
    values = {
        "world": ClosedFormWorld("reacher"),
        "agent": PPOAgent(),
        "dt": "16ms",
        "env_steps": 1000,
        "seed": 0,
        **of,
    }
    return RunSpec(**values, engine=EngineSpec(name, device, width))


# Who takes what.


@pytest.mark.parametrize(
    "spec",
    [
        a_spec(),
        a_spec(world=ClosedFormWorld("cart-pole")),
        a_spec(agent=SACAgent(), exploration=Pink()),
        a_spec(width=7),
        a_spec(device="gpu"),
        a_spec("cuda", "gpu"),
        a_spec("stepped"),
        a_spec("stepped", "gpu", **HOPPER),
        a_spec("stepped", agent=ActorCriticAgent(), exploration=OrnsteinUhlenbeck("100ms")),
    ],
)
def test_an_engine_takes_what_it_is_for(spec: RunSpec) -> None:
    assert engine_for(spec) is ENGINES[spec.engine.name].engine
    assert with_engine(spec, spec.engine.name) == spec


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (a_spec("metal"), "'metal' is not an engine: give one of cuda, compiled, stepped"),
        (a_spec(**HOPPER), "'Hopper-v5' is an environment, which the compiled engine cannot run"),
        (
            a_spec("native"),
            "The engine native was part of cycletime between 0.2.0 and 0.3.0 only: resume its runs there",
        ),
        (a_spec("stepped", width=2), "width is 2: only the engine compiled has the choice."),
        (
            replace(a_spec("stepped"), engine=EngineSpec("stepped", version=1)),
            "The run is of version 1 of the engine stepped: this version of cycletime computes version 2",
        ),
        (a_spec("cuda"), "The engine cuda has the device 'cpu': it needs 'gpu'."),
        (a_spec("cuda", "gpu", width=2), "width is 2: only the engine compiled has the choice."),
        (a_spec("cuda", "gpu", **HOPPER), "The engine cuda cannot run 'Hopper-v5'"),
        (
            a_spec("cuda", "gpu", agent=ActorCriticAgent()),
            "The engine cuda cannot train actor-critic: it has ppo and sac.",
        ),
        (a_spec("cuda", "gpu", agent=SACAgent(minibatch=128)), "minibatch is 128: the engine cuda trains SAC with 256"),
        (a_spec("cuda", "gpu", agent=SACAgent(temperature="alpha")), "trains SAC with 'log_alpha' only"),
    ],
)
def test_what_an_engine_does_not_take_is_refused_with_the_value(spec: RunSpec, sentence: str) -> None:
    for ask in (engine_for, lambda refused: make_batch([refused])):
        with pytest.raises(InputError) as caught:
            ask(spec)
        assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (a_spec(), "compiled"),
        (a_spec(agent=SACAgent()), "compiled"),
        (a_spec(device="gpu"), "cuda"),
        (a_spec(device="gpu", world=ClosedFormWorld("acrobot")), "cuda"),
        (a_spec(device="gpu", world=ClosedFormWorld("ur-reacher"), dt=Duration("40ms")), "compiled"),
        (a_spec(device="gpu", width=30), "cuda"),  # which has no width
        (a_spec(device="gpu", agent=PPOAgent(hidden=(32,))), "compiled"),
        (a_spec(device="gpu", agent=SACAgent(), width=30), "cuda"),
        (a_spec(device="gpu", agent=SACAgent(hidden=(64, 64)), width=30), "compiled"),
        (a_spec(device="gpu", exploration=Pink()), "compiled"),
        (a_spec(**HOPPER), "stepped"),
        (a_spec(device="gpu", **HOPPER), "stepped"),
    ],
)
def test_the_fastest_engine_that_takes_a_run_on_its_device_is_chosen(spec: RunSpec, name: str) -> None:
    chosen = with_engine(spec)
    width = spec.engine.width if name == "compiled" else 1
    assert chosen.engine == EngineSpec(name, spec.engine.device, width)
    assert replace(chosen, engine=spec.engine) == spec


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            replace(a_spec(), engine=EngineSpec(learner="background")),
            "learner is 'background': only the engine real-time has the choice.",
        ),
    ],
)
def test_where_no_engine_takes_a_run_one_that_would_without_an_option_says_so(spec: RunSpec, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        with_engine(spec)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match="'metal' is not an engine"):
        with_engine(a_spec(), "metal")


# What goes together.


def other_values(agent: PPOAgent | SACAgent | ActorCriticAgent) -> dict[str, Any]:
    """Another value for each number of an agent."""
    numbers = {each.name: getattr(agent, each.name) for each in fields(agent)}
    return {
        name: not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else value / 2
        for name, value in numbers.items()
        if isinstance(value, int | float)
    }


RATES = {
    PPOAgent: {"discount", "trace_decay", "learning_rate", "clip"},
    SACAgent: {"discount", "learning_rate", "target_smoothing"},
    ActorCriticAgent: {"discount", "policy_rate", "value_rate"},
}


@pytest.mark.parametrize("agent", [PPOAgent(), SACAgent(), ActorCriticAgent()], ids=lambda agent: type(agent).__name__)
def test_runs_that_differ_in_seeds_and_rates_share_a_program_and_no_others(agent: Any) -> None:  # noqa: ANN401
    engine, base = ENGINES["compiled"].engine, a_spec(agent=agent, width=3)
    program = engine.program(base)
    assert engine.program(replace(base, seed=9, origin={"rule": "scaled"})) == program
    changed = {
        name: replace(base, agent=replace(agent, **{name: value})) for name, value in other_values(agent).items()
    }
    assert {name for name, spec in changed.items() if engine.program(spec) == program} == RATES[type(agent)]
    others = [
        replace(base, world=ClosedFormWorld("double-pendulum")),
        replace(base, dt="18ms"),
        replace(base, env_steps=1001),
        replace(base, exploration=Pink()),
        replace(base, engine=EngineSpec(width=4)),
        replace(base, engine=EngineSpec(width=3, device="gpu")),
        replace(base, agent=replace(agent, hidden=(5,))),
    ]
    assert len({program, *map(engine.program, others)}) == 1 + len(others)


def test_environments_share_a_program_but_for_seeds_and_the_kernel_has_one_for_all() -> None:
    stepped, cuda = ENGINES["stepped"].engine, ENGINES["cuda"].engine
    base = a_spec("stepped", **HOPPER)
    assert stepped.program(replace(base, seed=9)) == stepped.program(base)
    assert stepped.program(replace(base, agent=PPOAgent(discount=0.9))) != stepped.program(base)
    on_kernel = a_spec("cuda", "gpu")
    other = replace(
        on_kernel, world=ClosedFormWorld("double-pendulum"), dt="12ms", agent=PPOAgent(batch=100), env_steps=7
    )
    assert cuda.program(on_kernel) == cuda.program(other)


def test_lanes_are_trained_together_environments_one_by_one_and_many_on_the_kernel() -> None:
    told = {
        name: (engine.max_batch_size(spec), engine.efficient_batch_size(spec), engine.jax_device(spec))
        for name, engine, spec in (
            ("compiled", ENGINES["compiled"].engine, a_spec(device="gpu", width=30)),
            ("stepped", ENGINES["stepped"].engine, a_spec("stepped", **HOPPER)),
            ("cuda", ENGINES["cuda"].engine, a_spec("cuda", "gpu")),
        )
    }
    assert told == {"compiled": (30, 30, "gpu"), "stepped": (1, 1, "cpu"), "cuda": (1024, 132, "cpu")}


def test_a_program_is_as_wide_as_a_card_has_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, small = ENGINES["compiled"].engine, a_spec(device="gpu", agent=ActorCriticAgent(hidden=(4,)))
    assert engine.max_lanes(small) == MOST_LANES
    assert engine.max_lanes(replace(small, engine=EngineSpec())) == 1, "a CPU is busy with one"
    needed = lane_bytes(make_loop(small))
    assert needed * MOST_LANES < GPU_BYTES
    monkeypatch.setattr(compiled_engine, "GPU_BYTES", 10 * needed + 1)
    assert engine.max_lanes(small) == 10
    assert ENGINES["stepped"].engine.max_lanes(small) == ENGINES["cuda"].engine.max_lanes(small) == 1


def test_runs_for_different_engines_are_trained_apart(walk: RunSpec) -> None:
    with pytest.raises(InputError, match="are for different engines: train them apart"):
        make_batch([a_spec(), a_spec("stepped")])
    with pytest.raises(InputError, match="There are 2 runs: the engine stepped trains one at a time"):
        make_batch([walk, replace(walk, seed=4)])


# What it costs.


def test_what_runs_cost_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of ten agent steps that take two seconds, and the first of each kind of program seven."""
    now_s = 0.0

    def compute(chunk: int) -> None:
        nonlocal now_s
        now_s += 7 if chunk == 1 else 2

    monkeypatch.setattr("time.monotonic", lambda: now_s)
    group = Scripted([make_spec(chunks=99)], does=compute)
    cost = probe_cost(group, try_s=5)
    assert cost.agent_step_s == pytest.approx(0.2)
    assert (cost.program_s, cost.runs_at_once) == (7, 1)
    assert (now_s, group.closed) == (7 + 3 * 2, 1), "three chunks are more than five seconds"


def test_where_there_is_no_gpu_the_cost_is_an_h200_s_or_unknown() -> None:
    engine = ENGINES["compiled"].engine
    on_gpu = a_spec(device="gpu", width=10, agent=SACAgent(gradient_steps=2, learning_period=4))
    assert engine.cost(on_gpu) == Cost(pytest.approx(15e-6 * 2 / 4 * 10), 30.0, where="an H200")  # type: ignore[arg-type]
    with pytest.raises(NoGpuError, match="JAX finds none here"):
        engine.cost(replace(on_gpu, agent=PPOAgent()))
