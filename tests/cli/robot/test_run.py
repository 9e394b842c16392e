"""`cycletime robot run` and `resume`: in lock-step, at a controller behind a driver, with Ctrl-C, and refused."""

import json
import os
import shlex
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cycletime.cli import main
from cycletime.cli.train import describe_run
from cycletime.duration import Duration
from cycletime.robots.calibration import Calibration
from cycletime.robots.episode_run import EpisodeRun
from cycletime.robots.ur import reacher_env
from cycletime.robots.ur.driver import driver
from cycletime.robots.ur.driver.driver import DriverSettings, DriverTimeouts
from cycletime.robots.ur.simulator.launch import simulated_controller
from cycletime.training.engine import EnvInfo
from cycletime.training.run_folder import RunFolder
from cycletime.training.worlds import ActionBounds

pytestmark = pytest.mark.usefixtures("compiled_quickly")

LEARNS = shlex.split("--algorithm ppo --dt 40ms --env-dt 40ms --batch 100 --minibatch 50 --set hidden=4 epochs=1")
LONG_S = 120.0
"""Within which everything happens, on however busy a machine."""
LOCKSTEP = ["--simulate", "--pace", "lockstep"]


def robot(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["robot", *words])
    told = capsys.readouterr()
    return status, told.out, told.err


def interrupt_at(patch: pytest.MonkeyPatch, count: int, number: signal.Signals = signal.SIGINT) -> None:
    """Ctrl-C in the middle of a cycle, or another signal."""
    at_cycle(patch, count, lambda: os.kill(os.getpid(), number))


def at_cycle(patch: pytest.MonkeyPatch, count: int, happen: Callable[[], object]) -> None:
    """Something in the middle of a cycle."""
    counted = 0

    def hold(run: EpisodeRun, action: Any) -> Any:  # noqa: ANN401
        nonlocal counted
        counted += 1
        if counted == count:
            happen()
        return usual(run, action)

    usual = EpisodeRun._hold
    patch.setattr(EpisodeRun, "_hold", hold)


def let_a_busy_machine_be_late(patch: pytest.MonkeyPatch) -> None:
    """How soon processes get their turn is the machine's business: no limit in real time ends a run."""
    patient = DriverTimeouts(
        order_age_s=LONG_S,
        move_age_s=LONG_S,
        silent_s=LONG_S,
        late_s=LONG_S,
        lost_s=LONG_S,
        give_up_s=LONG_S,
        rest_s=LONG_S,
    )
    patch.setattr(driver, "DriverSettings", partial(DriverSettings, timeouts=patient))
    patch.setattr(reacher_env, "check_pace", lambda *times: None)
    patch.setattr(Calibration, "check", lambda calibration: None)


def test_a_run_is_interrupted_goes_on_and_is_replayed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", *LOCKSTEP, *LEARNS, "--env-steps", "300", "--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        interrupt_at(patch, 150)
        status, out, err = robot(capsys, *words)
    (path,) = tmp_path.iterdir()
    assert (status, out) == (130, "")
    *_, stopped, to_go_on = err.splitlines()
    assert stopped == "Stopped, and the robot stands."
    assert to_go_on == f"To go on: cycletime robot resume {path} --simulate --pace lockstep"
    assert [entry.episode.agent_steps for entry in RunFolder.open(path).journal.entries()] == [100]

    status, _, err = robot(capsys, *words)
    assert status == 2
    assert f"has a run of this spec that was stopped: go on with 'cycletime robot resume {path}" in err

    status, out, err = robot(capsys, *to_go_on.removeprefix("To go on: cycletime robot ").split())
    assert status == 0
    assert "(3 episodes)" in out
    assert "note: goes on from 100 environment steps" in err
    assert [line.split(":")[0] for line in err.splitlines() if line.startswith("episode")] == ["episode 2", "episode 3"]
    result = RunFolder.open(path).result()
    assert (result["where"], result["cadence"]["cycles"]) == ("simulated robot", 300)

    status, out, _ = robot(capsys, "resume", str(path), *LOCKSTEP)
    assert (status, out.startswith("finished before: seed 0")) == (0, True)
    status, out, _ = robot(capsys, "replay", str(path))
    assert "3 episodes, 300 environment steps, in 2 sessions" in out
    status, _, err = robot(capsys, *words)
    assert (status, "has this run already, and it is finished" in err) == (2, True)


def test_a_signal_lets_the_arm_of_a_controller_stand(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_a_busy_machine_be_late(monkeypatch)
    with simulated_controller(pace=1) as controller:
        ports = controller.ports
        at = ["--host", "localhost", "--ports", *map(str, (ports.rtde, ports.realtime, ports.dashboard))]
        interrupt_at(monkeypatch, 30, signal.SIGTERM)
        words = ["run", *at, "--pace", "1", *LEARNS, "--env-steps", "300", "--out", str(tmp_path)]
        status, _, err = robot(capsys, *words)
        speeds = json.loads(controller.fault("state"))["qd"]
    assert status == 143
    assert max(map(abs, speeds)) < 0.01
    (path,) = tmp_path.iterdir()
    assert err.splitlines()[-1] == f"To go on: cycletime robot resume {path} {' '.join(at)} --pace 1"


def test_an_arm_that_does_not_obey_any_more_ends_the_run_and_what_was_learned_before_stays(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with simulated_controller("e", pace=None) as controller:
        ports = controller.ports
        at = ["--host", "127.0.0.1", "--ports", *map(str, (ports.rtde, ports.realtime, ports.dashboard))]
        at_cycle(monkeypatch, 101, lambda: controller.fault("remote control off"))
        words = ["run", *at, "--pace", "lockstep", *LEARNS, "--env-steps", "200", "--out", str(tmp_path)]
        status, _, err = robot(capsys, *words)
    assert status == 1
    *_, sentence, to_go_on = err.splitlines()
    assert sentence.startswith(
        "cycletime: The arm does not obey, or what it shows is old: it was told to move with up to "
    )
    assert "Look whether the controller is in remote control" in sentence
    (path,) = tmp_path.iterdir()
    assert to_go_on == f"To go on: cycletime robot resume {path} {' '.join(at)} --pace lockstep"
    assert [entry.episode.agent_steps for entry in RunFolder.open(path).journal.entries()] == [100]


def test_a_run_without_room_in_its_cycle_is_refused_and_leaves_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", *LOCKSTEP, *LEARNS, "learn_when=batch", "--env-steps", "100", "--out", str(tmp_path)]
    with monkeypatch.context() as patch:
        patch.setattr(Calibration, "shortest_dt", property(lambda calibration: 2 * calibration.dt))
        status, _, err = robot(capsys, *words)
        assert status == 2
        assert "which is too short: here act takes" in err.splitlines()[-1]
        assert err.endswith("--learner background with SAC, --set learn_when=episode_end with PPO.\n")
        assert not list(tmp_path.iterdir())
        patch.setattr(Calibration, "__str__", lambda calibration: os.kill(os.getpid(), signal.SIGTERM))
        patch.setattr(Calibration, "check", lambda calibration: None)
        status, _, err = robot(capsys, *words)
        assert (status, err.splitlines()[-1]) == (143, "Stopped, and the robot stands.")
        assert not list(tmp_path.iterdir()), "nor one that is stopped before it begins"


def test_an_arm_that_is_not_ready_is_not_moved(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with simulated_controller(pace=None) as controller:
        controller.fault("emergency stop")
        ports = controller.ports
        at = ["--host", "127.0.0.1", "--ports", *map(str, (ports.rtde, ports.realtime, ports.dashboard))]
        status, _, err = robot(capsys, "run", *at, *LEARNS, "--env-steps", "300", "--out", str(tmp_path))
    assert status == 1
    assert err.startswith("cycletime: The arm at 127.0.0.1 is not ready: The emergency stop is pressed")
    assert not list(tmp_path.iterdir())


def test_a_controller_in_lock_step_is_driven_in_lock_step_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for pace, words, says in (
        (None, [], "The controller at 127.0.0.1 waits for its client, so give --pace lockstep."),
        (1.0, ["--pace", "lockstep"], "The controller at 127.0.0.1 does not wait for its client, so leave out --pace"),
    ):
        with simulated_controller(pace=pace) as controller:
            ports = controller.ports
            at = ["--host", "127.0.0.1", "--ports", *map(str, (ports.rtde, ports.realtime, ports.dashboard))]
            status, _, err = robot(capsys, "run", *at, *words, *LEARNS, "--env-steps", "300", "--out", str(tmp_path))
        assert (status, says in err, err.count("\n")) == (2, True, 1)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("host", ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1"])
@pytest.mark.parametrize("command", ["run", "resume"])
def test_an_arm_elsewhere_needs_somebody_beside_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, command: str
) -> None:
    asked: list[str] = []

    def unreachable(address: tuple[str, int], timeout_s: float) -> None:
        asked.append(address[0])
        raise OSError(113, "No route to host")

    monkeypatch.setattr(socket, "create_connection", unreachable)
    words = [*LEARNS, "--env-steps", "300", "--out", str(tmp_path)]
    if command == "resume":
        words = [str(a_robot_s_run(tmp_path))]
    status, _, err = robot(capsys, command, "--host", host, *words)
    assert (status, asked) == (2, [])
    assert f"--host {host!r} is not this machine" in err
    assert "--i-am-at-the-robot" in err
    status, _, err = robot(capsys, command, "--host", host, "--i-am-at-the-robot", *words)
    assert (status, asked) == (1, [host])
    assert "does not answer: No route to host." in err


def a_robot_s_run(out: Path, kind: str = "real") -> Path:
    from cycletime.agents import PPOAgent
    from cycletime.training.spec import EngineSpec, RunSpec
    from cycletime.training.worlds import RobotEnv

    world = RobotEnv("cycletime/URReacher2-v0", "40ms", kind)  # type: ignore[arg-type]
    spec = RunSpec(
        world=world, agent=PPOAgent(hidden=(4,)), dt="40ms", env_steps=300, seed=0, engine=EngineSpec("real-time")
    )
    return RunFolder.create(out, spec).path


def test_a_run_that_ends_before_it_learns_is_told_so(tmp_path: Path) -> None:
    spec = RunFolder.open(a_robot_s_run(tmp_path)).spec
    info = EnvInfo(provenance="simulated robot", env_dt=Duration("40ms"), cycle_steps=1, bounds=ActionBounds.raw(6))
    note = "note: the first learning comes at 2,000 environment steps: this run ends at 300, without any."
    assert note in describe_run(spec, info)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "Give either --host with a controller's name or number, or --simulate."),
        ("--simulate --host 127.0.0.1", "Give either --host with a controller's name or number, or --simulate."),
        ("--simulate --pace slow", "--pace is 'slow': give a number such as 1 or 20, or lockstep."),
        ("--simulate --profile cb2", "--profile is 'cb2': give cb3 or e."),
        ("--simulate --ports 1 2 3", "--ports is for a controller at --host"),
        ("--host 127.0.0.1 --profile e", "--profile is 'e': it is for --simulate, and --host is what it is."),
        ("--host 192.0.2.1 --i-am-at-the-robot --pace 20", "--pace is '20': an arm that is not simulated has its own."),
        ("--host nowhere.invalid", "'nowhere.invalid' is no host"),
        ("--simulate --dt 200ms --env-dt 200ms", "stops when it is told nothing for 0.2 s, so give a shorter one."),
        ("--simulate --dt 50ms", "not a whole multiple of the environment time step 40ms"),
        ("--simulate --learner background", "learner is 'background', and PPOAgent learns from what its newest policy"),
    ],
)
def test_wrong_input_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, says: str) -> None:
    learns = [*LEARNS]
    for option in {"--dt", "--env-dt"} & {*words.split()}:  # given here instead
        at = learns.index(option)
        del learns[at : at + 2]
    status, _, err = robot(capsys, "run", *learns, "--env-steps", "300", "--out", str(tmp_path), *words.split())
    assert status == 2
    assert says in err
    assert err.count("\n") <= 2
    assert not list(tmp_path.iterdir())


def test_a_run_goes_on_where_it_began(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, _, err = robot(capsys, "resume", str(a_robot_s_run(tmp_path)), *LOCKSTEP)
    assert status == 2
    kinds = "is a run on a robot of the kind 'real', and this one is 'lockstep'"
    assert f"{kinds}: a run goes on where it began, so give --host." in err
