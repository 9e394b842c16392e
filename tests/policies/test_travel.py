"""No export gets its place before it was held against the JAX policy."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from cycletime.agents.networks import Layer
from cycletime.agents.numpy_policy import NumpyPolicy
from cycletime.errors import InputError, RunError
from cycletime.policies import export as travel
from cycletime.policies.export import check_against_jax, export_numpy, export_onnx, jax_actions, onnx_model
from cycletime.training.policy_file import SavedPolicy
from tests.policies.conftest import AGENTS, BOUNDS, observations, trained


def perturbed(policy: SavedPolicy, by: float) -> SavedPolicy:
    *others, (weight, bias) = policy.network.layers
    return replace(policy, network=replace(policy.network, layers=(*others, Layer(weight, bias + np.float32(by)))))


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_the_reference_is_the_agent_itself(agent: Any, bounds: Any) -> None:  # noqa: ANN401
    policy = trained(agent, bounds)
    np.testing.assert_allclose(
        jax_actions(policy.saved, observations()), policy.act(observations()), rtol=1e-5, atol=1e-5 * bounds.half.max()
    )


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
def test_exports_are_close_to_the_jax_policy(agent: Any, bounds: Any, tmp_path: Path) -> None:  # noqa: ANN401
    policy = trained(agent, bounds).saved
    assert 0 < export_numpy(policy, tmp_path / "numpy") < 2e-6
    assert 0 < export_onnx(policy, tmp_path / "policy.onnx") < 2e-6
    acted = NumpyPolicy.load(tmp_path / "numpy" / "policy.npz").act(observations())
    np.testing.assert_array_equal(acted, policy.in_numpy().act(observations()))


@pytest.mark.parametrize("name", BOUNDS)
def test_the_tolerance_is_that_of_actions_in_their_own_range(name: str) -> None:
    bounds = BOUNDS[name]
    policy = trained(bounds=bounds).saved

    def off(by: float) -> Callable[[Any], Any]:
        return lambda seen: jax_actions(policy, seen) + by * np.maximum(bounds.half, np.abs(jax_actions(policy, seen)))

    assert check_against_jax(policy, off(0.9e-5), "It") == pytest.approx(0.9e-5, rel=0.01)
    with pytest.raises(InputError, match=r"^It differs from the JAX policy by up to 1\.1e-05, and 1e-05 is allowed"):
        check_against_jax(policy, off(1.1e-5), "It")


def test_a_numpy_export_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = trained().saved
    (tmp_path / "kept").mkdir()
    export_numpy(policy, tmp_path / "kept")
    before = {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()}
    act = NumpyPolicy.act
    monkeypatch.setattr(NumpyPolicy, "act", lambda self, seen: act(self, seen) + np.float32(1e-3))
    for place in ("new", "kept"):
        with pytest.raises(InputError, match=r"The NumPy policy differs from the JAX policy by up to 1\.0e-02"):
            export_numpy(policy, tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "kept").iterdir()} == before


def test_an_onnx_export_that_differs_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy, model = trained().saved, onnx_model
    monkeypatch.setattr(travel, "onnx_model", lambda policy: model(perturbed(policy, 1e-3)))
    with pytest.raises(InputError, match=r"The ONNX policy differs from the JAX policy by up to 1\.0e-03"):
        export_onnx(policy, tmp_path / "policy.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_policy_that_has_diverged_is_not_exported(wrong: float, tmp_path: Path) -> None:
    policy = perturbed(trained(bounds=BOUNDS["raw"]).saved, wrong)
    for export in (export_numpy, export_onnx):
        with pytest.raises(InputError, match="not finite: its training has diverged"):
            export(policy, tmp_path / "policy")
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_has_diverged_where_no_action_shows_it_is_not_exported(tmp_path: Path) -> None:
    saved = trained().saved
    assert saved.network.log_std is not None
    policy = replace(saved, network=replace(saved.network, log_std=jnp.array([0.0, jnp.nan])))
    for export in (export_numpy, export_onnx):
        with pytest.raises(
            InputError, match=r"^The policy of reacher after 4000 .* cannot act: .* log_std is not finite"
        ):
            export(policy, tmp_path / "policy")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        export_onnx(trained().saved, tmp_path / "none" / "policy.onnx")
    with pytest.raises(RunError, match="cannot be written"):
        export_numpy(trained().saved, tmp_path / "file" / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
