"""Coherent noise against its autocorrelation in seconds, written out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from cycletime import rules
from cycletime.agents import (
    ActorCriticAgent,
    CoherentNoise,
    OrnsteinUhlenbeck,
    Pink,
    PPOAgent,
    SACAgent,
    agent_for,
)
from cycletime.agents.agent import choose_action
from cycletime.agents.exploration import Exploration, explore, initial_noise_state, normals_per_step
from cycletime.duration import Duration
from cycletime.errors import InputError
from tests.agents.conftest import (
    Array,
    arrays_of,
    filled_buffer,
    normal_log_density,
    random_transitions,
    randomized,
    shapes_of,
    zeros,
)

pytestmark = pytest.mark.usefixtures("compiled_quickly")
TIMES_S = 0.01 * 1000 ** (np.arange(6) / 5)
KINDS: dict[str, tuple[Exploration, Callable[[Array], Array]]] = {
    "OU": (OrnsteinUhlenbeck("100ms"), lambda t: np.exp(-t / 0.1)),
    "pink": (Pink(), lambda t: np.exp(-t[:, None] / TIMES_S).mean(axis=1)),
}
EACH = pytest.mark.parametrize("kind", KINDS)


def filters(noise: CoherentNoise) -> tuple[Array, Array, Array]:
    """f, g and c."""
    carry, drive, read = (np.array(each) for each in (noise.carry, noise.drive, noise.read))
    return carry, drive, read


def autocorrelation(noise: CoherentNoise, lags: int) -> Array:
    carry, _, read = filters(noise)
    return np.array([(read**2) @ carry**lag for lag in range(lags)])


@EACH
@pytest.mark.parametrize("dt_s", [0.001, 0.016, 0.04, 0.25])
def test_the_autocorrelation_in_seconds_is_the_same_at_every_cycle_time(kind: str, dt_s: float) -> None:
    noise, expected = KINDS[kind]
    lags = np.arange(60.0)
    np.testing.assert_allclose(autocorrelation(noise.at(dt_s), 60), expected(lags * dt_s), rtol=0, atol=1e-12)


@EACH
@pytest.mark.parametrize("dt", ["1us", "1ms", "16ms", "1s", "4000s"])
def test_every_step_has_the_distribution_of_the_first(kind: str, dt: str) -> None:
    carry, drive, read = filters(KINDS[kind][0].at(dt))
    np.testing.assert_allclose(carry**2 + drive**2, 1, rtol=0, atol=1e-13)
    assert read @ read == pytest.approx(1, abs=1e-13)


@EACH
def test_five_short_cycles_are_one_long_one(kind: str) -> None:
    """All of it: what is left and what is added."""
    noise = KINDS[kind][0]
    (carry, drive, _), (whole_carry, whole_drive, _) = filters(noise.at("3ms")), filters(noise.at("15ms"))
    np.testing.assert_allclose(carry**5, whole_carry, rtol=0, atol=1e-14)
    added = sum((carry**power * drive) ** 2 for power in range(5))
    np.testing.assert_allclose(added, whole_drive**2, rtol=1e-9, atol=1e-15)


def spectrum(noise: CoherentNoise, frequencies_hz: Array) -> Array:
    """The filter's answer to white noise."""
    carry, drive, read = filters(noise)
    turns = np.exp(2j * np.pi * frequencies_hz * float(noise.dt))
    return np.asarray((np.abs(read * drive / (turns[:, None] - carry)) ** 2).sum(axis=1))


@pytest.mark.parametrize(("slowest", "fastest"), [("10s", "10ms"), ("3s", "1ms")])
def test_pink_noise_has_a_spectrum_of_one_over_f_between_its_times(slowest: str, fastest: str) -> None:
    noise = Pink(slowest=slowest, fastest=fastest)
    corners_hz = [1 / (2 * np.pi * float(Duration(each))) for each in (slowest, fastest)]

    def slope(least_hz: float, most_hz: float) -> float:
        frequencies = np.geomspace(least_hz, most_hz, 200)
        return float(np.polyfit(np.log(frequencies), np.log(spectrum(noise.at("0.01ms"), frequencies)), 1)[0])

    assert slope(4 * corners_hz[0], corners_hz[1] / 4) == pytest.approx(-1, abs=0.03)
    assert slope(corners_hz[0] / 100, corners_hz[0] / 30) == pytest.approx(0, abs=0.01)
    assert slope(10 * corners_hz[1], 12 * corners_hz[1]) == pytest.approx(-2, abs=0.05)


def test_pink_noise_has_no_more_parts_than_its_times_need() -> None:
    sizes = [Pink(f"{slowest}s", "1s").at("1s").size for slowest in (1.5, 4, 4.1, 16, 1000)]
    assert sizes == [2, 2, 3, 3, 6]


def walked(noise: CoherentNoise | None, steps: int, components: int, *, begins: tuple[int, ...] = (0,)) -> Array:
    """What `explore` makes of white noise in float32, [steps, components]; the components are the ensemble."""
    normals = np.random.default_rng(1).normal(size=(steps, normals_per_step(noise, components)))

    def step(state: Any, now: Any) -> Any:  # noqa: ANN401
        return explore(noise, state, *now)[::-1]

    def walk(normals: jax.Array, first: jax.Array) -> Any:  # noqa: ANN401
        return jax.lax.scan(step, initial_noise_state(noise, components), (normals, first))[1]

    first = np.isin(np.arange(steps), begins)
    drawn: Array = np.asarray(jax.jit(walk)(jnp.asarray(normals), first), np.float64)
    return drawn


@EACH
def test_drawn_noise_is_standard_normal_and_coherent_from_an_episodes_first_step_on(kind: str) -> None:
    noise, expected = KINDS[kind]
    drawn = walked(noise.at("20ms"), 30, 20_000, begins=(0, 12))
    for step in (0, 1, 12, 29):
        values = np.sort(drawn[step])
        ranks = (np.arange(values.size) + 0.5) / values.size
        # Kolmogorov and Smirnov's bound for one in ten thousand times.
        assert np.max(np.abs(ndtr(values) - ranks)) < 2.23 / np.sqrt(values.size)
    found = [np.mean(drawn[13] * drawn[13 + lag]) for lag in range(17)]
    np.testing.assert_allclose(found, expected(0.02 * np.arange(17.0)), rtol=0, atol=0.05)
    assert abs(np.mean(drawn[11] * drawn[12])) < 0.04
    assert abs(np.mean(drawn[20, 1:] * drawn[20, :-1])) < 0.04


def test_white_noise_is_left_as_it_is() -> None:
    normals = jnp.arange(3.0)
    assert explore(None, initial_noise_state(None, 3), normals, jnp.array(True)) == (normals, None)
    assert normals_per_step(None, 3) == 3


def test_equal_noises_are_one_key() -> None:
    assert len({OrnsteinUhlenbeck("0.1").at("40ms"), OrnsteinUhlenbeck("100ms").at(0.04)}) == 1
    assert len({OrnsteinUhlenbeck("0.1"), OrnsteinUhlenbeck(0.1), OrnsteinUhlenbeck("0.2")}) == 2
    assert Pink(slowest="10000ms", fastest="100Hz") == Pink()


# In agents.


@pytest.mark.parametrize("agent", [PPOAgent, SACAgent, ActorCriticAgent])
def test_the_noise_is_part_of_an_agents_structure(agent: type[PPOAgent | SACAgent | ActorCriticAgent]) -> None:
    white, noisy = agent(), agent(exploration=Pink().at("16ms"))
    leaves, structure = jax.tree.flatten(noisy)
    assert len(leaves) == len(jax.tree.leaves(white))
    assert str(structure) != str(jax.tree.structure(white))
    assert jax.tree.unflatten(structure, leaves) == noisy


@pytest.mark.parametrize("agent", [PPOAgent, SACAgent, ActorCriticAgent])
@pytest.mark.parametrize(
    ("noise", "message"),
    [
        (OrnsteinUhlenbeck("100ms"), r"exploration is OrnsteinUhlenbeck\(.*\): call .at\(dt\) with the cycle time"),
        (Pink(), r"exploration is Pink\(.*\): call .at\(dt\)"),
        ("pink", "exploration is 'pink': give noise such as"),
        (0.1, "exploration is 0.1: give noise such as"),
    ],
)
def test_noise_without_a_cycle_time_is_refused(agent: Any, noise: object, message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        agent(exploration=noise)


def test_carried_values_bring_the_cycle_time() -> None:
    noise = Pink()
    assert agent_for(rules.PPO(dt="16ms").at("4ms"), exploration=noise).exploration == noise.at("4ms")
    assert agent_for(rules.SAC(dt="16ms"), exploration=noise.at("16ms")).exploration == noise.at("16ms")
    assert agent_for(rules.SAC(dt="16ms"), exploration=None).exploration is None
    with pytest.raises(InputError, match=r"made for a cycle time of 16ms: here it is 4ms; call .at\('4ms'\)"):
        agent_for(rules.PPO(dt="16ms").at("4ms"), exploration=noise.at("16ms"))


def test_ppo_takes_each_action_by_itself_whatever_came_before() -> None:
    """The old log-probability is the marginal distribution's."""
    with jax.enable_x64(True):
        agent = PPOAgent(batch=12, minibatch=4, hidden=(4,), exploration=OrnsteinUhlenbeck("1s").at("10ms"))
        fresh = randomized(shapes_of(agent))
        policy = fresh.parameters.policy._replace(log_std=jnp.zeros(2))
        psi = fresh._replace(parameters=fresh.parameters._replace(policy=policy))
        transitions = random_transitions(12)
        noise = walked(agent.exploration, 12, 2)
        mean = np.asarray(agent.act(psi, jnp.asarray(transitions.observation), jnp.zeros((12, 2))))
        action = np.asarray(agent.act(psi, jnp.asarray(transitions.observation), jnp.asarray(noise)))
        np.testing.assert_allclose(action - mean, noise, atol=1e-12)  # sigma is 1
        found = jax.jit(agent.samples)(psi, filled_buffer(transitions._replace(action=action)))  # type: ignore[arg-type]
        expected = normal_log_density(mean, arrays_of(policy.log_std)[0], action)
        np.testing.assert_allclose(found.old_log_probability, expected, atol=1e-12)
        assert np.corrcoef(noise[:-1, 0], noise[1:, 0])[0, 1] > 0.5


def test_the_random_start_of_sac_is_uniform_and_coherent() -> None:
    with jax.enable_x64(True):
        agent = SACAgent(minibatch=4, hidden=(4,), exploration=OrnsteinUhlenbeck("100ms").at("40ms"))
        psi = zeros(shapes_of(agent, 3, 20_000))
        drawn = jnp.asarray(walked(agent.exploration, 2, 20_000))
        choose = jax.jit(lambda noise: choose_action(agent, psi, jnp.zeros(3), noise, jnp.asarray(5)))
        first, second = (np.asarray(choose(noise)) for noise in drawn)
    ranks = (np.arange(first.size) + 0.5) / first.size
    assert np.max(np.abs((np.sort(first) + 1) / 2 - ranks)) < 2.23 / np.sqrt(first.size)
    # Two uniform numbers that are made of normal ones are correlated a little less than those (Pearson 1907).
    expected = 6 / np.pi * np.arcsin(np.exp(-0.4) / 2)
    assert 3 * np.mean(first * second) == pytest.approx(expected, abs=0.04)


# Wrong inputs.


WRONG: list[tuple[Any, tuple[Any, ...], str]] = [
    (OrnsteinUhlenbeck, (0,), "0 is not a time span: give a positive time"),
    (OrnsteinUhlenbeck, ("-1s",), "'-1s' is not a time span"),
    (OrnsteinUhlenbeck, (float("inf"),), "inf is not a time span"),
    (OrnsteinUhlenbeck, (None,), "None is not a time span"),
    (Pink, ("10ms", "1s"), "fastest is 1s: it must be shorter than slowest, 10ms."),
    (Pink, ("1s", "1s"), "fastest is 1s: it must be shorter than slowest, 1s."),
    (Pink, (0,), "0 is not a time span"),
    (OrnsteinUhlenbeck("1s").at, (0,), "0 is not a time span"),
    (Pink().at, ("now",), "'now' is not a time span"),
]


@pytest.mark.parametrize(("make", "arguments", "message"), WRONG)
def test_what_is_no_noise_is_refused(make: Any, arguments: tuple[Any, ...], message: str) -> None:  # noqa: ANN401
    with pytest.raises(InputError, match=message):
        make(*arguments)


def test_a_changed_copy_is_checked_as_well() -> None:
    with pytest.raises(InputError, match="fastest is 20s"):
        replace(Pink(), fastest="20s")
