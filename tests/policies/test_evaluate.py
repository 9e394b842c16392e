"""Evaluation: against the environment with its wrappers, stepped by hand; edges and refusals."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

from cycletime import CycleTime
from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.policies.evaluate import Evaluation
from cycletime.policies.watch import Playback, WatchedEpisode
from cycletime.tasks.delays import ActionDelay
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.worlds import ActionBounds, ClosedFormWorld, GymnasiumEnv, World, make_env

pytestmark = pytest.mark.usefixtures("compiled_quickly")

REACHER, DOUBLE_PENDULUM = ClosedFormWorld("reacher"), ClosedFormWorld("double-pendulum")
PENDULUM = GymnasiumEnv("Pendulum-v1")


def some_policy(observation_size: int, action_size: int, bounds: ActionBounds | None = None) -> SavedPolicy:
    rng = np.random.default_rng(3)
    weight = jnp.asarray(rng.normal(scale=0.05, size=(observation_size, action_size)), jnp.float32)
    network = PolicyNetwork(
        layers=(Layer(weight, jnp.full(action_size, 0.1)),),
        activation="tanh",
        log_std=jnp.full(action_size, -1.0),
        squashed=False,
    )
    return SavedPolicy(network, bounds or ActionBounds.raw(action_size), Duration("16ms"), "a world", "id", 500)


def played(world: World, dt: str, policy: SavedPolicy, **options: Any) -> list[tuple[float, int, bool]]:  # noqa: ANN401
    seen = Evaluation(policy=policy, world=world, dt=Duration(dt), **options).play()
    return [(each.total_reward, each.agent_steps, each.terminated) for each in seen]


def by_hand(env: gymnasium.Env[Any, Any], policy: SavedPolicy, seed: int) -> tuple[float, int, bool]:
    observation, _ = env.reset(seed=seed)
    total, steps, terminated, truncated = 0.0, 0, False, False
    act = policy.in_numpy().act
    while not (terminated or truncated):
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        total, steps = total + float(reward), steps + 1
    return total, steps, terminated


@pytest.mark.parametrize(
    ("world", "sizes", "dt", "delay"),
    [
        (REACHER, (9, 2), "64ms", "22ms"),
        (DOUBLE_PENDULUM, (9, 1), "32ms", "32ms"),
        (DOUBLE_PENDULUM, (9, 1), "32ms", "44ms"),
    ],
)
def test_a_task_is_its_environment_with_its_wrappers(
    world: ClosedFormWorld, sizes: tuple[int, int], dt: str, delay: str
) -> None:
    policy = some_policy(*sizes)
    name = {"reacher": "Reacher", "double-pendulum": "DoublePendulum"}[world.name]
    step = world.env_dt
    inner = gymnasium.make(f"cycletime/{name}-v0", dt=step)
    env = CycleTime(ActionDelay(inner, delay), dt)
    got = played(world, dt, policy, delay=delay, episodes=2, seed=7)
    for index in range(2):
        assert got[index] == by_hand(env, policy, 7 + index)


def test_an_environment_of_a_task_is_late_in_its_own_steps() -> None:
    policy, inner = some_policy(9, 1), gymnasium.make("cycletime/DoublePendulum-v0", dt="4ms")
    expected = by_hand(CycleTime(ActionDelay(inner, "44ms"), "32ms"), policy, 7)
    assert by_hand(make_env(DOUBLE_PENDULUM, Duration("32ms"), delay="44ms"), policy, 7) == expected


def test_a_gymnasium_environment_at_another_cycle_time_and_late() -> None:
    env = CycleTime(ActionDelay(gymnasium.make("Pendulum-v1"), "50ms"), "100ms")
    policy = some_policy(3, 1, ActionBounds.of(env))
    got = played(PENDULUM, "100ms", policy, delay="50ms", episodes=2, seed=4)
    expected = [by_hand(env, policy, 4), by_hand(env, policy, 5)]
    assert got == expected
    assert got[0] != played(PENDULUM, "100ms", policy, episodes=1, seed=4)[0]


@pytest.mark.parametrize(("world", "sizes"), [(REACHER, (9, 2)), (PENDULUM, (3, 1))])
def test_sampled_actions_follow_from_the_seed(world: World, sizes: tuple[int, int]) -> None:
    policy = some_policy(*sizes)
    first, again = (played(world, "100ms", policy, episodes=2, seed=1, sampled=True) for _ in range(2))
    assert first == again
    assert not set(first) & set(played(world, "100ms", policy, episodes=2, seed=1))


def test_what_makes_no_sense_is_refused() -> None:
    policy = some_policy(9, 2)
    network = policy.network
    wild = replace(policy, network=replace(network, layers=(Layer(network.layers[0].weight * 1e38, jnp.zeros(2)),)))
    astray = replace(policy, network=replace(network, layers=(Layer(network.layers[0].weight * np.nan, jnp.zeros(2)),)))
    for world, dt, who, options, words in (
        (REACHER, "15ms", policy, {}, "15ms is not a whole multiple"),
        (REACHER, "16ms", policy, {"delay": "3ms"}, "The delay 3ms is not a whole multiple"),
        (REACHER, "16s", policy, {}, "longer than an episode"),
        (DOUBLE_PENDULUM, "16ms", policy, {}, "double-pendulum has (9, 1)"),
        (PENDULUM, "50ms", policy, {}, "has (3, 1)"),
        (PENDULUM, "50ms", policy, {"delay": "20ms"}, "The delay 20ms is not a whole multiple"),
        (REACHER, "16ms", policy, {"episodes": 0}, "episodes is 0"),
        (REACHER, "16ms", policy, {"seed": -1}, "seed is -1"),
        (REACHER, "16ms", wild, {}, "and 1,000,000 is more than any training reaches"),
        (REACHER, "16ms", policy, {"episodes": 10**12}, "episodes is 1000000000000: at most 10,000,000 are played"),
        (REACHER, "16ms", astray, {}, "is not finite"),
    ):
        with pytest.raises(InputError) as caught:
            played(world, dt, who, **options)
        assert words in str(caught.value)


def test_a_return_that_is_no_number_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def moments(showing: Playback) -> Iterator[int]:
        for number, total in enumerate((1.0, np.nan)):
            showing.tell(WatchedEpisode(number, total, 9, terminated=False))
        yield from ()

    monkeypatch.setattr(Playback, "moments", moments)
    with pytest.raises(InputError, match="the episode with seed 4 is nan: the policy meets"):
        played(REACHER, "16ms", some_policy(9, 2), seed=3, episodes=2)
