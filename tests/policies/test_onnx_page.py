"""What docs/policies.md tells users of ONNX to do: no observation, weight or action that is not finite gets through."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from cycletime.policies.export import export_onnx
from tests.policies.conftest import BOUNDS, observations, trained

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
Load = Callable[[Path], Any]


@pytest.fixture
def exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    export_onnx(trained(bounds=BOUNDS["bounded"]).saved, tmp_path / "policy.onnx")
    return tmp_path / "policy.onnx"


def run_page() -> Any:  # noqa: ANN401 - the policy that the page makes
    (program,) = re.findall(
        r"^```python\n(# not run: it needs the exported file;.*?)^```$", PAGE.read_text(), re.M | re.S
    )
    names: dict[str, Any] = {}
    exec(compile(program, str(PAGE), "exec"), names)
    return names["policy"]


def change(path: Path, how: Callable[[Any], None]) -> None:
    """Change a model, and its hash with it."""
    model = onnx.load(path)
    how(model)
    about = {each.key: each.value for each in model.metadata_props if each.key != "sha256"}
    onnx.helper.set_model_props(model, about)
    onnx.helper.set_model_props(model, {**about, "sha256": sha256(model.SerializeToString()).hexdigest()})
    onnx.save(model, path)


def test_a_flipped_bit_of_a_weight_is_refused(exported: Path) -> None:
    model = onnx.load(exported)
    content, weights = bytearray(exported.read_bytes()), model.graph.initializer[0].raw_data
    content[content.index(weights) + 5] ^= 1
    exported.write_bytes(content)
    with pytest.raises(ValueError, match=r"^policy\.onnx is not what was written\.$"):
        run_page()


def test_it_gives_what_the_numpy_policy_gives(exported: Path) -> None:
    policy = run_page()
    assert policy.dt_s == 0.016
    for seen in observations(5):
        np.testing.assert_allclose(policy.act(seen), trained().saved.in_numpy().act(seen), rtol=1e-5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e39])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_an_observation_that_is_not_finite_is_refused(exported: Path, wrong: float) -> None:
    with pytest.raises(ValueError, match=r"^observation\[1\] is (nan|inf), which is not finite\.$"):
        run_page().act(np.array([0.0, wrong, 0.0]))


def test_an_action_that_overflows_is_refused(exported: Path) -> None:
    def make_huge(model: Any) -> None:  # noqa: ANN401
        for each in model.graph.initializer:
            if each.name in ("mean.weight", "layers.1.bias"):
                array = np.full_like(onnx.numpy_helper.to_array(each), 3e38)
                each.CopyFrom(onnx.numpy_helper.from_array(array, each.name))

    change(exported, make_huge)
    with pytest.raises(ValueError, match=r"^mean\[0\] is (inf|nan), which is not finite\.$"):
        run_page().act(np.zeros(3))


def test_weights_that_are_not_finite_are_refused(exported: Path) -> None:
    def spoil(model: Any) -> None:  # noqa: ANN401
        (each,) = [each for each in model.graph.initializer if each.name == "layers.0.bias"]
        array = onnx.numpy_helper.to_array(each).copy()
        array[2] = np.inf
        each.CopyFrom(onnx.numpy_helper.from_array(array, each.name))

    change(exported, spoil)
    with pytest.raises(ValueError, match=r"^layers\.0\.bias\[2\] is inf, which is not finite\.$"):
        run_page()


@pytest.mark.parametrize("dt_s", ["0", "-0.016", "nan", "inf", "fast"])
def test_a_cycle_time_that_is_none_is_refused(exported: Path, dt_s: str) -> None:
    def retime(model: Any) -> None:  # noqa: ANN401
        (each,) = [each for each in model.metadata_props if each.key == "dt_s"]
        each.value = dt_s

    change(exported, retime)
    with pytest.raises(ValueError, match=r"dt_s is .*: it must be a time in seconds|could not convert string to float"):
        run_page()
