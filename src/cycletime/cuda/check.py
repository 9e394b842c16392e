"""Whether the kernels work on the card that is here: they compile, and short runs are sound and always the same.

tests/cuda/device_checks hold a card to float64 replays, the tasks in JAX and the compiled loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jax
import numpy as np

from cycletime.agents import PPOAgent, SACAgent
from cycletime.cuda.device import Device, find_device
from cycletime.cuda.layout import TASKS
from cycletime.cuda.run_batch import KERNELS, CudaRunBatch
from cycletime.training.engine import Chunk
from cycletime.training.learning_curve import Episodes
from cycletime.training.machine import prepare_jax
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld

_AGENTS = (PPOAgent(batch=500, minibatch=50), SACAgent(warmup_steps=0))
_AGENT_STEPS = 2000


def print_checks() -> int:
    """Check both kernels, print what is wrong with each run, and return the exit status."""
    prepare_jax("cpu")
    verdicts = []
    for agent in _AGENTS:
        specs = [short_run(task, agent, _AGENT_STEPS) for task in TASKS]
        device = find_device(KERNELS[specs[0].algorithm])
        print(device.card.name, *(f"{name}: {value}" for name, value in device.card.about.items()), sep="\n  ")
        for spec, fault in zip(specs, faults(device, specs), strict=True):
            print(f"{'FAILED' if fault else 'ok':>6}  {spec.label}{fault and f': {fault}'}", flush=True)
            verdicts.append(not fault)
    failed = verdicts.count(False)
    print(
        f"{failed} of {len(verdicts)} runs failed: do not use the engine cuda on this card."
        if failed
        else f"All {len(verdicts)} runs are finite, and the same in reverse order."
    )
    return 1 if failed else 0


def short_run(task: str, agent: PPOAgent | SACAgent, agent_steps: int) -> RunSpec:
    world, engine = ClosedFormWorld(task), EngineSpec("cuda", "gpu")
    return RunSpec(world=world, agent=agent, dt=4 * world.env_dt, env_steps=4 * agent_steps, seed=1, engine=engine)


def faults(device: Device, specs: Sequence[RunSpec]) -> Iterator[str]:
    """What is wrong with each run, trained with the others in their order and in the reverse; empty where nothing."""
    once, again = _train(device, specs), _train(device, specs[::-1])[::-1]
    for one, other in zip(once, again, strict=True):
        if not all(np.isfinite(numbers).all() for numbers in one):
            yield "not all of its numbers are finite"
        else:
            same = all(np.array_equal(this, that) for this, that in zip(one, other, strict=True))
            yield "" if same else "its bits differ in the reverse order"


def _train(device: Device, specs: Sequence[RunSpec]) -> list[list[np.ndarray]]:
    curves = [[Episodes.none()] for _ in specs]
    learned: list[list[np.ndarray]] = [[] for _ in specs]
    for chunks in CudaRunBatch(specs, device).chunks(dict.fromkeys(range(len(specs)))):
        for run, chunk in chunks.items():
            assert isinstance(chunk, Chunk), "nothing is resumed"
            curves[run].append(chunk.episodes)
            if chunk.is_last:
                learned[run] = [np.asarray(leaf) for leaf in jax.tree.leaves(chunk.agent_state())]
    return [[*leaves, Episodes.joined(curve).returns] for leaves, curve in zip(learned, curves, strict=True)]
