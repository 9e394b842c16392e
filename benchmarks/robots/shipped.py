# mypy: disable-error-code="import-not-found"
"""Write the values that MuJoCo Playground ships for brax's trainers: python -m benchmarks.robots.shipped.

Needs Playground and brax. `shipped.json` is committed, so that the plan can be made without them.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

from benchmarks.robots.shims import install_stand_ins
from benchmarks.robots.trial import HERE, read_preregistration, tasks_of

SHIPPED_FILE = HERE / "shipped.json"


def shipped_values() -> dict[str, Any]:
    """By task: PPO's and SAC's values, and the networks."""
    install_stand_ins()
    from mujoco_playground.config import dm_control_suite_params, locomotion_params, manipulation_params

    configs = {
        "walking": locomotion_params,
        "hands and arms": manipulation_params,
        "dm_control": dm_control_suite_params,
    }
    tables = read_preregistration()
    found: dict[str, Any] = {}
    for name, task in tasks_of(tables).items():
        found[name] = {"ppo": _split(configs[task.kind].brax_ppo_config(name))}
        if name in tables["stages"]["sac_on"]:
            # Playground ships SAC's values for dm_control alone; for another task they are dm_control's common ones.
            of = name if task.kind == "dm_control" else "CartpoleBalance"
            sac = _split(dm_control_suite_params.brax_sac_config(of))
            if task.kind != "dm_control":
                sac["values"]["episode_length"] = found[name]["ppo"]["values"]["episode_length"]
            found[name]["sac"] = sac
    return {"playground": version("playground"), "brax": version("brax"), "tasks": found}


def _split(config: Any) -> dict[str, Any]:  # noqa: ANN401
    values = config.to_dict()
    network = values.pop("network_factory", {})
    return {"values": values, "network": network}


if __name__ == "__main__":
    SHIPPED_FILE.write_text(json.dumps(shipped_values(), indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {SHIPPED_FILE.name}")
