import re
from math import exp, log
from pathlib import Path
from typing import Any

import pytest

from cycletime.errors import InputError
from cycletime.studies.tuning_spec import Range, Tuning, read_tuning, tuning_from_table
from tests.studies.toy_tuning import GRID


def test_a_horizon_s_range_is_even_in_its_logarithm() -> None:
    powers = Range(0.99**16, 0.99, horizon=True)
    low, high = powers.bounds
    assert powers.value(exp((log(low) + log(high)) / 2)) == pytest.approx(0.99**4)
    assert [powers.value(low), powers.value(high)] == pytest.approx([0.99, 0.99**16])
    assert powers.low <= powers.value(high) <= powers.value(low) <= powers.high


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
        ({"sampler": "bayes"}, "'bayes' is not a sampler: give one of grid, tpe, random, cmaes."),
        ({"sampler": "cmaes"}, "discount is a list: cmaes searches ranges only, in 'search'."),
        ({"fresh_seeds": 0}, "fresh_seeds is 0: it must be a whole number of at least 1."),
        ({"trials": 2.5, "sampler": "tpe"}, "trials is 2.5: it must be a whole number of at least 1."),
        ({"at_once": 0, "sampler": "tpe"}, "at_once is 0: it must be a whole number of at least 1."),
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
            {"search": {"sac": {"discount": RANGE}}},
            "search has a table for 'sac': the study has actor-critic.",
        ),
        ({"search": {"hidden": {"low": 1, "high": 2}}}, "search has 'hidden': actor-critic has *"),
        (
            {"search": {"value_rate": {**RANGE, "log": "yes"}}},
            "search, value_rate: log is 'yes': it must be true or false.",
        ),
        (
            {"trials": 5},
            "trials is 5: a grid tries all its points, so leave it out, or give a sampler such as 'random'.",
        ),
        ({"seeds": [2**32 - 1]}, "The last fresh seed would be 4294967299: seeds must be below 2**32."),
        (
            {"points": [{"value_rate": 0.1}, {"value_rate": 0.2}], "sampler": "tpe"},
            "The sampler is tpe: 'points' are the trials themselves, so leave it out.",
        ),
        (
            {"points": [{"dt": "16ms", "value_rate": 0.1}, {"dt": "16ms", "value_rate": 0.2}]},
            "points has dt: a tuning has one cycle time, 16ms, so leave it out.",
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
        ({"fresh_seeds": 10**9}, "fresh_seeds is 1000000000, which makes 1,000,000,000 runs: there may be *"),
        (
            {"fresh_seeds": 10**99},
            "fresh_seeds is a number of more than 60 digits: whole numbers must lie *",
        ),
        (
            {"search": {"value_rate": RANGE}, "trials": 10**6, "seeds": 2},
            "trials is 1000000, which makes 2,000,000 runs: there may be 1,000,000 at most.",
        ),
        ({"seeds": 10**6}, "The study 'toy' has *,000,000 runs: it may have 1,000,000 at most."),
        ({"sampler": "\x1b[31m"}, "sampler is '\\x1b[31m': a text is one line of at most 200 printable characters."),
        ({"sampler_seed": 2**32, "sampler": "tpe"}, "sampler_seed is 4294967296: it must be below 2**32."),
        (
            {"algorithm": "ppo", "tuned": None, "search": {"batch": {"low": 500.0, "high": 900}}},
            "search, batch: It is a count, and its range goes from 500.0 to 900: give whole ends.",
        ),
        ({"tries": 3}, "'tries' is nothing that a study has: *"),
    ],
)
def test_what_is_no_tuning_is_refused_with_a_sentence(changed: dict[str, Any], sentence: str) -> None:
    table = {name: value for name, value in {**GRID, **changed}.items() if value is not None}
    if "algorithm" in changed or "algorithms" in changed:
        table.pop("set")
    with pytest.raises(InputError, match="^" + re.escape(sentence).replace(r"\*", ".*") + "$"):
        tuning_from_table(table)


def test_environments_side_by_side_are_the_file_s_or_the_option_s(tmp_path: Path) -> None:
    (file := tmp_path / "tuning.toml").write_text(
        'name = "t"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "16ms"\nenv_steps = 20_000\nnum_envs = 4\n'
        "[tuned]\nbatch = [1000, 2000]\n"
    )
    assert read_tuning(file).study.num_envs == 4
    tuning = read_tuning(file, num_envs=8)
    assert {spec.num_envs for _, spec in tuning.of(tuning.grid()).runs()} == {8}
    with pytest.raises(InputError, match="The batch is 1000, which 16 environments do not divide: give 992 or 1008"):
        read_tuning(file, num_envs=16)


def test_options_replace_what_the_file_says(tmp_path: Path) -> None:
    file = tmp_path / "tuning.toml"
    file.write_text(
        'name = "toy"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "16ms"\nenv_steps = 2000\ntrials = 3\n'
        "fresh_seeds = 5\n"
        "[search]\ndiscount = { low = 0.5, high = 0.9 }\n"
    )
    read = read_tuning(file, trials=7, fresh_seeds=None)
    assert (read.sampler, read.trials, read.fresh_seeds) == ("tpe", 7, 5)
    assert isinstance(read, Tuning)
    assert read.search == {"discount": Range(0.5, 0.9)}


def test_a_grid_instead_of_the_file_s_sampler_needs_none_of_its_options(tmp_path: Path) -> None:
    file = tmp_path / "tuning.toml"
    file.write_text(
        'name = "toy"\ntask = "reacher"\nalgorithm = "ppo"\ndt = "16ms"\nenv_steps = 2000\nsampler = "random"\n'
        "trials = 3\nsampler_seed = 7\n[tuned]\ndiscount = [0.5, 0.9]\n"
    )
    assert (read_tuning(file).trials, len(read_tuning(file, sampler="grid").grid())) == (3, 2)
    with pytest.raises(InputError, match="trials is 5: a grid tries all its points"):
        read_tuning(file, sampler="grid", trials=5)
