"""Hyper-parameters in other libraries' words, and back.

An export is read back with the same words: what comes out differently is what the library cannot express, and is noted.
What a library said besides is given back to it as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from math import isclose
from typing import Any, TypeVar

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError
from cycletime.libraries import time_keys
from cycletime.libraries.names import DISPLAY_NAMES, FORMER_NAMES, LIBRARIES, Table, known_library, table_names
from cycletime.libraries.off_policy import OffPolicyTable
from cycletime.libraries.on_policy import KEEPS_THE_COUNT, MANY_ENVIRONMENTS, ONE_ENVIRONMENT
from cycletime.libraries.parameters import NUMBER, POSITIVE, SettingsReader, fits, flatten_settings, setting_prefixes
from cycletime.libraries.synonyms import our_fields
from cycletime.rules.hyperparameters import Hyperparameters, LibrarySource, LibraryValues
from cycletime.rules.laws import Number
from cycletime.rules.ppo import A2C, PPO
from cycletime.rules.quantities import check_count
from cycletime.rules.sac import OffPolicy

__all__ = ["LIBRARIES", "LibraryValues", "export_values", "given_cycle_time", "read_settings"]

H = TypeVar("H", bound=Hyperparameters)
_RATE_SCHEDULES = ("schedule", "learning_rate_scheduler", "lr_schedule")
_ENV_COUNTS = ("env.scene.num_envs", "scene.num_envs", "num_envs")
"""The number of environments on Isaac Lab's command line, beside agents whose words have none."""


def export_values(values: Hyperparameters, library: str, n_envs: int | None) -> LibraryValues:
    """The values in a library's words, the nearest that it can express."""
    name, words = _find_table(library, values.algorithm)
    read_from = values.library_source
    source = read_from if read_from and read_from.library == name else None
    not_said = [ONE_ENVIRONMENT] if n_envs is None and source is None and name in MANY_ENVIRONMENTS else []
    n_envs = check_count("n_envs", (source.n_envs if source else 1) if n_envs is None else n_envs)
    said, notes = _settings_for(values, words, n_envs)
    action_size = getattr(values, "action_size", None)
    sized = said if action_size is None else {**said, "action_size": action_size}
    understood = read_settings(type(values), name, values.dt, n_envs, sized)
    display_name = DISPLAY_NAMES.get(name, name)
    remarks = words.remarks if isinstance(words, OffPolicyTable) else {}
    differences = _differences(values, understood, display_name, n_envs, remarks)
    notes = [*differences, *(note.format(library=display_name) for note in notes), *not_said]
    if read_from and not source:
        others = {*read_from.values} - table_names(LIBRARIES[read_from.library].get(values.algorithm))
        given = ", ".join(read_from.spelling.get(each, each) for each in read_from.values if each in others)
        notes += [f"Given in {read_from.library}'s words, and not in these: {given}."] if given else []
    if source:
        together = words.said_together if isinstance(words, OffPolicyTable) else ()
        first_read = read_settings(type(values), source.library, source.dt, source.n_envs, source.values)
        at_first = _settings_for(first_read, words, source.n_envs)[0]
        said = _merge_source(source, said, at_first, together)
        said |= dict.fromkeys([each for each in _ENV_COUNTS if each in said], n_envs)
        known = table_names(words)
        known |= setting_prefixes(known)
        keys, named = time_keys.library_keys(name, source.values), list[time_keys.TimeChange]()
        if values.dt != source.dt or n_envs != source.n_envs:
            moved = together if any(said.get(each) != source.values.get(each) for each in together) else ()
            by_rule = () if isinstance(words, OffPolicyTable) else at_first  # which may come out the same
            kept = [each for each, value in source.values.items() if said.get(each) == value]
            left = [each for each in kept if each not in (*moved, *by_rule)]
            ruled = {each: value for each, value in said.items() if value != source.values.get(each)}
            envs, rho = Fraction(n_envs, source.n_envs), values.dt / source.dt
            time_keys.check_physics(name, source.values, source.dt, values.dt)
            lasted, lasts = (each.seconds().get("batch", 1.0) for each in (first_read, values))
            ratio = Fraction(lasts / lasted).limit_denominator(1000)
            longer = ratio if abs(ratio - 1) > KEEPS_THE_COUNT else Fraction(1)  # which is rounding
            changes = time_keys.carry_time_keys(name, source.values, rho, left, keys, envs, longer, ruled)
            said |= {each.name: each.new for each in changes if each.treatment == "carried"}
            named = [each._replace(name=source.spelling.get(each.name, each.name)) for each in changes]
            notes += time_keys.time_notes(named)
            carries_rate = getattr(values, "learning_rate", None) != getattr(first_read, "learning_rate", None)
            for each, value in source.values.items() if carries_rate else ():
                if each.rpartition(".")[2] in _RATE_SCHEDULES and "adaptive" in str(value).lower():
                    notes.append(f"{each} {value} leaves the carried learning rate at once.")
        known = {*known, *_ENV_COUNTS}
        left = [each for each in source.values if each not in known]
        found = {each for each, _, _ in time_keys.applied_keys(name, source.values, left, keys)}
        unknown = tuple(each for each in left if each not in found)
        spelt = _spelled(source, said, known)
        return LibraryValues(name, spelt, tuple(notes), not differences, unknown, tuple(named), n_envs)
    return LibraryValues(name, said, tuple(notes), exact=not differences, n_envs=n_envs)


def _spelled(source: LibrarySource, said: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Settings by the names that they were given by; those that are new begin as the others do."""
    prefixes = {old.removesuffix(new) for new, old in source.spelling.items() if new in known and old.endswith(new)}
    usual = prefixes.pop() if len(prefixes) == 1 else ""
    return {
        source.spelling.get(name, usual + name if name in known and name not in source.values else name): value
        for name, value in said.items()
    }


def read_settings(cls: type[H], library: str, dt: DurationLike, n_envs: int | None, values: Mapping[str, object]) -> H:
    name, words = _find_table(library, cls.algorithm)
    flat = flatten_settings(values)
    canonical = time_keys.canonical_names(name, flat, table_names(words))
    given = SettingsReader(name, {canonical[each]: value for each, value in flat.items()})
    if (stated := time_keys.stated_cycle_time(name, given.values)) and stated[0] != Duration(dt):
        raise InputError(f"{name}'s {stated[1]} is a cycle time of {stated[0]}, and {Duration(dt)} is given: give one.")
    n_envs = _read_n_envs(given, words, n_envs)
    fields: dict[str, Any]
    defaults: dict[str, Number] = {}
    if isinstance(words, OffPolicyTable):
        fields = words.read(given, n_envs, cls)
        defaults = words.defaults_beside(given, n_envs, cls)
    else:
        by_field = {"discount": words.discount, "trace_decay": words.trace_decay}
        decays = {ours: given.number(word) for ours, word in by_field.items()}
        fields = {**words.read_sizes(given, n_envs), **decays}
        defaults = {ours: word.default for ours, word in by_field.items() if word.default is not None}
    said_rates, default_rates = words.rates.read(given)
    fields |= said_rates
    needs = {**time_keys.time_needs(name), **dict.fromkeys(("episode_length_s", "env.episode_length_s"), POSITIVE)}
    given.refuse_slips([*needs, *(time_keys.misspelt_key(name, each) for each in given.values)])
    for each, kind, key in time_keys.applied_keys(name, given.values, given.values):
        if time_keys.is_no_number(key, bool(time_keys.WEIGHT.search(kind)), given.values[each]):
            needs[each] = NUMBER
    for each in needs:
        if each in given.values and not fits(given.values[each], needs[each]):
            raise InputError(f"{name}'s {each} is {given.values[each]!r}: it must be {needs[each]}.")
    spelling = {new: old for old, new in canonical.items() if time_keys.means_time(name, new) or new in given.known}
    for old, new in FORMER_NAMES.get(name, {}).items():
        if spelling.get(new) == old:
            spelling[new] = new
            of_all = ", where it is of all learners together" if new.endswith("per_learner") else ""
            given.notes.append(f"{old} is a name of RLlib's old API stack{of_all}: the current one takes {new}.")
    branches = setting_prefixes(given.known) | setting_prefixes(spelling.values())
    parts = flatten_settings(values, branches)
    whole = words.rates.whole({canonical.get(each, each): value for each, value in parts.items()})
    understood = (given.layout, given.unreadable, given.left_alone, tuple(given.notes))
    spelling = {new: old for new, old in spelling.items() if new != old}
    source = LibrarySource(name, Duration(dt), n_envs, whole, *understood, spelling)
    try:
        return cls(dt=dt, **fields, defaults=defaults | default_rates, library_source=source)
    except InputError as error:
        ours, what, wrong = str(error).partition(" is ")
        theirs = [each for each, field in our_fields(name, cls.algorithm).items() if field == ours and each in whole]
        known = f"{name}'s {theirs[0]}{what}{wrong}" if theirs else str(error)
        raise InputError(" ".join([known, *(given.notes if ours == "minibatch" else ())])) from error


def given_cycle_time(library: str, values: Mapping[str, object]) -> Duration | None:
    name = known_library(library)
    flat = flatten_settings(values)
    canonical = time_keys.canonical_names(name, flat, ())
    stated = time_keys.stated_cycle_time(name, {canonical[each]: value for each, value in flat.items()})
    return stated[0] if stated else None


def _settings_for(values: Hyperparameters, words: Table, n_envs: int) -> tuple[dict[str, Any], list[str]]:
    """The values in words that say nothing else, and what ``{library}`` does with them."""
    said: dict[str, Any] = {words.n_envs.name: n_envs} if words.n_envs else {}
    if isinstance(words, OffPolicyTable):
        assert isinstance(values, OffPolicy), "an algorithm has the words of its kind"
        return said | words.write(values, n_envs) | words.rates.write(values), []
    assert isinstance(values, PPO | A2C), "an algorithm has the words of its kind"
    sizes, notes = words.write_sizes(values, n_envs)
    decays = {words.discount.name: values.discount, words.trace_decay.name: values.trace_decay}
    return said | sizes | decays | words.rates.write(values), notes


def _merge_source(
    source: LibrarySource, said: Mapping[str, Any], at_first: Mapping[str, Any], together: Collection[str]
) -> dict[str, Any]:
    """All that the library said, with those words replaced that would be others now."""
    new = {name for name in said if name not in source.values or said[name] != at_first.get(name)}
    if any(said.get(name) != at_first.get(name) for name in together):
        new |= {name for name in together if name in said}
    both = {**source.values, **{name: value for name, value in said.items() if name in new}}
    for name, old in source.values.items():
        if name in new and isinstance(old, Mapping) and isinstance(both[name], Mapping):
            both[name] = {**old, **both[name]}  # what else was in it stays
    return {name: value for name, value in both.items() if name != "action_size"}


def _find_table(library: str, algorithm: str) -> tuple[str, Table]:
    name = known_library(library)
    words = LIBRARIES[name].get(algorithm)
    if words is None:
        have = [other for other, found in LIBRARIES.items() if algorithm in found]
        raise InputError(f"{name} has no {algorithm.upper()} that is known here: choose one of {', '.join(have)}.")
    return name, words


def _read_n_envs(given: SettingsReader, words: Table, n_envs: int | None) -> int:
    own, usual = ([words.n_envs.name], words.n_envs.default) if words.n_envs else ([], None)
    found = {each: given.optional_number(each) for each in (*own, *_ENV_COUNTS) if each in (*own, *given.values)}
    stated = [each for each in (n_envs, *found.values(), usual) if each is not None]
    if not stated and given.library in MANY_ENVIRONMENTS:
        given.notes.append(ONE_ENVIRONMENT)
    number = stated[0] if stated else 1
    for name, said in found.items():
        if said not in (None, number):
            raise InputError(f"n_envs is {number} and {given.library}'s {name} is {said}: give one of them.")
    return check_count("n_envs", number)


def _differences(
    asked: Hyperparameters, understood: Hyperparameters, library: str, n_envs: int, remarks: Mapping[str, str]
) -> list[str]:
    gets = understood.stated()
    notes = []
    for name, value in asked.stated().items():
        if name not in gets:
            remark = f" ({remarks[name]})" if name in remarks else ""
            notes.append(f"{library} has no setting for {name}{remark}: {value:.9g} is not in these values.")
        elif not isclose(value, gets[name], rel_tol=1e-9):
            envs = f" with {n_envs} environments" if n_envs > 1 else ""
            notes.append(f"{library} cannot express {name} {value:.9g}{envs}: the nearest is {gets[name]:.9g}.")
    return notes
