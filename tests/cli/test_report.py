"""`cycletime report`: a page for a study and for results of the paper, and a sentence for anything else."""

from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from tests.experiments.paper.synthetic import synthetic_data

STUDY = {"name": "small", "task": "reacher", "algorithm": "ppo", "dts": ["16ms"], "seeds": 1, "env_steps": 4800}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return StudyFolder.create(tmp_path / "study", study_from_table(STUDY)).path


def test_a_study_gets_its_page(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(study)]) == 0
    file = study / "report" / "report.html"
    assert capsys.readouterr().out == f"The page is {file}: open it in a browser.\n"
    assert f"cycletime report {study}" in file.read_text()


def test_the_page_goes_where_it_is_asked_to(study: Path, tmp_path: Path) -> None:
    assert main(["report", str(study), "--out", str(tmp_path / "new" / "a.html")]) == 0
    assert (tmp_path / "new" / "a.html").is_file()
    assert not (study / "report").exists()


def test_results_of_the_paper_get_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = synthetic_data(lambda labels: 5.0, seeds=2, only=["ppo-baseline"], scale=0.01)
    data.outcomes["ppo-baseline"].save(tmp_path / "ppo-baseline.npz")
    assert main(["report", str(tmp_path)]) == 0
    assert 'data-figure="ppo-baseline"' in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ((), "is not there: give the folder of a study"),
        (("",), "has no study (study.json) and no results of the paper"),
        (("mine.npz",), "has no study (study.json) and no results of the paper (such as ppo-baseline.npz)"),
        (("spec.json",), "is a single run"),
        (("a/study.json", "b/study.json"), "has the studies a, b: give one of their folders"),
    ],
)
def test_what_has_no_page_is_told_in_a_sentence(
    made: tuple[str, ...], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "it"
    for name in made:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name:
            (folder / name).touch()
        else:
            folder.mkdir(exist_ok=True)
    assert main(["report", str(folder)]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_a_folder_is_no_place_for_a_file(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(study), "--out", str(tmp_path)]) == 2
    assert "give the name of a file" in capsys.readouterr().err
