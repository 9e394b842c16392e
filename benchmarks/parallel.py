"""Do the rules that hold with one environment hold with thousands? PPO on six tasks, by a preregistration.

    cycletime experiment run benchmarks.parallel:PARALLEL envs-256 --seeds 4

`results/parallel/preregistration.toml` has the tasks, the values, the budgets, the comparisons and what was predicted
of them. It was committed before the runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
from matplotlib.figure import Figure

from cycletime.duration import Duration
from cycletime.experiments.horizons.results import CURVE_BINS, provenance
from cycletime.experiments.investigation import Experiment, Investigation, scale_label
from cycletime.experiments.outcome import NotRunError, OutcomeCell, Results
from cycletime.experiments.page_parts import PagePart, fill_parts, read_page
from cycletime.reports import drawing
from cycletime.reports.figure_style import STYLE, add_footer
from cycletime.reports.formatting import TextTable
from cycletime.reports.page.document import write_text
from cycletime.statistics import Comparison, Contrast, Estimate, compare, holm
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import study_from_table
from cycletime.training.toml_files import read_toml

if TYPE_CHECKING:
    from cycletime.experiments.running import Workspace

NUM_ENVS = (1, 16, 256, 4096)
TASKS = ("pendulum", "cart-pole", "mountain-car", "acrobot", "reacher", "double-pendulum")
ENVS_FACTOR = 4
"""Shorter cycles are a fourth of the tuned one, longer ones four times it; 'more environments' follow them."""
KINDS = ("tuned", "untuned", "more-shorter", "more-longer", "adaptive")
PLACES = ("shorter", "", "longer")
"""The cycle times, in their order; the second is that which values are from."""
FAMILIES = ("primary", "secondary")
LOWEST, HIGHEST = -1.0, 2.0
EQUAL_WITHIN = 0.05
FEWEST_TASKS = 3
FIGURE = "differences"
_MARKERS = "os^vPX"
"""Of tasks."""
Measure = Literal["score", "final"]


def study_name(num_envs: int, task: str, kind: str) -> str:
    return f"{num_envs}-{task}-{kind}"


def studies_of(num_envs: int) -> list[str]:
    """By task, all kinds; fewer environments than one there are not."""
    kinds = [kind for kind in KINDS if num_envs >= ENVS_FACTOR or kind != "more-longer"]
    return [study_name(num_envs, task, kind) for task in TASKS for kind in kinds]


EXPERIMENTS = {
    name: Experiment(name, f"the rules with {count:,} environment{'' if count == 1 else 's'}", tuple(studies_of(count)))
    for count in NUM_ENVS
    for name in [f"envs-{count}"]
}


def preregistration(results: Path | None) -> dict[str, Any]:
    return read_toml((results or Path()) / "preregistration.toml")


def preregistered_study(name: str, workspace: Workspace) -> StudySpec:
    planned = preregistration(workspace.results)
    count, rest = name.split("-", 1)
    task = next(each for each in TASKS if rest.startswith(each))
    kind, num_envs, values = rest.removeprefix(f"{task}-"), int(count), planned["tasks"][task]
    batch = num_envs * planned["rollout_steps"][count]
    rates = planned["untuned"] if kind == "untuned" else {key: values[key] for key in ("discount", "trace_decay")}
    dts = {"shorter": values["dts"][:1], "longer": values["dts"][2:]}.get(kind.removeprefix("more-"), values["dts"])
    num_envs = {"more-shorter": num_envs * ENVS_FACTOR, "more-longer": num_envs // ENVS_FACTOR}.get(kind, num_envs)
    own = planned["own_rules"] if kind == "tuned" else {}
    rules = {"tuned": ["baseline", "dt-aware", "horizons", *own], "untuned": ["baseline", "dt-aware", "horizons"]}
    return study_from_table(
        {
            "name": name,
            "task": task,
            **({"env_dt": values["env_dt"]} if "env_dt" in values else {}),
            "algorithm": "ppo",
            "dts": dts,
            "rules": rules.get(kind, ["baseline" if kind == "adaptive" else "horizons"]),
            **({"own_rules": own} if own else {}),
            "seeds": planned["seeds"],
            "env_steps": values["env_steps"][count],
            "num_envs": num_envs,
            "tuned": {
                "dt": values["dts"][1],
                "batch": batch,
                "minibatch": max(1, batch // planned["minibatches"]),
                **rates,
            },
            "set": {**planned["set"], **({"target_kl": planned["target_kl"]} if kind == "adaptive" else {})},
        }
    )


def env_steps(name: str) -> int:
    from cycletime.experiments.collecting import results_folder

    count, rest = name.split("-", 1)
    task = next(each for each in TASKS if rest.startswith(each))
    return int(preregistration(results_folder("parallel"))["tasks"][task]["env_steps"][count])


@dataclass(frozen=True)
class Trial:
    """What there are results for, with a number of environments."""

    results: Results
    num_envs: int

    @cached_property
    def planned(self) -> dict[str, Any]:
        return preregistration(self.results.folder)

    @cached_property
    def tasks(self) -> list[str]:
        """Those with all studies, whose tuned values gain something at their own cycle time."""
        kinds = {task: [name for name in studies_of(self.num_envs) if f"-{task}-" in name] for task in TASKS}
        there = [task for task, names in kinds.items() if all(name in self.results.outcomes for name in names)]
        return [task for task in there if self.gain(task, "score") > 0]

    def cell(self, task: str, kind: str, rule: str, place: int) -> OutcomeCell:
        outcome = self.results.outcome(study_name(self.num_envs, task, kind))
        return outcome.cell(rule=rule, dt=Duration(self.planned["tasks"][task]["dts"][place]))

    def nothing(self, task: str) -> float:
        """The return of doing nothing, which is the same at every cycle time."""
        return float(self.results.outcome(study_name(self.num_envs, task, "tuned")).about["nothing"])

    def gain(self, task: str, measure: Measure) -> float:
        """What the tuned values have over doing nothing, at the cycle time that they were tuned at."""
        return fmean(_scores(self.cell(task, "tuned", "baseline", 1), measure).values()) - self.nothing(task)

    def normalised(self, task: str, arm: str, place: int, measure: Measure) -> dict[int, float]:
        """By seed, 0 for doing nothing and 1 for the tuned values at their own cycle time, within -1 and 2."""
        kind, _, rule = arm.partition(" ")
        kind = f"{kind}-{PLACES[place]}" if kind == "more" else kind
        found = _scores(self.cell(task, kind, rule, place), measure)
        zero, gain = self.nothing(task), self.gain(task, measure)
        return {seed: min(max((score - zero) / gain, LOWEST), HIGHEST) for seed, score in found.items()}

    def pairs(self, comparison: dict[str, str], measure: Measure = "score") -> list[list[dict[int, float]]]:
        """By task, what both arms of a comparison have with each seed."""
        place = PLACES.index(comparison["to"])
        return [
            [self.normalised(task, comparison[side], place, measure) for side in ("arm", "than")] for task in self.tasks
        ]

    def compared(self, comparison: dict[str, str], measure: Measure = "score") -> tuple[Comparison, Estimate]:
        """What an arm has more than another: over tasks, and over seeds on these tasks."""
        if len(pairs := self.pairs(comparison, measure)) < FEWEST_TASKS:
            there = f"With {self.num_envs:,} environments {len(pairs)} tasks have all studies"
            raise NotRunError(f"envs-{self.num_envs}", remedy=f"{there}; {FEWEST_TASKS} are needed.")
        means = [[fmean(scores.values()) for scores in side] for side in zip(*pairs, strict=True)]
        share = 1 / len(pairs)
        over_seeds = Contrast.of(
            [
                (weight, {number * 2**32 + seed: score for seed, score in scores.items()})  # no pairs between tasks
                for number, pair in enumerate(pairs)
                for weight, scores in zip((share, -share), pair, strict=True)
            ]
        )
        return compare(*means, paired=True), over_seeds.estimate(0.95)

    def comparisons(self, family: str) -> dict[str, dict[str, str]]:
        """Those of a family that there are enough environments for, by what stands for them in tables and figures."""
        planned = (each for each in self.planned[family] if self.has(each["arm"], PLACES.index(each["to"])))
        return {f"{each['arm']} - {each['than']}, {each['to']}": each for each in planned}

    def judged(self, family: str) -> list[tuple[str, ...]]:
        """A row for each comparison of a family: its difference over seeds and tasks, the verdict, the prediction.

        The last column, which nobody predicted, is the difference at the end of learning, over seeds.
        """
        planned = self.comparisons(family)
        found = {name: self.compared(each) for name, each in planned.items()}
        corrected = holm({name: comparison for name, (comparison, _) in found.items()})
        return [
            (
                name,
                _interval(seeds),
                _interval(corrected[name].difference),
                _verdict(corrected[name]),
                each["predicted"],
                _interval(self.compared(each, "final")[1]),
            )
            for each, (name, (_, seeds)) in zip(planned.values(), found.items(), strict=True)
        ]

    def has(self, arm: str, place: int) -> bool:
        """Whether there are enough environments for an arm."""
        return not arm.startswith("more") or PLACES[place] == "shorter" or self.num_envs >= ENVS_FACTOR


def _scores(cell: OutcomeCell, measure: Measure) -> dict[int, float]:
    return cell.seed_scores if measure == "score" else cell.seed_finals


def _interval(estimate: Estimate) -> str:
    return f"{estimate.value:+.2f} [{estimate.low:+.2f}, {estimate.high:+.2f}]"


def _verdict(comparison: Comparison) -> str:
    low, high = comparison.difference.low, comparison.difference.high
    if comparison.verdict != "not decided by the data" or low is None or high is None:
        return comparison.verdict
    return "equal for practical purposes" if low > -EQUAL_WITHIN and high < EQUAL_WITHIN else "not decided"


def _about(results: Results) -> str:
    """How many seeds there are, and the scale, of the outcomes that were used."""
    used = [outcome for outcome in results.outcomes.values() if outcome.name in results.used]
    seeds = " or ".join(map(str, sorted({n for outcome in used for n in outcome.n})))
    scale = scale_label(min(outcome.scale for outcome in used))
    return f"{seeds} of {len(preregistration(results.folder)['seeds'])} planned seeds{scale}."


def scores_text(num_envs: int, results: Results) -> str:
    """The mean score of each arm on each task, at the shorter and the longer cycle time."""
    trial = Trial(results, num_envs)
    arms = dict.fromkeys(
        each[side] for family in FAMILIES for each in trial.planned[family] for side in ("than", "arm")
    )
    rows = []
    for arm, (to, place) in product(arms, (("shorter", 0), ("longer", 2))):
        if trial.has(arm, place):
            scores = (fmean(trial.normalised(task, arm, place, "score").values()) for task in trial.tasks)
            rows.append((f"{arm}, {to}", *(f"{score:.2f}" for score in scores)))
    return "\n".join(TextTable(("arm", *trial.tasks), rows).markdown(is_aligned=True))


def verdicts_text(num_envs: int, results: Results) -> str:
    trial, lines = Trial(results, num_envs), list[str]()
    for family in FAMILIES:
        header = (family, "over seeds", "over tasks", "verdict", "predicted", "at the end, over seeds")
        lines += [*TextTable(header, trial.judged(family)).markdown(is_aligned=True), ""]
    about = f"{num_envs:,} environments; {len(trial.tasks)} tasks ({', '.join(trial.tasks)}); {_about(results)}"
    return "\n".join([about, "", *lines, scores_text(num_envs, results), ""])


def differences_figure(results: Results) -> Figure:
    """Each comparison's difference on each task, its mean, and both intervals; a panel for each number of envs."""
    trials = [trial for count in NUM_ENVS if len((trial := Trial(results, count)).tasks) >= FEWEST_TASKS]
    if not trials:
        raise NotRunError(FIGURE, remedy=f"No number of environments has {FEWEST_TASKS} tasks with all studies.")
    names = [name for family in FAMILIES for name in trials[-1].comparisons(family)]
    figure = Figure(figsize=(3.4 + 3.2 * len(trials), 0.5 + 0.36 * len(names)))
    every = figure.subplots(1, len(trials), sharex=True, sharey=True, squeeze=False)[0]
    for axes, trial in zip(every, trials, strict=True):
        axes.axvline(0, color="0.4", linewidth=0.8)
        for name, each in ((name, each) for family in FAMILIES for name, each in trial.comparisons(family).items()):
            row, (tasks, seeds) = -names.index(name), trial.compared(each)
            for task, (ours, theirs) in zip(trial.tasks, trial.pairs(each), strict=True):
                difference = fmean(ours.values()) - fmean(theirs.values())
                axes.plot(difference, row + 0.18, _MARKERS[TASKS.index(task)], color="0.45", markersize=4)
            over = tasks.difference
            axes.plot([over.low, over.high], [row - 0.14] * 2, color="C0", linewidth=1)
            axes.plot([seeds.low, seeds.high], [row - 0.14] * 2, color="C0", linewidth=3.5, solid_capstyle="butt")
            axes.plot(over.value, row - 0.14, "D", color="C0", markeredgecolor="white", markersize=5)
        axes.set_title(f"{trial.num_envs:,} environment{'' if trial.num_envs == 1 else 's'}", fontsize=10)
        axes.set_xlabel("difference of scores")
        axes.set_yticks([-row for row in range(len(names))], names)
    left, right = every[0].get_xlim()
    every[0].set_xlim(max(left, LOWEST - 0.5), min(right, HIGHEST - 0.5))
    every[0].locator_params("x", nbins=5)
    marks = [axes.plot([], [], _MARKERS[TASKS.index(task)], color="0.45", label=task)[0] for task in TASKS]
    bars = [
        axes.plot([], [], color="C0", linewidth=width, label=f"95 % over {what}")[0]
        for width, what in ((3.5, "seeds, on these tasks"), (1, "tasks"))
    ]
    add_footer(
        figure,
        [marks, bars],
        "How much more the first arm has than the second at a shorter or longer cycle time; 0 is doing nothing, 1 the "
        f"tuned values at their own cycle time. Intervals are not corrected for their number. {_about(results)}",
    )
    return figure


def save_figures(results: Results, folder: Path, only: Sequence[str] = ()) -> list[Path]:
    with mpl.rc_context(STYLE):
        return drawing.save_figures({FIGURE: differences_figure(results)}, folder, ("png", "svg"))


def missing_figures(results: Results) -> dict[str, str]:
    there = any(len(Trial(results, count).tasks) >= FEWEST_TASKS for count in NUM_ENVS)
    return {} if there else {FIGURE: f"all studies of {FEWEST_TASKS} tasks"}


def write_page(results: Results, page: Path) -> list[Path]:
    parts = {f"envs-{count}": PagePart(str(count), partial(verdicts_text, count, results)) for count in NUM_ENVS}
    write_text(page, fill_parts(read_page(page), parts))
    return [page, *save_figures(results, page.parent)]


PARALLEL = Investigation(
    name="parallel",
    title="The trial with many environments",
    experiments=EXPERIMENTS,
    study=preregistered_study,
    env_steps=env_steps,
    follows_results=True,
    provenance=provenance,
    curve_bins=CURVE_BINS,
    verdicts={name: partial(verdicts_text, count) for name, count in zip(EXPERIMENTS, NUM_ENVS, strict=True)},
    tables={name: partial(scores_text, count) for name, count in zip(EXPERIMENTS, NUM_ENVS, strict=True)},
    figures=(FIGURE,),
    missing_figures=missing_figures,
    save_figures=save_figures,
    write_report=write_page,
    report_path=Path("results/parallel/README.md"),
)
