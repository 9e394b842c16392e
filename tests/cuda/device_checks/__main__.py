"""Whether the kernels compute on this very card what they should; takes about a minute, and needs a GPU and CuPy.

PYTHONPATH=src python -m tests.cuda.device_checks
PYTHONPATH=src python -m tests.cuda.device_checks --shared-memory 99KB  # the kernels' forms for a smaller card
"""

import sys
from argparse import ArgumentParser
from itertools import chain

from cycletime.cuda.device import Device
from cycletime.cuda.ppo import PPO_KERNEL
from cycletime.cuda.sac import SAC_KERNEL
from cycletime.training.machine import prepare_jax
from tests.cuda.device_checks import ppo_checks, sac_checks
from tests.cuda.device_checks.limits import limited_device
from tests.cuda.device_checks.ppo_checks import Sizes, full_sizes
from tests.cuda.device_checks.replay import Check


def print_checks(device: Device, sizes: Sizes, sac_device: Device | None = None) -> int:
    """Check PPO's kernel and then SAC's, print each check as soon as it is done, and return the exit status."""
    about = dict(device.card.about)
    if sac_device:
        about["shared memory, SAC"] = sac_device.card.about["shared memory"]
    print(device.card.name)
    for name, value in about.items():
        print(f"  {name}: {value}")
    done: list[Check] = []
    for check in chain(ppo_checks.checks(device, sizes), sac_checks.checks(sac_device) if sac_device else ()):
        done.append(check)
        verdict = "ok" if check.passed else "FAILED"
        print(f"{verdict:>6}  {check.name}: {check.found:.2g}{check.unit}, at most {check.most:.2g}", flush=True)
    failed = sum(not check.passed for check in done)
    print(
        f"{failed} of {len(done)} checks failed: do not use the engine cuda on this card."
        if failed
        else f"All {len(done)} checks passed."
    )
    return 1 if failed else 0


if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m tests.cuda.device_checks")
    parser.add_argument("--shared-memory", help="what a thread block may take at most, such as 99KB")
    limit = parser.parse_args().shared_memory
    prepare_jax("cpu")
    sys.exit(print_checks(limited_device(PPO_KERNEL, limit), full_sizes(), limited_device(SAC_KERNEL, limit)))
