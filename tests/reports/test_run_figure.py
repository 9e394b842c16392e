"""Figures of single runs: their lines against the curves they are made from, and runs that are not finished."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.reports.run_figure import RunCurves, chosen_metrics, read_run_curves, runs_figure, save_runs_figure
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.learning_curve import Episodes
from cycletime.training.run_folder import RunFolder
from cycletime.training.spec import RunSpec
from tests.studies.small import finished, small_study, specs_of
from tests.training.runs.finished import save_checkpoint


@pytest.fixture
def study(tmp_path: Path) -> StudyFolder:
    return StudyFolder.create(tmp_path / "study", small_study())


@pytest.fixture
def spec(study: StudyFolder) -> RunSpec:
    return specs_of(study)[1]


def written(out: Path, spec: RunSpec) -> Path:
    """A finished run in a folder of its own."""
    folder = RunFolder.create(out, spec)
    folder.write_finished(finished(spec), Duration("2ms"))
    return folder.path


def half_done(out: Path, spec: RunSpec) -> Path:
    """A run that was killed after half of its budget."""
    run, folder = finished(spec), RunFolder.create(out, spec)
    assert isinstance(run.curve, Episodes)
    assert run.policy is not None
    save_checkpoint(folder, replace(run.policy, env_steps=2400), run.curve.up_to(2400), run.metrics)
    return folder.path


def test_a_run_is_the_same_from_folder_and_store(tmp_path: Path, study: StudyFolder, spec: RunSpec) -> None:
    study.store.add([finished(spec)])
    for path in (written(tmp_path, spec), study.runs / spec.name):
        run = read_run_curves(path)
        assert (run.where, run.env_dt_s, chosen_metrics([run], ["all"])) == ("closed form", 0.002, ["loss"])
        assert run.env_steps.tolist() == np.linspace(48, 4800, 100).tolist()
        assert run.returns.tolist() == finished(spec).curve.binned(4800).tolist()


def test_a_run_that_is_not_finished_ends_where_it_is(tmp_path: Path, spec: RunSpec) -> None:
    run = read_run_curves(half_done(tmp_path, spec))
    assert run.env_steps.tolist() == np.linspace(48, 2400, 50).tolist()
    assert run.env_dt_s == 0.002
    figure = runs_figure([run], [])
    assert "seed 1, so far 50 %" in figure.legends[0].get_texts()[0].get_text()


def test_each_run_is_a_line_with_its_name_and_each_metric_a_panel(tmp_path: Path, study: StudyFolder) -> None:
    runs = [read_run_curves(written(tmp_path, spec)) for spec in specs_of(study)[:3]]
    figure = runs_figure(runs, ["loss"])
    returns, loss = figure.axes[:2]
    assert [line.get_ydata().tolist() for line in returns.lines] == [run.returns.tolist() for run in runs]  # type: ignore[union-attr]
    assert [line.get_xdata().tolist() for line in loss.lines] == [[1200, 2400, 3600, 4800]] * 3  # type: ignore[union-attr]
    assert (returns.get_ylabel(), loss.get_ylabel(), loss.get_xlabel()) == (
        "episodic return",
        "loss",
        "environment steps",
    )
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["reacher, ppo, 16 ms, seed 0", "reacher, ppo, 16 ms, seed 1"]
    assert len(set(labels)) == 3
    assert "3 runs, each a line by itself" in figure.get_suptitle()
    assert "data: closed form" in figure.get_suptitle()


def test_seconds_are_the_environment_s_time(tmp_path: Path, spec: RunSpec) -> None:
    run = read_run_curves(written(tmp_path, spec))
    figure = runs_figure([run], ["loss"], "seconds")
    assert figure.axes[0].lines[-1].get_xdata()[-1] == pytest.approx(9.6)  # type: ignore[index]
    assert figure.axes[1].lines[0].get_xdata()[-1] == pytest.approx(9.6)  # type: ignore[index]
    assert figure.axes[1].get_xlabel() == "environment time (s)"


def test_runs_that_look_alike_are_told_apart(tmp_path: Path, spec: RunSpec) -> None:
    run = read_run_curves(written(tmp_path, spec))
    labels = [text.get_text() for text in runs_figure([run, run], []).legends[0].get_texts()]
    assert labels == [f"reacher, ppo, 16 ms, seed 1, {spec.identity[:10]}"] * 2


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_ending_names_the_format(tmp_path: Path, spec: RunSpec, ending: str, begins: bytes) -> None:
    file = tmp_path / f"a.figure.{ending}"
    save_runs_figure(file, [read_run_curves(written(tmp_path, spec))], [])
    assert file.read_bytes().startswith(begins)


def test_what_cannot_be_drawn_is_told(tmp_path: Path, study: StudyFolder, spec: RunSpec) -> None:
    run = read_run_curves(written(tmp_path, spec))
    for file, words in (("a.gif", "ends in .pdf, .svg, .png"), ("none/a.png", "There is no folder")):
        with pytest.raises(InputError, match=words):
            save_runs_figure(tmp_path / file, [run], [])
    with pytest.raises(InputError, match="'los' is not a metric of these runs: give one of all, loss"):
        chosen_metrics([run], ["los"])
    assert chosen_metrics([run], ["all"]) == ["loss"]
    begun = RunFolder.create(tmp_path / "begun", specs_of(study)[0])
    with pytest.raises(InputError, match="no learning curve yet"):
        read_run_curves(begun.path)


def test_a_run_without_an_episode_has_no_curve(tmp_path: Path, spec: RunSpec) -> None:
    run, folder = finished(spec), RunFolder.create(tmp_path, spec)
    assert run.policy is not None
    save_checkpoint(folder, run.policy)
    with pytest.raises(InputError, match="none of its episodes has ended"):
        read_run_curves(folder.path)


def test_metrics_that_only_some_runs_have(tmp_path: Path, study: StudyFolder) -> None:
    one, other = (read_run_curves(written(tmp_path, spec)) for spec in specs_of(study)[:2])
    bare = RunCurves(other.spec, other.where, other.env_dt_s, other.env_steps, other.returns, None, {})
    assert chosen_metrics([bare, one], ["all"]) == ["loss"]
    assert len(runs_figure([bare, one], ["loss"]).axes[1].lines) == 1
