"""Zoo files that would fill the memory or the day are refused in a sentence, before anything is built of them."""

import pytest

from cycletime.errors import InputError
from cycletime.libraries.plain_yaml import MOST_BYTES
from tests.libraries.zoo_transfer import transfer_entry

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)
)
MERGES = "m0: &m0 {x: 1}\n" + "".join(f"m{n + 1}: &m{n + 1} {{<<: [{', '.join([f'*m{n}'] * 10)}]}}\n" for n in range(9))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BOMB, "Line 5 and what is before it are more than 20000 values"),
        (MERGES, "more than 20000 values"),
        ("A: " + "[" * 100_000, "Line 1 is nested 51 levels deep: at most 50 are read."),
        ("A:\n" + "".join(" " * n + "- \n" for n in range(1, 300)), "is nested 51 levels deep"),
        (f"A:\n  n_steps: {'9' * 400}\n", "Line 2 has a number of 400 digits: at most 60 are read."),
        (f"A:\n  n_steps: 0x{'f' * 9000}\n", "Line 2 has a number of 9002 digits"),
        (f"A:\n  gamma: 0.{'9' * 5000}\n", "Line 2 has a number of 5002 digits"),
        ("x" * (MOST_BYTES + 1), "has 1048577 bytes or more: at most 1048576 are read."),
        ("A: &a\n  n_steps: [*a]\n  x: *a\n", "The value named &a has *a in itself: it would never end."),
    ],
)
def test_what_is_too_large_is_refused(text: str, says: str) -> None:
    with pytest.raises(InputError) as refusal:
        transfer_entry(text, "A", "ppo", "16ms", "4ms")
    assert says in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_values_are_counted_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cycletime.libraries.plain_yaml._MOST_VALUES", 100)
    text = "A:\n" + "".join(f"  k{n}: 1\n" for n in range(60))
    with pytest.raises(InputError, match="Line 50 and what is before it are more than 100 values"):
        transfer_entry(text, "A", "ppo", "16ms", "4ms")


def test_large_numbers_that_do_not_matter_are_left_alone() -> None:
    text = f"A:\n  n_steps: 8\n  batch_size: 8\n  seed: {'9' * 60}\n  sde_sample_freq: {'9' * 60}\n"
    assert transfer_entry(text, "A", "ppo", "16ms", "8ms").changed == {"n_steps": 16, "batch_size": 16}


def test_values_that_are_no_numbers_are_left_alone() -> None:
    text = "A:\n  n_steps: 8\n  batch_size: 8\n  target_kl: .nan\n  clip_range_vf: .inf\n  ent_coef:\n"
    assert transfer_entry(text, "A", "ppo", "16ms", "8ms").changed == {"n_steps": 16, "batch_size": 16}


def test_aliases_that_are_few_are_read() -> None:
    text = "d: &d {n_steps: 8, batch_size: 8}\n" + "".join(f"E{n}: {{<<: *d}}\n" for n in range(100))
    assert transfer_entry(text, "E7", "ppo", "16ms", "8ms").changed == {"n_steps": 16, "batch_size": 16}
