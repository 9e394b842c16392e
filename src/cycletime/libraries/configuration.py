"""Whole configurations of other libraries: a file or folder becomes settings with dotted names, each with its place.

Sizes are bounded, nothing is executed, and nothing that was pickled is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard

from cycletime.duration import Duration
from cycletime.errors import InputError, unknown_name_error
from cycletime.libraries import time_keys
from cycletime.libraries.config_files import ConfigFile, is_pickled, read_config_file
from cycletime.libraries.names import LIBRARIES, PREFIXES, Table, library_name, table_names
from cycletime.libraries.on_policy import Brax, Counted, Puffer, Sized
from cycletime.libraries.parameters import DISCOUNT, NUMBER, POSITIVE, SHARE, WHOLE, ParamName, fits, is_near
from cycletime.libraries.plain_yaml import KeyPath, is_saved_ordered_dict, repeated_keys
from cycletime.libraries.recognise import is_zoo_file, recognise_algorithm, recognise_parts, simulated_environment
from cycletime.libraries.yaml_edit import effective_entry
from cycletime.rules import ALGORITHMS
from cycletime.rules.quantities import decay_in_seconds, format_seconds

MJLAB_DEFAULT = "mjlab's default, which its command line replaces, and so taken as not said"
MANAGED = ("isaac-lab", "mjlab")
"""Libraries whose runs have an env.yaml of managers beside an agent.yaml."""
_ENVIRONMENTS = (*MANAGED, "mujoco-playground")
RUN_FILES = (
    *(("params/env.yaml",), ("params/agent.yaml",), ("env.yaml", "agent.yaml")),
    *(("config.yml", "args.yml"), ("train_config.json",)),
)
"""What libraries write for one run: the files that tell its folder."""
_FOLDER_FILES = ("params/env.yaml", "params/agent.yaml", "env.yaml", "agent.yaml")
_ZOO_RUN = {"config.yml", "args.yml"}
_SUFFIXES = (".json", ".yaml", ".yml", ".zip")
_MOST_FILES = 40
_LONG_NUMBER = re.compile(r"\d+\.\d{7,}")
_COUNTS = ("rollout", "size", "unroll", "horizon", "count", "minibatch", "trajectories")
_EXPONENT = re.compile(r"[-+]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})[eE][-+]?\d{1,4}")
Side: TypeAlias = Literal["agent", "environment"]


@dataclass(frozen=True)
class Setting:
    name: str
    """Dotted, as overrides on the library's command line write it: env.decimation."""
    value: Any
    place: str = ""
    """File and line, for people."""
    comment: str = ""
    file: ConfigFile | None = None
    """None where it stands in Python source."""
    path: KeyPath = ()

    @property
    def line(self) -> int | None:
        return self.file.line(self.path) if self.file else None

    @property
    def numbers(self) -> list[float]:
        """The value, or a list's items; none where any of them is no number."""
        items = self.value if isinstance(self.value, list) else [self.value]
        return items if all(type(each) in (int, float) for each in items) else []

    @property
    def text(self) -> str:
        value = f"{self.value:.6g}" if isinstance(self.value, float) else str(self.value)
        # What a table fills in stands in no file.
        return f"{self.name} {value}" + (" (default)" if self.comment == "default" and not self.place else "")


@dataclass(frozen=True)
class Configuration:
    """Settings of an agent and of an environment, of which either may be missing."""

    name: str
    library: str | None = None
    """The agent's."""
    environment: str | None = None
    """The library of the environment's settings: isaac-lab, mjlab, mujoco-playground, legged-gym or isaac-gym;
    a deployment runs a policy that was trained elsewhere."""
    algorithm: str | None = None
    """None where the files name none; it may be one without a rule."""
    agent: Mapping[str, Setting] = field(default_factory=dict)
    """By name, without what names of the side begin with: decimation."""
    env: Mapping[str, Setting] = field(default_factory=dict)
    uses_defaults: bool = True
    """Whether what is not said is the library's default; not so where a base class may say it that was not read."""
    given_dt: Duration | None = None
    """The cycle time that the user says, where the settings do not."""
    unseen: tuple[str, ...] = ()
    """Base classes that were not found."""
    files: tuple[ConfigFile, ...] = ()
    sections: Mapping[Side, Section] = field(default_factory=dict)
    is_zoo_entry: bool = False
    """Whether the settings are the RL Zoo's, which passes all but a few on to Stable-Baselines3."""
    env_id: str | None = None
    """The environment's name, where a file or the user says it."""
    unread: tuple[str, ...] = ()
    """Settings that are pickled, and so were not read."""
    left_out: tuple[str, ...] = ()
    """Files of the folder that could be a configuration and were not taken."""

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """What would be passed over, by kind, in a sentence, with its place: a file, a name or a value."""
        for name in self.left_out:
            if name in _FOLDER_FILES:
                names = "sim and decimation, or of algorithm and num_steps_per_env"
                mend = f"mend the name in it that is missing or misspelt (of {names}), or give the other alone"
                yield "not-recognised", f"{name} is of no library that was recognised: {mend}.", name
        cycle_needs = time_keys.time_needs(self.environment or self.library or "")
        of_cycle = [*cycle_needs]
        tables = table_names(self.table)
        for side, known in ((self.env, of_cycle[:1] + of_cycle[1:][-1:]), (self.canonical, sorted(tables))):
            missing = [name for name in known if name not in side]
            for name, each in side.items():
                if meant := next((one for one in missing if name not in tables and is_near(name, one)), None):
                    yield "misspelt", f"{each.name} is no setting that is known; did you mean {meant}?", each.place
        words = {"discount": DISCOUNT, "trace_decay": SHARE, **dict.fromkeys(_COUNTS, WHOLE)}
        needed = {word.name: needs for each, needs in words.items() if (word := getattr(self.table, each, None))}
        needed |= {**cycle_needs, "episode_length_s": POSITIVE, **({"n_timesteps": WHOLE} if self.is_zoo_entry else {})}
        needed |= dict.fromkeys(("scene.num_envs", "num_envs", "num_learning_epochs", "num_updates_per_batch"), WHOLE)
        needs_number = {
            each.name: NUMBER for each, key, is_pay in self.timed if time_keys.is_no_number(key, is_pay, each.value)
        }
        for name, needs in (needs_number | needed).items():
            stated = self.canonical.get(name) or self.env.get(name) or self.settings.get(name)
            if stated and not self._fits(stated, needs):
                as_yaml = f"; YAML reads a number from !!float {stated.value}" if _is_exponent(stated.value) else ""
                says = f"{stated.name} is {stated.value!r}: it must be {needs}{as_yaml}."
                yield "impossible", says, stated.place
        for each in self.env.values():
            is_range = each.name.endswith(("_range_s", "_time_range"))
            if is_range and (each.numbers != sorted(each.numbers) or min(each.numbers, default=0) < 0):
                says = f"{each.name} is {each.value}: it must begin with the shortest time, which is at least 0."
                yield "impossible", says, each.place

    def _fits(self, stated: Setting, needs: str) -> bool:
        value = stated.value
        if stated.numbers != [value]:
            # What another program fills in, or what source computes.
            return "${" in value if isinstance(value, str) else value is None and not self.uses_defaults
        return fits(value, needs)

    def of(self, side: Side) -> dict[str, Any]:
        """One side's values by their local names."""
        return {name: each.value for name, each in (self.agent if side == "agent" else self.env).items()}

    @cached_property
    def settings(self) -> dict[str, Setting]:
        return {each.name: each for side in (self.env, self.agent) for each in side.values()}

    @cached_property
    def cycle_time(self) -> tuple[Duration, str] | None:
        values = self.of("environment")
        agent = {name: each.value for name, each in self.canonical.items()}
        if "action_repeat" in agent:
            values.setdefault("action_repeat", agent["action_repeat"])
        stated = time_keys.stated_cycle_time(self.environment, values) if self.environment else None
        try:
            stated = stated or time_keys.stated_cycle_time(self.library or "", agent)
        except InputError as error:
            raise InputError(f"{self.name}: the cycle time of {self.env_id or self.library}: {error}") from error
        if stated:
            return stated[0], _LONG_NUMBER.sub(lambda number: f"{float(number.group()):.6g}", stated[1])
        return (self.given_dt, "as given") if self.given_dt else None

    @property
    def dt_s(self) -> float | None:
        return float(self.cycle_time[0]) if self.cycle_time else None

    def seconds(self, steps: float, form: str = " ({})") -> str:
        """So many agent steps in seconds, for a sentence; nothing where no cycle time is known."""
        return form.format(format_seconds(steps * self.dt_s)) if self.dt_s else ""

    def span(self, steps: float) -> str:
        return self.seconds(steps, "{}") or f"{round(steps, 2):.12g} step{'' if steps == 1 else 's'}"

    @property
    def spans(self) -> dict[str, float | None]:
        """The agent's times in its steps."""
        rollout = self.rollout.value if self.rollout else None
        training = self.training_steps[1] if self.training_steps else None
        return {"discount": self.discount_steps, "trace": self.trace_steps, "rollout": rollout, "training": training}

    @cached_property
    def physics_dt_s(self) -> float | None:
        name = time_keys.physics_step_name(self.environment or self.library or "")
        return self.positive(self.setting(name, "sim.dt"))

    @cached_property
    def table(self) -> Table | None:
        """The library's names for the agent's values, if its algorithm has a rule."""
        return LIBRARIES.get(self.library or "", {}).get(self.algorithm or "")

    @cached_property
    def _names(self) -> dict[str, str]:
        return time_keys.canonical_names(self.library or "", self.agent, table_names(self.table))

    @cached_property
    def canonical(self) -> Mapping[str, Setting]:
        """The agent's settings by the names that the tables have."""
        prefixes = [prefix for prefix, _ in PREFIXES.get(self.library or "", ())]
        found = {self._names[name]: each for name, each in self.agent.items()}
        for name, each in self.agent.items():  # what tables do not have: training lengths, epochs
            bare = next((name.removeprefix(prefix) for prefix in prefixes if name.startswith(prefix)), name)
            found.setdefault(bare, each)
        return found

    @cached_property
    def timed(self) -> list[tuple[Setting, time_keys.TimeKey, bool]]:
        """What means time beside the tables' values, what a transfer does with it, and whether it weighs rewards."""
        stated, env = {self._names[name]: each for name, each in self.agent.items()}, self.of("environment")
        agent, kind, library = {name: each.value for name, each in stated.items()}, self.environment, self.library or ""
        both = {**agent, **env}
        of_trainer = time_keys.environment_keys(library, both, trainer=True) if library == "mujoco-playground" else None
        left = [name for name in agent if name not in table_names(self.table)]
        of_env = (
            time_keys.applied_keys(kind, env, env, time_keys.environment_keys(kind, env, trainer=False)) if kind else ()
        )
        sides = ((self.env, of_env), (stated, time_keys.applied_keys(library, agent, left, of_trainer)))
        is_weight = time_keys.WEIGHT.search
        return [(side[name], key, bool(is_weight(kind))) for side, found in sides for name, kind, key in found]

    @cached_property
    def unknown(self) -> list[Setting]:
        known = {each.name for each, *_ in self.timed}
        by_rule = [each.name for name, each in self.agent.items() if self._names[name] in table_names(self.table)]
        return [each for each in self.settings.values() if each.name not in known and each.name not in by_rule]

    @property
    def may_mean_time(self) -> list[Setting]:
        """Unknown settings with the name of a time and a number other than 0, or several."""
        return [each for each in self.unknown if time_keys.looks_like_time(each.name) and any(each.numbers)]

    def setting(self, *names: str) -> Setting | None:
        """The first of these that the agent's or the environment's settings have with a number."""
        for side in (self.canonical, self.env):
            for name in names:
                if name in side and self.positive(side[name]) is not None:
                    return side[name]
        return None

    def _parameter(self, word: ParamName | None) -> Setting | None:
        if word is None:
            return None
        if (found := self.setting(word.name)) or word.name in self.canonical:
            return found
        usual = self.uses_defaults and word.default is not None
        return Setting(word.name, word.default, comment="default") if usual else None

    @staticmethod
    def positive(stated: Setting | None) -> float | None:
        """The value, if it is a number above 0 and no sentinel such as 1e30."""
        is_number = stated is not None and stated.numbers == [stated.value] and 0 < stated.value < 1e15
        return float(stated.value) if stated and is_number else None

    @cached_property
    def discount(self) -> Setting | None:
        return self._decay("discount")

    @cached_property
    def trace_decay(self) -> Setting | None:
        return self._decay("trace_decay")

    def _decay(self, field_name: str) -> Setting | None:
        stated = self._parameter(getattr(self.table, field_name, None))
        return stated if stated and 0 < stated.value <= 1 else None

    @property
    def default_n_envs(self) -> Setting | None:
        """The one environment that is mjlab's default, and as good as not said."""
        found = self.env.get("scene.num_envs") if self.environment == "mjlab" else None
        return found if found and found.value == 1 else None

    @cached_property
    def n_envs(self) -> Setting | None:
        word = getattr(self.table, "n_envs", None)
        names = ("scene.num_envs", "env.num_envs", "num_envs", "n_envs", "num_actors", "env.numEnvs")
        found = self.setting(*([word.name] if word else []), *names)
        if found and self.default_n_envs:
            return None
        if self.is_zoo_entry and "n_envs" not in self.agent:
            return Setting("n_envs", 1, comment="default")
        return found if found and isinstance(found.value, int) else None

    @cached_property
    def rollout(self) -> Setting | None:
        """Steps of each environment from one update to the next."""
        words = self.table
        if not isinstance(words, Sized):
            names: dict[type, str] = {Counted: "rollout", Brax: "unroll", Puffer: "horizon"}
            return self._count(names.get(type(words), ""))
        size = self._count("size")
        if size is None or words.size_is_per_env:
            return size
        return Setting(size.name, size.value // self.n_envs.value, size.place) if self.n_envs else None

    def _count(self, field_name: str) -> Setting | None:
        stated = self._parameter(getattr(self.table, field_name, None))
        is_whole = stated is not None and float(stated.value).is_integer()
        return replace(stated, value=int(stated.value)) if stated and is_whole else None

    @cached_property
    def batch(self) -> int | None:
        """Samples from one update to the next."""
        words = self.table
        if isinstance(words, Brax):
            sizes = [self._parameter(words.trajectories), self._parameter(words.count), self.rollout]
            return int(sizes[0].value * sizes[1].value * sizes[2].value) if all(sizes) else None  # type: ignore[union-attr]
        return self.rollout.value * self.n_envs.value if self.rollout and self.n_envs else None

    @cached_property
    def minibatch_count(self) -> Setting | None:
        return self._count("count")

    @cached_property
    def minibatch_size(self) -> Setting | None:
        return self._count("minibatch") if isinstance(self.table, Sized | Puffer) else None

    @cached_property
    def epochs(self) -> Setting | None:
        names = ("num_learning_epochs", "algorithm.num_learning_epochs", "learning_epochs", "mini_epochs", "n_epochs")
        return self.setting(*names, "update_epochs", "num_updates_per_batch", "agent.learning_epochs")

    @cached_property
    def episode(self) -> tuple[Setting, float] | None:
        """The longest episode, in seconds."""
        names = ("episode_length_s", "env.episode_length_s", "scene.max_episode_length_s", "env.learn.episodeLength_s")
        if found := self.setting(*names):
            return found, float(found.value)
        in_steps = () if self.environment in MANAGED else ("episode_length", "env.episode_length")
        found = self.setting(*in_steps, "env.episodeLength")
        return (found, found.value * self.dt_s) if found and self.dt_s else None

    @cached_property
    def training_steps(self) -> tuple[Setting, float] | None:
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

    @cached_property
    def trace_steps(self) -> float | None:
        """Steps after which gamma lambda, the weight of what an advantage takes from later steps, is 1/e."""
        if self.discount is None or self.trace_decay is None:
            return None
        return decay_in_seconds(self.discount.value * self.trace_decay.value, 1.0)

    @property
    def curricula(self) -> list[Setting]:
        """Settings that count steps until a curriculum changes something."""
        return [each for each, key, _ in self.timed if key.reason == time_keys.CURRICULUM and self.positive(each)]


class UnrecognisedError(InputError):
    """A file that was read, and is of no library that is known here."""


def read_configuration(
    path: Path,
    *,
    library: str | None = None,
    algorithm: str | None = None,
    env_id: str | None = None,
    files: Sequence[ConfigFile] = (),
) -> Configuration:
    """What a path says, or its files that were read; `env_id` is a Zoo file's entry, else the environment's name."""
    if library is not None and (library := library_name(named := library)) not in (*LIBRARIES, *_ENVIRONMENTS):
        raise unknown_name_error(named, "a library that is known here", [*LIBRARIES, "mjlab"])
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise unknown_name_error(algorithm, "an algorithm with a rule", list(ALGORITHMS))
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    files = files or (_files_in(path) if path.is_dir() else [read_config_file(path)])
    if is_saved_ordered_dict(files[0].text) and path.name == "config.yml" and path.with_name("args.yml").is_file():
        files = [*files, read_config_file(path.with_name("args.yml"))]
    folders = {file.path.parent for file in files} if path.is_dir() else set()
    beside = {each for folder in folders for each in (*_candidates(folder), *path.glob("*/**/params/*.yaml"))}
    saved = [file for file in files if file.path.name == "args.yml"]
    if saved and len(files) > 1:  # what the Zoo was started with, beside what it trained with
        files = [file for file in files if file not in saved]
        algorithm = algorithm or saved[0].document.get("algo")
        env_id = env_id or saved[0].document.get("env")
    sections = [section for file in files for section in _sections(file, library, env_id, in_folder=path.is_dir())]
    if not sections:
        if kind := simulated_environment(files[0].document):
            raise InputError(f"{path} is of {kind}, which 'cycletime explain' reads and nothing carries.")
        has = ", ".join(str(name) for file in files for name in list(file.document)[:6]) or "nothing"
        says = f"{path} is of no library that was recognised (it has {has}): give --library, one of "
        raise UnrecognisedError(f"{says}{', '.join(LIBRARIES)}.")
    used = {each.file.path for each in sections} | {each.path for each in saved}
    agent, environment = _only(path, "agent", sections), _only(path, "environment", sections)
    found = agent.agent if agent else None
    if found == "brax" and environment and environment.environment == "mujoco-playground":
        found = "mujoco-playground"
    return Configuration(
        str(path),
        found,
        environment.environment if environment else None,
        agent.algorithm(algorithm) if agent else algorithm,
        agent.settings() if agent else {},
        environment.settings() if environment else {},
        files=tuple(files),
        sections={section.side: section for section in sections},
        is_zoo_entry=agent is not None and agent.is_zoo_entry,
        env_id=env_id,
        unread=tuple(name for section in sections for name in section.unread()),
        left_out=tuple(sorted(each.relative_to(path).as_posix() for each in beside - used)),
    )


def _only(path: Path, side: Side, sections: list[Section]) -> Section | None:
    found = [section for section in sections if section.side == side]
    if len(found) > 1:
        names = ", ".join(".".join([section.file.path.name, *map(str, section.path)]) for section in found)
        raise InputError(f"{path} has the settings of {len(found)} {side}s ({names}): give one file of them.")
    return found[0] if found else None


def _files_in(folder: Path) -> list[ConfigFile]:
    if found := [folder / name for name in _FOLDER_FILES if (folder / name).is_file()]:
        return [read_config_file(path) for path in found]
    inside = _candidates(folder)
    recognised = _recognised_files(inside[:_MOST_FILES])
    if not recognised and (runs := sorted(folder.glob("**/params/env.yaml"))):
        raise InputError(f"{folder} has runs in it: give the folder of one, such as {runs[-1].parents[1]}.")
    if all(each.suffix == ".zip" for each in inside):
        # The Zoo's folder of a run has one for the environment beside its agents, LeRobot's one for the policy.
        inner = [_candidates(each) for each in folder.iterdir() if each.is_dir()]
        nested = [each[0].parent for each in inner if {one.name for one in each} >= _ZOO_RUN or (each and not inside)]
        if len(nested) == 1:
            return _files_in(nested[0])
    for names in RUN_FILES:
        if all(folder / name in inside for name in names):
            return [read_config_file(folder / name) for name in names]
    if len(inside) > _MOST_FILES:
        raise InputError(f"{folder} has {len(inside)} files that could be a configuration: give one of them.")
    if not inside:
        known = "params/env.yaml and params/agent.yaml, config.yml with args.yml, train_config.json, or another"
        files = f"{known} .yaml, .json or .zip; of several runs give one"
        raise InputError(f"{folder} has no configuration that is known here: expected {files}.")
    return recognised or [read_config_file(inside[0])]


def _candidates(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.suffix in _SUFFIXES and each.is_file())


def _recognised_files(paths: list[Path]) -> list[ConfigFile]:
    recognised = []
    for path in paths:
        with suppress(InputError):
            file = read_config_file(path)
            if file.kind == "zip" or recognise_parts(file.document):
                recognised.append(file)
    return [file for file in recognised if file.path.suffix != ".zip"] or recognised


@dataclass(frozen=True)
class Section:
    file: ConfigFile
    path: KeyPath
    prefix: str
    """What the settings' names begin with."""
    values: Mapping[Any, Any]
    agent: str | None
    environment: str | None
    is_zoo_entry: bool = False

    def __post_init__(self) -> None:
        """Refuse a library none of whose settings is there, where another's are."""
        others = [part.agent for part in recognise_parts(self.values) if part.agent not in (None, self.agent)]
        known = {name for words in LIBRARIES.get(self.agent or "", {}).values() for name in table_names(words)}
        names = [name for name, _, _ in _flatten(self.values, ())] if others and known else []
        if names and not known & {*time_keys.canonical_names(self.agent or "", names, known).values()}:
            what = f"is of {others[0]} and has no setting of {self.agent}"
            raise InputError(f"{self.file.path} {what}: leave --library out.")

    @property
    def side(self) -> Side:
        return "agent" if self.agent else "environment"

    def algorithm(self, asked: str | None) -> str | None:
        values = {name: value for name, _, value in _flatten(self.values, ())}
        of_file = self.file.path.stem.lower().partition("-")[0] if self.is_zoo_entry else ""  # no entry says it
        return recognise_algorithm(self.agent, values, asked, of_file) if self.agent else asked

    def settings(self) -> dict[str, Setting]:
        if not self.is_zoo_entry and self.file.kind == "yaml":
            for span in self.file.nearest_span(self.path).walk():
                if twice := repeated_keys(span):
                    raise InputError(f"{self.file.path}: {twice[0]!r} is there twice; keep one of them.")
        found = {}
        for name, path, value in _flatten(self.values, self.path):
            if _is_exponent(value) and not self.is_zoo_entry:
                value = float(value)
            if not is_pickled(value):
                found[name] = Setting(self.prefix + name, value, file=self.file, path=path)
        return found

    def unread(self) -> list[str]:
        return [self.prefix + name for name, _, value in _flatten(self.values, ()) if is_pickled(value)]


def _is_exponent(value: object) -> TypeGuard[str]:
    """Whether it is text to YAML, as 1e-4 is, and a number to the libraries."""
    return isinstance(value, str) and bool(_EXPONENT.fullmatch(value))


def file_settings(file: ConfigFile) -> dict[str, Setting]:
    return Section(file, (), "", file.document, None, None).settings()


def _flatten(values: Any, path: KeyPath, prefix: str = "") -> Iterator[tuple[str, KeyPath, Any]]:  # noqa: ANN401
    """Dotted names, paths and values; the mappings in lists are gone into as well, by their number."""
    items = values.items() if isinstance(values, Mapping) else enumerate(values)
    for key, value in items:
        name, place = f"{prefix}{key}", (*path, key if isinstance(key, int) else str(key))
        is_mapping = isinstance(value, Mapping) and bool(value) and not is_pickled(value)
        if is_mapping or (isinstance(value, list) and any(isinstance(each, Mapping) for each in value)):
            yield from _flatten(value, place, f"{name}.")
        else:
            yield name, place, value


def _sections(file: ConfigFile, library: str | None, env_id: str | None, in_folder: bool) -> list[Section]:
    document: Mapping[Any, Any] = file.document
    is_saved = file.kind == "yaml" and is_saved_ordered_dict(file.text)
    if file.kind == "zip" or is_saved:
        return [Section(file, (), "", document, "stable-baselines3", None, is_zoo_entry=is_saved)]
    if library in (None, "stable-baselines3", "sbx") and (
        (env_id in document and isinstance(document[env_id], Mapping)) or is_zoo_file(document)
    ):
        if env_id is None:
            entries = ", ".join(map(str, list(document)[:8]))
            raise InputError(f"{file.path} is an RL Zoo file: say which entry with --env, such as one of {entries}.")
        entry = effective_entry(file.document, file.root, env_id)
        return [Section(file, (env_id,), "", entry, library or "stable-baselines3", None, is_zoo_entry=True)]
    run_side = {"env.yaml": "env.", "agent.yaml": "agent."}.get(file.path.name, "") if in_folder else ""
    if library is not None and not any(part.environment for part in recognise_parts(document)):
        is_managed = library in MANAGED
        environment = library if is_managed and "decimation" in document else None
        agent = None if environment else "rsl-rl" if is_managed else library
        return [Section(file, (), run_side, document, agent, environment)]
    sections = []
    for part in recognise_parts(document):
        values: Mapping[Any, Any] = document
        for name in part.path:
            values = values[name]
        prefix = run_side + "".join(f"{name}." for name in part.path)
        agent = library if part.agent and library and library not in _ENVIRONMENTS else part.agent
        environment = part.environment
        if agent and environment:  # in one mapping they cannot be told apart
            agent, environment = environment, None
        sections.append(Section(file, part.path, prefix, values, agent, environment))
    return sections
