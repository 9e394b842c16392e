"""Reading a learning curve while a trainer writes it: CSV, JSON lines, or TensorBoard's event files.

Only whole lines and records are read; what a kill or a full disk tore at the end is waited for, and is no point.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from typing import Any, NamedTuple

from cycletime.errors import InputError, RunError, quote
from cycletime.training.external import COLUMNS, CURVE_SUFFIXES
from cycletime.training.trackers import load_tensorboard, read_events

RETURN_TAGS = {
    "charts/episodic_return": "cycles",
    "rollout/ep_rew_mean": "cycles",
    "Train/mean_reward": "updates",
    "Reward / Total reward (mean)": "steps of all environments at once",
}
"""What CleanRL, Stable-Baselines3, rsl_rl and skrl call the return in TensorBoard, and what its step counts there."""
MOST_BYTES = 64 * 2**20
"""Read at a time, and more than any line or record has."""


class CurvePoint(NamedTuple):
    seconds: float
    """Simulated, of all environments together."""
    agent_steps: int
    mean_return: float
    """Of an episode, or the mean of several; NaN where learning diverged."""


@dataclass
class CurveReader:
    folder: Path
    curve: str
    """A file in the folder that ends in .csv or .jsonl; anything else is the folder of TensorBoard's event files."""
    dt_s: float
    columns: Mapping[str, str] = field(default_factory=dict)
    num_envs: int = 1
    update_steps: int = 1
    read_bytes: dict[Path, int] = field(default_factory=dict)
    header: list[str] = field(default_factory=list)
    lines: int = 0
    tags: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not self._is_text:
            load_tensorboard("compat.proto.event_pb2")  # refused here if it is missing, before anything is started

    @property
    def what(self) -> str:
        tags = [quote(self.columns["return"])] if "return" in self.columns else RETURN_TAGS
        return self.curve if self._is_text else f"TensorBoard's {' or '.join(tags)}"

    @property
    def _is_text(self) -> bool:
        return self.curve.endswith(CURVE_SUFFIXES)

    def new_points(self) -> list[CurvePoint]:
        if not self._is_text:
            return [
                point for path in sorted(self.folder.rglob("events.out.tfevents.*")) for point in self._events(path)
            ]
        path = self.folder / self.curve
        text = self._new_bytes(path, lambda data: data.rfind(b"\n") + 1).decode("utf-8", "replace")
        return [point for line in text.splitlines() for point in self._line(line)]

    def _new_bytes(self, path: Path, whole: Callable[[bytes], int]) -> bytes:
        at = self.read_bytes.get(path, 0)
        try:
            with path.open("rb") as file:
                file.seek(at)
                data = file.read(MOST_BYTES)
        except FileNotFoundError:
            return b""
        end = whole(data)
        if not end and len(data) == MOST_BYTES:
            raise RunError(f"{path.name} has a line of more than {MOST_BYTES:,} bytes: it is damaged.")
        self.read_bytes[path] = at + end
        return data[:end]

    def _line(self, line: str) -> Iterator[CurvePoint]:
        self.lines += 1
        if not line.strip():
            return
        if not self.curve.endswith(".csv"):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if not isinstance(row, dict):
                raise RunError(f"Line {self.lines} of {self.curve} is {quote(line)}: it must be a JSON object.")
            if self._called("return") in row:  # other lines may tell of other things
                yield self._point(row)
            return
        cells = next(csv.reader([line]))
        if not self.header:
            self.header = [cell.strip() for cell in cells]
            if "return" not in self._have(self.header) or len(self._have(self.header)) < 2:
                names = ", ".join(self._called(each) for each in ("return", "seconds"))
                needed = f"{names} (or {self._called('agent_steps')}); 'return' and 'seconds' in [trainer] name others"
                raise RunError(f"{self.curve} has the columns {quote(', '.join(self.header))}: it needs {needed}.")
            return
        if len(cells) != len(self.header):
            counted = f"{len(cells)} columns, and the first one has {len(self.header)}"
            raise RunError(f"Line {self.lines} of {self.curve} has {counted}.")
        row = dict(zip(self.header, cells, strict=True))
        if row[self._called("return")].strip():  # some loggers leave cells of other rows empty
            yield self._point(row)

    def _called(self, name: str) -> str:
        return self.columns.get(name, name)

    def _have(self, names: Mapping[str, Any] | list[str]) -> list[str]:
        return [name for name in COLUMNS if self._called(name) in names]

    def _point(self, row: Mapping[str, Any]) -> CurvePoint:
        numbers = {}
        for name in self._have(row):
            try:
                numbers[name] = float(row[self._called(name)])
            except (TypeError, ValueError):
                wrong = f"{quote(row[self._called(name)])} as {self._called(name)}: it must be a number"
                raise RunError(f"Line {self.lines} of {self.curve} has {wrong}.") from None
        return self._whole_point(numbers, f"Line {self.lines} of {self.curve}")

    def _whole_point(self, numbers: Mapping[str, float], place: str) -> CurvePoint:
        if not {"seconds", "agent_steps"} & numbers.keys():
            raise RunError(f"{place} has neither {self._called('seconds')} nor {self._called('agent_steps')}.")
        seconds = numbers.get("seconds", self.dt_s * numbers.get("agent_steps", 0))
        steps = numbers.get("agent_steps", seconds / self.dt_s)
        if not (0 <= seconds < 1e15 and 0 <= steps < 2**53):
            raise RunError(f"{place} has {seconds:g} seconds and {steps:g} agent steps: both must be 0 or more.")
        value = numbers["return"]
        return CurvePoint(seconds, round(steps), float("nan") if isinf(value) else value)

    def _events(self, path: Path) -> Iterator[CurvePoint]:
        wanted = [self.columns["return"]] if "return" in self.columns else RETURN_TAGS
        for event in self._new_events(path):
            scalars = {value.tag: value.simple_value for value in event.summary.value if value.HasField("simple_value")}
            self.tags |= scalars.keys()
            for tag in wanted:
                if tag in scalars:
                    counted = {"updates": (event.step + 1) * self.update_steps, "cycles": event.step}  # from 0 on
                    agent_steps = counted.get(RETURN_TAGS.get(tag, "cycles"), event.step * self.num_envs)
                    numbers = {"agent_steps": agent_steps, "return": scalars[tag]}
                    yield self._whole_point(numbers, f"A record of {path.name}")

    def _new_events(self, path: Path) -> list[Any]:
        events: list[Any] = []

        def whole(data: bytes) -> int:
            records = list(read_events(data))
            events.extend(event for _, event in records)
            end = sum(len(record) for record, _ in records)
            length = int.from_bytes(data[end : end + 8], "little")
            if len(data) >= end + 8 and length > MOST_BYTES:  # it would be waited for until the training is over
                raise RunError(f"{path.name} has a record of {length:,} bytes: it is damaged.")
            return end

        try:
            self._new_bytes(path, whole)
        except (InputError, RunError):
            raise
        except Exception as error:  # protocol buffers have errors of their own
            raise RunError(f"{path.name} is damaged: {error}.") from error
        return events
