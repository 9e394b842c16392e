"""`cycletime.train`: trainings from Python, each kept in a folder that survives anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cycletime.engines.asking import specs_of
from cycletime.engines.devices import use_device
from cycletime.engines.progress import shown_together
from cycletime.engines.registry import engine_of
from cycletime.engines.training import CHECKPOINT_S, train_folders
from cycletime.runs.folder import RunFolder


def train(
    *,
    out: Path | str = "runs",
    progress: bool = True,
    stop: Callable[[], bool] = lambda: False,
    checkpoint_s: float = CHECKPOINT_S,
    **asked: Any,  # noqa: ANN401 - as `specs_of` has them
) -> tuple[RunFolder, ...]:
    """Train an agent on a task or an environment at a cycle time, with one seed or several.

    What was trained before is not trained again, and what was stopped or killed goes on where it was.

    Args:
        out: Where runs are kept, each in a folder of its own.
        progress: Whether to show how it goes, on standard error or in the notebook.
        stop: Asked about once a second; where it says yes, runs are saved and left for later.
        checkpoint_s: The seconds between two checkpoints, at least.
        asked: What to train, as in `cycletime.engines.asking.specs_of`: task or env, algorithm, dt, env_steps, seeds...

    Returns:
        The runs, one for each seed. `result()` tells the performance, `finished()` has the learning curve.

    Raises:
        InputError: if something of it makes no sense.
        RunError: if a run cannot go on.

    Example:
        >>> (run,) = train(task="reacher", dt="16ms", env_steps=4_000, values={"batch": 100}, out=out)
        >>> run.result()["env_steps"]
        4000
    """
    specs = specs_of(**asked)
    engine = engine_of(specs[0])
    use_device(engine.jax_device(specs[0]))
    folders = [RunFolder.create(Path(out), spec) for spec in specs]
    size, left = engine.together(specs[0]), folders
    while left and not stop():
        now, left = left[:size], left[size:]
        with shown_together(now[0].spec.label, len(now), alike=True) as bars:
            listeners = [[bar] for bar in bars] if progress else ()
            ends = train_folders(now, listeners=listeners, stop=stop, checkpoint_s=checkpoint_s)
        for ended in ends:
            if isinstance(ended, Exception):
                raise ended
    return tuple(folders)
