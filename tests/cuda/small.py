"""Small runs on the emulated kernel, and what they leave behind."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycletime.agents import PPOAgent
from cycletime.agents.networks import GaussianPolicy, Layer, Parameters, adam_start
from cycletime.agents.ppo import PPOState
from cycletime.cuda.device import DeviceRun, RunResult, Slice
from cycletime.cuda.layout import position_of, sizes_of
from cycletime.cuda.ppo import describe_run, initial_state_of
from cycletime.duration import Duration
from cycletime.training.spec import EngineSpec, RunSpec
from cycletime.training.worlds import ClosedFormWorld
from tests.cuda.device_checks.replay import last_batch
from tests.cuda.emulated import Emulated

CUDA = EngineSpec("cuda", "gpu")


def make_spec(
    task: str = "reacher",
    dt: str = "16ms",
    seed: int = 5,
    env_steps: int = 10**7,
    env_dt: str | None = None,
    **agent: Any,  # noqa: ANN401
) -> RunSpec:
    small = {"batch": 60, "minibatch": 20, "epochs": 2, **agent}
    world = ClosedFormWorld(task, **({"env_dt": Duration(env_dt)} if env_dt else {}))
    return RunSpec(world=world, agent=PPOAgent(**small), dt=dt, env_steps=env_steps, seed=seed, engine=CUDA)


def make_psi(actions: int, seed: int = 0, observations: int = 9) -> PPOState:
    """Weights that cost no compilation, with all layers about as large as they are once something was learned."""
    rng = np.random.default_rng(seed)

    def network(*sizes: int) -> tuple[Layer, ...]:
        pairs = pairwise(sizes)
        scaled = [(rng.normal(size=(n, m)) / np.sqrt(n), 0.1 * rng.normal(size=m)) for n, m in pairs]
        return tuple(Layer(weight.astype(np.float32), bias.astype(np.float32)) for weight, bias in scaled)  # type: ignore[arg-type]

    log_std = rng.uniform(-1, 0, actions).astype(np.float32)
    policy = GaussianPolicy(network(observations, 64, 64, actions), log_std)  # type: ignore[arg-type]
    parameters = Parameters(policy, network(observations, 64, 64, 1))
    return PPOState(parameters, adam_start(parameters))


@dataclass(frozen=True)
class Learned:
    """One run after some learnings in one launch."""

    spec: RunSpec
    run: Any
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    result: RunResult
    rows: NDArray[Any]
    """Of the last batch, with what follows it."""
    beside: NDArray[Any]

    @property
    def bits(self) -> tuple[bytes, ...]:
        """All that the run gave."""
        return tuple(each.tobytes() for each in (self.after, self.result.records, self.result.reports))


def make_slice(specs: list[RunSpec], states: list[NDArray[np.float32]], periods: int = 1) -> Slice:
    runs = [DeviceRun(describe_run(spec), state) for spec, state in zip(specs, states, strict=True)]
    return Slice(runs, 1000, 100, 1e6, periods)


def learn(device: Emulated, spec: RunSpec, state: NDArray[np.float32] | None = None, periods: int = 1) -> Learned:
    """Train a run for some learning periods."""
    run, (observations, actions) = describe_run(spec), sizes_of(spec)
    before = initial_state_of(make_psi(actions, observations=observations)) if state is None else state
    work = make_slice([spec], [before], periods)
    (result,) = device.train(work)
    rows, beside = last_batch(device, work)
    return Learned(spec, run, before, result.run.state, result, rows, beside)


def steps_of(state: NDArray[np.float32]) -> int:
    return int(position_of(state)["agent_steps"])
