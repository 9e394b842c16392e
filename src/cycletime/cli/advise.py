"""`cycletime advise`: which cycle time to use, and with which values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import arg

from cycletime.cli.options import NO_NAMES, Count, NameListOption, Rate, RuleOption, Text
from cycletime.cli.output import print_status
from cycletime.cli.run_options import TaskOptions, ValueOptions
from cycletime.duration import Duration
from cycletime.errors import InputError, printable
from cycletime.rules.hyperparameters import align_columns

if TYPE_CHECKING:
    from cycletime.studies.advice import Question
    from cycletime.training.toml_files import TunedValues


@dataclass(frozen=True, kw_only=True)
class Advise(ValueOptions, TaskOptions):
    """Find out which cycle time to use, and with which values: measure this machine, and run the smallest study.

    For example: cycletime advise --task reacher --tuned-at 16ms --batch 2000 --minutes 10 --out advice
    """

    algorithm: Annotated[str, arg(metavar="ppo|sac")] = "ppo"
    """Whose values are carried."""
    study: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(instead of --task, --env and values)")] = None
    """A study file with one environment and algorithm: its trainer, values, cycle times and budget are taken."""
    tuned_at: Annotated[Text, arg(metavar="TIME", help_behavior_hint="(required without --tuned)")] = None
    """The present cycle time, at which the values were tuned."""
    rule: RuleOption = None
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
        from cycletime.reports.advice_text import advice_table, save_advice
        from cycletime.studies.advice_search import Budget, MachineMeasurements, advise
        from cycletime.studies.executors import make_executor
        from cycletime.studies.progress import StudyProgress
        from cycletime.training.machine import prepare_jax
        from cycletime.training.process import stopping

        question = self._question()
        budget = Budget(None if self.minutes is None else 60 * self.minutes, self.simulated_hours)
        executor = make_executor("local", question.device, self.workers)
        prepare_jax("cpu")  # only small calls are timed here; runs are computed by workers
        with stopping() as stopper:

            def tell(text: str) -> None:
                if stopper():  # whoever asked meanwhile is not kept waiting, since nothing is lost yet
                    raise KeyboardInterrupt
                print_status(text)

            advice = advise(
                question,
                self.out,
                executor,
                budget,
                env_steps=self.env_steps or (None if self.study is None else question.env_steps),
                observers=[StudyProgress(executor.workers)],
                stop=stopper,
                instruments=MachineMeasurements(tell=tell),
            )
        answer = save_advice(self.out, advice)
        if self.json:
            print(json.dumps({**advice.as_json(), "answer": answer}, indent=2))
        else:
            where = f"The study is in {self.out}: 'cycletime report {self.out}' tells more of it."
            table = align_columns(advice_table(advice), underlined=False) if advice.leader is not None else []
            print(printable("\n".join([*table, *([""] if table else []), *answer, "", where])))
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
        names = ("confidence", "enough", "first_seeds")
        options = {name: value for name in names if (value := getattr(self, name)) is not None}
        options |= {"measure": self.measure, "real_time": not self.simulation}
        if self.study is not None:
            return self._question_of_study(Path(self.study), options)
        tuned = self._tuned()
        return Question(
            world=world_of(self.task, self.env, self.env_dt),
            algorithm=self.algorithm,
            present=tuned.dt,
            values={**tuned.values, **self.values},
            tuned_fields=set(tuned.about.get("searched", ())) - self.values.keys(),
            others={**tuned.others, **self.settings},
            rule=self.rule,
            dts=tuple(sorted({Duration(dt) for dt in self.dts})),
            num_envs=1 if self.num_envs is None else self.num_envs,
            device=self.device,
            **options,
        )

    def _question_of_study(self, file: Path, options: dict[str, Any]) -> Question:
        """What a study file asks; each of its values must be one, since a rule carries it."""
        from cycletime.studies.advice import Question
        from cycletime.studies.spec_file import read_study

        study = read_study(file)
        for name, given in (("task or env", study.worlds), ("algorithm", study.algorithms)):
            if len(given) > 1:
                raise InputError(f"{file} has {len(given)} of {name}: advice is on one.")
        (algorithm,) = study.algorithms
        if any((self.task, self.env, self.tuned, self.tuned_at, self.num_envs, self.values, self.set)):
            raise InputError(f"The study {file} says what is trained: leave out --task, --env, --num-envs and values.")
        tuned = study.tuned.get(algorithm)
        if tuned is None or tuned.dt is None:
            raise InputError(f"{file} does not say the present cycle time: give dt in [tuned].")
        several = {name: tried for grid in study.grids(algorithm) for name, tried in grid.items() if len(tried) > 1}
        if several or study.points.get(algorithm):
            raise InputError(f"{file} has several values of {next(iter(several), 'points')}: advice needs one of each.")
        given = study.rules.get(algorithm, ())
        if self.rule is None and len(given) > 1:
            raise InputError(f"{file} has the rules {', '.join(given)}: advice carries values by one, so give --rule.")
        rule = self.rule or next(iter(given), None)
        if rule in study.own_rules:
            raise InputError(f"{file} has the rule {rule!r} of its own: advice needs one of ours, so give --rule.")
        return Question(
            world=study.worlds[0],
            algorithm=algorithm,
            present=tuned.dt,
            values={name: value for name, (value,) in tuned.values.items()},
            tuned_fields=tuned.source.get("searched", ()),
            others={name: value for name, (value,) in study.others.get(algorithm, {}).items()},
            rule=rule,
            dts=tuple(sorted({Duration(dt) for dt in self.dts} or set(study.dts))),
            env_steps=study.env_steps,
            num_envs=study.num_envs,
            device=study.device,
            trainer=study.trainer,
            **options,
        )

    def _tuned(self) -> TunedValues:
        """A file's, or none and the present cycle time."""
        from cycletime.training.toml_files import TunedValues, read_tuned

        if (self.tuned is None) == (self.tuned_at is None):
            raise InputError("Give either --tuned-at, the present cycle time, or --tuned, a file that says it.")
        if self.tuned_at is not None:
            return TunedValues(Duration(self.tuned_at), {})
        assert self.tuned is not None, "one of the two is given"
        return read_tuned(self.tuned).of(self.algorithm)
