"""Exports against the installed libraries: names are taken, defaults are theirs, and values mean what we say.

Run by './check libraries'. Libraries are imported inside the tests, and one that is missing fails: nothing skips.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from importlib import import_module
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from cycletime.libraries import LIBRARIES
from cycletime.libraries.parameters import ParamName
from cycletime.rules import PPO, SAC

pytestmark = pytest.mark.libraries

COVERED = {"stable-baselines3", "sbx", "rejax", "skrl", "torchrl", "tianshou", "rsl-rl", "brax"}
MODULES = {"stable-baselines3": "stable_baselines3", "sbx": "sbx"}
SB3_AND_SBX = pytest.mark.parametrize("library", MODULES)
TIANSHOU = "tianshou.highlevel"

HOMES: dict[tuple[str, str], dict[str, str]] = {
    **{(library, it): {"*": f"{MODULES[library]}:{it.upper()}"} for library in MODULES for it in ("ppo", "sac")},
    **{("rejax", it): {"*": f"rejax:{it.upper()}"} for it in ("ppo", "sac")},
    **{("brax", it): {"*": f"brax.training.agents.{it}.train:train"} for it in ("ppo", "sac")},
    ("skrl", "ppo"): {"*": "skrl.agents.torch.ppo:PPO_CFG"},
    ("skrl", "sac"): {"memory_size": "skrl.memories.torch:RandomMemory", "*": "skrl.agents.torch.sac:SAC_CFG"},
    ("rsl-rl", "ppo"): {
        "num_steps_per_env": "rsl_rl.storage:RolloutStorage:num_transitions_per_env",
        "*": "rsl_rl.algorithms:PPO",
    },
    # TorchRL's names are those of its scripts' configuration, which is not in the package: here is what they feed.
    ("torchrl", "ppo"): {
        "env.num_envs": "torchrl.envs:SerialEnv:num_workers",
        "collector.frames_per_batch": "torchrl.collectors:Collector",
        "loss.mini_batch_size": "torchrl.data:ReplayBuffer:batch_size",
        "loss.gamma": "torchrl.objectives.value:GAE",
        "loss.gae_lambda": "torchrl.objectives.value:GAE:lmbda",
    },
    ("torchrl", "sac"): {
        "optim.gamma": "torchrl.objectives.value:TD0Estimator",
        "optim.target_update_polyak": "torchrl.objectives:SoftUpdate:eps",
        "replay_buffer.size": "torchrl.data:LazyTensorStorage:max_size",
        "optim.batch_size": "torchrl.data:ReplayBuffer",
        "collector.init_random_frames": "torchrl.collectors:Collector",
        "collector.frames_per_batch": "torchrl.collectors:Collector",
        "optim.utd_ratio": "",  # multiplied with frames_per_batch by the script itself
    },
    ("tianshou", "ppo"): {
        **dict.fromkeys(("gamma", "gae_lambda"), f"{TIANSHOU}.params.algorithm_params:PPOParams"),
        "*": f"{TIANSHOU}.config:OnPolicyTrainingConfig",
    },
    ("tianshou", "sac"): {
        **dict.fromkeys(("gamma", "tau"), f"{TIANSHOU}.params.algorithm_params:SACParams"),
        "target_entropy_coefficient": f"{TIANSHOU}.params.alpha:AutoAlphaFactoryDefault",
        "*": f"{TIANSHOU}.config:OffPolicyTrainingConfig",
    },
}
"""Who takes each exported name, as 'module:object' or 'module:object:parameter'; '*' stands for all other names."""

CASES = pytest.mark.parametrize(("library", "algorithm"), HOMES)
UNEVEN = PPO(dt="16ms", batch=50, minibatch=15, discount=0.97, trace_decay=0.9).at("8ms")
"""b = 100 and m = 30: three mini-batches and a tail of 10."""


def the(path: str) -> Any:  # noqa: ANN401 - whatever the library has there
    module, name = path.split(":")[:2]
    return getattr(import_module(module), name)


def sac(updates_per_step: float = 1.0) -> SAC:
    sizes = {"minibatch": 8, "replay_capacity": 1000, "warmup_steps": 40, "action_size": 1}
    rates = {"discount": 0.95, "target_smoothing": 0.02, "target_entropy": -0.5}
    return SAC(dt="16ms", updates_per_step=updates_per_step, **sizes, **rates)  # type: ignore[arg-type]


def home(library: str, algorithm: str, name: str) -> str:
    homes = HOMES[library, algorithm]
    return homes[name] if name in homes else homes["*"]


def default(library: str, algorithm: str, name: str) -> object:
    path = home(library, algorithm, name)
    taker = the(path)
    parameters = inspect.signature(taker.__init__ if inspect.isclass(taker) else taker).parameters
    own_name = path.split(":")[2] if path.count(":") == 2 else name.split(".")[-1]
    assert own_name in parameters, f"{path} does not take {own_name}"
    return None if (own := parameters[own_name].default) is inspect.Parameter.empty else own


def steps_of(optimizer: Any) -> int:  # noqa: ANN401 - a torch.optim.Optimizer
    return int(max(state["step"] for state in optimizer.state.values()))


def numbers(array: Any) -> Any:  # noqa: ANN401 - from PyTorch or JAX to NumPy
    return the("numpy:asarray")(array.detach() if hasattr(array, "detach") else array)


def assert_moved(targets: Iterable[Any], critics: Iterable[Any], by: float) -> None:
    """Targets that were set to zero have gone this fraction of the way to the critics, parameter by parameter."""
    for target, critic in zip(map(numbers, targets), map(numbers, critics), strict=True):
        assert target == pytest.approx(by * critic, rel=1e-3, abs=1e-7)


def test_every_library_of_the_list_is_covered_with_all_that_it_has() -> None:
    assert {library for library, _ in HOMES} == COVERED
    both = [(library, algorithm) for library in COVERED for algorithm in ("ppo", "sac")]
    assert set(HOMES) == {(library, it) for library, it in both if it in LIBRARIES[library]}


@CASES
def test_every_exported_name_is_taken_and_every_default_is_the_library_s_own(library: str, algorithm: str) -> None:
    values = (UNEVEN if algorithm == "ppo" else sac()).to(library, n_envs=4)
    taken = {name: default(library, algorithm, name) for name in values if home(library, algorithm, name)}
    table = vars(LIBRARIES[library][algorithm])
    fields = {"discount", "n_envs"} if algorithm == "sac" else table.keys() - {"buffer"}
    words = [word for field, word in table.items() if field in fields and isinstance(word, ParamName)]
    assert {word.name for word in words} <= set(taken)
    for word in words if library != "torchrl" else ():  # TorchRL's defaults are not in the package either
        assert taken[word.name] == word.default, word.name


def sb3_like(library: str, algorithm: str, n_envs: int = 4, **settings: object) -> Any:  # noqa: ANN401 - its model
    envs = the("stable_baselines3.common.env_util:make_vec_env")("Pendulum-v1", n_envs)
    return the(f"{MODULES[library]}:{algorithm}")("MlpPolicy", envs, policy_kwargs={"net_arch": [8]}, **settings)


@SB3_AND_SBX
def test_sb3_and_sbx_ppo_take_a_short_last_minibatch(library: str) -> None:
    with pytest.warns(UserWarning, match="truncated mini-batch of size 10"):
        model = sb3_like(library, "PPO", n_epochs=2, **UNEVEN.to(library, n_envs=4)).learn(300)
    assert (model.num_timesteps, model.rollout_buffer.buffer_size * model.n_envs) == (300, UNEVEN.batch)
    assert (model.gamma, model.rollout_buffer.gae_lambda) == (UNEVEN.discount, UNEVEN.trace_decay)
    assert [len(part.actions) for part in model.rollout_buffer.get(model.batch_size)] == [30, 30, 30, 10]
    updates = model.policy.actor_state.step if library == "sbx" else steps_of(model.policy.optimizer)
    assert updates == 3 * 2 * UNEVEN.minibatches


@SB3_AND_SBX
def test_sb3_and_sbx_refuse_a_minibatch_of_one_so_we_export_two(library: str) -> None:
    with pytest.raises(AssertionError, match="batch_size"):
        sb3_like(library, "PPO", n_steps=8, batch_size=1)
    assert sb3_like(library, "PPO", n_envs=1, **PPO(dt="16ms", batch=1, minibatch=1).to(library)).batch_size == 2


@SB3_AND_SBX
@pytest.mark.parametrize("updates_per_step", [1, 0.5, 0.125])
def test_sb3_and_sbx_sac_make_our_updates_per_step(library: str, updates_per_step: float) -> None:
    model = sb3_like(library, "SAC", **sac(updates_per_step).to(library, n_envs=4)).learn(120)
    assert (model.num_timesteps, model._n_updates) == (120, updates_per_step * (120 - 40))
    assert (model.replay_buffer.buffer_size * model.n_envs, model.batch_size) == (1000, 8)
    assert (model.gamma, model.target_entropy) == (0.95, -0.5)
    own = inspect.signature(type(model)).parameters
    assert [own[name].default for name in ("gradient_steps", "train_freq")] == [1, 1]  # as our reading assumes


def test_sb3_sac_moves_its_target_by_tau_at_each_update() -> None:
    model = sb3_like("stable-baselines3", "SAC", learning_rate=0.0, **sac().to("stable-baselines3", n_envs=4)).learn(40)
    model.critic_target.load_state_dict({name: 0 * value for name, value in model.critic.state_dict().items()})
    model.train(gradient_steps=2, batch_size=8)
    assert_moved(model.critic_target.parameters(), model.critic.parameters(), by=1 - 0.98**2)


def test_sbx_sac_moves_its_target_by_tau_at_each_update() -> None:
    tree = import_module("jax.tree")
    model = sb3_like("sbx", "SAC", learning_rate=0.0, **sac().to("sbx", n_envs=4)).learn(40)
    critic = model.policy.qf_state
    model.policy.qf_state = critic.replace(target_params=tree.map(lambda values: 0 * values, critic.params))
    model.train(gradient_steps=2, batch_size=8)
    assert_moved(tree.leaves(model.policy.qf_state.target_params), tree.leaves(critic.params), by=1 - 0.98**2)


def rejax_like(algorithm: str, timesteps: int, **settings: object) -> Any:  # noqa: ANN401 - its algorithm
    once = {"total_timesteps": timesteps, "eval_freq": timesteps, "skip_initial_evaluation": True}
    return the(f"rejax:{algorithm}").create(env="Pendulum-v1", **once, **settings).replace(eval_callback=lambda *_: 0)


def test_rejax_ppo_has_our_batch_and_whole_minibatches() -> None:
    jax, values = import_module("jax"), UNEVEN.to("rejax", n_envs=4)
    algorithm = rejax_like("PPO", 192, num_epochs=2, **values)
    understood = PPO.from_("rejax", dt="8ms", **values)
    assert (algorithm.iteration_size, algorithm.minibatch_size) == (understood.batch, understood.minibatch) == (96, 32)
    state, _ = jax.jit(algorithm.train)(jax.random.PRNGKey(0))
    assert (state.global_step, state.actor_ts.step) == (2 * 96, 2 * 2 * 3)
    with pytest.raises(AssertionError):
        _ = rejax_like("PPO", 100, **{**values, "num_steps": 25}).minibatch_size


@pytest.mark.parametrize("updates_per_step", [0.25, 1])
def test_rejax_sac_makes_our_updates_per_step_and_as_many_steps_of_its_target(updates_per_step: float) -> None:
    jax, values = import_module("jax"), sac(updates_per_step).to("rejax", n_envs=4)
    algorithm = rejax_like("SAC", 120, learning_rate=0.0, **values)
    state, step = algorithm.init_state(jax.random.PRNGKey(0)), jax.jit(algorithm.train_iteration)
    for _ in range(30):
        state = step(state)
    assert (state.global_step, state.critic_ts.step) == (120, updates_per_step * (120 - 40))
    state = step(state.replace(critic_target_params=jax.tree.map(lambda values: 0 * values, state.critic_ts.params)))
    # The target moves once per vector step, however many updates that has: the export must make up for it or say so.
    targets, critics, by = state.critic_target_params, state.critic_ts.params, 1 - values["polyak"]
    assert_moved(jax.tree.leaves(targets), jax.tree.leaves(critics), by)
    as_far_as_we_say = by == pytest.approx(1 - 0.98 ** int(4 * updates_per_step))
    assert as_far_as_we_say or any("target_smoothing" in note for note in values.notes), values.notes


def skrl_trained(kind: str, steps: int, memory_size: int, **settings: object) -> Any:  # noqa: ANN401 - its agent
    env = the("skrl.envs.wrappers.torch:wrap_env")(the("gymnasium:make_vec")("Pendulum-v1", 4), verbose=False)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space, "device": "cpu"}

    def network(kind: str, takes: str, gives: str) -> object:
        layers = [{"name": "net", "input": takes, "layers": [8], "activations": "relu"}]
        return the(f"skrl.utils.model_instantiators.torch:{kind}_model")(**spaces, network=layers, output=gives)

    critics = ["value"] if kind == "PPO" else ["critic_1", "critic_2", "target_critic_1", "target_critic_2"]
    judged = "OBSERVATIONS" if kind == "PPO" else "concatenate([OBSERVATIONS, ACTIONS])"
    models = {name: network("deterministic", judged, "ONE") for name in critics}
    models["policy"] = network("gaussian", "OBSERVATIONS", "ACTIONS")
    module, quiet = f"skrl.agents.torch.{kind.lower()}", {"write_interval": 0, "checkpoint_interval": 0}
    memory = the("skrl.memories.torch:RandomMemory")(memory_size=memory_size, num_envs=4)
    cfg = the(f"{module}:{kind}_CFG")(experiment=quiet, **settings)
    agent = the(f"{module}:{kind}")(models=models, memory=memory, cfg=cfg, **spaces)
    trainer = {"headless": True, "disable_progressbar": True, "close_environment_at_exit": False, "timesteps": steps}
    the("skrl.trainers.torch:SequentialTrainer")(cfg=trainer, env=env, agents=agent).train()
    return agent


def test_skrl_ppo_spreads_the_batch_over_its_minibatches() -> None:
    values = UNEVEN.to("skrl", n_envs=4)
    agent = skrl_trained("PPO", 50, memory_size=values["rollouts"], learning_epochs=2, **values)
    parts = agent.memory.sample(["actions"], batch_size=len(agent.memory), mini_batches=values["mini_batches"])
    assert [len(part[0]) for part in parts] == [34, 33, 33]
    assert steps_of(agent.optimizer) == 2 * 2 * 3
    assert any("spreads the 1 samples" in note for note in values.notes)


def test_skrl_sac_makes_our_updates_per_step_and_moves_its_target_by_tau_at_each() -> None:
    agent = skrl_trained("SAC", 30, learning_rate=0.0, **sac().to("skrl", n_envs=4))
    assert steps_of(agent.critic_optimizer) == 120 - 40
    assert (agent.memory.memory_size * agent.memory.num_envs, agent._target_entropy) == (1000, -0.5)
    agent.target_critic_1.load_state_dict({name: 0 * value for name, value in agent.critic_1.state_dict().items()})
    agent.update(timestep=30, timesteps=30)
    assert_moved(agent.target_critic_1.parameters(), agent.critic_1.parameters(), by=1 - 0.98**4)


@pytest.mark.parametrize(("asked", "collected"), [(100, 102), (102, 102)])
def test_torchrl_rounds_a_batch_up_to_whole_vector_steps_and_leaves_ours_alone(asked: int, collected: int) -> None:
    envs = the("torchrl.envs:SerialEnv")(3, partial(the("torchrl.envs:GymEnv"), "Pendulum-v1"))
    collector = the("torchrl.collectors:Collector")(envs, None, frames_per_batch=asked, total_frames=asked)
    assert [batch.numel() for batch in collector] == [collected]
    collector.shutdown()
    assert PPO(dt="16ms", batch=asked).to("torchrl", n_envs=3)["collector.frames_per_batch"] % 3 == 0


def test_torchrl_s_ppo_script_has_a_place_for_each_minibatch_of_our_export() -> None:
    values, tensordict = UNEVEN.to("torchrl", n_envs=4), the("tensordict:TensorDict")
    frames, size = values["collector.frames_per_batch"], values["loss.mini_batch_size"]
    sampler, storage = the("torchrl.data:SamplerWithoutReplacement")(), the("torchrl.data:LazyTensorStorage")(frames)
    buffer = the("torchrl.data:TensorDictReplayBuffer")(storage=storage, sampler=sampler, batch_size=size)
    buffer.extend(tensordict({"loss": import_module("torch").ones(frames)}, [frames]))
    # As sota-implementations/ppo/ppo_mujoco.py has it: places for whole mini-batches only.
    losses = tensordict(batch_size=[frames // size])
    for place, minibatch in enumerate(buffer):
        losses[place] = minibatch.select("loss").mean()


def test_torchrl_moves_its_target_by_tau() -> None:
    optim, nn = sac().to("torchrl", n_envs=4).nested()["optim"], import_module("tensordict.nn")
    network = the("torch.nn:Sequential")(the("torch.nn:Linear")(3, 2), nn.NormalParamExtractor())
    sample = {"distribution_class": the("torchrl.modules:TanhNormal"), "return_log_prob": True}
    actor = nn.ProbabilisticTensorDictSequential(
        nn.TensorDictModule(network, ["observation"], ["loc", "scale"]),
        nn.ProbabilisticTensorDictModule(["loc", "scale"], ["action"], **sample),
    )
    mlp = the("torchrl.modules:MLP")(in_features=4, out_features=1, num_cells=[8])
    critic = the("torchrl.modules:ValueOperator")(mlp, ["observation", "action"])
    loss = the("torchrl.objectives:SACLoss")(actor, critic, action_spec=the("torchrl.data:Bounded")(-1, 1, (1,)))
    loss.make_value_estimator(gamma=optim["gamma"])
    updater = the("torchrl.objectives:SoftUpdate")(loss, eps=optim["target_update_polyak"])
    loss.target_qvalue_network_params.data.zero_()
    updater.step()
    targets, critics = loss.target_qvalue_network_params.data, loss.qvalue_network_params.data
    assert_moved(targets.values(True, True), critics.values(True, True), by=0.02)


def tianshou_trained(kind: str, steps: int, values: Mapping[str, Any], **settings: object) -> Any:  # noqa: ANN401
    policy = "OnPolicyTrainingConfig" if kind == "PPO" else "OffPolicyTrainingConfig"
    with_critic = "with_critic_factory_default" if kind == "PPO" else "with_common_critic_factory_default"
    taken: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        taken.setdefault(home("tianshou", kind.lower(), name).split(":")[1], {})[name] = value
    config = {"max_epochs": 1, "epoch_num_steps": steps, "num_training_envs": 4, **settings, **taken.pop(policy)}
    params = the(f"{TIANSHOU}.params.algorithm_params:{kind}Params")(**taken.pop(f"{kind}Params"))
    for name, arguments in taken.items():
        params.alpha = the(f"{TIANSHOU}.params.alpha:{name}")(**arguments)
    in_one_process = the(f"{TIANSHOU}.env:VectorEnvType").DUMMY
    envs = the(f"{TIANSHOU}.env:EnvFactoryRegistered")(task="Pendulum-v1", venv_type=in_one_process)
    quiet = the(f"{TIANSHOU}.experiment:ExperimentConfig")(persistence_enabled=False, watch=False)
    training = the(f"{TIANSHOU}.config:{policy}")(**config)
    builder = the(f"{TIANSHOU}.experiment:{kind}ExperimentBuilder")(envs, quiet, training)
    with_params = getattr(builder, f"with_{kind.lower()}_params")(params)
    return getattr(with_params, with_critic)((8,)).build().run(run_name="test")


@pytest.mark.parametrize("steps", [98, 100])
def test_tianshou_ppo_rounds_up_to_whole_vector_steps_and_has_no_short_minibatch(steps: int) -> None:
    values = {**UNEVEN.to("tianshou", n_envs=4), "collection_step_num_env_steps": steps}
    result = tianshou_trained("PPO", 200, values, update_step_num_repetitions=2)
    assert (result.trainer_result.train_step, result.trainer_result.update_step) == (200, 2)
    assert steps_of(result.world.algorithm.optim._optim) == 2 * 2 * 3
    assert (result.world.algorithm.gamma, result.world.algorithm.gae_lambda) == (UNEVEN.discount, UNEVEN.trace_decay)


@pytest.mark.parametrize(("batch", "minibatch"), [(5000, 500), (8, 1)])
def test_tianshou_ppo_learns_from_all_of_a_large_batch_and_from_a_small_one(batch: int, minibatch: int) -> None:
    values = PPO(dt="16ms", batch=batch, minibatch=minibatch).to("tianshou", n_envs=4)
    understood = PPO.from_("tianshou", dt="16ms", n_envs=4, **values)
    result = tianshou_trained("PPO", batch, values)
    assert steps_of(result.world.algorithm.optim._optim) == understood.minibatches


def test_tianshou_sac_makes_our_updates_per_step_and_moves_its_target_by_tau() -> None:
    result = tianshou_trained("SAC", 80, sac(0.125).to("tianshou", n_envs=4))
    algorithm, buffer = result.world.algorithm, result.world.training_collector.buffer
    assert steps_of(algorithm.critic_optim._optim) == 0.125 * 80
    assert (len(buffer), buffer.maxsize) == (40 + 80, 1000)
    assert (algorithm.gamma, algorithm.alpha._target_entropy) == (0.95, -0.5)
    algorithm.critic_old.load_state_dict({name: 0 * value for name, value in algorithm.critic_old.state_dict().items()})
    algorithm._update_lagged_network_weights()
    assert_moved(algorithm.critic_old.parameters(), algorithm.critic.parameters(), by=0.02)


def test_rsl_rl_learns_from_whole_minibatches_and_drops_the_rest() -> None:
    torch, values = import_module("torch"), UNEVEN.to("rsl-rl", n_envs=4)
    env, nothing = SimpleNamespace(num_envs=4, num_actions=1, device="cpu", cfg={}), torch.zeros(4)
    env.get_observations = lambda: the("tensordict:TensorDict")({"policy": torch.randn(4, 3)}, [4])
    env.step = lambda _: (env.get_observations(), nothing, nothing.long(), {"time_outs": nothing})
    network = {"class_name": "MLPModel", "hidden_dims": [8], "activation": "elu"}
    actor = {**network, "distribution_cfg": {"class_name": "GaussianDistribution", "init_std": 1.0}}
    groups = {"actor": ["policy"], "critic": ["policy"]}
    cfg = {**values.nested(), "actor": actor, "critic": network, "obs_groups": groups}
    cfg["algorithm"] |= {"class_name": "PPO", "num_learning_epochs": 2}
    runner = the("rsl_rl.runners:OnPolicyRunner")(env, cfg)
    runner.learn(2)
    assert (runner.alg.gamma, runner.alg.lam) == (UNEVEN.discount, UNEVEN.trace_decay)
    assert runner.alg.storage.num_transitions_per_env * 4 == UNEVEN.batch
    assert [len(part.actions) for part in runner.alg.storage.mini_batch_generator(3, 1)] == [33, 33, 33]
    assert steps_of(runner.alg.optimizer) == 2 * 2 * 3
    assert any("drops the last 1 samples" in note for note in values.notes)


def brax_trained(kind: str, **settings: object) -> list[int]:
    steps: list[int] = []
    env = the("brax.envs:get_environment")("fast")  # has no physics: nothing to compile but the learner
    progress = {"num_evals": 1, "num_eval_envs": 1, "progress_fn": lambda step, _: steps.append(int(step))}
    the(f"brax.training.agents.{kind}.train:train")(environment=env, episode_length=20, **progress, **settings)
    import_module("jax").effects_barrier()
    return steps


def test_brax_ppo_makes_its_batch_of_whole_unrolls(monkeypatch: pytest.MonkeyPatch) -> None:
    callback, losses = the("jax.debug:callback"), import_module("brax.training.agents.ppo.losses")
    compute, updates = losses.compute_ppo_loss, list[tuple[int, ...]]()

    def watched(params: object, normalizer: object, data: Any, *rest: object, **settings: object) -> object:  # noqa: ANN401
        callback(lambda: updates.append(data.reward.shape))
        return compute(params, normalizer, data, *rest, **settings)

    monkeypatch.setattr(losses, "compute_ppo_loss", watched)
    ours = PPO(dt="16ms", batch=48, minibatch=24).at("8ms")
    values = ours.to("brax", n_envs=4)
    assert brax_trained("ppo", num_timesteps=1, num_updates_per_batch=2, **values)[-1] == ours.batch
    assert updates == [(values["batch_size"], values["unroll_length"])] * (2 * 2)
    assert values["batch_size"] * values["unroll_length"] == ours.minibatch
    with pytest.raises(AssertionError):
        brax_trained("ppo", num_timesteps=1, **{**values, "num_envs": 3})


def test_brax_sac_makes_our_updates_per_step_and_moves_its_target_by_tau(monkeypatch: pytest.MonkeyPatch) -> None:
    jax, losses = import_module("jax"), import_module("brax.training.agents.sac.losses")
    make_losses, seen = losses.make_losses, list[list[Any]]()

    def watched(**settings: object) -> tuple[object, object, object]:
        alpha, critic, actor = make_losses(**settings)

        def watched_critic(q: object, policy: object, normalizer: object, target: object, *rest: object) -> object:
            weights = [jax.tree.leaves(params)[1] for params in (q, target)]
            jax.debug.callback(lambda *params: seen.append(list(map(numbers, params))), *weights)
            return critic(q, policy, normalizer, target, *rest)

        return alpha, watched_critic, actor

    monkeypatch.setattr(losses, "make_losses", watched)
    assert brax_trained("sac", num_timesteps=120, learning_rate=0.01, **sac().to("brax", n_envs=4)) == [120]
    assert len(seen) == 120 - 40
    for (_, target), (q, next_target) in pairwise(seen):
        assert next_target == pytest.approx(0.98 * target + 0.02 * q, rel=1e-4, abs=1e-6)
