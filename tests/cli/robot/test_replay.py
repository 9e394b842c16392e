"""`cycletime robot replay` on a run's folder with a journal, with a torn one, and without."""

from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.training.journal import JOURNAL_FILE
from cycletime.training.run_folder import RunFolder
from tests.robots.recorded import entries
from tests.training.runs.finished import make_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = RunFolder.create(tmp_path, make_run().spec)
    for entry in entries():
        folder.journal.append(entry)
    return folder.path


def replayed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["robot", "replay", *words])
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_summary_is_printed(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    status, out, err = replayed(capsys, str(run))
    assert (status, err) == (0, "")
    assert "seed" in out.splitlines()[0]
    assert "3 episodes, 24 environment steps, in 2 sessions" in out
    assert "wake-up error, of 6 cycles" in out


def test_what_was_torn_is_left_out(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    journal = run / JOURNAL_FILE
    journal.write_bytes(journal.read_bytes()[:-1])
    status, out, _ = replayed(capsys, str(run))
    assert status == 0
    assert "2 episodes, 16 environment steps" in out


def test_behind_a_damage_the_rest_is_shown_and_what_is_lost_is_told(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    journal = run / JOURNAL_FILE
    content = bytearray(journal.read_bytes())
    content[content.index(b"EPISODE\n") + 500] ^= 4
    journal.write_bytes(content)
    status, out, _ = replayed(capsys, str(run))
    assert status == 0
    assert f"{journal} is damaged: 2 of 3 episodes are whole, lost are 1." in out
    assert "2 episodes, 16 environment steps" in out
    journal.write_bytes(content.replace(b"EPISODE", b"EPISODA"))
    status, out, err = replayed(capsys, str(run))
    assert (status, out) == (1, "")
    assert f"{journal} is damaged: 0 of 0 episodes are whole, " in err


def test_two_runs_are_refused_in_one_sentence(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    status, _, err = replayed(capsys, str(run), "another")
    assert status == 2
    assert "This command takes one run, and was given 2" in err


def test_a_run_without_a_robot_has_nothing_to_replay(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, make_run().spec)
    status, _, err = replayed(capsys, str(folder.path))
    assert status == 2
    says = "has no journal with episodes of a robot: give the folder of a 'cycletime robot run'."
    assert err == f"cycletime: {folder.path} {says}\n"
