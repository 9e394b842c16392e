"""The whole loop on a toy robot in virtual time, against the stepped loop, and from what was kept of a run."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent
from cycletime.agents.agent import Agent
from cycletime.agents.exploration import OrnsteinUhlenbeck
from cycletime.duration import Duration
from cycletime.errors import EnvError, InputError, RunError
from cycletime.robots.real_time_loop import RealTimeLoop, RealTimeSession
from cycletime.tasks import CycleTime
from cycletime.tasks.delays import ActionDelay
from cycletime.training.journal import EpisodeRecord
from cycletime.training.stepped_loop import SteppedChunk, SteppedLoop
from tests.robots.toy_robot import ToyRobot

pytestmark = pytest.mark.usefixtures("compiled_quickly")

PPO = PPOAgent(batch=8, minibatch=4, hidden=(4,), epochs=2, learn_when="episode_end")
ACTOR_CRITIC = ActorCriticAgent(hidden=(2,))
ENV_STEPS = 48


def make(agent: Agent = ACTOR_CRITIC, env: Any = None, **options: Any) -> RealTimeLoop:  # noqa: ANN401
    told = {"dt": Duration("20ms"), "env_steps": ENV_STEPS, **options}
    return RealTimeLoop(env=env or ToyRobot(), agent=agent, **told)


def train(loop: RealTimeLoop, **options: Any) -> tuple[list[SteppedChunk], list[EpisodeRecord]]:  # noqa: ANN401
    kept: list[EpisodeRecord] = []
    return list(loop.run(3, keep=kept.append, **options)), kept


def assert_same(one: Any, other: Any) -> None:  # noqa: ANN401
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def returns(chunks: list[SteppedChunk]) -> list[float]:
    return [number for chunk in chunks for number in chunk.episodes.returns.tolist()]


def test_between_episodes_it_learns_what_the_stepped_loop_does_to_the_bit() -> None:
    ours, kept = train(make(PPO))
    theirs = list(SteppedLoop(env=CycleTime(ToyRobot(), "20ms"), agent=PPO, env_steps=ENV_STEPS).run(3))
    assert returns(ours) == returns(theirs)
    assert_same(ours[-1].finished, theirs[-1].finished)
    assert len(ours) == 6, "a chunk after each episode"
    assert [chunk.env_steps for chunk in ours] == [8, 16, 24, 32, 40, 48]
    assert not any(episode.cycles.stale_updates.any() for episode in kept)
    learned = [chunk.metrics["agent_steps"].tolist() for chunk in ours if chunk.metrics]
    assert learned == [[8], [16], [24]]


def test_within_the_cycle_a_policy_is_one_learning_behind_but_none_at_an_episode_s_begin() -> None:
    chunks, kept = train(make())
    assert [episode.cycles.stale_updates.tolist() for episode in kept] == [[0, 1, 1, 1]] * 6
    assert sum(len(chunk.metrics["agent_steps"]) for chunk in chunks) == 24, "each step is learned from"
    assert [episode.number for episode in kept] == list(range(6))
    assert [episode.run_env_steps for episode in kept] == [8, 16, 24, 32, 40, 48]


def test_from_what_was_kept_it_learns_the_same_to_the_bit() -> None:
    chunks, kept = train(make())
    loop = make()
    (again,) = loop.run(3, recalled=kept)
    assert loop.robot.resets == 0, "nothing moved"  # type: ignore[attr-defined]
    assert_same(again.finished, chunks[-1].finished)
    assert returns([again]) == returns(chunks)
    assert_same(again.position.buffer, chunks[-1].position.buffer)


def test_from_a_position_and_the_episodes_since_then_it_goes_on() -> None:
    whole, kept = train(make())
    loop = make()
    positions = [jax.tree.map(np.array, chunk.position) for chunk in loop.run(3)]
    rest, later = train(make(), position=positions[1], recalled=kept[1:4])
    assert [episode.number for episode in later] == [4, 5]
    assert returns(rest) == pytest.approx(returns(whole)[2:], rel=1e-12), "the clock is another one"
    for one, other in zip(*(jax.tree.leaves(each[-1].finished) for each in (rest, whole)), strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-6)


def test_of_a_journal_with_a_gap_the_rest_is_learned_from_and_what_was_played_counts() -> None:
    _, kept = train(make())
    chunks, later = train(make(), recalled=[kept[0], kept[2], kept[3]])
    assert chunks[0].env_steps == 32
    assert len(returns(chunks[:1])) == 3
    assert [(episode.number, episode.run_env_steps) for episode in later] == [(4, 40), (5, 48)]


def test_an_episode_is_kept_and_told_before_it_is_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    usual = RealTimeSession.learn_the_rest

    def learn(session: RealTimeSession) -> None:
        order.append("learn")
        usual(session)

    monkeypatch.setattr(RealTimeSession, "learn_the_rest", learn)
    loop = make(PPO, say=lambda sentence: order.append(sentence.split(":")[0]))
    calibration = loop.calibrate()
    next(loop.run(3, keep=lambda episode: order.append("keep")))
    assert order == [str(calibration), "keep", "episode 1", "learn"]


def test_what_the_robot_raises_loses_the_episode_in_progress_alone() -> None:
    robot = ToyRobot()
    kept: list[EpisodeRecord] = []
    robot.fails_at = (2, 3)
    with pytest.raises(RunError, match="on fire"):
        for _ in make(env=robot).run(3, keep=kept.append):
            pass
    assert [episode.number for episode in kept] == [0, 1]


def test_an_error_of_the_system_is_the_environment_s() -> None:
    robot = ToyRobot()
    robot.send = lambda action: (_ for _ in ()).throw(BrokenPipeError("gone"))  # type: ignore[method-assign]
    with pytest.raises(EnvError, match="failed in an episode with BrokenPipeError: gone"):
        next(make(env=robot).run(3))


def test_a_protective_stop_begins_another_episode() -> None:
    robot = ToyRobot()
    robot.stops_at = (1, 3)
    chunks, kept = train(make(env=robot))
    assert [episode.ended_by for episode in kept][:3] == ["truncated", "PROTECTIVE_STOP", "truncated"]
    assert [episode.env_steps for episode in kept] == [8, 3, 8, 8, 8, 8, 8]
    assert chunks[-1].env_steps == ENV_STEPS
    assert returns(chunks) == [episode.undiscounted_return for episode in kept], "also the one beyond the budget"


def test_a_run_ends_with_the_episode_in_which_it_reaches_its_budget() -> None:
    chunks, kept = train(make(env_steps=9))
    assert [episode.env_steps for episode in kept] == [8, 8]
    last = chunks[-1].episodes
    assert [*last.env_steps, *last.length_steps, len(returns(chunks))] == [9, 1, 2], "it counts up to the budget"
    assert [chunk.finished is None for chunk in chunks] == [True, False]


def test_a_robot_that_is_told_too_seldom_is_not_driven() -> None:
    robot = ToyRobot()
    for holds_s in (0.01, 0.011):
        robot.holds_s = holds_s  # type: ignore[attr-defined]
        if holds_s > robot.dt:
            assert make(env=robot, dt=Duration("40ms")).calibrate().holds_s == holds_s
        else:
            with pytest.raises(InputError, match=r"environment's step is 10ms, .* told nothing for 0.01 s, so give"):
                make(env=robot)


class Unknown(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Changes something."""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"dt": Duration("15ms")}, "not a whole multiple of the environment time step 10ms"),
        ({"env_steps": 0}, "env_steps is 0"),
        ({"agent": PPO, "learner": "background"}, "PPOAgent learns from what its newest policy did"),
        ({"env": Unknown(ToyRobot())}, "Unknown is around .*, and has no send and receive: the real-time loop would"),
        ({"env": gymnasium.make("Pendulum-v1")}, "is no environment for the real-time loop"),
        ({"agent": ActorCriticAgent(exploration=OrnsteinUhlenbeck("1s").at(Duration("10ms")))}, "20ms"),
    ],
)
def test_what_cannot_run_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make(**options)


def test_wrappers_that_change_nothing_are_seen_through() -> None:
    robot = CycleTime(gymnasium.wrappers.OrderEnforcing(ToyRobot()), "20ms")
    assert returns(train(make(env=robot))[0]) == returns(train(make())[0])


def test_programs_are_compiled_before_the_robot_moves() -> None:
    loop = make()
    assert loop.calibrate().fits
    assert loop.robot.resets == 0  # type: ignore[attr-defined]


def test_in_the_background_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an agent that samples as SAC does, but learns by the actor-critic's small program."""
    monkeypatch.setattr(ActorCriticAgent, "capacity", 64)
    sampling = make(learner="background")
    with pytest.raises(InputError):
        make(SACAgent(replay_capacity=256, minibatch=256), learner="background")
    chunks, kept = train(sampling)
    assert sum(len(chunk.metrics["agent_steps"]) for chunk in chunks) == 24
    (again,) = make(learner="background").run(3, recalled=kept)
    assert_same(again.finished, chunks[-1].finished)


def test_a_delay_around_cycles_is_refused() -> None:
    with pytest.raises(InputError, match="ActionDelay is around a CycleTime: the real-time loop holds actions itself"):
        make(env=ActionDelay(CycleTime(ToyRobot(), "20ms"), "20ms"))
