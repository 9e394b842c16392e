"""From the agent's actions, about [-1, 1], to those that an environment takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cycletime.errors import InputError

if TYPE_CHECKING:  # GPU machines may have no Gymnasium, and need bounds of tasks in closed form only
    import gymnasium

    from cycletime.tasks.time_step import AnyEnv


@dataclass(frozen=True, eq=False)
class ActionBounds:
    """An action space, and how to reach all of it."""

    centre: NDArray[np.float64]
    """Where 0 goes."""
    half: NDArray[np.float64]
    """How far 1 is from it."""
    low: NDArray[np.float64]
    """The least action, minus infinity where there is none."""
    high: NDArray[np.float64]
    """The greatest."""
    dtype: Any
    """What the environment takes."""

    @classmethod
    def of(cls, env: AnyEnv) -> ActionBounds:
        """The bounds of an environment's actions; of one copy's, where it has several.

        Numbers with two bounds are mapped from [-1, 1] and clipped, others are taken as they are. An environment whose
        metadata say `raw_actions`, as tasks in closed form do, clips by itself: its cost sees what the agent wanted.

        Raises:
            InputError: if actions are not floating-point numbers in one box.
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
        """Numbers in an action."""
        return len(self.low)

    def reach(self, actions: NDArray[Any]) -> NDArray[Any]:
        """What the environment is given for what the agent does."""
        # Not by np.clip, which takes as long as all the rest for one action.
        wanted = np.minimum(np.maximum(self.centre + self.half * actions, self.low), self.high)
        reached: NDArray[Any] = wanted.astype(self.dtype)
        return reached


def observation_size_of(env: AnyEnv) -> int:
    """Numbers in an observation; in one copy's, where there are several.

    Raises:
        InputError: if observations are not numbers in one box.
    """
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
