"""`cycletime tune`: find hyper-parameters at one cycle time, and write them to a file that other commands read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

from tyro.conf import Positional, arg

from cycletime.cli.options import Count, Text
from cycletime.cli.output import print_status
from cycletime.cli.study import WorkerOptions
from cycletime.errors import InputError, printable
from cycletime.rules.hyperparameters import align_columns
from cycletime.rules.quantities import decay_in_seconds

if TYPE_CHECKING:
    from cycletime.studies.tuning import Trial, TuningResult
    from cycletime.studies.tuning_spec import Tuning

_HORIZONS = {"discount": "discount horizon", "trace_decay": "trace horizon"}
_REPLACING = ("sampler", "trials", "sampler_seed", "fresh_seeds", "num_envs")
"""Options that replace what the file says."""
_SHOWN = 10
"""How many trials the table has."""


@dataclass(frozen=True, kw_only=True)
class Tune(WorkerOptions):
    """Tune an algorithm at one cycle time, measure the winner with fresh seeds, and write its values to a file.

    For example: cycletime tune tuning.toml --horizons --out tuning --write tuned.toml
    """

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The tuning, a TOML file."""
    out: Annotated[Path, arg(metavar="FOLDER")]
    """Where the runs are kept; the same command continues them."""
    write: Annotated[Optional[Path], arg(metavar="FILE", help_behavior_hint="(default: tuned.toml in --out)")] = None  # noqa: UP045
    """Where the tuned values go."""
    sampler: Annotated[Text, arg(metavar="SAMPLER", help_behavior_hint="(default: the file's)")] = None
    """grid, or one of Optuna's: tpe, random, cmaes."""
    trials: Annotated[Count, arg(help_behavior_hint="(default: the file's, else 40)")] = None
    """How many trials a sampler makes; more can be added later."""
    sampler_seed: Annotated[Count, arg(help_behavior_hint="(default: the file's, else 0)")] = None
    """The sampler's seed."""
    fresh_seeds: Annotated[Count, arg(help_behavior_hint="(default: the file's, else 30)")] = None
    """How many fresh seeds the winner is run with again."""
    num_envs: Annotated[Count, arg(help_behavior_hint="(default: the file's, else 1)")] = None
    """Environments of each run, side by side."""
    horizons: bool = False
    """Tune discount and trace decay as horizons in seconds, by the file's table [horizons] where it has one."""

    def run(self) -> int:
        """Tune, write, and tell; status 1 if some trials or fresh seeds have no score."""
        from cycletime.studies.hardware_estimates import check_start
        from cycletime.studies.progress import StudyProgress
        from cycletime.studies.tuning import tune
        from cycletime.studies.tuning_spec import read_tuning
        from cycletime.training.process import stopping

        options = {name: getattr(self, name) for name in _REPLACING}
        tuning = read_tuning(self.file, **options, horizons=self.horizons)
        executor = self.executor_for(tuning.study.device)
        file = self._written_to(tuning)
        check_start([next(replace(tuning.study, rules={}).cells())], self.out, self.executor, print_status)
        with stopping() as stopper:
            observers = [StudyProgress(executor.workers)]
            outcome = tune(tuning, self.out, executor, observers=observers, stop=stopper)
        if outcome is None:
            print_status("Stopped. The same command goes on.")
            return stopper.status
        outcome.write(self.out, file)
        print("\n".join([*_table(outcome), "", *_sentences(outcome), "", f"Written to {printable(str(file))}"]))
        without = [trial for trial in (*outcome.ranking, outcome.fresh) if None in trial.scores]
        return 1 if without else 0

    def _written_to(self, tuning: Tuning) -> Path:
        """The file, which must be ours to write: found out before hours of computing."""
        from cycletime.training.toml_files import made_by

        file = self.out / "tuned.toml" if self.write is None else self.write
        if self.write is not None and not file.parent.is_dir():
            raise InputError(f"--write is {file}: there is no folder {file.parent}.")
        if file.is_dir() or (file.exists() and made_by(file, tuning.algorithm) != tuning.study.name):
            raise InputError(f"{file} exists already, and not from this tuning: give another name with --write.")
        return file


def _table(outcome: TuningResult) -> list[str]:
    from cycletime.studies.scores import value_text

    names = outcome.tuning.names
    shown = outcome.ranking[:_SHOWN]
    rows = [["place", *names, "mean return", "s.e.", "n"]]
    for place, trial in enumerate(shown, start=1):
        rows.append([str(place), *(value_text(trial.point[name]) for name in names), *_mean(trial)])
    lines = align_columns(rows, right=range(len(rows[0])), underlined=False)
    left = len(outcome.ranking) - len(shown)
    troubles = [f"trial {trial.number}: {trial.trouble}" for trial in outcome.ranking if trial.trouble]
    return [*lines, *([f"and {left} more, in ranking.json"] if left else []), *troubles[:_SHOWN]]


def _mean(trial: Trial) -> list[str]:
    if trial.mean is None:
        return ["none", "", ""]
    error = "" if trial.mean.high is None else f"{trial.mean.high - trial.mean.value:.4g}"
    return [f"{trial.mean.value:.4f}", error, str(trial.mean.n)]


def _horizons(outcome: TuningResult) -> Iterator[str]:
    """What the winner's rates mean in seconds, and whether better ones may lie beyond those that were tried."""
    tuning, point = outcome.tuning, outcome.ranking[0].point
    tuned = {name: words for name, words in _HORIZONS.items() if name in point}
    spans = {name: decay_in_seconds(point[name], float(tuning.dt)) for name in tuned}
    if spans:
        told = " and ".join(f"a {tuned[name]} of {span:.3g} s" for name, span in spans.items())
        yield f"The winner has {told}."
    for name, words in tuned.items():
        tried = tuning.choices.get(name, ())
        for end, edge in ((min, "shortest"), (max, "longest")):
            if tried and point[name] == end(tried):
                yield f"Its {words} is the {edge} that was tried, and a {edge[:-3]}er one may be better."


def _sentences(outcome: TuningResult) -> list[str]:
    tuning, fall = outcome.tuning, outcome.fall
    sentences = list(_horizons(outcome))
    undecided = [each for each in outcome.against_others.values() if each.verdict != "better"]
    if outcome.against_others:
        sentences.append(
            f"The winner is better than {len(outcome.against_others) - len(undecided)} of "
            f"{len(outcome.against_others)} other trials; for {len(undecided)} that is not decided by the data."
        )
    if ties := sum(trial.scores == outcome.winner.scores for trial in outcome.ranking[1:]):
        others = "1 other trial has" if ties == 1 else f"{ties} other trials have"
        sentences.append(f"{others} exactly the winner's scores, as where what was tried changes nothing.")
    seeds = tuning.fresh_seed_range()
    which = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    if fall is None:
        return [*sentences, f"With fresh seeds ({which}) the winner has no mean: {outcome.fresh.trouble}."]
    sentences.append(f"With fresh seeds ({which}) the winner has a mean return of {outcome.fresh.mean_of_finished}.")
    moved, decided = fall.difference.value, fall.verdict != "not decided by the data"
    how = "lower" if moved < 0 else "higher"
    why = "the best of many looks better than it is" if moved < 0 and decided else ""
    certain = why if decided else "a difference that the data do not decide"
    sentences.append(f"That is {abs(moved):.4g} {how} than in tuning{f': {certain}' if certain else ''}.")
    return sentences
