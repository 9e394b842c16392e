"""A worker process: it reads specs of runs, trains them, and writes what happens, a line each.

    python -m cycletime.studies.worker STUDY NAME

A line that it reads has the spec of a run, or a list of them, which it trains together.

It ends when its input ends, after a checkpoint of the runs in hand: so it does not outlive whoever feeds it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""The environment of a worker that has one core."""
_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
LOST = 75
"""The exit status of a worker that was frozen for so long that another took its run."""


def environment_for(device: str) -> dict[str, str]:
    """The variables of a worker, by where JAX computes."""
    if device == "cpu":
        return ONE_THREAD
    # Memory as it is needed, since JAX would take most of a GPU at once and leave none to another command's worker.
    return {_PREALLOCATE: os.environ.get(_PREALLOCATE, "false")}


def main(arguments: list[str]) -> int:
    """Work until there is no more."""
    path, name = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who feeds it decides what Ctrl-C means
    specs: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    ended = threading.Event()

    def end(*_: object) -> None:
        ended.set()
        specs.put(None)

    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_read, args=(specs, end), daemon=True).start()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints is not taken for ours

    def tell(told: Mapping[str, Any]) -> None:
        try:
            out.write(json.dumps(told) + "\n")
            out.flush()
        except OSError:  # nobody listens any more: save and go
            end()

    from cycletime.errors import MachineError

    try:
        _work(Path(path), name, specs, ended, tell)
    except MachineError as error:
        tell({"machine": str(error)})
    return 0


def _read(specs: queue.SimpleQueue[str | None], end: Callable[[], None]) -> None:
    for line in sys.stdin:
        specs.put(line)
    end()


def _work(
    path: Path,
    name: str,
    specs: queue.SimpleQueue[str | None],
    ended: threading.Event,
    tell: Callable[[Mapping[str, Any]], None],
) -> None:
    from cycletime.runs.spec import RunSpec
    from cycletime.studies.folder import StudyFolder
    from cycletime.studies.work import error_of, prepare_jax, work_on, work_together

    study = StudyFolder.open(path)
    prepare_jax(study.study.jax_device)
    common: dict[str, Any] = {"worker": name, "stop": ended.is_set, "on_loss": lambda: os._exit(LOST)}

    def tell_of(run: str, told: Mapping[str, Any]) -> None:
        tell({"name": run, **told})

    while not ended.is_set() and (line := specs.get()) is not None:
        told = json.loads(line)
        if isinstance(told, list):
            work_together(study, [RunSpec.from_json(each) for each in told], tell=tell_of, **common)
            continue
        spec = RunSpec.from_json(told)
        outcome = work_on(study, spec, tell=partial(tell_of, spec.name), **common)
        tell_of(spec.name, {"outcome": outcome, **error_of(study, spec.name, outcome)})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
