import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from cycletime.cli import main
from cycletime.cli.report import ReportCommand
from cycletime.errors import InputError
from cycletime.reports import drawing
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import finished, specs_of

FILES = {"report.html", "report.md", "report.json", "scores.csv"}

TABLE = {
    "name": "s",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["16ms", "32ms"],
    "rules": ["baseline"],
    "seeds": 2,
    "env_steps": 1200,
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three of four runs are done; a run's episodes return the seed, and 10 more at 32 ms."""
    folder = StudyFolder.create(tmp_path_factory.mktemp("s") / "study", study_from_table(TABLE))
    done = specs_of(folder)[:3]
    folder.store.add([finished(spec, spec.seed + (10.0 if str(spec.dt) == "32ms" else 0.0)) for spec in done])
    return folder.path


def test_it_prints_tables_and_text_and_writes_files(
    study: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "draw_figure", lambda spec: None)
    monkeypatch.setattr(drawing, "save_figures", lambda names, out, _: [out / f"{name}.png" for name in names])
    assert ReportCommand(folder=study).run() == 0
    told = capsys.readouterr().out
    assert "3 of 4 runs have a score" in told
    assert "0.50 ± 0.50 (2)" in told
    assert "10 (1 of 2)" in told
    assert {file.name for file in (study / "report").iterdir()} == FILES
    written = (study / "report" / "report.md").read_text()
    assert f"`cycletime report {study}`" in written
    assert "(reacher-ppo-performance.png)" in written


def test_files_are_written_before_anything_is_printed(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "draw_figure", lambda spec: None)
    monkeypatch.setattr(drawing, "save_figures", lambda names, out, _: [out / f"{name}.png" for name in names])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ReportCommand, "_print", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ReportCommand(folder=study, out=tmp_path / "report").run()
    assert {file.name for file in (tmp_path / "report").iterdir()} == FILES


@pytest.mark.parametrize("words", [[], ["--json"], ["--markdown"]])
def test_a_reader_that_has_seen_enough_is_no_error_and_letters_that_it_does_not_have_are_none(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr(drawing, "draw_figure", lambda spec: None)
    monkeypatch.setattr(drawing, "save_figures", lambda names, out, _: [out / f"{name}.png" for name in names])
    reader, writer = os.pipe()
    os.close(reader)
    command = ["study", "report", str(study), "--out", str(tmp_path / "report"), *words]
    with suppress(BrokenPipeError), os.fdopen(writer, "w", encoding="ascii") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(command) == 0
    assert (tmp_path / "report" / "report.md").exists()


def test_markdown_is_printed_and_not_written(study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    before = sorted(study.iterdir())
    assert ReportCommand(folder=study, markdown=True, measure="last-tenth").run() == 0
    told = capsys.readouterr().out
    assert told.startswith("# s\n")
    assert "mean return in the last tenth of learning" in told
    assert f"`cycletime report {study} --measure last-tenth`" in told
    assert sorted(study.iterdir()) == before


def test_json_is_one_object_and_written_where_it_is_told(
    study: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "draw_figure", lambda spec: None)
    monkeypatch.setattr(drawing, "save_figures", lambda *_: [])
    assert ReportCommand(folder=study, json=True, iqm=True, out=tmp_path / "r").run() == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["study"], told["statistic"], told["interval"]) == ("s", "iqm", "bootstrap")
    assert json.loads((tmp_path / "r" / "report.json").read_text()) == told


def test_what_cannot_be_is_refused(study: Path) -> None:
    with pytest.raises(InputError, match="--json and --markdown are both given: give one of them"):
        ReportCommand(folder=study, json=True, markdown=True).run()
    with pytest.raises(InputError, match="'sd' is not an interval: give one of se, t, bootstrap"):
        ReportCommand(folder=study, interval="sd").run()
    with pytest.raises(InputError, match=r"has no study \(study\.json\)"):
        ReportCommand(folder=study / "runs").run()
