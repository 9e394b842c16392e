import pytest

from cycletime.cli.run_options import parse_settings
from cycletime.errors import InputError


def test_words_are_read_as_their_fields_are() -> None:
    assert parse_settings(["hidden=[32, 64]"], "ppo", ()) == {"hidden": (32, 64)}, "as in a study's file"
    words = ["hidden=32,6.4e1", "epochs=1e1", "learning_rate=1e-3", "learn_when=episode_end"]
    wanted = {"hidden": (32, 64), "epochs": 10, "learning_rate": 0.001, "learn_when": "episode_end"}
    assert parse_settings(words, "ppo", ()) == wanted


NINES = f"{'9' * 43}...{'9' * 50}"


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("epochs=12345678901234567891", "'12345678901234567891' does not fit epochs, which is int."),  # and not rounded
        ("epochs=nan", "--set epochs=nan: 'nan' does not fit epochs, which is int."),
        ("epochs=1e400", "--set epochs=1e400: '1e400' does not fit epochs, which is int."),
        (f"epochs={'9' * 5000}", f"--set epochs={NINES}: '{'9' * 49}...{'9' * 49}' does not fit epochs, which is int."),
        ("hidden=8,", "--set hidden=8,: '8,' does not fit hidden: give whole numbers with commas, as in hidden=32,32."),
        ("hiden=8", "did you mean hidden?"),
    ],
)
def test_what_does_not_fit_is_one_short_sentence(word: str, says: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_settings([word], "ppo", ())
    assert str(refusal.value).endswith(says)
