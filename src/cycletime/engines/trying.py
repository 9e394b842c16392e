"""What runs cost: the beginning of one is trained and forgotten."""

from __future__ import annotations

import time
from contextlib import closing

from cycletime.engines.engine import Chunk, Cost, Group

TRY_S = 3.0
"""How long a run is tried, beyond its compilation."""


def tried_cost(group: Group, try_s: float = TRY_S) -> Cost:
    """Train the beginning of a group's runs."""
    program_s = learning_s = 0.0
    learning_steps = steps_before = 0
    compiled: set[bool] = set()
    runs = len(group.settings)
    before_s = time.monotonic()
    with closing(group):
        for told in group.chunks(dict.fromkeys(range(runs))):
            chunk = told[0]
            assert isinstance(chunk, Chunk), "a run that begins has no checkpoint to be wrong"
            passed_s, steps = time.monotonic() - before_s, chunk.agent_steps - steps_before
            learns = bool(chunk.metrics) and len(chunk.metrics["agent_steps"]) > 0
            if learns not in compiled:  # the program with learning and the one without, each at its first use
                compiled.add(learns)
                program_s += passed_s
            elif learns:
                learning_s, learning_steps = learning_s + passed_s, learning_steps + steps
            if chunk.is_last or learning_s > try_s:
                break
            before_s, steps_before = time.monotonic(), chunk.agent_steps
    return Cost(learning_s / learning_steps if learning_steps else 0.0, program_s)
