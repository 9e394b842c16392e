"""The paper's experiments, and a few beyond it: each a name for one or several study files in `studies/`."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import as_file, files

from cycletime.experiments.investigation import FRESH_SEED, Experiment, winners_name
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import read_study

_EXPERIMENTS = (
    Experiment("ppo-baseline", "baseline PPO on Reacher", keeps_policies=True),
    Experiment("ppo-grid", "PPO tuned at each cycle time", winners_of="ppo-grid"),
    Experiment("ppo-dt-aware", "dt-aware PPO at five batch times", keeps_policies=True),
    Experiment("ppo-scaled", "gamma and lambda scaled at 4 and 8 ms"),
    Experiment("ppo-constant", "gamma and lambda kept at 32 and 64 ms"),
    Experiment("sac-baseline", "baseline SAC on Reacher"),
    Experiment(
        "sac-gamma-sweep",
        "SAC's gamma tuned at each cycle time, and scaled",
        ("sac-gamma-sweep", "sac-scaled"),
        winners_of="sac-gamma-sweep",
    ),
    Experiment("sac-dt-aware", "gamma_1 and gamma_2 from .851 at 16 ms"),
    Experiment(
        "ppo-dt0", "dt-aware PPO from values tuned at 4, 16 and 64 ms", ("ppo-dt0-4ms", "ppo-dt0-16ms", "ppo-dt0-64ms")
    ),
    Experiment("ppo-pendulum", "baseline and dt-aware PPO", keeps_policies=True),
    Experiment("sac-pendulum-sweep", "SAC's gamma at 16 ms"),
    Experiment(
        "sac-pendulum",
        "baseline SAC, gamma_1 and gamma_2",
        ("sac-pendulum-baseline", "sac-pendulum-dt-aware"),
        keeps_policies=True,
    ),
    Experiment("ppo-robot", "PPO on the simulated UR5, from b = 400 at 40 ms", keeps_policies=True),
    Experiment("ppo-robot-2000", "PPO on the simulated UR5, from b = 2000 at 40 ms", keeps_policies=True),
    Experiment(
        "sac-robot",
        "SAC's gamma on the simulated UR5 at 40 and 120 ms",
        ("sac-robot-sweep", "sac-robot-120ms", "sac-robot-extended"),
        keeps_policies=True,
    ),
    Experiment("ppo-baseline-4ms", "200 further seeds of baseline PPO at 4 ms, prespecified", keeps_policies=True),
    Experiment(
        "ppo-robot-fresh",
        "PPO on the simulated UR5 with 200 fresh seeds, prespecified",
        ("ppo-robot-fresh", "ppo-robot-2000-fresh"),
    ),
    Experiment(
        "sac-robot-fresh",
        "SAC on the simulated UR5 with 200 fresh seeds, prespecified",
        ("sac-robot-sweep-fresh", "sac-robot-120ms-fresh", "sac-robot-extended-fresh"),
    ),
    Experiment("ppo-released-code", "what the released code does otherwise, not in the paper"),
    Experiment("pendulum-grid", "PPO tuned on the Double Pendulum, not in the paper", winners_of="pendulum-grid"),
    Experiment(
        "pendulum-batch-times",
        "the three rules on the Double Pendulum, not in the paper",
        ("pendulum-dt-aware", "pendulum-scaled", "pendulum-constant"),
    ),
)
EXPERIMENTS = {row.name: row for row in _EXPERIMENTS}
FIRST_SEEDS = {
    "ppo-baseline-4ms": 100,
    **dict.fromkeys(
        (each for row in _EXPERIMENTS if row.name.endswith("-robot-fresh") for each in row.studies), FRESH_SEED
    ),
}
"""By study with prespecified seeds, the first of them: nobody had looked at these when the criterion was fixed."""
PRESPECIFIED_SEEDS = 200
"""Of each of these studies; no verdict is given on fewer."""
STUDY_NAMES = tuple(part for row in _EXPERIMENTS for part in row.parts)


def load_study(name: str) -> StudySpec:
    """A study in full; of a sweep's winners that of the sweep."""
    name = name.removesuffix(winners_name(""))
    with as_file(files(__package__) / "studies" / f"{name}.toml") as file:
        study = read_study(file)
    first = FIRST_SEEDS.get(name, study.seeds[0])
    return replace(study, seeds=tuple(range(first, first + len(study.seeds))))
