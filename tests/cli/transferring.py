"""Files to carry, and what `cycletime transfer` says in JSON."""

import json
from typing import Any

import pytest

from cycletime.cli import main

ZOO = """\
ReacherBulletEnv-v0:
  n_envs: 8
  n_steps: 512   # per environment
  batch_size: 64
  gamma: 0.99
  gae_lambda: 0.9
"""
OWN = """\
[own_rules.mine]
batch = "per second, of a count"
discount = "per second, of a decay, at least 6 steps"
"""


def carried_json(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What the command prints with these words and `--json`."""
    assert main(["transfer", *words, "--json"]) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data
