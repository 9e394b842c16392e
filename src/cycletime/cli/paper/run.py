"""`cycletime paper run`: run what is not done yet of the paper's experiments."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cycletime.cli.executing import Executing
from cycletime.cli.paper.options import Chosen

if TYPE_CHECKING:
    from cycletime.studies.store.folder import State


@dataclass(frozen=True, kw_only=True)
class RunPaper(Executing, Chosen):
    """Run experiments of the paper, or continue them: what is done already is not run again."""

    device: Literal["cpu", "gpu"] = "cpu"
    """Where they are computed."""

    def run(self) -> int:
        """Run what is left; status 1 if some runs failed."""
        from cycletime.cli.running import say
        from cycletime.paper.running import run_experiment
        from cycletime.runs.stopping import stopping
        from cycletime.studies.running.progress import StudyProgress

        chosen, workspace = self.experiments, self.workspace(self.device, change_engine=self.change_engine)
        all_done = True
        with stopping() as stopper:
            for experiment in chosen:
                all_done &= run_experiment(
                    experiment,
                    workspace,
                    lambda: self.executor_for(self.device),
                    watcher=lambda executor: StudyProgress(executor.workers),
                    tell=self._print,
                    stop=stopper,
                )
                if stopper():
                    say("Stopped. The same command goes on with it.")
                    return stopper.status
        print(f"To keep what came of it: cycletime paper collect {self.out}")
        return 0 if all_done else 1

    def _print(self, study: str, counts: Counter[State]) -> None:
        from cycletime.paper.experiments import scaled_down
        from cycletime.studies.store.folder import states_in_words

        print(f"{study}{scaled_down(self.scale)}: {states_in_words(counts)}", flush=True)
        if counts["failed"]:
            print(f"  'cycletime study status {self.out / study}' says why, and 'study retry' has them tried again")
