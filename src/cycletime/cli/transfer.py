"""`cycletime transfer`: hyper-parameters at another cycle time, with the table that explains them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, arg, subcommand

from cycletime.cli.options import NO_NAMES, Count, NameListOption, OwnRulesFile, Rate, RuleOption, Text, select_rule
from cycletime.cli.transfer_file import TransferFile
from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.libraries import LIBRARIES, given_cycle_time, read_settings
from cycletime.libraries.names import library_name
from cycletime.libraries.on_policy import notes_on_environments
from cycletime.libraries.parameters import plain_value
from cycletime.libraries.time_keys import cycle_time_names
from cycletime.rules import A2C, ALGORITHMS, PPO, Hyperparameters
from cycletime.rules.hyperparameters import explain_values, nest_names, transfer_as_json
from cycletime.rules.quantities import check_count

if TYPE_CHECKING:
    from cycletime.training.toml_files import TunedValues

_LIBRARIES = ", ".join(LIBRARIES)
_OPTIONS_INSTEAD = {"dt": "--from", "n_envs": "--num-envs"}
"""What is no word of a library, but is asked for beside them."""


@dataclass(frozen=True, kw_only=True)
class TransferValues:
    """What a transfer of values given on the command line needs."""

    to_dt: Annotated[str, arg(name="to", metavar="TIME")]
    """The cycle time to carry them to."""
    explain: bool = False
    """Print also where each formula comes from, and what the other rules give."""
    form: Annotated[Literal["table", "overrides"], arg(name="as")] = "table"
    """Print the table, or the library's words as its command line takes them, with the table on standard error."""
    json: bool = False
    """Print JSON instead of the table."""
    own_rules: OwnRulesFile = None
    """A TOML file with tables [own_rules.NAME], such as a study's, for a --rule of your own."""
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
    also: NameListOption = NO_NAMES

    kind: ClassVar[type[Hyperparameters]]
    """Whose values: options that are named as its fields."""

    def run(self) -> int:
        target = self.library or next(iter(self.from_library), None)
        as_words = self.form if self.form == "overrides" else None
        for option, value in (("num-envs", self.n_envs), ("to-num-envs", self.to_num_envs), ("as", as_words)):
            if value is not None and target is None:
                raise InputError(f"--{option} {value} matters to a library's words only: name one with --for.")
        given = ((each.name, getattr(self, each.name, None)) for each in fields(self.kind))
        typed = {name: value for name, value in given if value is not None}
        before, notes, n_envs = _before(self, typed)
        if isinstance(before, PPO | A2C) and before.batch < (n_envs or 1):
            least = f"{n_envs} environments collect at least {n_envs} samples in a batch, one step of each"
            raise InputError(f"--batch is {before.batch}: {least}, so give at least that, or fewer --num-envs.")
        carried = before.at(self.to_dt, select_rule(self.rule, self.own_rules), self.also)
        if self.to_num_envs is not None:
            check_count("to_num_envs", self.to_num_envs)
        exported = carried.to(target, self.to_num_envs or n_envs) if target else None
        if exported and self.to_num_envs and not (self.from_library and "batch" in typed):  # who says one has chosen
            old = before.library_source.n_envs if before.library_source else n_envs or 1
            words = LIBRARIES[exported.library][self.kind.algorithm]
            notes = (*notes, *notes_on_environments(words, before, carried, old, self.to_num_envs))
        if exported and exported.library == "isaac-lab":
            from cycletime.libraries.command_line import full_names

            is_said = self.to_num_envs is None or any(name.endswith("num_envs") for name in exported)
            number = {} if is_said else {"num_envs": self.to_num_envs}  # else the rollouts would make another batch
            exported = replace(exported, by_name=full_names("isaac-lab", self.kind.algorithm, {**exported, **number}))
        names = cycle_time_names(exported.library) if exported and carried.dt != before.dt else ""
        if exported and names and not given_cycle_time(exported.library, exported):
            notes = (*notes, f"Set {names} so that the cycle time is {carried.dt}.")
        if self.json:
            print(json.dumps(transfer_as_json(carried, notes, exported), indent=2))
            return 0
        if exported and as_words:
            from cycletime.libraries.command_line import override_words

            overrides, left = override_words(exported.library, self.kind.algorithm, exported)
            notes = (*notes, *left)
            print("\n".join(overrides), flush=True)
        print(explain_values(carried, notes, exported, self.explain), file=sys.stderr if as_words else sys.stdout)
        return 0


def _before(options: TransferValues, given: Mapping[str, Any]) -> tuple[Hyperparameters, tuple[str, ...], int | None]:
    """The values at the cycle time they were tuned at, notes on those that were not given, and the environments."""
    kind = options.kind
    library, *words = options.from_library or ("",)
    said = _settings(words)
    from_dt, tuned, read = _tuned(options, given_cycle_time(library, said) if library else None)
    if not options.from_library:
        stated = {**tuned, **given}
        notes = _notes_on_baseline(kind(dt=from_dt).stated(), stated, kind.whose_baseline)
        if read is None:
            return kind(dt=from_dt, **stated), notes, options.n_envs
        if left := [f"{name} {value}" for name, value in read.others.items() if name not in stated]:
            notes += (f"Not in these values, but set in {options.tuned} for every cycle time: {', '.join(left)}.",)
        n_envs = options.n_envs or read.about.get("num_envs")
        if options.library and options.n_envs is None and (n_envs or 1) > 1:
            notes += (f"Sizes are for num_envs {n_envs}, with which {options.tuned} was tuned.",)
        searched = set(read.about.get("searched", ()))
        return kind(dt=from_dt, **stated, tuned_fields=searched - given.keys()), notes, n_envs
    if tuned:
        raise InputError(f"--tuned is {options.tuned}: --from-library has values as well, so leave one out.")
    values = read_settings(kind, library, from_dt, options.n_envs, said)
    if given and options.to_num_envs is None:  # with which a batch of one's own is a choice
        from cycletime.libraries.synonyms import refuse_two_values

        source = values.library_source
        refuse_two_values(source.library if source else "", kind.algorithm, given, source.values if source else {})
    whole = {**said, **nest_names(said)}
    number, source = LIBRARIES[library_name(library)][kind.algorithm].n_envs, values.library_source
    no_default = [number.name] if number and (options.n_envs is not None or number.default is None) else []
    left_out = {*whole, *no_default, *(source.values if source else ())}
    words_used = {name: value for name, value in values.to(library).items() if name not in left_out}
    notes = () if given else _notes_on_baseline(words_used, {}, f"the default of {library}")
    return replace(values, **given), notes, options.n_envs


def _settings(words: list[str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not name or not separator:
            raise InputError(f"--from-library: {word!r} is not a setting such as n_steps=2048.")
        if name in said:
            raise InputError(f"--from-library: {name} is given twice.")
        if name in _OPTIONS_INSTEAD:
            raise InputError(f"--from-library: {word} is no word of a library: write {_OPTIONS_INSTEAD[name]} {text}.")
        said[name] = plain_value(text)
    return said


def _tuned(asked: TransferValues, said: DurationLike | None) -> tuple[DurationLike, dict[str, Any], TunedValues | None]:
    """The cycle time that values were tuned at; a file's values, with what it sets for the parts; all that it has."""
    if asked.tuned is None:
        from_dt = said if asked.from_dt is None else asked.from_dt
        if from_dt is None:
            if words := asked.from_library[1:]:  # of which one may be misspelt
                read_settings(asked.kind, asked.from_library[0], "1s", asked.n_envs, _settings([*words]))
            names = cycle_time_names(library_name(next(iter(asked.from_library), "")))
            instead = f"{names} in the library's words" if names else "--tuned"
            raise InputError(f"--from is missing: say at which cycle time the values were tuned, or give {instead}.")
        return from_dt, {}, None
    from cycletime.training.toml_files import read_tuned

    kind = asked.kind
    read = read_tuned(asked.tuned).of(kind.algorithm)
    if asked.from_dt is not None:
        raise InputError(f"--from is {asked.from_dt}: the file of --tuned says it already, so leave one out.")
    fields = [kind.parts[name].field for name in asked.also if name in kind.parts]
    parts = {name: read.others[name] for name in fields if name in read.others}
    return read.dt, {**parts, **read.values}, read


def _notes_on_baseline(baseline: Mapping[str, object], given: Mapping[str, object], whose: str) -> tuple[str, ...]:
    left_out = [f"{name} {value}" for name, value in baseline.items() if name not in given]
    return (f"Not given, so {whose}: {', '.join(left_out)}.",) if left_out else ()


_MEANINGS = {
    "batch": "b, the agent steps between two updates; of a2c between two gradient steps.",
    "minibatch": "m, the samples of one gradient step.",
    "discount": "gamma, per agent step.",
    "trace_decay": "lambda, per agent step.",
    "noise_std": "sigma of the action, for --also exploration-noise.",
    "learning_rate": "eta, the optimiser's, for --also learning-rate.",
    "clip": "epsilon of the ratio of probabilities, for --also clip.",
    "replay_capacity": "Transitions in the replay buffer, for --also replay-capacity.",
    "warmup_steps": "Agent steps of random actions, for --also warm-up.",
    "target_smoothing": "tau, for --also target-smoothing.",
    "updates_per_step": "Updates per agent step, for --rule horizons and --also updates-per-second.",
    "target_entropy": "The target entropy, for --also target-entropy; -action_size if it is not given.",
    "action_size": "The number of action dimensions, for --also target-entropy.",
}
"""What the options are that have an algorithm's values."""


def _default(kind: type[Hyperparameters], field: str) -> str:
    """Where a value is left out: defaults are not typed in twice, the option is None, and the rules fill it in."""
    usual = kind(dt="16ms").stated().get(field)
    if usual is not None:
        return f"(default: {usual}, {kind.whose_baseline})"
    part = next((part for part in kind.parts.values() if part.field == field and part.baseline is not None), None)
    return f"(default: {part.baseline}, {part.whose_baseline.removesuffix(',')})" if part else "(no default)"


def _command(kind: type[Hyperparameters]) -> Any:  # noqa: ANN401 - an annotation of a type
    """The command of an algorithm, with an option for each of its values."""
    whole = {quantity.field: quantity.whole for quantity in kind.quantities}
    if "target-entropy" in kind.parts:
        whole["action_size"] = True
    options: list[tuple[str, Any, Any]] = []
    for name, is_whole in whole.items():
        option = arg(help=_MEANINGS[name], help_behavior_hint=_default(kind, name))
        options.append((name, Annotated[Count if is_whole else Rate, option], field(default=None)))
    rule = arg(help=f"The rule: {', '.join(kind.rules)}, or one of your own.")
    also = arg(help=f"Carry as well: {', '.join(kind.parts)}.")
    options.append(("rule", Annotated[RuleOption, rule], field(default=None)))
    options.append(("also", Annotated[NameListOption, also], field(default=NO_NAMES)))
    rules = f", by {kind.rules_of}'s rules" if kind.rules_of else ""
    about = f"Carry {kind.algorithm.upper()}'s hyper-parameters to another cycle time{rules}."
    name, inside = f"Transfer{kind.__name__}", {"kind": kind, "__doc__": about}
    made = make_dataclass(name, options, bases=(TransferValues,), namespace=inside, frozen=True, kw_only=True)
    return Annotated[made, subcommand(kind.algorithm)]


_COMMANDS: Any = reduce(or_, [*map(_command, ALGORITHMS.values()), Annotated[TransferFile, subcommand("file")]])


@dataclass(frozen=True)
class TransferCommand:
    """Carry hyper-parameters to another cycle time."""

    command: OmitSubcommandPrefixes[OmitArgPrefixes[_COMMANDS]]
