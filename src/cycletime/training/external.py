"""The spec of another library's trainer, and the agent that stands for it in `RunSpec.agent` in place of ours."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cycletime import rules
from cycletime.agents.checks import check_counts
from cycletime.duration import Duration
from cycletime.errors import InputError, did_you_mean, quote, unknown_name_error
from cycletime.libraries import LIBRARIES
from cycletime.libraries.names import ALIASES, RSL_RL
from cycletime.rules import Rule

BUILT_IN = {"stable-baselines3": ("stable-baselines3", "torch"), "brax": ("brax", "playground", "mujoco-mjx", "jax")}
"""Trainers that come with this package, each in the words of its library; and packages whose versions a result has."""
_OF_THE_STUDY = {"dt": "dts", "seed": "seeds", "device": "the study's device"}
_OF_THE_STUDY |= dict.fromkeys(("n_envs", "num_envs", "n_env", "num_env"), "[trainer] num_envs = {}")
_OF_THE_STUDY |= dict.fromkeys(("n_timesteps", "total_timesteps"), "simulated_s")
_OF_THE_STUDY |= {"env": "env", "vec_env_class": "env", "callback": "a trainer of your own, or leave it out"}
_OF_THE_STUDY |= dict.fromkeys(
    ("env_wrapper", "frame_stack", "vec_env_wrapper"),
    "an env of yours that has it, 'my_module:Name-v0', or leave it out",
)
"""What Stable-Baselines3 and entries of the RL Zoo call more than the agent's, and what says it here."""
COLUMNS = ("seconds", "agent_steps", "return")
CURVE_SUFFIXES = (".csv", ".jsonl")
_PACKAGES = {"rsl-rl": "rsl-rl-lib", "sbx": "sbx-rl"}


@dataclass(frozen=True, kw_only=True)
class TrainerSpec:
    name: str = ""
    """One of `BUILT_IN`, or a function as 'module:name'; empty for a command."""
    command: tuple[str, ...] = ()
    """Its words, with placeholders such as {discount}."""
    words: str = ""
    """The library whose names values have; empty for ours."""
    curve: str = "progress.csv"
    """Where a command writes its learning curve, in its folder: .csv, .jsonl, or 'tensorboard' for event files."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What a command calls `seconds`, `agent_steps` and `return`."""
    num_envs: int = 1
    resume: tuple[str, ...] = ()
    """Words that a command gets besides when it is to go on from what is in its folder; of a function, anything says
    that it can. Without, a run that was stopped begins anew."""
    home: str = ""
    """Where a function's module and a command's files are looked for; changes no number."""

    def __post_init__(self) -> None:
        if bool(self.name) == bool(self.command):
            raise InputError("A trainer is a name or a command: give one of them.")
        name = ALIASES.get(self.name, self.name)
        words = ALIASES.get(self.words, self.words) or (name if name in BUILT_IN else "")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "words", words)
        module, colon, function = name.partition(":")
        is_function = colon and all(part.isidentifier() for part in [*module.split("."), function])
        if name and name not in BUILT_IN and not is_function:
            known = f"give {', '.join(BUILT_IN)}, a function such as 'my_module:train', or a table with a command"
            raise InputError(f"{quote(self.name)} is not a trainer: {known}{did_you_mean(name, [*BUILT_IN, 'sb3'])}")
        if words and words not in LIBRARIES:
            raise unknown_name_error(words, "a library whose words are known", LIBRARIES)
        if name in BUILT_IN and words != name:
            raise InputError(f"words is {quote(self.words)}: {name} has its own.")
        path = Path(self.curve)
        is_inside = not (path.is_absolute() or ".." in path.parts or "{" in self.curve)
        if self.curve != "tensorboard" and not (is_inside and path.suffix in CURVE_SUFFIXES):
            needed = f"give a file {' or '.join(CURVE_SUFFIXES)} in the run's folder, or 'tensorboard'"
            raise InputError(f"curve is {quote(self.curve)}: {needed}.")
        check_counts(self, "num_envs")
        if wrong := [key for key in self.columns if key not in COLUMNS]:
            raise unknown_name_error(wrong[0], "a column", COLUMNS)

    @property
    def label(self) -> str:
        """For people: a command by its script or module."""
        if self.name:
            return self.name
        modules = [word for before, word in pairwise(self.command) if before == "-m"]
        scripts = [Path(word).stem for word in self.command if word.endswith(".py")]
        return next(iter([*modules, *scripts]), Path(self.command[0]).name)

    @property
    def packages(self) -> tuple[str, ...]:
        """Those whose versions a result has."""
        return BUILT_IN.get(self.name, (_PACKAGES.get(self.words, self.words),) if self.words else ())

    def takes(self, name: str) -> bool:
        return not self.command or f"{{{name}}}" in " ".join((*self.command, *self.resume))

    def as_json(self) -> dict[str, Any]:
        usual = TrainerSpec(name="brax")
        data = {key: value for key, value in asdict(self).items() if value != getattr(usual, key) or key == "name"}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in data.items() if value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrainerSpec:
        values: dict[str, Any] = {key: tuple(each) if isinstance(each, list) else each for key, each in data.items()}
        return cls(**values)


def read_trainer(table: Any, home: str) -> TrainerSpec:  # noqa: ANN401 - whatever TOML has
    if isinstance(table, str):
        return TrainerSpec(name=table, home=home)
    if not isinstance(table, Mapping):
        raise InputError(f"trainer is {quote(table)}: give a name such as 'stable-baselines3', or a table [trainer].")
    columns = {key: table[key] for key in COLUMNS if key in table}
    given = {key: value for key, value in table.items() if key not in columns}
    given["columns"] = {**table.get("columns", {}), **columns}
    if given.get("resume") in (True, False):  # a function needs no words
        given["resume"] = ["resume"] if given["resume"] else []
    kinds = {"command": list, "resume": list, "columns": Mapping, "num_envs": int}
    settings = [each.name for each in fields(TrainerSpec)]
    for key, value in given.items():
        if key not in settings:
            raise unknown_name_error(key, "a setting of a trainer", ("zoo", *settings, *COLUMNS))
        kind = kinds.get(key, str)
        texts = value if isinstance(value, list) else value.values() if isinstance(value, Mapping) else ()
        if not isinstance(value, kind) or isinstance(value, bool) or not all(isinstance(each, str) for each in texts):
            needed = {list: "a list of texts", Mapping: "a table of texts", int: "a whole number", str: "a text"}[kind]
            raise InputError(f"trainer has {key} = {quote(value)}: it must be {needed}.")
    return TrainerSpec.from_json({"home": home, **given})


@dataclass(frozen=True)
class ExternalAgent:
    algorithm: str
    trainer: TrainerSpec
    values: Mapping[str, Any]
    """In our names, at the run's cycle time."""
    settings: Mapping[str, Any]
    """All of it in the words that the trainer takes."""
    left_out: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What a rule would change besides, and the study does not give: the trainer has its own."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What those words cannot say exactly, and what the trainer is not given."""

    exploration = None
    random_steps = 0
    capacity = 1

    @property
    def period(self) -> int:
        """The agent steps between two updates, as far as is known; rsl_rl's are whole steps of all environments."""
        each = self.settings.get(RSL_RL.rollout.name)
        return int(self.values.get("batch", 1) if each is None else each * self.trainer.num_envs)

    @property
    def learns_from(self) -> int:
        """The batch, where the trainer is known to take it."""
        return self.period if self.trainer.words or (self.trainer.command and self.trainer.takes("batch")) else 1

    def where(self, simulator: str) -> str:
        """What a result is said to come from."""
        return f"{simulator}, {self.trainer.label}" if simulator else self.trainer.label

    def as_json(self) -> dict[str, Any]:
        return {"trainer": self.trainer.as_json(), "values": dict(self.values), "settings": dict(self.settings)}

    @classmethod
    def from_json(cls, algorithm: str, data: Mapping[str, Any]) -> ExternalAgent:
        return cls(algorithm, TrainerSpec.from_json(data["trainer"]), data["values"], data["settings"])


def tuned_hyperparameters(
    trainer: TrainerSpec | None,
    algorithm: str,
    values: Mapping[str, Any],
    others: Mapping[str, Any],
    tuned_at: Duration,
    tuned_fields: Collection[str] = (),
) -> rules.Hyperparameters:
    """All that is known of a trainer's values: what it is given in our words and in its own, and its defaults."""
    kind = rules.ALGORITHMS[algorithm]
    if trainer is None or not trainer.words:
        sizes = [values[name] for name in ("batch", "minibatch") if name in values]
        if trainer is not None and algorithm == "ppo" and len(sizes) == 1:
            values = {**values, "batch": sizes[0], "minibatch": sizes[0]}  # the paper's other one need not fit
        return kind(dt=tuned_at, tuned_fields=tuned_fields, **values)
    refused = _OF_THE_STUDY if trainer.name == "stable-baselines3" else ("dt", "n_envs")
    for name, said in others.items():
        if name in refused:
            raise InputError(f"{name} is {quote(said)}: leave it to {_OF_THE_STUDY[name].format(quote(said))}.")
    tuned = kind.from_(trainer.words, dt=tuned_at, n_envs=trainer.num_envs, **others)
    return replace(tuned, tuned_fields=tuned_fields, **values)


def external_agent(
    trainer: TrainerSpec,
    algorithm: str,
    values: Mapping[str, Any],
    *,
    dt: Duration,
    tuned_at: Duration | None,
    rule: str | Rule | None,
    others: Mapping[str, Any],
    tuned_fields: Collection[str] = (),
) -> tuple[ExternalAgent, rules.Hyperparameters, rules.Hyperparameters]:
    """What a trainer is given at `dt`, with the values as they were tuned and as a rule carried them.

    `others` are in the trainer's words: where rules know one, such as Stable-Baselines3's n_steps, they carry it too.
    One of one's own, whose defaults nobody knows, is given what the study gives and nothing else.
    """
    tuned = tuned_hyperparameters(trainer, algorithm, values, others, tuned_at or dt, tuned_fields)
    carried = tuned if tuned_at is None else tuned.at(dt, rule)
    known = {**tuned.stated(), **({} if trainer.name == "brax" else tuned.defaults)}  # Playground ships others
    if carried.origin and (unknown := [name for name in carried.stated() if name not in known]):
        given = f"{unknown[0]}, which the study does not give, and what {trainer.label} takes then is not known"
        raise InputError(f"The rule {carried.origin.rule} changes {given}: give it in [tuned].")
    if trainer.words:
        exported = carried.to(trainer.words, trainer.num_envs)
        agent = ExternalAgent(algorithm, trainer, carried.stated(), dict(exported), notes=exported.notes)
        return agent, tuned, carried
    before, after, notes = tuned.stated(), carried.stated(), list[str]()
    own = {name: after[name] for name in after if name in values}
    left_out = {name: value for name, value in after.items() if name not in values and value != before[name]}
    if carried.origin and left_out:
        changes = f"the rule {carried.origin.rule} changes {', '.join(left_out)} too"
        notes.append(f"{changes}, which [tuned] does not give: {trainer.label} has its own.")
    if own.get("batch", 0) % trainer.num_envs:
        several = f"batch {own['batch']} is no multiple of num_envs, {trainer.num_envs}"
        notes.append(f"{several}: {trainer.label} is given it as it is.")
    return ExternalAgent(algorithm, trainer, own, {**own, **others}, left_out, tuple(notes)), tuned, carried
