"""What an install without extras has to do, and to say where an extra is missing, as a program without pytest.

'./check light' runs it where nothing else is installed; `tests/test_extras.py` runs it with what extras bring blocked.
"""

import contextlib
import io
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HEAVY = ("jax", "jaxlib", "pyarrow", "scipy", "matplotlib", "safetensors", "rich")
"""What extras bring."""
ZOO = "ReacherBulletEnv-v0:\n  n_steps: 512\n  batch_size: 64\n  gamma: 0.99\n  gae_lambda: 0.9\n"
TUNED = '[tuned.ppo]\ndt = "16ms"\nbatch = 4000\n'


def commands() -> None:
    with TemporaryDirectory() as folder:
        zoo, tuned = Path(folder, "ppo.yml"), Path(folder, "tuned.toml")
        zoo.write_text(ZOO)
        tuned.write_text(TUNED)
        holds = {
            "--version": "cycletime ",
            "--help": "transfer",
            "train --help": "--env-steps",
            "study run --help": "--workers",
            "robot simulate --help": "--pace",
            "transfer ppo --from 40ms --to 10ms --batch 400 --for stable-baselines3": "n_steps = 1600",
            "transfer sac --from 40ms --to 10ms --json": '"algorithm": "sac"',
            f"transfer ppo --tuned {tuned} --to 8ms": "8000",
            f"transfer {zoo} --env ReacherBulletEnv-v0 --from 16ms --to 4ms --as yaml": "batch_size: 256",
        }
        for line, part in holds.items():
            status, out, err = run(line)
            assert status == 0, f"{line}: {err}"
            assert part in out, f"{line}: {out}"


def wrappers() -> None:
    import gymnasium
    import numpy as np

    import cycletime
    from cycletime.tasks import ActionDelay, ObservationDelay, RealTime
    from cycletime.tasks.retime import retime

    held = cycletime.CycleTime(ActionDelay(gymnasium.make("Pendulum-v1"), "50ms"), "0.1s")
    held.reset(seed=0)
    assert held.step(np.zeros(1, np.float32))[4]["env_steps"] == held.cycle_steps == 2
    hold = partial(cycletime.CycleTime, dt="0.1s")
    copies: Any = gymnasium.make_vec("Pendulum-v1", 2, "sync", wrappers=[hold])
    copies.reset(seed=0)
    assert copies.step(np.zeros((2, 1), np.float32))[4]["env_steps"].tolist() == [2, 2]
    late = RealTime(ObservationDelay(gymnasium.make("Pendulum-v1"), "50ms"))
    late.reset(seed=0)
    assert retime("Pendulum-v1", "25ms").unwrapped.dt == 0.025  # type: ignore[attr-defined]


def refusals() -> None:
    import gymnasium

    import cycletime.tasks
    from cycletime.extras import install_command

    def missing(needs: str, extra: str) -> str:
        return f"{needs}, which is not installed: {install_command(extra)}."

    for line, says in {
        "train --task reacher --dt 16ms --env-steps 1e3 --out a": ("train needs JAX", "train"),
        "study run study.toml --out a": ("study needs JAX", "study"),
        "study report study": ("study needs rich", "study"),
    }.items():
        assert run(line) == (2, "", f"cycletime: cycletime {missing(*says)}\n"), run(line)
    for what, says in {
        lambda: cycletime.tasks.Reacher: ("cycletime.tasks.Reacher needs JAX", "train"),
        lambda: gymnasium.make("cycletime/Reacher-v0"): ("tasks.ClosedFormEnv needs JAX", "train"),
        lambda: gymnasium.make("cycletime/BulletReacher-v0"): ("tasks.bullet needs JAX", "train"),
        lambda: __import__("cycletime.agents"): ("cycletime.agents needs JAX", "train"),
        lambda: __import__("cycletime.statistics"): ("cycletime.statistics needs SciPy", "study"),
    }.items():
        assert refusal(what).endswith(missing(*says)), refusal(what)


def refusal(what: Callable[[], object]) -> str:
    from cycletime.errors import NotInstalledError

    try:
        what()
    except NotInstalledError as error:
        return str(error)
    return "not refused"


def run(line: str) -> tuple[object, str, str]:
    """The exit status of a command, and what it prints."""
    from cycletime.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status: object = main(line.split())
        except SystemExit as ended:
            status = ended.code
    out.seek(0)
    return status, out.read(), err.getvalue()


if __name__ == "__main__":
    commands()
    wrappers()
    refusals()
    assert not set(HEAVY) & set(sys.modules), set(HEAVY) & set(sys.modules)
