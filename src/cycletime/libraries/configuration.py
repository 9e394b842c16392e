"""Whole configurations of other libraries: a file or folder becomes settings with dotted names, each with its place.

Isaac Lab's and mjlab's run folders, settings of rsl_rl, skrl, rl_games, brax, MuJoCo Playground and LeRobot, files of
the RL Zoo and what it saves, Stable-Baselines3's `model.zip`, CleanRL's flags. Sizes are bounded, nothing is executed,
and nothing that was pickled is opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

from cycletime.duration import Duration
from cycletime.errors import InputError, unknown_name_error
from cycletime.libraries.config_files import ConfigFile, is_pickled, read_config_file
from cycletime.libraries.names import ALIASES, LIBRARIES, RATES
from cycletime.libraries.off_policy import OffPolicyTable
from cycletime.libraries.on_policy import OnPolicyTable
from cycletime.libraries.plain_yaml import KeyPath, is_saved_ordered_dict, repeated_keys
from cycletime.libraries.recognise import LOOKED_FOR, is_zoo_file, recognise_algorithm, recognise_parts
from cycletime.libraries.time_keys import (
    ENVIRONMENT_KEYS,
    canonical_names,
    environment_keys,
    find_key,
    means_time,
    stated_cycle_time,
    table_names,
)
from cycletime.libraries.yaml_edit import effective_entry
from cycletime.rules import ALGORITHMS

Side: TypeAlias = Literal["agent", "environment"]

_ENVIRONMENTS = ("isaac-lab", "mjlab", "mujoco-playground")
_FOLDER_FILES = ("params/env.yaml", "params/agent.yaml", "env.yaml", "agent.yaml")
_SUFFIXES = (".json", ".yaml", ".yml", ".zip")
_MOST_FILES = 40
_EXPONENT = re.compile(r"[-+]?(\d{1,30}\.?\d{0,30}|\.\d{1,30})[eE][-+]?\d{1,4}")


class UnrecognisedError(InputError):
    """A file that was read, and is of no library that is known here."""


@dataclass(frozen=True)
class Setting:
    """One value of a configuration."""

    name: str
    """Dotted, as overrides on the library's command line write it: env.decimation."""
    value: Any
    file: ConfigFile
    path: KeyPath
    """The keys and positions that lead to it in the file."""
    side: Side
    local_name: str
    """Without what the side's names begin with: decimation."""

    @property
    def line(self) -> int | None:
        return self.file.line(self.path)


class SectionRoot(NamedTuple):
    """Where the settings of one side stand."""

    file: ConfigFile
    path: KeyPath
    prefix: str
    """What their names begin with."""


@dataclass(frozen=True)
class Configuration:
    """What a library's files say."""

    source: Path
    files: tuple[ConfigFile, ...]
    library: str | None
    """The agent's library; None where there is an environment alone."""
    environment: str | None
    """The library of the environment's settings, if there are any: isaac-lab, mjlab or mujoco-playground."""
    algorithm: str | None
    """None where the library's files name none that has a rule here."""
    settings: Mapping[str, Setting]
    roots: Mapping[Side, SectionRoot]
    is_zoo_entry: bool = False
    """Whether the settings are the RL Zoo's, which passes all but a few on to Stable-Baselines3."""
    env_id: str | None = None
    """The environment's name, where a file or the user says it."""
    unread: tuple[str, ...] = ()
    """Settings that are pickled, and so were not read."""

    def of(self, side: Side) -> dict[str, Any]:
        """One side's values by their local names."""
        return {each.local_name: each.value for each in self.settings.values() if each.side == side}

    @property
    def table(self) -> OnPolicyTable | OffPolicyTable | None:
        """The library's names for the agent's values, if its algorithm has a rule."""
        return (
            LIBRARIES[self.library].of(self.algorithm or "") if self.library and self.algorithm in ALGORITHMS else None
        )

    @cached_property
    def n_envs(self) -> int | None:
        """The number of parallel environments, if it is said."""
        words = self.table
        agent, environment = self.of("agent"), self.of("environment")
        names = [words.n_envs.name] if words and words.n_envs else []
        names += ["n_envs", "num_envs", "params.config.num_actors", "config.num_actors"]
        candidates = [agent.get(name) for name in names] + [environment.get("scene.num_envs")]
        return next((each for each in candidates if type(each) is int and each > 0), None)

    @cached_property
    def stated_cycle_time(self) -> tuple[Duration, str] | None:
        """The cycle time that the settings say, and how they say it; two that differ are refused."""
        environment, agent = self.of("environment"), self.of("agent")
        if self.environment is None:
            names = canonical_names(self.library or "", agent, ())
            return stated_cycle_time(self.library or "", {names[name]: value for name, value in agent.items()})
        if self.environment == "mujoco-playground" and "action_repeat" in agent:
            own = environment.get("action_repeat", agent["action_repeat"])
            if own != agent["action_repeat"]:
                raise InputError(
                    f"action_repeat is {own!r} in the environment and {agent['action_repeat']!r} in the trainer: "
                    "make them one."
                )
            environment = {**environment, "action_repeat": agent["action_repeat"]}
        return stated_cycle_time(self.environment, environment)

    @property
    def cycle_time(self) -> Duration | None:
        stated = self.stated_cycle_time
        return stated[0] if stated else None

    @cached_property
    def unknown(self) -> tuple[str, ...]:
        """Names of settings of which nothing is known here."""
        known = table_names(self.table, RATES[self.library or ""][self.algorithm or ""]) if self.table else set()
        canonical = canonical_names(self.library or "", self.of("agent"), known)
        by_library = {each: means_time(self.library or "", name) for each, name in canonical.items()}
        settings = self.of("environment") or self.of("agent")
        kind = self.environment or (self.library if self.library in ENVIRONMENT_KEYS else None)
        keys = environment_keys(kind, settings, trainer=True) if kind else ()
        return tuple(
            each.name
            for each in self.settings.values()
            if not (each.side == "agent" and (canonical[each.local_name] in known or by_library[each.local_name]))
            and not find_key(keys, each.local_name)
        )


def read_configuration(
    path: Path, *, library: str | None = None, algorithm: str | None = None, env_id: str | None = None
) -> Configuration:
    """What a file or folder says.

    Args:
        path: A file, or a folder with what a library writes for one run.
        library: Whose settings they are, where that cannot be recognised.
        algorithm: Which algorithm they are for, where they do not say it.
        env_id: Which entry of an RL Zoo file; of other configurations the environment's name.

    Raises:
        InputError: if it cannot be read, is not recognised, or names things twice.
    """
    library = _known_library(library)
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise unknown_name_error(algorithm, "an algorithm with a rule", list(ALGORITHMS))
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    files = [read_config_file(each) for each in (_files_in(path) if path.is_dir() else [path])]
    saved = [file for file in files if file.path.name == "args.yml"]
    if saved and len(files) > 1:  # what the Zoo was started with, beside what it trained with
        files = [file for file in files if file not in saved]
        algorithm = algorithm or saved[0].document.get("algo")
        env_id = env_id or saved[0].document.get("env")
    sections = [section for file in files for section in _sections(file, library, env_id, in_folder=path.is_dir())]
    if not sections:
        _refuse_unrecognised(path, files)
    agent = _only(path, "agents", [section for section in sections if section.agent])
    environment = _only(path, "environments", [section for section in sections if section.environment])
    settings = {each.name: each for section in sections for each in section.settings()}
    found = agent.agent if agent else None
    if found == "brax" and environment and environment.environment == "mujoco-playground":
        found = "mujoco-playground"
    return Configuration(
        source=path,
        files=tuple(files),
        library=found,
        environment=environment.environment if environment else None,
        algorithm=algorithm or (agent.algorithm() if agent else None),
        settings=settings,
        roots={section.side: SectionRoot(section.file, section.path, section.prefix) for section in sections},
        is_zoo_entry=agent is not None and agent.is_zoo_entry,
        env_id=env_id,
        unread=tuple(name for section in sections for name in section.unread()),
    )


def _only(path: Path, what: str, sections: list[_Section]) -> _Section | None:
    if len(sections) > 1:
        names = ", ".join(section.described() for section in sections)
        raise InputError(f"{path} has the settings of {len(sections)} {what} ({names}): give one file of them.")
    return sections[0] if sections else None


def _known_library(library: str | None) -> str | None:
    if library is None:
        return None
    name = library.lower().replace("_", "-").replace(" ", "-")
    name = "mjlab" if name == "mjlab" else ALIASES.get(name, name)
    if name not in (*LIBRARIES, *_ENVIRONMENTS):
        raise unknown_name_error(library, "a library that is known here", [*LIBRARIES, "mjlab"])
    return name


def _files_in(folder: Path) -> list[Path]:
    """The files of a run's folder that can be a configuration."""
    found = [folder / name for name in _FOLDER_FILES if (folder / name).is_file()]
    if found:
        return found
    inside = sorted(each for each in folder.iterdir() if each.suffix in _SUFFIXES and each.is_file())
    if not inside:  # the Zoo's folder of a run has one for the environment, LeRobot's one for the policy
        inner = [each for each in folder.iterdir() if each.is_dir()]
        nested = [each for each in inner if any(one.suffix in _SUFFIXES for one in each.iterdir())]
        if len(nested) == 1:
            return _files_in(nested[0])
    names = {each.name for each in inside}
    if {"config.yml", "args.yml"} <= names:
        return [folder / "config.yml", folder / "args.yml"]
    if "train_config.json" in names:
        return [folder / "train_config.json"]
    if len(inside) > _MOST_FILES:
        raise InputError(f"{folder} has {len(inside)} files that could be a configuration: give one of them.")
    return _recognised_files(inside) or inside[:1] or _refuse_empty(folder)


def _recognised_files(paths: list[Path]) -> list[Path]:
    recognised = []
    for path in paths:
        try:
            file = read_config_file(path)
        except InputError:
            continue
        if file.kind == "zip" or recognise_parts(file.document):
            recognised.append(path)
    zips = [path for path in recognised if path.suffix == ".zip"]
    return [path for path in recognised if path not in zips] or zips


def _refuse_empty(folder: Path) -> NoReturn:
    raise InputError(
        f"{folder} has no configuration that is known here: expected params/env.yaml and params/agent.yaml, "
        "config.yml with args.yml, train_config.json, or another .yaml, .json or .zip."
    )


def _refuse_unrecognised(path: Path, files: list[ConfigFile]) -> NoReturn:
    looked_for = "; ".join(f"{library}: {names}" for library, names in LOOKED_FOR.items())
    has = ", ".join(str(name) for file in files for name in list(file.document)[:6])
    raise UnrecognisedError(
        f"{path} is of no library that was recognised (it has {has or 'nothing'}): give --library NAME. "
        f"Looked for: {looked_for}."
    )


@dataclass(frozen=True)
class _Section:
    """The part of a file that is one library's."""

    file: ConfigFile
    path: KeyPath
    prefix: str
    values: Mapping[Any, Any]
    agent: str | None
    environment: str | None
    is_zoo_entry: bool = False

    @property
    def side(self) -> Side:
        return "agent" if self.agent else "environment"

    def algorithm(self) -> str | None:
        stem = self.file.path.stem.lower()
        if self.is_zoo_entry:  # whose files are named so, and whose entries do not say it
            return stem if stem in ALGORITHMS else None
        values = {name: value for name, _, value in _flatten(self.values, ())}
        return recognise_algorithm(self.agent, values) if self.agent else None

    def described(self) -> str:
        return ".".join([str(self.file.path.name), *map(str, self.path)])

    def settings(self) -> Iterator[Setting]:
        if not self.is_zoo_entry and self.file.kind == "yaml":
            for span in self.file.nearest_span(self.path).walk():
                if twice := repeated_keys(span):
                    raise InputError(f"{self.file.path}: {twice[0]!r} is there twice; keep one of them.")
        for local_name, path, value in _flatten(self.values, self.path):
            if isinstance(value, str) and not self.is_zoo_entry and _EXPONENT.fullmatch(value):
                value = float(value)  # YAML reads 1e-4 as text, and the libraries as a number
            if not is_pickled(value):
                yield Setting(self.prefix + local_name, value, self.file, path, self.side, local_name)

    def unread(self) -> list[str]:
        return [self.prefix + name for name, _, value in _flatten(self.values, ()) if is_pickled(value)]


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


def _sections(file: ConfigFile, library: str | None, env_id: str | None, in_folder: bool) -> list[_Section]:
    document: Mapping[Any, Any] = file.document
    if file.kind == "zip":
        return [_Section(file, (), "", document, "stable-baselines3", None)]
    if file.kind == "yaml" and is_saved_ordered_dict(file.text):
        return [_Section(file, (), "", document, "stable-baselines3", None, is_zoo_entry=True)]
    if library in (None, "stable-baselines3", "sbx") and (
        (env_id in document and isinstance(document[env_id], Mapping)) or is_zoo_file(document)
    ):
        if env_id is None:
            entries = ", ".join(map(str, list(document)[:8]))
            raise InputError(f"{file.path} is an RL Zoo file: say which entry with --env, such as one of {entries}.")
        entry = effective_entry(file.document, file.root, env_id)
        return [_Section(file, (env_id,), "", entry, library or "stable-baselines3", None, is_zoo_entry=True)]
    run_side = {"env.yaml": "env.", "agent.yaml": "agent."}.get(file.path.name, "") if in_folder else ""
    if library is not None and not any(part.environment for part in recognise_parts(document)):
        return [_Section(file, (), run_side, document, *_sides_of(library, document))]
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
        sections.append(_Section(file, part.path, prefix, values, agent, environment))
    return sections


def _sides_of(library: str, document: Mapping[Any, Any]) -> tuple[str | None, str | None]:
    if library in ("isaac-lab", "mjlab"):
        return ("rsl-rl", None) if "decimation" not in document else (None, library)
    return (library, None)
