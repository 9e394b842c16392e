"""A study on the kernel, emulated: all runs in one group, whatever their tasks and cycle times."""

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cycletime.cuda import engine
from cycletime.cuda.device import RunResult
from cycletime.cuda.kernels import PPO, kernel_digest
from cycletime.cuda.run_batch import CudaRunBatch
from cycletime.studies import worker
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker import work
from cycletime.training import trainer
from cycletime.training.run_recorder import SaveOptions
from tests.cuda.emulated import Emulated, build
from tests.studies.small import bits_of, names_of
from tests.studies.stand_ins import Death

pytestmark = pytest.mark.usefixtures("compiled_quickly")
STUDY = study_from_table(
    {
        "name": "kernel",
        "tasks": ["reacher", "double-pendulum"],
        "algorithm": "ppo",
        "dts": ["32ms", "64ms"],
        "rules": ["baseline"],
        "seeds": [3],
        "env_steps": 1200,
        "device": "gpu",
        "tuned": {"dt": "32ms", "batch": 10, "minibatch": 10},
        "set": {"epochs": 1},
    }
)


@pytest.fixture(scope="module")
def device(shared_folder: Path) -> Emulated:
    return Emulated(build(shared_folder))


@pytest.fixture(autouse=True, scope="module")
def _on_the_kernel(device: Emulated) -> Iterator[None]:
    """Let workers use the emulated kernel, a learning at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "CudaRunBatch", partial(CudaRunBatch, device=device, slices_s=(1e6,), most_periods=1))
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, _on_the_kernel: None) -> StudyFolder:
    """The study, undisturbed."""
    return trained(tmp_path_factory.mktemp("whole"))


def trained(path: Path, keep: SaveOptions | None = None) -> StudyFolder:
    folder = StudyFolder.create(path, STUDY, keep=keep)
    folder.workers.mkdir(exist_ok=True)
    work(str(path), "cycletime-1-0", 1)
    return StudyFolder.open(path)


def test_killed_in_the_middle_all_runs_go_on_together_to_the_same_bits(
    tmp_path: Path, device: Emulated, whole: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[int] = []

    def train(trainees: list[object], *given: object, **options: object) -> object:
        groups.append(len(trainees))
        return trainer.train_batch(trainees, *given, **options, checkpoint_s=0.0)  # type: ignore[arg-type]

    monkeypatch.setattr(worker, "train_batch", train)
    finish, killed_at = device.finish, device.card.launches + 2

    def finish_or_die() -> list[RunResult]:
        if device.card.launches > killed_at:
            raise Death
        return finish()

    with monkeypatch.context() as patch:
        patch.setattr(device, "finish", finish_or_die)
        with pytest.raises(Death):
            trained(tmp_path / "killed")
    device._begun = None
    killed = trained(tmp_path / "killed")
    assert groups == [4, 4]
    assert bits_of(killed) == bits_of(whole)
    result = killed.store.result(names_of(killed)[0])
    assert (result["resumed"], result["sessions"]) == ("resumed, identical", 2)
    assert (result["machine"]["device"], result["machine"]["kernel"]) == ("an emulated card", kernel_digest(PPO)[:12])


def test_in_bins_it_has_the_same_performance_and_its_files_go_into_another_study_of_the_same_kernel(
    tmp_path: Path, whole: StudyFolder
) -> None:
    little = trained(tmp_path / "little", SaveOptions(episodes=False, policies=False))
    for name in names_of(whole):
        for measure in ("average_return", "last_tenth_return", "episodes", "agent_steps"):
            assert little.store.result(name)[measure] == whole.store.result(name)[measure]
        np.testing.assert_array_equal(little.store.means(name), whole.store.means(name))
    assert len(list((tmp_path / "little" / "finished").iterdir())) <= 4
    folder = StudyFolder.create(tmp_path / "study", STUDY)
    shutil.copytree(little.finished, folder.finished)
    assert len(folder.store.refresh()) == 4
    assert not folder.damage()
