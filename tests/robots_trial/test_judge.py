from typing import Any

import pytest

from benchmarks.robots.judge import Judgement, detectable, verdict_of
from benchmarks.robots.rows import Rows
from benchmarks.robots.trial import HERE, read_trial

TRIAL = read_trial()


def rows_of(scores: dict[str, float], tasks: int = 10, noise: float = 0.02) -> Rows:
    """Runs of the first tasks with two seeds, whose arms have these normalised scores, each a little off."""
    rows = Rows()
    for index, (name, task) in enumerate(list(TRIAL.tasks.items())[:tasks]):
        off = noise * (index % 3 - 1)
        cells: dict[float, dict[tuple[str, ...], float]] = {task.own_ms: {("shipped",): 1.0}}
        cells[task.cycle_times_ms[0]] = {
            (arm,): scores[arm] + i * off for i, arm in enumerate(("kept", "dt-aware", "horizons"))
        }
        cells[task.cycle_times_ms[2]] = {("kept",): scores["long kept"] - off, ("dt-aware", "horizons"): scores["long"]}
        for dt_ms, arms in cells.items():
            for names, score in arms.items():
                for seed in (0, 1):
                    rows.add(row(name, dt_ms, names, seed, 3.0 + 2 * score))
    return rows


def row(task: str, dt_ms: float, arms: tuple[str, ...], seed: int, value: float | None) -> dict[str, Any]:
    key = f"{task}/{dt_ms:g}ms/{arms[0]}/{seed}"
    return {"kind": "run", "uid": key, "key": key, "task": task, "dt_ms": dt_ms, "arm": arms[0], "arms": list(arms),
            "seed": seed, "score": value, "final": value, "start": 3.0, "final_fallen": 0.1,
            "started": "1"}  # fmt: skip


BETTER = {"kept": 0.5, "dt-aware": 0.7, "horizons": 0.9, "long kept": 0.6, "long": 0.9}


def test_scores_are_relative_to_the_shipped_cycle_time() -> None:
    judgement = Judgement(TRIAL, rows_of(BETTER, noise=0))
    assert judgement.normalised("CartpoleSwingup", "shorter", "kept") == pytest.approx(0.5)
    assert judgement.normalised("CartpoleSwingup", "longer", "horizons") == pytest.approx(0.9)


def test_horizons_become_the_default_if_they_are_better() -> None:
    judgement = Judgement(TRIAL, rows_of(BETTER))
    assert list(judgement.objections()) == []
    assert judgement.recommended() == {"shorter": "horizons", "longer": "horizons"}
    assert {verdict_of(each) for each in judgement.primary().values()} == {"better"}


def test_the_default_stays_without_a_difference_or_with_few_tasks() -> None:
    same = Judgement(TRIAL, rows_of({**BETTER, "horizons": 0.7}))
    assert same.recommended()["shorter"] == "dt-aware"
    assert verdict_of(same.primary()["horizons - dt-aware, shorter"]) == "equal for practical purposes"
    few = Judgement(TRIAL, rows_of(BETTER, tasks=7))
    assert [text[:13] for text in few.objections()] == ["7 tasks count"]
    assert few.recommended()["shorter"] == "dt-aware"


def test_keeping_everything_is_recommended_where_it_is_better() -> None:
    kept = Judgement(TRIAL, rows_of({**BETTER, "kept": 1.1, "long kept": 1.0}))
    assert kept.recommended() == {"shorter": "baseline", "longer": "baseline"}


def test_the_page_says_which_differences_can_be_found() -> None:
    page = (HERE.parent.parent / "docs" / "robots-trial.md").read_text()
    for tasks in (8, 12, 15, 17):
        assert f"| {tasks} | {detectable(tasks, 0.05):.2f} | {detectable(tasks, 0.05 / 4):.2f} |" in page


def test_the_page_has_all_tasks_with_their_cycle_times() -> None:
    page = (HERE.parent.parent / "docs" / "robots-trial.md").read_text()
    for task in TRIAL.tasks.values():
        times = ", ".join(f"{dt_ms:g}" for dt_ms in task.cycle_times_ms)
        line = next(line for line in page.splitlines() if line.startswith(f"| {task.name} |"))
        assert f"| {times} ms | {task.sim_dt_ms:g} ms" in line
        assert ("increments" in line, "kicks" in line) == (task.increments, bool(task.step_ranges))


def test_falls_speak_against_it() -> None:
    rows = rows_of(BETTER)
    for index, each in enumerate(rows.runs):
        if each["arm"] == "horizons":
            each["final_fallen"] = 0.5 + 0.001 * index
    assert list(Judgement(TRIAL, rows).objections()) == ["robots fall more often than with dt-aware"]


def test_a_run_without_a_score_counts_as_untrained_and_a_wild_one_is_cut_off() -> None:
    rows = rows_of(BETTER, noise=0)
    for each in rows.runs:
        if each["key"].startswith("CartpoleSwingup/4ms/kept"):
            each["score"] = None if each["seed"] == 0 else -1000.0
    judgement = Judgement(TRIAL, rows)
    assert judgement.normalised("CartpoleSwingup", "shorter", "kept") == pytest.approx(-0.5)
