"""What a training left, bit for bit, and on which kind of machine."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

import cycletime
from tests.goldens.goldens import DATA, digest, recording

BITS = DATA / "bits.json"
_KIND = ("processor", "cores", "device", "jax", "jaxlib", "xla_flags", "precision")
"""What a result says of the machine that can change a training's last bits."""


def result_of(run: Path) -> dict[str, Any]:
    """The result of a finished run, as its folder has it."""
    told: dict[str, Any] = json.loads((run / "result.json").read_text())
    return told


def kind_of(run: Path) -> str:
    """The kind of machine that a run was trained on."""
    machine: Mapping[str, str] = result_of(run)["machine"]
    return ", ".join(f"{key} {machine[key]}" for key in _KIND)


def acting_in_numpy(name: str) -> str:
    """The name of a training whose agent acts in NumPy, which rounds by the instructions that it finds here."""
    found: list[str] = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return f"{name} with {found[-1] if found else 'the least'}"


def bits_of(run: Path, **asked: Any) -> dict[str, Any]:  # noqa: ANN401 - as `cycletime.train` has them
    """Hashes of a run's curve, metrics and policy, and its scores.

    The one place here that looks into what `cycletime.train` returns: a curve's columns, however files keep them. With
    what was asked for it returns the finished run and trains nothing.
    """
    (folder,) = [each for each in cycletime.train(out=run.parent, progress=False, **asked) if each.path == run]
    finished = folder.finished()
    curve: Any = finished.curve
    columns = [curve.env_steps, curve.agent_steps, curve.returns, curve.length_steps]
    weights = load_file(run / "policy.safetensors")
    result = result_of(run)
    return {
        "identity": result["identity"],
        "scores": {key: result[key] for key in ("episodes", "average_return", "last_tenth_return", "agent_steps")},
        "curve": digest(b"".join(np.asarray(column, "<f8").tobytes() for column in columns)),
        "metrics": digest((run / "metrics.jsonl").read_bytes()),
        "policy": digest(b"".join(name.encode() + weights[name].tobytes() for name in sorted(weights))),
    }


def recorded(kind: str) -> dict[str, Any]:
    """By name, the bits of trainings on a kind of machine; none where nobody recorded them there."""
    told: dict[str, Any] = json.loads(BITS.read_text()).get(kind, {}) if BITS.exists() else {}
    return told


def record(kind: str, name: str, bits: Mapping[str, Any]) -> None:
    """Keep the bits of a training beside those of other kinds of machines."""
    assert recording()
    told = json.loads(BITS.read_text()) if BITS.exists() else {}
    told.setdefault(kind, {})[name] = dict(bits)
    BITS.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
