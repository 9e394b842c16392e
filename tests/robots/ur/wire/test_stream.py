import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.robots.ur.types import WireError
from cycletime.robots.ur.wire.rtde import ControllerVersion
from cycletime.robots.ur.wire.stream import PacketParser, StreamPacket, decode_packet, encode_packet, packet_length

PACKET = StreamPacket(
    time_s=12.5,
    target_q=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
    target_qd=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
    actual_q=(1.5, 2.5, 3.5, 4.5, 5.5, 6.5),
    actual_qd=(-0.1, -0.2, -0.3, -0.4, -0.5, -0.6),
    robot_mode=7,
    safety_mode=3,
    speed_scaling=0.5,
    program_state=2,
)
OLD = StreamPacket(12.5, PACKET.target_q, PACKET.target_qd, PACKET.actual_q, PACKET.actual_qd)


@pytest.mark.parametrize("length", [1060, 1108, 1220])
def test_values_stand_at_the_published_offsets(length: int) -> None:
    data = encode_packet(PACKET, length)
    assert len(data) == length
    assert struct.unpack_from(">i", data, 0) == (length,)
    expected = {4: 12.5, 12: 1.0, 60: 0.1, 252: 1.5, 300: -0.1, 756: 7.0, 812: 3.0, 940: 0.5, 1052: 2.0}
    assert {offset: struct.unpack_from(">d", data, offset)[0] for offset in expected} == expected


def test_what_an_old_controller_does_not_tell_is_none() -> None:
    assert decode_packet(encode_packet(PACKET, 812)) == OLD
    modern = decode_packet(encode_packet(PACKET, 1044))
    assert (modern.safety_mode, modern.program_state) == (3, None)


@given(st.lists(st.integers(1, 2000), max_size=8))
def test_packets_are_found_however_tcp_tears_and_merges_them(cuts: list[int]) -> None:
    lengths = (1060, 812, 1220)
    stream = b"".join(encode_packet(PACKET, length) for length in lengths)
    parser, found, start = PacketParser(), [], 0
    for size in [*cuts, len(stream)]:
        found += parser.feed(stream[start : start + size])
        start += size
    assert found == [PACKET, OLD, PACKET]


@pytest.mark.parametrize("length", [-1, 3, 755, 1 << 30])
def test_a_length_that_no_version_has_is_an_error(length: int) -> None:
    with pytest.raises(WireError, match=f"says that it has {length} bytes"):
        PacketParser().feed(struct.pack(">i", length))


@pytest.mark.parametrize(("version", "length"), [((3, 3), 1060), ((3, 1), 1044), ((3, 15), 1140), ((5, 12), 1220)])
def test_a_version_has_its_length(version: tuple[int, int], length: int) -> None:
    assert packet_length(ControllerVersion(*version, 4, 310)) == length
