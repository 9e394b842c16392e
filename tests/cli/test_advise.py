"""`cycletime advise` as people type it, in virtual time; and once, slowly, with runs of its own."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies import advice_search, executors
from cycletime.training import latency
from tests.studies.virtual import VirtualTime, comparable, scores

WORDS = ["--task", "reacher", "--tuned-at", "16ms", "--batch", "100", "--dts", "8ms", "32ms"]


@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualTime]:
    """Runs that are done at once, the longer the cycle the better."""
    time = VirtualTime()
    executor = time.executor(scores({8: 0.0, 16: 10.0, 32: 20.0, 64: 20.0}))
    monkeypatch.setattr(executors, "make_executor", lambda *_: executor)
    monkeypatch.setattr(advice_search, "MachineMeasurements", lambda tell: time.instruments())
    with comparable():
        yield time


@pytest.mark.usefixtures("virtual")
def test_the_answer_is_printed_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", *WORDS, "--env-steps", "4800", "--minutes", "10", "--out", str(tmp_path)]
    assert main(words) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[0].split() == ["cycle", "time", "in", "time", "here", "seeds", "mean", "return", "s.e."]
    assert lines[3].startswith("32 ms       background    5")
    assert lines[5].startswith("Use 32 ms instead of 16 ms, with batch 50, minibatch 25, discount 0.9801")
    assert lines[-1] == f"The study is in {tmp_path}: 'cycletime report {tmp_path}' tells more of it."
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == lines[5:-2]
    assert told["answer"] == json.loads((tmp_path / "advice.json").read_text())["answer"]


@pytest.mark.usefixtures("virtual")
def test_values_can_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text('[tuned.ppo]\ndt = "16ms"\nbatch = 400\n[set.ppo]\nhidden = [8]\n')
    words = ["--task", "reacher", "--tuned", str(file), "--minibatch", "20", "--dts", "32ms"]
    assert main(["advise", *words, "--minutes", "60", "--out", str(tmp_path / "out")]) == 0
    assert "with batch 200, minibatch 10," in capsys.readouterr().out
    kept = json.loads((tmp_path / "out" / "advice.json").read_text())["question"]
    assert (kept["values"], kept["others"]) == ({"batch": 400, "minibatch": 20}, {"hidden": [8]})
    assert kept["env_steps"] == 57_000  # 15 min for 5 runs of 10 s and 5 of 5 s, if they had 4,800


def test_who_stops_while_the_machine_is_measured_is_not_kept_waiting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bool:
        signal.raise_signal(signal.SIGINT)
        return True

    monkeypatch.setattr(advice_search, "returns_are_comparable", interrupted)
    monkeypatch.setattr(latency, "act_call", lambda *_: pytest.fail("it goes on"))
    assert main(["advise", *WORDS, "--minutes", "9", "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "cycletime: Interrupted."
    assert not (tmp_path / "out").exists()


def test_wrong_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], virtual: VirtualTime) -> None:
    out = ["--out", str(tmp_path / "out")]
    study = tmp_path / "study.toml"
    study.write_text(
        'name = "s"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "32ms"\nrules = ["scaled", "dt-aware"]\n'
        'env_steps = 20000\n[tuned]\ndt = "16ms"\nbatch = 500\n'
    )
    for words, sentence in (
        (["--study", str(study), "--minutes", "9"], "has the rules scaled, dt-aware: advice carries values by one, so"),
        ([*WORDS], "There is no budget: give --minutes or --simulated-hours."),
        ([*WORDS, "--minutes", "0"], "--minutes is 0: it must be a positive number."),
        ([*WORDS[2:], "--minutes", "9"], "Give either a task"),
        ([*WORDS[:2], "--minutes", "9"], "Give either --tuned-at, the present cycle time, or --tuned"),
        ([*WORDS, "--minutes", "9", "--measure", "best"], "'best' is not a measure: give one of average, last-tenth"),
        ([*WORDS, "--minutes", "9", "--rule", "magic"], "magic"),
        ([*WORDS, "--minutes", "9", "--algorithm", "actor-critic"], "No rule carries the values of actor-critic"),
        ([*WORDS[:-1], "7ms", "--minutes", "9"], "7ms is not a whole multiple of the environment time step 2ms"),
        ([*WORDS, "--minutes", "1", "--env-steps", "1e6"], "The first look, 15 runs of 1,000,000 environment steps"),
        (["--env", "Nothing-v0", *WORDS[2:], "--minutes", "9"], "'Nothing-v0' is not an environment"),
    ):
        assert main(["advise", *words, *out]) == 2, words
        err = capsys.readouterr().err.splitlines()[-1]
        assert sentence in err, words
    assert not (tmp_path / "out").exists()
    assert virtual.now_s == 1000.0


@pytest.mark.slow
def test_a_whole_answer_with_runs_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At 1.2 s an arm that moves for 2.4 s learns nothing; whoever asks again is answered without any run."""
    words = ["--task", "reacher", "--tuned-at", "16ms", "--batch", "200", "--dts", "1.2s", "--set", "hidden=8,8"]
    words += ["--env-steps", "400e3", "--simulated-hours", "20", "--out", str(tmp_path), "--workers", "2"]
    assert main(["advise", *words]) == 0
    first = capsys.readouterr().out
    assert first.splitlines()[1].startswith("16 ms")
    assert main(["advise", *words]) == 0
    assert capsys.readouterr().out == first
