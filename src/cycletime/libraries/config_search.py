"""All configurations in a file or folder, as `timing` reads them: YAML, JSON, zips and flags, and Python source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.libraries.config_files import ConfigFile, read_config_file
from cycletime.libraries.configuration import Configuration, read_configuration
from cycletime.libraries.names import LIBRARIES
from cycletime.libraries.parameters import flatten_settings
from cycletime.libraries.python_source import Leaf, SourceReader
from cycletime.libraries.python_tasks import PythonTask, plain_settings, python_tasks
from cycletime.libraries.recognise import is_zoo_file, recognise_parts
from cycletime.libraries.time_keys import DEPLOYED_BY
from cycletime.libraries.timing import Stated, TimedConfiguration

_SUFFIXES = (".yaml", ".yml", ".json")
_MOST_FILES = 20_000
_RUN_FILES = (
    *(("params/env.yaml",), ("params/agent.yaml",), ("env.yaml", "agent.yaml"), ("args.yml", "config.yml")),
    ("train_config.json",),
)
_SKIPPED = {".git", "node_modules", "__pycache__", "site-packages", ".venv", "venv"}


@dataclass(frozen=True)
class Search:
    """What to look for where the files do not say it."""

    library: str | None = None
    algorithm: str | None = None
    env_id: str | None = None
    dt: Duration | None = None


def find_configurations(path: Path, search: Search | None = None) -> list[TimedConfiguration]:
    """The configurations of a file, of a run's folder, or of a whole repository.

    Raises:
        InputError: if there is none, or the file cannot be read.
    """
    search = search or Search()
    if not path.exists():
        raise InputError(f"There is no file or folder {path}.")
    if path.is_file():
        found = (
            _in_python(path, search, path.parent) if path.suffix == ".py" else list(_in_file(path, search, path.parent))
        )
    elif is_run_folder(path):
        found = [_timed(read_configuration(path, library=search.library, algorithm=search.algorithm), search, path)]
    else:
        found = list(_in_tree(path, search))
    if not found:
        raise InputError(
            f"{path} has no configuration that is known here: give a run's folder with params/env.yaml and agent.yaml, "
            "a YAML or JSON file of a library, an RL Zoo file, or Python source that registers tasks."
        )
    return found


def is_run_folder(folder: Path) -> bool:
    """Whether a library wrote it for one run, so that it is one configuration."""
    return any(all((folder / name).is_file() for name in names) for names in _RUN_FILES)


def _in_tree(root: Path, search: Search) -> Iterator[TimedConfiguration]:
    from_source = _in_python(root, search, root)
    yield from from_source
    seen = {stated.place.rpartition(":")[0] for each in from_source for stated in each.agent.values()}
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        here = Path(folder)
        if is_run_folder(here):
            folders[:] = [name for name in folders if name != "params"]
            yield from _if_readable(lambda here=here: [_timed(read_configuration(here), search, root)])
            continue
        for name in sorted(names):
            path = here / name
            count += 1
            if path.suffix in _SUFFIXES and count <= _MOST_FILES and _relative(path, root) not in seen:
                yield from _if_readable(lambda path=path: list(_in_file(path, search, root)))


def _if_readable(read: Any) -> list[TimedConfiguration]:  # noqa: ANN401 - a function without arguments
    """Of a folder's many files, those that are no configuration are passed by."""
    try:
        found: list[TimedConfiguration] = read()
    except InputError:
        return []
    return found


def _in_file(path: Path, search: Search, root: Path) -> Iterator[TimedConfiguration]:
    file = read_config_file(path)
    if environment := simulated_environment(file.document):
        flat = flatten_settings(file.document)
        settings = {name: _stated(file, name, tuple(name.split(".")), value, root) for name, value in flat.items()}
        yield TimedConfiguration(_relative(path, root), environment=environment, env=settings, given_dt=search.dt)
        return
    if search.env_id is None and is_zoo_file(file.document) and _has_entries(file.document):
        algorithm = search.algorithm or path.stem.lower()
        for name, entry in file.document.items():
            if isinstance(entry, Mapping) and entry and name != "default":
                said = {key: _stated(file, key, (str(name), key), value, root) for key, value in entry.items()}
                label = f"{_relative(path, root)} {name}"
                yield TimedConfiguration(label, "stable-baselines3", None, algorithm, said, given_dt=search.dt)
        return
    read = read_configuration(path, library=search.library, algorithm=search.algorithm, env_id=search.env_id)
    yield _timed(read, search, root)


def _has_entries(document: Mapping[Any, Any]) -> bool:
    return any(isinstance(entry, Mapping) and "n_timesteps" in entry for entry in document.values())


def simulated_environment(document: Mapping[Any, Any]) -> str | None:
    """What no library writes: environments of legged_gym's forks and of IsaacGymEnvs, and deployments of policies."""
    if any(isinstance(document.get(name), float) for name in DEPLOYED_BY):
        return "deployment"
    simulation, control, env = (document.get(name) for name in ("sim", "control", "env"))
    if not isinstance(simulation, Mapping) or "dt" not in simulation:
        return None
    if isinstance(control, Mapping) and "decimation" in control:
        return "legged-gym"
    return "isaac-gym" if isinstance(env, Mapping) and "numEnvs" in env else None


def _stated(file: ConfigFile, name: str, place: Any, value: Any, root: Path) -> Stated:  # noqa: ANN401
    line = file.line(place)
    comment = _comments(file).get(line or 0, "")
    return Stated(name, value, f"{_relative(file.path, root)}{f':{line}' if line else ''}", comment)


@lru_cache(maxsize=4)
def _comments_of(path: Path, text: str) -> dict[int, str]:
    return ConfigFile(path, "yaml", text, {}).comments()


def _comments(file: ConfigFile) -> dict[int, str]:
    return _comments_of(file.path, file.text) if file.kind == "yaml" else {}


def _timed(read: Configuration, search: Search, root: Path) -> TimedConfiguration:
    sides: dict[str, dict[str, Stated]] = {"agent": {}, "environment": {}}
    for each in read.settings.values():
        stated = _stated(each.file, each.name, each.path, each.value, root)
        sides[each.side][each.local_name] = stated
    label = _relative(read.source, root)
    return TimedConfiguration(
        label, read.library, read.environment, read.algorithm, sides["agent"], sides["environment"], given_dt=search.dt
    )


def _in_python(path: Path, search: Search, root: Path) -> list[TimedConfiguration]:
    reader = SourceReader()
    return [
        found
        for task in python_tasks(path, reader)
        if (found := _from_source(task, search, root, reader)) and (found.agent or found.env)
    ]


def _from_source(task: PythonTask, search: Search, root: Path, reader: SourceReader) -> TimedConfiguration | None:
    env, agent = _stated_leaves(task.env, root), _stated_leaves(task.agent, root)
    document, library = _nested(agent), None
    parts = [part for part in recognise_parts(document) if part.agent]
    if len(parts) == 1 and not parts[0].path:
        library = parts[0].agent
    environment = _environment(env)
    if not agent and not environment and (parts := [part for part in recognise_parts(_nested(env)) if part.agent]):
        library, agent, env = parts[0].agent, env, {}  # a script's own settings, such as CleanRL's
    timed = TimedConfiguration(
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
    if task.agent_file is not None:
        for read in _if_readable(lambda: list(_in_file(task.agent_file, search, root))):
            timed = replace(timed, library=read.library, algorithm=read.algorithm, agent=read.agent, uses_defaults=True)
    return timed if timed.environment or (timed.library in LIBRARIES) else None


def _environment(env: Mapping[str, Stated]) -> str | None:
    document = _nested(env)
    parts = [part for part in recognise_parts(document) if part.environment and not part.path]
    return parts[0].environment if parts else simulated_environment(document)


_OTHER_NAMES = {"sim.decimation": "decimation", "control.decimation": "control.decimation"}
"""Where some environments keep the same setting."""


def _stated_leaves(tree: Any, root: Path) -> dict[str, Stated]:  # noqa: ANN401 - a tree of Python's source
    found: dict[str, Stated] = {}
    leaves: Mapping[str, Leaf] = plain_settings(tree)
    for name, leaf in leaves.items():
        stated = Stated(name, leaf.value, f"{_relative(leaf.file, root)}:{leaf.line}", leaf.comment)
        found[_OTHER_NAMES.get(name, name)] = stated
    return found


def _nested(settings: Mapping[str, Stated]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, each in settings.items():
        *branches, leaf = name.split(".")
        node = document
        for branch in branches:
            inner = node.setdefault(branch, {})
            node = inner if isinstance(inner, dict) else {}
        node[leaf] = each.value
    return document


def _relative(path: Path, root: Path) -> str:
    try:
        inside = str(path.resolve().relative_to(root.resolve()))
    except ValueError:
        return path.name
    return path.name if inside == "." else inside
