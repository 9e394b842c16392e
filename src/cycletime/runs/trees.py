"""Trees of arrays as arrays with names, and back: how a loop's position is kept without pickle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.errors import RunError

Tree = TypeVar("Tree")


def named_arrays(tree: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - any tree
    """The leaves of a tree by their path in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(path): _as_numbers(leaf) for path, leaf in leaves}


def tree_like(example: Tree, arrays: Mapping[str, NDArray[Any]]) -> Tree:
    """The tree that has the structure of an example and leaves of these names.

    Raises:
        RunError: if they do not fit.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(example)
    filled: Tree = jax.tree.unflatten(structure, [_leaf(_name(path), leaf, arrays) for path, leaf in leaves])
    return filled


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _is_key(leaf: object) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _as_numbers(leaf: Any) -> NDArray[Any]:  # noqa: ANN401 - any leaf
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _leaf(name: str, like: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:  # noqa: ANN401 - any leaf
    numbers, wanted = arrays.get(name), _as_numbers(like)
    if numbers is None or numbers.shape != wanted.shape or numbers.dtype != wanted.dtype:
        found = "nothing" if numbers is None else f"{numbers.dtype}{list(numbers.shape)}"
        raise RunError(f"The checkpoint holds {found} as {name!r}: it should be {wanted.dtype}{list(wanted.shape)}.")
    if _is_key(like):
        return jax.random.wrap_key_data(jnp.asarray(numbers), impl=jax.random.key_impl(like))
    if isinstance(like, bool | int | float):
        return type(like)(numbers.item())
    return jnp.asarray(numbers) if isinstance(like, jax.Array) else numbers
