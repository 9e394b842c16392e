"""Compact files as they come back: what is taken, and what is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.engines.cuda.compact import EPISODE, REPORTED, Kept, write_kept
from cycletime.errors import InputError
from cycletime.loops import EpisodeBins, Episodes
from cycletime.runs.spec import RESULT_VERSION
from cycletime.studies.compact_runs import study_folder_for
from cycletime.studies.folder import StudyFolder
from cycletime.studies.kernel_code import kernel_digest, release
from cycletime.studies.lease import leased
from cycletime.studies.plan import Plan
from cycletime.studies.study_file import as_table
from cycletime.studies.transfer import Taken, take_runs
from cycletime.studies.verify import damage_of


@pytest.fixture
def folder(make_folder: Callable[..., StudyFolder]) -> StudyFolder:
    return make_folder(device="gpu", engine="cuda", seeds=1, dts=["16ms"], rules=["baseline"])


@pytest.fixture
def kept(folder: StudyFolder) -> Kept:
    plan = Plan.of(folder.study)
    spec = plan.spec(plan.runs[0])
    reports = np.zeros(2, REPORTED)
    reports["env_steps"], reports["agent_steps"], reports["kl"] = (800, 1600), (100, 200), (0.5, 0.25)
    ends = np.array([1200, 2400, 3600], np.int64)
    curve = Episodes(ends, ends // 8, np.array([1.0, 2.0, 4.0]), np.full(3, 1200))
    return Kept(
        spec.identity,
        EpisodeBins.none(spec.env_steps).plus(curve),
        8,
        reports,
        agent_steps=600,
        finished="2026-01-01T00:00:00+00:00",
    )


@pytest.fixture
def take(folder: StudyFolder, tmp_path: Path) -> Callable[..., Taken]:
    def taking(*runs: Kept, **about: Any) -> Taken:  # noqa: ANN401
        told = {
            "format": 1,
            "study": as_table(folder.study),
            "result_version": RESULT_VERSION,
            "release": release(),
            "kernel": kernel_digest(),
            "machine": {"device": "A card"},
        }
        write_kept(tmp_path / "results-000001.npz", {**told, **about}, runs)
        return take_runs(folder, [tmp_path / "results-000001.npz"])

    return taking


def test_a_run_becomes_a_folder_that_holds_what_came(
    folder: StudyFolder, kept: Kept, take: Callable[..., Taken]
) -> None:
    assert take(kept).taken == 1
    (run,) = folder.runs.iterdir()
    assert damage_of(run) is None
    assert folder.state_of(run.name) == "done"
    result = folder.run_folder(Plan.of(folder.study).spec(Plan.of(folder.study).runs[0])).result()
    assert (result["episodes"], result["agent_steps"], result["where"]) == (3, 600, "closed form")
    assert (result["machine"], result["finished"]) == ({"device": "A card"}, "2026-01-01T00:00:00+00:00")
    assert result["mean_over_episodes"] == pytest.approx(7 / 3)
    assert (run / "metrics.jsonl").read_text().count('"env_steps": 800, "agent_steps": 100') == 1


@pytest.mark.parametrize(
    ("about", "sentence"),
    [
        ({"result_version": 0}, "its runs were computed by another version of results, 0, and not 1: pack the study"),
        ({"release": "0.0.0"}, "its runs were computed by another version of cycletime, 0.0.0"),
        ({"kernel": "abc"}, "its runs were computed by another kernel, abc"),
    ],
)
def test_runs_of_other_code_are_refused(
    folder: StudyFolder, kept: Kept, take: Callable[..., Taken], about: dict[str, Any], sentence: str
) -> None:
    taken = take(kept, **about)
    (said,) = taken.damaged.values()
    assert said.startswith(sentence)
    assert taken.taken == 0
    assert not any(folder.runs.iterdir())


def test_runs_that_are_not_planned_or_not_finished_are_left(kept: Kept, take: Callable[..., Taken]) -> None:
    assert take(replace(kept, identity="0" * 64)).not_planned == 1
    assert take(replace(kept, identity=kept.identity[:10] + "0" * 54)).not_planned == 1
    assert list(take(replace(kept, finished="")).damaged.values()) == [f"run {kept.identity[:10]} is not finished"]


def test_a_run_that_is_being_trained_is_left_to_its_worker(
    folder: StudyFolder, kept: Kept, take: Callable[..., Taken]
) -> None:
    plan = Plan.of(folder.study)
    with leased(folder.run_folder(plan.spec(plan.runs[0])).path, "somebody"):
        assert take(kept).busy == 1
    assert take(kept).taken == 1


@pytest.mark.parametrize("wrong", ["budget", "cycle", "order", "episodes"])
def test_numbers_that_do_not_fit_together_are_refused(kept: Kept, take: Callable[..., Taken], wrong: str) -> None:
    other = {
        "budget": replace(kept, bins=replace(kept.bins, budget=5000)),
        "cycle": replace(kept, cycle_steps=4),
        "order": replace(kept, bins=replace(kept.bins, env_steps=-kept.bins.env_steps)),
        "episodes": replace(kept, episodes=np.zeros(3, EPISODE)),
    }
    assert len(take(other[wrong]).damaged) == 1


def test_a_file_that_is_none_is_damaged(folder: StudyFolder, tmp_path: Path) -> None:
    (tmp_path / "results-000001.npz").write_bytes(b"PK and no more")
    taken = take_runs(folder, [tmp_path / "results-000001.npz"])
    assert "is no file of runs" in taken.damaged[tmp_path / "results-000001.npz"]


def test_a_new_study_folder_is_made_for_compact_files(
    folder: StudyFolder, kept: Kept, take: Callable[..., Taken], tmp_path: Path
) -> None:
    take(kept)
    made = study_folder_for(tmp_path / "new", [tmp_path / "results-000001.npz"])
    assert made.study == folder.study
    with pytest.raises(InputError, match="is no study"):
        study_folder_for(tmp_path / "other", [folder.runs])
