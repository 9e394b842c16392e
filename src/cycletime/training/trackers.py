"""Experiment trackers as observers of a training: TensorBoard and Weights & Biases, each an extra."""

from __future__ import annotations

import importlib
import os
import sys
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from struct import Struct
from types import MappingProxyType, ModuleType
from typing import Any, TypeAlias

from cycletime.errors import InputError, kind_and_first_line
from cycletime.extras import install_command
from cycletime.libraries.parameters import flatten_settings
from cycletime.training.observers import Progress, Status, TrainingObserver
from cycletime.training.run_folder import RunFolder


def load_extra(module: str, title: str, extra: str) -> ModuleType:
    """The module of an extra, or the sentence that says how to install it."""
    package = module.partition(".")[0]
    try:
        # A plain folder of the package's name, such as W&B's own './wandb', can be imported but has no file.
        if importlib.import_module(package).__file__ is not None:
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise InputError(f"{title} cannot be loaded ({error}): {install_command(extra)}.") from error
    raise InputError(f"{title} is not installed: {install_command(extra)}.") from None


Scalar: TypeAlias = str | int | float | bool | None
"""A value that JSON has, other than lists and objects."""
POINTS = 500
"""About so many points are logged of a run."""
_COUNTS = ("env_steps", "agent_steps", "learnings")


@dataclass(frozen=True)
class RunInfo:
    name: str
    identity: str
    """Hexadecimal digits; the same when the run goes on, so that a tracker finds it again."""
    folder: Path
    config: Mapping[str, Scalar]
    """The spec, flat: `agent.discount`, `dt`, `seed`, ..."""
    resumed_from: int | None = None
    """The environment steps of the checkpoint that the run goes on from: values beyond it will be logged again.
    None: it starts from the beginning."""


def _print_warning(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


class Tracker(TrainingObserver, ABC):
    """Logs a run's returns, losses and speed. A further tracker has three methods: `open_run`, `log`, `close_run`.

    An error in `open_run` refuses the run, before any training. A later one is not the training's: `warn` gets one
    sentence, and the run goes on without the tracker.
    """

    def __init__(self, warn: Callable[[str], object] = _print_warning) -> None:
        self.warn = warn
        self._is_open = False

    @abstractmethod
    def open_run(self, run: RunInfo) -> None:
        """Open the run, or find it again, with its config."""

    @abstractmethod
    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        """Log values, named in two namespaces (`charts/episodic_return`, `losses/policy_loss`), at a step."""

    def close_run(self, status: Status) -> None:
        """Write what is left and close the run; by default nothing is left."""

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        spec = folder.spec
        self._interval = max(1, ceil(spec.env_steps / POINTS))
        self._last_s, self._last_env_steps = time.monotonic(), resumed_from or 0
        flat = flatten_settings(spec.as_json())
        config = {name: ",".join(map(str, each)) if isinstance(each, list) else each for name, each in flat.items()}
        run = RunInfo(spec.name, spec.identity, folder.path, config, resumed_from)
        try:
            self.open_run(run)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{type(self).__name__} could not begin: {kind_and_first_line(error)}.") from error
        self._is_open = True

    def update(self, progress: Progress) -> None:
        """Log the means of what came since the last time, interval by interval, and the speed."""
        points: dict[int, dict[str, list[float]]] = {}
        last_steps: dict[int, int] = {}

        def point(env_steps: int) -> dict[str, list[float]]:
            interval = ceil(env_steps / self._interval)
            last_steps[interval] = max(last_steps.get(interval, 0), env_steps)
            return points.setdefault(interval, defaultdict(list))

        episodes = progress.episodes
        for env_steps, total, length in zip(episodes.env_steps, episodes.returns, episodes.length_steps, strict=True):
            numbers = point(int(env_steps))
            numbers["charts/episodic_return"].append(float(total))
            numbers["charts/episodic_length_env_steps"].append(float(length))
        for line in progress.lines:
            numbers = point(line["env_steps"])
            for name, number in line.items():
                if name not in _COUNTS and number is not None:
                    numbers[f"losses/{name}"].append(number)
        now = time.monotonic()
        rate = (progress.env_steps - self._last_env_steps) / max(now - self._last_s, 1e-9)
        self._last_s, self._last_env_steps = now, progress.env_steps
        for interval, numbers in sorted(points.items()):
            means = {name: sum(each) / len(each) for name, each in numbers.items()}
            values = {**means, "charts/env_steps_per_second": rate}
            self._attempt(partial(self.log, last_steps[interval], values))

    def end(self, status: Status) -> None:
        self._attempt(lambda: self.close_run(status))
        self._is_open = False

    def _attempt(self, call: Callable[[], None]) -> None:
        if not self._is_open:
            return
        try:
            call()
        except Exception as error:
            self._is_open = False
            self.warn(f"{type(self).__name__} failed; disabled for this run: {kind_and_first_line(error)}.")


_ENDING = ".cycletime"
_HEADER = Struct("<Q4x")
_CHECKSUM_BYTES = 4


class TensorBoard(Tracker):
    """Writes to `<run folder>/tensorboard`; what lies beyond a resumed run's checkpoint is taken back."""

    def __init__(self, warn: Callable[[str], object] = _print_warning) -> None:
        super().__init__(warn)
        self._event = load_tensorboard("compat.proto.event_pb2")
        self._summary = load_tensorboard("compat.proto.summary_pb2")
        self._hparams = load_tensorboard("plugins.hparams.summary_v2")
        self._record_writer = load_tensorboard("summary.writer.record_writer").RecordWriter
        self._file = Path()

    def open_run(self, run: RunInfo) -> None:
        """Start a new file of events, since TensorBoard reads one that has a successor no further."""
        folder = run.folder / "tensorboard"
        folder.mkdir(parents=True, exist_ok=True)
        last_step = -1 if run.resumed_from is None else run.resumed_from
        for earlier in sorted(folder.glob(f"*{_ENDING}")):
            self._take_back(earlier, last_step)
        # TensorBoard reads files in the order of their names.
        self._file = folder / _name_after(sorted(folder.glob(f"*{_ENDING}")))
        self._file.touch(exist_ok=False)
        self._append(file_version="brain.Event:2")
        # For a TensorBoard that is running and has read the earlier files before they changed.
        started = self._event.SessionLog(status=self._event.SessionLog.START)
        self._append(step=last_step + 1, session_log=started)
        config = {key: "none" if value is None else value for key, value in run.config.items()}
        self._append(summary=self._hparams.hparams_pb(config, trial_id=run.identity))

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        points = [self._summary.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._append(step=env_steps, summary=self._summary.Summary(value=points))

    def _append(self, **content: Any) -> None:  # noqa: ANN401 - fields of a protocol buffer
        event = self._event.Event(wall_time=time.time(), **content)
        with self._file.open("ab") as file:
            self._record_writer(file).write(event.SerializeToString())

    def _take_back(self, file: Path, last_step: int) -> None:
        """Rewrite a file without the events beyond a step.

        Only TensorBoard's slow reader heeds the mark of a new session; its fast one, the default, would show both.
        """
        data = file.read_bytes()
        kept = b"".join(
            record for record, event in read_events(data) if event.HasField("file_version") or event.step <= last_step
        )
        if kept != data:
            changed = file.with_name("rewritten")  # a name that TensorBoard does not read
            changed.write_bytes(kept)
            changed.replace(file)


def read_events(data: bytes) -> Iterator[tuple[bytes, Any]]:
    """The whole records of a file of TensorBoard's (length, checksum, event, checksum), and their events."""
    parse, start = load_tensorboard("compat.proto.event_pb2").Event.FromString, 0
    while len(data) >= start + _HEADER.size:
        (length,) = _HEADER.unpack_from(data, start)
        stop = start + _HEADER.size + length + _CHECKSUM_BYTES
        if stop > len(data):
            return
        yield data[start:stop], parse(data[start + _HEADER.size : stop - _CHECKSUM_BYTES])
        start = stop


def _name_after(earlier: list[Path]) -> str:
    """The present time, or a little more than the last file's where the clock was set back."""
    last_ns = int("".join(earlier[-1].name.split(".")[3:5])) if earlier else 0
    seconds, nanoseconds = divmod(max(time.time_ns(), last_ns + 1), 10**9)
    return f"events.out.tfevents.{seconds:010d}.{nanoseconds:09d}{_ENDING}"


def load_tensorboard(module: str) -> Any:  # noqa: ANN401 - of a package without types
    return load_extra(f"tensorboard.{module}", "TensorBoard", "tensorboard")


_EXIT_CODES: Mapping[Status, int] = MappingProxyType({"finished": 0, "stopped": 255, "failed": 1})
"""255 is W&B's own code for an interrupt: it shows such a run as killed."""


class WeightsAndBiases(Tracker):
    """Logs to W&B. Mode, project, entity and folder are W&B's own variables: WANDB_MODE, WANDB_PROJECT, ..."""

    def __init__(self, warn: Callable[[str], object] = _print_warning) -> None:
        super().__init__(warn)
        self._wandb = load_extra("wandb", "Weights & Biases", "wandb")
        self._run: Any = None

    def open_run(self, run: RunInfo) -> None:
        run.folder.mkdir(parents=True, exist_ok=True)
        self._run = self._wandb.init(
            # W&B would let these arguments override its variables.
            project=os.environ.get("WANDB_PROJECT") or "cycletime",
            name=os.environ.get("WANDB_NAME") or run.name,
            dir=os.environ.get("WANDB_DIR") or str(run.folder),
            id=run.identity,
            resume="allow",
            reinit="create_new",  # runs can go on side by side in one process
            config=dict(run.config),
        )

    def log(self, env_steps: int, values: Mapping[str, float]) -> None:
        """Log the values, unless W&B has them: it takes no step twice, and would warn of each."""
        if env_steps >= self._run.starting_step:
            self._run.log(dict(values), step=env_steps)

    def close_run(self, status: Status) -> None:
        self._run.finish(exit_code=_EXIT_CODES[status])


TRACKERS: Mapping[str, Callable[[Callable[[str], object]], Tracker]] = MappingProxyType(
    {"tensorboard": TensorBoard, "wandb": WeightsAndBiases}
)


def trackers_for(names: Sequence[str], warn: Callable[[str], object] = _print_warning) -> list[Tracker]:
    for place, name in enumerate(names):
        if name not in TRACKERS:
            raise InputError(f"{name!r} is not a tracker: give one of {', '.join(TRACKERS)}.")
        if name in names[:place]:
            raise InputError(f"{name!r} is given twice: name each tracker once.")
    return [TRACKERS[name](warn) for name in names]
