import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.robots.judge import Judgement
from benchmarks.robots.rows import Rows
from benchmarks.robots.show import main, relative_scores, table_of
from benchmarks.robots.trial import read_trial

TASK = "CartpoleSwingup"


def row(dt_ms: float, arms: tuple[str, ...], seed: int, score: float | None, start: float = 1.0) -> dict[str, Any]:
    key = f"{TASK}/{dt_ms:g}ms/{arms[0]}/{seed}"
    return {"kind": "run", "uid": key, "key": key, "task": TASK, "dt_ms": dt_ms, "arm": arms[0], "arms": list(arms),
            "seed": seed, "score": score, "final": score, "start": start, "fallen": 0.25, "started": "1"}  # fmt: skip


BUDGET = {**row(10, ("shipped",), 1000, 9.0), "uid": "b", "key": "budget", "budget_intervals": 5}


def test_scores_are_relative_to_what_the_shipped_values_gain() -> None:
    rows = Rows([BUDGET, row(10, ("shipped",), 0, 3.0), row(10, ("shipped",), 1, 5.0),
                 row(4, ("kept", "episode-fifth"), 0, 2.5), row(4, ("horizons",), 0, None)])  # fmt: skip
    lines = [line.split() for line in table_of(Judgement(read_trial(), rows)).splitlines()]
    assert lines[0] == ["CartpoleSwingup,", "196,608", "simulated", "seconds", "a", "run"]
    # Untrained 1, shipped 4: a gain of 3. Kept gains 1.5, of that a half; what has diverged has gained nothing.
    assert ["4", "ms", "kept", "0", "0.50", "0.50", "25%"] in lines
    assert ["4", "ms", "episode-fifth", "0", "0.50", "0.50", "25%"] in lines
    assert ["4", "ms", "horizons", "0", "0.00", "0.00", "25%"] in lines
    assert ["10", "ms", "shipped", "0,", "1", "1.00", "1.00", "25%"] in lines


def test_a_cycle_time_without_runs_has_no_scores() -> None:
    judgement = Judgement(read_trial(), Rows([BUDGET, row(10, ("shipped",), 0, 3.0)]))
    assert relative_scores(judgement, TASK, 20, "kept") == []


def test_without_the_shipped_cycle_time_there_is_no_scale() -> None:
    text = table_of(Judgement(read_trial(), Rows([row(4, ("kept",), 0, 2.5)])))
    assert text.splitlines()[-1].split() == ["4", "ms", "kept", "0", "-", "-", "25%"]
    assert table_of(Judgement(read_trial(), Rows())) == "There are no runs yet."


def test_the_table_of_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["show", str(tmp_path)])
    assert main() == 1
    assert str(tmp_path / "rows.jsonl") in capsys.readouterr().err
    (tmp_path / "rows.jsonl").write_text(json.dumps(row(10, ("shipped",), 0, 3.0)) + "\n")
    assert main() == 0
    assert "shipped" in capsys.readouterr().out


def test_the_committed_results_have_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["show"])
    assert main() == 0
    assert "shipped" in capsys.readouterr().out
