"""`cycletime watch`, `evaluate`, `plot` and `export`: what a training leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from cycletime.cli.options import NO_NAMES, NameListOption, Real, SingleRunOptions, Text, Whole
from cycletime.duration import Duration
from cycletime.errors import InputError, printable
from cycletime.processes import owning_children

if TYPE_CHECKING:
    from cycletime.policies.evaluate import Evaluation
    from cycletime.policies.watch import WatchedEpisode
    from cycletime.training.finished_run import FinishedRun
    from cycletime.training.policy_file import SavedPolicy
    from cycletime.training.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class Watch(SingleRunOptions):
    """Watch a run's policy, as it was at the last checkpoint, in real time.

    For example: cycletime watch runs/reacher-ppo-16ms-seed0-1f0c7c38a2 --to film.gif
    """

    to: Annotated[Text, arg(metavar="FILM", help_behavior_hint="(default: a window)")] = None
    """Write a film, a GIF."""
    episodes: Whole = 3
    """How many episodes to play."""
    seed: Whole = 0
    """The seed of the first episode; each next one has one more."""
    sampled: bool = False
    """Draw actions with the policy's noise, as in training, instead of taking its mean."""
    speed: Real = 1.0
    """How much faster than the real world; 0.5 is slow motion."""

    @owning_children()
    def run(self) -> int:
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}: it must be at least 0.")
        run, saved = _open_run(self.folder)
        from cycletime.policies import watch
        from cycletime.policies.films import check_film
        from cycletime.training.worlds import ActionBounds, make_env, observation_size

        spec = run.spec
        # What can go wrong is asked before anything slow is done.
        if self.to is None:
            watch.refuse_without_display()
        else:
            check_film(Path(self.to))
        act = watch.act_of(saved, self.seed, sampled=self.sampled)
        with watch.drawing_errors(spec.world.name):
            env = make_env(spec.world, spec.dt, render_mode="rgb_array")

        def tell(seen: WatchedEpisode) -> None:
            why, lasted_s = "terminated" if seen.terminated else "truncated", seen.agent_steps * float(spec.dt)
            told = f"return {seen.total_reward:.2f}, {seen.agent_steps} agent steps, {lasted_s:.2f} s, {why}"
            print(f"episode {seen.number + 1}: {told}", flush=True)

        try:
            saved.refuse_other_sizes(observation_size(env), ActionBounds.of(env).size, env)
            showing = watch.Playback(
                env=env, act=act, dt=spec.dt, episodes=self.episodes, seed=self.seed, speed=self.speed, tell=tell
            )
            if self.to is None:
                watch.show_in_window(showing, spec.world.name)
            else:
                watch.write_film(showing, Path(self.to))
                _print_written(Path(self.to))
        finally:
            env.close()
        return 0


def _open_run(path: Path) -> tuple[RunFolder | FinishedRun, SavedPolicy]:
    """A run and its policy, with JAX on the CPU: a GPU is of no use here, and someone may be training on it."""
    from cycletime.training.machine import prepare_jax

    prepare_jax("cpu")
    from cycletime.studies.study_folder import open_run, policy_of

    run = open_run(path)
    return run, policy_of(run)


def _print_written(path: Path) -> None:
    print(f"wrote {printable(str(path))} ({path.stat().st_size:,} bytes)")


@dataclass(frozen=True, kw_only=True)
class Evaluate(SingleRunOptions):
    """Play episodes with a run's policy, as it was at the last checkpoint, and print the mean return and its spread.

    For example: cycletime evaluate runs/reacher-ppo-16ms-seed0-1f0c7c38a2 --dt 32ms --delay 20ms
    """

    episodes: Whole = 100
    """How many episodes to play."""
    seed: Whole = 0
    """The seed of the first episode; each next one has one more, as in 'cycletime watch'."""
    dt: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: the run's)")] = None
    """Act at this cycle time instead of the one that the policy was trained at."""
    delay: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: none)")] = None
    """Delay each action by this time, a whole multiple of the environment's step."""
    sampled: bool = False
    """Draw actions with the policy's noise, as in training, instead of taking its mean."""
    json: bool = False
    """Print JSON instead of text."""

    @owning_children()
    def run(self) -> int:
        run, policy = _open_run(self.folder)
        from cycletime.policies.evaluate import Evaluation

        evaluation = Evaluation(
            policy=policy,
            world=run.spec.world,
            dt=run.spec.dt if self.dt is None else Duration(self.dt),
            delay=self.delay,
            episodes=self.episodes,
            seed=self.seed,
            sampled=self.sampled,
        )
        told = evaluation_as_json(self.folder.name, evaluation, evaluation.play())
        print(json.dumps(told, indent=2) if self.json else evaluation_as_text(told))
        return 0


def evaluation_as_json(run: str, evaluation: Evaluation, played: list[WatchedEpisode]) -> dict[str, Any]:
    import numpy as np

    from cycletime.statistics import mean_and_interval
    from cycletime.tasks.delays import delay_range_s

    returns = np.array([each.total_reward for each in played])
    mean = mean_and_interval(returns)
    return {
        "run": run,
        "world": evaluation.policy.world,
        "dt_s": float(evaluation.dt),
        "trained_dt_s": float(evaluation.policy.dt),
        "trained_env_steps": evaluation.policy.env_steps,
        "delay_s": 0.0 if evaluation.delay is None else float(delay_range_s(evaluation.delay)[0]),
        "actions": "sampled" if evaluation.sampled else "mean",
        "episodes": evaluation.episodes,
        "seed": evaluation.seed,
        "mean": mean.value,
        "standard_deviation": float(np.std(returns, ddof=1)) if len(returns) > 1 else None,
        "low": mean.low,
        "high": mean.high,
        "interval": mean.interval,
        "min": float(returns.min()),
        "median": float(np.median(returns)),
        "max": float(returns.max()),
        "mean_agent_steps": float(np.mean([each.agent_steps for each in played])),
        "terminated": sum(each.terminated for each in played),
        "returns": returns.tolist(),
    }


def evaluation_as_text(told: dict[str, Any]) -> str:
    n, first = told["episodes"], told["seed"]
    late = f" with actions {Duration.of_seconds(told['delay_s'])} late" if told["delay_s"] else ""
    seeds = f"seed {first}" if n == 1 else f"seeds {first} to {first + n - 1}"
    whose = "sampled from" if told["actions"] == "sampled" else "the mean of"
    spread = told["standard_deviation"]
    interval = "no interval from 1 episode"
    if told["low"] is not None:
        interval = f"{told['interval']} interval of the mean {told['low']:,.2f} to {told['high']:,.2f}"
    seconds = told["mean_agent_steps"] * told["dt_s"]
    lines = [
        f"{told['world']} at {Duration.of_seconds(told['dt_s'])}{late}: actions are {whose} a policy trained at "
        f"{Duration.of_seconds(told['trained_dt_s'])} for {told['trained_env_steps']:,} environment steps",
        f"mean return {told['mean']:,.2f}"
        + ("" if spread is None else f", standard deviation {spread:,.2f}")
        + f", {interval} (n = {n} episode{'' if n == 1 else 's'}, {seeds})",
        f"from {told['min']:,.2f} to {told['max']:,.2f}, median {told['median']:,.2f}; an episode has "
        f"{told['mean_agent_steps']:,.1f} agent steps ({seconds:,.2f} s) on average, {told['terminated']} of {n} "
        "terminated",
    ]
    return printable("\n".join(lines))


@dataclass(frozen=True, kw_only=True)
class Plot:
    """Draw the learning curves of one or several runs, finished or not.

    For example: cycletime plot runs/reacher-ppo-* --metrics entropy --to curves.svg
    """

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN ...", help_behavior_hint="(required)")]
    """The runs' folders."""
    to: Annotated[Path, arg(metavar="FILE")] = Path("learning-curve.png")
    """The figure, whose name ends in .png, .svg or .pdf."""
    metrics: Annotated[NameListOption, arg(metavar="NAME ...")] = NO_NAMES
    """Draw these metrics of learning below, each in a panel; 'all' for all that there are."""
    x: Literal["env-steps", "seconds"] = "env-steps"
    """What the x-axis counts: environment steps, or seconds of the environment's time."""

    def run(self) -> int:
        if not self.folders:
            raise InputError("There is no run to plot: give at least one run's folder.")
        from cycletime.reports.run_figure import chosen_metrics, figure_format, read_run_curves, save_runs_figure

        figure_format(self.to)  # refuses before anything is read
        runs = [read_run_curves(path) for path in dict.fromkeys(self.folders)]
        save_runs_figure(self.to, runs, chosen_metrics(runs, self.metrics), self.x)
        _print_written(self.to)
        return 0


def contract_as_text(contract: Mapping[str, Any] | None) -> str:
    """What a policy's loop must keep beside its rate."""
    if contract is None:
        return "contract: the rate alone, since an earlier version trained it: its delays and histories are not known"
    entries = [_timing_as_text(each) for each in contract["timing"]] or ["no delay, no history"]
    entries.extend(f"whatever {each} does" for each in contract["unknown_wrappers"])
    names = contract["observation"]
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return f"contract: {', '.join(entries)}\nobserved: {', '.join(names[:12])}{more}"


def _timing_as_text(entry: Mapping[str, Any]) -> str:
    seconds, steps = (list(dict.fromkeys(entry[name])) for name in ("seconds", "steps"))
    counted = f"{' to '.join(map(str, steps))} step{'' if steps == [1] else 's'}"
    spans = " to ".join(f"{1e3 * span_s:.6g} ms" for span_s in seconds)
    return f"{entry['kind']} of {spans} ({counted} of {1e3 * entry['step_s']:.6g} ms)"


@dataclass(frozen=True, kw_only=True)
class Export(SingleRunOptions):
    """Export a run's policy, as it was at the last checkpoint, to ONNX or to a folder that needs NumPy alone.

    For example: cycletime export runs/reacher-ppo-16ms-seed0-1f0c7c38a2 --to onnx
    """

    to: Annotated[Literal["onnx", "numpy"], arg(metavar="FORMAT")]
    """onnx: one file. numpy: a folder with the weights and a program that acts with them."""
    out: Annotated[Text, arg(metavar="PATH", help_behavior_hint="(default: policy.onnx or numpy/ in the run)")] = None
    """The file, or for numpy the folder, to write."""
    force: bool = False
    """Replace what is there."""

    def run(self) -> int:
        path = self.folder
        _, policy = _open_run(path)
        from cycletime.policies.export import NUMPY_FILES, OBSERVATIONS, TOLERANCE, export_numpy, export_onnx

        if self.out is None and not path.exists():
            raise InputError(f"--out is missing: {path.name} is in the store of its study, and has no folder.")
        out = Path(self.out) if self.out else path / ("policy.onnx" if self.to == "onnx" else "numpy")
        written = [out] if self.to == "onnx" else [out / name for name in NUMPY_FILES]
        self._refuse_to_replace(out, written)
        worst = export_onnx(policy, out) if self.to == "onnx" else export_numpy(policy, out)
        network = policy.network
        print(f"{policy.world} at {policy.dt}, trained for {policy.env_steps:,} environment steps")
        print(f"observations of {network.observation_size} numbers, actions of {network.action_size}")
        print(printable(contract_as_text(policy.contract)))
        for path in written:
            _print_written(path)
        print(
            f"worst difference from the JAX policy: {worst:.1e} ({OBSERVATIONS:,} observations, limit {TOLERANCE:.0e})"
        )
        return 0

    def _refuse_to_replace(self, out: Path, written: list[Path]) -> None:
        if self.to == "onnx" and out.is_dir():
            raise InputError(f"{str(out)!r} is a folder: give the name of a file, such as --out policy.onnx.")
        if self.to == "numpy" and out.exists() and not out.is_dir():
            raise InputError(f"{str(out)!r} is a file: give the name of a folder.")
        if self.force:
            return
        for path in written:
            if path.exists():
                raise InputError(f"{str(path)!r} exists already: add --force to replace it, or give another --out.")
