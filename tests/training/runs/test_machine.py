from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest

from cycletime import __version__
from cycletime.errors import MachineError
from cycletime.training import machine
from cycletime.training.machine import code_version, machine_differences, prepare_jax, this_machine

HERE = {
    "jax": "1",
    "jaxlib": "1",
    "device": "cpu",
    "processor": "A",
    "cores": "2",
    "system": "Linux",
    "python": "3.11",
    "mujoco": "4",
}


def test_this_machine_says_what_computes_and_fits_into_json() -> None:
    told = dict(this_machine())
    assert told["jax"] == jax.__version__
    assert told["device"] == jax.devices()[0].device_kind
    assert told["cycletime"].startswith(__version__)
    assert told["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(told.values())
    assert json.loads(json.dumps(told)) == told


def test_a_machine_does_not_differ_from_itself() -> None:
    assert machine_differences(this_machine(), this_machine()) == ()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"jax": "2"}, "JAX 2 then, 1 now"),
        ({"jaxlib": "2"}, "jaxlib 2 then, 1 now"),
        ({"device": "H200"}, "device H200 then, cpu now"),
        ({"processor": "B"}, "processor B then, A now"),
        ({"cores": "8"}, "number of cores 8 then, 2 now"),
    ],
)
def test_what_changes_bits_is_told(changed: dict[str, str], sentence: str) -> None:
    assert machine_differences({**HERE, **changed}, HERE) == (sentence,)


def test_another_simulator_matters_to_the_runs_that_it_simulates() -> None:
    then = {**HERE, "mujoco": "3"}
    assert machine_differences(then, HERE) == ()
    assert machine_differences(then, HERE, ("mujoco",)) == ("mujoco 3 then, 4 now",)


def test_what_changes_no_bits_is_not_told() -> None:
    assert machine_differences({**HERE, "system": "Other", "python": "3.12", "cycletime": "0", "more": "x"}, HERE) == ()


def test_a_machine_that_said_less_is_unknown() -> None:
    assert machine_differences({}, HERE)[0] == "JAX unknown then, 1 now"


def checkout(folder: Path) -> Path:
    """Where machine.py lies in a checkout of its own."""
    for command in (
        ["init", "--quiet"],
        ["-c", "user.name=a", "-c", "user.email=b", "commit", "--quiet", "--allow-empty", "--message=first"],
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder / "src" / "cycletime" / "runs" / "machine.py"


def test_the_code_of_a_checkout_is_known_by_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "__file__", str(checkout(tmp_path)))
    shown = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tmp_path, check=True, capture_output=True, text=True)
    release, _, commit = code_version().partition("+")
    assert release == __version__
    assert len(commit) >= 7
    assert shown.stdout.startswith(commit)
    (tmp_path / "file").write_text("new")
    subprocess.run(["git", "add", "file"], cwd=tmp_path, check=True)
    assert code_version() == f"{release}+{commit}-dirty"


def test_code_that_is_no_checkout_is_known_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "__file__", str(tmp_path / "lib" / "cycletime" / "runs" / "machine.py"))
    assert code_version() == __version__


def test_a_checkout_without_git_is_known_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "__file__", str(checkout(tmp_path)))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert code_version() == __version__


def test_programs_that_were_compiled_anew_are_told_of_on_gpus_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    then = dict(this_machine())
    assert "programs" not in then
    gpu = SimpleNamespace(device_kind="NVIDIA H200", platform="gpu")
    monkeypatch.setattr(jax, "devices", lambda: [gpu])
    monkeypatch.setattr(machine, "kept_programs", lambda: "ab")
    one = dict(this_machine.__wrapped__())
    assert machine_differences(one, {**one, "programs": "cd"}) == ("compiled programs ab then, cd now",)


def test_the_code_of_a_packed_study_is_that_of_its_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CYCLETIME_CODE", "1.2.3+abc")
    assert code_version() == "1.2.3+abc"


def test_too_small_a_limit_of_addresses_is_told_before_jax_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (800_000_000, -1))
    with pytest.raises(MachineError, match=r"800,000,000 bytes of addresses \(ulimit -v\)"):
        prepare_jax("cpu")
