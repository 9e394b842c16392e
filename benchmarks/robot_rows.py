"""The robot's studies again, through the controller in lock-step: `python benchmarks/robot_rows.py PAPER STUDY ...`.

PAPER is the folder that `cycletime experiment run paper` or a pack filled. Of each setting one seed is learned again
with the same agent, on UR-Reacher-2 through a simulated controller in a process of its own, by the stepped loop.
Episodes begin with other targets there, and learning amplifies every rounding, so that the two curves are draws from
one distribution, and not the same. What can be compared number by number is what a policy does: that of the closed
form's run acts on both, in episodes that begin alike, in the float32 that studies have and in the float64 of the
controller.

What was learned is kept in PAPER/lock-step and not learned again. `--share 0.2` learns for a fifth of the study's
environment steps, and compares with as much of the closed form's curve; `--settings 0 2` chooses some of the study's.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration, cycle_steps
from cycletime.policies.evaluate import Evaluation
from cycletime.robots.ur.links import LockstepLink
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import simulated_controller
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Cell
from cycletime.studies.study_folder import StudyFolder, policy_of
from cycletime.tasks.ur_reacher import URReacher
from cycletime.training.engine import with_engine
from cycletime.training.finished_run import FinishedRun
from cycletime.training.machine import prepare_jax
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.trainer import train_batch
from cycletime.training.worlds import GymnasiumEnv

EPISODES = 20
"""That each policy plays on both."""
LAST = 0.1
"""The share of learning whose mean return is the final one, as in the paper's claims."""


class OwnController(gymnasium.Wrapper):
    """UR-Reacher-2 on a controller in lock-step that ends with it."""

    def __init__(self, env_dt: str) -> None:
        """Start the controller, and wait at each reset until the arm stands as still as the closed form's."""
        self._process = ExitStack()
        controller = self._process.enter_context(simulated_controller("cb3", None))
        ports = controller.ports
        link = LockstepLink(Address(controller.address, ports.rtde, ports.realtime, ports.dashboard))
        super().__init__(URReacher2Env(link, env_dt, reset_time="3.5s"))

    def close(self) -> None:
        """End both."""
        super().close()
        self._process.close()


def env_id(env_dt: Duration) -> str:
    """The environment with a time step, as Gymnasium knows it."""
    name = f"cycletime/LockstepURReacher2{env_dt}-v0"
    if name not in gymnasium.registry:
        gymnasium.register(name, entry_point=f"{__name__}:OwnController", kwargs={"env_dt": str(env_dt)})
    return name


def repeated(spec: RunSpec, share: float, out: Path) -> FinishedRun:
    """A run of the closed form, or its beginning, learned again through the controller."""
    world = GymnasiumEnv(env_id(spec.world.env_dt), spec.world.env_dt)  # type: ignore[arg-type]
    again = with_engine(replace(spec, world=world, engine=EngineSpec(), env_steps=round(share * spec.env_steps)))
    folder = RunFolder.create(out, again)
    (ended,) = train_batch([TrainingJob(folder)])
    if isinstance(ended, Exception):
        raise ended
    return folder.finished()


def score_and_end(returns: NDArray[np.float64]) -> tuple[float, float]:
    """The mean of a curve in bins, and that of its last tenth."""
    return float(returns.mean()), float(returns[-round(LAST * len(returns)) :].mean())


def played_in_float64(run: FinishedRun, episodes: int) -> NDArray[np.float64]:
    """Returns of a run's policy on its task, of episodes that begin as `Evaluation`'s."""
    policy, spec = policy_of(run).in_numpy(), run.spec
    with jax.enable_x64(True):
        task = URReacher(jnp.float64, env_dt=spec.world.env_dt)  # type: ignore[arg-type]
        cycle = jax.jit(task.cycle, static_argnums=2)
        returns = np.zeros(episodes)
        for episode in range(episodes):
            state = task.start(*task.draw_start(np.random.default_rng(episode)))
            seen, is_over = task.observe(state), False
            while not is_over:
                action = policy.act(np.asarray(seen, np.float32))
                step = cycle(state, jnp.asarray(action, jnp.float64), cycle_steps(spec.dt, task.env_dt))
                state, seen, is_over = step.state, step.observation, bool(step.truncated)
                returns[episode] += float(step.reward)
    return returns


def told(study: StudyFolder, cell: Cell, names: tuple[str, ...], share: float, out: Path) -> str:
    """A setting in a line."""
    run = next(each for each in study.store.runs() if each.name == names[0])
    again = repeated(run.spec, share, out)
    bins = round(share * len(study.store.means(names[0])))
    copies = np.array([score_and_end(study.store.means(name)[:bins]) for name in names])
    score, end = score_and_end(again.bins.means())
    policy, worlds = policy_of(run), (run.spec.world, again.spec.world)
    played = [Evaluation(policy=policy, world=world, dt=cell.dt, episodes=EPISODES).play() for world in worlds]
    ours, theirs = (np.array([each.total_reward for each in episodes]) for episodes in played)
    apart, exact = (np.abs(each - theirs) for each in (ours, played_in_float64(run, EPISODES)))
    labels = ", ".join(str(value) for name, value in cell.labels.items() if name not in ("task", "algorithm"))
    whole = f"{_range(copies[:, 0])} and {_range(copies[:, 1])} over {len(names)} seeds"
    return (
        f"{study.study.name}, {labels}, seed {run.spec.seed}, {again.spec.env_steps:,} environment steps\n"
        f"  learned there: score {score:.1f}, final return {end:.1f}; in closed form: score {copies[0, 0]:.1f}, "
        f"final return {copies[0, 1]:.1f}, and {whole}\n"
        f"  the closed form's policy in {EPISODES} episodes: {theirs.mean():.2f} there, {ours.mean():.2f} in closed "
        f"form; an episode is {np.median(apart):.1e} apart in the median, {apart.max():.1e} at most, and in float64 "
        f"{exact.max():.1e} at most"
    )


def _range(numbers: NDArray[np.float64]) -> str:
    return f"{numbers.min():.1f} to {numbers.max():.1f}"


def main() -> int:
    """Print a few lines for each setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paper", type=Path)
    parser.add_argument("studies", nargs="+")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--settings", type=int, nargs="+")
    asked = parser.parse_args()
    prepare_jax("cpu")
    for name in asked.studies:
        study = StudyFolder.open(asked.paper / name)
        plan, settings = Plan.of(study.study), dict[tuple[str, ...], Cell]()
        for index, each in enumerate(plan.cells):
            settings.setdefault(plan.names[index], each)  # where rules agree, cells have the same runs
        for number, (names, cell) in enumerate(settings.items()):
            if number in (asked.settings or [number]):
                print(told(study, cell, names, asked.share, asked.paper / "lock-step"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
