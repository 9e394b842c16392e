"""Whatever becomes of a study's files, its commands go on: one bad byte spoils one run, and no score is made up."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cycletime.cli.report import ReportCommand
from cycletime.cli.study import ExportStudy, RetryStudy, StudyStatus, VerifyStudy
from cycletime.errors import InputError, RunError
from cycletime.studies import worker
from cycletime.studies.leases import hold_lease
from cycletime.studies.study import StudyResults
from cycletime.studies.study_folder import StudyFolder
from cycletime.studies.worker_pool import run_study
from cycletime.training.checkpoints import Checkpoint, Manifest
from cycletime.training.run_folder import RunFolder
from tests.studies.small import finished, make_old, small_study, specs_of
from tests.studies.stand_ins import InTurn, Trained

RUNNING: dict[str, Any] = {"exact": True, "sessions": 1, "wall_s": 0.0, "world": "", "machine": {}}


@dataclass(frozen=True)
class Whole:
    """A study of which nothing is damaged: two files with two finished runs each, one that was stopped, one pending."""

    path: Path
    files: tuple[str, ...]
    """All that there is, below the folder."""
    runs: Mapping[str, tuple[str, ...]]
    """By file, the runs in it."""
    scores: Mapping[str, float]
    """By run."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = StudyFolder.create(tmp_path_factory.mktemp("whole") / "study", small_study())
    specs = specs_of(folder)
    scores = {spec.name: 1.0 + place for place, spec in enumerate(specs[:4])}
    for pair in (specs[:2], specs[2:4]):
        folder.store.add([finished(spec, scores[spec.name]) for spec in pair])
    stopped = RunFolder.create(folder.runs, specs[4])
    for env_steps in (1, 2):
        manifest = Manifest(specs[4].identity, env_steps, 1, **RUNNING)
        stopped.checkpoints.save(Checkpoint(manifest, {"position/x": np.arange(3)}))
    folder.failures(specs[5].name).add("it burnt down")
    with hold_lease(folder.leases, specs[5].name, "somebody"):
        file = folder.leases / f"{specs[5].name}.json"
        lease = json.loads(file.read_text())
    file.write_text(json.dumps({**lease, "pid": 2**22}))  # of one who died over the run
    folder.workers.mkdir()
    (folder.workers / "cycletime-gone-0.jsonl").write_text('{"worker": "cycletime-gone-0"}\n')
    files = sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file())
    runs = {f"finished/{name}": tuple(bundle.names) for name, bundle in folder.store.bundles.items()}
    return Whole(folder.path, tuple(files), runs, scores)


Damage = Callable[[bytes, float], bytes]


def flipped(content: bytes, where: float) -> bytes:
    """With one bit changed."""
    changed, place = bytearray(content), int(where * 8 * len(content))
    if content:
        changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


def cut_off(content: bytes, where: float) -> bytes:
    return content[: int(where * len(content))]


def undecodable(content: bytes, where: float) -> bytes:
    place = int(where * len(content))
    return content[:place] + b"\xff\xfe\x00" + content[place:]


def nested(content: bytes, where: float) -> bytes:
    return b'{"format": ' * 50_000


def digits(content: bytes, where: float) -> bytes:
    """With a number of 400 digits in place of another."""
    places = [at for at, byte in enumerate(content) if chr(byte).isdigit()]
    at = places[int(where * len(places))] if places else 0
    return content[:at] + b"9" * 400 + content[at + 1 :]


DAMAGES: tuple[Damage, ...] = (flipped, cut_off, undecodable, nested, digits)


def told(command: Any) -> int:  # noqa: ANN401 - any command
    """The exit status of a command, of which all that goes wrong is a sentence."""
    try:
        status: int = command.run()
    except (InputError, RunError) as error:
        sentence = str(error)
    else:
        return status
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return 2


def check(whole: Whole, path: Path, spoilt: str) -> None:
    """Let all commands see a study of which one file is spoilt."""
    lost = set(whole.runs.get(spoilt, ()))
    readable = spoilt != "study.json"
    statuses = {
        "status": told(StudyStatus(folder=path, runs=True)),
        "report": told(ReportCommand(folder=path, json=True)),
        "export": told(ExportStudy(folder=path, file=path / "curves.csv", bins=10)),
        "verify": told(VerifyStudy(folder=path)),
    }
    if readable:
        assert 2 not in statuses.values()
        assert statuses["verify"] == bool(lost) or spoilt.startswith("runs/")
        check_scores(whole, path, whole.scores.keys() - lost)
    elif 2 not in statuses.values():
        check_scores(whole, path, set())
    check_copied(whole, path, lost)
    told(RetryStudy(folder=path))
    if told(VerifyStudy(folder=path, repair=True)) < 2:
        assert told(VerifyStudy(folder=path)) == 0, "it is repaired"
        check_running(path)


def check_scores(whole: Whole, path: Path, there: set[str]) -> None:
    """Runs have their own scores or none; those that nothing happened to have theirs."""
    rows = StudyResults(StudyFolder.open(path)).scores().to_pylist()
    scores = {row["run"]: row["average_return"] for row in rows if row["average_return"] is not None}
    assert scores.items() <= whole.scores.items()
    assert scores.keys() >= there


def check_copied(whole: Whole, path: Path, lost: set[str]) -> None:
    """Runs that nothing happened to can be copied into another study's folder."""
    other = StudyFolder.create(path.parent / "other", small_study())
    shutil.copytree(path / "finished", other.finished)
    check_scores(whole, other.path, whole.scores.keys() - lost)


def check_running(path: Path) -> None:
    """What is not done is run, and then all is; what whoever finishes runs leaves behind, the next command removes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "train_batch", Trained())  # which removes nothing, as if it were killed
        folder = StudyFolder.open(path)
        assert set(run_study(folder, InTurn())) == {"done"}
    assert set(run_study(folder, InTurn())) == {"done"}
    assert not list(folder.runs.iterdir())
    assert not list(folder.leases.iterdir())


def spoil(whole: Whole, folder: Path, file: str, damage: Damage, where: float) -> Path:
    """A copy of the study, of which one file is damaged."""
    path = folder / "study"
    shutil.copytree(whole.path, path)
    (path / file).write_bytes(damage((path / file).read_bytes(), where))
    for lease in (path / "leases").iterdir():
        make_old(lease)
    return path


FILES = st.integers(0, 99)
WHERE = st.floats(0, 1, exclude_max=True)


def try_damage(whole: Whole, folder: Path, number: int, damage: Damage, where: float) -> None:
    file = whole.files[number % len(whole.files)]
    check(whole, spoil(whole, folder, file, damage, where), file)


@settings(max_examples=8)
@given(number=FILES, damage=st.sampled_from(DAMAGES), where=WHERE)
def test_one_bad_byte_spoils_one_run(
    whole: Whole, tmp_path_factory: pytest.TempPathFactory, number: int, damage: Damage, where: float
) -> None:
    try_damage(whole, tmp_path_factory.mktemp("spoilt"), number, damage, where)


@pytest.mark.slow
@settings(max_examples=1000)
@given(number=FILES, damage=st.sampled_from(DAMAGES), where=WHERE)
def test_one_bad_byte_spoils_one_run_wherever_it_is(
    whole: Whole, tmp_path_factory: pytest.TempPathFactory, number: int, damage: Damage, where: float
) -> None:
    folder = tmp_path_factory.mktemp("spoilt")
    try_damage(whole, folder, number, damage, where)
    shutil.rmtree(folder)
