"""Tasks that Python source registers: which environment's configuration is trained with which agent's."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cycletime.libraries.python_source import Opaque, SourceReader, Tree

_TIME_WORDS = {"decimation", "ctrl_dt", "gamma", "discounting", "discount", "fps", "num_steps_per_env", "unroll_length"}


@dataclass(frozen=True)
class PythonTask:
    """An environment's and an agent's settings, as far as the source says them; an agent may stand in a YAML file."""

    name: str
    env: Tree
    agent: Tree
    agent_file: Path | None = None


def python_tasks(files: Sequence[Path], reader: SourceReader) -> list[PythonTask]:
    """The tasks that files register; else what their classes and functions hold."""
    found: list[PythonTask] = []
    for file in files:
        tasks = [each for each in _registered(file, reader) if not re.search("play(?!ground)", each.name.lower())]
        found += [each for each in tasks if each.env.children or each.agent.children or each.agent_file]
        if missing := [each.name for each in tasks if not each.env.children]:
            reader.refused[file.resolve()] = f"the environments of {', '.join(missing)} have no setting in reach"
    return found or [task for file in files for task in _unregistered(file, reader)]


def _registered(file: Path, reader: SourceReader) -> Iterator[PythonTask]:
    """What Isaac Lab, mjlab, legged_gym (name, robot, Cfg(), CfgPPO()) and Playground's tables register."""
    module = reader.module(file)
    table = module.names.get("_cfgs") if module else None
    if isinstance(table, ast.Assign) and isinstance(table.value, ast.Dict):
        yield from _playground_tasks(file, reader, table.value)
    for node in ast.walk(ast.Module(module.body, [])) if module else ():
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        words = {each.arg: each.value for each in node.keywords if each.arg}
        if name == "register" and isinstance(words.get("kwargs"), ast.Dict):
            yield from _gym_tasks(file, reader, words)
        elif name == "register_mjlab_task" and {"env_cfg", "rl_cfg"} <= words.keys():
            env, agent = (_built(file, reader, words[each]) for each in ("env_cfg", "rl_cfg"))
            yield PythonTask(_text(words.get("task_id")), env, agent)
        elif name == "register" and len(node.args) >= 4:
            env, agent = (_built(file, reader, each) for each in node.args[2:4])
            if env.children or agent.children:
                yield PythonTask(_text(node.args[0]), env, agent)


def _playground_tasks(file: Path, reader: SourceReader, table: ast.Dict) -> Iterator[PythonTask]:
    # The trainer's values stand in config/FAMILY_params.py.
    names = [folder / "config" / f"{file.parent.name}_params.py" for folder in file.parents]
    trainer = next((path for path in names if path.is_file()), None)
    for key, each in zip(table.keys, table.values, strict=True):
        name, env = _text(key), _built(file, reader, each)
        agent = reader.build(trainer, "brax_ppo_config", {"env_name": name}) if trainer else None
        yield PythonTask(name, env, agent or Tree())


def _gym_tasks(file: Path, reader: SourceReader, words: dict[str, ast.expr]) -> Iterator[PythonTask]:
    given = words["kwargs"]
    assert isinstance(given, ast.Dict), "asked for one"
    points = {_text(key): each for key, each in zip(given.keys, given.values, strict=True)}
    if "env_cfg_entry_point" not in points:
        return
    env, task = _entry(file, reader, points["env_cfg_entry_point"]), _text(words.get("id"))
    if not isinstance(env, Tree):
        yield PythonTask(task, Tree(), Tree())
        return
    agents = {name: each for name, each in points.items() if name.endswith("cfg_entry_point") and "env_cfg" not in name}
    read = {name.removesuffix("_cfg_entry_point"): _entry(file, reader, each) for name, each in agents.items()}
    for name, agent in read.items():
        if isinstance(agent, Tree) and agent.children:
            yield PythonTask(f"{task} ({name})", env, agent)
        elif isinstance(agent, Path):
            yield PythonTask(f"{task} ({name})", env, Tree(), agent)
    if not any(each if isinstance(each, Path) else each and each.children for each in read.values()):
        yield PythonTask(task, env, Tree())


def _entry(file: Path, reader: SourceReader, node: ast.expr) -> Tree | Path | None:
    """What an entry point means: 'package.module:Class', a file beside it, or the class itself."""
    if not isinstance(node, ast.Constant | ast.JoinedStr):
        return _built(file, reader, node)
    module_name, _, name = _text(node, lambda module: reader.dotted_name(file, module)).partition(":")
    parts = [part for part in module_name.split(".") if part]
    roots = [each for each in file.resolve().parents if parts and (each / parts[0]).exists()]
    for root in [file.parent] if module_name.startswith(".") else roots:
        base = root.joinpath(*parts)
        if name.endswith((".yaml", ".yml")):
            return base / name if (base / name).is_file() else None
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file() and (tree := reader.build(path, name)):
                return tree
    return None


def _built(file: Path, reader: SourceReader, node: ast.expr) -> Tree:
    callee = node.func if isinstance(node, ast.Call) else node
    definition = reader.find(file, callee)
    if definition is None and isinstance(callee, ast.Name):
        return reader.build(file, callee.id) or Tree()
    made = reader.build(definition.module.path, getattr(definition.node, "name", "")) if definition else None
    return made or Tree()


def _text(node: ast.expr | None, module_name: Callable[[str], str] = str) -> str:
    """A literal text; in an f-string `{__name__}` is the folder, and `{agents.__name__}` the module imported so."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if not isinstance(node, ast.JoinedStr):
        return "" if node is None else ast.unparse(node)
    parts = []
    for each in node.values:
        if isinstance(each, ast.Constant):
            parts.append(str(each.value))
        elif isinstance(each, ast.FormattedValue):
            name = ast.unparse(each.value).removesuffix("__name__").rstrip(".")
            parts.append(module_name(name) if name else "")
    return "".join(parts)


def _unregistered(path: Path, reader: SourceReader) -> list[PythonTask]:
    module = reader.module(path)
    if module is None or not any(word in module.text for word in _TIME_WORDS):
        return []
    names = [each.name for each in module.body if isinstance(each, ast.ClassDef | ast.FunctionDef)]
    trees = {name: tree for name in names if (tree := reader.build(path, name)) and _says_time(tree)}
    agents = {name: tree for name, tree in trees.items() if name.removesuffix("PPO") in trees and name.endswith("PPO")}
    envs = {name: tree for name, tree in trees.items() if name not in agents}
    return [PythonTask(name, tree, agents.get(f"{name}PPO", Tree())) for name, tree in envs.items()]


def _says_time(tree: Tree) -> bool:
    understood = (name for name, leaf in tree.leaves() if not isinstance(leaf.value, Opaque))
    return any(name.rpartition(".")[2] in _TIME_WORDS for name in understood)
