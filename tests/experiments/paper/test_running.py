"""Running experiments: their studies in turn, then the winners', and nothing twice."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from cycletime.errors import InputError
from cycletime.experiments.investigation import Size
from cycletime.experiments.paper.declaration import PAPER
from cycletime.experiments.paper.experiments import EXPERIMENTS
from cycletime.experiments.running import Workspace, pending_studies, run_experiment
from cycletime.studies.events import recorded_wall_s
from cycletime.studies.study_folder import RunState, StudyFolder
from tests.experiments.paper.made import study_folder
from tests.studies.small import bits_of
from tests.studies.stand_ins import InTurn, Notes, Trained

SWEEP = EXPERIMENTS["sac-gamma-sweep"]
SMALL = Size(0.01, 1)
paper_workspace = partial(Workspace, investigation=PAPER)


def run(
    workspace: Workspace, name: str, stop: Callable[[], bool] = lambda: False
) -> tuple[bool, dict[str, dict[RunState, int]]]:
    told: dict[str, dict[RunState, int]] = {}
    done = run_experiment(
        EXPERIMENTS[name],
        workspace,
        InTurn,
        observer=lambda executor: Notes(),
        tell=lambda study, counts: told.update({study: dict(counts)}),
        stop=stop,
    )
    return done, told


def test_the_studies_run_in_turn_and_then_the_winners_with_fresh_seeds(tmp_path: Path, trained: Trained) -> None:
    workspace = paper_workspace(out=tmp_path, size=SMALL)
    assert run(workspace, SWEEP.name) == (
        True,
        {"sac-gamma-sweep": {"done": 60}, "sac-scaled": {"done": 5}, "sac-gamma-sweep-winners": {"done": 5}},
    )
    winners = StudyFolder.open(tmp_path / "sac-gamma-sweep-winners")
    assert winners.study.seeds == (1000,)
    assert (winners.keep.episodes, winners.keep.policies) == (False, False)
    assert all(recorded_wall_s(tmp_path / part) is not None for part in SWEEP.parts)
    before = list(trained.runs)
    assert run(workspace, SWEEP.name)[0]
    assert trained.runs == before, "done means done"


def test_broken_off_in_the_middle_and_run_again_it_is_as_if_nobody_had(tmp_path: Path, trained: Trained) -> None:
    run(paper_workspace(out=tmp_path / "whole", size=Size(0.01, 2)), "ppo-baseline")
    begun = len(trained.runs)

    def break_off(names: Sequence[str]) -> None:
        if len(trained.runs) > begun + 4:
            raise KeyboardInterrupt

    trained.before = break_off
    workspace = paper_workspace(out=tmp_path / "again", size=Size(0.01, 2))
    with pytest.raises(KeyboardInterrupt):
        run(workspace, "ppo-baseline")
    assert 0 < len(bits_of(tmp_path / "again" / "ppo-baseline")) < 10
    trained.before = lambda names: None
    assert run(workspace, "ppo-baseline") == (True, {"ppo-baseline": {"done": 10}})
    assert bits_of(tmp_path / "again" / "ppo-baseline") == bits_of(tmp_path / "whole" / "ppo-baseline")
    assert StudyFolder.open(tmp_path / "again" / "ppo-baseline").keep.policies


def test_asked_to_stop_it_does_not_go_on_to_the_next_study(tmp_path: Path, trained: Trained) -> None:
    done, told = run(paper_workspace(out=tmp_path, size=SMALL), "ppo-dt0", stop=lambda: True)
    assert (done, told) == (False, {"ppo-dt0-4ms": {"pending": 5}})
    assert trained.runs == []


def test_where_runs_of_a_sweep_fail_nobody_has_won(tmp_path: Path, trained: Trained) -> None:
    class Faults(dict[str, Exception]):
        def __contains__(self, name: object) -> bool:
            return "-4ms-" in str(name)

        def __getitem__(self, name: str) -> Exception:
            return FloatingPointError("no number")

    trained.faults = Faults()
    done, told = run(paper_workspace(out=tmp_path, size=SMALL), SWEEP.name)
    assert not done
    assert told == {"sac-gamma-sweep": {"done": 48, "failed": 12}}


def test_another_size_in_the_same_folder_is_refused_and_more_seeds_are_not(tmp_path: Path, trained: Trained) -> None:
    run(paper_workspace(out=tmp_path, size=SMALL), "ppo-baseline")
    with pytest.raises(
        InputError,
        match=r"has runs of 100,000 environment steps, and this size has 10,000,000: give --scale 0\.01 again",
    ):
        run(paper_workspace(out=tmp_path), "ppo-baseline")
    assert StudyFolder.open(tmp_path / "ppo-baseline").study.env_steps == 100_000
    assert run(paper_workspace(out=tmp_path, size=Size(0.01, 2)), "ppo-baseline")[1] == {"ppo-baseline": {"done": 10}}
    assert len(trained.runs) == 10


def test_another_device_is_refused(tmp_path: Path, trained: Trained) -> None:
    run(paper_workspace(out=tmp_path, size=SMALL), "ppo-baseline")
    with pytest.raises(InputError, match="began on cpu, and is now to go on with gpu"):
        run(paper_workspace(out=tmp_path, size=SMALL, device="gpu"), "ppo-baseline")


def test_device_and_engine_are_those_that_were_asked_for(tmp_path: Path) -> None:
    (cell, *_) = paper_workspace(out=tmp_path, device="gpu").study("ppo-baseline").cells()
    assert cell.spec.engine.name == "cuda"
    (cell, *_) = paper_workspace(out=tmp_path, device="gpu", engine="compiled").study("ppo-baseline").cells()
    assert (cell.spec.engine.name, cell.spec.engine.device) == ("compiled", "gpu")


def test_what_is_left_waits_for_its_sweep(tmp_path: Path) -> None:
    workspace, experiments = (
        paper_workspace(out=tmp_path, size=SMALL),
        [SWEEP, EXPERIMENTS["ppo-baseline"]],
    )
    ready, waiting = pending_studies(experiments, workspace)
    assert list(ready) == ["sac-gamma-sweep", "sac-scaled", "ppo-baseline"]
    assert waiting == {"sac-gamma-sweep-winners": "sac-gamma-sweep"}
    study_folder(tmp_path, "sac-gamma-sweep", size=SMALL)
    study_folder(tmp_path, "ppo-baseline", size=SMALL, missing=1)
    ready, waiting = pending_studies(experiments, workspace)
    assert (list(ready), waiting) == (["sac-scaled", "sac-gamma-sweep-winners", "ppo-baseline"], {})
