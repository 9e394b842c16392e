"""One entry of a Zoo file, carried as `cycletime transfer FILE --env ID` carries it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cycletime.duration import DurationLike
from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.configuration import read_configuration
from cycletime.rules import Hyperparameters


@dataclass(frozen=True)
class ZooTransfer:
    text: str
    values: Hyperparameters | None
    changed: Mapping[str, Any]
    notes: tuple[str, ...]


def transfer_entry(
    text: str,
    env_id: str,
    algorithm: str,
    from_dt: DurationLike,
    to_dt: DurationLike,
    rule: str | None = None,
    also: str | Collection[str] = (),
    action_size: int | None = None,
) -> ZooTransfer:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "zoo.yml"
        file.write_bytes(text.encode())
        read = read_configuration(file, algorithm=algorithm, env_id=env_id, library="stable-baselines3")
        carried = carry_configuration(read, to_dt, from_dt=from_dt, rule=rule, also=also, action_size=action_size)
        texts, notes = carried.texts()
        yours = tuple(
            f"{each.name} would be {each.new}: {each.reason}" for each in carried.changes if each.treatment == "yours"
        )
        return ZooTransfer(texts[file], carried.values, carried.changed(), (*yours, *carried.notes, *notes))
