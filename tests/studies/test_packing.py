import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cycletime.cli import main
from cycletime.engines.cuda.travel import packed_specs
from cycletime.errors import InputError
from cycletime.studies.packing import pack_study
from cycletime.studies.plan import Plan
from cycletime.studies.spec import Study


def packed(study: Study, file: Path) -> dict[str, Any]:
    pack_study(study, file)
    with zipfile.ZipFile(file) as pack:
        told: dict[str, Any] = json.loads(pack.read("pack.json"))
    return told


def test_a_pack_has_all_runs_that_a_gpu_would_plan(tmp_path: Path, make_study: Callable[..., Study]) -> None:
    study = make_study(device="gpu", engine="cuda")
    specs = list(packed_specs(packed(study, tmp_path / "pack.zip")))
    plan = Plan.of(study)
    assert sorted(spec.name for spec in specs) == sorted(planned.name for planned in plan.runs)
    assert {spec.engine.name for spec in specs} == {"cuda"}


def test_a_pack_has_the_sources_and_the_kernel(tmp_path: Path, make_study: Callable[..., Study]) -> None:
    for name in ("one.zip", "two.zip"):
        pack_study(make_study(device="gpu"), tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert (tmp_path / "one.zip").stat().st_size < 2**20
    with zipfile.ZipFile(tmp_path / "one.zip") as pack:
        names = set(pack.namelist())
    assert {"__main__.py", "cycletime/__init__.py", "cycletime/engines/cuda/kernel/train.cu"} < names
    assert not any("__pycache__" in name for name in names)


def test_what_the_kernel_cannot_take_is_left_out_and_told(
    tmp_path: Path, make_study: Callable[..., Study], capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(
        device="gpu", algorithm=["ppo", "sac"], tuned={"ppo": {"dt": "16ms"}, "sac": {"dt": "16ms"}}, rules={}
    )
    both = pack_study(study, tmp_path / "pack.zip")
    assert (both.runs, both.left_out) == (4, 4)
    assert packed(study, tmp_path / "pack.zip")["left_out"] == 4
    with pytest.raises(InputError, match=r"^The kernel takes none of the 4 runs of small: there is nothing to pack\.$"):
        pack_study(
            make_study(device="gpu", algorithm="sac", tuned={"dt": "16ms"}, rules=["tuned"]), tmp_path / "none.zip"
        )
    assert not (tmp_path / "none.zip").exists()


def test_a_study_for_a_cpu_is_not_packed(tmp_path: Path, make_study: Callable[..., Study]) -> None:
    with pytest.raises(InputError, match=r"^device is 'cpu' in small: a pack is for a GPU, so set device = \"gpu\"\.$"):
        pack_study(make_study(), tmp_path / "pack.zip")


def test_a_pack_of_another_version_is_refused(tmp_path: Path, make_study: Callable[..., Study]) -> None:
    told = packed(make_study(device="gpu"), tmp_path / "pack.zip")
    told["cells"][0]["identity"] = "0" * 64
    with pytest.raises(InputError, match=r"^The pack was made by another version of cycletime: pack the study anew\.$"):
        list(packed_specs(told))


def test_the_command_says_what_to_do_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.toml"
    file.write_text(
        'name = "grid"\ntask = "reacher"\nalgorithm = "ppo"\ndts = ["16ms"]\nrules = ["baseline"]\nseeds = 3\n'
        'env_steps = 100_000\ndevice = "gpu"\n[tuned]\ndt = "16ms"\n'
    )
    assert main(["study", "pack", str(file), "-o", str(tmp_path / "pack.zip")]) == 0
    told = capsys.readouterr().out
    assert told.startswith("3 runs in ")
    assert told.endswith("There: python pack.zip OUT\n")
