"""SAC, and what else has a replay buffer, in other libraries' words, with their three traps.

``polyak`` is tau in some libraries and 1 - tau in others; some count updates and warm-ups in transitions, others in
steps of all parallel environments together; a target entropy may be a number or a multiple of -|A|.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

from cycletime.errors import InputError
from cycletime.libraries.parameters import PICKLED, NotANumberError, ParamName, RateTable, SettingsReader
from cycletime.rules.hyperparameters import Hyperparameters
from cycletime.rules.laws import Number, nearest_whole
from cycletime.rules.quantities import Quantity, update_rhythm
from cycletime.rules.sac import SAC, OffPolicy

_AS_MANY_AS_COLLECTED = -1
"""Stable-Baselines3's word for as many updates as transitions were collected."""


@dataclass(frozen=True)
class UpdatesPerPeriod:
    """So many updates after so many steps of all environments together."""

    updates: ParamName
    period: ParamName

    def write(self, per_step: Fraction, n_envs: int, values: OffPolicy) -> dict[str, Any]:
        """The library's words for this many updates per agent step (of one environment)."""
        per_vector_step = per_step * n_envs
        # In the rhythm that was said where a whole number of updates fits: after 64 steps 32 updates, not after 2 one.
        usual = values.library_source.layout.get(self.period.name, 1) if values.library_source else 1
        period = usual if (per_vector_step * usual).denominator == 1 else per_vector_step.denominator
        return {self.updates.name: int(per_vector_step * period), self.period.name: period}

    def read(self, given: SettingsReader, n_envs: int, minibatch: Number | None) -> Number | None:
        """The updates per agent step, if anything was said of them."""
        updates, name = given.optional_number(self.updates.name), self.period.name
        _unpack_steps(given, name)
        try:
            period = given.optional_number(name)
        except NotANumberError:
            if (said := given.values[name]) == PICKLED and updates == _AS_MANY_AS_COLLECTED:
                return 1.0
            if said != PICKLED:  # which may well be a number
                why = f"{given.library}'s {name} is {said!r}, no number of steps: the updates are left alone."
                given.left_alone["updates_per_step"] = why
            raise
        if (updates, period) == (None, None):
            return None
        usual = given.layout[name] = given.count(self.period)
        if updates == _AS_MANY_AS_COLLECTED:
            return 1.0
        return given.count(self.updates) / (usual * n_envs)


def _unpack_steps(given: SettingsReader, name: str) -> None:
    """Stable-Baselines3's ``(4, "step")`` is 4; its ``(1, "episode")`` remains, and is no number of steps."""
    value = given.values.get(name)
    if isinstance(value, list | tuple) and len(value) == 2:
        if (unit := getattr(value[1], "value", value[1])) not in ("step", "episode"):
            raise InputError(f"{given.library}'s {name} is {value!r}: its unit must be 'step' or 'episode'.")
        given.values[name] = value[0] if unit == "step" else value


@dataclass(frozen=True)
class WholeUpdates:
    """A whole number of updates after each step of all environments together."""

    updates: ParamName

    def write(self, per_step: Fraction, n_envs: int, values: OffPolicy) -> dict[str, Any]:
        return {self.updates.name: nearest_whole(per_step * n_envs)}

    def read(self, given: SettingsReader, n_envs: int, minibatch: Number | None) -> Number | None:
        updates = given.optional_positive(self.updates.name)
        return None if updates is None else float(updates / n_envs)


@dataclass(frozen=True)
class UpdateRatio:
    """Updates per transition, as a ratio."""

    ratio: ParamName
    collected: ParamName | None = None
    """A name for the transitions collected at a time, which must make a whole number of updates."""

    def write(self, per_step: Fraction, n_envs: int, values: OffPolicy) -> dict[str, Any]:
        collected = {self.collected.name: lcm(per_step.denominator, n_envs)} if self.collected else {}
        return {self.ratio.name: float(per_step), **collected}

    def read(self, given: SettingsReader, n_envs: int, minibatch: Number | None) -> Number | None:
        if self.collected:
            given.optional_positive(self.collected.name)
        return given.optional_positive(self.ratio.name)


@dataclass(frozen=True)
class ReplayRatio:
    """Samples replayed per sample collected: the updates per transition times the mini-batch.

    RLlib makes whole rounds of it: so many updates per step of all environments, or one update every so many steps.
    """

    ratio: ParamName
    default_minibatch: int

    def write(self, per_step: Fraction, n_envs: int, values: OffPolicy) -> dict[str, Any]:
        return {self.ratio.name: _in_whole_rounds(per_step, n_envs) * (values.minibatch or self.default_minibatch)}

    def read(self, given: SettingsReader, n_envs: int, minibatch: Number | None) -> Number | None:
        ratio = given.optional_positive(self.ratio.name)
        return None if ratio is None else _in_whole_rounds(ratio / (minibatch or self.default_minibatch), n_envs)


def _in_whole_rounds(per_step: Number, n_envs: int) -> float:
    per_round = float(per_step) * n_envs
    whole = round(per_round) if per_round >= 1 else 1 / round(1 / Fraction(per_round))
    return whole / n_envs


@dataclass(frozen=True)
class UpdatePeriod:
    """The agent steps from one update to the next; a fraction of one means several updates per step."""

    period: ParamName

    def write(self, per_step: Fraction, n_envs: int, values: OffPolicy) -> dict[str, Any]:
        many = per_step >= 1
        return {self.period.name: 1 / nearest_whole(per_step) if many else nearest_whole(1 / per_step)}

    def read(self, given: SettingsReader, n_envs: int, minibatch: Number | None) -> Number | None:
        period = given.optional_positive(self.period.name)
        return None if period is None else 1 / float(period)


Updates: TypeAlias = UpdatesPerPeriod | WholeUpdates | UpdateRatio | ReplayRatio | UpdatePeriod


@dataclass(frozen=True)
class OffPolicyTable:
    """How one library says what SAC or its like has that depends on the cycle time; None where it has no word."""

    rates: RateTable
    discount: ParamName = ParamName("gamma", 0.99)
    tau: ParamName | None = None
    one_minus_tau: ParamName | None = None
    updates_per_target_move: ParamName | None = None
    """The setting that says how many updates pass from one move of the targets to the next, if that is not one."""
    replay: ParamName | None = None
    minibatch: ParamName = ParamName("batch_size")
    warmup: tuple[ParamName, ...] = ()
    """All the names that must agree on when learning starts."""
    per_vector_step: frozenset[str] = frozenset()
    """Our fields that the library counts in steps of all environments together, not in transitions."""
    updates: Updates | None = None
    entropy: ParamName | None = None
    entropy_per_dimension: int | None = None
    """If the target entropy is this sign times a coefficient times |A|: the sign."""
    n_envs: ParamName | None = None
    remarks: Mapping[str, str] = field(default_factory=dict)
    """By field: what the library does where it has no word."""

    @property
    def said_together(self) -> tuple[str, ...]:
        """The names of which one means nothing without the other: -1 updates are as many as the period has steps."""
        words = self.updates
        return (words.updates.name, words.period.name) if isinstance(words, UpdatesPerPeriod) else ()

    @property
    def defaults(self) -> dict[str, Number]:
        """By the library's names: what it takes where nothing is said."""
        updates = vars(self.updates).values() if self.updates else ()
        words = (self.tau, self.one_minus_tau, self.replay, *self.warmup, *updates)
        return {each.name: each.default for each in words if isinstance(each, ParamName) and each.default is not None}

    def write(self, values: OffPolicy, n_envs: int) -> dict[str, Any]:
        updates: dict[str, Any] = {}
        if self.updates and values.updates_per_step is not None:
            updates = self.updates.write(update_rhythm(values.updates_per_step), n_envs, values)
        tau = values.target_smoothing
        moves = updates.get(self.updates_per_target_move.name, 1) if self.updates_per_target_move else 1
        entropy, size = (values.target_entropy, values.action_size) if isinstance(values, SAC) else (None, None)
        pairs = [
            (self.discount, values.discount),
            (self.tau, tau),
            (self.one_minus_tau, None if tau is None else (1 - tau) ** moves),
            (self.replay, self._counted("replay_capacity", values.replay_capacity, n_envs)),
            (self.minibatch, values.minibatch),
            *((word, self._counted("warmup_steps", values.warmup_steps, n_envs)) for word in self.warmup),
            (self.entropy, entropy and entropy / self._dimensions(size)),
        ]
        return {word.name: value for word, value in pairs if word is not None and value is not None} | updates

    def read(self, given: SettingsReader, n_envs: int, kind: type[Hyperparameters]) -> dict[str, Any]:
        """Our fields, for what was given; for SAC the action's size may be among it."""
        minibatch = given.optional_positive(self.minibatch.name)
        readers: dict[str, Callable[[], Number | None]] = {
            "target_smoothing": lambda: self._read_tau(given),
            "replay_capacity": lambda: self._uncounted("replay_capacity", _optional(given, self.replay), n_envs),
            "warmup_steps": lambda: self._uncounted("warmup_steps", self._warmup(given), n_envs),
            "updates_per_step": lambda: self.updates.read(given, n_envs, minibatch) if self.updates else None,
        }
        fields: dict[str, Any] = {"discount": given.number(self.discount), "minibatch": minibatch}
        if issubclass(kind, SAC):
            fields["action_size"] = given.optional_number("action_size")
            size = fields["action_size"]
            readers["target_entropy"] = lambda: (
                None if (said := _optional(given, self.entropy)) is None else said * self._dimensions(size)
            )
        for name, read in readers.items():
            try:
                fields[name] = read()
            except NotANumberError as error:  # it may well stay as it is: who wants it carried is told
                given.unreadable[name] = str(error)
        return fields

    def defaults_beside(self, given: SettingsReader, n_envs: int, kind: type[Hyperparameters]) -> dict[str, Number]:
        """By our fields, what the library takes for what was not given."""
        said = {name: value for name, value in given.values.items() if value is not None}
        warmup = {word.name for word in self.warmup}
        left = warmup if warmup & said.keys() else ()
        defaults = {name: value for name, value in self.defaults.items() if name not in left}
        fields = self.read(SettingsReader(given.library, {**defaults, **said}), n_envs, kind)
        fields["discount"] = self.discount.default  # beside which one that was given is tuned
        return {name: value for name, value in fields.items() if value is not None}

    def _read_tau(self, given: SettingsReader) -> Number | None:
        if self.one_minus_tau is None:
            return _optional(given, self.tau)
        moves = given.optional_positive(self.updates_per_target_move.name) if self.updates_per_target_move else None
        kept = given.optional_number(self.one_minus_tau.name)
        if kept is None:
            return None
        Quantity(self.one_minus_tau.name, "", low=0, high=1, low_allowed=True).check(kept)
        return 1 - kept ** (1 / (moves or 1))

    def _counted(self, field: str, transitions: int | None, n_envs: int) -> int | None:
        if transitions is None or field not in self.per_vector_step:
            return transitions
        return nearest_whole(Fraction(transitions, n_envs), at_least=0)

    def _uncounted(self, field: str, count: Number | None, n_envs: int) -> Number | None:
        return count * n_envs if count is not None and field in self.per_vector_step else count

    def _warmup(self, given: SettingsReader) -> Number | None:
        said = {word.name: value for word in self.warmup if (value := _optional(given, word)) is not None}
        if len(set(said.values())) > 1:
            both = " and ".join(f"{name} {value}" for name, value in said.items())
            raise InputError(f"{given.library}'s {both} differ: give one of them, as the warm-up.")
        return next(iter(said.values()), None)

    def _dimensions(self, action_size: Number | None) -> Number:
        """What the library's number is to be multiplied by for a target entropy."""
        if self.entropy is None or self.entropy_per_dimension is None:
            return 1
        if action_size is None:
            raise InputError(f"{self.entropy.name} is a multiple of the action's size: give action_size.")
        return self.entropy_per_dimension * action_size


def _optional(given: SettingsReader, word: ParamName | None) -> Number | None:
    return given.optional_number(word.name) if word else None
