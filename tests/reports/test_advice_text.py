"""Advice in sentences, of studies in virtual time."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cycletime.reports.advice_text import advice_sentences, advice_table, save_advice
from cycletime.studies.advice import Advice, read_advice
from tests.studies.virtual import VirtualTime, advised, asked, comparable, ms, scores


@pytest.fixture(autouse=True)
def _returns_compare() -> Iterator[None]:
    with comparable():
        yield


def told(path: Path, means: dict[int, float | None], **options: Any) -> tuple[Advice, str]:  # noqa: ANN401
    question = options.pop("question", asked())
    advice, _ = advised(question, path, scores(means), **options)
    return advice, "\n".join(advice_sentences(advice))


def test_a_decided_answer_names_the_values_and_the_gain(tmp_path: Path) -> None:
    advice, text = told(tmp_path, {8: 0.0, 16: 10.0, 32: 20.0})
    assert advice.gain is not None
    gain = advice.gain.difference
    assert text.startswith(
        "Use 32 ms instead of 16 ms, with batch 50, minibatch 25, discount 0.9801, trace_decay 0.9025 (rule dt-aware): "
        f"that gains {gain.value:+.3g} ({gain.low:+.3g} to {gain.high:+.3g}, n = 5 seeds) in mean return over "
        "learning in runs of 9.6 s of the environment's time.\n"
        "How sure: 32 ms is decided against 8 ms and 16 ms; all intervals and verdicts of all looks hold together with "
        "95 % confidence.\n"
        "That holds if single runs do not fail: of failures that happen once in five runs, 5 seeds show none in 33 % "
        "of studies; '--first-seeds 10' in a new folder looks at more.\n"
        "Surer: the comparison is decided; longer runs would tell whether it stays so.\n"
        "Real time: at 32 ms acting takes 1 % of the cycle here, and learning fits in the background"
    )
    assert "cycle times other than 8 ms, 16 ms and 32 ms (32 ms is the last on its side, so longer ones may" in text
    assert (
        "values tuned anew at each of them (the rule dt-aware carried those of 16 ms); runs longer than 9.6 s" in text
    )
    assert "a held action earned the same at every cycle time" in text
    nearly = replace(advice, in_time={**advice.in_time, ms(32): replace(advice.in_time[ms(32)], act_share=0.996)})
    assert "acting takes 100 % of the cycle here" in "\n".join(advice_sentences(nearly))


def test_an_open_answer_stays_and_says_what_would_decide(tmp_path: Path) -> None:
    _, text = told(tmp_path, {8: 0.0, 16: 20.0, 32: 20.3}, minutes=6)
    assert text.startswith("Stay at 16 ms for now, with batch 100,")
    assert "32 ms has the highest mean return over learning" in text
    assert "but the data do not decide that it is better." in text
    assert "is decided against 8 ms, not decided against 16 ms (+" in text
    assert "Surer: 17 seeds of 16 ms and 32 ms take" in text
    assert "the same command with more budget goes on.\nSeeds that would decide in 80 % of such studies" in text


def test_with_more_seeds_failures_would_have_been_seen(tmp_path: Path) -> None:
    _, text = told(tmp_path, {8: 0.0, 16: 20.0, 32: 0.0}, question=asked(first_seeds=10))
    assert "single runs" not in text


def test_to_stay_can_be_the_best(tmp_path: Path) -> None:
    _, text = told(tmp_path, {8: 0.0, 16: 20.0, 32: 0.0})
    assert text.startswith(
        "Stay at 16 ms, with batch 100, minibatch 50, discount 0.99, trace_decay 0.95 (rule dt-aware):"
    )
    assert "last on its side" not in text


def test_what_is_not_in_time_is_told(tmp_path: Path) -> None:
    late = VirtualTime(late=(ms(8), ms(16)))
    advice, text = told(tmp_path / "a", {16: 5.0, 32: 5.5}, time=late, minutes=5)
    assert "which the data do not decide; 16 ms is not in time on this machine." in text
    assert "Not tried: 8 ms (acting takes 250 % of the cycle here, and 20 % of it must stay free);" in text
    assert [row[:2] + row[-1:] for row in advice_table(advice)][1:3] == [
        ["8 ms", "no", "not tried"],
        ["16 ms", "no", "present"],
    ]
    _, alone = told(tmp_path / "b", {}, time=VirtualTime(late=(ms(8), ms(16), ms(32))))
    assert alone.startswith("Stay at 16 ms, with batch 100")
    assert "no other cycle time can be compared with it here." in alone
    assert "16 ms is not in time on this machine (acting takes 250 % of the cycle" in alone
    _, simulated = told(tmp_path / "c", {8: 0.0, 16: 1.0, 32: 20.0}, question=asked(real_time=False))
    assert "Whether this machine acts and learns in time was not measured." in simulated


def test_of_sac_it_is_told_that_shorter_cycles_learn_more_often(tmp_path: Path) -> None:
    means: dict[int, float | None] = {8: 0.0, 16: 1.0, 32: 20.0}
    carried = asked(algorithm="sac", values={"discount": 0.9}, rule="horizons")
    _, text = told(tmp_path / "a", means, question=carried)
    assert "as many updates a second at each of them (SAC made 125 at 8 ms, 62.5 at 16 ms and 62.5 at 32 ms);" in text
    assert (
        "Use 32 ms instead of 16 ms, with discount 0.846482, minibatch 256, updates_per_step 2 (rule horizons)" in text
    )
    kept = asked(algorithm="sac", values={"discount": 0.9})
    assert "(SAC made 125 at 8 ms, 62.5 at 16 ms and 31.2 at 32 ms);" in told(tmp_path / "c", means, question=kept)[1]
    assert "updates a second" not in told(tmp_path / "b", means)[1]


def test_runs_without_scores_are_told(tmp_path: Path) -> None:
    advice, text = told(tmp_path / "a", {8: 0.0, 16: 9.0, 32: None})
    assert "not compared with 32 ms (5 of 5 runs failed, diverged or ended no episode)" in text
    assert advice_table(advice)[3][2:] == ["5", "none", "", "5 of 5 runs failed, diverged or ended no episode"]
    _, without = told(tmp_path / "b", {8: 0.0, 16: None, 32: 9.0})
    assert "staying at 16 ms has no mean, since 5 of 5 runs failed" in without


def test_differences_that_do_not_matter_are_told(tmp_path: Path) -> None:
    _, text = told(tmp_path, {8: 5.0, 16: 5.0, 32: 5.0}, question=asked(enough=20.0))
    assert "no other can be better by more than 20;" in text


@pytest.mark.parametrize(
    ("answer", "words"), [(False, "Beware: a held action earned different"), (None, "could not be")]
)
def test_returns_that_may_not_compare_are_told(tmp_path: Path, answer: bool | None, words: str) -> None:
    with comparable(answer):
        assert words in told(tmp_path, {8: 0.0, 16: 1.0, 32: 20.0})[1]


def test_without_any_look_there_is_no_answer(tmp_path: Path) -> None:
    advice, _ = advised(asked(), tmp_path, scores({8: 0.0, 16: 1.0, 32: 2.0}), stop=lambda: True)
    assert advice_sentences(advice) == [
        "There is no answer yet: the first look is not done.",
        "It was stopped before 15 of its 15 runs: the same command goes on with them, about 2.92 min here and 0.04 h "
        "simulated.",
    ]
    assert advice.as_json()["advised"] is None


def test_the_file_has_the_answer_and_plain_numbers(tmp_path: Path) -> None:
    advice, _ = told(tmp_path, {8: 0.0, 16: 10.0, 32: 20.0})
    answer = save_advice(tmp_path, advice)
    kept = read_advice(tmp_path)
    assert kept is not None
    assert kept["answer"] == answer
    assert kept["advised"] == {"dt": "32ms", "dt_s": 0.032, "values": advice.values(ms(32))}
    assert [each["n"] for each in kept["candidates"]] == [5, 5, 5]
    assert kept["gain"]["decided"] is True
    assert kept["looks"] == [
        {"look": 1, "seeds": 5, "compared": ["8ms", "16ms", "32ms"], "dropped": {"8ms": "32ms", "16ms": "32ms"}}
    ]
    json.dumps(kept, allow_nan=False)
