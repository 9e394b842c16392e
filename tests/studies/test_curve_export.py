import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from cycletime.errors import InputError, RunError
from cycletime.studies.curve_export import export_curves, study_curves
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.learning_curve import Episodes
from tests.studies.small import finish, finished, specs_of
from tests.training.runs.finished import recomputed

COLUMNS = ["task", "algorithm", "rule", "dt", "seed", "env_step", "seconds", "return"]


@pytest.fixture
def make_done(make_folder: Callable[..., StudyFolder]) -> Callable[..., StudyFolder]:
    """A study of which all runs are done but those of some seeds."""

    def make(but: tuple[int, ...] = (), **keys: Any) -> StudyFolder:  # noqa: ANN401
        folder = make_folder(**keys)
        finish(folder, [spec for spec in specs_of(folder) if spec.seed not in but])
        return folder

    return make


def test_a_row_for_each_episode_of_each_run_that_is_done(make_done: Callable[..., StudyFolder], tmp_path: Path) -> None:
    folder = make_done(seeds=3, but=(1,))
    # Four cells of two done seeds; at 16 ms two cells have the same runs.
    assert export_curves(folder, tmp_path / "curves.parquet") == (6, 32)
    table = pq.read_table(tmp_path / "curves.parquet")
    assert table.column_names == COLUMNS
    rows = table.to_pylist()
    assert {(row["rule"], row["dt"], row["seed"]) for row in rows} == {
        (rule, dt, seed) for rule in ("baseline", "dt-aware") for dt in (0.016, 0.032) for seed in (0, 2)
    }
    assert all(row["return"] == row["seed"] for row in rows)
    mine = [row for row in rows if (row["rule"], row["dt"], row["seed"]) == ("baseline", 0.016, 2)]
    assert mine[0] == {
        "task": "reacher",
        "algorithm": "ppo",
        "rule": "baseline",
        "dt": 0.016,
        "seed": 2,
        "env_step": 1200,
        "seconds": 2.4,
        "return": 2.0,
    }
    assert [row["env_step"] for row in mine] == [1200, 2400, 3600, 4800]
    assert study_curves(folder).equals(table)


def test_rows_are_in_the_plan_s_order_whatever_order_runs_were_finished_in(
    make_folder: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    """At 16 ms the rules share their runs, which are needed in two places of the table."""
    tables = []
    for name, step in (("one", 1), ("other", -1)):
        folder = make_folder(name)
        runs = [finished(spec) for spec in specs_of(folder)[::step]]
        folder.store.add(runs[:4])
        folder.store.add(runs[4:])
        export_curves(folder, tmp_path / f"{name}.csv")
        tables.append((tmp_path / f"{name}.csv").read_bytes())
        assert study_curves(folder).num_rows == 32
    assert tables[0] == tables[1]
    with (tmp_path / "one.csv").open() as file:
        found = dict.fromkeys((row["dt"], row["rule"], row["seed"]) for row in csv.DictReader(file))
    wanted = [(dt, rule, seed) for dt in ("0.016", "0.032") for rule in ("baseline", "dt-aware") for seed in "01"]
    assert list(found) == wanted


def test_csv_says_the_same_as_parquet(make_done: Callable[..., StudyFolder], tmp_path: Path) -> None:
    folder = make_done()
    assert (
        export_curves(folder, tmp_path / "c.csv", bins=8)
        == export_curves(folder, tmp_path / "c.parquet", bins=8)
        == (6, 64)
    )
    with (tmp_path / "c.csv").open() as file:
        rows = list(csv.DictReader(file))
    for row, wanted in zip(rows, pq.read_table(tmp_path / "c.parquet").to_pylist(), strict=True):
        numbers = {name: float(row[name]) for name in ("dt", "seed", "env_step", "seconds", "return")}
        assert {**row, **numbers} == wanted


@pytest.mark.parametrize("name", ["c.csv", "c.parquet"])
def test_a_folder_whose_name_is_not_utf_8_gets_the_same_table(
    make_done: Callable[..., StudyFolder], tmp_path: Path, name: str
) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    folder = make_done()
    for each in (odd, tmp_path):
        export_curves(folder, each / name)
    assert (odd / name).read_bytes() == (tmp_path / name).read_bytes()


def test_bins_are_the_paper_s(make_done: Callable[..., StudyFolder], tmp_path: Path) -> None:
    export_curves(make_done(seeds=2, rules=["baseline"], dts=["16ms"]), tmp_path / "c.parquet", bins=100)
    table = pq.read_table(tmp_path / "c.parquet")
    assert table.num_rows == 200
    assert table["env_step"].to_pylist()[:100] == list(range(48, 4801, 48))
    np.testing.assert_allclose(table["seconds"].to_numpy()[:100], np.arange(48, 4801, 48) * 0.002)
    assert {row["return"] for row in table.to_pylist() if row["seed"] == 1} == {1.0}


def test_hyper_parameters_that_vary_are_columns(make_done: Callable[..., StudyFolder], tmp_path: Path) -> None:
    tuned = {"dt": "16ms", "batch": [100, 200], "minibatch": 50, "discount": [0.9, 1]}
    folder = make_done(tuned=tuned, set={"hidden": [[8], [16, 16]]}, seeds=1, rules=["baseline"], dts=["16ms"])
    assert export_curves(folder, tmp_path / "c.parquet") == (8, 32)
    table = pq.read_table(tmp_path / "c.parquet")
    assert table.column_names == [*COLUMNS[:4], "batch", "discount", "hidden", *COLUMNS[4:]]
    found = {(row["batch"], row["discount"], row["hidden"]) for row in table.to_pylist()}
    assert found == {(b, d, h) for b in (100, 200) for d in (0.9, 1.0) for h in ("(8,)", "(16, 16)")}


def test_algorithms_without_a_hyper_parameter_have_none(make_done: Callable[..., StudyFolder], tmp_path: Path) -> None:
    folder = make_done(
        algorithm=["ppo", "actor-critic"],
        tuned={"ppo": {"dt": "16ms", "batch": [100, 200], "minibatch": 50}},
        seeds=1,
        dts=["16ms"],
        rules={"ppo": ["baseline"]},
    )
    export_curves(folder, tmp_path / "c.csv", bins=1)
    with (tmp_path / "c.csv").open() as file:
        rows = [(row["algorithm"], row["rule"], row["batch"]) for row in csv.DictReader(file)]
    assert sorted(rows) == [("actor-critic", "", ""), ("ppo", "baseline", "100"), ("ppo", "baseline", "200")]


def test_nothing_done_is_a_table_without_rows(make_done: Callable[..., StudyFolder], tmp_path: Path) -> None:
    assert export_curves(make_done(but=(0, 1)), tmp_path / "c.parquet") == (0, 0)
    assert pq.read_table(tmp_path / "c.parquet").column_names == COLUMNS


@pytest.mark.parametrize(
    ("name", "bins", "says"),
    [
        ("c.xlsx", None, "c.xlsx ends with '.xlsx': give a file that ends with .parquet or .csv."),
        ("c.csv", 0, "bins is 0: it must be from 1 to 1,000,000."),
        ("c.csv", 10**17, "bins is 100000000000000000: it must be from 1 to 1,000,000."),
    ],
)
def test_what_cannot_be_written_is_refused(
    make_done: Callable[..., StudyFolder], tmp_path: Path, name: str, bins: int | None, says: str
) -> None:
    with pytest.raises(InputError) as refusal:
        export_curves(make_done(), tmp_path / name, bins)
    assert str(refusal.value).endswith(says)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("bins", [None, 10])
def test_a_file_of_runs_that_is_damaged_is_named_and_no_table_written(
    make_done: Callable[..., StudyFolder], tmp_path: Path, bins: int | None
) -> None:
    folder = make_done()
    bad = folder.store.places[specs_of(folder)[0].name][0].path
    bad.write_bytes(bad.read_bytes()[:200])
    with pytest.raises(RunError, match=bad.name):
        export_curves(folder, tmp_path / "c.csv", bins)
    assert not list(tmp_path.glob("*.csv"))


def test_runs_that_are_kept_in_bins_have_no_episodes_to_export(
    make_folder: Callable[..., StudyFolder], tmp_path: Path
) -> None:
    folder = make_folder(rules=["baseline"], dts=["16ms"], seeds=1)
    run = finished(specs_of(folder)[0])
    folder.store.add([recomputed(run, curve=run.bins)])
    with pytest.raises(InputError, match="is kept in bins: export with --bins 100"):
        export_curves(folder, tmp_path / "c.csv")
    assert export_curves(folder, tmp_path / "c.csv", bins=100) == (1, 100)


def test_a_run_that_ended_no_episode_has_no_rows(make_folder: Callable[..., StudyFolder], tmp_path: Path) -> None:
    folder = make_folder(rules=["baseline"], dts=["16ms"], seeds=1)
    run = finished(specs_of(folder)[0])
    folder.store.add([recomputed(run, curve=Episodes.none())])
    assert export_curves(folder, tmp_path / "c.csv", bins=10) == (1, 0)


def test_points_are_columns(make_done: Callable[..., StudyFolder], tmp_path: Path) -> None:
    points = [{"batch": 100, "discount": 0.9}, {"batch": 200, "discount": 0.5}]
    folder = make_done(points=points, tuned={"dt": "16ms", "minibatch": 50}, rules=["baseline"], seeds=1, dts=["16ms"])
    assert export_curves(folder, tmp_path / "c.parquet", bins=1) == (2, 2)
    rows = pq.read_table(tmp_path / "c.parquet").to_pylist()
    assert sorted(({name: row[name] for name in ("batch", "discount")} for row in rows), key=str) == points
