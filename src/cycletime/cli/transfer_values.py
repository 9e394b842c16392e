"""Values that are typed, or that stand in a file of `cycletime tune`, or in a library's words: carried and printed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

from tyro.conf import arg

from cycletime.cli.options import NONE, Count, OwnRules, Parts, Text, chosen_rule, whole_number
from cycletime.duration import DurationLike
from cycletime.errors import InputError
from cycletime.rules import Hyperparameters
from cycletime.rules.explain import as_json, explain
from cycletime.rules.libraries import LIBRARIES, LibraryValues, read

_LIBRARIES = ", ".join(LIBRARIES)
_OPTIONS_INSTEAD = {"dt": "--from", "n_envs": "--n-envs"}
"""What is no word of a library, but is asked for beside them."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """What every transfer needs."""

    to_dt: Annotated[str, arg(name="to", metavar="TIME")]
    """The cycle time to carry them to."""
    json: bool = False
    """Print JSON instead of the table."""
    own_rules: OwnRules = None
    """A TOML file with tables [own_rules.NAME], such as a study's, for a --rule of your own."""


@dataclass(frozen=True, kw_only=True)
class TransferValues(Transfer):
    """What a transfer of values given on the command line needs."""

    from_dt: Annotated[Text, arg(name="from", metavar="TIME", help_behavior_hint="(required without --tuned)")] = None
    """The cycle time that the values were tuned at: 40ms, 0.04, 25Hz."""
    tuned: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(instead of --from)")] = None
    """A file of 'cycletime tune' with the values; those given beside it replace them."""
    from_library: Annotated[Parts, arg(metavar="LIBRARY NAME=VALUE ...")] = NONE
    """Values in a library's words, such as: sb3 n_steps=2048 batch_size=64. What is not given is its default."""
    library: Annotated[Text, arg(name="for", metavar="LIBRARY", help_behavior_hint=f"(one of {_LIBRARIES})")] = None
    """Print the values in this library's words too; by default in those of --from-library."""
    n_envs: Annotated[Count, arg(help_behavior_hint="(default: 1)")] = None
    """The number of parallel environments, for the library's words."""


def carry_and_print(options: TransferValues, kind: type[Hyperparameters], rule: str, also: tuple[str, ...]) -> int:
    """Carry what the options say; those that are named as fields of the kind are its values."""
    target = options.library or next(iter(options.from_library), None)
    if options.n_envs is not None and target is None:
        raise InputError(f"--n-envs {options.n_envs} matters to a library's words only: name one with --for.")
    typed = {each.name: getattr(options, each.name, None) for each in fields(kind)}
    given = {name: value for name, value in typed.items() if value is not None}
    before, notes = _before(options, kind, given, also)
    carried = before.at(options.to_dt, chosen_rule(rule, options.own_rules), also)
    exported = carried.to(target, options.n_envs) if target else None
    if options.json:
        library = {"library": _library_json(exported)} if exported else {}
        print(json.dumps({**as_json(carried, notes), **library}, indent=2))
    else:
        print("\n".join([explain(carried, notes), *_library_lines(exported)]))
    return 0


def _before(
    options: TransferValues, kind: type[Hyperparameters], given: Mapping[str, Any], also: tuple[str, ...]
) -> tuple[Hyperparameters, tuple[str, ...]]:
    """The values at the cycle time they were tuned at, and notes on those that were not given."""
    from_dt, tuned = _tuned(options, kind, also)
    if not options.from_library:
        stated = {**tuned, **given}
        whose = "Stable-Baselines3's default" if kind.algorithm == "a2c" else "the paper's baseline"
        return kind(dt=from_dt, **stated), _notes_on_baseline(kind(dt=from_dt).stated(), stated, whose)
    if tuned:
        raise InputError(f"--tuned is {options.tuned}: --from-library has values as well, so leave one out.")
    library, *words = options.from_library
    said = _settings(words)
    values = read(kind, library, from_dt, options.n_envs, said)
    words_used = {name: value for name, value in values.to(library).items() if name not in said}
    return replace(values, **given), _notes_on_baseline(
        words_used, {}, f"the default of {library}"
    ) if not given else ()


def _settings(words: list[str]) -> dict[str, Any]:
    """NAME=VALUE words as a library's settings."""
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
    for number in (int, whole_number if "e" in text.lower() else float, float):
        try:
            return number(text)
        except ValueError:
            continue
    return {"true": True, "false": False, "none": None}.get(text.lower(), text)


def _tuned(
    options: TransferValues, kind: type[Hyperparameters], also: tuple[str, ...]
) -> tuple[DurationLike, Mapping[str, Any]]:
    """The cycle time that values were tuned at, and a file's values, with what it sets for the parts."""
    if options.from_dt is not None and options.tuned is not None:
        raise InputError(f"--from is {options.from_dt}: the file of --tuned says it already, so leave one out.")
    if options.tuned is None:
        if options.from_dt is None:
            raise InputError("--from is missing: say at which cycle time the values were tuned, or give --tuned.")
        return options.from_dt, {}
    from cycletime.runs.tuned_file import read_tuned

    read = read_tuned(options.tuned).of(kind.algorithm)
    fields = [kind.parts[name].field for name in also if name in kind.parts]
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
    }


def _library_lines(exported: LibraryValues | None) -> list[str]:
    if exported is None:
        return []
    values = [f"  {name} = {value}" for name, value in exported.items()]
    return ["", f"{exported.library}:", *values, *(f"note: {note}" for note in exported.notes)]
