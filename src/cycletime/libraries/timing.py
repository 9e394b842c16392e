"""What a configuration means in seconds: its cycle time, horizons, rollouts, episodes, training, delays, histories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Any, NamedTuple

from cycletime.duration import Duration
from cycletime.libraries.names import LIBRARIES, RATES
from cycletime.libraries.off_policy import OffPolicyTable
from cycletime.libraries.on_policy import Brax, Counted, OnPolicyTable, Puffer, Sized
from cycletime.libraries.parameters import ParamName
from cycletime.libraries.time_keys import DEPLOYED_BY, PREFIXES, canonical_names, stated_cycle_time, table_names
from cycletime.rules import ALGORITHMS
from cycletime.rules.quantities import decay_in_seconds, format_seconds, smoothing_in_seconds

_LONG_NUMBER = re.compile(r"\d+\.\d{7,}")


@dataclass(frozen=True)
class Stated:
    """A value, the name that it was given by, and where it stands."""

    name: str
    value: Any
    place: str = ""
    comment: str = ""

    @property
    def text(self) -> str:
        value = f"{self.value:.6g}" if isinstance(self.value, float) else str(self.value)
        return f"{self.name} {value}"


@dataclass(frozen=True)
class TimedConfiguration:
    """Settings of an agent and of an environment, of which either may be missing."""

    name: str
    library: str | None = None
    """The agent's."""
    environment: str | None = None
    """The library of the environment's settings: isaac-lab, mjlab, mujoco-playground, legged-gym or isaac-gym;
    a deployment runs a policy that was trained elsewhere."""
    algorithm: str | None = None
    agent: Mapping[str, Stated] = field(default_factory=dict)
    env: Mapping[str, Stated] = field(default_factory=dict)
    uses_defaults: bool = True
    """Whether what is not said is the library's default; not so where a base class may say it that was not read."""
    given_dt: Duration | None = None
    """The cycle time that the user says, where the settings do not."""
    unseen: tuple[str, ...] = ()
    """Base classes that were not found."""

    @cached_property
    def cycle_time(self) -> tuple[Duration, str] | None:
        """The cycle time, and how it is said."""
        values = {name: each.value for name, each in self.env.items()}
        agent = {name: each.value for name, each in self.canonical.items()}
        if "action_repeat" in agent:
            values.setdefault("action_repeat", agent["action_repeat"])
        stated = stated_cycle_time(self.environment, values) if self.environment else None
        if self.environment == "deployment":
            stated = next(filter(None, (stated_cycle_time(name, values) for name in DEPLOYED_BY)), None)
        stated = stated or stated_cycle_time(self.library or "", agent)
        if stated:
            return stated[0], _LONG_NUMBER.sub(lambda number: f"{float(number.group()):.6g}", stated[1])
        return (self.given_dt, "as given") if self.given_dt else None

    @property
    def dt_s(self) -> float | None:
        return float(self.cycle_time[0]) if self.cycle_time else None

    @cached_property
    def physics_dt_s(self) -> float | None:
        name = {"mjlab": "sim.mujoco.timestep", "mujoco-playground": "sim_dt"}.get(self.environment or "", "sim.dt")
        return self.positive(self.env.get(name))

    @cached_property
    def table(self) -> OnPolicyTable | OffPolicyTable | None:
        if self.library is None or self.algorithm not in ALGORITHMS:
            return None
        return LIBRARIES[self.library].of(self.algorithm)

    @cached_property
    def canonical(self) -> Mapping[str, Stated]:
        """The agent's settings by the names that the tables have."""
        if self.library is None:
            return self.agent
        known = table_names(self.table, RATES[self.library][self.algorithm or ""]) if self.table else ()
        names = canonical_names(self.library, self.agent, known)
        prefixes = [prefix for prefix, _ in PREFIXES.get(self.library, ())]
        found = {names[name]: each for name, each in self.agent.items()}
        for name, each in self.agent.items():  # what tables do not have: training lengths, epochs
            bare = next((name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix)), name)
            found.setdefault(bare, each)
        return found

    def setting(self, *names: str) -> Stated | None:
        """The first of these that the agent's or the environment's settings have with a number."""
        for side in (self.canonical, self.env):
            for name in names:
                if name in side and self.positive(side[name]) is not None:
                    return side[name]
        return None

    def _parameter(self, word: ParamName | None) -> Stated | None:
        if word is None:
            return None
        if found := self.setting(word.name):
            return found
        usual = self.uses_defaults and word.default is not None
        return Stated(word.name, word.default, comment="default") if usual else None

    @staticmethod
    def positive(stated: Stated | None) -> float | None:
        """The value, if it is a number above 0 and no sentinel such as 1e30."""
        value = stated.value if stated else None
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e15
        return float(value) if is_number else None  # type: ignore[arg-type]

    @cached_property
    def discount(self) -> Stated | None:
        return self._fraction(self._parameter(self.table.discount) if self.table else None)

    @cached_property
    def trace_decay(self) -> Stated | None:
        word = getattr(self.table, "trace_decay", None)
        return self._fraction(self._parameter(word))

    @staticmethod
    def _fraction(stated: Stated | None) -> Stated | None:
        return stated if stated and 0 < stated.value <= 1 else None

    @cached_property
    def n_envs(self) -> Stated | None:
        word = getattr(self.table, "n_envs", None)
        names = ([word.name] if word else []) + [
            *("scene.num_envs", "env.num_envs", "num_envs", "n_envs", "num_actors", "env.numEnvs"),
        ]
        found = self.setting(*names)
        if found and self.environment == "mjlab" and found.value == 1:  # its default, which the command line replaces
            return None
        return found if found and isinstance(found.value, int) else None

    @cached_property
    def rollout(self) -> Stated | None:
        """Steps of each environment from one update to the next."""
        words = self.table
        if isinstance(words, Counted):
            return self._whole(self._parameter(words.rollout))
        if isinstance(words, Brax):
            return self._whole(self._parameter(words.unroll))
        if isinstance(words, Puffer):
            return self._whole(self._parameter(words.horizon))
        if not isinstance(words, Sized):
            return None
        size = self._whole(self._parameter(words.size))
        if size is None or words.size_is_per_env:
            return size
        return Stated(size.name, size.value // self.n_envs.value, size.place) if self.n_envs else None

    @staticmethod
    def _whole(stated: Stated | None) -> Stated | None:
        if stated is None or float(stated.value) != int(stated.value):
            return None
        return Stated(stated.name, int(stated.value), stated.place, stated.comment)

    @cached_property
    def batch(self) -> int | None:
        """Samples from one update to the next."""
        words = self.table
        if isinstance(words, Brax):
            sizes = [self._parameter(words.trajectories), self._parameter(words.count), self.rollout]
            return int(sizes[0].value * sizes[1].value * sizes[2].value) if all(sizes) else None  # type: ignore[union-attr]
        return self.rollout.value * self.n_envs.value if self.rollout and self.n_envs else None

    @cached_property
    def minibatch_count(self) -> Stated | None:
        return self._whole(self._parameter(getattr(self.table, "count", None)))

    @cached_property
    def minibatch_size(self) -> Stated | None:
        return (
            self._whole(self._parameter(getattr(self.table, "minibatch", None)))
            if isinstance(self.table, Sized | Puffer)
            else None
        )

    @cached_property
    def epochs(self) -> Stated | None:
        names = ("num_learning_epochs", "algorithm.num_learning_epochs", "learning_epochs", "mini_epochs", "n_epochs")
        return self.setting(*names, "update_epochs", "num_updates_per_batch", "agent.learning_epochs")

    @cached_property
    def episode(self) -> tuple[Stated, float] | None:
        """The longest episode, in seconds."""
        names = ("episode_length_s", "env.episode_length_s", "scene.max_episode_length_s", "env.learn.episodeLength_s")
        if found := self.setting(*names):
            return found, float(found.value)
        found = self.setting("episode_length", "env.episodeLength", "env.episode_length")
        return (found, found.value * self.dt_s) if found and self.dt_s else None

    @cached_property
    def training_steps(self) -> tuple[Stated, float] | None:
        """Steps of each environment in the whole training."""
        if (found := self.setting("max_iterations", "max_epochs")) and self.rollout:
            return found, found.value * self.rollout.value
        if found := self.setting("trainer.timesteps", "timesteps"):
            return found, float(found.value)
        names = ("num_timesteps", "total_timesteps", "n_timesteps")
        n_envs = self.n_envs.value if self.n_envs else 1
        return (found, found.value / n_envs) if (found := self.setting(*names)) else None

    @property
    def discount_steps(self) -> float | None:
        return decay_in_seconds(self.discount.value, 1.0) if self.discount else None

    @property
    def discount_s(self) -> float | None:
        return decay_in_seconds(self.discount.value, self.dt_s) if self.discount and self.dt_s else None

    @cached_property
    def trace_steps(self) -> float | None:
        """Steps after which gamma lambda, the weight of what an advantage takes from later steps, is 1/e."""
        if self.discount is None or self.trace_decay is None:
            return None
        return decay_in_seconds(self.discount.value * self.trace_decay.value, 1.0)

    def curricula(self) -> Iterator[Stated]:
        """Settings that count steps until a curriculum changes something."""
        for name, each in self.env.items():
            last = name.rpartition(".")[2]
            if name.startswith("curriculum.") and last in ("num_steps", "step") and self.positive(each) is not None:
                yield each

    def rows(self) -> list[Row]:
        """What it means, for people."""
        return list(_describe(self))


class Row(NamedTuple):
    """One line of the description."""

    what: str
    value: str
    meaning: str
    place: str = ""


def _describe(c: TimedConfiguration) -> Iterator[Row]:
    dt = c.dt_s
    if c.cycle_time:
        rate = f"{1 / float(c.cycle_time[0]):.4g} Hz"
        yield Row("cycle time", f"{_milliseconds(float(c.cycle_time[0]))} ({rate})", c.cycle_time[1])
    if c.n_envs:
        yield Row("environments", c.n_envs.text, "", c.n_envs.place)
    if c.discount:
        yield Row("discount", c.discount.text, _horizon(c.discount.value, dt), c.discount.place)
    if c.trace_decay and c.trace_steps is not None:
        span = f", {format_seconds(c.trace_steps * dt)}" if dt else ""
        yield Row("trace", c.trace_decay.text, f"gamma lambda: {c.trace_steps:.3g} steps{span}", c.trace_decay.place)
    if c.rollout:
        span = _span(c.rollout.value, dt)
        yield Row("rollout", c.rollout.text, f"{span} in each environment".removeprefix(" "), c.rollout.place)
    if c.batch:
        yield Row("batch", f"{c.batch} samples", f"{_span(c.batch, dt)} of experience per update".removeprefix(" "))
    yield from _describe_updates(c, dt)
    if c.episode:
        steps = f"{ceil(c.episode[1] / dt - 1e-6)} steps" if dt else ""
        yield Row(
            "episode",
            c.episode[0].text,
            ", ".join(filter(None, [format_seconds(c.episode[1]), steps])),
            c.episode[0].place,
        )
    if c.training_steps:
        stated, steps_each = c.training_steps
        yield Row(
            "training", stated.text, f"{_span(steps_each, dt)} in each environment".removeprefix(" "), stated.place
        )
    yield from _describe_environment(c, dt)


def _describe_updates(c: TimedConfiguration, dt: float | None) -> Iterator[Row]:
    count = c.minibatch_count.value if c.minibatch_count else None
    if count is None and c.batch and c.minibatch_size:
        count = ceil(c.batch / c.minibatch_size.value)
    if c.rollout and count and c.epochs and dt:
        updates = count * c.epochs.value / (c.rollout.value * dt)
        yield Row(
            "gradient steps", f"{count} mini-batches x {c.epochs.value:g} epochs", f"{updates:.4g} per simulated second"
        )


def _describe_environment(c: TimedConfiguration, dt: float | None) -> Iterator[Row]:
    for name, each in c.env.items():
        last = name.rpartition(".")[2]
        number = c.positive(each)
        if last in ("history_length", "history_len", "frame_stack", "c_frame_stack", "include_history_steps"):
            if number and number > 1 and dt and not name.startswith("scene."):  # sensors count physics steps
                yield Row("history", each.text, _span(number, dt), each.place)
        elif last in ("min_delay", "max_delay") and number and c.physics_dt_s:
            yield Row(
                "delay", each.text, f"{format_seconds(number * c.physics_dt_s)}, counted in physics steps", each.place
            )
        elif last == "alpha" and name.startswith("actions.") and number and number < 1 and dt:
            yield Row(
                "filter", each.text, f"time constant {format_seconds(smoothing_in_seconds(number, dt))}", each.place
            )
        elif last == "update_period" and number:
            yield Row("sensor period", each.text, format_seconds(number), each.place)
    for each in c.curricula():
        updates = f", {each.value / c.rollout.value:.4g} updates" if c.rollout else ""
        yield Row("curriculum", each.text, f"{_span(each.value, dt)}{updates}", each.place)


def _milliseconds(dt_s: float) -> str:
    return f"{dt_s * 1000:.4g} ms"


def _span(steps: float, dt_s: float | None) -> str:
    return format_seconds(steps * dt_s) if dt_s else f"{steps:.6g} steps"


def _horizon(factor: float, dt_s: float | None) -> str:
    steps = decay_in_seconds(factor, 1.0)
    return f"horizon {steps:.4g} steps{f', {format_seconds(steps * dt_s)}' if dt_s else ''}"
