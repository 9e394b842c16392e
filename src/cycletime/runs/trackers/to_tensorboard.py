"""TensorBoard: event files in the run's folder, written by TensorBoard's own package.

Records are appended one by one and no file stays open. A writer with a thread (tensorboardX's, TensorFlow's) would
hide a full disk from the caller, or wait forever for a thread that died of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from struct import Struct
from typing import Any

from cycletime.runs.trackers.extras import load
from cycletime.runs.trackers.tracker import RunInfo, Status

_ENDING = ".cycletime"
_HEADER = Struct("<Q4x")
_CHECKSUM_BYTES = 4


class TensorBoard:
    """Writes to `<run folder>/tensorboard`; what lies beyond a resumed run's checkpoint is taken back."""

    def __init__(self) -> None:
        """Refuse a missing package before the run starts."""
        self._event = _load("compat.proto.event_pb2")
        self._summary = _load("compat.proto.summary_pb2")
        self._hparams = _load("plugins.hparams.summary_v2")
        self._record_writer = _load("summary.writer.record_writer").RecordWriter
        self._file = Path()

    def begin(self, run: RunInfo) -> None:
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
        """Append the values as one event."""
        told = [self._summary.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._append(step=env_steps, summary=self._summary.Summary(value=told))

    def end(self, status: Status) -> None:
        """Nothing is left to write."""

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
            record for record, event in self._records(data) if event.HasField("file_version") or event.step <= last_step
        )
        if kept != data:
            changed = file.with_name("rewritten")  # a name that TensorBoard does not read
            changed.write_bytes(kept)
            changed.replace(file)

    def _records(self, data: bytes) -> Iterator[tuple[bytes, Any]]:
        """A file's records and their events: length, checksum, event, checksum; a torn end is left out."""
        start = 0
        while len(data) >= start + _HEADER.size:
            (length,) = _HEADER.unpack_from(data, start)
            stop = start + _HEADER.size + length + _CHECKSUM_BYTES
            if stop > len(data):
                return
            event = data[start + _HEADER.size : stop - _CHECKSUM_BYTES]
            yield data[start:stop], self._event.Event.FromString(event)
            start = stop


def _name_after(earlier: list[Path]) -> str:
    """The present time, or a little more than the last file's where the clock was set back."""
    last_ns = int("".join(earlier[-1].name.split(".")[3:5])) if earlier else 0
    seconds, nanoseconds = divmod(max(time.time_ns(), last_ns + 1), 10**9)
    return f"events.out.tfevents.{seconds:010d}.{nanoseconds:09d}{_ENDING}"


def _load(module: str) -> Any:  # noqa: ANN401 - of a package without types
    return load(f"tensorboard.{module}", "TensorBoard", "tensorboard")
