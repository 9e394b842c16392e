"""A study as a TOML file: reading it, with a sentence for whatever is wrong, and writing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any

from cycletime.bounded import read_bounded_text
from cycletime.duration import Duration
from cycletime.errors import InputError, quote, unknown_name_error
from cycletime.libraries.synonyms import find_synonym, name_hint, our_fields, refuse_two_values
from cycletime.libraries.time_keys import WRAPPER_NAMES
from cycletime.rules import ALGORITHMS, recommend
from cycletime.rules.rule import HORIZON_FIELDS, own_rules_as_table, parse_own_rules
from cycletime.studies.spec import HANG_TIMEOUT, MAX_RUNS, Grid, Point, StudySpec, Tuned
from cycletime.training.engine import AUTO
from cycletime.training.external import BUILT_IN, TrainerSpec, read_trainer, tuned_hyperparameters
from cycletime.training.make_specs import TUNABLE, algorithms_with_rules, known_algorithms, tunable_names
from cycletime.training.spec import AGENTS
from cycletime.training.toml_files import ABOUT_TUNING, MOST_BYTES, check_plain, read_toml, read_tuned
from cycletime.training.worlds import ClosedFormWorld, ForeignEnv, GymnasiumEnv, World, time_step

_COUNTS = {each.name for kind in AGENTS.values() for each in fields(kind) if str(each.type).startswith("int")}


def read_values(
    table: Mapping[str, Any], algorithms: tuple[str, ...], folder: Path, trainer: TrainerSpec | None = None
) -> tuple[dict[str, Tuned], dict[str, Grid], dict[str, tuple[Point, ...]]]:
    given = table.get("tuned", {})
    tables = dict.fromkeys(algorithms, given) if isinstance(given, str) else _tables("tuned", given, algorithms)
    said = {} if table.get("set", {}) == {} else _tables("set", table["set"], algorithms)
    others: dict[str, Grid] = {algorithm: _grid(own) for algorithm, own in said.items()}
    tuned = {}
    for algorithm, own in tables.items():
        if isinstance(own, str):
            read = read_tuned(folder / own)
            values = read.of(algorithm)
            source = {"file": own, "sha256": read.sha256, **values.about}
            tuned[algorithm] = _tuned(algorithm, {"dt": values.dt, **values.values, "from": source}, trainer)
            # Fields that the study sets itself come before those of the file.
            file_s = {name: (value,) for name, value in values.others.items()}
            others[algorithm] = {**file_s, **others.get(algorithm, {})}
        elif own or tables is given:
            tuned[algorithm] = _tuned(algorithm, own, trainer)
    return tuned, others, _points(table, algorithms)


def check_algorithms(key: str, table: Mapping[str, Any], algorithms: tuple[str, ...]) -> None:
    for name in table:
        if name not in algorithms:
            raise InputError(f"{key} has a table for {name!r}: the study has {', '.join(algorithms)}.")


def _tuned(algorithm: str, table: Mapping[str, Any], trainer: TrainerSpec | None) -> Tuned:
    grid = _grid(table, leave_out=("dt", "from"))
    for name in grid:
        if name not in (known := tunable_names(algorithm, trainer)):
            meant = name_hint(name, algorithm, known)
            raise InputError(f"tuned has {name!r}: {algorithm} has {', '.join(known)}; other fields go to 'set'{meant}")
    dt = Duration(table["dt"]) if "dt" in table else None
    if "from" not in table:
        return Tuned(dt, grid)
    source = table["from"] if isinstance(table["from"], Mapping) else {}
    if not all(isinstance(source.get(key), str) for key in ("file", "sha256")):
        use = "it is for what study.json keeps of a file of tuned values"
        raise InputError(f"tuned has from = {quote(table['from'])}: {use}.")
    return Tuned(dt, grid, {key: source[key] for key in ("file", "sha256", *ABOUT_TUNING) if key in source})


def _points(table: Mapping[str, Any], algorithms: tuple[str, ...]) -> dict[str, tuple[Point, ...]]:
    if "points" not in table:
        return {}
    given = table["points"]
    if isinstance(given, Mapping):
        check_algorithms("points", given, algorithms)
    by_algorithm = given if isinstance(given, Mapping) else dict.fromkeys(algorithms, given)
    for points in by_algorithm.values():
        if not isinstance(points, list) or not points or not all(isinstance(each, Mapping) and each for each in points):
            needed = "it must be a list of tables, such as [{ discount = 0.99 }, { discount = 0.9 }]"
            raise InputError(f"points is {quote(points)}: {needed}.")
        for name, value in (item for point in points for item in point.items()):
            if isinstance(value, Mapping) or (isinstance(value, list) and name != "hidden"):
                raise InputError(f"points has {name} = {quote(value)}: a point has one value for each name.")
    return {
        algorithm: tuple(
            {name: Duration(each) if name == "dt" else _value(name, each) for name, each in point.items()}
            for point in points
        )
        for algorithm, points in by_algorithm.items()
    }


def _tables(key: str, table: object, algorithms: tuple[str, ...]) -> Mapping[str, Any]:
    """By algorithm, what a table says of it: in tables of their names, or one for all."""
    if not isinstance(table, Mapping):
        raise InputError(f"{key} is {quote(table)}: it must be a table, such as [{key}] with a line for each value.")
    if not any(name in AGENTS or name in ALGORITHMS for name in table):
        return dict.fromkeys(algorithms, table)
    check_algorithms(key, table, algorithms)
    return table


def _grid(table: Mapping[str, Any], leave_out: Sequence[str] = ()) -> dict[str, tuple[Any, ...]]:
    """By name, the values to try: a list is several, and hidden layers are one."""
    if not isinstance(table, Mapping):
        raise InputError(f"{quote(table)} is not a table of values: give a line for each, such as discount = 0.99.")
    grid = {}
    for name, value in ((name, value) for name, value in table.items() if name not in leave_out):
        several = value if isinstance(value, list) else [value]
        if name == "hidden" and several and not any(isinstance(each, list) for each in several):
            several = [value if isinstance(value, str) else several]
        grid[name] = tuple(_value(name, each) for each in several)
    return grid


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - whatever TOML has
    """One value: hidden layers as a tuple, 2e3 as 2000 for a count."""
    if any(isinstance(each, list | dict) for each in (value if isinstance(value, list) else [value])):
        raise InputError(f"{name} is {quote(value)}: give a value, or a list of values to try.")
    if name in _COUNTS and isinstance(value, float) and value.is_integer():
        return int(value)
    return tuple(value) if isinstance(value, list) else value


def _grid_table(grid: Grid) -> dict[str, list[Any]]:
    return {name: [_json_value(each) for each in values] for name, values in grid.items()}


def _json_value(value: Any) -> Any:  # noqa: ANN401 - any hyper-parameter
    if isinstance(value, Duration):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


_SINGULARS = {"task": "tasks", "env": "envs", "algorithm": "algorithms", "dt": "dts", "rule": "rules", "seed": "seeds"}
_KNOWN_KEYS = {
    *(*_SINGULARS, *_SINGULARS.values(), "name", "env_steps", "simulated_s", "env_dt", "num_envs", "trainer"),
    *("tuned", "set", "points", "own_rules", "device", "width", "engine", "patience", "home"),
}


def read_study(path: Path) -> StudySpec:
    table = read_toml(path)
    try:
        study = study_from_table(table, folder=path.parent)
        study.check_runs()
        return study
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def study_from_table(table: Mapping[str, Any], folder: Path = Path()) -> StudySpec:
    """The study that a table describes; tuned values may stand in a file of their own, looked for in a folder."""
    check_plain(table)
    for key in table:
        if key not in _KNOWN_KEYS:
            theirs, near = find_synonym(key, "ppo"), name_hint(key, "ppo", _KNOWN_KEYS)
            if theirs:
                place = "tuned" if theirs.ours in TUNABLE["ppo"] else "set"
                near = f"; {key} is {theirs.ours} here, in the table {place}."
            raise InputError(f"{key!r} is nothing that a study has: it has {', '.join(sorted(_KNOWN_KEYS))}{near}")
    zoo = trainer.get("zoo") if isinstance(trainer := table.get("trainer"), Mapping) else None
    own, (table, entry) = table.get("set", {}), _with_zoo_entry(table, folder)
    table = _with_trainers_num_envs(table)
    algorithms = tuple(_as_list(table, "algorithm"))
    home = str(Path(str(table.get("home", folder))).resolve())
    trainer = read_trainer(table["trainer"], home) if "trainer" in table else None
    for algorithm in algorithms:
        if not isinstance(algorithm, str) or algorithm not in known_algorithms(trainer):
            raise unknown_name_error(algorithm, "an algorithm", known_algorithms(trainer))
    tuned, others, points = read_values(table, algorithms, folder, trainer)
    if trainer is not None:  # values that nobody tuned are from no cycle time
        for algorithm in others.keys() & tuned.keys():
            others[algorithm] = _said_once(trainer, algorithm, tuned[algorithm], others[algorithm], zoo, own)
        tuned = {**dict.fromkeys(algorithms, Tuned(None)), **tuned}
        tuned = {name: values if values.source else _from_entry(values, entry) for name, values in tuned.items()}
    worlds = _worlds(table, trainer, home)
    name, patience, hang_timeout = _required(table, "name"), table.get("patience", HANG_TIMEOUT), None
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"name is {quote(name)}: it must be a text in one line, such as 'reacher-quick'.")
    with suppress(InputError):
        hang_timeout = Duration(patience)
    if hang_timeout is None or hang_timeout < Duration("1s"):
        raise InputError(f"patience is {quote(patience)}: give a time of at least a second, such as '30min' or '2h'.")
    return StudySpec(
        name=name,
        worlds=worlds,
        algorithms=algorithms,
        dts=tuple(Duration(each) for each in _as_list(table, "dt")),
        rules=_rules(table, algorithms, tuned, others, trainer),
        own_rules=parse_own_rules(table.get("own_rules", {})),
        seeds=_seeds(table),
        env_steps=_budget(table, worlds),
        tuned=tuned,
        others=others,
        points=points,
        num_envs=_count("num_envs", table.get("num_envs", 1)),
        device=str(table.get("device", "cpu")),
        width=_count("width", table["width"]) if "width" in table else None,
        engine=str(table.get("engine", AUTO)),
        hang_timeout=hang_timeout,
        trainer=trainer,
    )


def _said_once(
    trainer: TrainerSpec, algorithm: str, tuned: Tuned, said: Grid, zoo: str | None, own: Mapping[str, Any]
) -> Grid:
    """What is set in a trainer's words; a tuning began from the Zoo's entry, so that its values come before that."""
    if zoo and tuned.source:
        ours = our_fields(trainer.words, algorithm)
        said = {name: tried for name, tried in said.items() if name in own or ours.get(name) not in tuned.values}
    first, theirs = ({name: tried[0] for name, tried in grid.items() if tried} for grid in (tuned.values, said))
    refuse_two_values(trainer.words, algorithm, first, theirs, f" in [set] or {zoo}" if zoo else "")
    return said


def study_table(study: StudySpec) -> dict[str, Any]:
    """The table that `study_from_table` reads as this study, for JSON or TOML."""
    tasks = [world for world in study.worlds if isinstance(world, ClosedFormWorld)]
    envs = [world for world in study.worlds if isinstance(world, GymnasiumEnv)]
    points = {
        algorithm: [{name: _json_value(value) for name, value in point.items()} for point in each]
        for algorithm, each in study.points.items()
        if each
    }
    trainer = study.trainer.as_json() if study.trainer else {}
    homes = {trainer.pop("home", ""), *(env.home for env in envs if ":" in env.name)} - {""}
    return {
        "name": study.name,
        "tasks": [task.name for task in tasks],
        "envs": [env.name for env in envs],
        **_env_dt_table(tasks, envs),
        "algorithms": list(study.algorithms),
        "dts": [str(dt) for dt in study.dts],
        "rules": {algorithm: list(study.rules.get(algorithm, ())) for algorithm in study.algorithms},
        **({"own_rules": own_rules_as_table(study.own_rules)} if study.own_rules else {}),
        "seeds": list(study.seeds),
        "env_steps": study.env_steps,
        "tuned": {
            algorithm: {
                **({"dt": str(tuned.dt)} if tuned.dt else {}),
                **({"from": dict(tuned.source)} if tuned.source else {}),
                **_grid_table(tuned.values),
            }
            for algorithm, tuned in study.tuned.items()
        },
        "set": {algorithm: _grid_table(grid) for algorithm, grid in study.others.items()},
        **({"points": points} if points else {}),
        **({} if study.num_envs == 1 else {"num_envs": study.num_envs}),
        "device": study.device,
        **({} if study.width is None else {"width": study.width}),
        **({} if study.engine == AUTO else {"engine": study.engine}),
        **({} if study.hang_timeout == HANG_TIMEOUT else {"patience": str(study.hang_timeout)}),
        **({"trainer": trainer} if trainer else {}),
        **({"home": homes.pop()} if homes else {}),
    }


def _env_dt_table(tasks: Sequence[ClosedFormWorld], envs: Sequence[GymnasiumEnv]) -> dict[str, str]:
    """A study's one env_dt, which `_worlds` gives to its environments, or to its tasks if it has none."""
    for_tasks = {None if task.has_usual_env_dt else task.env_dt for task in tasks}
    for_envs = {env.env_dt for env in envs}
    if len(for_envs) > 1 or (envs and for_tasks - {None}) or (not envs and len(for_tasks) > 1):
        worlds: tuple[World, ...] = (*tasks, *envs)
        words = ", ".join(f"{world.name} {world.env_dt or 'none'}" for world in worlds)
        raise InputError(f"The environments have different env_dt ({words}): make a study of each.")
    env_dt = next(iter(for_envs if envs else for_tasks), None)
    return {} if env_dt is None else {"env_dt": str(env_dt)}


def _required(table: Mapping[str, Any], key: str, instead: str = "") -> Any:  # noqa: ANN401 - whatever TOML has
    if key not in table:
        raise InputError(f"{key!r} is missing: a study needs it{instead}.")
    return table[key]


def _as_list(table: Mapping[str, Any], singular: str) -> list[Any]:
    plural = _SINGULARS[singular]
    if singular in table and plural in table:
        raise InputError(f"{singular!r} and {plural!r} are both given: give one of them.")
    if singular not in table and plural not in table:
        raise InputError(f"{singular!r} is missing: a study needs one, or several as {plural!r}.")
    found = table.get(singular, table.get(plural))
    return found if isinstance(found, list) else [found]


def _with_zoo_entry(table: Mapping[str, Any], folder: Path) -> tuple[Mapping[str, Any], Tuned]:
    """The study with what an RL Zoo file, the trainer's `zoo`, says of its environment; what is set comes before.

    And where that is from, with the cycle time for which the entry holds actions: here the study does that.
    """
    trainer = table.get("trainer")
    if not isinstance(trainer, Mapping) or "zoo" not in trainer:
        return table, Tuned(None)
    names = _as_list(table, "env")
    if len(names) > 1 or not isinstance(names[0], str):
        raise InputError(f"zoo is {quote(trainer['zoo'])}: it has one environment's entry, so give one env.")
    from cycletime.libraries.yaml_edit import read_entry  # a packed study's machine may have no PyYAML
    from cycletime.libraries.zoo import as_zoo_file

    text = read_bounded_text(folder / str(trainer["zoo"]), MOST_BYTES)
    env_id = names[0].rpartition(":")[2]  # without the module that registers it
    entry = read_entry(as_zoo_file(text, env_id)[0], env_id)
    held, entry["env_wrapper"] = _held_actions(entry.get("env_wrapper"))
    settings = {str(name): repr(each) if isinstance(each, list | dict) else each for name, each in entry.items()}
    num_envs = _count("n_envs", settings.pop("n_envs", 1))
    said = {name: each for name, each in settings.items() if each is not None and name != "n_timesteps"}
    kept = {name: each for name, each in trainer.items() if name != "zoo"}
    step = {"env_dt": held["env_dt"]} if "env_dt" in held else {}
    study = {**step, **table, "set": {**said, **table.get("set", {})}, "trainer": {"num_envs": num_envs, **kept}}
    source = {"file": str(trainer["zoo"]), "sha256": sha256(text.encode()).hexdigest(), "num_envs": num_envs}
    return study, Tuned(Duration(held["dt"]) if held else None, source=source)


def _held_actions(said: object) -> tuple[Mapping[str, Any], object]:
    """What an entry's wrappers say of holding actions, by `CycleTime` with a dt and an env_dt; and its others."""
    wrappers = said if isinstance(said, list) else [said]
    ours = [each for each in wrappers if isinstance(each, Mapping) and any(map(WRAPPER_NAMES.fullmatch, each))]
    held = next(iter(ours[0].values())) if len(ours) == 1 and len(ours[0]) == 1 else None
    if not isinstance(held, Mapping) or not {"dt"} <= held.keys() <= {"dt", "env_dt"}:
        return {}, said
    others = [each for each in wrappers if each is not ours[0]]
    return held, others or None


def _from_entry(tuned: Tuned, entry: Tuned) -> Tuned:
    if entry.dt and tuned.dt and entry.dt != tuned.dt:
        held = f"the entry in {entry.source['file']} holds actions for {entry.dt}"
        raise InputError(f"tuned has dt {tuned.dt}, and {held}: leave dt out of [tuned].")
    return replace(tuned, dt=tuned.dt or entry.dt, source=entry.source)


def _with_trainers_num_envs(table: Mapping[str, Any]) -> Mapping[str, Any]:
    if "num_envs" not in table or "trainer" not in table:
        return table
    trainer, num_envs = table["trainer"], _count("num_envs", table["num_envs"])
    own = {"name": trainer} if isinstance(trainer, str) else trainer
    if isinstance(own, Mapping) and own.get("num_envs", num_envs) != num_envs:
        raise InputError(f"num_envs is {num_envs} and the trainer's {quote(own['num_envs'])}: give one of them.")
    rest = {key: value for key, value in table.items() if key != "num_envs"}
    return {**rest, "trainer": {**own, "num_envs": num_envs} if isinstance(own, Mapping) else own}


def _budget(table: Mapping[str, Any], worlds: Sequence[World]) -> int:
    """The budget in environment steps; given in seconds, they must be whole numbers of the same time step."""
    if "simulated_s" not in table:
        return _count("env_steps", _required(table, "env_steps", ", or 'simulated_s', the seconds of a run"))
    if "env_steps" in table:
        raise InputError("'env_steps' and 'simulated_s' are both given: give one of them.")
    seconds = table["simulated_s"]
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:
        raise InputError(f"simulated_s is {quote(seconds)}: it must be a positive number of seconds.")
    longest = max(map(Duration, _as_list(table, "dt")))
    if (span := Duration.of_seconds(seconds)) < longest:
        raise InputError(f"simulated_s is {seconds}: a run must last {longest} at least, one cycle.")
    steps = {time_step(world, longest): world.name for world in worlds}
    if len(steps) > 1:
        have = ", ".join(f"{name} has {env_dt}" for env_dt, name in steps.items())
        raise InputError(f"simulated_s needs one time step of all environments, and {have}: give env_steps instead.")
    return max(1, round(span / next(iter(steps))))


def _worlds(table: Mapping[str, Any], trainer: TrainerSpec | None, home: str) -> tuple[World, ...]:
    env_dt = Duration(table["env_dt"]) if "env_dt" in table else None
    given = [key for key in ("task", "tasks", "env", "envs") if key in table and table[key] != []]
    if not given and trainer is not None and trainer.name not in BUILT_IN:
        return (ForeignEnv(trainer.label, env_dt),)
    if not given:
        raise InputError("'task' is missing: a study needs a task or an env, or several as 'tasks' and 'envs'.")
    tasks = _as_list(table, "task") if {"task", "tasks"} & set(given) else []
    envs = _as_list(table, "env") if {"env", "envs"} & set(given) else []
    for name in (*tasks, *envs):
        if not isinstance(name, str) or not name:
            raise InputError(f"{quote(name)} is neither a task nor an environment: give a name, such as 'reacher'.")
    step = () if env_dt is None or envs else (env_dt,)
    if trainer is not None and (trainer.command or trainer.name == "brax" or envs == [trainer.label]):
        # Names that only the trainer understands.
        return tuple(ForeignEnv(name, env_dt) for name in (*tasks, *envs))
    named = (GymnasiumEnv(name, env_dt, home=home) for name in envs)
    return (*(ClosedFormWorld(name, *step) for name in tasks), *named)


def _rules(
    table: Mapping[str, Any],
    algorithms: tuple[str, ...],
    tuned: Mapping[str, Tuned],
    others: Mapping[str, Grid],
    trainer: TrainerSpec | None,
) -> dict[str, Any]:
    """By algorithm, its rules; by default what is recommended, where its values were tuned at a cycle time."""
    carried = algorithms_with_rules(trainer)
    bare = [algorithm for algorithm, values in tuned.items() if values.dt is None]
    own = {
        each: [_recommended(each, tuned.get(each), others.get(each, {}), trainer)]
        if each in carried and each not in bare
        else []
        for each in algorithms
    }
    if "rule" not in table and "rules" not in table:
        given = own
    elif isinstance(by_algorithm := table.get("rule", table.get("rules")), Mapping):
        _as_list(table, "rule")  # which refuses both
        check_algorithms("rules", by_algorithm, algorithms)
        listed = {name: each if isinstance(each, list) else [each] for name, each in by_algorithm.items()}
        given = {**own, **listed} if listed else {}
    else:
        given = dict.fromkeys(algorithms, _as_list(table, "rule"))
        if any(each in carried for each in algorithms):
            given = {each: rules if each in carried else [] for each, rules in given.items()}
    for algorithm, rules in given.items():
        for rule in rules:
            if not isinstance(rule, str):
                raise InputError(f"rules has {quote(rule)}: a rule is a name, such as 'dt-aware'.")
            if algorithm not in carried:
                raise InputError(f"rules has {rule!r} for {algorithm}: no rule carries its values, so leave it out.")
        if len(set(rules)) != len(rules):
            raise InputError(f"rules has the same one twice for {algorithm}: {quote(rules)}.")
    return {each: tuple(given.get(each, ())) for each in algorithms}


def _recommended(algorithm: str, tuned: Tuned | None, others: Grid, trainer: TrainerSpec | None) -> str:
    tuned = tuned or Tuned(Duration("16ms"))
    assert tuned.dt is not None, "what is from no cycle time is not carried"
    several = [name for name, tried in tuned.values.items() if len(tried) > 1]
    tuned_fields = (*several, *tuned.source.get("searched", ()))
    said = {name: tried[0] for name, tried in others.items() if tried}
    decays = {name: tried[0] for name, tried in tuned.values.items() if tried and name in HORIZON_FIELDS}
    return recommend(tuned_hyperparameters(trainer, algorithm, decays, said, tuned.dt, tuned_fields)).rule


def _seeds(table: Mapping[str, Any]) -> tuple[int, ...]:
    """A number counts seeds from 0 on; a list, or the singular, is the seeds themselves."""
    if "seed" in table and "seeds" in table:
        raise InputError("'seed' and 'seeds' are both given: give one of them.")
    if "seed" in table:
        return (_count("seed", table["seed"], least=0),)
    given = table.get("seeds", 1)
    if isinstance(given, list):
        return tuple(_count("seeds", each, least=0) for each in given)
    if (count := _count("seeds", given)) > MAX_RUNS:
        raise InputError(f"seeds is {given!r}: it is how many there are, at most {MAX_RUNS:,}.")
    return tuple(range(count))


def _count(name: str, value: Any, least: int = 1) -> int:  # noqa: ANN401 - whatever TOML has
    whole = value.is_integer() if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(f"{name} is {quote(value)}: it must be a whole number of at least {least}.")
    return int(value)
