"""`cycletime evaluate` as people type it."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from cycletime.cli import main
from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import names_of


@pytest.fixture
def run(quick: StudyFolder) -> str:
    return str(quick.runs / names_of(quick)[0])


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["evaluate", *words]) == 0
    return capsys.readouterr().out


def told(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(printed(capsys, *words, "--json"))
    return found


def test_mean_and_spread_are_those_of_the_returns(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = told(capsys, run, "--episodes", "6", "--seed", "3")
    returns = np.array(data["returns"])
    low, high = stats.t.interval(0.95, 5, returns.mean(), stats.sem(returns))
    assert len(set(returns)) == 6
    assert (data["mean"], data["standard_deviation"]) == pytest.approx((returns.mean(), returns.std(ddof=1)))
    assert (data["low"], data["high"], data["median"]) == pytest.approx((low, high, np.median(returns)))
    assert (data["dt_s"], data["trained_dt_s"], data["delay_s"], data["terminated"]) == (0.032, 0.032, 0.0, 0)
    text = printed(capsys, run, "--episodes", "6", "--seed", "3")
    assert text.startswith("reacher at 32ms: actions are the mean of a policy trained at 32ms for 6,400 environment")
    assert f"mean return {returns.mean():,.2f}, standard deviation {returns.std(ddof=1):,.2f}, 95 % t interval" in text
    assert "(n = 6 episodes, seeds 3 to 8)" in text
    assert "75.0 agent steps (2.40 s) on average, 0 of 6 terminated" in text


def test_episodes_are_those_that_watch_plays(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--episodes", "1", "--seed", "5"]
    assert main(["watch", run, "--to", str(tmp_path / "film.gif"), "--speed", "50", *words]) == 0
    watched = re.search(r"return (\S+),", capsys.readouterr().out)
    assert watched
    assert told(capsys, run, *words)["mean"] == pytest.approx(float(watched[1]), abs=0.02)


def test_another_cycle_time_and_late_actions_are_told(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, run, "--episodes", "1", "--dt", "64ms", "--delay", "20ms", "--sampled")
    assert text.startswith("reacher at 64ms with actions 20ms late: actions are sampled from a policy trained at 32ms")
    assert "no interval from 1 episode (n = 1 episode, seed 0)" in text


def test_wrong_input_is_one_sentence(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (
        ([run, "--dt", "5ms"], "The cycle time 5ms is not a whole multiple of the environment time step 2ms"),
        ([run, "--delay", "fast"], "fast"),
        ([run, "--episodes", "0"], "episodes is 0"),
        ([str(tmp_path)], "is not a run"),
        ([run, run], "takes one run"),
    ):
        assert main(["evaluate", *words]) == 2
        err = capsys.readouterr().err
        assert sentence in err
        assert err.count("\n") == 1
