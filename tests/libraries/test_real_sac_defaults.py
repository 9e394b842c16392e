"""The defaults that SAC's parts start from, against the installed libraries. Run by './check libraries'."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest

from cycletime.libraries import LIBRARIES
from cycletime.libraries.off_policy import OffPolicyTable

pytestmark = pytest.mark.libraries


def signature(path: str, name: str) -> dict[str, Any]:
    """The defaults of a function's or constructor's parameters."""
    parameters = inspect.signature(getattr(import_module(path), name)).parameters
    return {key: parameter.default for key, parameter in parameters.items()}


def fields(path: str, name: str) -> dict[str, Any]:
    """The defaults of a dataclass."""
    return {field.name: field.default for field in dataclasses.fields(getattr(import_module(path), name))}


def rejax_defaults() -> dict[str, Any]:
    return dict(vars(import_module("rejax").SAC.create(env="Pendulum-v1")))


def tianshou_defaults() -> dict[str, Any]:
    training = fields("tianshou.highlevel.config", "OffPolicyTrainingConfig")
    return {**fields("tianshou.highlevel.params.algorithm_params", "SACParams"), **training}


@pytest.mark.parametrize(
    ("library", "own"),
    [
        ("stable-baselines3", lambda: signature("stable_baselines3", "SAC")),
        ("sbx", lambda: signature("sbx", "SAC")),
        ("rejax", rejax_defaults),
        ("brax", lambda: signature("brax.training.agents.sac.train", "train")),
        ("skrl", lambda: fields("skrl.agents.torch.sac", "SAC_CFG")),
        ("tianshou", tianshou_defaults),
    ],
)
def test_parts_start_from_what_the_library_itself_takes(library: str, own: Any) -> None:  # noqa: ANN401
    words = LIBRARIES[library]["sac"]
    assert isinstance(words, OffPolicyTable)
    assert words.defaults
    real: Mapping[str, Any] = own()
    assert {name: real[name] for name in words.defaults} == dict(words.defaults)
