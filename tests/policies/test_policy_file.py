"""policy.safetensors: read back bit for bit, whole or not there, and refused in a sentence where it is damaged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from cycletime.errors import InputError, RunError
from cycletime.training import atomic_files
from cycletime.training.policy_file import read_policy, write_policy
from tests.policies.conftest import AGENTS, BOUNDS, Trained, spec_of, trained


def written(folder: Path, policy: Trained) -> Path:
    path = folder / "policy.safetensors"
    write_policy(path, policy.saved)
    return path


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_what_is_read_is_what_was_written(agent: Any, bounds: Any, tmp_path: Path) -> None:  # noqa: ANN401
    policy = trained(agent, bounds)
    back = read_policy(written(tmp_path, policy))
    assert back.description() == policy.saved.description()
    assert (back.world, back.identity, back.env_steps) == ("reacher", spec_of(agent).identity, 4000)
    assert str(back.dt) == "16ms"
    assert back.bounds.dtype == bounds.dtype
    arrays, expected = back.arrays(), policy.saved.arrays()
    assert list(arrays) == list(expected)
    for name, array in arrays.items():
        assert array.dtype == expected[name].dtype
        assert array.tobytes() == expected[name].tobytes(), name
    assert [path.name for path in tmp_path.iterdir()] == ["policy.safetensors"]


def test_other_programs_can_read_the_arrays(tmp_path: Path) -> None:
    policy = trained()
    arrays = load_file(written(tmp_path, policy))
    assert arrays["layers.0.weight"].shape == (3, 16)
    assert arrays["action.high"].tolist() == [2, pytest.approx(0.3)]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = written(tmp_path, trained()).read_bytes()

    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic_files, "_flush", full)
    with pytest.raises(RunError, match="the disk is full"):
        written(tmp_path, trained(AGENTS["SAC"]))
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("policy.safetensors", old)]


@pytest.mark.parametrize("kept", [0.0, 0.05, 0.5, 0.99])
def test_a_cut_file_is_refused(kept: float, tmp_path: Path) -> None:
    path = written(tmp_path, trained())
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(InputError, match=r"policy\.safetensors is damaged or no policy: "):
        read_policy(path)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.safetensors"
    with pytest.raises(InputError, match="a run writes its policy with its first checkpoint"):
        read_policy(path)
    save_file({"x": np.zeros(3)}, path)
    with pytest.raises(InputError, match="is not a policy of cycletime"):
        read_policy(path)
    save_file({"x": np.zeros(3)}, path, {"cycletime": "{"})
    with pytest.raises(InputError, match="is damaged or no policy"):
        read_policy(path)
    save_file({"x": np.zeros(3)}, path, {"cycletime": "[1]"})
    with pytest.raises(InputError, match="is damaged or no policy"):
        read_policy(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "has the format 2"),
        ({"observation_size": 4}, "do not fit 4 observed"),
        ({"dt": "soon"}, "'soon' is not a time span"),
        ({"action_dtype": "float31"}, "float31"),
        ({"action_dtype": "object"}, "the type of its actions"),
        ({"env_steps": "many"}, "its env_steps are 'many'"),
        ({"world": ["\x1b[2J"]}, r"its world is \['"),
        ({"deep": None}, "nested too deep"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    policy = trained().saved
    path = tmp_path / "policy.safetensors"
    text = json.dumps({**policy.description(), **change}).replace("null", "[" * 100_000)
    save_file(policy.arrays(), path, {"cycletime": text})
    with pytest.raises(InputError, match=message):
        read_policy(path)


def test_weights_of_other_types_and_huge_ones_are_refused(tmp_path: Path) -> None:
    policy = trained().saved
    path = tmp_path / "policy.safetensors"
    about = {"cycletime": json.dumps(policy.description())}
    save_file({**policy.arrays(), "log_std": np.zeros(2, np.int64)}, path, about)
    with pytest.raises(InputError, match="the type of log_std"):
        read_policy(path)
    save_file({**policy.arrays(), "layers.0.bias": np.full(16, 8.8e36, np.float32)}, path, about)
    with pytest.raises(InputError, match=r"layers.0.bias has the number 8.8e\+36, and 1,000,000 is more than any"):
        read_policy(path).in_numpy()
