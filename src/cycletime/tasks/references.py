"""What return doing nothing and a scripted controller get, by task and cycle time: measured once, and kept.

``python benchmarks/references.py`` measures all of it again, and writes references.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from cycletime.duration import Duration, DurationLike

FILE = "references.json"
NOTHING, SCRIPTED = "doing nothing", "a scripted controller"


@dataclass(frozen=True)
class Reference:
    name: str
    mean: float
    error: float
    episodes: int


def references(task: str, dt: DurationLike) -> tuple[Reference, ...]:
    data = _load()
    found = data["returns"].get(task, {}).get(str(Duration(dt)), {})
    return tuple(Reference(name, mean, error, data["episodes"]) for name, (mean, error) in found.items())


@cache
def _load() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads((files(__package__) / FILE).read_text(encoding="utf-8"))
    return data
