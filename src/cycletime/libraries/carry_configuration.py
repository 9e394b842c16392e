"""A whole configuration at another cycle time: each setting that means time is carried, kept or named, with its reason.

The agent's values follow a rule; the rest follows what `cycletime.libraries.time_keys` knows of each setting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from cycletime.duration import Duration, DurationLike
from cycletime.errors import InputError, quote
from cycletime.libraries import export_values, read_settings, time_keys
from cycletime.libraries.config_edit import changed_document, is_editable, rewrite_file
from cycletime.libraries.config_files import ConfigFile
from cycletime.libraries.configuration import MANAGED, MJLAB_DEFAULT, Configuration, Side
from cycletime.libraries.names import LIBRARIES, table_names
from cycletime.libraries.on_policy import MANY_ENVIRONMENTS, ONE_ENVIRONMENT, notes_on_environments
from cycletime.libraries.parameters import PICKLED
from cycletime.libraries.plain_yaml import KeyPath
from cycletime.libraries.synonyms import our_fields
from cycletime.libraries.time_keys import TimeChange
from cycletime.libraries.yaml_edit import value_at
from cycletime.libraries.zoo import NOISE, as_zoo_file, with_cycle_time_wrapper
from cycletime.rules import ALGORITHMS, Rule
from cycletime.rules.hyperparameters import Hyperparameters, part_names
from cycletime.rules.quantities import check_count, format_seconds
from cycletime.rules.sac import SAC, OffPolicy

_MOST_NAMED = 5
_MINIBATCHES = "n_minibatches"


class Change(NamedTuple):
    name: str
    old: Any
    """None where the file does not say it."""
    new: Any
    """Of one that is the user's to set, what it would be."""
    treatment: time_keys.Treatment
    reason: str
    file: ConfigFile
    path: KeyPath
    side: Side = "agent"

    @property
    def line(self) -> int | None:
        return None if self.old is None else self.file.line(self.path)


@dataclass(frozen=True)
class CarriedConfiguration:
    before: Configuration
    from_dt: Duration
    to_dt: Duration
    values: Hyperparameters | None
    """The agent's, carried; None where there is an environment alone."""
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    rewritten: Mapping[Path, ConfigFile] = field(default_factory=dict)
    """By path, files that are written in another form than they were read in."""

    @property
    def carried(self) -> list[Change]:
        return [each for each in self.changes if each.treatment == "carried"]

    def changed(self) -> dict[str, Any]:
        return {each.name: each.new for each in self.carried}

    def texts(self) -> tuple[dict[Path, str], tuple[str, ...]]:
        """By file, its text with the new values; and notes on how they were written."""
        texts: dict[Path, str] = {}
        notes: tuple[str, ...] = ()
        for file, changes in self._by_file():
            texts[file.path], more = rewrite_file(file, changes)
            notes += more
        return texts, notes

    def documents(self) -> dict[Path, Any]:
        return {file.path: changed_document(file, changes) for file, changes in self._by_file()}

    def overrides(self) -> tuple[list[str], tuple[str, ...]]:
        """Words for the library's command line, and a note on what has none there."""
        from cycletime.libraries.command_line import PLAYGROUNDS, as_words, playground_words

        library, environment, file = self.before.library or "", self.before.environment, self.before.files[0]
        sections = self.before.sections
        if library in PLAYGROUNDS or environment == "mujoco-playground":
            agent, env = (
                {each.name.removeprefix(sections[side].prefix): each.new for each in self.carried if each.side == side}
                for side in ("agent", "environment")
            )
            return playground_words(agent, env)
        prefix = ""
        if len(sections) == 1 and not any(each.prefix for each in sections.values()):  # a file of Isaac Lab's alone
            of_agent = library in MANY_ENVIRONMENTS or file.path.name == "agent.yaml"
            prefix = "env." if environment else "agent." if of_agent else ""
        named = {prefix + each.name: each.new for each in self.carried}
        return as_words(library, named, file.kind == "flags" or environment == "mjlab"), ()

    def _by_file(self) -> Iterator[tuple[ConfigFile, dict[KeyPath, Any]]]:
        for read in self.before.files:
            changed = {each.path: each.new for each in self.carried if each.file == read}
            yield self.rewritten.get(read.path, read), changed


def carry_configuration(
    configuration: Configuration,
    to_dt: DurationLike | None = None,
    *,
    from_dt: DurationLike | None = None,
    rule: str | Rule | None = None,
    also: str | Collection[str] = (),
    n_envs: int | None = None,
    to_num_envs: int | None = None,
    action_size: int | None = None,
) -> CarriedConfiguration:
    """Carry a configuration to another cycle time, or to another number of environments at the same.

    `from_dt` and `n_envs` are for settings that do not say them; the action's size is for the target entropy.
    """
    if to_dt is None and to_num_envs is None:
        raise InputError("--to is missing: say which cycle time to carry it to, or give --to-num-envs.")
    if to_num_envs is not None:
        check_count("to_num_envs", to_num_envs)
    if problem := next(configuration.problems(), None):
        raise InputError(problem[1])
    before_dt = _from_dt(configuration, from_dt)
    after_dt = before_dt if to_dt is None else Duration(to_dt)
    n_envs = _n_envs(configuration, n_envs)
    if n_envs is None and (to_num_envs or configuration.library == "rl-games"):
        default = configuration.default_n_envs
        what = f"says {default.text}, {MJLAB_DEFAULT}" if default else "does not say the number of environments"
        raise InputError(f"{configuration.name} {what}: give --num-envs{', 1 where that is meant' if default else ''}.")
    transfer = _Transfer(configuration, before_dt, after_dt, n_envs, to_num_envs, rule, part_names(also), action_size)
    _check_physics(configuration, before_dt, after_dt)
    values, rows, notes = transfer.carry_agent() if configuration.library else (None, [], [])
    changes = (*rows, *transfer.carry_environment(), *transfer.carry_num_envs())
    if not changes and after_dt != before_dt:
        raise InputError(f"{configuration.name} has nothing that is known to depend on the cycle time.")
    notes += _notes_on_unknown(configuration)
    if configuration.cycle_time is None and after_dt != before_dt and not configuration.is_zoo_entry:
        notes.append(f"No setting here is the cycle time: set {after_dt} where your environment has it.")
    return CarriedConfiguration(configuration, before_dt, after_dt, values, changes, tuple(notes), transfer.rewritten)


def _check_physics(configuration: Configuration, before_dt: Duration, after_dt: Duration) -> None:
    said = {**{name: each.value for name, each in configuration.canonical.items()}, **configuration.of("environment")}
    time_keys.check_physics(configuration.environment or configuration.library or "", said, before_dt, after_dt)


def _from_dt(configuration: Configuration, given: DurationLike | None) -> Duration:
    sides = [side["action_repeat"] for side in (configuration.env, configuration.agent) if "action_repeat" in side]
    if any(each.value != sides[0].value for each in sides):
        raise InputError(f"{' and '.join(each.text for each in sides)} differ: make them one.")
    stated = configuration.cycle_time
    if stated is None and given is None:
        library = configuration.environment or configuration.library or ""
        names = time_keys.cycle_time_names(library)
        more = f", or give files that say {names}" if names else ""
        if library == "stable-baselines3":
            more = ", which is env.unwrapped.dt of Gymnasium's MuJoCo tasks"
        raise InputError(f"{configuration.name} does not say its cycle time: give it with --from{more}.")
    if stated and given is not None and stated[0] != Duration(given):
        raise InputError(f"{stated[1]} is a cycle time of {stated[0]}, and --from is {Duration(given)}: leave it out.")
    return stated[0] if stated else Duration(given)  # type: ignore[arg-type]  # one of them is there


def _n_envs(configuration: Configuration, given: int | None) -> int | None:
    stated = configuration.n_envs
    said = stated.value if stated and stated.name in configuration.settings else None
    if configuration.is_zoo_entry and "n_envs" in configuration.settings:
        number = configuration.settings["n_envs"].value
        is_whole = isinstance(number, float) and number.is_integer()  # files write counts as 1e1 at times
        said = check_count(f"{configuration.env_id}: n_envs", int(number) if is_whole else number)
    if given is not None and said is not None and given != said:
        raise InputError(f"--num-envs is {given}, and {configuration.name} has {said} environments: leave it out.")
    return said if given is None else check_count("n_envs", given)


def _notes_on_unknown(configuration: Configuration) -> list[str]:
    named = [each.name for each in configuration.may_mean_time]
    notes = []
    if configuration.environment in MANAGED and not configuration.agent:
        notes.append("No agent.yaml is here, so no rollout, mini-batches, discount and trace decay were carried.")
    if named:
        notes.append(f"May mean time and are not known here, so check them: {', '.join(named)}.")
    if configuration.unread:
        notes.append(f"Pickled in the file, and so not read: {', '.join(configuration.unread)}.")
    if left_out := configuration.left_out:
        more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
        notes.append(f"Files of the folder that were not read: {', '.join(left_out[:_MOST_NAMED])}{more}.")
    if others := len(configuration.unknown) - len(named):
        settings, them = ("setting is", "it") if others == 1 else ("settings are", "them")
        notes.append(f"{others} more {settings} kept: nothing known of {them} depends on the cycle time.")
    return notes


def read_as_transfer(configuration: Configuration) -> Hyperparameters | InputError | None:
    """The agent's values as a transfer reads them, or its refusal; None where it would ask for more than there is."""
    has_number = configuration.library not in MANY_ENVIRONMENTS or (configuration.environment and configuration.n_envs)
    try:
        dt = _from_dt(configuration, None if configuration.cycle_time else "1s")
        transfer = _Transfer(configuration, dt, dt, _n_envs(configuration, None), None, None, (), None)
        if configuration.cycle_time:
            _check_physics(configuration, dt, dt)
        return transfer.read() if configuration.table and configuration.uses_defaults and has_number else None
    except InputError as error:
        return error


@dataclass
class _Transfer:
    configuration: Configuration
    from_dt: Duration
    to_dt: Duration
    n_envs: int | None
    to_num_envs: int | None
    rule: str | Rule | None
    also: tuple[str, ...]
    action_size: int | None
    rewritten: dict[Path, ConfigFile] = field(default_factory=dict)

    @property
    def rho(self) -> Fraction:
        return self.to_dt / self.from_dt

    def carry_agent(self) -> tuple[Hyperparameters, list[Change], list[str]]:
        configuration = self.configuration
        library, algorithm = configuration.library, configuration.algorithm
        if library is None or algorithm not in ALGORITHMS:
            named = f"the algorithm {quote(algorithm)}, which has no rule" if algorithm else "no algorithm with a rule"
            remedy = "DQN and others have none. If it is of one that has, say which with --algorithm"
            raise InputError(f"{configuration.name} names {named}: {', '.join(ALGORITHMS)} have one here; {remedy}.")
        library, before = self.library, self.read()
        after = before.at(self.to_dt, self.rule, self.also)
        exported = export_values(_without_noise(after), library, self.to_num_envs or self.n_envs)
        times = self._time_changes(exported.time_changes)
        changed = self._changed_by_rule(exported, {each.name for each in times}, before, after)
        why = {name: self._reason(name, before, after) for name in changed}
        by_rule = [TimeChange(name, None, new, "carried", why[name]) for name, new in changed.items()]
        rows = self._rows("agent", [*by_rule, *times])
        notes = [note for note in exported.notes if not note.startswith(time_keys.TIME_NOTES)]
        if "memory.memory_size" in configuration.of("agent"):
            notes = [note for note in notes if "RandomMemory" not in note]  # the file says it: -1, or as the rollout
        if self.to_num_envs is not None:
            words = LIBRARIES[library].get(algorithm)
            notes += notes_on_environments(words, before, after, self.n_envs or 1, self.to_num_envs)
        if self.n_envs is None and (default := configuration.default_n_envs):
            notes.append(f"{default.text} is {MJLAB_DEFAULT}: the batch is that of one. Give --num-envs.")
        elif self.n_envs is None and (configuration.environment or library in MANY_ENVIRONMENTS):
            notes.append(ONE_ENVIRONMENT)
        if configuration.is_zoo_entry:
            rows, more = self._with_wrapper(rows)
            notes += more
        return after, rows, notes

    def _changed_by_rule(
        self, exported: Mapping[str, Any], others: Collection[str], before: Hyperparameters, after: Hyperparameters
    ) -> dict[str, Any]:
        """Settings that are others now by the rule; what a file does not say is the library's default."""
        words = LIBRARIES[self.library].get(after.algorithm)
        usual = getattr(words, "defaults", {})
        old = export_values(_without_noise(before), self.library, self.n_envs)
        known = {name: value for name, value in {**usual, **old}.items() if value is not None or name not in usual}
        left, number = {*others}, (words.n_envs.name,) if words and words.n_envs else ()
        left |= {"batch_size"} if _MINIBATCHES in old else set()  # which Isaac Lab makes of the others
        new = {name: value for name, value in exported.items() if name not in left and not name.endswith(number)}
        # As tuples, which compare by identity first: a value that is not a number differs from itself.
        changed = {name: value for name, value in new.items() if (value,) != (known.get(name),)}
        if isinstance(before, OffPolicy) and before.noise_std != after.stated().get(NOISE):
            changed[NOISE] = after.stated()[NOISE]
        return changed

    @property
    def library(self) -> str:
        is_isaac_lab = self.configuration.library == "rsl-rl" and "policy.init_noise_std" in self.configuration.agent
        return "isaac-lab" if is_isaac_lab else self.configuration.library or ""

    def read(self) -> Hyperparameters:
        """The agent's values at its own cycle time."""
        configuration, library, kind = self.configuration, self.library, ALGORITHMS[self.configuration.algorithm or ""]
        settings = configuration.of("agent")
        words = LIBRARIES[library].get(kind.algorithm)
        number = words.n_envs.name if words and words.n_envs else "n_envs"
        names = time_keys.canonical_names(library, settings, {number})
        said = {name: value for name, value in settings.items() if names[name] not in (number, "n_envs")}
        said |= dict.fromkeys(table_names(words) & {*self.configuration.unread}, PICKLED)
        if _MINIBATCHES in said and library == "stable-baselines3":  # Isaac Lab's, which makes a batch_size of it
            rollouts, count = said.get("n_steps"), said[_MINIBATCHES]
            if not isinstance(rollouts, int) or not isinstance(count, int) or count < 1 or self.n_envs is None:
                asks = "give n_steps, and --num-envs"
                raise InputError(f"{configuration.name} counts mini-batches ({_MINIBATCHES}): {asks}.")
            said["batch_size"] = int(Fraction(rollouts * self.n_envs, count))
        if self.action_size is not None and issubclass(kind, SAC):
            said["action_size"] = self.action_size
        values = read_settings(kind, library, self.from_dt, self.n_envs or 1, said)
        if "exploration-noise" not in self.also or not self.configuration.is_zoo_entry:
            return values
        noise = settings.get(NOISE)
        if not isinstance(values, OffPolicy) or isinstance(noise, bool) or not isinstance(noise, int | float):
            raise InputError(
                f"exploration-noise is not a single number in this entry, as a {NOISE} of sac, tqc, td3 or ddpg would "
                "be: leave it out and set the noise by hand."
            )
        return replace(values, noise_std=noise)

    def _time_changes(self, found: Collection[TimeChange]) -> list[TimeChange]:
        """Those of the agent's side; how rewards are to be scaled depends on how the environment pays them."""
        if self.library != "mujoco-playground" or self.rho == 1:
            return list(found)
        settings = self.configuration.of("agent")
        both = {**settings, **self.configuration.of("environment")}
        keys = time_keys.environment_keys(self.library, both, trainer=True)
        tables = table_names(self.configuration.table)
        left = [name for name in settings if name not in tables]
        return time_keys.carry_time_keys(self.library, settings, self.rho, left, keys)

    def _with_wrapper(self, rows: list[Change]) -> tuple[list[Change], list[str]]:
        """What the Zoo has besides: a wrapper that makes the cycle; and a saved configuration becomes an entry."""
        configuration, root = self.configuration, self.configuration.sections["agent"]
        notes: list[str] = []
        if not is_editable(root.file):
            env_id = configuration.env_id
            if env_id is None:
                raise InputError(f"{configuration.name} does not say its environment: name it with --env.")
            text, more = as_zoo_file(root.file.text, env_id)
            document = {env_id: root.file.document}
            self.rewritten[root.file.path] = ConfigFile(root.file.path, "yaml", text, document)
            rows = [each._replace(path=(env_id, *each.path)) for each in rows]
            notes += more
        if self.rho != 1:
            old = value_at(root.file.document, root.path).get("env_wrapper")
            wrappers, note = with_cycle_time_wrapper(old, configuration.env_id, self.from_dt, self.to_dt)
            notes.append(note)
            if wrappers:
                path = (*((configuration.env_id,) if self.rewritten else root.path), "env_wrapper")
                rows.append(Change("env_wrapper", old, wrappers, "carried", "it sets the cycle time", root.file, path))
        return rows, notes

    def carry_environment(self) -> list[Change]:
        environment = self.configuration.environment
        if environment is None:
            return []
        settings = self.configuration.of("environment")
        keys = time_keys.environment_keys(environment, settings, trainer=False)
        envs = Fraction(self.to_num_envs or 1, (self.n_envs if self.to_num_envs else None) or 1)
        changes = time_keys.carry_time_keys(environment, settings, self.rho, list(settings), keys, envs)
        return self._rows("environment", changes)

    def carry_num_envs(self) -> list[Change]:
        if self.to_num_envs is None or self.to_num_envs == self.n_envs:
            return []
        names = ("scene.num_envs", "n_envs", "num_envs", "params.config.num_actors")
        written = 1 if self.configuration.default_n_envs else self.n_envs
        rows: list[Change] = []
        for side in self.configuration.sections:
            said = [name for name, value in self.configuration.of(side).items() if name in names and value == written]
            rows += self._rows(side, [TimeChange(name, None, self.to_num_envs, "carried", "as asked") for name in said])
        return rows

    def _rows(self, side: Side, changes: Collection[TimeChange]) -> list[Change]:
        """Changes by their full names, with what the files say and where."""
        root, rows = self.configuration.sections[side], []
        for each in changes:
            setting = self.configuration.settings.get(root.prefix + each.name)
            path = setting.path if setting else (*root.path, *each.name.split("."))  # left to the library
            said = (root.prefix + each.name, setting.value if setting else None, each.new, each.treatment, each.reason)
            rows.append(Change(*said, root.file, path, side))
        return rows

    def _reason(self, name: str, before: Hyperparameters, after: Hyperparameters) -> str:
        """The rule's formula for what a name means, and its seconds before and after."""
        table = LIBRARIES[self.library].get(after.algorithm)
        canonical = time_keys.canonical_names(self.library, [name], table_names(table))[name]
        usual = "updates_per_step" if canonical in getattr(table, "said_together", ()) else canonical
        ours = our_fields(self.library, after.algorithm).get(canonical, usual)
        law = after.origin.laws.get(ours) if after.origin else None
        formula = law.formula if law else f"rule '{after.origin.rule}'" if after.origin else "the rule"
        spans = [each.seconds().get(ours) for each in (before, after)]
        texts = list(dict.fromkeys(format_seconds(span) for span in spans if span is not None))
        return ", ".join(each for each in (f"{ours}: {formula}", " -> ".join(texts)) if each)


def _without_noise(values: Hyperparameters) -> Hyperparameters:
    """The values that a library has settings for: the noise of Stable-Baselines3 is an object."""
    source = values.library_source
    if isinstance(values, OffPolicy) and source and source.library in ("stable-baselines3", "sbx"):
        return replace(values, noise_std=None)
    return values
