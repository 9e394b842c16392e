"""Less shared memory than a card has, so that a large card takes the forms of the kernels for smaller ones."""

import re

from cycletime.cuda.card import Card
from cycletime.cuda.device import Device
from cycletime.cuda.kernels import form_within
from cycletime.cuda.layout import Kernel
from cycletime.errors import InputError

_AMOUNT = re.compile(r"(\d{1,9}) ?(KB|KiB)?")


def shared_bytes_of(text: str) -> int:
    """An amount of shared memory, such as 99KB; a KB has 1,024 bytes, as in NVIDIA's tables."""
    if (found := _AMOUNT.fullmatch(text)) is None:
        raise InputError(f"The shared memory is {text!r}: give an amount such as 99KB, or a number of bytes.")
    return int(found[1]) * (1024 if found[2] else 1)


def limited_device(kernel: Kernel, shared_memory: str | None) -> Device:
    """The card that is here; with an amount, a thread block takes no more shared memory."""
    if shared_memory is None:
        return Device(kernel, Card(kernel.file))
    form = form_within(kernel.file, shared_bytes_of(shared_memory))
    if form is None:
        raise InputError(f"{kernel.file} has no form for {shared_memory} of shared memory.")
    return Device(kernel, Card(kernel.file, form))
