"""Whether our PPO and SAC learn Gymnasium's MuJoCo tasks as well as Stable-Baselines3's, with RL Zoo's values.

    python benchmarks/mujoco_agents.py OUT [--tasks hopper ...] [--seeds 5] [--workers N]
    python benchmarks/mujoco_agents.py OUT --report

It needs `pip install 'cycletime[stable-baselines3,mujoco]'`. For each task and each library OUT gets a study and its
folder, which goes on where it was; the order is one seed of everything, then the next. Runs that
results/mujoco-agents.csv has already are left out. The second form, which comes after the first by itself, adds what is
finished in OUT to that file and compares.

The values are those of RL Baselines3 Zoo's tuned entries for version 3 of each task (hyperparams/ppo.yml, sac.yml),
with one environment, observations and rewards normalised where the entry says so. What ours has otherwise: Adam's
epsilon is 1e-8 (there 1e-5), moments take a batch in before learning from it (there each step at once), and
observations are divided by std + 0.01 without a bound. SAC has a fifth of the Zoo's steps.

The score is the mean over 100 bins of environment steps of the returns of training's own episodes, 'at the end' the
mean of the last ten bins. Two libraries share no randomness: intervals of differences are Welch's, 95 %. 'Equal' is an
interval with 0 in it, which with few seeds says little where it is wide: its half-width stands beside it in percent.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cycletime.processes import owning_children

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
}
RESULTS = Path(__file__).parents[1] / "results" / "mujoco-agents.csv"
COLUMNS = ("task", "algorithm", "library", "seed", "env_steps", "score", "final", "wall_s", "versions")
LIBRARIES = ("ours", "stable-baselines3")
RELU = "dict(log_std_init=-2, ortho_init=False, activation_fn=nn.ReLU, net_arch=dict(pi=[256, 256], vf=[256, 256]))"


@dataclass(frozen=True)
class Task:
    """A task with RL Zoo's values for it."""

    env: str
    algorithm: str
    dt: str
    env_steps: int
    tuned: dict[str, float]
    """In our names, which both libraries have."""
    ours: dict[str, Any]
    theirs: dict[str, Any]
    """What each has beside them, in its own words."""

    def label(self, library: str, seed: int) -> tuple[str, ...]:
        """What names a run's row."""
        return self.env, self.algorithm, library, str(seed)

    def study(self, name: str, library: str, seeds: list[int]) -> str:
        """A study's file."""
        settings = self.ours if library == "ours" else self.theirs
        lines = [
            f'name = "{name}-{library}"',
            f'env = "{self.env}"',
            f'algorithm = "{self.algorithm}"',
            f'dts = ["{self.dt}"]',
            f"seeds = {seeds}",
            f"env_steps = {self.env_steps}",
            *([] if library == "ours" else [f'trainer = "{library}"']),
            *_table("tuned", self.tuned),
            *_table("set", settings),
        ]
        return "\n".join(lines) + "\n"


def _table(name: str, values: dict[str, Any]) -> list[str]:
    words = {True: "true", False: "false"}
    said = [(key, words[value] if isinstance(value, bool) else repr(value)) for key, value in values.items()]
    return [f"[{name}]", *(f"{key} = {value}" for key, value in said)] if said else []


def ppo(
    env: str,
    dt: str,
    tuned: dict[str, float],
    *,
    rate: float,
    entropy: float,
    clip: float,
    epochs: int,
    longest: float,
    value: float,
    relu: bool,
) -> Task:
    """An entry of ppo.yml, in both libraries' words."""
    network = {
        "hidden": [256, 256],
        "activation": "relu",
        "initial_weights": "pytorch",
        "noise_std": 0.1353352832366127,
    }
    return Task(
        env,
        "ppo",
        dt,
        1_000_000,
        tuned,
        {
            "learning_rate": rate,
            "clip": clip,
            "epochs": epochs,
            "entropy_bonus": entropy,
            "value_coefficient": value,
            "max_gradient_norm": longest,
            "advantages": "minibatch",
            "normalize_observations": True,
            "normalize_rewards": True,
            "time_limit": "bootstrap",
            **(network if relu else {"initial_weights": "orthogonal"}),
        },
        {
            "learning_rate": rate,
            "clip_range": clip,
            "n_epochs": epochs,
            "ent_coef": entropy,
            "vf_coef": value,
            "max_grad_norm": longest,
            "normalize": True,
            **({"policy_kwargs": RELU} if relu else {}),
        },
    )


TASKS = {
    "hopper": ppo(
        "Hopper-v5",
        "8ms",
        {"batch": 512, "minibatch": 32, "discount": 0.999, "trace_decay": 0.99},
        rate=9.80828e-05, entropy=0.00229519, clip=0.2, epochs=5, longest=0.7, value=0.835671, relu=True,
    ),
    "halfcheetah": ppo(
        "HalfCheetah-v5",
        "50ms",
        {"batch": 512, "minibatch": 64, "discount": 0.98, "trace_decay": 0.92},
        rate=2.0633e-05, entropy=0.000401762, clip=0.1, epochs=20, longest=0.8, value=0.58096, relu=True,
    ),
    "walker2d": ppo(
        "Walker2d-v5",
        "8ms",
        {"batch": 512, "minibatch": 32, "discount": 0.99, "trace_decay": 0.95},
        rate=5.05041e-05, entropy=0.000585045, clip=0.1, epochs=20, longest=1.0, value=0.871923, relu=False,
    ),
    "hopper-sac": Task(
        "Hopper-v5",
        "sac",
        "8ms",
        200_000,
        {"discount": 0.99, "minibatch": 256},
        {"learning_rate": 3e-4, "warmup_steps": 10_000, "replay_capacity": 200_000},
        {"learning_rate": 3e-4, "learning_starts": 10_000, "buffer_size": 200_000},
    ),
}  # fmt: skip


def train(out: Path, names: list[str], seeds: int, workers: int | None) -> None:
    """One seed of every task and library, then the next; interrupted, the same call goes on from there."""
    out.mkdir(parents=True, exist_ok=True)
    known = read_rows()
    command = [sys.executable, "-m", "cycletime", "study", "run"]
    for count in range(1, seeds + 1):
        for name in names:
            for library in LIBRARIES:
                file, task = out / f"{name}-{library}.toml", TASKS[name]
                left = [seed for seed in range(count) if task.label(library, seed) not in known]
                if not left:
                    continue
                file.write_text(task.study(name, library, left))
                words = [*command, str(file), "--out", str(file.with_suffix(""))]
                words += ["--workers", str(workers)] if workers else []
                subprocess.run(words, check=True, env=os.environ | ONE_THREAD)


def collect(out: Path) -> None:
    """Write the results of all that is finished."""
    from cycletime.studies.scores import read_cells
    from cycletime.studies.study_folder import StudyFolder

    rows = read_rows()
    for name, task in TASKS.items():
        for library in LIBRARIES:
            if not (path := out / f"{name}-{library}").exists():
                continue
            for run in (run for _, runs in read_cells(StudyFolder.open(path)) for run in runs if run.state == "done"):
                scores = [f"{run.result[key]:.2f}" for key in ("average_return", "last_tenth_return")]
                label, wall_s = task.label(library, run.spec.seed), str(round(run.result["wall_s"]))
                rows[label] = [*label, str(task.env_steps), *scores, wall_s, versions(library)]
    with RESULTS.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *(row for _, row in sorted(rows.items()))])


def read_rows() -> dict[tuple[str, ...], list[str]]:
    """The results so far, by what names a run."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(newline="") as file:
        _, *rows = csv.reader(file)
    return {tuple(row[:4]): row for row in rows}


def versions(library: str) -> str:
    used = ("jax", "numpy") if library == "ours" else ("stable-baselines3", "torch")
    packages = ("cycletime", *used, "gymnasium", "mujoco")
    return "; ".join(f"{package} {version(package)}" for package in packages) + f"; {platform.machine()}"


def report() -> bool:
    """Print each task's comparison; whether all have three seeds of both and are equal within their intervals."""
    from cycletime.statistics import compare, mean_and_interval

    rows, equal = read_rows(), True
    for task in TASKS.values():
        for measure, label in (("score", "over learning"), ("final", "at the end")):
            runs = [
                [
                    float(row[COLUMNS.index(measure)])
                    for label, row in rows.items()
                    if label[:3] == (task.env, task.algorithm, library)
                ]
                for library in LIBRARIES
            ]
            if min(map(len, runs)) < 3:
                if measure == "score":
                    counts = " and ".join(map(str, map(len, runs)))
                    print(f"{task.algorithm.upper()} on {task.env}: {counts} seeds, of which three each are needed.")
                equal = False
                continue
            ours, theirs = (mean_and_interval(each) for each in runs)
            difference = compare(*runs).difference
            low, high = difference.low, difference.high
            assert low is not None
            assert high is not None
            half = 100 * (high - low) / 2 / abs(theirs.value)
            print(f"{task.algorithm.upper()} on {task.env}, {task.env_steps:,} steps, {label}: {ours}, {theirs}")
            print(f"    ours minus Stable-Baselines3's: {difference} (half-width {half:.0f} % of theirs)")
            equal &= low <= 0 <= high
    return equal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="where the studies are")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, help="runs at a time; by default one for each core")
    parser.add_argument("--report", action="store_true", help="only collect and compare")
    options = parser.parse_args()
    if not options.report:
        with owning_children():  # a study that is going ends with this process, however that ends
            train(options.out, options.tasks, options.seeds, options.workers)
    collect(options.out)
    return 0 if report() else 1


if __name__ == "__main__":
    sys.exit(main())
