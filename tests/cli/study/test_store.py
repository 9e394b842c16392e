"""retry, verify and export, as people call them."""

import re
import shutil
from pathlib import Path

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from cycletime.cli import main
from cycletime.cli.study import ExportStudy, RetryStudy, VerifyStudy
from cycletime.studies.study_folder import MAX_FAILURES, StudyFolder
from tests.studies.small import bits_of, finish, names_of, specs_of, state_of
from tests.studies.stand_ins import train_run


@pytest.fixture
def empty(quick: StudyFolder, tmp_path: Path) -> StudyFolder:
    """The quick study, of which nothing is done."""
    return StudyFolder.create(tmp_path / "empty", quick.study)


@pytest.fixture
def copy(quick: StudyFolder, tmp_path: Path) -> StudyFolder:
    """The quick study, all of it."""
    return StudyFolder.open(shutil.copytree(quick.path, tmp_path / "copy"))


def file_in(folder: StudyFolder) -> Path:
    (file,) = (folder.path / "finished").iterdir()
    return file


def test_failures_are_forgotten(empty: StudyFolder, capsys: pytest.CaptureFixture[str]) -> None:
    names = names_of(empty)
    for name in names * MAX_FAILURES:
        empty.failures(name).add("no")
    assert list(empty.states(names).values()) == ["failed"] * 3
    assert RetryStudy(folder=empty.path).run() == 0
    assert capsys.readouterr().out == "quick: 3 runs to be tried again\n"
    assert list(empty.states(names).values()) == ["pending"] * 3
    empty.failures(names[0]).add("once")
    finish(empty, specs_of(empty)[:1])  # it failed once, and then was done
    assert RetryStudy(folder=empty.path).run() == 0
    assert capsys.readouterr().out == "quick: 0 runs to be tried again\n"


def test_runs_are_good_until_a_bit_changes_and_are_repaired_by_running_again(
    copy: StudyFolder, quick: StudyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert VerifyStudy(folder=copy.path).run() == 0
    assert capsys.readouterr().out == "quick: 3 runs good, 0 files damaged\n"
    file = file_in(copy)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert VerifyStudy(folder=copy.path).run() == 1
    said = rf"  {file}: it is not what was written: .*\nquick: 0 runs good, 1 file damaged\n"
    assert re.fullmatch(said, capsys.readouterr().out)
    assert file.exists()
    assert VerifyStudy(folder=copy.path, repair=True).run() == 1
    assert f"; it is now {copy.path / 'damaged' / file.name}\n" in capsys.readouterr().out
    assert VerifyStudy(folder=copy.path).run() == 0
    assert capsys.readouterr().out == "quick: 0 runs good, 0 files damaged\n"
    for name in names_of(copy):
        assert train_run(StudyFolder.open(copy.path), name) == "finished"
    assert bits_of(copy) == bits_of(quick)


def test_a_torn_file_is_damaged_and_its_runs_are_not_done(
    copy: StudyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_in(copy)
    file.write_bytes(file.read_bytes()[:-1000])
    assert main(["study", "status", str(copy.path)]) == 1
    told, said = capsys.readouterr().out.splitlines()
    assert told == "quick: 3 pending"
    assert said.startswith(f"  {file} is damaged (File is not a zip file): its runs count as not done. Restore it; or ")
    assert main(["study", "verify", str(copy.path)]) == 1
    assert re.match(rf"  {file}: .*\nquick: 0 runs good, 1 file damaged\n", capsys.readouterr().out)
    assert main(["study", "report", str(file.parents[1])]) == 1
    assert f"{file}isdamaged" in "".join(capsys.readouterr().out.split())  # it is wrapped


def test_curves_are_exported(quick: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "curves.parquet"
    assert ExportStudy(folder=quick.path, file=file, bins=10).run() == 0
    assert capsys.readouterr().out == f"quick: 30 rows of 3 runs in {file}\n"
    table = pq.read_table(file)
    assert table.column_names == ["task", "algorithm", "rule", "dt", "seed", "env_step", "seconds", "return"]
    assert table["env_step"].to_pylist()[:10] == list(range(640, 6401, 640))
    assert main(["study", "export", str(quick.path), str(tmp_path / "episodes.csv")]) == 0
    episodes = sum(quick.store.result(name)["episodes"] for name in names_of(quick))
    assert pc.read_csv(tmp_path / "episodes.csv").num_rows == episodes > 0


def test_a_run_whose_checkpoints_are_damaged_begins_anew_after_a_retry(
    empty: StudyFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    name = names_of(empty)[0]
    checkpoint = empty.runs / name / "checkpoints" / "000001"
    checkpoint.mkdir(parents=True)
    (checkpoint / "manifest.json").write_bytes(b"\xff")
    assert VerifyStudy(folder=empty.path).run() == 1
    assert capsys.readouterr().out.endswith("0 files damaged, 1 unfinished runs that cannot go on\n")
    empty.failures(name).add("The checkpoint is damaged.")
    assert RetryStudy(folder=empty.path).run() == 0
    told = capsys.readouterr().out
    assert f"The checkpoint {checkpoint} is damaged: its manifest.json cannot be read" in told
    assert f"it begins anew, and what there was is now {empty.path / 'damaged' / name}\n" in told
    assert VerifyStudy(folder=empty.path).run() == 0
    assert state_of(empty, name) == "pending"


def test_an_export_without_the_runs_of_a_damaged_file_says_so(
    copy: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_in(copy)
    file.rename(file.with_name(f"{'0' * 32}.npz"))
    assert ExportStudy(folder=copy.path, file=tmp_path / "c.csv", bins=10).run() == 1
    told = capsys.readouterr().out
    assert f"{'0' * 32}.npz is damaged (it is not what was written: its hash is another): its runs count as" in told
    assert "quick: 0 rows of 0 runs" in told
