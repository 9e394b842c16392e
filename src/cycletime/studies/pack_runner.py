"""Runs packed studies on the machine they were taken to: `cycletime study run` without the command line."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cycletime.errors import InputError, RunError
from cycletime.streams import lenient_streams
from cycletime.studies.events import WallTimeRecorder
from cycletime.studies.executors import make_executor
from cycletime.studies.progress import StudyProgress
from cycletime.studies.spec_file import study_from_table
from cycletime.studies.study_folder import StudyFolder, format_states
from cycletime.studies.worker_pool import run_study
from cycletime.training.process import stopping
from cycletime.training.run_recorder import SaveOptions


@lenient_streams()
def run_pack(
    manifest: Mapping[str, Any], out: Path, workers: int | None, *, episodes: bool, policies: bool, check: bool = False
) -> int:
    failed = False
    try:
        if check:
            from cycletime.cuda.check import print_checks

            return print_checks()
        with stopping() as stopper:
            for part in manifest["studies"]:
                keep = SaveOptions(part["keep"]["episodes"] or episodes, part["keep"]["policies"] or policies)
                folder = StudyFolder.create(out / part["folder"], study_from_table(part["study"]), keep=keep)
                executor = make_executor("local", folder.study.device, workers)
                counts = run_study(
                    folder,
                    executor,
                    observers=[WallTimeRecorder(folder.path), StudyProgress(executor.workers)],
                    stop=stopper,
                )
                print(f"{folder.study.name}: {format_states(counts)}", flush=True)
                failed |= bool(counts["failed"])
                if stopper():
                    print("Stopped: the same command goes on.")
                    return stopper.status
    except (InputError, RunError) as error:
        print(f"cycletime: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    return int(failed)
