"""What a study leaves open and its runs' identity hangs on: it follows from the study alone."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from cycletime.errors import InputError
from cycletime.studies.pack import pack_studies
from cycletime.studies.pack_main import MANIFEST
from cycletime.studies.plan import Plan
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import read_study, study_from_table, study_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.training import compiled_engine
from cycletime.training.compiled_engine import GPU_BYTES, MOST_LANES

RoomFor: TypeAlias = Callable[[int], None]
MIXED = """
name = "mixed"
task = "reacher"
algorithms = ["ppo", "actor-critic"]
dts = ["16ms", "32ms"]
seeds = 6
env_steps = 100_000
device = "gpu"
"""
"""PPO is for the kernel, one-step actor-critic for programs side by side."""


def mixed(**keys: Any) -> StudySpec:  # noqa: ANN401
    table = {
        "name": "mixed",
        "task": "reacher",
        "algorithms": ["ppo", "actor-critic"],
        "dts": ["16ms", "32ms"],
        "seeds": 6,
    }
    return study_from_table({**table, "env_steps": 100_000, "device": "gpu", **keys})


def one_step(seeds: int, **keys: Any) -> StudySpec:  # noqa: ANN401
    return mixed(algorithms=["actor-critic"], dts=["16ms"], seeds=seeds, **keys)


def names(study: StudySpec) -> list[str]:
    return [planned.name for planned in Plan.of(study).runs]


@pytest.fixture(autouse=True)
def room_for(monkeypatch: pytest.MonkeyPatch) -> RoomFor:
    """Let a run take a byte, which is told at once, and a GPU have room for so many; at first for many."""
    monkeypatch.setattr(compiled_engine, "lane_bytes", lambda loop: 1)

    def has(lanes: int) -> None:
        monkeypatch.setattr(compiled_engine, "GPU_BYTES", lanes)

    return has


@pytest.mark.parametrize(
    ("runs", "fit", "width"),
    [(30, 1000, 30), (30, 30, 30), (31, 30, 16), (31, 20, 16), (7, 3, 3), (4, 3, 2), (1, 9, 1)],
)
def test_runs_are_shared_evenly_among_as_few_turns_as_fit(runs: int, fit: int, width: int, room_for: RoomFor) -> None:
    room_for(fit)
    assert one_step(runs).resolved().width == width


def test_no_program_is_wider_than_there_is_use_for() -> None:
    assert one_step(3 * MOST_LANES + 1).resolved().width == (3 * MOST_LANES + 1 + 3) // 4


def test_a_run_that_does_not_fit_is_told(room_for: RoomFor) -> None:
    room_for(0)
    with pytest.raises(InputError, match="does not fit into the memory"):
        one_step(2).resolved()


def test_it_is_chosen_for_the_largest_group_of_those_that_have_lanes() -> None:
    study = mixed()
    resolved = study.resolved()
    assert (study.width, resolved.width) == (None, 6)
    assert {(cell.spec.engine.name, cell.spec.engine.width) for cell in resolved.cells()} == {
        ("cuda", 1),
        ("compiled", 6),
    }
    assert mixed(algorithms=["ppo"]).resolved().width == 1
    more = mixed(set={"actor-critic": {"policy_rate": [1e-3, 1e-4]}}).resolved()
    assert more.width == 12, "rates are no programs of their own"


def test_what_is_given_or_has_no_lanes_stays() -> None:
    given = mixed(width=2)
    assert given.resolved() is given
    assert mixed(device="cpu").resolved().width == 1
    envs = mixed(task=[], env="Pendulum-v1", env_dt="50ms", dts=["50ms"], algorithms=["actor-critic"])
    assert envs.resolved().width == 1
    resolved = mixed().resolved()
    assert resolved.resolved() is resolved


def test_a_study_that_grows_keeps_the_width_that_it_began_with(tmp_path: Path) -> None:
    began = StudyFolder.create(tmp_path / "study", mixed())
    grown = StudyFolder.create(tmp_path / "study", mixed(seeds=9))
    assert (began.study.width, grown.study.width, mixed(seeds=9).resolved().width) == (6, 6, 9)
    assert set(names(began.study)) < set(names(grown.study))
    assert StudyFolder.open(tmp_path / "study").study == grown.study


def test_on_another_device_the_width_is_chosen_anew() -> None:
    on_cpu = mixed(device="cpu").resolved()
    assert mixed().resolved(on_cpu).width == 6


def test_the_same_runs_are_planned_by_file_folder_and_pack_and_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "mixed.toml"
    file.write_text(MIXED)
    study = read_study(file)
    planned = names(study)
    assert names(mixed()) == planned
    assert names(read_study(file).resolved()) == planned
    folder = StudyFolder.create(tmp_path / "study", read_study(file))
    assert names(folder.study) == names(StudyFolder.open(folder.path).study) == planned
    pack_studies([read_study(file)], tmp_path / "pack.zip")
    with zipfile.ZipFile(tmp_path / "pack.zip") as pack:
        packed = study_from_table(json.loads(pack.read(MANIFEST))["studies"][0]["study"])
    assert names(StudyFolder.create(tmp_path / "packed", packed).study) == planned
    program = (
        "import sys; from cycletime import Study; from cycletime.studies.plan import Plan; "
        "print(*(planned.name for planned in Plan.of(Study.read(sys.argv[1])).runs))"
    )
    ran = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == planned


def test_the_kernel_takes_what_it_can_and_the_compiled_loop_the_rest() -> None:
    plan = Plan.of(mixed())
    assert plan.engines() == {"cuda": 12, "compiled": 12}
    assert plan.jax_device == "gpu"
    only = Plan.of(mixed(algorithms=["ppo"]))
    assert only.jax_device == "cpu", "of the kernel's runs JAX makes the weights only"
    wide = Plan.of(mixed(algorithms=["ppo"], set={"hidden": [[64, 64], [32, 32]]}))
    assert wide.engines() == {"cuda": 12, "compiled": 12}
    assert Plan.of(mixed(device="cpu")).engines() == {"compiled": 24}


def test_who_insists_on_an_engine_gets_it_or_a_sentence() -> None:
    assert Plan.of(mixed(engine="compiled")).engines() == {"compiled": 24}
    assert Plan.of(mixed(engine="cuda", algorithms=["ppo"])).engines() == {"cuda": 12}
    with pytest.raises(InputError, match="cannot train actor-critic"):
        Plan.of(mixed(engine="cuda"))
    with pytest.raises(InputError, match="gpu"):
        Plan.of(mixed(engine="cuda", algorithms=["ppo"], device="cpu"))
    with pytest.raises(InputError, match="'warp'"):
        mixed(engine="warp")


def test_a_study_goes_on_with_the_engine_that_it_began_with(tmp_path: Path) -> None:
    only = {"algorithms": ["ppo"]}
    StudyFolder.create(tmp_path, mixed(**only))
    before = (tmp_path / "study.json").read_bytes()
    with pytest.raises(InputError, match="began on gpu, and is now to go on with gpu with the engine compiled"):
        StudyFolder.create(tmp_path, mixed(**only, engine="compiled"))
    assert (tmp_path / "study.json").read_bytes() == before
    assert study_from_table(study_table(mixed().resolved())) == mixed().resolved()
    assert replace(mixed(), width=6) == mixed().resolved()


def test_the_memory_that_widths_go_by_is_no_machine_s_own() -> None:
    assert GPU_BYTES == 64 * 2**30, "another number gives runs other identities: raise the version of results"
