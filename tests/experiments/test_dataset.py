"""The dataset of all runs has every committed run, with the numbers of the results."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks import dataset
from cycletime.experiments.horizons.candidates import TRIAL
from cycletime.experiments.outcome import Outcome, read_outcomes, read_results
from cycletime.rules import PPO

RESULTS = Path(__file__).parents[2] / "results"


def test_every_run_is_there_once_for_each_rule_with_its_score(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    for name, study in (("paper", "ppo-robot"), ("horizons", "sac-trial-pendulum")):
        (tmp_path / "results" / name).mkdir()
        (tmp_path / "results" / name / f"{study}.npz").write_bytes((RESULTS / name / f"{study}.npz").read_bytes())
    dataset.write(tmp_path / "out", tmp_path / "results")
    rows = pq.read_table(tmp_path / "out" / "runs.parquet").to_pylist()
    outcomes = [Outcome.load(path) for path in (tmp_path / "results").rglob("*.npz")]
    assert len(rows) == sum(len(cell.seeds) for outcome in outcomes for cell in outcome.cells)
    assert dataset.distinct_runs(dataset.table(tmp_path / "results")) == sum(each.about["runs"] for each in outcomes)
    cell = next(each for each in outcomes if each.name == "ppo-robot").cell(rule="dt-aware", dt="10ms")
    of_cell = [row for row in rows if row["study"] == "ppo-robot" and (row["rule"], row["dt_s"]) == ("dt-aware", 0.01)]
    assert {row["seed"]: row["score"] for row in of_cell} == cell.seed_scores
    assert of_cell[0]["final"] == pytest.approx(cell.final[0])
    assert json.loads(of_cell[0]["settings"])["discount"] == cell.values["discount"]
    assert of_cell[0]["source"] == "simulated robot"


@pytest.mark.parametrize("investigation", ["paper", "horizons"])
def test_settings_are_those_that_each_run_used(investigation: str) -> None:
    """Labels name a run by what its rule began with: at another cycle time that is not what it used."""
    renamed = 0
    for outcome in read_outcomes(RESULTS / investigation).values():
        used = [cell for cell in outcome.cells for _ in cell.seeds]
        for cell, row in zip(used, dataset.rows_of(investigation, outcome, {}), strict=True):
            settings, labels = json.loads(row["settings"]), json.loads(row["labels"] or "{}")
            assert {name: settings[name] for name in cell.values} == cell.values
            assert {**settings, **labels}.items() >= {
                name: value for name, value in cell.labels.items() if name not in ("task", "algorithm", "rule", "dt")
            }.items()
            renamed += bool(labels)
    assert renamed == {"paper": 5200, "horizons": 5516}[investigation]


def test_runs_of_the_search_and_the_trial_name_every_rule_that_gives_their_values() -> None:
    results = read_results(RESULTS / "horizons")
    carried_by = dataset.carried_points(results)
    for name, outcome in results.outcomes.items():
        if "search-" in name or "trial-" in name:
            assert all(row["carried_by"] for row in dataset.rows_of("horizons", outcome, carried_by)), name
    name = TRIAL.study_name("pendulum")
    rows = list(dataset.rows_of("horizons", results.outcome(name), carried_by))
    kept = PPO(dt="128ms", discount=0.99, trace_decay=0.95, batch=500).at("8ms", "baseline")
    of_kept = [row for row in rows if "baseline from 128ms, untuned" in row["carried_by"] and row["dt_s"] == 0.008]
    assert len(of_kept) == TRIAL.seeds
    found = [json.loads(row["settings"]) for row in of_kept]
    assert {(each["discount"], each["trace_decay"]) for each in found} == {(kept.discount, kept.trace_decay)}


def test_robots_have_their_curves() -> None:
    with (RESULTS / "robots" / "runs.csv").open() as file:
        starts = [float(row["start"]) for row in csv.DictReader(file)]
    rows = list(dataset.robot_rows(RESULTS / "robots"))
    assert [row["curve"][0] for row in rows] == pytest.approx(starts)


def test_card_and_checksums_fit_the_file(tmp_path: Path) -> None:
    (tmp_path / "paper").mkdir()
    (tmp_path / "horizons").mkdir()
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "runs.csv").write_text(
        "task,dt_ms,arm,seed,score,final,simulated_s,wall_s,uid\nGo1,8.0,kept,0,0.5,,1e6,60,f0\n"
    )
    with (tmp_path / "robots" / "curves.npz").open("wb") as file:
        curves: dict[str, Any] = {"Go1/8ms/kept/0#f0": np.array([[0, 1], [0.25, 0.75], [1, 1]])}
        np.savez(file, **curves)
    runs = dataset.write(tmp_path / "out", tmp_path)
    assert runs.to_pylist()[0] == {
        **dict.fromkeys(dataset.COLUMNS),
        "investigation": "robots",
        "study": "robots-trial",
        "task": "Go1",
        "algorithm": "ppo",
        "rule": "kept",
        "dt_s": 0.008,
        "seed": 0,
        "score": 0.5,
        "simulated_s": 1e6,
        "source": "MJX",
        "curve": [0.25, 0.75],
        "settings": '{"wall_s": "60", "uid": "f0"}',
        "made_by": "python -m benchmarks.robots.run",
    }
    for line in (tmp_path / "out" / "SHA256SUMS").read_text().splitlines():
        sha256, name = line.split()
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == sha256
    assert "1 rows of 1 runs" in (tmp_path / "out" / "README.md").read_text()
