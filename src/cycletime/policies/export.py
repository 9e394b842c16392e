"""Policies for other programs, NumPy and ONNX, each compared with the JAX policy before it gets its place.

The ONNX graph takes observation [batch, n] and gives action [batch, m], the deterministic one as the environment takes
it, and mean and std [batch, m] before squashing and mapping.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import numpy_policy
from cycletime.agents.numpy_policy import LOG_STD_RANGE, NumpyPolicy
from cycletime.errors import InputError
from cycletime.extras import require_extras
from cycletime.training.atomic_files import make_folder, write_whole
from cycletime.training.policy_file import SavedPolicy

OPSET, IR_VERSION = 13, 7
"""Of 2021: old enough for the runtimes on robots, and Expand, Min and Max with broadcasting are in it."""


def onnx_model(policy: SavedPolicy) -> Any:  # noqa: ANN401 - onnx.ModelProto, of an extra
    with require_extras("An export to ONNX"):
        onnx: Any = importlib.import_module("onnx")
    for name in ("checker", "helper", "numpy_helper"):
        importlib.import_module(f"onnx.{name}")
    graph = _Graph(onnx.helper, onnx.numpy_helper)
    mean, std = _distribution(graph, policy)
    _add_action(graph, policy, graph.add("Tanh", mean) if policy.network.squashed else mean)
    size, actions = policy.network.observation_size, policy.network.action_size
    tensor = onnx.helper.make_tensor_value_info
    made = onnx.helper.make_graph(
        graph.nodes,
        "policy",
        [tensor("observation", onnx.TensorProto.FLOAT, ["batch", size])],
        [tensor(name, onnx.TensorProto.FLOAT, ["batch", actions]) for name in ("action", mean, std)],
        graph.constants,
    )
    opset = [onnx.helper.make_opsetid("", OPSET)]
    model = onnx.helper.make_model(made, producer_name="cycletime", opset_imports=opset, ir_version=IR_VERSION)
    about = {name: str(value) for name, value in policy.description().items()}
    if policy.contract is not None:
        about["contract"] = json.dumps(policy.contract)
    onnx.helper.set_model_props(model, about)
    onnx.helper.set_model_props(model, {**about, "sha256": sha256(model.SerializeToString()).hexdigest()})
    onnx.checker.check_model(model, full_check=True)
    return model


def onnx_actions(model: Any, observations: NDArray[np.float32]) -> NDArray[np.float32]:  # noqa: ANN401 - as above
    """What the graph gives: by onnxruntime where it is installed, else by ONNX's reference."""
    feed = {"observation": observations}
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        reference = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
        return np.asarray(reference.run(["action"], feed)[0])
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["action"], feed)[0])


class _Graph:
    def __init__(self, helper: Any, numpy_helper: Any) -> None:  # noqa: ANN401 - modules of an extra
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._helper, self._numpy_helper = helper, numpy_helper

    def add(self, operator: str, *inputs: str, name: str | None = None) -> str:
        output = name or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self._helper.make_node(operator, list(inputs), [output], name=f"make_{output}"))
        return output

    def constant(self, name: str, array: Any) -> str:  # noqa: ANN401 - anything that NumPy takes
        self.constants.append(self._numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def dense(self, inputs: str, weight: Any, bias: Any, name: str, output: str | None = None) -> str:  # noqa: ANN401
        weights = self.constant(f"{name}.weight", weight), self.constant(f"{name}.bias", bias)
        return self.add("Gemm", inputs, *weights, name=output)


def _distribution(graph: _Graph, policy: SavedPolicy) -> tuple[str, str]:
    network, size = policy.network, policy.network.action_size
    inputs = "observation"
    for index, (weight, bias) in enumerate(network.layers[:-1]):
        inputs = graph.dense(inputs, weight, bias, f"layers.{index}")
        inputs = graph.add(network.activation.capitalize(), inputs)
    weight, bias = network.layers[-1]
    # The last layer's two halves are two layers, which needs no operator that splits.
    mean = graph.dense(inputs, weight[:, :size], bias[:size], "mean", output="mean")
    if network.log_std is not None:
        std = graph.constant("constant_std", np.exp(network.log_std))
        graph.add("Expand", std, graph.add("Shape", mean), name="std")
    else:
        log_std = graph.dense(inputs, weight[:, size:], bias[size:], "log_std")
        limits = (graph.constant(f"log_std.{i}", limit) for i, limit in enumerate(LOG_STD_RANGE))
        graph.add("Exp", graph.add("Clip", log_std, *limits), name="std")
    return mean, "std"


def _add_action(graph: _Graph, policy: SavedPolicy, action: str) -> None:
    """clip(centre + half * action, low, high), in which bounds that are not there make no node."""
    bounds = policy.bounds
    if np.any(bounds.half != 1):
        action = graph.add("Mul", action, graph.constant("action.half", bounds.half))
    if np.any(bounds.centre != 0):
        action = graph.add("Add", action, graph.constant("action.centre", bounds.centre))
    if np.isfinite(bounds.low).any():
        action = graph.add("Max", action, graph.constant("action.low", _inwards(bounds.low, up=True)))
    if np.isfinite(bounds.high).any():
        action = graph.add("Min", action, graph.constant("action.high", _inwards(bounds.high, up=False)))
    graph.add("Identity", action, name="action")


def _inwards(bound: NDArray[np.float64], up: bool) -> NDArray[np.float32]:
    """A bound in float32 that does not lie outside of it; a finite one, since not every runtime takes infinities."""
    largest = np.finfo(np.float32).max
    near = np.clip(bound, -largest, largest).astype(np.float32)
    outside = near < bound if up else near > bound
    towards = np.float32(largest if up else -largest)
    inner: NDArray[np.float32] = np.where(outside & np.isfinite(bound), np.nextafter(near, towards), near)
    return inner


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
        worst = check_against_jax(policy, NumpyPolicy.load(unfinished).act, "The NumPy policy")

    is_new = not folder.exists()
    make_folder(folder)
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
    policy.in_numpy()  # a graph cannot refuse what is not finite
    model = onnx_model(policy)
    worst = check_against_jax(policy, lambda observations: onnx_actions(model, observations), "The ONNX policy")
    write_whole(path, lambda unfinished: unfinished.write_bytes(model.SerializeToString()))
    return worst


def check_against_jax(policy: SavedPolicy, act: Callable[[NDArray[np.float32]], NDArray[Any]], name: str) -> float:
    """How far actions are from the JAX policy's on random observations, at worst."""
    random = np.random.default_rng(0)
    observations = random.standard_normal((OBSERVATIONS, policy.network.observation_size)).astype(np.float32)
    expected = jax_actions(policy, observations)
    if not np.isfinite(expected).all():
        given = f"The policy of {policy.world} after {policy.env_steps} environment steps gives actions"
        raise InputError(f"{given} that are not finite: its training has diverged, and it cannot be exported.")
    scale = np.maximum(policy.bounds.half, np.abs(expected))
    worst = float(np.max(np.abs(act(observations) - expected) / scale))
    if not worst <= TOLERANCE:
        allowed = f"{TOLERANCE:.0e} is allowed: nothing was written"
        raise InputError(f"{name} differs from the JAX policy by up to {worst:.1e}, and {allowed}.")
    return worst


def jax_actions(policy: SavedPolicy, observations: NDArray[np.float32]) -> NDArray[np.float64]:
    """What the environment is given for the policy's mean, computed by JAX in double precision."""
    with jax.enable_x64(True):
        exact, bounds = jax.tree.map(_double, policy.network), policy.bounds
        action = exact.act(_double(observations), jnp.zeros((len(observations), policy.network.action_size)))
        return np.asarray(jnp.clip(bounds.centre + bounds.half * action, bounds.low, bounds.high), np.float64)


def _double(array: Any) -> jax.Array:  # noqa: ANN401 - JAX's arrays and NumPy's
    return jnp.asarray(np.asarray(array), jnp.float64)
