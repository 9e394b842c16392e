"""The paper's results as they are kept with the code: RESULTS/STUDY.npz for each study, and what policies do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import cycletime
from cycletime.errors import InputError
from cycletime.experiments.collection import collect, verified_folder
from cycletime.experiments.outcome import Outcome
from cycletime.experiments.paper import behaviour
from cycletime.experiments.paper.data import PaperResults
from cycletime.experiments.paper.experiments import STUDY_NAMES
from cycletime.studies.plan import Plan
from cycletime.studies.study_folder import StudyFolder
from cycletime.training.atomic_files import disk_errors

BEHAVIOUR_FILE = "behaviour.json"


@dataclass(frozen=True)
class Collected:
    """What became of the studies in a folder."""

    kept: tuple[Path, ...]
    """The files that were written."""
    unfinished: Mapping[str, tuple[int, int]]
    """By study that is not finished, the runs that are done and those that there are."""


def results_folder(room: str = "paper") -> Path:
    """A room's results that come with the code: of a checkout, or of an installed package. There may be none in it."""
    package = Path(cycletime.__file__).parent
    installed, checkout = package / room / "results", package.parents[1] / "results" / room
    return checkout if checkout.is_dir() and not installed.is_dir() else installed


def read_results(folder: Path) -> PaperResults:
    """All results in a folder."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder with results: 'cycletime experiment collect paper' makes one.")
    outcomes = [Outcome.load(path) for path in sorted(folder.glob("*.npz"))]
    file = folder / BEHAVIOUR_FILE
    return PaperResults({each.name: each for each in outcomes}, behaviour.read(file) if file.exists() else {})


def collect_results(
    out: Path, results: Path, walls_s: Mapping[str, float] | None = None, *, clips: bool = False
) -> Collected:
    """Keep what came of all finished studies in a folder, and measure what their policies do.

    Args:
        out: The folder that 'experiment run paper' filled.
        results: Where results are kept.
        walls_s: By study, how long it took, where that was not written down.
        clips: Whether to film median runs, too.
    """
    folders = _studies_in(out)
    walls_s = walls_s or {}
    for name in walls_s:
        if name not in folders:
            raise InputError(f"--wall names {name!r}: {out} has {', '.join(folders)}.")
    counts = {name: _run_counts(folder) for name, folder in folders.items()}
    done = {name: folder for name, folder in folders.items() if counts[name][0] == counts[name][1]}
    outcomes = {name: collect(folder, wall_s=walls_s.get(name)) for name, folder in done.items()}
    for name, outcome in outcomes.items():
        refuse_smaller_results(outcome, results / f"{name}.npz")
    with disk_errors(results):
        results.mkdir(parents=True, exist_ok=True)
    kept = []
    for name, outcome in outcomes.items():
        outcome.save(results / f"{name}.npz")
        kept.append(results / f"{name}.npz")
    kept += _keep_behaviour(done, results / BEHAVIOUR_FILE)
    if clips:
        from cycletime.experiments.paper.clips import save_clips

        kept += save_clips(done, results / "clips")
    return Collected(tuple(kept), {name: counts[name] for name in folders if name not in done})


def _studies_in(out: Path) -> dict[str, StudyFolder]:
    found = {
        part: verified_folder(StudyFolder.open(out / part))
        for part in STUDY_NAMES
        if (out / part / "study.json").exists()
    }
    if not found:
        raise InputError(f"{out} has no study of the paper: 'cycletime experiment run paper' makes them.")
    return found


def _run_counts(folder: StudyFolder) -> tuple[int, int]:
    names = [planned.name for planned in Plan.of(folder.study).runs]
    return sum(name in folder.store for name in names), len(names)


def refuse_smaller_results(outcome: Outcome, path: Path) -> None:
    """Refuse to replace results by those of fewer seeds or steps: what is lost may have taken days."""
    if not path.exists():
        return
    before = Outcome.load(path)
    if before.scale > outcome.scale or before.n > outcome.n:
        raise InputError(
            f"{path} has {_size_text(before)}, and what is to be kept now {_size_text(outcome)}: give "
            f"another --results, or "
            "remove that file."
        )


def _size_text(outcome: Outcome) -> str:
    return f"{outcome.n[0]} seeds at {outcome.scale:.3g} of all environment steps"


def _keep_behaviour(folders: Mapping[str, StudyFolder], file: Path) -> list[Path]:
    measured = behaviour.measure(folders)
    if not measured:
        return []
    before = behaviour.read(file) if file.exists() else {}
    behaviour.save({**before, **measured}, file)
    return [file]
