"""`cycletime evaluate`: what a run's policy earns, at its own cycle time or another, in time or late."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from cycletime.cli.of_one_run import OfOneRun
from cycletime.cli.options import Count, Text
from cycletime.duration import Duration
from cycletime.errors import printable

if TYPE_CHECKING:
    from cycletime.runs.evaluating import Evaluation, Played


@dataclass(frozen=True, kw_only=True)
class Evaluate(OfOneRun):
    """Play episodes with a run's policy, as it was at the last checkpoint, and print the mean return and its spread.

    For example: cycletime evaluate runs/reacher-ppo-16ms-seed0-1f0c7c38a2 --dt 32ms --delay 20ms
    """

    episodes: Annotated[Count, arg(help_behavior_hint="(default: 100)")] = None
    """How many episodes to play."""
    seed: Annotated[Count, arg(help_behavior_hint="(default: 0)")] = None
    """The seed of the first episode; each next one has one more, as in 'cycletime watch'."""
    dt: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: the run's)")] = None
    """Act at this cycle time instead of the one that the policy was trained at."""
    delay: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(default: none)")] = None
    """Delay each action by this time, a whole multiple of the environment's step."""
    sampled: bool = False
    """Draw actions with the policy's noise, as in training, instead of taking its mean."""
    json: bool = False
    """Print JSON instead of text."""

    def run(self) -> int:
        """Play the episodes, and print what they earned."""
        from cycletime.engines.devices import prepare_jax

        prepare_jax("cpu")  # a GPU is of no use here, and someone may be training on it
        from cycletime.runs.evaluating import Evaluation
        from cycletime.studies.store.folder import open_run, policy_of

        run = open_run(self.folder)
        evaluation = Evaluation(
            policy=policy_of(run),
            world=run.spec.world,
            dt=run.spec.dt if self.dt is None else Duration(self.dt),
            delay=self.delay,
            episodes=100 if self.episodes is None else self.episodes,
            seed=0 if self.seed is None else self.seed,
            sampled=self.sampled,
        )
        told = told_of(self.folder.name, evaluation, evaluation.play())
        print(json.dumps(told, indent=2) if self.json else as_text(told))
        return 0


def told_of(run: str, evaluation: Evaluation, played: Played) -> dict[str, Any]:
    """What `--json` prints."""
    import numpy as np

    from cycletime.statistics import mean_and_interval

    mean = mean_and_interval(played.returns)
    returns = played.returns
    return {
        "run": run,
        "world": evaluation.policy.world,
        "dt_s": float(evaluation.dt),
        "trained_dt_s": float(evaluation.policy.dt),
        "trained_env_steps": evaluation.policy.env_steps,
        "delay_s": 0.0 if evaluation.delay is None else _seconds(evaluation.delay),
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
        "mean_agent_steps": float(played.agent_steps.mean()),
        "terminated": int(played.terminated.sum()),
        "returns": returns.tolist(),
    }


def as_text(told: dict[str, Any]) -> str:
    """What is printed for people."""
    n, first = told["episodes"], told["seed"]
    late = f" with actions {Duration(told['delay_s'])} late" if told["delay_s"] else ""
    seeds = f"seed {first}" if n == 1 else f"seeds {first} to {first + n - 1}"
    whose = "sampled from" if told["actions"] == "sampled" else "the mean of"
    spread = told["standard_deviation"]
    interval = "no interval from 1 episode"
    if told["low"] is not None:
        interval = f"{told['interval']} interval of the mean {told['low']:,.2f} to {told['high']:,.2f}"
    seconds = told["mean_agent_steps"] * told["dt_s"]
    lines = [
        f"{told['world']} at {Duration(told['dt_s'])}{late}: actions are {whose} a policy trained at "
        f"{Duration(told['trained_dt_s'])} for {told['trained_env_steps']:,} environment steps",
        f"mean return {told['mean']:,.2f}"
        + ("" if spread is None else f", standard deviation {spread:,.2f}")
        + f", {interval} (n = {n} episode{'' if n == 1 else 's'}, {seeds})",
        f"from {told['min']:,.2f} to {told['max']:,.2f}, median {told['median']:,.2f}; an episode has "
        f"{told['mean_agent_steps']:,.1f} agent steps ({seconds:,.2f} s) on average, {told['terminated']} of {n} "
        "terminated",
    ]
    return printable("\n".join(lines))


def _seconds(delay: str) -> float:
    from cycletime.tasks.delays import ends_s

    return float(ends_s(delay)[0])
