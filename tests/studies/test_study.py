"""What came of a study, as tables, a figure and a summary; and the front door from Python."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.errors import InputError, NotInstalledError
from cycletime.studies import executors
from cycletime.studies.spec import Tuned
from cycletime.studies.study import Study, StudyResults
from cycletime.studies.study_folder import StudyFolder
from tests.studies.small import finish, finished, small_study, specs_of
from tests.studies.stand_ins import InTurn, Trained


class NoMatplotlib:
    """Finds modules as if Matplotlib were not installed."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


HUNDRED: Any = {"batch": 100}


@pytest.fixture
def results(make_folder: Callable[..., StudyFolder]) -> StudyResults:
    """Three seeds of each cell, of which the last is not done at 32 ms; returns are the seed."""
    folder = make_folder(seeds=3)
    finish(folder, [spec for spec in specs_of(folder) if spec.seed < 2 or str(spec.dt) == "16ms"])
    return StudyResults(folder)


def test_scores_have_a_row_for_each_cell_and_seed(results: StudyResults) -> None:
    table = results.scores()
    assert table.num_rows == 12
    rows = {(row["rule"], row["dt"], row["seed"]): row for row in table.to_pylist()}
    assert len(rows) == 12
    done = rows["baseline", 0.032, 1]
    assert (done["task"], done["algorithm"], done["state"], done["average_return"]) == ("reacher", "ppo", "done", 1.0)
    missing = rows["dt-aware", 0.032, 2]
    assert (missing["state"], missing["average_return"], missing["last_tenth_return"]) == ("pending", None, None)
    assert rows["baseline", 0.016, 0]["run"] == rows["dt-aware", 0.016, 0]["run"], "where the rules agree"


def test_curves_are_binned_or_whole(results: StudyResults) -> None:
    assert results.curves(bins=10).num_rows == 10 * 10
    assert results.curves(bins=None).num_rows == 10 * 4
    row = results.curves(bins=4).to_pylist()[0]
    assert (row["env_step"], row["return"]) == (1200, float(row["seed"]))


def test_the_figure_has_means_and_standard_errors_over_seeds_that_are_done(results: StudyResults) -> None:
    figure: Any = results.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")  # for notebooks
    (axes,) = figure.axes
    drawn: list[Any] = list(axes.containers)
    lines = {each.get_label(): each.lines[0].get_xydata() for each in drawn}
    np.testing.assert_allclose(lines["baseline"], [[16, 1.0], [32, 0.5]])
    assert lines.keys() == {"baseline", "dt-aware"}
    assert "n = 2 to 3" in axes.get_ylabel()
    (bars,) = drawn[0].lines[2]
    half = [float(segment[1][1] - segment[0][1]) / 2 for segment in bars.get_segments()]
    np.testing.assert_allclose(half, [1 / np.sqrt(3), 0.5])


def test_a_figure_without_matplotlib_says_what_to_install(
    results: StudyResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoMatplotlib(), *sys.meta_path])
    says = r"^StudyResults\.plot needs Matplotlib, which is not installed: pip install 'cycletime\[study\]'\.$"
    with pytest.raises(NotInstalledError, match=says):
        results.plot()


def test_a_study_of_which_nothing_is_done_has_no_numbers_and_no_errors(
    make_folder: Callable[..., StudyFolder],
) -> None:
    results = StudyResults(make_folder())
    assert set(results.scores()["state"].to_pylist()) == {"pending"}
    assert results.curves().num_rows == 0
    assert results.plot().axes == []


def test_one_seed_has_no_error_and_values_that_vary_have_panels(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder(
        seeds=1, dts=["16ms"], rules=["baseline"], tuned={"dt": "16ms", "batch": [100, 200], "minibatch": 50}
    )
    finish(folder)
    results = StudyResults(folder)
    assert [axes.get_title() for axes in results.plot().axes] == ["reacher, ppo, batch 100", "reacher, ppo, batch 200"]
    assert sorted(results.scores()["batch"].to_pylist()) == [100, 200]


def test_runs_astray_are_left_out_of_means(make_folder: Callable[..., StudyFolder]) -> None:
    folder = make_folder(seeds=2, dts=["16ms"], rules=["baseline"])
    first, second = specs_of(folder)
    folder.store.add([finished(first, float("inf")), finished(second)])
    results = StudyResults(folder)
    assert results.scores()["average_return"].to_pylist() == [None, 1.0]


def test_a_study_is_run_from_python_and_goes_on_with_the_same_call(
    tmp_path: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "make_executor", lambda *_: InTurn())
    (tmp_path / "small.toml").write_text(
        'name = "small"\ntask = "reacher"\nalgorithm = "ppo"\ndts = ["16ms"]\nseeds = 2\nenv_steps = 4800\n'
    )
    study = Study.read(tmp_path / "small.toml")
    stopped = study.run(tmp_path / "out", progress=False, stop=lambda: True)
    assert stopped.scores()["state"].to_pylist() == ["pending"] * 2
    results = study.run(str(tmp_path / "out"), progress=False)
    assert results.scores()["state"].to_pylist() == ["done"] * 2
    assert study.run(tmp_path / "out", progress=False).folder.study == results.folder.study
    assert len(trained.runs) == 2
    assert StudyResults(tmp_path / "out").scores().equals(results.scores())
    assert Study(**vars(small_study())).run(tmp_path / "other", progress=False).scores().num_rows == 8


def test_a_dictionary_is_read_as_the_file_that_says_the_same(tmp_path: Path) -> None:
    lines = 'name = "small"\ntask = "reacher"\nalgorithm = "ppo"\ndts = ["16ms"]\nseeds = [0, 1]\nenv_steps = 4800\n'
    (tmp_path / "small.toml").write_text(lines + "[set]\nhidden = [8, 8]\n")
    says = {"name": "small", "task": "reacher", "algorithm": "ppo", "seeds": (0, 1), "env_steps": 4800}
    study = Study.read({**says, "dts": (Duration("16ms"),), "set": {"hidden": (8, 8)}})
    assert study == Study.read(tmp_path / "small.toml")
    for seeds, hidden in ((range(2), range(8, 9)), (np.arange(2), np.array([8])), (np.int64(2), np.int32(8))):
        assert Study.read({**says, "seeds": seeds, "dt": "16ms", "set": {"hidden": hidden}}).seeds == study.seeds
    with pytest.raises(InputError, match=r"^The study 'small' has 1,000,001 runs: it may have 1,000,000 at most\.$"):
        Study.read({**says, "dt": "16ms", "seeds": range(10**12)})
    assert Study(**{**vars(study), "dts": ("16ms",)}) == study
    with pytest.raises(InputError, match="'nothing' is nothing that a study has"):
        Study.read({**says, "nothing": 1})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda results: results.plot("average"), "'average' is not a score: give one of average_return, last_tenth_r"),
        (lambda results: results.curves(bins=0), "bins is 0: it must be from 1 to 1,000,000"),
        (
            lambda _: Study(**{**vars(small_study()), "worlds": ("reacher",)}),
            "worlds has 'reacher', no world: Study.read",
        ),
        (
            lambda _: Study(**{**vars(small_study()), "tuned": {"ppo": Tuned(None, HUNDRED)}}),
            "batch of ppo is 100: give a t",
        ),
        (lambda _: StudyResults("nowhere"), "There is no folder 'nowhere'"),
    ],
)
def test_what_python_asks_wrongly_is_refused_in_a_sentence(
    results: StudyResults, call: Callable[[StudyResults], object], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        call(results)
