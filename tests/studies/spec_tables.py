"""Tables that study files have."""

from typing import Any

GOOD: dict[str, Any] = {
    "name": "s",
    "task": "reacher",
    "algorithm": "ppo",
    "dts": ["8ms"],
    "rules": ["baseline"],
    "seeds": 2,
    "env_steps": 2000,
}
"""A small study that is right."""
OWN = {
    "floor-6": {"batch": "per second, of a count", "discount": "per second, of a decay, at least 6 steps"},
    "also-dt-aware": {
        **dict.fromkeys(("batch", "minibatch"), "per second, of a count"),
        **dict.fromkeys(("discount", "trace_decay"), "the paper's min"),
    },
}
"""Two rules of one's own, of which the second is dt-aware by another name."""
