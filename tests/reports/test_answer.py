from collections.abc import Callable, Mapping
from typing import Any

from cycletime.reports.report import Report
from cycletime.studies.study_folder import StudyFolder
from tests.reports.conftest import finished

MakeStudy = Callable[..., StudyFolder]


def by_dt(means: Mapping[str, float]) -> Callable[[Mapping[str, Any], int], float]:
    """Three seeds around a mean with a standard deviation of 1, the same for all rules."""
    return lambda labels, seed: means[str(labels["dt"])] + seed - 1


def test_what_is_decided_is_told_and_nothing_else(decided: StudyFolder) -> None:
    (answer,) = Report.of(decided).answers
    assert answer.best == (
        "The best cycle time of baseline is 16 ms with a mean of -22.0 ± 1.2 (n = 3); the runner-up is 32 ms, +19.0 "
        "(+16.5 to +21.5, 95 % paired t, n = 3): decided against all others.",
        "The best cycle time of dt-aware is 16 ms with a mean of -22.0 ± 1.2 (n = 3); the runner-up is 32 ms, +4.0 "
        "(-3.5 to +11.5, 95 % paired t, n = 3): not decided against 32 ms.",
    )
    assert answer.against == (
        "dt-aware is better than baseline at 32 ms; at 16 ms nothing changes.",
        "Over all cycle times, dt-aware minus baseline is +7.5 (+5.0 to +10.0, 95 % paired t, n = 3): better.",
    )
    first, rough = answer.undecided
    assert first.startswith(
        "16 ms against 32 ms with dt-aware: +4.0 (-3.5 to +11.5, 95 % paired t, n = 3), p = 0.15; about "
    )
    assert "rough estimates" in rough


def test_cycle_times_of_the_same_mean_are_equal(make_study: MakeStudy) -> None:
    means = {"16ms": 0.1 + 0.2, "32ms": 0.3, "64ms": -50.0}
    for dts, rest in ((["16ms", "32ms"], ""), (["16ms", "32ms", "64ms"], "")):
        (answer,) = Report.of(make_study(by_dt(means), rules=["baseline"], dts=dts)).answers
        assert answer.best == (
            f"The best cycle times of baseline are 16 ms and 32 ms, which are equal, with a mean of 0.30 ± 0.58 "
            f"(n = 3){rest}.",
        )


def test_a_study_is_read_by_its_path_too(decided: StudyFolder) -> None:
    assert Report.of(str(decided.path)).answers == Report.of(decided).answers


def test_runs_that_end_within_the_random_start_are_told(make_study: MakeStudy) -> None:
    report = Report.of(make_study(by_dt({"16ms": 0.0, "32ms": 0.0}), algorithm="sac", rules=["tuned"], tuned={}))
    assert report.completeness[1:] == (
        "reacher sac: the random start lasts 80,000 environment steps, so that the policy never acts.",
    )


def test_nothing_undecided_is_not_mentioned(make_study: MakeStudy) -> None:
    (answer,) = Report.of(make_study(by_dt({"16ms": 0.0, "32ms": -50.0}), rules=["baseline"])).answers
    assert answer.undecided == answer.against == ()


def test_an_undecided_rule_is_told_with_the_seeds_that_would_decide_it(make_study: MakeStudy) -> None:
    def score(labels: Mapping[str, Any], seed: int) -> float:
        return 1.0 + seed - 1 if labels["rule"] == "dt-aware" else 1.0 - seed

    (answer,) = Report.of(make_study(score, dts=["32ms"])).answers
    # Pairs whose differences have a standard deviation of 2 and a mean of 1, 80 % power: 34 in every textbook.
    assert answer.undecided[0] == (
        "dt-aware against baseline at 32 ms: +1.0 (-4.0 to +6.0, 95 % paired t, n = 3), p = 0.48; about 34 "
        "seeds would decide it, 31 more."
    )
    assert answer.against[0] == (
        "dt-aware is neither better nor worse than baseline at any cycle time as far as the data decide."
    )
    assert answer.against[1].endswith(": undecided.")


def test_a_worse_rule_and_undecided_cycle_times_are_told(make_study: MakeStudy) -> None:
    def score(labels: Mapping[str, Any], seed: int) -> float:
        worse = {"32ms": -60.0, "64ms": 0.1}[str(labels["dt"])]
        return worse - seed if labels["rule"] == "dt-aware" else seed - 2.0

    (answer,) = Report.of(make_study(score, dts=["32ms", "64ms"])).answers
    assert answer.against[0] == "dt-aware is worse than baseline at 32 ms; undecided at 64 ms."
    assert answer.against[1].endswith(": worse.")
    assert "so small a difference would take more than 1,000 seeds to decide" in answer.undecided[0]


def test_rules_that_share_runs_share_a_sentence_and_count_once(make_study: MakeStudy) -> None:
    # Below the cycle time that was tuned at, 'dt-aware' and 'constant' are the same.
    folder = make_study(
        lambda labels, seed: (seed - 1) * (-1.0) ** (labels["rule"] == "baseline"),
        dts=["8ms"],
        rules=["baseline", "dt-aware", "constant"],
    )
    (answer,) = Report.of(folder).answers
    assert len(answer.undecided) == 2
    assert answer.undecided[0].startswith("dt-aware and constant against baseline at 8 ms: +0.0 (-5.0 to +5.0, ")
    assert ", p = 1; " in answer.undecided[0]


def test_a_runner_up_that_is_decided_while_a_wild_third_is_not(make_study: MakeStudy) -> None:
    scores = {"16ms": [0.0, 0.1, 0.2], "32ms": [-5.0, -5.1, -5.2], "64ms": [-1.0, -90.0, 20.0]}
    folder = make_study(lambda labels, seed: scores[str(labels["dt"])][seed], dts=list(scores), rules=["baseline"])
    (answer,) = Report.of(folder).answers
    assert answer.best[0].endswith("decided against the runner-up, but not against 64 ms.")


def test_one_run_says_nothing_of_the_spread(make_study: MakeStudy) -> None:
    (answer,) = Report.of(make_study(by_dt({"16ms": 0.0, "32ms": -50.0}), seeds=1, rules=["baseline"])).answers
    assert answer.undecided[0] == (
        "16 ms against 32 ms with baseline: +50 (no interval from 1 run, n = 1); one run says nothing of "
        "the spread, so at least 2 seeds are needed."
    )


def test_a_single_cycle_time_is_not_called_the_best(make_study: MakeStudy) -> None:
    (answer,) = Report.of(make_study(by_dt({"16ms": 0.0}), dts=["16ms"], rules=["baseline"])).answers
    assert answer.best == ("Only 16 ms has scores of baseline: a mean of 0.00 ± 0.58 (n = 3).",)


def test_values_as_given_have_no_rule_to_speak_of(make_study: MakeStudy) -> None:
    keys: dict[str, Any] = {"algorithm": "actor-critic", "rules": [], "tuned": {"discount": 0.9}}
    report = Report.of(make_study(by_dt({"16ms": 0.0, "32ms": -50.0}), **keys))
    assert report.answers[0].best[0].startswith("The best cycle time is 16 ms with a mean of ")


def test_a_complete_study_says_so(decided: StudyFolder) -> None:
    assert Report.of(decided).completeness == ("All 9 runs have a score.",)


def test_an_incomplete_study_says_what_became_of_every_run(make_study: MakeStudy) -> None:
    comes = ["astray", "failed", None, -1.0, -2.0]
    report = Report.of(make_study(lambda labels, seed: comes[seed], seeds=5, dts=["16ms"]))
    assert report.completeness == (
        "2 of 5 runs have a score; the others: 1 not done yet, 1 failed and given up ('cycletime study status' says "
        "why) and 1 without a finite score, since learning diverged or no episode ended.",
        "The study is not complete: what follows is what there is so far.",
        "Runs without a score are left out of means, so that rules which have some look better than they are.",
    )


def test_files_of_runs_that_cannot_be_read_are_told_and_their_runs_are_not_done(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: 1.0 if seed else None, seeds=3, dts=["16ms"])
    (folder.path / "finished" / "0123.npz").write_bytes(b"PK torn")
    told = Report.of(StudyFolder.open(folder.path)).completeness
    assert told[0] == "2 of 3 runs have a score; the others: 1 not done yet."
    assert told[-1] == (
        f"{folder.path / 'finished' / '0123.npz'} is damaged (it is not what was written: its hash is another): its "
        "runs count as not done. Restore it; or 'cycletime study verify --repair' moves it away, and 'cycletime study "
        "run' trains its runs again."
    )


def test_runs_that_were_resumed_inexactly_are_counted(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: 1.0 if seed else None, rules=["baseline"], dts=["16ms"])
    (left,) = [run for run in Report.of(folder).scores.runs() if run.outcome == "unfinished"]
    folder.store.add([finished(left.spec, 1.0, remarks=("processor A then, B now",))])
    assert Report.of(folder).completeness == (
        "All 3 runs have a score.",
        "Stopped, and not resumed bit for bit: 1 of the runs (processor A then, B now).",
    )
