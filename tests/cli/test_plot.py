"""`cycletime plot` as people type it."""

from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import names_of


def test_runs_are_drawn_into_a_file(
    quick: StudyFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = [str(quick.runs / name) for name in names_of(quick)[:2]]
    assert main(["plot", *runs, "--metrics", "all", "--to", "curves.svg", "--x", "seconds"]) == 0
    text = Path("curves.svg").read_text()
    assert capsys.readouterr().out == f"wrote curves.svg ({len(text.encode()):,} bytes)\n"
    assert all(word in text for word in ("environment time (s)", "reacher, actor-critic, 32 ms, seed 1", "value_error"))
    assert main(["plot", runs[0]]) == 0
    assert Path("learning-curve.png").exists()


def test_wrong_input_is_one_sentence(quick: StudyFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(quick.runs / names_of(quick)[0])
    for words, sentence in (
        ([], "There is no run to plot"),
        ([run, "--to", str(tmp_path / "film.gif")], "ends in .pdf, .svg, .png"),
        ([run, "--metrics", "weather"], "'weather' is not a metric of these runs"),
        ([str(tmp_path)], "is not a run"),
    ):
        assert main(["plot", *words]) == 2
        err = capsys.readouterr().err
        assert sentence in err
        assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
