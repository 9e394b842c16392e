"""The paper's experiments, and a few beyond it: each a name for one or several study files in `studies/`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import as_file, files

from cycletime.agents.checks import check_counts
from cycletime.errors import InputError, did_you_mean
from cycletime.studies.spec import StudySpec
from cycletime.studies.spec_file import read_study
from cycletime.training.run_recorder import SaveOptions

FRESH_SEED = 1000
"""The first seed of runs that repeat a winner: those that it won with have smaller ones."""


def winners_name(part: str) -> str:
    """What the study is called that runs another's winners again."""
    return f"{part}-winners"


@dataclass(frozen=True)
class Experiment:
    """A row of the paper's experiments."""

    name: str
    about: str
    """What is compared, in a line."""
    shown_in: str
    """Where the paper shows it."""
    studies: tuple[str, ...]
    """Its study files."""
    winners_of: str | None = None
    """The study whose best cells are run again with fresh seeds."""
    keeps_policies: bool = False
    """Whether what was learned is kept of each run, to see what it does."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all its studies, the winners' last."""
        return self.studies if self.winners_of is None else (*self.studies, winners_name(self.winners_of))

    @property
    def keep(self) -> SaveOptions:
        """What is kept of its runs: curves in bins, and policies where they are asked for."""
        return SaveOptions(episodes=False, policies=self.keeps_policies)


_EXPERIMENTS = (
    Experiment(
        "ppo-baseline",
        "baseline PPO on Reacher",
        "baseline learning curves",
        ("ppo-baseline",),
        keeps_policies=True,
    ),
    Experiment(
        "ppo-grid", "PPO tuned at each cycle time", "performance against dt, tuned table", ("ppo-grid",), "ppo-grid"
    ),
    Experiment(
        "ppo-dt-aware",
        "dt-aware PPO at five batch times",
        "performance against batch time",
        ("ppo-dt-aware",),
        keeps_policies=True,
    ),
    Experiment("ppo-scaled", "gamma and lambda scaled at 4 and 8 ms", "the same axes", ("ppo-scaled",)),
    Experiment("ppo-constant", "gamma and lambda kept at 32 and 64 ms", "appendix, the same axes", ("ppo-constant",)),
    Experiment("sac-baseline", "baseline SAC on Reacher", "baseline learning curves", ("sac-baseline",)),
    Experiment(
        "sac-gamma-sweep",
        "SAC's gamma tuned at each cycle time, and scaled",
        "performance against gamma and dt, tuned table",
        ("sac-gamma-sweep", "sac-scaled"),
        "sac-gamma-sweep",
    ),
    Experiment("sac-dt-aware", "gamma_1 and gamma_2 from .851 at 16 ms", "three-part figure, left", ("sac-dt-aware",)),
    Experiment(
        "ppo-dt0",
        "dt-aware PPO from values tuned at 4, 16 and 64 ms",
        "'tuned at any initial cycle time'",
        ("ppo-dt0-4ms", "ppo-dt0-16ms", "ppo-dt0-64ms"),
    ),
    Experiment(
        "ppo-pendulum",
        "baseline and dt-aware PPO",
        "three-part figure, middle",
        ("ppo-pendulum",),
        keeps_policies=True,
    ),
    Experiment("sac-pendulum-sweep", "SAC's gamma at 16 ms", "where .9987 comes from", ("sac-pendulum-sweep",)),
    Experiment(
        "sac-pendulum",
        "baseline SAC, gamma_1 and gamma_2",
        "three-part figure, right",
        ("sac-pendulum-baseline", "sac-pendulum-dt-aware"),
        keeps_policies=True,
    ),
    Experiment(
        "ppo-robot",
        "PPO on the simulated UR5, from b = 400 at 40 ms",
        "robot learning curves",
        ("ppo-robot",),
        keeps_policies=True,
    ),
    Experiment(
        "ppo-robot-2000",
        "PPO on the simulated UR5, from b = 2000 at 40 ms",
        "appendix",
        ("ppo-robot-2000",),
        keeps_policies=True,
    ),
    Experiment(
        "sac-robot",
        "SAC's gamma on the simulated UR5 at 40 and 120 ms",
        "robot returns and learning curves",
        ("sac-robot-sweep", "sac-robot-120ms", "sac-robot-extended"),
        keeps_policies=True,
    ),
    Experiment(
        "ppo-released-code", "what the released code does otherwise", "not in the paper", ("ppo-released-code",)
    ),
    Experiment(
        "pendulum-grid", "PPO tuned on the Double Pendulum", "not in the paper", ("pendulum-grid",), "pendulum-grid"
    ),
    Experiment(
        "pendulum-batch-times",
        "the three rules on the Double Pendulum",
        "not in the paper",
        ("pendulum-dt-aware", "pendulum-scaled", "pendulum-constant"),
    ),
)
EXPERIMENTS = {row.name: row for row in _EXPERIMENTS}
"""By name, in the paper's order."""
STUDY_NAMES = tuple(part for row in _EXPERIMENTS for part in row.parts)
"""The names of all their studies."""


@dataclass(frozen=True)
class Size:
    """How much of an experiment is run."""

    scale: float = 1.0
    """The share of the paper's environment steps."""
    seeds: int | None = None
    """By default the study's own."""
    fresh_seeds: int | None = None
    """Of winners; by default as many as of the sweep."""

    def __post_init__(self) -> None:
        """Refuse what is no size."""
        if not 0 < self.scale <= 1:
            raise InputError(f"scale is {self.scale}: it must be above 0 and at most 1, which is the paper's.")
        check_counts(self, *(name for name in ("seeds", "fresh_seeds") if getattr(self, name) is not None))
        if self.seeds is not None and self.seeds > FRESH_SEED:
            raise InputError(f"seeds is {self.seeds}: it must be at most {FRESH_SEED}, since winners' follow.")

    def of(self, study: StudySpec) -> StudySpec:
        first = study.seeds[0]
        seeds = study.seeds if self.seeds is None else tuple(range(first, first + self.seeds))
        return replace(study, env_steps=max(1, round(study.env_steps * self.scale)), seeds=seeds)


def scale_label(scale: float) -> str:
    """The label of what has a share of the paper's environment steps; nothing where it has all."""
    return "" if scale == 1 else f" (scaled down to {100 * scale:.3g} % of the environment steps)"


def find_experiments(names: Iterable[str]) -> tuple[Experiment, ...]:
    """Experiments by name."""
    found = []
    for name in names:
        if name not in EXPERIMENTS:
            raise unknown_name_error("experiment", name, EXPERIMENTS)
        found.append(EXPERIMENTS[name])
    return tuple(found)


def unknown_name_error(kind: str, name: str, known: Iterable[str]) -> InputError:
    """What is raised where an experiment, a figure or a table is asked for that the paper has not."""
    names = list(known)
    return InputError(f"The paper has no {kind} {name!r}: there are {', '.join(names)}{did_you_mean(name, names)}")


def load_study(part: str, size: Size = Size()) -> StudySpec:  # noqa: B008 - it is frozen
    """A study of the paper, by its file's name."""
    with as_file(files(__package__) / "studies" / f"{part}.toml") as file:
        return size.of(read_study(file))


def sweep_of(part: str) -> str | None:
    """The study whose winners a study runs again; None of one that runs none."""
    sweeps = (row.winners_of for row in _EXPERIMENTS if row.winners_of is not None)
    return next((sweep for sweep in sweeps if winners_name(sweep) == part), None)


def experiment_of(part: str) -> Experiment | None:
    """The experiment that a study is a part of."""
    return next((row for row in _EXPERIMENTS if part in row.parts), None)
