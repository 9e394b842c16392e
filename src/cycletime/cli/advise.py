"""`cycletime advise`: which cycle time to use, and with which values."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from cycletime.cli.options import NO_NAMES, Count, NameListOption, Rate, Text
from cycletime.cli.output import format_columns, print_status
from cycletime.cli.run_options import TaskOptions, ValueOptions
from cycletime.duration import Duration
from cycletime.errors import InputError, printable

if TYPE_CHECKING:
    from cycletime.studies.advice import Advice, Question


@dataclass(frozen=True, kw_only=True)
class Advise(ValueOptions, TaskOptions):
    """Find out which cycle time to use, and with which values: measure this machine, and run the smallest study.

    For example: cycletime advise --task reacher --tuned-at 16ms --batch 2000 --minutes 10 --out advice
    """

    algorithm: Annotated[str, arg(metavar="ppo|sac")] = "ppo"
    """Whose values are carried."""
    tuned_at: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(required without --tuned)")] = None
    """The present cycle time, at which the values were tuned."""
    rule: Annotated[Text, arg(metavar="RULE", help_behavior_hint="(default: dt-aware for ppo, horizons for sac)")] = (
        None
    )
    """How values are carried to other cycle times."""
    dts: Annotated[
        NameListOption, arg(metavar="TIME ...", help_behavior_hint="(default: 1/4, 1/2, 2 and 4 times as long)")
    ] = NO_NAMES
    """The cycle times to compare with the present one."""
    minutes: Annotated[Rate, arg(help_behavior_hint="(this or --simulated-hours)")] = None
    """How long this command may take."""
    simulated_hours: Annotated[Rate, arg(help_behavior_hint="(this or --minutes)")] = None
    """How many hours of the environment's time all runs together may take."""
    env_steps: Annotated[Count, arg(help_behavior_hint="(default: as the budget has room for)")] = None
    """How long each run trains, in environment steps."""
    measure: Annotated[str, arg(metavar="MEASURE")] = "average"
    """A run's score: its mean return over learning (average), its last tenth (last-tenth), or episodes (episodes)."""
    confidence: Annotated[Rate, arg(help_behavior_hint="(default: 0.95)")] = None
    """Of all comparisons together."""
    enough: Annotated[Rate, arg(help_behavior_hint="(default: 0)")] = None
    """Stop where no other cycle time can be better than the best by more than this difference of mean returns."""
    first_seeds: Annotated[Count, arg(help_behavior_hint="(default: 5)")] = None
    """Seeds of each cycle time at the first look."""
    simulation: bool = False
    """The agent never acts in real time: try cycle times that this machine is too slow for as well."""
    device: Annotated[str, arg(metavar="DEVICE")] = "cpu"
    """Where runs are computed: cpu or gpu."""
    workers: Annotated[Count, arg(help_behavior_hint="(default: one for each core, or for each GPU)")] = None
    """Runs at a time."""
    out: Annotated[Path, arg(metavar="FOLDER")]
    """Where the study and advice.json are kept; the same command continues them."""
    json: bool = False
    """Print JSON instead of text."""

    def run(self) -> int:
        """Ask, run, and print the answer; status 1 where there is none yet."""
        from cycletime.reports.advice_text import save_advice
        from cycletime.studies.advice_search import Budget, MachineMeasurements, advise
        from cycletime.studies.executors import ExecutorOptions, make_executor
        from cycletime.studies.progress import StudyProgress
        from cycletime.training.machine import prepare_jax
        from cycletime.training.process import stopping

        question = self._question()
        budget = Budget(None if self.minutes is None else 60 * self.minutes, self.simulated_hours)
        executor = make_executor("local", ExecutorOptions(workers=self.workers), self.device)
        prepare_jax("cpu")  # only small calls are timed here; runs are computed by workers
        with stopping() as stopper:
            advice = advise(
                question,
                self.out,
                executor,
                budget,
                env_steps=self.env_steps,
                observers=[StudyProgress(executor.workers)],
                stop=stopper,
                instruments=MachineMeasurements(tell=partial(_print_unless_stopped, stopper)),
            )
        answer = save_advice(self.out, advice)
        if self.json:
            print(json.dumps({**advice.as_json(), "answer": answer}, indent=2))
        else:
            print(_as_text(advice, answer, self.out))
        if advice.ended == "stopped":
            print_status("Stopped. The same command goes on.")
            return stopper.status
        return 0 if advice.leader is not None else 1

    def _question(self) -> Question:
        from cycletime.studies.advice import Question
        from cycletime.studies.scores import MEASURES
        from cycletime.training.worlds import world_of

        if self.measure not in MEASURES:
            raise InputError(f"{self.measure!r} is not a measure: give one of {', '.join(MEASURES)}.")
        present, values, from_file = self._tuned()
        options: dict[str, Any] = {
            name: value
            for name, value in (
                ("confidence", self.confidence),
                ("enough", self.enough),
                ("first_seeds", self.first_seeds),
            )
            if value is not None
        }
        return Question(
            world=world_of(self.task, self.env, self.env_dt),
            algorithm=self.algorithm,
            present=present,
            values={**values, **self.values},
            others={**from_file, **self.settings},
            rule=self.rule,
            dts=tuple(sorted({Duration(dt) for dt in self.dts})),
            measure=self.measure,
            real_time=not self.simulation,
            device=self.device,
            **options,
        )

    def _tuned(self) -> tuple[Duration, dict[str, Any], dict[str, Any]]:
        """The present cycle time, and a file's values and other fields."""
        if (self.tuned is None) == (self.tuned_at is None):
            raise InputError("Give either --tuned-at, the present cycle time, or --tuned, a file that says it.")
        if self.tuned_at is not None:
            return Duration(self.tuned_at), {}, {}
        from cycletime.training.toml_files import read_tuned

        assert self.tuned is not None, "one of the two is given"
        read = read_tuned(self.tuned).of(self.algorithm)
        return read.dt, dict(read.values), dict(read.others)


def _print_unless_stopped(stopped: Callable[[], bool], text: str) -> None:
    """Tell what is measured next; whoever asked to stop meanwhile is not kept waiting, since nothing is lost yet."""
    if stopped():
        raise KeyboardInterrupt
    print_status(text)


def _as_text(advice: Advice, answer: list[str], out: Path) -> str:
    from cycletime.reports.advice_text import advice_table

    where = f"The study is in {out}: 'cycletime report {out}' tells more of it."
    return printable("\n".join([*format_columns(advice_table(advice)), "", *answer, "", where]))
