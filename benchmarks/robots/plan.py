"""Freeze the plan: python -m benchmarks.robots.plan [--check].

For every task, cycle time and arm the trainer's values are what `cycletime transfer --from-library mujoco-playground`
prints for the values that Playground ships, unedited. Three numbers among them are no hyper-parameters and are set by
the trial, in seconds and alike for all arms: `episode_length`, `num_timesteps`, and `num_evals` with
`num_resets_per_eval`. `--check` makes the plan again and compares it with plan.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from benchmarks.robots.trial import (
    HERE,
    PLAN,
    SHIPPED,
    Setting,
    Task,
    ordered_runs,
    read_preregistration,
    setting_name,
    tasks_of,
)

LIBRARY = "mujoco-playground"
SHIPPED_FILE = HERE / "shipped.json"
RULES = HERE / "rules.toml"
SET_BY_THE_TRIAL = ("episode_length", "num_timesteps", "num_evals", "num_resets_per_eval")
SAC_INTERVALS = 10


def transfer_command(task: Task, dt_ms: float, arm: Mapping[str, Any], shipped: Mapping[str, Any]) -> list[str]:
    """The command that prints an arm's values."""
    algorithm = arm.get("algorithm", "ppo")
    command = ["transfer", algorithm, "--from", f"{task.own_ms:g}ms", "--to", f"{dt_ms:g}ms", "--rule", arm["rule"]]
    if arm["rule"] == "minibatch-kept":
        command += ["--own-rules", RULES.relative_to(HERE.parent.parent).as_posix()]
    return [
        *command,
        "--from-library",
        LIBRARY,
        *(f"{name}={value}" for name, value in sorted(shipped.items())),
        "--json",
    ]


def more_environments(task: Task, dt_ms: float, arm: Mapping[str, Any], shipped: Mapping[str, Any]) -> dict[str, Any]:
    """The same b by another number of environments, with rollouts of as many steps as before.

    The command line takes one number of environments, before and after; from Python another can be given.
    """
    from cycletime.rules import PPO

    tuned = PPO.from_(LIBRARY, dt=f"{task.own_ms:g}ms", **shipped)
    sizes = {name: int(shipped[name] / task.ratio(dt_ms)) for name in ("num_envs", "batch_size")}
    carried = tuned.at(f"{dt_ms:g}ms", rule=arm["rule"])
    assert carried.library_source is not None, "it was read from a library's words"
    layout = replace(carried.library_source, layout={"batch_size": sizes["batch_size"]})
    values = replace(carried, library_source=layout).to(LIBRARY, n_envs=sizes["num_envs"])
    return {"values": dict(values), "notes": list(values.notes)}


def batch_and_minibatch(values: Mapping[str, Any]) -> tuple[int, int]:
    """The batch b and the mini-batch m, in samples."""
    minibatch = values["batch_size"] * values["unroll_length"]
    return minibatch * values["num_minibatches"], minibatch


def printed(command: list[str]) -> dict[str, Any]:
    """What the command line prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "cycletime", *command],
        capture_output=True,
        text=True,
        cwd=HERE.parent.parent,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"cycletime {' '.join(command)}: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def arm_values(
    task: Task, dt_ms: float, arm: Mapping[str, Any], shipped: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """The trainer's values of an arm, and the library's part of what was printed."""
    if arm.get("layout") == "environments":
        library = more_environments(task, dt_ms, arm, shipped)
    else:
        library = printed(transfer_command(task, dt_ms, arm, shipped))["library"]
    values = {**shipped, **library["values"]}
    if arm.get("discount") == "episode-fifth":
        steps = shipped["episode_length"] / float(task.ratio(dt_ms))
        values["discounting"] = min(max(1 - 5 / steps, 0.95), 0.995)
    values["episode_length"] = int(shipped["episode_length"] / task.ratio(dt_ms))
    return {name: value for name, value in values.items() if name not in SET_BY_THE_TRIAL[1:]}, library


def interval_steps(task: Task, dt_ms: float, shipped: Mapping[str, Any]) -> int:
    """Environment steps between two evaluations: the same simulated seconds at every cycle time."""
    if "unroll_length" not in shipped:
        return int(shipped["num_timesteps"] / SAC_INTERVALS / task.ratio(dt_ms))
    return int(task.interval * 2 * batch_and_minibatch(shipped)[0] / task.ratio(dt_ms))


def problems(setting: Setting) -> Iterator[str]:
    """Why brax could not train a setting as it is, or not for the planned seconds."""
    if setting.algorithm != "ppo":
        return
    values = setting.values
    if values["batch_size"] * values["num_minibatches"] % values["num_envs"]:
        yield f"batch_size x num_minibatches is no multiple of num_envs = {values['num_envs']}"
    batch, _ = batch_and_minibatch(values)
    if setting.interval_steps % (batch * setting.resets):
        yield f"an interval of {setting.interval_steps} steps has no whole number of updates of {batch} in a reset"


def settings_of(tables: Mapping[str, Any], shipped: Mapping[str, Any]) -> Iterator[Setting]:
    """All settings, arms with equal values together."""
    stages, arms = tables["stages"], tables["arms"]
    for name, task in tasks_of(tables).items():
        wanted = [*stages["main"]]
        for stage in ("rivals", "corrected", "sac"):
            wanted += stages[stage] if name in stages[f"{stage}_on"] else []
        found: dict[str, Setting] = {}
        for dt_ms in (task.own_ms, task.cycle_times_ms[0], task.cycle_times_ms[2]):
            for arm_name in wanted:
                arm = arms[arm_name]
                algorithm, rewards = arm.get("algorithm", "ppo"), arm.get("rewards", "shipped")
                ships = shipped[name][algorithm]["values"]
                called = arm_name
                if dt_ms == task.own_ms and "discount" not in arm:  # every rule gives back what it was given
                    called = SHIPPED if algorithm == "ppo" else f"{SHIPPED}-sac"
                    if setting_name(task, dt_ms, called) in {setting.name for setting in found.values()}:
                        continue
                values, library = arm_values(task, dt_ms, arm, ships)
                key = json.dumps([dt_ms, algorithm, rewards, values], sort_keys=True)
                if key in found:
                    if called not in found[key].arms:
                        found[key] = replace(found[key], arms=(*found[key].arms, called))
                    continue
                found[key] = Setting(
                    name=setting_name(task, dt_ms, called),
                    task=name,
                    dt_ms=dt_ms,
                    arms=(called,),
                    algorithm=algorithm,
                    rewards=rewards,
                    values=values,
                    interval_steps=interval_steps(task, dt_ms, ships),
                    resets=task.resets,
                    fixed_intervals=SAC_INTERVALS if algorithm == "sac" else None,
                    command="cycletime " + " ".join(transfer_command(task, dt_ms, arm, ships)),
                    notes=tuple(library["notes"]),
                )
        yield from found.values()


def made_plan() -> dict[str, Any]:
    """The plan, as plan.json has it."""
    tables = read_preregistration()
    shipped = json.loads(SHIPPED_FILE.read_text(encoding="utf-8"))["tasks"]
    settings = {setting.name: setting for setting in settings_of(tables, shipped)}
    wrong = [f"{name}: {problem}" for name, setting in settings.items() for problem in problems(setting)]
    if wrong:
        raise ValueError("These settings cannot be trained as printed:\n" + "\n".join(wrong))
    runs = [[run.stage, run.setting, run.seed] for run in ordered_runs(tables, settings)]
    tables_of = {name: {k: v for k, v in asdict(s).items() if k != "name"} for name, s in settings.items()}
    return {"settings": tables_of, "runs": runs}


def plan_text(plan: Mapping[str, Any]) -> str:
    """The plan as text, a line for each setting and run."""
    settings = ",\n".join(f"  {json.dumps(name)}: {json.dumps(table)}" for name, table in plan["settings"].items())
    runs = ",\n".join(f"  {json.dumps(run)}" for run in plan["runs"])
    return f'{{"settings": {{\n{settings}\n}},\n"runs": [\n{runs}\n]}}\n'


def summary(plan: Mapping[str, Any]) -> str:
    """How much it is."""
    tasks = {table["task"] for table in plan["settings"].values()}
    return f"{len(tasks)} tasks, {len(plan['settings'])} settings, {len(plan['runs'])} runs"


def main() -> int:
    """Write the plan, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with plan.json instead of writing it")
    asked = parser.parse_args()
    text = plan_text(made_plan())
    if asked.check:
        same = PLAN.read_text(encoding="utf-8") == text
        print("plan.json is what would be made today." if same else "plan.json is not what would be made today.")
        return 0 if same else 1
    PLAN.write_text(text, encoding="utf-8")
    print(f"Wrote {PLAN.name}: {summary(json.loads(text))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
