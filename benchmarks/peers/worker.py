"""How a party is measured: a process that waits, and on demand runs one repetition of a case and tells its seconds.

So the parties take turns in one run on one core, although they need different versions of the same libraries. A worker
writes one line of JSON when it is ready, and one for each name of a case that it reads: the case's number, and which
share of the core the process had meanwhile.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

Cases: TypeAlias = Mapping[str, Callable[[], float]]
"""By name: run one repetition, and return its seconds for one unit of work (or, of other cases, their number)."""


def serve(prepare: Callable[[], tuple[Cases, dict[str, object]]]) -> None:
    """Prepare and warm up, tell what is to be known beforehand, and answer until the input ends."""
    # Libraries print to the standard output, which is ours alone: whatever they say goes to the standard error.
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        cases, facts = prepare()
        print(json.dumps(facts), file=answers, flush=True)
        for line in sys.stdin:
            wall_s, cpu_s = time.perf_counter(), time.process_time()
            value = cases[line.strip()]()
            share = (time.process_time() - cpu_s) / (time.perf_counter() - wall_s)
            print(json.dumps((value, share)), file=answers, flush=True)
