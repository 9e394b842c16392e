"""Errors of the system that an environment raises are called its own, wherever it raises them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import pytest

from cycletime.errors import EnvError
from cycletime.tasks.env_errors import EnvErrorWrapper


class Failing(gym.Env[Any, Any]):
    """Raises an error in each of its functions."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
        raise self.error

    def step(self, action: Any) -> Any:  # noqa: ANN401
        raise self.error

    def render(self) -> Any:  # noqa: ANN401
        raise self.error

    def close(self) -> None:
        raise self.error


FUNCTIONS: dict[str, Callable[[gym.Env[Any, Any]], object]] = {
    "reset": lambda env: env.reset(),
    "step": lambda env: env.step(0),
    "render": lambda env: env.render(),
    "close": lambda env: env.close(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BrokenPipeError(32, "Broken pipe"), "BrokenPipeError: [Errno 32] Broken pipe"),
        (FileNotFoundError(2, "No such", "/dev/arm"), "FileNotFoundError: [Errno 2] No such: '/dev/arm'"),
        (SystemExit(0), "SystemExit: 0"),
        (SystemExit(), "SystemExit"),
    ],
)
def test_what_the_system_refuses_an_environment_is_told_with_its_cause(
    name: str, error: BaseException, told: str
) -> None:
    with pytest.raises(EnvError) as caught:
        FUNCTIONS[name](EnvErrorWrapper(Failing(error), "Arm-v0"))
    assert str(caught.value) == f"The environment Arm-v0 failed in its {name}() with {told}."
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_errors_are_as_they_are(name: str) -> None:
    with pytest.raises(ZeroDivisionError):
        FUNCTIONS[name](EnvErrorWrapper(Failing(ZeroDivisionError()), "Arm-v0"))


def test_otherwise_it_is_the_environment_itself() -> None:
    env = EnvErrorWrapper(gym.make("Pendulum-v1", render_mode="rgb_array"), "Pendulum-v1")
    assert env.spec is not None
    assert (env.spec.max_episode_steps, env.render_mode) == (200, "rgb_array")
    assert env.reset(seed=3)[0].tolist() == gym.make("Pendulum-v1").reset(seed=3)[0].tolist()
    env.close()
