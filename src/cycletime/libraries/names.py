"""The libraries and their names: where each value lives, and the default that the library itself has.

Checked against the installed packages by `./check libraries` and `./check rllib`; the others were read in their source.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cycletime.libraries.off_policy import (
    OffPolicyTable,
    ReplayRatio,
    UpdatePeriod,
    UpdateRatio,
    UpdatesPerPeriod,
    WholeUpdates,
)
from cycletime.libraries.on_policy import Brax, Counted, OnPolicyTable, Puffer, Sized
from cycletime.libraries.parameters import LogInside, OneRate, ParamName, RateTable


def _rate(*names: str, default: float | None = None) -> OneRate:
    return OneRate(tuple(ParamName(name, default) for name in names))


_LOG_STD = LogInside("policy_kwargs", "log_std_init", default=0.0, other_with="use_sde")
_SB3_PPO = RateTable(_rate("learning_rate", default=3e-4), _rate("clip_range", default=0.2), _LOG_STD)
_BRAX_RATES = {
    "ppo": RateTable(_rate("learning_rate", default=1e-4), _rate("clipping_epsilon", default=0.3)),
    "sac": RateTable(_rate("learning_rate", default=1e-4)),
}
_RSL_RL_RATES = RateTable(
    _rate("algorithm.learning_rate", default=1e-3),
    _rate("algorithm.clip_param", default=0.2),
    _rate("actor.distribution_cfg.init_std", default=1.0),
)
_SBX_REPLAY = RateTable(
    OneRate((ParamName("learning_rate", 3e-4), ParamName("qf_learning_rate")))
)  # the same where not said

RATES: dict[str, dict[str, RateTable]] = {
    "stable-baselines3": {
        "ppo": _SB3_PPO,
        "a2c": RateTable(_rate("learning_rate", default=7e-4), noise_std=_LOG_STD),
        **{name: RateTable(_rate("learning_rate", default=3e-4)) for name in ("sac", "tqc")},
        **{name: RateTable(_rate("learning_rate", default=1e-3)) for name in ("td3", "ddpg")},
    },
    "sbx": {
        "ppo": _SB3_PPO,
        **dict.fromkeys(("sac", "tqc", "td3"), _SBX_REPLAY),
        "ddpg": RateTable(OneRate((ParamName("learning_rate", 3e-4), ParamName("qf_learning_rate", 1e-3)))),
    },
    "cleanrl": {
        "ppo": RateTable(_rate("learning_rate", default=3e-4), _rate("clip_coef", default=0.2)),
        "sac": RateTable(OneRate((ParamName("policy_lr", 3e-4), ParamName("q_lr", 1e-3)))),
    },
    "purejaxrl": {"ppo": RateTable(_rate("LR", default=3e-4), _rate("CLIP_EPS", default=0.2))},
    "rejax": {
        "ppo": RateTable(_rate("learning_rate", default=3e-4), _rate("clip_eps", default=0.2)),
        "sac": RateTable(_rate("learning_rate", default=3e-4)),
    },
    "stoix": {
        "ppo": RateTable(
            _rate("system.actor_lr", "system.critic_lr", default=3e-4), _rate("system.clip_eps", default=0.2)
        ),
        "sac": RateTable(_rate("system.actor_lr", "system.q_lr", "system.alpha_lr", default=3e-4)),
    },
    "brax": _BRAX_RATES,
    "mujoco-playground": _BRAX_RATES,
    "rsl-rl": {"ppo": _RSL_RL_RATES},
    "isaac-lab": {"ppo": replace(_RSL_RL_RATES, noise_std=_rate("policy.init_noise_std"))},
    "rl-games": {"ppo": RateTable(_rate("learning_rate"), _rate("e_clip"))},
    "skrl": {
        "ppo": RateTable(_rate("learning_rate", default=1e-3), _rate("ratio_clip", default=0.2)),
        "sac": RateTable(_rate("learning_rate", default=1e-3)),
    },
    "torchrl": {
        "ppo": RateTable(_rate("optim.lr", default=3e-4), _rate("loss.clip_epsilon", default=0.2)),
        "sac": RateTable(_rate("optim.lr", default=3e-4)),
    },
    "rllib": {
        "ppo": RateTable(_rate("lr", default=5e-5), _rate("clip_param", default=0.3)),
        "sac": RateTable(
            OneRate((ParamName("actor_lr", 3e-5), ParamName("critic_lr", 3e-4), ParamName("alpha_lr", 3e-4)))
        ),
    },
    "tianshou": {
        "ppo": RateTable(_rate("lr", default=1e-3), _rate("eps_clip", default=0.2)),
        "sac": RateTable(_rate("actor_lr", "critic1_lr", "critic2_lr", default=1e-3)),
    },
    "pufferlib": {"ppo": RateTable(_rate("train.learning_rate", default=0.015), _rate("train.clip_coef", default=0.2))},
    "lerobot": {
        "sac": RateTable(_rate("algorithm.actor_lr", "algorithm.critic_lr", "algorithm.temperature_lr", default=3e-4))
    },
    "authors": {
        "ppo": RateTable(_rate("lr", default=3e-4), _rate("clip_eps", default=0.2)),
        "sac": RateTable(_rate("lr", default=3e-4)),
    },
}
"""By library and algorithm. Where a library has no word for the initial sigma, it is part of the network there."""


@dataclass(frozen=True)
class Library:
    """One library's words, by algorithm: None for one that it does not have, or that nobody has looked at."""

    ppo: OnPolicyTable | None
    sac: OffPolicyTable | None
    a2c: OnPolicyTable | None = None
    tqc: OffPolicyTable | None = None
    td3: OffPolicyTable | None = None
    ddpg: OffPolicyTable | None = None

    def of(self, algorithm: str) -> OnPolicyTable | OffPolicyTable | None:
        """The words for one algorithm, if there are any."""
        words: OnPolicyTable | OffPolicyTable | None = getattr(self, algorithm)
        return words


_GAMMA, _LAMBDA = ParamName("gamma", 0.99), ParamName("gae_lambda", 0.95)
_FIXED_ENTROPY = {"target_entropy": "it is fixed at -|A|"}

_SB3_WITH_REPLAY = OffPolicyTable(
    discount=_GAMMA,
    tau="tau",
    replay="buffer_size",
    minibatch="batch_size",
    warmup=("learning_starts",),
    updates=UpdatesPerPeriod("gradient_steps", "train_freq"),
    remarks={"noise_std": "pass it as action_noise=NormalActionNoise(mean, sigma)"},
    defaults={
        "tau": 0.005,
        "buffer_size": 1_000_000,
        "learning_starts": 100,
        "train_freq": 1,
        "gradient_steps": 1,
    },
)
_SB3_WITH_ENTROPY = replace(_SB3_WITH_REPLAY, entropy="target_entropy")

_STABLE_BASELINES3 = Library(
    # batch_size is m here, the most dangerous of all clashes of names
    ppo=Sized(
        size=ParamName("n_steps", 2048),
        size_is_per_env=True,
        minibatch=ParamName("batch_size", 64),
        discount=_GAMMA,
        trace_decay=_LAMBDA,
        smallest_minibatch=2,
        takes_more_than_the_batch=True,
        tail="{library}'s last mini-batch of each epoch has {left} samples instead of {m}{instead}.",
    ),
    sac=_SB3_WITH_ENTROPY,
    a2c=Sized(
        size=ParamName("n_steps", 5),
        size_is_per_env=True,
        minibatch=None,
        discount=_GAMMA,
        trace_decay=ParamName("gae_lambda", 1.0),
    ),
    tqc=_SB3_WITH_ENTROPY,
    td3=_SB3_WITH_REPLAY,
    ddpg=_SB3_WITH_REPLAY,
)
_SBX = replace(_STABLE_BASELINES3, a2c=None)

_CLEANRL = Library(
    ppo=Counted(
        rollout=ParamName("num_steps", 2048),
        count=ParamName("num_minibatches", 32),
        n_envs=ParamName("num_envs", 1),
        discount=_GAMMA,
        trace_decay=_LAMBDA,
        tail="{library} cuts the batch into slices of {m}: that makes {slices}, not {count}, the last one short.",
    ),
    sac=OffPolicyTable(
        discount=_GAMMA,
        tau="tau",
        replay="buffer_size",
        minibatch="batch_size",
        warmup=("learning_starts",),
        per_vector_step=frozenset({"warmup_steps"}),
        n_envs=ParamName("num_envs", 1),
        remarks={"updates_per_step": "it makes one update per step of all environments", **_FIXED_ENTROPY},
        defaults={"tau": 0.005, "buffer_size": 1_000_000, "learning_starts": 5_000},
    ),
)

_PUREJAXRL = Library(
    ppo=Counted(
        rollout=ParamName("NUM_STEPS", 10),
        count=ParamName("NUM_MINIBATCHES", 32),
        n_envs=ParamName("NUM_ENVS", 2048),
        discount=ParamName("GAMMA", 0.99),
        trace_decay=ParamName("GAE_LAMBDA", 0.95),
        only_whole_minibatches=True,
    ),
    sac=None,
)

_REJAX = Library(
    ppo=Counted(
        rollout=ParamName("num_steps", 64),
        count=ParamName("num_minibatches", 16),
        n_envs=ParamName("num_envs", 64),
        discount=_GAMMA,
        trace_decay=_LAMBDA,
        only_whole_minibatches=True,
    ),
    sac=OffPolicyTable(
        discount=_GAMMA,
        one_minus_tau="polyak",
        replay="buffer_size",
        minibatch="batch_size",
        warmup=("fill_buffer",),
        updates=WholeUpdates("num_epochs"),
        updates_per_target_move="num_epochs",
        n_envs=ParamName("num_envs", 1),
        remarks=_FIXED_ENTROPY,
        defaults={"polyak": 0.99, "buffer_size": 131_072, "fill_buffer": 2_048, "num_epochs": 1},
    ),
)

_STOIX = Library(
    ppo=Counted(
        rollout=ParamName("system.rollout_length", 128),
        count=ParamName("system.num_minibatches", 16),
        n_envs=ParamName("arch.total_num_envs", 1024),
        discount=ParamName("system.gamma", 0.99),
        trace_decay=ParamName("system.gae_lambda", 0.95),
        only_whole_minibatches=True,
    ),
    sac=OffPolicyTable(
        discount=ParamName("system.gamma", 0.99),
        tau="system.tau",
        replay="system.total_buffer_size",
        minibatch="system.total_batch_size",
        warmup=("system.warmup_steps",),
        per_vector_step=frozenset({"warmup_steps"}),
        updates=UpdatesPerPeriod("system.epochs", "system.rollout_length"),
        entropy="system.target_entropy_scale",
        entropy_per_dimension=-1,
        n_envs=ParamName("arch.total_num_envs", 1024),
        defaults={
            "system.tau": 0.005,
            "system.total_buffer_size": 25_000,
            "system.warmup_steps": 16,
            "system.epochs": 1,
            "system.rollout_length": 1,
        },
    ),
)

_BRAX = Library(
    ppo=Brax(),
    sac=OffPolicyTable(
        discount=ParamName("discounting", 0.9),
        tau="tau",
        replay="max_replay_size",
        minibatch="batch_size",
        warmup=("min_replay_size",),
        updates=WholeUpdates("grad_updates_per_step"),
        n_envs=ParamName("num_envs", 1),
        remarks={"target_entropy": "it is fixed at -|A|/2"},
        defaults={"tau": 0.005, "min_replay_size": 0, "grad_updates_per_step": 1},
    ),
)

_RSL_RL = Library(
    ppo=Counted(
        rollout=ParamName("num_steps_per_env"),
        count=ParamName("algorithm.num_mini_batches", 4),
        discount=ParamName("algorithm.gamma", 0.99),
        trace_decay=ParamName("algorithm.lam", 0.95),
        tail="{library} makes {count} mini-batches of {m} and drops the last {left} samples of each batch.",
    ),
    sac=None,
)

_SKRL = Library(
    ppo=Counted(
        rollout=ParamName("rollouts", 16),
        count=ParamName("mini_batches", 2),
        discount=ParamName("discount_factor", 0.99),
        trace_decay=_LAMBDA,
        tail="{library} spreads the {left} samples that are left over {count} mini-batches of {m}.",
        remark="{library}'s memory must be as long as the rollout: RandomMemory(memory_size={rollout}).",
    ),
    sac=OffPolicyTable(
        discount=ParamName("discount_factor", 0.99),
        tau="polyak",
        replay="memory_size",
        minibatch="batch_size",
        warmup=("random_timesteps", "learning_starts"),
        per_vector_step=frozenset({"warmup_steps", "replay_capacity"}),
        updates=WholeUpdates("gradient_steps"),
        entropy="target_entropy",
        defaults={"polyak": 0.005, "random_timesteps": 0, "gradient_steps": 1},
    ),
)

_TORCHRL = Library(
    ppo=Sized(
        size=ParamName("collector.frames_per_batch", 2048),
        minibatch=ParamName("loss.mini_batch_size", 64),
        n_envs=ParamName("env.num_envs", 1),
        discount=ParamName("loss.gamma", 0.99),
        trace_decay=ParamName("loss.gae_lambda", 0.95),
        only_whole_minibatches=True,  # its scripts index out of bounds otherwise
    ),
    sac=OffPolicyTable(
        discount=ParamName("optim.gamma", 0.99),
        one_minus_tau="optim.target_update_polyak",
        replay="replay_buffer.size",
        minibatch="optim.batch_size",
        warmup=("collector.init_random_frames",),
        updates=UpdateRatio("optim.utd_ratio"),
        remarks={"target_entropy": "pass it to SACLoss(target_entropy=...)"},
        defaults={
            "optim.target_update_polyak": 0.995,
            "replay_buffer.size": 1_000_000,
            "collector.init_random_frames": 25_000,
            "optim.utd_ratio": 1,
        },
    ),
)

_RLLIB = Library(
    ppo=Sized(
        size=ParamName("train_batch_size_per_learner", 4000),
        minibatch=ParamName("minibatch_size", 128),
        discount=_GAMMA,
        trace_decay=ParamName("lambda_", 1.0),
        collects_whole_vector_steps=False,
        tail="{library} has no short mini-batch: the last one of an epoch is filled up from the next epoch.",
    ),
    sac=OffPolicyTable(
        discount=_GAMMA,
        tau="tau",
        replay="replay_buffer_config.capacity",
        minibatch="train_batch_size_per_learner",
        warmup=("num_steps_sampled_before_learning_starts",),
        updates=ReplayRatio("training_intensity", default_minibatch=256),
        entropy="target_entropy",
        defaults={
            "tau": 0.005,
            "replay_buffer_config.capacity": 1_000_000,
            "num_steps_sampled_before_learning_starts": 1_500,
        },
    ),
)

_TIANSHOU = Library(
    ppo=Sized(
        size=ParamName("collection_step_num_env_steps", 2048),
        minibatch=ParamName("batch_size", 64),
        discount=_GAMMA,
        trace_decay=_LAMBDA,
        smallest_minibatch=2,  # the spread of one sample's advantage is not a number
        buffer="buffer_size",  # 4096 where nothing is said, however large the batch
        tail="{library} has no short mini-batch: the last one of an epoch takes the samples that are left as well.",
    ),
    sac=OffPolicyTable(
        discount=_GAMMA,
        tau="tau",
        replay="buffer_size",
        minibatch="batch_size",
        warmup=("start_timesteps",),
        updates=UpdateRatio("update_step_num_gradient_steps_per_sample", collected="collection_step_num_env_steps"),
        entropy="target_entropy_coefficient",
        entropy_per_dimension=1,
        defaults={
            "tau": 0.005,
            "buffer_size": 4_096,
            "start_timesteps": 0,
            "update_step_num_gradient_steps_per_sample": 1,
        },
    ),
)

_PUFFERLIB = Library(
    ppo=Puffer(
        ParamName("train.horizon", 64), ParamName("train.minibatch_size", 8192), ParamName("vec.total_agents", 4096)
    ),
    sac=None,
)

_RL_GAMES = Library(
    ppo=Sized(
        size=ParamName("horizon_length"),
        size_is_per_env=True,
        minibatch=ParamName("minibatch_size"),
        n_envs=ParamName("num_actors"),
        discount=ParamName("gamma"),
        trace_decay=ParamName("tau"),  # no smoothing of targets: this is lambda
        only_whole_minibatches=True,
    ),
    sac=None,
)

_LEROBOT = Library(
    ppo=None,
    sac=OffPolicyTable(
        discount=ParamName("algorithm.discount", 0.99),
        tau="algorithm.critic_target_update_weight",
        replay="policy.online_buffer_capacity",
        minibatch="batch_size",
        warmup=("policy.online_step_before_learning",),
        entropy="algorithm.target_entropy",
        remarks={"updates_per_step": "its learner runs beside the robot, as fast as it can"},
        defaults={
            "algorithm.critic_target_update_weight": 0.005,
            "policy.online_buffer_capacity": 100_000,
            "policy.online_step_before_learning": 100,
        },
    ),
)

_AUTHORS = Library(
    ppo=Sized(
        size=ParamName("bs", 2000),
        minibatch=ParamName("mbs", 50),
        discount=ParamName("g", 0.99),
        trace_decay=ParamName("lm", 0.95),
        tail="{library} takes b // (b // m) samples into each mini-batch, the last one being short.",
    ),
    sac=OffPolicyTable(
        discount=_GAMMA,
        tau="tau",
        minibatch="batch_size",
        updates=UpdatePeriod("update_period"),
        remarks={
            "replay_capacity": "it multiplies its replay_size by 16 ms / dt itself",
            "warmup_steps": "its start_steps are of 16 ms each at every dt",
            **_FIXED_ENTROPY,
        },
        defaults={"tau": 0.005, "update_period": 1},
    ),
)

LIBRARIES: dict[str, Library] = {
    "stable-baselines3": _STABLE_BASELINES3,
    "sbx": _SBX,
    "cleanrl": _CLEANRL,
    "purejaxrl": _PUREJAXRL,
    "rejax": _REJAX,
    "stoix": _STOIX,
    "brax": _BRAX,
    "mujoco-playground": _BRAX,
    "rsl-rl": _RSL_RL,
    "isaac-lab": _RSL_RL,
    "rl-games": _RL_GAMES,
    "skrl": _SKRL,
    "torchrl": _TORCHRL,
    "rllib": _RLLIB,
    "tianshou": _TIANSHOU,
    "pufferlib": _PUFFERLIB,
    "lerobot": _LEROBOT,
    "authors": _AUTHORS,
}

DISPLAY_NAMES = {"authors": "the authors' code"}
ALIASES = {"sb3": "stable-baselines3", "playground": "mujoco-playground", "isaaclab": "isaac-lab"}
