"""The env_wrapper of a carried entry: what makes the environment take the new cycles, wherever others stand."""

from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import yaml

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.libraries.carry_configuration import carry_configuration
from cycletime.libraries.config_search import find_configurations
from cycletime.libraries.configuration import read_configuration
from cycletime.tasks.cycle_time import CycleTime
from cycletime.tasks.retime import retime
from tests.libraries.zoo_transfer import transfer_entry

WRAPPER = "cycletime.tasks.CycleTime"
TIME_FEATURE = "sb3_contrib.common.wrappers.TimeFeatureWrapper"


def carried(wrappers: str, to_dt: str = "100ms", from_dt: str = "50ms") -> Any:  # noqa: ANN401 - whatever YAML has
    text = f"# top\nA:\n  n_steps: 8\n  batch_size: 8{wrappers}\n  gamma: 1.0 # last\n\nB: {{gamma: 0.9}}\n"
    result = transfer_entry(text, "A", "ppo", from_dt, to_dt)
    assert result.text.startswith("# top\nA:\n  n_steps: ")
    assert result.text.endswith("\n\nB: {gamma: 0.9}\n")
    assert "gamma: 1.0 # last\n" in result.text
    return yaml.safe_load(result.text)["A"].get("env_wrapper")


def ours(dt: str, env_dt: str = "50ms") -> dict[str, Any]:
    return {WRAPPER: {"dt": dt, "env_dt": env_dt}}


@pytest.mark.parametrize(
    ("said", "before"),
    [
        ("", []),
        ("\n  env_wrapper:", []),
        (f"\n  env_wrapper: {TIME_FEATURE}", [TIME_FEATURE]),
        (f"\n  env_wrapper: [{TIME_FEATURE}]", [TIME_FEATURE]),
        (f"\n  env_wrapper:\n    - {TIME_FEATURE}", [TIME_FEATURE]),
        (f"\n  env_wrapper:\n  - {TIME_FEATURE}:\n      x: 1\n  - a.B", [{TIME_FEATURE: {"x": 1}}, "a.B"]),
        (f"\n  env_wrapper:\n    {TIME_FEATURE}:\n      x: 1", [{TIME_FEATURE: {"x": 1}}]),
    ],
)
def test_a_longer_cycle_gets_its_wrapper_around_all_others(said: str, before: list[object]) -> None:
    assert carried(said) == [*before, ours("100ms")]


def test_a_carried_entry_is_carried_on_with_one_wrapper() -> None:
    said = "\n  env_wrapper: [a.B, {cycletime.tasks.CycleTime: {dt: 100ms, env_dt: 50ms}}]"
    assert carried(said, "200ms", "100ms") == ["a.B", ours("200ms")]
    assert carried(said, "50ms", "100ms") == ["a.B", ours("50ms")], "and back to the environment's own step"


@pytest.mark.parametrize("name", [WRAPPER, "cycletime.tasks.cycle_time.CycleTime", "cycletime.CycleTime"])
@pytest.mark.parametrize("new", ["200ms", "50ms", "25ms"])
def test_of_a_wrapper_that_is_there_only_dt_changes(name: str, new: str) -> None:
    """By each of its names, wherever it stands; the environment's step is not known, and so not written."""
    text = (
        f"A:\n  gamma: 1.0\n  n_timesteps: 1000\n  env_wrapper:  # of all\n    - {name}:\n"
        "        time_limit: '5s'  # short\n"
        "        dt: 100ms\n\n    # outermost\n    - stable_baselines3.common.monitor.Monitor  # logs\n"
    )
    result = transfer_entry(text, "A", "ppo", "100ms", new)
    assert f"{text.partition('  env_wrapper')[2].replace('100ms', new)}" in result.text
    assert result.changed["env_wrapper"][0] == {name: {"time_limit": "5s", "dt": new}}
    assert f"for {Duration(new)}, which must be a whole multiple of the environment's step" in " ".join(result.notes)


def test_a_new_wrapper_leaves_the_list_s_comments() -> None:
    text = "A:\n  n_timesteps: 8\n  env_wrapper:\n  - a.B:  # inner\n      x: 1  # one\n  # end\n  gamma: 1.0\n"
    result = transfer_entry(text, "A", "ppo", "50ms", "100ms")
    added = "      x: 1  # one\n  - {cycletime.tasks.CycleTime: {dt: 100ms, env_dt: 50ms}}\n  # end\n"
    assert result.text.startswith(text.replace("8", "4").replace("      x: 1  # one\n  # end\n", added))
    flow = transfer_entry("A:\n  gamma: 1.0\n  env_wrapper: [ a.B ] # x\n", "A", "ppo", "50ms", "100ms")
    assert "[ a.B, {cycletime.tasks.CycleTime: {dt: 100ms, env_dt: 50ms}} ] # x\n" in flow.text
    with pytest.raises(InputError, match=r"nothing was written; set .*env_wrapper"):
        transfer_entry("A:\n  gamma: 1.0\n  env_wrapper:\n    a.B: # no list\n      x: 1\n", "A", "ppo", "1ms", "2ms")


def test_a_shorter_cycle_than_the_wrapper_can_hold_is_refused() -> None:
    said = "\n  env_wrapper: [{cycletime.tasks.CycleTime: {dt: 100ms, env_dt: 50ms}}]"
    with pytest.raises(
        InputError, match=r"step, 50ms: take CycleTime out of env_wrapper and give --from 100ms; the environment itself"
    ):
        carried(said, "25ms", "100ms")
    shared = "A: &a\n  gamma: 1.0\n  env_wrapper: [{cycletime.tasks.CycleTime: {dt: 100ms}}]\nB:\n  <<: *a\n"
    result = yaml.safe_load(transfer_entry(shared, "B", "ppo", "100ms", "50ms").text)
    assert [result[name]["env_wrapper"][0][WRAPPER]["dt"] for name in "AB"] == ["100ms", "50ms"]


def test_a_wrapper_s_dt_without_a_unit_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "ppo.yml"
    path.write_text("A:\n  n_timesteps: 8\n  env_wrapper: [{cycletime.tasks.CycleTime: {dt: 40}}]\n")
    with pytest.raises(InputError, match=r"ppo\.yml: the cycle time of A: '40' has no unit"):
        carry_configuration(read_configuration(path, env_id="A"), "50ms")


def test_the_wrapper_s_cycle_time_is_read_and_not_contradicted(tmp_path: Path) -> None:
    path = tmp_path / "ppo-100ms.yml"
    path.write_text("A:\n  gamma: 0.9\n  n_timesteps: 8\n  env_wrapper: [{cycletime.tasks.CycleTime: {dt: 100ms}}]\n")
    read = read_configuration(path, env_id="A")
    assert (read.algorithm, read.cycle_time) == ("ppo", (Duration("100ms"), "env_wrapper's dt 100ms"))
    assert carry_configuration(read, "50ms").values == carry_configuration(read, "50ms", from_dt="100ms").values
    with pytest.raises(InputError, match=r"env_wrapper's dt 100ms is a cycle time of 100ms, and --from is 50ms"):
        carry_configuration(read, "200ms", from_dt="50ms")
    (found,) = find_configurations(path).configurations
    assert (found.algorithm, found.dt_s) == ("ppo", 0.1)


def test_a_shorter_cycle_gets_no_wrapper_and_keeps_what_it_has() -> None:
    assert carried("", "20ms") is None
    assert carried("\n  env_wrapper: a.B", "75ms") == "a.B"


def test_the_wrapper_makes_the_environment_take_the_new_cycle() -> None:
    ((name, settings),) = carried("", "150ms")[0].items()
    module, _, wrapper = name.rpartition(".")  # as the Zoo finds it
    env = getattr(import_module(module), wrapper)(gym.make("Pendulum-v1"), **settings)
    env.reset(seed=0)
    *_, info = env.step(env.action_space.sample())
    assert info["env_steps"] == 3


def test_the_noise_of_td3_is_the_zoo_s_noise_std() -> None:
    text = "A:\n  noise_type: normal\n  noise_std: 0.1\n  gamma: 0.98\n"
    result = transfer_entry(text, "A", "td3", "40ms", "10ms", "scaled", also="exploration-noise")
    assert result.changed == {"gamma": pytest.approx(0.98**0.25), "noise_std": pytest.approx(0.2)}


def test_the_learning_rate_is_carried_where_it_is_a_number() -> None:
    text = "A:\n  gamma: 1\n  gae_lambda: 1\n  learning_rate: !!float 1e-4\n  clip_range: lin_0.2\n"
    assert "learning_rate" not in transfer_entry(text, "A", "ppo", "40ms", "10ms").changed
    result = transfer_entry(text, "A", "ppo", "40ms", "10ms", also="learning-rate")
    assert result.changed["learning_rate"] == pytest.approx(2e-4)
    assert "clip_range: lin_0.2" in result.text
    with pytest.raises(InputError, match=r"clip_range is 'lin_0.2': only a number can be carried"):
        transfer_entry(text, "A", "ppo", "40ms", "10ms", also="clip")


def test_a_mini_batch_greater_than_the_batch_is_read_as_stable_baselines3_reads_it() -> None:
    result = transfer_entry("A:\n  n_steps: 8\n  batch_size: 64\n", "A", "ppo", "40ms", "10ms")
    assert result.changed == {"n_steps": 32, "batch_size": 32}
    assert result.values is not None
    assert any("batch_size 64 is more than the batch, 8" in note for note in result.values.notes)


@pytest.mark.parametrize(
    ("env_id", "knows"), [("HalfCheetah-v5", True), ("HalfCheetah-v4", False), ("CartPole-v1", False)]
)
def test_of_a_shorter_cycle_it_is_said_whether_retime_knows_the_environment(env_id: str, knows: bool) -> None:
    result = transfer_entry(f"{env_id}:\n  gamma: 0.9\n", env_id, "ppo", "50ms", "25ms")
    can = "makes it do so" if knows else "can, once register_retiming describes it: docs/retime.md"
    assert any(f"must step every 25ms (cycletime.tasks.retime {can}); rename" in note for note in result.notes)


@pytest.mark.parametrize(("new", "step"), [("75ms", "25ms"), ("15ms", "5ms"), ("25ms", "25ms"), ("120ms", "10ms")])
def test_the_step_that_it_names_is_one_that_retime_can_make(new: str, step: str) -> None:
    result = transfer_entry("Pendulum-v1:\n  gamma: 0.9\n", "Pendulum-v1", "ppo", "50ms", new)
    (note,) = [each for each in result.notes if each.startswith("No env_wrapper was written")]
    assert f"must step every {step} (" in note
    assert (f"and CycleTime hold each action for {Duration(new)};" in note) == (new != step)
    env = CycleTime(retime("Pendulum-v1", step), new)
    assert Duration(env.dt) == Duration(new)
    env.close()
