"""Hyper-parameters that know the cycle time they were tuned at: what all algorithms share of carrying them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from html import escape
from importlib import import_module
from math import isfinite, isinf
from typing import Any, ClassVar, Self

from cycletime.duration import Duration, DurationField, DurationLike
from cycletime.errors import InputError, did_you_mean
from cycletime.rules.laws import KEPT, Law, Number, nearest_whole
from cycletime.rules.quantities import Quantity, format_seconds
from cycletime.rules.rule import HORIZON_FIELDS, Recommendation, Recommendations, Rule

REPORTED_SHIFT = 0.01
"""Rounding that moves a value or a ratio by more than this fraction is reported."""


@dataclass(frozen=True)
class Part:
    """A further quantity that can be kept in seconds; off unless named in `Hyperparameters.at`."""

    field: str
    law: Law
    baseline: Number | None = None
    """The value used where the field was not stated; None if there is none to fall back on."""
    whose_baseline: str = "the paper's"
    with_updates: Mapping[Law, Law] = dataclasses.field(default_factory=dict)
    """By the law of updates_per_step, its own law beside that, where it is another."""


@dataclass(frozen=True)
class Origin:
    """Where carried hyper-parameters come from."""

    before: Hyperparameters
    """The values at the cycle time they were tuned at."""
    rule: str
    laws: Mapping[str, Law]
    """For each field that was carried, how."""
    notes: tuple[str, ...]
    """What the reader should know: rounding, horizons that shrink, values that were not stated."""
    details: tuple[str, ...]
    """Those of the notes that the table says as well."""
    after: Mapping[str, Number]
    """The carried values. Hyper-parameters with others, as `dataclasses.replace` makes them, do not come from here."""
    after_dt: Duration


@dataclass(frozen=True)
class LibrarySource:
    """How a library said values that were read from it, for what `to` gives back to it."""

    library: str
    dt: Duration
    n_envs: int
    values: Mapping[str, object]
    """All that was said, also what does not depend on the cycle time."""
    layout: Mapping[str, int] = field(default_factory=dict)
    """What the library leaves a choice of, as it was chosen."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """By our fields, why they cannot be carried, where what was said is no number."""
    left_alone: Mapping[str, str] = field(default_factory=dict)
    """By our fields, why rules leave them alone: what was said of them does not depend on the cycle time."""
    notes: tuple[str, ...] = ()
    """What the reader should know of how it was understood."""
    spelling: Mapping[str, str] = field(default_factory=dict)
    """By the tables' names, those that were given instead."""


def nest_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """Names with dots as mappings in mappings; what would be inside of a plain value is left out."""
    tree: dict[str, Any] = {}
    for name, value in values.items():
        *branches, leaf = name.split(".")
        node = tree
        for branch in branches:
            inner = node.setdefault(branch, {})
            node = inner if isinstance(inner, dict) else {}
        node[leaf] = value
    return tree


@dataclass(frozen=True, eq=False)  # equal to any mapping with the same items
class LibraryValues(Mapping[str, Any]):
    """Hyper-parameters in a library's words: pass them on as ``**values``, or as `nested` settings."""

    library: str
    by_name: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    """What the library cannot express, and what it does on its own."""
    exact: bool = True
    """Whether the library will use exactly the values that were asked for."""
    unknown: tuple[str, ...] = ()
    """Settings that were given, are passed on, and of which nothing is known here."""
    time_changes: tuple[Any, ...] = ()
    """What became of settings that mean time and that no rule speaks of; the notes say it as well."""
    n_envs: int = 1
    """The number of parallel environments that they are for."""

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - whatever the library wants there
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def _repr_html_(self) -> str:
        lines = [*(f"{name} = {value!r}" for name, value in self.items()), *(f"note: {note}" for note in self.notes)]
        return f"<pre>{escape(chr(10).join(lines))}</pre>"

    def nested(self) -> dict[str, Any]:
        """The values with ``a.b`` as ``{"a": {"b": ...}}``, as configuration files have them."""
        return nest_names(self.by_name)


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """The hyper-parameters of one algorithm that depend on the cycle time."""

    algorithm: ClassVar[str]
    """Its name in messages and JSON."""
    quantities: ClassVar[tuple[Quantity, ...]]
    """One for each field that is a number, in the order of tables."""
    rules: ClassVar[Mapping[str, Rule]]
    recommended: ClassVar[Recommendations]
    """Those of them where none is given."""
    parts: ClassVar[Mapping[str, Part]]
    """What can be switched on beside the rule."""
    rules_of: ClassVar[str | None] = None
    """Whose rules these are, if the paper does not speak of the algorithm."""
    whose_baseline: ClassVar[str] = "the paper's baseline"

    dt: DurationField = DurationField()
    """The action-cycle time of these values. Subclasses repeat it: mypy forgets an inherited field's type."""
    origin: Origin | None = field(default=None, compare=False, repr=False)
    """The transfer that these values are the result of, if they are one."""
    library_source: LibrarySource | None = field(default=None, compare=False, repr=False)
    """How a library said these values, if they come from one: `to` gives back to it what else it said."""
    defaults: Mapping[str, Number] = field(default_factory=dict, compare=False, repr=False)
    """By field, what a library takes where nothing is said, if these values come from one; parts start from it."""
    tuned_fields: Collection[str] = field(default=(), compare=False, repr=False)
    """What a tuning chose, also where that is what others have by default."""

    def __post_init__(self) -> None:
        """Refuse values out of range; a field that is None was not stated and is left alone everywhere."""
        for quantity in self.quantities:
            value = getattr(self, quantity.field)
            if value is not None:
                object.__setattr__(self, quantity.field, quantity.check(value))
        if self.origin and (self.origin.after_dt, self.origin.after) != (self.dt, self.stated()):
            object.__setattr__(self, "origin", None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know about the transfer that gave these values."""
        return self.origin.notes if self.origin else ()

    def stated(self) -> dict[str, Number]:
        """The values by field, without those that were not stated."""
        values = {quantity.field: getattr(self, quantity.field) for quantity in self.quantities}
        return {name: value for name, value in values.items() if value is not None}

    def seconds(self) -> dict[str, float]:
        """What the stated values mean in seconds, by field; infinity where nothing ever decays."""
        stated = self.stated()
        return {
            quantity.field: quantity.seconds(float(stated[quantity.field]), self._interval_s(quantity))
            for quantity in self.quantities
            if quantity.span and quantity.field in stated
        }

    def at(self, new_dt: DurationLike, rule: str | Rule | None = None, also: str | Collection[str] = ()) -> Self:
        """The hyper-parameters for another cycle time.

        Args:
            new_dt: the cycle time to go to.
            rule: the name of one of `rules`, by default what `recommend` says; or a rule of your own.
            also: the name or names of `parts` that are carried too; where the rule speaks of the same field, the part
                is what counts.

        Raises:
            InputError: if there is no such rule or part, or if a value cannot be carried that far.
        """
        new_dt, rule = Duration(new_dt), self._rule(recommend(self).rule if rule is None else rule)
        left_alone = self._left_alone(rule, new_dt / self.dt)
        rule = rule.without(*left_alone)
        parts = [self.part(name) for name in part_names(also)]
        laws = {**rule.laws, **{part.field: part.law for part in parts}}
        updates = laws.get("updates_per_step", KEPT)
        laws |= {part.field: part.with_updates[updates] for part in parts if updates in part.with_updates}
        before, notes = self._with_baselines(laws)
        notes += tuple(why for name, why in left_alone.items() if why and name not in laws)
        values: dict[str, Any] = {}
        for quantity in self.quantities:
            if quantity.field in laws:
                exact = before._carried(quantity.field, laws[quantity.field], new_dt / self.dt)
                values[quantity.field] = before._representable(quantity, exact, new_dt)
                notes += _rounding_notes(quantity, exact, values[quantity.field])
        after = replace(before, dt=new_dt, origin=None, **values)
        horizons = _horizon_notes(before, after, rule)
        notes += (
            *horizons,
            *after._notes_on(before, rule),
            *(self.library_source.notes if self.library_source else ()),
        )
        if self.rules_of:
            notes += (
                f"The paper has no {self.algorithm.upper()}: these are rules for {self.rules_of}, untested on it.",
            )
        return replace(after, origin=Origin(before, rule.name, laws, notes, horizons, after.stated(), new_dt))

    def explain(self) -> str:
        """A table of each value before and after, its formula and what it means in seconds, with the notes."""
        return explain_values(self)

    def to(self, library: str, n_envs: int | None = None) -> LibraryValues:
        """These values in another library's words: a mapping to pass on as ``**values``, with notes."""
        # Which is built on the rules: found when asked for, so that rules stand without it.
        values: LibraryValues = import_module("cycletime.libraries").export_values(self, library, n_envs)
        return values

    @classmethod
    def from_(cls, library: str, *, dt: DurationLike, n_envs: int | None = None, **values: object) -> Self:
        """Hyper-parameters from another library's words; what is not given is that library's default.

        SAC's remain unstated, so that they are not exported, but `at` starts its parts from those defaults.
        Settings that do not depend on the cycle time are kept as they are, and `to` gives them back to the library.
        """
        read: Self = import_module("cycletime.libraries").read_settings(cls, library, dt, n_envs, values)
        return read

    def _interval_s(self, quantity: Quantity) -> float:
        """The seconds between two of the events that this quantity counts or decays by: agent steps."""
        return float(self.dt)

    def _carried(self, field: str, law: Law, rho: Fraction) -> Number:
        value: Number = getattr(self, field)
        return law(value, rho)

    def _rule(self, rule: str | Rule) -> Rule:
        if isinstance(rule, Rule):
            known = [quantity.field for quantity in self.quantities]
            others = {each.name for kind in Hyperparameters.__subclasses__() for each in fields(kind)}
            for name in (field for field in rule.laws if field not in known):
                hints = import_module("cycletime.libraries.synonyms")
                near = "." if name in others else hints.name_hint(name, self.algorithm, known)  # another algorithm's
                has = f"{self.algorithm} has {', '.join(known)}{near}"
                raise InputError(f"Rule {rule.name!r} has a law for {name!r}: {has}")
            rule.refuse_misfits({each.field: each.kind for each in self.quantities})
            if self.rules.get(rule.name, rule) != rule:
                raise InputError(f"{rule.name!r} is the name of another rule of {self.algorithm}: give yours its own.")
            return rule
        if rule not in self.rules:
            raise InputError(f"Unknown rule {rule!r} for {self.algorithm}: choose {_choices(self.rules, rule)}")
        return self.rules[rule]

    def _left_alone(self, rule: Rule, rho: Fraction) -> dict[str, str]:
        """What the rule speaks of and need not touch, and why, where a reader should know.

        A library may have said it in a way that follows no cycle time; or it was not given, and would stay as it is.
        """
        said = self.library_source.left_alone if self.library_source else {}
        left: dict[str, str] = {}
        for name, law in rule.laws.items():
            given: Number | None = getattr(self, name)
            usual = self._baseline(name)[0] if given is None else given
            moves = usual is None or law(usual, rho) != usual
            if name in said:
                left[name] = said[name] if moves else ""
            elif given is None and not moves:
                left[name] = ""
        return left

    def part(self, name: str) -> Part:
        """One of `parts`; refused where there is none of this name, or it needs a value that was not given."""
        if name not in self.parts:
            if all(each in self.parts for each in name.split(",")):
                raise InputError(f"{name!r} is not one part: separate them by blanks, {name.replace(',', ' ')}.")
            raise InputError(f"Unknown part {name!r} for {self.algorithm}: choose {_choices(self.parts, name)}")
        return self.parts[name]

    def _with_baselines(self, fields: Collection[str]) -> tuple[Self, tuple[str, ...]]:
        """Fill in each value that is to be carried and was not stated."""
        filled: dict[str, Any] = {}
        notes: tuple[str, ...] = ()
        for name in fields:
            if getattr(self, name) is not None:
                continue
            if self.library_source and name in self.library_source.unreadable:
                raise InputError(self.library_source.unreadable[name])
            filled[name], whose = self._baseline(name)
            if filled[name] is None:
                raise InputError(f"{name} was not given, and the paper has no value for it: give one.")
            notes += (f"{name} was not given: {whose} {filled[name]} is used.",)
        return replace(self, **filled), notes

    def _baseline(self, field: str) -> tuple[Number | None, str]:
        """What a field starts from where it was not stated, and whose value that is."""
        if field in self.defaults:
            return self.defaults[field], "the library's"
        part = next((part for part in self.parts.values() if part.field == field), None)
        return (part.baseline, part.whose_baseline) if part else (None, "")

    def _representable(self, quantity: Quantity, exact: Number, new_dt: Duration) -> Number:
        """The value as this quantity can hold it; a float that ran into its end is no value."""
        is_number = not isinstance(exact, float) or isfinite(exact)
        if quantity.whole and is_number:
            return nearest_whole(exact, at_least=int(quantity.low))
        before = getattr(self, quantity.field)
        at_an_end = exact in (quantity.low, quantity.high) and before != exact
        if at_an_end or not is_number:
            remedy = f"it would be {exact} in double precision; take a cycle time closer to {self.dt}"
            raise InputError(f"{quantity.field} {before} cannot be carried from {self.dt} to {new_dt}: {remedy}.")
        return float(exact)

    def _notes_on(self, before: Self, rule: Rule) -> tuple[str, ...]:
        """What the algorithm has to say of its values taken together."""
        return ()

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.explain())}</pre>"


def part_names(also: str | Collection[str]) -> tuple[str, ...]:
    """The parts that were named, each once; a string is one name."""
    return (also,) if isinstance(also, str) else tuple(dict.fromkeys(also))


def _rounding_notes(quantity: Quantity, exact: Number, value: Number) -> tuple[str, ...]:
    shift = float(value / exact) - 1 if exact else 0.0
    if not quantity.whole or abs(shift) <= REPORTED_SHIFT:
        return ()
    return (f"{quantity.field} {float(exact):.6g} was rounded to {value} ({shift:+.1%}).",)


def _horizon_notes(before: Hyperparameters, after: Hyperparameters, rule: Rule) -> tuple[str, ...]:
    """What the agent will see less far than before, in seconds; the rules 'scaled' and 'horizons' keep that."""
    old, new = before.seconds(), after.seconds()
    shorter = [
        f"{quantity.field} {after.stated()[quantity.field]:.6g} from {format_seconds(old[quantity.field])} to "
        f"{format_seconds(new[quantity.field])}"
        for quantity in after.quantities
        if quantity.is_horizon and new[quantity.field] < old[quantity.field] * (1 - REPORTED_SHIFT)
    ]
    if not shorter:
        return ()
    return (f"Rule {rule.name!r} shrinks horizons: {', '.join(shorter)}.",)


def _choices(names: Collection[str], instead_of: str) -> str:
    return ("one of " if len(names) > 1 else "") + ", ".join(names) + did_you_mean(instead_of, names)


def recommend(values: Hyperparameters, n_envs: int = 1) -> Recommendation:
    """The rule for values at the cycle time that they are from, of at least `n_envs` environments."""
    untried, many = "", _on_many(values, n_envs)
    for name in HORIZON_FIELDS:
        value, tried = getattr(values, name, None), getattr(type(values), name, None)
        if name in values.tuned_fields or value not in (tried, values.defaults.get(name)):
            return values.recommended.tuned._replace(why=values.recommended.tuned.why + many)
        untried += f"{name} {value} is the library's default, which no trial began from; " if value != tried else ""
    return values.recommended.untuned._replace(why=untried + values.recommended.untuned.why + many)


def _on_many(values: Hyperparameters, n_envs: int) -> str:
    number = max(n_envs, values.library_source.n_envs if values.library_source else 1)
    return values.recommended.many if number >= values.recommended.many_envs else ""


def closing_line(carried: Hyperparameters, n_envs: int = 1) -> str:
    """Whether to use carried values, and why; else what to ask for instead."""
    assert carried.origin is not None, "only carried values come from a rule"
    before, rule = carried.origin.before, carried.origin.rule
    advice = recommend(before, n_envs)
    if carried.dt == before.dt:
        return f"Nothing changes with the cycle time: both are {carried.dt}."
    if rule in before.rules and before.rules[rule].laws == before.rules[advice.rule].laws:
        if carried.origin.laws.keys() <= before.rules[advice.rule].laws.keys():
            return f"Use these values: {advice.why}"
        first = advice.why.partition(". ")[0].removesuffix(".")
        return f"Use these values: {first}. What --also adds was not in that trial.{_on_many(before, n_envs)}"
    return f"Use --rule {advice.rule} instead of {rule}: {advice.why}"


def explain_values(
    values: Hyperparameters,
    further_notes: Sequence[str] = (),
    exported: LibraryValues | None = None,
    details: bool = False,
    environment_left: bool = True,
) -> str:
    """The values in a table; carried ones beside those they come from, with formulas, notes, and what to do with them.

    With `details` come the formulas' sources and what the other rules give; `environment_left`: whether what the
    environment counts in steps is left to the reader.
    """
    if values.origin is None:
        return "\n".join([f"{values.algorithm.upper()} at {values.dt}", "", *_table([values], None)])
    origin, before = values.origin, values.origin.before
    title = f"{values.algorithm.upper()} from {before.dt} to {values.dt}, rule '{origin.rule}'"
    lines = [f"{title}, rho = dt/dt0 = {values.dt / before.dt}", "", *_table([before, values], origin.laws)]
    if exported is not None:
        lines += ["", f"{exported.library}:", *(f"  {name} = {value}" for name, value in exported.items())]
    notes = [*further_notes, *values.notes, *(exported.notes if exported else ())]
    notes = [note for note in notes if details or note not in origin.details]
    if exported is not None and exported.unknown:
        notes.append(f"Passed on as given, not known here: {', '.join(exported.unknown)}.")
    left = "" if not environment_left else "what else" if exported is not None and exported.time_changes else "what"
    parts = parts_not_carried(values)
    named = [f"{', '.join(parts)} (--also NAME carries one)"] if parts else []
    named += [f"{left} your environment counts in steps (limit, delays, histories, rewards)"] if left else []
    lines += ["", f"Not carried: {'; '.join(named) or 'nothing that is known here'}."]
    lines += [f"note: {note}" for note in notes]
    lines += _details(values) if details else ()
    return "\n".join([*lines, "", closing_line(values, getattr(exported, "n_envs", 1))])


def parts_not_carried(values: Hyperparameters) -> list[str]:
    laws = values.origin.laws if values.origin else {}
    return [name for name, part in values.parts.items() if part.field not in laws]


def _details(values: Hyperparameters) -> list[str]:
    """Where each formula comes from, and what the other rules give."""
    assert values.origin is not None, "asked for carried values alone"
    before, laws = values.origin.before, values.origin.laws
    sources = [f"  {name}: {law.formula}, {law.source}" for name, law in laws.items()]
    shown = [quantity.field for quantity in values.quantities if quantity.field in laws]
    rows = [
        (name, *(_number(other.stated()[field]) if field in other.stated() else "" for field in shown))
        for name in values.rules
        for other in (before.at(values.dt, name),)
    ]
    return ["", "Formulas and their sources:", *sources, "", *align_columns([("rule", *shown), *rows])]


def transfer_as_json(
    values: Hyperparameters, further_notes: Sequence[str] = (), exported: LibraryValues | None = None
) -> dict[str, Any]:
    """Carried values as plain JSON data. 'Unlimited' is null there, since JSON has no infinity."""
    if values.origin is None:
        raise ValueError("Only hyper-parameters that were carried to another cycle time have a transfer to report.")
    before = values.origin.before
    data = {
        "algorithm": values.algorithm,
        "rule": values.origin.rule,
        "from": _json_values(before),
        "to": _json_values(values),
        "seconds": {"from": _json_seconds(before), "to": _json_seconds(values)},
        "notes": [*further_notes, *values.notes],
        "not_carried": parts_not_carried(values),
        "recommended": recommend(before, getattr(exported, "n_envs", 1))._asdict(),
    }
    if exported is not None:
        named = {"values": dict(exported), "exact": exported.exact, "notes": list(exported.notes)}
        data["library"] = {"name": exported.library, **named, "unknown": list(exported.unknown)}
    return data


def _table(every: Sequence[Hyperparameters], laws: Mapping[str, Law] | None) -> list[str]:
    """The values at each cycle time, with the formulas between them where they were carried."""
    formula = () if laws is None else ("formula of x0",)
    rows = [("hyper-parameter", *(f"at {each.dt}" for each in every), *formula, "in seconds")]
    for quantity in every[-1].quantities:
        name = quantity.field
        if name in every[-1].stated():
            numbers = (_number(each.stated()[name]) for each in every)
            formula = () if laws is None else (laws[name].formula if name in laws else "not touched",)
            spans = _seconds_cell(*(each.seconds().get(name) for each in every))
            rows.append((f"{name} ({quantity.symbol})", *numbers, *formula, spans))
    return align_columns(rows)


def _seconds_cell(*spans_s: float | None) -> str:
    known = [format_seconds(span_s) for span_s in spans_s if span_s is not None]
    if len(set(known)) < 2:
        return "".join(known[:1])
    return " -> ".join(span.removesuffix(" s") for span in known[:-1]) + f" -> {known[-1]}"


def _number(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):.6g}"


def align_columns(rows: Sequence[Sequence[str]], right: Collection[int] = (), underlined: bool = True) -> list[str]:
    """Lines of a table, whose first row is the header; columns of the numbers `right` are set to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.rjust if column in right else str.ljust for column in range(len(widths))]
    cells = [[side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)] for row in rows]
    lines = ["  ".join(row).rstrip() for row in cells]
    return [lines[0], *(["-" * max(map(len, lines))] if underlined else []), *lines[1:]]


def _json_values(values: Hyperparameters) -> dict[str, Number]:
    return {"dt_s": float(values.dt), **values.stated()}


def _json_seconds(values: Hyperparameters) -> dict[str, float | None]:
    names = {quantity.field: quantity.span.replace("-", "").replace(" ", "_") for quantity in values.quantities}
    return {names[field]: None if isinf(span_s) else span_s for field, span_s in values.seconds().items()}
