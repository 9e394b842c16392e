"""The candidate rules of PPO and SAC, and the studies of the search and of the trial.

Many rules give the same values at many cycle times, and studies that follow one another leave a GPU idle at their ends.
So there is one study for each task, whose points are the values that some rule gives, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import product
from statistics import median_low
from typing import Any, Literal, TypeAlias

from cycletime.agents import PPOAgent, SACAgent, agent_for
from cycletime.duration import Duration
from cycletime.experiments.investigation import FRESH_SEED
from cycletime.experiments.outcome import Outcome, winners
from cycletime.rules import PPO, SAC, Law, Rule, laws
from cycletime.rules.rule import rules_by_name
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import read_study
from cycletime.training.make_specs import TUNABLE

FLOORS = (4, 6, 8, 12)
"""Of PPO's discount and trace, in agent steps."""
GAMMA_FLOORS = (6, 8)
"""Of PPO's discount alone."""
EXPONENTS = {"quarter": 0.25, "half": 0.5}
"""Of 1 / rho, as the mini-batch grows: what the learning rate follows, at all cycle times or at longer ones alone."""
SAC_FLOOR = 6
"""Of SAC's discount: PPO's winner has it, and the paper's tuned gammas of SAC stop falling there."""
_SAC_PARTS = {"smoothing": {"target_smoothing": laws.SMOOTHING}, "updates": {"updates_per_step": laws.PROPORTIONAL}}
"""What else keeps its meaning in seconds, one at a time: with as many updates per second as before, so do the targets
as they are."""
SAC_SUGGESTED = f"floor-{SAC_FLOOR}-more-updates"
"""What the search of the others suggested: updates per second paid where cycles get longer, and cost where they get
shorter. It does at longer cycles what 'updates' does, and at shorter ones nothing, so that it needs no run of its own.
It was added before any run of the trial was looked at."""


def _ppo_candidates() -> Iterator[Rule]:
    for floor in FLOORS:
        yield _ppo_rule(f"floor-{floor}", laws.power_with_floor(floor), laws.power_with_floor(floor))
    for floor in GAMMA_FLOORS:
        yield _ppo_rule(f"gamma-floor-{floor}", laws.power_with_floor(floor), laws.POWER)
    horizons = {"scaled": laws.POWER, **{f"floor-{floor}": laws.power_with_floor(floor) for floor in FLOORS}}
    for (begun, horizon), (word, exponent) in product(horizons.items(), EXPONENTS.items()):
        yield _ppo_rule(f"{begun}-rate-{word}", horizon, horizon, laws.rho_power(-exponent))
        yield _ppo_rule(f"{begun}-min-rate-{word}", horizon, horizon, laws.capped_rho_power(-exponent))


def _ppo_rule(name: str, discount: Law, trace_decay: Law, rate: Law | None = None) -> Rule:
    sizes = {"batch": laws.COUNT, "minibatch": laws.COUNT}
    rates = {} if rate is None else {"learning_rate": rate}
    return Rule(name, {**sizes, "discount": discount, "trace_decay": trace_decay, **rates})


def _sac_candidates() -> Iterator[Rule]:
    floor = laws.power_with_floor(SAC_FLOOR)
    yield Rule(f"floor-{SAC_FLOOR}", {"discount": floor})
    for (begun, horizon), (word, part) in product(
        {"scaled": laws.POWER, f"floor-{SAC_FLOOR}": floor}.items(), _SAC_PARTS.items()
    ):
        yield Rule(f"{begun}-{word}", {"discount": horizon, **part})
    yield Rule(SAC_SUGGESTED, {"discount": floor, "updates_per_step": laws.GROWN})


PPO_CANDIDATES = rules_by_name(*_ppo_candidates())
SAC_CANDIDATES = rules_by_name(*_sac_candidates())
SAC_POST_HOC = Rule(
    f"min-floor-{SAC_FLOOR}-more-updates",
    {"discount": laws.capped_power_with_floor(SAC_FLOOR), "updates_per_step": laws.GROWN},
)
"""What the trial suggested, where keeping gamma did better at shorter cycles: the one before with the paper's min. It
needs no run of its own, either, and no trial has judged it."""


Algorithm: TypeAlias = Literal["ppo", "sac"]
Rules: TypeAlias = Mapping[str, str | Rule]
PointKey: TypeAlias = tuple[str, ...]
"""A point of a study, as texts of few enough digits that machines agree on them."""


@dataclass(frozen=True)
class AlgorithmSpec:
    algorithm: Algorithm
    usual: PPO | SAC
    """What everybody uses, with all stated that some candidate carries."""
    also: tuple[str, ...]
    """Fields of the agent that candidates change, beside those that are tuned."""
    references: tuple[str, ...]
    """The paper's rules, by name. 'scaled' is the candidate without a floor that leaves all else alone."""
    default: str
    """The one of them that would be replaced."""
    candidates: Mapping[str, Rule]
    post_hoc: Rule | None = None
    """What the trial suggested, and none has judged; the runs of search and trial must have its values."""

    @property
    def prefix(self) -> str:
        """The first part of its studies', files' and figures' names; PPO, which came first, has none."""
        return "" if self.algorithm == "ppo" else f"{self.algorithm}-"

    @property
    def rules(self) -> Rules:
        return self.against_references(self.candidates)

    def against_references(self, candidates: Mapping[str, Rule]) -> Rules:
        return {**{name: name for name in self.references}, **candidates}

    @property
    def horizons(self) -> tuple[str, ...]:
        return tuple(quantity.field for quantity in self.usual.quantities if quantity.is_horizon)

    def tuned(self, dt: Duration, found: Mapping[str, Any]) -> PPO | SAC:
        return replace(self.usual, dt=dt, **{name: found[name] for name in TUNABLE[self.algorithm]})

    def untuned(self, tuned: PPO | SAC) -> PPO | SAC:
        return replace(tuned, **{name: getattr(self.usual, name) for name in self.horizons})

    def point(self, values: PPO | SAC) -> dict[str, Any]:
        agent = agent_for(values)
        return {"dt": values.dt, **{name: getattr(agent, name) for name in self._fields}}

    def point_key(self, point: Mapping[str, Any]) -> PointKey:
        """The key of a point, to ten digits: powers may differ in the last ones from machine to machine."""
        return (f"{float(Duration(point['dt'])):.10g}", *(f"{float(point[name]):.10g}" for name in self._fields))

    @property
    def _fields(self) -> tuple[str, ...]:
        return (*TUNABLE[self.algorithm], *self.also)


ALGORITHM_SPECS: Mapping[str, AlgorithmSpec] = {
    "ppo": AlgorithmSpec(
        algorithm="ppo",
        usual=PPO(dt="16ms", learning_rate=PPOAgent.learning_rate),
        also=("learning_rate",),
        references=("baseline", "dt-aware", "scaled"),
        default="dt-aware",
        candidates=PPO_CANDIDATES,
    ),
    "sac": AlgorithmSpec(
        algorithm="sac",
        usual=SAC(dt="16ms", target_smoothing=SACAgent.target_smoothing, updates_per_step=1),
        also=("target_smoothing", "gradient_steps", "learning_period"),
        references=("baseline", "scaled"),
        default="scaled",  # which of tuned values is called 'tuned-scaled'
        candidates=SAC_CANDIDATES,
        post_hoc=SAC_POST_HOC,
    ),
}


@dataclass(frozen=True)
class TaskSet:
    spec: AlgorithmSpec
    name: Literal["search", "trial"]
    tasks: tuple[str, ...]
    seeds: int
    """Of every point, none of which tuning has seen."""

    def tuning(self, task: str) -> StudySpec:
        """The grid of horizons on a task, at every cycle time."""
        with as_file(files(__package__) / "studies" / f"{self.tuning_name(task)}.toml") as file:
            return read_study(file)

    def tuning_name(self, task: str) -> str:
        return f"{self.spec.prefix}tuning-{task}"

    def study(self, tuning: Outcome, rules: Rules) -> StudySpec:
        """The study of all points that rules give from tuned and untuned values, and of the tuned values themselves."""
        (task,) = {cell.labels["task"] for cell in tuning.cells}
        study, spec = self.tuning(task), self.spec
        points = [
            start.point(dt, rule) for start in starting_points(tuning) for rule in rules.values() for dt in study.dts
        ]
        points += retuned_points(tuning).values()
        once = {spec.point_key(point): point for point in points}
        return replace(
            study,
            name=self.study_name(task),
            rules={spec.algorithm: ()},
            seeds=tuple(range(FRESH_SEED, FRESH_SEED + self.seeds)),
            tuned={},
            points={spec.algorithm: tuple(once.values())},
        )

    def study_name(self, task: str) -> str:
        return f"{self.spec.prefix}{self.name}-{task}"


_PPO, _SAC = ALGORITHM_SPECS.values()
_SEARCH_TASKS = ("reacher", "double-pendulum")
_TRIAL_TASKS = ("pendulum", "cart-pole", "mountain-car", "acrobot")
SEARCH = TaskSet(_PPO, "search", _SEARCH_TASKS, seeds=14)
"""What candidates are chosen on, and nothing else is."""
TRIAL = TaskSet(_PPO, "trial", _TRIAL_TASKS, seeds=30)
"""What those that were chosen are judged on, and nothing else is."""
SAC_SEARCH = TaskSet(_SAC, "search", _SEARCH_TASKS, seeds=10)
SAC_TRIAL = TaskSet(_SAC, "trial", _TRIAL_TASKS, seeds=30)
TASK_SETS: Mapping[str, Mapping[str, TaskSet]] = {
    algorithm: {each.name: each for each in (SEARCH, TRIAL, SAC_SEARCH, SAC_TRIAL) if each.spec.algorithm == algorithm}
    for algorithm in ALGORITHM_SPECS
}


@dataclass(frozen=True)
class StartingPoint:
    task: str
    kind: Literal["tuned", "untuned"]
    """Whether horizons were tuned there, or are those that everybody uses."""
    values: PPO | SAC

    @property
    def spec(self) -> AlgorithmSpec:
        return ALGORITHM_SPECS[self.values.algorithm]

    def point(self, dt: Duration, rule: str | Rule) -> dict[str, Any]:
        return self.spec.point(self.values.at(dt, rule))


def starting_points(tuning: Outcome) -> tuple[StartingPoint, ...]:
    """The starting points on a task, at the shortest, the middle (of four the second) and the longest cycle time.

    They are what tuning found there, and the horizons in steps that everybody uses.
    """
    spec, best, found = _algorithm_of(tuning), winners(tuning), list[StartingPoint]()
    dts = sorted(best)
    for dt in (dts[0], median_low(dts), dts[-1]):
        task, tuned = best[dt].cell.labels["task"], spec.tuned(dt, best[dt].cell.values)
        found.append(StartingPoint(task, "tuned", tuned))
        found.append(StartingPoint(task, "untuned", spec.untuned(tuned)))
    return tuple(found)


def retuned_points(tuning: Outcome) -> dict[Duration, dict[str, Any]]:
    spec = _algorithm_of(tuning)
    return {dt: spec.point(spec.tuned(dt, best.cell.values)) for dt, best in winners(tuning).items()}


def _algorithm_of(tuning: Outcome) -> AlgorithmSpec:
    (algorithm,) = {cell.labels["algorithm"] for cell in tuning.cells}
    return ALGORITHM_SPECS[algorithm]
