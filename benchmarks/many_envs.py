"""Many environments of a run: whether they learn as an independent PPO does, and how fast they are on one core.

    python benchmarks/many_envs.py --peers PYTHON [learning] [speed]            # about fifteen minutes

PYTHON is an interpreter that has the other libraries, as for `benchmarks/training.py`.

learning: PPO with 64 environments on the swing-up of Pendulum, ours beside rejax's, each with its own networks, random
numbers and gradients: the mean return of the policy with its noise over 128 episodes, at the same environment steps.
rejax's value loss is unclipped and its gradients are unlimited here, as ours are; ours normalises advantages over each
mini-batch, as rejax does, and begins with weights that are drawn as rejax's. The curves agree where at each mark the
99 % interval of the difference of the means over seeds (Welch) has 0 in it.

speed: our Reacher with 8 environments beside rejax with 8 copies and Stable-Baselines3 with 8 environments, one core
and one thread each, in turns; CPU seconds of 2000 agent steps and 400 gradient steps. The exit status tells whether
both hold.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
ENVS, BATCH, MINIBATCHES, EPOCHS = 64, 2048, 32, 10
RATE, DISCOUNT, TRACE_DECAY = 3e-4, 0.95, 0.95
SEEDS, MARKS, PERIODS_BETWEEN = 10, 10, 10
EPISODES, EPISODE_STEPS = 128, 200
SPEED_ENVS, TURNS = 8, 7
REJAX_GOAL, SB3_GOAL = 1.3, 8.0


def returns_of(act: Callable[[Any, Any], Any], key: Any) -> float:  # noqa: ANN401 - JAX's, of either version
    """The mean return of whole episodes on Pendulum at 50 ms; `act` takes one observation and a key."""
    import jax

    task = pendulum()
    states = jax.vmap(task.reset)(jax.random.split(key, EPISODES))

    def step(carry: Any, key: Any) -> tuple[Any, Any]:  # noqa: ANN401
        states, seen = carry
        actions = jax.vmap(act)(seen, jax.random.split(key, EPISODES))
        after = jax.vmap(lambda state, action: task.cycle(state, action, 1))(states, actions)
        return (after.state, after.observation), after.reward

    start = (states, jax.vmap(task.observe)(states))
    _, rewards = jax.lax.scan(step, start, jax.random.split(jax.random.fold_in(key, 1), EPISODE_STEPS))
    return rewards.sum(axis=0).mean()  # type: ignore[no-any-return]


def pendulum() -> Any:  # noqa: ANN401 - a task
    from cycletime.tasks import Pendulum

    return Pendulum(env_dt="50ms")  # type: ignore[arg-type]


def learn_ours() -> list[list[float]]:
    import jax

    from cycletime.agents import PPOAgent
    from cycletime.agents.networks import Layer, Parameters
    from cycletime.training.compiled_loop import CompiledLoop

    agent = PPOAgent(
        batch=BATCH,
        minibatches=MINIBATCHES,
        epochs=EPOCHS,
        discount=DISCOUNT,
        trace_decay=TRACE_DECAY,
        learning_rate=RATE,
        advantages="minibatch",
    )
    loop = CompiledLoop(task=pendulum(), agent=agent, dt="50ms", env_steps=10**9, num_envs=ENVS)

    @jax.jit
    def evaluate(psi: Any, key: Any) -> Any:  # noqa: ANN401
        return returns_of(lambda seen, key: agent.act(psi, seen, jax.random.normal(key, (1,))), key)

    def as_flax_begins(state: Any, seed: int) -> Any:  # noqa: ANN401
        """A run's state with first weights as rejax's networks draw them, and its Adam untouched."""
        draw, keys = jax.nn.initializers.lecun_normal(), iter(jax.random.split(jax.random.key(seed), 6))
        policy, value = state.psi.parameters
        networks = [
            tuple(Layer(draw(next(keys), weight.shape), 0 * bias) for weight, bias in network)
            for network in (policy.network, value)
        ]
        parameters = Parameters(policy._replace(network=networks[0]), networks[1])
        return state._replace(psi=state.psi._replace(parameters=parameters))

    curves = []
    for seed in range(SEEDS):
        position, curve = loop.start([seed]), list[float]()
        position = replace(position, state=as_flax_begins(position.state, seed))
        for mark in range(1, MARKS + 1):
            for chunk in loop.run([seed], position=position, until=mark * PERIODS_BETWEEN):
                position = chunk.position
            curve.append(float(evaluate(position.state.psi, jax.random.key(1000 + seed))))
        curves.append(curve)
    return curves


def learn_rejax() -> list[list[float]]:  # noqa: C901 - what rejax asks of an environment, small functions all
    import jax
    import jax.numpy as jnp
    import rejax  # type: ignore[import-not-found]
    from gymnax.environments.environment import Environment, EnvParams  # type: ignore[import-not-found]
    from gymnax.environments.spaces import Box  # type: ignore[import-not-found]

    task = pendulum()

    class Swing(Environment):  # type: ignore[misc]
        @property
        def default_params(self) -> Any:  # noqa: ANN401
            return EnvParams(max_steps_in_episode=EPISODE_STEPS)

        def step_env(self, key: Any, state: Any, action: Any, params: Any) -> tuple[Any, ...]:  # noqa: ANN401
            step = task.cycle(state, action, 1)
            return step.observation, step.state, step.reward, step.terminated | step.truncated, {}

        def reset_env(self, key: Any, params: Any) -> tuple[Any, Any]:  # noqa: ANN401
            state = task.reset(key)
            return task.observe(state), state

        def action_space(self, params: Any = None) -> Any:  # noqa: ANN401
            return Box(-jnp.inf, jnp.inf, (1,))

        def observation_space(self, params: Any) -> Any:  # noqa: ANN401
            return Box(-jnp.inf, jnp.inf, (3,))

    class UnclippedValue(rejax.PPO):  # type: ignore[misc]
        def update_critic(self, ts: Any, batch: Any) -> Any:  # noqa: ANN401
            def loss(params: Any) -> Any:  # noqa: ANN401
                return jnp.square(self.critic.apply(params, batch.trajectories.obs) - batch.targets).mean()

            return ts.replace(critic_ts=ts.critic_ts.apply_gradients(grads=jax.grad(loss)(ts.critic_ts.params)))

    ppo = UnclippedValue.create(
        env=Swing(),
        num_envs=ENVS,
        num_steps=BATCH // ENVS,
        num_minibatches=MINIBATCHES,
        num_epochs=EPOCHS,
        gamma=DISCOUNT,
        gae_lambda=TRACE_DECAY,
        learning_rate=RATE,
        ent_coef=0.0,
        max_grad_norm=1e9,
        agent_kwargs={"activation": "tanh"},
    )

    @jax.jit
    def advance(state: Any) -> Any:  # noqa: ANN401
        return jax.lax.scan(lambda now, _: (ppo.train_iteration(now), None), state, None, length=PERIODS_BETWEEN)[0]

    @jax.jit
    def evaluate(state: Any, key: Any) -> Any:  # noqa: ANN401
        act = ppo.make_act(state)
        return returns_of(lambda seen, key: act(seen, key).reshape(1), key)

    curves = []
    for seed in range(SEEDS):
        state, curve = ppo.init_state(jax.random.PRNGKey(seed)), list[float]()
        for _ in range(MARKS):
            state = advance(state)
            curve.append(float(evaluate(state, jax.random.key(1000 + seed))))
        curves.append(curve)
    return curves


def curves_of(party: str, python: str) -> NDArray[np.float64]:
    """[seeds, marks], trained in a process of its own."""
    words = [python, "-m", "benchmarks.many_envs", "--party", party]
    found = subprocess.run(words, cwd=ROOT, env=os.environ | _ONE_THREAD, check=True, capture_output=True, text=True)
    return np.array(json.loads(found.stdout.splitlines()[-1]))


_ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}


def compare_learning(peers: str) -> bool:
    from scipy import stats

    ours, theirs = curves_of("ours", sys.executable), curves_of("rejax", peers)
    print(
        f"PPO with {ENVS} environments on Pendulum at 50 ms, {SEEDS} seeds: mean return (standard deviation of seeds)"
    )
    print("agent steps   ours              rejax             difference, 99 % interval")
    agree = True
    for mark in range(MARKS):
        a, b = ours[:, mark], theirs[:, mark]
        low, high = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.99)
        agree &= bool(low <= 0 <= high)
        cells = (f"{each.mean():8.1f} ({each.std(ddof=1):6.1f})" for each in (a, b))
        steps = (mark + 1) * PERIODS_BETWEEN * BATCH
        print(f"{steps:>11,}   {'  '.join(cells)}  {a.mean() - b.mean():7.1f}, {low:.1f} to {high:.1f}")
    print(f"The curves {'agree' if agree else 'DIFFER'}.")
    return agree


def compare_speed(peers: str) -> bool:
    from benchmarks.training import Worker

    ours = Worker("ours", sys.executable, "benchmarks.peers.ours", "ppo", "16ms", str(SPEED_ENVS))
    alone = Worker("ours, 1 environment", sys.executable, "benchmarks.peers.ours", "ppo", "16ms")
    rejax = Worker("rejax", peers, "benchmarks.peers.with_rejax")
    sb3 = Worker("Stable-Baselines3", peers, "benchmarks.peers.with_sb3", "sb3", str(SPEED_ENVS))
    asked = [(ours, "periods"), (alone, "periods"), (rejax, "8 copies"), (sb3, "8 copies")]
    times: dict[str, list[float]] = {worker.name: [] for worker, _ in asked}
    for _ in range(TURNS):
        for worker, case in asked:
            times[worker.name].append(worker.ask(case))
    best = {name: min(each) for name, each in times.items()}
    print(f"PPO on Reacher at 16 ms, {SPEED_ENVS} environments: CPU ms of 2000 agent steps and 400 gradient steps")
    for name, each in times.items():
        print(f"{name:22} {1e3 * min(each):8.1f} best of {TURNS}, median {1e3 * median(each):8.1f}")
    print("versions: " + "; ".join(str(worker.facts.get("versions", worker.facts.get("jax"))) for worker, _ in asked))
    goals = {"rejax": REJAX_GOAL, "Stable-Baselines3": SB3_GOAL}
    for name, goal in goals.items():
        print(f"{best[name] / best['ours']:.2f} times as fast as {name} (goal {goal})")
    return all(best[name] / best["ours"] >= goal for name, goal in goals.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], "learning", "speed"], help="by default both")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--party", choices=("ours", "rejax"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.party:
        print(json.dumps(learn_ours() if options.party == "ours" else learn_rejax()))
        return 0
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    checks = {"learning": compare_learning, "speed": compare_speed}
    held = [check(options.peers) for part, check in checks.items() if part in options.parts or not options.parts]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
