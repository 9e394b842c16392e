"""Runs of `cycletime train` that are stopped, refused by the disk, left alone by their terminal, and resumed."""

import os
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies.study_folder import StudyFolder
from cycletime.training import stepped_loop
from cycletime.training.progress_bar import ProgressBar
from cycletime.training.run_folder import RunFolder
from tests.processes import started
from tests.terminals import terminal

TRAIN = "train --env Pendulum-v1 --env-dt 50ms --algorithm actor-critic --dt 50ms --set hidden=64,64 --env-steps"
FILES = ("curve.parquet", "metrics.jsonl", "policy.safetensors")
PATIENCE_S = 120.0


def words(out: Path, env_steps: str = "1000") -> list[str]:
    return [*TRAIN.split(), env_steps, "--out", str(out)]


@pytest.fixture(scope="module", autouse=True)
def _a_chunk_is_an_episode() -> Iterator[None]:
    """However fast the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepped_loop, "CHUNK_S", 0.0)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbs; its folder, with what was on its terminal beside it."""
    out = tmp_path_factory.mktemp("whole")
    with terminal() as shown:
        assert main(words(out)) == 0
    (out / "shown").write_text(shown[0])
    return folder_in(out)


def test_a_terminal_shows_a_bar_with_the_return_and_the_speed(whole: Path) -> None:
    shown = (whole.parent / "shown").read_text()
    assert "Pendulum-v1 actor-critic 50ms seed 0" in shown
    assert "━" in shown
    assert re.search(r"return -[\d,.]+, [\d,]+ env steps/s", shown)
    assert "100%" in shown
    assert "Traceback" not in shown


def folder_in(out: Path) -> Path:
    return next(out.glob("*/spec.json")).parent


def same_as(whole: Path, folder: Path) -> bool:
    return all((whole / name).read_bytes() == (folder / name).read_bytes() for name in FILES)


def signalled(monkeypatch: pytest.MonkeyPatch, number: signal.Signals, times: int = 1) -> None:
    """Send a signal to this process, so many times, as soon as a run has gone on for a while."""

    def show(*_told: object, **_how: object) -> None:
        for _ in range(times):
            signal.raise_signal(number)

    monkeypatch.setattr(ProgressBar, "show", show)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_leaves_and_the_resumed_run_is_the_same(
    tmp_path: Path, whole: Path, capfd: pytest.CaptureFixture[str], number: signal.Signals, status: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        signalled(patch, number)
        assert main(words(tmp_path)) == status
    folder = folder_in(tmp_path)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "Stopping at the next good moment (about a second, or the episode's end)" in printed.err
    assert printed.err.endswith(f"Stopped. To go on: cycletime resume {folder}\n")
    assert len(list((folder / "checkpoints").iterdir())) == 1
    assert main(words(tmp_path)) == 2
    assert re.search("was stopped: add --resume to go on with it, or delete", capfd.readouterr().err)
    assert main(["resume", str(folder)] if number == signal.SIGINT else [*words(tmp_path), "--resume"]) == 0
    assert "resumed, identical" in capfd.readouterr().out
    assert same_as(whole, folder)


def test_a_second_signal_ends_it_at_once_and_loses_nothing(
    tmp_path: Path, whole: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    begin = [*words(tmp_path), "--checkpoint-every", "1ns"]
    with pytest.MonkeyPatch.context() as patch:
        signalled(patch, signal.SIGINT)
        assert main(begin) == 130
    capfd.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        signalled(patch, signal.SIGINT, times=2)
        assert main([*begin, "--resume"]) == 130
    complaint = capfd.readouterr().err
    assert complaint.endswith("cycletime: Interrupted.\n")
    assert "Traceback" not in complaint
    folder = RunFolder.open(folder_in(tmp_path))
    checkpoint, damaged = folder.checkpoints.newest(folder.spec.identity)
    assert checkpoint is not None
    assert (damaged, not list(folder.path.rglob(".writing-*"))) == ([], True)
    assert main(["resume", str(folder.path)]) == 0
    assert same_as(whole, folder.path)


def test_a_run_that_another_process_has_is_left_to_it(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder.create(tmp_path, RunFolder.open(whole).spec)
    with folder.locked():
        assert main(["resume", str(folder.path)]) == 1
    says = rf"cycletime: The run {folder.path} is being trained by process {os.getpid()} on .*: wait for it, or end it"
    assert re.match(says, capsys.readouterr().err)


@contextmanager
def no_file_beyond(most_bytes: int) -> Iterator[None]:
    """No file may grow beyond a size, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_refuses_a_checkpoint_is_one_sentence_and_with_room_the_run_is_the_same(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with no_file_beyond(30_000):  # the policy is smaller, a checkpoint larger
        assert main([*words(tmp_path), "--checkpoint-every", "1ns"]) == 1
    folder = folder_in(tmp_path)
    complaint = capsys.readouterr().err
    assert complaint.endswith(f"cycletime: {folder}/checkpoints/000001 cannot be written: File too large.\n")
    assert not list(folder.rglob(".writing-*"))
    assert main(["resume", str(folder)]) == 0
    assert same_as(whole, folder)


def test_a_run_whose_standard_error_is_gone_goes_on_and_still_saves_when_asked_to_stop(tmp_path: Path) -> None:
    """A process, since its signals and its standard error are the system's own."""
    read, write = os.pipe()
    with started([sys.executable, "-m", "cycletime", *words(tmp_path, "1e7")], write) as process:
        os.close(write)
        os.read(read, 1)
        os.close(read)  # from now on nobody listens
        ends = time.monotonic() + PATIENCE_S
        while not list(tmp_path.glob("*/lock")):
            assert process.poll() is None
            assert time.monotonic() < ends
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert len(list(tmp_path.glob("*/checkpoints/0*"))) == 1


def test_a_finished_run_is_told_again_and_not_trained_again(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole, tmp_path / whole.name)
    before = (tmp_path / whole.name / "result.json").stat().st_mtime_ns
    assert main(words(tmp_path)) == 0
    told = capsys.readouterr().out
    assert re.match(
        r"finished before: seed 0: average return -[\d,.]+, last tenth -[\d,.]+ \(5 episodes\), \d+ s", told
    )
    assert told.endswith(f"  {tmp_path / whole.name}\n")
    assert (tmp_path / whole.name / "result.json").stat().st_mtime_ns == before


def test_a_run_of_a_study_goes_on_with_its_study(
    quick: StudyFolder, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["resume", str(whole), str(quick.runs / "some-run")]) == 2
    said = f"some-run is a run of the study in {quick.path}: 'cycletime study run' with its file and --out goes on"
    assert said in capsys.readouterr().err
