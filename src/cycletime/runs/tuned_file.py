"""A file of tuned hyper-parameters, as `cycletime tune` writes it and people may: values, and where they were tuned.

    [tuned.ppo]
    dt = "16ms"
    batch = 4000
    minibatch = 25

    [set.ppo]
    hidden = [32, 32]

A file for one algorithm may leave out its name: ``[tuned]``. A table ``[from.ppo]`` says where the values come from.
No JAX in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from cycletime.duration import Duration, typed_duration
from cycletime.errors import InputError, shown, unknown
from cycletime.rules import PPO, SAC, Hyperparameters
from cycletime.rules.libraries.ours import called_here
from cycletime.runs.files import write_last
from cycletime.runs.tables import check_plain, read_toml, read_toml_text, toml_table, toml_text

_TUNED, _SET, _FROM = "tuned", "set", "from"
_KINDS: Mapping[str, type[Hyperparameters]] = {"ppo": PPO, "sac": SAC}
_NAMES = {
    **{name: tuple(quantity.field for quantity in kind.quantities) for name, kind in _KINDS.items()},
    "actor-critic": ("discount",),
}


@dataclass(frozen=True)
class TunedValues:
    """The tuned hyper-parameters of an algorithm."""

    dt: Duration
    """The cycle time that they were tuned at."""
    values: Mapping[str, Any]
    """Those that rules carry to other cycle times."""
    others: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the agent, the same at every cycle time."""


@dataclass(frozen=True)
class TunedFile:
    """What a file says, by algorithm where it names them."""

    path: Path
    tuned: Mapping[str, Any]
    """The table of that name."""
    others: Mapping[str, Any]
    """The table 'set'."""
    origins: Mapping[str, Any] = field(default_factory=dict)
    """The table 'from', which says where values come from."""
    sha256: str = ""
    """Of the file."""

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Those that the file names; none where it is for whichever algorithm is asked for."""
        return tuple(name for name in self.tuned if name in _NAMES)

    def of(self, algorithm: str) -> TunedValues:
        """The values of an algorithm.

        Raises:
            InputError: if the file has none, or they are no hyper-parameters of it.
        """
        if algorithm not in _NAMES:
            raise unknown(algorithm, "an algorithm", sorted(_NAMES))
        if self.algorithms and algorithm not in self.tuned:
            raise InputError(f"{self.path} has values of {', '.join(self.algorithms)}, and none of {algorithm}.")
        values = dict(_table(self.path, _TUNED, self.tuned, algorithm))
        others = dict(_table(self.path, _SET, self.others, algorithm))
        try:
            return TunedValues(_checked(algorithm, values), values, {name: _plain(others[name]) for name in others})
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from error

    def origin(self, algorithm: str) -> Mapping[str, Any]:
        """Where the values of an algorithm come from, as `cycletime tune` tells it; empty where nobody does."""
        origin = self.origins.get(algorithm)
        return origin if isinstance(origin, Mapping) else {}


def read_tuned(path: Path | str) -> TunedFile:
    """The tuned values in a file.

    Raises:
        InputError: if it cannot be read or has none.
    """
    path = Path(path)
    text = read_toml_text(path)
    told, digest = toml_table(text, path), sha256(text.encode()).hexdigest()
    try:
        check_plain({key: told[key] for key in (_TUNED, _SET) if key in told})
        for key in (_TUNED, _SET):
            if not isinstance(told.get(key, {}), dict):
                raise InputError(f"{key} is {shown(told[key])}, and should be a table.")
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not told.get(_TUNED):
        raise InputError(f"{path} has no tuned values: give them in a table such as [tuned.ppo].")
    origins = told.get(_FROM)
    return TunedFile(path, told[_TUNED], told.get(_SET, {}), origins if isinstance(origins, dict) else {}, digest)


def write_tuned(path: Path, algorithm: str, tuned: TunedValues, origin: Mapping[str, Any]) -> None:
    """Write the tuned values of an algorithm, and where they come from; `read_tuned` reads the values again."""
    tables = {
        f"{_TUNED}.{algorithm}": {"dt": str(tuned.dt), **tuned.values},
        f"{_SET}.{algorithm}": tuned.others,
        f"{_FROM}.{algorithm}": origin,
    }
    text = toml_text({name: table for name, table in tables.items() if table})
    write_last(path, lambda file: file.write_text(text, encoding="utf-8"))


def made_by(path: Path, algorithm: str) -> str | None:
    """The study whose tuning wrote a file; None where no tuning did, or the file has other algorithms' values too."""
    try:
        told = read_toml(path)
        study = told[_FROM][algorithm]["study"] if list(told[_TUNED]) == [algorithm] else None
    except (InputError, KeyError, TypeError):
        return None
    return None if study is None else str(study)


def _table(path: Path, key: str, table: Mapping[str, Any], algorithm: str) -> Mapping[str, Any]:
    """The part of a table that is an algorithm's: its own, or all of it where no algorithm is named."""
    found = table.get(algorithm, {}) if any(name in _NAMES for name in table) else table
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: {key}.{algorithm} is {shown(found)}, and should be a table.")
    return found


def _checked(algorithm: str, values: dict[str, Any]) -> Duration:
    """The cycle time, taken out of the values, which are checked."""
    if "dt" not in values:
        raise InputError("dt is missing: say at which cycle time the values were tuned, such as dt = '16ms'.")
    dt = typed_duration(values.pop("dt"))
    for name, value in values.items():
        if name not in _NAMES[algorithm]:
            known = _NAMES[algorithm]
            meant = called_here(name, algorithm, known)
            raise InputError(f"{name!r} is not a tuned value: {algorithm} has {', '.join(known)}{meant}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{name} is {shown(value)}: it must be one number.")
    if algorithm in _KINDS:
        kind = _KINDS[algorithm]
        for count in (each.name for each in fields(kind) if str(each.type).startswith("int")):
            if isinstance(value := values.get(count), float) and value.is_integer():
                values[count] = int(value)  # as in 2e3
        kind(dt=dt, **values)
    return dt


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever TOML has
    return tuple(value) if isinstance(value, list) else value
