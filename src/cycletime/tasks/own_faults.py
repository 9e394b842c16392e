"""Whose fault an error of the system is: a broken pipe to a simulator is not a reader of our output who has left.

An environment that calls sys.exit(), as games do when their window is closed, fails as well: a run that is not done
must not look as if it were.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception_only
from typing import Any

import gymnasium as gym

from cycletime.errors import WorldError


class OwnFaults(gym.Wrapper[Any, Any, Any, Any]):
    """Calls errors of the system, and exits, raised inside of an environment, the environment's."""

    def __init__(self, env: gym.Env[Any, Any], name: str) -> None:
        """Wrap an environment, which is called by a name."""
        super().__init__(env)
        self._name = name

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        with faults_of(self._name, "its reset()"):
            return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """Take a step."""
        with faults_of(self._name, "its step()"):
            return self.env.step(action)

    def render(self) -> Any:  # noqa: ANN401 - as Gymnasium has it
        """Draw."""
        with faults_of(self._name, "its render()"):
            return self.env.render()

    def close(self) -> None:
        """Close it."""
        with faults_of(self._name, "its close()"):
            self.env.close()


@contextmanager
def faults_of(name: str, where: str) -> Iterator[None]:
    """Call what the system refuses inside of this the fault of an environment, and say where.

    Raises:
        WorldError: instead of an OSError or SystemExit, which is its cause.
    """
    try:
        yield
    except (OSError, SystemExit) as error:
        told = "".join(format_exception_only(error)).strip()
        raise WorldError(f"The environment {name} failed in {where} with {told}.") from error
