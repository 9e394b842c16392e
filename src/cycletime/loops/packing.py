"""Many small arrays as a few, for calls of JAX, which cost time for each array that goes in and comes out.

SAC's Psi has 72 arrays, of which 11 are large: carrying each by itself took a tenth of an update.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from math import prod
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

_Tree = TypeVar("_Tree")

MOST_SMALL = 2**14
"""Numbers of an array that costs less to copy than to carry by itself."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How a tree is packed."""

    structure: Any
    """JAX's, of the tree."""
    places: tuple[tuple[str | int, slice, tuple[int, ...]], ...]
    """Where each of its arrays is: the kind of its numbers, where they stand among those, and its shape; of a large
    one, its number among the large ones instead."""


@lru_cache
def _layout(structure: Any, shapes: tuple[tuple[int, ...], ...], dtypes: tuple[str, ...]) -> Layout:  # noqa: ANN401
    """One for all trees that are packed alike, so that JAX sees at a glance that it has their program."""
    places: list[tuple[str | int, slice, tuple[int, ...]]] = []
    ends, large = dict.fromkeys(dtypes, 0), 0
    for shape, dtype in zip(shapes, dtypes, strict=True):
        if (count := prod(shape)) > MOST_SMALL:
            places.append((large, slice(None), shape))
            large += 1
        else:
            places.append((dtype, slice(ends[dtype], ends[dtype] + count), shape))
            ends[dtype] += count
    return Layout(structure, tuple(places))


@partial(jax.tree_util.register_dataclass, data_fields=["large", "small"], meta_fields=["layout"])
@dataclass(frozen=True)
class PackedPsi:
    """A tree of arrays, itself a tree of a few."""

    large: tuple[Any, ...]
    """Arrays that are left alone."""
    small: dict[str, Any]
    """All others, end to end, by the kind of their numbers."""
    layout: Layout

    @classmethod
    def of(cls, tree: Any) -> PackedPsi:  # noqa: ANN401 - any tree of arrays
        """The tree, packed."""
        leaves, structure = jax.tree.flatten(tree)
        layout = _layout(structure, tuple(each.shape for each in leaves), tuple(str(each.dtype) for each in leaves))
        small: dict[str, list[Any]] = {}
        large: list[Any] = []
        for leaf, (where, _, _) in zip(leaves, layout.places, strict=True):
            if isinstance(where, int):
                large.append(leaf)
            else:
                small.setdefault(where, []).append(leaf.reshape(-1))
        return cls(tuple(large), {dtype: jnp.concatenate(parts) for dtype, parts in small.items()}, layout)

    def unpacked(self) -> Any:  # noqa: ANN401
        """The tree; of small arrays, parts of those that they are packed in."""
        return jax.tree.map(self._array, self.numbered())

    def on_host(self) -> PackedPsi:
        """The same with its small arrays in NumPy, so that taking them apart makes no calls of JAX."""
        return PackedPsi(self.large, {dtype: np.asarray(each) for dtype, each in self.small.items()}, self.layout)

    def numbered(self) -> Any:  # noqa: ANN401
        """The tree with the arrays' numbers in their places, to choose some of them for `chosen`."""
        return jax.tree.unflatten(self.layout.structure, range(len(self.layout.places)))

    def chosen(self, numbers: _Tree) -> _Tree:
        """The arrays, on the host, in the places of their numbers."""
        arrays: _Tree = jax.tree.map(self.on_host()._array, numbers)
        return arrays

    def _array(self, number: int) -> Any:  # noqa: ANN401
        where, part, shape = self.layout.places[number]
        return self.large[where] if isinstance(where, int) else self.small[where][part].reshape(shape)
