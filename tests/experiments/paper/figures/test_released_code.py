import numpy as np
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.figures import draw_figures

WAYS = (("batch", "released"), ("episode_end", "released"), ("batch", "pytorch"), ("episode_end", "pytorch"))


def test_each_way_has_a_point_for_each_rule_and_cycle_time(data: PaperResults, drawn: dict[str, Figure]) -> None:
    reacher, pendulum = drawn["released-code"].axes
    for axes, task, baseline, aware in (
        (reacher, "reacher", "ppo-baseline", "ppo-dt-aware"),
        (pendulum, "double-pendulum", "ppo-pendulum", "ppo-pendulum"),
    ):
        bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
        points = np.concatenate([np.asarray(each.lines[0].get_xydata()) for each in bars])
        points = points[np.argsort(points[:, 0])]
        assert np.rint(points[:, 0]).tolist() == [way for way in range(4) for _ in range(4)]
        expected = []
        for way, (when, weights) in enumerate(WAYS):
            for dt in ("4ms", "8ms"):
                for rule, study in (("baseline", baseline), ("dt-aware", aware)):
                    labels = {"batch": 2000} if (study, way) == ("ppo-dt-aware", 0) else {}
                    ways = {"learn_when": when, "initial_weights": weights}
                    name = study if way == 0 else "ppo-released-code"
                    cell = data.outcome(name).cell(task=task, rule=rule, dt=dt, **ways, **labels)
                    expected.append(cell.scores.mean())
        np.testing.assert_allclose(points[:, 1], expected)


def test_a_task_of_which_something_is_missing_was_not_run(data: PaperResults) -> None:
    studies = ("ppo-released-code", "ppo-pendulum")
    figure = draw_figures(PaperResults({study: data.outcome(study) for study in studies}))["released-code"]
    assert [[text.get_text() for text in axes.texts] for axes in figure.axes] == [["not run"], []]
