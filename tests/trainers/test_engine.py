"""Trainers as processes: what they learn becomes a run, and whatever goes wrong is a sentence and leaves nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from contextlib import closing, suppress
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError, RunError
from cycletime.studies.plan import Plan
from cycletime.studies.spec_file import study_from_table, study_table
from cycletime.studies.study_folder import StudyFolder, policy_of
from cycletime.studies.watchdog import Watchdog
from cycletime.trainers import engine
from cycletime.trainers.engine import TrainerBatch, TrainerEngine
from cycletime.training.engine import Chunk
from cycletime.training.finished_run import FinishedRun
from cycletime.training.learning_curve import Episodes
from cycletime.training.spec import RunSpec
from tests.studies.stand_ins import train_run

TABLE = {"name": "own", "algorithm": "ppo", "dts": ["20ms"], "simulated_s": 100, "tuned": {"discount": 0.9}}
WRITE = "open('progress.csv', 'w').write('seconds,return\\n' + ''.join(f'{t},{-t}\\n' for t in range(10, 101, 10)))"


def spec_of(folder: Path, script: str, **trainer: object) -> RunSpec:
    (folder / "train.py").write_text(script)
    command = ["python", "train.py", "{discount}"]
    study = study_from_table({**TABLE, "trainer": {"command": command, **trainer}}, folder)
    return next(spec for _, spec in study.runs())


def train(spec: RunSpec, folder: Path) -> list[Chunk]:
    with closing(TrainerEngine().make_batch([spec])) as batch:
        batch.use_folder(0, folder / "run")
        return [chunk for chunks in batch.chunks({0: None}) for chunk in chunks.values() if isinstance(chunk, Chunk)]


def test_a_command_gets_its_values_and_its_curve_becomes_the_runs(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, f"import sys\nassert sys.argv[1:] == ['0.9']\n{WRITE}")
    chunks = train(spec, tmp_path)
    assert returns_of(chunks) == [float(-t) for t in range(10, 101, 10)]
    assert chunks[-1].is_last
    assert (chunks[-1].env_steps, chunks[-1].agent_steps) == (100_000, 5000)


@pytest.mark.parametrize(("step", "cycle_steps"), [({}, 20), ({"env_dt": "5ms"}, 4)])
def test_a_command_gets_the_steps_of_a_cycle(tmp_path: Path, step: dict[str, str], cycle_steps: int) -> None:
    """As Isaac Lab's decimation: physics that step every 5 ms do so at each cycle time."""
    (tmp_path / "train.py").write_text(f"import sys\nassert sys.argv[2:] == ['{cycle_steps}']\n{WRITE}")
    command = {"command": ["python", "train.py", "{discount}", "{cycle_steps}"]}
    study = study_from_table({**TABLE, **step, "trainer": command}, tmp_path)
    assert len(returns_of(train(next(spec for _, spec in study.runs()), tmp_path))) == 10


def returns_of(chunks: list[Chunk]) -> list[float]:
    return [float(value) for chunk in chunks for value in chunk.episodes.returns]


def test_points_of_one_moment_are_their_mean(tmp_path: Path) -> None:
    rows = "seconds,return\n50,1\n50,3\n90,5\n"
    chunks = train(spec_of(tmp_path, f"open('progress.csv', 'w').write({rows!r})"), tmp_path)
    assert returns_of(chunks) == [2.0, 5.0]


def test_a_trainer_that_goes_beyond_its_budget_is_ended(tmp_path: Path) -> None:
    script = "import time\nopen('progress.csv', 'w').write('seconds,return\\n90,1\\n100.5,2\\n')\ntime.sleep(600)"
    chunks = train(spec_of(tmp_path, script), tmp_path)
    assert chunks[-1].is_last
    assert returns_of(chunks) == [1.0]


def test_a_trainer_that_lingers_at_the_end_of_its_budget_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LINGER_S", 1.0)
    chunks = train(spec_of(tmp_path, f"import time\n{WRITE}\ntime.sleep(600)"), tmp_path)
    assert chunks[-1].is_last
    assert returns_of(chunks) == [float(-t) for t in range(10, 101, 10)]


def test_a_trainer_whose_points_are_far_apart_may_leave_as_much_to_the_end(tmp_path: Path) -> None:
    assert returns_of(train(spec_of(tmp_path, WRITE.replace("10, 101, 10", "35, 71, 35")), tmp_path)) == [-35.0, -70.0]


def test_a_trainer_may_leave_a_batch_that_is_not_whole(tmp_path: Path) -> None:
    """As CleanRL's script does: of 5,000 agent steps two batches of 2,000, and a point every 500."""
    (tmp_path / "train.py").write_text(WRITE.replace("101", "71"))
    command = {"command": ["python", "train.py", "{discount}", "{batch}"]}
    study = study_from_table({**TABLE, "tuned": {"discount": 0.9, "batch": 2000}, "trainer": command}, tmp_path)
    assert returns_of(train(next(spec for _, spec in study.runs()), tmp_path))[-1] == -70.0


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("raise ValueError(200 * 'ab')", "last saying 'ValueError: abab.{80,90}abab'; see"),
        ("raise ValueError('no robot')", "train failed with status 1, last saying 'ValueError: no robot'"),
        ("import os; os.kill(os.getpid(), 11)", "train was ended by SIGSEGV"),
        ("print('hello')", "train ended without a point in progress.csv of {folder}"),
        ("open('progress.csv', 'w').write('seconds,return\\n10,1\\n')", "ended after 10 s of 100 s simulated"),
        (WRITE.replace("101", "71"), "ended after 70 s of 100 s simulated: give it its budget"),
        ("open('progress.csv', 'w').write('a,b\\n1,2\\n')", "progress.csv has the columns 'a, b'"),
        ("open('progress.csv', 'w').write('seconds,return\\n10,1\\n90,')", "ended after 10 s of 100 s simulated"),
        ("open('progress.csv', 'wb').write(bytes(range(128, 256)) + b'\\n')", "progress.csv has the columns"),
        ("open('progress.csv', 'w').write('seconds,return\\n50,1\\n20,1\\n')", "goes back from 50 s to 20 s"),
    ],
)
def test_what_goes_wrong_is_one_sentence(tmp_path: Path, script: str, says: str) -> None:
    with pytest.raises(RunError, match=says):
        train(spec_of(tmp_path, script), tmp_path)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("raise ValueError('no robot')", "train failed with status 1, last saying 'ValueError: no robot'."),
        ("print('hello')", "train ended without a point in progress.csv of {folder}, last saying 'hello'."),
        ("", "train ended without a point in progress.csv of {folder}."),
    ],
)
def test_a_try_names_no_file_that_is_removed_with_it(tmp_path: Path, script: str, says: str) -> None:
    """And refuses what has no point at all, as what another try would meet again."""
    spec = spec_of(tmp_path, script)
    with pytest.raises(InputError, match=f"^{re.escape(says)}$"):
        TrainerEngine().cost(spec)


def test_a_try_leaves_to_the_runs_what_fails_after_a_point(tmp_path: Path) -> None:
    script = "open('progress.csv', 'w').write('seconds,return\\n10,1\\n')\nraise ValueError('seed')"
    with pytest.raises(RunError, match=r"^train failed with status 1, last saying 'ValueError: seed'\.$"):
        TrainerEngine().cost(spec_of(tmp_path, script))


FUNCTION = "def train(run):\n    "


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            f"{FUNCTION}yield 50, 1.0, -3.0",
            r"reports 50 simulated seconds at agent step 1, which is at 0.02 s: give \(",
        ),
        (
            f"{FUNCTION}yield 50.0, 2500, [-3.0]",
            r"It yields \(50.0, 2500, \[-3.0\]\): it must yield three numbers, \(seconds",
        ),
        (f"{FUNCTION}yield 150.0, 7500, -3.0", "first point is at 150 s of 100 s simulated: give the study a larger"),
        (f"{FUNCTION}yield 20e3, 1000000, -3.0", "20,000 s of 100 s simulated: give seconds and not milliseconds, or"),
        (f"{FUNCTION}run.make_env()", "no environment: give the study a task, or a Gymnasium id as its env"),
        ("def trian(run):\n    pass", "the module has no 'train'; did you mean trian"),
    ],
)
def test_a_function_that_is_wrong_is_told_what_would_be_right(tmp_path: Path, script: str, says: str) -> None:
    (tmp_path / f"{(module := f'wrong{len(script)}')}.py").write_text(script)
    table = {key: value for key, value in TABLE.items() if key not in ("env", "env_dt", "trainer")}
    study = study_from_table({**table, "trainer": f"{module}:train"}, tmp_path)
    with pytest.raises(InputError, match=says):
        train(next(spec for _, spec in study.runs()), tmp_path)


def test_its_runs_have_no_policy_here(tmp_path: Path) -> None:
    run = FinishedRun(spec_of(tmp_path, ""), {}, Episodes.of([]), {})
    with pytest.raises(InputError, match="was trained by train: its policies are not kept here"):
        policy_of(run)


def test_missing_tensorboard_begins_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(module: str) -> None:
        raise InputError("TensorBoard is not installed")

    monkeypatch.setattr("cycletime.trainers.curves.load_tensorboard", refuse)
    spec = spec_of(tmp_path, WRITE, curve="tensorboard")
    with pytest.raises(InputError, match="not installed"):
        train(spec, tmp_path)
    assert TrainerEngine().make_batch([spec]).use_folder(0, tmp_path) is None


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, "", command=["no-such-program", "{discount}"])
    with pytest.raises(InputError, match="'no-such-program' cannot be started"):
        train(spec, tmp_path)


def test_a_function_that_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text("def train(run):\n    pass\n")
    study = study_from_table({**TABLE, "trainer": "silent:train"}, tmp_path)
    with pytest.raises(RunError, match=r"^silent:train ended without a point that it yields or reports"):
        train(next(iter(study.runs()))[1], tmp_path)


def test_a_trainer_that_hangs_is_named_and_ended(tmp_path: Path) -> None:
    script = "import os, time\nopen(f'{os.getpid()}.pid', 'w').close()\nprint('thinking')\ntime.sleep(600)"
    batch = TrainerEngine().make_batch([spec_of(tmp_path, script)])
    batch.use_folder(0, tmp_path / "run")
    chunks, said, clock = batch.chunks({0: None}), [], iter((0.0, 4.0, 8.0, 12.0))
    while not (pids := [int(path.stem) for path in tmp_path.rglob("*.pid")]):
        assert next(chunks) == {}
    watchdog = Watchdog(9.0, lambda: False, lambda *reason: said.append(reason), clock.__next__)
    for _ in range(3):
        assert next(chunks) == {}
        watchdog.check()
    batch.close()
    output = tmp_path / "run" / "output-1.txt"
    assert said == [
        (
            "hangs",
            f"it hangs: it did not get further for 12 s, in train, without a new point in progress.csv: see {output}",
        )
    ]
    assert output.read_text() == "thinking\n"
    assert_ended(pids)


def test_nothing_is_left_of_a_trainer_that_forks_and_ignores_signals(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork() or (os.setsid(), os.fork())\n"
        "open(f'{os.getpid()}.pid', 'w').close()\nopen('progress.csv', 'w').write('seconds,return\\n')\ntime.sleep(600)"
    )
    spec = spec_of(tmp_path, script)
    batch = TrainerEngine().make_batch([spec])
    batch.use_folder(0, tmp_path / "run")
    chunks, folder = batch.chunks({0: None}), tmp_path / "run" / "trainer"
    while len(list(folder.glob("*.pid"))) < 3:
        next(chunks)
    batch.close()
    assert_ended([int(path.stem) for path in folder.glob("*.pid")])


def assert_ended(pids: list[int]) -> None:
    assert pids
    until = time.monotonic() + 60
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < until, f"{running} are left"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize(
    ("trainer", "finds", "remark"),
    [
        ({}, "not os.path.exists('left')", "it was stopped and began anew"),
        ({"resume": ["--on"]}, "os.path.exists('left') and sys.argv[-1] == '--on'", "it was resumed by its trainer"),
    ],
)
def test_a_run_that_was_stopped_goes_on(tmp_path: Path, trainer: dict[str, Any], finds: str, remark: str) -> None:
    stops = "if not os.path.exists('../half'):\n    open('../half', 'w'); open('left', 'w'); sys.exit(1)"
    spec = spec_of(tmp_path, f"import os, sys\n{stops}\nassert {finds}\n{WRITE}", **trainer)
    with pytest.raises(RunError):
        train(spec, tmp_path)
    earlier = TrainerBatch(spec).use_folder(0, tmp_path / "run")
    assert earlier is not None
    assert (earlier.sessions, earlier.remark) == (1, remark)
    assert train(spec, tmp_path)[-1].is_last


def test_a_function_in_a_study(tmp_path: Path) -> None:
    (tmp_path / "own_module.py").write_text(
        "def train(run):\n"
        "    assert run.values['discount'] == 0.9 and run.agent_steps == 5000 and run.num_envs == 1\n"
        "    for episode in range(1, 11):\n"
        "        yield 500 * episode * run.dt_s, 500 * episode, run.seed - episode\n"
    )
    study = study_from_table({**TABLE, "trainer": "own_module:train", "seed": 3}, tmp_path)
    assert study_from_table(json.loads(json.dumps(study_table(study)))) == study
    folder = StudyFolder.create(tmp_path / "out", study)
    (name,) = (run.name for run in Plan.of(study).runs)
    assert train_run(folder, name) == "finished"
    result = folder.store.result(name) if name in folder.store.refresh() else {}
    assert result["mean_over_episodes"] == 3 - 5.5
    assert result["where"] == result["machine"]["trainer"] == "own_module:train"
    assert not (tmp_path / "out" / "runs" / name).exists()


def test_the_process_of_a_function_loads_no_jax(tmp_path: Path) -> None:
    (tmp_path / "own_module.py").write_text(
        "import sys\n\n\ndef train(run):\n    env = run.make_env()\n    env.reset(seed=run.seed)\n"
        "    env.step(env.action_space.sample())\n    assert env.get_wrapper_attr('dt') == run.dt_s == 0.02\n"
        "    assert 'jax' not in sys.modules\n    yield run.simulated_s, run.agent_steps, 1.0\n"
    )
    table = {**TABLE, "env": "Pendulum-v1", "env_dt": "10ms", "trainer": "own_module:train"}
    spec = next(spec for _, spec in study_from_table(table, tmp_path).runs())
    assert train(spec, tmp_path)[-1].is_last


def test_a_function_gets_an_environment_with_discrete_actions(tmp_path: Path) -> None:
    (tmp_path / "of_cart.py").write_text(
        f"{FUNCTION}env = run.make_env()\n    env.reset(seed=run.seed)\n    info = env.step(1)[-1]\n"
        "    yield run.simulated_s, run.agent_steps, info['env_steps']\n"
    )
    table = {**TABLE, "dts": ["40ms"], "env": "CartPole-v1", "env_dt": "20ms", "trainer": "of_cart:train"}
    assert returns_of(train(next(spec for _, spec in study_from_table(table, tmp_path).runs()), tmp_path)) == [2.0]


def test_a_function_on_a_task_in_closed_form_makes_runs_that_are_found_good(tmp_path: Path) -> None:
    (tmp_path / "of_task.py").write_text(f"{FUNCTION}yield run.simulated_s, run.agent_steps, 1.0\n")
    table = {**TABLE, "task": "pendulum", "trainer": "of_task:train", "seeds": 2}
    folder = StudyFolder.create(tmp_path / "out", study_from_table(table, tmp_path))
    names = [run.name for run in Plan.of(folder.study).runs]
    assert [train_run(folder, name) for name in names] == ["finished", "finished"]
    found = {name: folder.store.result(name)["where"] for name in folder.store.refresh()}
    assert found == dict.fromkeys(names, "closed form, of_task:train")
    assert not folder.damage()


def test_other_code_is_told_apart(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, WRITE)
    then = TrainerBatch(spec).env_infos[0].card["script"]
    (tmp_path / "train.py").write_text(WRITE + "  # better")
    now = TrainerBatch(spec).env_infos[0].card["script"]
    assert (len(then), then == now) == (8, False)


def test_a_study_begins_only_where_its_trainer_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {**TABLE, "env": "Pendulum-v1", "env_dt": "20ms", "trainer": "stable-baselines3"}
    ours = list(Distribution.discover(name="cycletime"))
    monkeypatch.setattr(Distribution, "discover", lambda name: iter({"torch": [], "cycletime": ours}.get(name, [name])))
    needs = r"^stable-baselines3 needs 'torch', which is not installed: pip install 'cycletime\[stable-baselines3\]'\.$"
    with pytest.raises(InputError, match=needs):
        StudyFolder.create(tmp_path / "out", study_from_table(table))
    monkeypatch.setattr(Distribution, "discover", lambda name: [name])
    for name, text in (("policy_kwargs", "dict(a=lambda x: x)"), ("normalize", "dict("), ("clip_range", "lin_x")):
        with pytest.raises(InputError, match=rf"^{name} is '.*, which cannot be read"):
            StudyFolder.create(tmp_path / "out", study_from_table({**table, "set": {name: text}}))
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_said_and_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "own_module.py").write_text("import no_such_package\n")
    spec = next(spec for _, spec in study_from_table({**TABLE, "trainer": "own_module:train"}, tmp_path).runs())
    with pytest.raises(
        InputError,
        match=r"^'own_module:train' needs a module that cannot be imported: No module named 'no_such_package': ",
    ):
        train(spec, tmp_path)


def test_a_result_has_the_version_of_the_library_in_the_commands_own_python(tmp_path: Path) -> None:
    package = tmp_path / "venv" / "lib" / "python3.9" / "site-packages" / "cleanrl-9.9.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: cleanrl\nVersion: 9.9\n")
    spec = spec_of(tmp_path, "", command=["venv/bin/python", "-m", "cleanrl.ppo"], words="cleanrl")
    assert TrainerBatch(spec).env_infos[0].card == {"trainer": "cleanrl.ppo", "cleanrl": "9.9"}


def test_another_place_is_no_other_run(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    here, there = (spec_of(folder, "") for folder in (tmp_path, tmp_path / "there"))
    assert here.identity == there.identity
    assert here.agent != there.agent
    assert RunSpec.from_json(json.loads(json.dumps(here.as_json()))) == here


FAULTS = """
import os, signal, time


def train(run):
    for part in range(1, 11):
        yield 10.0 * part, 500 * part, float("nan") if run.seed == 1 and part > 5 else float(part)
        if run.seed == 0:
            raise ValueError("no robot")
        if run.seed == 2:
            import no_such_package
        if run.seed == 3 and part == 1 and not os.fork():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.setsid()
            (run.folder.parents[2] / f"{os.getpid()}.pid").touch()
            time.sleep(600)
    while run.seed == 3 and not list(run.folder.parents[2].glob("*.pid")):
        time.sleep(0.01)
"""


def test_runs_go_on_beside_those_that_fail(tmp_path: Path) -> None:
    (tmp_path / "faults.py").write_text(FAULTS)
    (tmp_path / "study.toml").write_text(
        'name = "faults"\ntrainer = "faults:train"\nalgorithm = "ppo"\ndt = "20ms"\nseeds = 5\nsimulated_s = 100\n'
    )
    words = ["study", "run", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    ended = subprocess.run([sys.executable, "-m", "cycletime", *words], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    folder = StudyFolder.open(tmp_path / "out")
    finished = folder.store.refresh()
    runs = [run.name for run in Plan.of(folder.study).runs]
    assert [f"-seed{seed}-" in name for seed, name in enumerate(runs)] == [True] * 5
    assert sorted(finished) == sorted(runs[seed] for seed in (1, 3, 4))
    assert [folder.store.result(runs[seed])["mean_over_episodes"] for seed in (1, 3, 4)] == [None, 5.5, 5.5]
    said = ended.stderr
    assert f"{runs[0]} failed: faults:train failed with status 1, last saying 'ValueError: no robot'; see " in said
    assert f"{runs[2]} failed: faults:train needs 'no_such_package', which is not installed: pip install it.\n" in said
    assert said.count("no_such_package") == 1, "it was tried again"
    assert_ended([int(path.stem) for path in (tmp_path / "out").glob("*.pid")])
