"""Who may move an arm where, by the numbers that a host's name stands for."""

import socket

import pytest

from cycletime.errors import InputError
from cycletime.robots.operator_check import check_operator, is_loopback, resolve_addresses

NAMES = {
    "localhost": ["127.0.0.1", "::1"],
    "sim": ["127.0.0.2"],
    "robot": ["192.168.1.10"],
    "both": ["127.0.0.1", "192.168.1.10"],
    "six": ["fe80::1%eth0"],
}


def resolve(host: str) -> list[str]:
    return NAMES.get(host, [host])


@pytest.mark.parametrize("host", ["localhost", "sim", "127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_on_this_machine_anybody_may_move_an_arm(host: str) -> None:
    assert check_operator(host, at_the_robot=False, resolve=resolve) == resolve(host)[0]


@pytest.mark.parametrize(
    "host", ["robot", "both", "six", "10.0.0.2", "0.0.0.0", "::", "2001:db8::1", "::ffff:192.168.1.10", "128.0.0.1"]
)
def test_elsewhere_somebody_must_be_beside_it(host: str) -> None:
    with pytest.raises(InputError, match=r"is not this machine, so that an arm may move there.*--i-am-at-the-robot"):
        check_operator(host, at_the_robot=False, resolve=resolve)
    assert check_operator(host, at_the_robot=True, resolve=resolve) == resolve(host)[0]


def test_the_sentence_has_the_name_and_the_number_that_it_stands_for() -> None:
    with pytest.raises(InputError, match=r"--host 'both' \(192\.168\.1\.10\) is not this machine"):
        check_operator("both", at_the_robot=False, resolve=resolve)


def test_a_name_that_changes_its_mind_leads_nowhere_else() -> None:
    answers = iter([["127.0.0.1"], ["192.168.1.10"]])
    assert check_operator("rebound", at_the_robot=False, resolve=lambda host: next(answers)) == "127.0.0.1"


@pytest.mark.parametrize("at_the_robot", [False, True])
def test_a_host_that_is_none_is_refused(at_the_robot: bool) -> None:
    def fail(host: str) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with pytest.raises(InputError, match="'nowhere' is no host: Name or service not known; give a controller's name"):
        check_operator("nowhere", at_the_robot=at_the_robot, resolve=fail)


def test_a_name_that_no_resolver_takes_is_refused() -> None:
    with pytest.raises(InputError, match="is no host"):
        check_operator("a" * 300, at_the_robot=False)


def test_numbers_are_resolved_to_themselves() -> None:
    assert set(resolve_addresses("127.0.0.3")) == {"127.0.0.3"}
    assert is_loopback("::1")
