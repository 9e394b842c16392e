"""A packed study on a machine that has a GPU and little else: Python, NumPy, JAX and CuPy.

    python pack.zip OUT

OUT gets results-000001.npz and so on, each with runs that are finished, as soon as they are. A process that was killed
loses none of them, and the same command goes on with the others from going-on.npz.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.engines.cuda.compact import EPISODE, Kept, read_kept, write_kept
from cycletime.engines.cuda.describing import world_of
from cycletime.engines.cuda.device import Device, find_device
from cycletime.engines.cuda.group import CudaGroup
from cycletime.engines.cuda.layout import NUMBERS, POSITION_WORDS
from cycletime.engines.cuda.setting import card_of
from cycletime.engines.devices import prepare_jax
from cycletime.engines.engine import Chunk
from cycletime.errors import InputError, RunError
from cycletime.loops import EpisodeBins
from cycletime.runs.machine import this_machine
from cycletime.runs.spec import RunSpec

PACK = "pack.json"
"""The file of a pack that says what to do."""
GOING_ON = "going-on.npz"
CHECKPOINT_S = 30.0
MOST_BYTES = 12 * 2**20
"""Of a file's runs, so that it is smaller than 16 MiB in any case."""


@dataclass(frozen=True)
class Wanted:
    """What to bring back beside the binned curves and the reports."""

    policies: bool = False
    episodes: bool = False


def main(code: Path, arguments: list[str]) -> int:
    """Run a pack that was unpacked; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python pack.zip", description="Train the packed runs on the GPU that is here."
    )
    parser.add_argument("out", metavar="OUT", type=Path, help="where results are written")
    parser.add_argument("--policies", action="store_true", help="bring the policies back, 20 KB for each run")
    parser.add_argument("--episodes", action="store_true", help="bring all episodes back, and not 100 bins of them")
    parser.add_argument("--check", action="store_true", help="check the kernel on this card instead, for a minute")
    given = parser.parse_args(arguments)
    try:
        prepare_jax("cpu")
        if given.check:
            from cycletime.engines.cuda.checking import print_checks

            return print_checks()
        pack = json.loads((code / PACK).read_text())
        with _stopping() as stop:
            left = Travel(pack, given.out, Wanted(given.policies, given.episodes)).run(stop)
    except (InputError, RunError) as error:
        print(f"cycletime: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    if left:
        print(f"Stopped: {left:,} runs are left, and the same command goes on with them.")
        return 130
    return 0


class Travel:
    """A pack's runs, trained to their ends."""

    def __init__(
        self,
        pack: Mapping[str, Any],
        out: Path,
        wanted: Wanted,
        device: Device | None = None,
        **group: Any,  # noqa: ANN401
    ) -> None:
        """Find the GPU.

        Args:
            pack: What pack.json says.
            out: Where results are written.
            wanted: What to bring back.
            device: Where runs are trained, by default the GPU that is here.
            group: Options of `CudaGroup`.

        Raises:
            InputError: if there is no GPU that can be used, or the pack was made by another version.
        """
        self.pack, self.out, self.wanted = pack, out, wanted
        self.device = device or find_device()
        self.group_options = group
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{out} cannot be made: {error.strerror}.") from error
        self.specs = {spec.identity: spec for spec in packed_specs(pack)}
        self.done: set[str] = set()
        self.going: dict[str, Kept] = {}
        self.states: dict[str, NDArray[np.int32]] = {}
        self.files = 0

    def run(self, stop: Callable[[], bool] = lambda: False, checkpoint_s: float = CHECKPOINT_S) -> int:
        """Train all that is left; how many runs are left where it was stopped."""
        with self._alone():
            self._read()
            names = [identity for identity in self.specs if identity not in self.done]
            print(f"{len(self.specs):,} runs, {len(self.done):,} finished before, on {self.device.name}", flush=True)
            if left_out := self.pack["left_out"]:
                print(f"  {left_out:,} more of the study are not packed: this engine cannot take them", flush=True)
            if not names:
                return 0
            group = CudaGroup([self.specs[name] for name in names], self.device, **self.group_options)
            starts = {
                index: {"state": self.states[name]} if name in self.states else None for index, name in enumerate(names)
            }
            began = looked = time.monotonic()
            due, chunks = began + checkpoint_s, group.chunks(starts)
            try:
                for told in chunks:
                    now = time.monotonic()
                    self._take(names, told, now - looked)
                    looked = now
                    print(f"  {len(self.done):,} of {len(self.specs):,} finished, {now - began:,.1f} s", flush=True)
                    if stop() or now >= due:
                        self._save()
                        due = time.monotonic() + checkpoint_s
                    if stop():
                        break
            finally:
                chunks.close()  # type: ignore[attr-defined]
            if len(self.done) == len(self.specs):
                (self.out / GOING_ON).unlink(missing_ok=True)
            return len(self.specs) - len(self.done)

    def _read(self) -> None:
        """Find what is done already."""
        for file in sorted(self.out.glob("results-*.npz")):
            self.done |= {run.identity for run in read_kept(file)[1]} & self.specs.keys()
            self.files = int(file.stem.removeprefix("results-"))
        if not (self.out / GOING_ON).exists():
            return
        _, runs, arrays = read_kept(self.out / GOING_ON)
        for run, state in zip(runs, arrays["states"], strict=True):
            left = run.identity in self.specs and run.identity not in self.done
            if left and (run.episodes is not None) == self.wanted.episodes:
                self.going[run.identity] = replace(run, sessions=run.sessions + 1)
                self.states[run.identity] = state

    def _take(self, names: list[str], told: Mapping[int, Chunk | RunError], took_s: float) -> None:
        """Add chunks to what is kept, and write the runs that are finished."""
        finished = []
        for index, chunk in told.items():
            if isinstance(chunk, RunError):
                raise chunk
            name = names[index]
            before = self.going.pop(name, None) or self._begun(name)
            run = replace(before.plus(chunk), wall_s=before.wall_s + took_s)
            state = chunk.moment.arrays()["state"]
            if not chunk.is_last:
                self.going[name], self.states[name] = run, state
                continue
            self.states.pop(name, None)
            policy = state.view(np.float32)[POSITION_WORDS : POSITION_WORDS + NUMBERS].copy()
            ended = datetime.now(UTC).isoformat(timespec="seconds")
            finished.append(replace(run, finished=ended, policy=policy if self.wanted.policies else None))
        self._write(finished)

    def _begun(self, name: str) -> Kept:

        spec = self.specs[name]
        episodes = np.zeros(0, EPISODE) if self.wanted.episodes else None
        return Kept(name, EpisodeBins.none(spec.env_steps), world_of(spec).cycle_steps, episodes=episodes)

    def _write(self, finished: list[Kept]) -> None:

        while finished:
            size = several = 0
            while several < len(finished) and (not several or size + finished[several].nbytes <= MOST_BYTES):
                size, several = size + finished[several].nbytes, several + 1
            self.files += 1
            write_kept(self.out / f"results-{self.files:06}.npz", self._about(), finished[:several])
            self.done |= {run.identity for run in finished[:several]}
            finished = finished[several:]

    def _save(self) -> None:

        if self.going:
            states = np.stack([self.states[name] for name in self.going])
            write_kept(self.out / GOING_ON, self._about(), list(self.going.values()), states=states)

    def _about(self) -> dict[str, Any]:

        same = {name: self.pack[name] for name in ("format", "study", "result_version", "release", "kernel")}
        return {**same, "machine": {**this_machine(), "cycletime": self.pack["code"], **card_of(self.device)}}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.out / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunError(f"Another process writes to {self.out}: wait for it, or give another folder.") from None
            yield


def packed_specs(pack: Mapping[str, Any]) -> Iterator[RunSpec]:
    """All runs of a pack.

    Raises:
        InputError: if this code would make other runs of them.
    """
    for cell in pack["cells"]:
        for index, seed in enumerate(cell["seeds"]):
            spec = RunSpec.from_json({**cell["spec"], "seed": seed})
            if index == 0 and spec.identity != cell["identity"]:
                raise InputError("The pack was made by another version of cycletime: pack the study anew.")
            yield spec


@contextmanager
def _stopping() -> Iterator[Callable[[], bool]]:
    """Whether somebody asked to stop: then runs are saved first."""
    asked: list[int] = []
    before = {
        each: signal.signal(each, lambda number, _: asked.append(number)) for each in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(asked)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
