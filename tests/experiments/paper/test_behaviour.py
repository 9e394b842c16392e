"""Behaviour of policies, against environments that are stepped one by one, and where it is known beforehand."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.experiments.investigation import Size
from cycletime.experiments.paper import behaviour
from cycletime.experiments.paper.behaviour import measure_behaviour, policy_shares
from cycletime.experiments.paper.data import read_behaviours, save_behaviours
from cycletime.experiments.paper.experiments import load_study
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.worlds import ActionBounds, ClosedFormWorld
from tests.studies.small import finished, specs_of

pytestmark = pytest.mark.usefixtures("compiled_quickly")
EPISODES = 3
"""Always as many, and as many policies on a task, so that there is one program."""
NOTHING = {"reacher": np.zeros((9, 2)), "double-pendulum": np.zeros((9, 1))}
IDS = {"reacher": "cycletime/Reacher-v0", "double-pendulum": "cycletime/DoublePendulum-v0"}


def linear(weight: Any, bias: Any = 0.0) -> PolicyNetwork:  # noqa: ANN401
    """A policy that is linear in the observation."""
    weight = np.asarray(weight, np.float32)
    bias = np.broadcast_to(np.float32(bias), weight.shape[1:])
    return PolicyNetwork((Layer(jnp.array(weight), jnp.array(bias)),), "tanh", jnp.zeros(weight.shape[1]), False)


def balancing(strength: float = 1.0) -> PolicyNetwork:
    """A force on the cart that keeps both poles up for a while; with the wrong sign it throws them down."""
    weight = np.zeros((9, 1))
    weight[[0, 1, 4, 5, 7, 8], 0] = np.array([0.2, 0.5, 8.0, 0.2, -10.0, -1.7]) * strength
    return linear(weight)


def stepped(task: str, dt: str, policy: PolicyNetwork) -> list[tuple[float, float, int]]:
    """Of each episode the first and last distance of the fingertip and its environment steps, in NumPy."""
    act = SavedPolicy(policy, ActionBounds.raw(policy.action_size), Duration(dt), task, "none", 0).in_numpy().act
    env: Any = gymnasium.make(IDS[task], dt=dt).unwrapped
    found = []
    for key in jax.random.split(jax.random.key(0), EPISODES):
        made = ClosedFormWorld(task).task
        start = np.array(made.numbers(made.reset(key)), np.float64)
        observation, _ = env.reset(options={"state": tuple(start.tolist())})
        first, over = np.hypot(*observation[2:4]), False
        while not over:
            observation, _, terminated, truncated, info = env.step(act(observation))
            over = terminated or truncated
        found.append((float(first), float(np.hypot(*observation[2:4])), int(info["env_steps"])))
    return found


@pytest.mark.parametrize("dt", ["32ms", "64ms"])  # at 64 ms an episode of Reacher ends inside a cycle
def test_the_distance_on_reacher_is_that_of_the_stepped_environment(dt: str) -> None:
    policy = linear(np.random.default_rng(4).normal(scale=0.1, size=(9, 2)))
    first, last, _ = np.transpose(stepped("reacher", dt, policy))
    shares = policy_shares("reacher", Duration(dt), [policy], EPISODES)
    assert shares == pytest.approx([last.mean() / first.mean()], abs=1e-3)


def test_the_time_upright_is_that_of_the_stepped_environment() -> None:
    policies = [linear(NOTHING["double-pendulum"]), balancing(), balancing(-1.0)]
    expected = [np.mean([steps for *_, steps in stepped("double-pendulum", "16ms", each)]) / 4000 for each in policies]
    shares = policy_shares("double-pendulum", Duration("16ms"), policies, EPISODES)
    assert shares == pytest.approx(expected, abs=1e-3)
    assert shares[2] < shares[0] < shares[1]


def test_who_does_nothing_on_reacher_stays_where_it_is() -> None:
    shares = policy_shares("reacher", Duration("4ms"), [linear(NOTHING["reacher"])], EPISODES)
    assert shares == pytest.approx([1.0], abs=1e-6)


def falls_after_s(lower: float, upper: float) -> float:
    """When two frictionless poles fall that nobody holds, by Lagrange's equations and SciPy."""
    cart, pole, inertia, centre, length, gravity = 10.471976, 4.198739, 0.2175647, 0.3, 0.6, 9.8

    def accelerations(_: float, y: NDArray[np.float64]) -> list[float]:
        _, a, b, *speeds = y
        to_cart = [pole * (centre + length) * np.cos(a), pole * centre * np.cos(b)]
        between, twist = (pole * centre * length * each for each in (np.cos(a - b), np.sin(a - b)))
        mass = [
            [cart + 2 * pole, *to_cart],
            [to_cart[0], inertia + pole * (centre**2 + length**2), between],
            [to_cart[1], between, inertia + pole * centre**2],
        ]
        _, w, u = speeds
        weights = [pole * (centre + length) * np.sin(a), pole * centre * np.sin(b)]
        forces = [
            weights[0] * w**2 + weights[1] * u**2,
            gravity * weights[0] - twist * u**2,
            gravity * weights[1] + twist * w**2,
        ]
        return [*speeds, *np.linalg.solve(mass, forces)]

    def height(_: float, y: NDArray[np.float64]) -> float:
        return float(length * np.cos(y[1]) + centre * np.cos(y[2]) + 0.3 - 1.0)

    height.terminal = True  # type: ignore[attr-defined]
    found = solve_ivp(accelerations, (0, 16), [0, lower, lower + upper, 0, 0, 0], events=height, rtol=1e-6)
    return float(found.t[-1])


def test_a_pendulum_that_nobody_holds_falls_when_lagrange_says() -> None:
    idle = [linear(NOTHING["double-pendulum"])] * 3
    coarse, fine = (policy_shares("double-pendulum", Duration(dt), idle, EPISODES) for dt in ("64ms", "4ms"))
    assert coarse == pytest.approx(fine, abs=1e-6)  # an action that is always the same is held as long as one likes
    task = ClosedFormWorld("double-pendulum").task
    starts = [task.numbers(task.reset(key)) for key in jax.random.split(jax.random.key(0), EPISODES)]
    expected = np.mean([falls_after_s(float(lower), float(upper)) for _, lower, upper, *_ in starts])
    assert 16 * fine == pytest.approx([expected] * 3, rel=0.02)  # there is friction, and the task sees 4 ms late


def test_a_policy_whose_weights_are_no_numbers_is_astray_and_not_upright() -> None:
    broken, idle = linear(np.full((9, 1), np.nan)), linear(NOTHING["double-pendulum"])
    shares = policy_shares("double-pendulum", Duration("64ms"), [broken, idle, idle], EPISODES)
    assert np.isnan(shares[0])
    assert (shares[1:] < 0.1).all()


def with_policies(folder: StudyFolder, policy_of: Callable[[Any], PolicyNetwork | None]) -> StudyFolder:
    """A study as if it had been run."""
    runs = []
    for spec in specs_of(folder):
        network = policy_of(spec)
        policy = (
            None
            if network is None
            else SavedPolicy.of(network, ActionBounds.raw(network.action_size), spec, spec.env_steps)
        )
        runs.append(replace(finished(spec), policy=policy))
    folder.store.add(runs)
    return folder


def test_the_policies_of_studies_are_measured_cell_by_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def shares(task: str, dt: Duration, policies: Sequence[PolicyNetwork], episodes: int) -> Any:  # noqa: ANN401
        asked.append((task, str(dt), episodes))
        return np.array([float(policy.layers[0].bias[0]) for policy in policies])

    def policy_of(spec: Any) -> PolicyNetwork | None:  # noqa: ANN401
        """It tells the run that it is of; the last seed's was not kept."""
        return None if spec.seed == 2 else linear(np.zeros((9, 2)), spec.seed + 100 * float(spec.dt))

    monkeypatch.setattr(behaviour, "policy_shares", shares)
    folders = {
        name: with_policies(StudyFolder.create(tmp_path / name, Size(0.001, 3).of(load_study(name))), policy_of)
        for name in ("ppo-baseline", "ppo-dt-aware", "ppo-scaled")
    }
    found = measure_behaviour(folders, episodes=7)
    assert list(found) == ["ppo-baseline", "ppo-dt-aware"]  # nobody asks what the others do
    assert len(asked) == 5 + 5  # of dt-aware's batch times, that of the baseline alone
    assert set(asked) == {("reacher", dt, 7) for dt in ("4ms", "8ms", "16ms", "32ms", "64ms")}
    assert _shares(found["ppo-baseline"], "baseline", "8ms") == pytest.approx({"0": 0.8, "1": 1.8}, abs=1e-6)
    assert list(_shares(found["ppo-dt-aware"], "dt-aware", "4ms")) == ["0", "1"]


def _shares(behaviour: dict[str, Any], rule: str, dt: str) -> dict[str, float]:
    (found,) = (cell["shares"] for cell in behaviour["cells"] if (cell["rule"], cell["dt"]) == (rule, dt))
    return dict(found)


def test_a_study_without_policies_has_no_behaviour(tmp_path: Path) -> None:
    folder = StudyFolder.create(tmp_path, Size(0.001, 1).of(load_study("ppo-baseline")))
    assert measure_behaviour({"ppo-baseline": with_policies(folder, lambda spec: None)}) == {}


def test_a_file_keeps_all_of_it(tmp_path: Path) -> None:
    cells = [
        {"rule": "baseline", "dt": "4ms", "shares": {"0": 0.25, "7": None}},
        {"rule": "dt-aware", "dt": "64ms", "shares": {"1": 1.0}},
    ]
    before = {"ppo-pendulum": {"episodes": 9, "code": "1.2.3", "cells": cells}}
    file = tmp_path / "behaviour.json"
    save_behaviours(before, file)
    assert json.loads(file.read_text())["behaviours"] == before
    after = read_behaviours(file)["ppo-pendulum"]
    assert after["baseline", Duration("4ms")] == pytest.approx({0: 0.25, 7: float("nan")}, nan_ok=True)
    assert after["dt-aware", Duration("64ms")] == {1: 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read as behaviour"),
        ("{", "cannot be read as behaviour"),
        (json.dumps({"format": 9}), "has the format 9, and this version of cycletime reads 1"),
        (json.dumps({"format": 1, "behaviours": {"x": {"cells": [{}]}}}), "cannot be read as behaviour"),
    ],
)
def test_what_is_no_such_file_is_refused_in_a_sentence(text: str | None, message: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "behaviour.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_behaviours(tmp_path / "behaviour.json")
