from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.agents import ActorCriticAgent, Agent, PPOAgent, SACAgent
from cycletime.agents.exploration import Exploration, OrnsteinUhlenbeck, Pink
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.tasks import CLOSED_FORMS
from cycletime.training import spec as spec_module
from cycletime.training.spec import AGENTS, EXPLORATIONS, EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld, GymnasiumEnv

STEPPED = EngineSpec("stepped")


def a_spec(**overrides: Any) -> RunSpec:  # noqa: ANN401 - any of its fields
    values = {
        "world": ClosedFormWorld("reacher"),
        "agent": PPOAgent(),
        "dt": "16ms",
        "env_steps": 1000,
        "seed": 0,
        **overrides,
    }
    return RunSpec(**values)


# The identity.


GOLDEN = {
    "reacher-ppo-16ms-seed0": (
        a_spec(env_steps=1_000_000),
        "4c57d1e1390b2e16872e1c1b8ddddb6bfe9b4702c140a9476f205c0e81129255",
    ),
    "double-pendulum-sac-8ms-seed7": (
        a_spec(
            world=ClosedFormWorld("double-pendulum"),
            agent=SACAgent(minibatch=64, target_entropy=-1),
            dt="8ms",
            seed=7,
            exploration=Pink(),
        ),
        "f5f1fb2d83583ef1905b5295b383722e012564901e1c912bd2fab47ec456d0a4",
    ),
    "Hopper-v5-actor-critic-40ms-seed1": (
        a_spec(
            world=GymnasiumEnv("Hopper-v5", Duration("2ms")),
            agent=ActorCriticAgent(),
            dt="40ms",
            seed=1,
            engine=EngineSpec("stepped", version=1),
        ),
        "2dc52b229ae5545e15566a04b3fb28052ff704ebc9cabd9f1f775bc3732dcb25",
    ),
    "Pendulum-v1-ppo-50ms-seed0": (
        a_spec(world=GymnasiumEnv("Pendulum-v1", Duration("50ms")), dt="50ms", engine=STEPPED),
        "eafde0469a542f0e93168d80cf1a44997f8d7590ed4bd3aed873384862cbb6c5",
    ),
}
"""Runs on disk are known by these. Where a test fails, all runs that exist are lost to new versions of the package."""


@pytest.mark.parametrize("name", GOLDEN)
def test_identities_stay_what_they_are(name: str) -> None:
    spec, identity = GOLDEN[name]
    assert spec.identity == identity
    assert spec.name == f"{name}-{identity[:10]}"


def test_an_identity_is_the_same_in_every_process() -> None:
    program = (
        "from tests.training.runs.test_spec import GOLDEN\n"
        "print(*[spec.identity for spec, _ in GOLDEN.values()])"
    )  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert ran.stdout.split() == [spec.identity for spec, _ in GOLDEN.values()]


@pytest.mark.parametrize("dt", ["16ms", "0.016", 0.016, "62.5Hz", "16000us", Fraction(2, 125), np.float32(0.016)])
def test_a_cycle_time_is_the_same_however_it_is_written(dt: Any) -> None:  # noqa: ANN401 - any way to write it
    assert a_spec(dt=dt).identity == a_spec().identity


def test_whole_numbers_and_fractions_of_the_same_value_are_the_same() -> None:
    assert a_spec(agent=PPOAgent(discount=1)).identity == a_spec(agent=PPOAgent(discount=1.0)).identity
    assert a_spec(agent=SACAgent(target_entropy=-2)).identity == a_spec(agent=SACAgent(target_entropy=-2.0)).identity
    counts: Any = np.int64(1000), np.int32(0)
    assert a_spec(env_steps=counts[0], seed=counts[1]).identity == a_spec().identity
    batch: Any = np.int64(2000)
    assert a_spec(agent=PPOAgent(batch=batch)).identity == a_spec().identity


NEEDS: dict[str, Any] = {"batch_end": {"learn_when": "episode_end"}}


def another(agent: object, name: str) -> Any:  # noqa: ANN401 - any field's
    """Another value of a field."""
    value = getattr(agent, name)
    match value:
        case str():
            return next(choice for choice in get_args(get_type_hints(type(agent))[name]) if choice != value)
        case tuple():
            return (*value, 32)
        case None:
            return 5
        case bool():
            return not value
        case int():
            return value + 1
        case _:
            return value / 2


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kind, each.name)
        for kind in (PPOAgent, SACAgent, ActorCriticAgent)
        for each in fields(kind)
        if each.name != "exploration"
    ],
)
def test_every_field_of_every_agent_changes_the_identity(
    kind: type[PPOAgent | SACAgent | ActorCriticAgent], name: str
) -> None:
    before = kind(**NEEDS.get(name, {}))
    changed = replace(before, **{name: another(before, name)})
    assert changed != before
    assert a_spec(agent=changed).identity != a_spec(agent=before).identity


def test_every_field_of_a_run_but_its_origin_changes_the_identity() -> None:
    one_step_of_a_rate = float(np.nextafter(0.99, 1))
    specs = [
        a_spec(),
        a_spec(num_envs=8),
        a_spec(world=ClosedFormWorld("double-pendulum")),
        a_spec(agent=SACAgent()),
        a_spec(agent=PPOAgent(discount=one_step_of_a_rate)),
        a_spec(dt="18ms"),
        a_spec(env_steps=1001),
        a_spec(seed=1),
        a_spec(engine=STEPPED),
        a_spec(engine=EngineSpec(device="gpu")),
        a_spec(engine=EngineSpec(width=2)),
        a_spec(exploration=OrnsteinUhlenbeck("100ms")),
        a_spec(exploration=OrnsteinUhlenbeck("101ms")),
        a_spec(exploration=Pink()),
        a_spec(exploration=Pink(slowest="11s")),
        a_spec(exploration=Pink(fastest="11ms")),
        a_spec(world=GymnasiumEnv("cycletime/Reacher-v0"), engine=STEPPED),
        a_spec(world=GymnasiumEnv("cycletime/Reacher-v0", Duration("2ms")), engine=STEPPED),
        a_spec(world=GymnasiumEnv("cycletime/Reacher-v0", Duration("4ms")), engine=STEPPED),
    ]
    assert len({spec.identity for spec in specs}) == len(specs)
    assert a_spec(origin={"rule": "dt-aware"}).identity == a_spec().identity


def test_only_a_task_with_another_time_step_than_its_usual_one_tells_it() -> None:
    """So that runs from before there was a choice keep their identity."""
    usual = a_spec(world=ClosedFormWorld("pendulum", Duration("2ms")), dt="100ms")
    coarse = a_spec(world=ClosedFormWorld("pendulum", Duration("50ms")), dt="100ms")
    assert a_spec().as_json()["world"] == {"task": "reacher"}
    assert usual.as_json()["world"] == {"task": "pendulum"}
    assert coarse.as_json()["world"] == {"task": "pendulum", "env_dt": "50ms"}
    assert coarse.identity != usual.identity
    assert RunSpec.from_json(coarse.as_json()) == coarse


def test_an_engine_has_no_choice_of_precision_any_more() -> None:
    """Runs without one keep their identity."""
    assert a_spec(engine=EngineSpec(device="gpu")).as_json()["engine"] == {
        "name": "compiled",
        "device": "gpu",
        "width": 1,
    }
    with pytest.raises(InputError, match="matmul is 'float32', a choice that no engine has any more"):
        EngineSpec.from_json({"name": "compiled", "device": "gpu", "width": 1, "matmul": "float32"})


def test_an_engine_that_came_to_give_other_numbers_tells_its_version() -> None:
    """Other engines, and runs from before, have none and keep their identity."""
    assert "version" not in a_spec().as_json()["engine"]
    spec = a_spec(engine=EngineSpec("stepped"))
    told = spec.as_json()
    assert told["engine"] == {"name": "stepped", "device": "cpu", "width": 1, "version": 2}
    assert RunSpec.from_json(told) == spec
    del told["engine"]["version"]
    before = RunSpec.from_json(told)
    assert before.engine == EngineSpec("stepped", version=1)
    assert before.as_json() == told
    assert before.identity != spec.identity


def test_a_result_version_of_the_code_changes_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    before = a_spec().identity
    monkeypatch.setattr(spec_module, "RESULT_VERSION", spec_module.RESULT_VERSION + 1)
    assert a_spec().identity != before


def test_a_changed_copy_has_an_identity_of_its_own() -> None:
    spec = a_spec()
    assert re.fullmatch("[0-9a-f]{64}", spec.identity)
    assert replace(spec, seed=1).identity == a_spec(seed=1).identity


# On disk.


rates = st.floats(0, 1)
positives = st.floats(1e-12, 1e12)
counts = st.integers(1, 2**40)
layers = st.lists(st.integers(1, 4096), max_size=4).map(tuple)
limits = st.sampled_from(["terminal", "bootstrap"])
spans = st.one_of(
    st.integers(1, 10**9).map(lambda n: Duration(f"{n}us")),
    st.integers(1, 10**6).map(lambda n: Duration(Fraction(n, 7 * 11 * 13))),
)
agents: st.SearchStrategy[Agent] = st.one_of(
    st.builds(
        PPOAgent,
        batch=st.integers(10**4, 2**20),
        minibatch=st.integers(1, 10**4),
        discount=rates,
        trace_decay=rates,
        learning_rate=positives,
        clip=positives,
        epochs=st.integers(1, 1000),
        hidden=layers,
        noise_std=positives,
        learning_period=st.none() | counts,
        time_limit=limits,
        slices=st.sampled_from(["given", "even"]),
    ),
    st.builds(
        PPOAgent,
        learn_when=st.just("episode_end"),
        batch_end=st.sampled_from(["successor", "episode_end"]),
    ),
    st.builds(
        SACAgent,
        discount=rates,
        learning_rate=positives,
        target_smoothing=rates,
        minibatch=st.integers(1, 10**4),
        replay_capacity=st.integers(10**4, 2**40),
        learning_period=counts,
        gradient_steps=st.integers(1, 10**5),
        warmup_steps=st.integers(0, 2**40),
        hidden=layers,
        target_entropy=st.none() | st.floats(-100, 100),
        time_limit=limits,
        temperature=st.sampled_from(["log_alpha", "alpha"]),
        critic_weight=positives,
        acts=st.sampled_from(["after_learning", "before_learning"]),
    ),
    st.builds(
        ActorCriticAgent,
        discount=rates,
        policy_rate=positives,
        value_rate=positives,
        hidden=layers,
        noise_std=positives,
        time_limit=limits,
    ),
)
explorations: st.SearchStrategy[Exploration | None] = st.one_of(
    st.none(),
    st.builds(OrnsteinUhlenbeck, spans),
    st.builds(Pink, st.integers(11, 10**6).map(lambda n: f"{n}ms"), st.just("10ms")),
)
names = st.one_of(
    st.sampled_from(["Hopper-v5", "cycletime/Reacher-v0", "my.module:My_Env-v0", "..", "../x", "-v", "a b", ".hidden"]),
    st.text(min_size=1, max_size=30).filter(str.isprintable),
)


@st.composite
def specs(draw: st.DrawFn) -> RunSpec:
    dt, k = draw(spans), draw(st.integers(1, 1000))
    env_dt = draw(st.none() | st.just(Duration(dt.exact_s / k)))
    world = draw(
        st.one_of(
            st.sampled_from([ClosedFormWorld(name) for name in CLOSED_FORMS]),
            st.builds(GymnasiumEnv, names, st.just(env_dt)),
        )
    )
    compiled = isinstance(world, ClosedFormWorld) and draw(st.booleans())
    return RunSpec(
        world=world,
        agent=draw(agents),
        dt=world.env_dt * min(k, world.task.limit_steps) if isinstance(world, ClosedFormWorld) else dt,
        env_steps=draw(st.integers(1, 2**31 - 1)),
        seed=draw(st.integers(0, 2**32 - 1)),
        engine=EngineSpec("compiled" if compiled else "stepped", draw(st.sampled_from(["cpu", "gpu"])), draw(counts)),
        exploration=draw(explorations),
        origin=draw(st.dictionaries(st.text(max_size=9), st.none() | st.integers() | st.text(max_size=9), max_size=3)),
    )


@given(specs())
def test_a_spec_comes_back_from_json_as_it_was(spec: RunSpec) -> None:
    told = json.loads(json.dumps(spec.as_json(), allow_nan=False))
    back = RunSpec.from_json(told)
    assert back == spec
    assert back.identity == spec.identity
    assert back.as_json() == told


@given(specs())
def test_a_name_is_one_plain_folder_on_any_system(spec: RunSpec) -> None:
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]*", spec.name)
    assert spec.name.endswith(f"-seed{spec.seed}-{spec.identity[:10]}")


def test_all_agents_and_explorations_that_there_are_can_be_kept() -> None:
    assert {kind.__name__ for kind in AGENTS.values()} == {"PPOAgent", "SACAgent", "ActorCriticAgent"}
    assert set(EXPLORATIONS.values()) == set(get_args(Exploration))


def test_a_dt_without_a_decimal_form_makes_no_second_folder() -> None:
    spec = a_spec(world=GymnasiumEnv("X-v0", Duration("3/7s")), dt="3/7s", engine=STEPPED)
    assert str(spec.dt) == "3/7s"
    assert "/" not in spec.name


# What it is for.


def test_the_agent_is_bound_to_the_exploration_at_the_cycle_time() -> None:
    noise = OrnsteinUhlenbeck("100ms")
    assert a_spec(exploration=noise).bound_agent == PPOAgent(exploration=noise.at("16ms"))
    assert a_spec().bound_agent == PPOAgent()


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"env_steps": 0}, "env_steps is 0: it must be a whole number of at least 1"),
        ({"env_steps": 2**31}, "env_steps is 2147483648: it must be below 2**31, since steps are counted in 32 bits."),
        ({"env_steps": 1e6}, "env_steps is 1000000.0: it must be a whole number"),
        ({"seed": -1}, "seed is -1: it must be a whole number of at least 0"),
        ({"seed": 2**32}, "seed is 4294967296: it must be below 2**32"),
        ({"dt": "15ms"}, "not a whole multiple of the environment time step 2ms: the nearest cycle times are 14ms"),
        ({"dt": "0ms"}, "'0ms' is not a time span"),
        ({"agent": "ppo"}, "'ppo' is not an agent whose runs can be kept: give one of actor-critic, ppo, sac"),
        ({"agent": PPOAgent(exploration=Pink().at("16ms"))}, "give the run its exploration in seconds instead"),
        ({"exploration": Pink().at("16ms")}, "give noise such as OrnsteinUhlenbeck('100ms')"),
    ],
)
def test_what_is_no_run_is_refused(overrides: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        a_spec(**overrides)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"device": "cuda"}, "device is 'cuda': it must be 'cpu' or 'gpu'"),
        ({"width": 0}, "width is 0: it must be a whole number of at least 1"),
    ],
)
def test_what_is_no_engine_is_refused(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        EngineSpec(**values)
