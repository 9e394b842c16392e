"""Made-up results: a world in which all is as the paper says, and others in which something is not."""

from collections.abc import Callable, Mapping
from functools import cache
from math import log2
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cycletime.duration import Duration
from cycletime.experiments.paper.data import Behaviour, PaperResults
from tests.experiments.paper.synthetic import BINS, Labels, synthetic_data

Performance: TypeAlias = float | NDArray[np.float64]
Change: TypeAlias = Callable[[Labels, Performance], Performance]
"""Of a cell's performance in the paper's world."""
TIME = np.arange(BINS) / BINS
FINAL = {"4ms": 1.0, "8ms": 8.0, "16ms": 14.0, "32ms": 15.0, "64ms": 15.0}
"""Of baseline PPO on Reacher."""
SLOWNESS = {"4ms": 0.1, "8ms": 0.1, "16ms": 0.1, "32ms": 0.25, "64ms": 0.5}
AT_BATCH = {500: 10.0, 1000: 13.0, 2000: 15.0, 4000: 16.0, 8000: 14.0}
"""Of dt-aware PPO on Reacher, by the batch at 16 ms."""
GAMMAS = (0.276252, 0.525596, 0.72498, 0.851458, 0.922745, 0.960596, 0.9801, 0.99, 0.994987, 0.997491, 0.998744, 1.0)
BEST_GAMMA = {"4ms": 5, "8ms": 4, "16ms": 3, "32ms": 3, "64ms": 3}
SHORT = ("4ms", "8ms")
PENDULUM_BASELINE = {"4ms": 300.0, "8ms": 4000.0, "16ms": 6000.0, "32ms": 5000.0, "64ms": 4000.0}


def as_the_paper_says(labels: Labels) -> Performance:
    """The performance of a cell where every claim is true."""
    if labels["task"] == "ur-reacher":
        return _on_robot(labels)
    return (_sac if labels["algorithm"] == "sac" else _ppo)(labels)


def learning(final: float, slowness: float) -> NDArray[np.float64]:
    """A curve from zero to a final return."""
    return final * (1 - np.exp(-TIME / slowness))


def _ppo(labels: Labels) -> Performance:
    rule, dt, on_pendulum = labels["rule"], labels["dt"], labels["task"] == "double-pendulum"
    unit = 400.0 if on_pendulum else 1.0
    if "grid" in labels["study"]:
        batch_s = labels["batch"] * float(dt.removesuffix("ms")) / 1000
        return unit * (17.0 - abs(log2(batch_s / 64)) - 0.1 * abs(log2(labels["minibatch"] / 12)))
    if rule == "baseline":
        return PENDULUM_BASELINE[dt] if on_pendulum else learning(FINAL[dt], SLOWNESS[dt])
    # Where a study does not vary the batch, `batch` is the agent's own at this cycle time.
    at_16ms = labels["batch"] if labels["batch"] in AT_BATCH and "-pendulum" not in labels["study"] else 2000
    at_16ms = 2000 if labels["study"] == "ppo-released-code" else at_16ms
    return unit * (AT_BATCH[at_16ms] - (0.0 if rule == "dt-aware" else 2.0))


def _sac(labels: Labels) -> Performance:
    rule, dt, discount = labels["rule"], labels["dt"], labels["discount"]
    if labels["task"] == "double-pendulum":
        baseline = {"4ms": 1500.0, "8ms": 3000.0}.get(dt, 5500.0)
        return {"baseline": baseline, "tuned": 6200.0, "tuned-scaled": 6300.0}[rule]
    if labels["study"].startswith("sac-gamma-sweep"):
        away = int(np.argmin(np.abs(np.array(GAMMAS) - discount))) - BEST_GAMMA[dt]
        return 14.0 - (away if away > 0 else -away * (0.7 if dt == "64ms" else 1.5))
    if rule == "tuned":
        return 13.0
    if rule == "tuned-scaled":
        return {"4ms": 14.0, "8ms": 14.0, "16ms": 13.0, "32ms": 12.0, "64ms": 12.0}[dt]
    gained = 0.0 if rule == "baseline" or dt == "16ms" else (-2.0 if dt in SHORT else 1.0)
    return _taking_over(dt) + gained


def _on_robot(labels: Labels) -> float:
    if labels["algorithm"] == "ppo":
        loses = (
            labels["study"].startswith("ppo-robot")
            and "2000" not in labels["study"]
            and (labels["rule"], labels["dt"]) == ("baseline", "10ms")
        )
        return 100.0 if loses else 250.0
    if labels["dt"] == "40ms":
        return 270.0 if labels["discount"] < 0.8 or labels["discount"] > 0.98 else 290.0
    return {0.99: 200.0, 0.922745: 240.0, 0.785678: 290.0}[labels["discount"]]


def _taking_over(dt: str) -> NDArray[np.float64]:
    """Baseline SAC: random actions for 16 % of the time, a sharp drop at small cycle times, and then a recovery."""
    since = np.maximum(0.0, TIME - 0.16)
    final, slowness = (12.0, 0.2) if dt == "64ms" else (14.0, 0.08)
    drop = -8.0 * ((TIME >= 0.16) & (TIME < 0.3)) if dt in SHORT else 0.0
    return np.asarray(-2.0 + (final + 2.0) * (1 - np.exp(-since / slowness)) * (since > 0) + drop * (since > 0))


def behaviours(
    away: float = 0.95, upright: float = 0.05, seeds: int = 30, spread: float = 0.05
) -> dict[str, Behaviour]:
    """What baseline policies at 4 ms do."""
    shares = np.linspace(-spread, spread, seeds)
    return {
        study: {("baseline", Duration("4ms")): dict(enumerate((mean + shares).tolist()))}
        for study, mean in (("ppo-baseline", away), ("ppo-pendulum", upright), ("sac-pendulum-baseline", upright))
    }


@cache
def paper_world() -> PaperResults:
    """All studies as the paper has them."""
    return PaperResults(synthetic_data(as_the_paper_says).outcomes, behaviours())


def changed(changes: Mapping[str, Change]) -> PaperResults:
    """The paper's world with some studies changed, by name."""

    def score(labels: Labels) -> Performance:
        performance = as_the_paper_says(labels)
        name = labels["study"]
        return changes[name](labels, performance) if name in changes else performance

    made = synthetic_data(score, only=tuple(changes))
    return PaperResults({**paper_world().outcomes, **made.outcomes}, paper_world().behaviours)


def without(data: PaperResults, *studies: str) -> PaperResults:
    """What there is but for some studies."""
    return PaperResults({name: each for name, each in data.outcomes.items() if name not in studies}, data.behaviours)


def where(performance: Performance, **wanted: object) -> Change:
    """Cells with some labels have another performance."""
    return lambda labels, before: performance if all(labels[name] == each for name, each in wanted.items()) else before


def more(by: float, **wanted: object) -> Change:
    """Cells with some labels perform so much better."""
    return lambda labels, before: before + by if all(labels[name] == each for name, each in wanted.items()) else before
