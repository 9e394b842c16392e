from __future__ import annotations

import os
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cycletime.duration import Duration
from cycletime.training.learning_curve import Episodes, read_curve, write_curve


def a_curve(lengths: list[int], returns: list[float], k: int = 3) -> Episodes:
    length_steps = np.array(lengths, np.int64)
    agent_steps = np.array([-(-each // k) for each in lengths], np.int64)
    return Episodes(length_steps.cumsum(), agent_steps.cumsum(), np.array(returns, np.float64), length_steps)


def assert_same(one: Episodes, other: Episodes) -> None:
    for each in fields(Episodes):
        a, b = getattr(one, each.name), getattr(other, each.name)
        assert (a.dtype, a.tobytes()) == (b.dtype, b.tobytes()), each.name


steps = st.integers(1, 2**31)
durations = st.one_of(
    st.sampled_from(["2ms", "10ms", "60Hz", "3/7s", "0.0142857142857", "0.12345678901234567s"]).map(Duration),
    st.integers(1, 10**9).map(lambda n: Duration(f"{n}us")),
)
episodes = st.lists(st.tuples(steps, st.floats(allow_subnormal=True)), max_size=20).map(
    lambda rows: a_curve([length for length, _ in rows], [each for _, each in rows])
)


@settings(max_examples=50)
@given(episodes, durations)
@example(a_curve([2**31, 7], [1.0, 2.0]), Duration("0.12345678901234567s"))  # more than 64 bits
def test_a_curve_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, curve: Episodes, env_dt: Duration
) -> None:
    path = tmp_path_factory.mktemp("run") / "curve.parquet"
    write_curve(path, curve, env_dt)
    assert_same(read_curve(path.read_bytes(), env_dt, len(curve)), curve)
    if len(curve):
        with pytest.raises(ValueError, match=f"it has {len(curve)} episodes, and {len(curve) - 1} are the most"):
            read_curve(path.read_bytes(), env_dt, len(curve) - 1)


@settings(max_examples=50)
@given(episodes, durations)
@example(a_curve([2**31, 7], [1.0, 2.0]), Duration("0.12345678901234567s"))  # more than 64 bits
def test_seconds_are_the_floats_nearest_to_the_exact_ones(
    tmp_path_factory: pytest.TempPathFactory, curve: Episodes, env_dt: Duration
) -> None:
    path = tmp_path_factory.mktemp("run") / "curve.parquet"
    write_curve(path, curve, env_dt)
    table = pq.read_table(path).to_pydict()
    for name, column in (("seconds", curve.env_steps), ("length_s", curve.length_steps)):
        assert table[name] == [float(Fraction(int(each)) * env_dt.exact_s) for each in column]


def test_the_columns_are_what_the_documentation_says(tmp_path: Path) -> None:
    write_curve(tmp_path / "curve.parquet", a_curve([6, 7], [1.5, -2.0]), Duration("10ms"))
    table = pq.read_table(tmp_path / "curve.parquet")
    assert {each.name: str(each.type) for each in table.schema} == {
        "env_steps": "int64",
        "agent_steps": "int64",
        "seconds": "double",
        "return": "double",
        "length_s": "double",
    }
    assert table.to_pylist() == [
        {"env_steps": 6, "agent_steps": 2, "seconds": 0.06, "return": 1.5, "length_s": 0.06},
        {"env_steps": 13, "agent_steps": 5, "seconds": 0.13, "return": -2.0, "length_s": 0.07},
    ]


def test_the_same_episodes_give_the_same_bytes_however_they_came_about(tmp_path: Path) -> None:
    whole = a_curve(list(range(1, 2000)), list(range(1, 2000)))
    pieces = Episodes.joined([whole.where(np.arange(len(whole)) < 700), whole.where(np.arange(len(whole)) >= 700)])
    for name, curve in (("one", whole), ("two", pieces)):
        write_curve(tmp_path / name, curve, Duration("2ms"))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_curve_without_episodes_is_a_table_without_rows(tmp_path: Path) -> None:
    write_curve(tmp_path / "curve.parquet", Episodes.none(), Duration("2ms"))
    assert pq.read_table(tmp_path / "curve.parquet").num_rows == 0
    assert_same(read_curve((tmp_path / "curve.parquet").read_bytes(), Duration("2ms"), 0), Episodes.none())


def test_a_folder_whose_name_is_not_utf_8_holds_a_curve(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    write_curve(folder / "curve.parquet", a_curve([5], [1.0]), Duration("2ms"))
    assert_same(read_curve((folder / "curve.parquet").read_bytes(), Duration("2ms"), 9), a_curve([5], [1.0]))


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more", b"x" * 1000])
def test_what_is_no_curve_is_told_of(content: bytes) -> None:
    with pytest.raises(ValueError, match="Parquet"):
        read_curve(content, Duration("2ms"), 9)
