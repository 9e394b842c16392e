"""`cycletime transfer`: hyper-parameters at another cycle time, with the table that explains them."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import OmitArgPrefixes, OmitSubcommandPrefixes, arg, subcommand

from cycletime.cli.options import NONE, Count, Parts, Rate, Text, default_of_the_paper, default_of_the_released_code
from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.rules import PPO, SAC, Hyperparameters
from cycletime.rules.explain import as_json, explain
from cycletime.rules.libraries import LIBRARIES, LibraryValues

_LIBRARIES = ", ".join(LIBRARIES)


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """What every transfer needs."""

    to_dt: Annotated[str, arg(name="to", metavar="TIME")]
    """The cycle time to carry them to."""
    json: bool = False
    """Print JSON instead of the table."""


@dataclass(frozen=True, kw_only=True)
class TransferValues(Transfer):
    """What a transfer of values given on the command line needs."""

    from_dt: Annotated[Text, arg(name="from", metavar="TIME", help_behavior_hint="(required without --tuned)")] = None
    """The cycle time that the values were tuned at: 40ms, 0.04, 25Hz."""
    tuned: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(instead of --from)")] = None
    """A file of 'cycletime tune' with the values; those given beside it replace them."""
    library: Annotated[Text, arg(name="for", metavar="LIBRARY", help_behavior_hint=f"(one of {_LIBRARIES})")] = None
    """Print the values in this library's words too."""
    n_envs: Annotated[Count, arg(help_behavior_hint="(default: 1)")] = None
    """The number of parallel environments, for the library's words."""


@dataclass(frozen=True, kw_only=True)
class TransferPPO(TransferValues):
    """Carry PPO's hyper-parameters to another cycle time."""

    batch: Annotated[Count, default_of_the_paper(PPO.batch)] = None
    """b, the agent steps from one learning to the next."""
    minibatch: Annotated[Count, default_of_the_paper(PPO.minibatch)] = None
    """m, the samples of one gradient step."""
    discount: Annotated[Rate, default_of_the_paper(PPO.discount)] = None
    """gamma, per agent step."""
    trace_decay: Annotated[Rate, default_of_the_paper(PPO.trace_decay)] = None
    """lambda, per agent step."""
    noise_std: Annotated[Rate, default_of_the_released_code(PPO.parts["exploration-noise"].baseline)] = None
    """sigma, the initial standard deviation of the action, for --also exploration-noise."""
    rule: Annotated[str, arg(metavar="RULE")] = PPO.default_rule
    """baseline, dt-aware, scaled or constant."""
    also: Parts = NONE
    """Keep in seconds as well: exploration-noise."""

    def run(self) -> int:
        """Carry and print."""
        names = ("batch", "minibatch", "discount", "trace_decay", "noise_std")
        return _carry_and_print(self, PPO, {name: getattr(self, name) for name in names}, self.rule, self.also)


@dataclass(frozen=True, kw_only=True)
class TransferSAC(TransferValues):
    """Carry SAC's hyper-parameters to another cycle time."""

    discount: Annotated[Rate, default_of_the_paper(SAC.discount)] = None
    """gamma, per agent step; tune it at one cycle time first."""
    rule: Annotated[str, arg(metavar="RULE")] = SAC.default_rule
    """baseline or scaled; of a tuned gamma they are the paper's gamma_2, 'tuned', and gamma_1, 'tuned-scaled'."""
    also: Parts = NONE
    """Keep in seconds as well: replay-capacity, warm-up, target-smoothing, updates-per-second, exploration-noise,
    target-entropy."""
    minibatch: Annotated[Count, arg(help_behavior_hint="(default: left alone)")] = None
    """m, which no rule changes."""
    replay_capacity: Annotated[Count, default_of_the_paper(SAC.parts["replay-capacity"].baseline)] = None
    """Transitions in the replay buffer, for --also replay-capacity."""
    warmup_steps: Annotated[Count, default_of_the_released_code(SAC.parts["warm-up"].baseline)] = None
    """Agent steps of random actions, for --also warm-up."""
    target_smoothing: Annotated[Rate, default_of_the_paper(SAC.parts["target-smoothing"].baseline)] = None
    """tau, for --also target-smoothing."""
    updates_per_step: Annotated[Rate, default_of_the_paper(SAC.parts["updates-per-second"].baseline)] = None
    """Updates per agent step, for --also updates-per-second."""
    noise_std: Annotated[Rate, arg(help_behavior_hint="(no default)")] = None
    """sigma of noise added to the action, for --also exploration-noise."""
    target_entropy: Annotated[Rate, arg(help_behavior_hint="(default: -action_size, the paper's baseline)")] = None
    """The target entropy, for --also target-entropy."""
    action_size: Annotated[Count, arg(help_behavior_hint="(no default)")] = None
    """The number of action dimensions, for --also target-entropy."""

    def run(self) -> int:
        """Carry and print."""
        parts = [part.field for part in SAC.parts.values()]
        names = ("discount", "minibatch", "action_size", *parts)
        return _carry_and_print(self, SAC, {name: getattr(self, name) for name in names}, self.rule, self.also)


@dataclass(frozen=True, kw_only=True)
class TransferZoo(Transfer):
    """Carry one environment of an RL Baselines3 Zoo file. Short: cycletime transfer --from-zoo ppo.yml --env ID ...

    Prints the whole file with the new values, every other byte unchanged, and the table on standard error.
    """

    from_dt: Annotated[str, arg(name="from", metavar="TIME")]
    """The cycle time that the values were tuned at: 40ms, 0.04, 25Hz."""
    from_zoo: Annotated[Path, arg(metavar="FILE")]
    """The Zoo's file, such as hyperparams/ppo.yml."""
    env: Annotated[str, arg(metavar="ID")]
    """The environment in it."""
    algorithm: Annotated[Text, arg(metavar="ppo|sac", help_behavior_hint="(default: the file's name)")] = None
    """The algorithm that the file is for."""
    rule: Annotated[Text, arg(metavar="RULE", help_behavior_hint="(default: as for ppo and sac)")] = None
    """The rule."""
    also: Parts = NONE
    """Keep in seconds as well; as for ppo and sac."""
    action_size: Annotated[Count, arg(help_behavior_hint="(no default)")] = None
    """The number of action dimensions, for --also target-entropy."""
    out: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(default: standard output)")] = None
    """Write the file there, which must not exist yet, and the table to standard output."""

    def run(self) -> int:
        """Carry, and print or write."""
        from cycletime.rules.zoo import transfer_entry

        algorithm = self.algorithm or self.from_zoo.stem
        if algorithm not in ("ppo", "sac"):
            raise InputError(f"{algorithm!r} is no algorithm with a rule: name the file's with --algorithm ppo or sac.")
        carried = transfer_entry(
            _read_text(self.from_zoo),
            self.env,
            algorithm,
            self.from_dt,
            self.to_dt,
            self.rule,
            self.also,
            self.action_size,
        )
        if self.out:
            _write_new_text(Path(self.out), carried.text)
        if self.json:
            zoo = {"file": str(self.from_zoo), "env": self.env, "changed": dict(carried.changed)}
            print(json.dumps({**as_json(carried.values, carried.notes), "zoo": zoo}, indent=2))
            return 0
        if not self.out:
            # As bytes, since standard output would change the line ends on some systems.
            sys.stdout.buffer.write(carried.text.encode())
            sys.stdout.flush()
        changes = ", ".join(f"{key}: {value}" for key, value in carried.changed.items()) or "nothing changes"
        table = explain(carried.values, carried.notes)
        print(f"{table}\n\n{self.env}: {changes}", file=sys.stdout if self.out else sys.stderr)
        return 0


@dataclass(frozen=True)
class TransferCommand:
    """Carry hyper-parameters to another cycle time."""

    command: OmitSubcommandPrefixes[
        OmitArgPrefixes[
            Annotated[TransferPPO, subcommand("ppo")]
            | Annotated[TransferSAC, subcommand("sac")]
            | Annotated[TransferZoo, subcommand("zoo")]
        ]
    ]

    def run(self) -> int:
        """Carry and print."""
        return self.command.run()


def _carry_and_print(
    options: TransferValues,
    algorithm: type[Hyperparameters],
    values: Mapping[str, int | float | None],
    rule: str,
    also: tuple[str, ...],
) -> int:
    if options.n_envs is not None and not options.library:
        raise InputError(f"--n-envs {options.n_envs} matters to a library's words only: name one with --for.")
    from_dt, tuned = _tuned(options, algorithm.algorithm)
    given: dict[str, Any] = {**tuned, **{name: value for name, value in values.items() if value is not None}}
    carried = algorithm(dt=from_dt, **given).at(options.to_dt, rule, also)
    notes = _notes_on_baseline(algorithm(dt=from_dt), given)
    exported = carried.to(options.library, options.n_envs) if options.library else None
    if options.json:
        library = {"library": _library_json(exported)} if exported else {}
        print(json.dumps({**as_json(carried, notes), **library}, indent=2))
    else:
        print("\n".join([explain(carried, notes), *_library_lines(exported)]))
    return 0


def _tuned(options: TransferValues, algorithm: str) -> tuple[DurationLike, Mapping[str, Any]]:
    """The cycle time that values were tuned at, and those that stand in a file."""
    if options.from_dt is not None and options.tuned is not None:
        raise InputError(f"--from is {options.from_dt}: the file of --tuned says it already, so leave one out.")
    if options.tuned is None:
        if options.from_dt is None:
            raise InputError("--from is missing: say at which cycle time the values were tuned, or give --tuned.")
        return options.from_dt, {}
    from cycletime.runs.tuned_file import read_tuned

    read = read_tuned(options.tuned).of(algorithm)
    return read.dt, read.values


def _notes_on_baseline(baseline: Hyperparameters, given: Mapping[str, object]) -> tuple[str, ...]:
    left_out = [f"{name} {value}" for name, value in baseline.stated().items() if name not in given]
    return (f"Not given, so the paper's baseline: {', '.join(left_out)}.",) if left_out else ()


def _library_json(exported: LibraryValues) -> dict[str, Any]:
    return {
        "name": exported.library,
        "values": dict(exported),
        "exact": exported.exact,
        "notes": list(exported.notes),
    }


def _library_lines(exported: LibraryValues | None) -> list[str]:
    if exported is None:
        return []
    values = [f"  {name} = {value}" for name, value in exported.items()]
    return ["", f"{exported.library}:", *values, *(f"note: {note}" for note in exported.notes)]


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode()  # and not read_text, which would change the line ends
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is no UTF-8 text'}."
        ) from error


def _write_new_text(path: Path, text: str) -> None:
    try:
        with path.open("xb") as file:
            file.write(text.encode())
    except FileExistsError:
        raise InputError(f"{path} exists already: give another name with --out, or move it away.") from None
    except OSError as error:
        path.unlink(missing_ok=True)  # half a file is worse than none
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
