"""What a run trains on: a task in closed form, or any Gymnasium environment by its id, and the bounds of actions."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from cycletime import tasks
from cycletime.duration import Duration, DurationLike, cycle_steps, refuse_longer_than
from cycletime.errors import InputError, NotInstalledError, did_you_mean, first_line, quote
from cycletime.extras import install_command, require_extras

if TYPE_CHECKING:
    import gymnasium

    from cycletime.tasks.closed_form import ClosedFormTask
    from cycletime.tasks.delays import DelayLike
    from cycletime.tasks.time_step import AnyEnv


@dataclass(frozen=True, eq=False)
class ActionBounds:
    centre: NDArray[np.float64]
    """The action that 0 becomes."""
    half: NDArray[np.float64]
    """How far from the centre 1 and -1 are."""
    low: NDArray[np.float64]
    """The least action, minus infinity where there is none; `high` likewise."""
    high: NDArray[np.float64]
    dtype: Any

    @classmethod
    def of(cls, env: AnyEnv) -> ActionBounds:
        """The bounds of an environment's actions; of one copy's, where it has several.

        Numbers with two bounds are mapped from [-1, 1] and clipped, others are taken as they are. An environment whose
        metadata say `raw_actions`, as tasks in closed form do, clips by itself: its cost sees what the agent wanted.
        """
        from gymnasium.spaces import Box

        space = getattr(env, "single_action_space", env.action_space)
        if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
            raise InputError(f"The actions are {space}: the agents need a Box of floating-point numbers.")
        _refuse_unless_flat(space, "actions", "give the environment a wrapper that takes flat ones")
        low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
        both = np.isfinite(low) & np.isfinite(high)
        # The two bounds of one-sided numbers would make infinities that are not used.
        least, most = np.where(both, low, -1.0), np.where(both, high, 1.0)
        clips = not env.metadata.get("raw_actions", False)
        return cls(
            centre=(least + most) / 2,
            half=(most - least) / 2,
            low=low if clips else np.full_like(low, -np.inf),
            high=high if clips else np.full_like(high, np.inf),
            dtype=space.dtype,
        )

    @classmethod
    def raw(cls, size: int) -> ActionBounds:
        """Those of a world that takes actions as they are, such as tasks in closed form."""
        return cls(np.zeros(size), np.ones(size), np.full(size, -np.inf), np.full(size, np.inf), np.float32)

    @property
    def size(self) -> int:
        return len(self.low)

    def reach(self, actions: NDArray[Any]) -> NDArray[Any]:
        # Not by np.clip, which takes as long as all the rest for one action.
        wanted = np.minimum(np.maximum(self.centre + self.half * actions, self.low), self.high)
        reached: NDArray[Any] = wanted.astype(self.dtype)
        return reached


def observation_size(env: AnyEnv) -> int:
    from gymnasium.spaces import Box

    space = getattr(env, "single_observation_space", env.observation_space)
    if not isinstance(space, Box):
        raise InputError(
            f"The observations are {space}: the agents need a Box, which gymnasium.wrappers.FlattenObservation makes."
        )
    _refuse_unless_flat(space, "observations", "wrap the environment in gymnasium.wrappers.FlattenObservation")
    return space.shape[0]


def _refuse_unless_flat(space: gymnasium.spaces.Box, name: str, remedy: str) -> None:
    if len(space.shape) != 1 or not space.shape[0]:
        raise InputError(f"The {name} are {space}, of the shape {space.shape}: it must be (n,), so {remedy}.")


RobotKind: TypeAlias = Literal["real", "simulated", "lockstep"]
"""An arm, a simulated controller in its own time, or one that waits for the agent."""


@dataclass(frozen=True)
class ClosedFormWorld:
    name: str
    env_dt: Duration = None  # type: ignore[assignment]  # None stands for the task's usual one

    def __post_init__(self) -> None:
        if self.name not in tasks.CLOSED_FORMS:
            known = f"give {either(tasks.CLOSED_FORMS)}, or a Gymnasium id as an environment"
            raise InputError(f"{quote(self.name)} is not a task: {known}{did_you_mean(self.name, tasks.CLOSED_FORMS)}")
        object.__setattr__(self, "env_dt", self.task.env_dt)

    @property
    def task(self) -> ClosedFormTask:
        return _task(self.name, self.env_dt)

    @property
    def has_usual_env_dt(self) -> bool:
        return self.env_dt == self.task.usual_env_dt


def task_class(name: str) -> type[ClosedFormTask]:
    """The class of a task in closed form; loaded when asked for, since it needs JAX and other worlds do not."""
    found: type[ClosedFormTask] = getattr(tasks, tasks.CLOSED_FORMS[name])
    return found


@lru_cache(maxsize=64)  # since each of a study's runs asks for the same one several times
def _task(name: str, env_dt: Duration) -> ClosedFormTask:
    return task_class(name)(env_dt=env_dt)


@dataclass(frozen=True)
class GymnasiumEnv:
    name: str
    env_dt: Duration | None = None
    """Its time step: one that it is retimed to, where `retime` knows it, and else one that it does not publish."""
    home: str = field(default="", kw_only=True, compare=False)
    """Where its module is looked for first; no run's file has it, since to look at a run must run no code beside it."""

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name.isprintable():
            raise InputError(f"env is {quote(name)}: give its id in one line, such as 'Reacher-v5'.")
        if self.env_dt is not None:
            object.__setattr__(self, "env_dt", Duration(self.env_dt))


@dataclass(frozen=True)
class RobotEnv(GymnasiumEnv):
    """A Gymnasium environment on an arm that is somewhere. Its address decides no number, but what it is does."""

    robot: RobotKind = "real"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.robot not in get_args(RobotKind):
            raise InputError(f"robot is {self.robot!r}: give {either(get_args(RobotKind))}.")

    @property
    def where(self) -> str:
        return "real robot" if self.robot == "real" else "simulated robot"


@dataclass(frozen=True)
class ForeignEnv(GymnasiumEnv):
    """An environment that only another library's trainer knows, by name."""

    def __post_init__(self) -> None:
        """Count in milliseconds, unless a time step is given: then budgets in seconds are whole numbers of steps."""
        object.__setattr__(self, "env_dt", Duration(self.env_dt or "1ms"))


World = ClosedFormWorld | GymnasiumEnv


def time_step(world: World, dt: Duration) -> Duration:
    """The time step of a world; an environment for which none is given is made, at a cycle time, to say it."""
    if world.env_dt is not None:
        return world.env_dt
    with closing(make_env(world, dt, discrete=True)) as env:
        return Duration.of_seconds(env.get_wrapper_attr("env_dt"))


def world_of(task: str | None, env: str | None, env_dt: DurationLike | None, robot: RobotKind | None = None) -> World:
    """The world of a request: a task in closed form, or a Gymnasium environment, which may be a robot's."""
    if (task is None) == (env is None):
        raise InputError("Give either a task (such as reacher) or an env (a Gymnasium id).")
    step = None if env_dt is None else Duration(env_dt)
    if task is not None and robot is not None:
        raise InputError(f"robot is {robot!r}: a task in closed form has none, so give an env.")
    if task is not None:
        return ClosedFormWorld(task, *(() if step is None else (step,)))
    assert env is not None, "one of the two is given"
    return GymnasiumEnv(env, step) if robot is None else RobotEnv(env, step, robot)


def world_as_json(world: World) -> dict[str, Any]:
    if isinstance(world, ClosedFormWorld):
        # Without env_dt where it is the usual one, which runs had before it could be set.
        return {"task": world.name, **({} if world.has_usual_env_dt else {"env_dt": world.env_dt.shortest})}
    if isinstance(world, ForeignEnv):
        return {"foreign": world.name, "env_dt": world.env_dt and world.env_dt.shortest}
    robot = {"robot": world.robot} if isinstance(world, RobotEnv) else {}
    return {"env": world.name, "env_dt": world.env_dt and world.env_dt.shortest, **robot}


def world_from_json(data: Mapping[str, Any]) -> World:
    if "foreign" in data:
        return ForeignEnv(data["foreign"], Duration(data["env_dt"]))
    return world_of(data.get("task"), data.get("env"), data.get("env_dt"), data.get("robot"))


def either(names: Iterable[str]) -> str:
    """Names as a choice: 'a', 'b' or 'c'."""
    *others, last = map(repr, names)
    return f"{', '.join(others)} or {last}" if others else last


def refuse_unknown_env(world: World) -> None:
    """Refuse an environment that Gymnasium does not know; of 'module:Name-v0' no code is run, to look what it has."""
    if isinstance(world, ClosedFormWorld | ForeignEnv):
        return
    module, colon, name = world.name.rpartition(":")
    if not colon:
        _refuse_unregistered(name)
    elif not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f"{world.name!r} is not an environment: {module!r} is not a module, as in 'module:Name-v0'.")


def refuse_budget_without_episode(world: World, env_steps: int, num_envs: int = 1) -> None:
    """Refuse a budget in which no episode can end, where that is known: a run would have no return to tell."""
    if not isinstance(world, ClosedFormWorld):
        return
    least = cycle_steps(world.task.shortest_episode, world.env_dt) * num_envs
    if env_steps < least:
        several = "" if num_envs == 1 else f" in each of {num_envs} environments"
        needed = f"{least:,} environment steps ({world.task.shortest_episode}{several}), so give at least that"
        raise InputError(f"env_steps is {env_steps}: no episode of {world.name} ends before {needed}.")


def make_env(
    world: World, dt: Duration, render_mode: str | None = None, delay: DelayLike | None = None, discrete: bool = False
) -> gymnasium.Env[Any, Any]:
    """The world as an environment of which one step is one agent step; with `discrete` its actions may be any.

    For 'module:Name-v0' the module is imported first, which runs its code. A delay is how late actions take effect, in
    whole steps of the environment.
    """
    with require_extras(world.name):
        import_module("gymnasium")
    keywords = {} if render_mode is None else {"render_mode": render_mode}
    if isinstance(world, ClosedFormWorld):
        refuse_longer_than(world.task.time_limit, dt)
        return _make_task_env(f"cycletime/{tasks.CLOSED_FORMS[world.name]}-v0", world.env_dt, dt, keywords, delay)
    if isinstance(world, RobotEnv):
        see = "see 'cycletime robot run', or 'cycletime robot resume'"
        raise InputError(f"{world.name} is on an arm, and only who knows where that is can make it: {see}.")
    if isinstance(world, ForeignEnv):
        raise InputError(f"{world.name!r} is no environment: give the study a task, or a Gymnasium id as its env.")
    from cycletime.tasks.env_errors import EnvErrorWrapper, raise_as_env_error

    with raise_as_env_error(world.name, "its making"):
        return EnvErrorWrapper(_make_gymnasium_env(world, dt, keywords, delay, discrete), world.name)


def _make_task_env(
    name: str, env_dt: Duration, dt: Duration, keywords: dict[str, Any], delay: DelayLike | None
) -> gymnasium.Env[Any, Any]:
    """A task in closed form, which holds actions itself; a delay must be inside of what holds them."""
    if delay is None:
        return _gymnasium_make(name, {**keywords, "dt": dt, "env_dt": env_dt})
    from cycletime.tasks import CycleTime

    return CycleTime(_with_delay(_gymnasium_make(name, {**keywords, "dt": env_dt, "env_dt": env_dt}), delay, None), dt)


def _with_delay(
    env: gymnasium.Env[Any, Any], delay: DelayLike | None, env_dt: Duration | None
) -> gymnasium.Env[Any, Any]:
    from cycletime.tasks.delays import ActionDelay

    return env if delay is None else ActionDelay(env, delay, env_dt=env_dt)


def _make_gymnasium_env(
    world: GymnasiumEnv, dt: Duration, keywords: dict[str, Any], delay: DelayLike | None, discrete: bool
) -> gymnasium.Env[Any, Any]:
    from cycletime.tasks import CycleTime
    from cycletime.tasks.retime import RETIMINGS, retime

    _let_mujoco_draw_without_a_screen(keywords)
    if world.env_dt is not None:
        cycle_steps(dt, world.env_dt)  # before any simulator is started
    refuse_unknown_env(world)
    module, _, name = world.name.rpartition(":")
    if module:
        import_own(module, world.name, world.home)  # which registers it
        _refuse_unregistered(name)
    env: gymnasium.Env[Any, Any]
    env_dt = world.env_dt
    if env_dt is not None and name in RETIMINGS:
        env, env_dt = retime(name, env_dt, **keywords), None  # which it says itself
    else:
        env = _gymnasium_make(name, keywords)
    closed_forms = sys.modules.get("cycletime.tasks.closed_form_env")  # imported, with JAX, where env is one of them
    if closed_forms and isinstance(env.unwrapped, closed_forms.ClosedFormEnv):
        env.close()
        return _make_task_env(name, world.env_dt or env.unwrapped.task.env_dt, dt, keywords, delay)
    try:
        if not discrete:
            ActionBounds.of(env)  # first: whoever is asked for a time step should not find then that no agent can act
        return CycleTime(_with_delay(env, delay, env_dt), dt, env_dt=env_dt)
    except InputError:
        env.close()
        raise


def import_own(module: str, name: str, home: str = "") -> ModuleType:
    """A user's module, which a name such as 'module:Name-v0' needs; one in the folder `home` comes first."""
    if home and home not in sys.path:
        sys.path.insert(0, home)
    try:
        return import_module(module)
    except ImportError as error:
        found = "PYTHONPATH=. finds one in the current folder, and a study one beside its file"
        remedy = f"install it, or put its folder on PYTHONPATH; {found}"
        raise InputError(f"{name!r} needs a module that cannot be imported: {first_line(error)}: {remedy}.") from error


def python_path(home: str) -> str:
    """The PYTHONPATH with which a child process finds modules in a folder first."""
    return os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))


def _refuse_unregistered(name: str) -> None:
    with require_extras(name):
        import gymnasium
    from gymnasium.envs.registration import find_highest_version, get_env_id, parse_env_id

    if name in gymnasium.registry:
        return
    try:
        namespace, base, version = parse_env_id(name)
        newest = find_highest_version(namespace, base)
        if version is None and newest is not None:
            newest_id = get_env_id(namespace, base, newest)
            raise InputError(f"{name!r} has no version, and its newest may change: give {newest_id!r}.")
        gymnasium.spec(name)
    except gymnasium.error.Error as error:
        raise _no_environment(name, error) from error


def _gymnasium_make(name: str, keywords: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    import gymnasium
    from gymnasium.error import DependencyNotInstalled

    try:
        env: gymnasium.Env[Any, Any] = gymnasium.make(name, **keywords)
    except DependencyNotInstalled as error:
        remedy = f"for MuJoCo's environments {install_command('mujoco')}"
        raise InputError(f"{name!r} needs a package that is not installed ({first_line(error)}): {remedy}.") from error
    except NotInstalledError:
        raise
    except gymnasium.error.Error as error:
        raise _no_environment(name, error) from error
    except ImportError as error:
        raise InputError(f"{name!r} needs a module that cannot be imported: {first_line(error)}.") from error
    return env


def _no_environment(name: str, error: Exception) -> InputError:
    ours = f", or task={name.lower()!r}" if name.lower() in tasks.CLOSED_FORMS else ""
    return InputError(
        f"{name!r} is not an environment that Gymnasium can make ({first_line(error)}): give an id such as "
        f"'Reacher-v5', or 'module:Name-v0' for one that a module registers{ours}."
    )


def _let_mujoco_draw_without_a_screen(keywords: dict[str, Any]) -> None:
    """MuJoCo asks for a screen even for pictures in memory, unless told otherwise before it is imported."""
    screen = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if keywords.get("render_mode") == "rgb_array" and not screen:
        os.environ.setdefault("MUJOCO_GL", "egl")
