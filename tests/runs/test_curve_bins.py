"""Curves that are kept in bins."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from cycletime.duration import Duration
from cycletime.errors import RunError
from cycletime.loops import EpisodeBins, Episodes
from cycletime.runs.curve import env_dt_s_of, is_binned, read_any_curve, read_curve, write_bins, write_curve
from cycletime.runs.result import performance

ENDS = np.array([3, 9, 10, 500, 777], np.int64)
CURVE = Episodes(ENDS, ENDS * 2, np.array([0.1, 0.7, 1e9, -3.3, 0.2]), np.diff(ENDS, prepend=0))
BINS = EpisodeBins.none(1000).plus(CURVE)
ENV_DT = Duration("2ms")


def test_bins_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "curve.parquet"
    write_bins(path, BINS, ENV_DT)
    back = read_any_curve(path, ENV_DT)
    assert isinstance(back, EpisodeBins)
    assert back.budget == 1000
    for name in ("counts", "sums", "env_steps", "agent_steps"):
        assert getattr(back, name).tobytes() == getattr(BINS, name).tobytes(), name
    assert performance(back, 1000)["average_return"] == performance(CURVE, 1000)["average_return"]
    assert performance(back, 1000)["mean_over_episodes"] == pytest.approx(CURVE.mean_return)


def test_a_row_stands_for_the_episodes_of_a_bin(tmp_path: Path) -> None:
    path = tmp_path / "curve.parquet"
    write_bins(path, BINS, ENV_DT)
    rows = pq.read_table(path).to_pylist()
    assert [(row["env_steps"], row["episodes"]) for row in rows] == [(10, 3), (500, 1), (777, 1)]
    assert rows[0]["return"] == pytest.approx((0.1 + 0.7 + 1e9) / 3)
    assert rows[1] == {
        "env_steps": 500,
        "agent_steps": 1000,
        "seconds": 1.0,
        "return": -3.3,
        "length_s": pytest.approx(0.98),
        "episodes": 1,
        "return_sum": -3.3,
    }
    assert env_dt_s_of(path) == pytest.approx(0.002)


def test_who_needs_episodes_is_told_that_there_are_none(tmp_path: Path) -> None:
    path = tmp_path / "curve.parquet"
    write_bins(path, BINS, ENV_DT)
    assert is_binned(path)
    with pytest.raises(RunError, match=r"parquet is kept in bins: its episodes are not known\.$"):
        read_curve(path, ENV_DT)


def test_a_curve_of_episodes_is_read_as_such(tmp_path: Path) -> None:
    path = tmp_path / "curve.parquet"
    write_curve(path, CURVE, ENV_DT)
    assert not is_binned(path)
    assert isinstance(read_any_curve(path, ENV_DT), Episodes)
    path.write_bytes(b"x")
    with pytest.raises(RunError, match="cannot be read as a learning curve"):
        read_any_curve(path, ENV_DT)


def test_bins_without_episodes_are_a_table_without_rows(tmp_path: Path) -> None:
    write_bins(tmp_path / "curve.parquet", EpisodeBins.none(1000), ENV_DT)
    assert len(read_any_curve(tmp_path / "curve.parquet", ENV_DT)) == 0
