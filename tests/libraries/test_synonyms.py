"""What other libraries' words are called here."""

import pytest

from cycletime.libraries.synonyms import find_synonym, name_hint


@pytest.mark.parametrize(
    ("word", "algorithm", "expected"),
    [
        ("gamma", "ppo", ("stable-baselines3", "gamma", "discount")),
        ("gae-lambda", "a2c", ("stable-baselines3", "gae_lambda", "trace_decay")),
        ("batch_size", "ppo", ("stable-baselines3", "batch_size", "minibatch")),
        ("batch_size", "sac", ("stable-baselines3", "batch_size", "minibatch")),
        ("buffer_size", "td3", ("stable-baselines3", "buffer_size", "replay_capacity")),
        ("learning-starts", "sac", ("stable-baselines3", "learning_starts", "warmup_steps")),
        ("clip_range", "ppo", ("stable-baselines3", "clip_range", "clip")),
        ("discounting", "ppo", ("brax", "discounting", "discount")),
        ("gamma", "actor-critic", ("stable-baselines3", "gamma", "discount")),
        ("num_steps", "ppo", ("cleanrl", "num_steps", "batch")),
        ("discount", "ppo", None),
        ("hidden", "ppo", None),
    ],
)
def test_a_word_is_found_in_the_first_library_that_has_it(
    word: str, algorithm: str, expected: tuple[str, str, str] | None
) -> None:
    assert find_synonym(word, algorithm) == expected


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("gamma", "; gamma is discount here."),
        ("n_steps", "; n_steps is batch here."),
        ("batsh", "; did you mean batch?"),
        ("learning_rate", "."),
    ],
)
def test_a_sentence_about_an_unknown_name_ends_with_what_it_is_called_here(name: str, end: str) -> None:
    assert name_hint(name, "ppo", ("batch", "discount")) == end
