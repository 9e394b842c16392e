"""From a study's folder to its outcome: every run in its cell, and where it comes from."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from cycletime.agents import PPOAgent
from cycletime.errors import InputError
from cycletime.experiments.collecting import collect_results
from cycletime.experiments.investigation import Size
from cycletime.experiments.paper.declaration import PAPER
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.spec import RunSpec
from tests.experiments.paper.made import collect, study_folder


def score(spec: RunSpec) -> float:
    """Another for every run."""
    assert isinstance(spec.agent, PPOAgent)
    return 1000 * float(spec.dt) + spec.seed / 10 + spec.agent.discount


def test_every_run_is_in_its_cell_and_shared_ones_in_both(tmp_path: Path) -> None:
    outcome = collect(study_folder(tmp_path, "ppo-pendulum", score))
    assert len(outcome.cells) == 10
    for cell in outcome.cells:
        wanted = [1000 * float(cell.dt) + seed / 10 + cell.values["discount"] for seed in (0, 1)]
        np.testing.assert_allclose(cell.scores, wanted)
        np.testing.assert_allclose(cell.plain, wanted)
        np.testing.assert_allclose(cell.curves, np.repeat(np.array(wanted)[:, None], 100, axis=1))
    at_16ms = outcome.where(dt="16ms")
    assert [cell.labels["rule"] for cell in at_16ms] == ["baseline", "dt-aware"]
    np.testing.assert_array_equal(at_16ms[0].scores, at_16ms[1].scores)
    assert outcome.about["runs"] == 18, "shared runs count once"


def test_it_says_where_it_comes_from(tmp_path: Path) -> None:
    outcome = collect(study_folder(tmp_path, "sac-scaled", size=Size(0.05, 3)))
    about = outcome.about
    assert (outcome.name, outcome.env_steps, outcome.scale, outcome.n) == ("sac-scaled", 25_000, 0.05, (3,))
    assert about["command"] == "cycletime experiment run paper sac-gamma-sweep --seeds 3 --scale 0.05"
    assert (about["wall_s"], about["engines"], about["where"]) == (None, {"compiled": 15}, ["closed form"])
    assert about["simulated_hours"] == pytest.approx(15 * 25_000 * 0.002 / 3600, abs=0.01)
    assert [each["runs"] for each in about["machines"]] == [15]


def test_runs_that_are_missing_are_counted(tmp_path: Path) -> None:
    folder = study_folder(tmp_path, "ppo-baseline", missing=3)
    with pytest.raises(InputError, match=r"ppo-baseline has 3 of 10 runs left to do: what ran the others goes on\.$"):
        collect(folder)


def damage(folder: StudyFolder) -> str:
    """Change one byte of the study's finished runs, inside an array; the file."""
    (path,) = (folder.path / "finished").glob("*.npz")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return str(path)


def in_all(folders: Mapping[str, StudyFolder]) -> object:
    out = folders["ppo-baseline"].path.parent
    return collect_results(PAPER, out, out / "results")


@pytest.mark.parametrize("read", [lambda folders: collect(folders["ppo-baseline"]), in_all])
def test_a_damaged_file_is_one_sentence_and_nothing_is_read_of_it(
    tmp_path: Path, read: Callable[[Mapping[str, StudyFolder]], object]
) -> None:
    folder = study_folder(tmp_path, "ppo-baseline")
    path = damage(folder)
    with pytest.raises(InputError) as refusal:
        read({"ppo-baseline": folder})
    assert str(refusal.value) == (
        f"{path} is damaged (it is not what was written: its hash is another): restore it, or let 'cycletime study "
        f"verify {folder.path} --repair' move it away and what has trained its runs train them again."
    )
    assert not (tmp_path / "results").exists()


def test_a_run_with_two_scores_is_refused(tmp_path: Path) -> None:
    study_folder(tmp_path, "ppo-baseline")
    with pytest.raises(InputError, match=r"^reacher-ppo-4ms-seed1-\w+ has other scores in .*: remove one of them\.$"):
        collect(study_folder(tmp_path, "ppo-baseline", lambda spec: 2.0 * spec.seed))


def test_a_run_that_went_astray_is_no_number(tmp_path: Path) -> None:
    outcome = collect(study_folder(tmp_path, "ppo-baseline", lambda spec: float("nan") if spec.seed else 1.0))
    assert [np.isnan(cell.scores).tolist() for cell in outcome.cells] == [[False, True]] * 5
    outcome.save(tmp_path / "s.npz")
