"""Curves that trainers write, read while they are written; TensorBoard's own writer is the truth for its files."""

from __future__ import annotations

import sys
from math import isnan
from pathlib import Path

import pytest

from cycletime.errors import InputError, RunError
from cycletime.trainers import curves
from cycletime.trainers.curves import CurvePoint, CurveReader


def reader_of(folder: Path, curve: str = "progress.csv", **columns: str) -> CurveReader:
    return CurveReader(folder, curve, dt_s=0.02, columns=columns)


def test_lines_are_read_once_they_are_whole(tmp_path: Path) -> None:
    reader, file = reader_of(tmp_path), tmp_path / "progress.csv"
    assert reader.new_points() == []
    file.write_text("seconds,return\n2,-5\n4,-")
    assert reader.new_points() == [CurvePoint(2.0, 100, -5.0)]
    with file.open("a") as more:
        more.write("3.5\n")
    assert reader.new_points() == [CurvePoint(4.0, 200, -3.5)]


def test_columns_have_other_names(tmp_path: Path) -> None:
    (tmp_path / "progress.csv").write_text("time/steps,loss,reward\n50,1,\n100,1,7\n")
    assert reader_of(tmp_path, agent_steps="time/steps", **{"return": "reward"}).new_points() == [
        CurvePoint(2.0, 100, 7.0)
    ]


def test_json_lines_may_tell_other_things(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"loss": 1}\n{"seconds": 1, "return": NaN}\n')
    (point,) = reader_of(tmp_path, "log.jsonl").new_points()
    assert point[:2] == (1.0, 50)
    assert isnan(point.mean_return)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("step,reward\n1,2\n", "it needs return, seconds"),
        ("seconds,return\n1,abc\n", "Line 2 of progress.csv has 'abc' as return: it must be a number"),
        ("seconds,return\n1\n", "has 1 columns, and the first one has 2"),
        ("seconds,return\n-1,2\n", "both must be 0 or more"),
        ("seconds,return\nnan,2\n", "both must be 0 or more"),
    ],
)
def test_wrong_lines_are_refused_in_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "progress.csv").write_text(text)
    with pytest.raises(RunError, match=says):
        reader_of(tmp_path).new_points()


def write_events(folder: Path, *scalars: tuple[int, str, float]) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    for step, tag, value in scalars:
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(wall_time=1.0, step=step, summary=summary))
    writer.close()


@pytest.mark.parametrize(
    ("tag", "agent_steps"),
    [
        ("rollout/ep_rew_mean", 10),
        ("Train/mean_reward", 11 * 96),  # rsl_rl's iterations count from 0
        ("Reward / Total reward (mean)", 10 * 4),
    ],
)
def test_what_a_step_counts_follows_from_the_tag(tmp_path: Path, tag: str, agent_steps: int) -> None:
    write_events(tmp_path, (10, tag, 5.0))
    reader = CurveReader(tmp_path, "tensorboard", dt_s=0.02, num_envs=4, update_steps=96)
    assert reader.new_points() == [CurvePoint(agent_steps * 0.02, agent_steps, 5.0)]


def test_event_files_as_tensorboard_writes_them(tmp_path: Path) -> None:
    write_events(
        tmp_path / "runs" / "a",
        (64, "charts/SPS", 9.0),
        (300, "charts/episodic_return", -1.5),
        (2**33, "charts/x", 1.0),
    )
    reader = reader_of(tmp_path, "tensorboard")
    assert reader.new_points() == [CurvePoint(6.0, 300, -1.5)]
    assert reader.tags == {"charts/SPS", "charts/episodic_return", "charts/x"}
    (file,) = tmp_path.rglob("events*")
    torn = file.read_bytes()[:-3]
    file.write_bytes(torn)
    reader = reader_of(tmp_path, "tensorboard", **{"return": "charts/x"})
    assert reader.new_points() == []  # the last record is not whole


def test_without_tensorboard_its_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_events(tmp_path, (300, "charts/episodic_return", -1.5))
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(InputError, match=r"^TensorBoard is not installed: pip install 'cycletime\[tensorboard\]'\.$"):
        reader_of(tmp_path, "tensorboard").new_points()


def test_a_damaged_record_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_events(tmp_path, (300, "charts/episodic_return", -1.5))
    (file,) = tmp_path.rglob("events*")
    whole = file.read_bytes()
    file.write_bytes(whole[:12] + b"\xff" * 12 + whole[24:])
    with pytest.raises(RunError, match=r"^events\..* is damaged: "):
        reader_of(tmp_path, "tensorboard").new_points()
    file.write_bytes(whole + (2**40).to_bytes(8, "little") + b"much less")
    with pytest.raises(RunError, match=r"has a record of 1,099,511,627,776 bytes: it is damaged\.$"):
        reader_of(tmp_path, "tensorboard").new_points()
    (tmp_path / "progress.csv").write_text("return, seconds and no end")
    monkeypatch.setattr(curves, "MOST_BYTES", 16)
    with pytest.raises(RunError, match=r"^progress\.csv has a line of more than 16 bytes: it is damaged\.$"):
        reader_of(tmp_path, "progress.csv").new_points()
