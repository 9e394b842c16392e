"""Runs on robots from spec to result, through faults and resumptions, with a toy and with the arm's model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.agents import ActorCriticAgent, PPOAgent
from cycletime.errors import InputError, RunError
from cycletime.robots import learners
from cycletime.robots.engine import RealTimeBatch
from cycletime.robots.ur.links import LockstepLink
from cycletime.robots.ur.reacher_env import URReacher2Env
from cycletime.robots.ur.rtde_client import Address
from cycletime.robots.ur.simulator.launch import simulated_controller
from cycletime.robots.ur.types import RobotLink
from cycletime.training.engine import ENGINES, Cost, engine_for, with_engine
from cycletime.training.make_specs import make_specs
from cycletime.training.observers import TrainingObserver
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import TrainingJob
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.trainer import TrainingOutcome, train_batch
from cycletime.training.worlds import ClosedFormWorld, GymnasiumEnv, RobotEnv, make_env, world_of
from tests.robots.toy_robot import ToyRobot
from tests.robots.ur.virtual import VirtualArm, VirtualClock

pytestmark = pytest.mark.usefixtures("compiled_quickly")

TOY = GymnasiumEnv("toy:Toy-v0")
LOCKSTEP = RobotEnv("cycletime/URReacher2-v0", None, "lockstep")
AGENT = ActorCriticAgent(hidden=(2,))


def a_spec(world: GymnasiumEnv = TOY, env_steps: int = 48, dt: str = "20ms", **engine: Any) -> RunSpec:  # noqa: ANN401
    told = EngineSpec("real-time", **engine)
    return RunSpec(world=world, agent=AGENT, dt=dt, env_steps=env_steps, seed=3, engine=told)


class Told(TrainingObserver):
    """An observer that remembers."""

    def __init__(self) -> None:
        self.remarks: list[str] = []
        self.begun: list[int | None] = []

    def begin(self, folder: RunFolder, resumed_from: int | None) -> None:
        self.begun.append(resumed_from)

    def remark(self, sentence: str) -> None:
        self.remarks.append(sentence)


def train(
    out: Path, robot: ToyRobot, told: Told | None = None, checkpoint_s: float = 1e9
) -> tuple[RunFolder, TrainingOutcome | Exception]:
    spec = a_spec()
    folder = RunFolder.create(out, spec)
    group = RealTimeBatch(spec, robot)
    (ended,) = train_batch([TrainingJob(folder, [told or Told()])], batch=group, checkpoint_s=checkpoint_s)
    assert robot.closed
    return folder, ended


def test_a_run_has_a_result_that_says_where_it_comes_from_and_how_its_cycles_went(tmp_path: Path) -> None:
    folder, ended = train(tmp_path, ToyRobot(), told := Told())
    assert ended == "finished"
    result = folder.finished().result
    assert (result["where"], result["resumed"], result["episodes"]) == ("simulated robot", "never", 6)
    assert (result["cadence"]["cycles"], result["cadence"]["overruns"]) == (24, 0)
    assert result["cadence"]["warning"] is None
    assert (told.begun, told.remarks) == ([None], [])
    assert [entry.episode.number for entry in folder.journal.entries()] == list(range(6)), "it stays"


@pytest.mark.parametrize("checkpoint_s", [1e9, 0.0], ids=["from the journal", "from a checkpoint and the journal"])
@pytest.mark.parametrize("fault", [RunError("The robot is on fire."), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_only_the_episode_in_progress_is_lost(tmp_path: Path, checkpoint_s: float, fault: BaseException) -> None:
    class Failing(ToyRobot):
        def receive(self, env_steps: int = 1) -> Any:  # noqa: ANN401
            if (self.resets, self.steps) == (4, 5):
                raise fault
            return super().receive(env_steps)

    whole, _ = train(tmp_path / "whole", ToyRobot())
    if isinstance(fault, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, Failing(), checkpoint_s=checkpoint_s)
    else:
        assert train(tmp_path, Failing(), checkpoint_s=checkpoint_s)[1] is fault
    folder, ended = train(tmp_path, robot := ToyRobot(), told := Told())
    assert ended == "finished"
    assert told.begun == [24]
    assert told.remarks == ["Resumed, not identical: a robot is never in the same state twice."]
    assert robot.resets == 3, "the fourth episode, and two more"
    assert [entry.session for entry in folder.journal.entries()] == [1, 1, 1, 2, 2, 2]
    run, uninterrupted = folder.finished(), whole.finished()
    assert (run.result["resumed"], run.result["sessions"]) == ("resumed, not identical", 2)
    assert run.result["cadence"]["cycles"] == 24
    np.testing.assert_allclose(run.bins.sums, uninterrupted.bins.sums, rtol=1e-9)
    for one, other in zip(*(each.policy.arrays().values() for each in (run, uninterrupted)), strict=True):  # type: ignore[union-attr]
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


class Failing(ToyRobot):
    def reset(self, **options: Any) -> Any:  # noqa: ANN401
        if self.resets == 3:
            raise RunError("No power.")
        return super().reset(**options)


def test_an_episode_that_was_damaged_is_told_and_those_behind_it_are_learned_from(tmp_path: Path) -> None:
    folder, ended = train(tmp_path, Failing())
    assert isinstance(ended, RunError)
    folder.checkpoints.remove()  # so that all that was learned is in the journal
    path = folder.journal.path
    content = bytearray(path.read_bytes())
    content[content.index(b"EPISODE\n", content.index(b"EPISODE\n") + 8) + 100] ^= 1
    path.write_bytes(content)
    folder, ended = train(tmp_path, robot := ToyRobot(), told := Told())
    assert ended == "finished"
    assert robot.resets == 3, "the third is there, and the second is not played again"
    assert told.begun == [24]
    assert told.remarks[0] == f"{path} is damaged: 2 of 3 episodes are whole, lost are 2."
    assert [entry.episode.number for entry in folder.journal.entries()] == [0, 2, 3, 4, 5]


def test_an_episode_that_was_torn_on_the_disk_is_told_and_done_again(tmp_path: Path) -> None:
    folder, ended = train(tmp_path, Failing())
    assert isinstance(ended, RunError)
    path = folder.journal.path
    path.write_bytes(path.read_bytes()[:-100])
    folder, ended = train(tmp_path, robot := ToyRobot(), told := Told())
    assert ended == "finished"
    assert robot.resets == 4
    assert told.begun == [16]
    assert "are no whole episode; they are now in" in told.remarks[0]
    assert [entry.episode.number for entry in folder.journal.entries()] == list(range(6))


def test_many_overruns_are_said_in_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, learn = ToyRobot(), learners.learn_step

    def slow(*what: Any) -> None:  # noqa: ANN401
        learn(*what)
        robot.clock.time_s += 0.021

    monkeypatch.setattr(learners, "learn_step", slow)
    folder, ended = train(tmp_path, robot, told := Told())
    assert ended == "finished"
    result = folder.finished().result
    assert result["episodes"] == len(list(folder.journal.entries())), "the last is late, and counts"
    cadence = result["cadence"]
    assert (cadence["cycles"], cadence["overruns"]) == (18, 12), "the second and the third cycle of an episode"
    assert told.remarks == [cadence["warning"]]
    assert cadence["warning"].startswith("12 of 18 cycles (66.7%) were not done in time")


def test_a_cycle_time_without_room_is_refused_before_the_robot_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = ToyRobot()

    def calls(taken_s: float) -> Callable[..., Callable[[], None]]:
        def call() -> None:
            robot.clock.time_s += taken_s

        return lambda *shapes: call

    for name, taken_s in (("act_call", 0.001), ("learn_call", 0.05)):
        monkeypatch.setattr(f"cycletime.robots.calibration.{name}", calls(taken_s))
    _, ended = train(tmp_path, robot)
    assert isinstance(ended, InputError)
    assert "Give at least 70ms" in str(ended)
    assert robot.resets == 0


def an_arm_run(out: Path, link: RobotLink) -> RunFolder:
    """Two episodes."""
    spec = a_spec(LOCKSTEP, env_steps=200, dt="80ms")
    folder = RunFolder.create(out, spec)
    group = RealTimeBatch(spec, URReacher2Env(link, "40ms"))
    assert train_batch([TrainingJob(folder)], batch=group) == ["finished"]
    return folder


def assert_same_files(one: RunFolder, other: RunFolder) -> None:
    for name in ("journal.cycles", "policy.safetensors", "metrics.jsonl", "curve.parquet"):
        assert (one.path / name).read_bytes() == (other.path / name).read_bytes(), name


@pytest.mark.slow
def test_through_a_controller_in_lock_step_runs_are_the_same_twice_to_the_last_bit(tmp_path: Path) -> None:
    folders = []
    for name in ("one", "other"):
        with simulated_controller("cb3", None) as controller:
            ports = controller.ports
            address = Address(controller.address, ports.rtde, ports.realtime, ports.dashboard)
            folders.append(an_arm_run(tmp_path / name, LockstepLink(address)))
    assert_same_files(*folders)


def test_through_the_arm_s_own_model_runs_are_the_same_twice_to_the_last_bit(tmp_path: Path) -> None:
    """Its time passes while packages are waited for, as in lock-step."""
    one, other = (an_arm_run(tmp_path / name, VirtualArm(VirtualClock())) for name in ("one", "other"))
    assert_same_files(one, other)
    result = one.finished().result
    assert (result["where"], result["episodes"], result["agent_steps"]) == ("simulated robot", 2, 100)
    assert result["cadence"]["act_s"]["worst"] == 0


def test_an_arm_is_part_of_a_run_s_identity_and_its_address_is_not() -> None:
    specs = [a_spec(RobotEnv("cycletime/URReacher2-v0", None, kind)) for kind in ("real", "simulated", "lockstep")]
    assert len({spec.identity for spec in specs}) == 3
    for spec in specs:
        again = RunSpec.from_json(spec.as_json())
        assert again == spec
        assert again.world.robot == spec.world.robot  # type: ignore[union-attr]
    assert "robot" not in a_spec().as_json()["world"]
    assert a_spec().as_json()["engine"].keys() == {"name", "device", "width"}
    assert a_spec(learner="background").identity != a_spec().identity


def test_runs_on_arms_are_the_real_time_engine_s() -> None:
    (spec,) = make_specs(
        env="cycletime/URReacher2-v0", robot="real", dt="40ms", env_steps=100, algorithm="sac", learner="background"
    )
    assert (spec.engine.name, spec.engine.learner) == ("real-time", "background")
    assert spec.world == RobotEnv("cycletime/URReacher2-v0", None, "real")
    assert with_engine(a_spec()).engine.name == "stepped", "no robot unless it is asked for"
    assert ENGINES["real-time"].engine.cost(spec) == Cost(0.04, 0.0), "nothing is moved to find out"
    assert (ENGINES["real-time"].engine.max_batch_size(spec), ENGINES["real-time"].engine.max_lanes(spec)) == (1, 1)
    assert ENGINES["real-time"].engine.program(spec) == ENGINES["real-time"].engine.program(replace(spec, seed=9))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            replace(a_spec(), world=ClosedFormWorld("reacher")),
            "'reacher' is a task in closed form: the engine real-time",
        ),
        (a_spec(width=2), "width is 2: only the engine compiled has the choice"),
        (a_spec(LOCKSTEP, learner="background"), "in lock-step the robot waits for the agent, so learn inline"),
        (replace(a_spec(), engine=EngineSpec("stepped", learner="background")), "only the engine real-time has"),
        (replace(a_spec(LOCKSTEP), engine=EngineSpec("stepped")), "is on an arm, which needs the engine real-time"),
    ],
)
def test_what_it_does_not_take_is_refused(spec: RunSpec, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        engine_for(spec)


@pytest.mark.parametrize(
    ("world", "options", "sentence"),
    [
        (RobotEnv("toy:Toy-v0", None, "real"), {}, "The run is for a real robot, and .* is a simulated robot"),
        (GymnasiumEnv("toy:Toy-v0", "5ms"), {}, "The run's env_dt is 5ms, and .* has 10ms"),  # type: ignore[arg-type]
        (TOY, {"dt": "15ms"}, "not a whole multiple of the environment time step 10ms"),
        (TOY, {"device": "gpu"}, "JAX"),
    ],
)
def test_a_robot_that_is_not_the_run_s_is_let_go(world: GymnasiumEnv, options: dict[str, str], sentence: str) -> None:
    robot = ToyRobot()
    with pytest.raises(InputError, match=sentence):
        RealTimeBatch(a_spec(world, **options), robot)  # type: ignore[arg-type]
    assert robot.closed


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: make_env(LOCKSTEP, a_spec().dt), "is on an arm, and only who knows where that is can make it"),
        (lambda: RobotEnv("x", None, "toy"), "robot is 'toy': give 'real', 'simulated' or 'lockstep'"),  # type: ignore[arg-type]
        (lambda: world_of("reacher", None, None, "real"), "robot is 'real': a task in closed form has none"),
        (lambda: EngineSpec(learner="slow"), "learner is 'slow'"),  # type: ignore[arg-type]
        (lambda: ENGINES["real-time"].engine.make_batch([a_spec(), a_spec()]), "There are 2 runs"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        call()


def test_an_agent_of_another_kind_is_not_resumed_from_a_journal(tmp_path: Path) -> None:
    folder, _ = train(tmp_path, ToyRobot())
    other = RunFolder.create(tmp_path, replace(a_spec(), agent=PPOAgent()))
    (other.path / "journal.cycles").write_bytes(folder.journal.path.read_bytes())
    (ended,) = train_batch([TrainingJob(other)], batch=RealTimeBatch(other.spec, ToyRobot()))
    assert isinstance(ended, RunError)
    assert "is not the journal of this run" in str(ended)
