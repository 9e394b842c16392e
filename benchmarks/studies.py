"""What studies cost beside computing: bookkeeping of 1,000 runs whose training takes no time, memory of 100,000 runs.

python benchmarks/studies.py
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.duration import Duration
from cycletime.loops import Episodes
from cycletime.loops.action_bounds import ActionBounds
from cycletime.runs.curve import write_curve
from cycletime.runs.files import write_whole
from cycletime.runs.folder import RunFolder
from cycletime.runs.policies.policy_file import write_policy
from cycletime.runs.result import hashes_of, result_of
from cycletime.studies import work, worker
from cycletime.studies.executors import local
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.running import jobs_of, run_study
from cycletime.studies.study_file import study_from

RUNS, MOST_S = 1000, 20.0
MANY, MOST_MB = 100_000, 500.0
TABLE = {"name": "b", "task": "reacher", "algorithm": "ppo", "env_steps": 100_000, "rules": ["baseline"]}


def train(folder: RunFolder, **_: object) -> str:
    """Write all that a training writes, under its lock, without any."""
    ends = np.arange(1, 41, dtype=np.int64) * 1200
    curve = Episodes(ends, ends, np.zeros(40), np.full(40, 1200))
    layers = (Layer(jnp.zeros((9, 64)), jnp.zeros(64)),)
    with folder.locked():
        write_whole(folder.curve_file, lambda path: write_curve(path, curve, Duration("2ms")))
        write_whole(folder.metrics_file, lambda path: path.write_text("{}\n"))
        network = PolicyNetwork(layers, "tanh", None, True)
        write_policy(folder.policy_file, network, ActionBounds.raw(2), folder.spec, folder.spec.env_steps)
        told: dict[str, Any] = {"where": "closed form", "agent_steps": 1, "remarks": (), "sessions": 1, "wall_s": 0.0}
        folder.write_result(result_of(folder.spec, curve, **told, files=hashes_of(folder)))
    return "finished"


def null_worker(arguments: list[str]) -> int:
    """A worker whose training takes no time."""
    vars(work)["train"] = train
    if os.environ.get("NO_FSYNC"):
        vars(os)["fsync"] = lambda handle: None
    return worker.main(arguments)


def bookkeeping_s(runs: int) -> float:
    """The wall time of a study of runs that take no time, on two workers."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        folder = StudyFolder.create(Path(place) / "study", study_from({**TABLE, "dt": "16ms", "seeds": runs}))
        local.WORKER = (sys.executable, __file__, "worker")
        began = time.monotonic()
        counts = run_study(folder, local.Local(2))
        took_s = time.monotonic() - began
    if counts["done"] != runs:
        raise SystemExit(f"{dict(counts)}: all {runs} should be done")
    return took_s


def scheduler() -> dict[str, float]:
    """Plan a study of very many runs, look at all of them, and make their jobs."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        dts = ["4ms", "8ms", "16ms", "32ms", "64ms"]
        study = study_from({**TABLE, "dts": dts, "seeds": round(MANY / len(dts))})
        folder = StudyFolder.create(Path(place) / "study", study)
        plan = Plan.of(study)
        states = {planned.name: state for planned, state in plan.states(folder)}
        jobs = list(jobs_of(plan, plan.runs))
        if sum(len(job.specs) for job in jobs) != len(states) or len(states) != MANY:
            raise SystemExit(f"{len(states)} runs are planned: these should be {MANY}")
    return {"mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "s": time.monotonic() - began}


def main() -> int:
    """Print what it costs; status 1 if it is too much."""
    start_s = bookkeeping_s(2)
    took_s = bookkeeping_s(RUNS)
    os.environ["NO_FSYNC"] = "1"
    unsafe_s = bookkeeping_s(RUNS)
    del os.environ["NO_FSYNC"]
    ran = subprocess.run([sys.executable, __file__, "scheduler"], capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    print(
        f"{RUNS:,} runs that take no time, 2 workers: {took_s:.1f} s, of which {start_s:.1f} s are the start of Python"
    )
    print(f"  {(took_s - start_s) / RUNS * 1000:.1f} ms a run on the wall; without fsync {unsafe_s:.1f} s in all")
    print(f"{MANY:,} runs planned, looked at and made jobs of: {told['mb']:.0f} MB at most, {told['s']:.1f} s")
    good = took_s < MOST_S and told["mb"] < MOST_MB
    print(f"bookkeeping at most {MOST_S:.0f} s, memory at most {MOST_MB:.0f} MB: {'PASS' if good else 'FAIL'}")
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        sys.exit(null_worker(sys.argv[2:]))
    if sys.argv[1:2] == ["scheduler"]:
        print(json.dumps(scheduler()))
        sys.exit(0)
    sys.exit(main())
