from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.errors import RunError
from cycletime.tasks import CycleTime
from cycletime.training import stepped_loop
from cycletime.training.checkpoints import Checkpoint, Checkpoints, Manifest, named_arrays, tree_from_arrays
from cycletime.training.stepped_loop import SteppedLoop

pytestmark = pytest.mark.usefixtures("compiled_quickly")


class Inner(NamedTuple):
    weights: Any
    nothing: None = None


def a_tree(fill: float = 0.0) -> dict[str, Any]:
    return {
        "inner": Inner(jnp.full((2, 3), fill)),
        "layers": (jnp.zeros(4, jnp.int32), jnp.float32(fill)),
        "key": jax.random.key(int(fill)),
        "keys": jax.random.split(jax.random.key(int(fill)), 3),
        "count": int(fill),
        "done": bool(fill),
        "rate": float(fill),
        "host": np.full(2, int(fill), np.int64),
        "scalar": np.int64(fill),
    }


def leaves_of(tree: object) -> list[tuple[Any, ...]]:
    return [
        (leaf.shape, str(leaf.dtype), leaf.tobytes())
        for leaf in map(numbers_of, jax.tree.leaves(tree))
    ]  # fmt: skip


def numbers_of(leaf: Any) -> NDArray[Any]:  # noqa: ANN401 - any leaf
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def through_disk(folder: Path, tree: object) -> dict[str, NDArray[Any]]:
    manifest = Manifest("identity", 1, 1, exact=True, sessions=1, wall_s=0.0, world="", machine={})
    checkpoints = Checkpoints(folder / "checkpoints")
    checkpoints.save(Checkpoint(manifest, named_arrays(tree)))
    checkpoint, _ = checkpoints.newest("identity")
    assert checkpoint is not None
    return dict(checkpoint.arrays)


def test_leaves_have_readable_names() -> None:
    names = ["count", "done", "host", "inner.weights", "key", "keys", "layers.0", "layers.1", "rate", "scalar"]
    assert sorted(named_arrays(a_tree())) == names


def test_a_tree_comes_back_through_the_disk_as_it_was(tmp_path: Path) -> None:
    tree = a_tree(7.0)
    back = tree_from_arrays(a_tree(), through_disk(tmp_path, tree))
    assert [*named_arrays(back)] == [*named_arrays(tree)]
    assert leaves_of(back) == leaves_of(tree)
    for name in ("count", "done", "rate"):
        assert type(back[name]) is type(tree[name])
    assert isinstance(back["inner"].weights, jax.Array)
    assert isinstance(back["host"], np.ndarray)


def test_keys_come_back_as_keys_that_draw_the_same(tmp_path: Path) -> None:
    back = tree_from_arrays(a_tree(), through_disk(tmp_path, a_tree(7.0)))
    assert float(jax.random.uniform(back["key"])) == float(jax.random.uniform(jax.random.key(7)))
    assert back["keys"].shape == (3,)


def test_keys_keep_their_kind() -> None:
    tree = {"key": jax.random.key(5, impl="rbg")}
    back = tree_from_arrays({"key": jax.random.key(0, impl="rbg")}, named_arrays(tree))
    assert back["key"].dtype == tree["key"].dtype
    with pytest.raises(RunError, match=re.escape("holds uint32[4] as 'key': it should be uint32[2].")):
        tree_from_arrays({"key": jax.random.key(0)}, named_arrays(tree))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"inner.weights": None}, "holds nothing as 'inner.weights': it should be float32[2, 3]."),
        ({"inner.weights": np.zeros((3, 2), np.float32)}, "holds float32[3, 2] as 'inner.weights'"),
        ({"inner.weights": np.zeros((2, 3))}, "holds float64[2, 3] as 'inner.weights'"),
        ({"layers.1": np.zeros(1, np.float32)}, "holds float32[1] as 'layers.1': it should be float32[]."),
        ({"key": np.zeros(3, np.uint32)}, "holds uint32[3] as 'key': it should be uint32[2]."),
        ({"count": np.float64(3)}, "holds float64[] as 'count': it should be int64[]."),
        ({"done": np.int64(1)}, "holds int64[] as 'done': it should be bool[]."),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], sentence: str) -> None:
    arrays = {**named_arrays(a_tree()), **change}
    with pytest.raises(RunError, match=re.escape(f"The checkpoint {sentence}")):
        tree_from_arrays(a_tree(), {name: array for name, array in arrays.items() if array is not None})


def test_a_stepped_run_goes_on_from_its_arrays_as_if_never_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepped_loop, "CHUNK_S", 0.0)  # one episode each
    env: gymnasium.Env[Any, Any] = CycleTime(gymnasium.make("Pendulum-v1", max_episode_steps=17), "0.1s")
    loop = SteppedLoop(env=env, agent=PPOAgent(batch=6, minibatch=3, epochs=1, hidden=(4,)), env_steps=40)
    kept = None
    for chunk in loop.run(3):
        if kept is None:
            kept = through_disk(tmp_path, chunk.position)
        end = leaves_of(chunk.position)
    assert kept is not None
    position = tree_from_arrays(loop.start(3), kept)
    # Seventeen environment steps are nine cycles, the last one short: a batch, and half of the next.
    assert position[2:] == (1, 9, 3, 17, 9, 1, True)
    for chunk in loop.run(3, position):
        resumed = leaves_of(chunk.position)
    assert resumed == end
    assert chunk.position.episodes > 1
    env.close()
