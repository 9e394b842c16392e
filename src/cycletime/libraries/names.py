"""The libraries and their names: where each value lives, and the default that the library itself has.

Checked against the installed packages by `./check libraries` and `./check rllib`; the others were read in their source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeAlias

from cycletime.errors import InputError, did_you_mean
from cycletime.libraries.off_policy import (
    OffPolicyTable,
    ReplayRatio,
    UpdatePeriod,
    UpdateRatio,
    UpdatesPerPeriod,
    WholeUpdates,
)
from cycletime.libraries.on_policy import Brax, Counted, OnPolicyTable, Puffer, Sized
from cycletime.libraries.parameters import LogInside, OneRate, ParamName, RateTable, param_names

Table: TypeAlias = OnPolicyTable | OffPolicyTable


def _rate(*names: str, default: float | None = None) -> OneRate:
    return OneRate(tuple(ParamName(name, default) for name in names))


def _rates(learning_rate: float, *names: str) -> RateTable:
    return RateTable(_rate(*names or ["learning_rate"], default=learning_rate))


_LOG_STD = LogInside("policy_kwargs", "log_std_init", default=0.0, other_with="use_sde")
_FIXED_ENTROPY = {"target_entropy": "it is fixed at -|A|"}

_SB3_WITH_REPLAY = OffPolicyTable(
    tau=ParamName("tau", 0.005),
    replay=ParamName("buffer_size", 1_000_000),
    warmup=(ParamName("learning_starts", 100),),
    updates=UpdatesPerPeriod(ParamName("gradient_steps", 1), ParamName("train_freq", 1)),
    remarks={"noise_std": "pass it as action_noise=NormalActionNoise(mean, sigma)"},
    rates=_rates(1e-3),
)
_SB3_WITH_ENTROPY = replace(_SB3_WITH_REPLAY, rates=_rates(3e-4), entropy=ParamName("target_entropy"))

_STABLE_BASELINES3: Mapping[str, Table] = {
    # batch_size is m here, the most dangerous of all clashes of names
    "ppo": Sized(
        size=ParamName("n_steps", 2048),
        size_is_per_env=True,
        minibatch=ParamName("batch_size", 64),
        smallest_minibatch=2,
        takes_more_than_the_batch=True,
        tail="{library}'s last mini-batch of each epoch has {left} samples instead of {m}{instead}.",
        rates=RateTable(_rate("learning_rate", default=3e-4), _rate("clip_range", default=0.2), _LOG_STD),
    ),
    "sac": _SB3_WITH_ENTROPY,
    "a2c": Sized(
        size=ParamName("n_steps", 5),
        size_is_per_env=True,
        minibatch=None,
        trace_decay=ParamName("gae_lambda", 1.0),
        rates=RateTable(_rate("learning_rate", default=7e-4), noise_std=_LOG_STD),
    ),
    "tqc": _SB3_WITH_ENTROPY,
    "td3": _SB3_WITH_REPLAY,
    "ddpg": _SB3_WITH_REPLAY,
}
_SBX_RATES = RateTable(OneRate((ParamName("learning_rate", 3e-4), ParamName("qf_learning_rate"))))
"""Both the same where the second is not said."""
_SBX_DDPG = RateTable(OneRate((ParamName("learning_rate", 3e-4), ParamName("qf_learning_rate", 1e-3))))
_SBX: Mapping[str, Table] = {
    "ppo": _STABLE_BASELINES3["ppo"],
    **dict.fromkeys(("sac", "tqc"), replace(_SB3_WITH_ENTROPY, rates=_SBX_RATES)),
    "td3": replace(_SB3_WITH_REPLAY, rates=_SBX_RATES),
    "ddpg": replace(_SB3_WITH_REPLAY, rates=_SBX_DDPG),
}

_BRAX: Mapping[str, Table] = {
    "ppo": Brax(rates=RateTable(_rate("learning_rate", default=1e-4), _rate("clipping_epsilon", default=0.3))),
    "sac": OffPolicyTable(
        discount=ParamName("discounting", 0.9),
        tau=ParamName("tau", 0.005),
        replay=ParamName("max_replay_size"),
        warmup=(ParamName("min_replay_size", 0),),
        updates=WholeUpdates(ParamName("grad_updates_per_step", 1)),
        n_envs=ParamName("num_envs", 1),
        remarks={"target_entropy": "it is fixed at -|A|/2"},
        rates=_rates(1e-4),
    ),
}

_RSL_RL_RATES = RateTable(
    _rate("algorithm.learning_rate", default=1e-3),
    _rate("algorithm.clip_param", default=0.2),
    _rate("actor.distribution_cfg.init_std", default=1.0),
)
RSL_RL = Counted(
    rollout=ParamName("num_steps_per_env"),
    count=ParamName("algorithm.num_mini_batches", 4),
    discount=ParamName("algorithm.gamma", 0.99),
    trace_decay=ParamName("algorithm.lam", 0.95),
    tail="{library} makes {count} mini-batches of {m} and drops the last {left} samples of each batch.",
    rates=_RSL_RL_RATES,
)

LIBRARIES: dict[str, Mapping[str, Table]] = {
    "stable-baselines3": _STABLE_BASELINES3,
    "sbx": _SBX,
    "cleanrl": {
        "ppo": Counted(
            rollout=ParamName("num_steps", 2048),
            count=ParamName("num_minibatches", 32),
            n_envs=ParamName("num_envs", 1),
            tail="{library} cuts the batch into slices of {m}: that makes {slices}, not {count}, the last one short.",
            rates=RateTable(_rate("learning_rate", default=3e-4), _rate("clip_coef", default=0.2)),
        ),
        "sac": OffPolicyTable(
            tau=ParamName("tau", 0.005),
            replay=ParamName("buffer_size", 1_000_000),
            warmup=(ParamName("learning_starts", 5_000),),
            per_vector_step=frozenset({"warmup_steps"}),
            n_envs=ParamName("num_envs", 1),
            remarks={"updates_per_step": "it makes one update per step of all environments", **_FIXED_ENTROPY},
            rates=RateTable(OneRate((ParamName("policy_lr", 3e-4), ParamName("q_lr", 1e-3)))),
        ),
    },
    "purejaxrl": {
        "ppo": Counted(
            rollout=ParamName("NUM_STEPS", 10),
            count=ParamName("NUM_MINIBATCHES", 32),
            n_envs=ParamName("NUM_ENVS", 2048),
            discount=ParamName("GAMMA", 0.99),
            trace_decay=ParamName("GAE_LAMBDA", 0.95),
            only_whole_minibatches=True,
            rates=RateTable(_rate("LR", default=3e-4), _rate("CLIP_EPS", default=0.2)),
        ),
    },
    "rejax": {
        "ppo": Counted(
            rollout=ParamName("num_steps", 64),
            count=ParamName("num_minibatches", 16),
            n_envs=ParamName("num_envs", 64),
            only_whole_minibatches=True,
            rates=RateTable(_rate("learning_rate", default=3e-4), _rate("clip_eps", default=0.2)),
        ),
        "sac": OffPolicyTable(
            one_minus_tau=ParamName("polyak", 0.99),
            replay=ParamName("buffer_size", 131_072),
            warmup=(ParamName("fill_buffer", 2_048),),
            updates=WholeUpdates(ParamName("num_epochs", 1)),
            updates_per_target_move=ParamName("num_epochs", 1),
            n_envs=ParamName("num_envs", 1),
            remarks=_FIXED_ENTROPY,
            rates=_rates(3e-4),
        ),
    },
    "stoix": {
        "ppo": Counted(
            rollout=ParamName("system.rollout_length", 128),
            count=ParamName("system.num_minibatches", 16),
            n_envs=ParamName("arch.total_num_envs", 1024),
            discount=ParamName("system.gamma", 0.99),
            trace_decay=ParamName("system.gae_lambda", 0.95),
            only_whole_minibatches=True,
            rates=RateTable(
                _rate("system.actor_lr", "system.critic_lr", default=3e-4), _rate("system.clip_eps", default=0.2)
            ),
        ),
        "sac": OffPolicyTable(
            discount=ParamName("system.gamma", 0.99),
            tau=ParamName("system.tau", 0.005),
            replay=ParamName("system.total_buffer_size", 25_000),
            minibatch=ParamName("system.total_batch_size"),
            warmup=(ParamName("system.warmup_steps", 16),),
            per_vector_step=frozenset({"warmup_steps"}),
            updates=UpdatesPerPeriod(ParamName("system.epochs", 1), ParamName("system.rollout_length", 1)),
            entropy=ParamName("system.target_entropy_scale"),
            entropy_per_dimension=-1,
            n_envs=ParamName("arch.total_num_envs", 1024),
            rates=_rates(3e-4, "system.actor_lr", "system.q_lr", "system.alpha_lr"),
        ),
    },
    "brax": _BRAX,
    "mujoco-playground": _BRAX,
    "rsl-rl": {"ppo": RSL_RL},
    "isaac-lab": {"ppo": replace(RSL_RL, rates=replace(RSL_RL.rates, noise_std=_rate("policy.init_noise_std")))},
    "rl-games": {
        "ppo": Sized(
            size=ParamName("horizon_length"),
            size_is_per_env=True,
            minibatch=ParamName("minibatch_size"),
            n_envs=ParamName("num_actors"),
            discount=ParamName("gamma"),
            trace_decay=ParamName("tau"),  # no smoothing of targets: this is lambda
            only_whole_minibatches=True,
            rates=RateTable(_rate("learning_rate"), _rate("e_clip")),
        ),
    },
    "skrl": {
        "ppo": Counted(
            rollout=ParamName("rollouts", 16),
            count=ParamName("mini_batches", 2),
            discount=ParamName("discount_factor", 0.99),
            tail="{library} spreads the {left} samples that are left over {count} mini-batches of {m}.",
            remark="{library}'s memory must be as long as the rollout: RandomMemory(memory_size={rollout}).",
            rates=RateTable(_rate("learning_rate", default=1e-3), _rate("ratio_clip", default=0.2)),
        ),
        "sac": OffPolicyTable(
            discount=ParamName("discount_factor", 0.99),
            tau=ParamName("polyak", 0.005),
            replay=ParamName("memory_size"),
            warmup=(ParamName("random_timesteps", 0), ParamName("learning_starts")),
            per_vector_step=frozenset({"warmup_steps", "replay_capacity"}),
            updates=WholeUpdates(ParamName("gradient_steps", 1)),
            entropy=ParamName("target_entropy"),
            rates=_rates(1e-3),
        ),
    },
    "torchrl": {
        "ppo": Sized(
            size=ParamName("collector.frames_per_batch", 2048),
            minibatch=ParamName("loss.mini_batch_size", 64),
            n_envs=ParamName("env.num_envs", 1),
            discount=ParamName("loss.gamma", 0.99),
            trace_decay=ParamName("loss.gae_lambda", 0.95),
            only_whole_minibatches=True,  # its scripts index out of bounds otherwise
            rates=RateTable(_rate("optim.lr", default=3e-4), _rate("loss.clip_epsilon", default=0.2)),
        ),
        "sac": OffPolicyTable(
            discount=ParamName("optim.gamma", 0.99),
            one_minus_tau=ParamName("optim.target_update_polyak", 0.995),
            replay=ParamName("replay_buffer.size", 1_000_000),
            minibatch=ParamName("optim.batch_size"),
            warmup=(ParamName("collector.init_random_frames", 25_000),),
            updates=UpdateRatio(ParamName("optim.utd_ratio", 1)),
            remarks={"target_entropy": "pass it to SACLoss(target_entropy=...)"},
            rates=_rates(3e-4, "optim.lr"),
        ),
    },
    "rllib": {
        "ppo": Sized(
            size=ParamName("train_batch_size_per_learner", 4000),
            minibatch=ParamName("minibatch_size", 128),
            trace_decay=ParamName("lambda_", 1.0),
            collects_whole_vector_steps=False,
            tail="{library} has no short mini-batch: the last one of an epoch is filled up from the next epoch.",
            rates=RateTable(_rate("lr", default=5e-5), _rate("clip_param", default=0.3)),
        ),
        "sac": OffPolicyTable(
            tau=ParamName("tau", 0.005),
            replay=ParamName("replay_buffer_config.capacity", 1_000_000),
            minibatch=ParamName("train_batch_size_per_learner"),
            warmup=(ParamName("num_steps_sampled_before_learning_starts", 1_500),),
            updates=ReplayRatio(ParamName("training_intensity"), default_minibatch=256),
            entropy=ParamName("target_entropy"),
            rates=RateTable(
                OneRate((ParamName("actor_lr", 3e-5), ParamName("critic_lr", 3e-4), ParamName("alpha_lr", 3e-4)))
            ),
        ),
    },
    "tianshou": {
        "ppo": Sized(
            size=ParamName("collection_step_num_env_steps", 2048),
            minibatch=ParamName("batch_size", 64),
            smallest_minibatch=2,  # the spread of one sample's advantage is not a number
            buffer=ParamName("buffer_size"),  # 4096 where nothing is said, however large the batch
            tail="{library} has no short mini-batch: the last one of an epoch takes the samples that are left as well.",
            rates=RateTable(_rate("lr", default=1e-3), _rate("eps_clip", default=0.2)),
        ),
        "sac": OffPolicyTable(
            tau=ParamName("tau", 0.005),
            replay=ParamName("buffer_size", 4_096),
            warmup=(ParamName("start_timesteps", 0),),
            updates=UpdateRatio(
                ParamName("update_step_num_gradient_steps_per_sample", 1),
                collected=ParamName("collection_step_num_env_steps"),
            ),
            entropy=ParamName("target_entropy_coefficient"),
            entropy_per_dimension=1,
            rates=_rates(1e-3, "actor_lr", "critic1_lr", "critic2_lr"),
        ),
    },
    "pufferlib": {
        "ppo": Puffer(
            horizon=ParamName("train.horizon", 64),
            minibatch=ParamName("train.minibatch_size", 8192),
            n_envs=ParamName("vec.total_agents", 4096),
            rates=RateTable(_rate("train.learning_rate", default=0.015), _rate("train.clip_coef", default=0.2)),
        ),
    },
    "lerobot": {
        "sac": OffPolicyTable(
            discount=ParamName("algorithm.discount", 0.99),
            tau=ParamName("algorithm.critic_target_update_weight", 0.005),
            replay=ParamName("policy.online_buffer_capacity", 100_000),
            warmup=(ParamName("policy.online_step_before_learning", 100),),
            entropy=ParamName("algorithm.target_entropy"),
            remarks={"updates_per_step": "its learner runs beside the robot, as fast as it can"},
            rates=_rates(3e-4, "algorithm.actor_lr", "algorithm.critic_lr", "algorithm.temperature_lr"),
        ),
    },
    "authors": {
        "ppo": Sized(
            size=ParamName("bs", 2000),
            minibatch=ParamName("mbs", 50),
            discount=ParamName("g", 0.99),
            trace_decay=ParamName("lm", 0.95),
            tail="{library} takes b // (b // m) samples into each mini-batch, the last one being short.",
            rates=RateTable(_rate("lr", default=3e-4), _rate("clip_eps", default=0.2)),
        ),
        "sac": OffPolicyTable(
            tau=ParamName("tau", 0.005),
            updates=UpdatePeriod(ParamName("update_period", 1)),
            remarks={
                "replay_capacity": "it multiplies its replay_size by 16 ms / dt itself",
                "warmup_steps": "its start_steps are of 16 ms each at every dt",
                **_FIXED_ENTROPY,
            },
            rates=_rates(3e-4, "lr"),
        ),
    },
}


PREFIXES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "isaac-lab": (("agent.", ""), ("env.", "")),
    "rsl-rl": (("agent.", ""), ("runner.", "")),
    "rl-games": (("agent.params.config.", ""), ("params.config.", ""), ("config.", "")),
    "skrl": (("agent.agent.", ""), ("agent.", "")),
    "lerobot": (("policy.", "algorithm."), ("train.", "")),
    **dict.fromkeys(("brax", "mujoco-playground"), (("ppo.", ""), ("env.", ""), ("config.", ""))),
}
"""By library, how files and command lines of it begin names, and how the tables begin the same; the first that fits."""
OTHER_NAMES: Mapping[str, dict[str, str]] = {"skrl": {"lambda": "gae_lambda"}}
"""By library, names of other versions, and those that the tables have for the same."""
FORMER_NAMES: Mapping[str, dict[str, str]] = {
    "rllib": {"train_batch_size": "train_batch_size_per_learner", "sgd_minibatch_size": "minibatch_size"}
}
"""The same of RLlib's old API stack, whose batch is of all learners: values come back by what the current one takes."""


def library_name(library: str) -> str:
    name = library.lower().replace("_", "-").replace(" ", "-")
    return ALIASES.get(name, name)


def known_library(library: str) -> str:
    if (name := library_name(library)) not in LIBRARIES:
        near = did_you_mean(name, [*LIBRARIES, *ALIASES])
        raise InputError(f"Unknown library {library!r}: choose one of {', '.join(LIBRARIES)}{near}")
    return name


def table_names(words: Table | None) -> set[str]:
    """All names that a library's table has for one algorithm; none where there is no table."""
    return {"action_size", *param_names(words)} if words else set()


DISPLAY_NAMES = {"authors": "the authors' code"}
ALIASES = {"sb3": "stable-baselines3", "playground": "mujoco-playground", "isaaclab": "isaac-lab"}
