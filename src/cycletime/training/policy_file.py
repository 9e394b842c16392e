"""policy.safetensors: a policy with all that is needed to act in its world, and nothing that learning needs.

The arrays are named as below; the header's metadata has one entry, `cycletime`, a JSON description.

    layers.0.weight, layers.0.bias, ...    inputs @ weight + bias
    log_std                                where sigma does not depend on the state
    action.centre, half, low, high         the environment is given clip(centre + half * action, low, high)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.agents.networks import Layer, PolicyNetwork
from cycletime.agents.numpy_policy import FORMAT, MOST_BYTES, NumpyPolicy, UnsafePolicyError
from cycletime.bounded import read_bounded
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.training.atomic_files import write_whole
from cycletime.training.sealed_json import error_reason, is_count, parse_json
from cycletime.training.spec import RunSpec
from cycletime.training.worlds import ActionBounds

_METADATA = "cycletime"


@dataclass(frozen=True, eq=False)
class SavedPolicy:
    network: PolicyNetwork
    bounds: ActionBounds
    dt: Duration
    world: str
    identity: str
    env_steps: int
    contract: Mapping[str, Any] | None = None
    """Delays, histories and the order of observations in training; None where an earlier version trained it."""

    @classmethod
    def of(
        cls,
        network: PolicyNetwork,
        bounds: ActionBounds,
        spec: RunSpec,
        env_steps: int,
        contract: Mapping[str, Any] | None = None,
    ) -> SavedPolicy:
        return cls(network, bounds, spec.dt, spec.world.name, spec.identity, env_steps, contract)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], description: Mapping[str, Any]) -> SavedPolicy:
        """The policy of `arrays` and `description`; a KeyError, ValueError or the like where they are none."""
        with suppress(UnsafePolicyError):  # a run that diverged keeps its policy, with which nothing may act
            NumpyPolicy(arrays, description)  # refuses what does not belong together
        for name in ("world", "identity"):
            if not isinstance(description[name], str):
                raise ValueError(f"its {name} is {description[name]!r}")
        if not is_count(description["env_steps"]):
            raise ValueError(f"its env_steps are {description['env_steps']!r}")
        count = sum(name.endswith(".weight") for name in arrays)
        layers = tuple(Layer(arrays[f"layers.{i}.weight"], arrays[f"layers.{i}.bias"]) for i in range(count))
        bounds = {name: arrays[f"action.{name}"] for name in ("centre", "half", "low", "high")}
        return cls(
            network=PolicyNetwork(layers, description["activation"], arrays.get("log_std"), description["squashed"]),
            bounds=ActionBounds(**bounds, dtype=np.dtype(description["action_dtype"])),
            dt=Duration(description["dt"]),
            world=description["world"],
            identity=description["identity"],
            env_steps=description["env_steps"],
            contract=description.get("contract"),
        )

    def arrays(self) -> dict[str, NDArray[Any]]:
        named: dict[str, Any] = {}
        for index, layer in enumerate(self.network.layers):
            named[f"layers.{index}.weight"], named[f"layers.{index}.bias"] = layer
        if self.network.log_std is not None:
            named["log_std"] = self.network.log_std
        for name in ("centre", "half", "low", "high"):
            named[f"action.{name}"] = getattr(self.bounds, name)
        return {name: np.ascontiguousarray(array) for name, array in named.items()}

    def description(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "activation": self.network.activation,
            "squashed": self.network.squashed,
            "observation_size": self.network.observation_size,
            "action_size": self.network.action_size,
            "action_dtype": np.dtype(self.bounds.dtype).name,
            "dt": self.dt.shortest,
            "dt_s": float(self.dt),
            "world": self.world,
            "identity": self.identity,
            "env_steps": int(self.env_steps),
            **({} if self.contract is None else {"contract": dict(self.contract)}),
        }

    def refuse_other_sizes(self, observation_size: int, action_size: int, world: object) -> None:
        ours, theirs = (self.network.observation_size, self.network.action_size), (observation_size, action_size)
        if ours != theirs:
            other = f"{world} has {theirs}, so it is not the environment that the policy was trained on"
            raise InputError(f"The policy of {self.world} is for observations and actions of {ours} numbers: {other}.")

    def in_numpy(self) -> NumpyPolicy:
        try:
            return NumpyPolicy(self.arrays(), self.description())
        except UnsafePolicyError as error:
            raise InputError(
                f"The policy of {self.world} after {self.env_steps} environment steps cannot act: {error}"
            ) from None


def write_policy(path: Path, policy: SavedPolicy) -> None:
    from safetensors.numpy import save

    content = save(policy.arrays(), {_METADATA: json.dumps(policy.description())})
    write_whole(path, lambda unfinished: unfinished.write_bytes(content))


def read_policy(path: Path) -> SavedPolicy:
    """Read a policy file by itself. In a run's folder, `RunFolder.policy` also holds it against the run."""
    try:
        return parse_policy(read_bounded(path, MOST_BYTES))
    except FileNotFoundError:
        raise InputError(f"There is no {path}: a run writes its policy with its first checkpoint.") from None
    except KeyError:
        raise InputError(f"{path} is not a policy of cycletime: its header does not say so.") from None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged or no policy: {error_reason(error)}.") from error


def parse_policy(content: bytes) -> SavedPolicy:
    """The policy of a file's content; a KeyError, ValueError or the like where it is none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
    except (SafetensorError, KeyError, TypeError) as error:  # the latter two of types that NumPy does not have
        raise ValueError(str(error)) from None
    header = parse_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return SavedPolicy.from_arrays(arrays, parse_json(header["__metadata__"][_METADATA].encode()))
