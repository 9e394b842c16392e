"""`cycletime experiment` of horizons as people type it."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest

from cycletime.cli import main
from cycletime.experiments import collecting
from cycletime.experiments.horizons.candidates import SAC_SEARCH, SAC_TRIAL, SEARCH
from cycletime.experiments.outcome import Outcome, OutcomeCell
from cycletime.studies.spec import Tuned
from cycletime.studies.study_folder import StudyFolder
from tests.experiments.horizons.conftest import few_draws as few_draws
from tests.experiments.horizons.freezing import freeze
from tests.experiments.horizons.made import save_results, save_trial
from tests.studies.small import finished, specs_of

RESULTS = Path(__file__).parents[3] / "results" / "horizons"
pytestmark = pytest.mark.usefixtures("few_draws")


def test_tuning_and_then_the_search_are_packed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pack = tmp_path / "pack.zip"
    assert main(["experiment", "pack", "horizons", "tuning", "-o", str(pack)]) == 0
    assert capsys.readouterr().out.startswith("1,400 runs of the engine cuda in ")
    results = save_results(tmp_path / "results")
    assert main(["experiment", "pack", "horizons", "search", "-o", str(pack), "--results", str(results)]) == 0
    assert "runs of the engine cuda" in capsys.readouterr().out
    assert "pack.json" in ZipFile(pack).namelist()


def test_the_search_waits_for_tuning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["experiment", "pack", "horizons", "search", "-o", str(tmp_path / "p.zip"), "--results", str(tmp_path)])
        == 2
    )
    said = capsys.readouterr()
    assert "search-reacher is not in it: it needs all runs of tuning-reacher; bring them" in said.out
    assert "There is nothing to pack: first run what they need." in said.err


@pytest.mark.usefixtures("compiled_quickly")
def test_what_a_pack_has_made_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = SEARCH.tuning("reacher")
    few = {name: values[:1] for name, values in study.tuned["ppo"].values.items()}
    small = replace(study, dts=study.dts[-2:], seeds=(0, 1), tuned={"ppo": Tuned(study.tuned["ppo"].dt, few)})
    folder = StudyFolder.create(tmp_path / "out" / study.name, small)
    folder.store.add([finished(spec, float(spec.seed)) for spec in specs_of(folder)])
    assert (
        main(["experiment", "collect", "horizons", str(tmp_path / "out"), "--results", str(tmp_path / "results")]) == 0
    )
    said = capsys.readouterr().out
    assert "tuning-reacher.npz" in said
    assert f"cycletime experiment verdicts horizons --results {tmp_path / 'results'}\n" in said
    kept = Outcome.load(tmp_path / "results" / "tuning-reacher.npz")
    assert [list(cell.scores) for cell in kept.cells] == [[0, 1], [0, 1]]
    assert kept.cells[0].curves.shape == (2, 10)
    assert kept.about["nothing"] == pytest.approx(-0.69, abs=0.4)
    more = replace(kept, cells=tuple(_with_a_third_run(cell) for cell in kept.cells))
    more.save(tmp_path / "results" / "tuning-reacher.npz")
    assert (
        main(["experiment", "collect", "horizons", str(tmp_path / "out"), "--results", str(tmp_path / "results")]) == 2
    )
    assert "has 3 seeds at 1 of all environment steps, and what is to be kept now 2 seeds" in capsys.readouterr().err


def test_an_empty_folder_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "collect", "horizons", str(tmp_path)]) == 2
    assert "has no study of 'horizons', such as tuning-reacher: 'cycletime " in capsys.readouterr().err


def test_the_ranking_and_the_list_follow_from_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = save_results(tmp_path, noise=1.0)
    assert main(["experiment", "table", "horizons", "search", "--results", str(results)]) == 0
    told = capsys.readouterr().out
    assert "From tuned values: 6 starting points on reacher, double-pendulum, 3 runs of each cell" in told
    assert "From untuned values" in told
    freeze(results, "ppo")
    words = ["--from", "16ms", "--to", "64ms", "--rule", "no", "--own-rules", str(results / "candidates.toml")]
    assert main(["transfer", "ppo", *words]) == 2
    assert "candidates.toml has " in capsys.readouterr().err


def test_the_trial_waits_for_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is run on the tasks that judge before it is known who is judged."""
    assert (
        main(
            [
                "experiment",
                "pack",
                "horizons",
                "trial-tuning",
                "-o",
                str(tmp_path / "p.zip"),
                "--results",
                str(tmp_path),
            ]
        )
        == 2
    )
    assert "candidates.toml is not there: the list that was frozen is in results/horizons." in capsys.readouterr().err


def test_an_unknown_figure_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--results", str(tmp_path), "--out", str(tmp_path / "figures")]
    assert main(["experiment", "figures", "horizons", "trail", *words]) == 2
    assert capsys.readouterr().err == (
        "cycletime: The search for horizons has no figure 'trail': there are tuned-horizons, search, trial, "
        "sac-tuned-horizons, sac-search, sac-trial; did you mean trial?\n"
    )
    assert not (tmp_path / "figures").exists()


def test_the_trial_is_packed_and_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = save_results(tmp_path / "results", noise=1.0)
    freeze(results, "ppo")
    save_trial(results, noise=1.0)
    capsys.readouterr()
    assert (
        main(["experiment", "pack", "horizons", "trial", "-o", str(tmp_path / "pack.zip"), "--results", str(results)])
        == 0
    )
    assert "runs of the engine cuda" in capsys.readouterr().out
    assert main(["experiment", "verdicts", "horizons", "--results", str(results)]) == 0
    told = capsys.readouterr().out
    assert "12 starting points on pendulum, cart-pole, mountain-car, acrobot" in told
    assert "than the paper's rules." in told
    assert "The winner is " in told


def test_the_list_has_results_of_a_single_experiment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """How large the others are, which follow from earlier ones, is known of the checkout's."""
    (tmp_path / "sac-arms.npz").write_bytes((RESULTS / "sac-arms.npz").read_bytes())
    assert main(["experiment", "list", "horizons", "--results", str(tmp_path)]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert rows["search"] == ["search", "5,740", "19,133", "none"]
    assert rows["sac-arms"][-2:] == ["16", "seeds"]
    assert rows["On"] == ["On", "a", "simulated", "robot:", "sac-arms."]


def test_the_page_of_a_checkout_is_not_made_of_other_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = tmp_path / "checkout", tmp_path / "hz" / "results"
    for folder in (root / "results" / "horizons", root / "docs", other):
        folder.mkdir(parents=True)
        (folder / "sac-arms.npz").write_bytes((RESULTS / "sac-arms.npz").read_bytes())
    page = root / "docs" / "horizons.md"
    page.write_text("<!-- made: sac-arms -->\n<!-- end -->\n")
    copy = Path(shutil.copy(page, tmp_path / "copy.md"))
    monkeypatch.setattr(collecting, "find_results", lambda name: root / "results" / name)
    monkeypatch.chdir(root)
    assert main(["experiment", "report", "horizons", "--results", str(other)]) == 2
    assert capsys.readouterr().err == (
        f"cycletime: docs/horizons.md is there, and may be of other results than {other}: to write it anew, give --out "
        f"docs/horizons.md, or a copy of it; 'cycletime experiment verdicts horizons --results {other}' prints what "
        "they say.\n"
    )
    assert "kept" not in page.read_text()
    assert main(["experiment", "report", "horizons", "--results", str(other), "--out", str(copy)]) == 0
    assert "kept" in copy.read_text()
    assert main(["experiment", "report", "horizons"]) == 0
    assert page.read_text() == copy.read_text()
    monkeypatch.chdir(tmp_path)
    assert main(["experiment", "report", "horizons"]) == 2, "there is no such page in this folder"


def test_the_same_of_sac(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that follows its tuning waits for what comes before."""
    kept = ["--results", str(tmp_path / "results")]
    pack = ["-o", str(tmp_path / "pack.zip")]
    assert main(["experiment", "pack", "horizons", "sac-search", *pack, *kept]) == 2
    assert "sac-search-reacher is not in it: it needs all runs of sac-tuning-reacher" in capsys.readouterr().out
    assert main(["experiment", "pack", "horizons", "sac-trial-tuning", *pack, *kept]) == 2
    assert "sac-candidates.toml is not there: the list that was frozen is in " in capsys.readouterr().err
    save_results(tmp_path / "results", noise=1.0, task_set=SAC_SEARCH)
    assert main(["experiment", "table", "horizons", "sac-search", *kept]) == 0
    assert "average over scaled's" in capsys.readouterr().out
    freeze(tmp_path / "results", "sac")
    save_trial(tmp_path / "results", noise=1.0, task_set=SAC_TRIAL)
    assert main(["experiment", "pack", "horizons", "sac-trial", *pack, *kept]) == 0
    assert "runs of the engine cuda" in capsys.readouterr().out
    assert main(["experiment", "verdicts", "horizons", "sac", *kept]) == 0
    assert "As the default it does not replace scaled" in capsys.readouterr().out


def _with_a_third_run(cell: OutcomeCell) -> OutcomeCell:
    again: dict[str, Any] = {
        name: np.concatenate([getattr(cell, name)] * 2)[:3] for name in ("scores", "plain", "curves")
    }
    return replace(cell, seeds=(0, 1, 2), **again)
