"""Boxes in shared memory: the newest whole message, whatever happens to its writer."""

import pytest

from cycletime.robots.ur.driver.channel import Mailbox


def test_a_new_box_is_empty() -> None:
    assert Mailbox(memoryview(bytearray(256))).read() is None


def test_the_newest_message_is_read_and_may_be_read_again() -> None:
    memory = memoryview(bytearray(256))
    writer, reader = Mailbox(memory), Mailbox(memory)
    for number in range(1, 6):
        writer.write(b"message %d" % number)
        assert reader.read() == reader.read() == (number, b"message %d" % number)


def test_messages_of_any_length_that_fits() -> None:
    memory = memoryview(bytearray(256))
    box = Mailbox(memory)
    for length in (0, 1, 112, 3):
        box.write(b"x" * length)
        newest = box.read()
        assert newest is not None
        assert newest[1] == b"x" * length
    with pytest.raises(ValueError, match="A message of 113 bytes does not fit into 112"):
        box.write(b"x" * 113)


def test_a_writer_killed_at_any_byte_leaves_the_message_before() -> None:
    whole = bytearray(256)
    box = Mailbox(memoryview(whole))
    box.write(b"first message")
    box.write(b"second message")
    before = bytes(whole)
    box.write(b"third, which is longer")
    after = bytes(whole)
    changed = [place for place in range(256) if before[place] != after[place]]
    for count in range(len(changed)):  # any of the changes may have come to memory first
        for some in (changed[:count], changed[len(changed) - count :], changed[:count:2]):
            torn = bytearray(before)
            for place in some:
                torn[place] = after[place]
            newest = Mailbox(memoryview(torn)).read()
            assert newest is not None
            assert newest in ((2, b"second message"), (3, b"third, which is longer"))
            if len(some) < len(changed) - 1 and newest[0] == 3:
                pytest.fail(f"a message of which {len(changed) - len(some)} bytes are missing was taken for whole")


def test_a_writer_that_begins_anew_counts_on() -> None:
    memory = memoryview(bytearray(256))
    Mailbox(memory).write(b"of the first")
    Mailbox(memory).write(b"of the second")
    assert Mailbox(memory).read() == (2, b"of the second")
