"""How long SAC's kernel takes for an update, and whether it learns as the compiled loop does.

    PYTHONPATH=src:. python benchmarks/sac_kernel.py           # speed and parity: about three minutes on an H200
    PYTHONPATH=src:. python benchmarks/sac_kernel.py speed     # one of them
    PYTHONPATH=src:. python benchmarks/sac_kernel.py speed --shared-memory 99KB  # the kernel's form for a smaller card
    PYTHONPATH=src:. python benchmarks/sac_kernel.py forms     # all forms, side by side
    PYTHONPATH=src:. compute-sanitizer --tool racecheck python benchmarks/sac_kernel.py brief  # or memcheck, synccheck

Reacher at 16 ms with the paper's values. 'Average' is the mean over 100 bins of environment steps of the mean episodic
return, with its standard error over seeds. Needs Python, NumPy, JAX, CuPy and a GPU. Compilation is not counted. The
exit status says whether the goals were reached.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

import jax
import numpy as np
from numpy.typing import NDArray

from cycletime.agents import SACAgent
from cycletime.cuda.card import Card
from cycletime.cuda.device import Device, Slice
from cycletime.cuda.kernels import FORMS, SAC
from cycletime.cuda.layout import POSITION_WORDS, TASKS
from cycletime.cuda.run_batch import CudaRunBatch
from cycletime.cuda.sac import SAC_KERNEL
from cycletime.tasks import Reacher
from cycletime.training.compiled_loop import CompiledLoop
from cycletime.training.engine import Chunk
from cycletime.training.learning_curve import Episodes
from cycletime.training.machine import code_version
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.cuda.device_checks.limits import limited_device, shared_bytes_of
from tests.cuda.device_checks.sac_checks import begin

DISCOUNT = 0.99**16
"""The best of the paper's sweep at 16 ms."""
ENV_STEPS, SEEDS, UPDATES = 500_000, 60, 2000
MOST_US, MOST_ERRORS = 6.0, 2.0
"""Of the form for the largest cards."""


def spec_of(seed: int, env_steps: int = ENV_STEPS, task: str = "reacher", dt: str = "16ms", **others: int) -> RunSpec:
    """A run on the kernel."""
    agent, engine = SACAgent(discount=DISCOUNT, **others), EngineSpec("cuda", "gpu")  # type: ignore[arg-type]
    return RunSpec(world=ClosedFormWorld(task), agent=agent, dt=dt, env_steps=env_steps, seed=seed, engine=engine)


def update_us(device: Device, count: int, task: str = "reacher", dt: str = "16ms") -> float:
    """Microseconds per update and run of so many runs side by side, with all that an agent step takes."""
    runs = [begin(device, spec_of(seed, 10**7, task, dt)) for seed in range(count)]
    device.train(Slice(runs, 64, 64, 3600.0, most_periods=300))  # until they learn
    start = time.perf_counter()
    device.train(Slice(runs, UPDATES, UPDATES, 3600.0, most_periods=UPDATES))
    return 1e6 * (time.perf_counter() - start) / UPDATES / count


def speed(limit: str | None) -> bool:
    """Print how long an update takes."""
    device = limited_device(SAC_KERNEL, limit)
    blocks = device.card.blocks
    print(f"{device.card.name}, {device.card.about['shared memory']}: microseconds per update and run")
    for runs in (1, blocks // 4, blocks // 2, blocks):
        print(f"  reacher, 16ms, {runs:4d} runs side by side {update_us(device, runs):8.2f}", flush=True)
    found = update_us(device, blocks)
    for task, dt in (("reacher", "4ms"), ("reacher", "64ms"), ("double-pendulum", "4ms"), ("double-pendulum", "64ms")):
        print(f"  {task}, {dt}, {blocks:4d} runs side by side {update_us(device, blocks, task, dt):8.2f}", flush=True)
    print(f"  goal: at most {MOST_US:g} at {blocks} runs, again {found:.2f}: {'PASS' if found <= MOST_US else 'MISS'}")
    return found <= MOST_US


def forms(limit: str | None) -> bool:
    """Print how long an update takes with each form that may be taken, twice."""
    for form in FORMS[SAC]:
        if limit is None or form.shared_bytes <= shared_bytes_of(limit):
            device = Device(SAC_KERNEL, Card(SAC, form))
            blocks = device.card.blocks
            found = ", ".join(f"{update_us(device, blocks):.2f}" for _ in range(2))
            print(
                f"{form.shared_bytes:,} bytes, {form.about}: {found} us per update and run, {blocks} runs", flush=True
            )
    return True


def brief(limit: str | None) -> bool:
    """A few updates on each task, for tools that make the kernel a thousand times slower."""
    device = limited_device(SAC_KERNEL, limit)
    specs = [spec_of(1, 10**6, task, "500ms", warmup_steps=256) for task in TASKS]
    runs = [begin(device, spec) for spec in specs]
    for periods in (258, 5):  # until they learn, and from there
        device.train(Slice(runs, 64, 64, 3600.0, most_periods=periods))
    finite = all(np.isfinite(device.state(run)[POSITION_WORDS:]).all() for run in runs)
    told = "numbers" if finite else "NOT numbers"
    print(f"brief, {device.card.about['shared memory']}: {len(runs)} runs, all of them {told}")
    return finite


def kernel_scores(limit: str | None) -> NDArray[np.float64]:
    """[seeds, 2] average return over learning, and over its last tenth, on the kernel."""
    parts: list[list[Episodes]] = [[] for _ in range(SEEDS)]
    group = CudaRunBatch([spec_of(seed) for seed in range(SEEDS)], limited_device(SAC_KERNEL, limit))
    for chunks in group.chunks(dict.fromkeys(range(SEEDS))):
        for run, chunk in chunks.items():
            assert isinstance(chunk, Chunk), "nothing is resumed"
            parts[run].append(chunk.episodes)
    return _scores(parts)


def compiled_scores() -> NDArray[np.float64]:
    """The same in the compiled loop, in TF32."""
    agent = SACAgent(discount=DISCOUNT)
    loop = CompiledLoop(task=Reacher(), agent=agent, dt="16ms", env_steps=ENV_STEPS, width=SEEDS)
    parts: list[list[Episodes]] = [[] for _ in range(SEEDS)]
    for chunk in loop.run(list(range(SEEDS))):
        for run, episodes in zip(parts, chunk.episodes, strict=True):
            run.append(episodes)
    return _scores(parts)


def _scores(parts: list[list[Episodes]]) -> NDArray[np.float64]:
    bins = np.array([Episodes.joined(run).binned(ENV_STEPS) for run in parts])
    return np.stack([bins.mean(1), bins[:, -10:].mean(1)], axis=1)


def parity(limit: str | None) -> bool:
    """Print whether both engines learn alike."""
    print(f"{SEEDS} seeds, discount {DISCOUNT:.4f}, {ENV_STEPS:,} environment steps: average, last tenth, seconds")
    told = {}
    for name, train in (("kernel", partial(kernel_scores, limit)), ("compiled, TF32", compiled_scores)):
        start = time.perf_counter()
        told[name] = scores = train()
        error = scores.std(0, ddof=1) / len(scores) ** 0.5
        words = "  ".join(f"{mean:6.2f} +- {each:.2f}" for mean, each in zip(scores.mean(0), error, strict=True))
        print(f"  {name:16s} {words}  {time.perf_counter() - start:6.0f}", flush=True)
    one, other = told.values()
    error = np.sqrt(one.var(0, ddof=1) / len(one) + other.var(0, ddof=1) / len(other))
    apart = np.abs(one.mean(0) - other.mean(0)) / error
    print(f"  {apart[0]:.1f} and {apart[1]:.1f} standard errors apart, at most {MOST_ERRORS:g}")
    return bool((apart <= MOST_ERRORS).all())


USUAL: dict[str, Callable[[str | None], bool]] = {"speed": speed, "parity": parity}
PARTS = {**USUAL, "forms": forms, "brief": brief}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], help="by default speed and parity")
    parser.add_argument("--shared-memory", help="what a thread block may take at most, such as 99KB")
    given = parser.parse_args()
    print(f"jax {jax.__version__}, code {code_version()}", flush=True)
    reached = [PARTS[name](given.shared_memory) for name in given.parts or USUAL]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
