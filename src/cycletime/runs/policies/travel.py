"""Exports, each held against the JAX policy before it gets its place."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import numpy_policy
from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.agents.numpy_policy import NumpyPolicy
from cycletime.errors import InputError
from cycletime.runs.files import disk_errors, write_whole
from cycletime.runs.policies.onnx_export import onnx_actions, onnx_model
from cycletime.runs.policies.policy_file import SavedPolicy

Act: TypeAlias = Callable[[NDArray[np.float32]], NDArray[Any]]
OBSERVATIONS = 1_000
TOLERANCE = 1e-5
"""Of actions in [-1, 1]. Beyond, and for wider bounds, it is relative."""
NUMPY_FILES = ("policy.py", "policy.npz")


def export_numpy(policy: SavedPolicy, folder: Path) -> float:
    """Write a folder that runs with NumPy alone; the worst difference from the JAX policy."""
    policy.in_numpy()  # refuses one that has diverged, before there is a folder
    description = np.array(json.dumps(policy.description()))
    worst = 0.0

    def write_arrays(unfinished: Path) -> None:
        nonlocal worst
        with unfinished.open("wb") as file:
            np.savez(file, description=description, **policy.arrays())  # type: ignore[arg-type]
        worst = check_against(policy, NumpyPolicy.load(unfinished).act, "The NumPy policy")

    is_new = not folder.exists()
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        write_whole(folder / "policy.npz", write_arrays)
        program = Path(numpy_policy.__file__).read_bytes()
        write_whole(folder / "policy.py", lambda unfinished: unfinished.write_bytes(program))
    except BaseException:
        if is_new:
            for name in NUMPY_FILES:
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()
        raise
    return worst


def export_onnx(policy: SavedPolicy, path: Path) -> float:
    """Write an ONNX file; the worst difference from the JAX policy."""
    policy.in_numpy()  # a graph cannot refuse what is not finite
    model = onnx_model(policy)
    worst = check_against(policy, lambda observations: onnx_actions(model, observations), "The ONNX policy")
    write_whole(path, lambda unfinished: unfinished.write_bytes(model.SerializeToString()))
    return worst


def check_against(policy: SavedPolicy, act: Act, name: str) -> float:
    """How far actions are from the JAX policy's on random observations, at worst.

    Raises:
        InputError: if that is further than the tolerance, or if the policy gives numbers that are none.
    """
    random = np.random.default_rng(0)
    observations = random.standard_normal((OBSERVATIONS, policy.network.observation_size)).astype(np.float32)
    expected = jax_actions(policy, observations)
    if not np.isfinite(expected).all():
        raise InputError(
            f"The policy of {policy.world} after {policy.env_steps} environment steps gives actions that are "
            "not finite: its training has diverged, and it cannot be exported."
        )
    scale = np.maximum(policy.bounds.half, np.abs(expected))
    worst = float(np.max(np.abs(act(observations) - expected) / scale))
    if not worst <= TOLERANCE:
        raise InputError(
            f"{name} differs from the JAX policy by up to {worst:.1e}, and {TOLERANCE:.0e} is allowed: "
            "nothing was written."
        )
    return worst


def jax_actions(policy: SavedPolicy, observations: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the environment is given for the policy's mean, computed by JAX in double precision."""
    with jax.enable_x64(True):
        network = policy.network
        exact = PolicyNetwork(
            layers=tuple(Layer(_double(weight), _double(bias)) for weight, bias in network.layers),
            activation=network.activation,
            log_std=None if network.log_std is None else _double(network.log_std),
            squashed=network.squashed,
        )
        action = exact.act(_double(observations), jnp.zeros((len(observations), network.action_size)))
        bounds = policy.bounds
        return np.asarray(jnp.clip(bounds.centre + bounds.half * action, bounds.low, bounds.high), np.float64)


def _double(array: Any) -> jax.Array:  # noqa: ANN401 - JAX's arrays and NumPy's
    return jnp.asarray(np.asarray(array), jnp.float64)
