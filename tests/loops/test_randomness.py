import jax
import jax.numpy as jnp
import numpy as np

from cycletime.loops.randomness import Purpose, key_for, keys_for


def test_no_two_purposes_counts_or_seeds_share_a_key() -> None:
    keys = {
        tuple(np.asarray(jax.random.key_data(key_for(jax.random.key(seed), purpose, count))).tolist())
        for seed in range(3)
        for purpose in Purpose
        for count in range(50)
    }
    assert len(keys) == 3 * 4 * 50


def test_the_streams_stay_as_they_are() -> None:
    """A change here would change every run that was ever recorded."""
    drawn = [float(jax.random.normal(key_for(jax.random.key(7), purpose, 5))) for purpose in Purpose]
    np.testing.assert_allclose(drawn, [0.007083, 1.27646, 0.522775, -1.503185], atol=2e-6)


def test_keys_in_bulk_are_the_same_keys() -> None:
    seed = jax.random.key(4)
    wanted = {Purpose.NOISE: jnp.arange(3), Purpose.STARTS: 5 + jnp.arange(2)}
    found = keys_for(seed, wanted)
    assert list(found) == list(wanted)
    for purpose, counts in wanted.items():
        for key, count in zip(found[purpose], counts, strict=True):
            assert key == key_for(seed, purpose, int(count))
