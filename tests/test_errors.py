"""How messages propose names, and tell errors."""

import pytest

from cycletime.errors import DiskFullError, InputError, did_you_mean, error_sentence, unknown_name_error


@pytest.mark.parametrize(
    ("word", "known", "says"),
    [
        ("Trian", ["train", "transfer"], "; did you mean train?"),
        ("form", ["for", "from"], "; did you mean from?"),
        ("--form", ["--for", "--from", "--order"], "; did you mean --from or --for?"),
        ("TRAIL", ["TRIAL"], "; did you mean TRIAL?"),
        ("--foo", ["--out"], "."),
        ("zzz", ["train"], "."),
    ],
)
def test_the_nearest_names_are_told_and_letters_in_another_order_are_nearest(
    word: str, known: list[str], says: str
) -> None:
    assert did_you_mean(word, known, most=2 if word.startswith("--") else 1) == says


def test_an_unknown_name_is_refused_with_the_nearest_and_what_is_no_name_without() -> None:
    assert str(unknown_name_error("PPO", "an algorithm", ("ppo", "sac"))) == (
        "'PPO' is not an algorithm: give one of ppo, sac; did you mean ppo?"
    )
    assert str(unknown_name_error(["ppo"], "an algorithm", ("ppo", "sac"))) == (
        "['ppo'] is not an algorithm: give one of ppo, sac."
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InputError("batch is 0: it must be at least 1."), "batch is 0: it must be at least 1."),
        (DiskFullError("There is no room."), "There is no room."),
        (ValueError("0"), "ValueError: 0"),
        (KeyError("reward"), "KeyError: 'reward'"),
    ],
)
def test_sentences_stand_alone_and_what_others_raise_with_its_kind(error: Exception, words: str) -> None:
    assert error_sentence(error) == words
