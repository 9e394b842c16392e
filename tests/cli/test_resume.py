"""Runs of `cycletime train` that are stopped, refused by the disk, left alone by their terminal, and resumed."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.runs.folder import RunFolder
from tests.processes import started

PENDULUM = "--env Pendulum-v1 --env-dt 50ms --algorithm actor-critic --dt 50ms --set hidden=64,64"
FILES = ("curve.parquet", "metrics.jsonl", "policy.safetensors")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "cycletime", *words]


def folder_in(out: Path) -> Path:
    return next(out.glob("*/spec.json")).parent


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbs, through a pseudo-terminal; its folder, with what was on the terminal beside it."""
    out = tmp_path_factory.mktemp("whole")
    leader, follower = pty.openpty()
    words = command("train", *PENDULUM.split(), "--env-steps", "4000", "--out", str(out))
    terminal = {**os.environ, "TERM": "xterm", "COLUMNS": "150"}
    with started(words, follower, env=terminal) as process:
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
        process.wait()
    os.close(leader)
    (out / "shown").write_bytes(shown)
    return folder_in(out)


def _read(leader: int) -> bytes:
    try:
        return os.read(leader, 1000)
    except OSError:  # Linux's way to say that the other side has left
        return b""


def same_as(whole: Path, folder: Path) -> bool:
    return all((whole / name).read_bytes() == (folder / name).read_bytes() for name in FILES)


def test_a_terminal_shows_a_bar_with_the_speed(whole: Path) -> None:
    shown = (whole.parent / "shown").read_bytes().decode()
    assert "Pendulum-v1 actor-critic 50ms seed 0" in shown
    assert "━" in shown
    assert re.search(r"return -[\d,.]+, [\d,]+ env steps/s", shown)
    assert "100%" in shown
    assert "Traceback" not in shown


def wait_for(is_so: Path, pattern: str, process: "subprocess.Popen[str]") -> None:
    ends = time.monotonic() + 120
    while not list(is_so.glob(pattern)):
        assert process.poll() is None
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_leaves_and_the_resumed_run_is_the_same(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals, status: int
) -> None:
    words = command("train", *PENDULUM.split(), "--env-steps", "4000", "--out", str(tmp_path))
    with started(words) as process:
        wait_for(tmp_path, "*/metrics.jsonl", process)  # it is written to from the start on
        process.send_signal(number)
        out, complaint = process.communicate(timeout=120)
    folder = folder_in(tmp_path)
    assert (process.returncode, out) == (status, "")
    assert "Stopping at the next good moment (about a second, or the episode's end)" in complaint
    assert complaint.endswith(f"Stopped. To go on: cycletime resume {folder}\n")
    assert len(list((folder / "checkpoints").iterdir())) == 1
    again = ["train", *PENDULUM.split(), "--env-steps", "4000", "--out", str(tmp_path)]
    assert main(again) == 2
    assert capsys.readouterr().err == (
        f"cycletime: {folder} has a run of this spec that was stopped: add --resume to go on with it, or delete the "
        "folder to begin anew.\n"
    )
    assert main(["resume", str(folder)] if number == signal.SIGINT else [*again, "--resume"]) == 0
    assert "resumed, identical" in capsys.readouterr().out
    assert same_as(whole, folder)


def test_a_second_signal_ends_it_at_once_and_loses_nothing(tmp_path: Path, whole: Path) -> None:
    words = command(
        "train", *PENDULUM.split(), "--env-steps", "1e6", "--out", str(tmp_path), "--checkpoint-every", "1ms"
    )
    with started(words) as process:
        wait_for(tmp_path, "*/checkpoints/0*", process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130
    assert complaint.endswith("cycletime: Interrupted.\n") or "To go on" in complaint
    assert "Traceback" not in complaint
    folder = RunFolder.open(folder_in(tmp_path))
    checkpoint, damaged = folder.checkpoints.newest(folder.spec.identity)
    assert checkpoint is not None
    assert (damaged, not list(folder.path.rglob(".writing-*"))) == ([], True)


def test_two_processes_on_one_run_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = command("train", *PENDULUM.split(), "--env-steps", "1e6", "--out", str(tmp_path))
    with started(words) as process:
        wait_for(tmp_path, "*/metrics.jsonl", process)
        folder = folder_in(tmp_path)
        assert main(["resume", str(folder)]) == 1
        says = rf"cycletime: The run {folder} is being trained by process {process.pid} on .*: wait for it, or end it"
        assert re.match(says, capsys.readouterr().err)
        assert process.poll() is None
        process.terminate()
        process.communicate(timeout=120)
    assert process.returncode == 143


def limited(words: Sequence[str], most_bytes: int) -> "subprocess.CompletedProcess[str]":
    """Run the command where no file may grow beyond a size, as on a disk that is full."""
    program = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({most_bytes}, {most_bytes}))
from cycletime.cli import main
sys.exit(main({list(words)!r}))
"""
    no_cache = {**os.environ, "CYCLETIME_CACHE": ""}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=no_cache)


def test_a_disk_that_refuses_a_checkpoint_is_one_sentence_and_with_room_the_run_is_the_same(
    tmp_path: Path, whole: Path
) -> None:
    words = ["train", *PENDULUM.split(), "--env-steps", "4000", "--out", str(tmp_path), "--checkpoint-every", "1ms"]
    ran = limited(words, 30_000)  # the policy is smaller, a checkpoint larger
    folder = folder_in(tmp_path)
    assert ran.returncode == 1
    assert ran.stderr.endswith(f"cycletime: {folder}/checkpoints/000001 cannot be written: File too large.\n")
    assert "Traceback" not in ran.stderr
    assert not list(folder.rglob(".writing-*"))
    assert main(["resume", str(folder)]) == 0
    assert same_as(whole, folder)


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_whose_standard_error_is_gone_goes_on_and_still_saves_when_asked_to_stop(
    tmp_path: Path, signal_number: signal.Signals
) -> None:
    read, write = os.pipe()
    words = command("train", *PENDULUM.split(), "--env-steps", "1e7", "--out", str(tmp_path))
    with started(words, write) as process:
        os.close(write)
        os.read(read, 1)
        os.close(read)  # from now on nobody listens
        wait_for(tmp_path, "*/metrics.jsonl", process)
        process.send_signal(signal_number)
        assert process.wait(60) == 128 + signal_number
    assert len(list(tmp_path.glob("*/checkpoints/0*"))) == 1


def test_a_finished_run_is_told_again_and_not_trained_again(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / whole.name)
    before = (tmp_path / whole.name / "result.json").stat().st_mtime_ns
    assert main(["train", *PENDULUM.split(), "--env-steps", "4000", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert re.match(
        r"finished before: seed 0: average return -[\d,.]+, last tenth -[\d,.]+ \(20 episodes\), \d+ s\n", told
    )
    assert told.endswith(f"  {tmp_path / whole.name}\n")
    assert (tmp_path / whole.name / "result.json").stat().st_mtime_ns == before
