"""Sentences of the library on the command line: what they propose can be typed."""

import pytest

from cycletime.cli.as_typed import as_typed
from cycletime.cli.robot.run import RunRobot

RUN = RunRobot(algorithm="sac", dt="10ms")


@pytest.mark.parametrize(
    ("sentence", "typed"),
    [
        ("Give learner='background' with SAC.", "Give --learner background with SAC."),
        ("Give env_dt='slow'.", "Give --env-dt slow."),
        ("Give algorithm='actor-critic'.", "Give --algorithm actor-critic."),
        ("Give learn_when='episode_end'.", "Give --set learn_when=episode_end."),
        ("Make it with render_mode='rgb_array'.", "Make it with render_mode='rgb_array'."),
        ("learner is 'background'.", "learner is 'background'."),
        ("It needs tuned_at=..., the cycle time.", "It needs --tuned-at, the cycle time."),
        ("It needs render_mode=..., a word.", "It needs render_mode=..., a word."),
    ],
)
def test_a_keyword_is_the_command_s_option(sentence: str, typed: str) -> None:
    assert as_typed(sentence, RUN) == typed
    assert as_typed(sentence, None) == sentence, "where no command was understood"
