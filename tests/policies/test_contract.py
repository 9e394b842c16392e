"""The timing contract: what files say of a policy's loop, and that loops at another rate are refused."""

import json
import re
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from safetensors import safe_open

from cycletime.agents.numpy_policy import NumpyPolicy
from cycletime.cli import main
from cycletime.policies.export import export_numpy, export_onnx
from cycletime.tasks.delays import ActionDelay, RealTime
from cycletime.training.engine import make_batch
from cycletime.training.make_specs import make_specs
from cycletime.training.policy_file import read_policy, write_policy
from cycletime.training.run_folder import RunFolder
from tests.policies.conftest import spec_of, trained
from tests.training.runs.finished import save_checkpoint

CONTRACT: dict[str, Any] = {
    "timing": [
        {"kind": "action delay", "steps": [2, 4], "step_s": 0.01, "seconds": [0.02, 0.04], "drawn": "each step"}
    ],
    "observation": ["angle", "speed", "action[0] 1 step ago"],
    "unknown_wrappers": [],
}
POLICY = replace(trained().saved, contract=CONTRACT)
OLD_RUN = Path(__file__).parents[1] / "goldens/data/folders/finished/reacher-ppo-16ms-seed0-9772da9db0"
PAGE = Path(__file__).parents[2] / "docs" / "timing-contract.md"


def test_onnxruntime_alone_reads_it(tmp_path: Path) -> None:
    export_onnx(POLICY, tmp_path / "policy.onnx")
    session = import_module("onnxruntime").InferenceSession(tmp_path / "policy.onnx")
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["contract"]) == CONTRACT
    assert float(about["dt_s"]) == 0.016


def test_the_numpy_policy_and_the_run_s_file_have_it(tmp_path: Path) -> None:
    export_numpy(POLICY, tmp_path)
    assert NumpyPolicy.load(tmp_path / "policy.npz").contract == CONTRACT
    write_policy(tmp_path / "policy.safetensors", POLICY)
    assert read_policy(tmp_path / "policy.safetensors").contract == CONTRACT
    with safe_open(tmp_path / "policy.safetensors", "numpy") as file:
        assert json.loads(file.metadata()["cycletime"])["contract"] == CONTRACT


def make_late(**keywords: Any) -> gymnasium.Env[Any, Any]:  # noqa: ANN401
    return RealTime(ActionDelay(gymnasium.make("Pendulum-v1", **keywords), ("0s", "100ms")), history="100ms")


def test_a_training_with_delays_keeps_them() -> None:
    gymnasium.register("LateForContract-v0", entry_point=make_late, max_episode_steps=20)
    try:
        (spec,) = make_specs(env="LateForContract-v0", dt="100ms", env_steps=200)
        (info,) = make_batch([spec]).env_infos
    finally:
        del gymnasium.registry["LateForContract-v0"]
    assert info.contract is not None
    kinds = {each["kind"]: each for each in info.contract["timing"] if each["seconds"] != [0.05, 0.05]}
    assert kinds["action delay"]["seconds"] == [0, 0.1]
    assert kinds["action delay"]["steps"] == [0, 2]
    assert kinds["action history"]["seconds"] == [0.1, 0.1]
    assert info.contract["observation"][-2:] == ["action[0] 2 steps ago", "action[0] 1 step ago"]
    assert info.contract["unknown_wrappers"] == []


def test_export_says_what_the_loop_must_keep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder.create(tmp_path / "runs", spec_of())
    save_checkpoint(folder, POLICY)
    assert main(["export", str(folder.path), "--to", "onnx"]) == 0
    printed = capsys.readouterr().out
    assert "contract: action delay of 20 ms to 40 ms (2 to 4 steps of 10 ms)\n" in printed
    assert "observed: angle, speed, action[0] 1 step ago\n" in printed


def test_a_policy_of_an_earlier_version_is_read_and_said_to_have_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_policy(OLD_RUN / "policy.safetensors").contract is None
    assert main(["export", str(OLD_RUN), "--to", "numpy", "--out", str(tmp_path)]) == 0
    assert "\ncontract: the rate alone, since an earlier version trained it" in capsys.readouterr().out
    policy = NumpyPolicy.load(tmp_path / "policy.npz")
    assert policy.contract is None
    policy.check_rate(0.016)
    with pytest.raises(ValueError, match=r"trained at 16 ms"):
        policy.check_rate(0.02)


def changed(**parts: Any) -> dict[str, Any]:  # noqa: ANN401
    return {**CONTRACT, **parts}


ENTRY = CONTRACT["timing"][0]


@pytest.mark.parametrize(
    "wrong",
    [
        "none",
        [],
        {},
        changed(observation=["angle", "speed"]),
        changed(observation=["angle", "speed", 3]),
        changed(timing=[{}]),
        changed(timing=[{**ENTRY, "seconds": [0.02]}]),
        changed(timing=[{**ENTRY, "steps": [-1, 2]}]),
        changed(timing=[{**ENTRY, "step_s": float("nan")}]),
        changed(timing=[{**ENTRY, "step_s": "10ms"}]),
        changed(unknown_wrappers=None),
    ],
)
def test_a_contract_that_cannot_be_is_refused(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=r"^The policy's contract does not fit 3 observed numbers: export it anew\.$"):
        NumpyPolicy(POLICY.arrays(), {**POLICY.description(), "contract": wrong})


@pytest.mark.parametrize("period_s", [0.016, 0.0153, 0.0167, 1 / 62, 1 / 63])
def test_a_loop_at_the_policy_s_rate_is_taken(period_s: float) -> None:
    POLICY.in_numpy().check_rate(period_s)


@pytest.mark.parametrize("period_s", [0.02, 0.018, 0.0144, 0.008, 0.032, 16, 0, -0.016, float("nan"), float("inf")])
def test_a_loop_at_another_rate_is_refused_with_both_numbers(period_s: float) -> None:
    expected = f"The loop's period is {1e3 * period_s:.4g} ms, and the policy was trained at 16 ms (62.5 Hz): run"
    with pytest.raises(ValueError, match=re.escape(expected)):
        POLICY.in_numpy().check_rate(period_s)


def cycles_until_passed(periods_s: list[float]) -> int:
    """In which cycle a loop may send its first action."""
    check, now_s = POLICY.in_numpy().rate_check(cycles=10), 100.0
    for number, period_s in enumerate([0.0, *periods_s]):
        now_s += period_s
        if check.passed(now_s):
            return number
    raise AssertionError("it never says so")


def test_no_action_is_sent_before_the_rate_is_known() -> None:
    assert cycles_until_passed([0.016] * 30) == 10


@pytest.mark.parametrize(
    "periods_s",
    [
        [0.016] * 4 + [0.03, 0.002] + [0.016] * 4,  # one late cycle, after which the loop catches up
        [0.014, 0.018] * 5,  # jitter, as of a simulation beside the loop
        [0.013] * 6 + [0.0205] * 4,  # most of them of another rate, and the mean of this one
    ],
)
def test_single_cycles_that_are_late_or_early_are_no_other_rate(periods_s: list[float]) -> None:
    assert cycles_until_passed(periods_s) == 10


def test_another_rate_is_refused_however_its_cycles_jitter() -> None:
    """At 50 Hz, with cycles of which the median is the policy's."""
    with pytest.raises(ValueError, match=r"^The loop's period is 20 ms"):
        cycles_until_passed([0.016] * 6 + [0.026] * 4)


@pytest.mark.parametrize("period_s", [0.02, 0.018, 0.001, 0.0])
def test_a_running_loop_at_another_rate_is_refused_before_its_first_action(period_s: float) -> None:
    check = POLICY.in_numpy().rate_check(cycles=10)
    for _ in range(2):  # also when it is asked again
        assert [check.passed(cycle * period_s) for cycle in range(10)] == [False] * 10
        with pytest.raises(ValueError, match=r"^The loop's period is .* ms, and the policy was trained at 16 ms"):
            check.passed(10 * period_s)


def test_no_cycles_measure_nothing() -> None:
    with pytest.raises(ValueError, match=r"^cycles is 0: at least 1 is needed"):
        POLICY.in_numpy().rate_check(cycles=0)


def test_the_clock_is_the_machine_s_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    times_s = iter([5.0, 5.016, 5.032, 6.0, 6.02, 6.04])
    monkeypatch.setattr("cycletime.agents.numpy_policy.time.monotonic", lambda: next(times_s))
    check = POLICY.in_numpy().rate_check(cycles=2)
    assert [check.passed() for _ in range(3)] == [False, False, True]
    check = POLICY.in_numpy().rate_check(cycles=2)
    assert [check.passed() for _ in range(2)] == [False, False]
    with pytest.raises(ValueError, match=r"^The loop's period is 20 ms"):
        check.passed()


def page_program(first_import: str) -> str:
    programs: list[str] = re.findall(r"^```python\n(# not run: .*?)^```$", PAGE.read_text(), re.M | re.S)
    (program,) = [each for each in programs if first_import in each]
    return program


class RobotStoppedError(Exception):
    pass


@pytest.mark.parametrize(("period_s", "sent"), [(0.016, 30), (0.02, 0)])
def test_the_page_s_loop_sends_only_at_the_policy_s_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, period_s: float, sent: int
) -> None:
    """The configured rate is right, and the loop's true one may not be: every sleep takes until its own deadline."""
    export_numpy(POLICY, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "policy", raising=False)
    now_s, actions = [100.0], list[Any]()

    def pass_a_cycle(_: float) -> None:
        now_s[0] += period_s
        if len(actions) == sent > 0:
            raise RobotStoppedError

    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    monkeypatch.setattr("time.sleep", pass_a_cycle)
    names = {"CONTROL_HZ": 62.5, "read_sensors": lambda: [0.1, 0.2, 0.3], "send": actions.append}
    expected = RobotStoppedError if sent else ValueError
    with pytest.raises(expected):
        exec(compile(page_program("from policy import"), str(PAGE), "exec"), names)
    assert len(actions) == sent
    sys.modules.pop("policy")


@pytest.mark.parametrize("hz", [62.5, 50.0])
def test_the_page_s_lines_for_onnx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hz: float) -> None:
    export_onnx(POLICY, tmp_path / "policy.onnx")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"CONTROL_HZ": hz}
    program = compile(page_program("import onnxruntime"), str(PAGE), "exec")
    if hz == 50:
        with pytest.raises(ValueError, match=r"^The loop runs at 50 Hz, and the policy was trained at 62\.5 Hz\.$"):
            exec(program, names)
        return
    exec(program, names)
    assert names["contract"] == CONTRACT
