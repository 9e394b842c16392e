"""A study as a TOML file: reading it, with a sentence for whatever is wrong, and writing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from cycletime.duration import Duration, typed_duration
from cycletime.engines.registry import AUTO
from cycletime.errors import InputError, did_you_mean, shown, unknown
from cycletime.rules.own import own_rules_in, own_rules_table
from cycletime.runs.carried import DEFAULT_RULES
from cycletime.runs.spec import AGENTS
from cycletime.runs.tables import check_plain, read_toml
from cycletime.runs.worlds import ClosedFormWorld, GymnasiumEnv, World
from cycletime.studies.spec.study import MOST_RUNS, PATIENCE, Study, Tuned
from cycletime.studies.spec.values import check_algorithms, read_values, values_table

_SINGULARS = {"task": "tasks", "env": "envs", "algorithm": "algorithms", "dt": "dts", "rule": "rules", "seed": "seeds"}
_KNOWN = {
    *(*_SINGULARS, *_SINGULARS.values(), "name", "env_steps", "env_dt", "tuned", "set", "points", "own_rules"),
    *("device", "width", "engine", "patience"),
}


def read_study(path: Path) -> Study:
    """The study in a file.

    Raises:
        InputError: if it cannot be read, is not a study, or has runs that cannot be; the sentence names the file.
    """
    told = read_toml(path)
    try:
        study = study_from(told, folder=path.parent)
        study.check_runs()
        return study
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def study_from(told: Mapping[str, Any], folder: Path = Path()) -> Study:
    """The study that a table describes; tuned values may stand in a file of their own, looked for in a folder.

    Raises:
        InputError: if it describes none.
    """
    check_plain(told)
    for key in told:
        if key not in _KNOWN:
            near = did_you_mean(key, _KNOWN)
            raise InputError(f"{key!r} is nothing that a study has: it has {', '.join(sorted(_KNOWN))}{near}")
    algorithms = tuple(_several(told, "algorithm"))
    for algorithm in algorithms:
        if not isinstance(algorithm, str) or algorithm not in AGENTS:
            raise unknown(algorithm, "an algorithm", AGENTS)
    tuned, others, points = read_values(told, algorithms, folder)
    return Study(
        name=_name(told),
        worlds=_worlds(told),
        algorithms=algorithms,
        dts=tuple(typed_duration(each) for each in _several(told, "dt")),
        rules=_rules(told, algorithms, tuned),
        own_rules=own_rules_in(told.get("own_rules", {})),
        seeds=_seeds(told),
        env_steps=_count("env_steps", _needed(told, "env_steps")),
        tuned=tuned,
        others=others,
        points=points,
        device=str(told.get("device", "cpu")),
        width=_count("width", told["width"]) if "width" in told else None,
        engine=str(told.get("engine", AUTO)),
        patience=_patience(told.get("patience", PATIENCE)),
    )


def as_table(study: Study) -> dict[str, Any]:
    """The table that `study_from` reads as this study; JSON and TOML have all that is in it."""
    tasks = [world for world in study.worlds if isinstance(world, ClosedFormWorld)]
    envs = [world for world in study.worlds if isinstance(world, GymnasiumEnv)]
    return {
        "name": study.name,
        "tasks": [task.name for task in tasks],
        "envs": [env.name for env in envs],
        **_env_dt_table(tasks, envs),
        "algorithms": list(study.algorithms),
        "dts": [str(dt) for dt in study.dts],
        "rules": {algorithm: list(study.rules.get(algorithm, ())) for algorithm in study.algorithms},
        **({"own_rules": own_rules_table(study.own_rules)} if study.own_rules else {}),
        "seeds": list(study.seeds),
        "env_steps": study.env_steps,
        **values_table(study),
        "device": study.device,
        **({} if study.width is None else {"width": study.width}),
        **({} if study.engine == AUTO else {"engine": study.engine}),
        **({} if study.patience == PATIENCE else {"patience": str(study.patience)}),
    }


def _env_dt_table(tasks: Sequence[ClosedFormWorld], envs: Sequence[GymnasiumEnv]) -> dict[str, str]:
    """The one env_dt of a study, which `_worlds` gives to its environments, or to its tasks where it has no others."""
    for_tasks = {None if task.has_usual_env_dt else task.env_dt for task in tasks}
    for_envs = {env.env_dt for env in envs}
    if len(for_envs) > 1 or (envs and for_tasks - {None}) or (not envs and len(for_tasks) > 1):
        worlds: tuple[World, ...] = (*tasks, *envs)
        words = ", ".join(f"{world.name} {world.env_dt or 'none'}" for world in worlds)
        raise InputError(f"The environments have different env_dt ({words}): make a study of each.")
    env_dt = next(iter(for_envs if envs else for_tasks), None)
    return {} if env_dt is None else {"env_dt": str(env_dt)}


def _patience(value: Any) -> Duration:  # noqa: ANN401 - whatever TOML has
    with suppress(InputError):
        if (patience := typed_duration(value)) >= Duration("1s"):
            return patience
    raise InputError(f"patience is {shown(value)}: give a time of at least a second, such as '30min' or '2h'.")


def _name(told: Mapping[str, Any]) -> str:
    name = _needed(told, "name")
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"name is {shown(name)}: it must be a text in one line, such as 'reacher-quick'.")
    return name


def _needed(told: Mapping[str, Any], key: str) -> Any:  # noqa: ANN401 - whatever TOML has
    if key not in told:
        raise InputError(f"{key!r} is missing: a study needs it.")
    return told[key]


def _several(told: Mapping[str, Any], singular: str) -> list[Any]:
    """What stands under a word or its plural, as a list."""
    plural = _SINGULARS[singular]
    if singular in told and plural in told:
        raise InputError(f"{singular!r} and {plural!r} are both given: give one of them.")
    if singular not in told and plural not in told:
        raise InputError(f"{singular!r} is missing: a study needs one, or several as {plural!r}.")
    found = told.get(singular, told.get(plural))
    return found if isinstance(found, list) else [found]


def _worlds(told: Mapping[str, Any]) -> tuple[World, ...]:
    env_dt = typed_duration(told["env_dt"]) if "env_dt" in told else None
    given = [key for key in ("task", "tasks", "env", "envs") if key in told]
    if not given:
        raise InputError("'task' is missing: a study needs a task or an env, or several as 'tasks' and 'envs'.")
    tasks = _several(told, "task") if {"task", "tasks"} & set(given) else []
    envs = _several(told, "env") if {"env", "envs"} & set(given) else []
    for name in (*tasks, *envs):
        if not isinstance(name, str) or not name:
            raise InputError(f"{shown(name)} is neither a task nor an environment: give a name, such as 'reacher'.")
    step = () if env_dt is None or envs else (env_dt,)
    return (*(ClosedFormWorld(name, *step) for name in tasks), *(GymnasiumEnv(name, env_dt) for name in envs))


def _rules(told: Mapping[str, Any], algorithms: tuple[str, ...], tuned: Mapping[str, Tuned]) -> dict[str, Any]:
    """By algorithm, its rules; left out, its own where its values are from a cycle time."""
    bare = [algorithm for algorithm, values in tuned.items() if values.dt is None]
    own = {each: [DEFAULT_RULES[each]] if each in DEFAULT_RULES and each not in bare else [] for each in algorithms}
    if "rule" not in told and "rules" not in told:
        given = own
    elif isinstance(table := told.get("rule", told.get("rules")), Mapping):
        _several(told, "rule")  # which refuses both
        check_algorithms("rules", table, algorithms)
        listed = {name: each if isinstance(each, list) else [each] for name, each in table.items()}
        given = {**own, **listed} if listed else {}
    else:
        given = dict.fromkeys(algorithms, _several(told, "rule"))
        if any(each in DEFAULT_RULES for each in algorithms):
            given = {each: rules if each in DEFAULT_RULES else [] for each, rules in given.items()}
    for algorithm, rules in given.items():
        _check_rules(algorithm, rules)
    return {each: tuple(given.get(each, ())) for each in algorithms}


def _check_rules(algorithm: str, rules: list[Any]) -> None:
    for rule in rules:
        if not isinstance(rule, str):
            raise InputError(f"rules has {shown(rule)}: a rule is a name, such as 'dt-aware'.")
        if algorithm not in DEFAULT_RULES:
            raise InputError(f"rules has {rule!r} for {algorithm}: no rule carries its values, so leave it out.")
    if len(set(rules)) != len(rules):
        raise InputError(f"rules has the same one twice for {algorithm}: {shown(rules)}.")


def _seeds(told: Mapping[str, Any]) -> tuple[int, ...]:
    """A number is how many, from 0 on; a list is the seeds themselves, as is the singular."""
    if "seed" in told and "seeds" in told:
        raise InputError("'seed' and 'seeds' are both given: give one of them.")
    if "seed" in told:
        return (_count("seed", told["seed"], least=0),)
    given = told.get("seeds", 1)
    if isinstance(given, list):
        return tuple(_count("seeds", each, least=0) for each in given)
    if (count := _count("seeds", given)) > MOST_RUNS:
        raise InputError(f"seeds is {given!r}: it is how many there are, at most {MOST_RUNS:,}.")
    return tuple(range(count))


def _count(name: str, value: Any, least: int = 1) -> int:  # noqa: ANN401 - whatever TOML has
    whole = value.is_integer() if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(f"{name} is {shown(value)}: it must be a whole number of at least {least}.")
    return int(value)
