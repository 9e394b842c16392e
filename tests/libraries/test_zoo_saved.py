"""The configuration that the Zoo saves beside a trained agent: read as plain data, nothing executed."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import yaml

from cycletime.errors import InputError
from tests.libraries.zoo_transfer import transfer_entry

SETTINGS: dict[str, Any] = {
    "batch_size": 64,
    "env_wrapper": ["gymnasium.wrappers.FlattenObservation"],
    "gamma": 0.99,
    "n_envs": 2,
    "n_steps": 512,
    "n_timesteps": 1e6,
    "policy": "MlpPolicy",
    "policy_kwargs": "dict(net_arch=[64, 64])",
}
SAVED = yaml.dump(OrderedDict(SETTINGS))
"""As the Zoo writes it."""


def test_a_saved_configuration_becomes_an_entry_of_a_zoo_file() -> None:
    assert SAVED.startswith("!!python/object/apply:collections.OrderedDict\n- - - batch_size\n    - 64\n")
    carried = transfer_entry(SAVED, "Hopper-v5", "ppo", "8ms", "16ms")
    wrapper = {"cycletime.tasks.CycleTime": {"dt": "16ms", "env_dt": "8ms"}}
    assert yaml.safe_load(carried.text) == {
        "Hopper-v5": {
            **SETTINGS,
            "batch_size": 32,
            "n_steps": 256,
            "gamma": pytest.approx(0.99**2),
            "n_timesteps": 500_000,
            "env_wrapper": [*SETTINGS["env_wrapper"], wrapper],
            "gae_lambda": pytest.approx(0.95**2),
        }
    }
    assert "A saved configuration has no environment's name: it is written as the entry Hopper-v5 of a Zoo file." in (
        carried.notes
    )


def test_tuples_and_dictionaries_in_it_are_plain_data() -> None:
    saved = yaml.dump(OrderedDict(train_freq=(4, "step"), gamma=0.9, policy_kwargs=OrderedDict(n_critics=2)))
    entry = yaml.safe_load(transfer_entry(saved, "A", "sac", "8ms", "4ms", "scaled").text)["A"]
    assert entry == {"train_freq": [4, "step"], "gamma": pytest.approx(0.9**0.5), "policy_kwargs": {"n_critics": 2}}


@pytest.mark.parametrize(
    ("tail", "says"),
    [
        ("- - - a\n    - !!python/object/apply:os.system [touch executed]\n", "os.system"),
        ("- - - a\n    - !!python/name:os.system ''\n", "os.system"),
        ("- - - a\n    - !!python/object/new:builtins.exec ['']\n", "builtins.exec"),
        ("- 3\n", "The saved configuration is not a list of names and values."),
        ("- - - a\n", "The saved configuration is not a list of names and values."),
        ("- - - [a]\n    - 1\n", "The saved configuration is not a list of names and values."),
        ("- [\n", "Line 3 is not valid YAML"),
        (" [" * 1000, "levels deep"),
    ],
)
def test_nothing_in_it_is_executed(tail: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refusal:
        transfer_entry(f"!!python/object/apply:collections.OrderedDict\n{tail}", "A", "ppo", "8ms", "4ms")
    assert says in str(refusal.value)
    assert not Path("executed").exists()
