"""What an agent and its driver share: memory with a box for each direction, and a bell that the driver rings.

Neither has a name in the system: both are handed over as open files when the driver is started, and gone with the last
process that has them. Nothing is left behind, however these processes end.
"""

from __future__ import annotations

import mmap
import os
import select

from cycletime.robots.ur.driver.mailbox import Mailbox
from cycletime.robots.ur.driver.messages import (
    DriverReport,
    Order,
    decode_order,
    decode_report,
    encode_order,
    encode_report,
)

_EACH = 4096


class SharedMemory:
    """Orders one way, reports the other."""

    def __init__(self, files: tuple[int, int] | None = None) -> None:
        """Make it, or open what a process was started with: the files of the memory and of the bell."""
        if files is None:
            memory, bell = os.memfd_create("cycletime-robot"), os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            os.ftruncate(memory, 2 * _EACH)
        else:
            memory, bell = files
        self.files = (memory, bell)
        self._map = mmap.mmap(memory, 2 * _EACH)
        view = memoryview(self._map)
        self._orders, self._reports = Mailbox(view[:_EACH]), Mailbox(view[_EACH:])

    def leave_order(self, order: Order) -> None:
        """Replace the order before."""
        self._orders.write(encode_order(order))

    def order(self) -> Order | None:
        """The newest order, if there is one."""
        newest = self._orders.read()
        return decode_order(newest[1]) if newest else None

    def leave_report(self, report: DriverReport) -> None:
        """Replace the report before, and ring."""
        self._reports.write(encode_report(report))
        os.eventfd_write(self.files[1], 1)

    def report(self) -> DriverReport | None:
        """The newest report, if there is one."""
        newest = self._reports.read()
        return decode_report(newest[1]) if newest else None

    def wait_for_bell(self, timeout_s: float) -> None:
        """Return when the bell rings, or has rung since the last time, or when the time is over."""
        bell = select.poll()
        bell.register(self.files[1], select.POLLIN)
        if bell.poll(1000 * timeout_s):
            os.eventfd_read(self.files[1])

    def close(self) -> None:
        """Give the files back; what is mapped goes with this object."""
        for file in self.files:
            os.close(file)
