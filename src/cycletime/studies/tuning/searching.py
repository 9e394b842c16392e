"""Searching hyper-parameters by Optuna's samplers, which are asked for points and told their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cycletime.errors import InputError
from cycletime.studies.spec.study import Point
from cycletime.studies.tuning.file import Choice, Range

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler


class Searcher:
    """One of Optuna's samplers, asked for points and told their scores; nothing of it is on disk."""

    def __init__(self, sampler: str, seed: int, space: Mapping[str, Range | Choice]) -> None:
        """Begin anew; the same seed and scores give the same points."""
        try:
            import optuna
        except ImportError:
            raise InputError(f"The sampler {sampler} needs Optuna: pip install 'cycletime[optuna]'.") from None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self._asked = space, list[Any]()
        self._study = optuna.create_study(direction="maximize", sampler=_sampler(sampler, seed))
        self._distributions = {name: _distribution(each) for name, each in space.items()}

    def ask(self, count: int) -> list[Point]:
        """So many points."""
        self._asked = [self._study.ask(self._distributions) for _ in range(count)]
        return [{name: self._value(name, trial.params[name]) for name in self.space} for trial in self._asked]

    def tell(self, scores: Sequence[float | None]) -> None:
        """The scores of the points that were asked for last; None where there is none."""
        from optuna.trial import TrialState

        for trial, score in zip(self._asked, scores, strict=True):
            self._study.tell(trial, score, state=TrialState.FAIL if score is None else TrialState.COMPLETE)

    def _value(self, name: str, drawn: Any) -> Any:  # noqa: ANN401 - any hyper-parameter
        each = self.space[name]
        return each.values[drawn] if isinstance(each, Choice) else each.value(drawn)


def _sampler(name: str, seed: int) -> BaseSampler:
    from optuna import samplers

    if name == "random":
        return samplers.RandomSampler(seed=seed)
    if name == "tpe":
        return samplers.TPESampler(seed=seed)
    if find_spec("cmaes") is None:
        raise InputError("The sampler cmaes needs a package of that name: pip install 'cycletime[optuna]'.")
    return samplers.CmaEsSampler(seed=seed)


def _distribution(each: Range | Choice) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(each, Choice):
        return CategoricalDistribution(range(len(each.values)))  # places, since Optuna takes no tuples
    low, high = each.ends
    if each.whole:
        return IntDistribution(int(low), int(high), log=each.log)
    return FloatDistribution(low, high, log=each.log or each.horizon)
