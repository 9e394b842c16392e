"""Other libraries' words at large: defaults, nested settings, refusals, and that nothing is lost silently."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES
from cycletime.rules import PPO, SAC

PPO_LIBRARIES = [name for name, library in LIBRARIES.items() if "ppo" in library]
BASELINE = PPO(dt="16ms")


@pytest.mark.parametrize("library", PPO_LIBRARIES)
@given(n_envs=st.integers(1, 300), batch=st.integers(1, 20_000), minibatch=st.integers(1, 2_000))
def test_what_a_library_cannot_express_is_always_said(library: str, n_envs: int, batch: int, minibatch: int) -> None:
    ppo = PPO(dt="16ms", batch=batch, minibatch=min(batch, minibatch))
    exported = ppo.to(library, n_envs=n_envs)
    understood = PPO.from_(library, dt="16ms", n_envs=n_envs, **exported)
    assert exported.exact == (understood == ppo)
    for name in ("batch", "minibatch"):
        if getattr(understood, name) != getattr(ppo, name):
            said = f"cannot express {name} {getattr(ppo, name)}"
            assert any(said in note and note.endswith(f"is {getattr(understood, name)}.") for note in exported.notes)


@pytest.mark.parametrize(
    ("library", "batch", "minibatch", "discount", "trace_decay"),
    [
        ("sb3", 2048, 64, 0.99, 0.95),
        ("rejax", 64 * 64, 64 * 64 // 16, 0.99, 0.95),
        ("brax", 32 * 16 * 10, 32 * 10, 0.9, 0.95),
        ("rllib", 4000, 128, 0.99, 1.0),
    ],
)
def test_values_that_are_not_given_are_the_library_s_defaults(
    library: str, batch: int, minibatch: int, discount: float, trace_decay: float
) -> None:
    defaults = PPO(dt="16ms", batch=batch, minibatch=minibatch, discount=discount, trace_decay=trace_decay)
    assert PPO.from_(library, dt="16ms") == defaults


def test_a_value_without_a_default_must_be_given() -> None:
    with pytest.raises(InputError, match="num_steps_per_env was not given, and rsl-rl has no default"):
        PPO.from_("rsl_rl", dt="20ms")


def test_nested_settings_are_understood() -> None:
    values = PPO.from_("isaac_lab", dt="20ms", n_envs=4096, num_steps_per_env=24, algorithm={"lam": 0.9})
    assert (values.batch, values.minibatch, values.trace_decay) == (24 * 4096, 24 * 1024, 0.9)
    assert values.at("10ms", "dt-aware").to("isaac-lab", n_envs=4096).nested() == {
        "num_steps_per_env": 48,
        "algorithm": {"num_mini_batches": 4, "gamma": 0.99, "lam": 0.9},
    }


@pytest.mark.parametrize(
    ("library", "wrong", "says"),
    [
        ("keras", {}, "Unknown library 'keras': choose one of stable-baselines3"),
        (
            "sb3",
            {"gama": 0.9},
            "stable-baselines3 has no setting 'gama' that depends on the cycle time; those are gamma,",
        ),
        ("sb3", {"n_steps": 0}, "stable-baselines3's n_steps is 0: it must be a whole number of at least 1"),
        ("sb3", {"n_steps": 2.5}, "stable-baselines3's n_steps is 2.5"),
        ("sb3", {"gamma": "lin_0.9"}, "stable-baselines3's gamma is 'lin_0.9': only a number can be carried"),
        ("sb3", {"gamma": 1.2}, "stable-baselines3's gamma is 1.2: it must be a number in (0, 1]"),
        ("sb3", {"n_envs": 0}, "n_envs is 0: it must be a whole number of at least 1"),
        ("rejax", {"n_envs": 2, "num_envs": 3}, "n_envs is 2 and rejax's num_envs is 3: give one of them"),
        ("skrl", {"mini_batches": 99}, "skrl's mini_batches is 99: it must be at most the batch, 16"),
        (
            "torchrl",
            {"loss.mini_batch_size": 4096},
            "torchrl's loss.mini_batch_size is 4096: it must be at most the batch, 2048",
        ),
        ("lerobot", {}, "lerobot has no PPO that is known here: choose one of stable-baselines3"),
        ("stable-baseline3", {}, "lerobot, authors; did you mean stable-baselines3?"),
        ("Clean_RL", {}, "lerobot, authors; did you mean cleanrl?"),
    ],
)
def test_wrong_values_of_a_library_are_refused(library: str, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        PPO.from_(library, dt="16ms", **wrong)  # type: ignore[arg-type]
    assert says in str(refusal.value)


def test_wrong_exports_are_refused() -> None:
    with pytest.raises(InputError, match="rsl-rl has no SAC"):
        SAC(dt="16ms").to("rsl-rl")
    with pytest.raises(InputError, match="n_envs is -1"):
        BASELINE.to("sb3", n_envs=-1)
    with pytest.raises(InputError, match="give action_size"):
        SAC(dt="16ms", target_entropy=-2).to("stoix")
    with pytest.raises(InputError, match="give action_size"):
        SAC.from_("tianshou", dt="16ms", target_entropy_coefficient=-1)
    with pytest.raises(InputError, match="random_timesteps 5 and learning_starts 7 differ"):
        SAC.from_("skrl", dt="16ms", random_timesteps=5, learning_starts=7)


def test_exports_are_mappings_that_can_be_passed_on() -> None:
    def constructor(**settings: float) -> dict[str, float]:
        return settings

    exported = BASELINE.to("sb3")
    assert constructor(**exported) == dict(exported) == exported.nested()
    assert len(exported) == 4
    assert exported == dict(exported)
    assert exported != {**exported, "gamma": 0.5}
    assert BASELINE.to("sb3", n_envs=np.int64(4)) == BASELINE.to("sb3", n_envs=4)  # type: ignore[arg-type]
