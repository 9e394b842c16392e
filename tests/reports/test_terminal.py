import io
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console

from cycletime.reports.output import print_report
from cycletime.reports.report import Report
from cycletime.studies.study_folder import StudyFolder

MakeStudy = Callable[..., StudyFolder]


def printed(folder: StudyFolder, width: int = 100) -> str:
    out = io.StringIO()
    print_report(Report.of(folder), Console(file=out, width=width))
    return out.getvalue()


def test_a_table_has_a_row_for_each_cycle_time_and_the_average_last(decided: StudyFolder) -> None:
    rows = [line.split("│")[1:-1] for line in printed(decided).splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert cells[:2] == [
        ["16 ms", "-22.0 ± 1.2 (3)", "-22.0 ± 1.2 (3) same runs"],
        ["32 ms", "-41.00 ± 0.58 (3)", "-26.00 ± 0.58 (3) better"],
    ]
    assert cells[2][0] == "frequency-averaged"
    assert [cell.split(" ")[0] for cell in cells[2][1:]] == ["-31.5", "-24.0"]


def test_a_narrow_terminal_cuts_no_name_of_a_row(decided: StudyFolder) -> None:
    assert "│ frequency-averaged │" in printed(decided, width=60)


def test_one_cycle_time_has_no_average(make_study: MakeStudy) -> None:
    assert "frequency-averaged" not in printed(make_study(lambda labels, seed: 1.0, dts=["16ms"]))


def test_the_average_says_how_many_runs_it_rests_on(make_study: MakeStudy) -> None:
    def score(labels: Mapping[str, Any], seed: int) -> float | None:
        return None if labels["rule"] == "dt-aware" and seed == 2 else 1.0

    told = " ".join(printed(make_study(score, dts=["8ms", "32ms"]), width=200).split())
    assert "with a 95 % bootstrap interval (baseline: n = 3 + 3, dt-aware: n = 2 + 2)." in told


def test_cells_tell_what_became_of_runs(make_study: MakeStudy) -> None:
    comes = [1.0, 3.0, "astray", "failed", None]
    told = printed(make_study(lambda labels, seed: comes[seed], seeds=5, rules=["baseline"]))
    assert "2.0 ± 1.0 (2 of 5, 1 not finite, 1 failed)" in told


def test_text_stays_within_the_terminal(decided: StudyFolder) -> None:
    told = printed(decided, width=80)
    assert max(map(len, told.splitlines())) <= 80
    assert "Best cycle time\n  The best cycle time of baseline is 16 ms" in told


def test_few_runs_are_warned_of_and_many_are_not(make_study: MakeStudy) -> None:
    def score(labels: object, seed: int) -> float:
        return float(seed)

    assert "Fewer than 10 runs in a cell" in printed(make_study(score, seeds=9, dts=["16ms"]))
    assert "Fewer than 10 runs in a cell" not in printed(make_study(score, seeds=10, dts=["16ms"]))


def test_brackets_in_names_are_no_markup(make_study: MakeStudy) -> None:
    assert "[red]name" in printed(make_study(lambda labels, seed: 1.0, name="[red]name", seeds=1, dts=["16ms"]))
