"""An action-cycle time for vector environments, where one copy's episode may end in the middle of a hold.

Stepping a vector environment k times with one action would then carry that action into the copy's next episode, since
vector environments reset their finished copies by themselves. So the hold belongs inside each copy, around its own
single environment: `make_vec_with_cycle_time` builds that, and `VectorCycleTime` does it to a ``SyncVectorEnv``.
An environment that steps all its copies at once can be held from outside only if it leaves finished copies alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.vector.utils import concatenate, create_empty_array, iterate
from numpy.typing import NDArray

from cycletime.duration import Duration, DurationLike, cycle_steps
from cycletime.errors import InputError
from cycletime.tasks.cycle_time import CycleClock, CycleTime
from cycletime.tasks.render import frame_rate
from cycletime.tasks.time_step import duration_text, step_duration, whole_steps

Infos = dict[str, Any]
Transition = tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Infos]


def make_vec_with_cycle_time(
    env_id: str | gym.envs.registration.EnvSpec,
    num_envs: int = 1,
    vectorization_mode: str = "sync",
    *,
    dt: DurationLike,
    env_dt: DurationLike | None = None,
    time_limit: DurationLike | None = None,
    vector_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Callable[[gym.Env[Any, Any]], gym.Wrapper[Any, Any, Any, Any]]] = (),
    **kwargs: Any,  # noqa: ANN401 (the environment's own arguments)
) -> VectorEnv[Any, Any, Any]:
    """``gymnasium.make_vec`` with a `CycleTime` in every copy: right in every autoreset mode.

    Args:
        env_id: The environment's id or specification.
        num_envs: The number of copies.
        vectorization_mode: ``"sync"`` or ``"async"``.
        dt: The action-cycle time; ``env_dt`` and ``time_limit`` are `CycleTime`'s too.
        env_dt: The environment's time step, where it does not publish it.
        time_limit: Truncate episodes after this span.
        vector_kwargs: Arguments of the vector environment, such as ``autoreset_mode``.
        wrappers: Wrappers around `CycleTime` in every copy. For some inside it call ``gymnasium.make_vec`` and put
            ``functools.partial(CycleTime, dt=...)``, which can be pickled, among its ``wrappers``.
        **kwargs: Arguments of the environment.

    Raises:
        InputError: if the copies cannot be wrapped one by one in this mode.
    """
    if vectorization_mode not in ("sync", "async"):
        raise InputError(
            f"vectorization_mode is {vectorization_mode!r}: give 'sync' or 'async', since actions are held inside the "
            f"copies. For an environment that steps all copies at once see VectorCycleTime."
        )
    hold = partial(CycleTime, dt=dt, env_dt=env_dt, time_limit=time_limit)
    if vectorization_mode == "async":
        # A process that was forked from one in which JAX has run may hang.
        vector_kwargs = {"context": "forkserver", **(vector_kwargs or {})}
    return gym.make_vec(
        env_id, num_envs, vectorization_mode, vector_kwargs=vector_kwargs, wrappers=[hold, *wrappers], **kwargs
    )


class VectorCycleTime(CycleClock, VectorWrapper, gym.utils.RecordConstructorArgs):
    """Holds every action for ``dt`` seconds in an existing vector environment.

    A ``SyncVectorEnv`` is taken over: a `CycleTime` is put around each of its environments, and each autoreset mode
    stays as it is. Any other environment must have ``AutoresetMode.DISABLED``, and you must say that its ``step``
    tolerates copies that have ended: it is stepped on until the cycle is over, and what an ended copy returns is
    ignored until you reset it with ``options={"reset_mask": ...}``. `CycleTime` lists what ``info`` tells; here each is
    an array with one entry per copy.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        dt: DurationLike,
        *,
        env_dt: DurationLike | None = None,
        time_limit: DurationLike | None = None,
        steps_past_end: bool = False,
    ) -> None:
        """Wrap a vector environment.

        Args:
            env: The vector environment, not yet wrapped by others.
            dt: The action-cycle time, a whole multiple of the environment's step.
            env_dt: The environment's time step, where it does not publish it.
            time_limit: Truncate a copy's episode after this span, even in the middle of a cycle.
            steps_past_end: Whether ``env.step`` tolerates copies that have ended. Not needed for a ``SyncVectorEnv``.
        """
        gym.utils.RecordConstructorArgs.__init__(
            self,
            dt=duration_text(dt),
            env_dt=duration_text(env_dt),
            time_limit=duration_text(time_limit),
            steps_past_end=steps_past_end,
        )
        _refuse_other_kinds(env)
        VectorWrapper.__init__(self, env)
        self._dt = Duration(dt)
        self._holds_inside = isinstance(env, SyncVectorEnv)
        if isinstance(env, SyncVectorEnv):
            self._env_dt = _hold_inside(env, partial(CycleTime, dt=dt, env_dt=env_dt, time_limit=time_limit))
        else:
            _refuse_unless_ended_copies_wait(env, steps_past_end)
            self._env_dt = step_duration(env, env_dt)
        self._cycle_steps = cycle_steps(self._dt, self._env_dt)
        self._limit_steps = None
        if time_limit is not None:
            self._limit_steps = whole_steps("time limit", Duration(time_limit).exact_s, self._env_dt, least=1)
        self._env_steps = np.zeros(self.num_envs, np.int64)
        self._agent_steps = np.zeros(self.num_envs, np.int64)
        self._ended = np.zeros(self.num_envs, np.bool_)
        self._last_observations: dict[int, Any] = {}
        self.metadata = {**env.metadata, "render_fps": frame_rate(self.dt)}

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, Infos]:
        """Begin an episode in every copy, or in those of ``options["reset_mask"]``."""
        mask = _reset_mask(options, self.num_envs)
        # A copy of the options, since Gymnasium's environments take the mask out of what they are given.
        observations, infos = self.env.reset(seed=seed, options=None if options is None else dict(options))  # type: ignore[arg-type]
        if self._holds_inside:
            return observations, infos
        self._env_steps[mask] = self._agent_steps[mask] = 0
        self._ended &= ~mask
        self._last_observations = {copy: seen for copy, seen in self._last_observations.items() if not mask[copy]}
        return self._as_last_seen(observations), self._with_clock(infos, np.zeros_like(self._env_steps))

    def step(self, actions: Any) -> Transition:  # noqa: ANN401 (any action space)
        """Hold every copy's action for one cycle, or until that copy's episode ends."""
        if self._holds_inside:
            return self.env.step(actions)
        if self._ended.any():
            raise InputError(
                f"The episodes of the copies {np.flatnonzero(self._ended).tolist()} have ended: "
                f"reset these first, with reset(options={{'reset_mask': terminated | truncated}})."
            )
        return self._hold(actions)

    def _hold(self, actions: Any) -> Transition:  # noqa: ANN401
        before = self._env_steps.copy()
        rewards = np.zeros(self.num_envs)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        observations, infos = None, Infos()
        for _ in range(self._cycle_steps):
            running = ~(terminated | truncated)
            if not running.any():
                break
            self._remember_ended(observations, ~running)
            observations, step_rewards, step_terminated, step_truncated, step_infos = self.env.step(actions)
            self._env_steps += running
            rewards[running] += np.asarray(step_rewards)[running]
            terminated[running] = np.asarray(step_terminated)[running]
            truncated[running] = np.asarray(step_truncated)[running]
            if self._limit_steps is not None:
                truncated |= self._env_steps >= self._limit_steps
            infos = _infos_of_last_steps(infos, deepcopy(step_infos), running)
        self._agent_steps += 1
        self._ended = terminated | truncated
        infos = self._with_clock(infos, self._env_steps - before)
        return self._as_last_seen(observations), rewards, terminated, truncated, infos

    def _remember_ended(self, observations: Any, ended: NDArray[np.bool_]) -> None:  # noqa: ANN401
        """Keep the last observations of copies that have just ended: the next step overwrites them."""
        missing = {copy for copy in np.flatnonzero(ended).tolist() if copy not in self._last_observations}
        if missing:
            seen = enumerate(iterate(self.observation_space, observations))
            self._last_observations |= {copy: deepcopy(item) for copy, item in seen if copy in missing}

    def _as_last_seen(self, observations: Any) -> Any:  # noqa: ANN401
        if not self._last_observations:
            return observations
        seen = enumerate(iterate(self.observation_space, observations))
        space = self.single_observation_space
        batch: Any = create_empty_array(space, self.num_envs)
        return concatenate(space, [self._last_observations.get(copy, item) for copy, item in seen], batch)

    def _with_clock(self, infos: Infos, lasted: NDArray[np.int64]) -> Infos:
        exact_s = self._env_dt.exact_s
        clock = {
            "env_steps": self._env_steps.copy(),
            "agent_steps": self._agent_steps.copy(),
            "elapsed_s": self._env_steps * exact_s.numerator / exact_s.denominator,
            "cycle_steps": lasted,
        }
        # Gymnasium marks with _key which copies have the key.
        return {**infos, **clock, **{f"_{key}": np.ones(self.num_envs, np.bool_) for key in clock}}


def _hold_inside(env: SyncVectorEnv[Any, Any], hold: Callable[[gym.Env[Any, Any]], CycleTime]) -> Duration:
    copies = [hold(copy) for copy in env.envs]
    steps = {Duration(copy.env_dt) for copy in copies}
    if len(steps) > 1:
        raise InputError(f"The copies of {env} have the time steps {sorted(map(str, steps))}: give them a common one.")
    env.envs = list[gym.Env[Any, Any]](copies)
    return steps.pop()


def _refuse_other_kinds(env: object) -> None:
    if isinstance(env, VectorEnv):
        return
    instead = (
        "it is a single environment, so put CycleTime around it"
        if isinstance(env, gym.Env)
        else "hold the actions inside its copies, in Stable-Baselines3 with "
        "make_vec_env(id, n_envs, wrapper_class=CycleTime, wrapper_kwargs={'dt': ...})"
    )
    raise InputError(f"VectorCycleTime wraps a gymnasium.vector.VectorEnv and not {env!r}: {instead}.")


def _refuse_unless_ended_copies_wait(env: VectorEnv[Any, Any, Any], steps_past_end: bool) -> None:
    if isinstance(env, VectorWrapper):
        raise InputError(
            f"{env} is wrapped already: put VectorCycleTime around {env.unwrapped} first, the rest around it."
        )
    inside = (
        "hold the actions inside the copies, with make_vec_with_cycle_time(..., vectorization_mode='async' or 'sync')"
    )
    if isinstance(env, AsyncVectorEnv):
        raise InputError(f"The copies of {env} live in other processes: {inside}.")
    mode = env.metadata.get("autoreset_mode")
    if mode is not AutoresetMode.DISABLED:
        raise InputError(
            f"{env} has the autoreset_mode {mode}, which would apply an action to the next episode of a copy that ends "
            f"in the middle of a cycle: {inside}, or give an environment with AutoresetMode.DISABLED."
        )
    if not steps_past_end:
        raise InputError(
            f"{env} steps all copies at once, also those that end in the middle of a cycle: say steps_past_end=True "
            f"if its step() tolerates that, else {inside}."
        )


def _reset_mask(options: dict[str, Any] | None, num_envs: int) -> NDArray[np.bool_]:
    if not options or "reset_mask" not in options:
        return np.ones(num_envs, np.bool_)
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.shape != (num_envs,) or mask.dtype != np.bool_ or not mask.any():
        raise InputError(f"reset_mask is {mask!r}: give a NumPy array of {num_envs} booleans, at least one True.")
    return mask


def _infos_of_last_steps(kept: Infos, new: Infos, running: NDArray[np.bool_]) -> Infos:
    """Each copy's info of its own last step: the new one where it still ran, else the kept one."""
    if running.all():
        return new
    merged = Infos()
    for key in {**kept, **new}:
        old_value, new_value = kept.get(key), new.get(key)
        some = new_value if old_value is None else old_value
        if isinstance(some, dict):
            merged[key] = _infos_of_last_steps(old_value or {}, new_value or {}, running)
        elif isinstance(some, np.ndarray) and some.shape[:1] == running.shape:
            absent = np.zeros_like(some)
            rows = running.reshape(-1, *[1] * (some.ndim - 1))
            merged[key] = np.where(
                rows, absent if new_value is None else new_value, absent if old_value is None else old_value
            )
        else:
            merged[key] = old_value if new_value is None else new_value
    return merged
