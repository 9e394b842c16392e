"""The runs that a claim's conditions are about: on the paper's task, on another, or by the released code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from cycletime.experiments.outcome import Outcome, OutcomeCell
from cycletime.experiments.paper.behaviour import Behaviour
from cycletime.experiments.paper.experiments import winners_name

BASELINE_BATCH = 2000
BATCHES = (500, 1000, 2000, 4000, 8000)
"""b at 16 ms, of batch times of 8, 16, 32, 64 and 128 s."""
DTS = ("4ms", "8ms", "16ms", "32ms", "64ms")


class NotRunError(Exception):
    """What a claim needs has not been run; the message says what."""

    def __init__(self, *needed: str) -> None:
        """Say what."""
        super().__init__(", ".join(needed))
        self.needed = needed


@dataclass(frozen=True)
class PaperResults:
    """All that there is."""

    outcomes: Mapping[str, Outcome]
    """By study."""
    behaviours: Mapping[str, Behaviour] = field(default_factory=dict)
    """By study, what learned policies do."""
    used: set[str] = field(default_factory=set, compare=False)
    """The studies that were asked for."""

    def outcome(self, name: str) -> Outcome:
        """What came of a study."""
        self.need(name)
        self.used.add(name)
        return self.outcomes[name]

    def need(self, *names: str) -> None:
        """Refuse to go on without some studies; whoever asks for one after the other learns of the first alone."""
        if missing := [name for name in dict.fromkeys(names) if name not in self.outcomes]:
            raise NotRunError(*missing)

    def behaviour(self, name: str, rule: str, dt: str) -> NDArray[np.float64]:
        """[runs] what the policies of a study do."""
        try:
            return self.behaviours[name].of(rule, dt)
        except KeyError:
            raise NotRunError(f"the behaviour of {name}") from None

    def with_plain_means(self) -> PaperResults:
        """The same with the plain mean over episodes in place of the paper's measure."""
        plain = {
            name: replace(outcome, cells=tuple(replace(cell, scores=cell.plain) for cell in outcome.cells))
            for name, outcome in self.outcomes.items()
        }
        return replace(self, outcomes=plain)


def final_or_zero(cell: OutcomeCell) -> NDArray[np.float64]:
    """[runs] the final return; a run that diverged has learned nothing, and counts as one that failed."""
    return np.nan_to_num(cell.final, nan=0.0)


@dataclass(frozen=True)
class TaskScale:
    """What counts as much on a task, in units of its return."""

    unit: str
    full: float
    """About what a perfect policy has."""
    margin: float
    """Differences below it do not matter: a twentieth of that."""
    failed: float
    """Who has learned less has failed: a quarter of it."""
    near_zero: float
    """A tenth of it."""


TASK_SCALES = {
    "reacher": TaskScale("return", 20.0, 1.0, 5.0, 2.0),
    "double-pendulum": TaskScale("return", 9360.0, 468.0, 2340.0, 936.0),
    "ur-reacher": TaskScale("return", 400.0, 20.0, 100.0, 40.0),
}
"""By task. On Reacher a return of 1 is a centimetre that the fingertip ends nearer to the target; on the Double
Pendulum 585 is a second upright, of 16; on the robot's 125 is a second at the target, of 4, and a scripted controller
has 400."""


@dataclass(frozen=True)
class PPORuns:
    """PPO's runs on a task."""

    data: PaperResults
    task: str
    names: Mapping[str, str]
    """By rule, the study that has its runs; and of the grid, and of what was tuned by it."""
    dts: tuple[str, ...] = DTS
    variant: Mapping[str, str] = field(default_factory=dict)
    """Ways of the released code."""

    @property
    def scale(self) -> TaskScale:
        """What counts as much."""
        return TASK_SCALES[self.task]

    def need(self, *rules: str) -> None:
        """Refuse to go on without the runs of some rules, of the grid, or of what was tuned by it."""
        self.data.need(*(self.names[rule] for rule in rules))

    def runs(self, rule: str, dt: str, batch: int = BASELINE_BATCH) -> OutcomeCell:
        """The runs of a rule at a cycle time, from a batch at 16 ms."""
        labels: dict[str, object] = {"task": self.task, "rule": rule, "dt": dt, **self.variant}
        outcome = self.data.outcome(self.names[rule])
        if any("batch" in cell.labels for cell in outcome.cells):
            labels["batch"] = batch
        return outcome.cell(**labels)

    def tuned(self, dt: str) -> OutcomeCell:
        """What was best at a cycle time, run again with fresh seeds."""
        return self.data.outcome(self.names["tuned"]).cell(dt=dt)

    def grid(self, dt: str, tuned_at: str) -> OutcomeCell:
        """Of the grid at a cycle time, the values that were best at another."""
        best = self.tuned(tuned_at).labels
        return self.data.outcome(self.names["grid"]).cell(dt=dt, batch=best["batch"], minibatch=best["minibatch"])

    def behaviour(self, rule: str, dt: str) -> NDArray[np.float64]:
        """[runs] what the policies of a rule do at a cycle time."""
        return self.data.behaviour(self.names[rule], rule, dt)


def reacher_runs(data: PaperResults) -> PPORuns:
    """The paper's PPO on Reacher."""
    names = {"baseline": "ppo-baseline", "dt-aware": "ppo-dt-aware", "scaled": "ppo-scaled", "constant": "ppo-constant"}
    return PPORuns(data, "reacher", {**names, **_grid_studies("ppo-grid")})


def pendulum_runs(data: PaperResults) -> PPORuns:
    """PPO on the Double Pendulum, of which the paper has baseline and dt-aware values alone."""
    names = {rule: f"pendulum-{rule}" for rule in ("dt-aware", "scaled", "constant")}
    return PPORuns(data, "double-pendulum", {"baseline": "ppo-pendulum", **names, **_grid_studies("pendulum-grid")})


def paper_pendulum_runs(data: PaperResults) -> PPORuns:
    """The paper's own runs on the Double Pendulum."""
    return PPORuns(data, "double-pendulum", dict.fromkeys(("baseline", "dt-aware"), "ppo-pendulum"))


def released_code_runs(data: PaperResults, task: str, *, learn_when: str, initial_weights: str) -> PPORuns:
    """PPO with ways of the released code, at 4 and 8 ms."""
    variant = {"learn_when": learn_when, "initial_weights": initial_weights}
    names = dict.fromkeys(("baseline", "dt-aware"), "ppo-released-code")
    return PPORuns(data, task, names, ("4ms", "8ms"), variant)


def _grid_studies(study: str) -> dict[str, str]:
    return {"grid": study, "tuned": winners_name(study)}
