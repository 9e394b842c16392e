"""Results that are kept with the code: collected, guarded, read again, and shipped."""

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hatchling.builders.wheel import WheelBuilder

import cycletime
from cycletime.errors import InputError
from cycletime.experiments.collecting import collect_results, results_folder
from cycletime.experiments.investigation import Size
from cycletime.experiments.outcome import Outcome
from cycletime.experiments.paper import behaviour
from cycletime.experiments.paper.data import read_paper_results, save_behaviours
from cycletime.experiments.paper.declaration import PAPER
from tests.experiments.paper.made import study_folder

ROOT = Path(__file__).parents[3]


def _behaviour(shares: dict[str, float]) -> dict[str, Any]:
    return {"episodes": 50, "code": "here", "cells": [{"rule": "baseline", "dt": "4ms", "shares": shares}]}


@pytest.fixture(autouse=True)
def _nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Policies that nobody trained do nothing; tests/experiments/paper/test_behaviour.py has some that do."""
    measured = {"ppo-baseline": _behaviour({"0": 0.5, "1": 0.25})}
    monkeypatch.setattr(
        behaviour,
        "measure_behaviour",
        lambda folders: {name: each for name, each in measured.items() if name in folders},
    )


def test_finished_studies_are_kept_and_read_again_and_others_are_named(tmp_path: Path) -> None:
    study_folder(tmp_path, "ppo-baseline")
    study_folder(tmp_path, "sac-scaled", missing=4)
    results = tmp_path / "results"
    kept, unfinished = collect_results(PAPER, tmp_path, results)
    assert kept == [results / "ppo-baseline.npz", results / "behaviour.json"]
    assert unfinished == {"sac-scaled": (6, 10)}
    data = read_paper_results(results)
    assert list(data.outcomes) == ["ppo-baseline"]
    np.testing.assert_array_equal(data.outcome("ppo-baseline").cell(dt="4ms").scores, [0.0, 1.0])
    assert data.behaviour("ppo-baseline", "baseline", "4ms") == {0: 0.5, 1: 0.25}
    study_folder(tmp_path, "sac-scaled")
    assert collect_results(PAPER, tmp_path, results)[1] == {}
    assert list(read_paper_results(results).outcomes) == ["ppo-baseline", "sac-scaled"]


def test_results_of_other_studies_and_their_behaviour_stay(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    save_behaviours({"ppo-pendulum": _behaviour({"0": 1.0})}, results / "behaviour.json")
    study_folder(tmp_path / "out", "ppo-baseline")
    collect_results(PAPER, tmp_path / "out", results)
    assert sorted(read_paper_results(results).behaviours) == ["ppo-baseline", "ppo-pendulum"]


def test_damaged_behaviour_of_policies_is_refused_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "results" / "behaviour.json"
    file.parent.mkdir()
    file.write_text("{")
    study_folder(tmp_path / "out", "ppo-baseline")
    with pytest.raises(InputError, match=r"behaviour\.json cannot be read as behaviour of policies: "):
        collect_results(PAPER, tmp_path / "out", file.parent)
    assert file.read_text() == "{"


def test_results_are_not_replaced_by_those_that_say_less(tmp_path: Path) -> None:
    results = tmp_path / "results"
    study_folder(tmp_path / "large", "ppo-baseline", size=Size(0.02, 3))
    collect_results(PAPER, tmp_path / "large", results)
    before = (results / "ppo-baseline.npz").read_bytes()
    for size, words in (
        (Size(0.01, 3), "3 seeds at 0.01"),
        (Size(0.02, 2), "2 seeds at 0.02"),
        (Size(0.03, 2), "2 seeds at 0.03"),
    ):
        out = tmp_path / f"{size.scale}-{size.seeds}"
        study_folder(out, "ppo-baseline", size=size)
        study_folder(out, "sac-scaled", size=size)
        with pytest.raises(InputError, match=f"has 3 seeds at 0.02 of all .* now {words} of .* another --result"):
            collect_results(PAPER, out, results)
    assert (results / "ppo-baseline.npz").read_bytes() == before
    assert not (results / "sac-scaled.npz").exists(), "all or nothing"
    study_folder(tmp_path / "more", "ppo-baseline", size=Size(0.02, 4))
    collect_results(PAPER, tmp_path / "more", results)
    assert Outcome.load(results / "ppo-baseline.npz").n == (4,)


def test_folders_without_anything_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no study of 'paper', such as ppo-baseline: .* run paper' makes th"):
        collect_results(PAPER, tmp_path, tmp_path / "results")
    with pytest.raises(InputError, match="is not a folder with results: 'cycletime experiment collect' makes one"):
        read_paper_results(tmp_path / "results")
    assert read_paper_results(tmp_path).outcomes == {}


def test_results_are_those_around_the_package_or_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, clone = tmp_path / "site-packages" / "cycletime", tmp_path / "clone"
    (clone / "results" / "paper").mkdir(parents=True)
    (clone / "docs").mkdir()
    monkeypatch.setattr(cycletime, "__file__", str(clone / "src" / "cycletime" / "__init__.py"))
    assert results_folder("paper") == clone / "results" / "paper"
    monkeypatch.setattr(cycletime, "__file__", str(installed / "__init__.py"))
    monkeypatch.chdir(clone / "docs")
    assert results_folder("paper") == clone / "results" / "paper"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"no results/paper here or above: give .* as --results\. .* in a clone"):
        results_folder("paper")


def test_a_wheel_has_no_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # no compiler, so that it is the package alone
    (tmp_path / "src" / "cycletime").mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "src/cycletime/__init__.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    if (ROOT / "hatch_build.py").exists():
        shutil.copy(ROOT / "hatch_build.py", tmp_path / "hatch_build.py")
    file = tmp_path / "results" / "paper" / "ppo-grid.npz"
    file.parent.mkdir(parents=True)
    file.touch()
    (wheel,) = WheelBuilder(str(tmp_path)).build(directory=str(tmp_path / "dist"), versions=["standard"])
    with zipfile.ZipFile(wheel) as built:
        names = {name for name in built.namelist() if "dist-info" not in name}
    assert names == {"cycletime/__init__.py"}
