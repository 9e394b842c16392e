"""The rules with many environments: preregistered studies by written-out numbers, and criteria against SciPy."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks.parallel import (
    FAMILIES,
    NUM_ENVS,
    PARALLEL,
    TASKS,
    Trial,
    differences_figure,
    missing_figures,
    scores_text,
    studies_of,
    verdicts_text,
    write_page,
)
from cycletime.errors import InputError
from cycletime.experiments.outcome import NotRunError, Outcome, OutcomeCell, Results
from cycletime.experiments.running import Workspace
from cycletime.studies.spec import StudySpec

RESULTS = Path(__file__).parents[2] / "results" / "parallel"
SEEDS = (0, 1, 2)


def study(name: str) -> StudySpec:
    return Workspace(investigation=PARALLEL, out=Path("none"), results=RESULTS).study(name)


def made_up(name: str, numbers: np.random.Generator) -> Outcome:
    """A study's outcome with scores that depend on its arm, and nothing at all in acrobot."""
    planned = study(name)
    cells = []
    for cell in planned.cells():
        level = {"baseline": 50.0, "dt-aware": 70.0}.get(str(cell.labels["rule"]), 90.0)
        scores = (0.0 if "acrobot" in name else level) + numbers.normal(0, 5, len(SEEDS))
        cells.append(
            OutcomeCell({**cell.labels, "dt": float(cell.dt)}, {}, SEEDS, scores, scores, np.tile(scores[:, None], 10))
        )
    return Outcome(name, planned.env_steps, tuple(cells), {"scale": 1.0, "nothing": 10.0, "where": ["closed form"]})


@pytest.fixture(scope="module")
def results() -> Results:
    numbers = np.random.default_rng(0)
    return Results({name: made_up(name, numbers) for count in (1, 16) for name in studies_of(count)}, folder=RESULTS)


@pytest.mark.parametrize("num_envs", NUM_ENVS)
def test_each_study_can_be_run_and_has_the_budget_of_its_task(num_envs: int) -> None:
    for name in studies_of(num_envs):
        found = study(name)
        found.check_runs()
        assert found.env_steps == PARALLEL.full_env_steps(name)
    assert len(studies_of(num_envs)) == (24 if num_envs == 1 else 30)


@pytest.mark.parametrize(
    ("kind", "rule", "dt", "num_envs", "values"),
    [
        ("tuned", "baseline", "8ms", 256, (8192, 256, 0.923116, 0.951229)),
        ("tuned", "dt-aware", "8ms", 256, (32768, 1024, 0.923116, 0.951229)),
        ("tuned", "horizons", "8ms", 256, (32768, 1024, 0.923116**0.25, 0.951229**0.25)),
        ("tuned", "minibatch-kept", "8ms", 256, (32768, 256, 0.923116**0.25, 0.951229**0.25)),
        ("tuned", "horizons", "128ms", 256, (2048, 64, np.exp(-1 / 6), np.exp(-1 / 6))),
        ("untuned", "dt-aware", "128ms", 256, (2048, 64, 0.99**4, 0.95**4)),
        ("more-shorter", "horizons", "8ms", 1024, (32768, 1024, 0.923116**0.25, 0.951229**0.25)),
        ("more-longer", "horizons", "128ms", 64, (2048, 64, np.exp(-1 / 6), np.exp(-1 / 6))),
        ("adaptive", "baseline", "128ms", 256, (8192, 256, 0.923116, 0.951229)),
    ],
)
def test_arms_have_the_values_of_their_formulas(
    kind: str, rule: str, dt: str, num_envs: int, values: tuple[float, ...]
) -> None:
    (cell,) = (
        each for each in study(f"256-pendulum-{kind}").cells() if (each.labels["rule"], str(each.dt)) == (rule, dt)
    )
    names = ("batch", "minibatch", "discount", "trace_decay")
    assert [getattr(cell.agent, name) for name in names] == pytest.approx(values, rel=1e-6)
    assert cell.spec.num_envs == num_envs
    assert cell.agent.target_kl == (0.01 if kind == "adaptive" else None)  # type: ignore[union-attr]


def test_a_rollout_lasts_as_many_seconds_or_has_as_many_steps() -> None:
    """What 'more environments instead of longer rollouts' means, at equal b."""
    for kind, steps in (("tuned", 128), ("more-shorter", 32)):
        cell = next(
            each
            for each in study(f"256-pendulum-{kind}").cells()
            if (each.labels["rule"], str(each.dt)) == ("horizons", "8ms")
        )
        assert cell.agent.period / cell.spec.num_envs == steps


def test_comparisons_are_paired_over_tasks_and_over_seeds(results: Results) -> None:
    trial = Trial(results, 16)
    assert trial.tasks == [task for task in TASKS if task != "acrobot"], "there its tuned values gain nothing"
    comparison, seeds = trial.compared({"arm": "tuned horizons", "than": "tuned baseline", "to": "shorter"})
    differences = []
    for task in trial.tasks:
        cells = {
            (cell.labels["rule"], str(cell.dt)): cell.scores for cell in results.outcomes[f"16-{task}-tuned"].cells
        }
        dts = sorted({cell.dt for cell in results.outcomes[f"16-{task}-tuned"].cells})
        gain = cells["baseline", str(dts[1])].mean() - 10.0
        normalised = [np.clip((cells[rule, str(dts[0])] - 10.0) / gain, -1, 2) for rule in ("horizons", "baseline")]
        differences.append(normalised[0] - normalised[1])
    means = [each.mean() for each in differences]
    wanted = stats.ttest_1samp(means, 0.0)
    assert comparison.p_value == pytest.approx(wanted.pvalue)
    interval = wanted.confidence_interval(0.95)
    found = comparison.difference
    assert (found.value, found.low, found.high) == pytest.approx((np.mean(means), interval.low, interval.high))
    # Over seeds the tasks are given: their variances of pairs add up.
    variances = [each.var(ddof=1) / len(each) for each in differences]
    error = np.sqrt(sum(variances)) / len(differences)
    freedom = sum(variances) ** 2 / sum(variance**2 / (len(SEEDS) - 1) for variance in variances)
    half = stats.t.ppf(0.975, freedom) * error
    assert (seeds.value, seeds.low, seeds.high) == pytest.approx(
        (np.mean(means), np.mean(means) - half, np.mean(means) + half)
    )


def test_families_are_corrected_by_holm(results: Results) -> None:
    rows = Trial(results, 16).judged("primary")
    assert len(rows) == 6
    first = dict(zip(("name", "seeds", "tasks", "verdict", "predicted", "end"), rows[0], strict=True))
    assert first["name"] == "tuned horizons - tuned baseline, shorter"
    assert (first["verdict"], first["predicted"]) == ("better", "better")
    assert first["end"] == first["seeds"], "here both measures have the same numbers"


def test_texts_say_tasks_and_seeds_and_the_page_is_filled(results: Results, tmp_path: Path) -> None:
    text = verdicts_text(16, results)
    tasks = "pendulum, cart-pole, mountain-car, reacher, double-pendulum"
    assert text.startswith(f"16 environments; 5 tasks ({tasks}); 3 of 20 planned seeds.")
    assert scores_text(16, results) in text
    page = tmp_path / "README.md"
    page.write_text((RESULTS / "README.md").read_text())
    assert {file.name for file in write_page(results, page)} == {"README.md", "differences.png", "differences.svg"}
    assert text.strip() in page.read_text()


def test_a_figure_has_each_difference_on_each_task(results: Results) -> None:
    figure = differences_figure(results)
    assert [axes.get_title() for axes in figure.axes] == ["1 environment", "16 environments"]
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    trial, points = Trial(results, 16), dict[int, list[float]]()
    assert names == [name for family in FAMILIES for name in trial.comparisons(family)]
    for line in (each for each in figure.axes[1].lines if each.get_linestyle() == "None" and len(each.get_xdata())):  # type: ignore[arg-type]
        points.setdefault(-round(np.asarray(line.get_ydata()).item()), []).append(np.asarray(line.get_xdata()).item())
    for row, comparison in enumerate(each for family in FAMILIES for each in trial.comparisons(family).values()):
        wanted = [np.mean([*ours.values()]) - np.mean([*theirs.values()]) for ours, theirs in trial.pairs(comparison)]
        assert sorted(points[row]) == pytest.approx(sorted([*wanted, np.mean(wanted)]))


def test_what_was_not_run_is_said(results: Results) -> None:
    with pytest.raises(NotRunError, match="With 256 environments 0 tasks have all studies; 3 are needed"):
        verdicts_text(256, results)
    assert not missing_figures(results)
    assert missing_figures(Results({}, folder=RESULTS)) == {"differences": "all studies of 3 tasks"}


def test_the_committed_page_says_what_the_committed_results_say() -> None:
    results = PARALLEL.read(RESULTS)
    assert verdicts_text(256, results).strip() in (RESULTS / "README.md").read_text()
    scores = {name: outcome.cells for name, outcome in results.outcomes.items() if name.startswith("256-pendulum")}
    cells = {(str(cell.labels["rule"]), float(cell.dt)): cell.scores for cell in scores["256-pendulum-tuned"]}
    zero = results.outcomes["256-pendulum-tuned"].about["nothing"]
    gain = cells["baseline", 0.032].mean() - zero
    assert Trial(results, 256).normalised("pendulum", "tuned horizons", 0, "score") == pytest.approx(
        dict(enumerate(np.clip((cells["horizons", 0.008] - zero) / gain, -1, 2)))
    )


def test_a_longer_cycle_with_a_fourth_of_one_environment_there_is_not(results: Results) -> None:
    assert not [name for name in studies_of(1) if name.endswith("more-longer")]
    with pytest.raises(InputError, match="num_envs is 0"):
        study("1-pendulum-more-longer")
    assert "more horizons - tuned horizons, longer" in verdicts_text(16, results)
    assert "more horizons - tuned horizons, longer" not in verdicts_text(1, results)
