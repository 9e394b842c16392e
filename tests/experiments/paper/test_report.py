"""The page, the tables and the verdicts that one command makes from results."""

import json
from dataclasses import replace
from pathlib import Path

from cycletime.experiments.paper.claims import CLAIMS, claims_as_json
from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.report import claim_text, index_markdown, judge_all, write_report
from tests.experiments.paper.synthetic import synthetic_data

ABOUT = {
    "command": "cycletime experiment run paper ppo-baseline",
    "runs": 10,
    "wall_s": 27.4,
    "machines": [{"cycletime": "0.2.0+abc", "device": "NVIDIA H200"}],
}


def small_data(scale: float = 0.01) -> PaperResults:
    data = synthetic_data(lambda labels: 5.0, seeds=2, only=["ppo-baseline"], scale=scale)
    outcome = data.outcomes["ppo-baseline"]
    return PaperResults({"ppo-baseline": replace(outcome, about={**outcome.about, **ABOUT})})


def claims_text(data: PaperResults) -> str:
    return "\n".join(claim_text(claim, data) for claim in CLAIMS)


def test_every_claim_is_told_in_80_columns_with_what_it_hangs_on() -> None:
    told = claims_text(small_data())
    assert all(len(line) <= 80 for line in told.splitlines())
    parts = told.split("\n\n")
    assert [part.split()[0] for part in parts] == [claim.number for claim in CLAIMS]
    assert "(scaled down to 1 % of the environment steps)" in parts[2]
    assert "; n = 2; required: > 0)." in " ".join(parts[2].split())
    assert "Not run: ppo-dt-aware" in parts[4]
    assert "scaled down" not in claims_text(small_data(1.0))


def test_what_comes_from_the_simulated_robot_says_so() -> None:
    data = synthetic_data(lambda labels: 5.0, seeds=3, only=["ppo-robot-fresh", "ppo-baseline"], scale=0.5)
    robot, other = (data.outcomes[name] for name in ("ppo-robot-fresh", "ppo-baseline"))
    machines = [{"cycletime": "0.2.0+abc", "device": "cpu", "processor": "AMD EPYC"}]
    about = {**robot.about, "where": ["simulated robot"], "wall_s": 9, "machines": machines, "runs": 15}
    other = replace(other, about={**other.about, **ABOUT})
    data = PaperResults({"ppo-robot-fresh": replace(robot, about=about), "ppo-baseline": other})
    verdicts = [part.splitlines()[0] for part in claims_text(data).split("\n\n")]
    scaled = " (scaled down to 50 % of the environment steps)"
    assert verdicts[16] == f"14  not run (simulated robot){scaled}"
    assert not any("simulated robot" in verdict for verdict in (*verdicts[:16], *verdicts[17:]))
    told = index_markdown(data, judge_all(data), [])
    assert "| ppo-robot-fresh | 15 x 300,000 environment steps | simulated robot | 0.5 | " in told
    assert "| 0.2.0+abc | AMD EPYC | 9 s |" in told
    assert [each["sources"] for each in claims_as_json(data)][16] == ["simulated robot"]


def test_where_the_plain_mean_says_otherwise_the_page_does_too() -> None:
    data = synthetic_data(
        lambda labels: 9.0 if labels["rule"] == "dt-aware" else 5.0, only=["ppo-baseline", "ppo-dt-aware"]
    )
    outcome = data.outcomes["ppo-dt-aware"]
    worse = replace(outcome, cells=tuple(replace(cell, plain=cell.plain - 8.0) for cell in outcome.cells))
    for told, says in ((data, False), (PaperResults({**data.outcomes, "ppo-dt-aware": worse}), True)):
        for text in (claims_text(told), index_markdown(told, judge_all(told), [])):
            lines = " ".join(text.split())
            assert ("by the plain mean over episodes: refuted." in lines) is says
            assert "By the plain mean over episodes: confirmed." not in lines


def test_a_report_has_what_there_is_data_for_and_names_the_rest(tmp_path: Path) -> None:
    write_report(small_data(), tmp_path)
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert figures == {f"ppo-baseline.{kind}" for kind in ("pdf", "svg", "png")}
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["number"] for claim in claims] == [claim.number for claim in CLAIMS]
    told = (tmp_path / "index.md").read_text()
    assert "![ppo-baseline](figures/ppo-baseline.png)" in told
    assert "- ppo-dt0: not run (" in told
    assert (
        "| ppo-baseline | 10 x 100,000 environment steps | made up | 0.01 | "
        "`cycletime experiment run paper ppo-baseline` | 0.2.0+abc | NVIDIA H200 | 27 s |"
    ) in told
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    write_report(small_data(), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before, "the same data, the same bytes"
