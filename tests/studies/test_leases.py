"""Leases, with real processes that are frozen, killed, and many at once."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cycletime.errors import RunError
from cycletime.studies import leases as lease_module
from cycletime.studies.leases import hold_lease, lease_holders, sweep_leases
from tests.processes import started
from tests.studies.small import make_old, wait_until

CONTENDERS, ROUNDS = 20, 12
RUN = "run"
FILE = "run.json"
CONTEST = f"""
import os, sys, time
from pathlib import Path
from cycletime.studies.leases import hold_lease

def contend(folder, begins):
    time.sleep(max(0, begins - time.time()))
    with hold_lease(folder, "run", "contender") as lease:
        with (folder / "tried").open("ab") as file:
            file.write(b"x")
        while (folder / "tried").stat().st_size < {CONTENDERS}:  # whoever holds it does so until all have tried
            time.sleep(0.01)
        os._exit(0 if lease is None else 2 if lease.is_lost() else 1)

for folder in sorted(Path(sys.argv[1]).iterdir()):
    begins = time.time() + 0.1
    children = []
    for _ in range({CONTENDERS}):
        child = os.fork()
        if child == 0:
            contend(folder, begins)
        children.append(child)
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(statuses.count(1), statuses.count(2), flush=True)
"""
HOLDER = """
import os, sys, time
from pathlib import Path
from cycletime.studies import leases as leases

leases.HEARTBEAT_S = 0.1
folder = Path(sys.argv[1])
with leases.hold_lease(folder, "run", "holder", on_loss=lambda: os._exit(75)) as lease:
    print("held" if lease else "refused", flush=True)
    while lease and not (folder / "end").exists():
        if lease.is_lost():  # as every writer asks
            os._exit(75)
        with (folder / "written").open("a") as file:
            file.write("x")
        time.sleep(0.005)
"""


def told(**overrides: object) -> str:
    mine = {"token": "old", "worker": "w", "host": "h", "processes": lease_module._pid_namespace(), "pid": os.getpid()}
    return json.dumps({**mine, **overrides})


def who(worker: str) -> str:
    return f"{worker} on {socket.gethostname()}, process {os.getpid()}"


def heir_of(path: Path) -> str:
    """What the lease says when another has taken it."""
    return path.read_text().replace('"token": "', '"token": "heir of ')


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def beat_quickly(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lease_module, "HEARTBEAT_S", 0.01)
    patch.setattr(lease_module, "_HEARTBEAT", lease_module._HeartbeatThread())  # the other one may be waiting


@contextmanager
def holding(folder: Path) -> Iterator["tuple[subprocess.Popen[str], str]"]:
    words = [sys.executable, "-c", HOLDER, str(folder)]
    with started(words, None) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()


def is_taken(folder: Path) -> bool:
    with hold_lease(folder, RUN, "somebody") as lease:
        return lease is not None


def test_one_holds_it_and_gives_it_back_without_a_trace(tmp_path: Path) -> None:
    with hold_lease(tmp_path, RUN, "one") as lease:
        assert lease is not None
        assert not lease.is_lost()
        assert lease_holders(tmp_path) == {RUN: who("one")}
        assert not is_taken(tmp_path)
        assert not lease.is_lost()
        assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert not list(tmp_path.iterdir())
    assert not lease_holders(tmp_path)
    assert is_taken(tmp_path)


def test_it_is_given_back_whatever_is_raised(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hold_lease(tmp_path, RUN, "one"):
        _ = 1 / 0
    assert not list(tmp_path.iterdir())


def test_of_twenty_processes_one_takes_a_free_or_stale_lease(tmp_path: Path) -> None:
    """The heirs of dead processes, of silent machines, of one who died over taking it, and of nobody."""
    dead = dead_pid()
    for number in range(ROUNDS):
        folder = tmp_path / f"{number:02d}"
        folder.mkdir()
        path = folder / FILE
        if number % 4 == 0:
            path.write_text(told(pid=dead))
        elif number % 4 == 1:
            path.write_text(told(processes="elsewhere"))
            make_old(path, 300)
        elif number % 4 == 2:
            path.write_text(told(pid=dead))
            (folder / ".lease-after-old").write_text(told(token="heir", pid=dead))
    ran = subprocess.run([sys.executable, "-c", CONTEST, str(tmp_path)], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["1 0"] * ROUNDS


def test_a_contender_that_is_overtaken_leaves_no_successor_of_the_new_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, after_old = tmp_path / FILE, ".lease-after-old"
    path.write_text(told(token="old", processes="elsewhere"))
    make_old(path, 300)
    asked: list[str] = []
    link, read = lease_module._link_if_free, lease_module._read_lease

    def linked(draft: Path, place: Path) -> bool:
        asked.append(place.name)
        return place.name != after_old and link(draft, place)

    def read_of(place: Path) -> dict[str, object] | None:
        if place.name == after_old:  # the heir's, who takes the lease in the very moment in which this is read
            path.write_text(told(token="heir"))
            return dict(json.loads(told(token="heir")))
        return read(place)

    monkeypatch.setattr(lease_module, "_link_if_free", linked)
    monkeypatch.setattr(lease_module, "_read_lease", read_of)
    assert not is_taken(tmp_path)
    assert asked == [FILE, after_old], "who sees a successor takes the lease for lost"


def test_a_killed_holder_loses_it_at_once_even_if_nobody_buried_it(tmp_path: Path) -> None:
    with holding(tmp_path) as (process, said):
        assert (said, is_taken(tmp_path)) == ("held", False)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is dead now, and still has its number
        os.kill(process.pid, 0)
        assert not lease_holders(tmp_path)
        assert is_taken(tmp_path)


def test_a_frozen_holder_that_wakes_up_writes_nothing_any_more(tmp_path: Path) -> None:
    with holding(tmp_path) as (process, said):
        assert said == "held"
        wait_until((tmp_path / "written").exists)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert not is_taken(tmp_path)
        make_old(tmp_path / FILE, 300)
        assert not lease_holders(tmp_path)
        with hold_lease(tmp_path, RUN, "heir") as lease:
            assert lease is not None
            before = (tmp_path / "written").stat().st_size
            process.send_signal(signal.SIGCONT)
            assert process.wait(timeout=60) == 75
            # It may be in the middle of a write when it wakes up.
            assert (tmp_path / "written").stat().st_size - before <= 1
            assert not lease.is_lost()
    assert not (tmp_path / FILE).exists()


def test_a_beating_heart_touches_all_leases_of_a_process_and_none_that_was_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat_quickly(monkeypatch)
    paths = [tmp_path / f"{run}.json" for run in ("a", "b")]
    with hold_lease(tmp_path, "a", "one"):
        with hold_lease(tmp_path, "b", "one"):
            for path in paths:
                make_old(path, 3600)
            wait_until(lambda: all(time.time() - path.stat().st_mtime < 1800 for path in paths))
            assert lease_holders(tmp_path).keys() == {"a", "b"}
        make_old(paths[0], 3600)
        wait_until(lambda: time.time() - paths[0].stat().st_mtime < 1800)
        assert [path.name for path in tmp_path.glob("*.json")] == ["a.json"]


def test_a_lease_that_is_lost_is_told_by_the_next_beat_and_touched_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beat_quickly(monkeypatch)
    told: list[str] = []
    with hold_lease(tmp_path, RUN, "one", lambda: told.append("lost")) as lease, hold_lease(tmp_path, "b", "one"):
        assert lease is not None
        (tmp_path / FILE).write_text(heir_of(tmp_path / FILE))
        make_old(tmp_path / FILE, 3600)
        wait_until(lambda: told)
        make_old(tmp_path / "b.json", 3600)
        wait_until(lambda: time.time() - (tmp_path / "b.json").stat().st_mtime < 1800)  # further beats
        assert told == ["lost"]
        assert time.time() - (tmp_path / FILE).stat().st_mtime > 1800
        with pytest.raises(RunError, match="taken by another worker"):
            lease.check()


def test_a_lease_that_is_lost_in_the_middle_of_a_beat_is_told_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    touch = os.utime

    def touch_what_an_heir_has(path: Path) -> None:  # as if it was frozen in this very moment
        path.write_text(heir_of(path))
        touch(path)

    beat_quickly(monkeypatch)
    monkeypatch.setattr(os, "utime", touch_what_an_heir_has)
    with hold_lease(tmp_path, RUN, "one", lambda: told.append("lost")):
        wait_until(lambda: told)


def test_the_leases_of_runs_do_not_touch_one_another(tmp_path: Path) -> None:
    with hold_lease(tmp_path, "a", "one"):
        with hold_lease(tmp_path, "b", "two") as lease:
            assert lease is not None
            assert lease_holders(tmp_path) == {"a": who("one"), "b": who("two")}
        assert lease_holders(tmp_path).keys() == {"a"}


def test_losing_it_is_noticed_and_what_the_heir_has_is_not_given_back(tmp_path: Path) -> None:
    with hold_lease(tmp_path, RUN, "one") as lease:
        assert lease is not None
        (tmp_path / FILE).unlink()
        (tmp_path / FILE).write_text(told(token="heir"))
        assert lease.is_lost()
    assert json.loads((tmp_path / FILE).read_text())["token"] == "heir"


def test_one_who_is_about_to_be_succeeded_has_lost_it(tmp_path: Path) -> None:
    with hold_lease(tmp_path, RUN, "one") as lease:
        assert lease is not None
        (tmp_path / f".lease-after-{lease.token}").write_text(told(token="heir"))
        assert lease.is_lost()
    assert (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    ("lease", "age_s", "taken"),
    [
        (told(), 10, False),  # alive
        (told(), 300, True),  # alive, but silent
        (told(processes="another machine", pid=2**22), 10, False),  # its number means nothing here
        (told(processes="another machine", pid=2**22), 300, True),
        (told(), -10, False),  # clocks are never quite the same
        (told(), -3600, True),  # a clock was set back, and its holder has not touched it since
        ("", 10, False),  # a machine that lost its power may leave it empty
        ("", 300, True),
        ('{"no": "token"}', 300, True),
    ],
)
def test_what_is_stale(tmp_path: Path, lease: str, age_s: float, taken: bool) -> None:
    (tmp_path / FILE).write_text(lease)
    make_old(tmp_path / FILE, age_s)
    assert is_taken(tmp_path) is taken
    assert (tmp_path / FILE).exists() is not taken


def test_nobody_takes_what_a_living_process_is_just_taking(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(told(pid=dead_pid()))
    (tmp_path / ".lease-after-old").write_text(told(token="heir"))
    assert not is_taken(tmp_path)
    assert json.loads((tmp_path / FILE).read_text())["token"] == "old"


def test_one_who_finds_the_lease_replaced_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading a stale lease and the right to succeed it, somebody else was faster and is through."""
    path = tmp_path / FILE
    path.write_text(told(pid=dead_pid()))
    really = lease_module._link_if_free

    def slowly(draft: Path, place: Path) -> bool:
        if place.name == ".lease-after-old":
            path.write_text(told(token="faster"))
        return really(draft, place)

    monkeypatch.setattr(lease_module, "_link_if_free", slowly)
    assert not is_taken(tmp_path)
    assert json.loads(path.read_text())["token"] == "faster"
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


def test_the_signs_of_life_of_a_worker_are_the_last_touch_of_any_of_its_leases(tmp_path: Path) -> None:
    for run, worker, age_s in (("a", "one", 50), ("b", "one", 20), ("c", "two", 300)):
        (tmp_path / f"{run}.json").write_text(told(worker=worker))
        make_old(tmp_path / f"{run}.json", age_s)
    touched = {run: (tmp_path / f"{run}.json").stat().st_mtime for run in "abc"}
    assert lease_module.last_heartbeats(tmp_path) == {"one": touched["b"], "two": touched["c"]}


def test_old_leftovers_are_swept(tmp_path: Path) -> None:
    for name, age_s in ((".lease-draft", 500), (".lease-after-x", 500), (".lease-later", -500), (".lease-new", 1)):
        (tmp_path / name).write_text(told())
        make_old(tmp_path / name, age_s)
    sweep_leases(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lease-new"]


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[" * 10**5, b'{"token": "a/b", "pid": 1}', b'{"token": "a", "pid": "x"}',
                b'{"token": "a", "pid": ' + b"9" * 30 + b"}", b'{"token": "' + b"9" * 400 + b'", "pid": 1}']
)  # fmt: skip
def test_a_lease_that_cannot_be_read_is_somebody_s_until_it_is_stale(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "run.json").write_bytes(content)
    assert lease_holders(tmp_path).keys() == {"run"}
    with hold_lease(tmp_path, "run", "me") as lease:
        assert lease is None
    make_old(tmp_path / "run.json")
    assert not lease_holders(tmp_path)
    with hold_lease(tmp_path, "run", "me") as lease:
        assert lease is not None
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_hard_links_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with (
        pytest.raises(RunError, match=f"The file system of {tmp_path} has no hard links"),
        hold_lease(tmp_path, "run", "me"),
    ):
        pass
