"""Real workers that take their time on any machine, so that there is something to kill."""

import os
from pathlib import Path

SITE = """
# Read by each process of Python's: chunks are as short as can be and checkpoints frequent, and each training is logged.
import os, sys, time
if any("cycletime.studies.worker" in word for word in sys.orig_argv):
    import cycletime.training.trainer as training
    import cycletime.training.compiled_loop as compiled
    compiled.CHUNK_S, training.MOST_TIME_SAVING = 0.0, 1.0
    really = training.train_batch
    def train(trainees, shelf, *, stop):
        with open(os.environ["TRAININGS"], "a") as log:
            log.writelines(trainee.folder.spec.name + "\\n" for trainee in trainees)
        slowly = lambda: time.sleep(float(os.environ["CHUNK_S"])) or stop()
        return really(trainees, shelf, stop=slowly, checkpoint_s=0.1)
    training.train_batch = train
"""


def slow_workers(folder: Path, chunk_s: float) -> dict[str, str]:
    """The environment of a command whose workers sleep with each chunk, a learning period, and log their trainings."""
    site = folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    log = {"TRAININGS": str(folder / "trainings"), "CHUNK_S": str(chunk_s)}
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **log}
