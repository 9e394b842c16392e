"""`cycletime experiment list paper`, `verdicts`, `table`, `figures` and `report`: what results say, and without any."""

import json
import shutil
from pathlib import Path

import pytest

import cycletime
from cycletime.cli import main
from cycletime.experiments import collecting
from cycletime.experiments.paper.claims import CLAIMS
from cycletime.experiments.paper.experiments import EXPERIMENTS

HORIZONS = Path(__file__).parents[3] / "results" / "horizons"


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    verb, *rest = words
    assert main(["experiment", verb, "paper", *rest]) == status
    told = capsys.readouterr()
    return told.err if status == 2 else told.out


def test_the_list_has_every_experiment_in_80_columns_and_as_json(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = said(capsys, "list", "--results", str(results)).splitlines()
    assert all(len(line) <= 80 for line in lines)
    rows = {line.split()[0]: line for line in lines[1 : 1 + len(EXPERIMENTS)]}
    assert lines[1 + len(EXPERIMENTS)].split()[:2] == ["all", "16,530"]
    assert list(rows) == list(EXPERIMENTS)
    assert lines[0].split() == ["experiment", "runs", "simulated", "hours", "results"]
    assert " ".join(rows["ppo-scaled"].split()) == "ppo-scaled 300 1,667 2 seeds, 1 %"
    assert rows["ppo-grid"].endswith("1 of 2 studies")
    assert " ".join(rows["ppo-robot"].split()) == "ppo-robot 15 25 none"
    assert "On a simulated robot: ppo-robot, ppo-robot-2000, sac-robot, ppo-robot-fresh," in lines
    told = json.loads(said(capsys, "list", "--results", str(results), "--json", "--seeds", "2", "--scale", "0.01"))
    (scaled,) = (row for row in told if row["name"] == "ppo-scaled")
    assert (scaled["runs"], scaled["n"], scaled["scale"]) == (20, [2], 0.01)
    assert scaled["simulated_h"] == pytest.approx(300 * 1e7 * 0.002 / 3600 / 1500, rel=1e-3)


def test_claims_are_a_list_for_people_and_for_programs(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "verdicts", "--results", str(results)).startswith("1a  not run\n")
    counted = said(capsys, "verdicts", "counts", "--results", str(results))
    assert said(capsys, "verdicts", "--results", str(results)).endswith(f"\n\n{counted}")
    told = json.loads(said(capsys, "verdicts", "--results", str(results), "--json"))
    assert counted.endswith(f"{sum(each['verdict'] == 'not run' for each in told)} are not run.\n")
    assert [claim["number"] for claim in told] == [claim.number for claim in CLAIMS]
    assert {"number", "statement", "verdict", "statistic", "interval", "n", "figure"} <= told[0].keys()


def test_a_table_is_printed_with_its_scale(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "1 % of the environment steps" in said(capsys, "table", "ppo-tuned", "--results", str(results))
    told = json.loads(said(capsys, "table", "ppo-tuned", "--results", str(results), "--json"))
    assert told["scale"] == 0.01


def test_figures_are_those_that_are_asked_for(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("figures", "sac-gamma", "--results", str(results), "--out", str(tmp_path))
    assert said(capsys, *words, status=1).splitlines() == [
        f"0 figures in {tmp_path}",
        "sac-gamma: not run (sac-gamma-sweep, sac-baseline, sac-scaled)",
    ]
    wrong, file = tmp_path / "wrong", tmp_path / "file"
    words = ("figures", "sac-gama", "--results", str(results), "--out", str(wrong))
    assert "The paper has no figure 'sac-gama'" in said(capsys, *words, status=2)
    assert not wrong.exists()
    file.touch()
    assert main(["experiment", "figures", "paper", "sac-gamma", "--results", str(results), "--out", str(file)]) == 1
    assert capsys.readouterr().err == f"cycletime: {file} cannot be written: '{file}' is a file; give a folder.\n"


def test_a_report_is_made_by_one_command(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = said(capsys, "report", "--results", str(results), "--out", str(tmp_path))
    assert told == f"Figures, tables and verdicts from 2 studies are in {tmp_path}: open report.html in a browser\n"
    assert {"index.md", "claims.json"} < {path.name for path in tmp_path.iterdir()}
    assert {path.name for path in (tmp_path / "tables").iterdir()} == {"ppo-tuned.md", "ppo-tuned.json"}


@pytest.mark.parametrize("verb", ["report", "figures"])
def test_a_folder_without_results_is_refused_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    """A study's folder, for example, or another investigation's results."""
    words = (verb, "--results", str(HORIZONS), "--out", str(tmp_path / "out"))
    assert said(capsys, *words, status=2).startswith(f"cycletime: There are no results of 'paper' in {HORIZONS}: ")
    assert not (tmp_path / "out").exists()


def test_one_s_own_investigation_finds_its_results_and_its_page_without_a_clone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "results" / "parallel"
    shutil.copytree(HORIZONS.with_name("parallel"), kept)
    monkeypatch.setattr(cycletime, "__file__", str(tmp_path / "site-packages" / "cycletime" / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    page, own = kept / "README.md", ("benchmarks.parallel:PARALLEL", "--results", str(kept))
    before = page.read_text()
    page.write_text(before.replace("<!-- made: envs-1 -->\n", "<!-- made: envs-1 -->\nold\n"))
    for words in (own, own[:1]):
        assert main(["experiment", "report", *words]) == 0
    assert page.read_text() == before
    assert main(["experiment", "table", own[0]]) == 2
    assert "TABLE is missing: The trial with many environments has envs-1, envs-16" in capsys.readouterr().err


def test_without_any_results_all_is_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = ("--results", str(tmp_path))
    assert said(capsys, "verdicts", *empty).count("not run\n") == len(CLAIMS)
    assert (
        "sac-gamma-sweep: this has not been run; 'cycletime experiment run' runs it, and 'experiment collect'"
        in said(capsys, "table", "sac-tuned", *empty, status=2)
    )
    assert "--json has all verdicts: leave 5 out." in said(capsys, "verdicts", "5", "--json", *empty, status=2)
    assert main(["experiment", "table", "paper"]) == 2
    assert "TABLE is missing: The paper has ppo-tuned, sac-tuned." in capsys.readouterr().err
    assert "The paper has no table 'ppo': there are ppo-tuned, sac-tuned" in said(
        capsys, "table", "ppo", *empty, status=2
    )
    monkeypatch.setattr(collecting, "find_results", lambda name: None)
    assert "There is no results/paper here or above: give the folder that" in said(capsys, "verdicts", status=2)
    assert " none\n" in said(capsys, "list", "--seeds", "1", "--scale", "0.01")
    assert "is not a folder with results" in said(capsys, "verdicts", "--results", str(tmp_path / "none"), status=2)
