"""Tuning on a toy whose best is known: winners, fresh seeds, kills, and the file that comes out of it."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from cycletime.agents import PPO, ActorCritic
from cycletime.errors import InputError, RunError
from cycletime.runs.folder import RunFolder
from cycletime.runs.spec import RunSpec
from cycletime.runs.tuned_file import TunedValues, read_tuned
from cycletime.studies import tuning as tuning_module
from cycletime.studies.executors.executor import Event, Job
from cycletime.studies.folder import StudyFolder
from cycletime.studies.study_file import study_from
from cycletime.studies.tuning import Outcome, tune
from cycletime.studies.tuning_file import Range, Tuning, read_tuning, tuning_from
from cycletime.studies.work import work_on

BEST = 0.9
"""The toy's best discount."""
MACHINE = {"cycletime": "1", "jax": "2", "jaxlib": "3", "device": "toy", "processor": "none", "python": "4"}
TABLE: dict[str, Any] = {
    "name": "toy",
    "task": "reacher",
    "algorithm": "actor-critic",
    "dt": "16ms",
    "seeds": 3,
    "fresh_seeds": 4,
    "env_steps": 1200,
    "set": {"hidden": [[8]]},
}
GRID = {**TABLE, "tuned": {"discount": [0.5, 0.8, 0.9, 0.95, 0.99]}}
SEARCH = {**TABLE, "search": {"discount": {"low": 0.2, "high": 0.999, "horizon": True}}, "trials": 12}


class Killed(BaseException):
    """The process is gone."""


def discount_of(spec: RunSpec) -> float:
    assert isinstance(spec.agent, ActorCritic | PPO)
    return spec.agent.discount


def noise(spec: RunSpec) -> float:
    return Random(f"{discount_of(spec)} {spec.seed}").gauss(0.0, 1.0)


def toy(spec: RunSpec) -> float | None:
    """Best at a horizon, and worse the more the logarithm of the horizon is off."""
    off = log(log(discount_of(spec)) / log(BEST))
    return 10 - off**2 + 0.1 * noise(spec)


@dataclass
class Toy:
    """An executor that writes results at once, and may be killed after some."""

    score: Callable[[RunSpec], float | None] = toy
    workers: int = 2
    kill_after: int | None = None
    done: list[RunSpec] = field(default_factory=list)

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        for told in [spec for job in jobs for spec in job.specs]:
            if len(self.done) == self.kill_after:
                raise Killed
            spec = RunSpec.from_json(told)
            run = RunFolder.create(Path(folder) / "runs", spec)
            run.write_result({"average_return": self.score(spec), "machine": MACHINE})
            self.done.append(spec)
            tell(Event(spec.name, outcome="done"))


def tuned(table: dict[str, Any], path: Path, executor: Toy | None = None) -> Outcome:
    outcome = tune(tuning_from(table), path, executor or Toy())
    assert outcome is not None
    return outcome


def files_of(table: dict[str, Any], path: Path, executor: Toy) -> list[bytes]:
    tuned(table, path, executor).write(path, path / "tuned.toml")
    return [(path / name).read_bytes() for name in ("tuned.toml", "ranking.json")]


def test_a_grid_is_ranked_by_the_mean_over_seeds(tmp_path: Path) -> None:
    executor = Toy()
    outcome = tuned(GRID, tmp_path, executor)
    scores: dict[float, list[float]] = {}
    for spec in executor.done:
        if spec.seed < 1000:
            scores.setdefault(discount_of(spec), []).append(toy(spec) or 0.0)
    means = {discount: sum(each) / 3 for discount, each in scores.items()}
    assert [trial.point["discount"] for trial in outcome.ranking] == sorted(means, key=lambda each: -means[each])
    assert [trial.mean.value for trial in outcome.ranking if trial.mean] == pytest.approx(sorted(means.values())[::-1])
    assert outcome.tuned() == TunedValues(outcome.tuning.dt, {"discount": BEST}, {"hidden": (8,)})
    assert len(executor.done) == 5 * 3 + 4


@pytest.mark.parametrize(("sampler", "off"), [("tpe", 0.25), ("cmaes", 0.25), ("random", 0.5)])
def test_a_search_comes_close_to_the_best(sampler: str, off: float, tmp_path: Path) -> None:
    outcome = tuned({**SEARCH, "sampler": sampler, "trials": 25, "seeds": 1, "fresh_seeds": 1}, tmp_path)
    assert abs(log(log(outcome.winner.point["discount"]) / log(BEST))) < off
    assert len(outcome.ranking) == 25


@pytest.mark.parametrize(("table", "sampler"), [(GRID, "grid"), (SEARCH, "tpe"), (SEARCH, "cmaes")])
def test_killed_anywhere_it_goes_on_to_the_same_files(table: dict[str, Any], sampler: str, tmp_path: Path) -> None:
    told = {**table, "sampler": sampler}
    undisturbed = Toy()
    wanted = files_of(told, tmp_path / "undisturbed", undisturbed)
    killed = tmp_path / "killed"
    done: list[str] = []
    lives = 0
    while True:
        lives += 1
        executor = Toy(kill_after=4)
        try:
            found = files_of(told, killed, executor)
        except Killed:
            continue
        else:
            break
        finally:
            done += [spec.name for spec in executor.done]
    assert lives >= 5
    assert found == wanted
    assert sorted(done) == sorted(spec.name for spec in undisturbed.done)


def test_asked_to_stop_it_has_no_outcome_and_goes_on_later(tmp_path: Path) -> None:
    executor = Toy()
    for table in (GRID, SEARCH):
        assert tune(tuning_from(table), tmp_path / str(len(table)), executor, stop=lambda: True) is None
    assert executor.done == []


def test_more_trials_begin_with_those_that_are_there(tmp_path: Path) -> None:
    few = tuned({**SEARCH, "trials": 11}, tmp_path)
    executor = Toy(workers=5)  # more workers than at first must not change the order
    many = tuned({**SEARCH, "trials": 14}, tmp_path, executor)
    points = {trial.number: trial.point for trial in many.ranking}
    assert all(points[trial.number] == trial.point for trial in few.ranking)
    assert len({discount_of(spec) for spec in executor.done if spec.seed < 1000}) == 3


def test_another_seed_of_the_sampler_searches_elsewhere(tmp_path: Path) -> None:
    table = {**SEARCH, "trials": 4}
    first, second = (tuned({**table, "sampler_seed": seed}, tmp_path / str(seed)) for seed in (0, 1))
    assert not {trial.point["discount"] for trial in first.ranking} & {
        trial.point["discount"] for trial in second.ranking
    }


def test_a_search_refuses_to_go_on_with_another_optuna(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tuned({**SEARCH, "trials": 1}, tmp_path)
    monkeypatch.setattr(tuning_module, "version", lambda package: "0.1")
    with pytest.raises(InputError, match=r"and 0\.1 may ask for other trials: pip install optuna==\d"):
        tuned(SEARCH, tmp_path)


@pytest.mark.parametrize(
    ("seeds", "fresh"), [(3, [1000, 1001]), ([5, 999], [1000, 1001]), ([1000], [1001, 1002]), ([7000, 3], [7001, 7002])]
)
def test_fresh_seeds_are_none_of_the_tuning_seeds(seeds: Any, fresh: list[int], tmp_path: Path) -> None:  # noqa: ANN401
    executor = Toy()
    outcome = tuned({**GRID, "seeds": seeds, "fresh_seeds": 2}, tmp_path, executor)
    rerun = executor.done[-2:]
    assert [spec.seed for spec in rerun] == fresh
    assert {discount_of(spec) for spec in rerun} == {outcome.winner.point["discount"]}
    assert not set(fresh) & {spec.seed for spec in executor.done[:-2]}


def test_the_best_of_many_equals_falls_with_fresh_seeds(tmp_path: Path) -> None:
    table = {**TABLE, "seeds": 2, "tuned": {"discount": [0.5 + 0.01 * place for place in range(20)]}, "fresh_seeds": 40}
    outcome = tuned(table, tmp_path, Toy(score=noise))
    assert outcome.winner.mean is not None
    assert outcome.fresh.mean is not None
    assert outcome.winner.mean.value > 1.0  # of 20 means of 2, each of which is 0 but for noise
    assert abs(outcome.fresh.mean.value) < 0.5
    assert outcome.fall is not None
    told = outcome.origin()
    assert told["fall"]["value"] == pytest.approx(outcome.winner.mean.value - outcome.fresh.mean.value, rel=1e-5)
    assert told["fall"]["from"] < told["fall"]["value"] < told["fall"]["to"]
    assert told["trials_not_decided_from_winner"] == 19
    assert not told["lead_over_runner_up"]["decided"]


def test_a_clear_winner_is_told_from_the_runner_up(tmp_path: Path) -> None:
    told = tuned({**TABLE, "tuned": {"discount": [0.5, BEST, 0.999]}}, tmp_path).origin()
    assert told["lead_over_runner_up"]["decided"]
    assert told["trials_not_decided_from_winner"] == 0
    assert told["runner_up"]["values"] == {"discount": 0.5}
    assert told["tuning"]["n"] == 3
    assert told["fresh"] == {**told["fresh"], "n": 4, "n_failed": 0, "seeds": [1000, 1001, 1002, 1003]}


def test_of_equal_trials_the_first_wins(tmp_path: Path) -> None:
    assert tuned(GRID, tmp_path, Toy(score=lambda spec: 1.0)).winner.point == {"discount": 0.5}


def test_a_trial_with_a_run_astray_comes_last(tmp_path: Path) -> None:
    def astray(spec: RunSpec) -> float | None:
        return None if discount_of(spec) == BEST and spec.seed == 2 else toy(spec)

    ranking = tuned(GRID, tmp_path, Toy(score=astray)).ranking
    assert ranking[-1].point == {"discount": BEST}
    assert ranking[-1].trouble == "1 of 3 runs went astray or ended no episode"


def test_a_fresh_run_astray_is_left_out_and_counted(tmp_path: Path) -> None:
    told = tuned(GRID, tmp_path, Toy(score=lambda spec: None if spec.seed == 1003 else toy(spec))).origin()
    assert (told["fresh"]["n"], told["fresh"]["n_failed"]) == (3, 1)


def test_without_any_mean_there_is_no_winner(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="No trial of 5 has a mean over its seeds; the first: 3 of 3 runs went astray"):
        tuned(GRID, tmp_path, Toy(score=lambda spec: None))


def test_a_search_goes_on_past_values_that_make_no_sense_together(tmp_path: Path) -> None:
    ranges = {"batch": {"low": 100, "high": 1000, "log": True}, "minibatch": {"low": 50, "high": 500}}
    outcome = tuned({**TABLE, "algorithm": "ppo", "search": ranges, "trials": 20}, tmp_path)
    impossible = [trial for trial in outcome.ranking if trial.point["minibatch"] > trial.point["batch"]]
    assert 0 < len(impossible) < 20
    assert all("must be at most the batch" in (trial.trouble or "") for trial in impossible)
    assert list(outcome.ranking[-len(impossible) :]) == impossible
    assert {type(value) for trial in outcome.ranking for value in trial.point.values()} == {int}


def test_lists_can_be_searched_too_and_fields_that_no_rule_carries(tmp_path: Path) -> None:
    table = {**TABLE, "tuned": {"discount": [0.5, BEST]}, "set": {"hidden": [[8], [4, 4]]}, "sampler": "tpe"}
    outcome = tuned({**table, "trials": 8, "at_once": 3}, tmp_path)
    assert outcome.winner.point["discount"] == BEST
    assert outcome.tuned().others == {"hidden": outcome.winner.point["hidden"]}
    assert {trial.point["hidden"] for trial in outcome.ranking} == {(8,), (4, 4)}


def test_a_horizon_s_range_is_even_in_its_logarithm() -> None:
    powers = Range(0.99**16, 0.99, horizon=True)
    low, high = powers.ends
    assert powers.value(exp((log(low) + log(high)) / 2)) == pytest.approx(0.99**4)
    assert [powers.value(low), powers.value(high)] == pytest.approx([0.99, 0.99**16])
    assert powers.low <= powers.value(high) <= powers.value(low) <= powers.high


def test_the_file_gives_studies_the_winner_s_own_runs(tmp_path: Path) -> None:
    values = {"batch": [400, 800], "minibatch": 20, "discount": BEST}
    table = {**TABLE, "algorithm": "ppo", "tuned": values, "set": {"hidden": [[8, 8]]}}
    executor = Toy()
    outcome = tuned(table, tmp_path, executor)
    outcome.write(tmp_path, tmp_path / "tuned.toml")
    read = read_tuned(tmp_path / "tuned.toml")
    assert read.algorithms == ("ppo",)
    assert read.of("ppo") == outcome.tuned()
    study = study_from(
        {
            **{name: TABLE[name] for name in ("name", "task", "env_steps")},
            "algorithm": "ppo",
            "dts": ["16ms", "32ms"],
            "seeds": [1000],
            "tuned": "tuned.toml",
            "set": {name: [list(value)] for name, value in read.of("ppo").others.items()},
        },
        tmp_path,
    )
    here, there = (spec for _, spec in study.runs())
    assert here.identity == next(spec.identity for spec in executor.done if spec.seed == 1000)
    assert isinstance(there.agent, PPO)
    assert there.agent.batch == outcome.winner.point["batch"] / 2
    assert there.origin["tuned"] == {**outcome.tuned().values}


@dataclass
class InThisProcess:
    """An executor that trains."""

    workers: int = 1

    def execute(
        self, folder: str, jobs: Sequence[Job], tell: Callable[[Event], None], stop: Callable[[], bool]
    ) -> None:
        study = StudyFolder.open(folder)
        for told in [spec for job in jobs for spec in job.specs]:
            assert work_on(study, RunSpec.from_json(told), worker="test") == "done"


def test_the_objective_is_the_mean_over_100_bins_of_real_curves(tmp_path: Path) -> None:
    table = {**TABLE, "tuned": {"discount": [0.5, 0.9]}, "env_steps": 6000, "seeds": 1, "fresh_seeds": 1}
    outcome = tune(tuning_from(table), tmp_path, InThisProcess())
    assert outcome is not None
    for trial in outcome.ranking:
        curve = pq.read_table(
            tmp_path / "trials" / "runs" / outcome.tuning.cell(trial.point).run(0).name / "curve.parquet"
        )
        ends, returns = curve["env_steps"].to_numpy(), curve["return"].to_numpy()
        bins: list[float] = []
        for place in range(100):
            inside = (ends > 60 * place) & (ends <= 60 * (place + 1))
            bins.append(returns[inside].mean() if inside.any() else bins[-1] if bins else np.nan)
        first = next(each for each in bins if not np.isnan(each))
        assert trial.mean is not None
        assert trial.mean.value == pytest.approx(np.mean([first if np.isnan(each) else each for each in bins]))
    assert json.loads((tmp_path / "fresh" / "study.json").read_text())["study"]["seeds"] == [1000]


RANGE = {"low": 0.5, "high": 0.9}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"dts": ["8ms", "16ms"], "dt": None}, "2 cycle times are given: a tuning is at one."),
        ({"tasks": ["reacher", "double-pendulum"], "task": None}, "2 tasks are given: a tuning is at one."),
        ({"algorithms": ["ppo", "sac"], "algorithm": None}, "2 algorithms are given: a tuning is at one."),
        ({"rules": ["baseline"]}, "'rules' is given: a tuning is at one cycle time, and carries nothing."),
        (
            {"tuned": {"dt": "8ms", "discount": [0.5, 0.9]}},
            "tuned has dt 8ms: a tuning at 16ms carries nothing, so leave it out.",
        ),
        (
            {"tuned": {"discount": 0.5}},
            "There is nothing to tune: give several values in 'tuned', or a range in 'search'.",
        ),
        ({"sampler": "bayes"}, "'bayes' is no sampler: give one of grid, tpe, random, cmaes."),
        ({"sampler": "cmaes"}, "discount is a list: cmaes searches ranges only, in 'search'."),
        ({"fresh_seeds": 0}, "fresh_seeds is 0: it must be at least 1."),
        ({"trials": 2.5}, "trials is 2.5: it must be a whole number."),
        ({"at_once": 0}, "at_once is 0: it must be at least 1."),
        (
            {"search": {"discount": RANGE}},
            "discount has a range in 'search' and a value elsewhere: give one of them.",
        ),
        (
            {"search": {"value_rate": RANGE}, "sampler": "grid"},
            "A grid has no ranges: give lists of values instead of 'search', or another sampler.",
        ),
        (
            {"search": {"batch": RANGE}},
            "search has 'batch': actor-critic has *",
        ),
        (
            {"search": {"value_rate": [0.5, 0.9]}},
            "search is {'value_rate': [0.5, 0.9]}: give ranges, such as discount = { low = 0.8, high = 0.999 }.",
        ),
        (
            {"search": {"value_rate": {"low": 1}}},
            "search has value_rate with low: give low and high, and log or horizon.",
        ),
        (
            {"search": {"value_rate": {"low": 2, "high": 1}}},
            "search, value_rate: The range goes from 2 to 1: give numbers, the lower one first.",
        ),
        (
            {"search": {"value_rate": {"low": 0, "high": 1, "log": True}}},
            "search, value_rate: The range begins at 0: a logarithm needs numbers above 0.",
        ),
        (
            {"search": {"value_rate": {"low": 0.5, "high": 1.0, "horizon": True}}},
            "search, value_rate: A horizon has the range from 0.5 to 1.0: give rates between 0 and 1.",
        ),
        (
            {"algorithm": "ppo", "tuned": {"batch": [100, 10], "minibatch": 50}},
            "minibatch is 50: it must be at most the batch, 10.",
        ),
        ({"tries": 3}, "'tries' is nothing that a study has: *"),
    ],
)
def test_what_is_no_tuning_is_refused_with_a_sentence(changed: dict[str, Any], sentence: str) -> None:
    table = {name: value for name, value in {**GRID, **changed}.items() if value is not None}
    if "algorithm" in changed or "algorithms" in changed:
        table.pop("set")
    with pytest.raises(InputError, match="^" + re.escape(sentence).replace(r"\*", ".*") + "$"):
        tuning_from(table)


def test_options_replace_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "tuning.toml"
    file.write_text(
        'name = "toy"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "16ms"\nenv_steps = 9\ntrials = 3\nfresh_seeds = 5\n'
        "[search]\ndiscount = { low = 0.5, high = 0.9 }\n"
    )
    read = read_tuning(file, trials=7, fresh_seeds=None)
    assert (read.sampler, read.trials, read.fresh_seeds) == ("tpe", 7, 5)
    assert isinstance(read, Tuning)
    assert read.search == {"discount": Range(0.5, 0.9)}
