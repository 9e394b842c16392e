"""`cycletime study run` as people use it: real processes, signals, two at once, and one sentence for wrong input."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.cli.study.progress import StudyProgress, spelled
from cycletime.studies.executors.executor import Event
from cycletime.studies.folder import StudyFolder
from cycletime.studies.plan import Plan
from cycletime.studies.study_file import read_study
from tests.processes import started

FILES = ("spec.json", "curve.parquet", "metrics.jsonl", "policy.safetensors")
STUDY = """\
name = "three"
task = "reacher"
algorithm = "actor-critic"
dts = ["32ms"]
seeds = 3
env_steps = 400_000
[set]
hidden = [8]
"""
TRAINING = "runs/*/lease.json"
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("study") / "three.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(scope="module")
def whole(file: Path) -> Path:
    """The study, undisturbed."""
    out = file.parent / "whole"
    ran = subprocess.run(words(file, out), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "three: 3 done\n"), ran.stderr
    assert ran.stderr.startswith("three: 3 runs in 1 group, 0 done; 1 at a time\n")
    return out


def words(file: Path, out: Path, workers: int = 1) -> list[str]:
    command = [sys.executable, "-m", "cycletime", "study", "run", str(file), "--out", str(out)]
    return [*command, "--workers", str(workers)]


def wait_until(is_so: Callable[[], object]) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.01)


def files_in(out: Path) -> dict[str, bytes]:
    return {
        f"{path.name}/{name}": (path / name).read_bytes()
        for path in sorted((out / "runs").iterdir())
        if path.is_dir()
        for name in FILES
    }


def is_trained(out: Path) -> bool:
    return any(path.stat().st_size for path in out.glob("runs/*/metrics.jsonl"))


def test_a_study_that_is_done_is_told_again_and_not_run_again(
    whole: Path, file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.glob("runs/*/result.json")}
    assert len(before) == 3
    assert main(["study", "run", str(file), "--out", str(whole)]) == 0
    assert capfd.readouterr().out == "three: 3 done\n"
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not list(whole.glob(".*")) + list(whole.glob("runs/*/.*")) + list(whole.glob("runs/*/lease.json"))


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_lets_all_workers_save_and_going_on_gives_the_same_bytes(
    tmp_path: Path, file: Path, whole: Path, number: signal.Signals, status: int
) -> None:
    out = tmp_path / "out"
    with started(words(file, out, workers=2)) as process:
        wait_until(lambda: is_trained(out))
        process.send_signal(number)
        told, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, complaint
    assert re.fullmatch(r"three: (\d done, )?(\d pending, )?\d stopped\n", told)
    assert "Stopped. The same command goes on with it.\n" in complaint
    assert "Traceback" not in complaint
    assert list(out.glob("runs/*/checkpoints/0*"))
    assert not list(out.glob(TRAINING))
    assert subprocess.run(words(file, out), capture_output=True, check=False).returncode == 0
    assert files_in(out) == files_in(whole)


def test_workers_do_not_outlive_a_scheduler_that_is_killed_and_save_before_they_go(
    tmp_path: Path, file: Path, whole: Path
) -> None:
    out = tmp_path / "out"
    with started(words(file, out, workers=2)) as process:
        wait_until(lambda: is_trained(out))
        workers = {json.loads(path.read_text())["pid"] for path in out.glob(TRAINING)}
        process.kill()
        assert process.wait() == -9
    assert workers
    wait_until(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers))
    assert list(out.glob("runs/*/checkpoints/0*"))
    assert not list(out.glob("runs/*/failures.jsonl"))
    assert not list(out.glob(TRAINING))
    assert subprocess.run(words(file, out), capture_output=True, check=False).returncode == 0
    assert files_in(out) == files_in(whole)


def test_two_at_once_share_the_work(tmp_path: Path, file: Path, whole: Path) -> None:
    out = tmp_path / "out"
    command = words(file, out, workers=2)
    with started(command) as one, started(command) as other:
        said = [process.communicate(timeout=PATIENCE_S) for process in (one, other)]
    assert [(process.returncode, told) for process, (told, _) in zip((one, other), said, strict=True)] == [
        (0, "three: 3 done\n")
    ] * 2
    assert files_in(out) == files_in(whole)
    results = [json.loads(path.read_text()) for path in out.glob("runs/*/result.json")]
    assert [result["sessions"] for result in results] == [1, 1, 1]
    assert not list(out.glob("runs/*/failures.jsonl"))


def test_a_run_that_fails_three_times_is_told_and_the_others_are_done(tmp_path: Path, whole: Path, file: Path) -> None:
    """One of the runs is a folder whose curve cannot be written."""
    out = tmp_path / "out"
    names = sorted(path.name for path in (whole / "runs").iterdir() if path.is_dir())
    (out / "runs" / names[1] / "curve.parquet").mkdir(parents=True)
    (out / "runs" / names[1] / "curve.parquet" / "in the way").touch()
    ran = subprocess.run(words(file, out), capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "three: 2 done, 1 failed\n")
    assert ran.stderr.count(f"{names[1]} failed: RunError: ") == 3
    noted = [json.loads(line) for line in (out / "runs" / names[1] / "failures.jsonl").read_text().split("\n") if line]
    assert len(noted) == 3
    assert "Traceback (most recent call last)" in noted[0]["traceback"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["FILE", "--executor", "dask"], "'dask' is no executor: give local, ray or slurm."),
        (["FILE", "--workers", "0"], "workers is 0: it must be at least 1."),
        (["FILE", "--gpus", "0.5"], "gpus is 0.5: that is for the executor ray, and this is local."),
        (["FILE", "--sbatch", "account=lab"], "sbatch is ('account=lab',): that is for the executor slurm, and"),
        (["no.toml"], "no.toml cannot be read: No such file or directory."),
    ],
)
def test_wrong_input_is_one_sentence(
    tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    given = [str(file) if word == "FILE" else word for word in arguments]
    assert main(["study", "run", *given, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.startswith(f"cycletime: {says}")
    assert not (tmp_path / "out").exists()


def test_progress_tells_the_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    now_s, shown = 0.0, []
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    monkeypatch.setattr("cycletime.cli.study.progress.LINE_S", 0)
    progress = StudyProgress(2)
    monkeypatch.setattr(progress.console, "print", lambda text, **options: shown.append(text))
    plan = Plan.of(read_study(file))
    one, two, three = (planned.name for planned in plan.runs)
    progress.begin(plan, {one: "pending", two: "pending", three: "done"})
    progress.update(Event(one, env_steps=10_000))  # which an earlier command did
    now_s = 5.0
    progress.update(Event(one, env_steps=20_000))  # after its program was compiled
    now_s = 15.0
    progress.update(Event(one, env_steps=120_000))
    progress.update(Event(one, outcome="done"))
    progress.update(Event(two, outcome="failed", error="Why: so"))
    progress.update(Event("unknown", env_steps=5, outcome="done"))
    progress.end()
    assert shown == [
        "three: 3 runs in 1 group, 1 done; 2 at a time",
        "1 of 3 runs, starting or compiling",
        "1 of 3 runs, starting or compiling",
        "1 of 3 runs, 10,000 env steps/s, 68 s left",
        "2 of 3 runs, 10,000 env steps/s, 40 s left",
        f"{two} failed: Why: so",
        "2 of 3 runs, 10,000 env steps/s, 1 failure, 40 s left",
        "2 of 3 runs, 10,000 env steps/s, 1 failure, 40 s left",
    ]


def test_progress_tells_the_rates_of_groups_and_not_more_often_than_it_is_due(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    now_s, shown = 0.0, []
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    (tmp_path / "s.toml").write_text(STUDY.replace('"32ms"', '"16ms", "32ms"'))
    progress = StudyProgress(2)
    monkeypatch.setattr(progress.console, "print", lambda text, **options: shown.append(text))
    plan = Plan.of(read_study(tmp_path / "s.toml"))
    progress.begin(plan, {planned.name: "pending" for planned in plan.runs})
    happened = ((0.0, 0, 0), (0.0, 3, 0), (1.0, 0, 1000), (2.0, 3, 6000), (9.0, 0, 2000), (21.0, 3, 26_000))
    for now_s, run, env_steps in happened:  # noqa: B007
        progress.update(Event(plan.runs[run].name, env_steps=env_steps))
    assert shown[1:] == [
        "0 of 6 runs, starting or compiling",
        "0 of 6 runs, 1,350 env steps/s, 29 min left "
        "(reacher actor-critic 32ms 1,300/s; reacher actor-critic 16ms 50/s)",
    ]


def test_times_are_told_as_people_say_them() -> None:
    assert [spelled(each) for each in (5, 119, 121, 7199, 7200)] == [
        "5 s",
        "119 s",
        "2 min",
        "120 min",
        "2.0 h",
    ]


def test_a_terminal_shows_a_bar_and_the_groups_below_it(file: Path, whole: Path, tmp_path: Path) -> None:
    wider = tmp_path / "wider.toml"
    wider.write_text(STUDY.replace('"32ms"', '"32ms", "64ms"').replace("seeds = 3", "seeds = 1"))
    leader, follower = pty.openpty()
    terminal = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with started(words(wider, tmp_path / "out"), follower, env=terminal) as run:
        os.close(follower)
        shown = b""
        with suppress(OSError):  # Linux's way to say that the other side has left
            while chunk := os.read(leader, 1000):
                shown += chunk
        run.wait(PATIENCE_S)
    os.close(leader)
    text = shown.decode()
    assert (run.returncode, "Traceback" in text) == (0, False)
    assert "━" in text
    assert "2/2" in text
    assert re.search(r"\d env steps/s, \d+ s left", text)
    assert re.search(r"  reacher actor-critic (32|64)ms [\d,]+/s", text)


def test_a_study_goes_on_where_nobody_reads_its_standard_error(file: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.toml"
    short.write_text(STUDY.replace("400_000", "40_000"))
    read, write = os.pipe()
    with started(words(short, tmp_path / "study"), write) as process:
        os.close(write)
        os.close(read)
        assert process.communicate()[0] == "three: 3 done\n"
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("engine", "sentence"),
    [("compiled", "The run is for a GPU, and JAX finds none here: "), ("cuda", "The engine cuda ")],
)
def test_a_study_that_goes_on_where_there_is_no_gpu_is_one_sentence_and_no_run_s_failure(
    file: Path, tmp_path: Path, engine: str, sentence: str
) -> None:
    keys = f'device = "gpu"\nwidth = 2\nengine = "{engine}"\n[set]\n'
    begun = tmp_path / "study.toml"
    begun.write_text(STUDY.replace('"actor-critic"', '"ppo"').replace("[set]\nhidden = [8]\n", keys))
    out = StudyFolder.create(tmp_path / "study", read_study(begun)).path
    begun.write_text(begun.read_text().replace(f'engine = "{engine}"\n', ""))
    ran = subprocess.run(words(begun, out), capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    _, told = ran.stderr.splitlines()
    assert told.startswith(f"cycletime: {sentence}")
    folder = StudyFolder.open(out)
    assert {folder.state_of(planned.name) for planned in Plan.of(folder.study).runs} == {"pending"}
    assert not list(out.rglob("failures.jsonl"))
