"""Learning rate, clip and initial sigma in other libraries' words: names, round trips, and what is left alone."""

from math import exp, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES
from cycletime.rules import A2C, ALGORITHMS, DDPG, PPO, SAC, TD3

PPO_LIBRARIES = [name for name, library in LIBRARIES.items() if "ppo" in library]
SAC_LIBRARIES = [name for name, library in LIBRARIES.items() if "sac" in library]
WITH_SIGMA = ["stable-baselines3", "sbx", "rsl-rl", "isaac-lab"]
NEEDED: dict[str, dict[str, Any]] = {
    "rsl-rl": {"num_steps_per_env": 24},
    "isaac-lab": {"num_steps_per_env": 24},
    "rl-games": {"horizon_length": 24, "minibatch_size": 12, "num_actors": 1, "gamma": 0.99, "tau": 0.9},
}
rates = st.floats(1e-6, 1.0)


def test_every_algorithm_of_every_library_has_its_rates() -> None:
    for name, library in LIBRARIES.items():
        assert ALGORITHMS.keys() >= library.keys(), name
        assert all(words.rates.learning_rate for words in library.values()), name
        assert "ppo" not in library or library["ppo"].rates.clip, name


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("sb3", {"learning_rate": 1e-3, "clip_range": 0.1}),
        ("sbx", {"learning_rate": 1e-3, "clip_range": 0.1}),
        ("cleanrl", {"learning_rate": 1e-3, "clip_coef": 0.1}),
        ("purejaxrl", {"LR": 1e-3, "CLIP_EPS": 0.1}),
        ("rejax", {"learning_rate": 1e-3, "clip_eps": 0.1}),
        ("stoix", {"system.actor_lr": 1e-3, "system.critic_lr": 1e-3, "system.clip_eps": 0.1}),
        ("brax", {"learning_rate": 1e-3, "clipping_epsilon": 0.1}),
        ("playground", {"learning_rate": 1e-3, "clipping_epsilon": 0.1}),
        ("rsl-rl", {"algorithm.learning_rate": 1e-3, "algorithm.clip_param": 0.1}),
        ("isaac-lab", {"algorithm.learning_rate": 1e-3, "algorithm.clip_param": 0.1}),
        ("rl-games", {"learning_rate": 1e-3, "e_clip": 0.1}),
        ("skrl", {"learning_rate": 1e-3, "ratio_clip": 0.1}),
        ("torchrl", {"optim.lr": 1e-3, "loss.clip_epsilon": 0.1}),
        ("rllib", {"lr": 1e-3, "clip_param": 0.1}),
        ("tianshou", {"lr": 1e-3, "eps_clip": 0.1}),
        ("pufferlib", {"train.learning_rate": 1e-3, "train.clip_coef": 0.1}),
        ("authors", {"lr": 1e-3, "clip_eps": 0.1}),
    ],
)
def test_ppo_s_words(library: str, words: dict[str, float]) -> None:
    bare = PPO(dt="16ms").to(library)
    assert dict(PPO(dt="16ms", learning_rate=1e-3, clip=0.1).to(library)) == {**bare, **words}


@pytest.mark.parametrize(
    ("library", "words"),
    [
        ("sb3", ["learning_rate"]),
        ("sbx", ["learning_rate", "qf_learning_rate"]),
        ("cleanrl", ["policy_lr", "q_lr"]),
        ("rejax", ["learning_rate"]),
        ("stoix", ["system.actor_lr", "system.q_lr", "system.alpha_lr"]),
        ("brax", ["learning_rate"]),
        ("skrl", ["learning_rate"]),
        ("torchrl", ["optim.lr"]),
        ("rllib", ["actor_lr", "critic_lr", "alpha_lr"]),
        ("tianshou", ["actor_lr", "critic1_lr", "critic2_lr"]),
        ("lerobot", ["algorithm.actor_lr", "algorithm.critic_lr", "algorithm.temperature_lr"]),
        ("authors", ["lr"]),
    ],
)
def test_sac_s_words(library: str, words: list[str]) -> None:
    bare = SAC(dt="16ms").to(library)
    assert dict(SAC(dt="16ms", learning_rate=1e-3).to(library)) == {**bare, **dict.fromkeys(words, 1e-3)}


@pytest.mark.parametrize("library", PPO_LIBRARIES)
@given(learning_rate=rates, clip=rates, sigma=rates)
def test_ppo_survives_the_round_trip(library: str, learning_rate: float, clip: float, sigma: float) -> None:
    noise: dict[str, Any] = {"noise_std": sigma} if library in WITH_SIGMA else {}
    values = PPO(dt="16ms", learning_rate=learning_rate, clip=clip, **noise)
    exported = values.to(library)
    understood = [PPO.from_(library, dt="16ms", n_envs=1, **words) for words in (exported, exported.nested())]
    for back in understood:
        assert (back.learning_rate, back.clip) == (learning_rate, clip)
        assert back.noise_std == (pytest.approx(sigma) if noise else None)
    assert not any("learning_rate" in note or "clip" in note or "noise" in note for note in exported.notes)


@pytest.mark.parametrize("library", SAC_LIBRARIES)
@given(learning_rate=rates)
def test_sac_survives_the_round_trip(library: str, learning_rate: float) -> None:
    exported = SAC(dt="16ms", learning_rate=learning_rate).to(library)
    assert SAC.from_(library, dt="16ms", n_envs=1, **exported).learning_rate == learning_rate
    assert SAC.from_(library, dt="16ms", n_envs=1, **exported.nested()).learning_rate == learning_rate
    assert exported.exact


@pytest.mark.parametrize("library", PPO_LIBRARIES)
def test_what_is_not_said_stays_unstated_and_is_not_exported(library: str) -> None:
    values = PPO.from_(library, dt="16ms", **NEEDED.get(library, {}))
    assert (values.learning_rate, values.clip, values.noise_std) == (None, None, None)
    exported = values.at("8ms").to(library)
    words = {*PPO(dt="16ms", learning_rate=1, clip=1).to(library)} - {*PPO(dt="16ms").to(library)}
    assert words
    assert not words & {*exported}


@pytest.mark.parametrize(
    ("kind", "library", "default"),
    [(PPO, "brax", 1e-4), (PPO, "rllib", 5e-5), (A2C, "sb3", 7e-4), (TD3, "sb3", 1e-3), (SAC, "skrl", 1e-3)],
)
def test_a_part_starts_from_the_library_s_default(kind: type[PPO], library: str, default: float) -> None:
    carried = kind.from_(library, dt="16ms").at("4ms", also="learning-rate")
    assert carried.learning_rate == pytest.approx(2 * default)
    assert f"learning_rate was not given: the library's {default} is used." in carried.notes


def test_rates_are_carried_in_the_library_s_words_and_the_rest_comes_back() -> None:
    said: dict[str, Any] = {"learning_rate": 1e-4, "clip_range": 0.1, "n_epochs": 5, "policy_kwargs": {"net_arch": [8]}}
    values = PPO.from_("sb3", dt="16ms", **said)
    untouched = values.at("4ms").to("sb3")
    assert {name: untouched[name] for name in said} == said
    carried = values.at("4ms", also=["learning-rate", "clip", "exploration-noise"]).to("sb3")
    assert (carried["learning_rate"], carried["clip_range"], carried["n_epochs"]) == (2e-4, 0.05, 5)
    assert carried["policy_kwargs"] == {"net_arch": [8], "log_std_init": pytest.approx(log(2))}
    assert (carried.notes, said["policy_kwargs"]) == ((), {"net_arch": [8]})


def test_a_logarithm_inside_policy_kwargs_is_sigma() -> None:
    inside = {"log_std_init": -2, "net_arch": [8]}
    values = PPO.from_("sb3", dt="16ms", policy_kwargs=inside)
    assert values.noise_std == pytest.approx(exp(-2))
    assert values.at("4ms").to("sb3")["policy_kwargs"] is inside
    assert values.at("4ms", also="exploration-noise").to("sb3")["policy_kwargs"] == {
        "log_std_init": pytest.approx(-2 + log(2)),
        "net_arch": [8],
    }
    dotted = A2C.from_("sb3", dt="16ms", **{"policy_kwargs.log_std_init": -2}).at("4ms", also="exploration-noise")
    assert dotted.to("sb3")["policy_kwargs"] == {"log_std_init": pytest.approx(-2 + log(2))}
    assert "policy_kwargs.log_std_init" not in dotted.to("sb3")


@pytest.mark.parametrize(
    ("kind", "library", "said", "part", "says"),
    [
        (PPO, "sb3", {"learning_rate": "lin_3e-4"}, "learning-rate", "learning_rate is 'lin_3e-4': only a number"),
        (PPO, "sb3", {"clip_range": abs}, "clip", "clip_range is a schedule: only a number"),
        (PPO, "sb3", {"learning_rate": 0}, "learning-rate", "learning_rate is 0: only a finite number greater than 0"),
        (PPO, "skrl", {"learning_rate": (1e-3, 1e-4)}, "learning-rate", "is (0.001, 0.0001): only a number"),
        (
            PPO,
            "sb3",
            {"policy_kwargs": "dict(log_std_init=-2)"},
            "exploration-noise",
            "give policy_kwargs.log_std_init",
        ),
        (PPO, "sb3", {"use_sde": True}, "exploration-noise", "log_std_init is then no standard deviation"),
        (SAC, "cleanrl", {}, "learning-rate", "cleanrl's policy_lr 0.0003 and q_lr 0.001 differ: only one number"),
        (SAC, "cleanrl", {"policy_lr": 1e-4}, "learning-rate", "cleanrl's policy_lr 0.0001 and q_lr 0.001 differ"),
        (SAC, "rllib", {}, "learning-rate", "rllib's actor_lr 3e-05 and critic_lr 0.0003 and alpha_lr 0.0003 differ"),
        (DDPG, "sbx", {}, "learning-rate", "sbx's learning_rate 0.0003 and qf_learning_rate 0.001 differ"),
    ],
)
def test_what_is_not_one_number_comes_back_as_it_was_and_is_refused_only_where_it_is_to_be_carried(
    kind: type[PPO], library: str, said: dict[str, Any], part: str, says: str
) -> None:
    values = kind.from_(library, dt="16ms", **said)
    exported = values.at("4ms").to(library)
    assert all(exported[name] is value for name, value in said.items())
    with pytest.raises(InputError) as refusal:
        values.at("4ms", also=part)
    assert says in str(refusal.value)


def test_rates_that_are_said_alike_are_carried_together() -> None:
    carried = SAC.from_("cleanrl", dt="16ms", policy_lr=1e-3).at("4ms", also="learning-rate").to("cleanrl")
    assert (carried["policy_lr"], carried["q_lr"]) == (2e-3, 2e-3)
    sbx = SAC.from_("sbx", dt="16ms", learning_rate=1e-3).at("4ms", also="learning-rate").to("sbx")
    assert (sbx["learning_rate"], sbx["qf_learning_rate"]) == (2e-3, 2e-3)


def test_a_library_without_a_word_for_sigma_says_so() -> None:
    exported = PPO(dt="16ms", noise_std=0.5, learning_rate=1e-3).to("cleanrl")
    assert exported.notes == ("cleanrl has no setting for noise_std: 0.5 is not in these values.",)
