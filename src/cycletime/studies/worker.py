"""A worker process: it reads specs of runs, a line each, trains them, and writes what happens, a line each.

    python -m cycletime.studies.worker STUDY NAME

It ends when its input ends, after a checkpoint of the run in hand: so it does not outlive whoever feeds it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""The environment of a worker that has one core."""
LOST = 75
"""The exit status of a worker that was frozen for so long that another took its run."""


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

    _work(Path(path), name, specs, ended, tell)
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
    from cycletime.studies.folder import StudyFolder, failures_of
    from cycletime.studies.work import prepare_jax, work_on

    study = StudyFolder.open(path)
    prepare_jax(study.study.device)
    while not ended.is_set() and (line := specs.get()) is not None:
        spec = RunSpec.from_json(json.loads(line))
        outcome = work_on(
            study,
            spec,
            worker=name,
            stop=ended.is_set,
            tell=lambda told, spec=spec: tell({"name": spec.name, **told}),  # type: ignore[misc]
            on_loss=lambda: os._exit(LOST),
        )
        failures = failures_of(study.runs / spec.name) if outcome == "failed" else []
        tell({"name": spec.name, "outcome": outcome, **({"error": failures[-1]["error"]} if failures else {})})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
