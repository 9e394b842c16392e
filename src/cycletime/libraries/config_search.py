"""All configurations in a file or folder, YAML, JSON, zips and flags, and Python source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.libraries.config_files import read_config_file
from cycletime.libraries.configuration import (
    RUN_FILES,
    Configuration,
    Setting,
    UnrecognisedError,
    file_settings,
    read_configuration,
)
from cycletime.libraries.names import LIBRARIES
from cycletime.libraries.python_source import Opaque, SourceReader, Tree
from cycletime.libraries.python_tasks import PythonTask, python_tasks
from cycletime.libraries.recognise import is_zoo_file, libraries_of, recognise_parts, simulated_environment
from cycletime.rules.hyperparameters import nest_names

_SUFFIXES = (".yaml", ".yml", ".json")
_MOST_FILES = 20_000
MOST_NAMED = 5
_OF_OTHERS = "of no library that is known here"
_SKIPPED = {".git", "node_modules", "__pycache__", "site-packages", ".venv", "venv"}


@dataclass(frozen=True)
class Search:
    """What to look for where the files do not say it."""

    library: str | None = None
    algorithm: str | None = None
    env_id: str | None = None
    dt: Duration | None = None


@dataclass
class Found:
    configurations: list[Configuration] = field(default_factory=list)
    not_read: dict[str, str] = field(default_factory=dict)
    """By file, why it was passed by."""

    def explain_not_read(self) -> str:
        # What looks like a mistake first: most of a repository's YAML and JSON is of other programs.
        names = sorted(self.not_read, key=lambda name: self.not_read[name] == _OF_OTHERS)
        said = [f"{name}: {self.not_read[name].rstrip('.')}" for name in names[:MOST_NAMED]]
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        files = "1 file" if len(names) == 1 else f"{len(names)} files"
        return f"Not read: {files} ({'; '.join(said + more)})." if names else ""

    def read(self, path: Path, search: Search, root: Path) -> list[Configuration]:
        """What one file or run of a folder has; of one that is refused, why."""
        try:
            return self.read_whole(path, search, root)
        except InputError as error:
            why = str(error).removeprefix(f"{path}").lstrip(":/ ")
            self.not_read[_relative(path, root)] = _OF_OTHERS if isinstance(error, UnrecognisedError) else why
            return []

    def read_whole(self, path: Path, search: Search, root: Path) -> list[Configuration]:
        """Read the configurations of a file or run, and of the files that it left out in their folders."""
        read = list(_in_file_or_run(path, search, root))
        folders = {file.path.parent for each in read for file in each.files}
        beside = [path / name for each in read for name in each.left_out]
        return [*read, *(one for file in beside if file.parent in folders for one in self.read(file, search, root))]


def find_configurations(path: Path, search: Search | None = None) -> Found:
    """The configurations of a file, of a run's folder, or of a whole repository; it is refused to have none."""
    search, found = search or Search(), Found()
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    if path.is_file() and path.suffix == ".py":
        found.configurations += _in_python([path], search, path.parent, found)
    elif path.is_file() or (is_run_folder(path) and not any(path.glob("*/**/params/env.yaml"))):
        found.configurations += found.read_whole(path, search, path.parent if path.is_file() else path)
    else:
        found.configurations += _in_tree(path, search, found)
    if not found.configurations:
        raise InputError(
            f"{path} has no configuration that is known here: give a run's folder with params/env.yaml and agent.yaml, "
            "a YAML or JSON file of a library, an RL Zoo file, or Python source that registers tasks. "
            f"{found.explain_not_read()}".rstrip()
        )
    return found


def is_run_folder(folder: Path) -> bool:
    return any(all((folder / name).is_file() for name in names) for names in RUN_FILES) or _is_pair(folder)


def _is_pair(folder: Path) -> bool:
    """Whether a folder has two files and no more, MuJoCo Playground's environment and its trainer."""
    try:
        inside = list(folder.iterdir())
        is_pair = len(inside) == 2 and {each.suffix for each in inside} <= {*_SUFFIXES}
        read = read_configuration(folder) if is_pair else None
    except (InputError, OSError):
        return False
    return read is not None and read.library == read.environment == "mujoco-playground"


def _in_tree(root: Path, search: Search, found: Found) -> Iterator[Configuration]:
    runs, files = _walk(root, found)
    from_source = _in_python([file for file in files if file.suffix == ".py"], search, root, found)
    yield from from_source
    seen = {stated.place.rpartition(":")[0] for each in from_source for stated in each.agent.values()}
    for folder in runs:
        yield from found.read(folder, search, root)
    for path in files:
        if path.suffix != ".py" and _relative(path, root) not in seen:
            yield from found.read(path, search, root)


def _walk(root: Path, found: Found) -> tuple[list[Path], list[Path]]:
    runs: list[Path] = []
    files: list[Path] = []

    def refuse(error: OSError) -> None:
        found.not_read[_relative(Path(error.filename), root)] = error.strerror or "it cannot be opened"

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        here = Path(folder)
        paths = [here / name for name in sorted(names)]
        if is_run_folder(here):
            folders[:] = [name for name in folders if name != "params"]
            runs.append(here)
            paths = [path for path in paths if path.suffix == ".py"]
        files += [path for path in paths if path.suffix in (".py", *_SUFFIXES)]
    for path in files[_MOST_FILES:]:
        found.not_read[_relative(path, root)] = f"after {_MOST_FILES} others"
    return runs, files[:_MOST_FILES]


def _in_file_or_run(path: Path, search: Search, root: Path) -> Iterator[Configuration]:
    file = read_config_file(path) if path.is_file() else None
    read = partial(read_configuration, path, library=search.library, algorithm=search.algorithm)
    document = file.document if file else {}
    entries = {name: each for name, each in document.items() if isinstance(each, Mapping) and each}
    if file and (environment := simulated_environment(document)):
        yield _timed(Configuration(str(path), environment=environment, env=file_settings(file)), search, root)
    elif file and not search.env_id and is_zoo_file(document) and "n_timesteps" in {*chain(*entries.values())}:
        for env_id in (str(name) for name in entries if name != "default"):
            named = _timed(read(env_id=env_id, files=[file]), search, root)
            yield replace(named, name=f"{named.name} {env_id}")
    else:
        yield _timed(read(env_id=search.env_id, files=[file] if file else []), search, root)


def _timed(read: Configuration, search: Search, root: Path) -> Configuration:
    """The configuration with places and comments, and the cycle time that the user says."""
    agent, env = ({name: _placed(each, root) for name, each in side.items()} for side in (read.agent, read.env))
    return replace(read, name=_relative(Path(read.name), root), agent=agent, env=env, given_dt=search.dt)


def _placed(setting: Setting, root: Path) -> Setting:
    assert setting.file is not None, "it was read from one"
    line = setting.line
    place = f"{_relative(setting.file.path, root)}{f':{line}' if line else ''}"
    return replace(setting, place=place, comment=setting.file.comments.get(line or 0, ""))


def _in_python(files: list[Path], search: Search, root: Path, found: Found) -> list[Configuration]:
    reader = SourceReader()
    read = [_from_source(task, search, root, reader, found) for task in python_tasks(files, reader)]
    given = {path.resolve() for path in files}
    found.not_read |= {_relative(path, root): why for path, why in reader.refused.items() if path in given}
    return [each for each in read if each and (each.agent or each.env)]


def _from_source(
    task: PythonTask, search: Search, root: Path, reader: SourceReader, found: Found
) -> Configuration | None:
    env, agent = stated_settings(task.env, root), stated_settings(task.agent, root)
    library, _ = libraries_of(_nested(agent))
    parts, environment = recognise_parts(_nested(env)), libraries_of(_nested(env))[1]
    environment = environment or simulated_environment(_nested(env))
    if not agent and not environment and (own := [part.agent for part in parts if part.agent]):
        library, agent, env = own[0], env, {}  # a script's own settings, such as CleanRL's
    timed = Configuration(
        task.name or _relative(root, root),
        library,
        environment,
        "ppo" if library else None,
        agent,
        env,
        uses_defaults=False,
        given_dt=search.dt,
        unseen=tuple(sorted(reader.unresolved)),
    )
    if library == "brax" and environment == "mujoco-playground":
        timed = replace(timed, library="mujoco-playground", uses_defaults=True)
    if (file := task.agent_file) is not None:
        for read in found.read(file, search, root):
            timed = replace(timed, library=read.library, algorithm=read.algorithm, agent=read.agent, uses_defaults=True)
    return timed if timed.environment or (timed.library in LIBRARIES) else None


def stated_settings(tree: Tree, root: Path) -> dict[str, Setting]:
    """Values that were understood, and the names of functions that terms call."""
    found = {}
    for name, leaf in tree.leaves():
        value = leaf.value.text if isinstance(leaf.value, Opaque) else leaf.value
        if value is leaf.value or name.endswith("func"):
            known_as = "decimation" if name == "sim.decimation" else name
            found[known_as] = Setting(name, value, f"{_relative(leaf.file, root)}:{leaf.line}", leaf.comment)
    return found


def _nested(settings: Mapping[str, Setting]) -> dict[str, Any]:
    return nest_names({name: each.value for name, each in settings.items()})


def _relative(path: Path, root: Path) -> str:
    try:
        inside = str(path.resolve().relative_to(root.resolve()))
    except ValueError:
        return path.name
    return path.name if inside == "." else inside
