"""What is said to Slurm, and what it answers; scripts stand for its commands, and `test_on_slurm` has the real one."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cycletime.errors import RunError
from cycletime.studies import slurm_executor
from cycletime.studies.slurm_executor import QUEUE_GRACE_S, SlurmExecutor, queued_jobs


class FailedJobError(Exception):
    """Submitit's."""


class Arrays:
    """Stands for submitit's executor."""

    made: list["Arrays"]
    refuses = ""

    def __init__(self, folder: Path, max_num_timeout: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True)

    def update_parameters(self, **given: Any) -> None:  # noqa: ANN401
        self.given = given

    def map_array(self, *columns: Any) -> None:  # noqa: ANN401
        if self.refuses:
            raise FailedJobError(self.refuses)
        self.jobs = list(zip(*columns[1:], strict=True))
        self.made.append(self)


@pytest.fixture
def arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Arrays]:
    """A Slurm whose queue is a file, and that notes what it is asked for."""

    class Own(Arrays):
        made: list[Arrays] = []  # noqa: RUF012

    utils = SimpleNamespace(FailedJobError=FailedJobError)
    stand_in = SimpleNamespace(SlurmExecutor=Own, core=SimpleNamespace(utils=utils))
    monkeypatch.setitem(sys.modules, "submitit", stand_in)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    (tmp_path / "bin").mkdir()
    for name, script in (
        ("sbatch", "exit 1"),
        ("squeue", f'echo "$@" >> {tmp_path}/asked; cat {tmp_path}/queue'),
        ("scancel", f'echo "$@" >> {tmp_path}/cancelled'),
    ):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "queue").write_text("")
    return Own


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on while somebody sleeps."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    return clock


@pytest.mark.usefixtures("arrays")
def test_the_queue_names_workers_by_array_and_index(tmp_path: Path) -> None:
    (tmp_path / "queue").write_text(
        "17_0|cycletime-ab.0\n17_12|cycletime-ab.0\n 18_1|cycletime-ab.1 \n20|bash\n19_[3-7]|other\n"
    )
    assert set(queued_jobs() or ()) == {"cycletime-ab.0-0", "cycletime-ab.0-12", "cycletime-ab.1-1", "bash-0"}
    (tmp_path / "queue").unlink()
    assert queued_jobs() is None, "it does not answer"


def test_workers_are_an_array_of_jobs_that_come_back_by_themselves(arrays: type[Arrays], tmp_path: Path) -> None:
    slurm = SlurmExecutor(workers=5, partition="long", memory_gb=3, gres="gpu:1", sbatch=["account=lab"])
    assert slurm.start(tmp_path, "cycletime-ab", 2, "cpu") == ["cycletime-ab.0-0", "cycletime-ab.0-1"]
    assert slurm.start(tmp_path, "cycletime-ab", 1, "cpu") == ["cycletime-ab.1-0"]
    first, second = arrays.made
    assert first.jobs == [(str(tmp_path.resolve()), name, 5) for name in ("cycletime-ab.0-0", "cycletime-ab.0-1")]
    assert (first.given["job_name"], second.given["job_name"]) == ("cycletime-ab.0", "cycletime-ab.1")
    wanted = {"partition": "long", "mem": 3, "gres": "gpu:1", "array_parallelism": 5, "time": 240}
    assert wanted.items() <= first.given.items()
    assert first.given["additional_parameters"] == {"requeue": True, "account": "lab"}
    assert "export OMP_NUM_THREADS=1" in first.given["setup"]


def test_what_slurm_refuses_is_said_unless_jobs_are_there_already(arrays: type[Arrays], tmp_path: Path) -> None:
    slurm = SlurmExecutor()
    arrays.refuses = "sbatch: error: first\nsbatch: error: invalid partition."
    with pytest.raises(RunError, match=r"^Slurm takes no jobs: sbatch: error: invalid partition\.$"):
        slurm.start(tmp_path, "c", 1, "cpu")
    assert not list((tmp_path / "jobs").iterdir())
    arrays.refuses = ""
    slurm.start(tmp_path, "c", 1, "cpu")
    arrays.refuses = "too many"
    assert slurm.start(tmp_path, "c", 1, "cpu") == []


@pytest.mark.usefixtures("arrays")
def test_a_job_that_is_out_of_the_queue_for_a_while_has_ended(tmp_path: Path, now: list[float]) -> None:
    slurm = SlurmExecutor()
    slurm.start(tmp_path, "c", 2, "cpu")
    (tmp_path / "queue").write_text("1_0|c.0\n1_1|c.0\n")
    assert slurm.poll(0.5) == {}
    (tmp_path / "queue").write_text("1_1|c.0\n")
    told = dict(slurm.poll(0.5))
    began = now[0]
    assert told == {}, "its last lines may come late"
    while not told:
        told = dict(slurm.poll(0.5))
    assert now[0] - began >= QUEUE_GRACE_S
    assert list(told) == ["c.0-0"]
    assert str(tmp_path / "jobs" / "c.0") in told["c.0-0"]
    assert list(slurm.jobs) == ["c.0-1"]


@pytest.mark.usefixtures("arrays", "now")
def test_a_job_that_comes_back_into_the_queue_or_a_slurm_that_does_not_answer_is_no_end(tmp_path: Path) -> None:
    slurm = SlurmExecutor()
    slurm.start(tmp_path, "c", 1, "cpu")
    for queue in ("", "1_0|c.0\n", "", None, "1_0|c.0\n") * 3:
        if queue is None:
            (tmp_path / "queue").unlink()
        else:
            (tmp_path / "queue").write_text(queue)
        assert slurm.poll(0.5) == {}


@pytest.mark.usefixtures("arrays", "now")
def test_jobs_of_an_earlier_command_are_found_by_the_study_s_own_arrays(tmp_path: Path) -> None:
    (tmp_path / "jobs" / "cycletime-old.0").mkdir(parents=True)
    (tmp_path / "queue").write_text("1_0|cycletime-old.0\n1_4|cycletime-old.0\n2_0|cycletime-else.0\n")
    slurm = SlurmExecutor()
    assert sorted(slurm.find_workers(tmp_path)) == ["cycletime-old.0-0", "cycletime-old.0-4"]
    (tmp_path / "queue").write_text("")
    for _ in range(5):
        told = slurm.poll(0.5)
        if told:
            break
    assert sorted(told) == ["cycletime-old.0-0", "cycletime-old.0-4"]


@pytest.mark.usefixtures("arrays")
def test_asked_to_stop_jobs_that_wait_are_taken_back_and_others_left_to_save(tmp_path: Path) -> None:
    slurm = SlurmExecutor()
    slurm.start(tmp_path, "c", 2, "cpu")
    slurm.start(tmp_path, "c", 1, "cpu")
    slurm.stop(tmp_path)
    said = sorted((tmp_path / "cancelled").read_text().splitlines())
    assert said == ["--state=PENDING --name=c.0", "--state=PENDING --name=c.1"]
    slurm.close(0.0)
    assert len((tmp_path / "cancelled").read_text().splitlines()) == 2, "jobs go on without their command"


@pytest.mark.usefixtures("arrays")
def test_a_job_that_does_not_answer_is_cancelled_by_its_number(tmp_path: Path) -> None:
    slurm = SlurmExecutor()
    (tmp_path / "queue").write_text("17_0|c.0\n17_1|c.0\n")
    slurm.kill("c.0-1")
    slurm.kill("c.0-2")  # which is gone by now
    assert (tmp_path / "cancelled").read_text() == "17_1\n"


def test_the_time_to_save_is_never_longer_than_half_a_job(arrays: type[Arrays], tmp_path: Path) -> None:
    for minutes, delay_s in ((240, slurm_executor.SIGNAL_DELAY_S), (1, 30)):
        SlurmExecutor(minutes=minutes).start(tmp_path / str(minutes), "c", 1, "cpu")
        assert arrays.made[-1].given["signal_delay_s"] == delay_s
