"""The dataset of all runs has every committed run, with the numbers of the results."""

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import dataset
from cycletime.experiments.outcome import Outcome

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
    cell = next(each for each in outcomes if each.name == "ppo-robot").cell(rule="dt-aware", dt="10ms")
    of_cell = [row for row in rows if row["study"] == "ppo-robot" and (row["rule"], row["dt_s"]) == ("dt-aware", 0.01)]
    assert {row["seed"]: row["score"] for row in of_cell} == cell.seed_scores
    assert of_cell[0]["final"] == pytest.approx(cell.final[0])
    assert json.loads(of_cell[0]["settings"])["discount"] == cell.values["discount"]
    assert of_cell[0]["source"] == "simulated robot"


def test_card_and_checksums_fit_the_file(tmp_path: Path) -> None:
    (tmp_path / "paper").mkdir()
    (tmp_path / "horizons").mkdir()
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "runs.csv").write_text(
        "task,dt_ms,arm,seed,score,final,simulated_s,wall_s,versions\nGo1,8.0,kept,0,0.5,,1e6,60,brax 0.14.2\n"
    )
    runs = dataset.write(tmp_path / "out", tmp_path)
    assert runs.to_pylist()[0] | {"curve": 0} == {
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
        "curve": 0,
        "settings": '{"wall_s": "60", "versions": "brax 0.14.2"}',
        "made_by": "python -m benchmarks.robots.run",
    }
    for line in (tmp_path / "out" / "SHA256SUMS").read_text().splitlines():
        sha256, name = line.split()
        assert hashlib.sha256((tmp_path / "out" / name).read_bytes()).hexdigest() == sha256
    assert "1 rows" in (tmp_path / "out" / "README.md").read_text()
