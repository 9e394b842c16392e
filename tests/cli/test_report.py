"""`cycletime report`: for a study, a run and results of the paper, and a sentence for anything else."""

from pathlib import Path
from shutil import copytree

import pytest

from cycletime.cli import main
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from tests.experiments.paper.synthetic import synthetic_data

FOLDERS = Path(__file__).parents[1] / "goldens" / "data" / "folders"
FINISHED_RUN = FOLDERS / "finished" / "reacher-ppo-16ms-seed0-9772da9db0"
STUDY = {"name": "small", "task": "reacher", "algorithm": "ppo", "dts": ["16ms"], "seeds": 1, "env_steps": 4800}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return StudyFolder.create(tmp_path / "study", study_from_table(STUDY)).path


def test_a_study_gets_its_report(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(study)]) == 0
    told, file = capsys.readouterr().out, study / "report" / "report.html"
    assert told.endswith(f"Open {file} in a browser; tables, text and figures are beside it.\n")
    assert f"cycletime report {study}" in file.read_text()
    assert main(["study", "report", str(study)]) == 0, "an alias"
    assert capsys.readouterr().out == told


def test_the_page_alone_goes_where_it_is_asked_to(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "new" / "a.html"
    assert main(["report", str(study), "--out", str(file)]) == 0
    assert capsys.readouterr().out == f"The page is {file}: open it in a browser.\n"
    assert [each.name for each in file.parent.iterdir()] == ["a.html"]
    assert not (study / "report").exists()


def test_results_of_the_paper_get_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = synthetic_data(lambda labels: 5.0, seeds=2, only=["ppo-baseline"], scale=0.01)
    data.outcomes["ppo-baseline"].save(tmp_path / "ppo-baseline.npz")
    assert main(["report", str(tmp_path)]) == 0
    assert 'data-figure="ppo-baseline"' in (tmp_path / "report" / "report.html").read_text()
    assert "open report.html in a browser" in capsys.readouterr().out
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    assert 'data-figure="ppo-baseline"' in (tmp_path / "page.html").read_text()
    assert main(["report", str(tmp_path), "--iqm"]) == 2
    assert f"--iqm is for studies, and {tmp_path} is results of the paper: leave it out." in capsys.readouterr().err


def test_a_run_gets_its_result_and_its_curve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    copytree(FINISHED_RUN, run)
    assert main(["report", str(run)]) == 0
    told = capsys.readouterr().out
    assert "average return" in told
    assert f"wrote {run / 'report' / 'learning-curve.png'} (" in told
    assert main(["report", str(run), "--out", "page.html"]) == 2
    assert "a run has no page, so give a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ((), "give the one that 'cycletime study run' has as --out"),
        (("",), "has no study (study.json), no run (spec.json) and no results of the paper"),
        (("mine.npz",), "and no results of the paper (such as ppo-baseline.npz)"),
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
    (tmp_path / "a.html").mkdir()
    assert main(["report", str(study), "--out", str(tmp_path / "a.html")]) == 2
    assert "give the name of a file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["page.txt", "page.md", "page.json", "page.htm", "page.pdf"])
def test_a_file_of_another_kind_is_no_folder(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["report", str(study), "--out", str(tmp_path / name)]) == 2
    told = "give a folder for all files, such as page, or a name that ends with .html for the page alone.\n"
    assert capsys.readouterr().err == f"cycletime: --out is {tmp_path / name}: {told}"
    assert not (tmp_path / name).exists()
    assert main(["report", str(study), "--out", str(tmp_path / "report-0.3")]) == 0, "a folder with a point in its name"
