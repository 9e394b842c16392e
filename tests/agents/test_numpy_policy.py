"""The policy in NumPy gives what the agent gives, needs nothing else, and refuses what it cannot use."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cycletime.agents import numpy_policy
from cycletime.agents.numpy_policy import NumpyPolicy, UnsafePolicyError
from cycletime.policies.export import export_numpy
from tests.policies.conftest import AGENTS, BOUNDS, observations, trained

EACH_AGENT = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)


@EACH_AGENT
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_the_mean_action_is_what_the_agent_gives_to_the_environment(agent: Any, bounds: Any) -> None:  # noqa: ANN401
    policy = trained(agent, bounds)
    expected = policy.act(observations())
    acted = policy.saved.in_numpy().act(observations())
    assert acted.dtype == expected.dtype == bounds.dtype
    np.testing.assert_allclose(acted, expected, rtol=1e-5, atol=1e-5 * float(bounds.half.max()))
    assert (acted >= bounds.low).all()
    assert (acted <= bounds.high).all()
    assert len(np.unique(acted)) > 20  # a policy that is always at a bound would show nothing


@EACH_AGENT
def test_one_observation_gives_one_action_and_none_gives_none(agent: Any) -> None:  # noqa: ANN401
    policy = trained(agent).saved.in_numpy()
    many = policy.act(observations())
    for observation, action in zip(observations(), many, strict=True):
        np.testing.assert_allclose(policy.act(observation.tolist()), action, rtol=1e-5, atol=1e-6)
    assert policy.act(observations()[0]).shape == (2,)
    assert policy.act(np.empty((0, 3))).shape == (0, 2)
    assert (policy.dt_s, policy.observation_size, policy.action_size) == (0.016, 3, 2)


@EACH_AGENT
def test_drawn_actions_have_the_agent_s_mean_and_sigma(agent: Any) -> None:  # noqa: ANN401
    policy = trained(agent, BOUNDS["raw"], scale=0.2)
    observation, count = observations()[0], 100_000
    drawn = policy.saved.in_numpy().act(np.tile(observation, (count, 1)), np.random.default_rng(2))
    mean, one_sigma = policy.act(observation), policy.act(observation, noise=1.0)
    if policy.saved.network.squashed:
        # Before the tanh, in double precision and without those few that float32 has rounded to 1.
        drawn, mean, one_sigma = (
            np.arctanh(np.clip(x.astype(float), -0.999999, 0.999999)) for x in (drawn, mean, one_sigma)
        )
    std = one_sigma - mean
    assert (np.abs(drawn.mean(axis=0) - mean) < 5 * std / count**0.5).all()
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.015)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.02


def test_log_sigma_of_sac_is_clipped() -> None:
    bias = np.array([0, 0, 100, -100], np.float32)
    policy = trained(
        AGENTS["SAC"], change=lambda psi: psi._replace(policy=(*psi.policy[:2], psi.policy[2]._replace(bias=bias)))
    )
    np.testing.assert_allclose(policy.saved.in_numpy().mean_and_std(np.zeros(3))[1], np.exp([2.0, -20.0]), rtol=1e-5)


def test_a_generator_decides_what_is_drawn_and_its_absence_that_nothing_is() -> None:
    policy, observation = trained(bounds=BOUNDS["raw"]).saved.in_numpy(), observations()[0]
    drawn = [policy.act(observation, np.random.default_rng(seed)).tolist() for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert policy.act(observation).tolist() == policy.act(observation).tolist()


@pytest.mark.parametrize("shape", [(), (2,), (4,), (3, 1), (1, 1, 3)])
def test_observations_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"shape .*: it must be \(3,\) or \(batch, 3\)\.$"):
        trained().saved.in_numpy().act(np.zeros(shape))


@pytest.mark.parametrize(("wrong", "told"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (1e39, "inf")])
def test_observations_that_are_not_finite_are_refused_with_their_place(wrong: float, told: str) -> None:
    policy = trained().saved.in_numpy()
    with pytest.raises(ValueError, match=rf"^observation\[1\] is {told}, which is not finite: a sensor or a .*\.$"):
        policy.act([0.0, wrong, wrong])
    with pytest.raises(ValueError, match=rf"^observation\[3, 2\] is {told}, which is not finite"):
        policy.act([*np.zeros((3, 3)), [0.0, 0.0, wrong]])


@pytest.mark.parametrize("wrong", ["abc", {"a": 1}, [1.0, [2.0], 3.0], [None, "x", 3.0]])
def test_what_is_no_observation_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="is not an array of numbers"):
        trained().saved.in_numpy().act(wrong)


@EACH_AGENT
@pytest.mark.parametrize("rng", [None, np.random.default_rng(0)])
def test_an_action_that_overflows_is_refused_and_not_clipped_to_a_bound(agent: Any, rng: Any) -> None:  # noqa: ANN401
    """Observations and weights are finite, and the first product is infinity minus infinity."""
    saved = trained(agent, BOUNDS["bounded"]).saved
    first = saved.arrays()["layers.0.weight"]
    signs = np.where(np.arange(3) % 2, -1e6, 1e6).reshape((3, 1) if first.shape[0] == 3 else (1, 3))
    huge = {**saved.arrays(), "layers.0.weight": np.broadcast_to(signs, first.shape).astype(first.dtype)}
    with pytest.raises(ValueError, match=r"^action\[0\] is nan, which is not finite: the observation is far"):
        NumpyPolicy(huge, saved.description()).act(np.full(3, 3e38), rng)


@EACH_AGENT
@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused_wherever_they_are(agent: Any, wrong: float, tmp_path: Path) -> None:  # noqa: ANN401
    saved = trained(agent).saved
    export_numpy(saved, tmp_path)
    for name, array in saved.arrays().items():
        spoilt = array.copy()
        spoilt.flat[-1] = wrong
        arrays = {**saved.arrays(), name: spoilt}
        if name in ("action.low", "action.high") and wrong == np.inf:
            NumpyPolicy(arrays, saved.description())  # an action without a bound
            continue
        with pytest.raises(UnsafePolicyError, match=rf"^The policy's {re.escape(name)} is not finite: .*\.$"):
            NumpyPolicy(arrays, saved.description())
        np.savez(tmp_path / "policy.npz", description=np.array(json.dumps(saved.description())), **arrays)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="is not finite"):
            NumpyPolicy.load(tmp_path / "policy.npz")


@pytest.mark.parametrize("dt_s", [0, 0.0, -0.016, np.nan, np.inf, "0.016", "16ms", None, True, [0.016]])
def test_a_cycle_time_that_is_none_is_refused(dt_s: object) -> None:
    saved = trained().saved
    with pytest.raises(
        UnsafePolicyError, match=r"^The policy's dt_s is .*: it must be a time in seconds, such as 0\.016"
    ):
        NumpyPolicy(saved.arrays(), {**saved.description(), "dt_s": dt_s})


PROGRAM = """
import json, sys
for name in ("jax", "jaxlib", "cycletime", "gymnasium", "scipy", "safetensors", "onnx", "torch"):
    sys.modules[name] = None
sys.path.insert(0, sys.argv[1])
import numpy
from policy import NumpyPolicy
policy = NumpyPolicy.load(sys.argv[1] + "/policy.npz")
seen = numpy.array(json.loads(sys.argv[2]), "f")
drawn = policy.act(seen, numpy.random.default_rng(3))
print(json.dumps([policy.act(seen).tolist(), drawn.tolist(), policy.dt_s, policy.description["world"]]))
"""


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_the_exported_folder_needs_numpy_alone(name: str, tmp_path: Path) -> None:
    policy = trained(AGENTS[name]).saved
    export_numpy(policy, tmp_path / "robot")
    seen = observations(5)
    words = [sys.executable, "-I", "-c", PROGRAM, str(tmp_path / "robot"), json.dumps(seen.tolist())]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    here = policy.in_numpy()
    expected = [here.act(seen).tolist(), here.act(seen, np.random.default_rng(3)).tolist(), 0.016, "reacher"]
    assert json.loads(ran.stdout) == expected


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_a_cut_file_is_refused(kept: float, tmp_path: Path) -> None:
    export_numpy(trained().saved, tmp_path)
    file = tmp_path / "policy.npz"
    data = file.read_bytes()
    file.write_bytes(data[: int(kept * len(data))])
    with pytest.raises(ValueError, match=r"policy\.npz is not an exported policy: "):
        NumpyPolicy.load(file)


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    np.savez(tmp_path / "pickled.npz", description=np.array([object()]))
    np.save(tmp_path / "array.npy", np.zeros(3))
    (tmp_path / "text.npz").write_text("policy")
    for name in ("other.npz", "pickled.npz", "array.npy", "text.npz"):
        with pytest.raises(ValueError, match=f"{name} is not an exported policy: "):
            NumpyPolicy.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        NumpyPolicy.load(tmp_path / "none.npz")


def test_a_description_that_does_not_fit_is_refused() -> None:
    arrays, description = trained().saved.arrays(), trained().saved.description()
    with pytest.raises(ValueError, match="has the format 2: this program reads 1"):
        NumpyPolicy(arrays, {**description, "format": 2})
    with pytest.raises(ValueError, match="do not fit 4 observed numbers"):
        NumpyPolicy(arrays, {**description, "observation_size": 4})
    with pytest.raises(ValueError, match="do not fit"):
        NumpyPolicy({**arrays, "action.low": np.zeros(3)}, description)
    with pytest.raises(ValueError, match=r"incomplete: 'layers\.0\.bias'"):
        NumpyPolicy({name: array for name, array in arrays.items() if name != "layers.0.bias"}, description)
    with pytest.raises(ValueError, match="incomplete: 'sigmoid'"):
        NumpyPolicy(arrays, {**description, "activation": "sigmoid"})


def test_a_file_that_declares_very_much_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    with zipfile.ZipFile(tmp_path / "terabytes.npz", "w") as file, file.open("x.npy", "w") as out:
        np.lib.format.write_array_header_1_0(out, shape)
    with pytest.raises(ValueError, match=r"terabytes\.npz is not an exported policy: "):
        NumpyPolicy.load(tmp_path / "terabytes.npz")
    np.savez_compressed(tmp_path / "large.npz", x=np.zeros(100))
    monkeypatch.setattr(numpy_policy, "MOST_BYTES", 200)
    with pytest.raises(ValueError, match=r"large\.npz is not an exported policy: it declares more than 200 bytes"):
        NumpyPolicy.load(tmp_path / "large.npz")
