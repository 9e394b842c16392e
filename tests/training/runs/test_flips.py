"""Random flips of single bits in every kind of file that runs, studies, tunings and exports leave.

None changes a number that is printed, or a weight that is exported, unnoticed. With -s the counts are printed, by file.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from cycletime.agents.numpy_policy import NumpyPolicy
from cycletime.errors import InputError, RunError
from cycletime.policies.export import export_numpy, export_onnx
from cycletime.studies.events import recorded_wall_s
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.finished_run import FinishedRun
from cycletime.training.policy_file import SavedPolicy
from cycletime.training.run_folder import RunFolder
from cycletime.training.sealed_json import sealed_text
from cycletime.training.toml_files import read_tuned, write_tuned

FOLDERS = Path(__file__).parents[2] / "goldens" / "data" / "folders"
FLIPS = 1000


def digest(*parts: Any) -> str:  # noqa: ANN401 - whatever is printed or exported
    """The same for the same numbers, to the last bit."""
    return sha256(json.dumps(parts, sort_keys=True, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:  # noqa: ANN401
    return value.tobytes().hex() if isinstance(value, np.ndarray) else {**vars(value)} if vars(value) else str(value)


def of_policy(policy: SavedPolicy | None) -> object:
    return None if policy is None else [policy.description(), policy.arrays()]


def of_run(run: FinishedRun) -> object:
    return [dict(run.result), run.curve, dict(run.metrics), of_policy(run.policy)]


def read_finished(folder: Path) -> str:
    return digest(of_run(RunFolder.open(folder).finished()))


def read_unfinished(folder: Path) -> str:
    run = RunFolder.open(folder).so_far()
    return digest(run.curve, dict(run.metrics), of_policy(run.policy))


def read_study(folder: Path) -> str:
    study = StudyFolder.open(folder).checked()
    if study.damage():
        raise InputError(study.damage()[0])
    wall_s = recorded_wall_s(folder)
    if wall_s is None and (folder / "sessions").exists():
        raise InputError("how long it took is not known")
    return digest(wall_s, [of_run(run) for run in study.store.runs()])


def read_numpy(folder: Path) -> str:
    try:
        policy = NumpyPolicy.load(folder / "policy.npz")
    except ValueError as error:  # it runs without cycletime, and has no errors of its own
        raise InputError(str(error)) from error
    observation = np.linspace(-1, 1, policy.observation_size)
    return digest(policy.description, policy.act(observation), policy.act(observation, np.random.default_rng(0)))


def read_onnx(folder: Path) -> str:
    """As the page of policies does it."""
    try:
        model = onnx.load(folder / "policy.onnx")
        about = {each.key: each.value for each in model.metadata_props}
        written = about.pop("sha256", "")
        onnx.helper.set_model_props(model, about)
        content = sha256(model.SerializeToString()).hexdigest()
    except Exception as error:
        raise InputError(str(error)) from error
    if content != written:
        raise InputError("it is not what was written")
    return content


def read_tuned_values(folder: Path) -> str:
    read = read_tuned(folder / "tuned.toml").of("sac")
    return digest(str(read.dt), dict(read.values), dict(read.others))


def read_journal(folder: Path) -> str:
    """All episodes, or a sentence on those that are lost, as `robot replay` and `robot resume` print it."""
    journal = RunFolder.open(folder).journal
    if lost := journal.lost():
        raise RunError(lost)
    return digest([digest(entry.session, entry.episode) for entry in journal.entries()])


Reader = Callable[[Path], str]


def made(folder: Path) -> dict[Path, Reader]:
    """Folders of every kind, and who reads them."""
    shutil.copytree(FOLDERS, folder)
    finished = next((folder / "finished").glob("reacher*"))
    robot, stopped = next((folder / "robot").iterdir()), next((folder / "robot-stopped").iterdir())
    (session,) = (folder / "packed-results" / "sessions").iterdir()
    session.write_text(sealed_text(json.loads(session.read_text())))  # as they are since 0.3
    policy = RunFolder.open(finished).policy()
    export_numpy(policy, folder / "numpy")
    (folder / "onnx").mkdir()
    export_onnx(policy, folder / "onnx" / "policy.onnx")
    (folder / "tuned").mkdir()
    values = read_tuned(folder / "tuned.toml")
    write_tuned(folder / "tuned" / "tuned.toml", "sac", values.of("sac"), values.origins["sac"])
    (folder / "numpy" / "policy.py").unlink()  # a program, and no data
    return {
        finished: read_finished,
        robot: lambda path: digest(read_finished(path), read_journal(path)),
        stopped: read_journal,
        next((folder / "stopped-ppo").iterdir()): read_unfinished,
        next((folder / "stopped-sac").iterdir()): read_unfinished,
        folder / "study-finished": read_study,
        folder / "tuning" / "fresh": read_study,
        folder / "tuning" / "trials": read_study,
        folder / "packed-results": read_study,
        folder / "numpy": read_numpy,
        folder / "onnx": read_onnx,
        folder / "tuned": read_tuned_values,
    }


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_flip_changes_a_number_unnoticed(tmp_path: Path) -> None:
    readers = made(tmp_path / "folders")
    files = [
        (folder, file)
        for folder in readers
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.stat().st_size
    ]
    expected = {folder: read(folder) for folder, read in readers.items()}
    rng = np.random.default_rng(int(os.environ.get("FLIPS_SEED", "0")))
    counts: Counter[tuple[str, str]] = Counter()
    for number in range(FLIPS):
        folder, file = files[number % len(files)]
        content = file.read_bytes()
        flipped = bytearray(content)
        flipped[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        file.write_bytes(flipped)
        kind = "store.npz" if len(file.stem) == 32 else file.name
        try:
            with warnings.catch_warnings(action="ignore"):
                outcome = "same" if readers[folder](folder) == expected[folder] else "CHANGED"
        except (InputError, RunError):
            outcome = "refused"
        counts[f"{folder.relative_to(tmp_path / 'folders').parts[0]}/{kind}", outcome] += 1
        file.write_bytes(content)
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{kind:40s} {outcome:8s} {count:5d}")
    total = Counter(outcome for _, outcome in counts.elements())
    print(f"{FLIPS} flips: {dict(total)}")
    assert not total["CHANGED"]
