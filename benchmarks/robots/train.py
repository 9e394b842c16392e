# mypy: disable-error-code="import-not-found"
"""Train one setting with some seeds, one after the other: python -m benchmarks.robots.train --setting NAME --seeds 0 1.

Started by `run.py`. Prints a line of JSON for each run that begins, each evaluation, and each run that ends.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.robots.environments import load_environment, with_state_alone
from benchmarks.robots.measures import at_the_end, budget_intervals, over_learning, rate_of
from benchmarks.robots.shims import install_device_put_replicated, install_stand_ins
from benchmarks.robots.trial import BUDGET, HERE, PLAN, PREREGISTRATION, Run, Setting, Task, Trial, read_trial

PACKAGES = ("jax", "jaxlib", "mujoco", "mujoco-mjx", "brax", "playground", "flax", "optax", "numpy")
MAX_NON_FINITE = 2


class StoppedError(Exception):
    """Ends a training from within: a budget's wall time is over, or it has diverged."""


@dataclass
class LearningCurve:
    """What the evaluations of a run found."""

    task: Task
    setting: Setting
    key: str
    wall_limit_s: float | None = None
    began: float = field(default_factory=time.monotonic)
    steps: list[int] = field(default_factory=list)
    rates: list[float | None] = field(default_factory=list)
    lengths: list[float | None] = field(default_factory=list)
    walls: list[float] = field(default_factory=list)
    first_std: float = 0.0
    last: Mapping[str, Any] = field(default_factory=dict)
    diverged: bool = False
    compile_only: bool = False

    def add(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Keep and print an evaluation. It is what brax's trainers call."""
        dt_s, episode_steps = self.setting.dt_ms / 1000, self.setting.values["episode_length"]
        rate = rate_of(self.task, dt_s, episode_steps, metrics)
        if not self.steps:
            scale = {"eval/episode_reward": metrics["eval/episode_reward_std"]}
            self.first_std = rate_of(replace(self.task, measured_by=()), dt_s, episode_steps, scale)
        self.steps.append(int(step))
        self.rates.append(_rounded(rate))
        self.lengths.append(_rounded(float(metrics["eval/avg_episode_length"]) / episode_steps))
        self.walls.append(round(time.monotonic() - self.began, 2))
        self.last = metrics
        say(
            kind="evaluation",
            key=self.key,
            env_steps=self.steps[-1],
            simulated_s=round(self.steps[-1] * dt_s, 3),
            rate=self.rates[-1],
            length=self.lengths[-1],
            wall_s=self.walls[-1],
        )
        if self.compile_only and step:
            raise StoppedError("compiled")
        if len(self.rates) > MAX_NON_FINITE and all(rate is None for rate in self.rates[-MAX_NON_FINITE:]):
            self.diverged = True
            raise StoppedError("diverged")
        if self.wall_limit_s is not None and len(self.walls) > 2 and self.walls[-1] - self.walls[1] > self.wall_limit_s:
            raise StoppedError("the wall time of a budget is over")

    @property
    def run_s(self) -> float:
        """Wall time of a whole run without compilation, at the pace after the first interval."""
        if len(self.walls) < 3:
            return self.walls[-1]
        return (self.walls[-1] - self.walls[1]) / (len(self.walls) - 2) * (len(self.walls) - 1)


def say(**record: Any) -> None:  # noqa: ANN401
    """Print a record; the runner keeps it."""
    print(json.dumps(record), flush=True)


def tiny_setting(setting: Setting) -> Setting:
    """The same setting in a size for a rehearsal on a CPU: same structure, nothing is learned."""
    values = dict(setting.values)
    values["episode_length"] = max(5, round(20 / setting.dt_ms * 10))
    if setting.algorithm == "sac":
        values |= {"num_envs": 4, "batch_size": 8, "min_replay_size": 64, "max_replay_size": 1024}
        return replace(setting, values=values, interval_steps=200, fixed_intervals=2)
    values |= {"num_envs": 8, "batch_size": 4, "num_minibatches": 2, "num_updates_per_batch": 1}
    values["unroll_length"] = max(1, values["unroll_length"] // 10)
    return replace(setting, values=values, interval_steps=8 * values["unroll_length"] * setting.resets)


def trainer_of(setting: Setting, network: Mapping[str, Any]) -> Callable[..., Any]:
    """The trainer of brax with the setting's values."""
    values = dict(setting.values)
    if setting.algorithm == "sac":
        from brax.training.agents.sac import networks as sac_networks
        from brax.training.agents.sac import train as sac

        return functools.partial(
            sac.train, **values, network_factory=functools.partial(sac_networks.make_sac_networks, **network)
        )
    from brax.training.agents.ppo import networks as ppo_networks
    from brax.training.agents.ppo import train as ppo

    return functools.partial(
        ppo.train,
        **values,
        num_resets_per_eval=setting.resets,
        network_factory=functools.partial(ppo_networks.make_ppo_networks, **network),
    )


def train_run(trial: Trial, setting: Setting, run: Run, intervals: int, options: Options) -> dict[str, Any]:
    """One training; its row."""
    from mujoco_playground import wrapper

    task = trial.task_of(run)
    budget = run.stage == BUDGET
    eval_envs = 4 if options.tiny else trial.numbers["eval_envs"]
    curve = LearningCurve(task, setting, run.key, trial.numbers["budget_wall_s"] if budget else None)
    curve.compile_only = options.compile_only
    shipped = json.loads((HERE / "shipped.json").read_text(encoding="utf-8"))["tasks"][task.name]
    train = trainer_of(setting, shipped[setting.algorithm]["network"])
    started = datetime.now(UTC).isoformat(timespec="seconds")
    params = None
    env = load_environment(task, setting.dt_ms, setting.rewards)
    with suppress(StoppedError):
        _, params, _ = train(
            environment=with_state_alone(env) if setting.algorithm == "sac" else env,
            # Every policy is evaluated by the rewards as shipped.
            eval_env=None if setting.rewards == "shipped" else load_environment(task, setting.dt_ms),
            wrap_env_fn=wrapper.wrap_for_brax_training,
            num_timesteps=intervals * setting.interval_steps,
            num_evals=intervals + 1,
            num_eval_envs=eval_envs,
            seed=run.seed,
            progress_fn=curve.add,
        )
    if options.compile_only:
        return {"kind": "compiled", "key": run.key, "wall_s": curve.walls[-1]}
    if task.keep_policies and params is not None and setting.algorithm == "ppo":
        say(kind="policy", key=run.key, file=str(save_policy(params, options.scratch, run.key)))
    row = row_of(trial, setting, run, curve, eval_envs, intervals)
    if options.tiny and budget:
        row["budget_intervals"] = intervals  # nothing is learned in a rehearsal, which goes on all the same
    return {**row, "started": started, **origin(options)}


def row_of(
    trial: Trial, setting: Setting, run: Run, curve: LearningCurve, eval_envs: int, intervals: int
) -> dict[str, Any]:
    """What a run found, for the table of all runs."""
    missing: list[None] = [None] * (intervals + 1 - len(curve.rates)) if curve.diverged else []
    rates, lengths = [*curve.rates, *missing], [*curve.lengths, *missing]
    task, dt_s = curve.task, setting.dt_ms / 1000
    wall_s = time.monotonic() - curve.began
    row = {
        "kind": "run",
        "uid": uuid4().hex[:12],
        "key": run.key,
        "stage": run.stage,
        "task": task.name,
        "dt_ms": setting.dt_ms,
        "arm": setting.arm,
        "arms": list(setting.arms),
        "seed": run.seed,
        "status": "diverged" if curve.diverged else "finished",
        "score": _rounded(over_learning(rates)),
        "final": _rounded(at_the_end(rates)),
        "start": curve.rates[0],
        "fallen": _rounded(_minus(1, over_learning(lengths))),
        "final_fallen": _rounded(_minus(1, at_the_end(lengths))),
        "intervals": len(curve.rates) - 1,
        "env_steps": curve.steps[-1],
        "simulated_s": round(curve.steps[-1] * dt_s, 3),
        "wall_s": round(wall_s, 1),
        "setup_s": round(max(0.0, wall_s - curve.run_s), 1),
        "curve": {"rate": curve.rates, "length": curve.lengths, "env_steps": curve.steps, "wall_s": curve.walls},
        "terms": last_terms(curve.last, dt_s),
        "setting": hashlib.sha256(json.dumps(dict(setting.values), sort_keys=True).encode()).hexdigest()[:12],
    }
    if run.stage == BUDGET:
        finite = [float("nan") if rate is None else rate for rate in curve.rates]
        row["budget_intervals"] = budget_intervals(finite, curve.first_std, eval_envs, trial.numbers["min_intervals"])
    return row


def last_terms(metrics: Mapping[str, Any], dt_s: float) -> dict[str, float | None]:
    """Terms of the last evaluation: sums over an episode, times dt."""
    prefix = "eval/episode_"
    return {
        name.removeprefix(prefix): _rounded(float(value) * dt_s)
        for name, value in metrics.items()
        if name.startswith(prefix) and not name.endswith("_std") and name != "eval/episode_reward"
    }


@functools.cache
def _machine() -> dict[str, Any]:
    import jax

    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "?"
    return {"versions": versions, "device": jax.devices()[0].device_kind, "python": sys.version.split()[0]}


def origin(options: Options) -> dict[str, Any]:
    """Where a row comes from."""
    code = os.environ.get("ROBOTS_TRIAL_CODE", "")
    return {**_machine(), "code": code, "side_by_side": options.slots, "rehearsal": options.tiny}


def save_policy(params: Any, scratch: Path, key: str) -> Path:  # noqa: ANN401
    """A policy as half-precision arrays: the normalisation of observations and the layers."""
    import jax
    import numpy as np

    normalizer, policy = params[0], params[1]
    arrays: dict[str, Any] = {}
    for part, tree in (("mean", normalizer.mean), ("std", normalizer.std), ("policy", policy)):
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            if part != "policy" and path and "privileged" in str(path[0]):
                continue
            arrays[part + jax.tree_util.keystr(path)] = np.asarray(leaf, np.float16)
    file = scratch / f"{hashlib.sha256(key.encode()).hexdigest()[:12]}.npz"
    with file.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    return file


@dataclass(frozen=True)
class Options:
    """What the runner says."""

    setting: str
    seeds: tuple[int, ...]
    stage: str
    intervals: int
    deadline: float
    scratch: Path
    slots: int
    tiny: bool
    compile_only: bool


def train_all(trial: Trial, options: Options) -> int:
    """Train the seeds while time is left; 1 if one failed."""
    setting = trial.settings[options.setting]
    setting = tiny_setting(setting) if options.tiny else setting
    pace_s = 0.0
    for seed in options.seeds:
        run = Run(options.stage, options.setting, seed)
        if time.time() + pace_s > options.deadline:
            say(kind="left", key=run.key)
            continue
        say(kind="began", key=run.key)
        try:
            row = train_run(trial, setting, run, options.intervals, options)
        except Exception as error:
            traceback.print_exc()
            say(kind="failure", key=run.key, message=f"{type(error).__name__}: {error}"[:500])
            return 1
        say(**row)
        if options.compile_only:
            return 0
        pace_s = row["wall_s"] - row["setup_s"] + min(row["setup_s"], 60)  # traced anew, compiled from the cache
    return 0


def main() -> int:
    """Parse what the runner says, and train."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--setting", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--stage", default="main")
    parser.add_argument("--intervals", type=int, required=True)
    parser.add_argument("--deadline", type=float, default=float("inf"), help="no run begins that would end later")
    parser.add_argument("--scratch", type=Path, default=Path())
    parser.add_argument("--slots", type=int, default=1)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--compile-only", action="store_true", help="end after the first interval, without a row")
    parser.add_argument("--plan", type=Path, default=PLAN)
    parser.add_argument("--preregistration", type=Path, default=PREREGISTRATION)
    asked = vars(parser.parse_args())
    if asked["compile_only"]:
        os.nice(10)  # trainings come first
    trial = read_trial(asked.pop("preregistration"), asked.pop("plan"))
    install_stand_ins()
    install_device_put_replicated()
    return train_all(trial, Options(**{**asked, "seeds": tuple(asked["seeds"])}))


def _rounded(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(f"{value:.6g}")


def _minus(whole: float, part: float | None) -> float | None:
    return None if part is None else whole - part


if __name__ == "__main__":
    sys.exit(main())
