from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cycletime.duration import Duration
from cycletime.studies.scores import AS_GIVEN, read_scores
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.learning_curve import Episodes
from tests.reports.conftest import finished
from tests.training.runs.finished import recomputed

MakeStudy = Callable[..., StudyFolder]
AT_16, AT_32 = Duration("16ms"), Duration("32ms")


def test_a_panel_has_rules_in_order_cycle_times_sorted_and_a_score_for_each_seed(decided: StudyFolder) -> None:
    (panel,) = read_scores(decided).panels
    assert (panel.title, panel.provenance) == ("reacher, ppo", "closed form")
    assert panel.rules == ("baseline", "dt-aware")
    assert panel.dts == (AT_16, AT_32)
    assert panel.scores("baseline", AT_32) == [-40.0, -41.0, -42.0]
    assert panel.scores("dt-aware", AT_32) == [-27.0, -26.0, -25.0]


def test_where_rules_agree_they_share_runs_which_count_once(decided: StudyFolder) -> None:
    scores = read_scores(decided)
    (panel,) = scores.panels
    assert panel.scores("baseline", AT_16) == panel.scores("dt-aware", AT_16) == [-20.0, -22.0, -24.0]
    assert panel.shares_runs("baseline", "dt-aware", AT_16)
    assert not panel.shares_runs("baseline", "dt-aware", AT_32)
    assert scores.counts() == {"scored": 9}


def test_runs_without_a_score_are_kept_with_the_reason(make_study: MakeStudy) -> None:
    comes = ["astray", "failed", None, -1.0]
    folder = make_study(lambda labels, seed: comes[seed], seeds=4, dts=["16ms"])
    scores = read_scores(folder)
    assert scores.counts() == {"astray": 1, "failed": 1, "unfinished": 1, "scored": 1}
    (panel,) = scores.panels
    runs = panel.cells["baseline", AT_16]
    assert [run.outcome for run in runs] == ["astray", "failed", "unfinished", "scored"]
    assert [run.means is not None for run in runs] == [True, False, False, True]
    assert [bool(run.result) for run in runs] == [True, False, False, True]
    assert panel.scores("baseline", AT_16) == [-1.0]


def test_a_run_keeps_its_means_in_bins(make_study: MakeStudy) -> None:
    (run,) = read_scores(make_study(lambda labels, seed: -3.0, seeds=1, dts=["16ms"], rules=["baseline"])).runs()
    assert run.means is not None
    assert run.means.tolist() == [-3.0] * 100
    assert (run.name, run.score, run.result["episodes"]) == (run.spec.name, -3.0, 4)


def test_measures_are_those_of_the_result(make_study: MakeStudy) -> None:
    folder = make_study(lambda labels, seed: None, seeds=1, dts=["16ms"], rules=["baseline"])
    run = finished(read_scores(folder).runs()[0].spec, -1.0)
    ends = np.array([2400, 4000, 4800])  # in the bins 49, 83 and 99
    curve = Episodes(ends, ends // 8, np.array([0.0, 3.0, 300.0]), np.diff(ends, prepend=0))
    folder.store.add([recomputed(run, curve=curve)])
    scores = [read_scores(folder, each).runs()[0].score for each in ("average", "last-tenth", "episodes")]
    # The first return stands for 83 bins, the second for 16, and the third for the last one.
    assert scores == pytest.approx([(16 * 3 + 300) / 100, (9 * 3 + 300) / 10, 101])


def test_tasks_algorithms_and_hyper_parameters_have_panels_of_their_own(make_study: MakeStudy) -> None:
    keys: dict[str, Any] = {
        "task": ["reacher", "double-pendulum"],
        "algorithm": ["ppo", "actor-critic"],
        "tuned": {"ppo": {"dt": "16ms", "batch": [100, 200], "minibatch": 50}},
        "set": {"ppo": {"hidden": [[8], [16, 16]]}},
        "rules": {"ppo": ["dt-aware"]},
    }
    panels = read_scores(make_study(lambda labels, seed: None, **keys)).panels
    assert [panel.title for panel in panels[:5]] == [
        "reacher, ppo, batch 100, hidden (8,)",
        "reacher, ppo, batch 100, hidden (16, 16)",
        "reacher, ppo, batch 200, hidden (8,)",
        "reacher, ppo, batch 200, hidden (16, 16)",
        "reacher, actor-critic",
    ]
    assert len(panels) == 10
    assert panels[4].rules == (AS_GIVEN,)
    assert panels[4].provenance == "no data yet"
