"""`cycletime train --engine cuda`, on the emulated kernel, and on machines that have none."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.cuda import engine, run_batch
from cycletime.cuda.run_batch import CudaRunBatch
from cycletime.errors import RunError
from cycletime.training import progress_bar
from cycletime.training.make_specs import make_specs
from cycletime.training.policy_file import read_policy
from cycletime.training.run_folder import RunFolder
from cycletime.training.run_recorder import RunRecorder
from tests.cuda.emulated import Emulated, build

pytestmark = pytest.mark.usefixtures("compiled_quickly")
WORDS = "train --engine cuda --task double-pendulum --dt 64ms --batch 10 --minibatch 5 --set epochs=1 --env-steps 300"


@pytest.fixture(scope="module")
def device(shared_folder: Path) -> Emulated:
    return Emulated(build(shared_folder))


@pytest.fixture
def _on_kernel(device: Emulated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_batch, "find_device", lambda kernel: device)
    made = partial(CudaRunBatch, slices_s=(1e6,), most_periods=2)
    monkeypatch.setattr(engine, "CudaRunBatch", made)


@pytest.mark.usefixtures("_on_kernel")
def test_all_seeds_are_trained_together(tmp_path: Path, device: Emulated, capsys: pytest.CaptureFixture[str]) -> None:
    before = device.card.launches
    assert main([*WORDS.split(), "--seeds", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    told = printed.out.splitlines()
    assert [line.split(":")[0] for line in told if line.startswith("seed")] == ["seed 0", "seed 1", "seed 2"]
    assert re.search(r"^double-pendulum ppo 64ms, 3 seeds: \d+%, return ", printed.err, re.MULTILINE)
    results = [json.loads(path.read_text()) for path in tmp_path.glob("*/result.json")]
    assert {result["seed"] for result in results} == {0, 1, 2}
    longest = max(result["agent_steps"] for result in results)
    assert device.card.launches - before <= longest / 20 + 1, "no more launches than the longest run needs by itself"


@pytest.mark.usefixtures("_on_kernel")
def test_a_task_with_few_observations_gets_a_policy_of_as_many_inputs(tmp_path: Path) -> None:
    words = "--task mountain-car --env-dt 20ms --dt 60ms --batch 50 --minibatch 25 --set epochs=1 --env-steps 1000"
    assert main(["train", "--engine", "cuda", *words.split(), "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*/result.json")
    assert json.loads(path.read_text())["episodes"] == 1, "999 steps, or fewer by chance"
    policy = read_policy(path.parent / "policy.safetensors").in_numpy()
    assert policy.act([-0.5, 0.0]).shape == (1,)


@pytest.mark.usefixtures("_on_kernel")
@pytest.mark.parametrize("seeds", [2, 3])
def test_a_run_that_cannot_begin_does_not_disturb_the_bar_of_the_others(
    tmp_path: Path, seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(progress_bar.ProgressBar, "show", lambda *_, **__: shown.append("show"))
    monkeypatch.setattr(progress_bar.ProgressBar, "close", lambda *_: shown.append("close"))
    resume = RunRecorder.resume
    monkeypatch.setattr(RunRecorder, "resume", lambda record: _fail() if record.spec.seed == 0 else resume(record))
    assert main([*WORDS.split(), "--seeds", str(seeds), "--out", str(tmp_path)]) == 1
    assert set(shown[:-1]) == {"show"}
    assert shown[-1] == "close"


def _fail() -> None:
    raise RunError("The checkpoint is damaged.")


@pytest.mark.usefixtures("_on_kernel")
def test_runs_of_different_tasks_share_a_bar_without_a_return(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (WORDS, WORDS.replace("double-pendulum", "reacher").replace("300", "1200")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cycletime.cli.train.train_all", lambda folders, options, group: 0)
            assert main([*words.split(), "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["resume", *map(str, tmp_path.iterdir())]) == 0
    (told,) = re.findall(r"^2 runs: .*", capsys.readouterr().err, re.MULTILINE)
    assert "return" not in told


def test_many_runs_without_a_gpu_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = make_specs(task="reacher", dt="64ms", env_steps=1200, seeds=3, device="gpu", engine="cuda")
    folders = [RunFolder.create(tmp_path, spec) for spec in specs]
    assert main(["resume", *(str(folder.path) for folder in folders)]) == 2
    (told,) = capsys.readouterr().err.splitlines()
    assert told.startswith("cycletime: The engine cuda needs ")


@pytest.mark.usefixtures("_on_kernel")
def test_one_seed_is_trained_like_any_other_run(tmp_path: Path) -> None:
    assert main([*WORDS.split(), "--seed", "7", "--out", str(tmp_path)]) == 0
    (folder,) = tmp_path.iterdir()
    spec = json.loads((folder / "spec.json").read_text())
    assert "cuda" in str(spec)
    assert main(["resume", str(folder)]) == 0


@pytest.mark.usefixtures("_on_kernel")
@pytest.mark.parametrize("words", ["--engine cuda", "--device gpu", "--engine cuda --device cpu"])
def test_it_is_the_engine_of_ppo_on_a_gpu(tmp_path: Path, words: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cycletime.cli.train.train_all", lambda folders, options, group: 0)
        assert main([*WORDS.replace("--engine cuda", words).split(), "--out", str(tmp_path)]) == 0
    (spec,) = [json.loads(path.read_text()) for path in tmp_path.glob("*/spec.json")]
    assert (spec["engine"]["name"], spec["engine"]["device"]) == ("cuda", "gpu")
