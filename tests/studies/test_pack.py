"""What is in a pack, and what cannot be packed."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.studies.pack import pack_studies
from cycletime.studies.pack_main import MANIFEST, unpack
from cycletime.studies.plan import Plan
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.run_recorder import SaveOptions
from tests.studies.small import small_study


def packed(*studies: StudySpec, file: Path, **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    pack_studies(studies, file, **options)
    with zipfile.ZipFile(file) as pack:
        told: list[dict[str, Any]] = json.loads(pack.read(MANIFEST))["studies"]
    return told


@pytest.mark.parametrize("keys", [{}, {"device": "gpu"}, {"device": "gpu", "engine": "compiled", "width": 2}])
def test_a_pack_plans_the_runs_that_the_study_plans(tmp_path: Path, keys: dict[str, Any]) -> None:
    study = small_study(**keys)
    (told,) = packed(study, file=tmp_path / "pack.zip")
    assert Plan.of(study_from_table(told["study"])).runs == Plan.of(study).runs
    assert told["study"]["width"] == Plan.of(study).study.width
    assert told["folder"] == "", "OUT is the study itself"


def test_several_studies_have_a_folder_and_what_is_kept_each(tmp_path: Path) -> None:
    studies = [small_study(name=name) for name in ("one", "two")]
    told = packed(*studies, file=tmp_path / "pack.zip", keeps=[SaveOptions(False, True), SaveOptions(True, False)])
    assert [each["folder"] for each in told] == ["one", "two"]
    assert [each["keep"] for each in told] == [
        {"episodes": False, "policies": True},
        {"episodes": True, "policies": False},
    ]
    assert pack_studies(studies, tmp_path / "pack.zip").total() == 2 * len(Plan.of(studies[0]).runs)
    (alone,) = packed(studies[0], file=tmp_path / "pack.zip", in_folders=True)
    assert alone["folder"] == "one"


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a", "b", "a"], "2 of the studies are called 'a': each needs a name of its own."),
        (["a", "b/../c"], "A study is called 'b/../c': packed with others, it needs a name that a folder can have."),
        (["a", ".."], "A study is called '..': packed with others, it needs a name that a folder can have."),
    ],
)
def test_studies_whose_folders_would_not_do_are_refused(tmp_path: Path, names: list[str], says: str) -> None:
    with pytest.raises(InputError) as refusal:
        pack_studies([small_study(name=name) for name in names], tmp_path / "pack.zip")
    assert str(refusal.value) == says
    assert not list(tmp_path.iterdir())


def test_what_is_packed_is_told(tmp_path: Path) -> None:
    told = pack_studies([small_study(device="gpu", set={"hidden": [[64, 64], [8, 8]]}, width=2)], tmp_path / "pack.zip")
    assert (told.total(), tuple(sorted(told))) == (12, ("compiled", "cuda"))


def test_a_pack_has_the_sources_and_the_kernel_and_is_the_same_each_time(tmp_path: Path) -> None:
    for name in ("one.zip", "two.zip"):
        pack_studies([small_study()], tmp_path / name)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert (tmp_path / "one.zip").stat().st_size < 2**20
    with zipfile.ZipFile(tmp_path / "one.zip") as pack:
        names = set(pack.namelist())
    assert {"__main__.py", "cycletime/__init__.py", "cycletime/cuda/kernel/train.cu"} < names
    assert not any("__pycache__" in name for name in names)


def test_environments_are_not_packed(tmp_path: Path) -> None:
    table = {"name": "s", "task": "reacher", "env": "Pendulum-v1", "env_dt": "50ms", "algorithm": "sac", "dt": "50ms"}
    with pytest.raises(InputError, match="'Pendulum-v1' is an environment"):
        pack_studies([study_from_table({**table, "env_steps": 100})], tmp_path / "pack.zip")
    assert not list(tmp_path.iterdir())


OWN = {"name": "own", "trainer": "mine:train", "algorithm": "ppo", "dts": ["20ms"], "simulated_s": 100}


def test_a_trainer_brings_its_packages(tmp_path: Path) -> None:
    """Where the function, and a library, are nowhere but in the pack."""
    (tmp_path / "libraries" / "the_library").mkdir(parents=True)
    (tmp_path / "libraries" / "mine.py").write_text(
        "from the_library import returns\ndef train(run):\n    yield 100, 5000, returns(run.seed)\n"
    )
    (tmp_path / "libraries" / "the_library" / "__init__.py").write_text("returns = float\n")
    study = study_from_table({**OWN, "seed": 3}, tmp_path / "elsewhere")
    pack_studies([study], tmp_path / "pack.zip", packages=tmp_path / "libraries")
    words = [sys.executable, str(tmp_path / "pack.zip"), str(tmp_path / "out"), "--workers", "1"]
    subprocess.run(words, check=True, timeout=300)
    folder = StudyFolder.open(tmp_path / "out")
    (name,) = folder.store.refresh()
    assert folder.store.result(name)["mean_over_episodes"] == 3
    assert name == Plan.of(study).runs[0].name


def test_packages_that_are_too_much_or_none_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, file = study_from_table(OWN), tmp_path / "pack.zip"
    with pytest.raises(InputError, match="is no folder"):
        pack_studies([study], file, packages=tmp_path / "none")
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.whl").write_text("")
    with pytest.raises(InputError, match="is a wheel: unpack it there with pip install --target"):
        pack_studies([study], file, packages=tmp_path / "p")
    monkeypatch.setattr("cycletime.studies.pack.MOST_BYTES", 2**16)
    with pytest.raises(InputError, match="MiB: it may have"):
        pack_studies([study], file)
    assert [each.name for each in tmp_path.iterdir()] == ["p"]


def test_what_was_unpacked_by_half_is_unpacked_again_and_packs_do_not_share_it(tmp_path: Path) -> None:
    pack_studies([small_study()], tmp_path / "one.zip")
    pack_studies([small_study(seeds=3)], tmp_path / "two.zip")
    code = unpack(tmp_path / "one.zip", tmp_path / "out")
    (code / "whole").unlink()
    (code / "cycletime" / "__init__.py").write_text("torn")
    assert unpack(tmp_path / "one.zip", tmp_path / "out") == code
    assert (code / "cycletime" / "__init__.py").read_text() != "torn"
    (code / "cycletime" / "mark").touch()
    assert unpack(tmp_path / "one.zip", tmp_path / "out") == code
    assert (code / "cycletime" / "mark").exists(), "what is whole is left alone"
    assert unpack(tmp_path / "two.zip", tmp_path / "out") != code
