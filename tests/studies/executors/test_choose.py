"""Executors by name, and sentences for what they cannot do."""

import sys
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.studies.executors import LocalExecutor, make_executor


def test_local_is_one_process_for_each_core_or_as_many_as_are_given() -> None:
    assert make_executor("local") == LocalExecutor()
    assert make_executor("local", workers=3).workers == 3


def test_each_gpu_has_one_process_unless_more_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert make_executor("local", "gpu") == LocalExecutor(1), "nothing tells of any"
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho GPU-1\necho GPU-2\n")
    smi.chmod(0o755)
    assert make_executor("local", "gpu") == LocalExecutor(2, ("GPU-1", "GPU-2"))
    assert make_executor("local", "gpu", 3) == LocalExecutor(3, ("GPU-1", "GPU-2"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5, 3,7")
    assert make_executor("local", "gpu") == LocalExecutor(3, ("5", "3", "7"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert make_executor("local", "gpu") == LocalExecutor(1)
    assert make_executor("local", workers=2) == LocalExecutor(2)


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("dask", {}, "'dask' is not an executor: give local, ray or slurm."),
        ("local", {"workers": 0}, "workers is 0: it must be at least 1."),
        ("slurm", {"workers": -1}, "workers is -1: it must be at least 1."),
        ("local", {"minutes": 5}, "minutes is 5: that is for the executor slurm, and this is local."),
        ("local", {"address": "auto"}, "address is 'auto': that is for the executor ray, and this is local."),
        ("slurm", {"gpus": 0.5}, "gpus is 0.5: that is for the executor ray, and this is slurm."),
        ("ray", {"partition": "long"}, "partition is 'long': that is for the executor slurm, and this is ray."),
        ("ray", {"sbatch": ("qos=low",)}, "sbatch is ('qos=low',): that is for the executor slurm, and this is ray."),
        ("ray", {"gpus": -1.0}, "gpus is -1.0: it must be at least 0."),
        ("ray", {"gpus": float("nan")}, "gpus is nan: it must be at least 0."),
        ("slurm", {"sbatch": ("qos",)}, "sbatch is 'qos': give it as NAME=VALUE, such as account=lab."),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(name: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        make_executor(name, **given)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("name", "package", "sentence"),
    [
        ("ray", "ray", "The executor ray needs Ray, which is not installed: pip install 'cycletime[ray]'."),
        (
            "slurm",
            "submitit",
            "The executor slurm needs submitit, which is not installed: pip install 'cycletime[slurm]'.",
        ),
    ],
)
def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, name: str, package: str, sentence: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError) as caught:
        make_executor(name)
    assert str(caught.value) == sentence


def test_without_slurm_s_commands_there_is_no_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "submitit", sys)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="Slurm's sbatch is not on this machine"):
        make_executor("slurm")
