"""A run's random numbers, each a function of the seed, a purpose and a count.

So they depend neither on how a run is cut into chunks nor on where it was stopped and resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from cycletime.agents.agent import Agent, Draws
from cycletime.errors import InputError

CompilerOptions: TypeAlias = tuple[tuple[str, int | bool], ...]
_FAST_OPTIONS: CompilerOptions = (
    ("xla_backend_optimization_level", 1),
    ("xla_cpu_use_fusion_emitters", False),
    ("xla_cpu_parallel_codegen_split_count", 1),
)
_unsupported: set[CompilerOptions] = set()
"""Options that this version of XLA does not know all of."""
_Done = TypeVar("_Done")


def fast_compile(backend: str, run: Callable[[CompilerOptions], _Done]) -> _Done:
    """Compile, and maybe run, by what to ask of XLA for a kind of device: on CPUs few optimisations.

    What is drawn stays the same to the bit; what follows from it by sums and products need not. Versions of XLA whose
    options are others, which come and go without notice, are asked for nothing, once they have refused these.
    """
    options = _FAST_OPTIONS if backend == "cpu" and _FAST_OPTIONS not in _unsupported else ()
    try:
        return run(options)
    except jax.errors.JaxRuntimeError:
        if not options or _are_supported(options):
            raise
    _unsupported.add(options)
    return run(())


def _are_supported(options: CompilerOptions) -> bool:
    """Whether XLA compiles anything with them; only asked after an error, since asking takes a hundredth of a start."""
    try:
        jax.jit(lambda: 0, compiler_options=dict(options)).lower().compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


class Purpose(IntEnum):
    """What random numbers are for. The numbers are part of every run's identity: never change them."""

    INITIALIZE = 0
    NOISE = 1
    STARTS = 2
    LEARNING = 3


def seed_key(seed: object) -> jax.Array:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= int(seed) < 2**32:
        raise InputError(f"The seed is {seed!r}: it must be a whole number from 0 to 2**32 - 1.")
    if not jax.config.jax_threefry_partitionable:  # type: ignore[attr-defined]
        raise InputError("jax_threefry_partitionable is off: a run's numbers need it on, which is JAX's default.")
    # By name, so that JAX's setting of the kind cannot change a run's numbers. What `jax.random.key` gives for such
    # seeds, without the programs that it runs for it.
    words = jax.device_put(np.array([0, seed], np.uint32))
    key: jax.Array = jax.random.wrap_key_data(words, impl="threefry2x32")
    return key


def key_for(seed_key: jax.Array, purpose: Purpose | jax.Array, count: jax.Array | int = 0) -> jax.Array:
    return jax.random.fold_in(jax.random.fold_in(seed_key, purpose), count)


def keys_for(seed_key: jax.Array, wanted: Mapping[Purpose, jax.Array]) -> dict[Purpose, jax.Array]:
    """What `key_for` gives for several counts of several purposes, in one piece since each piece is compiled anew."""
    lengths = [len(counts) for counts in wanted.values()]
    purposes = np.repeat(list(wanted), lengths)
    keys = jax.vmap(lambda purpose, count: key_for(seed_key, purpose, count))(
        jnp.asarray(purposes), jnp.concatenate(list(wanted.values()))
    )
    parts = jnp.split(keys, np.cumsum(lengths)[:-1])
    return dict(zip(wanted, parts, strict=True))


def draw_normals(keys: jax.Array, steps: int, numbers: int) -> jax.Array:
    """What noise is made of in several learning periods, [periods, steps, numbers]; more steps begin with the same."""
    normals: jax.Array = jax.vmap(lambda key: jax.random.normal(key, (steps, numbers)))(keys)
    return normals


def draw_updates(agent: Agent, keys: jax.Array, action_size: int) -> Draws:
    return jax.vmap(lambda key: agent.draw(key, action_size))(keys)


@cache
def numbers_per_update(structure: Any, action_size: int) -> int:  # noqa: ANN401 - JAX's, of an agent
    """How many random numbers one learning takes; short runs of the same kind feel it if that is asked anew."""

    def draws(rates: list[jax.Array], key: jax.Array) -> Draws:
        return structure.unflatten(rates).draw(key, action_size)

    shapes = jax.eval_shape(draws, [0.0] * structure.num_leaves, seed_key(0))
    return sum(each.size for each in jax.tree.leaves(shapes))
