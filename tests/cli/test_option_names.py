"""Sentences of the library on the command line: what they propose can be typed."""

from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.cli.robot import RunRobot
from cycletime.cli.usage_errors import with_option_names

RUN = RunRobot(algorithm="sac", dt="10ms")


@pytest.mark.parametrize(
    ("sentence", "typed"),
    [
        ("Give learner='background' with SAC.", "Give --learner background with SAC."),
        ("Give env_dt='slow'.", "Give --env-dt slow."),
        ("Give algorithm='actor-critic'.", "Give --algorithm actor-critic."),
        ("Give learn_when='episode_end'.", "Give --set learn_when=episode_end."),
        ("Make it with render_mode='rgb_array'.", "Make it with render_mode='rgb_array'."),
        ("learner is 'background'.", "--learner is 'background'."),
        ("env_steps is 10: give learner='inline'.", "--env-steps is 10: give --learner inline."),
        ("learning_rate is -1.0: it must be above 0.", "learning_rate is -1.0: it must be above 0."),
        ("tuned.toml: env_steps is 10.", "tuned.toml: env_steps is 10."),
        ("It needs tuned_at=..., the cycle time.", "It needs --tuned-at, the cycle time."),
        ("It needs render_mode=..., a word.", "It needs render_mode=..., a word."),
    ],
)
def test_a_keyword_is_the_command_s_option(sentence: str, typed: str) -> None:
    assert with_option_names(sentence, RUN) == typed
    assert with_option_names(sentence, None) == sentence, "where no command was understood"


TUNING = """name = "toy"
task = "reacher"
algorithm = "ppo"
dt = "16ms"
seeds = 1
env_steps = 2000
[tuned]
batch = [500, 1000]
"""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("train --task reacher --dt 16ms --env-steps 10", "--env-steps is 10: no episode of reacher ends before"),
        ("transfer ppo --from 16ms --to 64ms --trace-decay 4", "--trace-decay is 4.0: it must be a number in [0, 1]."),
        (
            "transfer ppo --from 16ms --to 64ms --for sb3 --num-envs 0",
            "--num-envs is 0: it must be a whole number of at",
        ),
        ("tune tuning.toml --out out --workers 0", "--workers is 0: it must be at least 1."),
        ("tune tuning.toml --out out --fresh-seeds 0", "--fresh-seeds is 0: it must be a whole number of at least 1."),
        ("tune tuning.toml --out out --trials 3", "--trials is 3: a grid tries all its points, so leave it out"),
        (
            "tune other.toml --out out --trials 3",
            "other.toml: fresh_seeds is 0: it must be a whole number of at least 1.",
        ),
    ],
)
def test_commands_speak_of_their_options_and_of_the_keys_of_files(
    words: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tuning.toml").write_text(TUNING)
    Path("other.toml").write_text(f'sampler = "random"\nfresh_seeds = 0\n{TUNING}')
    assert main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"cycletime: {says}")
