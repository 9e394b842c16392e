"""The paper's results: outcomes of its studies, behaviour of its policies, and the runs that its claims are about."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path
from typing import Any, TypeAlias

from cycletime.duration import Duration
from cycletime.errors import InputError
from cycletime.experiments.investigation import winners_name
from cycletime.experiments.judging import BySeed
from cycletime.experiments.outcome import NotRunError, Outcome, OutcomeCell, Results, read_outcomes
from cycletime.experiments.paper.experiments import PRESPECIFIED_SEEDS
from cycletime.training.atomic_files import write_whole
from cycletime.training.sealed_json import error_reason, parse_json

BASELINE_BATCH = 2000
BATCHES = (500, 1000, 2000, 4000, 8000)
"""b at 16 ms, of batch times of 8, 16, 32, 64 and 128 s."""
BEHAVIOUR_FILE, BEHAVIOUR_FORMAT = "behaviour.json", 1
DTS = ("4ms", "8ms", "16ms", "32ms", "64ms")
TUNED_AT = "16ms"


Behaviour: TypeAlias = Mapping[tuple[str, Duration], BySeed]
"""By rule and cycle time, what a study's policies do: a share for each run, NaN where a policy is astray.

On Reacher it is the fingertip's distance from the target at the end of episodes, as a share of that at their beginning;
on the Double Pendulum the time upright, as a share of the longest.
"""


@dataclass(frozen=True)
class PaperResults(Results):
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)

    def prespecified(self, name: str) -> Outcome:
        """The outcome of a study whose number of seeds was fixed before it was run; refused while some are to come."""
        outcome = self.outcome(name)
        if (n := min(outcome.n)) < PRESPECIFIED_SEEDS:
            raise NotRunError(f"{name} (under way, {n} of {PRESPECIFIED_SEEDS} seeds)")
        return outcome

    def behaviour(self, name: str, rule: str, dt: str) -> BySeed:
        try:
            return self.behaviours[name][rule, Duration(dt)]
        except KeyError:
            raise NotRunError(f"the behaviour of {name}") from None


def read_paper_results(folder: Path) -> PaperResults:
    outcomes, file = read_outcomes(folder), folder / BEHAVIOUR_FILE
    return PaperResults(outcomes, folder=folder, behaviours=read_behaviours(file) if file.exists() else {})


def save_behaviours(behaviours: dict[str, Any], path: Path) -> None:
    """Keep what `behaviour.measure_behaviour` gives; that of other studies stays."""
    if path.exists() and read_behaviours(path):  # which refuses what is damaged
        behaviours = _behaviours_as_json(path) | behaviours
    text = json.dumps({"format": BEHAVIOUR_FORMAT, "behaviours": behaviours}, allow_nan=False) + "\n"
    write_whole(path, lambda unfinished: unfinished.write_text(text))


def read_behaviours(path: Path) -> dict[str, Behaviour]:
    try:
        return {
            name: {
                (str(cell["rule"]), Duration(cell["dt"])): {
                    int(seed): nan if share is None else float(share) for seed, share in cell["shares"].items()
                }
                for cell in each["cells"]
            }
            for name, each in _behaviours_as_json(path).items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} cannot be read as behaviour of policies: {error_reason(error)}.") from error


def _behaviours_as_json(path: Path) -> dict[str, Any]:
    data = parse_json(path.read_bytes())
    if data["format"] != BEHAVIOUR_FORMAT:
        raise ValueError(f"it has the format {data['format']}, and this version of cycletime reads {BEHAVIOUR_FORMAT}")
    return dict(data["behaviours"])


def final_or_zero(cell: OutcomeCell) -> BySeed:
    """The final return of each run; one that diverged has learned nothing, and counts as one that failed."""
    return {seed: 0.0 if isnan(end) else end for seed, end in cell.seed_finals.items()}


@dataclass(frozen=True)
class TaskScale:
    """The sizes of differences that matter on a task, in units of its return."""

    full: float
    """About what a perfect policy has."""

    @property
    def margin(self) -> float:
        """Differences below it do not matter."""
        return self.full / 20

    @property
    def failed(self) -> float:
        return self.full / 4


TASK_SCALES = {"reacher": TaskScale(20.0), "double-pendulum": TaskScale(9360.0), "ur-reacher": TaskScale(400.0)}
"""By task. On Reacher a return of 1 is a centimetre that the fingertip ends nearer to the target; on the Double
Pendulum 585 is a second upright, of 16; on the robot's 125 is a second at the target, of 4, and a scripted controller
has 400."""


@dataclass(frozen=True)
class PPORuns:
    data: PaperResults
    task: str
    names: Mapping[str, str]
    """By rule, the study that has its runs; and of the grid, and of what was tuned by it."""
    dts: tuple[str, ...] = DTS
    variant: Mapping[str, str] = field(default_factory=dict)

    @property
    def scale(self) -> TaskScale:
        return TASK_SCALES[self.task]

    def runs(self, rule: str, dt: str, batch: int = BASELINE_BATCH) -> OutcomeCell:
        """The runs of a rule at a cycle time, from a batch at 16 ms; 'tuned' are the best values there, run again."""
        outcome = self.data.outcome(self.names[rule])
        if rule == "tuned":
            return outcome.cell(dt=dt)
        labels: dict[str, object] = {"task": self.task, "rule": rule, "dt": dt, **self.variant}
        if any("batch" in cell.labels for cell in outcome.cells):
            labels["batch"] = batch
        return outcome.cell(**labels)

    def scores(self, rule: str, dt: str, batch: int = BASELINE_BATCH) -> BySeed:
        return self.runs(rule, dt, batch).seed_scores

    def pairs(
        self, rule: str, other: str, dts: Sequence[str], batches: Sequence[int] = (BASELINE_BATCH,)
    ) -> dict[tuple[str, int], tuple[BySeed, BySeed]]:
        """By cycle time and batch at 16 ms, the scores of two rules."""
        self.data.need(self.names[rule], self.names[other])
        return {
            (dt, batch): (self.scores(rule, dt, batch), self.scores(other, dt, batch))
            for dt in dts
            for batch in batches
        }

    def gains(self) -> dict[tuple[str, int], tuple[BySeed, BySeed]]:
        """Scores of dt-aware and of baseline values, at the cycle times where they differ."""
        return self.pairs("dt-aware", "baseline", [dt for dt in self.dts if dt != TUNED_AT])


def reacher_runs(data: PaperResults) -> PPORuns:
    names = {rule: f"ppo-{rule}" for rule in ("baseline", "dt-aware", "scaled", "constant", "grid")}
    further = {"tuned": winners_name("ppo-grid"), "further": "ppo-baseline-4ms"}
    return PPORuns(data, "reacher", {**names, **further})


def pendulum_runs(data: PaperResults) -> PPORuns:
    """PPO on the Double Pendulum, of which the paper has baseline and dt-aware values alone."""
    names = {rule: f"pendulum-{rule}" for rule in ("dt-aware", "scaled", "constant", "grid")}
    others = {"baseline": "ppo-pendulum", "tuned": winners_name("pendulum-grid")}
    return PPORuns(data, "double-pendulum", {**names, **others})


def paper_pendulum_runs(data: PaperResults) -> PPORuns:
    return PPORuns(data, "double-pendulum", dict.fromkeys(("baseline", "dt-aware"), "ppo-pendulum"))


def released_code_runs(data: PaperResults, task: str, *, learn_when: str, initial_weights: str) -> PPORuns:
    variant = {"learn_when": learn_when, "initial_weights": initial_weights}
    names = dict.fromkeys(("baseline", "dt-aware"), "ppo-released-code")
    return PPORuns(data, task, names, ("4ms", "8ms"), variant)
