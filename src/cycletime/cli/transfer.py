"""`cycletime transfer`: hyper-parameters at another cycle time, with the table that explains them.

Values are typed, or stand in a file of `cycletime tune`, in a library's names; whole files are `transfer_file`'s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, arg, subcommand

from cycletime.cli.options import (
    NO_NAMES,
    Count,
    NameListOption,
    OwnRulesFile,
    Rate,
    RuleOption,
    Text,
    paper_default,
    parse_whole_number,
    released_code_default,
    select_rule,
)
from cycletime.cli.transfer_file import TransferFile
from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES, LibraryValues, given_cycle_time, read_settings
from cycletime.libraries.on_policy import notes_on_environments
from cycletime.rules import A2C, DDPG, PPO, SAC, TD3, TQC, Hyperparameters
from cycletime.rules.hyperparameters import explain_values, transfer_as_json

_LIBRARIES = ", ".join(LIBRARIES)
_OPTIONS_INSTEAD = {"dt": "--from", "n_envs": "--num-envs"}
"""What is no word of a library, but is asked for beside them."""


@dataclass(frozen=True, kw_only=True)
class TransferOptions:
    """What every transfer needs."""

    to_dt: Annotated[str, arg(name="to", metavar="TIME")]
    """The cycle time to carry them to."""
    explain: bool = False
    """Print also where each formula comes from, and what the other rules give."""
    json: bool = False
    """Print JSON instead of the table."""
    own_rules: OwnRulesFile = None
    """A TOML file with tables [own_rules.NAME], such as a study's, for a --rule of your own."""


@dataclass(frozen=True, kw_only=True)
class TransferValues(TransferOptions):
    """What a transfer of values given on the command line needs."""

    from_dt: Annotated[Text, arg(name="from", metavar="TIME", help_behavior_hint="(required without --tuned)")] = None
    """The cycle time that the values were tuned at: 40ms, 0.04, 25Hz."""
    tuned: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(instead of --from)")] = None
    """A file of 'cycletime tune' with the values; those given beside it replace them."""
    from_library: Annotated[NameListOption, arg(metavar="LIBRARY NAME=VALUE ...")] = NO_NAMES
    """Values in a library's words, such as: sb3 n_steps=2048 batch_size=64. What is not given is its default."""
    library: Annotated[Text, arg(name="for", metavar="LIBRARY", help_behavior_hint=f"(one of {_LIBRARIES})")] = None
    """Print the values in this library's words too; by default in those of --from-library."""
    n_envs: Annotated[Count, arg(name="num-envs", help_behavior_hint="(default: 1)")] = None
    """The number of parallel environments, for the library's words."""
    to_num_envs: Annotated[Count, arg(help_behavior_hint="(default: as many as before)")] = None
    """The number of parallel environments to go to, with the same batch in samples."""
    rule: RuleOption = None
    """The rule."""
    also: NameListOption = NO_NAMES
    """Carry as well."""

    kind: ClassVar[type[Hyperparameters]]
    """Whose values: options that are named as its fields."""

    def run(self) -> int:
        target = self.library or next(iter(self.from_library), None)
        if self.n_envs is not None and target is None:
            raise InputError(f"--num-envs {self.n_envs} matters to a library's words only: name one with --for.")
        typed = {each.name: getattr(self, each.name, None) for each in fields(self.kind)}
        typed = {name: value for name, value in typed.items() if value is not None}
        before, notes = _before(self, typed)
        if isinstance(before, PPO | A2C) and before.batch < (self.n_envs or 1):
            raise InputError(
                f"--batch is {before.batch}: {self.n_envs} environments collect at least {self.n_envs} samples in a "
                f"batch, one step of each, so give at least that, or fewer --num-envs."
            )
        carried = before.at(self.to_dt, select_rule(self.rule, self.own_rules), self.also)
        if self.to_num_envs is not None:
            if target is None:
                raise InputError(f"--to-num-envs {self.to_num_envs} is for a library's words: name one with --for.")
            if not (self.from_library and "batch" in typed):  # who says a batch has chosen
                old = before.library_source.n_envs if before.library_source else self.n_envs or 1
                notes = (*notes, *notes_on_environments(before, carried, old, self.to_num_envs))
        exported = carried.to(target, self.to_num_envs or self.n_envs) if target else None
        if self.json:
            library = {"library": _library_json(exported)} if exported else {}
            print(json.dumps({**transfer_as_json(carried, notes), **library}, indent=2))
        else:
            print(explain_values(carried, notes, exported, self.explain))
        return 0


def _before(options: TransferValues, given: Mapping[str, Any]) -> tuple[Hyperparameters, tuple[str, ...]]:
    """The values at the cycle time they were tuned at, and notes on those that were not given."""
    kind = options.kind
    library, *words = options.from_library or ("",)
    said = _settings(words)
    from_dt, tuned = _tuned(options, given_cycle_time(library, said))
    if not options.from_library:
        stated = {**tuned, **given}
        whose = "Stable-Baselines3's default" if kind.algorithm == "a2c" else "the paper's baseline"
        notes = _notes_on_baseline(kind(dt=from_dt).stated(), stated, whose)
        return kind(dt=from_dt, **stated, tuned_fields=tuned.keys() - given.keys()), notes
    if tuned:
        raise InputError(f"--tuned is {options.tuned}: --from-library has values as well, so leave one out.")
    values = read_settings(kind, library, from_dt, options.n_envs, said)
    if given and options.to_num_envs is None:  # with which a batch of one's own is a choice
        _refuse_two_values(values, given)
    words_used = {name: value for name, value in values.to(library).items() if name not in said}
    return replace(values, **given), _notes_on_baseline(
        words_used, {}, f"the default of {library}"
    ) if not given else ()


def _refuse_two_values(values: Hyperparameters, given: Mapping[str, Any]) -> None:
    from cycletime.libraries.synonyms import our_fields

    source = values.library_source
    assert source is not None, "it was read from a library's words"
    for name, ours in our_fields(source.library, values.algorithm).items():
        if ours in given and name in source.values:
            option = f"--{ours.replace('_', '-')}"
            raise InputError(f"{option} is {given[ours]}, and {name}={source.values[name]} says it too: leave one out.")


def _settings(words: list[str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not name or not separator:
            raise InputError(f"--from-library: {word!r} is not a setting such as n_steps=2048.")
        if name in said:
            raise InputError(f"--from-library: {name} is given twice.")
        if name in _OPTIONS_INSTEAD:
            raise InputError(
                f"--from-library: {word} is not one of a library's words: write {_OPTIONS_INSTEAD[name]} {text}."
            )
        said[name] = _value(text)
    return said


def _value(text: str) -> object:
    """A number where it is one, 1e6 a whole one, as counts must be; whatever else is given back as it was typed."""
    for number in (int, parse_whole_number if "e" in text.lower() else float, float):
        try:
            return number(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def _tuned(options: TransferValues, stated: DurationLike | None) -> tuple[DurationLike, Mapping[str, Any]]:
    """The cycle time that values were tuned at, and a file's values, with what it sets for the parts."""
    if options.from_dt is not None and options.tuned is not None:
        raise InputError(f"--from is {options.from_dt}: the file of --tuned says it already, so leave one out.")
    if options.tuned is None:
        if options.from_dt is None and stated is not None:
            return stated, {}
        if options.from_dt is None:
            raise InputError("--from is missing: say at which cycle time the values were tuned, or give --tuned.")
        return options.from_dt, {}
    from cycletime.training.toml_files import read_tuned

    kind = options.kind
    read = read_tuned(options.tuned).of(kind.algorithm)
    fields = [kind.parts[name].field for name in options.also if name in kind.parts]
    return read.dt, {**{name: read.others[name] for name in fields if name in read.others}, **read.values}


def _notes_on_baseline(baseline: Mapping[str, object], given: Mapping[str, object], whose: str) -> tuple[str, ...]:
    left_out = [f"{name} {value}" for name, value in baseline.items() if name not in given]
    return (f"Not given, so {whose}: {', '.join(left_out)}.",) if left_out else ()


def _library_json(exported: LibraryValues) -> dict[str, Any]:
    return {
        "name": exported.library,
        "values": dict(exported),
        "exact": exported.exact,
        "notes": list(exported.notes),
        "unknown": list(exported.unknown),
    }


@dataclass(frozen=True, kw_only=True)
class TransferPPO(TransferValues):
    """Carry PPO's hyper-parameters to another cycle time."""

    batch: Annotated[Count, paper_default(PPO.batch)] = None
    """b, the agent steps between two updates."""
    minibatch: Annotated[Count, paper_default(PPO.minibatch)] = None
    """m, the samples of one gradient step."""
    discount: Annotated[Rate, paper_default(PPO.discount)] = None
    """gamma, per agent step."""
    trace_decay: Annotated[Rate, paper_default(PPO.trace_decay)] = None
    """lambda, per agent step."""
    noise_std: Annotated[Rate, released_code_default(PPO.parts["exploration-noise"].baseline)] = None
    """sigma, the initial standard deviation of the action, for --also exploration-noise."""
    learning_rate: Annotated[Rate, paper_default(PPO.parts["learning-rate"].baseline)] = None
    """eta, the optimiser's, for --also learning-rate."""
    clip: Annotated[Rate, paper_default(PPO.parts["clip"].baseline)] = None
    """epsilon of the ratio of probabilities, for --also clip."""
    rule: RuleOption = None
    """baseline, dt-aware, scaled or constant, the paper's; or horizons."""
    also: NameListOption = NO_NAMES
    """Carry as well: exploration-noise, learning-rate, clip."""

    kind: ClassVar[type[Hyperparameters]] = PPO


@dataclass(frozen=True, kw_only=True)
class TransferA2C(TransferValues):
    """Carry A2C's hyper-parameters to another cycle time, by PPO's rules."""

    batch: Annotated[Count, arg(help_behavior_hint=f"(default: {A2C.batch}, Stable-Baselines3's)")] = None
    """b, the agent steps from one gradient step to the next."""
    discount: Annotated[Rate, arg(help_behavior_hint=f"(default: {A2C.discount}, Stable-Baselines3's)")] = None
    """gamma, per agent step."""
    trace_decay: Annotated[Rate, arg(help_behavior_hint=f"(default: {A2C.trace_decay}, Stable-Baselines3's)")] = None
    """lambda, per agent step."""
    noise_std: Annotated[Rate, released_code_default(PPO.parts["exploration-noise"].baseline)] = None
    """sigma, the initial standard deviation of the action, for --also exploration-noise."""
    learning_rate: Annotated[
        Rate, arg(help_behavior_hint=f"(default: {A2C.parts['learning-rate'].baseline}, Stable-Baselines3's)")
    ] = None
    """eta, the optimiser's, for --also learning-rate."""
    rule: RuleOption = None
    """baseline, dt-aware, scaled or constant, the paper's; or horizons."""
    also: NameListOption = NO_NAMES
    """Carry as well: exploration-noise, learning-rate."""

    kind: ClassVar[type[Hyperparameters]] = A2C


@dataclass(frozen=True, kw_only=True)
class TransferOffPolicy(TransferValues):
    """The options of transfers of algorithms with a replay buffer."""

    discount: Annotated[Rate, paper_default(SAC.discount)] = None
    """gamma, per agent step; tune it at one cycle time first."""
    rule: RuleOption = None
    """baseline or scaled; of a tuned gamma they are the paper's gamma_2, 'tuned', and gamma_1, 'tuned-scaled'; or
    horizons."""
    also: NameListOption = NO_NAMES
    """Carry as well: replay-capacity, warm-up, target-smoothing, updates-per-second, exploration-noise, learning-rate,
    and of sac and tqc target-entropy."""
    minibatch: Annotated[Count, arg(help_behavior_hint="(default: left alone)")] = None
    """m, which no rule changes."""
    replay_capacity: Annotated[Count, paper_default(SAC.parts["replay-capacity"].baseline)] = None
    """Transitions in the replay buffer, for --also replay-capacity."""
    warmup_steps: Annotated[Count, released_code_default(SAC.parts["warm-up"].baseline)] = None
    """Agent steps of random actions, for --also warm-up."""
    target_smoothing: Annotated[Rate, paper_default(SAC.parts["target-smoothing"].baseline)] = None
    """tau, for --also target-smoothing."""
    updates_per_step: Annotated[Rate, paper_default(SAC.parts["updates-per-second"].baseline)] = None
    """Updates per agent step, for --rule horizons and --also updates-per-second."""
    noise_std: Annotated[Rate, arg(help_behavior_hint="(no default)")] = None
    """sigma of noise added to the action, for --also exploration-noise."""
    learning_rate: Annotated[Rate, paper_default(SAC.parts["learning-rate"].baseline)] = None
    """eta, the optimisers', for --also learning-rate."""


@dataclass(frozen=True, kw_only=True)
class TransferSAC(TransferOffPolicy):
    """Carry SAC's hyper-parameters to another cycle time."""

    target_entropy: Annotated[Rate, arg(help_behavior_hint="(default: -action_size, the paper's baseline)")] = None
    """The target entropy, for --also target-entropy."""
    action_size: Annotated[Count, arg(help_behavior_hint="(no default)")] = None
    """The number of action dimensions, for --also target-entropy."""

    kind: ClassVar[type[Hyperparameters]] = SAC


@dataclass(frozen=True, kw_only=True)
class TransferTQC(TransferSAC):
    """Carry TQC's hyper-parameters to another cycle time, by SAC's rules."""

    kind: ClassVar[type[Hyperparameters]] = TQC


@dataclass(frozen=True, kw_only=True)
class TransferTD3(TransferOffPolicy):
    """Carry TD3's hyper-parameters to another cycle time, by SAC's rules."""

    kind: ClassVar[type[Hyperparameters]] = TD3


@dataclass(frozen=True, kw_only=True)
class TransferDDPG(TransferOffPolicy):
    """Carry DDPG's hyper-parameters to another cycle time, by SAC's rules."""

    kind: ClassVar[type[Hyperparameters]] = DDPG


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
            | Annotated[TransferFile, subcommand("file")]
        ]
    ]
