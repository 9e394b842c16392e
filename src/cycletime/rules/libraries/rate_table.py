"""The libraries' words for the learning rate, the clip and the initial sigma, with their own defaults."""

from __future__ import annotations

from dataclasses import replace

from cycletime.rules.libraries.rates import LogInside, OneRate, RateWords
from cycletime.rules.libraries.words import Word


def _rate(*names: str, default: float | None = None) -> OneRate:
    return OneRate(tuple(Word(name, default) for name in names))


_LOG_STD = LogInside("policy_kwargs", "log_std_init", default=0.0, other_with="use_sde")
_SB3_PPO = RateWords(_rate("learning_rate", default=3e-4), _rate("clip_range", default=0.2), _LOG_STD)
_BRAX = {
    "ppo": RateWords(_rate("learning_rate", default=1e-4), _rate("clipping_epsilon", default=0.3)),
    "sac": RateWords(_rate("learning_rate", default=1e-4)),
}
_RSL_RL = RateWords(
    _rate("algorithm.learning_rate", default=1e-3),
    _rate("algorithm.clip_param", default=0.2),
    _rate("actor.distribution_cfg.init_std", default=1.0),
)
_SBX_REPLAY = RateWords(OneRate((Word("learning_rate", 3e-4), Word("qf_learning_rate"))))  # the same where not said

RATES: dict[str, dict[str, RateWords]] = {
    "stable-baselines3": {
        "ppo": _SB3_PPO,
        "a2c": RateWords(_rate("learning_rate", default=7e-4), noise_std=_LOG_STD),
        **{name: RateWords(_rate("learning_rate", default=3e-4)) for name in ("sac", "tqc")},
        **{name: RateWords(_rate("learning_rate", default=1e-3)) for name in ("td3", "ddpg")},
    },
    "sbx": {
        "ppo": _SB3_PPO,
        **dict.fromkeys(("sac", "tqc", "td3"), _SBX_REPLAY),
        "ddpg": RateWords(OneRate((Word("learning_rate", 3e-4), Word("qf_learning_rate", 1e-3)))),
    },
    "cleanrl": {
        "ppo": RateWords(_rate("learning_rate", default=3e-4), _rate("clip_coef", default=0.2)),
        "sac": RateWords(OneRate((Word("policy_lr", 3e-4), Word("q_lr", 1e-3)))),
    },
    "purejaxrl": {"ppo": RateWords(_rate("LR", default=3e-4), _rate("CLIP_EPS", default=0.2))},
    "rejax": {
        "ppo": RateWords(_rate("learning_rate", default=3e-4), _rate("clip_eps", default=0.2)),
        "sac": RateWords(_rate("learning_rate", default=3e-4)),
    },
    "stoix": {
        "ppo": RateWords(
            _rate("system.actor_lr", "system.critic_lr", default=3e-4), _rate("system.clip_eps", default=0.2)
        ),
        "sac": RateWords(_rate("system.actor_lr", "system.q_lr", "system.alpha_lr", default=3e-4)),
    },
    "brax": _BRAX,
    "mujoco-playground": _BRAX,
    "rsl-rl": {"ppo": _RSL_RL},
    "isaac-lab": {"ppo": replace(_RSL_RL, noise_std=_rate("policy.init_noise_std"))},
    "rl-games": {"ppo": RateWords(_rate("learning_rate"), _rate("e_clip"))},
    "skrl": {
        "ppo": RateWords(_rate("learning_rate", default=1e-3), _rate("ratio_clip", default=0.2)),
        "sac": RateWords(_rate("learning_rate", default=1e-3)),
    },
    "torchrl": {
        "ppo": RateWords(_rate("optim.lr", default=3e-4), _rate("loss.clip_epsilon", default=0.2)),
        "sac": RateWords(_rate("optim.lr", default=3e-4)),
    },
    "rllib": {
        "ppo": RateWords(_rate("lr", default=5e-5), _rate("clip_param", default=0.3)),
        "sac": RateWords(OneRate((Word("actor_lr", 3e-5), Word("critic_lr", 3e-4), Word("alpha_lr", 3e-4)))),
    },
    "tianshou": {
        "ppo": RateWords(_rate("lr", default=1e-3), _rate("eps_clip", default=0.2)),
        "sac": RateWords(_rate("actor_lr", "critic1_lr", "critic2_lr", default=1e-3)),
    },
    "pufferlib": {"ppo": RateWords(_rate("train.learning_rate", default=0.015), _rate("train.clip_coef", default=0.2))},
    "lerobot": {
        "sac": RateWords(_rate("algorithm.actor_lr", "algorithm.critic_lr", "algorithm.temperature_lr", default=3e-4))
    },
    "authors": {
        "ppo": RateWords(_rate("lr", default=3e-4), _rate("clip_eps", default=0.2)),
        "sac": RateWords(_rate("lr", default=3e-4)),
    },
}
"""By library and algorithm. Where a library has no word for the initial sigma, it is part of the network there."""
