"""Checkpoints: arrays in NumPy's .npz and a manifest beside them, the last two kept. Nothing is loaded by pickle.

Trees of arrays become arrays with names, and trees again. A machine with NumPy and JAX alone can read and write them.
Names from `position/` on are the state to resume from: the agent's, with optimizers and the statistics that normalise
observations (`PPOState.observed`, which a policy has in its first layer), the buffer, and counts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cycletime.bounded import open_regular, read_bounded
from cycletime.errors import RunError
from cycletime.training.atomic_files import make_folder, move, sweep, write_whole
from cycletime.training.bounded_npz import open_npz
from cycletime.training.learning_curve import EpisodeBins, Episodes
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.sealed_json import check_seal, parse_json, refuse_unreadable, sealed_text

Tree = TypeVar("Tree")


def named_arrays(tree: Any) -> dict[str, NDArray[Any]]:  # noqa: ANN401 - any tree
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_leaf_name(path): _as_numbers(leaf) for path, leaf in leaves}


def tree_from_arrays(example: Tree, arrays: Mapping[str, NDArray[Any]]) -> Tree:
    leaves, structure = jax.tree_util.tree_flatten_with_path(example)
    filled: Tree = jax.tree.unflatten(structure, [_leaf(_leaf_name(path), leaf, arrays) for path, leaf in leaves])
    return filled


def _leaf_name(path: tuple[Any, ...]) -> str:
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


FORMAT = 2
EPISODES, BINS, METRICS, POSITION, POLICY = "episodes/", "bins/", "metrics/", "position/", "policy/"
"""Prefixes of the arrays' names: the curve (one of two), metrics, the position, the policy."""
KEPT = 2
_MOST_MANIFEST = 2**23
_ARRAYS, _MANIFEST = "arrays.npz", "manifest.json"


@dataclass(frozen=True)
class Manifest:
    identity: str
    env_steps: int
    agent_steps: int
    exact: bool
    sessions: int
    wall_s: float
    world: str
    """A hash of what the world did in a short trial; empty where the code alone decides."""
    machine: Mapping[str, str]
    """What computed it; on another machine the last bits may differ."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    """Why the run is not identical to an uninterrupted one, where it was resumed in a way that can change bits."""


@dataclass(frozen=True)
class Checkpoint:
    manifest: Manifest
    arrays: Mapping[str, NDArray[Any]]

    def below(self, prefix: str) -> dict[str, NDArray[Any]]:
        return {name.removeprefix(prefix): each for name, each in self.arrays.items() if name.startswith(prefix)}

    def curve(self, budget: int) -> Episodes | EpisodeBins:
        episodes = self.below(EPISODES)
        return Episodes(**episodes) if episodes else EpisodeBins(budget, **self.below(BINS))

    def policy(self) -> SavedPolicy:
        return SavedPolicy.from_arrays(self.below(POLICY), self.manifest.policy)


class DamagedError(Exception):
    """A checkpoint that cannot be used; the message says why."""


@dataclass(frozen=True)
class Checkpoints:
    folder: Path

    def save(self, checkpoint: Checkpoint) -> None:
        make_folder(self.folder)
        number = self._numbers()[-1] + 1 if self._numbers() else 1
        write_whole(self.folder / f"{number:06d}", lambda unfinished: _write(unfinished, checkpoint))
        for old in self._numbers()[:-KEPT]:
            shutil.rmtree(self.folder / f"{old:06d}", ignore_errors=True)

    def newest(self, identity: str) -> tuple[Checkpoint | None, list[str]]:
        """The newest usable checkpoint, if there is one, and what is wrong with newer ones, which are moved aside."""
        sweep(self.folder)
        checkpoint, wrong = self._newest(identity)
        said = []
        for path, reason in wrong.items():  # under other names they do not count as the last two
            aside = path.with_name(f"unusable-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            said.append(f"{reason}; it is now {move(path, aside)}.")
        return checkpoint, said

    def fault(self, identity: str) -> str | None:
        """Why no checkpoint can be used, or None; only reads."""
        try:
            self._newest(identity)
        except RunError as error:
            return str(error)
        return None

    def peek(self, identity: str) -> Checkpoint | None:
        """The newest checkpoint without its position; only reads, so that the run may go on meanwhile."""
        while there := self._numbers():
            path = self.folder / f"{there[-1]:06d}"
            try:
                return _read(path, identity, without=POSITION)
            except DamagedError as error:
                if there == self._numbers():
                    raise RunError(
                        f"The checkpoint {path} {error}: a resumed run goes on from one before it."
                    ) from None
        return None

    def _newest(self, identity: str) -> tuple[Checkpoint | None, dict[Path, str]]:
        wrong: dict[Path, str] = {}
        for number in reversed(self._numbers()):
            path = self.folder / f"{number:06d}"
            try:
                return _read(path, identity), wrong
            except DamagedError as error:
                wrong[path] = f"The checkpoint {path} {error}"
        if wrong:
            remedy = f"restore one, or delete {self.folder.parent} to begin anew"
            raise RunError(f"{'. '.join(wrong.values())}. No other is left: {remedy}.")
        return None, {}

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def exist(self) -> bool:
        return bool(self._numbers())

    def _numbers(self) -> list[int]:
        return sorted(int(each.name) for each in self.folder.glob("*") if each.name.isdecimal())


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    folder.mkdir()
    arrays = folder / _ARRAYS
    with arrays.open("wb") as file:
        np.savez(file, **checkpoint.arrays)  # type: ignore[arg-type]  # a name is no option of savez here
    with arrays.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    data = {"format": FORMAT, **asdict(checkpoint.manifest), "arrays_sha256": digest}
    (folder / _MANIFEST).write_text(sealed_text(data))


def _read(folder: Path, identity: str, without: str | None = None) -> Checkpoint:
    with _damage(folder / _MANIFEST):
        data = parse_json(read_bounded(folder / _MANIFEST, _MOST_MANIFEST))
        try:
            data = check_seal(data)
        except ValueError:
            raise DamagedError(f"is damaged: its {_MANIFEST} was changed") from None
        version, digest = data.pop("format"), data.pop("arrays_sha256")
        if version != FORMAT:
            raise DamagedError(f"has the format {version}, and this version of cycletime reads {FORMAT}")
        manifest = Manifest(**{**data, "remarks": tuple(data["remarks"])})
    if manifest.identity != identity:
        raise DamagedError(f"belongs to another run ({str(manifest.identity)[:10]}, and this is {identity[:10]})")
    with _damage(folder / _ARRAYS), open_regular(folder / _ARRAYS) as raw:
        if file_digest(raw, "sha256").hexdigest() != digest:
            raise DamagedError(f"is damaged: {_ARRAYS} is not what its manifest says")
        # Nothing in it is compressed, so that it has no more arrays than bytes.
        with open_npz(raw, raw.tell()) as file:
            wanted = [name for name in file if without is None or not name.startswith(without)]
            return Checkpoint(manifest, {name: file[name] for name in wanted})


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except DamagedError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy have a dozen of them for what is damaged
        refuse_unreadable(path, error)
        raise DamagedError(f"is damaged: its {path.name} cannot be read") from error
