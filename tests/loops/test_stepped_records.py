from __future__ import annotations

import numpy as np
import pytest

from cycletime.errors import InputError
from cycletime.loops.stepped_env import Outcome
from cycletime.loops.stepped_records import Records


class Nothing:
    env_steps = agent_steps = episodes = 0


def outcome(*, reward: list[float], ended: list[bool], env_steps: list[int], real: list[bool]) -> Outcome:
    seen, flags = np.zeros((len(reward), 1), np.float32), np.array(ended)
    return Outcome(seen, np.array(reward), flags, np.zeros_like(flags), np.array(env_steps), np.array(real), seen)


def test_copies_are_counted_together_and_their_episodes_apart() -> None:
    records = Records(2, Nothing())
    records.count(outcome(reward=[1, 10], ended=[False, True], env_steps=[3, 2], real=[True, True]))
    records.count(outcome(reward=[2, 0], ended=[True, False], env_steps=[3, 0], real=[True, False]))
    records.count(outcome(reward=[0, 20], ended=[False, True], env_steps=[0, 3], real=[False, True]))
    assert (records.env_steps, records.agent_steps, records.episodes) == (11, 4, 3)
    episodes = records.taken()
    np.testing.assert_array_equal(episodes.env_steps, [5, 8, 11])
    np.testing.assert_array_equal(episodes.agent_steps, [2, 3, 4])
    np.testing.assert_array_equal(episodes.returns, [10, 3, 20])
    np.testing.assert_array_equal(episodes.length_steps, [2, 6, 3])
    assert len(records.taken()) == 0


def test_what_a_copy_only_resets_with_adds_nothing() -> None:
    records = Records(2, Nothing())
    records.count(outcome(reward=[1, 99], ended=[True, False], env_steps=[1, 0], real=[True, False]))
    records.count(outcome(reward=[0, 1], ended=[False, True], env_steps=[0, 1], real=[False, True]))
    np.testing.assert_array_equal(records.taken().returns, [1, 1])


def test_refusals_name_the_copy() -> None:
    records = Records(3, Nothing())
    records.check(reward=np.array([0.0, 1e30, -1e30]))
    with pytest.raises(InputError, match=r"The reward of copy 1 is nan at agent step 1 of its episode"):
        records.check(reward=np.array([0.0, np.nan, np.inf]))
    with pytest.raises(InputError, match=r"The action of copy 2 is \[0.0, inf\].*smaller learning rate"):
        records.check(action=np.array([[0, 0], [0, 0], [0, np.inf]], np.float32))
