"""What a process asks of the system, in a process of its own."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("granted", [True, False])
def test_it_goes_on_whether_or_not_the_system_grants_it(granted: bool) -> None:
    program = f"""
import gc, os
from cycletime.robots.clock import request_real_time_priority
asked = []
def answer(*words):
    asked.append(words[0])
    if not {granted}:
        raise PermissionError(1, "Operation not permitted")
os.sched_setscheduler, os.nice = answer, answer
print(request_real_time_priority(), gc.isenabled(), asked)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == f"{granted} False {[0] if granted else [0, -10]}"
