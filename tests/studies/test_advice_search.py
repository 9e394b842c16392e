"""Advice in virtual time: where it stops, what it spends, and that it survives kills."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError, RunError
from cycletime.reports.report import Report
from cycletime.studies.advice import read_advice, write_advice
from cycletime.studies.advice_search import Budget
from cycletime.studies.study_folder import StudyFolder
from tests.studies.toy_tuning import Killed
from tests.studies.virtual import ENV_STEPS, VirtualTime, advised, asked, comparable, ms, scores

PLAIN = scores({8: 0.0, 16: 10.0, 32: 20.0})
CLOSE = scores({8: 0.0, 16: 20.0, 32: 21.5})
EQUAL = scores({8: 5.0, 16: 5.0, 32: 5.0})


@pytest.fixture(autouse=True)
def _returns_compare() -> Iterator[None]:
    with comparable():
        yield


def seeds(executor: Any) -> dict[str, int]:  # noqa: ANN401
    return dict(Counter(str(spec.dt) for spec in executor.done))


def test_a_plain_answer_takes_one_look(tmp_path: Path) -> None:
    advice, executor = advised(asked(), tmp_path, PLAIN)
    assert seeds(executor) == {"8ms": 5, "16ms": 5, "32ms": 5}
    assert (advice.ended, advice.advised, advice.left) == ("decided", ms(32), (ms(32),))
    assert advice.gain is not None
    assert advice.gain.verdict == "better"
    assert advice.gain.difference.value == pytest.approx(10, abs=2)
    assert advice.values(ms(32)) == {"batch": 50, "minibatch": 25, "discount": 0.99**2, "trace_decay": 0.95**2}


def test_seeds_are_added_only_where_the_answer_is_open(tmp_path: Path) -> None:
    advice, executor = advised(asked(), tmp_path, CLOSE)
    done = seeds(executor)
    assert done["8ms"] == 5
    assert done["16ms"] == done["32ms"] > 8
    assert (advice.ended, advice.advised) == ("decided", ms(32))
    assert [each.look for each in advice.judgements] == list(range(1, len(advice.judgements) + 1))


def test_among_equals_the_budget_ends_it_and_one_stays(tmp_path: Path) -> None:
    time = VirtualTime()
    advice, executor = advised(asked(), tmp_path, EQUAL, time=time, minutes=5.5)
    assert time.now_s - 1000 <= 5.5 * 60
    assert seeds(executor) == {"8ms": 8, "16ms": 8, "32ms": 8}  # with 12 it would be 36 runs of 10 s
    assert (advice.ended, advice.advised, advice.left) == ("budget", ms(16), (ms(8), ms(16), ms(32)))
    assert advice.next is not None
    assert (advice.next.seeds, advice.next.runs) == (12, 12)
    assert advice.next.wall_s == pytest.approx(12 * 10, rel=0.3)


def test_runs_that_take_longer_than_expected_are_expected_to_go_on_so(tmp_path: Path) -> None:
    time = VirtualTime(run_s=20.0, expected_s=10.0)
    advice, executor = advised(asked(), tmp_path, EQUAL, time=time, minutes=7)
    assert seeds(executor) == {"8ms": 5, "16ms": 5, "32ms": 5}
    assert advice.next is not None
    assert advice.next.wall_s == pytest.approx(9 * 20, rel=0.3)
    assert time.now_s - 1000 <= 7 * 60


def test_simulated_hours_are_never_exceeded(tmp_path: Path) -> None:
    run_h = ENV_STEPS * 0.002 / 3600
    advice, executor = advised(asked(), tmp_path, EQUAL, minutes=None, hours=24 * run_h)
    assert len(executor.done) == 24
    assert advice.simulated_h == pytest.approx(24 * run_h)
    again, executor = advised(asked(), tmp_path, EQUAL, minutes=None, hours=35.9 * run_h)
    assert executor.done == []
    assert again.ended == "budget"


def test_a_killed_command_goes_on_to_the_same_answer(tmp_path: Path) -> None:
    whole, once = advised(asked(), tmp_path / "whole", CLOSE)
    for after in (3, 12, 7):  # within the first look, at its very end, and within another
        with pytest.raises(Killed):
            advised(asked(), tmp_path / "killed", CLOSE, kill_after=after)
    time = VirtualTime()
    advice, executor = advised(asked(), tmp_path / "killed", CLOSE, time=time, env_steps=None)
    assert len(executor.done) == len(once.done) - 22
    assert "in time" not in time.measured
    alike = {"wall_s": 0, "machine": {}}
    assert {**advice.as_json(), **alike} == {**whole.as_json(), **alike}


def test_who_asks_again_is_answered_at_once(tmp_path: Path) -> None:
    first, _ = advised(asked(), tmp_path, PLAIN)
    time = VirtualTime()
    again, executor = advised(asked(), tmp_path, PLAIN, time=time)
    assert (executor.done, time.measured) == ([], [])
    assert again.as_json()["candidates"] == first.as_json()["candidates"]


def test_more_budget_goes_on_where_less_ended(tmp_path: Path) -> None:
    whole, once = advised(asked(), tmp_path / "whole", CLOSE)
    first, some = advised(asked(), tmp_path / "parts", CLOSE, minutes=4)
    assert first.ended == "budget"
    advice, rest = advised(asked(), tmp_path / "parts", CLOSE)
    assert len(some.done) + len(rest.done) == len(once.done)
    assert advice.as_json()["looks"] == whole.as_json()["looks"]


def test_whoever_stops_it_finds_the_looks_that_are_done(tmp_path: Path) -> None:
    calls: list[bool] = []

    def stop() -> bool:
        calls.append(True)
        return (tmp_path / "advice.json").exists() and json.loads((tmp_path / "advice.json").read_text())["looks"] != []

    advice, executor = advised(asked(), tmp_path, EQUAL, stop=stop)
    assert advice.ended == "stopped"
    assert len(executor.done) == 15
    assert advice.leader is not None
    assert calls


def test_a_first_look_beyond_the_budget_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """With the budget, or the seeds, that it would take; runs take 20, 10 and 5 s."""
    told = r"The first look, 15 runs of 4,800 .* takes about 2.* min .* budget is 1\.6 min: give --minutes 3\.6, "
    with pytest.raises(InputError, match=rf"{told}--first-seeds 2, fewer --dts or fewer --env-steps\.$"):
        advised(asked(), tmp_path, PLAIN, minutes=1.6)
    with pytest.raises(InputError, match=r"give --minutes 3\.6, fewer --dts"):
        advised(asked(), tmp_path, PLAIN, minutes=0.5)
    with pytest.raises(InputError, match=r"0\.01 simulated hours: give --simulated-hours 0\.04, fewer --dts"):
        advised(asked(), tmp_path, PLAIN, minutes=None, hours=0.01)
    assert list(tmp_path.iterdir()) == []


def test_cycle_times_that_are_not_in_time_are_not_tried(tmp_path: Path) -> None:
    advice, executor = advised(asked(), tmp_path, scores({16: 0.0, 32: 9.0}), time=VirtualTime(late=(ms(8),)))
    assert seeds(executor) == {"16ms": 5, "32ms": 5}
    assert advice.not_tried == {"8ms": "acting takes 250 % of the cycle here, and 20 % of it must stay free"}
    assert advice.in_time[ms(8)].fits is False


def test_the_present_one_is_the_reference_though_it_is_late_and_then_not_advised(tmp_path: Path) -> None:
    late = VirtualTime(late=(ms(8), ms(16)))
    advice, _ = advised(asked(), tmp_path, scores({16: 5.0, 32: 5.5}), time=late, minutes=5)
    assert advice.tried == (ms(16), ms(32))
    assert advice.ended == "budget"
    assert advice.advised == ms(32)


def test_for_simulation_alone_nothing_is_timed(tmp_path: Path) -> None:
    time = VirtualTime(late=(ms(8),))
    advice, _ = advised(asked(real_time=False), tmp_path, PLAIN, time=time)
    assert time.measured == ["costs"]
    assert (advice.in_time, advice.tried) == ({}, (ms(8), ms(16), ms(32)))


def test_where_there_is_nothing_to_compare_nothing_is_run(tmp_path: Path) -> None:
    advice, executor = advised(asked(), tmp_path, PLAIN, time=VirtualTime(late=(ms(8), ms(32))))
    assert (advice.ended, advice.advised, executor.done) == ("alone", ms(16), [])


def test_candidates_whose_runs_go_astray_are_out(tmp_path: Path) -> None:
    advice, executor = advised(asked(), tmp_path, scores({8: 0.0, 16: 3.0, 32: None}))
    assert advice.without_mean == {ms(32): "5 of 5 runs failed, diverged or ended no episode"}
    assert advice.advised == ms(16)
    assert seeds(executor)["32ms"] == 5
    without_present, _ = advised(asked(), tmp_path / "b", scores({8: 0.0, 16: None, 32: 9.0}))
    assert (without_present.advised, without_present.gain) == (ms(32), None)
    with pytest.raises(RunError, match="No candidate has a mean; at 8ms 5 of 5 runs failed"):
        advised(asked(), tmp_path / "c", scores({8: None, 16: None, 32: None}))


def test_differences_that_do_not_matter_end_it(tmp_path: Path) -> None:
    advice, executor = advised(asked(enough=20.0), tmp_path, EQUAL)
    assert (advice.ended, len(executor.done)) == ("enough", 15)


def test_the_length_of_runs_follows_from_the_budget(tmp_path: Path) -> None:
    """A quarter of the budget for 15 runs, of which those at 8 ms have twice the agent steps of those at 16 ms."""
    advice, _ = advised(asked(), tmp_path / "a", PLAIN, minutes=40, env_steps=None)
    expected = 0.25 * 40 * 60 / (5 * (2 + 1 + 0.5) * 10.0) * ENV_STEPS
    assert advice.question.env_steps == pytest.approx(expected, rel=0.1)
    hours, _ = advised(asked(), tmp_path / "b", PLAIN, minutes=None, hours=2.0, env_steps=None)
    assert hours.question.env_steps == 60_000  # 0.5 h / 15 / 2 ms
    with pytest.raises(InputError, match="learning needs at least 8,000: give a larger budget"):
        advised(asked(), tmp_path / "c", PLAIN, minutes=1, env_steps=None)
    assert not (tmp_path / "c").exists()


def test_a_folder_answers_one_question(tmp_path: Path) -> None:
    advised(asked(), tmp_path, PLAIN)
    for other, words in (
        (asked(values={"batch": 200}), "values {'batch': 100} instead of {'batch': 200}"),
        (asked(confidence=0.9), "confidence 0.95 instead of 0.9"),
    ):
        with pytest.raises(InputError, match="holds the answer to another question") as caught:
            advised(other, tmp_path, PLAIN)
        assert words in str(caught.value)
    with pytest.raises(InputError, match="env_steps 4800 instead of 6000"):
        advised(asked(), tmp_path, PLAIN, env_steps=6000)


def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"has other things in it, such as 'notes\.txt': give a new folder or"):
        advised(asked(), tmp_path, PLAIN)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_is_damaged_is_told_and_runs_stay(tmp_path: Path) -> None:
    advised(asked(), tmp_path, PLAIN)
    file = tmp_path / "advice.json"
    file.write_text(file.read_text().replace("0.95", "0.90"))
    with pytest.raises(InputError, match=r"advice.json cannot be read: .* runs stay"):
        advised(asked(), tmp_path, PLAIN)
    file.unlink()
    with pytest.raises(InputError, match=r"holds a study without advice\.json"):
        advised(asked(), tmp_path, PLAIN)
    write_advice(tmp_path, {"format": 99})
    with pytest.raises(InputError, match="has the format 99"):
        read_advice(tmp_path)


def test_what_is_left_is_a_study_like_any_other(tmp_path: Path) -> None:
    advised(asked(), tmp_path, CLOSE)
    folder = StudyFolder.open(tmp_path)
    assert folder.study.dts == (ms(8), ms(16), ms(32))
    (panel,) = Report.of(folder).scores.panels
    counts = {str(dt): len(panel.scores("dt-aware", dt)) for dt in panel.dts}
    assert counts["8ms"] == 5
    assert counts["32ms"] == len(folder.study.seeds)


def test_a_present_cycle_time_that_is_no_multiple_is_refused(tmp_path: Path) -> None:
    for question in (asked(dts=(ms(15),)), asked(dts=(ms(7),))):
        with pytest.raises(InputError, match="not a whole multiple of the environment time step 2ms"):
            advised(question, tmp_path, PLAIN)
    with pytest.raises(InputError, match="no episode of reacher ends before 1,200"):
        advised(asked(), tmp_path, PLAIN, env_steps=1000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("amounts", [{}, {"wall_s": 0.0}, {"simulated_h": float("nan")}, {"wall_s": -60.0}])
def test_a_budget_is_a_positive_number(amounts: dict[str, float]) -> None:
    with pytest.raises(InputError, match=r"budget|positive"):
        Budget(**amounts)
