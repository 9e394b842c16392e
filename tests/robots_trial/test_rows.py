import csv
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.robots.merge import merge, unpack_policies
from benchmarks.robots.rows import COLUMNS, csv_text, read_rows


def row(key: str, uid: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    task, dt, arm, seed = key.split("/")
    return {
        "kind": "run", "uid": uid, "key": key, "stage": "main", "task": task, "dt_ms": float(dt.removesuffix("ms")),
        "arm": arm, "arms": [arm, "horizons"], "seed": int(seed), "status": "finished", "score": 1.5, "final": 2.0,
        "simulated_s": 10.0, "wall_s": 3.0, "setup_s": 1.0, "intervals": 2, "started": f"2026-01-01T00:00:0{uid[-1]}",
        "versions": {"jax": "0.11.2"}, "curve": {"rate": [0.0, None, 2.0], "length": [1, 1, 1],
                                                 "env_steps": [0, 5, 10]},
        **more,
    }  # fmt: skip


def written(folder: Path, *records: dict[str, Any], tail: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "rows.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records) + tail)
    return folder


def test_merging_keeps_every_finished_run_once(tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = written(tmp_path / "a", row("T/8ms/dt-aware/0", "u1"), {"kind": "began", "key": "T/8ms/dt-aware/1"})
    merge([first], results)
    second = written(tmp_path / "b", row("T/8ms/dt-aware/0", "u1"), row("T/8ms/dt-aware/1", "u2"), tail='{"kind": "ru')
    rows = merge([second, first], results)
    assert [run["uid"] for run in rows.runs] == ["u1", "u2"]
    assert (results / "rows.jsonl").read_text().count("\n") == 2
    again = (results / "runs.csv").read_text()
    merge([first, second], results)
    assert (results / "runs.csv").read_text() == again
    with np.load(results / "curves.npz") as curves:
        assert curves["T/8ms/dt-aware/0#u1"].shape == (3, 3)
        assert np.isnan(curves["T/8ms/dt-aware/0#u1"][1, 1])


def test_a_run_that_was_trained_twice_has_two_lines(tmp_path: Path) -> None:
    rows = read_rows([written(tmp_path / "a", row("T/8ms/kept/0", "u2"), row("T/8ms/kept/0", "u1")) / "rows.jsonl"])
    lines = list(csv.DictReader(io.StringIO(csv_text(rows))))
    assert [(line["uid"], line["repeat"]) for line in lines] == [("u1", "0"), ("u2", "1")]
    assert tuple(lines[0]) == COLUMNS
    assert (lines[0]["versions"], lines[0]["also_counts_for"]) == ("jax=0.11.2", "horizons")


def test_rehearsals_and_results_are_not_mixed(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", row("T/8ms/kept/0", "u1", rehearsal=True), row("T/8ms/kept/1", "u2"))
    assert [run["uid"] for run in read_rows([folder / "rows.jsonl"]).runs] == ["u2"]
    assert [run["uid"] for run in read_rows([folder / "rows.jsonl"], rehearsal=True).runs] == ["u1"]


def test_what_was_begun_and_not_finished_is_told(tmp_path: Path) -> None:
    begun = [{"kind": "began", "key": "T/8ms/kept/0"}, {"kind": "evaluation", "key": "T/8ms/kept/0"}]
    rows = read_rows([written(tmp_path / "a", *begun) / "rows.jsonl"])
    assert rows.unfinished == {"T/8ms/kept/0": 1}
    rows.add({"kind": "failure", "key": "T/8ms/kept/0", "uid": "f1", "message": "out of memory"})
    assert (rows.unfinished, rows.failed("T/8ms/kept")) == ({}, 1)


def test_no_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No rows\.jsonl"):
        merge([tmp_path], tmp_path / "results")


def test_policies_are_taken_as_far_as_they_were_written(tmp_path: Path) -> None:
    archive = tmp_path / "policies.tar"
    for name in ("one.npz", "two.npz"):
        (tmp_path / name).write_bytes(name.encode() * 500)
        with tarfile.open(archive, "a") as opened:
            opened.add(tmp_path / name, arcname=name)
    assert unpack_policies(archive, tmp_path / "all") == 2
    archive.write_bytes(archive.read_bytes()[:6000])
    assert unpack_policies(archive, tmp_path / "some") == 1
    assert (tmp_path / "some" / "one.npz").read_bytes() == b"one.npz" * 500
