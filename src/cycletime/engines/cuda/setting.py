"""The world of a run on the kernel, as its files tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cycletime.engines.closed_form import ClosedForm
from cycletime.engines.cuda.describing import reported_every
from cycletime.engines.cuda.device import Device


def card_of(device: Device) -> dict[str, str]:
    """What results say of a GPU."""
    return {**device.about, "device": device.name}


@dataclass(frozen=True)
class CudaSetting(ClosedForm):
    """A closed-form task at a cycle time, on a GPU."""

    card: Mapping[str, str] | None = None
    """The GPU that computes it, as `card_of` tells of it."""

    @property
    def told_every(self) -> int:
        """From one learning that is told of to the next."""
        return reported_every(self.spec)
