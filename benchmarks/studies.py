"""What studies cost beside computing: runs that take no time, a store of 10,000 runs, and the plan of 100,000.

taskset -c 0 python benchmarks/studies.py
taskset -c 0 python benchmarks/studies.py reports [--before OTHER_CLONE]    # of 1,200 runs, as a command
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.cli import main as command
from cycletime.studies import executors, worker
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from cycletime.training.finished_run import FinishedRun, make_result
from cycletime.training.learning_curve import EpisodeBins, Episodes
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.spec import RunSpec
from cycletime.training.trainer import CompletedRun, ResultSink, TrainingOutcome
from cycletime.training.worlds import ActionBounds

NULL_RUNS, NULL_MOST_S = 1000, 20.0
LIMITS_S = {"status": 2.0, "verify": 60.0, "report": 15.0, "export": 30.0}
"""By command, the most CPU seconds with 10,000 runs."""
PLANNED, PLANNED_MOST_MB = 100_000, 500.0
STORED = {
    "name": "stored",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["4ms", "8ms", "16ms", "32ms", "64ms"],
    "rules": [],
    "seeds": 80,
    "env_steps": 10_000_000,
    "tuned": {"batch": [500, 1000, 2000, 4000, 8000], "minibatch": [12, 25, 50, 100, 200]},
}
"""The paper's grid, with 80 seeds: 10,000 runs."""
REPORTED = {
    "name": "reported",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["4ms", "8ms", "16ms", "32ms", "64ms"],
    "rules": ["baseline", "dt-aware", "scaled"],
    "seeds": 80,
    "env_steps": 10_000_000,
    "tuned": {"dt": "2ms", "batch": 16_000, "minibatch": 400},
}
"""1,200 runs, of which no rules share any."""
REPORT_MOST_S, TURNS = 3.0, 5
ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}
NULL = {"name": "null", "task": "reacher", "algorithm": "ppo", "dt": "16ms", "env_steps": 100_000}
_MACHINE = {"cycletime": "benchmark", "jax": "none", "device": "none", "processor": "none", "cores": "1"}


def made_up(spec: RunSpec, *, binned: bool) -> FinishedRun:
    """A run as a GPU machine brings it back: a curve in bins or of some episodes, 300 lines of metrics, a policy."""
    random = np.random.default_rng(spec.seed)
    ends = np.linspace(0, spec.env_steps, 401)[1:].astype(np.int64)
    episodes = Episodes(ends, ends // 8, random.normal(size=400), np.diff(ends, prepend=0))
    curve = EpisodeBins.none(spec.env_steps).plus(episodes) if binned else episodes
    told: dict[str, Any] = {"where": "closed form", "env_dt_s": 0.002, "remarks": (), "sessions": 1, "wall_s": 0.0}
    result = make_result(spec, curve, agent_steps=int(ends[-1] // 8), machine=_MACHINE, **told)
    steps = np.linspace(0, spec.env_steps, 300).astype(np.int64)
    losses = {name: random.normal(size=300) for name in ("policy_loss", "value_loss", "entropy", "kl")}
    metrics = {"env_steps": steps, "agent_steps": steps // 8, "learnings": np.ones(300, np.int64), **losses}
    network = PolicyNetwork((Layer(jnp.zeros((9, 4)), jnp.zeros(4)),), "tanh", None, True)
    policy = None if binned else SavedPolicy.of(network, ActionBounds.raw(2), spec, spec.env_steps)
    return FinishedRun(spec, result, curve, metrics, policy)


def null_worker(arguments: Sequence[str]) -> int:
    """A worker whose training takes no time."""

    def train(trainees: Sequence[TrainingJob], shelf: ResultSink, **_: object) -> list[TrainingOutcome | Exception]:
        for trainee in trainees:
            last: Any = CompletedRun(trainee, made_up(trainee.folder.spec, binned=False))  # type: ignore[arg-type]
            shelf.finish([last])
            for listener in trainee.observers:
                listener.end("finished")
        return ["finished"] * len(trainees)

    vars(worker)["train_batch"] = train
    return worker.main(arguments)


def bookkeeping_s(runs: int) -> float:
    """The wall time of a study of runs that take no time, on two workers."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        folder = StudyFolder.create(Path(place) / "study", study_from_table({**NULL, "seeds": runs}))
        executors.WORKER_COMMAND = (sys.executable, __file__, "worker")
        began = time.monotonic()
        counts = run_study(folder, executors.LocalExecutor(2))
        took_s = time.monotonic() - began
    if counts["done"] != runs:
        raise SystemExit(f"{dict(counts)}: all {runs} should be done")
    return took_s


def store_s(place: Path) -> Iterator[tuple[str, float]]:
    """By command, the CPU seconds that it takes with 10,000 runs."""
    here = filled(place / "here", STORED)
    words = {
        "status": ["status", str(here.path)],
        "verify": ["verify", str(here.path)],
        "report": ["report", str(here.path), "--out", str(place / "report")],
        "export": ["export", str(here.path), str(place / "curves.parquet"), "--bins", "100"],
    }
    for name, arguments in words.items():
        yield name, cpu_s(lambda arguments=arguments: _run(arguments))  # type: ignore[misc]


def filled(place: Path, told: Mapping[str, Any]) -> StudyFolder:
    """A study whose runs are all made up."""
    folder = StudyFolder.create(place, study_from_table(told))
    plan = Plan.of(folder.study)
    for group in np.array_split(np.arange(len(plan.runs)), -(-len(plan.runs) // 200)):
        folder.store.add([made_up(plan.spec(plan.runs[index]), binned=True) for index in group])
    return folder


def report_s(clones: Sequence[Path]) -> list[float]:
    """By clone, the CPU seconds of a process that reports on 1,200 runs: the least of turns that they take."""
    with tempfile.TemporaryDirectory() as place:
        study = filled(Path(place) / "study", REPORTED).path
        turns = [[_process_s(clone, ["study", "report", str(study)], place) for clone in clones] for _ in range(TURNS)]
    return [min(turn[index] for turn in turns) for index in range(len(clones))]


def _process_s(clone: Path, words: Sequence[str], place: str) -> float:
    """Of a command with a clone's code, whose bytecode is kept, as that of installed packages is."""
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{place}/bytecode", "PYTHONPATH": str(clone / "src")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "cycletime", *words]
    subprocess.run(command, env=os.environ | ONE_THREAD | kept, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def reports(words: Sequence[str]) -> int:
    """Print what a report costs, beside another commit's; status 1 if it is too much."""
    clones = {"before": Path(words[1])} if words[:1] == ["--before"] else {}
    clones["now"] = Path(__file__).parents[1]
    costs = dict(zip(clones, report_s(list(clones.values())), strict=True))
    told = ", ".join(f"{name} {cost_s:.2f}" for name, cost_s in costs.items())
    is_good = costs["now"] < REPORT_MOST_S
    print(f"1,200 runs, study report, a process: {told} CPU s, at most {REPORT_MOST_S:.0f}: {_verdict(is_good)}")
    return 0 if is_good else 1


def _verdict(is_good: bool) -> str:
    return "PASS" if is_good else "FAIL"


def _run(arguments: list[str]) -> None:
    with redirect_stdout(StringIO()) as said:
        status = command(["study", *arguments])
    if status:
        raise SystemExit(f"{' '.join(arguments)}: status {status}, {said.getvalue()[-300:]}")


def cpu_s(call: Callable[[], object]) -> float:
    """The CPU seconds of a call, of all threads."""
    began = time.process_time()
    call()
    return time.process_time() - began


def scheduler() -> dict[str, float]:
    """Plan a study of very many runs, look at all of them, and see which a worker would take."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        dts = ["4ms", "8ms", "16ms", "32ms", "64ms"]
        keys = {name: value for name, value in NULL.items() if name != "dt"}
        study = study_from_table({**keys, "dts": dts, "seeds": round(PLANNED / len(dts))})
        folder = StudyFolder.create(Path(place) / "study", study)
        plan = Plan.of(study)
        states = folder.states(planned.name for planned in plan.runs)
        if len(states) != PLANNED or plan.workers_needed(plan.runs, 2) != 2:
            raise SystemExit(f"{len(states)} runs are planned: these should be {PLANNED}")
    return {"mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "s": time.monotonic() - began}


def main() -> int:
    """Print what it costs; status 1 if it is too much."""
    ran = subprocess.run([sys.executable, __file__, "scheduler"], capture_output=True, text=True, check=True)
    told = json.loads(ran.stdout)
    print(f"{PLANNED:,} runs planned and looked at: {told['mb']:.0f} MB at most, {told['s']:.1f} s")
    good = told["mb"] < PLANNED_MOST_MB
    start_s = bookkeeping_s(2)
    took_s = bookkeeping_s(NULL_RUNS)
    print(f"{NULL_RUNS:,} runs that take no time, 2 workers: {took_s:.1f} s, of which {start_s:.1f} s are the start")
    print(f"  {(took_s - start_s) / NULL_RUNS * 1000:.1f} ms a run on the wall")
    good &= took_s < NULL_MOST_S
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as place:
        for name, cost_s in store_s(Path(place)):
            print(f"10,000 runs, study {name}: {cost_s:.1f} CPU s, at most {LIMITS_S[name]:.0f}", flush=True)
            good &= cost_s < LIMITS_S[name]
    print(_verdict(good))
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        sys.exit(null_worker(sys.argv[2:]))
    if sys.argv[1:2] == ["scheduler"]:
        print(json.dumps(scheduler()))
        sys.exit(0)
    if sys.argv[1:2] == ["reports"]:
        sys.exit(reports(sys.argv[2:]))
    sys.exit(main())
