import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.loops import Episodes
from cycletime.runs.curve import write_curve
from cycletime.runs.folder import RunFolder
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.verify import damage_of, finished_runs, put_aside


@pytest.fixture
def run(make_folder: Callable[..., StudyFolder], finish: Callable[[RunFolder], None]) -> RunFolder:
    folder = make_folder()
    plan = Plan.of(folder.study)
    made = folder.run_folder(plan.spec(plan.runs[0]))
    finish(made)
    return made


def forget_hashes(run: RunFolder, **changes: object) -> None:
    told = {**run.result(), **changes}
    del told["files"]
    (run.path / "result.json").write_text(json.dumps(told))


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) - 20] ^= 1
    path.write_bytes(data)


def test_a_finished_run_is_good_also_without_hashes(run: RunFolder) -> None:
    assert damage_of(run.path) is None
    forget_hashes(run)
    assert damage_of(run.path) is None


@pytest.mark.parametrize("name", ["curve.parquet", "metrics.jsonl", "policy.safetensors"])
def test_one_changed_bit_and_a_missing_file_are_found(run: RunFolder, name: str) -> None:
    if name == "metrics.jsonl":
        (run.path / name).write_text('{"env_steps": 2}\n')
    else:
        flip_a_byte(run.path / name)
    assert (wrong := damage_of(run.path)) is not None
    assert wrong.startswith(f"{name} is not what was written: its hash is ")
    (run.path / name).unlink()
    assert damage_of(run.path) == f"{run.path / name} cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("spec.json", "spec.json cannot be read as a run's spec"),
        ("result.json", "result.json cannot be read"),
        ("curve.parquet", "cannot be read as a learning curve"),
        ("policy.safetensors", "is damaged or no policy"),
    ],
)
def test_files_that_were_cut_off_are_found_without_hashes_too(run: RunFolder, name: str, says: str) -> None:
    forget_hashes(run)
    data = (run.path / name).read_bytes()
    (run.path / name).write_bytes(data[: len(data) - 30])
    assert says in (damage_of(run.path) or "")


@pytest.mark.parametrize("text", ["[]", "3", '{"files": [1]}', '{"files": 3}'])
def test_a_result_that_is_none_is_found(run: RunFolder, text: str) -> None:
    told = json.loads(text)
    text = json.dumps({**told, "identity": run.spec.identity}) if isinstance(told, dict) else text
    (run.path / "result.json").write_text(text)
    assert (damage_of(run.path) or "").startswith("result.json is no result: ")


def test_a_changed_spec_is_found(run: RunFolder) -> None:
    told = json.loads((run.path / "spec.json").read_text())
    (run.path / "spec.json").write_text(json.dumps({**told, "seed": 77}))
    assert "was changed" in (damage_of(run.path) or "")


def test_files_of_another_run_are_found(
    run: RunFolder, make_folder: Callable[..., StudyFolder], finish: Callable[[RunFolder], None]
) -> None:
    folder = make_folder()
    plan = Plan.of(folder.study)
    other = folder.run_folder(plan.spec(plan.runs[1]))
    finish(other)
    forget_hashes(run)
    (run.path / "policy.safetensors").write_bytes(other.policy_file.read_bytes())
    assert damage_of(run.path) == "policy.safetensors is not this run's last: it is of 4800 environment steps"
    (run.path / "result.json").write_bytes((other.path / "result.json").read_bytes())
    assert damage_of(run.path) == "result.json belongs to another run"
    moved = run.path.rename(run.path.with_name("another-name"))
    assert damage_of(moved) == f"the folder's name is not the run's, {run.spec.name}"


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ([1200, 2400, 3600], "curve.parquet has 3 episodes, and the result 4"),
        ([1200, 3600, 2400, 4800], "the episodes of curve.parquet are out of order"),
        ([1200, 2400, 3600, 4801], "the episodes of curve.parquet are out of order"),
    ],
)
def test_a_curve_that_cannot_be_is_found(run: RunFolder, ends: list[int], says: str) -> None:
    forget_hashes(run)
    steps = np.array(ends, np.int64)
    write_curve(run.curve_file, Episodes(steps, steps, np.zeros(len(ends)), steps), Duration("2ms"))
    assert damage_of(run.path) == says


def test_damaged_runs_are_put_aside_each_under_its_own_name_and_run_again(
    run: RunFolder, finish: Callable[[RunFolder], None], make_folder: Callable[..., StudyFolder]
) -> None:
    folder = make_folder()
    assert list(finished_runs(folder)) == [run.path]
    for number, name in ((1, run.spec.name), (2, f"{run.spec.name}-2")):
        flip_a_byte(run.curve_file)
        assert put_aside(folder, run.path) == folder.path / "damaged" / name
        assert folder.state_of(run.spec.name) == "pending"
        assert list(finished_runs(folder)) == []
        finish(folder.run_folder(run.spec))
        assert len(list((folder.path / "damaged").iterdir())) == number
