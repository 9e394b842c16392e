"""The ONNX graph gives what the agent gives, by two independent runtimes, and says what it is."""

import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from cycletime.errors import InputError
from cycletime.policies import export
from cycletime.policies.export import onnx_actions, onnx_model
from tests.policies.conftest import AGENTS, BOUNDS, observations, trained

EACH_AGENT = pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)


def outputs_of(model: Any, *names: str) -> list[NDArray[Any]]:  # noqa: ANN401
    session = import_module("onnxruntime").InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return [np.asarray(output) for output in session.run(list(names), {"observation": observations()})]


@EACH_AGENT
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_the_action_is_what_the_agent_gives_to_the_environment(agent: Any, bounds: Any) -> None:  # noqa: ANN401
    policy = trained(agent, bounds)
    model = onnx_model(policy.saved)
    (action,) = outputs_of(model, "action")
    (reference,) = ReferenceEvaluator(model).run(["action"], {"observation": observations()})
    for acted in (action, np.asarray(reference)):
        assert acted.dtype == np.float32
        np.testing.assert_allclose(acted, policy.act(observations()), rtol=1e-5, atol=1e-5 * float(bounds.half.max()))
        assert (acted.astype(np.float64) >= bounds.low).all()
        assert (acted.astype(np.float64) <= bounds.high).all()


@EACH_AGENT
def test_mean_and_std_are_the_agent_s_before_squashing_and_mapping(agent: Any) -> None:  # noqa: ANN401
    policy = trained(agent, BOUNDS["bounded"], scale=0.2)
    mean, std = outputs_of(onnx_model(policy.saved), "mean", "std")
    for noise in (-1.0, 0.0, 2.0):
        drawn = mean + noise * std
        acted = np.tanh(drawn) if policy.saved.network.squashed else drawn
        expected = agent.act(policy.psi, observations(), np.full((50, 2), noise, np.float32))
        np.testing.assert_allclose(acted, expected, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 7])
@EACH_AGENT
def test_batches_of_every_size(agent: Any, count: int) -> None:  # noqa: ANN401
    model = onnx_model(trained(agent).saved)
    assert onnx_actions(model, observations(count)).shape == (count, 2)


def test_log_sigma_of_sac_is_clipped() -> None:
    bias = np.array([0, 0, 100, -100], np.float32)
    policy = trained(
        AGENTS["SAC"], change=lambda psi: psi._replace(policy=(*psi.policy[:2], psi.policy[2]._replace(bias=bias)))
    )
    (std,) = outputs_of(onnx_model(policy.saved), "std")
    np.testing.assert_allclose(std, np.tile(np.exp([2.0, -20.0]), (50, 1)), rtol=1e-5)


def test_the_model_says_what_it_is() -> None:
    policy = trained().saved
    model = onnx_model(policy)
    told = {each.key: each.value for each in model.metadata_props}
    assert (told["dt_s"], told["world"], told["identity"]) == ("0.016", "reacher", policy.identity)
    assert (model.ir_version, model.opset_import[0].version) == (7, 13)
    assert [each.name for each in model.graph.input] == ["observation"]
    assert [each.name for each in model.graph.output] == ["action", "mean", "std"]


def test_it_runs_without_onnxruntime_and_says_when_onnx_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = trained().saved
    model = onnx_model(policy)
    with_runtime = onnx_actions(model, observations())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    np.testing.assert_allclose(onnx_actions(model, observations()), with_runtime, atol=1e-6)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"pip install 'cycletime\[onnx\]'"):
        export.onnx_model(policy)
