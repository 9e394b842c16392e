"""`cycletime watch`: a run's policy at work, in a window or as a film."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from cycletime.cli.of_one_run import OfOneRun
from cycletime.cli.options import Count, Real, Text
from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.agents.numpy_policy import NumpyPolicy
    from cycletime.runs.watching import Act, Seen, Showing


@dataclass(frozen=True, kw_only=True)
class Watch(OfOneRun):
    """Watch a run's policy, as it was at the last checkpoint, in real time.

    For example: cycletime watch runs/reacher-ppo-16ms-seed0-1f0c7c38a2 --to film.gif
    """

    to: Annotated[Text, arg(metavar="FILM", help_behavior_hint="(default: a window)")] = None
    """Write a film, whose name ends in .gif or .mp4."""
    episodes: Annotated[Count, arg(help_behavior_hint="(default: 3)")] = None
    """How many episodes to play."""
    seed: Annotated[Count, arg(help_behavior_hint="(default: 0)")] = None
    """The seed of the first episode; each next one has one more."""
    sampled: bool = False
    """Draw actions with the policy's noise, as in training, instead of taking its mean."""
    speed: Real = 1.0
    """How much faster than the real world; 0.5 is slow motion."""

    def run(self) -> int:
        """Play the episodes, and print each one's return and length."""
        from cycletime.engines.devices import prepare_jax

        prepare_jax("cpu")  # a GPU is of no use here, and someone may be training on it
        from cycletime.loops.action_bounds import ActionBounds, observation_size_of
        from cycletime.runs.films import writer_for
        from cycletime.runs.watching import Showing, drawing, refuse_without_display
        from cycletime.runs.worlds import make_env
        from cycletime.studies.store.folder import open_run, policy_of

        seed = self.seed or 0
        if seed < 0:
            raise InputError(f"--seed is {seed}: it must be at least 0.")
        run = open_run(self.folder)
        spec = run.spec
        # What can go wrong is asked before anything slow is done.
        if self.to is None:
            refuse_without_display()
        else:
            writer_for(Path(self.to))
        saved = policy_of(run)
        policy = saved.in_numpy()
        with drawing(spec.world.name):
            env = make_env(spec.world, spec.dt, render_mode="rgb_array")
        try:
            saved.refuse_other_sizes(observation_size_of(env), ActionBounds.of(env).size, env)
            showing = Showing(
                env=env,
                act=self._act(policy, seed),
                dt=spec.dt,
                episodes=3 if self.episodes is None else self.episodes,
                seed=seed,
                speed=self.speed,
                tell=lambda seen: _print(seen, float(spec.dt)),
            )
            self._show(showing, spec.world.name)
        finally:
            env.close()
        return 0

    def _show(self, showing: Showing, name: str) -> None:
        from cycletime.runs.watching import film, show_in_window

        if self.to is None:
            show_in_window(showing, name)
        else:
            film(showing, Path(self.to))
            print(f"wrote {printable(str(self.to))} ({Path(self.to).stat().st_size:,} bytes)")

    def _act(self, policy: NumpyPolicy, seed: int) -> Act:
        import numpy as np

        if not self.sampled:
            return policy.act
        # Not the environment's numbers, so that episodes begin as they do without noise.
        rng = np.random.default_rng([seed, 1])
        return lambda observation: policy.act(observation, rng)


def _print(seen: Seen, dt_s: float) -> None:
    why = "terminated" if seen.terminated else "truncated"
    print(
        f"episode {seen.number + 1}: return {seen.total_reward:.2f}, {seen.agent_steps} agent steps, "
        f"{seen.agent_steps * dt_s:.2f} s, {why}",
        flush=True,
    )
