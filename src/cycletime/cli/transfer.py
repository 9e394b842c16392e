"""`cycletime transfer`: hyper-parameters at another cycle time, with the table that explains them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, arg, subcommand

from cycletime.cli.options import NONE, Count, Parts, Rate, default_of_the_paper, default_of_the_released_code
from cycletime.cli.transfer_values import TransferValues, carry_and_print
from cycletime.cli.transfer_zoo import TransferZoo
from cycletime.rules import A2C, DDPG, PPO, SAC, TD3, TQC
from cycletime.rules.off_policy import OffPolicy


@dataclass(frozen=True, kw_only=True)
class TransferPPO(TransferValues):
    """Carry PPO's hyper-parameters to another cycle time."""

    batch: Annotated[Count, default_of_the_paper(PPO.batch)] = None
    """b, the agent steps between two updates."""
    minibatch: Annotated[Count, default_of_the_paper(PPO.minibatch)] = None
    """m, the samples of one gradient step."""
    discount: Annotated[Rate, default_of_the_paper(PPO.discount)] = None
    """gamma, per agent step."""
    trace_decay: Annotated[Rate, default_of_the_paper(PPO.trace_decay)] = None
    """lambda, per agent step."""
    noise_std: Annotated[Rate, default_of_the_released_code(PPO.parts["exploration-noise"].baseline)] = None
    """sigma, the initial standard deviation of the action, for --also exploration-noise."""
    learning_rate: Annotated[Rate, default_of_the_paper(PPO.parts["learning-rate"].baseline)] = None
    """eta, the optimiser's, for --also learning-rate."""
    clip: Annotated[Rate, default_of_the_paper(PPO.parts["clip"].baseline)] = None
    """epsilon of the ratio of probabilities, for --also clip."""
    rule: Annotated[str, arg(metavar="RULE")] = PPO.default_rule
    """baseline, dt-aware, scaled or constant, the paper's; or horizons."""
    also: Parts = NONE
    """Carry as well: exploration-noise, learning-rate, clip."""

    def run(self) -> int:
        """Carry and print."""
        return carry_and_print(self, PPO, self.rule, self.also)


@dataclass(frozen=True, kw_only=True)
class TransferA2C(TransferValues):
    """Carry A2C's hyper-parameters to another cycle time, by PPO's rules."""

    batch: Annotated[Count, arg(help_behavior_hint=f"(default: {A2C.batch}, Stable-Baselines3's)")] = None
    """b, the agent steps from one gradient step to the next."""
    discount: Annotated[Rate, arg(help_behavior_hint=f"(default: {A2C.discount}, Stable-Baselines3's)")] = None
    """gamma, per agent step."""
    trace_decay: Annotated[Rate, arg(help_behavior_hint=f"(default: {A2C.trace_decay}, Stable-Baselines3's)")] = None
    """lambda, per agent step."""
    noise_std: Annotated[Rate, default_of_the_released_code(PPO.parts["exploration-noise"].baseline)] = None
    """sigma, the initial standard deviation of the action, for --also exploration-noise."""
    learning_rate: Annotated[
        Rate, arg(help_behavior_hint=f"(default: {A2C.parts['learning-rate'].baseline}, Stable-Baselines3's)")
    ] = None
    """eta, the optimiser's, for --also learning-rate."""
    rule: Annotated[str, arg(metavar="RULE")] = A2C.default_rule
    """baseline, dt-aware, scaled or constant, the paper's; or horizons."""
    also: Parts = NONE
    """Carry as well: exploration-noise, learning-rate."""

    def run(self) -> int:
        """Carry and print."""
        return carry_and_print(self, A2C, self.rule, self.also)


@dataclass(frozen=True, kw_only=True)
class TransferOffPolicy(TransferValues):
    """The options of transfers of algorithms with a replay buffer."""

    discount: Annotated[Rate, default_of_the_paper(SAC.discount)] = None
    """gamma, per agent step; tune it at one cycle time first."""
    rule: Annotated[str, arg(metavar="RULE")] = OffPolicy.default_rule
    """baseline or scaled; of a tuned gamma they are the paper's gamma_2, 'tuned', and gamma_1, 'tuned-scaled'; or
    horizons."""
    also: Parts = NONE
    """Carry as well: replay-capacity, warm-up, target-smoothing, updates-per-second, exploration-noise, learning-rate,
    and of sac and tqc target-entropy."""
    minibatch: Annotated[Count, arg(help_behavior_hint="(default: left alone)")] = None
    """m, which no rule changes."""
    replay_capacity: Annotated[Count, default_of_the_paper(SAC.parts["replay-capacity"].baseline)] = None
    """Transitions in the replay buffer, for --also replay-capacity."""
    warmup_steps: Annotated[Count, default_of_the_released_code(SAC.parts["warm-up"].baseline)] = None
    """Agent steps of random actions, for --also warm-up."""
    target_smoothing: Annotated[Rate, default_of_the_paper(SAC.parts["target-smoothing"].baseline)] = None
    """tau, for --also target-smoothing."""
    updates_per_step: Annotated[Rate, default_of_the_paper(SAC.parts["updates-per-second"].baseline)] = None
    """Updates per agent step, for --rule horizons and --also updates-per-second."""
    noise_std: Annotated[Rate, arg(help_behavior_hint="(no default)")] = None
    """sigma of noise added to the action, for --also exploration-noise."""
    learning_rate: Annotated[Rate, default_of_the_paper(SAC.parts["learning-rate"].baseline)] = None
    """eta, the optimisers', for --also learning-rate."""


@dataclass(frozen=True, kw_only=True)
class TransferSAC(TransferOffPolicy):
    """Carry SAC's hyper-parameters to another cycle time."""

    rule: Annotated[str, arg(metavar="RULE")] = SAC.default_rule
    target_entropy: Annotated[Rate, arg(help_behavior_hint="(default: -action_size, the paper's baseline)")] = None
    """The target entropy, for --also target-entropy."""
    action_size: Annotated[Count, arg(help_behavior_hint="(no default)")] = None
    """The number of action dimensions, for --also target-entropy."""

    def run(self) -> int:
        """Carry and print."""
        return carry_and_print(self, SAC, self.rule, self.also)


@dataclass(frozen=True, kw_only=True)
class TransferTQC(TransferSAC):
    """Carry TQC's hyper-parameters to another cycle time, by SAC's rules."""

    def run(self) -> int:
        """Carry and print."""
        return carry_and_print(self, TQC, self.rule, self.also)


@dataclass(frozen=True, kw_only=True)
class TransferTD3(TransferOffPolicy):
    """Carry TD3's hyper-parameters to another cycle time, by SAC's rules."""

    def run(self) -> int:
        """Carry and print."""
        return carry_and_print(self, TD3, self.rule, self.also)


@dataclass(frozen=True, kw_only=True)
class TransferDDPG(TransferOffPolicy):
    """Carry DDPG's hyper-parameters to another cycle time, by SAC's rules."""

    def run(self) -> int:
        """Carry and print."""
        return carry_and_print(self, DDPG, self.rule, self.also)


@dataclass(frozen=True)
class TransferCommand:
    """Carry hyper-parameters to another cycle time."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[TransferPPO, subcommand("ppo")]
            | Annotated[TransferSAC, subcommand("sac")]
            | Annotated[TransferA2C, subcommand("a2c")]
            | Annotated[TransferTQC, subcommand("tqc")]
            | Annotated[TransferTD3, subcommand("td3")]
            | Annotated[TransferDDPG, subcommand("ddpg")]
            | Annotated[TransferZoo, subcommand("zoo")]
        ]
    ]
