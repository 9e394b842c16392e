"""Studies of the paper in folders, whose runs nobody trained: what they scored is made up."""

from collections.abc import Callable
from pathlib import Path

from cycletime.experiments.collecting import collect_study, verified_folder
from cycletime.experiments.investigation import Size
from cycletime.experiments.outcome import Outcome
from cycletime.experiments.paper.declaration import PAPER
from cycletime.experiments.running import Workspace
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.spec import RunSpec
from tests.studies.small import finished, specs_of

SMALL = Size(0.01, 2)


def study_folder(
    out: Path,
    part: str,
    score: Callable[[RunSpec], float] = lambda spec: float(spec.seed),
    size: Size = SMALL,
    missing: int = 0,
) -> StudyFolder:
    """The folder of a study, all of whose runs are done but for the last ones."""
    experiment = next(each for each in PAPER.experiments.values() if part in each.parts)
    folder = Workspace(investigation=PAPER, out=out, size=size).folder(part, experiment)
    specs = specs_of(folder)
    folder.store.add([finished(spec, score(spec)) for spec in specs[: len(specs) - missing]])
    return folder


def collect(folder: StudyFolder) -> Outcome:
    """The outcome of a study of the paper."""
    return collect_study(verified_folder(folder), PAPER.origin(folder.study))
