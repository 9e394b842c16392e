"""`cycletime latency`: what it prints of given times, and, with a small agent, of this machine's own."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from math import isclose
from typing import Any

import jax
import pytest
import tyro
from tyro.conf import FlagCreatePairsOff

from cycletime import rules
from cycletime.agents import ActorCriticAgent, PPOAgent, SACAgent, agent_for
from cycletime.cli.machine import Latency
from cycletime.errors import InputError
from cycletime.training import latency
from cycletime.training.latency import CallTimes

ACT = CallTimes(first_s=1.5, median_s=50e-6, mean_s=60e-6, p99_s=1e-3, worst_s=4.25e-3, count=12345)
LEARN = CallTimes(first_s=12.0, median_s=6e-3, mean_s=6.4e-3, p99_s=7e-3, worst_s=0.1, count=77)
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Nothing is timed: acting takes ACT, and the n-th learning that is asked for n times LEARN; what was asked for."""
    asked: list[tuple[Any, ...]] = []

    def measure(arguments: tuple[Any, ...] | None, budget_s: float) -> CallTimes:
        if arguments is None:
            return ACT
        asked.append((*arguments, budget_s))
        times = len(asked)
        return replace(LEARN, p99_s=times * LEARN.p99_s, mean_s=times * LEARN.mean_s)

    monkeypatch.setattr(latency, "act_call", lambda *_: None)
    monkeypatch.setattr(latency, "learn_call", lambda *arguments, **_: arguments)
    monkeypatch.setattr(latency, "measure", measure)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 9.0, 9.0))
    monkeypatch.setenv("COLUMNS", "80")
    return asked


def parsed(words: str) -> Latency:
    return tyro.cli(Latency, args=words.split(), config=(FlagCreatePairsOff,))


def printed(capsys: pytest.CaptureFixture[str], words: str) -> str:
    assert parsed(words).run() == 0
    return capsys.readouterr().out


def printed_json(capsys: pytest.CaptureFixture[str], words: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(printed(capsys, f"{words} --json"))
    return data


def cells(out: str) -> list[list[str]]:
    """The rows of the tables, with the rule below each header as one cell."""
    return [re.split(r"  +", line) for line in out.splitlines() if re.search(r"\S  +\S|^---", line)]


def seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * UNITS[unit]


def share(text: str) -> float:
    found = re.search(r"([\d.]+) %", text)
    assert found
    return float(found[1]) / 100


def test_by_default_ppo_at_seven_cycle_times_by_the_rule(
    capsys: pytest.CaptureFixture[str], measured: list[tuple[Any, ...]]
) -> None:
    data = printed_json(capsys, "")
    dts = [2, 4, 8, 16, 32, 64, 128]
    carried = [rules.PPO(dt="16ms").at(f"{dt}ms") for dt in dts]
    assert [(each["dt_s"], each["shape"]["batch"], each["shape"]["minibatch"]) for each in data["dts"]] == [
        (dt / 1000, values.batch, values.minibatch) for dt, values in zip(dts, carried, strict=True)
    ]
    assert [each["period_steps"] for each in data["dts"]] == [values.batch for values in carried]
    assert measured == [(agent_for(values), 9, 2, 5.0) for values in carried]
    assert (data["margin"], data["episode_s"], data["reset_time_s"]) == (0.2, 4, 2)


def test_the_json_s_verdicts_are_those_of_the_times(
    capsys: pytest.CaptureFixture[str], measured: list[tuple[Any, ...]]
) -> None:
    data = printed_json(capsys, "--algorithm sac --dts 16ms 8ms --episode 8s --reset-time 7s --margin 0.25")
    assert len(measured) == 1  # at both cycle times SAC learns alike
    short, long = data["dts"]
    assert short["learn"]["p99_s"] == long["learn"]["p99_s"] == 7e-3
    assert long["inline"] == {"fits": True, "share": 0.5}
    assert long["between_episodes"] == {"fits": True, "share": pytest.approx(3.2006 / 7)}
    assert long["background"] == {"fits": True, "share": 0.4}
    assert (long["learnings_per_episode"], long["stale_cycles"]) == (500, 1)
    assert short["inline"] == {"fits": False, "share": 1.0}
    assert short["between_episodes"] == {"fits": True, "share": pytest.approx(6.4006 / 7)}
    assert short["background"] == {"fits": True, "share": 0.8}
    assert data["shortest_dt_s"] == {"inline": 0.016, "between_episodes": 0.008, "background": 0.008}


@pytest.mark.parametrize("words", ["--dts 4ms 16ms 32ms", "--algorithm sac --dts 1ms 8ms 64ms", "--margin 0"])
def test_the_tables_and_the_json_have_the_same_numbers(
    capsys: pytest.CaptureFixture[str], measured: list[tuple[Any, ...]], words: str
) -> None:
    out = printed(capsys, words)
    measured.clear()  # so that the same times are given again
    data = printed_json(capsys, words)
    rows = cells(out)
    second = next(at for at, row in enumerate(rows) if row[0] == "cycle")
    calls = {row[0]: row[1:] for row in rows[2:second]}
    times = [data["act"], *{json.dumps(each["shape"]): each["learn"] for each in data["dts"]}.values()]
    for (*spelled, count), each in zip(calls.values(), times, strict=True):
        exact = [each[name] for name in ("first_s", "median_s", "p99_s", "worst_s")]
        assert all(isclose(seconds(a), b, rel_tol=5e-3) for a, b in zip(spelled, exact, strict=True))
        assert int(count) == each["count"]
    judged = rows[second + 2 :]
    assert len(judged) == len(data["dts"])
    for row, each in zip(judged, data["dts"], strict=True):
        assert float(row[0].removesuffix("ms")) / 1000 == each["dt_s"]
        for cell, way in zip(row[2:5], ("inline", "between_episodes", "background"), strict=True):
            assert cell.startswith("yes, " if each[way]["fits"] else "no, ")
            exact_share = each["act"]["share"] if "act" in cell else each[way]["share"]
            assert isclose(share(cell), exact_share, rel_tol=0.06)
        assert int(row[5]) == each["stale_cycles"]
    assert f"JAX {jax.__version__} on {data['machine']['device']}" in out
    assert f"{data['machine']['cpu']}, {data['machine']['cores']} cores" in out


def test_the_advice_names_the_shortest_cycle_times(
    capsys: pytest.CaptureFixture[str], measured: list[tuple[Any, ...]]
) -> None:
    found, missing = "The shortest cycle time with room to learn: ", "None of these cycle times has room to learn "
    assert printed(capsys, "--algorithm sac --dts 1ms 8ms 16ms --episode 1s").splitlines()[-2:] == [
        "",
        f"{found}inline 16ms, between episodes 8ms, in the background 8ms.",
    ]
    assert printed(capsys, "--dts 2ms").splitlines()[-3:] == [
        "",
        f"{found}between episodes 2ms, in the background 2ms.",
        f"{missing}inline.",
    ]
    out = printed(capsys, "--dts 1ms")
    assert "no, act 100 %" in out
    assert out.splitlines()[-2:] == ["", f"{missing}inline or between episodes or in the background."]


@pytest.mark.parametrize(("load", "warned"), [(2.0, False), (2.1, True)])
def test_a_machine_that_was_busy_gets_a_warning(
    capsys: pytest.CaptureFixture[str],
    measured: list[tuple[Any, ...]],
    monkeypatch: pytest.MonkeyPatch,
    load: float,
    warned: bool,
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 5}, raising=False)
    out = printed(capsys, "--dts 2ms")
    assert " 4 cores;" in out
    assert ("The machine was busy before, with a load of 2.1: measure again." in out) == warned


def test_the_default_tables_fit_into_80_columns(
    capsys: pytest.CaptureFixture[str], measured: list[tuple[Any, ...]]
) -> None:
    rows = cells(out := printed(capsys, ""))
    assert len(rows) == 2 + 8 + 2 + 7
    assert max(len(line) for line in out.splitlines() if line.startswith("-")) <= 80


@pytest.mark.parametrize(
    ("words", "agent", "sizes"),
    [
        ("--task double-pendulum", PPOAgent(), (9, 1)),
        ("--observation-size 1e2 --action-size 7 --hidden 32 16", PPOAgent(hidden=(32, 16)), (100, 7)),
        ("--batch 400 --minibatch 20 --tuned-at 32ms", PPOAgent(batch=800, minibatch=40, discount=0.99), (9, 2)),
        ("--rule baseline --tuned-at 1ms", PPOAgent(), (9, 2)),
        ("--algorithm sac --minibatch 32", SACAgent(minibatch=32), (9, 2)),
        (
            "--algorithm sac --tuned-at 64ms --also updates-per-second --rule tuned",
            SACAgent(learning_period=4),
            (9, 2),
        ),
        ("--algorithm actor-critic --hidden 8", ActorCriticAgent(hidden=(8,)), (9, 2)),
    ],
)
def test_options_decide_who_is_measured(
    capsys: pytest.CaptureFixture[str],
    measured: list[tuple[Any, ...]],
    words: str,
    agent: PPOAgent | SACAgent | ActorCriticAgent,
    sizes: tuple[int, int],
) -> None:
    printed(capsys, f"{words} --dts 16ms --measure-for 20ms")
    assert measured == [(agent, *sizes, 0.02)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--task hopper", "'hopper' is not a task here: choose 'reacher', 'double-pendulum', 'pendulum', "),
        ("--observation-size 9", "--action-size is missing: give both sizes, or a --task, which has its own."),
        ("--observation-size 0 --action-size 2", "--observation-size is 0: it must be at least 1."),
        ("--task reacher --action-size 2", "--task reacher has sizes of its own: give the task"),
        ("--hidden 64 big", "--hidden 'big' is no layer's size: give whole numbers, such as --hidden 64 64."),
        ("--hidden 0", "--hidden '0' is no layer's size"),
        ("--dts", "--dts names no cycle time: give some, such as --dts 4ms 8ms."),
        ("--dts 4ms 0ms", "'0ms' is not a time span"),
        ("--dts 4ms -2ms", "'-2ms' is not a time span"),
        ("--margin 1.5", "margin is 1.5: it must be a part of the cycle, at least 0 and below 1."),
        ("--episode never", "'never' is not a time span"),
        ("--reset-time 0", "'0' is not a time span"),
        ("--measure-for 0s", "'0s' is not a time span"),
        ("--tuned-at fast", "'fast' is not a time span"),
        ("--rule magic", "Unknown rule 'magic' for ppo"),
        ("--also warm-up", "Unknown part 'warm-up' for ppo"),
        ("--minibatch 3000", "minibatch is 3000: it must be at most the batch, 2000."),
        ("--algorithm sac --batch 64", "--batch is 64: SAC has no batch, so leave it out."),
        ("--algorithm actor-critic --rule scaled", "--rule scaled is given: actor-critic has no such value"),
        ("--algorithm actor-critic --also warm-up", "--also warm-up is given: actor-critic has no such value"),
    ],
)
def test_wrong_input_is_one_sentence_before_anything_is_measured(
    measured: list[tuple[Any, ...]], words: str, sentence: str
) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        parsed(words).run()
    assert not measured


def test_words_that_are_no_numbers_are_refused_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    for words, sentence in (("--margin half", "is not a number"), ("--batch 1.5", "is not a whole number")):
        with pytest.raises(SystemExit) as left:
            parsed(words)
        assert left.value.code == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.usefixtures("compiled_quickly")
def test_a_small_agent_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    words: Sequence[str] = ("--algorithm actor-critic", "--hidden 4", "--dts 1s 2s", "--measure-for 1ms")
    data = printed_json(capsys, " ".join(words))
    assert data["act"]["count"] >= 5
    assert 0 < data["act"]["median_s"] <= data["act"]["worst_s"]
    assert data["dts"][0]["learn"] == data["dts"][1]["learn"]
    assert data["dts"][0]["inline"]["share"] == pytest.approx(2 * data["dts"][1]["inline"]["share"])
