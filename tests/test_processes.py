"""What a process has started ends with it, however that ends, and forked children answer neither for it nor hold it."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cycletime.processes import owned_process, self_ending_environment

OWNER = """
import multiprocessing, os, subprocess, sys, time
from cycletime.processes import OWNERS, owning_children

there_before = subprocess.Popen(["sleep", "1000" if sys.argv[2] == "in order" else "0"])
time.sleep(0.05)  # some ticks of the clock by which the system notes when a process began
out = open(sys.argv[1], "w")

def fork(*words):
    if os.fork() == 0:
        os.setsid()
        if not words:
            time.sleep(1000)
        if os.fork() == 0:  # a daemon: its parent ends at once
            print("daemon", os.getpid(), file=out, flush=True)
            time.sleep(1000)
        os._exit(0)

with owning_children():
    helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,))
    helper.start()
    spawned = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(1000,))
    spawned.start()
    fork()
    fork("daemon")
    child = subprocess.Popen(["sleep", "1000"])
    script = "sleep 1000 & echo sleeper $!; exec sleep 1000"
    far = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=out)
    bare = subprocess.Popen(["sleep", "1000"], env={})
    for name, process in dict(helper=helper, spawned=spawned, child=child, far=far).items():
        print(name, process.pid, file=out, flush=True)
    if sys.argv[2] == "in order":
        print("bare", bare.pid, file=out, flush=True)
    else:
        bare.kill()
    while not {"daemon", "sleeper"} <= set(open(sys.argv[1]).read().split()):
        time.sleep(0.01)
    print("all", os.getpid(), file=out, flush=True)
    if sys.argv[2] != "in order":
        time.sleep(1000)
assert there_before.poll() is None, "what was there before is not ours"
there_before.kill()
assert OWNERS not in os.environ
"""


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def wait_until(what: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the guard needs /proc")
@pytest.mark.parametrize("ending", ["in order", "killed"])
def test_all_that_a_process_has_started_ends_with_it(tmp_path: Path, ending: str) -> None:
    pids = tmp_path / "pids"
    with subprocess.Popen([sys.executable, "-c", OWNER, str(pids), ending]) as owner:
        wait_until(lambda: pids.exists() and "all" in pids.read_text().split())
        started = dict(line.split() for line in pids.read_text().splitlines())
        assert len(started) == (8 if ending == "in order" else 7)
        if ending == "killed":
            assert all(is_running(int(pid)) for pid in started.values())
            owner.kill()
    assert owner.returncode == (0 if ending == "in order" else -signal.SIGKILL)
    if ending == "killed":  # the guard has a moment
        wait_until(lambda: not any(is_running(int(pid)) for pid in started.values()))
    assert [name for name, pid in started.items() if is_running(int(pid))] == []


LONG_BENCHMARK = """
import subprocess, sys
from benchmarks import mujoco_agents

child = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
mujoco_agents.train = lambda *_: subprocess.run([sys.executable, "-c", child])
sys.argv = ["mujoco_agents.py", "out"]
mujoco_agents.main()
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the guard needs /proc")
def test_the_studies_of_a_benchmark_end_with_it() -> None:
    words = [sys.executable, "-c", LONG_BENCHMARK]
    with subprocess.Popen(words, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        child = int(benchmark.stdout.readline())
        benchmark.terminate()
    assert benchmark.returncode == -signal.SIGTERM
    wait_until(lambda: not is_running(child))


FORKS = """
import multiprocessing, os, signal, sys, threading, time
from cycletime.processes import handling, ignore_signal, private_descriptors

wakeup_reader, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)
reader, writer = os.pipe()
with handling({signal.SIGTERM: ignore_signal, signal.SIGINT: ignore_signal}), private_descriptors(wakeup):
    helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,))
    with private_descriptors(writer):
        helper.start()
    os.kill(helper.pid, signal.SIGINT)
    os.close(writer)
    assert os.read(reader, 1) == b"", "a child keeps no pipe"
    assert helper.is_alive(), "Ctrl-C is for its parent"
    others = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)) for _ in range(50)]
    for each in others:
        each.start()
        each.terminate()  # at once
    helper.terminate()
    for each in (helper, *others):
        each.join()
        assert each.exitcode == -signal.SIGTERM
    os.set_blocking(wakeup_reader, False)
    try:
        assert signal.SIGTERM not in os.read(wakeup_reader, 100), "its parent takes it for its own"
    except BlockingIOError:
        pass
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""


def test_a_forked_child_is_ended_by_sigterm_and_holds_no_pipe() -> None:
    ran = subprocess.run([sys.executable, "-c", FORKS], check=False, timeout=60, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, ""), (
        "nor does a child write what it hears into a descriptor that it lost"
    )


RUNAWAY = """
import os, sys
from cycletime.processes import owning_children
with owning_children():
    if os.fork() == 0:
        if sys.argv[1] == "exit":
            sys.exit(5)
        raise RuntimeError
    print(os.waitstatus_to_exitcode(os.wait()[1]))
print("once")
"""


@pytest.mark.parametrize(("ending", "status"), [("exit", 5), ("error", 1)])
def test_a_forked_child_does_not_go_on_as_its_parent(ending: str, status: int) -> None:
    ran = subprocess.run([sys.executable, "-c", RUNAWAY, ending], capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.returncode) == (f"{status}\nonce\n", 0)


def test_a_command_is_ended_with_all_that_it_has_started_and_nothing_else_is() -> None:
    script = "trap '' TERM; setsid sleep 1000 & sleep 1000 & echo $!; wait"
    with (
        subprocess.Popen(["sleep", "1000"]) as other,
        subprocess.Popen(["sleep", "1000"], env=self_ending_environment()) as self_ending,
    ):
        with owned_process(["/bin/sh", "-c", script], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            sleeper = int(process.stdout.readline())
            wait_until(lambda: len(descendants(process.pid)) == 2)
            started = {process.pid, sleeper, *descendants(process.pid)}
            process.terminate()
        assert process.returncode == -signal.SIGKILL
        assert not any(map(is_running, started))
        assert is_running(other.pid)
        assert is_running(self_ending.pid)
        other.kill()
        self_ending.kill()


def test_without_a_guard_at_least_the_group_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS, which has no /proc."""
    monkeypatch.setattr("cycletime.processes.os.path.isdir", lambda path: False)
    with owned_process(["/bin/sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        sleeper = int(process.stdout.readline())
    wait_until(lambda: not is_running(sleeper))


def test_a_command_that_ends_by_itself_keeps_its_status_and_what_it_left_is_ended(tmp_path: Path) -> None:
    script = f"setsid sleep 1000 & echo $! > {tmp_path}/pid; exit 3"
    with owned_process(["/bin/sh", "-c", script]) as process:
        assert process.wait(60) == 3
    assert not is_running(int((tmp_path / "pid").read_text()))
    with pytest.raises(FileNotFoundError), owned_process(["/no/such/command"]):
        pass


def descendants(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(each) for each in found]
