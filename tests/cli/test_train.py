"""`cycletime train` as people type it: sentences for wrong input, and the values and engines that it trains with."""

import json
import os
import re
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from cycletime import rules
from cycletime.cli import main
from cycletime.errors import EnvError
from cycletime.training import machine

REACHER = "--task reacher --dt 16ms --env-steps 2000"
NO_TIME_SPAN = "is not a time span: give a positive time such as"
ONE_WORLD = "Give either a task"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            "--task walker --dt 16ms --env-steps 9",
            "'walker' is not a task: give 'reacher', 'double-pendulum', 'pendulum', 'cart-pole', 'mountain-car', "
            "'acrobot' or 'ur-reacher', or a Gymnasium id as an environment.",
        ),
        (f"{REACHER} --env Reacher-v5", ONE_WORLD),
        ("--dt 16ms --env-steps 1000", ONE_WORLD),
        (f"{REACHER} --env-dt 4ms", "--env-dt is 4ms: the Reacher has a time step of its own, 2ms."),
        (
            "--task pendulum --dt 16ms --env-steps 9999 --env-dt 80ms",
            "--env-dt is 80ms: that of the Pendulum is 50ms at most",
        ),
        (
            "--task pendulum --dt 16ms --env-steps 9999 --env-dt 50ms",
            "The cycle time 16ms is not a whole multiple of the environment time step 50ms",
        ),
        (
            "--task pendulum --dt 16ms --env-steps 4999",
            "no episode of pendulum ends before 5,000 environment steps (10s)",
        ),
        (f"{REACHER} --algorithm dqn", "'dqn' is not an algorithm: give one of actor-critic, ppo, sac."),
        (
            "--task reacher --dt 17ms --env-steps 9",
            "The cycle time 17ms is not a whole multiple of the environment time step 2ms: the nearest cycle times are "
            "16ms and 18ms.",
        ),
        (
            "--env Reacher-v5 --dt 25ms --env-steps 9",
            "The cycle time 25ms is not a whole multiple of the environment time step 20ms: the nearest cycle times "
            "are 20ms and 40ms.",
        ),
        ("--task reacher --dt -16ms --env-steps 9", f"'-16ms' {NO_TIME_SPAN}"),
        ("--task reacher --dt fast --env-steps 9", f"'fast' {NO_TIME_SPAN}"),
        (f"{REACHER} --checkpoint-every never", f"'never' {NO_TIME_SPAN}"),
        (
            "--task reacher --dt 16ms",
            "--env-steps is missing: say how long to train, such as --env-steps 1e6.",
        ),
        ("--task reacher --dt 16ms --env-steps -5", "--env-steps is -5: it must be a whole number of at least 1."),
        ("--task reacher --dt 16ms --env-steps 0", "--env-steps is 0: it must be a whole number of at least 1."),
        (
            "--task reacher --dt 16ms --env-steps 1199",
            "--env-steps is 1199: no episode of reacher ends before 1,200 environment steps (2.4s), so give at",
        ),
        (
            "--task reacher --dt 16ms --env-steps 3e9",
            "--env-steps is 3000000000: it must be below 2**31, since steps are counted in 32 bits.",
        ),
        (f"{REACHER} --seed 4294967296", "seed is 4294967296: it must be below 2**32."),
        (f"{REACHER} --seed 4294967295 --seeds 2", "seed is 4294967296: it must be below 2**32."),
        (f"{REACHER} --seed -1", "seed is -1: it must be a whole number of at least 0."),
        (f"{REACHER} --seeds 0", "--seeds is 0: it must be at least 1"),
        (
            f"{REACHER} --rule scaled",
            "The rule is 'scaled': it needs --tuned-at, the cycle time that the values are from ([tuned] dt).",
        ),
        (
            f"{REACHER} --rule linear --tuned-at 32ms",
            "Unknown rule 'linear' for ppo: choose one of baseline, dt-aware, scaled, constant, horizons.",
        ),
        (
            f"{REACHER} --algorithm sac --batch 100",
            "batch is 100: sac has no such value, but discount, minibatch; did you mean minibatch?",
        ),
        (
            f"{REACHER} --algorithm actor-critic --tuned-at 4ms",
            "--tuned-at is 4ms: no rule carries values of actor-critic to another cycle time.",
        ),
        (f"{REACHER} --batch 10 --minibatch 20", "minibatch is 20: it must be at most the batch, 10."),
        (f"{REACHER} --discount 1.5", "discount is 1.5: it must be a number in (0, 1]."),
        (f"{REACHER} --set hidden=a,b", "--set hidden=a,b: 'a,b' does not fit hidden: give whole numbers with"),
        (f"{REACHER} --set epochs=inf", "--set epochs=inf: 'inf' does not fit epochs, which is int."),
        (f"{REACHER} --set epochs=1.5", "--set epochs=1.5: '1.5' does not fit epochs, which is int."),
        (f"{REACHER} --set learn_when=never", "learn_when is 'never': it must be 'batch' or 'episode_end'."),
        (f"{REACHER} --noise brown", "'brown' is not a noise: give one of white, ornstein-uhlenbeck, pink."),
        (
            f"{REACHER} --noise ornstein-uhlenbeck",
            "correlation is missing: ornstein-uhlenbeck noise needs its time",
        ),
        (
            f"{REACHER} --correlation 100ms",
            "correlation is 100ms: white noise has none",
        ),
        (f"{REACHER} --track visdom", "'visdom' is not a tracker: give one of tensorboard, wandb."),
        (f"{REACHER} --device tpu", "'tpu'"),
        (f"{REACHER} --seeds -3", "--seeds is -3: it must be at least 1"),
        (f"{REACHER} --seeds 20000", "--seeds is 20000: there must be from 1 to 10000"),
        (f"{REACHER} --seeds 5e15", "--seeds is 5000000000000000: there must be from 1 to 10000"),
        (f"{REACHER} --engine metal", "'metal' is not an engine: give one of cuda, compiled, stepped"),
        (f"{REACHER} --engine cuda --algorithm actor-critic", "The engine cuda cannot train actor-critic"),
        (f"{REACHER} --engine cuda --noise pink", "The engine cuda explores with white noise only"),
        (f"{REACHER} --engine cuda", "The engine cuda needs "),
        (f"{REACHER} --device gpu", "The engine cuda needs "),
        (f"{REACHER} --tuned nowhere.toml", "There is no file nowhere.toml."),
        (f"{REACHER} --tuned nowhere.toml --tuned-at 4ms", "--tuned-at is 4ms"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_no_folder(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, says: str
) -> None:
    status = main(["train", *words.split(), "--out", str(tmp_path / "runs")])
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    assert captured.err.startswith("cycletime: ")
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            f"{REACHER} --set hiden=32",
            "--set hiden=32: give NAME=VALUE with a field of ppo: activation, advantages, batch, ",
        ),
        (
            f"{REACHER} --set hidden",
            "--set hidden: give NAME=VALUE with a field of ppo: activation, advantages, batch, ",
        ),
        ("--env Nope-v9 --dt 16ms --env-steps 9", "'Nope-v9' is not an environment that Gymnasium can make"),
        ("--env no_module:A-v0 --dt 16ms --env-steps 9", "'no_module:A-v0' needs"),
        ("--task reacher --dt 16ms --env-steps 1e4 --seed 0-4", "as a range of seeds it is --seed 0 --seeds 5."),
        ("--task reacher --dt 16ms --env-steps 1.5", "'1.5' is not a whole number such as 2000 or 1e6."),
        (f"{REACHER} --batsh 10", "--batch"),
    ],
)
def test_of_long_sentences_the_beginning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: str, says: str
) -> None:
    status = main(["train", *words.split(), "--out", str(tmp_path / "runs")])
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, "")
    assert says in captured.err
    assert captured.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_missing_extra_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("mujoco", "tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mujoco", None)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    out = ["--out", str(tmp_path / "runs")]
    assert main(["train", "--env", "Reacher-v5", "--dt", "20ms", "--env-steps", "9", *out]) == 2
    assert "pip install 'cycletime[mujoco]'" in capsys.readouterr().err
    assert main(["train", *REACHER.split(), "--track", "tensorboard", *out]) == 2
    says = "cycletime: TensorBoard is not installed: pip install 'cycletime[tensorboard]'.\n"
    assert capsys.readouterr().err == says
    assert not (tmp_path / "runs").exists()


def test_a_missing_gpu_is_told_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "prepare_jax", lambda device: None)  # which others in this process need as it is
    words = [*REACHER.split(), "--algorithm", "actor-critic", "--device", "gpu"]
    assert main(["train", *words, "--out", str(tmp_path / "runs")]) == 2
    assert "The run is for a GPU, and JAX finds none here" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_folder_that_cannot_be_written_is_told_of(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert main(["train", *REACHER.split(), "--out", str(tmp_path / "file" / "runs")]) == 1
    assert re.fullmatch(r"cycletime: .*/file/runs/reacher.* cannot be written: .*\.\n", capsys.readouterr().err)
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "There is nothing to resume: give the folder of a run."),
        (["nowhere"], "There is no folder 'nowhere': give a run's, which 'cycletime train' prints."),
    ],
)
def test_what_is_no_run_is_not_resumed(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["resume", *words]) == 2
    assert capsys.readouterr().err == f"cycletime: {says}\n"


def test_carried_values_are_those_of_the_rules(tmp_path: Path) -> None:
    words = "--task reacher --dt 8ms --env-steps 2000 --batch 400 --tuned-at 16ms --seeds 2 --seed 5"
    made = [
        _train_nothing(f"{words} {rule}", tmp_path / str(place)) for place, rule in enumerate(("", "--rule scaled"))
    ]
    tuned = rules.PPO(dt="16ms", batch=400)
    for specs, rule in zip(made, ("dt-aware", "scaled"), strict=True):
        wanted = tuned.at("8ms", rule)
        assert [spec["seed"] for spec in specs] == [5, 6]
        for spec in specs:
            carried = {name: spec["agent"][name] for name in ("batch", "minibatch", "discount", "trace_decay")}
            assert carried == {name: getattr(wanted, name) for name in carried}
            assert spec["origin"] == {"rule": rule, "tuned_at": "16ms", "tuned": tuned.stated()}


def test_horizons_that_a_rule_shrinks_are_told_of(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = "--task reacher --dt 8ms --env-steps 1200 --batch 400 --tuned-at 16ms"
    _train_nothing(words, tmp_path / "a")
    told = capsys.readouterr()
    assert "note: Rule 'dt-aware' shrinks horizons: discount 0.99 from 1.59 s to 0.796 s" in told.out + told.err
    _train_nothing(f"{words} --rule scaled", tmp_path / "b")
    told = capsys.readouterr()
    assert "shrinks" not in told.out + told.err


def test_values_that_are_not_carried_are_the_paper_s_and_what_is_set(tmp_path: Path) -> None:
    words = (
        "--algorithm sac --discount .9 --set hidden=32,32 target_entropy=none replay_capacity=1e5 acts=before_learning"
    )
    (spec,) = _train_nothing(f"{REACHER} {words} --noise pink --correlation 5s", tmp_path)
    wanted = {"discount": 0.9, "hidden": [32, 32], "target_entropy": None, "replay_capacity": 100_000, "minibatch": 256}
    assert {name: spec["agent"][name] for name in wanted} == wanted
    assert spec["agent"]["acts"] == "before_learning"
    assert spec["exploration"] == {"noise": "pink", "slowest": "5s", "fastest": "10ms"}
    assert spec["origin"] == {}


@pytest.mark.parametrize(
    ("words", "engine"),
    [("", "compiled"), ("--engine stepped", "stepped"), ("--env Pendulum-v1 --env-dt 50ms --dt 50ms", "stepped")],
)
def test_the_engine_is_the_fastest_that_takes_the_run(words: str, engine: str, tmp_path: Path) -> None:
    (spec,) = _train_nothing(f"--env-steps 100 {words}" if "--env " in words else f"{REACHER} {words}", tmp_path)
    assert spec["engine"]["name"] == engine


def _train_nothing(words: str, out: Path) -> list[dict[str, Any]]:
    """The specs of a command whose runs are made ready, and not trained."""
    from cycletime.cli.train import Train  # noqa: F401 - loads what is patched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cycletime.cli.train.train_all", lambda folders, options, group: 0)
        assert main(["train", *words.split(), "--out", str(out)]) == 0
    return [json.loads(path.read_text()) for path in sorted(out.glob("*/spec.json"))]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "--tuned-at 16ms --dt 32ms --batch 400 --minibatch 10",
            "ppo at 32ms: batch 200, minibatch 5, discount 0.9801, trace_decay 0.9025 (dt-aware from 16ms)\n"
            "note: Rule 'dt-aware', since none was named: from gamma .99 and lambda .95 the paper's rule "
            "scored 91 % of retuning PPO on four small tasks, horizons 79 %. Once 'cycletime tune FILE --horizons' has "
            "tuned them, give --tuned FILE.\n",
        ),
        (
            "--algorithm sac --dt 32ms --tuned-at 16ms --discount 0.851 --rule horizons --also target-smoothing",
            "sac at 32ms: minibatch 256, discount 0.846482, 2 updates per step (horizons from 16ms)\n"
            "note: 2 times as many updates per step cost 2 times the learning.\n"
            "note: the random start lasts 80,000 environment steps, so that the policy never acts.\n",
        ),
        (
            "--dt 8ms --num-envs 8 --batch 1200 --minibatch 500",
            "ppo at 8ms: batch 1200, minibatch 500, discount 0.99, trace_decay 0.95\n"
            "8 environments: rollouts of 150 steps, 1.2 s; 0.8333 updates per simulated second, of 30 gradient steps\n",
        ),
        (
            "--dt 24ms --tuned-at 16ms --num-envs 16 --batch 2048 --rule dt-aware",
            "ppo at 24ms: batch 1360, minibatch 33, discount 0.985038, trace_decay 0.925945 (dt-aware from 16ms)\n"
            "16 environments: rollouts of 85 steps, 2.04 s; 0.4902 updates per simulated second, of 420 "
            "gradient steps\n"
            "note: minibatch 33.3333 was rounded to 33 (-1.0%).\n"
            "note: Mini-batches per epoch: 41 became 42, since rounding batch / minibatch moved from 40.96 to 41.36 "
            "(+1.0%).\n"
            "note: batch 1365 became 1360, which 16 environments divide.\n",
        ),
        (
            "--algorithm sac --dt 16ms --num-envs 4 --set warmup_steps=100",
            "sac at 16ms: minibatch 256, discount 0.99\n"
            "4 environments: rollouts of 1 step, 0.016 s; 250 updates per simulated second, of 1 gradient step\n",
        ),
        (
            "--dt 64ms",
            "ppo at 64ms: batch 2000, minibatch 50, discount 0.99, trace_decay 0.95\n"
            "note: the first learning comes at 64,000 environment steps: the run goes on until then, and returns count "
            "up to 20,000.\n",
        ),
    ],
)
def test_the_values_are_told_and_what_they_mean_for_a_short_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, told: str
) -> None:
    _train_nothing(f"--task reacher --env-steps 20000 {words}", tmp_path)
    assert capsys.readouterr().err == told


def test_a_budget_in_which_perhaps_no_episode_ends_is_told_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "--env Pendulum-v1 --algorithm actor-critic --dt 100ms --out"
    assert main(["train", *words.split(), str(tmp_path), "--env-steps", "198"]) == 0
    told = capsys.readouterr()
    note = "note: an episode can last 200 environment steps, so that perhaps none ends in this run.\n"
    assert note in told.err
    assert "seed 0: no episode ended within 198 environment steps, so that there is no return, " in told.out
    assert main(["train", *words.split(), str(tmp_path), "--env-steps", "200"]) == 0
    told = capsys.readouterr()
    assert note not in told.err
    assert "(1 episodes)" in told.out


def test_the_limit_of_a_retimed_environment_is_told_in_its_own_steps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _train_nothing("--env Pendulum-v1 --env-dt 10ms --dt 100ms --env-steps 300", tmp_path)
    assert "an episode can last 1,000 environment steps" in capsys.readouterr().err


FAILING = """
import gymnasium

class Arm(gymnasium.Env):
    dt = 0.05
    observation_space = gymnasium.spaces.Box(-1, 1, (1,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def __init__(self, plugged=True):
        if not plugged:
            raise FileNotFoundError(2, "No such file or directory", "/dev/arm")

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        raise BrokenPipeError(32, "Broken pipe")

gymnasium.register("Arm-v0", Arm)
gymnasium.register("Unplugged-v0", Arm, kwargs={"plugged": False})
"""


@pytest.mark.parametrize(
    ("name", "where", "raised"),
    [("Arm-v0", "its step()", BrokenPipeError), ("Unplugged-v0", "its making", FileNotFoundError)],
)
def test_an_environment_s_own_error_is_never_taken_for_that_of_our_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str, raised: type[OSError]
) -> None:
    """An error that leaves `main` is shown with its traceback, and the exit status is 1."""
    (tmp_path / "failing_arms.py").write_text(FAILING)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = f"--env failing_arms:{name} --dt 100ms --env-steps 1000 --out {tmp_path / 'runs'}".split()
    try:
        with pytest.raises(EnvError, match=re.escape(f"failing_arms:{name} failed in {where}")) as caught:
            main(["train", *words])
    finally:
        sys.modules.pop("failing_arms", None)
        for each in ("Arm-v0", "Unplugged-v0"):
            gymnasium.registry.pop(each, None)
    assert isinstance(caught.value.__cause__, raised)


LEAVING = """
import os
import gymnasium

def make(**options):
    with open(os.environ["STARTED"], "w") as file:
        print(os.posix_spawnp("sleep", ["sleep", "1000"], os.environ), file=file)
    raise OSError("no arm")

gymnasium.register("SlowPendulum-v0", make)
"""


@pytest.mark.parametrize("command", ["train", "resume", "evaluate", "watch"])
def test_what_an_environment_has_started_ends_with_the_command(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_pendulum.py").write_text(LEAVING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("STARTED", str(tmp_path / "started"))
    (run,) = (Path(__file__).parents[1] / "goldens" / "data" / "folders" / "killed-gymnasium").iterdir()
    shutil.copytree(run, tmp_path / run.name)
    new = ["--env", "slow_pendulum:SlowPendulum-v0", "--dt", "50ms", "--env-steps", "1000", "--out", str(tmp_path)]
    film = ["--to", str(tmp_path / "film.gif")] if command == "watch" else []
    try:
        with suppress(EnvError):  # of its making
            main([command, *(new if command == "train" else [str(tmp_path / run.name), *film])])
    finally:
        sys.modules.pop("slow_pendulum", None)
        gymnasium.registry.pop("SlowPendulum-v0", None)
    pid = int((tmp_path / "started").read_text())
    assert os.waitpid(pid, os.WNOHANG) == (pid, signal.SIGKILL)
