"""`cycletime resume`: go on with runs that were stopped or killed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.running import Running, result_line, say, train_all
from cycletime.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Resume(Running):
    """Continue runs that were stopped or killed: cycletime resume runs/reacher-ppo-16ms-seed0-..."""

    folders: Annotated[Positional[tuple[Path, ...]], arg(metavar="RUN ...", help_behavior_hint="(required)")]
    """The runs' folders."""

    def run(self) -> int:
        """Train them to their ends."""
        from cycletime.cli.real_time import run_by_id
        from cycletime.engines.devices import use_device
        from cycletime.engines.registry import engine_of, is_on_a_robot
        from cycletime.runs.folder import RunFolder
        from cycletime.studies.store.folder import StudyFolder

        if not self.folders:
            raise InputError("There is nothing to resume: give the folder of a run.")
        if studies := {study for path in self.folders if (study := StudyFolder.of_run(path))}:
            if len(studies) > 1 or any(StudyFolder.of_run(path) is None for path in self.folders):
                raise InputError("Some of the runs are a study's: resume those of each study apart.")
            return self._resume_in(studies.pop())
        opened = [RunFolder.open(path) for path in self.folders]
        engines = {(engine_of(folder.spec).name, folder.spec.engine.device) for folder in opened}
        if len(engines) != 1:
            words = ", ".join(sorted(" on the ".join(each) for each in engines))
            raise InputError(f"The runs are for different engines or devices ({words}): resume them apart.")
        use_device(engine_of(opened[0].spec).jax_device(opened[0].spec))
        if is_on_a_robot(opened[0].spec):
            return next((status for folder in opened if (status := run_by_id(folder, self))), 0)
        return train_all(opened, self)

    def _resume_in(self, study: Path) -> int:
        """Go on with runs of a study, and put them into its store."""
        from cycletime.engines.progress import shown_together
        from cycletime.runs.stopping import stopping
        from cycletime.studies.running.single import finish_run
        from cycletime.studies.store.folder import StudyFolder

        folder = StudyFolder.open(study)
        with stopping() as stopper:
            for path in self.folders:
                with shown_together(path.name, 1, alike=True) as bars:
                    ended = finish_run(folder, path.name, self.beside(bars[0]), stopper, self.checkpoint_s)
                if ended == "stopped":
                    say(f"Stopped. To go on: cycletime resume {path}")
                    return stopper.status
                print(result_line(folder.store.result(path.name), path))
        return 0
