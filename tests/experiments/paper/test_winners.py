"""Who won a sweep, and the study that runs them again."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.experiments.investigation import Size
from cycletime.experiments.outcome import Outcome, OutcomeCell, mean_score, winners
from cycletime.experiments.paper.declaration import PAPER
from cycletime.experiments.running import Workspace
from cycletime.studies.spec_file import study_from_table, study_table
from cycletime.training.spec import RunSpec
from tests.experiments.paper.made import collect, study_folder

BEST = {"4ms": (8000, 50), "8ms": (8000, 25), "16ms": (4000, 12), "32ms": (2000, 12), "64ms": (1000, 12)}
"""By cycle time, the batch and the mini-batch that shall win."""


def score(spec: RunSpec) -> float:
    assert isinstance(spec.agent, PPOAgent)
    distance = sum(
        abs(np.log(value / best))
        for value, best in zip((spec.agent.batch, spec.agent.minibatch), BEST[str(spec.dt)], strict=True)
    )
    return 10.0 - float(distance) + 0.01 * spec.seed


def test_the_winners_run_again_with_fresh_seeds_each_at_its_own_cycle_time(tmp_path: Path) -> None:
    sweep = collect(study_folder(tmp_path, "ppo-grid", score))
    found = winners(sweep)
    assert {str(dt): (each.cell.labels["batch"], each.cell.labels["minibatch"]) for dt, each in found.items()} == BEST
    study = Workspace(investigation=PAPER, out=tmp_path, size=Size(0.01, 2)).study("ppo-grid-winners")
    assert (study.name, study.env_steps, study.seeds) == ("ppo-grid-winners", 100_000, (1000, 1001))
    cells = list(study.cells())
    agents = {str(cell.dt): cell.agent for cell in cells if isinstance(cell.agent, PPOAgent)}
    assert {dt: (agent.batch, agent.minibatch) for dt, agent in agents.items()} == BEST
    assert all(agent.discount == 0.99 for agent in agents.values())
    assert {cell.labels["rule"] for cell in cells} == {"baseline"}
    again = study_from_table(json.loads(json.dumps(study_table(study))))
    assert list(again.runs()) == list(study.runs())


def test_winners_may_have_more_seeds_than_their_sweep_and_their_command_says_so(tmp_path: Path) -> None:
    study_folder(tmp_path, "ppo-grid", score)
    study = Workspace(investigation=PAPER, out=tmp_path, size=Size(0.01, 2, fresh_seeds=3)).study("ppo-grid-winners")
    assert study.seeds == (1000, 1001, 1002)
    assert PAPER.origin(study)["command"] == "cycletime experiment run paper ppo-grid --fresh-seeds 3 --scale 0.01"
    with pytest.raises(InputError, match="fresh_seeds is 0: it must be a whole number of at least 1"):
        Size(fresh_seeds=0)


def made_up(*cells: list[float]) -> Outcome:
    def cell(index: int, scores: NDArray[np.float64]) -> OutcomeCell:
        labels = {"task": "reacher", "dt": 0.004, "batch": index}
        return OutcomeCell(labels, {}, tuple(range(len(scores))), scores, scores, scores[:, None])

    return Outcome("s", 1, tuple(cell(index, np.array(each)) for index, each in enumerate(cells)), {"scale": 1.0})


def test_cells_within_the_error_of_the_difference_are_as_good() -> None:
    # Of pairs with opposite signs: standard deviations of 4, n = 4, and the difference has the error 4 / sqrt(4) = 2.
    spread = np.array([-np.sqrt(6), 0.0, 0.0, np.sqrt(6)])
    sweep = made_up([*(5.0 + spread)], *([*(mean - spread)] for mean in (3.01, 2.99, 0.0)))
    found = winners(sweep)[Duration("4ms")]
    assert found.cell is sweep.cells[0]
    assert found.cell.scores.mean() == pytest.approx(5.0)
    assert found.as_good == (sweep.cells[1],)


def test_a_run_that_went_astray_counts_as_the_worst_there_is() -> None:
    sweep = made_up([9.0, 9.0, 9.0, float("nan")], [7.0, 7.0, 7.0, 7.1], [-5.0, 0.0, 0.0, 0.0])
    assert winners(sweep)[Duration("4ms")].cell is sweep.cells[1]


def test_who_went_astray_with_every_run_neither_wins_nor_is_as_good() -> None:
    astray = [float("nan")] * 4
    worst = made_up(astray, [-5.0] * 4, astray)
    assert winners(worst)[Duration("4ms")].cell is worst.cells[1], "though it is as bad as any"
    few = made_up(astray, [9.0, *astray[:3]], [-5.0, 8.0, -5.0, -5.0])
    found = winners(few)[Duration("4ms")]
    assert found.cell is few.cells[1]
    mean = mean_score(found.cell)
    assert mean is not None
    assert (mean.value, mean.n, mean.n_failed) == (9.0, 1, 3)
    assert found.as_good == (few.cells[2],)
    with pytest.raises(InputError, match=r"^At 4ms every run of s diverged: there is no winner\.$"):
        winners(made_up(astray, astray))


def test_of_single_runs_nobody_can_tell_who_is_as_good() -> None:
    found = winners(made_up([1.0], [2.0], [1.999]))[Duration("4ms")]
    assert found.cell.scores.tolist() == [2.0]
    assert found.as_good == ()
