"""The real-time interface as one client meets it: packets in each tick, script lines and programs in return."""

from __future__ import annotations

from cycletime.robots.ur.simulator.controller import Controller
from cycletime.robots.ur.wire.script import Program, ScriptParser
from cycletime.robots.ur.wire.stream import StreamPacket, encode_packet


class RealtimeSession:
    """One client of port 30003."""

    greeting = b""
    wants_to_leave = False

    def __init__(self, controller: Controller) -> None:
        """A client has connected."""
        self._controller = controller
        self._parser = ScriptParser()

    def receive(self, data: bytes) -> bytes:
        """What the client sends; there are no replies.

        Raises:
            WireError: if a program does not end; the connection should.
        """
        for each in self._parser.feed(data):
            if isinstance(each, Program):
                self._controller.run_program(each)
            else:
                self._controller.run_line(each)
        return b""

    def stream(self) -> bytes:
        """The packet at the end of a tick."""
        state = self._controller.state
        packet = StreamPacket(
            time_s=state.time_s,
            target_q=state.target_q,
            target_qd=state.target_qd,
            actual_q=state.q,
            actual_qd=state.qd,
            robot_mode=state.robot_mode,
            safety_mode=state.safety_mode,
            speed_scaling=state.speed_scaling,
            program_state=state.runtime_state,
        )
        return encode_packet(packet, self._controller.settings.profile.packet_bytes)

    def close(self) -> None:
        """The client is gone; what it started ends by itself."""
