"""Golden bytes are from Universal Robots' description of RTDE: sizes and numbers big-endian, types as ASCII letters."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cycletime.robots.ur.types import WireError
from cycletime.robots.ur.wire import rtde
from cycletime.robots.ur.wire.rtde import (
    ControllerVersion,
    Frame,
    FrameParser,
    FrameType,
    Recipe,
    Value,
    encode_frame,
)

GOLDEN = {
    rtde.protocol_version_request(2): b"\x00\x05V\x00\x02",
    rtde.accepted_reply(FrameType.PROTOCOL_VERSION, accepted=True): b"\x00\x04V\x01",
    rtde.encode_frame(FrameType.CONTROLLER_VERSION): b"\x00\x03v",
    rtde.controller_version_reply(ControllerVersion(3, 15, 8, 1)): b"\x00\x13v\0\0\0\3\0\0\0\x0f\0\0\0\x08\0\0\0\1",
    rtde.output_recipe_request(("timestamp", "actual_q"), 125.0): b"\0\x1dO@_@\0\0\0\0\0timestamp,actual_q",
    rtde.recipe_reply(FrameType.OUTPUT_RECIPE, Recipe(1, ("a", "b"), ("DOUBLE", "VECTOR6D"))): (
        b"\0\x13O\x01DOUBLE,VECTOR6D"
    ),
    rtde.input_recipe_request(("input_int_register_0",)): b"\0\x17Iinput_int_register_0",
    rtde.encode_frame(FrameType.START): b"\0\x03S",
    rtde.encode_frame(FrameType.PAUSE): b"\0\x03P",
    rtde.accepted_reply(FrameType.START, accepted=False): b"\0\x04S\0",
    rtde.data_package(Recipe(2, ("a", "b"), ("INT32", "BOOL")), (-2, True)): b"\0\x09U\x02\xff\xff\xff\xfe\x01",
    rtde.text_message("hi", "me", 3): b"\0\x0aM\x02hi\x02me\x03",
}


@pytest.mark.parametrize(("made", "golden"), GOLDEN.items(), ids=range(len(GOLDEN)))
def test_every_frame_is_as_universal_robots_describes_it(made: bytes, golden: bytes) -> None:
    assert made == golden


@given(st.lists(st.integers(1, 12), max_size=30))
def test_frames_are_found_however_tcp_tears_and_merges_them(cuts: list[int]) -> None:
    stream = b"".join(GOLDEN)
    parser, found, start = FrameParser(), [], 0
    for size in [*cuts, len(stream)]:
        found += parser.feed(stream[start : start + size])
        start += size
    assert b"".join(encode_frame(FrameType(kind), payload) for kind, payload in found) == stream
    assert len(found) == len(GOLDEN)


def test_a_frame_of_a_type_from_the_future_is_handed_on() -> None:
    assert FrameParser().feed(b"\0\x04?\x01") == [Frame(ord("?"), b"\x01")]


def test_a_frame_shorter_than_its_header_is_an_error() -> None:
    with pytest.raises(WireError, match="says that it has 2 bytes"):
        FrameParser().feed(b"\0\x02V")


def test_a_payload_that_cannot_be_framed_is_refused() -> None:
    with pytest.raises(WireError, match="too long"):
        encode_frame(FrameType.TEXT, bytes(65536))


def test_every_type_comes_back_as_it_went() -> None:
    values: dict[str, Value] = {
        "BOOL": True,
        "UINT8": 255,
        "UINT32": 2**32 - 1,
        "UINT64": 2**64 - 1,
        "INT32": -(2**31),
        "DOUBLE": 0.1,
        "VECTOR3D": (0.1, 0.2, 0.3),
        "VECTOR6D": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
        "VECTOR6INT32": (-1, 2, -3, 4, -5, 6),
        "VECTOR6UINT32": (1, 2, 3, 4, 5, 6),
    }
    recipe = Recipe(9, tuple(values), tuple(values))
    payload = recipe.pack(list(values.values()))
    assert len(payload) == 1 + 1 + 1 + 4 + 8 + 4 + 8 + 24 + 48 + 24 + 24
    assert recipe.unpack(payload) == values


def test_the_links_package_has_216_bytes() -> None:
    types = ("DOUBLE", *["VECTOR6D"] * 4, "INT32", "INT32", "UINT32")
    names = tuple("abcdefgh")
    package = rtde.data_package(Recipe(1, names, types), (0.0, *[(0.0,) * 6] * 4, 1, 7, 2))
    assert len(package) == 216
    assert struct.unpack_from(">H", package)[0] == 216


def test_a_package_of_another_recipe_or_size_is_an_error() -> None:
    recipe = Recipe(1, ("a",), ("INT32",))
    with pytest.raises(WireError, match="of recipe 2, and not of 1"):
        recipe.unpack(b"\x02\0\0\0\0")
    with pytest.raises(WireError, match="4 bytes, and its recipe 5"):
        recipe.unpack(b"\x01\0\0\0")
    with pytest.raises(WireError, match="do not fit"):
        recipe.pack((1, 2))


def test_what_a_controller_lacks_or_another_client_holds_is_told() -> None:
    recipe = rtde.read_recipe_reply(b"\0NOT_FOUND,DOUBLE,IN_USE", ("no_such", "timestamp", "mine"))
    assert recipe.refused("NOT_FOUND") == ("no_such",)
    assert recipe.refused("IN_USE") == ("mine",)
    with pytest.raises(WireError, match="'NOT_FOUND'"):
        recipe.unpack(b"\0")


def test_a_reply_with_too_few_types_is_an_error() -> None:
    with pytest.raises(WireError, match="1 types for 2 variables"):
        rtde.read_recipe_reply(b"\x01DOUBLE", ("a", "b"))


def test_requests_are_read_back() -> None:
    assert rtde.read_protocol_version_request(b"\0\x02") == 2
    # ur_rtde ends its list with a comma.
    assert rtde.read_output_recipe_request(struct.pack(">d", 500.0) + b"a,b,") == (("a", "b"), 500.0)
    assert rtde.split_names(b"a") == ("a",)
    assert rtde.read_controller_version(struct.pack(">4I", 5, 12, 0, 9)) == ControllerVersion(5, 12, 0, 9)
    assert str(ControllerVersion(5, 12, 0, 9)) == "5.12.0.9"
    with pytest.raises(WireError, match="3 bytes of payload, and should have 16"):
        rtde.read_controller_version(b"abc")
