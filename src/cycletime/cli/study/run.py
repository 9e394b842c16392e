"""`cycletime study run`: run what is not done yet of a study."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cycletime.cli.executing import Executing


@dataclass(frozen=True, kw_only=True)
class RunStudy(Executing):
    """Run a study, or continue it: what is done already is not run again."""

    file: Annotated[Positional[Path], arg(metavar="FILE")]
    """The study, a TOML file."""
    out: Annotated[Path, arg(metavar="FOLDER")]
    """Where the study is kept."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.cli.running import say
        from cycletime.runs.stopping import stopping
        from cycletime.studies.running.progress import StudyProgress
        from cycletime.studies.running.running import run_study
        from cycletime.studies.spec.file import read_study
        from cycletime.studies.store.folder import StudyFolder, states_in_words

        study = read_study(self.file)
        executor = self.executor_for(study.device)
        folder = StudyFolder.create(self.out, study, change_engine=self.change_engine)
        for told in folder.damage():
            say(told)
        with stopping() as stopper:
            watcher = StudyProgress(executor.workers)
            counts = run_study(folder, executor, watcher=watcher, stop=stopper)
        print(f"{folder.study.name}: {states_in_words(counts)}")
        if stopper():
            say("Stopped. The same command goes on with it.")
            return stopper.status
        return 1 if counts["failed"] else 0
