"""Exports against the installed RLlib, which needs an environment of its own: its Gymnasium is older.

Run by './check rllib'. Ray is imported inside the tests, and fails if it is missing: nothing skips.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from math import ceil
from typing import Any

import pytest

from cycletime.libraries import LIBRARIES
from cycletime.libraries.off_policy import OffPolicyTable, ReplayRatio
from cycletime.libraries.parameters import ParamName
from cycletime.rules import PPO, SAC

pytestmark = pytest.mark.rllib

UNEVEN = PPO(dt="16ms", batch=50, minibatch=15, discount=0.97, trace_decay=0.9).at("8ms")
"""b = 100 and m = 30: three mini-batches and a tail of 10."""


@pytest.fixture(scope="module")
def ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))  # Ray keeps a token there, and results
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        module = import_module("ray")
        module.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield module
        module.shutdown()


def sac(updates_per_step: float = 1.0) -> SAC:
    sizes = {"minibatch": 8, "replay_capacity": 1000, "warmup_steps": 40, "action_size": 1}
    rates = {"discount": 0.95, "target_smoothing": 0.02, "target_entropy": -0.5}
    return SAC(dt="16ms", updates_per_step=updates_per_step, **sizes, **rates)  # type: ignore[arg-type]


def config(algorithm: str, n_envs: int = 4, **training: object) -> Any:  # noqa: ANN401 - an AlgorithmConfig
    made = getattr(import_module(f"ray.rllib.algorithms.{algorithm}"), f"{algorithm.upper()}Config")()
    made.environment("Pendulum-v1").env_runners(num_env_runners=0, num_envs_per_env_runner=n_envs)
    made.rl_module(model_config={"fcnet_hiddens": [8]})
    return made.training(**training)


def updates(algo: Any) -> int:  # noqa: ANN401 - an Algorithm
    optimizers = algo.learner_group._learner._named_optimizers.values()
    return int(max(state["step"] for optimizer in optimizers for state in optimizer.state.values()))


@pytest.mark.parametrize(("algorithm", "also"), [("ppo", ["learning-rate", "clip"]), ("sac", ["learning-rate"])])
def test_rates_start_from_rllib_s_own_and_are_taken(algorithm: str, also: list[str]) -> None:
    words = LIBRARIES["rllib"][algorithm].rates
    rates = [rate for rate in (words.learning_rate, words.clip) if rate is not None]
    own = config(algorithm)
    assert {word.name: getattr(own, word.name) for rate in rates for word in rate.words} == {
        word.name: word.default for rate in rates for word in rate.words
    }
    values = (PPO(dt="16ms") if algorithm == "ppo" else SAC(dt="16ms")).at("4ms", also=also).to("rllib")
    made = config(algorithm, **values.nested())
    made.validate()
    assert all(getattr(made, word.name) == values[word.name] for rate in rates for word in rate.words)


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_every_exported_name_is_taken_and_the_whole_is_valid(algorithm: str) -> None:
    values = (UNEVEN if algorithm == "ppo" else sac()).to("rllib", n_envs=4)
    made = config(algorithm, **values.nested())
    made.validate()
    for name, value in values.items():
        first, *rest = name.split(".")
        assert (getattr(made, first)[rest[0]] if rest else getattr(made, first)) == value


@pytest.mark.parametrize("algorithm", ["ppo", "sac"])
def test_every_default_is_rllib_s_own(algorithm: str) -> None:
    words, made = LIBRARIES["rllib"][algorithm], config(algorithm)
    said = [word for word in vars(words).values() if isinstance(word, ParamName) and word.default is not None]
    defaults = {word.name: word.default for word in said if "." not in word.name}
    assert words.discount.name in defaults
    assert defaults == {name: getattr(made, name) for name in defaults}
    if isinstance(words, OffPolicyTable):
        assert isinstance(words.updates, ReplayRatio)
        assert made.train_batch_size_per_learner == words.updates.default_minibatch


def test_the_replay_stays_of_the_kind_that_it_was() -> None:
    ours = config("sac", **sac().to("rllib", n_envs=4).nested()).replay_buffer_config
    assert ours == {**config("sac").replay_buffer_config, "capacity": 1000}


def test_rllib_refuses_a_minibatch_larger_than_the_batch() -> None:
    with pytest.raises(ValueError, match="minibatch_size"):
        config("ppo", train_batch_size_per_learner=100, minibatch_size=200).validate()


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_tail_is_filled_up_from_the_next_epoch(epochs: int) -> None:
    batches, samples = import_module("ray.rllib.utils.minibatch_utils"), import_module("ray.rllib.policy.sample_batch")
    rows = samples.SampleBatch({"a": import_module("numpy").arange(UNEVEN.batch)})
    batch = samples.MultiAgentBatch({"policy": rows}, UNEVEN.batch)
    parts = batches.MiniBatchCyclicIterator(batch, num_epochs=epochs, minibatch_size=UNEVEN.minibatch)
    sizes = [len(part["policy"]) for part in parts]
    assert sizes == [UNEVEN.minibatch] * ceil(epochs * UNEVEN.batch / UNEVEN.minibatch)
    assert any("filled up from the next epoch" in note for note in UNEVEN.to("rllib").notes)


def test_ppo_learns_from_our_batch(ray: Any) -> None:  # noqa: ANN401 - the module
    algo = config("ppo", num_epochs=3, **UNEVEN.to("rllib", n_envs=4).nested()).build_algo()
    algo.training_step()
    assert algo.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime")) == UNEVEN.batch
    # RLlib appends one masked sample to each environment's part for the value after it.
    assert updates(algo) == ceil(3 * (UNEVEN.batch + 4) / UNEVEN.minibatch)
    algo.stop()


def test_sac_makes_our_updates_per_step(ray: Any) -> None:  # noqa: ANN401 - the module
    algo = config("sac", **sac(0.5).to("rllib", n_envs=4).nested()).build_algo()
    for _ in range(20):
        algo.training_step()
    from_the_fortieth_sample = 80 - 40 + 4
    assert updates(algo) == 0.5 * from_the_fortieth_sample
    assert algo.local_replay_buffer.capacity == 1000
    algo.stop()


@pytest.mark.parametrize("n_envs", [1, 4])
@pytest.mark.parametrize("updates_per_step", [2, 1, 0.5, 0.125, 1.3, 0.4])
def test_sac_makes_the_updates_per_step_that_the_export_claims(n_envs: int, updates_per_step: float) -> None:
    values = sac(updates_per_step).to("rllib", n_envs=n_envs)
    weigh = import_module("ray.rllib.algorithms.dqn.dqn").calculate_rr_weights
    rounds_sampled, rounds_trained = weigh(config("sac", n_envs, **values.nested()))
    understood = SAC.from_("rllib", dt="16ms", n_envs=n_envs, action_size=1, **values)
    assert understood.updates_per_step == pytest.approx(rounds_trained / (rounds_sampled * n_envs))
    assert values.exact == (understood.updates_per_step == pytest.approx(updates_per_step))
